#include "omnibus/server/grpc/grpc_server.h"

#include <chrono>
#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <grpcpp/support/byte_buffer.h>
#include <gtest/gtest.h>

#include "omnibus/base/common/metrics.h"

#include "rpc_call.h"
#include "rpc_error.h"

namespace omnibus {
namespace {

constexpr auto kHangLimit = std::chrono::seconds(20);
constexpr const char* kMethod = "/test.Test/Keep";

struct Answer {
  grpc::Status status;
  std::multimap<std::string, std::string> trailers;
};

// One call on a connection of its own, begun now.
class TestCall {
 public:
  TestCall(uint16_t port, const std::string& path, std::optional<gpr_timespec> deadline = {})
      : stub_(grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials())) {
    const grpc::Slice slice(std::string("request"));
    request_ = grpc::ByteBuffer(&slice, 1);
    if (deadline) context_.set_deadline(*deadline);
    stub_.UnaryCall(&context_, path, {}, &request_, &response_,
                    [this](grpc::Status status) { done_.set_value(std::move(status)); });
  }
  ~TestCall() {
    context_.TryCancel();
    if (future_.valid()) future_.wait();
  }
  TestCall(const TestCall&) = delete;
  TestCall& operator=(const TestCall&) = delete;

  Answer wait() {
    if (future_.wait_for(kHangLimit) != std::future_status::ready) {
      return {grpc::Status(grpc::StatusCode::UNKNOWN, "no answer came"), {}};
    }
    Answer answer{future_.get(), {}};
    for (const auto& [name, value] : context_.GetServerTrailingMetadata()) {
      answer.trailers.emplace(std::string(name.data(), name.size()), std::string(value.data(), value.size()));
    }
    return answer;
  }

 private:
  grpc::GenericStub stub_;
  grpc::ClientContext context_;
  grpc::ByteBuffer request_, response_;
  std::promise<grpc::Status> done_;
  std::future<grpc::Status> future_ = done_.get_future();
};

// A server with one method whose handler keeps each reply and answers none.
class GrpcServerTest : public testing::Test {
 protected:
  void start(GrpcServerConfig config = {}, Scope scope = Scope::kPublic) {
    auto table = std::make_shared<RpcTable>();
    auto pool = std::make_shared<int>();  // what handlers share, as they do the text pool
    pool_ = pool;
    table->methods.emplace(
        kMethod, RpcMethod(kMethod, scope, [this, pool](HttpRequest request, const ReplyPtr& reply) {
          std::lock_guard lock(mutex_);
          deadline_ns_ = request.deadline_ns;
          replies_.push_back(reply);
          came_.notify_all();
        }));
    GrpcSite site;
    site.methods = std::move(table);
    site.auth = std::make_shared<Authenticator>(std::span<const ApiKey>(), true);
    auto server = GrpcServer::start(config, std::move(site), &lifecycle_, &metrics_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  bool wait_for_replies(size_t count, std::chrono::milliseconds limit = kHangLimit) {
    std::unique_lock lock(mutex_);
    return came_.wait_for(lock, limit, [&] { return replies_.size() >= count; });
  }

  Lifecycle lifecycle_;
  MetricsRegistry metrics_;
  std::mutex mutex_;
  std::condition_variable came_;
  std::vector<ReplyPtr> replies_;
  std::optional<int64_t> deadline_ns_;
  std::weak_ptr<int> pool_;
  std::unique_ptr<GrpcServer> server_;
};

// Handlers keep the text pool, whose jobs keep replies: were a reply to keep its handler, the pool would
// outlive the engine that its jobs use, and be let go of by a thread of its own.
TEST_F(GrpcServerTest, AReplyDoesNotKeepItsHandler) {
  start();
  TestCall call(server_->port(), kMethod);
  ASSERT_TRUE(wait_for_replies(1));
  EXPECT_FALSE(pool_.expired());
  server_->stop(std::chrono::milliseconds(0));
  EXPECT_NE(call.wait().status.error_code(), grpc::StatusCode::OK);
  server_.reset();
  EXPECT_TRUE(pool_.expired());
  // What is still answered goes nowhere.
  replies_.front()->send(HttpResponse());
  replies_.clear();
}

TEST_F(GrpcServerTest, OpenCallsAreBounded) {
  start({.max_calls = 3});
  std::vector<std::unique_ptr<TestCall>> calls;
  for (size_t i = 1; i <= 3; ++i) {
    calls.push_back(std::make_unique<TestCall>(server_->port(), kMethod));
    ASSERT_TRUE(wait_for_replies(i));
  }
  const Answer refused = TestCall(server_->port(), kMethod).wait();
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::RESOURCE_EXHAUSTED);
  EXPECT_EQ(refused.trailers.count("grpc-retry-pushback-ms"), 1U);
  {
    std::lock_guard lock(mutex_);
    replies_.front()->send(rpc_message("done"));
  }
  EXPECT_TRUE(calls.front()->wait().status.ok());
  // The place is free when the server, too, is done with that call.
  const auto limit = std::chrono::steady_clock::now() + kHangLimit;
  bool taken = false;
  while (!taken && std::chrono::steady_clock::now() < limit) {
    calls.front() = std::make_unique<TestCall>(server_->port(), kMethod);
    taken = wait_for_replies(4, std::chrono::milliseconds(200));
  }
  EXPECT_TRUE(taken);
}

TEST_F(GrpcServerTest, ADrainSaysWhenToTryAgain) {
  start({}, Scope::kInference);
  server_->begin_drain();
  const Answer refused = TestCall(server_->port(), kMethod).wait();
  EXPECT_EQ(refused.status.error_code(), grpc::StatusCode::UNAVAILABLE);
  const auto pushback = refused.trailers.find("grpc-retry-pushback-ms");
  ASSERT_NE(pushback, refused.trailers.end());
  EXPECT_GT(std::stoi(pushback->second), 0);
}

// Which of the client's times come as which: also those that do not fit into nanoseconds.
TEST_F(GrpcServerTest, DeadlinesAreAtMostAWeek) {
  start();
  const SteadyClock clock;
  constexpr int64_t kSecond = 1'000'000'000, kWeek = 7 * 24 * 3600;
  size_t calls = 0;
  for (const int64_t seconds :
       {int64_t{600}, kWeek - 60, kWeek + 60, int64_t{9'300'000'000}, int64_t{99'999'999} * 3600}) {
    const MonotonicNs before = clock.now_ns();
    const TestCall call(
        server_->port(), kMethod,
        gpr_time_add(gpr_now(GPR_CLOCK_REALTIME), gpr_time_from_seconds(seconds, GPR_TIMESPAN)));
    ASSERT_TRUE(wait_for_replies(++calls)) << seconds;
    std::lock_guard lock(mutex_);
    // gRPC sends them rounded up, the largest by hours.
    const int64_t sent = std::min(kWeek, seconds);
    ASSERT_TRUE(deadline_ns_.has_value()) << seconds;
    EXPECT_GE(*deadline_ns_, before + (sent - 1) * kSecond) << seconds;
    EXPECT_LE(*deadline_ns_, clock.now_ns() + std::min(kWeek, sent + 3600) * kSecond) << seconds;
  }
  const TestCall call(server_->port(), kMethod);
  ASSERT_TRUE(wait_for_replies(++calls));
  std::lock_guard lock(mutex_);
  EXPECT_FALSE(deadline_ns_.has_value());
}

}  // namespace
}  // namespace omnibus
