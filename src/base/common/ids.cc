#include "omnibus/base/common/ids.h"

#include "omnibus/base/common/rng.h"

namespace omnibus {

std::string random_id(std::string_view prefix) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string id(prefix);
  uint64_t bits = random_seed();
  for (int i = 0; i < 24; ++i) {
    if (i == 12) bits = random_seed();
    id += kHex[bits & 15];
    bits >>= 4;
  }
  return id;
}

}  // namespace omnibus
