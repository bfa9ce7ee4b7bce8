// Packed weight forms of the CPU kernels (docs/cpu-kernels.md, weight panels).
//
// A panel is 16 consecutive output rows; along k it is a sequence of records of 32 columns. Weight byte
// (row r, column k) of a record sits in dword vector i = k / 4 at byte r * 4 + k % 4, so that one 64-byte
// load feeds a four-wide integer dot product of 16 rows. Rows beyond n and columns beyond k are zero.
//   kU4   256 nibbles, 16 f16 scales                       s * (q - 8)
//   kU4M  256 nibbles, 16 f16 scales, 16 f16 minima        s * q + m
//   kU5   256 nibbles, 8 u64 bit masks, 16 f16 scales      s * (q - 16)
//   kU5M  the same with 16 f16 minima                      s * q + m
//   kS8   512 bytes (q xor 0x80), 16 f16 scales            s * (q - 128)
//   kF32, kF16: [32 columns][16 rows]      kBF16: [16 column pairs][16 rows][2]
//   kBlocks: rows as in the file, 16 rows a panel, decoded when used
// Nibbles: byte v * 64 + r * 4 + j holds columns 8v + j (low) and 8v + 4 + j (high). Bit 5: mask i, bit r * 4
// + j.
#pragma once

#include <cstdint>

namespace omnibus::kernels {

enum class Form : uint8_t { kU4, kU4M, kU5, kU5M, kS8, kF32, kF16, kBF16, kBlocks };

static constexpr int32_t kPanelRows = 16;
static constexpr int32_t kGroup = 32;       // columns of a record; activations are quantised per group
static constexpr int32_t kMaxUnits = 1024;  // shard units of one row-parallel product

// Activations of up to 16 rows are interleaved: group g of row r is at ((r / 16) * groups + g) * 16 + r % 16,
// in units of 32 values for q and of one value for the rest. f32 rows are plain: [row][groups * 32].
struct ActStore {
  float* f32;
  int8_t* q;
  float* scale;
  int32_t* group_sum;
  float* scaled_sum;
  int32_t k;
  int32_t groups;
};

}  // namespace omnibus::kernels
