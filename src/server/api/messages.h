// The `messages` of a chat request: checked, and brought into the one form that templates are given.
#pragma once

#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

// In place: developer becomes system, null content "", text and refusal parts one string. 400 names the
// place, e.g. "messages[2].content[0].type". Unknown keys are left in and named in
// `ignored`; 400 if `strict`.
Status normalize_messages(Json& messages, bool strict, std::vector<std::string>& ignored);

}  // namespace omnibus
