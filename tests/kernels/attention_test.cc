#include "omnibus/compute/ops/attention.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numeric>

#include <gtest/gtest.h>

#include "omnibus_kernels/rows.h"

#include "kernels/random_weights.h"
#include "kernels/reference/attention.h"
#include "kernels/tolerance.h"

namespace omnibus {
namespace {

// One sequence's K, V and queries, and a paged cache that holds it under a shuffled block table.
struct Sequence {
  reference::AttentionShape shape;
  std::vector<float> q, k, v;
  std::vector<int32_t> blocks;
};

struct Cache {
  KVCacheView view;
  std::vector<uint8_t> data;

  Cache(DType dtype, const reference::AttentionShape& s, int32_t blocks) {
    view = {nullptr, dtype, s.kv_heads, s.head_dim, kv_block_bytes(dtype, s.kv_heads, s.head_dim), blocks};
    data.assign(static_cast<size_t>(view.block_bytes) * static_cast<size_t>(blocks), 0);
    view.data = data.data();
  }

  void write(const kernels::CpuTable& table, const Sequence& s) {
    const size_t width = static_cast<size_t>(view.kv_heads) * static_cast<size_t>(view.head_dim);
    for (int32_t t = 0; t < s.shape.context; ++t) {
      table.kv_write({s.k.data() + static_cast<size_t>(t) * width,
                      s.v.data() + static_cast<size_t>(t) * width,
                      data.data() + s.blocks[static_cast<size_t>(t / 16)] * view.block_bytes, t % 16,
                      view.kv_heads, view.head_dim, view.dtype == DType::kF32, false});
    }
  }
};

void round_to_bf16(std::vector<float>& x) {
  for (float& v : x) v = bf16_to_f32(f32_to_bf16(v));
}

Sequence random_sequence(Rng& rng, reference::AttentionShape shape, bool bf16) {
  Sequence s{shape, {}, {}, {}, {}};
  const size_t kv = static_cast<size_t>(shape.context) * static_cast<size_t>(shape.kv_heads * shape.head_dim);
  s.q = random_floats(
      rng, static_cast<size_t>(shape.n_query) * static_cast<size_t>(shape.heads * shape.head_dim), 1.5F);
  s.k = random_floats(rng, kv);
  s.v = random_floats(rng, kv);
  if (bf16) {
    round_to_bf16(s.k);
    round_to_bf16(s.v);
  }
  return s;
}

// Deals the blocks of a shuffled pool to the sequences; returns the pool's size.
int32_t deal_blocks(Rng& rng, std::vector<Sequence>& sequences) {
  int32_t total = 3;  // and some that nobody owns
  for (const Sequence& s : sequences) total += (s.shape.context + 15) / 16;
  std::vector<int32_t> ids(static_cast<size_t>(total));
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), rng);
  for (Sequence& s : sequences) {
    for (int32_t i = 0; i < (s.shape.context + 15) / 16; ++i) {
      s.blocks.push_back(ids.back());
      ids.pop_back();
    }
  }
  return total;
}

std::vector<float> run_attention(TestDevice& device, const KVCacheView& kv,
                                 const std::vector<Sequence>& sequences,
                                 const std::vector<AttentionSequence>& rows, const std::vector<float>& q) {
  const reference::AttentionShape& s = sequences[0].shape;
  const int32_t width = s.heads * s.head_dim;
  const auto m = static_cast<int32_t>(q.size()) / width;
  int32_t max_context = 1;
  for (const AttentionSequence& r : rows) max_context = std::max(max_context, r.context);
  std::vector<float> scratch(
      static_cast<size_t>(attention_scratch_floats(device.ctx, m, s.heads, s.head_dim, max_context)));
  const AttentionMetadata metadata{rows.data(), static_cast<int32_t>(rows.size()), m, s.window};
  Activations out = Activations::allocate(*device.arena, m, width, {true, true, true}).value();
  attention(device.ctx,
            {q.data(), kv, s.heads, static_cast<float>(s.scale), &metadata, scratch.data(), &out});
  EXPECT_EQ(out.m, m);
  std::vector<float> got;
  for (int32_t i = 0; i < m; ++i) {
    const float* row = out.f32 + i * padded_k(width);
    got.insert(got.end(), row, row + width);
  }
  return got;
}

