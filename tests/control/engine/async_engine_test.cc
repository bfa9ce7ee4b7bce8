#include "omnibus/control/engine/async_engine.h"

#include <atomic>
#include <future>
#include <mutex>
#include <set>
#include <stdexcept>
#include <thread>

#include "engine_fixture.h"

namespace omnibus {
namespace {

using fakes::FakeWorkerOptions;

// A worker that stands still until it is let go.
struct Gate {
  std::function<Status(const SchedulerOutput&)> hook() {
    return [this](const SchedulerOutput&) {
      std::unique_lock lock(mutex);
      arrived = true;
      changed.notify_all();
      changed.wait(lock, [&] { return open; });
      return absl::OkStatus();
    };
  }
  void close() {
    std::lock_guard lock(mutex);
    open = false;
    arrived = false;
  }
  void release() {
    std::lock_guard lock(mutex);
    open = true;
    changed.notify_all();
  }
  void wait_arrived() {
    std::unique_lock lock(mutex);
    changed.wait(lock, [&] { return arrived; });
  }
  std::mutex mutex;
  std::condition_variable changed;
  bool open = true;  // the warm-up passes
  bool arrived = false;
};

TEST(AsyncEngine, ChoicesGetTheirOwnClosedForms) {
  EngineFixture f;
  ASSERT_TRUE(f.status.ok()) << f.status;
  GenerateRequest r = generate("hello there", 30);
  r.n = 3;
  const auto id = f.engine->submit(r, f.collector.sink());
  ASSERT_TRUE(id.ok()) << id.status();
  ASSERT_TRUE(f.collector.wait(3));
  for (int32_t i = 0; i < 3; ++i) {
    const ChoiceResult got = f.collector.get(*id, i);
    const auto want = expected_tokens(r, i, *f.tokenizer, 256);
    EXPECT_EQ(got.tokens, want);
    EXPECT_EQ(got.text, f.tokenizer->decode(want, true));
    EXPECT_EQ(got.last.usage.prompt_tokens, 11);
    EXPECT_TRUE(got.last.status.ok());
  }
  EXPECT_NE(f.collector.get(*id, 0).tokens, f.collector.get(*id, 1).tokens);
}

TEST(AsyncEngine, ReadyOnlyAfterRealSteps) {
  EngineFixture f;
  ASSERT_TRUE(f.status.ok());
  const EngineHealth health = f.engine->health();
  EXPECT_TRUE(health.ready()) << health.reason;
  EXPECT_EQ(health.steps, 2U) << "a prefill and a decode";
  EXPECT_EQ(health.total_blocks, 64);
  EXPECT_EQ(health.used_blocks, 0);
}

// What a worker binds to the thread that drives it (cores) must not reach the threads of the front end.
TEST(AsyncEngine, EveryStepRunsOnTheEngineThread) {
  std::mutex mutex;
  std::set<std::thread::id> threads;
  FakeWorkerOptions options;
  options.before_commit = [&](const SchedulerOutput&) -> Status {
    std::lock_guard lock(mutex);
    threads.insert(std::this_thread::get_id());
    return absl::OkStatus();
  };
  EngineFixture f(options);
  ASSERT_TRUE(f.status.ok());
  ASSERT_TRUE(f.engine->submit(generate("x", 3), f.collector.sink()).ok());
  ASSERT_TRUE(f.collector.wait(1));
  std::lock_guard lock(mutex);
  EXPECT_EQ(threads.size(), 1U);
  EXPECT_EQ(threads.count(std::this_thread::get_id()), 0U);
}

TEST(AsyncEngine, StartFailsWhenTheWarmUpDoes) {
  FakeWorkerOptions options;
  options.is_nan = [](const Request&, size_t) { return true; };
  EngineFixture f(options);
  EXPECT_EQ(f.status.code(), StatusCode::kInternal);
  EngineConfig narrow = EngineFixture::default_config();
  narrow.max_num_batched_tokens = 4;
  EngineFixture g({}, narrow);
  EXPECT_NE(status_message(g.status).find("max_num_batched_tokens"), std::string::npos);
}

TEST(AsyncEngine, RefusalsNameTheFieldAndTheNumbers) {
  FakeWorkerOptions options;
  options.num_blocks = 10;  // 160 tokens < max_model_len
  EngineFixture f(options);
  ASSERT_TRUE(f.status.ok());
  const auto refused = [&](GenerateRequest r) {
    const auto id = f.engine->submit(std::move(r), f.collector.sink());
    EXPECT_FALSE(id.ok());
    return id.status();
  };
  EXPECT_EQ(error_detail(refused(generate("", 5))).param, "prompt");

  const Status too_long = refused(generate(std::string(300, 'a'), 5));
  EXPECT_EQ(error_detail(too_long).http, 400);
  EXPECT_EQ(error_detail(too_long).code, "context_length_exceeded");
  EXPECT_EQ(error_detail(too_long).param, "prompt");
  EXPECT_NE(status_message(too_long).find("256"), std::string::npos);
  EXPECT_NE(status_message(too_long).find("300"), std::string::npos);

  const Status no_kv = refused(generate(std::string(161, 'a'), 5));
  EXPECT_EQ(error_detail(no_kv).http, 400);
  EXPECT_NE(status_message(no_kv).find("160"), std::string::npos);
  EXPECT_NE(status_message(no_kv).find("161"), std::string::npos);

  GenerateRequest r = generate("ab", 5);
  r.prompt_token_ids.push_back(f.tokenizer->vocab_size());
  EXPECT_EQ(error_detail(refused(r)).param, "prompt");
  r = generate("ab", 5);
  r.prompt_token_ids[0] = -1;
  EXPECT_EQ(error_detail(refused(r)).param, "prompt");
  r = generate("ab", 5);
  r.sampling.stop_token_ids = {1 << 30};
  EXPECT_EQ(error_detail(refused(r)).param, "stop_token_ids");
  r = generate("ab", 5);
  r.sampling.logit_bias = {{-5, 1.0F}};
  EXPECT_EQ(error_detail(refused(r)).param, "logit_bias");
  r = generate("ab", 5);
  r.sampling.allowed_token_ids = {99999};
  EXPECT_EQ(error_detail(refused(r)).param, "allowed_token_ids");
  // Until min_tokens nothing that ends the answer may be drawn.
  const TokenId eos = f.tokenizer->spec().end_of_generation.at(0);
  r = generate("ab", 5);
  r.sampling.allowed_token_ids = {eos, 'q'};
  r.sampling.stop_token_ids = {'q'};
  r.sampling.min_tokens = 1;
  EXPECT_EQ(error_detail(refused(r)).param, "allowed_token_ids");
  EXPECT_EQ(error_detail(refused(r)).http, 400);
  for (const int32_t way : {0, 1, 2}) {
    GenerateRequest fine = r;
    if (way == 0) fine.sampling.min_tokens = 0;
    if (way == 1) fine.sampling.ignore_eos = true;
    if (way == 2) fine.sampling.stop_token_ids.clear();
    EXPECT_TRUE(f.engine->submit(fine, f.collector.sink()).ok()) << way;
  }
  ASSERT_TRUE(f.collector.wait(3));
  r = generate("ab", 5);
  r.sampling.stop = {""};
  EXPECT_EQ(error_detail(refused(r)).param, "stop");
  r.sampling.stop = {"\xFF"};
  EXPECT_EQ(error_detail(refused(r)).param, "stop");
  r = generate("ab", 5);
  r.n = 0;
  EXPECT_EQ(error_detail(refused(r)).param, "n");
  r.n = 100000;
  EXPECT_EQ(error_detail(refused(r)).param, "n");
  EXPECT_TRUE(f.engine->health().ready());
}

TEST(AsyncEngine, MaxTokensIsClampedToTheRoom) {
  FakeWorkerOptions options;
  options.num_blocks = 10;
  options.token = [](const Request&, std::span<const TokenId>) { return TokenId{'x'}; };
  EngineFixture f(options);
  for (int32_t max_tokens : {0, -1, 100000}) {
    const auto id = f.engine->submit(generate(std::string(100, 'a'), max_tokens), f.collector.sink());
    ASSERT_TRUE(id.ok());
    ASSERT_TRUE(f.collector.wait(static_cast<int>(*id)));
    EXPECT_EQ(f.collector.get(*id).tokens.size(), 61U) << "160 slots - 100, and the last is only sampled";
    EXPECT_EQ(f.collector.get(*id).last.finish_reason, FinishReason::kLength);
  }
}

TEST(AsyncEngine, StopStringEndsTheRequestInTheCore) {
  const std::string script = "one two STOP three four five six seven eight nine ten";
  FakeWorkerOptions options;
  options.token = [script](const Request& r, std::span<const TokenId> known) {
    return static_cast<TokenId>(script[(known.size() - r.prompt_token_ids.size()) % script.size()]);
  };
  // Step 30 waits for the client's end, so that the core must have heard of it in step 31.
  std::promise<void> ended;
  options.before_commit = [&, end = ended.get_future().share()](const SchedulerOutput& plan) {
    if (plan.id.seq == 30) end.wait();
    return absl::OkStatus();
  };
  EngineFixture f(options);
  GenerateRequest r = generate("p", 200);
  r.sampling.stop = {"nope", "STOP"};
  r.sampling.logprobs = 0;
  const auto id = f.engine->submit(r, f.collector.sink());
  ASSERT_TRUE(f.collector.wait(1));
  ended.set_value();
  const ChoiceResult got = f.collector.get(*id);
  EXPECT_EQ(got.text, "one two ");
  EXPECT_EQ(got.tokens.size(), 12U);
  EXPECT_EQ(got.logprobs.size(), 8U);
  EXPECT_EQ(got.last.finish_reason, FinishReason::kStop);
  EXPECT_EQ(got.last.stop_cause, StopCause(std::string("STOP")));
  ASSERT_TRUE(f.engine->drain(std::chrono::seconds(10)));
  while (f.engine->health().running != 0) std::this_thread::yield();
  EXPECT_LE(f.engine->health().steps, 30U);
  EXPECT_EQ(f.engine->health().used_blocks, 0);
}

TEST(AsyncEngine, TimelinePhasesSumToEndToEnd) {
  EngineFixture f;
  for (int i = 0; i < 20; ++i)
    ASSERT_TRUE(f.engine->submit(generate("time", 10, i), f.collector.sink()).ok());
  ASSERT_TRUE(f.collector.wait(20));
  for (const auto& [key, result] : f.collector.all()) {
    const RequestTimeline& t = result.last.timeline;
    const int64_t queued = t.first_scheduled_ns - t.arrival_ns;
    const int64_t prefill = t.first_token_ns - t.first_scheduled_ns;
    const int64_t decode = t.finished_ns - t.first_token_ns;
    EXPECT_GE(queued, 0);
    EXPECT_GE(prefill, 0);
    EXPECT_GE(decode, 0);
    EXPECT_EQ(queued + prefill + decode, t.finished_ns - t.arrival_ns);
    EXPECT_GT(t.arrival_ns, 0);
  }
}

TEST(AsyncEngine, NumericErrorFailsOneRequestAlone) {
  FakeWorkerOptions options;
  options.is_nan = [](const Request& r, size_t n) { return r.prompt_token_ids[0] == 'b' && n == 2; };
  EngineFixture f(options);
  std::vector<GenerateRequest> requests = {generate("a", 20), generate("b", 20), generate("c", 20)};
  std::vector<RequestId> ids;
  for (auto& r : requests) {
    r.sampling.ignore_eos = true;
    ids.push_back(*f.engine->submit(r, f.collector.sink()));
  }
  ASSERT_TRUE(f.collector.wait(3));
  EXPECT_EQ(f.collector.get(ids[1]).last.finish_reason, FinishReason::kError);
  EXPECT_EQ(error_detail(f.collector.get(ids[1]).last.status).type, "server_error");
  for (int i : {0, 2})
    EXPECT_EQ(f.collector.get(ids[i]).tokens, expected_tokens(requests[i], 0, *f.tokenizer, 256));
  EXPECT_TRUE(f.engine->health().ready());
}

void expect_failed_engine(EngineFixture& f) {
  ASSERT_TRUE(f.collector.wait(5));
  for (const auto& [key, result] : f.collector.all()) {
    EXPECT_EQ(result.ends, 1);
    EXPECT_EQ(result.last.finish_reason, FinishReason::kError);
    EXPECT_EQ(error_detail(result.last.status).http, 500);
  }
  EXPECT_FALSE(f.engine->health().ready());
  EXPECT_EQ(f.engine->health().trouble, EngineTrouble::kFailed);
  const auto late = f.engine->submit(generate("late", 5), f.collector.sink());
  EXPECT_EQ(error_detail(late.status()).http, 503);
  EXPECT_EQ(f.engine->health().used_blocks, 0);
}

TEST(AsyncEngine, WorkerFailureEndsAllRequestsAndTheEngine) {
  for (bool throws : {false, true}) {
    FakeWorkerOptions options;
    options.before_commit = [throws](const SchedulerOutput& plan) -> Status {
      if (plan.id.seq < 5) return absl::OkStatus();
      if (throws) throw std::runtime_error("segment 7");
      return absl::UnavailableError("lost");
    };
    EngineFixture f(options);
    GenerateRequest r = generate("x", 100);
    r.sampling.ignore_eos = true;
    r.n = 5;
    ASSERT_TRUE(f.engine->submit(r, f.collector.sink()).ok());
    expect_failed_engine(f);
    EXPECT_NE(f.engine->health().reason.find(throws ? "segment 7" : "lost"), std::string::npos);
  }
}

TEST(AsyncEngine, TokenOutsideTheVocabularyIsAWorkerFailure) {
  FakeWorkerOptions options;
  options.token = [](const Request& r, std::span<const TokenId>) {
    return r.id == 0 ? TokenId{1} : TokenId{1 << 20};
  };
  EngineFixture f(options);
  GenerateRequest r = generate("x", 100);
  r.n = 5;
  ASSERT_TRUE(f.engine->submit(r, f.collector.sink()).ok());
  expect_failed_engine(f);
}

TEST(AsyncEngine, CancelFreesEveryChoiceWaitingOrRunning) {
  Gate gate;
  FakeWorkerOptions options;
  options.before_commit = gate.hook();
  EngineConfig config = EngineFixture::default_config();
  config.max_num_seqs = 2;
  EngineFixture f(options, config);
  gate.close();
  GenerateRequest r = generate("x", 200);
  r.n = 4;  // two run, two wait
  r.sampling.ignore_eos = true;
  const auto id = f.engine->submit(r, f.collector.sink());
  gate.wait_arrived();
  f.engine->cancel(*id);
  f.engine->cancel(*id);
  f.engine->cancel(12345);
  gate.release();
  ASSERT_TRUE(f.collector.wait(4));
  for (int32_t i = 0; i < 4; ++i) {
    EXPECT_EQ(f.collector.get(*id, i).last.finish_reason, FinishReason::kAbort);
    EXPECT_LE(f.collector.get(*id, i).tokens.size(), 1U) << "gone after the step in flight";
  }
  EXPECT_TRUE(f.engine->drain(std::chrono::seconds(10)));
}

TEST(AsyncEngine, FullQueueIs429WithRetryAfter) {
  Gate gate;
  FakeWorkerOptions options;
  options.before_commit = gate.hook();
  EngineConfig config = EngineFixture::default_config();
  config.max_num_seqs = 2;
  config.max_waiting_requests = 3;
  EngineFixture f(options, config);
  gate.close();
  for (int i = 0; i < 5; ++i)
    ASSERT_TRUE(f.engine->submit(generate("x", 3, i), f.collector.sink()).ok()) << i;
  const auto refused = f.engine->submit(generate("x", 3), f.collector.sink());
  EXPECT_EQ(error_detail(refused.status()).http, 429);
  EXPECT_GE(error_detail(refused.status()).retry_after_ms, 1000);
  gate.release();
  ASSERT_TRUE(f.collector.wait(5));
  EXPECT_TRUE(f.engine->submit(generate("x", 3), f.collector.sink()).ok());
  ASSERT_TRUE(f.collector.wait(6));
}

TEST(AsyncEngine, WaitingPromptTokensAreBounded) {
  Gate gate;
  FakeWorkerOptions options;
  options.num_blocks = 4;  // 64 tokens: at most 320 prompt tokens open
  options.before_commit = gate.hook();
  EngineFixture f(options);
  gate.close();
  for (int i = 0; i < 6; ++i)
    ASSERT_TRUE(f.engine->submit(generate(std::string(50, 'a'), 1), f.collector.sink()).ok());
  EXPECT_EQ(
      error_detail(f.engine->submit(generate(std::string(50, 'a'), 1), f.collector.sink()).status()).http,
      429);
  EXPECT_TRUE(f.engine->submit(generate("short", 1), f.collector.sink()).ok());
  gate.release();
  ASSERT_TRUE(f.collector.wait(7));
}

TEST(AsyncEngine, DrainRefusesNewWorkAndWaitsForOld) {
  EngineFixture f;
  GenerateRequest r = generate("x", 100);
  r.sampling.ignore_eos = true;
  const auto id = f.engine->submit(r, f.collector.sink());
  EXPECT_TRUE(f.engine->drain(std::chrono::seconds(20)));
  EXPECT_EQ(f.collector.get(*id).tokens.size(), 100U);
  const Status refused = f.engine->submit(r, f.collector.sink()).status();
  EXPECT_EQ(error_detail(refused).http, 503);
  EXPECT_GT(error_detail(refused).retry_after_ms, 0);
  EXPECT_TRUE(f.engine->health().draining);
  EXPECT_EQ(f.engine->health().reason, "draining");
}

TEST(AsyncEngine, DrainAbortsTheRestAtItsLimit) {
  Gate gate;
  FakeWorkerOptions options;
  options.before_commit = gate.hook();
  EngineFixture f(options);
  gate.close();
  const auto id = f.engine->submit(generate("x", 100), f.collector.sink());
  gate.wait_arrived();
  EXPECT_FALSE(f.engine->drain(std::chrono::milliseconds(1)));
  gate.release();
  ASSERT_TRUE(f.collector.wait(1));
  EXPECT_EQ(f.collector.get(*id).last.finish_reason, FinishReason::kAbort);
  EXPECT_EQ(error_detail(f.collector.get(*id).last.status).http, 503);
}

TEST(AsyncEngine, DestructionEndsWhatIsOpen) {
  EngineFixture f;
  GenerateRequest r = generate("x", 0);
  r.sampling.ignore_eos = true;
  r.n = 30;
  const auto id = f.engine->submit(r, f.collector.sink());
  ASSERT_TRUE(f.collector.wait_updates(3));
  f.engine.reset();
  for (int32_t i = 0; i < 30; ++i) EXPECT_EQ(f.collector.get(*id, i).ends, 1) << i;
}

TEST(AsyncEngine, StandingSinkNeverStopsTheEngine) {
  EngineConfig config = EngineFixture::default_config();
  config.text_threads = 2;
  EngineFixture f({}, config);
  std::promise<void> let_go;
  std::shared_future<void> gone = let_go.get_future().share();
  GenerateRequest r = generate("x", 150);
  r.sampling.ignore_eos = true;
  std::atomic<int> slow_ends{0};
  const auto slow = f.engine->submit(r, [&](RequestOutput out) {
    gone.wait();
    if (out.finish_reason) ++slow_ends;
  });
  ASSERT_TRUE(slow.ok());
  const auto quick = f.engine->submit(r, f.collector.sink());  // the next id: the other thread
  EXPECT_TRUE(f.collector.wait(1));
  EXPECT_EQ(f.collector.get(*quick).tokens.size(), 150U);
  while (f.engine->health().running != 0) std::this_thread::yield();
  EXPECT_EQ(slow_ends, 0) << "the core is done though nothing was taken";
  let_go.set_value();
  EXPECT_TRUE(f.engine->drain(std::chrono::seconds(10)));
  EXPECT_EQ(slow_ends, 1);
}

TEST(AsyncEngine, ThrowingSinkHurtsNobody) {
  EngineFixture f;
  ASSERT_TRUE(
      f.engine->submit(generate("x", 5), [](RequestOutput) { throw std::runtime_error("sink"); }).ok());
  ASSERT_TRUE(f.engine->submit(generate("y", 5), f.collector.sink()).ok());
  EXPECT_TRUE(f.collector.wait(1));
  EXPECT_TRUE(f.engine->drain(std::chrono::seconds(10)));
}

// Time that tests move while threads read it.
class SharedClock final : public Clock {
 public:
  MonotonicNs now_ns() const override { return now; }
  std::atomic<MonotonicNs> now{1};
};

TEST(AsyncEngine, StandingStepIsReportedAsStalled) {
  Gate gate;
  FakeWorkerOptions options;
  options.before_commit = gate.hook();
  EngineConfig config = EngineFixture::default_config();
  config.step_timeout_s = 0.05;
  EngineFixture f(options, config);
  ASSERT_TRUE(f.status.ok()) << f.status;
  EXPECT_TRUE(f.engine->health().ready());
  gate.close();
  ASSERT_TRUE(f.engine->submit(generate("x", 2), f.collector.sink()).ok());
  gate.wait_arrived();
  const auto give_up = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (f.engine->health().live() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_EQ(f.engine->health().reason, "stalled");
  EXPECT_FALSE(f.engine->health().ready());
  const Status refused = f.engine->submit(generate("x", 2), f.collector.sink()).status();
  EXPECT_EQ(error_detail(refused).http, 503);
  EXPECT_GT(error_detail(refused).retry_after_ms, 0);
  gate.release();
  ASSERT_TRUE(f.collector.wait(1)) << "a late step is still taken in";
  while (!f.engine->health().live() && std::chrono::steady_clock::now() < give_up) std::this_thread::yield();
  EXPECT_TRUE(f.engine->health().ready());
}

TEST(AsyncEngine, DeadlineEndsARequest) {
  Gate gate;
  FakeWorkerOptions options;
  options.before_commit = gate.hook();
  SharedClock clock;
  EngineFixture f(options, EngineFixture::default_config(), &clock);
  gate.close();
  GenerateRequest r = generate("x", 100);
  r.sampling.ignore_eos = true;
  r.deadline = clock.now + 1000;
  const auto id = f.engine->submit(r, f.collector.sink());
  gate.wait_arrived();
  clock.now += 2000;
  gate.release();
  ASSERT_TRUE(f.collector.wait(1));
  EXPECT_EQ(error_detail(f.collector.get(*id).last.status).http, 504);
}

}  // namespace
}  // namespace omnibus
