// Times as Ollama writes them: RFC 3339 in UTC with nanoseconds.
#pragma once

#include <cstdint>
#include <string>

namespace omnibus {

// `ns` since the epoch, not negative; "2026-01-31T12:00:00.123456789Z".
std::string rfc3339(int64_t ns);

}  // namespace omnibus
