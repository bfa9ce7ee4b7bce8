// The log's line about each request that has ended. Never the prompt, never the answer.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "omnibus/base/common/status.h"
#include "omnibus/contract/request/request_output.h"

#include "parent_request.h"

namespace omnibus {

// What is gathered from the choices of one request as they end.
struct RequestSummary {
  RequestTimeline timeline;
  int64_t completion_tokens = 0, most_tokens_of_a_choice = 0;
  int32_t cached_tokens = 0;           // of the prompt, by its first choice
  std::optional<FinishReason> reason;  // the worst: error, abort, length, stop
  StatusCode code = StatusCode::kOk;   // why, of the first that was aborted or failed

  // `output` is the last of its choice.
  void add(const RequestOutput& output);
};

// At info; nothing for a request without an id for the log.
void log_request(const ParentRequest& request, const std::string& model, const RequestSummary& summary);

}  // namespace omnibus