std::vector<float> all_queries(const std::vector<Sequence>& sequences, std::vector<AttentionSequence>& rows) {
  std::vector<float> q;
  for (const Sequence& s : sequences) {
    const auto first = static_cast<int32_t>(q.size()) / (s.shape.heads * s.shape.head_dim);
    rows.push_back({first, s.shape.n_query, s.shape.context, s.blocks.data()});
    q.insert(q.end(), s.q.begin(), s.q.end());
  }
  return q;
}

std::string describe_shape(CpuIsa isa, const reference::AttentionShape& s) {
  return std::string(to_string(isa)) + " heads=" + std::to_string(s.heads) + "/" +
         std::to_string(s.kv_heads) + " dim=" + std::to_string(s.head_dim) +
         " query=" + std::to_string(s.n_query) + " context=" + std::to_string(s.context) +
         " window=" + std::to_string(s.window) + " seed=" + std::to_string(test_seed());
}

class AttentionKernel : public testing::TestWithParam<int32_t> {};

TEST_P(AttentionKernel, MixedBatchMatchesFloat64) {
  const int32_t head_dim = GetParam();
  Rng rng(test_seed() + static_cast<uint32_t>(head_dim));
  for (const CpuIsa isa : supported_isas()) {
    for (const DType dtype : {DType::kBF16, DType::kF32}) {
      for (int32_t group = 1; group <= 8; group += isa == CpuIsa::kGeneric ? 3 : 1) {
        reference::AttentionShape shape{0, pick(rng, 1, 3), head_dim, 0, 0, 0, 1.0 / std::sqrt(head_dim)};
        shape.heads = shape.kv_heads * group;
        if (pick(rng, 0, 2) == 0) shape.window = pick(rng, 1, 300);
        std::vector<Sequence> sequences;
        for (int32_t i = 0; i < 3; ++i) {
          shape.context = pick(rng, 1, i == 0 ? 600 : 90);
          shape.n_query = i == 1 ? 1 : pick(rng, 1, std::min(shape.context, 20));
          sequences.push_back(random_sequence(rng, shape, dtype == DType::kBF16));
        }
        TestDevice device(isa, ActivationMode::kF32);
        Cache cache(dtype, shape, deal_blocks(rng, sequences));
        for (const Sequence& s : sequences) cache.write(*device.ctx.table->cpu, s);
        std::vector<AttentionSequence> rows;
        const auto q = all_queries(sequences, rows);
        const auto got = run_attention(device, cache.view, sequences, rows, q);
        std::vector<double> expected;
        for (const Sequence& s : sequences) {
          const auto e = reference::attention(s.shape, s.q, s.k, s.v);
          expected.insert(expected.end(), e.begin(), e.end());
        }
        const bool rounds = dtype == DType::kBF16 && isa == CpuIsa::kAvx512;
        expect_close(got, expected, rounds ? kBf16Attention : kF32Attention, describe_shape(isa, shape));
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(HeadDims, AttentionKernel, testing::Values(32, 40, 64, 80, 96, 128, 256));

// One row, one answer: the same bits whatever the chunks a prompt was computed in, the neighbours in the
// batch, the block table, the threads, and whether segments were dealt singly.
TEST(Attention, BitsDoNotDependOnChunkingBatchOrThreads) {
  Rng rng(test_seed() + 9);
  for (const CpuIsa isa : supported_isas()) {
    for (const DType dtype : {DType::kBF16, DType::kF32}) {
      const int32_t context = isa == CpuIsa::kGeneric ? 140 : 530;
      reference::AttentionShape shape{6, 2, 64, context, context, pick(rng, 0, 1) * 200, 0.125};
      std::vector<Sequence> sequences = {random_sequence(rng, shape, true)};
      const int32_t width = shape.heads * shape.head_dim;
      std::vector<float> first;
      for (const int32_t threads : {1, 2, 3}) {
        for (const int32_t chunk : {context, 1, 7, 128}) {
          if (threads != 2 && chunk < 100) continue;
          TestDevice device(isa, ActivationMode::kF32, threads);
          sequences[0].blocks.clear();
          Cache cache(dtype, shape, deal_blocks(rng, sequences));
          // All tokens are in the cache from the start: a later token must not show through the mask.
          cache.write(*device.ctx.table->cpu, sequences[0]);
          std::vector<float> got;
          for (int32_t begin = 0; begin < context; begin += chunk) {
            const int32_t end = std::min(begin + chunk, context);
            const std::vector<AttentionSequence> rows = {{0, end - begin, end, sequences[0].blocks.data()}};
            const std::vector<float> q(sequences[0].q.begin() + static_cast<ptrdiff_t>(begin) * width,
                                       sequences[0].q.begin() + static_cast<ptrdiff_t>(end) * width);
            const auto part = run_attention(device, cache.view, sequences, rows, q);
            got.insert(got.end(), part.begin(), part.end());
          }
          if (first.empty()) first = got;
          ASSERT_EQ(got.size(), first.size());
          ASSERT_EQ(std::memcmp(got.data(), first.data(), got.size() * sizeof(float)), 0)
              << describe_shape(isa, shape) << " chunk=" << chunk << " threads=" << threads;
        }
      }
    }
  }
}

TEST(Attention, RowOfABatchEqualsTheRowAlone) {
  Rng rng(test_seed() + 10);
  for (const CpuIsa isa : supported_isas()) {
    std::vector<Sequence> sequences;
    reference::AttentionShape shape{4, 2, 32, 0, 0, 0, 0.2};
    for (int32_t i = 0; i < 20; ++i) {
      shape.context = pick(rng, 1, 300);
      shape.n_query = pick(rng, 1, std::min(shape.context, 3));
      sequences.push_back(random_sequence(rng, shape, true));
    }
    TestDevice device(isa, ActivationMode::kInt8);
    Cache cache(DType::kBF16, shape, deal_blocks(rng, sequences));
    for (const Sequence& s : sequences) cache.write(*device.ctx.table->cpu, s);
    std::vector<AttentionSequence> rows;
    const auto q = all_queries(sequences, rows);
    const auto batch = run_attention(device, cache.view, sequences, rows, q);
    size_t at = 0;
    for (const Sequence& s : sequences) {
      const auto alone = run_attention(device, cache.view, sequences,
                                       {{0, s.shape.n_query, s.shape.context, s.blocks.data()}}, s.q);
      ASSERT_EQ(std::memcmp(alone.data(), batch.data() + at, alone.size() * sizeof(float)), 0)
          << to_string(isa);
      at += alone.size();
    }
  }
}

// The f32 cache gives the same bits on every instruction set.
TEST(Attention, F32BitsDoNotDependOnIsa) {
  Rng rng(test_seed() + 11);
  for (const int32_t head_dim : {40, 64, 128}) {
    reference::AttentionShape shape{4, 2, head_dim, 5, 300, 0, 0.1};
    std::vector<Sequence> sequences = {random_sequence(rng, shape, false)};
    const int32_t blocks = deal_blocks(rng, sequences);
    std::vector<float> first;
    for (const CpuIsa isa : supported_isas()) {
      TestDevice device(isa, ActivationMode::kF32);
      Cache cache(DType::kF32, shape, blocks);
      cache.write(*device.ctx.table->cpu, sequences[0]);
      std::vector<AttentionSequence> rows;
      const auto q = all_queries(sequences, rows);
      const auto got = run_attention(device, cache.view, sequences, rows, q);
      if (first.empty()) first = got;
      ASSERT_EQ(std::memcmp(got.data(), first.data(), got.size() * sizeof(float)), 0)
          << describe_shape(isa, shape);
    }
  }
}

}  // namespace
}  // namespace omnibus
