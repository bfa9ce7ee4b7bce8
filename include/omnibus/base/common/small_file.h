// Files that people write for the server to read whole: configuration, keys, certificates, templates.
#pragma once

#include <cstddef>
#include <string>

#include "omnibus/base/common/status.h"

namespace omnibus {

inline constexpr size_t kMaxSmallFileBytes = size_t{1} << 20;

// The bytes of a regular file of at most kMaxSmallFileBytes; it may be empty. Never waits: a pipe or a device
// is refused before anything is read. INVALID_ARGUMENT says why, without the path ("it is a directory").
// Any thread.
StatusOr<std::string> read_small_file(const std::string& path);

}  // namespace omnibus
