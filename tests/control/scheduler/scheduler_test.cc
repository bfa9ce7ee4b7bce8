// Laws of the scheduler, on the fake worker: each request gets exactly its closed-form tokens, whatever the
// batch, the chunks, the memory and the aborts around it; the block ledger balances after every step.
#include "omnibus/control/scheduler/scheduler.h"

#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "fakes/fake_worker.h"

namespace omnibus {
namespace {

using fakes::FakeWorker;
using fakes::FakeWorkerOptions;

struct Loop {
  Loop(SchedulerConfig config, FakeWorkerOptions options) : worker(limits(options, config)) {
    const MemoryPlan plan = *worker.capacity();
    EXPECT_TRUE(worker.allocate_kv(plan.kv).ok());
    EXPECT_TRUE(worker.join({}).ok());
    auto made = Scheduler::create(config, plan.kv, &clock);
    EXPECT_TRUE(made.ok()) << made.status();
    scheduler = std::move(made).value();
  }

  static FakeWorkerOptions limits(FakeWorkerOptions options, const SchedulerConfig& config) {
    options.max_rows = config.max_num_seqs;
    options.max_tokens_per_step = config.max_num_batched_tokens;
    return options;
  }

  ModelRunnerOutput execute(const SchedulerOutput& plan) {
    auto digest = worker.prepare(plan).get();
    EXPECT_TRUE(digest.ok()) << digest.status();
    auto output = worker.commit(plan.id).get();
    EXPECT_TRUE(output.ok()) << output.status();
    return output.ok() ? *output : ModelRunnerOutput{};
  }

