#include "request_log.h"

#include <algorithm>

#include "omnibus/base/common/log.h"
#include "omnibus/contract/request/merge_timeline.h"

namespace omnibus {
namespace {

// Exact: a double holds a nanosecond of a month.
double milliseconds(int64_t ns) { return static_cast<double>(ns) / 1e6; }

}  // namespace

void RequestSummary::add(const RequestOutput& output) {
  merge_timeline(timeline, output.timeline);
  completion_tokens += output.usage.completion_tokens;
  most_tokens_of_a_choice = std::max<int64_t>(most_tokens_of_a_choice, output.usage.completion_tokens);
  if (output.index == 0) cached_tokens = output.usage.cached_tokens;
  if (!reason || *output.finish_reason > *reason) reason = output.finish_reason;
  if (code == StatusCode::kOk) code = output.status.code();
}

void log_request(const ParentRequest& request, const std::string& model, const RequestSummary& summary) {
  if (request.log_id.empty() || !log_enabled(LogLevel::kInfo)) return;
  const RequestTimeline& t = summary.timeline;
  const std::string error =
      summary.code == StatusCode::kOk ? "" : std::string(absl::StatusCodeToString(summary.code));
  log_line(LogLevel::kInfo, "request finished",
           {{"request_id", request.log_id},
            {"trace_id", request.trace_id},
            {"key", request.tenant},
            {"model", model},
            {"finish_reason", std::string_view(to_string(*summary.reason))},
            {"error", error},
            {"prompt_tokens", int64_t{request.prompt_tokens}},
            {"cached_tokens", int64_t{summary.cached_tokens}},
            {"completion_tokens", summary.completion_tokens},
            {"choices", int64_t{request.n}},
            {"queue_ms", milliseconds(t.queue_ns())},
            {"prefill_ms", milliseconds(t.prefill_ns())},
            {"decode_ms", milliseconds(t.decode_ns())},
            {"e2e_ms", milliseconds(t.e2e_ns())},
            {"preemptions", int64_t{t.preemptions}}});
}

}  // namespace omnibus
