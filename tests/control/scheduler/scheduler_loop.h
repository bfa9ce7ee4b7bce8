// A scheduler and a fake worker that step together, with as many steps in flight as the config allows, and
// what came out for each request.
#pragma once

#include <algorithm>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "omnibus/control/scheduler/scheduler.h"

#include "fakes/fake_worker.h"

namespace omnibus {

struct Loop {
  Loop(SchedulerConfig config, fakes::FakeWorkerOptions options)
      : depth(config.max_steps_in_flight), worker(limits(options, config)) {
    const MemoryPlan plan = *worker.capacity();
    EXPECT_TRUE(worker.allocate_kv(plan.kv).ok());
    EXPECT_TRUE(worker.join({}).ok());
    auto made = Scheduler::create(config, plan.kv, &clock);
    EXPECT_TRUE(made.ok()) << made.status();
    scheduler = std::move(made).value();
  }

  static fakes::FakeWorkerOptions limits(fakes::FakeWorkerOptions options, const SchedulerConfig& config) {
    options.max_rows = config.max_num_seqs;
    options.max_tokens_per_step = config.max_num_batched_tokens;
    return options;
  }

  void add(const Request& request) {
    prompt_sizes[request.id] = static_cast<int32_t>(request.prompt_token_ids.size());
    scheduler->add(request);
  }

  ModelRunnerOutput execute(const SchedulerOutput& plan) {
    auto digest = worker.prepare(plan).get();
    EXPECT_TRUE(digest.ok()) << digest.status();
    auto output = worker.commit(plan.id).get();
    EXPECT_TRUE(output.ok()) << output.status();
    return output.ok() ? *output : ModelRunnerOutput{};
  }

  // One more step in flight; false when there is none to plan.
  bool plan_one() {
    clock.advance_ns(1000);
    SchedulerOutput plan = scheduler->schedule();
    check();
    if (plan.rows.empty()) return false;
    check_rows(plan);
    last_plan = plan;
    const auto digest = worker.prepare(plan).get();
    EXPECT_TRUE(digest.ok()) << digest.status();
    planned.push_back(std::move(plan));
    most_in_flight = std::max(most_in_flight, scheduler->steps_in_flight());
    return true;
  }
  // The worker runs the oldest planned step.
  void execute_one() {
    auto output = worker.commit(planned.front().id).get();
    EXPECT_TRUE(output.ok()) << output.status();
    if (output.ok()) executed.emplace_back(std::move(planned.front()), *std::move(output));
    planned.pop_front();
  }
  void update_one() {
    const auto [plan, output] = std::move(executed.front());
    executed.pop_front();
    auto events = scheduler->update_from_output(plan, output);
    EXPECT_TRUE(events.ok()) << events.status();
    if (events.ok())
      for (auto& event : *events) take(std::move(event));
    check();
    ++steps;
  }
  // Fills up what may be in flight and completes the oldest; false when something failed.
  bool step() {
    while (static_cast<int32_t>(planned.size() + executed.size()) < depth && plan_one()) {
    }
    EXPECT_FALSE(planned.empty() && executed.empty()) << "work, but nothing in flight";
    if (testing::Test::HasFailure()) return false;
    if (executed.empty()) execute_one();
    if (!testing::Test::HasFailure()) update_one();
    return !testing::Test::HasFailure();
  }

  void check() { EXPECT_TRUE(scheduler->check_integrity().ok()) << scheduler->check_integrity(); }

  // A row without FromStep computes tokens that were delivered.
  void check_rows(const SchedulerOutput& plan) {
    for (const auto& row : plan.rows) {
      if (std::holds_alternative<FromStep>(row.source)) {
        ++from_step_rows;
        continue;
      }
      const auto known = prompt_sizes.find(row.id);
      if (known == prompt_sizes.end()) continue;
      EXPECT_LE(row.base_computed + row.n_tokens - static_cast<int32_t>(row.drafts.size()),
                known->second + static_cast<int32_t>(tokens[row.id].size()));
    }
  }

