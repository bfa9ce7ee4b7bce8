#include "omnibus/store/model_files/tokenizer_spec.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <optional>

#include <fmt/format.h>

#include "omnibus/store/model_files/gguf.h"

#include "end_of_generation.h"
#include "quoted.h"

namespace omnibus {
namespace {

using model_files::quoted;
using model_files::TextIndex;

// Twice the largest vocabularies in use, and bounds on what a hostile file can make us copy.
constexpr size_t kMostTokens = 1 << 19;
constexpr size_t kMostMerges = 1 << 20;
constexpr size_t kMostTextBytes = 16 << 20;
constexpr std::string_view kPrefix = "tokenizer.ggml.";

// Byte-level vocabularies whose texts begin with BOS unless the file says otherwise.
constexpr std::array<std::string_view, 9> kBosByDefault = {
    "llama-bpe", "llama3", "llama-v3", "falcon3", "falcon-h1", "pixtral", "lfm2", "midm-2.0", "tekken"};

class SpecReader {
 public:
  explicit SpecReader(const GgufFile& file) : file_(file) {}

  StatusOr<TokenizerSpec> read() {
    OMNIBUS_RETURN_IF_ERROR(read_model());
    OMNIBUS_RETURN_IF_ERROR(read_tokens());
    OMNIBUS_RETURN_IF_ERROR(read_kinds());
    OMNIBUS_RETURN_IF_ERROR(read_scores());
    OMNIBUS_RETURN_IF_ERROR(read_merges());
    OMNIBUS_RETURN_IF_ERROR(read_ids());
    OMNIBUS_RETURN_IF_ERROR(read_switches());
    if (file_.has("tokenizer.chat_template")) {
      OMNIBUS_ASSIGN_OR_RETURN(spec_.chat_template, file_.get_string("tokenizer.chat_template"));
    }
    model_files::fill_end_of_generation(*by_text_, file_ends_, &spec_);
    return std::move(spec_);
  }

 private:
  static std::string key(std::string_view suffix) { return fmt::format("{}{}", kPrefix, suffix); }
  Status bad(std::string_view suffix, std::string_view message) const {
    return absl::InvalidArgumentError(
        fmt::format("{}: key {}: {}", file_.label(), quoted(key(suffix)), message));
  }
  Status unbuilt(std::string_view suffix, std::string_view message) const {
    return absl::UnimplementedError(
        fmt::format("{}: key {}: {}", file_.label(), quoted(key(suffix)), message));
  }
  // The array at the key; nullptr when absent.
  template <typename T>
  StatusOr<const std::vector<T>*> array(std::string_view suffix, const char* elements) const;

  Status copy_texts(std::string_view suffix, const std::vector<std::string_view>& texts,
                    std::vector<std::string>* out) const;
  Status read_model();
  Status read_tokens();
  Status read_kinds();
  Status read_scores();
  Status read_merges();
  Status check_merge(size_t index, std::string_view merge) const;
  Status read_ids();
  StatusOr<TokenId> id(std::string_view suffix) const;
  Status read_switches();
  Status read_switch(std::string_view suffix, bool* value) const;

