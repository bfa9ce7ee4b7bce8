// The simulated model: the token after a prefix is a hash of all before it, so every output has a closed form
// that a client can check. KV has one, too: what a slot must hold is a hash of everything that decides it.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/contract/request/request.h"

namespace omnibus::sim {

inline constexpr TokenId kEos = 258;  // "<|im_end|>" of fakes::make_piece_tokenizer
inline constexpr TokenId kFirstLetter = 'a';
inline constexpr int32_t kLetters = 6;

// Hash of a prefix, one token longer.
uint64_t extend(uint64_t prefix, TokenId token);
// What beside the tokens decides KV and may be shared: adapter, salt, media.
uint64_t identity_of(const Request& request);
// The token that the model draws after `prefix` of `length` tokens; letters, now and then EOS.
TokenId draw(const Request& request, uint64_t prefix, size_t length);
float logprob_of(size_t position, TokenId token);

// How one choice ends when nobody disturbs it.
struct ExpectedEnd {
  std::vector<TokenId> tokens;
  std::string text;   // what the client sees
  std::string drawn;  // with the stop string, of which a part may be seen when the answer is cut short
  FinishReason reason = FinishReason::kLength;
  bool by_string = false;
  bool by_eos = false;
};

// `nan_at`: the output token whose row has no number in it.
ExpectedEnd expected_end(const Request& request, const std::vector<std::string>& stops,
                         std::optional<int32_t> nan_at, int32_t max_model_len);

}  // namespace omnibus::sim
