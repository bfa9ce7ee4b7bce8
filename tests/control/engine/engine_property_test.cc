// Laws 2 and 6 through the whole engine, with real threads: 500 random requests from four clients, random
// cancels, a tiny KV cache.
#include <random>
#include <sstream>
#include <thread>

#include "engine_fixture.h"

namespace omnibus {
namespace {

struct Submitted {
  RequestId id = 0;
  GenerateRequest request;
  bool cancelled = false;
};

GenerateRequest random_request(std::mt19937& rng) {
  auto pick = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(rng); };
  GenerateRequest r = generate(std::string(static_cast<size_t>(pick(1, 60)), 'a'), pick(1, 40), rng());
  for (TokenId& id : r.prompt_token_ids) id = pick(0, 255);
  r.n = pick(0, 5) == 0 ? pick(2, 4) : 1;
  r.sampling.min_tokens = pick(0, 2) == 0 ? pick(1, 5) : 0;
  r.sampling.ignore_eos = pick(0, 3) == 0;
  if (pick(0, 2) == 0) r.sampling.logprobs = pick(0, 3);
  if (pick(0, 2) == 0) r.sampling.stop = {std::string(1, static_cast<char>(pick(1, 127))), "zz"};
  return r;
}

// Output tokens that count once stop strings are judged, by plain search.
size_t cut_at_stop(const GenerateRequest& r, const std::vector<TokenId>& tokens, const Tokenizer& tokenizer) {
  for (size_t n = 1; n <= tokens.size(); ++n) {
    if (static_cast<int32_t>(n) <= r.sampling.min_tokens) continue;
    const std::string text = tokenizer.decode(std::span(tokens).first(n), true);
    const std::string before = tokenizer.decode(std::span(tokens).first(n - 1), true);
    for (const auto& stop : r.sampling.stop) {
      const size_t at = text.find(stop, before.size() < stop.size() ? 0 : before.size() - stop.size() + 1);
      if (at != std::string::npos) return n;
    }
  }
  return tokens.size();
}

void client(EngineFixture& f, uint32_t seed, int count, std::vector<Submitted>& mine) {
  std::mt19937 rng(seed);
  while (count > 0) {
    Submitted s;
    s.request = random_request(rng);
    const auto id = f.engine->submit(s.request, f.collector.sink());
    if (!id.ok()) {
      ASSERT_EQ(error_detail(id.status()).http, 429) << id.status();
      std::this_thread::yield();
      continue;
    }
    --count;
    s.id = *id;
    mine.push_back(std::move(s));
    if (rng() % 5 == 0) {
      Submitted& victim = mine[rng() % mine.size()];
      f.engine->cancel(victim.id);
      victim.cancelled = true;
    }
  }
}

double metric(const std::string& exposition, const std::string& line_start) {
  double sum = 0;
  std::istringstream lines(exposition);
  for (std::string line; std::getline(lines, line);)
    if (line.rfind(line_start, 0) == 0) sum += std::stod(line.substr(line.rfind(' ')));
  return sum;
}

// Inline, and with the next step planned while one runs.
class EngineProperty : public testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(AsyncScheduling, EngineProperty, testing::Bool(),
                         [](const auto& test) { return test.param ? "on" : "off"; });

TEST_P(EngineProperty, RandomRequestsGetExactlyTheirTokens) {
  constexpr uint32_t kSeed = 20240607;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  fakes::FakeWorkerOptions options;
  options.num_blocks = 16;  // 256 tokens for up to 8 sequences of up to 100
  EngineConfig config = EngineFixture::default_config();
  config.text_threads = 2;
  config.max_num_batched_tokens = 24;
  config.max_waiting_requests = 64;
  config.async_scheduling = GetParam();
  EngineFixture f(options, config);
  ASSERT_TRUE(f.status.ok());
  std::vector<std::vector<Submitted>> submitted(4);
  std::vector<std::thread> clients;
  for (uint32_t c = 0; c < 4; ++c) clients.emplace_back([&, c] { client(f, kSeed + c, 125, submitted[c]); });
  for (auto& thread : clients) thread.join();
  ASSERT_TRUE(f.engine->drain(std::chrono::seconds(60)));

  const auto results = f.collector.all();
  size_t choices = 0;
  size_t tokens = 0;
  size_t prompt_tokens = 0;
  for (const auto& list : submitted) {
    for (const Submitted& s : list) {
      bool answered = false;
      for (int32_t i = 0; i < s.request.n; ++i) {
        SCOPED_TRACE("request " + std::to_string(s.id) + ", choice " + std::to_string(i));
        ++choices;
        const auto it = results.find({s.id, i});
        ASSERT_NE(it, results.end());
        const ChoiceResult& got = it->second;
        ASSERT_EQ(got.ends, 1);
        tokens += got.tokens.size();
        answered = answered || !got.tokens.empty();
        auto want = expected_tokens(s.request, i, *f.tokenizer, config.max_model_len);
        want.resize(cut_at_stop(s.request, want, *f.tokenizer));
        if (got.last.finish_reason == FinishReason::kAbort) {
          ASSERT_TRUE(s.cancelled);
          ASSERT_LE(got.tokens.size(), want.size());
          want.resize(got.tokens.size());
        }
        ASSERT_EQ(got.tokens, want);
      }
      if (answered) prompt_tokens += s.request.prompt_token_ids.size();
    }
  }
  EXPECT_EQ(results.size(), choices);
  while (f.engine->health().running != 0) std::this_thread::yield();
  EXPECT_EQ(f.engine->health().used_blocks, 0);

  const std::string m = f.metrics.serialize();
  EXPECT_EQ(metric(m, "vllm:generation_tokens_total{"), static_cast<double>(tokens));
  EXPECT_EQ(metric(m, "vllm:prompt_tokens_total{"), static_cast<double>(prompt_tokens));
  EXPECT_EQ(metric(m, "vllm:request_success_total{"), static_cast<double>(choices));
  EXPECT_EQ(metric(m, "vllm:e2e_request_latency_seconds_count{"), static_cast<double>(choices));
  EXPECT_GT(metric(m, "vllm:num_preemptions_total{"), 0);
  EXPECT_EQ(metric(m, "vllm:num_requests_running{"), 0);
  EXPECT_EQ(metric(m, "vllm:kv_cache_usage_perc{"), 0);
}

// Law 2: alone = in a batch of 32 = any chunk size = one or three text threads.
TEST_P(EngineProperty, OneRequestOneAnswer) {
  std::map<uint64_t, std::string> reference;
  for (int32_t chunk : {64, 33, 512}) {
    for (int32_t blocks : {400, 24}) {
      fakes::FakeWorkerOptions options;
      options.num_blocks = blocks;
      EngineConfig config = EngineFixture::default_config();
      config.max_num_seqs = 32;
      config.async_scheduling = GetParam();
      config.max_num_batched_tokens = chunk;
      config.text_threads = chunk == 33 ? 3 : 1;
      EngineFixture f(options, config);
      std::map<uint64_t, RequestId> ids;
      for (uint64_t seed = 1; seed <= 32; ++seed) {
        const std::string prompt(5 + seed * 3, static_cast<char>('a' + seed % 26));
        const auto id = f.engine->submit(generate(prompt, 30, seed), f.collector.sink());
        ASSERT_TRUE(id.ok()) << id.status();
        ids[seed] = *id;
      }
      ASSERT_TRUE(f.collector.wait(32));
      for (const auto& [seed, id] : ids) {
        const std::string text = f.collector.get(id).text;
        const auto [it, is_first] = reference.emplace(seed, text);
        EXPECT_EQ(text, it->second) << "seed " << seed << ", chunk " << chunk << ", blocks " << blocks;
      }
    }
  }
}

}  // namespace
}  // namespace omnibus
