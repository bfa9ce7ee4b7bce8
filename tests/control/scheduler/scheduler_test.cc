// Behaviour of the scheduler on the fake worker, one subject per test. The laws over random workloads are in
// scheduler_laws_test.cc.
#include "omnibus/control/scheduler/scheduler.h"

#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "scheduler_loop.h"

namespace omnibus {
namespace {

using fakes::FakeWorker;
using fakes::FakeWorkerOptions;

SchedulerConfig deep(SchedulerConfig config, int32_t max_steps_in_flight) {
  config.max_steps_in_flight = max_steps_in_flight;
  return config;
}

TEST(Scheduler, PromptIsCutIntoChunksAndSamplesOnlyAtItsEnd) {
  Loop loop(config_of(4, 8), {});
  loop.add(request_of(1, 20, 2));
  std::vector<int32_t> sizes;
  std::vector<bool> samples;
  while (loop.scheduler->has_work() && loop.step()) {
    sizes.push_back(loop.last_plan.rows[0].n_tokens);
    samples.push_back(loop.last_plan.rows[0].samples);
  }
  EXPECT_EQ(sizes, (std::vector<int32_t>{8, 8, 4, 1}));
  EXPECT_EQ(samples, (std::vector<bool>{false, false, true, true}));
  EXPECT_EQ(loop.tokens[1], expected(request_of(1, 20, 2), 4096).first);
}

TEST(Scheduler, DecodesComeBeforePrefills) {
  Loop loop(config_of(4, 8), {});
  loop.add(request_of(1, 4, 50));
  ASSERT_TRUE(loop.step());
  loop.add(request_of(2, 30, 5));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(loop.step());
    ASSERT_EQ(loop.last_plan.rows.size(), 2U);
    EXPECT_EQ(loop.last_plan.rows[0].id, 1U);
    EXPECT_EQ(loop.last_plan.rows[0].n_tokens, 1);
    EXPECT_EQ(loop.last_plan.rows[1].n_tokens, 7);
  }
}

TEST(Scheduler, YoungestIsPreemptedAndComesBackFirst) {
  FakeWorkerOptions options;
  options.num_blocks = 4;  // 64 tokens
  Loop loop(config_of(3, 64), options);
  for (RequestId id = 1; id <= 3; ++id) loop.add(request_of(id, 15, 30));
  std::vector<RequestId> preempted;
  std::vector<RequestId> admitted;
  while (loop.scheduler->has_work() && loop.step()) {
    for (RequestId id : loop.last_plan.preempted) preempted.push_back(id);
    for (const auto& data : loop.last_plan.new_requests) {
      admitted.push_back(data.request.id);
      if (admitted.size() > 3) {
        EXPECT_FALSE(data.output_token_ids.empty()) << "output goes along on re-admission";
      }
    }
  }
  // 4 blocks: first 3 makes room, then 2; they come back in the order of their arrival.
  EXPECT_EQ(preempted, (std::vector<RequestId>{3, 2}));
  EXPECT_EQ(admitted, (std::vector<RequestId>{1, 2, 3, 2, 3}));
  EXPECT_EQ(loop.ends.at(3).timeline.preemptions, 1);
  for (RequestId id = 1; id <= 3; ++id)
    EXPECT_EQ(loop.tokens[id], expected(request_of(id, 15, 30), 4096).first) << id;
}

TEST(Scheduler, StopIdsWaitForMinTokens) {
  Request plain = request_of(1, 5, 40);
  const std::vector<TokenId> out = expected(plain, 4096).first;
  for (int32_t min_tokens : {0, 2, 3, 9}) {
    Loop loop(config_of(1, 16), {});
    Request r = plain;
    auto p = r.sampling();
    p.min_tokens = min_tokens;
    p.stop_token_ids = {out[2]};
    r.params = p;
    loop.add(r);
    loop.run();
    const auto [tokens, reason] = expected(r, 4096);
    EXPECT_EQ(loop.tokens[1], tokens) << "min_tokens " << min_tokens;
    EXPECT_EQ(loop.ends.at(1).finish_reason, reason);
    EXPECT_EQ(loop.tokens[1].size() == 3, min_tokens <= 2);
    const bool stopped = reason == FinishReason::kStop;
    EXPECT_EQ(loop.ends.at(1).stop_cause, stopped ? StopCause(out[2]) : StopCause());
  }
}

TEST(Scheduler, StopOnTheLastAllowedTokenIsAStop) {
  Request r = request_of(1, 5, 4);
  const auto out = expected(r, 4096).first;
  r.eos_token_ids = {out[3]};
  Loop loop(config_of(1, 16), {});
  loop.add(r);
  loop.run();
  EXPECT_EQ(loop.tokens[1], out);
  EXPECT_EQ(loop.ends.at(1).finish_reason, FinishReason::kStop);
  EXPECT_EQ(loop.ends.at(1).stop_cause, StopCause());
}

TEST(Scheduler, ContextLengthEndsARequest) {
  Loop loop(config_of(1, 16, 12), {});
  loop.add(request_of(1, 5, 100));
  loop.run();
  EXPECT_EQ(loop.tokens[1].size(), 7U);
  EXPECT_EQ(loop.ends.at(1).finish_reason, FinishReason::kLength);
}

TEST(Scheduler, CapacityIsStatedWithBothNumbers) {
  FakeWorkerOptions options;
  options.num_blocks = 2;
  Loop loop(config_of(1, 16, 40), options);
  const Status too_long = loop.scheduler->can_serve(40);
  EXPECT_EQ(error_detail(too_long).code, "context_length_exceeded");
  EXPECT_EQ(error_detail(too_long).param, "prompt");
  EXPECT_NE(too_long.message().find("40 tokens"), absl::string_view::npos);
  const Status no_kv = loop.scheduler->can_serve(33);
  EXPECT_EQ(error_detail(no_kv).http, 400);
  EXPECT_NE(no_kv.message().find("33"), absl::string_view::npos);
  EXPECT_NE(no_kv.message().find("32"), absl::string_view::npos);
  EXPECT_TRUE(loop.scheduler->can_serve(32).ok());
  EXPECT_EQ(loop.scheduler->max_output_tokens(32), 1);
  EXPECT_EQ(loop.scheduler->max_output_tokens(10), 23);
  EXPECT_FALSE(loop.scheduler->can_serve(0).ok());
  // The stated room is real: the request that fills it runs alone to its end.
  loop.add(request_of(1, 10, 23));
  loop.run();
  EXPECT_EQ(loop.tokens[1].size(), 23U);
}

TEST(Scheduler, SettingsThatWouldStarveAreRefusedByName) {
  FakeWorkerOptions options;
  options.chunk_alignment = 16;
  FakeWorker worker(options);
  ManualClock clock;
  const KVCacheConfig kv = worker.capacity()->kv;
  EXPECT_TRUE(Scheduler::create(config_of(8, 23), kv, &clock).ok());
  const auto refused = Scheduler::create(config_of(8, 22), kv, &clock);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.status().message().find("max_num_batched_tokens"), absl::string_view::npos);
}

