// feature_pair_test A B: two features of configs/feature_pairs.toml used together give what they give apart.
//
// A real engine on a small random model, in process. The reference engine runs the probe alone, whole in one
// step, with room for everything. The engine under test runs it among neighbours, with both features on.
// Whatever the two features are, the probe's answer must be the reference's, bit for bit (docs/design.md,
// P5); and each feature must be seen to have been at work.
#include <algorithm>
#include <cstdio>
#include <future>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "omnibus/base/common/check.h"
#include "omnibus/base/common/rng.h"
#include "omnibus/compute/worker/worker.h"
#include "omnibus/control/engine/async_engine.h"

#include "compute/support/random_model.h"
#include "fakes/piece_tokenizer.h"

namespace omnibus {
namespace {

constexpr int32_t kMaxModelLen = 96;
constexpr int32_t kPromptTokens = 50, kAnswerTokens = 24, kNeighbours = 3;
constexpr int32_t kSmallBudget = 16;  // tokens per step: the prompt takes four steps
constexpr int64_t kFewBlocks = 8;     // room for one and a half of the sequences
constexpr uint64_t kSeed = 20260801;

// The features by their names in the table. A name that is not here has no test, and fails.
struct Features {
  bool numerics_f32 = false, chunked_prefill = false, preemption = false;
  bool logprobs = false, prompt_logprobs = false, parallel_choices = false, stop_strings = false;

  bool* find(const std::string& name) {
    const std::map<std::string, bool*> all = {
        {"numerics_f32", &numerics_f32},       {"chunked_prefill", &chunked_prefill},
        {"preemption", &preemption},           {"logprobs", &logprobs},
        {"prompt_logprobs", &prompt_logprobs}, {"parallel_choices", &parallel_choices},
        {"stop_strings", &stop_strings}};
    const auto it = all.find(name);
    return it == all.end() ? nullptr : it->second;
  }
};

// Everything that came for one choice.
struct Answer {
  std::vector<TokenId> tokens;
  std::string text;
  std::vector<PositionLogprobs> logprobs, prompt_logprobs;
  std::optional<FinishReason> finish;
  StopCause cause;
  int32_t preemptions = 0;
};
using Answers = std::vector<Answer>;

class Failure {
 public:
  void check(bool ok, const std::string& what) {
    if (ok) return;
    std::printf("FAILED: %s\n", what.c_str());
    failed_ = true;
  }
  bool failed() const { return failed_; }

 private:
  bool failed_ = false;
};

std::shared_ptr<const GgufFile> model() {
  RandomModel random;
  random.sizes = small_llama();
  random.seed = kSeed;
  return make_random_model(random);
}

std::unique_ptr<WorkerBase> worker(Numerics numerics, int64_t kv_bytes) {
  WorkerConfig config;
  config.model = model();
  config.numerics = numerics;
  config.threads = 1;
  config.max_model_len = kMaxModelLen;
  config.max_num_seqs = 8;
  config.kv_cache_bytes = kv_bytes;
  auto made = make_worker(std::move(config));
  OMNIBUS_CHECK(made.ok(), status_message(made.status()));
  return *std::move(made);
}

int64_t bytes_of_blocks(Numerics numerics, int64_t blocks) {
  const auto plan = worker(numerics, 64 << 20)->capacity();
  OMNIBUS_CHECK(plan.ok(), status_message(plan.status()));
  int64_t bytes = 0;
  for (const auto& group : plan->kv.groups) bytes += group.bytes_per_block;
  return bytes * blocks;
}

// An engine and what it needs to live.
class TestEngine {
 public:
  explicit TestEngine(const Features& f) {
    EngineConfig config;
    config.max_model_len = kMaxModelLen;
    config.max_num_seqs = 8;
    config.max_num_batched_tokens = f.chunked_prefill ? kSmallBudget : 512;
    config.numerics = f.numerics_f32 ? Numerics::kF32 : Numerics::kFast;
    config.check_integrity = true;
    const int64_t bytes = bytes_of_blocks(config.numerics, f.preemption ? kFewBlocks : 512);
    fakes::PieceVocabulary vocabulary;
    vocabulary.pieces = {"aa", "bb", "cc", "dd"};
    auto engine = AsyncEngine::start(config, make_uniproc_executor(worker(config.numerics, bytes)),
                                     fakes::make_piece_tokenizer(vocabulary), &metrics_, &clock_);
    OMNIBUS_CHECK(engine.ok(), status_message(engine.status()));
    engine_ = *std::move(engine);
  }

