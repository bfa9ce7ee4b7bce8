#include "openai_format.h"

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

HttpResponse OpenAiFormat::stream_head() { return sse_head(); }

std::string OpenAiFormat::stream_end(const UsageTotals& usage) { return usage_event(usage) + sse_done(); }

std::string OpenAiFormat::stream_error(const Status& error) {
  return sse_event(dump_json(error_json(error))) + sse_done();
}

HttpResponse OpenAiFormat::whole(const std::vector<ChoiceResult>& choices, const UsageTotals& usage) {
  HttpResponse response;
  response.body = dump_json(whole_body(choices, usage));
  return response;
}

HttpResponse OpenAiFormat::error(const Status& error) { return render_openai_error(error, {}); }

}  // namespace omnibus