TEST(Scheduler, AbortDuringAStepDropsItsRow) {
  Loop loop(config_of(4, 32), {});
  for (RequestId id = 1; id <= 3; ++id) loop.add(request_of(id, 6, 9));
  ASSERT_TRUE(loop.step());
  const SchedulerOutput plan = loop.scheduler->schedule();
  const ModelRunnerOutput output = loop.execute(plan);
  auto event = loop.scheduler->abort(2, FinishReason::kAbort, absl::CancelledError("gone"));
  ASSERT_TRUE(event.has_value());
  EXPECT_EQ(event->first_index, 1);
  EXPECT_FALSE(loop.scheduler->abort(2, FinishReason::kAbort, absl::CancelledError("gone")).has_value());
  auto events = loop.scheduler->update_from_output(plan, output);
  ASSERT_TRUE(events.ok());
  EXPECT_EQ(events->size(), 2U);
  EXPECT_EQ(loop.scheduler->kv().blocks_of(2, 0).size(), 0U);
  ASSERT_TRUE(loop.scheduler->check_integrity().ok());
  const SchedulerOutput next = loop.scheduler->schedule();
  EXPECT_EQ(next.finished, std::vector<RequestId>{2});
}

TEST(Scheduler, FinishByTextReportsTheSurplus) {
  Loop loop(config_of(4, 32), {});
  loop.add(request_of(1, 6, 9));
  for (int i = 0; i < 4; ++i) ASSERT_TRUE(loop.step());
  EXPECT_EQ(loop.scheduler->finish(1, 2), 2);
  EXPECT_EQ(loop.scheduler->finish(1, 2), 0);
  EXPECT_FALSE(loop.scheduler->has_work());
  EXPECT_EQ(loop.scheduler->kv().used_blocks(), 0);
}

