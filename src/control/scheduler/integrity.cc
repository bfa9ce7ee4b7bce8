// Scheduler::check_integrity.
#include <algorithm>
#include <string>

#include "omnibus/control/scheduler/scheduler.h"

#include "sequence.h"
#include "waiting_queue.h"

namespace omnibus {
namespace {

Status broken(RequestId id, const std::string& what) {
  return absl::InternalError("request " + std::to_string(id) + " " + what);
}

}  // namespace

Status Scheduler::check_running(const Sequence& s) const {
  const RequestId id = s.request.id;
  if (s.status != RequestStatus::kRunning || !s.on_worker()) return broken(id, "runs with another status");
  const bool drafting = s.sampling > 0 && !s.one_token;  // more is planned than may turn out to be known
  if (s.computed > s.planned || s.computed > s.known() || (s.pending() < 0 && !drafting))
    return broken(id, "has computed " + std::to_string(s.computed) + ", planned " +
                          std::to_string(s.planned) + " of " + std::to_string(s.known()) + " known tokens");
  if (s.sampling < 0 || s.sampling > steps_in_flight())
    return broken(id, "is sampled by " + std::to_string(s.sampling) + " of " +
                          std::to_string(steps_in_flight()) + " steps in flight");
  if (kv_->published_tokens(id) > s.computed)
    return broken(id, "has published " + std::to_string(kv_->published_tokens(id)) + " of " +
                          std::to_string(s.computed) + " computed tokens");
  return absl::OkStatus();
}

Status Scheduler::check_waiting(const Sequence& s) const {
  const RequestId id = s.request.id;
  if (s.status == RequestStatus::kRunning || s.on_worker() || s.planned != 0 || s.computed != 0 ||
      s.sampling != 0)
    return broken(id, "waits with another status");
  if (kv_->holds(id)) return broken(id, "waits and holds blocks");
  if (s.passed_over > config_.max_passed_over)
    return broken(id, "was passed over " + std::to_string(s.passed_over) + " times");
  return absl::OkStatus();
}

Status Scheduler::check_integrity() const {
  OMNIBUS_RETURN_IF_ERROR(kv_->check_integrity());
  if (sequences_.size() != waiting_->size() + running_.size())
    return absl::InternalError("a request is in no queue or in two");
  const auto in_order = [](const Sequence* a, const Sequence* b) { return a->place < b->place; };
  if (!std::is_sorted(running_.begin(), running_.end(), in_order))
    return absl::InternalError("the running requests are out of order");
  for (const Sequence* s : running_) OMNIBUS_RETURN_IF_ERROR(check_running(*s));
  for (const Sequence* s : waiting_->all()) OMNIBUS_RETURN_IF_ERROR(check_waiting(*s));
  if (kv_->num_tables() != running_.size())
    return absl::InternalError(std::to_string(kv_->num_tables()) + " requests hold blocks, " +
                               std::to_string(running_.size()) + " run");
  return absl::OkStatus();
}

}  // namespace omnibus
