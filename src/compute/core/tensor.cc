#include "omnibus/compute/core/tensor.h"

#include <fmt/format.h>

namespace omnibus {

Tensor::Tensor(Buffer buffer, DType dtype, std::initializer_list<int64_t> shape)
    : buffer_(buffer), dtype_(dtype), rank_(static_cast<int>(shape.size())) {
  OMNIBUS_CHECK(shape.size() <= kMaxRank, "tensor rank above 4");
  size_t i = 0;
  for (const int64_t d : shape) {
    OMNIBUS_CHECK(d >= 0, "negative dimension");
    shape_[i++] = d;
  }
  OMNIBUS_CHECK(static_cast<size_t>(bytes()) <= buffer_.bytes, "tensor larger than its buffer");
}

StatusOr<Tensor> Tensor::empty(Allocator& allocator, DType dtype, std::initializer_list<int64_t> shape) {
  int64_t bytes = dtype_bytes(dtype);
  for (const int64_t d : shape) {
    if (d < 0 || __builtin_mul_overflow(bytes, d, &bytes)) {
      return absl::InvalidArgumentError(
          fmt::format("arena '{}': a tensor shape is negative or too large", allocator.name()));
    }
  }
  OMNIBUS_ASSIGN_OR_RETURN(const Buffer buffer, allocator.allocate(static_cast<size_t>(bytes)));
  return Tensor(buffer, dtype, shape);
}

int64_t Tensor::elements() const {
  int64_t n = rank_ > 0 ? 1 : 0;
  for (int i = 0; i < rank_; ++i) n *= dim(i);
  return n;
}

std::string Tensor::shape_string() const {
  std::string s = "[";
  for (int i = 0; i < rank_; ++i) s += fmt::format("{}{}", i > 0 ? ", " : "", dim(i));
  return s + "] " + to_string(dtype_);
}

Tensor Tensor::rows(int64_t begin, int64_t end) const {
  OMNIBUS_CHECK(rank_ > 0 && 0 <= begin && begin <= end && end <= dim(0), "row range outside the tensor");
  const size_t row = dim(0) > 0 ? static_cast<size_t>(bytes() / dim(0)) : 0;
  Tensor view = *this;
  if (view.buffer_.data != nullptr) {
    view.buffer_.data = static_cast<char*>(view.buffer_.data) + row * static_cast<size_t>(begin);
  }
  view.buffer_.bytes = row * static_cast<size_t>(end - begin);
  view.shape_[0] = end - begin;
  return view;
}

}  // namespace omnibus
