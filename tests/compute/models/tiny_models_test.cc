// The tiny models (tests/data/make_tiny_models.py), one for each architecture, variant and tensor type, under
// --numerics f32 against transformers' logits, or a float64 NumPy pass
// (tests/oracles/transformers_goldens.py).
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "omnibus/compute/models/model_registry.h"
#include "omnibus/compute/ops/device_ops.h"

#include "compute/support/teacher_forcing.h"

namespace omnibus {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Largest difference of a logit from the oracle's, by the element type of the matrices. Their values are
// exact in f32 whatever the type, so one bound serves all; it is that of the whole default model
// (docs/testing.md, Bars of accuracy).
constexpr double kTolerance = 3e-4;
constexpr double kMargin = 10 * kTolerance;  // of the oracle's best two, where the best must agree

const fs::path kGoldens = OMNIBUS_SOURCE_DIR "/tests/data/goldens/tiny";

std::vector<std::string> golden_names() {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(kGoldens)) names.push_back(entry.path().stem());
  std::sort(names.begin(), names.end());
  return names;
}

StatusOr<std::unique_ptr<TeacherForcing>> load_tiny(const std::string& name,
                                                    const TeacherForcingOptions& options) {
  OMNIBUS_ASSIGN_OR_RETURN(auto file, GgufFile::open(OMNIBUS_BINARY_DIR "/tiny_models/" + name + ".gguf"));
  return TeacherForcing::create(std::move(file), options);
}

class TinyModelTest : public testing::TestWithParam<std::string> {};

void compare(const json& position, std::span<const float> logits, size_t index, double* worst) {
  SCOPED_TRACE(testing::Message() << "position " << index);
  double top = -INFINITY, sum = 0;
  for (float x : logits) top = std::max(top, static_cast<double>(x));
  for (float x : logits) sum += std::exp(static_cast<double>(x) - top);
  const auto near = [&](double got, double expected) {
    *worst = std::max(*worst, std::abs(got - expected));
    ASSERT_NEAR(got, expected, kTolerance);
  };
  near(top + std::log(sum), position["lse"]);
  for (size_t i = 0; i < position["top_ids"].size(); ++i)
    near(logits[position["top_ids"][i].get<size_t>()], position["top_logits"][i]);
  for (size_t i = 0; i < position["stride_logits"].size(); ++i)
    near(logits[i * 97], position["stride_logits"][i]);
  if (position["gap"].get<double>() <= kMargin) return;
  EXPECT_EQ(std::max_element(logits.begin(), logits.end()) - logits.begin(), position["top_ids"][0]);
}

TEST_P(TinyModelTest, LogitsEqualTheOracle) {
  json golden;
  std::ifstream(kGoldens / (GetParam() + ".json")) >> golden;
  ASSERT_EQ(golden["stride"], 97);
  const auto ids = golden["ids"].get<std::vector<TokenId>>();
  for (CpuIsa isa : supported_isas()) {
    SCOPED_TRACE(to_string(isa));
    TeacherForcingOptions options;
    options.cpu_isa = isa;
    options.threads = 2;
    options.chunk = 17;  // not the whole sequence at once, as the oracle does
    const auto model = load_tiny(GetParam(), options);
    ASSERT_TRUE(model.ok()) << model.status();
    EXPECT_EQ((*model)->config().architecture, golden["architecture"]);
    double worst = 0;
    size_t compared = 0;
    ASSERT_TRUE((*model)
                    ->run(ids, 0,
                          [&](int32_t position, std::span<const float> logits) {
                            const auto p = static_cast<size_t>(position);
                            ASSERT_EQ(logits.size(), golden["vocabulary"].get<size_t>());
                            compare(golden["positions"][p], logits, p, &worst);
                            ++compared;
                          })
                    .ok());
    EXPECT_EQ(compared, ids.size());
    std::printf("%s %s: largest difference %.2e from %s\n", GetParam().c_str(), to_string(isa), worst,
                golden["oracle"].get<std::string>().c_str());
  }
}

// The served numerics: an error of the order of int8 activations and a bf16 cache, no more.
TEST_P(TinyModelTest, FastNumericsStayClose) {
  json golden;
  std::ifstream(kGoldens / (GetParam() + ".json")) >> golden;
  TeacherForcingOptions options;
  options.numerics = Numerics::kFast;
  const auto model = load_tiny(GetParam(), options);
  ASSERT_TRUE(model.ok()) << model.status();
  double squares = 0, spread = 0;
  int count = 0;
  ASSERT_TRUE((*model)
                  ->run(golden["ids"].get<std::vector<TokenId>>(), 0,
                        [&](int32_t position, std::span<const float> logits) {
                          const json& p = golden["positions"][static_cast<size_t>(position)];
                          for (size_t i = 0; i < p["stride_logits"].size(); ++i) {
                            const double expected = p["stride_logits"][i], got = logits[i * 97];
                            squares += (got - expected) * (got - expected);
                            spread += expected * expected;
                            ++count;
                          }
                        })
                  .ok());
  ASSERT_GT(count, 50);
  EXPECT_LT(std::sqrt(squares / spread), 0.05) << "relative to the size of the logits";
}

INSTANTIATE_TEST_SUITE_P(All, TinyModelTest, testing::ValuesIn(golden_names()),
                         [](const auto& test) { return test.param; });

TEST(TinyModelsTest, EveryArchitectureHasATinyModelWithGoldens) {
  std::set<std::string> covered;
  for (const std::string& name : golden_names()) {
    json golden;
    std::ifstream(kGoldens / (name + ".json")) >> golden;
    covered.insert(golden["architecture"].get<std::string>());
  }
  for (const auto& entry : model_registry())
    EXPECT_TRUE(covered.contains(std::string(entry.architecture))) << entry.architecture;
  EXPECT_GE(golden_names().size(), 20U);
}

}  // namespace
}  // namespace omnibus
