// The routes of OpenAI's API, and the ones that every client of an inference server expects beside them.
#include "omnibus/server/openai/openai_api.h"

#include "api/body_fields.h"
#include "generation_fields.h"
#include "handlers.h"

namespace omnibus {
namespace {

RouteHandler immediate(const ApiCore& core, HttpResponse (*make)(const ApiContext&)) {
  return [context = core.context(), make](const HttpRequest&, const ReplyPtr& reply) {
    reply->send(make(*context));
  };
}

// A job that answers at once.
RouteHandler answering(ApiCore& core, HttpResponse (*make)(const ApiContext&, const HttpRequest&)) {
  return core.pooled([make](const ContextPtr& context, const HttpRequest& request,
                            const ReplyPtr& reply) { reply->send(make(*context, request)); },
                     render_openai_error);
}

}  // namespace

void add_openai_routes(ApiCore& core, RouteTable& routes) {
  const auto read = [&](const char* path, Scope scope, HttpResponse (*make)(const ApiContext&)) {
    routes.add({"GET", path, scope, kPlainBodyBytes, immediate(core, make)});
  };
  routes.add({"POST", "/v1/chat/completions", Scope::kInference, kGenerationBodyBytes,
              core.pooled(handle_chat, render_openai_error), body_fields(generation_field_table(), kOnChat)});
  for (const char* path : {"/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"}) {
    routes.add({"POST", path, Scope::kInference, kGenerationBodyBytes,
                answering(core, handle_chat_input_tokens), body_fields(generation_field_table(), kOnChat)});
  }
  routes.add({"POST", "/v1/completions", Scope::kInference, kGenerationBodyBytes,
              core.pooled(handle_completion, render_openai_error),
              body_fields(generation_field_table(), kOnCompletions)});
  routes.add({"POST", "/v1/chat/completions/render", Scope::kInference, kGenerationBodyBytes,
              answering(core, handle_chat_render), body_fields(generation_field_table(), kOnChat)});
  routes.add({"POST", "/v1/completions/render", Scope::kInference, kGenerationBodyBytes,
              answering(core, handle_completion_render),
              body_fields(generation_field_table(), kOnCompletions)});
  routes.add({"POST", "/tokenize", Scope::kInference, kGenerationBodyBytes, answering(core, handle_tokenize),
              token_body_fields(kOnTokenize)});
  routes.add({"POST", "/detokenize", Scope::kInference, kPlainBodyBytes, answering(core, handle_detokenize),
              token_body_fields(kOnDetokenize)});
  const auto look_up = [&](const char* path, HttpResponse (*make)(const ApiContext&, const HttpRequest&)) {
    routes.add({"GET", path, Scope::kInference, kPlainBodyBytes,
                [context = core.context(), make](const HttpRequest& request, const ReplyPtr& reply) {
                  reply->send(make(*context, request));
                }});
  };
  look_up("/v1/models", handle_models);
  look_up("/v1/models/{id}", handle_model);
  read("/version", Scope::kInference, handle_version);
  routes.add({"GET", "/", Scope::kPublic, kPlainBodyBytes,
              [](const HttpRequest& request, const ReplyPtr& reply) { reply->send(handle_root(request)); }});
}

}  // namespace omnibus
