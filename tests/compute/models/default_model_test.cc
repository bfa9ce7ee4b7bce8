// The default model under --numerics f32 against a float64 NumPy forward pass
// (tests/oracles/default_model_goldens.py), teacher-forced along the reference's greedy tokens.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "compute/support/teacher_forcing.h"

namespace omnibus {
namespace {

constexpr double kTolerance = 1e-3;
constexpr double kMargin = 0.05;  // of the reference's best two, where the best must agree

struct GoldenPosition {
  TokenId token = 0;
  double lse = 0, gap = 0;
  std::vector<uint32_t> top_ids;
  std::vector<float> top, strided;
};
struct Golden {
  std::vector<TokenId> prompt;
  uint32_t stride = 0, vocab = 0;
  std::vector<GoldenPosition> positions;
};

class Reader {
 public:
  explicit Reader(std::string bytes) : bytes_(std::move(bytes)) {}
  void skip_line() { at_ = bytes_.find('\n') + 1; }
  template <typename T>
  T take() {
    T value;
    take_into(&value, 1);
    return value;
  }
  template <typename T>
  std::vector<T> take(size_t n) {
    std::vector<T> values(n);
    take_into(values.data(), n);
    return values;
  }
  bool at_end() const { return at_ == bytes_.size(); }

 private:
  template <typename T>
  void take_into(T* out, size_t n) {
    ASSERT_LE(at_ + n * sizeof(T), bytes_.size());
    std::memcpy(out, bytes_.data() + at_, n * sizeof(T));
    at_ += n * sizeof(T);
  }
  std::string bytes_;
  size_t at_ = 0;
};

Golden read_golden(int number) {
  const std::string path =
      OMNIBUS_SOURCE_DIR "/tests/data/goldens/default_model_" + std::to_string(number) + ".bin";
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in.good()) << path;
  Reader reader(std::string(std::istreambuf_iterator<char>(in), {}));
  reader.skip_line();
  Golden g;
  g.prompt = reader.take<TokenId>(reader.take<uint32_t>());
  const auto positions = reader.take<uint32_t>(), kept = reader.take<uint32_t>();
  g.stride = reader.take<uint32_t>();
  g.vocab = reader.take<uint32_t>();
  for (uint32_t i = 0; i < positions; ++i) {
    GoldenPosition p;
    p.token = static_cast<TokenId>(reader.take<uint32_t>());
    p.lse = reader.take<double>();
    p.gap = reader.take<double>();
    p.top_ids = reader.take<uint32_t>(kept);
    p.top = reader.take<float>(kept);
    p.strided = reader.take<float>((g.vocab + g.stride - 1) / g.stride);
    g.positions.push_back(std::move(p));
  }
  EXPECT_TRUE(reader.at_end());
  return g;
}

double log_sum_exp(std::span<const float> logits) {
  double top = -INFINITY, sum = 0;
  for (float x : logits) top = std::max(top, static_cast<double>(x));
  for (float x : logits) sum += std::exp(static_cast<double>(x) - top);
  return top + std::log(sum);
}

TokenId best_of(std::span<const float> logits) {
  return static_cast<TokenId>(std::max_element(logits.begin(), logits.end()) - logits.begin());
}

class DefaultModelTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    const char* path = std::getenv("OMNIBUS_TEST_MODEL");
    if (path == nullptr) return;
    auto file = GgufFile::open(path);
    ASSERT_TRUE(file.ok()) << file.status();
    TeacherForcingOptions options;
    options.max_tokens = 512;
    auto model = TeacherForcing::create(*std::move(file), options);
    ASSERT_TRUE(model.ok()) << model.status();
    model_ = model->release();
  }
  static void TearDownTestSuite() {
    delete model_;
    model_ = nullptr;
  }
  void SetUp() override {
    if (model_ == nullptr) GTEST_SKIP() << "OMNIBUS_TEST_MODEL does not name the default model's file";
  }
  static inline TeacherForcing* model_ = nullptr;
};

TEST_F(DefaultModelTest, LogitsEqualTheFloat64Reference) {
  double worst = 0;
  int compared = 0;
  for (int number = 0; number < 8; ++number) {
    const Golden golden = read_golden(number);
    ASSERT_EQ(golden.vocab, static_cast<uint32_t>(model_->vocab_size()));
    ASSERT_EQ(golden.positions.size(), 64U);
    std::vector<TokenId> ids = golden.prompt;
    for (const GoldenPosition& p : golden.positions) ids.push_back(p.token);
    ids.pop_back();
    const auto first = static_cast<int32_t>(golden.prompt.size()) - 1;
    const Status status = model_->run(ids, first, [&](int32_t position, std::span<const float> logits) {
      const GoldenPosition& p = golden.positions[static_cast<size_t>(position - first)];
      const auto near = [&](double got, double expected) {
        worst = std::max(worst, std::abs(got - expected));
        ASSERT_NEAR(got, expected, kTolerance) << "prompt " << number << " position " << position;
      };
      for (size_t i = 0; i < p.top.size(); ++i) near(logits[p.top_ids[i]], p.top[i]);
      for (size_t i = 0; i < p.strided.size(); ++i) near(logits[i * golden.stride], p.strided[i]);
      near(log_sum_exp(logits), p.lse);
      if (p.gap <= kMargin) return;
      ++compared;
      ASSERT_EQ(best_of(logits), p.token)
          << "prompt " << number << " position " << position << " gap " << p.gap;
    });
    ASSERT_TRUE(status.ok()) << status;
  }
  EXPECT_GT(compared, 450) << "of 512 positions";
  std::printf("largest difference from float64: %.2e; top-1 compared at %d of 512 positions\n", worst,
              compared);
}

// "What is the capital of France?" -> "The capital of France is Paris.": greedy, not along the reference.
TEST_F(DefaultModelTest, CapitalOfFranceIsParis) {
  const Golden golden = read_golden(0);
  std::vector<TokenId> ids = golden.prompt;
  for (int step = 0; step < 8; ++step) {
    TokenId next = kNoToken;
    ASSERT_TRUE(model_
                    ->run(ids, static_cast<int32_t>(ids.size()) - 1,
                          [&](int32_t, std::span<const float> logits) { next = best_of(logits); })
                    .ok());
    EXPECT_EQ(next, golden.positions[static_cast<size_t>(step)].token)
        << "token " << step << " of the answer";
    ids.push_back(next);
  }
  constexpr TokenId kParis = 7042;  // " Paris"
  EXPECT_EQ(ids[golden.prompt.size() + 5], kParis);
}

}  // namespace
}  // namespace omnibus
