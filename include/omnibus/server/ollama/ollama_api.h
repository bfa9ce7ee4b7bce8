// Ollama's API: /api/generate, /api/chat, the lists of models and the store behind them.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "omnibus/base/common/status.h"
#include "omnibus/server/api/api_core.h"
#include "omnibus/server/http/http_message.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

struct OllamaConfig {
  std::string store_home;    // folder of the model store; "": there is none
  std::string model_path;    // the served model's GGUF file; "": it has none
  std::string model_digest;  // of that file when the store has it, 64 hex digits; "": a plain path
};

// {"error": "text"}, with Retry-After where the status carries it. A full queue (429) is Ollama's 503.
HttpResponse render_ollama_error(const Status& error, std::string_view path);

// The model store as the door sees it, with the thread that reads and writes it.
struct OllamaModels;
using OllamaModelsPtr = std::shared_ptr<OllamaModels>;
OllamaModelsPtr make_ollama_models(OllamaConfig config);

// Tables that are made one after the other share `models`. Let the last reference go where one may wait for
// the disk: not on a listener's thread.
void add_ollama_routes(ApiCore& core, const OllamaModelsPtr& models, RouteTable& routes);

}  // namespace omnibus
