// Bytes of one record of 16 rows x 32 columns; kBlocks has no records.
#pragma once

#include <cstdint>

#include "omnibus_kernels/formats.h"

namespace omnibus::kernels {
namespace {

constexpr int64_t record_size(Form form) {
  switch (form) {
    case Form::kU4:
      return 288;
    case Form::kU4M:
      return 320;
    case Form::kU5:
      return 352;
    case Form::kU5M:
      return 384;
    case Form::kS8:
      return 544;
    case Form::kF32:
      return 2048;
    case Form::kF16:
    case Form::kBF16:
      return 1024;
    case Form::kBlocks:
      return 0;
  }
  return 0;
}

}  // namespace
}  // namespace omnibus::kernels
