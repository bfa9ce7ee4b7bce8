#include "omnibus/text/tokenizer/vocabulary_check.h"

#include <fmt/format.h>

namespace omnibus {

Status check_in_vocabulary(std::string_view param, std::span<const TokenId> ids, int32_t vocab_size) {
  for (const TokenId id : ids) {
    if (id >= 0 && id < vocab_size) continue;
    return invalid_field(param, fmt::format("Invalid '{}': token id {} is not in the vocabulary of {} tokens",
                                            param, id, vocab_size));
  }
  return {};
}

}  // namespace omnibus
