#include "special_tokens.h"

namespace omnibus {

SpecialTokens::SpecialTokens(const TokenizerSpec& spec) {
  roots_.fill(-1);
  for (size_t i = 0; i < spec.tokens.size(); ++i) {
    const TokenKind kind = spec.kinds[i];
    const bool needs_trust = kind == TokenKind::kControl || kind == TokenKind::kUnknown;
    if (needs_trust || kind == TokenKind::kUserDefined) {
      add(spec.tokens[i], static_cast<TokenId>(i), needs_trust);
    }
  }
}

void SpecialTokens::add(std::string_view text, TokenId id, bool needs_trust) {
  if (text.empty()) return;
  int32_t* link = &roots_[static_cast<uint8_t>(text[0])];
  int32_t node = -1;
  for (size_t i = 0;; ++i) {
    const auto byte = static_cast<uint8_t>(text[i]);
    node = *link;
    while (node >= 0 && nodes_[static_cast<size_t>(node)].byte != byte) {
      node = nodes_[static_cast<size_t>(node)].next_sibling;
    }
    if (node < 0) {
      node = static_cast<int32_t>(nodes_.size());
      const int32_t sibling = *link;
      *link = node;  // before push_back, which may move the node that `link` is in
      nodes_.push_back({byte, -1, sibling, kNoToken, kNoToken});
    }
    if (i + 1 == text.size()) break;
    link = &nodes_[static_cast<size_t>(node)].first_child;
  }
  Node& end = nodes_[static_cast<size_t>(node)];
  TokenId& slot = needs_trust ? end.when_trusted : end.anywhere;
  if (slot == kNoToken) slot = id;
}

int32_t SpecialTokens::child(int32_t node, uint8_t byte) const {
  int32_t next = nodes_[static_cast<size_t>(node)].first_child;
  while (next >= 0 && nodes_[static_cast<size_t>(next)].byte != byte) {
    next = nodes_[static_cast<size_t>(next)].next_sibling;
  }
  return next;
}

SpecialTokens::Match SpecialTokens::longest_at(std::string_view text, size_t begin,
                                               size_t trusted_end) const {
  Match best;
  int32_t node = roots_[static_cast<uint8_t>(text[begin])];
  for (size_t end = begin + 1; node >= 0; ++end) {
    const Node& here = nodes_[static_cast<size_t>(node)];
    if (here.when_trusted != kNoToken && end <= trusted_end) {
      best = {begin, end, here.when_trusted};
    } else if (here.anywhere != kNoToken) {
      best = {begin, end, here.anywhere};
    }
    if (end == text.size()) break;
    node = child(node, static_cast<uint8_t>(text[end]));
  }
  return best;
}

SpecialTokens::Match SpecialTokens::find(std::string_view text, size_t from,
                                         std::span<const ByteRange> trusted, size_t& trusted_index) const {
  if (nodes_.empty()) return {};
  for (size_t begin = from; begin < text.size(); ++begin) {
    if (roots_[static_cast<uint8_t>(text[begin])] < 0) continue;
    while (trusted_index < trusted.size() && trusted[trusted_index].end <= begin) ++trusted_index;
    size_t trusted_end = 0;
    if (trusted_index < trusted.size() && trusted[trusted_index].begin <= begin) {
      trusted_end = trusted[trusted_index].end;
    }
    const Match match = longest_at(text, begin, trusted_end);
    if (match.id != kNoToken) return match;
  }
  return {};
}

}  // namespace omnibus
