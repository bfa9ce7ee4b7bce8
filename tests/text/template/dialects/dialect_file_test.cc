// Dialect files: those of configs/dialects are sound; a damaged one is refused with file and key.
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "omnibus/text/template/dialect.h"

#include "fakes/piece_tokenizer.h"

namespace omnibus {
namespace {

using testing::HasSubstr;

std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream out;
  out << in.rdbuf();
  return out.str();
}

std::shared_ptr<const Tokenizer> tokenizer_with(std::vector<std::string> specials = {"<|im_end|>"}) {
  fakes::PieceVocabulary vocabulary;
  vocabulary.eos = specials.front();
  vocabulary.end_of_generation = {specials.front()};
  vocabulary.specials = std::move(specials);
  return fakes::make_piece_tokenizer(vocabulary);
}

TEST(DialectFiles, EachIsCompiledInAndNamesAreUnique) {
  std::set<std::string> files, names, seen;
  for (const auto& entry : std::filesystem::directory_iterator(OMNIBUS_SOURCE_DIR "/configs/dialects")) {
    const std::string name = entry.path().stem();
    files.insert(name);
    const auto dialect = parse_dialect(name, read_file(entry.path()));
    ASSERT_TRUE(dialect.ok()) << dialect.status();
    EXPECT_FALSE(dialect->in_template.empty()) << name << ": never recognised";
  }
  EXPECT_GE(files.size(), 7U);
  for (const auto& dialect : builtin_dialects()) {
    names.insert(dialect->name);
    EXPECT_TRUE(seen.insert(dialect->name).second) << dialect->name;
    for (const auto& alias : dialect->aliases) EXPECT_TRUE(seen.insert(alias).second) << alias;
  }
  EXPECT_EQ(names, files);
  EXPECT_FALSE(seen.contains("auto") || seen.contains("none"));
}

constexpr char kGood[] = R"(
aliases = ["other"]
[detect]
template = ["<t>"]
[reasoning]
open = ["<t>"]
close = ["</t>"]
trim = "\n"
)";

struct Damage {
  const char* text;
  const char* names;  // what the error must say
};

class DamagedDialect : public testing::TestWithParam<Damage> {};

TEST_P(DamagedDialect, IsRefusedByFileAndKey) {
  const auto dialect = parse_dialect("family", GetParam().text);
  ASSERT_FALSE(dialect.ok());
  EXPECT_EQ(dialect.status().code(), StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(dialect.status().message()),
              testing::AllOf(HasSubstr("family"), HasSubstr(GetParam().names)));
}

INSTANTIATE_TEST_SUITE_P(
    Files, DamagedDialect,
    testing::Values(
        Damage{"a = [", "line 1"},
        Damage{"x = 1\n[detect]\n[reasoning]\nopen=['a']\nclose=['b']", "x: unknown key"},
        Damage{"[reasoning]\nopen=['a']\nclose=['b']", "detect: is missing"},
        Damage{"[detect]", "reasoning: is missing"}, Damage{"detect = 3", "detect: must be a table"},
        Damage{"aliases = 'x'\n[detect]\n[reasoning]\nopen=['a']\nclose=['b']", "aliases: must be an array"},
        Damage{"[detect]\ntemplate=[1]\n[reasoning]\nopen=['a']\nclose=['b']", "detect.template"},
        Damage{"[detect]\nx=[]\n[reasoning]\nopen=['a']\nclose=['b']", "detect.x: unknown key"},
        Damage{"[detect]\n[reasoning]\nclose=['b']", "reasoning.open: is missing"},
        Damage{"[detect]\n[reasoning]\nopen=['b']", "reasoning.close: is missing"},
        Damage{"[detect]\n[reasoning]\nopen=['']\nclose=['b']", "reasoning.open: an empty string"},
        Damage{"[detect]\n[reasoning]\nopen=['a','a']\nclose=['b']",
               "reasoning.open: 'a' stands there twice"},
        Damage{"[detect]\n[reasoning]\nopen=['a']\nclose=['b','abc']",
               "reasoning.close: 'b' occurs in 'abc'"},
        Damage{"[detect]\n[reasoning]\nopen=['a']\nclose=['b']\ndrop=['xa']", "'a' occurs in 'xa'"},
        Damage{"[detect]\n[reasoning]\nopen=[\"a\\n\"]\nclose=['b']\ntrim=\"\\n\"", "reasoning.open"},
        Damage{"[detect]\n[reasoning]\nopen=['a']\nclose=['b']\ntrim='x'", "reasoning.trim"},
        Damage{"[detect]\n[reasoning]\nopen=['a']\nclose=['b']\ntrim=1", "reasoning.trim"},
        Damage{"[detect]\n[reasoning]\nopen=['a']\nclose=['b']\nrepeat='yes'", "reasoning.repeat"},
        Damage{"[detect]\n[reasoning]\nopen=['a']\nclose=['b']\nmore=1", "reasoning.more: unknown key"}));

