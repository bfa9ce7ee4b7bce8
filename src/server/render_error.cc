#include "omnibus/server/render_error.h"

#include "omnibus/server/ollama/ollama_api.h"
#include "omnibus/server/openai/openai_api.h"

namespace omnibus {

HttpResponse render_error(const Status& error, std::string_view path) {
  return path.starts_with("/api/") ? render_ollama_error(error, path) : render_openai_error(error, path);
}

}  // namespace omnibus
