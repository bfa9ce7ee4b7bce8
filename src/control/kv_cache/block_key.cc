#include "omnibus/control/kv_cache/block_key.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "omnibus/base/common/mutant.h"

namespace omnibus {
namespace {

static_assert(std::endian::native == std::endian::little, "keys are hashed as they lie in memory");

class KeyBytes {
 public:
  void clear() { bytes_.clear(); }
  void add_number(int64_t value) { bytes_.append(reinterpret_cast<const char*>(&value), sizeof value); }
  void add_text(std::string_view text) {
    add_number(static_cast<int64_t>(text.size()));
    bytes_.append(text);
  }
  void add_tokens(std::span<const TokenId> tokens) {
    add_number(static_cast<int64_t>(tokens.size()));
    bytes_.append(reinterpret_cast<const char*>(tokens.data()), tokens.size_bytes());
  }
  void add_digest(const Digest256& digest) {
    bytes_.append(reinterpret_cast<const char*>(digest.data()), digest.size());
  }
  Digest256 digest() const { return sha256(bytes_); }

 private:
  std::string bytes_;
};

Digest256 root_key(const KeyRoot& root, KeyBytes& bytes) {
  bytes.clear();
  bytes.add_text(root.model);
  bytes.add_text(OMNIBUS_MUTANT(5) ? std::string_view() : root.adapter);
  bytes.add_text(OMNIBUS_MUTANT(4) ? std::string_view() : root.salt);
  return bytes.digest();
}

void add_spans(std::span<const KeySpan> spans, int64_t begin, int64_t end, KeyBytes& bytes) {
  const auto overlaps = [&](const KeySpan& span) {
    return span.offset < end && int64_t{span.offset} + span.length > begin;
  };
  bytes.add_number(std::count_if(spans.begin(), spans.end(), overlaps));
  for (const KeySpan& span : spans) {
    if (!overlaps(span)) continue;
    bytes.add_number(span.offset - begin);  // where in the content the stretch lies
    bytes.add_number(span.length);
    bytes.add_text(span.content);
    bytes.add_number(static_cast<int64_t>(span.shape.size()));
    for (int64_t extent : span.shape) bytes.add_number(extent);
  }
}

}  // namespace

void extend_block_keys(const KeyRoot& root, std::span<const TokenId> tokens, int32_t tokens_per_key,
                       std::span<const KeySpan> spans, std::vector<Digest256>& keys) {
  const auto per_key = static_cast<size_t>(tokens_per_key);
  const size_t full = tokens.size() / per_key;
  if (keys.size() >= full) return;
  KeyBytes bytes;
  Digest256 parent = keys.empty() ? root_key(root, bytes) : keys.back();
  keys.reserve(full);
  for (size_t i = keys.size(); i < full; ++i) {
    bytes.clear();
    bytes.add_digest(parent);
    bytes.add_tokens(tokens.subspan(i * per_key, per_key));
    add_spans(spans, static_cast<int64_t>(i * per_key), static_cast<int64_t>((i + 1) * per_key), bytes);
    parent = bytes.digest();
    keys.push_back(parent);
  }
}

}  // namespace omnibus
