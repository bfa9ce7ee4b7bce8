#include "byte_bpe_tokenizer.h"

#include <utility>

#include "byte_alphabet.h"
#include "nfc.h"
#include "utf8.h"

namespace omnibus {
namespace {

TokenBytes decoded_tokens(const TokenizerSpec& spec) {
  TokenBytes bytes;
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const bool plain = spec.kinds[i] == TokenKind::kNormal || spec.kinds[i] == TokenKind::kUndefined;
    const auto decoded = plain ? bytes_of_alphabet_text(spec.tokens[i]) : std::nullopt;
    bytes.add(decoded ? *decoded : spec.tokens[i]);
  }
  return bytes;
}

// Token texts as merges name them. Normal tokens win over others of the same text.
ByteStringMap index_texts(const TokenizerSpec& spec) {
  ByteStringMap index(spec.tokens.size());
  for (const bool plain : {true, false}) {
    for (size_t i = 0; i < spec.tokens.size(); ++i) {
      if (is_plain_kind(spec.kinds[i]) == plain) index.insert(spec.tokens[i], static_cast<int32_t>(i));
    }
  }
  return index;
}

Status bad_merge(const TokenizerSpec& spec, size_t rank, const std::string& what) {
  return absl::InvalidArgumentError("tokenizer.ggml.merges[" + std::to_string(rank) + "] '" +
                                    spec.merges[rank] + "': " + what);
}

StatusOr<MergeTable> read_merges(const TokenizerSpec& spec) {
  const ByteStringMap index = index_texts(spec);
  std::vector<Merge> merges(spec.merges.size());
  std::string joined;
  for (size_t rank = 0; rank < spec.merges.size(); ++rank) {
    const std::string_view text = spec.merges[rank];
    const size_t space = text.empty() ? std::string_view::npos : text.find(' ', 1);
    if (space == std::string_view::npos || space + 1 == text.size()) {
      return bad_merge(spec, rank, "not two tokens with a space between");
    }
    joined.assign(text, 0, space).append(text, space + 1);
    const std::string_view parts[3] = {text.substr(0, space), text.substr(space + 1), joined};
    TokenId ids[3];
    bool plain = true;
    for (int i = 0; i < 3; ++i) {
      ids[i] = index.find(parts[i]);
      if (ids[i] == kNoToken) {
        return bad_merge(spec, rank, "'" + std::string(parts[i]) + "' is not in tokenizer.ggml.tokens");
      }
      plain = plain && is_plain_kind(spec.kinds[static_cast<size_t>(ids[i])]);
    }
    // A merge with a control token stays in its rank but never applies: text cannot spell such a token.
    if (plain) merges[rank] = {ids[0], ids[1], ids[2]};
  }
  return MergeTable(std::move(merges));
}

}  // namespace

StatusOr<std::shared_ptr<const Tokenizer>> ByteBpeTokenizer::create(TokenizerSpec spec) {
  OMNIBUS_ASSIGN_OR_RETURN(Pretokenizer pretokenizer, Pretokenizer::create(spec.pre));
  OMNIBUS_ASSIGN_OR_RETURN(MergeTable merges, read_merges(spec));
  TokenBytes bytes = decoded_tokens(spec);
  return std::shared_ptr<const Tokenizer>(
      new ByteBpeTokenizer(std::move(spec), std::move(bytes), std::move(pretokenizer), std::move(merges)));
}

ByteBpeTokenizer::ByteBpeTokenizer(TokenizerSpec spec, TokenBytes bytes, Pretokenizer pretokenizer,
                                   MergeTable merges)
    : SpecialSplittingTokenizer(std::move(spec), std::move(bytes)),
      pretokenizer_(std::move(pretokenizer)),
      merges_(std::move(merges)) {
  for (size_t byte = 0; byte < 256; ++byte) {
    const TokenId id = find_token(byte_alphabet()[byte]);
    const bool usable = id != kNoToken && is_plain_kind(this->spec().kinds[static_cast<size_t>(id)]);
    byte_tokens_[byte] = usable ? id : kNoToken;
  }
  index_whole_pieces();
}

// Most pieces of ordinary text are one token. Which pieces those are is settled here once, by running the
// merges on each token's own bytes; with ignore_merges every token counts.
void ByteBpeTokenizer::index_whole_pieces() {
  whole_pieces_ = ByteStringMap(spec().tokens.size());
  MergeWorkspace work;
  for (TokenId id = 0; id < vocab_size(); ++id) {
    const std::string_view bytes = token_bytes(id);
    if (bytes.empty() || !is_plain_kind(spec().kinds[static_cast<size_t>(id)])) continue;
    merge_piece(bytes, work);
    const bool merges_to_itself = work.symbols.size() == 1 && work.symbols[0] == id;
    if (merges_to_itself || pretokenizer_.ignore_merges()) whole_pieces_.insert(bytes, id);
  }
}

void ByteBpeTokenizer::encode_text(std::string_view text, std::vector<TokenId>& ids) const {
  MergeWorkspace work;
  for (size_t at = 0; at < text.size();) {
    const size_t invalid = find_invalid_utf8(text, at);
    if (invalid > at) encode_valid(text.substr(at, invalid - at), work, ids);
    if (invalid == text.size()) break;
    // Bytes that are no character are pieces of their own, one by one.
    const size_t end = invalid + next_utf8(text.substr(invalid)).length;
    for (at = invalid; at < end; ++at) {
      const TokenId id = byte_tokens_[static_cast<uint8_t>(text[at])];
      if (id != kNoToken) ids.push_back(id);
    }
  }
}

void ByteBpeTokenizer::encode_valid(std::string_view text, MergeWorkspace& work,
                                    std::vector<TokenId>& ids) const {
  std::string buffer;
  if (pretokenizer_.normalises()) text = to_nfc(text, buffer);
  pretokenizer_.split(text, [&](std::string_view piece) { encode_piece(piece, work, ids); });
}

void ByteBpeTokenizer::encode_piece(std::string_view piece, MergeWorkspace& work,
                                    std::vector<TokenId>& ids) const {
  const TokenId whole = whole_pieces_.find(piece);
  if (whole != kNoToken) {
    ids.push_back(whole);
    return;
  }
  merge_piece(piece, work);
  ids.insert(ids.end(), work.symbols.begin(), work.symbols.end());
}

// Leaves the piece's tokens in work.symbols. A byte that the vocabulary lacks has no id and is left out, as
// in Hugging Face's tokenizers.
void ByteBpeTokenizer::merge_piece(std::string_view piece, MergeWorkspace& work) const {
  work.symbols.clear();
  for (const char byte : piece) {
    const TokenId id = byte_tokens_[static_cast<uint8_t>(byte)];
    if (id != kNoToken) work.symbols.push_back(id);
  }
  merge_symbols(merges_, work);
}

}  // namespace omnibus
