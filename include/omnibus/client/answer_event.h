// What a load generator needs of one JSON object of an answer (a streamed chunk, or the whole answer).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace omnibus::client {

struct AnswerEvent {
  bool has_output = false;    // a choice carries text that is not empty: content, reasoning, or a tool call
  bool finished = false;      // a choice carries a finish_reason
  std::string finish_reason;  // the first
  std::optional<int64_t> prompt_tokens, completion_tokens, cached_tokens;  // from "usage"
  bool has_error = false;  // there is an "error" that is not null
  std::string error;       // its message; "" when it has none
};

// Reads without building the object: completions, chat completions and their chunks. nullopt: not one JSON
// object.
std::optional<AnswerEvent> read_answer_event(std::string_view json);

}  // namespace omnibus::client
