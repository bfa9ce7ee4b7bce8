// Ready workers on small random models, and requests that exercise every sampling parameter.
#pragma once

#include <memory>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "omnibus/compute/worker/worker.h"

#include "compute/support/random_model.h"
#include "compute/support/step_driver.h"

namespace omnibus {

inline constexpr int32_t kTestBlocks = 128;

inline WorkerConfig small_config(std::shared_ptr<const GgufFile> model, Numerics numerics) {
  WorkerConfig config;
  config.model = std::move(model);
  config.numerics = numerics;
  config.threads = 1;
  config.max_num_seqs = 16;
  config.max_num_batched_tokens = 512;
  config.kv_cache_bytes = 64 << 20;
  return config;
}

// Through init, load, allocate_kv and join of epoch 1.
inline std::unique_ptr<WorkerBase> ready_worker(const WorkerConfig& config, int32_t blocks = kTestBlocks) {
  auto worker = make_worker(config);
  EXPECT_TRUE(worker.ok()) << worker.status();
  if (!worker.ok()) return nullptr;
  auto plan = (*worker)->capacity();
  EXPECT_TRUE(plan.ok()) << plan.status();
  plan->kv.num_blocks = blocks;
  GroupSpec group;
  group.epoch = 1;
  group.ranks = {0};
  for (const Status& s :
       {(*worker)->init(), (*worker)->load(), (*worker)->allocate_kv(plan->kv), (*worker)->join(group)})
    EXPECT_TRUE(s.ok()) << s;
  return *std::move(worker);
}

inline Request make_request(RequestId id, int32_t prompt_length, int32_t vocab, uint64_t seed) {
  std::mt19937_64 rng(seed * 7919 + id);
  Request request;
  request.id = id;
  for (int32_t i = 0; i < prompt_length; ++i)
    request.prompt_token_ids.push_back(static_cast<TokenId>(rng() % static_cast<uint64_t>(vocab)));
  SamplingParams params;
  params.seed = rng();
  params.max_tokens = 10;
  params.logprobs = 3;
  request.params = params;
  request.eos_token_ids = {2};
  return request;
}

// Requests of lengths 1 .. 50 with different sampling each.
inline std::vector<Request> mixed_requests(int32_t vocab, uint64_t seed) {
  const int32_t lengths[] = {1, 16, 17, 50, 5, 33, 2, 40};
  std::vector<Request> requests;
  for (int32_t i = 0; i < 8; ++i) requests.push_back(make_request(100 + i, lengths[i], vocab, seed));
  const auto params = [&](size_t i) -> SamplingParams& {
    return std::get<SamplingParams>(requests[i].params);
  };
  params(0).temperature = 0;
  params(1).temperature = 0.8F;
  params(1).top_p = 0.9F;
  params(2).top_k = 20;
  params(3).temperature = 0;
  params(3).prompt_logprobs = 2;
  params(3).repetition_penalty = 1.3F;
  params(4).presence_penalty = 0.7F;
  params(4).frequency_penalty = 0.9F;
  params(4).temperature = 0;
  params(4).allowed_token_ids = {20, 21, 22, 23};  // few, so that tokens repeat and are counted
  params(5).logit_bias = {{7, 5.0F}, {8, -100.0F}};
  params(5).min_p = 0.02F;
  params(5).repetition_penalty = 1.1F;
  params(5).frequency_penalty = 0.3F;
  params(5).penalty_window = std::numeric_limits<int32_t>::max();
  params(6).allowed_token_ids = {2, 10, 11, 12, 13, 14};
  params(6).min_tokens = 6;
  params(6).bad_sequences = {{10, 11}, {12}, {11, 10, 13}};
  params(6).logprob_token_ids = {12, 13};
  params(7).temperature = 1.5F;
  params(7).repetition_penalty = 1.2F;
  params(7).penalty_window = 7;
  params(7).prompt_logprobs = 0;
  return requests;
}

inline std::string show(const DriverResult& r) {
  std::string text = "[";
  for (TokenId t : r.tokens) text += std::to_string(t) + " ";
  text += "] logprobs " + std::to_string(r.logprobs.size()) + ", prompt " +
          std::to_string(r.prompt_logprobs.size());
  return text;
}

inline void expect_same(const std::map<RequestId, DriverResult>& expected,
                        const std::map<RequestId, DriverResult>& got) {
  ASSERT_EQ(expected.size(), got.size());
  for (const auto& [id, result] : expected)
    EXPECT_TRUE(result == got.at(id))
        << "request " << id << "\n  expected " << show(result) << "\n  got      " << show(got.at(id));
}

}  // namespace omnibus
