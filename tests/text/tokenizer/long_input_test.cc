// A long text of anything is tokenised without loss and without special cases of cost.
#include <gtest/gtest.h>

#include "golden.h"
#include "random_text.h"

namespace omnibus::testing {
namespace {

constexpr size_t kBytes = size_t{1} << 18;

std::string repeat(std::string_view unit) {
  std::string text;
  while (text.size() < kBytes) text += unit;
  return text;
}

class LongInput : public ::testing::TestWithParam<const char*> {};

TEST_P(LongInput, IsNeitherLostNorSlow) {
  const auto tokenizer = make_tokenizer(committed_golden(GetParam()));
  ASSERT_NE(tokenizer, nullptr);
  for (const char* unit : {"a", "A", "ab", " ", "\n", " \n", "\t ", "7", "!", "'s", "😀", "国", "\xFF",
                           "\xE2\x82", "\u0307\u0323", "<|im_end|", "<tool_call", "<|im_end|>", "x\u0301 "}) {
    // Text after a special token gets a space of its own there, so nothing may match in this unit.
    if (tokenizer->spec().add_space_prefix && std::string_view(unit).starts_with("<tool")) continue;
    for (const std::string& text : {repeat(unit), repeat(unit) + "x", "x" + repeat(unit)}) {
      std::string bytes;
      for (const TokenId id : tokenizer->encode(text, false)) bytes += tokenizer->token_bytes(id);
      if (!bytes.empty() && tokenizer->spec().add_space_prefix) bytes.erase(0, 1);
      EXPECT_TRUE(bytes == text) << "unit '" << unit << "'";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, LongInput, ::testing::Values("smollm", "llama3", "llama_spm"),
                         [](const auto& name) { return std::string(name.param); });

}  // namespace
}  // namespace omnibus::testing
