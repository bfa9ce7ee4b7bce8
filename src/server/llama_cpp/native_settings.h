// llama.cpp's `generation_settings`: what a request ran with, in its own fields' names.
#pragma once

#include "omnibus/server/http/json_body.h"

#include "api/api_context.h"
#include "native_fields.h"

namespace omnibus {

// Of resolved fields. Samplers that omnibus does not have are shown switched off.
Json native_settings(const ApiContext& context, const NativeFields& fields);

}  // namespace omnibus
