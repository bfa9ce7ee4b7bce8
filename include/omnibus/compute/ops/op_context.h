// OpContext: what every op of a device needs beside its operands. One per worker; ops are called from the
// worker's thread (compute thread 0) and fan out over the pool themselves.
#pragma once

#include <cstdint>

#include "omnibus/compute/core/compute_pool.h"
#include "omnibus/compute/core/dtype.h"

namespace omnibus {

// How matmuls see their inputs. kInt8: int8 per group of 32 with f32 scales (--numerics fast). kF32: float
// activations and f32 FMA, k ascending (--numerics f32, the oracle mode).
enum class ActivationMode : uint8_t { kInt8, kF32 };

// Instruction set of the CPU table; kAuto is the best the machine has. Lower ones can be forced, for tests.
enum class CpuIsa : uint8_t { kAuto, kGeneric, kAvx2, kAvx512 };

// What the meta device counts while a model runs on it.
struct MetaTrace {
  int64_t flops = 0;         // multiply-adds count two
  int64_t weight_bytes = 0;  // read once per call
  int64_t kv_bytes = 0;
};

struct OpTable;  // the device's kernels; see op_table.h

struct OpContext {
  Device device;
  const OpTable* table = nullptr;
  ComputePool* pool = nullptr;  // null on kMeta
  ActivationMode mode = ActivationMode::kInt8;
  MetaTrace* trace = nullptr;  // kMeta only
  int32_t planned_threads =
      1;  // kMeta only: threads of the pool that is planned for; scratch sizes depend on it

  int32_t threads() const { return pool != nullptr ? pool->threads() : planned_threads; }
};

}  // namespace omnibus
