#include "omnibus/base/config/feature_pairs.h"

#include <algorithm>
#include <array>

#include <fmt/format.h>

#include "feature_pairs_table.inc"  // generated from configs/feature_pairs.toml

namespace omnibus {

std::span<const std::string_view> known_features() { return kFeatures; }

std::span<const std::pair<std::string_view, std::string_view>> allowed_feature_pairs() { return kPairs; }

Status check_feature_pairs(std::span<const std::string> enabled) {
  for (const auto& feature : enabled) {
    if (std::find(kFeatures.begin(), kFeatures.end(), feature) == kFeatures.end()) {
      return absl::InvalidArgumentError(
          fmt::format("feature '{}' is not in configs/feature_pairs.toml", feature));
    }
  }
  for (size_t i = 0; i < enabled.size(); ++i) {
    for (size_t j = i + 1; j < enabled.size(); ++j) {
      const std::string_view a = enabled[i], b = enabled[j];
      const bool allowed =
          a == b || std::any_of(kPairs.begin(), kPairs.end(), [&](const auto& pair) {
            return (pair.first == a && pair.second == b) || (pair.first == b && pair.second == a);
          });
      if (allowed) continue;
      return absl::InvalidArgumentError(fmt::format(
          "features '{}' and '{}' have not been tested together: start without one of them", a, b));
    }
  }
  return {};
}

}  // namespace omnibus
