#include "spm_tokenizer.h"

#include <algorithm>
#include <charconv>
#include <utility>

#include "utf8.h"

namespace omnibus {
namespace {

constexpr std::string_view kSpace = "\xE2\x96\x81";  // U+2581 stands for a space

// "<0x0A>" -> 10, -1 if it does not read so.
int byte_of_token(std::string_view text) {
  if (text.size() != 6 || !text.starts_with("<0x") || text.back() != '>') return -1;
  int value = -1;
  const char* const end = text.data() + 5;
  const auto [last, error] = std::from_chars(text.data() + 3, end, value, 16);
  return error == std::errc() && last == end ? value : -1;
}

std::string spaces_from_text(std::string_view text) {
  std::string out;
  size_t at = 0;
  for (size_t next; (next = text.find(kSpace, at)) != std::string_view::npos; at = next + kSpace.size()) {
    out.append(text.substr(at, next - at)).push_back(' ');
  }
  return out.append(text.substr(at));
}

std::string text_with_space_marks(std::string_view text, bool prefix) {
  std::string out;
  out.reserve(text.size() + text.size() / 2 + kSpace.size());
  if (prefix) out.append(kSpace);
  for (const char c : text) {
    if (c == ' ') {
      out.append(kSpace);
    } else {
      out.push_back(c);
    }
  }
  return out;
}

// Offset after the word that starts at `from`: a word begins with the marks before it and ends where the next
// mark follows something else.
size_t word_end(std::string_view text, size_t from) {
  size_t at = from;
  while (text.substr(at).starts_with(kSpace)) at += kSpace.size();
  return std::min(text.find(kSpace, at), text.size());
}

bool spans_words(std::string_view token) { return word_end(token, 0) < token.size(); }

// Every way to make a token of two others. Order: better score first, then as Hugging Face's converter has
// it, the longer left half (in characters) first.
struct ScoredMerge {
  float score;
  uint32_t left_characters;
  Merge merge;
};

void add_merges_into(const ByteStringMap& pieces, std::string_view text, float score, TokenId id,
                     std::vector<ScoredMerge>& out) {
  uint32_t characters = 0;
  for (size_t at = 0; at < text.size();) {
    at += next_utf8(text.substr(at)).length;
    ++characters;
    if (at >= text.size()) break;
    const TokenId left = pieces.find(text.substr(0, at));
    if (left == kNoToken) continue;
    const TokenId right = pieces.find(text.substr(at));
    if (right != kNoToken) out.push_back({score, characters, {left, right, id}});
  }
}

}  // namespace

StatusOr<std::shared_ptr<const Tokenizer>> SpmTokenizer::create(TokenizerSpec spec) {
  if (spec.scores.size() != spec.tokens.size()) {
    return absl::InvalidArgumentError("tokenizer.ggml.scores has " + std::to_string(spec.scores.size()) +
                                      " entries, tokenizer.ggml.tokens " +
                                      std::to_string(spec.tokens.size()));
  }
  TokenBytes bytes;
  std::array<TokenId, 256> byte_tokens;
  byte_tokens.fill(kNoToken);
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const std::string& text = spec.tokens[i];
    if (spec.kinds[i] == TokenKind::kByte) {
      const int byte = byte_of_token(text);
      if (byte < 0) {
        return absl::InvalidArgumentError("tokenizer.ggml.tokens[" + std::to_string(i) + "] '" + text +
                                          "' is of type byte but does not read <0xXX>");
      }
      byte_tokens[static_cast<size_t>(byte)] = static_cast<TokenId>(i);
      const char value = static_cast<char>(byte);
      bytes.add({&value, 1});
    } else {
      bytes.add(is_plain_kind(spec.kinds[i]) ? spaces_from_text(text) : text);
    }
  }
  return std::shared_ptr<const Tokenizer>(new SpmTokenizer(std::move(spec), std::move(bytes), byte_tokens));
}

SpmTokenizer::SpmTokenizer(TokenizerSpec spec, TokenBytes bytes, std::array<TokenId, 256> byte_tokens)
    : SpecialSplittingTokenizer(std::move(spec), std::move(bytes)), byte_tokens_(byte_tokens) {
  index_pieces();
}

