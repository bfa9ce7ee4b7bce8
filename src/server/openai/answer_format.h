// AnswerFormat: how the outputs of one request look to its client. The bookkeeping (who is open, what was
// sent, errors, disconnects) is Generation's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omnibus/contract/request/request_output.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

// All of one choice, in one value.
using ChoiceResult = RequestOutput;

// Appends `more` to `into`, as if both had been one update.
void merge_output(RequestOutput& into, RequestOutput&& more);

// prompt_tokens of each prompt once, completion_tokens of all choices.
struct UsageTotals {
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0;
  Json to_json() const;
};

// One per request; calls never overlap.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // Events for one update of choice `index`, ready to be sent.
  virtual std::string stream_update(int32_t index, const RequestOutput& output, const UsageTotals& usage) = 0;
  // After the last choice: the usage event when it was asked for, else "".
  virtual std::string stream_usage(const UsageTotals& usage) = 0;
  // The whole answer, not streamed.
  virtual std::string whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) = 0;
};

}  // namespace omnibus
