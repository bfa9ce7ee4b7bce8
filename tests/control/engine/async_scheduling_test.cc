// The engine with two steps in flight: what ends a request while its next token is already being computed.
// That answers are the same as without is EngineProperty's.
#include <atomic>
#include <future>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "engine_fixture.h"

namespace omnibus {
namespace {

using fakes::FakeWorkerOptions;

constexpr auto kHang = std::chrono::seconds(20);

EngineConfig async_config() {
  EngineConfig config = EngineFixture::default_config();
  config.async_scheduling = true;
  return config;
}

bool takes_from_step(const SchedulerOutput& plan) {
  for (const ScheduledRow& row : plan.rows)
    if (std::holds_alternative<FromStep>(row.source)) return true;
  return false;
}

GenerateRequest endless(std::string_view prompt, int32_t max_tokens) {
  GenerateRequest r = generate(prompt, max_tokens);
  r.sampling.ignore_eos = true;
  return r;
}

TEST(AsyncScheduling, NextStepTakesItsInputFromTheOneThatRuns) {
  std::atomic<int> ahead{0};
  FakeWorkerOptions options;
  options.before_commit = [&](const SchedulerOutput& plan) {
    if (takes_from_step(plan)) ++ahead;
    return absl::OkStatus();
  };
  EngineFixture f(options, async_config());
  ASSERT_TRUE(f.status.ok()) << f.status;
  const GenerateRequest r = endless("hello", 40);
  const auto id = f.engine->submit(r, f.collector.sink());
  ASSERT_TRUE(f.collector.wait(1));
  EXPECT_EQ(f.collector.get(*id).tokens, expected_tokens(r, 0, *f.tokenizer, 256));
  EXPECT_GE(ahead, 39) << "every decode of a request that runs alone";
}

TEST(AsyncScheduling, NeedsAnExecutorThatTakesTwoSteps) {
  const auto tokenizer = fakes::make_piece_tokenizer({});
  MetricsRegistry metrics;
  const SteadyClock clock;
  const auto engine = AsyncEngine::start(
      async_config(), make_uniproc_executor(std::make_unique<fakes::FakeWorker>(FakeWorkerOptions{})),
      tokenizer, &metrics, &clock);
  EXPECT_EQ(engine.status().code(), StatusCode::kInvalidArgument);
}

// The text layer ends the request while steps that go on with it are under way.
TEST(AsyncScheduling, SurplusBehindAStopStringIsDropped) {
  const std::string script = "one two STOP three four five six seven eight nine ten";
  FakeWorkerOptions options;
  options.token = [script](const Request& r, std::span<const TokenId> known) {
    return static_cast<TokenId>(script[(known.size() - r.prompt_token_ids.size()) % script.size()]);
  };
  EngineFixture f(options, async_config());
  for (int round = 0; round < 50; ++round) {
    GenerateRequest r = endless("p", 200);
    r.sampling.stop = {"STOP"};
    const auto id = f.engine->submit(r, f.collector.sink());
    ASSERT_TRUE(f.collector.wait(round + 1));
    const ChoiceResult got = f.collector.get(*id);
    EXPECT_EQ(got.text, "one two ");
    EXPECT_EQ(got.tokens.size(), 12U);
    EXPECT_EQ(got.last.usage.completion_tokens, 12);
  }
  ASSERT_TRUE(f.engine->drain(kHang));
  while (f.engine->health().running != 0) std::this_thread::yield();
  EXPECT_EQ(f.engine->health().used_blocks, 0);
  EXPECT_TRUE(f.engine->health().live());
}

// Tokens that end a request by themselves: the step after them was planned and is void.
TEST(AsyncScheduling, EndOfGenerationInAStepInFlightEndsOnce) {
  FakeWorkerOptions options;
  options.token = [](const Request& r, std::span<const TokenId> known) {
    const size_t n = known.size() - r.prompt_token_ids.size();
    return n == r.prompt_token_ids.size() ? TokenId{256}
                                          : TokenId{'x'};  // EOS after as many as the prompt has
  };
  EngineFixture f(options, async_config());
  const TokenId eos = f.tokenizer->spec().end_of_generation.at(0);
  ASSERT_EQ(eos, 256);
  std::vector<RequestId> ids;
  for (int i = 1; i <= 30; ++i)
    ids.push_back(
        *f.engine->submit(generate(std::string(static_cast<size_t>(i), 'a'), 100), f.collector.sink()));
  ASSERT_TRUE(f.collector.wait(30));
  for (size_t i = 0; i < ids.size(); ++i) {
    EXPECT_EQ(f.collector.get(ids[i]).tokens.size(), i + 2);
    EXPECT_EQ(f.collector.get(ids[i]).last.finish_reason, FinishReason::kStop);
  }
}

TEST(AsyncScheduling, NumericErrorBehindWhichAStepWasPlannedFailsOneRequest) {
  FakeWorkerOptions options;
  options.is_nan = [](const Request& r, size_t n) { return r.prompt_token_ids[0] == 'b' && n == 3; };
  EngineFixture f(options, async_config());
  std::vector<GenerateRequest> requests = {endless("a", 60), endless("b", 60), endless("c", 60)};
  std::vector<RequestId> ids;
  for (const auto& r : requests) ids.push_back(*f.engine->submit(r, f.collector.sink()));
  ASSERT_TRUE(f.collector.wait(3));
  EXPECT_EQ(f.collector.get(ids[1]).last.finish_reason, FinishReason::kError);
  EXPECT_EQ(f.collector.get(ids[1]).tokens.size(), 3U);
  for (size_t i : {size_t{0}, size_t{2}})
    EXPECT_EQ(f.collector.get(ids[i]).tokens, expected_tokens(requests[i], 0, *f.tokenizer, 256));
  EXPECT_TRUE(f.engine->health().ready());
}

TEST(AsyncScheduling, CancelDuringStepsInFlightEndsOnceAndFreesItsBlocks) {
  EngineFixture f({}, async_config());
  constexpr int kRequests = 60;
  for (int i = 0; i < kRequests; ++i) {
    GenerateRequest r = endless("to be cancelled", 200);
    r.sampling.seed = static_cast<uint64_t>(i);
    const auto id = f.engine->submit(r, f.collector.sink());
    ASSERT_TRUE(id.ok());
    ASSERT_TRUE(f.collector.wait_updates(2 * i + 1));
    f.engine->cancel(*id);
    ASSERT_TRUE(f.collector.wait(i + 1));
    const ChoiceResult got = f.collector.get(*id);
    EXPECT_EQ(got.ends, 1);
    auto want = expected_tokens(r, 0, *f.tokenizer, 256);
    want.resize(got.tokens.size());
    EXPECT_EQ(got.tokens, want);
  }
  ASSERT_TRUE(f.engine->drain(kHang));
  while (f.engine->health().running != 0) std::this_thread::yield();
  EXPECT_EQ(f.engine->health().used_blocks, 0);
}

TEST(AsyncScheduling, PreemptionWithStepsInFlightLosesNoToken) {
  FakeWorkerOptions options;
  options.num_blocks = 12;  // 192 tokens; the requests need 8 * 75
  EngineFixture f(options, async_config());
  std::map<RequestId, GenerateRequest> requests;
  for (uint64_t seed = 1; seed <= 8; ++seed) {
    GenerateRequest r = endless("fifteen letters", 60);
    r.sampling.seed = seed;
    requests[*f.engine->submit(r, f.collector.sink())] = r;
  }
  ASSERT_TRUE(f.collector.wait(8));
  int32_t preemptions = 0;
  for (const auto& [id, r] : requests) {
    EXPECT_EQ(f.collector.get(id).tokens, expected_tokens(r, 0, *f.tokenizer, 256));
    preemptions += f.collector.get(id).last.timeline.preemptions;
  }
  EXPECT_GT(preemptions, 0);
}

TEST(AsyncScheduling, FailureOrExceptionInTheWorkersThreadEndsEverythingOnce) {
  for (const bool throws : {false, true}) {
    FakeWorkerOptions options;
    options.before_commit = [throws](const SchedulerOutput& plan) -> Status {
      if (plan.id.seq < 8) return absl::OkStatus();
      if (throws) throw std::runtime_error("segment 7");
      return absl::UnavailableError("lost");
    };
    EngineFixture f(options, async_config());
    GenerateRequest r = endless("x", 100);
    r.n = 5;
    ASSERT_TRUE(f.engine->submit(r, f.collector.sink()).ok());
    ASSERT_TRUE(f.collector.wait(5));
    for (const auto& [key, result] : f.collector.all()) {
      EXPECT_EQ(result.ends, 1);
      EXPECT_EQ(result.last.finish_reason, FinishReason::kError);
    }
    EXPECT_EQ(f.engine->health().trouble, EngineTrouble::kFailed);
    EXPECT_FALSE(f.engine->health().live());
    EXPECT_NE(f.engine->health().reason.find(throws ? "segment 7" : "lost"), std::string::npos);
    EXPECT_EQ(error_detail(f.engine->submit(r, f.collector.sink()).status()).http, 503);
  }
}

TEST(AsyncScheduling, DrainFinishesWhatIsInFlight) {
  EngineFixture f({}, async_config());
  const GenerateRequest r = endless("x", 100);
  const auto id = f.engine->submit(r, f.collector.sink());
  EXPECT_TRUE(f.engine->drain(kHang));
  EXPECT_EQ(f.collector.get(*id).tokens, expected_tokens(r, 0, *f.tokenizer, 256));
  EXPECT_EQ(error_detail(f.engine->submit(r, f.collector.sink()).status()).http, 503);
}

TEST(AsyncScheduling, DestructionWithStepsInFlightEndsEveryChoice) {
  EngineFixture f({}, async_config());
  GenerateRequest r = endless("x", 0);
  r.n = 20;
  const auto id = f.engine->submit(r, f.collector.sink());
  ASSERT_TRUE(f.collector.wait_updates(3));
  f.engine.reset();
  for (int32_t i = 0; i < 20; ++i) EXPECT_EQ(f.collector.get(*id, i).ends, 1) << i;
}

TEST(EngineLimitsTest, HoldForTheNextRequest) {
  EngineFixture f;
  EngineLimits limits;
  limits.max_waiting_requests = -1;
  EXPECT_EQ(f.engine->set_limits(limits).code(), StatusCode::kInvalidArgument);
  limits.max_waiting_requests = 2;
  limits.fair_sharing.enabled = true;
  limits.fair_sharing.weights["a"] = -1;
  EXPECT_EQ(f.engine->set_limits(limits).code(), StatusCode::kInvalidArgument);
  limits.fair_sharing.weights["a"] = 3;
  ASSERT_TRUE(f.engine->set_limits(limits).ok());
  GenerateRequest r = generate("x", 3);
  r.n = 11;  // 8 rows and 2 that wait
  EXPECT_EQ(error_detail(f.engine->submit(r, f.collector.sink()).status()).param, "n");
  r.n = 10;
  r.tenant = "a";
  EXPECT_TRUE(f.engine->submit(r, f.collector.sink()).ok());
  ASSERT_TRUE(f.collector.wait(10));
}

}  // namespace
}  // namespace omnibus
