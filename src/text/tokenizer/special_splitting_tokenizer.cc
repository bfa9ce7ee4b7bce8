#include "special_splitting_tokenizer.h"

#include <utility>

namespace omnibus {
namespace {

struct JoinedText {
  std::string storage;    // used when there are several segments
  std::string_view text;  // all segments
  std::vector<ByteRange> trusted;
};

void join(std::span<const TextSegment> segments, JoinedText& joined) {
  size_t size = 0;
  for (const TextSegment& segment : segments) {
    if (segment.trusted && !segment.text.empty()) {
      if (!joined.trusted.empty() && joined.trusted.back().end == size) {
        joined.trusted.back().end += segment.text.size();
      } else {
        joined.trusted.push_back({size, size + segment.text.size()});
      }
    }
    size += segment.text.size();
  }
  if (segments.size() == 1) {
    joined.text = segments[0].text;
    return;
  }
  joined.storage.reserve(size);
  for (const TextSegment& segment : segments) joined.storage.append(segment.text);
  joined.text = joined.storage;
}

}  // namespace

SpecialSplittingTokenizer::SpecialSplittingTokenizer(TokenizerSpec spec, TokenBytes bytes)
    : spec_(std::move(spec)), bytes_(std::move(bytes)), specials_(spec_), by_text_(spec_.tokens.size()) {
  for (size_t i = 0; i < spec_.tokens.size(); ++i) {
    by_text_.insert(spec_.tokens[i], static_cast<int32_t>(i));
  }
}

std::vector<TokenId> SpecialSplittingTokenizer::encode(std::span<const TextSegment> segments,
                                                       const EncodeOptions& options) const {
  JoinedText joined;
  join(segments, joined);
  const std::string_view text = joined.text;
  std::vector<TokenId> ids;
  ids.reserve(text.size() / 4 + 8);
  size_t trusted_index = 0;
  for (size_t at = 0; at < text.size();) {
    const SpecialTokens::Match match = specials_.find(text, at, joined.trusted, trusted_index);
    const size_t end = match.id == kNoToken ? text.size() : match.begin;
    if (end > at) encode_text(text.substr(at, end - at), ids);
    if (match.id != kNoToken) ids.push_back(match.id);
    at = match.id == kNoToken ? end : match.end;
  }
  if (options.add_special_tokens) {
    if (spec_.add_bos && spec_.bos != kNoToken && (ids.empty() || ids.front() != spec_.bos)) {
      ids.insert(ids.begin(), spec_.bos);
    }
    if (spec_.add_eos && spec_.eos != kNoToken) ids.push_back(spec_.eos);
  }
  return ids;
}

bool SpecialSplittingTokenizer::is_special(TokenId id) const {
  if (id < 0 || static_cast<size_t>(id) >= spec_.kinds.size()) return false;
  const TokenKind kind = spec_.kinds[static_cast<size_t>(id)];
  return kind == TokenKind::kControl || kind == TokenKind::kUnknown;
}

}  // namespace omnibus