  // One step; false when it failed.
  bool step() {
    clock.advance_ns(1000);
    last_plan = scheduler->schedule();
    EXPECT_FALSE(last_plan.rows.empty());
    auto events = scheduler->update_from_output(last_plan, execute(last_plan));
    EXPECT_TRUE(events.ok()) << events.status();
    if (!events.ok()) return false;
    for (auto& event : *events) take(std::move(event));
    EXPECT_TRUE(scheduler->check_integrity().ok()) << scheduler->check_integrity();
    ++steps;
    return !testing::Test::HasFailure();
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

  void run(int limit = 100000) {
    while (scheduler->has_work() && limit-- > 0)
      if (!step()) return;
    EXPECT_FALSE(scheduler->has_work()) << "no progress";
  }

  ManualClock clock;
  FakeWorker worker;
  std::unique_ptr<Scheduler> scheduler;
  SchedulerOutput last_plan;
  std::map<RequestId, std::vector<TokenId>> tokens;
  std::map<RequestId, std::vector<SampledLogprobs>> prompt_logprobs;
  std::map<RequestId, SequenceEvent> ends;
  int steps = 0;
};

Request request_of(RequestId id, size_t prompt_size, int32_t max_tokens, uint64_t seed = 7) {
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
std::pair<std::vector<TokenId>, FinishReason> expected(const Request& r, int32_t max_model_len,
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

SchedulerConfig config_of(int32_t max_seqs, int32_t budget, int32_t max_model_len = 4096) {
  SchedulerConfig c;
  c.max_model_len = max_model_len;
  c.max_num_seqs = max_seqs;
  c.max_num_batched_tokens = budget;
  c.epoch = 1;
  return c;
}

TEST(Scheduler, PromptIsCutIntoChunksAndSamplesOnlyAtItsEnd) {
  Loop loop(config_of(4, 8), {});
  loop.scheduler->add(request_of(1, 20, 2));
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
  loop.scheduler->add(request_of(1, 4, 50));
  ASSERT_TRUE(loop.step());
  loop.scheduler->add(request_of(2, 30, 5));
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
  for (RequestId id = 1; id <= 3; ++id) loop.scheduler->add(request_of(id, 15, 30));
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
    loop.scheduler->add(r);
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
  loop.scheduler->add(r);
  loop.run();
  EXPECT_EQ(loop.tokens[1], out);
  EXPECT_EQ(loop.ends.at(1).finish_reason, FinishReason::kStop);
  EXPECT_EQ(loop.ends.at(1).stop_cause, StopCause());
}

TEST(Scheduler, ContextLengthEndsARequest) {
  Loop loop(config_of(1, 16, 12), {});
  loop.scheduler->add(request_of(1, 5, 100));
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
  loop.scheduler->add(request_of(1, 10, 23));
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
  for (RequestId id = 1; id <= 3; ++id) loop.scheduler->add(request_of(id, 6, 9));
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
  loop.scheduler->add(request_of(1, 6, 9));
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
    loop.scheduler->add(r);
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
  for (RequestId id = 1; id <= 3; ++id) loop.scheduler->add(request_of(id, 6, 9));
  loop.run();
  EXPECT_EQ(loop.ends.at(2).finish_reason, FinishReason::kError);
  EXPECT_EQ(error_detail(loop.ends.at(2).status).type, "server_error");
  EXPECT_EQ(loop.tokens[2].size(), 3U);
  for (RequestId id : {1, 3}) EXPECT_EQ(loop.tokens[id], expected(request_of(id, 6, 9), 4096).first);
}

TEST(Scheduler, RowWithoutACandidateIsTheClientsError) {
  Loop loop(config_of(4, 32), {});
  for (RequestId id = 1; id <= 2; ++id) loop.scheduler->add(request_of(id, 6, 9));
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
  loop.scheduler->add(request_of(1, 6, 9));
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
  Loop loop(config_of(2, 8), {});
  loop.scheduler->add(request_of(1, 14, 3));
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
  Loop loop(config_of(2, 16), options);
  loop.scheduler->add(request_of(1, 15, 30));
  ASSERT_TRUE(loop.step());
  loop.scheduler->add(request_of(2, 20, 9));
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

// The law: 1,500 random requests with random arrivals, aborts, stops, limits and a tiny KV cache.
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
  c.n_requests = 25;
  return c;
}

Request random_request(RequestId id, std::mt19937& rng, const Scheduler& scheduler) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  Request r = request_of(id, static_cast<size_t>(pick(1, 35)), 1, rng());
  auto p = r.sampling();
  p.max_tokens = std::min(pick(1, 60), scheduler.max_output_tokens(r.prompt_token_ids.size()));
  p.min_tokens = pick(0, 1) * pick(0, 10);
  if (pick(0, 1)) p.stop_token_ids = {pick(0, 59)};
  if (pick(0, 1)) r.eos_token_ids = {pick(0, 59)};
  if (pick(0, 3) == 0) p.prompt_logprobs = pick(0, 2);
  if (pick(0, 3) == 0) p.logprobs = pick(0, 2);
  r.params = p;
  return r;
}

TEST(SchedulerProperty, EveryRequestGetsItsClosedFormTokens) {
  int preemptions = 0;
  for (uint32_t seed = 1; seed <= 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const RandomCase c = random_case(seed);
    Loop loop(c.config, c.options);
    std::mt19937 rng(seed * 977);
    std::map<RequestId, Request> requests;
    std::set<RequestId> aborted;
    RequestId next = 1;
    while (next <= static_cast<RequestId>(c.n_requests) || loop.scheduler->has_work()) {
      ASSERT_LT(loop.steps, 20000) << "no progress";
      while (next <= static_cast<RequestId>(c.n_requests) && rng() % 3 == 0) {
        const Request r = random_request(next, rng, *loop.scheduler);
        if (loop.scheduler->can_serve(static_cast<int64_t>(r.prompt_token_ids.size())).ok()) {
          requests[next] = r;
          loop.scheduler->add(r);
        }
        ++next;
      }
      if (rng() % 20 == 0 && next > 1) {
        const RequestId id = 1 + rng() % (next - 1);
        if (auto e = loop.scheduler->abort(id, FinishReason::kAbort, absl::CancelledError("gone"))) {
          loop.take(std::move(*e));
          aborted.insert(id);
        }
      }
      if (!loop.scheduler->has_work()) continue;
      ASSERT_TRUE(loop.step());
    }
    EXPECT_EQ(loop.scheduler->kv().used_blocks(), 0);
    ASSERT_EQ(loop.ends.size(), requests.size()) << "one terminal state each";
    for (const auto& [id, r] : requests) {
      const auto [tokens, reason] = expected(r, c.config.max_model_len, c.options.vocab_size);
      const auto& got = loop.tokens[id];
      if (aborted.count(id) != 0) {
        ASSERT_LE(got.size(), tokens.size());
        ASSERT_TRUE(std::equal(got.begin(), got.end(), tokens.begin())) << "request " << id;
        continue;
      }
      ASSERT_EQ(got, tokens) << "request " << id;
      ASSERT_EQ(loop.ends.at(id).finish_reason, reason) << "request " << id;
      if (!r.sampling().prompt_logprobs) continue;
      const auto& prompt = r.prompt_token_ids;
      const auto& logprobs = loop.prompt_logprobs[id];
      ASSERT_EQ(logprobs.size(), prompt.size() - 1) << "request " << id;
      for (size_t p = 1; p < prompt.size(); ++p) {
        ASSERT_EQ(logprobs[p - 1].sampled.id, prompt[p]);
        ASSERT_EQ(logprobs[p - 1].sampled.logprob,
                  fakes::fake_logprob(std::span(prompt).first(p), prompt[p]));
      }
    }
    preemptions += static_cast<int>(loop.scheduler->num_preemptions());
  }
  EXPECT_GT(preemptions, 100) << "the cases must preempt";
}

// Law 2: chunks of 16, 64 or 512 tokens, memory plenty or scarce: the same tokens.
TEST(SchedulerProperty, ChunkSizeAndPreemptionDoNotChangeTokens) {
  std::map<RequestId, std::vector<TokenId>> reference;
  for (int32_t blocks : {200, 14}) {
    for (int32_t chunk : {512, 64, 16}) {
      FakeWorkerOptions options;
      options.num_blocks = blocks;
      Loop loop(config_of(8, chunk), options);
      for (RequestId id = 1; id <= 12; ++id) loop.scheduler->add(request_of(id, 20 + id * 11, 40));
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
  for (RequestId id = 1; id <= 40; ++id)
    loop.scheduler->add(request_of(id, 1 + id * 17 % 60, 1 + id * 13 % 70));
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
