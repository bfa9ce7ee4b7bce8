#include "end_of_generation.h"

#include <array>
#include <set>

namespace omnibus::model_files {
namespace {

constexpr std::array<std::string_view, 22> kEndTexts = {"<|eot_id|>",
                                                        "<|im_end|>",
                                                        "<|end|>",
                                                        "<|return|>",
                                                        "<|call|>",
                                                        "<|flush|>",
                                                        "<|calls|>",
                                                        "</s>",
                                                        "<end_of_turn>",
                                                        "<|endoftext|>",
                                                        "<|eom_id|>",
                                                        "<EOT>",
                                                        "_<EOT>",
                                                        "[EOT]",
                                                        "[EOS]",
                                                        "<|end_of_text|>",
                                                        "<end_of_utterance>",
                                                        "<eos>",
                                                        "<turn|>",
                                                        "<|tool_response>",
                                                        "[e~[",
                                                        "<｜end▁of▁sentence｜>"};

// In order of preference.
constexpr std::array<std::string_view, 11> kTurnTexts = {
    "<|eot_id|>", "<|im_end|>", "<|end|>", "<end_of_turn>",         "<|endoftext|>",     "<|end_of_text|>",
    "<EOT>",      "_<EOT>",     "[EOT]",   "<｜end▁of▁sentence｜>", "<end_of_utterance>"};

// Padding, file and repository separators of fill-in-the-middle models: the end of one file's text.
constexpr std::array<std::string_view, 6> kFileTexts = {"<|fim_pad|>",   "<fim_pad>",  "<|fim_repo|>",
                                                        "<|repo_name|>", "<reponame>", "<|file_sep|>"};

}  // namespace

TextIndex::TextIndex(const std::vector<std::string>& tokens) {
  ids_.reserve(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].empty()) continue;
    const auto [other, fresh] = ids_.emplace(tokens[i], static_cast<TokenId>(i));
    if (!fresh && !duplicate_) duplicate_.emplace(other->second, static_cast<TokenId>(i));
  }
}

TokenId TextIndex::find(std::string_view text) const {
  const auto found = ids_.find(absl::string_view(text.data(), text.size()));
  return found == ids_.end() ? kNoToken : found->second;
}

void fill_end_of_generation(const TextIndex& ids, const std::vector<TokenId>& named, TokenizerSpec* spec) {
  for (const std::string_view text : kTurnTexts) {
    if (spec->eot == kNoToken) spec->eot = ids.find(text);
  }
  if (spec->eom == kNoToken) spec->eom = ids.find("<|eom_id|>");
  const auto has = [&](std::string_view text) { return ids.find(text) != kNoToken; };
  // gpt-oss and its kin end a message of one channel, not the answer, with <|end|>.
  const bool end_is_inner = (has("<|return|>") && has("<|call|>")) || (has("<|calls|>") && has("<|flush|>"));
  const bool slash_s_is_inner = has("<|tool_response>");
  const auto inner = [&](std::string_view text) {
    return (end_is_inner && text == "<|end|>") || (slash_s_is_inner && text == "</s>");
  };

  std::set<TokenId> ends(named.begin(), named.end());
  for (const TokenId id : {spec->eos, spec->eot, spec->eom}) {
    if (id != kNoToken && !inner(spec->tokens[id])) ends.insert(id);
  }
  for (const std::string_view text : kEndTexts) {
    const TokenId id = ids.find(text);
    if (id == kNoToken) continue;
    spec->kinds[id] = TokenKind::kControl;
    if (!inner(text)) ends.insert(id);
  }
  for (const std::string_view text : kFileTexts) {
    const TokenId id = ids.find(text);
    if (id == kNoToken) continue;
    const TokenKind kind = spec->kinds[id];
    if (kind == TokenKind::kControl || kind == TokenKind::kUserDefined) ends.insert(id);
  }
  spec->end_of_generation.assign(ends.begin(), ends.end());
}

}  // namespace omnibus::model_files