  void take(SequenceEvent event) {
    auto& got = tokens[event.id];
    EXPECT_EQ(static_cast<size_t>(event.first_index), got.size()) << "request " << event.id;
    got.insert(got.end(), event.tokens.begin(), event.tokens.end());
    if (!event.prompt_logprobs.empty()) {
      EXPECT_EQ(event.first_index, 0);
      prompt_logprobs[event.id] = event.prompt_logprobs;
    }
    if (!event.finish_reason) return;
    const auto& t = event.timeline;
    EXPECT_LE(t.arrival_ns, t.first_scheduled_ns);
    EXPECT_LE(t.first_scheduled_ns, t.first_token_ns);
    EXPECT_LE(t.first_token_ns, t.finished_ns);
    EXPECT_TRUE(ends.emplace(event.id, std::move(event)).second) << "two ends";
  }

  bool busy() const { return scheduler->has_work() || !planned.empty() || !executed.empty(); }
  void run(int limit = 100000) {
    while (busy() && limit-- > 0)
      if (!step()) return;
    EXPECT_FALSE(scheduler->has_work()) << "no progress";
  }

  int32_t depth;
  ManualClock clock;
  fakes::FakeWorker worker;
  std::unique_ptr<Scheduler> scheduler;
  std::deque<SchedulerOutput> planned;                                 // not yet executed
  std::deque<std::pair<SchedulerOutput, ModelRunnerOutput>> executed;  // not yet updated
  SchedulerOutput last_plan;
  std::map<RequestId, int32_t> prompt_sizes;
  std::map<RequestId, std::vector<TokenId>> tokens;
  std::map<RequestId, std::vector<SampledLogprobs>> prompt_logprobs;
  std::map<RequestId, SequenceEvent> ends;
  int steps = 0;
  int from_step_rows = 0;
  int32_t most_in_flight = 0;
};

inline fakes::FakeWorkerOptions with_blocks(int32_t num_blocks) {
  fakes::FakeWorkerOptions options;
  options.num_blocks = num_blocks;
  return options;
}

inline Request request_of(RequestId id, size_t prompt_size, int32_t max_tokens, uint64_t seed = 7) {
  Request r;
  r.id = id;
  r.arrival_ns = 1;
  for (size_t i = 0; i < prompt_size; ++i)
    r.prompt_token_ids.push_back(static_cast<TokenId>((id * 31 + i * 7) % 500));
  SamplingParams p;
  p.max_tokens = max_tokens;
  p.seed = seed;
  r.params = p;
  return r;
}

// What the request must produce: the closed form, cut by the stop rules in plain words.
inline std::pair<std::vector<TokenId>, FinishReason> expected(const Request& r, int32_t max_model_len,
                                                              int32_t vocab_size = 512) {
  const SamplingParams& p = r.sampling();
  std::vector<TokenId> known = r.prompt_token_ids;
  std::vector<TokenId> out;
  while (true) {
    const TokenId t = fakes::hash_token(p.seed, known, vocab_size);
    known.push_back(t);
    out.push_back(t);
    const auto n = static_cast<int32_t>(out.size());
    const bool is_stop = std::count(r.eos_token_ids.begin(), r.eos_token_ids.end(), t) +
                             std::count(p.stop_token_ids.begin(), p.stop_token_ids.end(), t) >
                         0;
    if (is_stop && n > p.min_tokens) return {out, FinishReason::kStop};
    if (n == p.max_tokens || static_cast<int32_t>(known.size()) == max_model_len)
      return {out, FinishReason::kLength};
  }
}

inline SchedulerConfig config_of(int32_t max_seqs, int32_t budget, int32_t max_model_len = 4096) {
  SchedulerConfig c;
  c.max_model_len = max_model_len;
  c.max_num_seqs = max_seqs;
  c.max_num_batched_tokens = budget;
  c.epoch = 1;
  return c;
}

}  // namespace omnibus
