// Ids equal to Hugging Face tokenizers' on every golden.
#include <gtest/gtest.h>

#include "golden.h"

namespace omnibus::testing {
namespace {

class GoldenIds : public ::testing::TestWithParam<std::filesystem::path> {};

TEST_P(GoldenIds, EqualTheOracle) {
  const Golden golden = read_golden(GetParam());
  ASSERT_TRUE(golden.spec.has_value());
  const auto tokenizer = make_tokenizer(golden);
  ASSERT_NE(tokenizer, nullptr);
  expect_golden_ids(*tokenizer, golden);
}

INSTANTIATE_TEST_SUITE_P(All, GoldenIds, ::testing::ValuesIn(golden_paths()), [](const auto& golden) {
  std::string name = golden.param.stem().string();
  for (char& c : name) c = std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  return name;
});

}  // namespace
}  // namespace omnibus::testing
