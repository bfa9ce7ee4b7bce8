#include <atomic>
#include <mutex>
#include <utility>

#include <grpc/health/v1/health.pb.h>
#include <omnibus/v1/inference.pb.h>

#include "rpc_error.h"
#include "rpc_frame.h"
#include "rpc_methods.h"

namespace omnibus {
namespace {

// Of the whole server: a watch needs no key and never ends.
constexpr size_t kMaxWatches = 64;

using grpc::health::v1::HealthCheckRequest;
using grpc::health::v1::HealthCheckResponse;
using State = HealthCheckResponse::ServingStatus;

std::string state_frame(State state) {
  HealthCheckResponse message;
  message.set_status(state);
  std::string out;
  append_frame(out, RpcFrameKind::kMessage, message.SerializeAsString());
  return out;
}

HttpResponse state_head(State state) {
  HttpResponse head;
  head.content_type.clear();
  head.body = state_frame(state);
  return head;
}

class HealthServiceImpl final : public HealthService {
 public:
  explicit HealthServiceImpl(const Lifecycle* lifecycle) : lifecycle_(lifecycle) {}

  std::vector<RpcMethod> methods() override;
  void poll() override;
  void end_watches() override;

 private:
  struct Watch {
    ReplyPtr reply;
    bool known;  // the service that is watched is one of ours
    State told;
    std::shared_ptr<std::atomic<bool>> gone;
  };

  State state() const;
  static bool is_known(const std::string& service) {
    return service.empty() || service == v1::GenerateRequest::descriptor()->file()->service(0)->full_name();
  }
  Status check(const HttpRequest& request, const ReplyPtr& reply) const;
  Status watch(const HttpRequest& request, const ReplyPtr& reply);
  void drop_gone() {
    std::erase_if(watches_, [](const Watch& watch) { return watch.gone->load(); });
  }

  const Lifecycle* const lifecycle_;
  std::mutex mutex_;
  std::vector<Watch> watches_;
  bool ended_ = false;
};

State HealthServiceImpl::state() const {
  return lifecycle_->why_not_ready().empty() ? HealthCheckResponse::SERVING
                                             : HealthCheckResponse::NOT_SERVING;
}

StatusOr<HealthCheckRequest> parse(const HttpRequest& request) {
  HealthCheckRequest message;
  if (message.ParseFromString(request.body)) return message;
  return absl::InvalidArgumentError("The request is no grpc.health.v1.HealthCheckRequest");
}

Status HealthServiceImpl::check(const HttpRequest& request, const ReplyPtr& reply) const {
  OMNIBUS_ASSIGN_OR_RETURN(const HealthCheckRequest message, parse(request));
  if (!is_known(message.service())) return absl::NotFoundError("There is no such service");
  reply->send(state_head(state()));
  return {};
}

Status HealthServiceImpl::watch(const HttpRequest& request, const ReplyPtr& reply) {
  OMNIBUS_ASSIGN_OR_RETURN(const HealthCheckRequest message, parse(request));
  const bool known = is_known(message.service());
  const auto gone = std::make_shared<std::atomic<bool>>(false);
  reply->on_gone([gone] { gone->store(true); });
  std::lock_guard lock(mutex_);
  drop_gone();
  if (watches_.size() >= kMaxWatches) return rpc_overload("There are too many calls of Watch; use Check");
  const State now = known ? state() : HealthCheckResponse::SERVICE_UNKNOWN;
  reply->begin(state_head(now));
  if (ended_) {
    reply->end();
  } else {
    watches_.push_back({reply, known, now, gone});
  }
  return {};
}

void HealthServiceImpl::poll() {
  std::lock_guard lock(mutex_);
  drop_gone();
  const State now = state();
  for (Watch& watch : watches_) {
    if (!watch.known || std::exchange(watch.told, now) == now) continue;
    watch.reply->write(state_frame(now));
  }
}

void HealthServiceImpl::end_watches() {
  std::lock_guard lock(mutex_);
  ended_ = true;
  for (const Watch& watch : watches_) watch.reply->end();
  watches_.clear();
}

std::vector<RpcMethod> HealthServiceImpl::methods() {
  const auto answering = [](const auto& answer) -> RouteHandler {
    return [answer](const HttpRequest& request, const ReplyPtr& reply) {
      const Status status = answer(request, reply);
      if (!status.ok()) reply->send(render_rpc_error(status, {}));
    };
  };
  std::vector<RpcMethod> methods;
  methods.emplace_back(
      "/grpc.health.v1.Health/Check", Scope::kPublic,
      answering([this](const HttpRequest& request, const ReplyPtr& reply) { return check(request, reply); }));
  methods.emplace_back(
      "/grpc.health.v1.Health/Watch", Scope::kPublic,
      answering([this](const HttpRequest& request, const ReplyPtr& reply) { return watch(request, reply); }));
  return methods;
}

}  // namespace

std::unique_ptr<HealthService> make_health_service(const Lifecycle* lifecycle) {
  return std::make_unique<HealthServiceImpl>(lifecycle);
}

}  // namespace omnibus
