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

using Shared = std::shared_ptr<OllamaContext>;
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

// The job refers to the context, whose disk thread it runs on: that ends before the context does.
RouteHandler on_disk(Shared context, DiskJob job) {
  return [context = std::move(context), job](HttpRequest request, const ReplyPtr& reply) {
    auto shared = std::make_shared<HttpRequest>(std::move(request));
    const bool posted = context->disk().try_post(
        [of = context.get(), job, shared, reply] { reply->send(run_disk_job(job, *of, *shared)); });
    if (posted) return;
    reply->send(render_ollama_error(absl::UnavailableError("server busy, please try again"), {}));
  };
}

RouteHandler generation(ApiCore& core, Shared context, OllamaRoute route) {
  return core.pooled(
      [context = std::move(context), route](const ContextPtr&, const HttpRequest& request,
                                            const ReplyPtr& reply) {
        handle_ollama_generation(*context, route, request, reply);
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

void add_ollama_routes(ApiCore& core, OllamaConfig config, RouteTable& routes) {
  const auto context = std::make_shared<OllamaContext>(core.context(), std::move(config));
  const auto add = [&](const char* method, const char* path, uint64_t max_body, RouteHandler handler,
                       std::shared_ptr<const BodyFields> fields = nullptr) {
    routes.add({method, path, Scope::kInference, max_body, std::move(handler), std::move(fields)});
  };
  add("GET", "/api/version", kPlainBodyBytes,
      [context](const HttpRequest&, const ReplyPtr& reply) { reply->send(handle_ollama_version(*context)); });
  add("POST", "/api/generate", kGenerationBodyBytes, generation(core, context, OllamaRoute::kGenerate),
      ollama_body_fields(OllamaRoute::kGenerate));
  add("POST", "/api/chat", kGenerationBodyBytes, generation(core, context, OllamaRoute::kChat),
      ollama_body_fields(OllamaRoute::kChat));
  add("GET", "/api/tags", kPlainBodyBytes, on_disk(context, handle_ollama_tags));
  add("GET", "/api/ps", kPlainBodyBytes, on_disk(context, handle_ollama_ps));
  add("POST", "/api/show", kPlainBodyBytes, on_disk(context, handle_ollama_show),
      model_body_fields(ModelRoute::kShow));
  add("POST", "/api/copy", kPlainBodyBytes, on_disk(context, handle_ollama_copy),
      model_body_fields(ModelRoute::kCopy));
  add("DELETE", "/api/delete", kPlainBodyBytes, on_disk(context, handle_ollama_delete),
      model_body_fields(ModelRoute::kDelete));
  add("HEAD", "/api/blobs/{id}", kPlainBodyBytes, on_disk(context, handle_ollama_find_blob));
  add("POST", "/api/blobs/{id}", kGenerationBodyBytes, on_disk(context, handle_ollama_add_blob));
  add("POST", "/api/embed", kGenerationBodyBytes, not_built("embed"));
  add("POST", "/api/embeddings", kGenerationBodyBytes, not_built("embeddings"));
  add("POST", "/api/create", kPlainBodyBytes, not_built("create"));
  add("POST", "/api/pull", kPlainBodyBytes, not_built("pull"));
  add("POST", "/api/push", kPlainBodyBytes, not_built("push"));
}

}  // namespace omnibus
