// What ties the fields of a generation request together, and to the model.
#pragma once

#include "omnibus/base/common/status.h"

#include "api/api_context.h"
#include "generation_fields.h"

namespace omnibus {

// Resolves max_tokens, logprobs and seed into `fields.sampling`, and checks what no single field shows: ids
// within the vocabulary, fields that need another one. `route` is kOnChat or kOnCompletions.
Status resolve_generation_fields(const ApiContext& context, unsigned route, GenerationFields& fields);

}  // namespace omnibus
