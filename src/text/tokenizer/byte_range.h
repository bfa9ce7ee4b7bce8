// Half-open range of byte offsets in a text.
#pragma once

#include <cstddef>

namespace omnibus {

struct ByteRange {
  size_t begin = 0, end = 0;
};

}  // namespace omnibus
