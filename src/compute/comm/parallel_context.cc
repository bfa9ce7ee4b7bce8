#include "omnibus/compute/comm/parallel_context.h"

#include "omnibus/base/common/check.h"

namespace omnibus {
namespace {

constexpr int64_t left_leaves(int64_t n) { return (n + 1) / 2; }

}  // namespace

Range ParallelContext::range(int64_t units, int32_t rank, int32_t ranks) {
  OMNIBUS_CHECK(units >= 0 && rank >= 0 && rank < ranks, "a rank outside its group");
  int64_t begin = 0, n_units = units;
  int64_t first_rank = 0, n_ranks = ranks;
  while (n_ranks > 1) {
    const int64_t left_ranks = left_leaves(n_ranks), left_units = left_leaves(n_units);
    if (rank < first_rank + left_ranks) {
      n_ranks = left_ranks;
      n_units = left_units;
    } else {
      first_rank += left_ranks;
      n_ranks -= left_ranks;
      begin += left_units;
      n_units -= left_units;
    }
  }
  return {begin, begin + n_units};
}

Range ParallelContext::layer_range(int32_t layers) const {
  const int64_t n = layers;
  return {n * pp_rank / pp_size, n * (pp_rank + 1) / pp_size};
}

}  // namespace omnibus