  const GgufFile& file_;
  TokenizerSpec spec_;
  std::optional<TextIndex> by_text_;  // views into spec_.tokens
  std::vector<TokenId> file_ends_;
};

template <typename T>
StatusOr<const std::vector<T>*> SpecReader::array(std::string_view suffix, const char* elements) const {
  const auto found = file_.metadata().find(key(suffix));
  if (found == file_.metadata().end()) return nullptr;
  const auto* list = std::get_if<std::vector<T>>(&found->second);
  if (list == nullptr) return bad(suffix, fmt::format("must be an array of {}", elements));
  return list;
}

Status SpecReader::read_model() {
  OMNIBUS_ASSIGN_OR_RETURN(spec_.model, file_.get_string(key("model")));
  if (spec_.model != "gpt2" && spec_.model != "llama") {
    return unbuilt("model",
                   fmt::format("tokenizer {} is not supported (gpt2 and llama are)", quoted(spec_.model)));
  }
  spec_.pre = "default";
  if (file_.has(key("pre"))) {
    OMNIBUS_ASSIGN_OR_RETURN(spec_.pre, file_.get_string(key("pre")));
  }
  return absl::OkStatus();
}

Status SpecReader::copy_texts(std::string_view suffix, const std::vector<std::string_view>& texts,
                              std::vector<std::string>* out) const {
  size_t bytes = 0;
  for (const std::string_view text : texts) bytes += text.size();
  if (bytes > kMostTextBytes) {
    return bad(suffix, fmt::format("{} bytes of text (limit {})", bytes, kMostTextBytes));
  }
  out->assign(texts.begin(), texts.end());
  return absl::OkStatus();
}

Status SpecReader::read_tokens() {
  OMNIBUS_ASSIGN_OR_RETURN(const auto* tokens, array<std::string_view>("tokens", "strings"));
  if (tokens == nullptr) return bad("tokens", "the key is missing");
  if (tokens->empty() || tokens->size() > kMostTokens) {
    return bad("tokens", fmt::format("{} tokens are not in 1..{}", tokens->size(), kMostTokens));
  }
  OMNIBUS_RETURN_IF_ERROR(copy_texts("tokens", *tokens, &spec_.tokens));
  by_text_.emplace(spec_.tokens);
  if (const auto twins = by_text_->duplicate()) {
    return bad("tokens", fmt::format("tokens {} and {} are both {}", twins->first, twins->second,
                                     quoted(spec_.tokens[twins->first])));
  }
  return absl::OkStatus();
}

Status SpecReader::read_kinds() {
  spec_.kinds.assign(spec_.tokens.size(), TokenKind::kNormal);
  OMNIBUS_ASSIGN_OR_RETURN(const auto* kinds, array<int64_t>("token_type", "integers"));
  if (kinds == nullptr) return absl::OkStatus();
  if (kinds->size() != spec_.tokens.size()) {
    return bad("token_type", fmt::format("{} entries for {} tokens", kinds->size(), spec_.tokens.size()));
  }
  for (size_t i = 0; i < kinds->size(); ++i) {
    const int64_t kind = (*kinds)[i];
    if (kind < 0 || kind > static_cast<int64_t>(TokenKind::kByte)) {
      return bad("token_type", fmt::format("token {} has the unknown type {}", i, kind));
    }
    spec_.kinds[i] = static_cast<TokenKind>(kind);
  }
  return absl::OkStatus();
}

Status SpecReader::read_scores() {
  OMNIBUS_ASSIGN_OR_RETURN(const auto* scores, array<double>("scores", "floats"));
  if (scores == nullptr) {
    return spec_.model == "llama" ? bad("scores", "the key is missing") : absl::OkStatus();
  }
  if (scores->size() != spec_.tokens.size()) {
    return bad("scores", fmt::format("{} entries for {} tokens", scores->size(), spec_.tokens.size()));
  }
  if (spec_.model != "llama") return absl::OkStatus();
  spec_.scores.reserve(scores->size());
  for (size_t i = 0; i < scores->size(); ++i) {
    if (std::isnan((*scores)[i]))
      return bad("scores", fmt::format("the score of token {} is not a number", i));
    spec_.scores.push_back(static_cast<float>((*scores)[i]));
  }
  return absl::OkStatus();
}

Status SpecReader::read_merges() {
  if (spec_.model != "gpt2") return absl::OkStatus();
  OMNIBUS_ASSIGN_OR_RETURN(const auto* merges, array<std::string_view>("merges", "strings"));
  if (merges == nullptr) return bad("merges", "the key is missing");
  if (merges->size() > kMostMerges) {
    return bad("merges", fmt::format("{} merges (limit {})", merges->size(), kMostMerges));
  }
  for (size_t i = 0; i < merges->size(); ++i) OMNIBUS_RETURN_IF_ERROR(check_merge(i, (*merges)[i]));
  return copy_texts("merges", *merges, &spec_.merges);
}

// A merge is "left right", split at the first space after its first byte.
Status SpecReader::check_merge(size_t index, std::string_view merge) const {
  const size_t space = merge.find(' ', 1);
  if (space == std::string_view::npos || space + 1 == merge.size()) {
    return bad("merges", fmt::format("merge {} is not a pair: {}", index, quoted(merge)));
  }
  const std::string_view left = merge.substr(0, space);
  const std::string_view right = merge.substr(space + 1);
  std::string whole(left);
  whole += right;
  for (const std::string_view part : {left, right, std::string_view(whole)}) {
    if (by_text_->find(part) == kNoToken) {
      return bad("merges", fmt::format("merge {} ({}) names {}, which is no token", index, quoted(merge),
                                       quoted(part)));
    }
  }
  return absl::OkStatus();
}

StatusOr<TokenId> SpecReader::id(std::string_view suffix) const {
  if (!file_.has(key(suffix))) return kNoToken;
  OMNIBUS_ASSIGN_OR_RETURN(const int64_t value, file_.get_int(key(suffix)));
  if (value < 0 || value >= static_cast<int64_t>(spec_.tokens.size())) {
    return bad(suffix, fmt::format("{} is not in the vocabulary of {} tokens", value, spec_.tokens.size()));
  }
  return static_cast<TokenId>(value);
}

Status SpecReader::read_ids() {
  struct Named {
    const char* suffix;
    TokenId* id;
    TokenId gpt2;  // what the format assumes when the key is absent
    TokenId llama;
  };
  const std::array<Named, 6> named = {{{"bos_token_id", &spec_.bos, 11, 1},
                                       {"eos_token_id", &spec_.eos, 11, 2},
                                       {"eot_token_id", &spec_.eot, kNoToken, kNoToken},
                                       {"eom_token_id", &spec_.eom, kNoToken, kNoToken},
                                       {"unknown_token_id", &spec_.unknown, kNoToken, 0},
                                       {"padding_token_id", &spec_.padding, kNoToken, kNoToken}}};
  for (const Named& entry : named) {
    OMNIBUS_ASSIGN_OR_RETURN(*entry.id, id(entry.suffix));
    const TokenId assumed = spec_.model == "gpt2" ? entry.gpt2 : entry.llama;
    if (*entry.id != kNoToken || assumed == kNoToken ||
        assumed >= static_cast<TokenId>(spec_.tokens.size())) {
      continue;
    }
    // The assumed id is right only for the vocabularies that it was made for: there it is no ordinary word.
    const TokenKind kind = spec_.kinds[assumed];
    if (kind == TokenKind::kControl || kind == TokenKind::kUnknown) *entry.id = assumed;
  }
  for (const char* suffix : {"fim_pad_token_id", "fim_rep_token_id", "fim_sep_token_id"}) {
    OMNIBUS_ASSIGN_OR_RETURN(const TokenId end, id(suffix));
    if (end != kNoToken) file_ends_.push_back(end);
  }
  return absl::OkStatus();
}

Status SpecReader::read_switch(std::string_view suffix, bool* value) const {
  if (!file_.has(key(suffix))) return absl::OkStatus();
  OMNIBUS_ASSIGN_OR_RETURN(*value, file_.get_bool(key(suffix)));
  return absl::OkStatus();
}

Status SpecReader::read_switches() {
  const bool spm = spec_.model == "llama";
  spec_.add_space_prefix = spm;
  OMNIBUS_RETURN_IF_ERROR(read_switch("add_space_prefix", &spec_.add_space_prefix));
  const bool family =
      spm || std::find(kBosByDefault.begin(), kBosByDefault.end(), spec_.pre) != kBosByDefault.end();
  spec_.add_bos = family && spec_.bos != kNoToken;
  OMNIBUS_RETURN_IF_ERROR(read_switch("add_bos_token", &spec_.add_bos));
  OMNIBUS_RETURN_IF_ERROR(read_switch("add_eos_token", &spec_.add_eos));
  if (spec_.add_bos && spec_.bos == kNoToken) {
    return bad("add_bos_token", "set, but the file names no bos token");
  }
  if (spec_.add_eos && spec_.eos == kNoToken) {
    return bad("add_eos_token", "set, but the file names no eos token");
  }
  return absl::OkStatus();
}

}  // namespace

StatusOr<TokenizerSpec> read_tokenizer_spec(const GgufFile& file) {
  auto spec = SpecReader(file).read();
  // A missing key makes the file invalid; "not found" is kept for the file itself.
  if (absl::IsNotFound(spec.status())) return absl::InvalidArgumentError(spec.status().message());
  return spec;
}

}  // namespace omnibus
