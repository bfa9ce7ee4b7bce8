#include "sampling_defaults.h"

#include <cmath>
#include <limits>
#include <optional>
#include <string>
#include <type_traits>

#include "omnibus/base/common/log.h"

namespace omnibus {
namespace {

template <typename T>
std::optional<T> within(const GgufFile& file, const char* name, double min, double max) {
  const std::string key = std::string("general.sampling.") + name;
  if (!file.has(key)) return std::nullopt;
  const StatusOr<double> value = file.get_float(key);
  if (!value.ok()) {
    log_warning("{}: {}", file.label(), status_message(value.status()));
    return std::nullopt;
  }
  const bool fits =
      *value >= min && *value <= max && (std::is_floating_point_v<T> || *value == std::floor(*value));
  if (fits) return static_cast<T>(*value);
  log_warning("{}: {} is {}, which is not within {} and {}: ignored", file.label(), key, *value, min, max);
  return std::nullopt;
}

}  // namespace

SamplingDefaults read_sampling_defaults(const GgufFile& file) {
  SamplingDefaults defaults;
  defaults.temperature = within<float>(file, "temp", 0, 2);
  defaults.top_p = within<float>(file, "top_p", 0, 1);
  defaults.min_p = within<float>(file, "min_p", 0, 1);
  defaults.repetition_penalty = within<float>(file, "penalty_repeat", 1e-6, 1e6);
  defaults.top_k = within<int32_t>(file, "top_k", -1, std::numeric_limits<int32_t>::max());
  return defaults;
}

}  // namespace omnibus
