#include "omnibus/compute/ops/device_ops.h"

#include <gtest/gtest.h>

#include "omnibus/compute/ops/attention.h"
#include "omnibus/compute/ops/linear.h"

#include "kernels/random_weights.h"

namespace omnibus {
namespace {

TEST(DeviceOps, NamesRoundTripAndErrorsNameTheInput) {
  for (const CpuIsa isa : {CpuIsa::kAuto, CpuIsa::kGeneric, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    EXPECT_EQ(parse_cpu_isa(to_string(isa)).value(), isa);
  }
  const Status bad = parse_cpu_isa("sse9").status();
  EXPECT_EQ(bad.code(), StatusCode::kInvalidArgument);
  EXPECT_NE(bad.message().find("sse9"), std::string::npos);
}

TEST(DeviceOps, ContextsNeedWhatTheyUse) {
  auto pool = ComputePool::create(1, false).value();
  MetaTrace trace;
  const ActivationMode mode = ActivationMode::kInt8;
  EXPECT_FALSE(make_op_context({DeviceKind::kCpu, 0}, CpuIsa::kAuto, mode, nullptr, nullptr).ok());
  EXPECT_FALSE(make_op_context({DeviceKind::kMeta, 0}, CpuIsa::kAuto, mode, nullptr, nullptr).ok());
  EXPECT_EQ(make_op_context({DeviceKind::kCuda, 0}, CpuIsa::kAuto, mode, pool.get(), &trace).status().code(),
            StatusCode::kUnimplemented);
  const OpContext ctx =
      make_op_context({DeviceKind::kCpu, 0}, CpuIsa::kAuto, mode, pool.get(), nullptr).value();
  EXPECT_EQ(describe(ctx).rfind(to_string(supported_isas().back()), 0), 0U);
}

// docs/design.md, P3: the plan on the meta device takes the bytes that the CPU takes.
TEST(Meta, TakesTheBytesOfTheCpuAndCountsWork) {
  MetaTrace trace;
  const OpContext meta =
      make_op_context({DeviceKind::kMeta, 0}, CpuIsa::kAuto, ActivationMode::kInt8, nullptr, &trace).value();
  auto meta_arena = make_meta_allocator("weights");
  Rng rng(test_seed());
  TestDevice cpu(CpuIsa::kAuto, ActivationMode::kInt8);
  for (const uint32_t type : kAllTypes) {
    const size_t before = cpu.arena->used_bytes();
    const size_t meta_before = meta_arena->used_bytes();
    const int32_t n = pick(rng, 1, 90);
    cpu.pack(type, random_rows(rng, type, n, 512), n, 512);
    ASSERT_TRUE(pack_linear(meta, {"w", type, n, 512, {}, {}}, *meta_arena).ok());
    EXPECT_EQ(cpu.arena->used_bytes() - before, meta_arena->used_bytes() - meta_before)
        << kernels::ggml_type_name(type);
  }
  const LinearWeight w = pack_linear(meta, {"w", 2, 64, 128, {}, {}}, *meta_arena).value();
  Activations x = Activations::allocate(*meta_arena, 7, 128, w.needs(ActivationMode::kInt8)).value();
  x.m = 7;
  linear(meta, {&w, &x, nullptr});
  EXPECT_EQ(trace.flops, 2 * 7 * 64 * 128);
  EXPECT_EQ(trace.weight_bytes, 64 * 128 / 32 * 18);

  trace = {};
  const AttentionSequence sequences[] = {{0, 3, 10, nullptr}, {3, 1, 100, nullptr}};
  const AttentionMetadata metadata{sequences, 2, 4, 0};
  Activations out = Activations::allocate(*meta_arena, 4, 4 * 64, {.int8 = true}).value();
  const KVCacheView kv{nullptr, DType::kBF16, 2, 64, kv_block_bytes(DType::kBF16, 2, 64), 10};
  attention(meta, {nullptr, kv, 4, 0.125F, &metadata, nullptr, &out});
  EXPECT_EQ(trace.flops, 4 * 4 * 64 * (8 + 9 + 10 + 100));
  EXPECT_EQ(trace.kv_bytes, (10 + 100) * 2 * 2 * 64 * 2);
}

}  // namespace
}  // namespace omnibus
