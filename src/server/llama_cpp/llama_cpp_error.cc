#include "llama_cpp_error.h"

#include <fmt/format.h>

#include "omnibus/server/llama_cpp/llama_cpp_api.h"
#include "omnibus/server/openai/openai_api.h"

namespace omnibus {

Status as_llama_cpp_error(const Status& error) {
  ErrorDetail detail = error_detail(error);
  if (detail.http == 401) detail.type = "authentication_error";
  if (detail.http == 404) detail.type = "not_found_error";
  if (detail.code == "context_length_exceeded") detail.type = "exceed_context_size_error";
  return with_detail(error, detail);
}

Status context_exceeded(int64_t prompt_tokens, int64_t context_tokens) {
  return invalid_field(
      "prompt",
      fmt::format("The prompt of {} tokens exceeds the available context size of {} tokens, which "
                  "must hold the answer, too",
                  prompt_tokens, context_tokens),
      "context_length_exceeded");
}

Status not_supported(std::string_view what) {
  return with_detail(absl::UnimplementedError(fmt::format("{}", what)),
                     ErrorDetail{.http = 501, .type = "not_supported_error", .code = {}, .param = {}});
}

HttpResponse render_llama_cpp_error(const Status& error, std::string_view path) {
  return render_openai_error(as_llama_cpp_error(error), path);
}

}  // namespace omnibus
