#include "omnibus/server/http/http_server.h"

#include <atomic>
#include <chrono>
#include <future>
#include <thread>
#include <utility>

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "omnibus/base/common/log_flush.h"

namespace omnibus {
namespace {

using std::chrono::milliseconds;

class Client {
 public:
  explicit Client(uint16_t port, int receive_buffer = 0) : fd_(socket(AF_INET, SOCK_STREAM, 0)) {
    if (receive_buffer > 0) setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = connect(fd_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
    const timeval limit{10, 0};
    setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  }
  ~Client() { close(fd_); }
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  bool connected() const { return connected_; }
  void send(const std::string& text) { ASSERT_GT(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL), 0); }
  void try_send(const std::string& text) {
    static_cast<void>(::send(fd_, text.data(), text.size(), MSG_NOSIGNAL));
  }
  void half_close() { shutdown(fd_, SHUT_WR); }
  // receive() came to the end of the connection, not to its time limit.
  bool ended() const { return ended_; }
  // Up to the end of the connection, or until `enough`.
  std::string receive(const std::string& enough = "\x01never") {
    std::string text;
    char chunk[4096];
    while (text.find(enough) == std::string::npos) {
      const ssize_t n = recv(fd_, chunk, sizeof chunk, 0);
      ended_ = n == 0;
      if (n <= 0) break;
      text.append(chunk, static_cast<size_t>(n));
    }
    return text;
  }

 private:
  int fd_;
  bool connected_ = false, ended_ = false;
};

int unix_client(const std::string& path) {
  const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0) return fd;
  close(fd);
  return -1;
}

// A server whose one route hands its reply to the test.
class HttpServerTest : public testing::Test {
 protected:
  void start() {
    if (!config_.render_error)
      config_.render_error = [](const Status& error, std::string_view) {
        HttpResponse response;
        response.status = error_detail(error).http;
        response.body = status_message(error);
        return response;
      };
    routes_.add({"GET", "/held", Scope::kPublic, 0,
                 [this](HttpRequest, ReplyPtr reply) { replies_.set_value(std::move(reply)); }});
    routes_.add({"GET", "/throws", Scope::kPublic, 0,
                 [](const HttpRequest&, const ReplyPtr&) { throw std::runtime_error("a bug"); }});
    routes_.add({"GET", "/admin", Scope::kAdmin, 0, [](const HttpRequest&, const ReplyPtr&) {}});
    auto server = HttpServer::start(config_, site(), &metrics_);
    ASSERT_TRUE(server.ok()) << server.status();
    server_ = *std::move(server);
  }

  HttpSite site() const {
    HttpSite site;
    site.routes = std::make_shared<RouteTable>(routes_);
    site.auth = std::make_shared<Authenticator>(auth_);
    site.tls = tls_;
    return site;
  }

