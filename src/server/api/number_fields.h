// Numbers that the field tables of several doors have in common.
#pragma once

#include <cstdint>

#include "omnibus/server/http/json_body.h"

#include "field_rule.h"

namespace omnibus {

inline constexpr double kInt32Min = -2147483648.0, kInt32Max = 2147483647.0;
// A repetition penalty beyond these turns logits into infinities.
inline constexpr double kPenaltyMin = 1e-6, kPenaltyMax = 1e6;

// `value` has passed kInteger with bounds within 32 bits.
inline int32_t to_int32(const Json& value) { return static_cast<int32_t>(integer_of(value)); }

}  // namespace omnibus
