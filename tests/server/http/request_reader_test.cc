#include "src/server/http/request_reader.h"

#include <functional>
#include <utility>

#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

struct Outcome {
  int status = 0;  // 0: complete
  std::string method, path, body, rest;
  bool operator==(const Outcome&) const = default;
};

// Feeds `data` in the pieces that `cut` gives (sizes), as a connection does.
Outcome read(const std::string& data, const std::function<size_t()>& cut, uint64_t limit = 1 << 20) {
  RequestReader reader;
  std::string buffer;
  size_t at = 0;
  Outcome outcome;
  const auto fail = [&](const Status& status) {
    outcome.status = error_detail(status).http;
    return outcome;
  };
  for (;;) {
    const auto progress = reader.feed(buffer);
    if (!progress.ok()) return fail(progress.status());
    if (*progress == RequestReader::Progress::kHead) {
      if (Status status = reader.accept_body(limit); !status.ok()) return fail(status);
      if (reader.has_body()) continue;
    }
    if (*progress != RequestReader::Progress::kNeedMore) break;
    if (at == data.size()) {
      outcome.status = -1;  // wants more
      return outcome;
    }
    const size_t n = std::min(std::max<size_t>(cut(), 1), data.size() - at);
    buffer += data.substr(at, n);
    at += n;
  }
  outcome.method = reader.request().method;
  outcome.path = reader.request().path;
  outcome.body = reader.request().body;
  outcome.rest = buffer + data.substr(at);
  return outcome;
}

Outcome read_whole(const std::string& data, uint64_t limit = 1 << 20) {
  return read(
      data, [&] { return data.size(); }, limit);
}

const std::string kChunked =
    "POST /a%20b?q=1 HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\n"
    "5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: t\r\n\r\nNEXT";
const std::string kSized = "POST /x HTTP/1.1\r\nHost: localhost\r\nContent-Length: 5\r\n\r\nhelloNEXT";

TEST(RequestReader, ReadsBodies) {
  EXPECT_EQ(read_whole(kChunked), (Outcome{0, "POST", "/a b", "hello world", "NEXT"}));
  EXPECT_EQ(read_whole(kSized), (Outcome{0, "POST", "/x", "hello", "NEXT"}));
  EXPECT_EQ(read_whole("GET / HTTP/1.1\r\nHost: localhost\r\n\r\nNEXT"),
            (Outcome{0, "GET", "/", "", "NEXT"}));
  EXPECT_EQ(read_whole("\r\n\r\nGET / HTTP/1.1\r\nHost: localhost\r\n\r\n").path, "/");
}

TEST(RequestReader, EverySplitGivesTheSame) {
  const uint64_t seed = random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  uint64_t draws = 0;
  for (const std::string& data : {kChunked, kSized}) {
    const Outcome whole = read_whole(data);
    for (size_t at = 1; at < data.size(); ++at) {
      bool first = true;
      const auto cut = [&] { return std::exchange(first, false) ? at : data.size(); };
      EXPECT_EQ(read(data, cut), whole) << at;
    }
    EXPECT_EQ(read(data, [] { return size_t{1}; }), whole);
    for (int i = 0; i < 200; ++i) {
      const auto cut = [&] { return static_cast<size_t>(1 + splitmix64(seed, draws++) % 9); };
      EXPECT_EQ(read(data, cut), whole);
    }
  }
}

TEST(RequestReader, RandomBytesNeverDoMoreThanFail) {
  const uint64_t seed = random_seed();
  SCOPED_TRACE("seed " + std::to_string(seed));
  uint64_t draws = 0;
  for (int i = 0; i < 3000; ++i) {
    std::string data = i % 2 == 0 ? kChunked : kSized;
    for (int k = 0; k < 3; ++k) {
      const size_t at = splitmix64(seed, draws++) % data.size();
      data[at] = static_cast<char>(splitmix64(seed, draws++) & 0xFF);
    }
    const Outcome whole = read_whole(data);
    EXPECT_TRUE(whole.status <= 0 || (whole.status >= 400 && whole.status < 600 && whole.status != 500));
    const Outcome split = read(data, [&] { return static_cast<size_t>(1 + splitmix64(seed, draws++) % 7); });
    EXPECT_EQ(split.status, whole.status) << data;
  }
}

TEST(RequestReader, Limits) {
  const std::string head = "GET / HTTP/1.1\r\nHost: localhost\r\n";
  EXPECT_EQ(read_whole(head + "X: " + std::string(40'000, 'y') + "\r\n\r\n").status, 431);
  EXPECT_EQ(read_whole(head + "X: " + std::string(40'000, 'y')).status, 431);
  std::string lines;
  for (int i = 0; i < 100; ++i) lines += "X: y\r\n";
  EXPECT_EQ(read_whole(head + lines + "\r\n").status, 431);
  EXPECT_EQ(read_whole("GET /" + std::string(9000, 'a') + " HTTP/1.1\r\nHost: localhost\r\n\r\n").status,
            414);
  EXPECT_EQ(read_whole(kSized, 4).status, 413);
  EXPECT_EQ(read_whole(kSized, 5).status, 0);
  EXPECT_EQ(read_whole(kChunked, 10).status, 413);
  EXPECT_EQ(read_whole(kChunked, 11).status, 0);
}

TEST(RequestReader, RequestIds) {
  const auto id_for = [](const std::string& sent) {
    RequestReader reader;
    std::string buffer = "GET / HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: " + sent + "\r\n\r\n";
    EXPECT_TRUE(reader.feed(buffer).ok());
    return reader.request().request_id;
  };
  EXPECT_EQ(id_for("abc"), "abc");
  EXPECT_TRUE(id_for(std::string(129, 'a')).starts_with("req_"));
}

}  // namespace
}  // namespace omnibus
