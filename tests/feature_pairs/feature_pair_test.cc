// feature_pair_test A B: two features of configs/feature_pairs.toml used together give what they give apart.
//
// A real engine on a small random model, in process. The reference engine runs the probe alone, whole in one
// step, with room for everything. The engine under test runs it among neighbours, with both features on.
// Whatever the two features are, the probe's answer must be the reference's, bit for bit (docs/design.md,
// P5); and each feature must be seen to have been at work.
#include <algorithm>
#include <atomic>
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
constexpr int32_t kFewSeqs = 2;       // where it matters who is next
constexpr int32_t kHoldingChoices = 32, kHoldingTokens = kMaxModelLen - kPromptTokens;
constexpr uint64_t kSeed = 20260801;

// The features by their names in the table. A name that is not here has no test, and fails.
struct Features {
  bool numerics_f32 = false, chunked_prefill = false, preemption = false;
  bool logprobs = false, prompt_logprobs = false, parallel_choices = false, stop_strings = false;
  bool prefix_caching = false, async_scheduling = false, priority_scheduling = false, fair_sharing = false;

  bool orders() const { return priority_scheduling || fair_sharing; }

  bool* find(const std::string& name) {
    const std::map<std::string, bool*> all = {{"numerics_f32", &numerics_f32},
                                              {"chunked_prefill", &chunked_prefill},
                                              {"preemption", &preemption},
                                              {"logprobs", &logprobs},
                                              {"prompt_logprobs", &prompt_logprobs},
                                              {"parallel_choices", &parallel_choices},
                                              {"stop_strings", &stop_strings},
                                              {"prefix_caching", &prefix_caching},
                                              {"async_scheduling", &async_scheduling},
                                              {"priority_scheduling", &priority_scheduling},
                                              {"fair_sharing", &fair_sharing}};
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
  int32_t cached_tokens = 0;
  int32_t place = 0;  // how many choices of the engine's requests had ended before
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
    config.max_num_seqs = f.orders() ? kFewSeqs : 8;
    config.max_num_batched_tokens = f.chunked_prefill ? kSmallBudget : 512;
    config.numerics = f.numerics_f32 ? Numerics::kF32 : Numerics::kFast;
    config.check_integrity = true;
    config.max_waiting_tokens = 1 << 20;
    config.prefix_caching = f.prefix_caching;
    config.async_scheduling = f.async_scheduling;
    if (f.priority_scheduling) config.policy = SchedulingPolicy::kPriority;
    config.fair_sharing.enabled = f.fair_sharing;
    const int64_t bytes = bytes_of_blocks(config.numerics, f.preemption ? kFewBlocks : 512);
    fakes::PieceVocabulary vocabulary;
    vocabulary.pieces = {"aa", "bb", "cc", "dd"};
    auto computing = worker(config.numerics, bytes);
    auto executor = f.async_scheduling ? make_threaded_executor(std::move(computing))
                                       : make_uniproc_executor(std::move(computing));
    steps_in_flight_ = executor->max_concurrent_batches();
    auto engine = AsyncEngine::start(config, std::move(executor), fakes::make_piece_tokenizer(vocabulary),
                                     &metrics_, &clock_);
    OMNIBUS_CHECK(engine.ok(), status_message(engine.status()));
    engine_ = *std::move(engine);
  }

  // Submits all, waits for all. `together`: whether the first was still at work when the last one came.
  std::vector<Answers> run(const std::vector<GenerateRequest>& requests, bool* together = nullptr) {
    std::vector<std::unique_ptr<Collector>> collectors;
    for (const auto& request : requests) {
      collectors.push_back(std::make_unique<Collector>(request.n, ended_));
      const auto id =
          engine_->submit(request, [c = collectors.back().get()](RequestOutput o) { c->take(std::move(o)); });
      OMNIBUS_CHECK(id.ok(), status_message(id.status()));
    }
    if (together != nullptr) *together = !collectors.front()->done();
    std::vector<Answers> out;
    for (auto& collector : collectors) out.push_back(collector->wait());
    return out;
  }

  int32_t steps_in_flight() const { return steps_in_flight_; }
  EngineHealth health() const { return engine_->health(); }

 private:
  class Collector {
   public:
    Collector(int32_t n, std::atomic<int32_t>& ended)
        : answers_(static_cast<size_t>(n)), open_(n), ended_(ended) {}

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
      a.cached_tokens = output.usage.cached_tokens;
      a.place = ended_++;
      if (--open_ == 0) done_.set_value();
    }
    bool done() const { return open_ == 0; }
    Answers wait() {
      OMNIBUS_CHECK(done_.get_future().wait_for(std::chrono::seconds(60)) == std::future_status::ready,
                    "no answer within 60 s");
      return std::move(answers_);
    }

   private:
    Answers answers_;
    std::atomic<int32_t> open_;
    std::atomic<int32_t>& ended_;
    std::promise<void> done_;
  };

  SteadyClock clock_;
  MetricsRegistry metrics_;
  std::atomic<int32_t> ended_ = 0;
  int32_t steps_in_flight_ = 0;
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

