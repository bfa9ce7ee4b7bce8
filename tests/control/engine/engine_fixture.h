// An AsyncEngine on the fake worker, and a sink that collects what clients would see.
#pragma once

#include <condition_variable>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"
#include "omnibus/control/engine/async_engine.h"

#include "fakes/fake_worker.h"
#include "fakes/piece_tokenizer.h"

namespace omnibus {

// Joined output of one choice.
struct ChoiceResult {
  std::string text;
  std::vector<TokenId> tokens;
  std::vector<PositionLogprobs> logprobs;
  int ends = 0;
  int updates = 0;
  RequestOutput last;
};

class Collector {
 public:
  OutputSink sink() {
    return [this](RequestOutput out) { take(std::move(out)); };
  }

  // Waits until `n` choices have ended; false after 20 s.
  bool wait(int n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return ended_ >= n; });
  }
  bool wait_updates(int n) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, std::chrono::seconds(20), [&] { return updates_ >= n; });
  }

  ChoiceResult get(RequestId id, int32_t index = 0) {
    std::lock_guard lock(mutex_);
    return results_[{id, index}];
  }
  std::map<std::pair<RequestId, int32_t>, ChoiceResult> all() {
    std::lock_guard lock(mutex_);
    return results_;
  }

 private:
  void take(RequestOutput out) {
    std::lock_guard lock(mutex_);
    ChoiceResult& r = results_[{out.id, out.index}];
    EXPECT_EQ(r.ends, 0) << "an update after the end";
    r.text += out.text;
    r.tokens.insert(r.tokens.end(), out.token_ids.begin(), out.token_ids.end());
    for (const auto& p : out.logprobs) r.logprobs.push_back(p);
    EXPECT_EQ(out.usage.completion_tokens, static_cast<int32_t>(r.tokens.size()));
    ++r.updates;
    ++updates_;
    if (out.finish_reason) {
      ++r.ends;
      ++ended_;
    }
    r.last = std::move(out);
    changed_.notify_all();
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::pair<RequestId, int32_t>, ChoiceResult> results_;
  int ended_ = 0;
  int updates_ = 0;
};

struct EngineFixture {
  explicit EngineFixture(fakes::FakeWorkerOptions options = {}, EngineConfig c = default_config(),
                         const Clock* clock = nullptr)
      : tokenizer(fakes::make_piece_tokenizer({})) {
    options.vocab_size = tokenizer->vocab_size();
    options.max_rows = c.max_num_seqs;
    options.max_tokens_per_step = c.max_num_batched_tokens;
    auto worker = std::make_unique<fakes::FakeWorker>(std::move(options));
    auto executor = c.async_scheduling ? make_threaded_executor(std::move(worker))
                                       : make_uniproc_executor(std::move(worker));
    auto started =
        AsyncEngine::start(c, std::move(executor), tokenizer, &metrics, clock != nullptr ? clock : &steady);
    status = started.status();
    if (started.ok()) engine = std::move(started).value();
  }

  static EngineConfig default_config() {
    EngineConfig c;
    c.max_model_len = 256;
    c.max_num_seqs = 8;
    c.max_num_batched_tokens = 64;
    c.model_name = "fake";
    c.check_integrity = true;
    return c;
  }

  SteadyClock steady;
  MetricsRegistry metrics;
  std::shared_ptr<const Tokenizer> tokenizer;
  Collector collector;
  Status status;
  std::unique_ptr<AsyncEngine> engine;  // last: ends before what it uses
};

inline GenerateRequest generate(std::string_view prompt, int32_t max_tokens, uint64_t seed = 1) {
  GenerateRequest r;
  for (char c : prompt) r.prompt_token_ids.push_back(static_cast<unsigned char>(c));
  r.sampling.max_tokens = max_tokens;
  r.sampling.seed = seed;
  return r;
}

// The closed form of choice `index`.
inline std::vector<TokenId> expected_tokens(const GenerateRequest& r, int32_t index,
                                            const Tokenizer& tokenizer, int32_t max_model_len) {
  const uint64_t seed = splitmix64(r.sampling.seed, static_cast<uint64_t>(index));
  const auto& eog = tokenizer.spec().end_of_generation;
  std::vector<TokenId> known = r.prompt_token_ids;
  std::vector<TokenId> out;
  while (true) {
    const TokenId t = fakes::hash_token(seed, known, tokenizer.vocab_size());
    known.push_back(t);
    out.push_back(t);
    const auto n = static_cast<int32_t>(out.size());
    if (!r.sampling.ignore_eos && n > r.sampling.min_tokens && std::count(eog.begin(), eog.end(), t) > 0)
      return out;
    if (n == r.sampling.max_tokens || static_cast<int32_t>(known.size()) == max_model_len) return out;
  }
}

}  // namespace omnibus
