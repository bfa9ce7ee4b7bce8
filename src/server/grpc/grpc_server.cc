#include "omnibus/server/grpc/grpc_server.h"

#include <condition_variable>
#include <thread>

#include <fmt/format.h>
#include <grpc/support/log.h>
#include <grpcpp/resource_quota.h>
#include <grpcpp/security/server_credentials.h>
#include <grpcpp/security/tls_certificate_provider.h>
#include <grpcpp/security/tls_credentials_options.h>
#include <grpcpp/server.h>
#include <grpcpp/server_builder.h>

#include "omnibus/base/common/log.h"

#include "rpc_call.h"
#include "rpc_methods.h"

namespace omnibus {
namespace {

// Peers that ask for signs of life more often than this are cut off after two such pings.
constexpr int kMinPingIntervalMs = 10'000;
constexpr int kMaxPingStrikes = 2;
// And the server's own, by which it finds peers that are gone without a word.
constexpr int kPingAfterMs = 60'000, kPingTimeoutMs = 20'000;
constexpr int kHandshakeTimeoutMs = 10'000;
constexpr int kIdleConnectionMs = 300'000;
constexpr unsigned kCertificateRefreshSeconds = 5;

// gRPC's own remarks are about what peers did; a peer must not be able to fill our log.
void log_of_grpc(gpr_log_func_args* args) {
  log(LogLevel::kDebug, "gRPC: {}:{}: {}", args->file, args->line, args->message);
}

// The files are looked at again now and then: connections made later get what they hold by then.
std::shared_ptr<grpc::ServerCredentials> credentials_of(const TlsFiles& files) {
  namespace tls = grpc::experimental;
  if (files.certificate.empty()) return grpc::InsecureServerCredentials();
  const std::string& key = files.key.empty() ? files.certificate : files.key;
  tls::TlsServerCredentialsOptions options(std::make_shared<tls::FileWatcherCertificateProvider>(
      key, files.certificate, files.client_ca, kCertificateRefreshSeconds));
  options.watch_identity_key_cert_pairs();
  if (!files.client_ca.empty()) {
    options.watch_root_certs();
    options.set_cert_request_type(GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_AND_VERIFY);
  }
  return tls::TlsServerCredentials(options);
}

void set_limits(const GrpcServerConfig& config, grpc::ServerBuilder& builder) {
  builder.SetMaxReceiveMessageSize(static_cast<int>(config.max_message_bytes));
  builder.SetMaxSendMessageSize(-1);
  // A small message could unfold to any size.
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_DEFLATE, false);
  builder.SetCompressionAlgorithmSupportStatus(GRPC_COMPRESS_GZIP, false);
  for (const auto& [name, value] : std::initializer_list<std::pair<const char*, int>>{
           {GRPC_ARG_ALLOW_REUSEPORT, 0},  // else two servers could have one port
           {GRPC_ARG_MAX_METADATA_SIZE, config.max_metadata_bytes},
           {GRPC_ARG_MAX_CONCURRENT_STREAMS, config.max_streams},
           {GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, kMinPingIntervalMs},
           {GRPC_ARG_HTTP2_MAX_PING_STRIKES, kMaxPingStrikes},
           {GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1},
           {GRPC_ARG_KEEPALIVE_TIME_MS, kPingAfterMs},
           {GRPC_ARG_KEEPALIVE_TIMEOUT_MS, kPingTimeoutMs},
           {GRPC_ARG_SERVER_HANDSHAKE_TIMEOUT_MS, kHandshakeTimeoutMs},
           {GRPC_ARG_MAX_CONNECTION_IDLE_MS, kIdleConnectionMs}}) {
    builder.AddChannelArgument(name, value);
  }
  grpc::ResourceQuota quota("omnibus");
  quota.Resize(config.max_buffered_bytes);
  builder.SetResourceQuota(quota);
}

void add_methods(std::vector<RpcMethod> methods, std::unordered_map<std::string, RpcMethod>& table) {
  for (RpcMethod& method : methods) {
    std::string path = method.path;
    table.emplace(std::move(path), std::move(method));
  }
}

// Every call, whatever its name.
class AnyMethod final : public grpc::CallbackGenericService {
 public:
  explicit AnyMethod(std::shared_ptr<RpcServerState> state) : state_(std::move(state)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override {
    return RpcCall::open(state_, context);
  }

 private:
  const std::shared_ptr<RpcServerState> state_;
};

class GrpcServerImpl final : public GrpcServer {
 public:
  GrpcServerImpl(std::shared_ptr<RpcServerState> state, std::unique_ptr<HealthService> health)
      : state_(std::move(state)), health_(std::move(health)), service_(state_) {}
  ~GrpcServerImpl() override;