TEST(DialectFiles, AWholeOneIsRead) {
  const auto dialect = parse_dialect("family", kGood);
  ASSERT_TRUE(dialect.ok()) << dialect.status();
  EXPECT_EQ(dialect->name, "family");
  EXPECT_THAT(dialect->aliases, testing::ElementsAre("other"));
  EXPECT_THAT(dialect->in_template, testing::ElementsAre("<t>"));
  EXPECT_THAT(dialect->reasoning->open, testing::ElementsAre("<t>"));
  EXPECT_THAT(dialect->reasoning->close, testing::ElementsAre("</t>"));
  EXPECT_EQ(dialect->reasoning->trim, "\n");
  EXPECT_FALSE(dialect->reasoning->repeat);
}

TEST(SelectDialect, ByNameByAliasByTemplateByVocabulary) {
  const auto plain = tokenizer_with();
  const auto name_of = [](const StatusOr<std::shared_ptr<const Dialect>>& dialect) {
    return dialect.ok() ? (*dialect ? (*dialect)->name : "(null)") : std::string(dialect.status().message());
  };
  EXPECT_EQ(name_of(select_dialect("magistral", "<think>", *plain)), "magistral");
  EXPECT_EQ(name_of(select_dialect("deepseek_r1", "", *plain)), "think");
  EXPECT_EQ(name_of(select_dialect("none", "<think>", *plain)), "(null)");
  EXPECT_EQ(name_of(select_dialect("auto", "nothing to see", *plain)), "(null)");
  EXPECT_EQ(name_of(select_dialect("auto", "x <think> y", *plain)), "think");
  // The template knows better than the vocabulary; without a mark there the vocabulary is asked.
  const auto thinks = tokenizer_with({"<|im_end|>", "[THINK]"});
  EXPECT_EQ(name_of(select_dialect("auto", "x <think> y", *thinks)), "think");
  EXPECT_EQ(name_of(select_dialect("auto", "", *thinks)), "magistral");
  // The longest mark is the most exact.
  EXPECT_EQ(
      name_of(select_dialect(
          "auto", "thoughts between <think></think> and write your response between <response></response>",
          *plain)),
      "granite33");
  EXPECT_THAT(name_of(select_dialect("nosuch", "", *plain)),
              testing::AllOf(HasSubstr("'nosuch'"), HasSubstr("magistral"), HasSubstr("auto")));
}

RenderedPrompt prompt_of(std::vector<std::pair<std::string, bool>> segments) {
  RenderedPrompt prompt;
  for (const auto& [text, trusted] : segments) {
    prompt.ranges.push_back({prompt.text.size(), prompt.text.size() + text.size(), trusted});
    prompt.text += text;
  }
  return prompt;
}