TEST(Scheduler, DeadlineEndsWaitingAndRunning) {
  Loop loop(config_of(1, 32), {});
  for (RequestId id = 1; id <= 2; ++id) {
    Request r = request_of(id, 6, 100);
    r.deadline = 5000;
    loop.add(r);
  }
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(loop.step());
  EXPECT_TRUE(loop.scheduler->expire().empty());
  loop.clock.advance_ns(5000);
  const auto events = loop.scheduler->expire();
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(error_detail(events[0].status).http, 504);
  EXPECT_FALSE(loop.scheduler->has_work());
}

TEST(Scheduler, OneBadRowEndsOneRequest) {
  FakeWorkerOptions options;
  options.is_nan = [](const Request& r, size_t n) { return r.id == 2 && n == 3; };
  Loop loop(config_of(4, 32), options);
  for (RequestId id = 1; id <= 3; ++id) loop.add(request_of(id, 6, 9));
  loop.run();
  EXPECT_EQ(loop.ends.at(2).finish_reason, FinishReason::kError);
  EXPECT_EQ(error_detail(loop.ends.at(2).status).type, "server_error");
  EXPECT_EQ(loop.tokens[2].size(), 3U);
  for (RequestId id : {1, 3}) EXPECT_EQ(loop.tokens[id], expected(request_of(id, 6, 9), 4096).first);
}

TEST(Scheduler, RowWithoutACandidateIsTheClientsError) {
  Loop loop(config_of(4, 32), {});
  for (RequestId id = 1; id <= 2; ++id) loop.add(request_of(id, 6, 9));
  const SchedulerOutput plan = loop.scheduler->schedule();
  ModelRunnerOutput output = loop.execute(plan);
  ASSERT_EQ(output.rows.size(), 2U);
  RowOutput empty;
  empty.id = output.rows[0].id;
  empty.status = RowStatus::kNoCandidate;
  output.rows[0] = empty;
  const auto events = loop.scheduler->update_from_output(plan, output);
  ASSERT_TRUE(events.ok()) << events.status();
  ASSERT_EQ(events->size(), 2U);
  EXPECT_EQ(events->at(0).finish_reason, FinishReason::kError);
  EXPECT_EQ(error_detail(events->at(0).status).http, 400);
  EXPECT_EQ(error_detail(events->at(0).status).param, "allowed_token_ids");
  EXPECT_FALSE(events->at(1).finish_reason);
}

TEST(Scheduler, OutputThatDoesNotFitThePlanChangesNothing) {
  Loop loop(config_of(4, 32), {});
  loop.add(request_of(1, 6, 9));
  const SchedulerOutput plan = loop.scheduler->schedule();
  const ModelRunnerOutput good = loop.execute(plan);
  for (int kind = 0; kind < 4; ++kind) {
    ModelRunnerOutput bad = good;
    if (kind == 0) bad.id.seq += 1;
    if (kind == 1) bad.rows.clear();
    if (kind == 2) bad.rows[0].id = 9;
    if (kind == 3) bad.rows[0].tokens.clear();
    EXPECT_EQ(loop.scheduler->update_from_output(plan, bad).status().code(), StatusCode::kInternal) << kind;
  }
  EXPECT_TRUE(loop.scheduler->update_from_output(plan, good).ok());
}

