#include "omnibus/server/render_error.h"

#include "omnibus/server/llama_cpp/llama_cpp_api.h"
#include "omnibus/server/ollama/ollama_api.h"
#include "omnibus/server/openai/openai_api.h"

namespace omnibus {

HttpResponse render_error(const Status& error, std::string_view path) {
  if (path.starts_with("/api/")) return render_ollama_error(error, path);
  return is_llama_cpp_path(path) ? render_llama_cpp_error(error, path) : render_openai_error(error, path);
}

}  // namespace omnibus
