#include "probe.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>

#include "omnibus/compute/core/allocator.h"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace omnibus::bench {
namespace {

std::atomic<uint64_t> sink{0};  // keeps the loops alive

template <typename Body>
double seconds(ComputePool& pool, Body body) {
  const auto start = std::chrono::steady_clock::now();
  pool.parallel(body);
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

#if defined(__x86_64__)
constexpr int64_t kRounds = 2'000'000;
constexpr int64_t kChains = 12;

__attribute__((target("avx512f,avx512vnni"))) void vnni_loop() {
  __m512i acc[kChains];
  for (__m512i& a : acc) a = _mm512_setzero_si512();
  const __m512i x = _mm512_set1_epi8(1);
  for (int64_t i = 0; i < kRounds; ++i) {
#pragma GCC unroll 12
    for (__m512i& a : acc) {
      a = _mm512_dpbusd_epi32(a, x, x);
      asm volatile("" : "+v"(a));
    }
  }
  for (const __m512i& a : acc) sink += static_cast<uint64_t>(_mm512_cvtsi512_si32(a));
}

double int8_rate(ComputePool& pool) {
  if (!__builtin_cpu_supports("avx512vnni")) return 0;
  const double t = seconds(pool, [](int32_t, int32_t) { vnni_loop(); });
  return static_cast<double>(kRounds * kChains * 128 * pool.threads()) / t / 1e9;
}
#else
double int8_rate(ComputePool&) { return 0; }
#endif

}  // namespace

Probe probe(ComputePool& pool) {
  constexpr size_t kBytes = size_t{256} << 20;
  static auto arena = make_arena_allocator("probe", kBytes).value();
  static const Buffer buffer = arena->allocate(kBytes).value();
  const auto sweep = [&](int32_t thread, int32_t threads) {
    const auto* words = static_cast<const uint64_t*>(buffer.data);
    const ThreadRange range = thread_range(kBytes / 8, thread, threads);
    uint64_t sums[8] = {};
    for (int64_t i = range.begin; i + 8 <= range.end; i += 8) {
      for (int64_t j = 0; j < 8; ++j) sums[j] += words[i + j];
    }
    for (const uint64_t s : sums) sink += s;
  };
  seconds(pool, [&](int32_t thread, int32_t threads) {  // pre-fault
    const ThreadRange range = thread_range(kBytes, thread, threads);
    std::fill_n(static_cast<char*>(buffer.data) + range.begin, range.end - range.begin, char{1});
  });
  Probe p;
  for (int i = 0; i < 4; ++i) {
    p.read_gb_s = std::max(p.read_gb_s, static_cast<double>(kBytes) / seconds(pool, sweep) / 1e9);
    p.int8_gop_s = std::max(p.int8_gop_s, int8_rate(pool));
  }
  return p;
}

}  // namespace omnibus::bench
