#include "deadline_header.h"

#include <charconv>
#include <cmath>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "omnibus/server/http/json_body.h"

namespace omnibus {
namespace {

constexpr size_t kLongest = 32;

// Digits, and more of them behind one dot: no sign, no exponent, no blank.
std::optional<double> parse_seconds(std::string_view text) {
  const size_t dot = text.find('.');
  const auto is_digits = [](std::string_view part) {
    return !part.empty() && part.find_first_not_of("0123456789") == std::string_view::npos;
  };
  if (text.size() > kLongest || !is_digits(text.substr(0, dot))) return std::nullopt;
  if (dot != std::string_view::npos && !is_digits(text.substr(dot + 1))) return std::nullopt;
  double seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error != std::errc() || !(seconds > 0) || seconds > static_cast<double>(kLongestWait.count()))
    return std::nullopt;
  return seconds;
}

}  // namespace

StatusOr<std::optional<int64_t>> header_deadline(const HttpRequest& request, MonotonicNs now) {
  const size_t count = request.count_header("x-deadline");
  if (count == 0) return std::optional<int64_t>();
  const std::string value(request.header("x-deadline"));
  const std::optional<double> seconds = parse_seconds(value);
  if (count > 1 || !seconds) {
    return invalid_field(
        "X-Deadline", fmt::format("Invalid 'X-Deadline' header: must be one number of seconds in decimal, "
                                  "above 0 and at most {}, such as 30 or 2.5; got {}",
                                  kLongestWait.count(),
                                  count > 1 ? fmt::format("{} of them", count) : quote_value(Json(value))));
  }
  return std::optional<int64_t>(now + static_cast<int64_t>(std::llround(*seconds * 1e9)));
}

}  // namespace omnibus