// Ends of prompts as the families' templates write them.
TEST(ReasoningStart, IsReadFromWhatTheTemplateWroteLast) {
  const auto start = [](const char* name, std::vector<std::pair<std::string, bool>> segments) {
    const auto dialect = select_dialect(name, "", *tokenizer_with());
    return reasoning_start(*(*dialect)->reasoning, prompt_of(std::move(segments)));
  };
  using S = ReasoningStart;
  EXPECT_EQ(start("think", {{"hi", false}, {"<|im_end|>\n<|im_start|>assistant\n", true}}), S::kBefore);
  EXPECT_EQ(start("think", {{"hi", false}, {"<|im_start|>assistant\n<think>\n", true}}), S::kInside);
  EXPECT_EQ(start("think", {{"hi", false}, {"assistant\n<think>\n\n</think>\n\n", true}}), S::kClosed);
  EXPECT_EQ(start("think", {{"hi", false}, {"<|Assistant|></think>", true}}), S::kClosed);
  EXPECT_EQ(start("think", {{"t", true}, {"a <think>\n", false}}), S::kBefore);
  EXPECT_EQ(start("think", {{"<think>", true}, {"x", false}, {"<|end|>", true}}), S::kBefore);
  EXPECT_EQ(start("think", {}), S::kBefore);
  EXPECT_EQ(start("command_a", {{"<|CHATBOT_TOKEN|><|START_THINKING|>", true}}), S::kInside);
  EXPECT_EQ(start("command_a", {{"<|START_THINKING|><|END_THINKING|>", true}}), S::kClosed);
  EXPECT_EQ(start("gemma4", {{"<|turn>model\n<|channel>thought\n<channel|>", true}}), S::kClosed);
  EXPECT_EQ(start("harmony", {{"<|end|><|start|>assistant", true}}), S::kBefore);
  EXPECT_EQ(start("solar", {{"<|think|><|end|><|begin|>assistant", true}}), S::kBefore);
  EXPECT_EQ(start("apriel", {{"<|begin_assistant|>\nHere are my reasoning steps:\n", true}}), S::kInside);
  EXPECT_EQ(start("kimi_k3", {{"<|open|>think<|sep|>", true}}), S::kInside);
  EXPECT_EQ(start("kimi_k3", {{"<|open|>response<|sep|>", true}}), S::kClosed);
}

// Slices cut markers anywhere.
TEST(ReasoningStart, BehindAMessageFullOfMarkers) {
  constexpr size_t kLong = size_t{128} << 10;
  for (const auto& dialect : builtin_dialects()) {
    const auto& format = dialect->reasoning;
    const auto repeated = [](const std::string& text) {
      std::string all;
      while (all.size() < kLong) all += text;
      return all;
    };
    const std::string block = format->open.front() + "x" + format->close.front();
    EXPECT_EQ(reasoning_start_behind(format, repeated(block)),
              format->repeat ? ReasoningStart::kBefore : ReasoningStart::kClosed)
        << dialect->name;
    for (const std::string& marker : format->drop) {
      EXPECT_EQ(reasoning_start_behind(format, repeated(marker)), ReasoningStart::kBefore) << dialect->name;
    }
    EXPECT_EQ(reasoning_start_behind(format, std::string(kLong, ' ')), ReasoningStart::kBefore);
    EXPECT_EQ(reasoning_start_behind(format, block + repeated("\n<")),
              format->repeat ? ReasoningStart::kBefore : ReasoningStart::kClosed)
        << dialect->name;
  }
}

TEST(ReasoningStart, BehindTheBeginningOfAnAnswer) {
  const auto dialect = *select_dialect("think", "", *tokenizer_with());
  const auto start = [&](const char* text) { return reasoning_start_behind(dialect->reasoning, text); };
  EXPECT_EQ(start("Well, "), ReasoningStart::kBefore);
  EXPECT_EQ(start("<think>\nOkay"), ReasoningStart::kInside);
  EXPECT_EQ(start("<think>a</think>b"), ReasoningStart::kClosed);
  EXPECT_EQ(start("a</think>b"), ReasoningStart::kBefore);
}

}  // namespace
}  // namespace omnibus
