// Which features may be used together (docs/design.md, P4). configs/feature_pairs.toml is compiled in: a pair
// that stands there has a test of its name, any other pair is refused at start.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "omnibus/base/common/status.h"

namespace omnibus {

// Every feature of the table, in its order.
std::span<const std::string_view> known_features();
// Every pair that is allowed, as written in the table.
std::span<const std::pair<std::string_view, std::string_view>> allowed_feature_pairs();

// OK when each two of `enabled` are an allowed pair. Otherwise INVALID_ARGUMENT naming the feature that is
// not known, or the pair that is not allowed. Order does not matter; a feature goes with itself.
Status check_feature_pairs(std::span<const std::string> enabled);

}  // namespace omnibus
