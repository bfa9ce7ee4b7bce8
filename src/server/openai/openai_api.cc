#include "omnibus/server/openai/openai_api.h"

#include <exception>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/log.h"

#include "api_context.h"
#include "handlers.h"
#include "text_pool.h"

namespace omnibus {
namespace {

constexpr uint64_t kGenerationBodyBytes = uint64_t{32} << 20;
constexpr size_t kTextQueue = 1024;

class OpenAiApiImpl final : public OpenAiApi {
 public:
  explicit OpenAiApiImpl(std::shared_ptr<ApiContext> context)
      : context_(std::move(context)), pool_(context_->config.text_threads, kTextQueue) {}

  void add_routes(RouteTable& routes) override;

 private:
  using Job = std::function<void(const ContextPtr&, HttpRequest, const ReplyPtr&)>;

  // A handler that runs `job` on the text pool.
  RouteHandler pooled(Job job);
  RouteHandler immediate(HttpResponse (*make)(const ApiContext&));

  std::shared_ptr<const ApiContext> context_;
  TextPool pool_;
};

RouteHandler OpenAiApiImpl::pooled(Job job) {
  return [this, job = std::move(job)](HttpRequest request, const ReplyPtr& reply) {
    auto shared = std::make_shared<HttpRequest>(std::move(request));
    const bool posted = pool_.try_post([context = context_, job, shared, reply] {
      try {
        job(context, std::move(*shared), reply);
      } catch (const std::exception& error) {
        log_error("request handler: {}", error.what());
        reply->send(render_openai_error(absl::InternalError("The server failed on this request"), {}));
      }
    });
    if (!posted) {
      reply->send(render_openai_error(
          with_detail(absl::ResourceExhaustedError("Too many requests are waiting to be read"),
                      ErrorDetail{.http = 429,
                                  .type = {},
                                  .code = "rate_limit_exceeded",
                                  .param = {},
                                  .retry_after_ms = 1000}),
          {}));
    }
  };
}

RouteHandler OpenAiApiImpl::immediate(HttpResponse (*make)(const ApiContext&)) {
  return
      [context = context_, make](const HttpRequest&, const ReplyPtr& reply) { reply->send(make(*context)); };
}

void OpenAiApiImpl::add_routes(RouteTable& routes) {
  routes.add({"POST", "/v1/chat/completions", Scope::kInference, kGenerationBodyBytes, pooled(handle_chat)});
  routes.add({"POST", "/v1/completions", Scope::kInference, kGenerationBodyBytes, pooled(handle_completion)});
  routes.add({"POST", "/tokenize", Scope::kInference, kGenerationBodyBytes,
              pooled([](const ContextPtr& context, const HttpRequest& request, const ReplyPtr& reply) {
                reply->send(handle_tokenize(*context, request));
              })});
  routes.add({"POST", "/detokenize", Scope::kInference, kPlainBodyBytes,
              pooled([](const ContextPtr& context, const HttpRequest& request, const ReplyPtr& reply) {
                reply->send(handle_detokenize(*context, request));
              })});
  routes.add({"GET", "/v1/models", Scope::kInference, kPlainBodyBytes, immediate(handle_models)});
  routes.add({"GET", "/v1/models/{id}", Scope::kInference, kPlainBodyBytes,
              [context = context_](const HttpRequest& request, const ReplyPtr& reply) {
                reply->send(handle_model(*context, request.path_parameter));
              }});
  for (const char* path : {"/health", "/v1/health", "/readyz", "/ping"}) {
    routes.add({"GET", path, Scope::kPublic, kPlainBodyBytes, immediate(handle_health)});
  }
  routes.add({"GET", "/livez", Scope::kPublic, kPlainBodyBytes, immediate(handle_livez)});
  routes.add({"POST", "/ping", Scope::kPublic, kPlainBodyBytes, immediate(handle_health)});
  routes.add({"GET", "/version", Scope::kInference, kPlainBodyBytes, immediate(handle_version)});
  routes.add({"GET", "/metrics", Scope::kMetrics, kPlainBodyBytes, immediate(handle_metrics)});
  routes.add({"GET", "/", Scope::kPublic, kPlainBodyBytes,
              [](const HttpRequest& request, const ReplyPtr& reply) { reply->send(handle_root(request)); }});
}

}  // namespace

std::unique_ptr<OpenAiApi> OpenAiApi::create(OpenAiConfig config, AsyncEngine* engine,
                                             std::shared_ptr<const ChatTemplate> chat_template,
                                             MetricsRegistry* metrics) {
  auto context = std::make_shared<ApiContext>();
  context->config = std::move(config);
  context->engine = engine;
  context->chat_template = std::move(chat_template);
  context->metrics = metrics;
  context->created = wall_clock_seconds();
  return std::make_unique<OpenAiApiImpl>(std::move(context));
}

}  // namespace omnibus
