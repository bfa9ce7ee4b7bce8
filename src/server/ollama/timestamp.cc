#include "timestamp.h"

#include <ctime>

#include <fmt/format.h>

namespace omnibus {

std::string rfc3339(int64_t ns) {
  constexpr int64_t kSecond = 1'000'000'000;
  const int64_t seconds = ns / kSecond;
  const auto time = static_cast<time_t>(seconds);
  std::tm utc{};
  gmtime_r(&time, &utc);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}.{:09}Z", utc.tm_year + 1900, utc.tm_mon + 1,
                     utc.tm_mday, utc.tm_hour, utc.tm_min, utc.tm_sec, ns % kSecond);
}

}  // namespace omnibus
