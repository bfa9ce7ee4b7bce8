#include "omnibus/compute/ops/activations.h"

#include "omnibus_kernels/formats.h"

namespace omnibus {
namespace {

template <typename T>
Status take(Allocator& allocator, int64_t count, T*& out) {
  OMNIBUS_ASSIGN_OR_RETURN(const Buffer buffer, allocator.allocate(static_cast<size_t>(count) * sizeof(T)));
  out = static_cast<T*>(buffer.data);
  return {};
}

}  // namespace

StatusOr<Activations> Activations::allocate(Allocator& allocator, int32_t max_m, int32_t k,
                                            ActivationNeeds needs) {
  if (max_m <= 0 || k <= 0) {
    return absl::InvalidArgumentError("activations: rows and width must be positive");
  }
  Activations x;
  x.max_m = max_m;
  x.k = k;
  needs.int8 = needs.int8 || needs.scaled_sum;
  x.needs = needs;
  // Whole tiles of 16 rows: kernels may read, never use, the rows beyond max_m.
  const int64_t rows = (int64_t{max_m} + kernels::kPanelRows - 1) / kernels::kPanelRows * kernels::kPanelRows;
  const int64_t groups = padded_k(k) / kQuantGroup;
  if (needs.f32) OMNIBUS_RETURN_IF_ERROR(take(allocator, max_m * padded_k(k), x.f32));
  if (needs.int8) {
    OMNIBUS_RETURN_IF_ERROR(take(allocator, rows * padded_k(k), x.q));
    OMNIBUS_RETURN_IF_ERROR(take(allocator, rows * groups, x.scale));
    OMNIBUS_RETURN_IF_ERROR(take(allocator, rows * groups, x.group_sum));
  }
  if (needs.scaled_sum) OMNIBUS_RETURN_IF_ERROR(take(allocator, rows * groups, x.scaled_sum));
  return x;
}

}  // namespace omnibus
