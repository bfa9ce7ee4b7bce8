// The reference decoder: file blocks of every supported ggml type to floats, with the operations of gguf-py
// in the same order, so that results are equal bit for bit.
#pragma once

#include <cstdint>

namespace omnibus::kernels {

struct BlockLayout {
  int32_t elements;  // per block; 0: unknown or unsupported type
  int32_t bytes;
};
BlockLayout block_layout(uint32_t ggml_type);
const char* ggml_type_name(uint32_t ggml_type);
// `blocks` blocks; `src` needs no alignment. The type must be supported.
void dequantize_blocks(uint32_t ggml_type, const uint8_t* src, int64_t blocks, float* out);

}  // namespace omnibus::kernels
