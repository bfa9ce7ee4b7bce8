#include "openai_format.h"

#include "omnibus/base/common/clock.h"
#include "omnibus/server/http/sse.h"
#include "omnibus/server/openai/openai_api.h"

#include "error_json.h"

namespace omnibus {

Json usage_json(const UsageTotals& usage) {
  Json out;
  out["prompt_tokens"] = usage.prompt_tokens;
  out["completion_tokens"] = usage.completion_tokens;
  out["total_tokens"] = usage.prompt_tokens + usage.completion_tokens;
  out["prompt_tokens_details"]["cached_tokens"] = usage.cached_tokens;
  out["completion_tokens_details"]["reasoning_tokens"] = usage.reasoning_tokens;
  return out;
}

Json usage_with_timings_json(const UsageTotals& usage) {
  const auto milliseconds = [](int64_t ns) { return static_cast<double>(ns) / 1e6; };
  const RequestTimeline& t = usage.timeline;
  Json out = usage_json(usage);
  Json& timings = out["omnibus"];
  timings["queue_ms"] = milliseconds(t.queue_ns());
  timings["prefill_ms"] = milliseconds(t.prefill_ns());
  timings["decode_ms"] = milliseconds(t.decode_ns());
  timings["e2e_ms"] = milliseconds(t.e2e_ns());
  timings["preemptions"] = t.preemptions;
  timings["cached_tokens"] = usage.cached_tokens;
  return out;
}

OpenAiFormat::OpenAiFormat() : started_ns_(SteadyClock().now_ns()) {}

void OpenAiFormat::add_processing_time(HttpResponse& head) const {
  const int64_t elapsed_ms = (SteadyClock().now_ns() - started_ns_) / 1'000'000;
  head.headers.emplace_back("openai-processing-ms", std::to_string(elapsed_ms));
}

HttpResponse OpenAiFormat::stream_head() {
  HttpResponse head = sse_head();
  add_processing_time(head);
  return head;
}

std::string OpenAiFormat::stream_end(const UsageTotals& usage) { return usage_event(usage) + sse_done(); }

std::string OpenAiFormat::stream_error(const Status& error) {
  return sse_event(dump_json(error_json(error))) + sse_done();
}

HttpResponse OpenAiFormat::whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) {
  HttpResponse response;
  response.body = dump_json(whole_body(choices, usage));
  add_processing_time(response);
  return response;
}

HttpResponse OpenAiFormat::error(const Status& error) { return render_openai_error(error, {}); }

}  // namespace omnibus
