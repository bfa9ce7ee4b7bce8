#include "pretokenizer.h"

#include <algorithm>
#include <array>
#include <span>

namespace omnibus {
namespace {

// The patterns as the models' own tokenizer.json files have them.
constexpr std::string_view kGpt2 =
    R"('s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";
constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kDigit = R"(\p{N})";
constexpr std::string_view kDefaultPunctuation = R"([\p{P}\$\+<=>\^~\|]+)";
constexpr std::string_view kDigits = R"(\p{N}+)";
constexpr std::string_view kThreeDigits = "[0-9][0-9][0-9]";

constexpr std::array kGpt2Stages = {kGpt2};
constexpr std::array kLlama3Stages = {kLlama3};
constexpr std::array kQwen2Stages = {kQwen2};
constexpr std::array kQwen35Stages = {kQwen35};
constexpr std::array kSmollmStages = {kDigit, kGpt2};
constexpr std::array kDefaultStages = {kDefaultPunctuation, kGpt2, kDigits, kThreeDigits};

constexpr std::string_view kGpt2Names[] = {
    "gpt-2",    "phi-2",           "mpt",      "olmo",    "jais",    "mellum",  "modern-bert", "exaone4",
    "trillion", "granite-docling", "gigachat", "a.x-4.0", "jina-es", "jina-de", "jina-v2-es",  "jina-v2-de"};
constexpr std::string_view kLlama3Names[] = {"llama-bpe", "llama3",  "llama-v3", "falcon3",
                                             "falcon-h1", "pixtral", "lfm2",     "midm-2.0"};
constexpr std::string_view kLlama3MergingNames[] = {"dbrx", "smaug-bpe", "glm4", "chatglm-bpe"};
constexpr std::string_view kQwen2NfcNames[] = {"qwen2", "deepseek-r1-qwen"};
constexpr std::string_view kQwen2Names[] = {"stablelm2", "megrez", "hunyuan", "grok-2", "solar-open"};
constexpr std::string_view kQwen35Names[] = {"qwen35"};
constexpr std::string_view kSmollmNames[] = {"smollm",    "starcoder", "refact",     "command-r",
                                             "codeshell", "exaone",    "minerva-7b", "mellum2"};
constexpr std::string_view kDefaultNames[] = {"default"};

struct Family {
  std::span<const std::string_view> names;
  std::span<const std::string_view> stages;
  bool ignore_merges = false;
  bool normalises = false;
};

constexpr Family kFamilies[] = {
    {kDefaultNames, kDefaultStages},
    {kGpt2Names, kGpt2Stages},
    {kLlama3Names, kLlama3Stages, true, false},
    {kLlama3MergingNames, kLlama3Stages},
    {kQwen2NfcNames, kQwen2Stages, false, true},
    {kQwen2Names, kQwen2Stages},
    {kQwen35Names, kQwen35Stages},
    {kSmollmNames, kSmollmStages},
};

std::string known_names() {
  std::string list;
  for (const Family& family : kFamilies) {
    for (const std::string_view name : family.names) list.append(list.empty() ? "" : ", ").append(name);
  }
  return list;
}

}  // namespace

StatusOr<Pretokenizer> Pretokenizer::create(std::string_view pre) {
  for (const Family& family : kFamilies) {
    if (std::find(family.names.begin(), family.names.end(), pre) == family.names.end()) continue;
    Pretokenizer result;
    result.ignore_merges_ = family.ignore_merges;
    result.normalises_ = family.normalises;
    for (const std::string_view pattern : family.stages) {
      OMNIBUS_ASSIGN_OR_RETURN(RegexSplitter splitter, RegexSplitter::create(pattern));
      result.stages_.push_back(std::move(splitter));
    }
    return result;
  }
  return absl::UnimplementedError("tokenizer.ggml.pre: unknown pre-tokenizer '" + std::string(pre) +
                                  "' (known: " + known_names() + ")");
}

}  // namespace omnibus
