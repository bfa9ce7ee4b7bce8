// Who goes first: priority, shares of tenants, and the limits of both.
#include <algorithm>
#include <limits>
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "scheduler_loop.h"
#include "src/control/scheduler/fair_shares.h"

namespace omnibus {
namespace {

using fakes::FakeWorkerOptions;

SchedulerConfig by_priority(SchedulerConfig config) {
  config.policy = SchedulingPolicy::kPriority;
  return config;
}

Request ranked(RequestId id, int32_t priority, size_t prompt_size = 4, int32_t max_tokens = 4) {
  Request r = request_of(id, prompt_size, max_tokens);
  r.priority = priority;
  return r;
}

Request of_tenant(RequestId id, const std::string& tenant, size_t prompt_size = 12, int32_t max_tokens = 12) {
  Request r = request_of(id, prompt_size, max_tokens);
  r.tenant = tenant;
  return r;
}

TEST(Policy, LowerPriorityNumberGoesFirst) {
  Loop loop(by_priority(config_of(1, 16)), {});
  loop.add(ranked(1, 2));
  loop.add(ranked(2, 0));
  loop.add(ranked(3, -1));
  loop.add(ranked(4, 0));
  std::vector<RequestId> admitted;
  while (loop.busy() && loop.step())
    for (const auto& data : loop.last_plan.new_requests) admitted.push_back(data.request.id);
  admitted.erase(std::unique(admitted.begin(), admitted.end()), admitted.end());
  EXPECT_EQ(admitted, (std::vector<RequestId>{3, 2, 4, 1}));
}

TEST(Policy, FcfsDoesNotLookAtPriority) {
  Loop loop(config_of(1, 16), {});
  loop.add(ranked(1, 2));
  loop.add(ranked(2, -5));
  ASSERT_TRUE(loop.step());
  EXPECT_EQ(loop.last_plan.rows[0].id, 1U);
}

TEST(Policy, LowestPriorityMakesRoom) {
  FakeWorkerOptions options;
  options.num_blocks = 4;
  Loop loop(by_priority(config_of(3, 64)), options);
  loop.add(ranked(1, 5, 15, 30));
  loop.add(ranked(2, 0, 15, 30));
  loop.add(ranked(3, 1, 15, 30));
  std::vector<RequestId> preempted;
  while (loop.busy() && loop.step())
    for (RequestId id : loop.last_plan.preempted) preempted.push_back(id);
  ASSERT_GE(preempted.size(), 2U);
  EXPECT_EQ(preempted[0], 1U);
  EXPECT_EQ(preempted[1], 3U);
  for (RequestId id = 1; id <= 3; ++id)
    EXPECT_EQ(loop.tokens[id], expected(request_of(id, 15, 30), 4096).first);
}

// I7. A stream of urgent requests that never ends: the one that is not urgent is served all the same.
TEST(Policy, NobodyIsPassedOverForEver) {
  for (int32_t limit : {1, 5, 16}) {
    SchedulerConfig config = by_priority(config_of(1, 16));
    config.max_passed_over = limit;
    Loop loop(config, {});
    loop.add(ranked(1, 100));
    int rounds = 0;  // admissions of others
    for (RequestId id = 2; loop.ends.count(1) == 0; ++id) {
      ASSERT_LT(id, 200U);
      loop.add(ranked(id, 0, 4, 2));
      loop.add(ranked(id + 1000, 0, 4, 2));
      for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(loop.step());
        if (loop.tokens[1].empty() && !loop.last_plan.new_requests.empty() &&
            loop.last_plan.new_requests[0].request.id != 1)
          ++rounds;
      }
    }
    EXPECT_EQ(rounds, limit);
  }
}

// Rows of each request in the steps until `id` has its first token.
std::map<RequestId, int32_t> tokens_until_first(Loop& loop, RequestId id) {
  std::map<RequestId, int32_t> tokens;
  while (loop.tokens[id].empty() && loop.step())
    for (const auto& row : loop.last_plan.rows) tokens[row.id] += row.n_tokens;
  return tokens;
}

// A long prompt that is being read takes the whole budget of each step. Who goes before it does not wait for
// its end.
TEST(Policy, APromptUnderWayLetsInWhoGoesBeforeIt) {
  for (const int32_t priority : {-10, 10, 11}) {
    Loop loop(by_priority(config_of(4, 16)), with_blocks(400));
    loop.add(ranked(1, 10, 1600));
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(loop.step());
    loop.add(ranked(2, priority, 2));
    const int before = loop.steps;
    const auto tokens = tokens_until_first(loop, 2);
    if (priority == -10) {
      EXPECT_EQ(loop.steps - before, 1);
      EXPECT_EQ(tokens.at(1), 14) << "and the long one gets the rest";
    } else {
      EXPECT_GE(loop.steps - before, 97) << "who goes behind it waits";
    }
    loop.run();
    EXPECT_EQ(loop.tokens[1], expected(request_of(1, 1600, 4), 4096).first);
  }
}

// First come, first served: in order of arrival, however long.
TEST(Policy, FcfsReadsALongPromptToItsEnd) {
  Loop loop(config_of(4, 16), with_blocks(400));
  loop.add(request_of(1, 160, 4));
  ASSERT_TRUE(loop.step());
  loop.add(request_of(2, 2, 4));
  EXPECT_EQ(tokens_until_first(loop, 2).at(1), 160 - 16 + 1) << "and one token of its answer";
}

// I7 for who runs already: a stream of urgent prompts, each as long as the budget, leaves the one under way
// nothing; it goes first after K of them.
TEST(Policy, APromptUnderWayIsNotLeftOutForEver) {
  for (const int32_t limit : {1, 5, 16}) {
    SchedulerConfig config = by_priority(config_of(4, 16));
    config.max_passed_over = limit;
    config.prefix_caching = false;
    Loop loop(config, with_blocks(400));
    loop.add(ranked(1, 100, 64));
    ASSERT_TRUE(loop.step());
    int left_out = 0;  // steps
    for (RequestId id = 2; loop.tokens[1].empty(); ++id) {
      ASSERT_LT(id, 200U) << "left out for ever";
      loop.add(ranked(id, 0, 16, 1));
      ASSERT_TRUE(loop.step());
      const auto& rows = loop.last_plan.rows;
      if (std::none_of(rows.begin(), rows.end(), [](const auto& row) { return row.id == 1; })) ++left_out;
    }
    EXPECT_EQ(left_out, limit);
    loop.run();
  }
}

// The same when it is not passed over while it waits, but preempted by every newcomer.
TEST(Policy, NobodyIsPreemptedForEver) {
  FakeWorkerOptions options;
  options.num_blocks = 5;
  SchedulerConfig config = by_priority(config_of(2, 64));
  config.prefix_caching = false;
  Loop loop(config, options);
  loop.add(ranked(1, 100, 20, 40));
  for (RequestId id = 2; loop.ends.count(1) == 0; ++id) {
    ASSERT_LT(id, 400U) << "preempted for ever";
    loop.add(ranked(id, 0, 15, 40));
    for (int i = 0; i < 12 && loop.busy(); ++i) ASSERT_TRUE(loop.step());
  }
  EXPECT_EQ(loop.tokens[1], expected(request_of(1, 20, 40), 4096).first);
}

// Two requests that each fit alone, not together: both end, and the first is never preempted.
TEST(Policy, TwoThatFitAloneDoNotEvictEachOther) {
  for (int32_t depth : {1, 2}) {
    FakeWorkerOptions options;
    options.num_blocks = 4;
    SchedulerConfig config = config_of(2, 64);
    config.max_steps_in_flight = depth;
    config.from_step = true;
    Loop loop(config, options);
    loop.add(request_of(1, 20, 44));
    loop.add(request_of(2, 20, 44));
    loop.run(300);
    ASSERT_EQ(loop.ends.size(), 2U);
    EXPECT_EQ(loop.ends.at(1).timeline.preemptions, 0);
    EXPECT_GT(loop.ends.at(2).timeline.preemptions, 0);
  }
}

// Serves tenants who all have requests waiting at any time, each as many as its name is listed, until
// `tokens` have been computed; tokens by tenant.
std::map<std::string, int64_t> saturate(Loop& loop, const std::vector<std::string>& tenants, int64_t tokens,
                                        size_t prompt_size, int32_t max_tokens) {
  std::map<RequestId, std::string> tenant_of;
  std::map<std::string, int64_t> served;
  std::map<std::string, int> unfinished;
  RequestId next = 1;
  int64_t total = 0;
  while (total < tokens) {
    for (const std::string& tenant : tenants) {
      if (unfinished[tenant] >= 20 * std::count(tenants.begin(), tenants.end(), tenant)) continue;
      ++unfinished[tenant];
      tenant_of[next] = tenant;
      loop.add(of_tenant(next++, tenant, prompt_size, max_tokens));
    }
    const size_t ended = loop.ends.size();
    if (!loop.step()) break;
    if (loop.ends.size() > ended)
      for (const auto& row : loop.last_plan.rows)
        if (loop.ends.count(row.id) != 0) --unfinished[tenant_of[row.id]];
    for (const auto& row : loop.last_plan.rows) {
      served[tenant_of[row.id]] += row.n_tokens;
      total += row.n_tokens;
    }
  }
  return served;
}

TEST(FairSharing, TokensFollowTheWeights) {
  SchedulerConfig config = config_of(8, 64);
  config.fair_sharing = {.enabled = true, .weights = {{"gold", 3}}};
  for (const auto& [prompt_size, max_tokens] : {std::pair<size_t, int32_t>(40, 8), {4, 30}}) {
    Loop loop(config, {});
    const auto served = saturate(loop, {"gold", "plain"}, 40000, prompt_size, max_tokens);
    const double ratio = static_cast<double>(served.at("gold")) / static_cast<double>(served.at("plain"));
    EXPECT_NEAR(ratio, 3, 0.15) << "prompts of " << prompt_size;
  }
}

// Without sharing the one that asks more gets more.
TEST(FairSharing, OffServesInOrderOfArrival) {
  Loop loop(config_of(8, 64), {});
  const auto served = saturate(loop, {"greedy", "greedy", "greedy", "plain"}, 40000, 12, 12);
  EXPECT_NEAR(static_cast<double>(served.at("greedy")) / static_cast<double>(served.at("plain")), 3, 0.15);
  SchedulerConfig config = config_of(8, 64);
  config.fair_sharing.enabled = true;
  Loop fair(config, {});
  const auto shares = saturate(fair, {"greedy", "greedy", "greedy", "plain"}, 40000, 12, 12);
  EXPECT_NEAR(static_cast<double>(shares.at("greedy")) / static_cast<double>(shares.at("plain")), 1, 0.05);
}

// Who was away has saved nothing up: from its return on it gets its share, not more.
TEST(FairSharing, IdlenessIsNoCredit) {
  SchedulerConfig config = config_of(4, 64);
  config.fair_sharing.enabled = true;
  config.max_passed_over = std::numeric_limits<int32_t>::max();
  Loop loop(config, {});
  RequestId id = 1;
  for (int i = 0; i < 100; ++i) loop.add(of_tenant(id++, "busy"));
  for (int i = 0; i < 150; ++i) ASSERT_TRUE(loop.step());
  ASSERT_GT(loop.scheduler->num_waiting(), 8);
  const RequestId first_of_late = id;
  for (int i = 0; i < 40; ++i) loop.add(of_tenant(id++, "late"));
  std::map<bool, int64_t> tokens;
  while (tokens[true] + tokens[false] < 300) {
    ASSERT_TRUE(loop.step());
    for (const auto& row : loop.last_plan.rows) tokens[row.id >= first_of_late] += row.n_tokens;
  }
  EXPECT_GT(tokens[false], 90) << "the other goes on";
  EXPECT_GT(tokens[true], 90) << "and it is served at once";
}

// One tenant's long prompt does not keep the others waiting until it is read.
TEST(FairSharing, ALongPromptLetsOtherTenantsIn) {
  SchedulerConfig config = config_of(4, 16);
  config.fair_sharing.enabled = true;
  Loop loop(config, with_blocks(400));
  loop.add(of_tenant(1, "long", 1600));
  loop.add(of_tenant(2, "long", 1600));
  for (int i = 0; i < 10; ++i) ASSERT_TRUE(loop.step());
  loop.add(of_tenant(3, "short", 2));
  const int before = loop.steps;
  tokens_until_first(loop, 3);
  EXPECT_LE(loop.steps - before, 2);
  loop.run();
}

// A preemption is not the tenant's doing: it keeps its counter, and is not set back to those that wait.
TEST(FairSharing, APreemptionCostsNoShare) {
  FairShares shares({.enabled = true, .weights = {}});
  const size_t a = shares.tenant_of("a");
  const size_t b = shares.tenant_of("b");
  shares.charge(b, 1000);
  shares.queue_began(b, true);
  shares.charge(a, 10);
  shares.queue_began(a, false);
  EXPECT_EQ(shares.service(a), 10);
  shares.queue_emptied(a);
  shares.queue_began(a, true);
  EXPECT_EQ(shares.service(a), 1000) << "but who comes with new work does";
}

// The same in the scheduler: who was served less is preempted and comes back before who waits, who would go
// first if both had been served alike.
TEST(FairSharing, WhoIsPreemptedComesBackInTurn) {
  SchedulerConfig config = by_priority(config_of(2, 64));
  config.fair_sharing.enabled = true;
  config.prefix_caching = false;
  Loop loop(config, with_blocks(9));
  loop.add(of_tenant(1, "served", 60, 1));
  loop.run();
  loop.add(of_tenant(2, "other", 60, 60));
  loop.add(of_tenant(3, "victim", 20, 60));
  while (loop.busy() && loop.scheduler->num_preemptions() == 0) {
    ASSERT_TRUE(loop.step());
    if (loop.scheduler->num_running() < 2 || loop.scheduler->num_waiting() > 0) continue;
    Request urgent = of_tenant(4, "served", 20, 8);
    urgent.priority = -1;
    loop.add(urgent);
  }
  ASSERT_EQ(loop.last_plan.preempted, std::vector<RequestId>{3});
  do {
    ASSERT_TRUE(loop.step());
  } while (loop.last_plan.new_requests.empty());
  EXPECT_EQ(loop.last_plan.new_requests[0].request.id, 3U);
  loop.run();
}

// Sharing that is switched off by a reload leaves former tenants' requests in the queue, whose turn still
// goes by their service: they are passed over no more often than K times.
TEST(FairSharing, SwitchedOffItLeavesNobodyBehind) {
  for (const int32_t limit : {2, 16}) {
    SchedulerConfig config = config_of(1, 64);
    config.fair_sharing.enabled = true;
    config.max_passed_over = limit;
    Loop loop(config, with_blocks(400));
    loop.add(of_tenant(1, "served much", 2000, 2));
    while (loop.tokens[1].empty()) ASSERT_TRUE(loop.step());
    loop.add(of_tenant(2, "served little", 4, 2));
    loop.add(of_tenant(3, "served much", 4, 2));
    loop.scheduler->set_fair_sharing({});
    int rounds = 0;
    for (RequestId id = 4; loop.tokens[3].empty(); ++id) {
      ASSERT_LT(id, 200U);
      loop.add(of_tenant(id, "", 4, 2));
      loop.add(of_tenant(id + 1000, "", 4, 2));
      for (int i = 0; i < 2; ++i) {
        ASSERT_TRUE(loop.step());
        if (!loop.last_plan.new_requests.empty() && loop.last_plan.new_requests[0].request.id > 3) ++rounds;
      }
    }
    EXPECT_LE(rounds, limit);
  }
}

TEST(FairSharing, BadWeightsAreRefusedByName) {
  fakes::FakeWorker worker({});
  ManualClock clock;
  for (double weight :
       {0.0, -1.0, std::numeric_limits<double>::quiet_NaN(), std::numeric_limits<double>::infinity()}) {
    SchedulerConfig config = config_of(4, 64);
    config.fair_sharing.weights = {{"tenant-x", weight}};
    const auto refused = Scheduler::create(config, worker.capacity()->kv, &clock);
    ASSERT_FALSE(refused.ok());
    EXPECT_NE(refused.status().message().find("tenant-x"), absl::string_view::npos);
  }
}

}  // namespace
}  // namespace omnibus
