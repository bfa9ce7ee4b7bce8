// Who of the waiting is let in, and what of their prompts need not be computed.
#include <algorithm>
#include <utility>

#include "omnibus/base/common/check.h"
#include "omnibus/control/kv_cache/block_key.h"
#include "omnibus/control/scheduler/scheduler.h"

#include "fair_shares.h"
#include "sequence.h"
#include "step_budget.h"
#include "waiting_queue.h"

namespace omnibus {
namespace {

KeyRoot key_root(const SchedulerConfig& config, const Request& request) {
  return {.model = config.model,
          .adapter = request.adapter ? request.adapter->digest : std::string_view(),
          .salt = request.tenant_salt};
}

std::vector<KeySpan> key_spans(const Request& request) {
  std::vector<KeySpan> spans;
  for (const MediaItem& item : request.media)
    spans.push_back({item.offset, item.length, item.hash, item.shape});
  return spans;
}

}  // namespace

std::vector<Digest256> Scheduler::make_prefix_keys(const Request& request) const {
  std::vector<Digest256> keys;
  if (config_.prefix_caching)
    extend_block_keys(key_root(config_, request), request.prompt_token_ids, kv_->tokens_per_key(),
                      key_spans(request), keys);
  return keys;
}

void Scheduler::extend_keys(Sequence& s, int32_t n_tokens) const {
  extend_block_keys(key_root(config_, s.request), std::span(s.tokens).first(static_cast<size_t>(n_tokens)),
                    kv_->tokens_per_key(), key_spans(s.request), s.keys);
}

// The last known token is always computed: the next is sampled from it. Logprobs of a prompt come from
// computing it, so a request for them computes all.
ComputedBlocks Scheduler::find_prefix(Sequence& s) const {
  if (!config_.prefix_caching || s.request.sampling().prompt_logprobs) return {};
  extend_keys(s, s.known());
  return kv_->get_computed_blocks({s.tokens, s.keys}, s.known() - 1);
}

void Scheduler::count_prefix_hit(Sequence& s, int32_t n_tokens) {
  if (!config_.prefix_caching || s.request.sampling().prompt_logprobs) return;
  s.cached_tokens = n_tokens;
  prefix_cache_queries_ += s.prompt_size();
  prefix_cache_hits_ += n_tokens;
}

void Scheduler::admit_waiting(SchedulerOutput& plan, StepBudget& budget) {
  std::vector<Sequence*> admitted;
  while (num_running() < config_.max_num_seqs && budget.tokens() > 0) {
    Sequence* s = waiting_->next();
    if (s == nullptr || !admit(*s, plan, budget)) break;
    admitted.push_back(s);
  }
  // First come, first served passes nobody over.
  const bool reorders = config_.policy != SchedulingPolicy::kFcfs || shares_->enabled();
  if (reorders && !admitted.empty()) waiting_->count_passed_over(admitted, config_.max_passed_over);
}

// False, and nothing has changed, when budget or blocks do not reach.
bool Scheduler::admit(Sequence& s, SchedulerOutput& plan, StepBudget& budget) {
  if (kv_->gains() < s.retry_at) return false;  // as in the round before: spare the look-up
  const ComputedBlocks computed = find_prefix(s);
  s.planned = computed.n_tokens;
  const int32_t chunk = prefill_chunk(s, budget);
  const SlotDemand demand{.n_computed = computed.n_tokens, .n_new = s.pending()};
  auto blocks = chunk > 0 ? kv_->allocate_slots(s.request.id, demand, computed) : std::nullopt;
  if (!blocks) {
    if (chunk > 0) s.retry_at = kv_->retry_at();
    s.planned = 0;
    return false;
  }
  waiting_->erase(s);
  running_.insert(std::upper_bound(running_.begin(), running_.end(), &s,
                                   [](const Sequence* a, const Sequence* b) { return a->place < b->place; }),
                  &s);
  s.status = RequestStatus::kRunning;
  s.admitted_seq = plan.id.seq;
  s.prefill_end = s.known();
  s.computed = computed.n_tokens;
  s.published = computed.n_tokens;
  s.slots = kv_->slots_of(s.request.id);
  if (s.first_scheduled_ns == 0) {
    s.first_scheduled_ns = clock_->now_ns();
    count_prefix_hit(s, computed.n_tokens);
  }
  plan.new_requests.push_back({s.request, {s.output().begin(), s.output().end()}});
  budget.take(chunk, s.planned);
  add_row(plan, s, chunk, std::move(*blocks));
  return true;
}

}  // namespace omnibus
