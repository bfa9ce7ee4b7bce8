#include "answer_format.h"

#include <iterator>

namespace omnibus {
namespace {

template <typename T>
void append(std::vector<T>& into, std::vector<T>&& more) {
  into.insert(into.end(), std::make_move_iterator(more.begin()), std::make_move_iterator(more.end()));
}

}  // namespace

void merge_output(RequestOutput& into, RequestOutput&& more) {
  into.id = more.id;
  into.index = more.index;
  into.text += more.text;
  append(into.token_ids, std::move(more.token_ids));
  append(into.logprobs, std::move(more.logprobs));
  append(into.prompt_logprobs, std::move(more.prompt_logprobs));
  into.finish_reason = more.finish_reason;
  into.stop_cause = std::move(more.stop_cause);
  into.usage = more.usage;
  into.timeline = more.timeline;
  into.status = std::move(more.status);
}

Json UsageTotals::to_json() const {
  Json usage;
  usage["prompt_tokens"] = prompt_tokens;
  usage["completion_tokens"] = completion_tokens;
  usage["total_tokens"] = prompt_tokens + completion_tokens;
  usage["prompt_tokens_details"]["cached_tokens"] = cached_tokens;
  return usage;
}

}  // namespace omnibus
