#include "submit_checks.h"

#include <algorithm>
#include <string>
#include <utility>

#include "omnibus/text/tokenizer/incremental_detokenizer.h"
#include "omnibus/text/tokenizer/vocabulary_check.h"

namespace omnibus {
namespace {

bool contains(const std::vector<TokenId>& ids, TokenId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

// Before min_tokens no id that ends the answer may be drawn; of an allow list something must be left.
Status check_allowed(const SamplingParams& p, const std::vector<TokenId>& end_of_generation) {
  if (p.min_tokens <= 0 || p.allowed_token_ids.empty()) return absl::OkStatus();
  for (TokenId id : p.allowed_token_ids) {
    const bool is_eos = !p.ignore_eos && contains(end_of_generation, id);
    if (!is_eos && !contains(p.stop_token_ids, id)) return absl::OkStatus();
  }
  return invalid_field("allowed_token_ids",
                       "allowed_token_ids holds only tokens that end the answer, but min_tokens is " +
                           std::to_string(p.min_tokens) + ": no token could be drawn");
}

bool is_utf8(const std::string& text) {
  std::string bytes = text;
  std::string valid;
  append_valid_utf8(bytes, valid, true);
  return valid == text;
}

}  // namespace

Status check_request(const GenerateRequest& request, int32_t vocab_size,
                     const std::vector<TokenId>& end_of_generation) {
  const SamplingParams& p = request.sampling;
  if (request.n < 1) return invalid_field("n", "n must be at least 1, not " + std::to_string(request.n));
  OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("prompt", request.prompt_token_ids, vocab_size));
  OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("stop_token_ids", p.stop_token_ids, vocab_size));
  OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("allowed_token_ids", p.allowed_token_ids, vocab_size));
  OMNIBUS_RETURN_IF_ERROR(check_allowed(p, end_of_generation));
  OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("logprob_token_ids", p.logprob_token_ids, vocab_size));
  for (const auto& [id, bias] : p.logit_bias)
    OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("logit_bias", {&id, 1}, vocab_size));
  for (const auto& ids : p.bad_sequences) {
    if (ids.empty()) return invalid_field("bad_words", "a bad word has no token");
    OMNIBUS_RETURN_IF_ERROR(check_in_vocabulary("bad_words", ids, vocab_size));
  }
  for (const std::string& stop : p.stop) {
    if (stop.empty()) return invalid_field("stop", "a stop string must not be empty");
    if (!is_utf8(stop)) return invalid_field("stop", "a stop string is not valid UTF-8");
  }
  return absl::OkStatus();
}

}  // namespace omnibus