// Two plans in flight: the second chunk of a prompt is planned before the first is answered.
TEST(Scheduler, ChunksOfOnePromptMayBeInFlightTogether) {
  Loop loop(deep(config_of(2, 8), 3), {});
  loop.add(request_of(1, 14, 3));
  const SchedulerOutput first = loop.scheduler->schedule();
  const SchedulerOutput second = loop.scheduler->schedule();
  EXPECT_EQ(second.rows[0].base_computed, 8);
  EXPECT_TRUE(second.rows[0].samples);
  EXPECT_TRUE(loop.scheduler->schedule().rows.empty()) << "its next token is being sampled";
  EXPECT_TRUE(loop.scheduler->update_from_output(first, loop.execute(first))->empty());
  auto events = loop.scheduler->update_from_output(second, loop.execute(second));
  ASSERT_TRUE(events.ok());
  for (auto& event : *events) loop.take(event);
  loop.run();
  EXPECT_EQ(loop.tokens[1], expected(request_of(1, 14, 3), 4096).first);
}

// A row that was in flight when its request was preempted belongs to a former life, even if it is answered
// after the request came back.
TEST(Scheduler, RowOfAFormerLifeIsIgnored) {
  FakeWorkerOptions options;
  options.num_blocks = 3;
  Loop loop(deep(config_of(2, 16), 4), options);
  loop.add(request_of(1, 15, 30));
  ASSERT_TRUE(loop.step());
  loop.add(request_of(2, 20, 9));
  const SchedulerOutput a = loop.scheduler->schedule();  // 1 decodes, first chunk of 2
  const SchedulerOutput b = loop.scheduler->schedule();  // second chunk of 2, samples
  const ModelRunnerOutput out_a = loop.execute(a);
  const ModelRunnerOutput out_b = loop.execute(b);
  ASSERT_TRUE(loop.scheduler->update_from_output(a, out_a).ok());
  const SchedulerOutput c = loop.scheduler->schedule();  // 1 needs the blocks of 2
  ASSERT_EQ(c.preempted, std::vector<RequestId>{2});
  const ModelRunnerOutput out_c = loop.execute(c);
  ASSERT_TRUE(loop.scheduler->abort(1, FinishReason::kAbort, absl::CancelledError("gone")).has_value());
  const SchedulerOutput d = loop.scheduler->schedule();
  ASSERT_EQ(d.new_requests.size(), 1U);
  const ModelRunnerOutput out_d = loop.execute(d);
  for (const auto& [plan, output] : {std::pair(&b, &out_b), std::pair(&c, &out_c), std::pair(&d, &out_d)}) {
    const auto events = loop.scheduler->update_from_output(*plan, *output);
    ASSERT_TRUE(events.ok()) << events.status();
    EXPECT_TRUE(events->empty()) << "step " << plan->id.seq;
  }
  loop.run();
  EXPECT_EQ(loop.tokens[2], expected(request_of(2, 20, 9), 4096).first);
}

// Answers under way wait for a step as long as its target says, however long the prompt that is read beside
// them.
TEST(Scheduler, APrefillBesideDecodesKeepsToTheStepTarget) {
  const StepCost cost{2e6, 1e6, 100};  // 2 ms a step, 1 ms a token, 0.1 us a pair
  constexpr int64_t kTarget = 50'000'000;
  Loop loop(config_of(8, 2048), with_blocks(400));
  for (RequestId id = 1; id <= 4; ++id) loop.add(request_of(id, 8, 300));
  ASSERT_TRUE(loop.step());
  loop.scheduler->set_step_target(cost, kTarget);
  loop.add(request_of(5, 1000, 2));
  int chunks = 0;
  for (; loop.tokens[5].empty(); ++chunks) {
    ASSERT_TRUE(loop.step());
    const auto& rows = loop.last_plan.rows;
    ASSERT_EQ(rows.size(), 5U) << "every answer goes on, and so does the prompt";
    double ns = cost.fixed_ns;
    for (const auto& row : rows)
      for (int32_t i = 1; i <= row.n_tokens; ++i)
        ns += cost.per_token_ns + cost.per_kv_token_ns * (row.base_computed + i);
    ASSERT_LE(ns, kTarget) << "step " << loop.steps;
  }
  EXPECT_GE(chunks, 1000 / 44);
  EXPECT_LE(chunks, 1000 / 40) << "and uses it";
  loop.run();
}

}  // namespace
}  // namespace omnibus