// Keeps all rows busy until the others have come, so that who is next decides when they run.
GenerateRequest holding_request() {
  GenerateRequest request = make_request(99, {});
  request.n = kHoldingChoices;
  request.sampling.max_tokens = kHoldingTokens;
  request.tenant = "probe's";
  request.priority = -9;
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

struct Run {
  std::vector<Answers> answers;  // of the probe, then of its neighbours
  int32_t preemptions = 0;
  EngineHealth health;
  int32_t steps_in_flight = 0;
};

// Each feature of the pair did something.
void check_at_work(const Features& f, const Run& run, Failure& failure) {
  const Answer& probe = run.answers[0][0];
  failure.check((run.preemptions > 0) == f.preemption, "preemptions: " + std::to_string(run.preemptions));
  // Prompts in pieces: more steps than the answer alone takes.
  if (f.chunked_prefill) {
    failure.check(run.health.steps > kAnswerTokens + (kNeighbours + 1) * (kPromptTokens / kSmallBudget),
                  "too few steps");
  }
  failure.check(probe.logprobs.size() == (f.logprobs ? probe.text.size() : 0), "count of logprobs");
  failure.check(probe.prompt_logprobs.size() == (f.prompt_logprobs ? kPromptTokens : 0),
                "count of prompt logprobs");
  if (f.parallel_choices) {
    failure.check(run.answers[0][0].text != run.answers[0][1].text, "choices 0 and 1 are the same");
  }
  if (f.stop_strings)
    failure.check(probe.finish == FinishReason::kStop, "choice 0 did not end at its stop string");
  // The last neighbour asks what the engine has had already; the probe does not when its prompt is scored.
  const Answer& again = run.answers.back()[0];
  // Few blocks keep the last prompt alone, which is the probe's.
  failure.check((again.cached_tokens > 0) == f.prefix_caching || f.preemption,
                "cached tokens of the repeated prompt: " + std::to_string(again.cached_tokens));
  failure.check((probe.cached_tokens > 0) == (f.prefix_caching && !f.prompt_logprobs),
                "cached tokens of the probe: " + std::to_string(probe.cached_tokens));
  failure.check((run.steps_in_flight > 1) == f.async_scheduling, "steps in flight");
  // First come, first served would have the probe, which came first, end first.
  if (f.orders()) {
    int32_t before = 0;
    for (size_t i = 1; i < run.answers.size(); ++i) before += run.answers[i][0].place < probe.place ? 1 : 0;
    failure.check(before >= kNeighbours - 1, "the probe was not overtaken");
  }
  failure.check(run.health.used_blocks == 0, "KV blocks left in use");
}

// The probe among neighbours, both features on. `stop`: the probe's stop string, "" for none.
Run run_together(const Features& f, const std::string& stop) {
  std::vector<GenerateRequest> requests = {make_request(0, f)};
  if (!stop.empty()) requests[0].sampling.stop = {stop};
  for (int32_t who = 1; who <= kNeighbours; ++who) requests.push_back(make_request(who, {}));
  for (size_t i = 0; i < requests.size(); ++i) {
    requests[i].priority = -static_cast<int32_t>(i);
    requests[i].tenant = i == 0 ? "probe's" : "neighbour's";
  }
  const GenerateRequest earlier[] = {make_request(kNeighbours, {}), make_request(0, {})};
  for (;;) {
    TestEngine engine(f);
    Run out;
    if (f.prefix_caching) {
      for (GenerateRequest request : earlier) {
        request.tenant = "probe's";
        engine.run({request});
      }
    }
    bool together = true;
    auto all = requests;
    if (f.orders()) all.insert(all.begin(), holding_request());
    out.answers = engine.run(all, &together);
    for (const auto& answers : out.answers) {
      for (const auto& answer : answers) out.preemptions += answer.preemptions;
    }
    if (f.orders()) out.answers.erase(out.answers.begin());
    out.health = engine.health();
    out.steps_in_flight = engine.steps_in_flight();
    // Where this thread was kept from the processor for so long, there was no queue to put in order.
    if (!f.orders() || together) return out;
  }
}

int run(const Features& f) {
  Features request_only = f;
  request_only.chunked_prefill = request_only.preemption = request_only.prefix_caching = false;
  request_only.async_scheduling = request_only.priority_scheduling = request_only.fair_sharing = false;
  const Answers wanted = TestEngine(request_only).run({make_request(0, f)})[0];
  const std::string stop = f.stop_strings ? wanted[0].text.substr(kAnswerTokens / 2, 4) : "";
  const Run got = run_together(f, stop);

  Failure failure;
  for (size_t choice = 0; choice < wanted.size(); ++choice)
    compare(stop, wanted[choice], got.answers[0][choice], failure);
  check_at_work(f, got, failure);
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
