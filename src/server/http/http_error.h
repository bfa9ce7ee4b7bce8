// A request that is wrong as HTTP, before any handler sees it.
#pragma once

#include <string>

#include "omnibus/base/common/status.h"

namespace omnibus {

inline Status http_error(int status, const std::string& message, const char* code = "") {
  return with_detail(absl::InvalidArgumentError(message),
                     ErrorDetail{.http = status, .type = {}, .code = code, .param = {}});
}

// An allocation failed on the way to an answer: 503, and the rest goes on.
inline Status out_of_memory() {
  return absl::UnavailableError("The server is out of memory for this request");
}

}  // namespace omnibus
