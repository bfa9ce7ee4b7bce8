// Activations: the input of matmuls in the forms that its consumers ask for, written once per distinct input
// by the op that produces it (norm_quant, attention, gate_up_act).
#pragma once

#include <cstdint>

#include "omnibus/base/common/status.h"
#include "omnibus/compute/core/allocator.h"
#include "omnibus/compute/ops/op_context.h"

namespace omnibus {

inline constexpr int32_t kQuantGroup = 32;  // activations are quantised per 32 values along k
inline constexpr int64_t padded_k(int64_t k) { return (k + kQuantGroup - 1) / kQuantGroup * kQuantGroup; }

// Which forms are needed; the union over the consumers of one input.
struct ActivationNeeds {
  bool f32 = false;         // float weights, and everything in kF32 mode
  bool int8 = false;        // q, scale, group_sum
  bool scaled_sum = false;  // weight forms with a minimum
  ActivationNeeds operator|(const ActivationNeeds& o) const {
    return {f32 || o.f32, int8 || o.int8, scaled_sum || o.scaled_sum};
  }
};

// [m, k], rows padded to padded_k(k) with zeros. Views into scratch memory; pointers not needed are null. f32
// is row-major; the int8 form interleaves 16 rows group by group, as the kernels read it
// (omnibus_kernels/formats.h): with i = (row / 16 * groups + group) * 16 + row % 16, q[32 i ...] are the
// group's values, scale[i] its scale.
struct Activations {
  int32_t m = 0;      // rows in use
  int32_t max_m = 0;  // rows allocated
  int32_t k = 0;
  ActivationNeeds needs;
  float* f32 = nullptr;          // [max_m, padded_k]
  int8_t* q = nullptr;           // value = scale * q, |q| <= 127, round to nearest even
  float* scale = nullptr;        // amax / 127
  int32_t* group_sum = nullptr;  // sum of q in the group
  float* scaled_sum = nullptr;   // scale * group_sum

  static StatusOr<Activations> allocate(Allocator& allocator, int32_t max_m, int32_t k,
                                        ActivationNeeds needs);
};

}  // namespace omnibus
