#include "omnibus/control/scheduler/scheduler.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/base/common/mutant.h"

#include "fair_shares.h"
#include "sequence.h"
#include "waiting_queue.h"

namespace omnibus {
namespace {

int32_t alignment_of(const KVCacheConfig& kv) {
  int32_t alignment = 1;
  for (const KVGroupSpec& group : kv.groups) alignment = std::lcm(alignment, group.chunk_alignment);
  return alignment;
}

Status positive(const char* name, int32_t value) {
  if (value > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(std::string(name) + " must be positive, not " + std::to_string(value));
}

}  // namespace

Status check_fair_sharing(const FairSharing& sharing) {
  for (const auto& [tenant, weight] : sharing.weights)
    if (!(weight > 0) || !std::isfinite(weight))
      return absl::InvalidArgumentError("fair_sharing: the weight of '" + tenant +
                                        "' must be positive, not " + std::to_string(weight));
  return absl::OkStatus();
}

StatusOr<std::unique_ptr<Scheduler>> Scheduler::create(const SchedulerConfig& config, const KVCacheConfig& kv,
                                                       const Clock* clock) {
  OMNIBUS_RETURN_IF_ERROR(positive("max_model_len", config.max_model_len));
  OMNIBUS_RETURN_IF_ERROR(positive("max_num_seqs", config.max_num_seqs));
  OMNIBUS_RETURN_IF_ERROR(positive("max_passed_over", config.max_passed_over));
  OMNIBUS_RETURN_IF_ERROR(positive("max_steps_in_flight", config.max_steps_in_flight));
  OMNIBUS_RETURN_IF_ERROR(check_fair_sharing(config.fair_sharing));
  OMNIBUS_ASSIGN_OR_RETURN(auto manager, KVCacheManager::create(kv));
  // Every running request but one may decode; the last must still get a chunk.
  const int64_t least = int64_t{config.max_num_seqs} + alignment_of(kv) - 1;
  if (config.max_num_batched_tokens < least)
    return absl::InvalidArgumentError(
        "max_num_batched_tokens is " + std::to_string(config.max_num_batched_tokens) + ", but max_num_seqs " +
        std::to_string(config.max_num_seqs) + " needs at least " + std::to_string(least));
  return std::unique_ptr<Scheduler>(new Scheduler(config, kv, std::move(manager), clock));
}

Scheduler::Scheduler(const SchedulerConfig& config, const KVCacheConfig& kv,
                     std::unique_ptr<KVCacheManager> manager, const Clock* clock)
    : config_(config),
      chunk_alignment_(alignment_of(kv)),
      kv_(std::move(manager)),
      clock_(clock),
      shares_(std::make_unique<FairShares>(config.fair_sharing)),
      waiting_(std::make_unique<WaitingQueue>(shares_.get())) {}

Scheduler::~Scheduler() = default;

Status Scheduler::can_serve(int64_t prompt_tokens) const {
  if (prompt_tokens <= 0) return invalid_field("prompt", "the prompt must have at least one token");
  if (prompt_tokens + 1 > config_.max_model_len)
    return invalid_field("prompt",
                         "This model's maximum context length is " + std::to_string(config_.max_model_len) +
                             " tokens. However, the prompt has " + std::to_string(prompt_tokens) +
                             " tokens, which leaves no room for an answer. Please shorten the prompt.",
                         "context_length_exceeded");
  if (prompt_tokens > kv_->capacity_tokens())
    return invalid_field("prompt", "The prompt has " + std::to_string(prompt_tokens) +
                                       " tokens, but the whole KV cache of this server holds only " +
                                       std::to_string(kv_->capacity_tokens()) + " tokens.");
  return absl::OkStatus();
}

int32_t Scheduler::max_output_tokens(int64_t prompt_tokens) const {
  // The last token is sampled but never computed, so it needs no slot.
  const int64_t room =
      std::min<int64_t>(config_.max_model_len - prompt_tokens, kv_->capacity_tokens() - prompt_tokens + 1);
  return static_cast<int32_t>(std::max<int64_t>(room, 0));
}

void Scheduler::add(Request request) {
  OMNIBUS_CHECK(can_serve(static_cast<int64_t>(request.prompt_token_ids.size())).ok(),
                "add() needs a request that can be served");
  const RequestId id = request.id;
  const auto [it, inserted] = sequences_.emplace(id, std::make_unique<Sequence>(std::move(request)));
  OMNIBUS_CHECK(inserted, "request ids are unique");
  Sequence& s = *it->second;
  s.place.arrival = next_arrival_++;
  if (config_.policy == SchedulingPolicy::kPriority) s.place.priority = s.request.priority;
  try {
    s.tenant = shares_->tenant_of(s.request.tenant);
    if (s.request.deadline) deadlines_.emplace(*s.request.deadline, id);
    waiting_->push(s);
  } catch (...) {  // known and in no queue: never
    if (s.request.deadline) deadlines_.erase({*s.request.deadline, id});
    sequences_.erase(it);
    throw;
  }
}

void Scheduler::start_event(const Sequence& sequence, MonotonicNs now, SequenceEvent& event) const {
  event.id = sequence.request.id;
  event.first_index = sequence.output_size();
  event.time_ns = now;
  event.timeline.arrival_ns = sequence.request.arrival_ns;
  event.timeline.first_scheduled_ns = sequence.first_scheduled_ns;
  event.timeline.first_token_ns = sequence.first_token_ns;
  event.timeline.preemptions = sequence.preemptions;
  event.timeline.cached_tokens = sequence.cached_tokens;
}

// Phases that were never reached have length zero, so that the phases always sum to end-to-end.
void Scheduler::end(Sequence& sequence, SequenceEvent& event) {
  RequestTimeline& t = event.timeline;
  t.first_scheduled_ns = sequence.first_scheduled_ns;
  t.first_token_ns = sequence.first_token_ns;
  t.finished_ns = event.time_ns;
  if (t.first_scheduled_ns == 0) t.first_scheduled_ns = t.finished_ns;
  if (t.first_token_ns == 0) t.first_token_ns = t.finished_ns;
  remove(sequence);
}

void Scheduler::remove(Sequence& sequence) {
  const RequestId id = sequence.request.id;
  if (sequence.status == RequestStatus::kRunning) {
    running_.erase(std::find(running_.begin(), running_.end(), &sequence));
  } else {
    waiting_->erase(sequence);
  }
  if (sequence.on_worker()) finished_.push_back(id);
  if (sequence.request.deadline) deadlines_.erase({*sequence.request.deadline, id});
  const bool ended_early = sequence.output_size() == 0;  // cancelled before its first token
  if (!(OMNIBUS_MUTANT(1) && ended_early)) kv_->free(id);
  sequences_.erase(id);
}

std::optional<SequenceEvent> Scheduler::abort(RequestId id, FinishReason reason, Status why) {
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return std::nullopt;
  SequenceEvent event;
  start_event(*it->second, clock_->now_ns(), event);
  event.finish_reason = reason;
  event.status = std::move(why);
  end(*it->second, event);
  return event;
}

int32_t Scheduler::finish(RequestId id, int32_t n_tokens) {
  const auto it = sequences_.find(id);
  if (it == sequences_.end()) return 0;
  const int32_t surplus = it->second->output_size() - n_tokens;
  OMNIBUS_CHECK(surplus >= 0, "the text layer cannot be ahead of the core");
  remove(*it->second);
  return surplus;
}

void Scheduler::set_fair_sharing(FairSharing sharing) { shares_->configure(std::move(sharing)); }

std::vector<SequenceEvent> Scheduler::expire() {
  std::vector<SequenceEvent> events;
  const MonotonicNs now = clock_->now_ns();
  while (!deadlines_.empty() && deadlines_.begin()->first <= now)
    events.push_back(*abort(deadlines_.begin()->second, FinishReason::kAbort,
                            absl::DeadlineExceededError("the request's deadline has passed")));
  return events;
}

std::vector<RequestId> Scheduler::ids() const {
  std::vector<RequestId> ids;
  for (const auto& [id, sequence] : sequences_) ids.push_back(id);
  return ids;
}

}  // namespace omnibus
