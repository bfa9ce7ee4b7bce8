// llama.cpp's routes, native ones and its unversioned names of OpenAI's.
#include "omnibus/server/llama_cpp/llama_cpp_api.h"

#include <algorithm>
#include <array>

#include "omnibus/server/openai/openai_api.h"

#include "api/body_fields.h"
#include "handlers.h"
#include "native_fields.h"
#include "openai/generation_fields.h"
#include "openai/handlers.h"

namespace omnibus {
namespace {

using Answer = HttpResponse (*)(const ApiContext&, const HttpRequest&);

// Reads a body on the text pool, and answers at once.
RouteHandler answering(ApiCore& core, Answer make) {
  return core.pooled([make](const ContextPtr& context, const HttpRequest& request,
                            const ReplyPtr& reply) { reply->send(make(*context, request)); },
                     render_llama_cpp_error);
}

RouteHandler immediate(const ApiCore& core, Answer make) {
  return [context = core.context(), make](const HttpRequest& request, const ReplyPtr& reply) {
    reply->send(make(*context, request));
  };
}

constexpr std::array<std::string_view, 6> kNativePaths = {"/completion", "/completions",    "/infill",
                                                          "/props",      "/apply-template", "/slots"};

}  // namespace

bool is_llama_cpp_path(std::string_view path) {
  return std::find(kNativePaths.begin(), kNativePaths.end(), path) != kNativePaths.end();
}

void add_llama_cpp_routes(ApiCore& core, RouteTable& routes) {
  const auto post = [&](const char* path, uint64_t max_body, RouteHandler handler,
                        std::shared_ptr<const BodyFields> fields = nullptr) {
    routes.add({"POST", path, Scope::kInference, max_body, std::move(handler), std::move(fields)});
  };
  const auto get = [&](const char* path, Answer make) {
    routes.add({"GET", path, Scope::kInference, kPlainBodyBytes, immediate(core, make)});
  };
  for (const char* path : {"/completion", "/completions"}) {
    post(path, kGenerationBodyBytes, core.pooled(handle_native_completion, render_llama_cpp_error),
         body_fields(native_field_table(), kOnNativeCompletion));
  }
  post("/infill", kGenerationBodyBytes, core.pooled(handle_infill, render_llama_cpp_error),
       body_fields(native_field_table(), kOnInfill));
  post("/chat/completions", kGenerationBodyBytes, core.pooled(handle_chat, render_openai_error),
       body_fields(generation_field_table(), kOnChat));
  post("/apply-template", kGenerationBodyBytes, answering(core, handle_apply_template),
       template_body_fields());
  get("/props", handle_props);
  get("/slots", handle_slots);
  get("/models", handle_native_models);
  get("/lora-adapters", handle_lora_adapters);
  post("/slots/{id}", kPlainBodyBytes, immediate(core, handle_slot_action));
  for (const char* path : {"/props", "/lora-adapters", "/embedding", "/embeddings", "/rerank", "/reranking",
                           "/v1/rerank", "/v1/reranking"}) {
    post(path, kPlainBodyBytes, immediate(core, handle_not_supported));
  }
}

}  // namespace omnibus
