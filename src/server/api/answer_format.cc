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
  into.reasoning += more.reasoning;
  append(into.token_ids, std::move(more.token_ids));
  append(into.logprobs, std::move(more.logprobs));
  append(into.prompt_logprobs, std::move(more.prompt_logprobs));
  into.finish_reason = more.finish_reason;
  into.stop_cause = std::move(more.stop_cause);
  into.usage = more.usage;
  into.timeline = more.timeline;
  into.status = std::move(more.status);
}

}  // namespace omnibus