  // Submits all, waits for all.
  std::vector<Answers> run(const std::vector<GenerateRequest>& requests) {
    std::vector<std::unique_ptr<Collector>> collectors;
    for (const auto& request : requests) {
      collectors.push_back(std::make_unique<Collector>(request.n));
      const auto id =
          engine_->submit(request, [c = collectors.back().get()](RequestOutput o) { c->take(std::move(o)); });
      OMNIBUS_CHECK(id.ok(), status_message(id.status()));
    }
    std::vector<Answers> out;
    for (auto& collector : collectors) out.push_back(collector->wait());
    return out;
  }

  EngineHealth health() const { return engine_->health(); }

 private:
  class Collector {
   public:
    explicit Collector(int32_t n) : answers_(static_cast<size_t>(n)), open_(n) {}

    void take(RequestOutput output) {
      Answer& a = answers_[static_cast<size_t>(output.index)];
      a.tokens.insert(a.tokens.end(), output.token_ids.begin(), output.token_ids.end());
      a.text += output.text;
      std::move(output.logprobs.begin(), output.logprobs.end(), std::back_inserter(a.logprobs));
      std::move(output.prompt_logprobs.begin(), output.prompt_logprobs.end(),
                std::back_inserter(a.prompt_logprobs));
      if (!output.finish_reason) return;
      a.finish = output.finish_reason;
      a.cause = output.stop_cause;
      a.preemptions = output.timeline.preemptions;
      if (--open_ == 0) done_.set_value();
    }
    Answers wait() {
      OMNIBUS_CHECK(done_.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready,
                    "no answer within 60 s");
      return std::move(answers_);
    }

   private:
    Answers answers_;
    int32_t open_;
    std::promise<void> done_;
  };

