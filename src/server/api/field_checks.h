// Checks of single fields that type and bounds cannot express. Each gets a value of its rule's type and
// returns OK or a 400 that names the field and the place in it.
#pragma once

#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

Status check_not_zero(std::string_view name, const Json& value);
// Strings of 1 to 256 bytes.
Status check_bad_words(std::string_view name, const Json& value);
// Objects.
Status check_documents(std::string_view name, const Json& value);
// "left" or "right".
Status check_truncation_side(std::string_view name, const Json& value);
// A string, or at most 64 strings; each of 1 to 256 bytes.
Status check_stop(std::string_view name, const Json& value);
// Keys are token ids in decimal, values numbers within [-100, 100].
Status check_logit_bias(std::string_view name, const Json& value);
// Non-negative 32-bit integers.
Status check_token_ids(std::string_view name, const Json& value);
// A string, token ids, or 1 to 256 of either; none of them empty.
Status check_prompt(std::string_view name, const Json& value);
Status check_stream_options(std::string_view name, const Json& value);
// Scalars under names that are not the template's own.
Status check_template_kwargs(std::string_view name, const Json& value);
Status check_reasoning_effort(std::string_view name, const Json& value);
// Printable ASCII without @ / \.
Status check_cache_salt(std::string_view name, const Json& value);

}  // namespace omnibus