  // The reply of the request that `client` sends to /held.
  ReplyPtr hold(Client& client) {
    replies_ = std::promise<ReplyPtr>();
    auto future = replies_.get_future();
    client.send("GET /held HTTP/1.1\r\nHost: localhost\r\n\r\n");
    EXPECT_EQ(future.wait_for(milliseconds(10'000)), std::future_status::ready);
    return future.get();
  }

  static bool within(milliseconds limit, const std::function<bool()>& condition) {
    const auto deadline = std::chrono::steady_clock::now() + limit;
    while (!condition()) {
      if (std::chrono::steady_clock::now() > deadline) return false;
      std::this_thread::yield();
    }
    return true;
  }

  HttpServerConfig config_;
  RouteTable routes_;
  Authenticator auth_{std::span<const ApiKey>(), true};
  TlsFiles tls_;
  MetricsRegistry metrics_;
  std::promise<ReplyPtr> replies_;
  std::vector<HttpRequest> kept_;
  std::unique_ptr<HttpServer> server_;
};

TEST_F(HttpServerTest, AnswerFromAnotherThread) {
  start();
  Client client(server_->port());
  const ReplyPtr reply = hold(client);
  HttpResponse response;
  response.body = "later";
  reply->send(std::move(response));
  EXPECT_TRUE(client.receive("later").starts_with("HTTP/1.1 200 OK\r\n"));
}

TEST_F(HttpServerTest, AHandlerThatThrowsIsA500) {
  start();
  Client client(server_->port());
  client.send("GET /throws HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.receive().starts_with("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, ADroppedReplyIsA500) {
  start();
  Client client(server_->port());
  hold(client).reset();
  replies_ = std::promise<ReplyPtr>();
  EXPECT_TRUE(client.receive().starts_with("HTTP/1.1 500 "));
}

TEST_F(HttpServerTest, AdminIsNotServedHere) {
  start();
  Client client(server_->port());
  client.send("GET /admin HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(client.receive().starts_with("HTTP/1.1 403 "));
}

TEST_F(HttpServerTest, HalfCloseWhileWaitingIsGone) {
  start();
  Client client(server_->port());
  const ReplyPtr reply = hold(client);
  std::atomic<bool> gone{false};
  reply->on_gone([&] { gone = true; });
  client.half_close();
  EXPECT_TRUE(within(milliseconds(5000), [&] { return gone.load(); }));
}

TEST_F(HttpServerTest, AStalledReaderIsGone) {
  config_.stall_timeout = milliseconds(200);
  start();
  Client client(server_->port(), 4096);
  const ReplyPtr reply = hold(client);
  std::atomic<bool> gone{false};
  reply->on_gone([&] { gone = true; });
  reply->begin({});
  for (int i = 0; i < 64; ++i) reply->write(std::string(64 * 1024, 'x'));
  EXPECT_TRUE(within(milliseconds(5000), [&] { return gone.load(); }));
}

TEST_F(HttpServerTest, BodiesTogetherAreBounded) {
  config_.max_buffered_bytes = 3000;
  routes_.add({"POST", "/body", Scope::kPublic, 2000, [this](HttpRequest request, const ReplyPtr& reply) {
                 kept_.push_back(std::move(request));
                 reply->send({});
               }});
  start();
  const auto post = [this](size_t size) {
    Client client(server_->port());
    client.send("POST /body HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: " +
                std::to_string(size) + "\r\n\r\n" + std::string(size, 'x'));
    return client.receive().substr(9, 3);
  };
  EXPECT_EQ(post(2000), "200");
  EXPECT_EQ(post(2000), "503");
  kept_.clear();  // the handler is done with the first
  EXPECT_EQ(post(2000), "200");
  kept_.clear();
}

TEST_F(HttpServerTest, StopEndsIdleConnectionsAndWaitsForBusyOnes) {
  start();
  Client idle(server_->port());
  Client busy(server_->port());
  const ReplyPtr reply = hold(busy);
  auto stopped = std::async(std::launch::async, [&] { server_->stop(milliseconds(10'000)); });
  EXPECT_EQ(idle.receive(), "");
  EXPECT_NE(stopped.wait_for(milliseconds(0)), std::future_status::ready);
  HttpResponse response;
  response.body = "done";
  reply->send(std::move(response));
  EXPECT_TRUE(busy.receive().ends_with("done"));
  stopped.get();
  Client late(server_->port());
  EXPECT_FALSE(late.connected());
}

TEST_F(HttpServerTest, StopHasALimit) {
  start();
  Client busy(server_->port());
  const ReplyPtr reply = hold(busy);
  std::atomic<bool> gone{false};
  reply->on_gone([&] { gone = true; });
  server_->stop(milliseconds(50));
  EXPECT_TRUE(gone);
}

// From begin_drain on, also where the request came before it, its handler has begun, or there is no route.
TEST_F(HttpServerTest, EveryAnswerAfterBeginDrainCloses) {
  start();
  Client whole(server_->port()), streamed(server_->port()), unknown(server_->port());
  const ReplyPtr whole_reply = hold(whole), streamed_reply = hold(streamed);
  server_->begin_drain();
  whole_reply->send({});
  streamed_reply->begin({});
  streamed_reply->write("text");
  streamed_reply->end();
  unknown.send("GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n");
  for (Client* client : {&whole, &streamed, &unknown}) {
    const std::string answer = client->receive();  // ends, as the connection does
    EXPECT_NE(answer.find("Connection: close\r\n"), std::string::npos) << answer;
    EXPECT_TRUE(client->ended());
  }
}

// For the sanitizers too: stop() closes the listener while all threads accept and serve.
TEST_F(HttpServerTest, StopWhileManyThreadsAccept) {
  config_.io_threads = 4;
  routes_.add(
      {"GET", "/now", Scope::kPublic, 0, [](const HttpRequest&, const ReplyPtr& reply) { reply->send({}); }});
  for (int round = 0; round < 10; ++round) {
    if (round == 0)
      start();
    else
      server_ = HttpServer::start(config_, site(), &metrics_).value();
    std::atomic<bool> done{false};
    std::atomic<int> answered{0};
    std::vector<std::thread> clients;
    for (int i = 0; i < 3; ++i) {
      clients.emplace_back([&] {
        while (!done.load()) {
          Client client(server_->port());
          if (!client.connected()) break;
          client.try_send("GET /now HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
          if (client.receive().starts_with("HTTP/1.1 200")) ++answered;
        }
      });
    }
    EXPECT_TRUE(within(milliseconds(5000), [&] { return answered.load() > 20; }));
    server_->stop(milliseconds(2000));
    done = true;
    for (std::thread& client : clients) client.join();
    EXPECT_FALSE(Client(server_->port()).connected());
  }
}

TEST_F(HttpServerTest, AnExceptionInAConnectionIsLogged) {
  config_.render_error = [](const Status&, std::string_view) -> HttpResponse {
    throw std::runtime_error("no words");
  };
  testing::internal::CaptureStderr();
  start();
  Client client(server_->port());
  client.send("GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_EQ(client.receive(), "");
  server_->stop(milliseconds(2000));
  flush_log();
  const std::string log = testing::internal::GetCapturedStderr();
  EXPECT_NE(log.find("no words"), std::string::npos) << log;
}

TEST_F(HttpServerTest, ReplyOutlivesTheServer) {
  start();
  Client client(server_->port());
  const ReplyPtr reply = hold(client);
  server_.reset();
  reply->send({});  // to nobody
}

TEST_F(HttpServerTest, PortInUseIsNamed) {
  start();
  HttpServerConfig config = config_;
  config.port = server_->port();
  const auto second = HttpServer::start(config, site(), &metrics_);
  ASSERT_FALSE(second.ok());
  EXPECT_NE(status_message(second.status()).find(std::to_string(config.port)), std::string::npos);
}

TEST_F(HttpServerTest, ATrickledBodyRunsOutOfTime) {
  config_.body_timeout = milliseconds(300);
  routes_.add({"POST", "/trickle", Scope::kPublic, 2000,
               [](const HttpRequest&, const ReplyPtr& reply) { reply->send({}); }});
  start();
  Client client(server_->port());
  client.send("POST /trickle HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n");
  std::atomic<bool> answered{false};
  // Far from over when the timeout is: each pause is a small part of it.
  std::thread trickle([&] {
    for (int i = 0; i < 900 && !answered; ++i) {
      client.send("x");
      std::this_thread::sleep_for(milliseconds(20));
    }
  });
  EXPECT_TRUE(client.receive("\r\n\r\n").starts_with("HTTP/1.1 408 "));
  answered = true;
  trickle.join();
}

TEST_F(HttpServerTest, ErrorsNameTheRoute) {
  start();
  Client nowhere(server_->port());
  nowhere.send("PUT /v1/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_NE(nowhere.receive().find("There is no route PUT /v1/x"), std::string::npos);
  Client wrong(server_->port());
  wrong.send("DELETE /held HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answer = wrong.receive();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 "));
  EXPECT_NE(answer.find("There is no DELETE /held: this route has GET, HEAD, OPTIONS"), std::string::npos);
}

TEST_F(HttpServerTest, AHostOfNoAddressIsNamed) {
  config_.host = "no such host";
  const auto server = HttpServer::start(config_, site(), &metrics_);
  EXPECT_NE(status_message(server.status()).find("no such host"), std::string::npos) << server.status();
}

TEST_F(HttpServerTest, ABadCertificateIsNamedAtStartAndInPrepare) {
  start();
  HttpSite bad = site();
  bad.tls.certificate = "/no/such.pem";
  const std::string expected = "TLS: cannot use the certificate '/no/such.pem': No such file or directory";
  EXPECT_EQ(status_message(server_->prepare(bad).status()), expected);
  EXPECT_EQ(status_message(HttpServer::start(config_, bad, &metrics_).status()), expected);
}

TEST_F(HttpServerTest, OptionsAnswersAreCounted) {
  start();
  Client client(server_->port());
  client.send("OPTIONS /held HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(client.receive().starts_with("HTTP/1.1 204 "));
  const std::string counted = "http_requests_total{handler=\"none\",method=\"OPTIONS\",status=\"204\"} 1";
  EXPECT_NE(metrics_.serialize().find(counted), std::string::npos) << metrics_.serialize();
}

// The value of the sample that begins with this; -1 without one.
double sample(const MetricsRegistry& metrics, const std::string& name) {
  const std::string text = "\n" + metrics.serialize();
  const size_t at = text.find("\n" + name + " ");
  return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
}

// A request that never had a whole head lasts from its first byte: not since the process, or the request
// before, began. Its answer is counted once it is sent.
TEST_F(HttpServerTest, RefusedHeadsAreCountedWithTheirOwnTimeAndSize) {
  using Steady = std::chrono::steady_clock;
  config_.header_timeout = milliseconds(300);
  start();
  double counted_seconds = 0;
  // The seconds of the request that this is the first to count.
  const auto seconds_of = [&](int count) {
    EXPECT_TRUE(within(milliseconds(10'000), [&] {
      return sample(metrics_, "http_request_duration_highr_seconds_count") == count;
    }));
    const double sum = sample(metrics_, "http_request_duration_highr_seconds_sum");
    return sum - std::exchange(counted_seconds, sum);
  };
  const auto since = [](Steady::time_point at) {
    return std::chrono::duration<double>(Steady::now() - at).count();
  };
  Client client(server_->port());
  client.send("GET /nowhere HTTP/1.1\r\nHost: localhost\r\n\r\n");
  size_t bytes = client.receive("GET /nowhere").size();
  seconds_of(1);
  std::this_thread::sleep_for(milliseconds(50));
  auto asked = Steady::now();
  client.send("bad head\r\n\r\n");
  bytes += client.receive().size();
  EXPECT_LE(seconds_of(2), since(asked)) << "400";

  asked = Steady::now();
  Client late(server_->port());
  late.send("GET /held HTT");
  bytes += late.receive().size();
  const double waited = seconds_of(3);
  EXPECT_LE(waited, since(asked)) << "408";
  EXPECT_GE(waited, 0.25) << "the time-out";
  for (const char* labels :
       {R"(method="GET",status="404")", R"(method="other",status="400")", R"(method="other",status="408")"}) {
    EXPECT_EQ(sample(metrics_, std::string(R"(http_requests_total{handler="none",)") + labels + "}"), 1)
        << labels;
  }
  EXPECT_EQ(sample(metrics_, R"(http_response_size_bytes_sum{handler="none"})"), static_cast<double>(bytes));
}

// Two listeners over one table of routes, as for a second port.
TEST_F(HttpServerTest, TwoListenersShareRoutesAndMetrics) {
  start();
  auto second = HttpServer::start(config_, site(), &metrics_);
  ASSERT_TRUE(second.ok()) << second.status();
  const auto answers = [](uint16_t port) {
    Client client(port);
    client.send("GET /throws HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    return client.receive().starts_with("HTTP/1.1 500 ");
  };
  EXPECT_TRUE(answers(server_->port()));
  EXPECT_TRUE(answers((*second)->port()));
  const std::string counted = "http_requests_total{handler=\"/throws\",method=\"GET\",status=\"500\"} 2";
  EXPECT_TRUE(
      within(milliseconds(5000), [&] { return metrics_.serialize().find(counted) != std::string::npos; }));

  // The first goes, with an answer of the second still to come.
  Client client((*second)->port());
  const ReplyPtr reply = hold(client);
  server_->stop(milliseconds(0));
  HttpResponse response;
  response.body = "later";
  reply->send(std::move(response));
  EXPECT_TRUE(client.receive("later").starts_with("HTTP/1.1 200 OK\r\n"));
  (*second)->stop(milliseconds(0));
}

TEST_F(HttpServerTest, TheHandlerLearnsTheNameOfTheKey) {
  const std::vector<ApiKey> keys = {{"alice", "k1"}, {"bob", "k2"}};
  auth_ = Authenticator(keys, true);
  routes_.add({"GET", "/who", Scope::kInference, 0, [](const HttpRequest& request, const ReplyPtr& reply) {
                 HttpResponse response;
                 response.body = "you are " + request.tenant;
                 reply->send(std::move(response));
               }});
  start();
  Client client(server_->port());
  client.send("GET /who HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k2\r\n\r\n");
  EXPECT_NE(client.receive("bob").find("you are bob"), std::string::npos);
}

HttpResponse text_response(std::string text) {
  HttpResponse response;
  response.body = std::move(text);
  return response;
}

TEST_F(HttpServerTest, ASiteIsSwappedBetweenRequestsOfAConnection) {
  start();
  Client client(server_->port());
  const ReplyPtr reply = hold(client);
  auto next = std::make_shared<RouteTable>();
  next->add({"GET", "/new", Scope::kInference, 0, [](const HttpRequest& request, const ReplyPtr& to) {
               to->send(text_response("hello " + request.tenant));
             }});
  HttpSite site = this->site();
  site.routes = next;
  const std::vector<ApiKey> keys = {{"alice", "k1"}};
  site.auth = std::make_shared<Authenticator>(keys, true);
  auto live = server_->prepare(site);
  ASSERT_TRUE(live.ok()) << live.status();
  server_->replace(*live);
  // What has begun goes on; what comes next is judged by the new keys and finds the new routes.
  reply->send(text_response("old"));
  EXPECT_TRUE(client.receive("old").starts_with("HTTP/1.1 200 OK"));
  client.send("GET /new HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.receive("\r\n\r\n").starts_with("HTTP/1.1 401 "));
  Client keyed(server_->port());
  keyed.send("GET /new HTTP/1.1\r\nHost: localhost\r\nX-Api-Key: k1\r\n\r\n");
  EXPECT_NE(keyed.receive("alice").find("hello alice"), std::string::npos);
}

TEST_F(HttpServerTest, AnOldSiteLivesAsLongAsItsRequests) {
  auto witness = std::make_shared<int>(0);
  const std::weak_ptr<int> alive = witness;
  routes_.add({"GET", "/witness", Scope::kPublic, 0, [witness, this](const HttpRequest&, ReplyPtr reply) {
                 replies_.set_value(std::move(reply));
               }});
  witness.reset();
  start();
  routes_ = RouteTable();
  replies_ = std::promise<ReplyPtr>();
  Client client(server_->port());
  client.send("GET /witness HTTP/1.1\r\nHost: localhost\r\n\r\n");
  ReplyPtr reply = replies_.get_future().get();
  server_->replace(server_->prepare(site()).value());
  EXPECT_FALSE(alive.expired());
  reply->send(text_response("done"));
  EXPECT_NE(client.receive("done").find("done"), std::string::npos);
  reply.reset();
  EXPECT_TRUE(within(milliseconds(5000), [&] { return alive.expired(); }));
}

TEST_F(HttpServerTest, ElsewhereIsAnsweredToWhoMayComeIn) {
  start();
  HttpSite site = this->site();
  site.elsewhere = absl::UnavailableError("come back later");
  server_->replace(server_->prepare(site).value());
  Client nowhere(server_->port());
  nowhere.send("POST /v1/x HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  const std::string answer = nowhere.receive();
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 503 ")) << answer;
  EXPECT_NE(answer.find("come back later"), std::string::npos);
  Client forged(server_->port());
  forged.send("POST /v1/x HTTP/1.1\r\nHost: evil.example\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(forged.receive().starts_with("HTTP/1.1 403 "));
  Client method(server_->port());
  method.send("PUT /held HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(method.receive().starts_with("HTTP/1.1 405 "));
}

TEST_F(HttpServerTest, WantOfMemoryIs503) {
  routes_.add({"GET", "/hungry", Scope::kPublic, 0,
               [](const HttpRequest&, const ReplyPtr&) { throw std::bad_alloc(); }});
  start();
  Client client(server_->port());
  client.send("GET /hungry HTTP/1.1\r\nHost: localhost\r\n\r\n");
  EXPECT_TRUE(client.receive("memory").starts_with("HTTP/1.1 503 "));
}

TEST_F(HttpServerTest, AUnixSocketIsForItsOwnerAndGoesWithTheServer) {
  const std::string path = testing::TempDir() + "omnibus_http_server_test.sock";
  config_.unix_path = path;
  routes_.add({"GET", "/now", Scope::kPublic, 0,
               [](const HttpRequest&, const ReplyPtr& reply) { reply->send(text_response("here")); }});
  start();
  EXPECT_EQ(server_->port(), 0);
  struct stat info {};
  ASSERT_EQ(lstat(path.c_str(), &info), 0);
  EXPECT_TRUE(S_ISSOCK(info.st_mode));
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const int fd = unix_client(path);
  ASSERT_GE(fd, 0);
  const std::string request = "GET /now HTTP/1.1\r\nHost: any.name\r\nConnection: close\r\n\r\n";
  ASSERT_GT(::send(fd, request.data(), request.size(), MSG_NOSIGNAL), 0);
  std::string answer;
  char chunk[4096];
  for (ssize_t n = 0; (n = recv(fd, chunk, sizeof chunk, 0)) > 0;)
    answer.append(chunk, static_cast<size_t>(n));
  close(fd);
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 200 OK")) << answer;
  EXPECT_TRUE(answer.ends_with("here"));
  // A second server does not take it over, and leaves it alone when it goes.
  const auto second = HttpServer::start(config_, site(), &metrics_);
  EXPECT_NE(status_message(second.status()).find("another process listens there"), std::string::npos);
  EXPECT_EQ(lstat(path.c_str(), &info), 0);
  server_->stop(milliseconds(0));
  EXPECT_NE(lstat(path.c_str(), &info), 0);
}

}  // namespace
}  // namespace omnibus
