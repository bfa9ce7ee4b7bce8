// POST /infill: what stands before and after the place to fill, as the model was trained to see it.
#pragma once

#include <vector>

#include "omnibus/base/common/ids.h"
#include "omnibus/base/common/status.h"

#include "api/api_context.h"
#include "native_fields.h"

namespace omnibus {

// 400 names the field that is wrong; 501 when the vocabulary has no fill-in-the-middle tokens.
StatusOr<std::vector<TokenId>> encode_infill(const ApiContext& context, const NativeFields& fields);

}  // namespace omnibus
