// The routes of Ollama's API.
#include "omnibus/server/ollama/ollama_api.h"

#include <exception>
#include <memory>
#include <utility>

#include <fmt/format.h>

#include "omnibus/base/common/log.h"

#include "handlers.h"
#include "ollama_body.h"
#include "ollama_context.h"

namespace omnibus {
namespace {

// What a handler holds. Jobs for the disk hold the context alone: the thread that they run on belongs to
// `models`, and must not be the one that ends it.
struct Shared {
  OllamaModelsPtr models;
  std::shared_ptr<const OllamaContext> context;
};
using DiskJob = StatusOr<HttpResponse> (*)(const OllamaContext&, const HttpRequest&);

HttpResponse run_disk_job(DiskJob job, const OllamaContext& context, const HttpRequest& request) {
  try {
    auto response = job(context, request);
    if (response.ok()) return *std::move(response);
    return render_ollama_error(store_error_for_client(response.status()), request.path);
  } catch (const std::exception& error) {
    log_error("request handler: {}", error.what());
    return render_ollama_error(absl::InternalError("The server failed on this request"), request.path);
  }
}

RouteHandler on_disk(Shared held, DiskJob job) {
  return [held = std::move(held), job](HttpRequest request, const ReplyPtr& reply) {
    auto shared = std::make_shared<HttpRequest>(std::move(request));
    const bool posted = held.models->disk.try_post(
        [context = held.context, job, shared, reply] { reply->send(run_disk_job(job, *context, *shared)); });
    if (posted) return;
    reply->send(render_ollama_error(absl::UnavailableError("server busy, please try again"), {}));
  };
}

RouteHandler generation(ApiCore& core, Shared held, OllamaRoute route) {
  return core.pooled(
      [held = std::move(held), route](const ContextPtr&, const HttpRequest& request, const ReplyPtr& reply) {
        handle_ollama_generation(*held.context, route, request, reply);
      },
      render_ollama_error);
}

// What is known and not built: an error before any stream, so that every client raises it.
RouteHandler not_built(const char* what) {
  return [what](const HttpRequest& request, const ReplyPtr& reply) {
    reply->send(render_ollama_error(
        absl::UnimplementedError(fmt::format("{} is not supported by this server", what)), request.path));
  };
}

}  // namespace

OllamaModelsPtr make_ollama_models(OllamaConfig config) {
  return std::make_shared<OllamaModels>(std::move(config));
}

void add_ollama_routes(ApiCore& core, const OllamaModelsPtr& models, RouteTable& routes) {
  const auto context = std::make_shared<const OllamaContext>(core.context(), models.get());
  const Shared held{models, context};
  const auto add = [&](const char* method, const char* path, uint64_t max_body, RouteHandler handler,
                       std::shared_ptr<const BodyFields> fields = nullptr) {
    routes.add({method, path, Scope::kInference, max_body, std::move(handler), std::move(fields)});
  };
  add("GET", "/api/version", kPlainBodyBytes, [held](const HttpRequest&, const ReplyPtr& reply) {
    reply->send(handle_ollama_version(*held.context));
  });
  add("POST", "/api/generate", kGenerationBodyBytes, generation(core, held, OllamaRoute::kGenerate),
      ollama_body_fields(OllamaRoute::kGenerate));
  add("POST", "/api/chat", kGenerationBodyBytes, generation(core, held, OllamaRoute::kChat),
      ollama_body_fields(OllamaRoute::kChat));
  add("GET", "/api/tags", kPlainBodyBytes, on_disk(held, handle_ollama_tags));
  add("GET", "/api/ps", kPlainBodyBytes, on_disk(held, handle_ollama_ps));
  add("POST", "/api/show", kPlainBodyBytes, on_disk(held, handle_ollama_show),
      model_body_fields(ModelRoute::kShow));
  add("POST", "/api/copy", kPlainBodyBytes, on_disk(held, handle_ollama_copy),
      model_body_fields(ModelRoute::kCopy));
  add("DELETE", "/api/delete", kPlainBodyBytes, on_disk(held, handle_ollama_delete),
      model_body_fields(ModelRoute::kDelete));
  add("HEAD", "/api/blobs/{id}", kPlainBodyBytes, on_disk(held, handle_ollama_find_blob));
  add("POST", "/api/blobs/{id}", kGenerationBodyBytes, on_disk(held, handle_ollama_add_blob));
  add("POST", "/api/embed", kGenerationBodyBytes, not_built("embed"));
  add("POST", "/api/embeddings", kGenerationBodyBytes, not_built("embeddings"));
  add("POST", "/api/create", kPlainBodyBytes, not_built("create"));
  add("POST", "/api/pull", kPlainBodyBytes, not_built("pull"));
  add("POST", "/api/push", kPlainBodyBytes, not_built("push"));
}

}  // namespace omnibus
