// Several steps in flight: planned ahead with FromStep, or in turns as a pipeline does.
#include <algorithm>
#include <map>
#include <set>

#include <gtest/gtest.h>

#include "scheduler_loop.h"

namespace omnibus {
namespace {

using fakes::FakeWorkerOptions;

SchedulerConfig ahead(SchedulerConfig config, int32_t depth, bool from_step = true) {
  config.max_steps_in_flight = depth;
  config.from_step = from_step;
  return config;
}

TEST(StepsInFlight, NextTokenIsPlannedBeforeThisOneIsKnown) {
  Loop loop(ahead(config_of(2, 16), 2), {});
  loop.add(request_of(1, 6, 9));
  loop.add(request_of(2, 3, 9));
  ASSERT_TRUE(loop.plan_one());
  ASSERT_TRUE(loop.plan_one());
  const auto& rows = loop.last_plan.rows;
  ASSERT_EQ(rows.size(), 2U);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto* from = std::get_if<FromStep>(&rows[i].source);
    ASSERT_NE(from, nullptr);
    EXPECT_EQ(from->seq, 1U);
    EXPECT_EQ(from->row, static_cast<int32_t>(i));
    EXPECT_EQ(rows[i].n_tokens, 1);
    EXPECT_TRUE(rows[i].samples);
  }
  EXPECT_FALSE(loop.plan_one()) << "two steps are in flight";
  EXPECT_EQ(loop.scheduler->steps_in_flight(), 2);
  loop.run();
  for (RequestId id : {1, 2})
    EXPECT_EQ(loop.tokens[id], expected(request_of(id, id == 1 ? 6 : 3, 9), 4096).first);
}

// What ends by count is known ahead: not one row too many.
TEST(StepsInFlight, NothingIsPlannedPastMaxTokensOrContext) {
  for (int32_t depth : {1, 2, 3, 5}) {
    Loop loop(ahead(config_of(2, 16, 12), depth), {});
    loop.add(request_of(1, 5, 100));  // ends by the context: 7 tokens
    loop.add(request_of(2, 5, 4));
    std::map<RequestId, int32_t> computed;
    while (loop.busy()) {
      while (loop.plan_one())
        for (const auto& row : loop.last_plan.rows) computed[row.id] += row.n_tokens;
      ASSERT_TRUE(loop.step());
    }
    EXPECT_EQ(computed[1], 11) << "depth " << depth;
    EXPECT_EQ(computed[2], 8) << "depth " << depth;
    EXPECT_EQ(loop.tokens[1].size(), 7U);
    EXPECT_EQ(loop.tokens[2].size(), 4U);
  }
}

TEST(StepsInFlight, SurplusRowOfAnEndedRequestIsIgnored) {
  Request r = request_of(1, 5, 40);
  r.eos_token_ids = {expected(r, 4096).first[3]};
  Loop loop(ahead(config_of(2, 16), 3), {});
  loop.add(r);
  loop.run();
  EXPECT_EQ(loop.tokens[1], expected(r, 4096).first);
  EXPECT_EQ(loop.ends.at(1).finish_reason, FinishReason::kStop);
  EXPECT_EQ(loop.steps, 6) << "two steps were planned past the end";
  EXPECT_EQ(loop.scheduler->kv().used_blocks(), 0);
}

TEST(StepsInFlight, FailedRowEndsTheRequestThoughItsNextIsInFlight) {
  FakeWorkerOptions options;
  options.is_nan = [](const Request& r, size_t n) { return r.id == 2 && n == 3; };
  Loop loop(ahead(config_of(4, 32), 3), options);
  for (RequestId id = 1; id <= 3; ++id) loop.add(request_of(id, 6, 9));
  loop.run();
  EXPECT_EQ(loop.ends.at(2).finish_reason, FinishReason::kError);
  EXPECT_EQ(loop.tokens[2].size(), 3U);
  for (RequestId id : {1, 3}) EXPECT_EQ(loop.tokens[id], expected(request_of(id, 6, 9), 4096).first);
}

TEST(StepsInFlight, RepliesCountOnceAndInOrder) {
  Loop loop(ahead(config_of(2, 16), 2), {});
  loop.add(request_of(1, 6, 9));
  ASSERT_TRUE(loop.plan_one());
  ASSERT_TRUE(loop.plan_one());
  loop.execute_one();
  loop.execute_one();
  const auto [first, first_output] = loop.executed[0];
  const auto [second, second_output] = loop.executed[1];
  const auto refused = [&](const SchedulerOutput& plan, const ModelRunnerOutput& output) {
    return loop.scheduler->update_from_output(plan, output).status().code() == StatusCode::kInternal;
  };
  EXPECT_TRUE(refused(second, second_output)) << "out of order";
  loop.update_one();
  EXPECT_TRUE(refused(first, first_output)) << "the same reply twice";
  loop.update_one();
  EXPECT_TRUE(refused(second, second_output));
  loop.run();
  EXPECT_EQ(loop.tokens[1], expected(request_of(1, 6, 9), 4096).first);
}

TEST(StepsInFlight, RowThatOthersStandOnGivesOneToken) {
  Loop loop(ahead(config_of(2, 16), 2), {});
  loop.add(request_of(1, 6, 9));
  const SchedulerOutput plan = loop.scheduler->schedule();
  ModelRunnerOutput output = loop.execute(plan);
  output.rows[0].tokens.push_back(1);
  EXPECT_EQ(loop.scheduler->update_from_output(plan, output).status().code(), StatusCode::kInternal);
  output.rows[0].tokens.pop_back();
  EXPECT_TRUE(loop.scheduler->update_from_output(plan, output).ok());
}

// A pipeline of two stages: a request is in one step at a time, and the steps share the requests evenly.
TEST(StepsInFlight, PipelineAlternatesItsBatches) {
  Loop loop(ahead(config_of(8, 64), 2, false), {});
  for (RequestId id = 1; id <= 8; ++id) loop.add(request_of(id, 4, 40));
  std::vector<size_t> sizes;
  while (loop.busy()) {
    while (loop.plan_one()) {
      sizes.push_back(loop.last_plan.rows.size());
      std::map<RequestId, int> in_flight;
      for (const auto& plan : loop.planned)
        for (const auto& row : plan.rows) ASSERT_EQ(++in_flight[row.id], 1);
    }
    ASSERT_TRUE(loop.step());
  }
  EXPECT_EQ(std::count(sizes.begin() + 10, sizes.begin() + 60, 4U), 50) << "four of eight in each step";
  EXPECT_EQ(loop.from_step_rows, 0);
  for (RequestId id = 1; id <= 8; ++id)
    EXPECT_EQ(loop.tokens[id], expected(request_of(id, 4, 40), 4096).first);
}

// Law 2 for what asynchronous stepping adds: depth and source do not change a token, memory plenty or scarce.
TEST(StepsInFlight, DepthDoesNotChangeTokens) {
  for (int32_t blocks : {200, 14}) {
    for (int32_t depth : {1, 2, 3}) {
      for (bool from_step : {false, true}) {
        FakeWorkerOptions options;
        options.num_blocks = blocks;
        Loop loop(ahead(config_of(8, 64), depth, from_step), options);
        for (RequestId id = 1; id <= 12; ++id) loop.add(request_of(id, 20 + id * 11, 40));
        loop.run();
        for (RequestId id = 1; id <= 12; ++id)
          ASSERT_EQ(loop.tokens[id], expected(request_of(id, 20 + id * 11, 40), 4096).first)
              << "depth " << depth << ", blocks " << blocks;
        EXPECT_EQ(loop.scheduler->num_preemptions() > 0, blocks == 14);
      }
    }
  }
}

}  // namespace
}  // namespace omnibus
