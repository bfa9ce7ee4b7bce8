// DecodedBytes: ids to the bytes that a reader sees, before they are made valid UTF-8.
#pragma once

#include <string>
#include <string_view>

#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus {

// Bytes of `id` within a text. `at_start` is true until something was written: SPM vocabularies put a space
// before the first word, which does not belong to the text.
inline std::string_view decoded_bytes(const Tokenizer& tokenizer, TokenId id, bool skip_special_tokens,
                                      bool& at_start) {
  if (skip_special_tokens && tokenizer.is_special(id)) return {};
  std::string_view bytes = tokenizer.token_bytes(id);
  if (bytes.empty()) return {};
  if (at_start && tokenizer.spec().add_space_prefix && bytes.front() == ' ') bytes.remove_prefix(1);
  at_start = false;
  return bytes;
}

}  // namespace omnibus
