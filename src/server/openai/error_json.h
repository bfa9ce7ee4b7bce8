// The error object: {"error": {message, type, param, code}}, all four always present.
#pragma once

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

Json error_json(const Status& error);

}  // namespace omnibus
