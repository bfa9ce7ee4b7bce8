// Block keys: names of KV content. The key of a stretch of tokens commits to every token before it and to
// whatever else KV depends on, so that equal keys mean equal KV:
//
//   root    = SHA-256(model, adapter, salt)
//   key[i]  = SHA-256(key[i - 1] or root, tokens of stretch i, what else lies in stretch i)
//
// Each part is preceded by its length and each list by its count, so that no two inputs are one byte string.
// The KV group is no part of it: every group has a map of its own (PrefixCache).
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/sha256.h"

namespace omnibus {

// What all blocks of a request have in common. Requests share KV only when all three are equal.
struct KeyRoot {
  std::string_view model;
  std::string_view adapter;  // digest of its weights; empty: none
  std::string_view salt;     // of the tenant
};

// Prompt positions whose KV depends on more than token ids: pictures, sounds.
struct KeySpan {
  int32_t offset = 0;
  int32_t length = 0;
  std::string content;  // hash of the content
  std::vector<int64_t> shape;
};

// Appends to `keys`, which holds the keys of the first keys.size() stretches of `tokens_per_key` (> 0)
// tokens, those of all further full stretches of `tokens`. Any thread.
void extend_block_keys(const KeyRoot& root, std::span<const TokenId> tokens, int32_t tokens_per_key,
                       std::span<const KeySpan> spans, std::vector<Digest256>& keys);

}  // namespace omnibus
