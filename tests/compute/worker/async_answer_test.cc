// The engine on a real worker, with and without asynchronous stepping: the same tokens and the same bits of
// logprobs.
#include <map>

#include "omnibus/control/engine/async_engine.h"

#include "control/engine/engine_fixture.h"
#include "worker_fixture.h"

namespace omnibus {
namespace {

constexpr int32_t kRequests = 12;

std::map<int32_t, ChoiceResult> answers(const std::shared_ptr<const GgufFile>& file, bool async,
                                        int64_t kv_bytes) {
  const SteadyClock clock;
  MetricsRegistry metrics;
  WorkerConfig worker_config = small_config(file, Numerics::kFast);
  worker_config.kv_cache_bytes = kv_bytes;
  auto worker = make_worker(worker_config);
  EXPECT_TRUE(worker.ok()) << worker.status();
  EngineConfig config;
  config.max_model_len = 128;
  config.max_num_seqs = 8;
  config.max_num_batched_tokens = 40;
  config.check_integrity = true;
  config.async_scheduling = async;
  auto executor =
      async ? make_threaded_executor(*std::move(worker)) : make_uniproc_executor(*std::move(worker));
  fakes::PieceVocabulary vocabulary;
  vocabulary.pieces = {"ab", "cd", "ef", "gh"};  // 263 ids, as the model has
  Collector collector;
  const auto engine = AsyncEngine::start(config, std::move(executor), fakes::make_piece_tokenizer(vocabulary),
                                         &metrics, &clock);
  EXPECT_TRUE(engine.ok()) << engine.status();
  if (!engine.ok()) return {};
  std::map<int32_t, RequestId> ids;
  for (int32_t i = 0; i < kRequests; ++i) {
    // Every third begins like the first: prefix hits while others are in flight.
    GenerateRequest r = generate(std::string(static_cast<size_t>(33 + i), static_cast<char>('a' + i % 3)), 40,
                                 static_cast<uint64_t>(i));
    r.sampling.temperature = i % 2 == 0 ? 0.9F : 0.0F;
    r.sampling.repetition_penalty = i % 4 == 0 ? 1.2F : 1.0F;
    r.sampling.ignore_eos = i % 5 == 0;
    r.sampling.logprobs = 2;
    const auto id = (*engine)->submit(r, collector.sink());
    EXPECT_TRUE(id.ok()) << id.status();
    if (id.ok()) ids[i] = *id;
  }
  EXPECT_TRUE(collector.wait(kRequests));
  std::map<int32_t, ChoiceResult> results;
  for (const auto& [i, id] : ids) results[i] = collector.get(id);
  return results;
}

TEST(AsyncAnswer, SameBitsWithStepsInFlight) {
  RandomModel model;
  model.sizes = small_llama();
  model.seed = 5;
  const auto file = make_random_model(model);
  const auto expected = answers(file, false, 64 << 20);
  for (const bool async : {false, true}) {
    for (const int64_t kv_bytes : {int64_t{64} << 20, int64_t{160} << 10}) {  // plenty; preemptions
      const auto got = answers(file, async, kv_bytes);
      ASSERT_EQ(got.size(), expected.size());
      for (const auto& [i, want] : expected) {
        const ChoiceResult& have = got.at(i);
        EXPECT_EQ(have.tokens, want.tokens) << i;
        ASSERT_EQ(have.logprobs.size(), want.logprobs.size()) << i;
        for (size_t t = 0; t < want.logprobs.size(); ++t)
          EXPECT_EQ(have.logprobs[t].sampled.logprob, want.logprobs[t].sampled.logprob) << i << " at " << t;
      }
    }
  }
}

}  // namespace
}  // namespace omnibus
