#include "omnibus/text/tokenizer/tokenizer.h"

#include <limits>
#include <utility>

#include "omnibus/text/tokenizer/incremental_detokenizer.h"

#include "byte_bpe_tokenizer.h"
#include "decoded_bytes.h"
#include "spm_tokenizer.h"

namespace omnibus {
namespace {

Status check_id(const TokenizerSpec& spec, TokenId id, std::string_view name) {
  if (id == kNoToken || (id >= 0 && static_cast<size_t>(id) < spec.tokens.size())) return absl::OkStatus();
  return absl::InvalidArgumentError("tokenizer.ggml." + std::string(name) + " is " + std::to_string(id) +
                                    ", the vocabulary has " + std::to_string(spec.tokens.size()) + " tokens");
}

Status check_spec(const TokenizerSpec& spec) {
  const size_t count = spec.tokens.size();
  if (count == 0) return absl::InvalidArgumentError("tokenizer.ggml.tokens is empty");
  if (count > static_cast<size_t>(std::numeric_limits<TokenId>::max())) {
    return absl::InvalidArgumentError("tokenizer.ggml.tokens has too many entries");
  }
  if (spec.kinds.size() != count) {
    return absl::InvalidArgumentError("tokenizer.ggml.token_type has " + std::to_string(spec.kinds.size()) +
                                      " entries, tokenizer.ggml.tokens " + std::to_string(count));
  }
  OMNIBUS_RETURN_IF_ERROR(check_id(spec, spec.bos, "bos_token_id"));
  OMNIBUS_RETURN_IF_ERROR(check_id(spec, spec.eos, "eos_token_id"));
  OMNIBUS_RETURN_IF_ERROR(check_id(spec, spec.unknown, "unknown_token_id"));
  return absl::OkStatus();
}

}  // namespace

StatusOr<std::shared_ptr<const Tokenizer>> Tokenizer::create(TokenizerSpec spec) {
  OMNIBUS_RETURN_IF_ERROR(check_spec(spec));
  if (spec.model == "gpt2") return ByteBpeTokenizer::create(std::move(spec));
  if (spec.model == "llama") return SpmTokenizer::create(std::move(spec));
  return absl::UnimplementedError("tokenizer.ggml.model: unknown tokenizer '" + spec.model +
                                  "' (known: gpt2, llama)");
}

std::string Tokenizer::decode(std::span<const TokenId> ids, bool skip_special_tokens) const {
  std::string bytes, text;
  bool at_start = true;
  for (const TokenId id : ids) bytes.append(decoded_bytes(*this, id, skip_special_tokens, at_start));
  append_valid_utf8(bytes, text, true);
  return text;
}

}  // namespace omnibus
