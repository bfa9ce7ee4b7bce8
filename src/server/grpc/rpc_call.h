// RpcCall: one call of the gRPC door. gRPC's threads report what happened on the wire; what the handler
// answers is queued and written one message after the other; the client's leaving, or its not reading, ends
// the call.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/support/byte_buffer.h>

#include "omnibus/base/common/clock.h"
#include "omnibus/server/grpc/grpc_server.h"

#include "http/awake_clock.h"
#include "http/byte_budget.h"
#include "rpc_method.h"
#include "rpc_metrics.h"

namespace omnibus {

struct RpcTable {
  std::unordered_map<std::string, RpcMethod> methods;  // by path
};

class RpcCall;

// Shared by the listener and its calls.
struct RpcServerState {
  RpcServerState(const GrpcServerConfig& c, MetricsRegistry* registry)
      : config(c), bodies(std::make_shared<ByteBudget>(c.max_buffered_bytes)), metrics(registry) {}

  const GrpcServerConfig config;
  const std::shared_ptr<ByteBudget> bodies;
  AwakeClock clock;  // of time-outs
  const SteadyClock engine_clock;
  RpcMetrics metrics;
  std::unordered_map<std::string, RpcMethod> own_methods;  // health and reflection, by path
  std::atomic<bool> draining{false};
  std::mutex mutex;  // of what follows
  std::shared_ptr<const GrpcSite> site;
  std::unordered_map<RpcCall*, std::weak_ptr<RpcCall>> calls;
  size_t public_calls = 0;  // of these, those that need no key
};

// Methods without a remark: any thread. The object lives until gRPC and the handler are done with it.
class RpcCall final : public grpc::ServerGenericBidiReactor, public std::enable_shared_from_this<RpcCall> {
 public:
  // The reactor of a new call. On a thread of gRPC.
  static RpcCall* open(std::shared_ptr<RpcServerState> state, grpc::GenericCallbackServerContext* context);
  RpcCall(std::shared_ptr<RpcServerState> state, std::shared_ptr<const GrpcSite> site,
          grpc::GenericCallbackServerContext* context);
  ~RpcCall() override = default;

  // What a Reply does (http/reply.h).
  void send(HttpResponse response);
  void begin(HttpResponse head);
  void write(std::string frames);
  void end();
  size_t backlog() const;
  void on_gone(std::function<void()> callback);
  void abandon();

  // Ends the call if its client has neither sent its request nor taken a message for too long.
  void check_progress(AwakeClock::TimePoint now);

 private:
  // On gRPC's threads.
  void OnReadDone(bool ok) override;
  void OnWriteDone(bool ok) override;
  void OnCancel() override;
  void OnDone() override;

  // Whether it may stay: who has no key must not take the places of those who have one.
  bool take_place();
  bool is_public() const { return method_ != nullptr && method_->scope == Scope::kPublic; }
  Status admit(bool room);
  void read_request();
  void handle(std::string body);
  void finish(const HttpResponse& error);
  // Starts the next operation of the wire, if there is one to start.
  void pump();

  // With the lock held.
  void add_headers(const HttpResponse& response);
  void take_frames(std::string_view frames);
  void set_outcome(std::string_view status_bytes);

  const std::shared_ptr<RpcServerState> state_;
  // That it came to; until OnDone. A reply may be kept beyond the server, and must not keep the handlers
  // then.
  std::shared_ptr<const GrpcSite> site_;
  grpc::GenericCallbackServerContext* const context_;  // until OnDone
  std::shared_ptr<RpcCall> self_;                      // until OnDone
  const RpcMethod* method_ = nullptr;                  // of the site; null: there is none of this name
  std::optional<int64_t> deadline_ns_;
  HttpRequest request_;                          // all but the body, kept when there may be several
  grpc::ByteBuffer read_buffer_, write_buffer_;  // of the operation that runs

  mutable std::mutex mutex_;
  std::deque<std::string> queue_;  // messages to be written
  size_t queued_bytes_ = 0, in_flight_bytes_ = 0;
  grpc::Status outcome_;
  std::function<void()> on_gone_;
  std::optional<AwakeClock::TimePoint> waits_since_;  // of a read or write that runs
  std::chrono::nanoseconds wait_limit_{0};
  bool reading_ = false, writing_ = false, finishing_ = false, done_ = false;
  bool requested_ = false;  // a request has come
  bool awaited_ = false;    // the handler owes an answer
  bool begun_ = false;      // the first message is on its way, or the only one
  bool ended_ = false;      // the outcome stands
  bool gone_ = false;       // the client left
  bool read_next_ = false;
};

// The handler's end of a call.
class RpcReply final : public Reply {
 public:
  explicit RpcReply(std::shared_ptr<RpcCall> call) : call_(std::move(call)) {}
  ~RpcReply() override { call_->abandon(); }
  RpcReply(const RpcReply&) = delete;
  RpcReply& operator=(const RpcReply&) = delete;

  void send(HttpResponse response) override { call_->send(std::move(response)); }
  void begin(HttpResponse head) override { call_->begin(std::move(head)); }
  void write(std::string bytes) override { call_->write(std::move(bytes)); }
  void end() override { call_->end(); }
  size_t backlog() const override { return call_->backlog(); }
  void on_gone(std::function<void()> callback) override { call_->on_gone(std::move(callback)); }

 private:
  const std::shared_ptr<RpcCall> call_;
};

}  // namespace omnibus
