// One request, one answer (docs/design.md, P5): tokens and the bits of logprobs do not depend on batch,
// chunks, preemption, blocks, slots, threads or drafts.
#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "worker_fixture.h"

namespace omnibus {
namespace {

DenseFile sizes_of(const std::string& name) {
  return name == "llama" ? small_llama() : name == "qwen2" ? small_qwen2() : small_qwen3();
}

class OneAnswerTest : public testing::TestWithParam<std::tuple<std::string, Numerics>> {
 protected:
  static constexpr uint64_t kSeed = 77;

  void SetUp() override {
    RandomModel model;
    model.sizes = sizes_of(std::get<0>(GetParam()));
    model.seed = kSeed;
    file_ = make_random_model(model);
    requests_ = mixed_requests(263, kSeed);
    expected_ = alone();
  }

  Numerics numerics() const { return std::get<1>(GetParam()); }
  std::unique_ptr<WorkerBase> worker(int32_t threads = 1) const {
    WorkerConfig config = small_config(file_, numerics());
    config.threads = threads;
    return ready_worker(config);
  }
  std::map<RequestId, DriverResult> run(const DriverOptions& options, int32_t threads = 1) const {
    const auto w = worker(threads);
    return StepDriver(*w, 1, kTestBlocks, numerics()).run(requests_, options);
  }
  // Each request alone, whole prompt at once.
  std::map<RequestId, DriverResult> alone() const {
    DriverOptions options;
    options.max_running = 1;
    return run(options);
  }

  std::shared_ptr<const GgufFile> file_;
  std::vector<Request> requests_;
  std::map<RequestId, DriverResult> expected_;
};

TEST_P(OneAnswerTest, ResultsAreWorthComparing) {
  std::set<TokenId> distinct;
  for (const auto& [id, result] : expected_) {
    EXPECT_EQ(result.tokens.size(), 10U);
    EXPECT_EQ(result.logprobs.size(), 10U);
    distinct.insert(result.tokens.begin(), result.tokens.end());
  }
  EXPECT_GT(distinct.size(), 20U);
  const std::vector<TokenId>& said = expected_.at(106).tokens;
  for (const auto& bad : requests_[6].sampling().bad_sequences)
    EXPECT_EQ(std::search(said.begin(), said.end(), bad.begin(), bad.end()), said.end());
  EXPECT_EQ(expected_.at(103).prompt_logprobs.size(), 49U);
  EXPECT_EQ(expected_.at(107).prompt_logprobs.size(), 39U);
}

TEST_P(OneAnswerTest, BatchEqualsEachAlone) { expect_same(expected_, run({})); }

TEST_P(OneAnswerTest, AnyChunkSize) {
  for (int32_t chunk : {1, 7, 16}) {
    SCOPED_TRACE(chunk);
    DriverOptions options;
    options.chunk = chunk;
    expect_same(expected_, run(options));
  }
  DriverOptions options;  // chunks that change with the neighbours
  options.step_tokens = 37;
  expect_same(expected_, run(options));
}

TEST_P(OneAnswerTest, PreemptedAndRecomputed) {
  DriverOptions options;
  options.preempt_every = 2;
  options.chunk = 13;
  for (uint64_t seed : {1, 2, 3}) {
    options.seed = seed;
    SCOPED_TRACE(seed);
    expect_same(expected_, run(options));
  }
}

TEST_P(OneAnswerTest, ShuffledBlocks) {
  DriverOptions options;
  options.shuffle_blocks = true;
  options.chunk = 20;
  expect_same(expected_, run(options));
}

TEST_P(OneAnswerTest, SlotsBlocksAndMirrorAreReused) {
  const auto w = worker();
  StepDriver driver(*w, 1, kTestBlocks, numerics());
  DriverOptions options;
  options.max_running = 3;
  options.shuffle_blocks = true;
  std::vector<Request> others = mixed_requests(263, kSeed + 1);
  for (size_t i = 0; i < others.size(); ++i) others[i].id = 900 + i;
  (void)driver.run(others, options);
  expect_same(expected_, driver.run(requests_, options));
}

TEST_P(OneAnswerTest, TwoThreads) { expect_same(expected_, run({}, 2)); }

TEST_P(OneAnswerTest, WithAndWithoutDrafts) {
  // Right, wrong and half-right drafts, against the known answer.
  DriverOptions options;
  options.drafts = [&](RequestId id, const std::vector<TokenId>& known) {
    const std::vector<TokenId>& answer = expected_.at(id).tokens;
    size_t prompt = 0;
    for (const Request& r : requests_)
      if (r.id == id) prompt = r.prompt_token_ids.size();
    std::vector<TokenId> drafts;
    const size_t done = known.size() - prompt;
    for (size_t i = done; i < std::min(done + 3, answer.size()); ++i) drafts.push_back(answer[i]);
    if (!drafts.empty() && (id + done) % 3 == 0) drafts.back() = (drafts.back() + 1) % 263;
    if (!drafts.empty() && (id + done) % 5 == 0) drafts.front() = (drafts.front() + 1) % 263;
    return drafts;
  };
  const auto w = worker();
  StepDriver driver(*w, 1, kTestBlocks, numerics());
  expect_same(expected_, driver.run(requests_, options));
  EXPECT_LT(driver.steps(), 10) << "no draft was accepted";
}

// The logprob of a token as part of a prompt is the one it had when it was drawn.
TEST_P(OneAnswerTest, PromptLogprobsContinueTheSampledOnes) {
  Request whole = requests_[0];
  whole.id = 500;
  const auto& answer = expected_.at(100);
  whole.prompt_token_ids.insert(whole.prompt_token_ids.end(), answer.tokens.begin(), answer.tokens.end());
  std::get<SamplingParams>(whole.params).prompt_logprobs = 3;
  const auto w = worker();
  const auto result = StepDriver(*w, 1, kTestBlocks, numerics()).run({whole}, {}).at(500);
  ASSERT_EQ(result.prompt_logprobs.size(), answer.tokens.size());
  for (size_t i = 0; i < answer.tokens.size(); ++i) {
    EXPECT_EQ(result.prompt_logprobs[i].sampled.id, answer.logprobs[i].sampled.id);
    EXPECT_EQ(result.prompt_logprobs[i].sampled.logprob, answer.logprobs[i].sampled.logprob);
    EXPECT_EQ(result.prompt_logprobs[i].top[2].logprob, answer.logprobs[i].top[2].logprob);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, OneAnswerTest,
                         testing::Combine(testing::Values("llama", "qwen2", "qwen3"),
                                          testing::Values(Numerics::kFast, Numerics::kF32)),
                         [](const auto& test) {
                           return std::get<0>(test.param) +
                                  (std::get<1>(test.param) == Numerics::kFast ? "_fast" : "_f32");
                         });

}  // namespace
}  // namespace omnibus
