// SHA-256 of files.
#pragma once

#include <cstdint>
#include <functional>
#include <stop_token>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"

namespace omnibus {

// 64 lower-case hex digits of all that can be read from `fd`, from its start. `on_bytes` gets the running
// count. CANCELLED soon after a stop is requested.
StatusOr<std::string> sha256_of_fd(int fd, const std::function<void(uint64_t)>& on_bytes = {},
                                   const std::stop_token& stop = {});

// Exactly 64 lower-case hex digits.
bool is_digest(std::string_view text);

}  // namespace omnibus
