#include "omnibus_kernels/pack.h"

#include <cstring>

#include "omnibus_kernels/dequant.h"

#include "record_size.h"

namespace omnibus::kernels {
namespace {

constexpr int64_t kNibbleBytes = 256;
constexpr int64_t kMaskBytes = 64;
constexpr int64_t kByteBytes = 512;
constexpr int64_t kHalfVector = 32;

// Where the parts of a quantised record lie, and of the file block it comes from.
struct QuantLayout {
  int64_t mask_at = 0;  // 0: none
  int64_t scale_at = 0;
  int64_t min_at = 0;  // 0: none
  int64_t src_bytes = 0, src_min = 0, src_high = 0, src_q = 0;
};

QuantLayout quant_layout(Form form) {
  switch (form) {
    case Form::kU4:
      return {0, kNibbleBytes, 0, 18, 0, 0, 2};
    case Form::kU4M:
      return {0, kNibbleBytes, kNibbleBytes + kHalfVector, 20, 2, 0, 4};
    case Form::kU5:
      return {kNibbleBytes, kNibbleBytes + kMaskBytes, 0, 22, 0, 2, 6};
    case Form::kU5M:
      return {kNibbleBytes, kNibbleBytes + kMaskBytes, kNibbleBytes + kMaskBytes + kHalfVector, 24, 2, 4, 8};
    default:
      return {0, kByteBytes, 0, 34, 0, 0, 2};  // kS8
  }
}

bool is_quantised(Form form) { return form <= Form::kS8; }

void put_half(uint8_t* vector, int32_t row, const uint8_t* bits) { std::memcpy(vector + 2 * row, bits, 2); }

// One file block (32 columns of one row) into row r of a record.
void pack_block(Form form, const QuantLayout& at, const uint8_t* src, int32_t r, uint8_t* record) {
  put_half(record + at.scale_at, r, src);
  if (at.min_at != 0) put_half(record + at.min_at, r, src + at.src_min);
  const uint8_t* q = src + at.src_q;
  if (form == Form::kS8) {
    for (int32_t k = 0; k < kGroup; ++k) {
      record[(k / 4) * 64 + r * 4 + k % 4] = static_cast<uint8_t>(q[k] ^ 0x80);
    }
    return;
  }
  // File: byte b holds columns b and b + 16. Record: byte (v, j) holds columns 8v + j and 8v + 4 + j.
  for (int32_t v = 0; v < 4; ++v) {
    const int32_t shift = v < 2 ? 0 : 4;
    const uint8_t* pair = q + (v % 2) * 8;
    uint8_t* dst = record + v * 64 + r * 4;
    for (int32_t j = 0; j < 4; ++j) {
      dst[j] = static_cast<uint8_t>(((pair[j] >> shift) & 15) | (((pair[4 + j] >> shift) & 15) << 4));
    }
  }
  if (at.mask_at == 0) return;
  uint32_t high = 0;
  std::memcpy(&high, src + at.src_high, sizeof high);
  for (int32_t i = 0; i < 8; ++i) {  // row r owns bits 4r ... 4r + 3 of mask i: half a byte
    uint8_t& byte = record[at.mask_at + i * 8 + r / 2];
    byte = static_cast<uint8_t>(byte | (((high >> (4 * i)) & 15U) << (4 * (r % 2))));
  }
}

void pack_quantised(const PackParams& p, int32_t panel, uint8_t* dst) {
  const QuantLayout at = quant_layout(p.form);
  const int64_t record = record_bytes(p.form);
  const int32_t groups = p.k / kGroup;
  std::memset(dst, 0, static_cast<size_t>(record * groups));
  for (int32_t r = 0; r < kPanelRows; ++r) {
    const int32_t row = panel * kPanelRows + r;
    if (row >= p.n) break;
    const uint8_t* src = p.rows + row * p.row_bytes;
    for (int32_t g = 0; g < groups; ++g) pack_block(p.form, at, src + g * at.src_bytes, r, dst + g * record);
  }
}

// Byte offset of element (row r, column k) in a float panel.
int64_t float_at(Form form, int32_t r, int32_t k) {
  if (form == Form::kF32) return (int64_t{k} * kPanelRows + r) * 4;
  if (form == Form::kF16) return (int64_t{k} * kPanelRows + r) * 2;
  return (int64_t{k / 2} * kPanelRows * 2 + r * 2 + k % 2) * 2;  // kBF16
}

void pack_float(const PackParams& p, int32_t panel, uint8_t* dst) {
  const size_t size = p.form == Form::kF32 ? 4 : 2;
  std::memset(dst, 0, static_cast<size_t>(panel_bytes(p.form, p.k, 0)));
  for (int32_t r = 0; r < kPanelRows; ++r) {
    const int32_t row = panel * kPanelRows + r;
    if (row >= p.n) break;
    const uint8_t* src = p.rows + row * p.row_bytes;
    for (int32_t k = 0; k < p.k; ++k) {
      std::memcpy(dst + float_at(p.form, r, k), src + size * static_cast<size_t>(k), size);
    }
  }
}

void pack_blocks(const PackParams& p, int32_t panel, uint8_t* dst) {
  const int32_t row = panel * kPanelRows;
  const int32_t rows = p.n - row < kPanelRows ? p.n - row : kPanelRows;
  const int64_t used = rows * p.row_bytes;
  std::memcpy(dst, p.rows + row * p.row_bytes, static_cast<size_t>(used));
  std::memset(dst + used, 0, static_cast<size_t>(kPanelRows * p.row_bytes - used));
}

// The inverse of pack_block, so that the reference decoder serves the embedding too.
void unpack_block(Form form, const QuantLayout& at, const uint8_t* record, int32_t r, uint8_t* block) {
  std::memcpy(block, record + at.scale_at + 2 * r, 2);
  if (at.min_at != 0) std::memcpy(block + at.src_min, record + at.min_at + 2 * r, 2);
  uint8_t* q = block + at.src_q;
  if (form == Form::kS8) {
    for (int32_t k = 0; k < kGroup; ++k) {
      q[k] = static_cast<uint8_t>(record[(k / 4) * 64 + r * 4 + k % 4] ^ 0x80);
    }
    return;
  }
  std::memset(q, 0, 16);
  for (int32_t v = 0; v < 4; ++v) {
    const int32_t shift = v < 2 ? 0 : 4;
    uint8_t* pair = q + (v % 2) * 8;
    const uint8_t* src = record + v * 64 + r * 4;
    for (int32_t j = 0; j < 4; ++j) {
      pair[j] = static_cast<uint8_t>(pair[j] | ((src[j] & 15) << shift));
      pair[4 + j] = static_cast<uint8_t>(pair[4 + j] | ((src[j] >> 4) << shift));
    }
  }
  if (at.mask_at == 0) return;
  uint32_t high = 0;
  for (int32_t i = 0; i < 8; ++i) {
    const uint32_t bits = (record[at.mask_at + i * 8 + r / 2] >> (4 * (r % 2))) & 15U;
    high |= bits << (4 * i);
  }
  std::memcpy(block + at.src_high, &high, sizeof high);
}

void unpack_float_row(const PackParams& p, const uint8_t* panel, int32_t r, float* out) {
  constexpr int32_t kChunk = 64;
  const int32_t size = p.form == Form::kF32 ? 4 : 2;
  uint8_t bytes[kChunk * 4];
  for (int32_t k = 0; k < p.k; k += kChunk) {
    const int32_t count = p.k - k < kChunk ? p.k - k : kChunk;
    for (int32_t i = 0; i < count; ++i) {
      std::memcpy(bytes + i * size, panel + float_at(p.form, r, k + i), static_cast<size_t>(size));
    }
    dequantize_blocks(p.ggml_type, bytes, count, out + k);
  }
}

}  // namespace

int64_t record_bytes(Form form) { return record_size(form); }

int64_t panel_bytes(Form form, int32_t k, int64_t row_bytes) {
  if (form == Form::kBlocks) return kPanelRows * row_bytes;
  return record_bytes(form) * ((k + kGroup - 1) / kGroup);
}

void pack_panels(const PackParams& p, int32_t panel_begin, int32_t panel_end) {
  const int64_t bytes = panel_bytes(p.form, p.k, p.row_bytes);
  for (int32_t panel = panel_begin; panel < panel_end; ++panel) {
    uint8_t* dst = p.panels + panel * bytes;
    if (is_quantised(p.form)) {
      pack_quantised(p, panel, dst);
    } else if (p.form == Form::kBlocks) {
      pack_blocks(p, panel, dst);
    } else {
      pack_float(p, panel, dst);
    }
  }
}

void unpack_row(const PackParams& p, int32_t row, float* out) {
  const uint8_t* panel = p.panels + (row / kPanelRows) * panel_bytes(p.form, p.k, p.row_bytes);
  const int32_t r = row % kPanelRows;
  if (p.form == Form::kBlocks) {
    const int32_t elements = block_layout(p.ggml_type).elements;
    dequantize_blocks(p.ggml_type, panel + r * p.row_bytes, p.k / elements, out);
    return;
  }
  if (!is_quantised(p.form)) return unpack_float_row(p, panel, r, out);
  const QuantLayout at = quant_layout(p.form);
  uint8_t block[64];
  for (int32_t g = 0; g < p.k / kGroup; ++g) {
    unpack_block(p.form, at, panel + g * record_bytes(p.form), r, block);
    dequantize_blocks(p.ggml_type, block, 1, out + g * kGroup);
  }
}

}  // namespace omnibus::kernels
