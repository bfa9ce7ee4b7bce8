// AnswerFormat: how the outputs of one request look to its client. The bookkeeping (who is open, what was
// sent, errors, disconnects) is Generation's.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/request_output.h"
#include "omnibus/server/http/http_message.h"

namespace omnibus {

// All of one choice, in one value.
using ChoiceResult = RequestOutput;

// Appends `more` to `into`, as if both had been one update.
void merge_output(RequestOutput& into, RequestOutput&& more);

// prompt_tokens of each prompt once, completion_tokens of all choices.
struct UsageTotals {
  int64_t prompt_tokens = 0, completion_tokens = 0, cached_tokens = 0, reasoning_tokens = 0;
  RequestTimeline timeline;  // of all choices that have ended (merge_timeline.h)
};

// One per request; calls never overlap.
class AnswerFormat {
 public:
  virtual ~AnswerFormat() = default;

  // A streamed answer: its head, then updates of choices, then either end or error. All but the head is text
  // in the framing of the door, ready to be sent; "" sends nothing.
  virtual HttpResponse stream_head() = 0;
  virtual std::string stream_update(int32_t index, const RequestOutput& output, const UsageTotals& usage) = 0;
  virtual std::string stream_end(const UsageTotals& usage) = 0;
  virtual std::string stream_error(const Status& error) = 0;

  // The whole answer, not streamed.
  virtual HttpResponse whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) = 0;
  // Instead of any answer.
  virtual HttpResponse error(const Status& error) = 0;
};

}  // namespace omnibus
