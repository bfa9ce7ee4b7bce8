#include "omnibus/text/tokenizer/vocabulary_check.h"

#include <fmt/format.h>

namespace omnibus {

Status check_in_vocabulary(std::string_view param, int64_t id, int32_t vocab_size) {
  if (id >= 0 && id < vocab_size) return {};
  return invalid_field(param, fmt::format("Invalid '{}': token id {} is not in the vocabulary of {} tokens",
                                          param, id, vocab_size));
}

Status check_in_vocabulary(std::string_view param, std::span<const TokenId> ids, int32_t vocab_size) {
  for (const TokenId id : ids) OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary(param, int64_t{id}, vocab_size));
  return {};
}

}  // namespace omnibus
