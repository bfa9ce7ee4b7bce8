#include "omnibus/base/common/unavailable.h"

#include <string>

namespace omnibus {

Status unavailable_for_now(std::string_view message) {
  ErrorDetail detail;
  detail.retry_after_ms = 1000;
  return with_detail(absl::UnavailableError(std::string(message)), detail);
}

}  // namespace omnibus
