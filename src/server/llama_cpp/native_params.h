// What ties the fields of a native request together, and to the model.
#pragma once

#include "omnibus/base/common/status.h"

#include "api/api_context.h"
#include "native_fields.h"

namespace omnibus {

// Resolves lengths, seed, logprobs, biases and penalties into `fields.sampling`; of fields with several names
// the first keeps the value. 400 names what the model or this server does not have.
Status resolve_native_fields(const ApiContext& context, NativeFields& fields);

}  // namespace omnibus
