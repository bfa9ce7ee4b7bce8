#include "timings.h"

#include <algorithm>

#include "omnibus/base/common/clock.h"

namespace omnibus {
namespace {

double milliseconds(int64_t from_ns, int64_t to_ns) {
  return static_cast<double>(std::max<int64_t>(to_ns - from_ns, 0)) / 1e6;
}

// 0 where there is nothing to divide by: JSON has no infinity.
double ratio(double a, double b) { return b > 0 ? a / b : 0; }

}  // namespace

Json timings_json(const RequestUsage& usage, const RequestTimeline& timeline) {
  const int64_t end_ns = timeline.finished_ns > 0 ? timeline.finished_ns : SteadyClock().now_ns();
  const double prompt_n = usage.prompt_tokens - usage.cached_tokens;
  const double prompt_ms = milliseconds(timeline.first_scheduled_ns, timeline.first_token_ns);
  const double predicted_ms = milliseconds(timeline.first_token_ns, end_ns);
  const double steps = std::max(usage.completion_tokens - 1, 0);
  Json out;
  out["cache_n"] = usage.cached_tokens;
  out["prompt_n"] = usage.prompt_tokens - usage.cached_tokens;
  out["prompt_ms"] = prompt_ms;
  out["prompt_per_token_ms"] = ratio(prompt_ms, prompt_n);
  out["prompt_per_second"] = ratio(1e3 * prompt_n, prompt_ms);
  out["predicted_n"] = usage.completion_tokens;
  out["predicted_ms"] = predicted_ms;
  out["predicted_per_token_ms"] = ratio(predicted_ms, steps);
  out["predicted_per_second"] = ratio(1e3 * steps, predicted_ms);
  return out;
}

}  // namespace omnibus
