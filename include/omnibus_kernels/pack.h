// Packing of file rows into panels, and the way back. Plain C++, no dependence on the machine.
#pragma once

#include <cstdint>

#include "omnibus_kernels/formats.h"

namespace omnibus::kernels {

struct PackParams {
  Form form;
  uint32_t ggml_type;   // how `rows` are encoded
  const uint8_t* rows;  // row r at r * row_bytes
  int64_t row_bytes;
  int32_t n, k;
  uint8_t* panels;
};

// Bytes of one record of 16 rows x 32 columns (kBlocks: 0, see row_bytes).
int64_t record_bytes(Form form);
// Bytes of one panel.
int64_t panel_bytes(Form form, int32_t k, int64_t row_bytes);
void pack_panels(const PackParams& params, int32_t panel_begin, int32_t panel_end);
// Row `row` of packed panels as floats: out[k]. Exactly what dequantising the file's row gives.
void unpack_row(const PackParams& params, int32_t row, float* out);

}  // namespace omnibus::kernels
