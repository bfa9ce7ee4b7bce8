// Kernels against a probe taken in the same process: GB/s of weights or KV, GOP/s, and both as shares of the
// probe.
//   bench_kernels [threads] [google benchmark flags]
// The share is the figure to judge by; take the best of --benchmark_repetitions on a shared box.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <numeric>
#include <tuple>

#include <benchmark/benchmark.h>

#include "omnibus/compute/ops/attention.h"
#include "omnibus/compute/ops/gate_up_act.h"
#include "omnibus/compute/ops/head.h"
#include "omnibus/compute/ops/linear.h"
#include "omnibus/compute/ops/norm_quant.h"

#include "kernels/random_weights.h"
#include "probe.h"

namespace omnibus {
namespace {

int32_t threads_in_use = 2;

TestDevice& device() {
  static TestDevice d(CpuIsa::kAuto, ActivationMode::kInt8, threads_in_use, size_t{1} << 30);
  return d;
}

// Activations of one benchmark; the function runs several times, its arena goes with it.
struct Scratch {
  std::unique_ptr<Allocator> arena = make_arena_allocator("scratch", 64 << 20).value();

  Activations of(int32_t m, int32_t k, ActivationNeeds needs) {
    return Activations::allocate(*arena, m, k, needs).value();
  }
  // Random rows in every form.
  Activations random(int32_t m, int32_t k) {
    Rng rng(2);
    const auto x = random_floats(rng, static_cast<size_t>(m) * k);
    const std::vector<float> ones(static_cast<size_t>(k), 1.0F);
    Activations a = of(m, k, {true, true, true});
    norm_quant(device().ctx, {x.data(), nullptr, ones.data(), 1e-5F, m, &a});
    return a;
  }
};

// Counters of one benchmark: rates and their share of a probe taken now.
void report(benchmark::State& state, double bytes, double ops) {
  const bench::Probe p = bench::probe(*device().pool);
  const auto rate = [&](double per_iteration) {
    return benchmark::Counter(per_iteration, benchmark::Counter::kIsIterationInvariantRate);
  };
  state.counters["GB/s"] = rate(bytes / 1e9);
  state.counters["GOP/s"] = rate(ops / 1e9);
  state.counters["of_read"] = rate(bytes / 1e9 / p.read_gb_s);
  if (p.int8_gop_s > 0) state.counters["of_int8"] = rate(ops / 1e9 / p.int8_gop_s);
}

// `copies` matrices [n, k] of one type: more than the caches hold, as in a model.
const std::vector<LinearWeight>& matrices(uint32_t type, int32_t n, int32_t k, int64_t total_bytes) {
  static std::map<std::tuple<uint32_t, int32_t, int32_t>, std::vector<LinearWeight>> made;
  std::vector<LinearWeight>& all = made[{type, n, k}];
  if (!all.empty()) return all;
  Rng rng(1);
  const auto rows = random_rows(rng, type, n, k);
  for (int64_t bytes = 0; bytes < total_bytes; bytes += static_cast<int64_t>(all.back().packed.bytes)) {
    all.push_back(device().pack(type, rows, n, k));
  }
  return all;
}

void linear_rows(benchmark::State& state, uint32_t type, int32_t n, int32_t k,
                 int64_t total_bytes = 40 << 20) {
  const auto m = static_cast<int32_t>(state.range(0));
  const auto& weights = matrices(type, n, k, total_bytes);
  Scratch scratch;
  const Activations x = scratch.random(m, k);
  std::vector<float> out(static_cast<size_t>(m) * n);
  for (auto _ : state) {
    for (const LinearWeight& w : weights) linear(device().ctx, {&w, &x, out.data()});
  }
  const auto count = static_cast<double>(weights.size());
  report(state, count * static_cast<double>(weights[0].packed.bytes), count * 2.0 * m * n * k);
}

void attention_decode(benchmark::State& state, int32_t kv_heads, int32_t group, int32_t head_dim) {
  const auto context = static_cast<int32_t>(state.range(0));
  const auto n_query = static_cast<int32_t>(state.range(1));
  constexpr int32_t kLayers = 16;
  const int32_t blocks = (context + 15) / 16;
  const int64_t block_bytes = kv_block_bytes(DType::kBF16, kv_heads, head_dim);
  std::vector<uint16_t> cache(static_cast<size_t>(kLayers * blocks * block_bytes / 2));
  Rng rng(3);
  for (uint16_t& v : cache)
    v = f32_to_bf16(static_cast<float>(static_cast<int32_t>(rng() % 2001) - 1000) / 1000.0F);
  std::vector<int32_t> table(static_cast<size_t>(blocks));
  std::iota(table.begin(), table.end(), 0);
  std::shuffle(table.begin(), table.end(), rng);
  const int32_t heads = kv_heads * group;
  const int32_t width = heads * head_dim;
  const auto q = random_floats(rng, static_cast<size_t>(n_query) * width);
  const AttentionSequence sequence{0, n_query, context, table.data()};
  const AttentionMetadata metadata{&sequence, 1, n_query, 0};
  std::vector<float> scratch(
      static_cast<size_t>(attention_scratch_floats(device().ctx, n_query, heads, head_dim, context)));
  Scratch memory;
  Activations out = memory.of(n_query, width, {.int8 = true});
  for (auto _ : state) {
    for (int32_t layer = 0; layer < kLayers; ++layer) {
      KVCacheView kv{cache.data() + layer * blocks * block_bytes / 2,
                     DType::kBF16,
                     kv_heads,
                     head_dim,
                     block_bytes,
                     blocks};
      attention(device().ctx, {q.data(), kv, heads, 0.125F, &metadata, scratch.data(), &out});
    }
  }
  const double seen = n_query * (context - (n_query - 1) / 2.0);
  report(state, static_cast<double>(cache.size()) * 2, kLayers * 4.0 * seen * width);
}

void norm_rows(benchmark::State& state) {
  const auto m = static_cast<int32_t>(state.range(0));
  constexpr int32_t kWidth = 576;
  Rng rng(4);
  const auto x = random_floats(rng, static_cast<size_t>(m) * kWidth);
  const auto weight = random_floats(rng, kWidth);
  Activations out =
      Activations::allocate(*device().arena, m, kWidth, {.int8 = true, .scaled_sum = true}).value();
  for (auto _ : state) norm_quant(device().ctx, {x.data(), nullptr, weight.data(), 1e-5F, m, &out});
  report(state, 4.0 * m * kWidth, 4.0 * m * kWidth);
}

void gate_up(benchmark::State& state) {
  const auto m = static_cast<int32_t>(state.range(0));
  constexpr int32_t kWidth = 576;
  constexpr int32_t kHidden = 1536;
  const auto& weights = matrices(3, kHidden, kWidth, 40 << 20);
  Scratch scratch;
  const Activations x = scratch.random(m, kWidth);
  std::vector<float> products(static_cast<size_t>(2 * m * kHidden));
  Activations out = scratch.of(m, kHidden, {.int8 = true, .scaled_sum = true});
  for (auto _ : state) {
    for (size_t i = 0; i + 1 < weights.size(); i += 2) {
      gate_up_act(device().ctx,
                  {&x, &weights[i], &weights[i + 1], GatedActivation::kSilu, products.data(), &out});
    }
  }
  const auto count = static_cast<double>(weights.size() / 2 * 2);
  report(state, count * static_cast<double>(weights[0].packed.bytes), count * 2.0 * m * kHidden * kWidth);
}

void select_row(benchmark::State& state) {
  Rng rng(6);
  auto logits = random_floats(rng, 49152, 3.0F);
  HeadRequest request;
  request.k = static_cast<int32_t>(state.range(0));
  HeadOutput output;
  for (auto _ : state) select_candidates(logits, {}, request, output);
  report(state, 4.0 * 49152, 49152);
}

void register_all() {
  const auto add = [](const std::string& name, auto body) {
    return benchmark::RegisterBenchmark(name.c_str(), body)->UseRealTime()->Unit(benchmark::kMicrosecond);
  };
  for (const uint32_t type : {3U, 2U, 6U, 8U, 30U, 12U}) {
    const std::string name = std::string("linear/") + kernels::ggml_type_name(type);
    auto* b = add(name + "/2048x2048", [type](benchmark::State& s) { linear_rows(s, type, 2048, 2048); });
    for (const int64_t m : {1, 4, 16, 512}) b->Arg(m);
  }
  auto* down = add("linear/Q4_1/576x1536", [](benchmark::State& s) { linear_rows(s, 3, 576, 1536); });
  auto* up = add("linear/Q4_1/1536x576", [](benchmark::State& s) { linear_rows(s, 3, 1536, 576); });
  add("cached/Q4_1/1504x576", [](benchmark::State& s) { linear_rows(s, 3, 1504, 576, 1 << 20); })
      ->Arg(1)
      ->Arg(4)
      ->Arg(16);
  auto* gate = add("gate_up/Q4_1", gate_up);
  auto* norm = add("norm_quant/576", norm_rows);
  for (auto* b : {down, up, gate, norm}) b->Arg(1)->Arg(4)->Arg(16)->Arg(512);
  add("head/49152x576/Q8_0", [](benchmark::State& s) { linear_rows(s, 8, 49152, 576); })->Arg(1)->Arg(8);
  add("attention/smol", [](benchmark::State& s) { attention_decode(s, 3, 3, 64); })
      ->Args({1024, 1})
      ->Args({4096, 1})
      ->Args({512, 512});
  add("attention/llama1b", [](benchmark::State& s) { attention_decode(s, 8, 4, 64); })->Args({2048, 1});
  add("select_candidates", select_row)->Arg(1)->Arg(40)->Arg(1000);
}

}  // namespace
}  // namespace omnibus

int main(int argc, char** argv) {
  if (argc > 1 && argv[1][0] != '-') omnibus::threads_in_use = std::max(1, std::atoi(argv[1]));
  benchmark::Initialize(&argc, argv);
  omnibus::register_all();
  const omnibus::bench::Probe p = omnibus::bench::probe(*omnibus::device().pool);
  std::printf("%s, %d threads; probe: read %.1f GB/s, int8 %.0f GOP/s\n",
              omnibus::describe(omnibus::device().ctx).c_str(), omnibus::threads_in_use, p.read_gb_s,
              p.int8_gop_s);
  benchmark::RunSpecifiedBenchmarks();
  return 0;
}