void SpmTokenizer::index_pieces() {
  const TokenizerSpec& spec = this->spec();
  pieces_ = ByteStringMap(spec.tokens.size());
  const auto mergeable = [&](size_t i) {
    return spec.kinds[i] == TokenKind::kNormal || spec.kinds[i] == TokenKind::kUserDefined;
  };
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (mergeable(i)) pieces_.insert(spec.tokens[i], static_cast<int32_t>(i));
  }
  for (size_t i = 0; i < ascii_.size(); ++i) {
    const char character = static_cast<char>(i);
    ascii_[i] = pieces_.find({&character, 1});
  }
  std::vector<ScoredMerge> scored;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const auto id = static_cast<TokenId>(i);
    if (!mergeable(i) || pieces_.find(spec.tokens[i]) != id) continue;
    add_merges_into(pieces_, spec.tokens[i], spec.scores[i], id, scored);
    words_are_independent_ = words_are_independent_ && !spans_words(spec.tokens[i]);
  }
  std::stable_sort(scored.begin(), scored.end(), [](const ScoredMerge& a, const ScoredMerge& b) {
    if (a.score != b.score) return a.score > b.score;
    return a.left_characters > b.left_characters;
  });
  std::vector<Merge> merges;
  merges.reserve(scored.size());
  for (const ScoredMerge& entry : scored) merges.push_back(entry.merge);
  merges_ = MergeTable(std::move(merges));

  whole_words_ = ByteStringMap(spec.tokens.size());
  MergeWorkspace work;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    if (!mergeable(i)) continue;
    merge_word(spec.tokens[i], work);
    if (work.symbols.size() == 1 && work.symbols[0] == static_cast<TokenId>(i)) {
      whole_words_.insert(spec.tokens[i], static_cast<int32_t>(i));
    }
  }
}

void SpmTokenizer::encode_text(std::string_view text, std::vector<TokenId>& ids) const {
  const std::string marked = text_with_space_marks(text, spec().add_space_prefix);
  MergeWorkspace work;
  const size_t section = ids.size();
  for (size_t at = 0; at < marked.size();) {
    const size_t end = words_are_independent_ ? word_end(marked, at) : marked.size();
    encode_word(std::string_view(marked).substr(at, end - at), work, section, ids);
    at = end;
  }
}

void SpmTokenizer::encode_word(std::string_view word, MergeWorkspace& work, size_t section,
                               std::vector<TokenId>& ids) const {
  const TokenId whole = whole_words_.find(word);
  if (whole != kNoToken) {
    ids.push_back(whole);
    return;
  }
  merge_word(word, work);
  for (size_t i = 0; i < work.symbols.size(); ++i) {
    const int32_t symbol = work.symbols[i];
    if (symbol >= 0) {
      ids.push_back(symbol);
    } else {
      const auto offset = static_cast<size_t>(~symbol);
      append_fallback(word.substr(offset, next_utf8(word.substr(offset)).length), section, ids);
    }
  }
}

// Leaves the word's tokens in work.symbols; a character that is no token appears as ~(its offset).
void SpmTokenizer::merge_word(std::string_view word, MergeWorkspace& work) const {
  work.symbols.clear();
  for (size_t at = 0; at < word.size();) {
    const auto byte = static_cast<uint8_t>(word[at]);
    const size_t length = byte < ascii_.size() ? 1 : next_utf8(word.substr(at)).length;
    const TokenId id = byte < ascii_.size() ? ascii_[byte] : pieces_.find(word.substr(at, length));
    work.symbols.push_back(id != kNoToken ? id : ~static_cast<int32_t>(at));
    at += length;
  }
  merge_symbols(merges_, work);
}

// A character that is no token: its bytes, or the unknown token where the vocabulary lacks one of them.
// Unknown characters in a row share one token, as in SentencePiece; `section` is where the ids of this text
// begin.
void SpmTokenizer::append_fallback(std::string_view character, size_t section,
                                   std::vector<TokenId>& ids) const {
  const auto byte_token = [&](char byte) { return byte_tokens_[static_cast<uint8_t>(byte)]; };
  const bool has_all = std::none_of(character.begin(), character.end(),
                                    [&](char byte) { return byte_token(byte) == kNoToken; });
  if (has_all) {
    for (const char byte : character) ids.push_back(byte_token(byte));
  } else if (spec().unknown != kNoToken && (ids.size() == section || ids.back() != spec().unknown)) {
    ids.push_back(spec().unknown);
  }
}

}  // namespace omnibus
