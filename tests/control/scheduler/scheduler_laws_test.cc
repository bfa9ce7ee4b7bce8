// Laws of the scheduler, on the fake worker: each request gets exactly its closed-form tokens, whatever the
// batch, the chunks, the memory, the steps in flight, the prefix cache, the policy and the aborts around it;
// the ledger balances after every call.
#include <algorithm>
#include <array>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "scheduler_loop.h"

namespace omnibus {
namespace {

using fakes::FakeWorkerOptions;

// The law: 3,000 random requests with random arrivals, aborts, stops, limits, shared prefixes and a tiny KV
// cache.
struct RandomCase {
  uint32_t seed = 0;
  SchedulerConfig config;
  FakeWorkerOptions options;
  int n_requests = 0;
};

RandomCase random_case(uint32_t seed) {
  std::mt19937 rng(seed);
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  RandomCase c;
  c.seed = seed;
  c.options.num_blocks = pick(6, 40);
  if (pick(0, 2) == 0) c.options.group_bytes = {4096, 2048};
  if (pick(0, 3) == 0) c.options.group_bytes = {4096, 4096};
  c.options.chunk_alignment = pick(0, 2) == 0 ? 4 : 1;
  c.options.vocab_size = 60;
  const int stepping = pick(0, 3);
  if (stepping == 0) c.options.tokens_per_step = {1, 3, 1};
  if (stepping == 1) c.options.n_drafts = pick(1, 4);
  const int seqs = pick(1, 12);
  c.config = config_of(seqs, seqs + c.options.chunk_alignment - 1 + pick(0, 60), pick(40, 120));
  c.config.max_steps_in_flight = pick(1, 3);
  c.config.from_step = stepping != 0 && pick(0, 1) == 0;
  c.config.prefix_caching = pick(0, 3) != 0;
  c.config.policy = pick(0, 1) == 0 ? SchedulingPolicy::kFcfs : SchedulingPolicy::kPriority;
  c.config.fair_sharing = {.enabled = pick(0, 1) == 0, .weights = {{"a", 3}, {"b", 0.5}}};
  c.config.max_passed_over = pick(1, 16);
  c.n_requests = 25;
  return c;
}

// Prompts begin with one of three texts, so that prefixes are shared, and by tenants that must not share
// them.
Request random_request(RequestId id, std::mt19937& rng, const Scheduler& scheduler) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  Request r = request_of(id, static_cast<size_t>(pick(1, 50)), 1, rng());
  const auto shared = std::min<size_t>(r.prompt_token_ids.size(), static_cast<size_t>(pick(0, 50)));
  const int text = pick(1, 3);
  for (size_t i = 0; i < shared; ++i) r.prompt_token_ids[i] = static_cast<TokenId>(i * 5) % 60 + text;
  r.tenant = std::string(1, static_cast<char>('a' + pick(0, 2)));
  r.tenant_salt = pick(0, 3) == 0 ? r.tenant : "all";
  if (pick(0, 5) == 0) r.adapter = AdapterRef{"lora", std::to_string(pick(1, 2))};
  r.priority = pick(-1, 2);
  auto p = r.sampling();
  p.max_tokens = std::min(pick(1, 60), scheduler.max_output_tokens(r.prompt_token_ids.size()));
  p.min_tokens = pick(0, 1) * pick(0, 10);
  if (pick(0, 1)) p.stop_token_ids = {pick(0, 59)};
  if (pick(0, 1)) r.eos_token_ids = {pick(0, 59)};
  if (pick(0, 3) == 0) p.prompt_logprobs = pick(0, 2);
  if (pick(0, 3) == 0) p.logprobs = pick(0, 2);
  r.params = p;
  if (pick(0, 1)) r.prefix_keys = scheduler.make_prefix_keys(r);
  return r;
}

// Arrivals, aborts, plans, executions and updates in random order.
struct RandomRun {
  explicit RandomRun(const RandomCase& random_case)
      : c(random_case), loop(c.config, c.options), rng(c.seed * 977) {}