  SteadyClock clock_;
  MetricsRegistry metrics_;
  std::unique_ptr<AsyncEngine> engine_;  // last: it goes first
};

// `who` 0 is the probe. Answers are letters, so that their text can be cut at a stop string.
GenerateRequest make_request(int32_t who, const Features& f) {
  GenerateRequest request;
  for (uint32_t i = 0; i < kPromptTokens; ++i) {
    request.prompt_token_ids.push_back('a' + static_cast<TokenId>(26 * philox_uniform(kSeed + who, i, 0)));
  }
  SamplingParams& p = request.sampling;
  p.temperature = 0.9F;
  p.seed = kSeed + static_cast<uint64_t>(who);
  p.max_tokens = kAnswerTokens;
  p.ignore_eos = true;
  for (TokenId id = 'a'; id <= 'z'; ++id) p.allowed_token_ids.push_back(id);
  if (f.logprobs) p.logprobs = 3;
  if (f.prompt_logprobs) p.prompt_logprobs = 2;
  if (f.parallel_choices) request.n = 3;
  return request;
}

bool same(const std::vector<PositionLogprobs>& a, const std::vector<PositionLogprobs>& b) {
  const auto equal = [](const TokenLogprob& x, const TokenLogprob& y) {
    return x.id == y.id && x.logprob == y.logprob;
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [&](const auto& x, const auto& y) {
    return equal(x.sampled, y.sampled) &&
           std::equal(x.top.begin(), x.top.end(), y.top.begin(), y.top.end(), equal);
  });
}

// `wanted` ran without a stop string; `stop` ("" for none) cuts its text. Every token is one letter.
void compare(const std::string& stop, const Answer& wanted, const Answer& got, Failure& failure) {
  const size_t end = stop.empty() ? std::string::npos : wanted.text.find(stop);
  const bool stopped = end != std::string::npos;
  failure.check(got.text == wanted.text.substr(0, end),
                "text '" + got.text + "', apart '" + wanted.text + "'");
  failure.check(got.tokens.size() <= wanted.tokens.size() &&
                    std::equal(got.tokens.begin(), got.tokens.end(), wanted.tokens.begin()) &&
                    (stopped || got.tokens.size() == wanted.tokens.size()),
                "token ids differ");
  auto logprobs = wanted.logprobs;
  if (stopped && !logprobs.empty()) logprobs.resize(got.text.size());
  failure.check(same(logprobs, got.logprobs), "logprobs differ");
  failure.check(same(wanted.prompt_logprobs, got.prompt_logprobs), "prompt logprobs differ");
  failure.check(got.finish == (stopped ? FinishReason::kStop : FinishReason::kLength), "wrong finish reason");
  failure.check(std::holds_alternative<std::string>(got.cause) == stopped, "wrong cause of the stop");
}

// Each feature of the pair did something.
void check_at_work(const Features& f, const std::vector<Answers>& all, const EngineHealth& health,
                   Failure& failure) {
  const Answer& probe = all[0][0];
  int32_t preemptions = 0;
  for (const auto& answers : all) {
    for (const auto& answer : answers) preemptions += answer.preemptions;
  }
  failure.check((preemptions > 0) == f.preemption, "preemptions: " + std::to_string(preemptions));
  // Prompts in pieces: more steps than the answer alone takes.
  if (f.chunked_prefill) {
    failure.check(health.steps > kAnswerTokens + (kNeighbours + 1) * (kPromptTokens / kSmallBudget),
                  "too few steps");
  }
  failure.check(probe.logprobs.size() == (f.logprobs ? probe.text.size() : 0), "count of logprobs");
  failure.check(probe.prompt_logprobs.size() == (f.prompt_logprobs ? kPromptTokens : 0),
                "count of prompt logprobs");
  if (f.parallel_choices) failure.check(all[0][0].text != all[0][1].text, "choices 0 and 1 are the same");
  if (f.stop_strings)
    failure.check(probe.finish == FinishReason::kStop, "choice 0 did not end at its stop string");
  failure.check(health.used_blocks == 0, "KV blocks left in use");
}

int run(const Features& f) {
  Features request_only = f;
  request_only.chunked_prefill = request_only.preemption = false;
  const Answers wanted = TestEngine(request_only).run({make_request(0, f)})[0];

  std::vector<GenerateRequest> requests = {make_request(0, f)};
  const std::string stop = f.stop_strings ? wanted[0].text.substr(kAnswerTokens / 2, 4) : "";
  if (f.stop_strings) requests[0].sampling.stop = {stop};
  for (int32_t who = 1; who <= kNeighbours; ++who) requests.push_back(make_request(who, {}));
  TestEngine engine(f);
  const auto all = engine.run(requests);

  Failure failure;
  for (size_t choice = 0; choice < wanted.size(); ++choice)
    compare(stop, wanted[choice], all[0][choice], failure);
  check_at_work(f, all, engine.health(), failure);
  std::printf("probe: %s\n", wanted[0].text.c_str());
  return failure.failed() ? 1 : 0;
}

}  // namespace
}  // namespace omnibus

int main(int argc, char** argv) {
  omnibus::Features features;
  for (int i = 1; i < argc; ++i) {
    bool* feature = features.find(argv[i]);
    if (feature == nullptr) {
      std::printf("there is no test of the feature '%s'\n", argv[i]);
      return 1;
    }
    *feature = true;
  }
  if (argc != 3) {
    std::printf("usage: feature_pair_test FEATURE FEATURE\n");
    return 1;
  }
  return omnibus::run(features);
}
