// llama.cpp's `timings`: how long a choice's prompt and answer took, in milliseconds and rates.
#pragma once

#include "omnibus/contract/request/request_output.h"
#include "omnibus/server/http/json_body.h"

namespace omnibus {

// Of a choice so far. The first token comes out of the prompt's last step: the rate of the answer is over
// those after it. Without a choice's end its time runs until now.
Json timings_json(const RequestUsage& usage, const RequestTimeline& timeline);

}  // namespace omnibus
