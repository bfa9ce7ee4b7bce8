// Element types and devices of the data plane.
#pragma once

#include <cstdint>

namespace omnibus {

enum class DType : uint8_t { kF32, kF16, kBF16, kI8, kU8, kI32 };
int32_t dtype_bytes(DType dtype);
const char* to_string(DType dtype);

// kMeta computes shapes, bytes and FLOPs only: running a model on it is the memory plan and the cost model
// (docs/design.md, P3).
enum class DeviceKind : uint8_t { kCpu, kCuda, kMeta };
struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int32_t index = 0;
  bool operator==(const Device&) const = default;
};

// IEEE half and bfloat16 as raw bits; round to nearest even.
float f16_to_f32(uint16_t bits);
uint16_t f32_to_f16(float value);
float bf16_to_f32(uint16_t bits);
uint16_t f32_to_bf16(float value);

}  // namespace omnibus
