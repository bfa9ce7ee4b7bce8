// ReplayScript: what the replay backend's "model" says. JSON, one value a line; empty lines and lines that
// begin with # are skipped.
//
// The first line may be a header (an object with none of pieces, text, tokens):
//   specials          special tokens; default <|endoftext|>, <|im_start|>, <|im_end|>
//   eos, bos          which of them; default <|im_end|>, none
//   template          Jinja source of the chat template; default ChatML
//   max_model_len     context in tokens; default 4096
//   sampling          the model's own {temperature, top_p, min_p, repetition_penalty, top_k}
//   num_blocks        KV blocks of 16 tokens; default 1024
// Every other line is a behaviour; the first whose `when` occurs in the prompt's text serves the request:
//   when              a string; absent: any request
//   pieces            the output, one token each: strings, or {"hex": "f09f"} for bytes
//   text, seed        or one string, cut into tokens of 1 to 8 bytes at random
//   tokens            or ids
//   eos               false: no EOS at the end; the output starts over instead
//   k                 tokens per step: a number or a list that is cycled
//   rows              per position a map id -> logit; other ids -10000. Absent or null: the scripted token 0
//   delay_ms          time that a step with this request takes at least
//   fault             {"at": position, "kind": "crash" | "stall" | "nan" | "twice"}
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/sampling_params.h"
#include "omnibus/text/tokenizer/tokenizer.h"

namespace omnibus::fakes {

enum class ReplayFault { kNone, kCrash, kStall, kNan, kTwice };

struct ReplayBehaviour {
  std::optional<std::string> when;
  std::vector<TokenId> tokens;
  std::vector<std::optional<std::vector<std::pair<TokenId, float>>>> rows;
  std::vector<int32_t> k = {1};
  bool eos = true;
  int64_t delay_ms = 0;
  ReplayFault fault = ReplayFault::kNone;
  size_t fault_at = 0;
};

struct ReplayScript {
  std::shared_ptr<const Tokenizer> tokenizer;
  std::string chat_template;
  int32_t max_model_len = 4096;
  int32_t num_blocks = 1024;
  SamplingDefaults sampling;
  std::vector<ReplayBehaviour> behaviours;

  // nullptr when none fits.
  const ReplayBehaviour* find(const std::string& prompt) const;
};

// Errors name the line.
StatusOr<ReplayScript> parse_replay_script(const std::string& text);

}  // namespace omnibus::fakes