  bool more_to_come() const { return next <= static_cast<RequestId>(c.n_requests); }
  void run() {
    for (int turns = 0; more_to_come() || loop.busy(); ++turns) {
      ASSERT_LT(turns, 100000) << "no progress";
      if (cost_rng() % 8 == 0) change_step_target();
      arrive_or_leave();
      const auto in_flight = static_cast<int32_t>(loop.planned.size() + loop.executed.size());
      switch (rng() % 4) {
        case 0:
        case 1:
          if (in_flight < c.config.max_steps_in_flight) loop.plan_one();
          break;
        case 2:
          if (!loop.planned.empty()) loop.execute_one();
          break;
        default:
          if (!loop.executed.empty()) loop.update_one();
      }
      ASSERT_FALSE(testing::Test::HasFailure());
    }
  }
  // Costs that change under way and fit nothing: no time limit changes an answer or stops anything.
  void change_step_target() {
    const auto ns = [this] { return std::array{0.0, 1.0, 1e5, 1e9}[cost_rng() % 4]; };
    const StepCost cost{ns(), ns(), ns()};
    loop.scheduler->set_step_target(cost,
                                    std::array<int64_t, 4>{0, 1, 5'000'000, 200'000'000}[cost_rng() % 4]);
  }
  void arrive_or_leave() {
    while (more_to_come() && rng() % 12 == 0) {
      const Request r = random_request(next, rng, *loop.scheduler);
      if (loop.scheduler->can_serve(static_cast<int64_t>(r.prompt_token_ids.size())).ok()) {
        requests[next] = r;
        loop.add(r);
      }
      ++next;
    }
    if (next == 1 || rng() % 80 != 0) return;
    const RequestId id = 1 + rng() % (next - 1);
    auto event = loop.scheduler->abort(id, FinishReason::kAbort, absl::CancelledError("gone"));
    if (!event) return;
    loop.take(std::move(*event));
    aborted.insert(id);
    loop.check();
  }
  void check_outcome() const {
    EXPECT_EQ(loop.scheduler->kv().used_blocks(), 0);
    ASSERT_EQ(loop.ends.size(), requests.size()) << "one terminal state each";
    for (const auto& [id, r] : requests) {
      const auto [tokens, reason] = expected(r, c.config.max_model_len, c.options.vocab_size);
      const auto it = loop.tokens.find(id);
      const std::vector<TokenId> got = it == loop.tokens.end() ? std::vector<TokenId>() : it->second;
      if (aborted.count(id) != 0) {
        ASSERT_LE(got.size(), tokens.size());
        ASSERT_TRUE(std::equal(got.begin(), got.end(), tokens.begin())) << "request " << id;
        continue;
      }
      ASSERT_EQ(got, tokens) << "request " << id;
      ASSERT_EQ(loop.ends.at(id).finish_reason, reason) << "request " << id;
      check_prompt_logprobs(id, r);
    }
  }
  void check_prompt_logprobs(RequestId id, const Request& r) const {
    const auto& prompt = r.prompt_token_ids;
    if (!r.sampling().prompt_logprobs || prompt.size() < 2) return;
    EXPECT_EQ(loop.ends.at(id).timeline.cached_tokens, 0);
    const auto& logprobs = loop.prompt_logprobs.at(id);
    ASSERT_EQ(logprobs.size(), prompt.size() - 1) << "request " << id;
    for (size_t p = 1; p < prompt.size(); ++p) {
      ASSERT_EQ(logprobs[p - 1].sampled.id, prompt[p]);
      ASSERT_EQ(logprobs[p - 1].sampled.logprob, fakes::fake_logprob(std::span(prompt).first(p), prompt[p]));
    }
  }

  const RandomCase& c;
  Loop loop;
  std::mt19937 rng;
  std::mt19937 cost_rng{c.seed};
  std::map<RequestId, Request> requests;
  std::set<RequestId> aborted;
  RequestId next = 1;
};

TEST(SchedulerProperty, EveryRequestGetsItsClosedFormTokens) {
  int64_t preemptions = 0;
  int64_t hits = 0;
  int from_step_rows = 0;
  int32_t most_in_flight = 0;
  for (uint32_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomCase c = random_case(seed);
    RandomRun run(c);
    run.run();
    if (!HasFatalFailure()) run.check_outcome();
    if (HasFailure()) return;
    preemptions += run.loop.scheduler->num_preemptions();
    hits += run.loop.scheduler->prefix_cache_hits();
    from_step_rows += run.loop.from_step_rows;
    most_in_flight = std::max(most_in_flight, run.loop.most_in_flight);
    EXPECT_EQ(run.loop.scheduler->prefix_cache_queries() > 0, c.config.prefix_caching);
  }
  EXPECT_GT(preemptions, 100) << "the cases must preempt";
  EXPECT_GT(hits, 1000) << "and share prefixes";
  EXPECT_GT(from_step_rows, 1000) << "and plan ahead";
  EXPECT_EQ(most_in_flight, 3);
}

// Law 2: chunks of 16, 64 or 512 tokens, memory plenty or scarce: the same tokens.
TEST(SchedulerProperty, ChunkSizeAndPreemptionDoNotChangeTokens) {
  std::map<RequestId, std::vector<TokenId>> reference;
  for (int32_t blocks : {200, 14}) {
    for (int32_t chunk : {512, 64, 16}) {
      FakeWorkerOptions options;
      options.num_blocks = blocks;
      Loop loop(config_of(8, chunk), options);
      for (RequestId id = 1; id <= 12; ++id) loop.add(request_of(id, 20 + id * 11, 40));
      loop.run();
      if (reference.empty()) reference = loop.tokens;
      EXPECT_EQ(loop.tokens, reference) << "chunk " << chunk << ", blocks " << blocks;
      EXPECT_EQ(loop.scheduler->num_preemptions() > 0, blocks == 14);
    }
  }
  for (const auto& [id, tokens] : reference)
    EXPECT_EQ(tokens, expected(request_of(id, 20 + id * 11, 40), 4096).first);
}

// The oldest running request computes something in every step, and nothing waiting is overtaken.
TEST(SchedulerProperty, OldestAdvancesAndQueueKeepsItsOrder) {
  FakeWorkerOptions options;
  options.num_blocks = 9;
  Loop loop(config_of(6, 24), options);
  for (RequestId id = 1; id <= 40; ++id) loop.add(request_of(id, 1 + id * 17 % 60, 1 + id * 13 % 70));
  RequestId newest = 0;
  while (loop.scheduler->has_work()) {
    const RequestId oldest = loop.scheduler->ids().front();
    ASSERT_TRUE(loop.step());
    const auto& rows = loop.last_plan.rows;
    ASSERT_TRUE(std::any_of(rows.begin(), rows.end(), [&](const auto& row) { return row.id == oldest; }));
    for (const auto& data : loop.last_plan.new_requests) {
      if (!data.output_token_ids.empty() || data.request.id <= newest) continue;
      ASSERT_EQ(data.request.id, newest + 1) << "admitted out of order";
      newest = data.request.id;
    }
  }
  EXPECT_GT(loop.scheduler->num_preemptions(), 0);
}

}  // namespace
}  // namespace omnibus
