// One timeline for a request of several sequences.
#pragma once

#include <algorithm>

#include "omnibus/contract/request/request_output.h"

namespace omnibus {

// `into` then covers both, and its phases sum to its end-to-end as before: queued until the first sequence
// was scheduled, decoding from the first token of any until the last one ended. Preemptions add up;
// cached_tokens, which is of a prompt, stays. A timeline without an arrival covers nothing.
inline void merge_timeline(RequestTimeline& into, const RequestTimeline& more) {
  if (into.arrival_ns == 0) {
    into = more;
    return;
  }
  into.arrival_ns = std::min(into.arrival_ns, more.arrival_ns);
  into.first_scheduled_ns = std::min(into.first_scheduled_ns, more.first_scheduled_ns);
  into.first_token_ns = std::min(into.first_token_ns, more.first_token_ns);
  into.finished_ns = std::max(into.finished_ns, more.finished_ns);
  into.preemptions += more.preemptions;
}

}  // namespace omnibus
