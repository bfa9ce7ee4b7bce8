// Requests of the gRPC door as the JSON that the HTTP door reads: so that one table of fields, with its
// bounds, defaults and messages, serves both.
#pragma once

#include <cstdint>
#include <string>

#include <google/protobuf/message.h>

#include "omnibus/base/common/status.h"

namespace omnibus {

// An object with the fields that are set, under their names in the .proto, with these exceptions: the fields
// of `sampling` stand beside the others, `prompt_token_ids` is `prompt`, TokenIds are an array, and a field
// that the .proto does not have is "#" and its number. 400 for NaN and infinities, 413 beyond `limit` bytes.
StatusOr<std::string> to_json_body(const google::protobuf::Message& message, uint64_t limit);

}  // namespace omnibus
