#include "scenario.h"

#include <algorithm>

#include <fmt/format.h>

#include "sim_rng.h"

namespace omnibus::sim {
namespace {

void draw_kv(SimRng rng, Scenario& s) {
  const int32_t per_block = rng.pick({4, 4, 8, 16});
  const int32_t groups = rng.chance(0.2) ? 2 : 1;
  const bool one_pool = rng.chance(0.5);
  const int32_t alignment = rng.chance(0.15) ? 4 : 1;
  for (int32_t g = 0; g < groups; ++g) {
    KVGroupSpec group;
    group.layers = {g};
    group.tokens_per_block = per_block;
    group.bytes_per_block = one_pool ? 4096 : 4096 + g;
    group.chunk_alignment = alignment;
    s.kv.groups.push_back(group);
  }
  // From barely one long request to plenty; memory that is short half of the time.
  const int32_t one = s.scheduler.max_model_len / per_block * (one_pool ? groups : 1);
  const bool tiny = s.buggify.is_armed && rng.chance(0.5);
  const int32_t low = std::max(one / 2, 2);
  s.kv.num_blocks = rng.between32(low, low + one * (rng.chance(0.5) ? 1 : s.scheduler.max_num_seqs));
  if (tiny) s.kv.num_blocks = rng.between32(low, low + 3);
}

void draw_scheduler(SimRng rng, Scenario& s) {
  SchedulerConfig& c = s.scheduler;
  c.max_model_len = rng.between32(24, 160);
  c.max_num_seqs = rng.between32(1, 12);
  c.max_num_batched_tokens = c.max_num_seqs + 3 + rng.between32(0, rng.chance(0.5) ? 8 : 120);
  c.policy = rng.chance(0.35) ? SchedulingPolicy::kPriority : SchedulingPolicy::kFcfs;
  c.fair_sharing.enabled = rng.chance(0.3);
  if (c.fair_sharing.enabled && rng.chance(0.5)) c.fair_sharing.weights = {{"a", 3.0}, {"b", 0.5}};
  c.max_passed_over = rng.pick({1, 2, 4, 16});
  c.prefix_caching = rng.chance(0.85);
  c.epoch = 1;
  c.max_steps_in_flight = rng.between32(1, 3);
  c.from_step = c.max_steps_in_flight > 1 && rng.chance(0.6);
  s.max_waiting_requests = rng.between32(0, 24);
  if (s.buggify.is_armed && rng.chance(0.5)) s.max_waiting_requests = rng.between32(0, 2);
  s.max_waiting_tokens = rng.chance(0.3) ? rng.between32(20, 800) : 0;
}

void draw_worker(SimRng rng, Scenario& s) {
  WorkerPlan& w = s.worker;
  w.step_ns = rng.between(1, 20) * kMs;
  w.token_ns = rng.between(0, 500'000);
  if (s.scheduler.from_step) return;
  if (rng.chance(0.3)) {
    w.n_drafts = rng.between32(1, 4);
  } else if (rng.chance(0.15)) {
    w.tokens_per_step = {1, rng.between32(1, 3), rng.between32(1, 4)};
  }
}

void draw_faults(SimRng rng, Scenario& s) {
  Faults& f = s.faults;
  s.step_timeout_ns = rng.chance(0.5) ? rng.between(2, 6) * kSecond : 0;
  if (rng.chance(0.4)) f.slow_step = 0.05;
  if (rng.chance(0.5)) f.duplicate_reply = 0.1;
  if (rng.chance(0.3)) f.nan_request = 0.1;
  f.clock_pauses = rng.chance(0.2) ? rng.between32(1, 3) : 0;
  if (rng.chance(0.1)) {
    f.stall_at = rng.between(1, 60);
    f.stall_ns = 400 * kSecond;
  }
  if (rng.chance(0.05)) f.failure_at = rng.between(1, 120);
  if (s.buggify.is_armed) s.buggify.reset_prefix_cache = 0.05;
}

void draw_load(SimRng rng, Scenario& s) {
  Load& l = s.load;
  l.requests = rng.chance(0.1) ? rng.between32(100, 200) : rng.between32(10, 60);
  l.mean_gap_ns = rng.pick({int64_t{2}, int64_t{20}, int64_t{100}, int64_t{1000}}) * kMs;
  if (rng.chance(0.08)) l.mean_gap_ns = 20 * kSecond;
  l.burst = rng.pick({0.1, 0.5, 0.9});
  l.max_prompt = std::max(4, s.scheduler.max_model_len * rng.between32(3, 10) / 10);
  l.max_output = rng.chance(0.3) ? rng.between32(2, 8) : rng.between32(8, 80);
  l.cancels = rng.pick({0.0, 0.1, 0.4});
  l.cancel_within_ns = rng.pick({int64_t{5}, int64_t{200}, int64_t{2000}}) * kMs;
  l.leavers = rng.pick({0.0, 0.0, 0.02});
  l.storms = rng.chance(0.15) ? rng.between32(1, 2) : 0;
  l.deadlines = rng.pick({0.0, 0.0, 0.3});
  l.stops = rng.pick({0.0, 0.3});
  l.logprobs = rng.pick({0.0, 0.3});
  l.prompt_logprobs = rng.pick({0.0, 0.15});
  l.n_above_one = rng.pick({0.0, 0.2});
  l.adapters = rng.pick({0.0, 0.4});
  l.shared_prefix = rng.pick({0.3, 0.9});
  l.next_turns = rng.pick({0.0, 0.4});
  l.priorities = rng.between32(1, 3);
  l.tenants = {{"a", "salt-a"}};
  if (rng.chance(0.7)) l.tenants.push_back({"b", "salt-b"});
  if (rng.chance(0.3)) l.tenants.push_back({"c", ""});
  l.drains = rng.chance(0.4);
  const int64_t span = l.mean_gap_ns * l.requests;
  l.drain_at_ns = rng.between(1, span + kSecond);
  l.drain_limit_ns = rng.chance(0.5) ? rng.between(1, 500) * kMs : 60 * kSecond;
}

void draw_step_target(SimRng rng, Scenario& s) {
  if (!rng.chance(0.5)) return;
  s.step_target_ns = rng.between(1, 60) * kMs;
  s.odd_costs = rng.chance(0.5);
}

}  // namespace

Scenario draw_scenario(uint64_t seed) {
  const SimRng rng(splitmix64(seed, 0));
  Scenario s;
  s.seed = seed;
  s.buggify.is_armed = rng.fork("buggify").chance(0.25);
  draw_scheduler(rng.fork("scheduler"), s);
  draw_kv(rng.fork("kv"), s);
  draw_worker(rng.fork("worker"), s);
  draw_faults(rng.fork("faults"), s);
  draw_load(rng.fork("load"), s);
  draw_step_target(rng.fork("step target"), s);
  return s;
}

std::string describe(const Scenario& s) {
  const SchedulerConfig& c = s.scheduler;
  return fmt::format(
      "seed {}: model_len {} seqs {} budget {} {}{} K {} cache {} depth {}{} blocks {}x{} groups {} queue "
      "{}/{} "
      "target {} ms{} drafts {} requests {} gap {} ms cancels {} storms {} stall {} failure {} nan {} drain "
      "{} buggify {}",
      s.seed, c.max_model_len, c.max_num_seqs, c.max_num_batched_tokens,
      c.policy == SchedulingPolicy::kFcfs ? "fcfs" : "priority", c.fair_sharing.enabled ? "+fair" : "",
      c.max_passed_over, c.prefix_caching, c.max_steps_in_flight, c.from_step ? "+from_step" : "",
      s.kv.num_blocks, s.kv.groups[0].tokens_per_block, s.kv.groups.size(), s.max_waiting_requests,
      s.max_waiting_tokens, s.step_target_ns / kMs, s.odd_costs ? " of odd costs" : "", s.worker.n_drafts,
      s.load.requests, s.load.mean_gap_ns / kMs, s.load.cancels, s.load.storms, s.faults.stall_at,
      s.faults.failure_at, s.faults.nan_request, s.load.drains, s.buggify.is_armed);
}

}  // namespace omnibus::sim
