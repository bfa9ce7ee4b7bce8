#include "llama_cpp_error.h"

#include <string>

#include <absl/strings/cord.h>
#include <fmt/format.h>

#include "omnibus/server/llama_cpp/llama_cpp_api.h"
#include "omnibus/server/openai/openai_api.h"

#include "openai/error_json.h"

namespace omnibus {
namespace {

// The payload of context_exceeded(): what the error object gets beside OpenAI's keys, as JSON.
constexpr char kExtraUrl[] = "omnibus.dev/LlamaCppError";

}  // namespace

Status as_llama_cpp_error(const Status& error) {
  ErrorDetail detail = error_detail(error);
  if (detail.http == 401) detail.type = "authentication_error";
  if (detail.http == 404) detail.type = "not_found_error";
  if (detail.code == "context_length_exceeded") detail.type = "exceed_context_size_error";
  return with_detail(error, detail);
}

Status context_exceeded(int64_t prompt_tokens, int64_t context_tokens) {
  Status error = invalid_field(
      "prompt",
      fmt::format("The prompt of {} tokens exceeds the available context size of {} tokens, which "
                  "must hold the answer, too",
                  prompt_tokens, context_tokens),
      "context_length_exceeded");
  const Json extra = {{"n_prompt_tokens", prompt_tokens}, {"n_ctx", context_tokens}};
  error.SetPayload(kExtraUrl, absl::Cord(extra.dump()));
  return error;
}

Json llama_cpp_error_json(const Status& error) {
  Json body = error_json(as_llama_cpp_error(error));
  if (const auto extra = error.GetPayload(kExtraUrl)) body["error"].update(Json::parse(std::string(*extra)));
  return body;
}

Status not_supported(std::string_view what) {
  return with_detail(absl::UnimplementedError(fmt::format("{}", what)),
                     ErrorDetail{.http = 501, .type = "not_supported_error", .code = {}, .param = {}});
}

HttpResponse render_llama_cpp_error(const Status& error, std::string_view path) {
  HttpResponse response = render_openai_error(as_llama_cpp_error(error), path);
  response.body = dump_json(llama_cpp_error_json(error));
  return response;
}

}  // namespace omnibus
