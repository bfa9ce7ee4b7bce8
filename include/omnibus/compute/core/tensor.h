// Tensor: a typed, contiguous, row-major view of a Buffer. A small value; copying does not copy elements.
#pragma once

#include <array>
#include <cstdint>
#include <initializer_list>
#include <string>

#include "omnibus/base/common/check.h"
#include "omnibus/compute/core/allocator.h"
#include "omnibus/compute/core/dtype.h"

namespace omnibus {

class Tensor {
 public:
  static constexpr int kMaxRank = 4;

  Tensor() = default;
  Tensor(Buffer buffer, DType dtype, std::initializer_list<int64_t> shape);
  // Allocates shape x dtype.
  static StatusOr<Tensor> empty(Allocator& allocator, DType dtype, std::initializer_list<int64_t> shape);

  int rank() const { return rank_; }
  int64_t dim(int i) const { return shape_[static_cast<size_t>(i)]; }
  int64_t elements() const;
  int64_t bytes() const { return elements() * dtype_bytes(dtype_); }
  DType dtype() const { return dtype_; }
  Device device() const { return buffer_.device; }
  bool defined() const { return rank_ > 0; }
  bool is_meta() const { return buffer_.device.kind == DeviceKind::kMeta; }
  std::string shape_string() const;  // "[3, 576] f32"

  template <typename T>
  T* data() const {
    return static_cast<T*>(buffer_.data);
  }
  // Rows [begin, end) of dimension 0.
  Tensor rows(int64_t begin, int64_t end) const;

 private:
  Buffer buffer_;
  DType dtype_ = DType::kF32;
  int rank_ = 0;
  std::array<int64_t, kMaxRank> shape_{};
};

}  // namespace omnibus
