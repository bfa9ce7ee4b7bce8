#include "omnibus/server/api/api_core.h"

#include <exception>
#include <new>

#include "omnibus/base/common/clock.h"
#include "omnibus/base/common/log.h"

#include "api_context.h"
#include "http/http_error.h"
#include "text_pool.h"

namespace omnibus {
namespace {

constexpr size_t kTextQueue = 1024;

class ApiCoreImpl final : public ApiCore {
 public:
  ApiCoreImpl(ContextPtr context, std::shared_ptr<TextPool> pool)
      : context_(std::move(context)), pool_(std::move(pool)) {}

  std::unique_ptr<ApiCore> with_config(ApiConfig config) const override;
  RouteHandler pooled(Job job, ErrorRenderer render) override;
  const ContextPtr& context() const override { return context_; }

 private:
  const ContextPtr context_;
  const std::shared_ptr<TextPool> pool_;
};

std::unique_ptr<ApiCore> ApiCoreImpl::with_config(ApiConfig config) const {
  auto context = std::make_shared<ApiContext>();
  context->config = std::move(config);
  context->engine = context_->engine;
  context->chat_template = context_->chat_template;
  context->metrics = context_->metrics;
  context->created = context_->created;
  context->requests = context_->requests;
  return std::make_unique<ApiCoreImpl>(std::move(context), pool_);
}

RouteHandler ApiCoreImpl::pooled(Job job, ErrorRenderer render) {
  return [pool = pool_, context = context_, job = std::move(job), render](HttpRequest request,
                                                                          const ReplyPtr& reply) {
    auto shared = std::make_shared<HttpRequest>(std::move(request));
    const bool posted = pool->try_post([context, job, render, shared, reply] {
      try {
        job(context, std::move(*shared), reply);
      } catch (const std::bad_alloc&) {
        reply->send(render(out_of_memory(), {}));
      } catch (const std::exception& error) {
        log_error("request handler: {}", error.what());
        reply->send(render(absl::InternalError("The server failed on this request"), {}));
      }
    });
    if (posted) return;
    reply->send(render(
        with_detail(
            absl::ResourceExhaustedError("Too many requests are waiting to be read"),
            ErrorDetail{
                .http = 429, .type = {}, .code = "rate_limit_exceeded", .param = {}, .retry_after_ms = 1000}),
        {}));
  };
}

}  // namespace

std::unique_ptr<ApiCore> ApiCore::create(ApiConfig config, AsyncEngine* engine,
                                         std::shared_ptr<const ChatTemplate> chat_template,
                                         MetricsRegistry* metrics) {
  auto context = std::make_shared<ApiContext>();
  context->config = std::move(config);
  context->engine = engine;
  context->chat_template = std::move(chat_template);
  context->metrics = metrics;
  context->created = wall_clock_seconds();
  auto pool = std::make_shared<TextPool>(context->config.text_threads, kTextQueue);
  return std::make_unique<ApiCoreImpl>(std::move(context), std::move(pool));
}

}  // namespace omnibus