  Status listen();
  uint16_t port() const override { return static_cast<uint16_t>(port_); }
  void replace(GrpcSite site) override;
  void begin_drain() override;
  void stop(std::chrono::milliseconds limit) override;

 private:
  void tick();

  const std::shared_ptr<RpcServerState> state_;
  const std::unique_ptr<HealthService> health_;
  AnyMethod service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
  std::mutex mutex_;
  std::condition_variable stop_ticking_;
  bool stopping_ = false;
  std::thread ticker_;
};

// Replies that somebody still has share the state, and what serves goes with the server nevertheless.
GrpcServerImpl::~GrpcServerImpl() {
  stop(std::chrono::milliseconds(0));
  std::lock_guard lock(state_->mutex);
  state_->site.reset();
}

void GrpcServerImpl::replace(GrpcSite site) {
  std::shared_ptr<const GrpcSite> next = std::make_shared<GrpcSite>(std::move(site));
  std::lock_guard lock(state_->mutex);
  state_->site.swap(next);  // the old one is let go of without the lock
}

Status GrpcServerImpl::listen() {
  const GrpcServerConfig& config = state_->config;
  grpc::ServerBuilder builder;
  const bool v6 = config.host.find(':') != std::string::npos;
  const std::string address =
      fmt::format("{}{}{}:{}", v6 ? "[" : "", config.host, v6 ? "]" : "", config.port);
  builder.AddListeningPort(address, credentials_of(config.tls), &port_);
  builder.RegisterCallbackGenericService(&service_);
  set_limits(config, builder);
  server_ = builder.BuildAndStart();
  if (!server_ || port_ == 0) {
    return absl::UnavailableError(
        fmt::format("Cannot listen on {} port {} for gRPC", config.host, config.port));
  }
  ticker_ = std::thread([this] { tick(); });
  return {};
}

// Looks after what no event tells: clients that do nothing, and the engine's health.
void GrpcServerImpl::tick() {
  std::unique_lock lock(mutex_);
  while (!stop_ticking_.wait_for(lock, AwakeClock::kTick, [this] { return stopping_; })) {
    const AwakeClock::TimePoint now = state_->clock.now();
    std::vector<std::shared_ptr<RpcCall>> calls;
    {
      std::lock_guard calls_lock(state_->mutex);
      for (const auto& [raw, weak] : state_->calls) {
        if (auto call = weak.lock()) calls.push_back(std::move(call));
      }
    }
    for (const auto& call : calls) call->check_progress(now);
    health_->poll();
  }
}

void GrpcServerImpl::begin_drain() {
  state_->draining = true;
  health_->poll();
}

void GrpcServerImpl::stop(std::chrono::milliseconds limit) {
  if (!server_) return;
  begin_drain();
  health_->end_watches();
  server_->Shutdown(
      gpr_time_add(gpr_now(GPR_CLOCK_MONOTONIC), gpr_time_from_millis(limit.count(), GPR_TIMESPAN)));
  server_->Wait();
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  stop_ticking_.notify_all();
  if (ticker_.joinable()) ticker_.join();
  server_.reset();
}

}  // namespace

std::shared_ptr<const RpcTable> make_rpc_table(ApiCore& core, uint64_t max_message_bytes) {
  auto table = std::make_shared<RpcTable>();
  add_methods(inference_methods(core, max_message_bytes), table->methods);
  return table;
}

StatusOr<std::unique_ptr<GrpcServer>> GrpcServer::start(const GrpcServerConfig& config, GrpcSite site,
                                                        const Lifecycle* lifecycle,
                                                        MetricsRegistry* metrics) {
  gpr_set_log_function(log_of_grpc);
  auto state = std::make_shared<RpcServerState>(config, metrics);
  auto health = make_health_service(lifecycle);
  add_methods(health->methods(), state->own_methods);
  add_methods(reflection_methods(), state->own_methods);
  auto server = std::make_unique<GrpcServerImpl>(std::move(state), std::move(health));
  server->replace(std::move(site));
  OMNIBUS_RETURN_IF_ERROR(server->listen());
  return server;
}

}  // namespace omnibus
