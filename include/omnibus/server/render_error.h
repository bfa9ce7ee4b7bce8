// The error of a request that no handler sees (404, 413, 401, ...), in the words of the door that its path
// belongs to.
#pragma once

#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_message.h"

namespace omnibus {

// Paths below /api/ are Ollama's, /completion and its like llama.cpp's, all others OpenAI's.
HttpResponse render_error(const Status& error, std::string_view path);

}  // namespace omnibus
