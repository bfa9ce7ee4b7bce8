#include "src/server/http/access_policy.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

using Headers = std::vector<std::pair<std::string, std::string>>;

HttpRequest to_host(const std::string& host, Headers headers = {}) {
  HttpRequest request;
  request.method = "POST";
  request.host = host;
  request.headers = std::move(headers);
  if (!host.empty()) request.headers.emplace_back("host", host);
  return request;
}

AccessPolicy policy(std::vector<std::string> hosts, std::vector<std::string> origins = {},
                    bool loopback = true, bool tls = false) {
  return AccessPolicy(
      {.hosts = std::move(hosts), .origins = std::move(origins), .loopback = loopback, .tls = tls});
}

int host_status(const AccessPolicy& access, const std::string& host) {
  const Status status = access.check_host(to_host(host));
  return status.ok() ? 200 : error_detail(status).http;
}

TEST(AccessPolicy, LoopbackAnswersToItsOwnNames) {
  const AccessPolicy access = policy({});
  for (const char* host :
       {"", "localhost", "LocalHost", "localhost.", "localhost:1", "a.localhost", "A.B.LOCALHOST.:9",
        "127.0.0.1", "127.0.0.1:8000", "127.255.3.4", "[::1]", "[::1]:80", "[0:0:0:0:0:0:0:1]"}) {
    EXPECT_EQ(host_status(access, host), 200) << host;
  }
  for (const char* host :
       {"evil.example", "localhost.evil.example", "notlocalhost", "127.0.0.1.evil.example", "128.0.0.1",
        "0.0.0.0", "0", "127.1", "2130706433", "0x7f000001", "[::]", "[::2]", "[::ffff:8.8.8.8]", "10.0.0.1",
        "localhost..", ".localhost.evil", "host.docker.internal", "::1"}) {
    EXPECT_EQ(host_status(access, host), 403) << host;
  }
}

TEST(AccessPolicy, BeyondLoopbackAnyNameUnlessListed) {
  EXPECT_EQ(host_status(policy({}, {}, false), "whatever.example"), 200);
  const AccessPolicy listed = policy({"api.example", "*.in.example", "db:81", "[fe80::1]"}, {}, false);
  for (const char* host : {"api.example", "API.example.:8443", "a.in.example", "a.b.in.example:1", "db:81",
                           "[FE80::1]:5", "localhost", "127.0.0.1"}) {
    EXPECT_EQ(host_status(listed, host), 200) << host;
  }
  for (const char* host : {"example", "xapi.example", "a.api.example", "in.example", "xin.example", "db",
                           "db:80", "[fe80::2]"}) {
    EXPECT_EQ(host_status(listed, host), 403) << host;
  }
  EXPECT_EQ(host_status(policy({"*"}), "evil.example"), 200);
  EXPECT_EQ(host_status(policy({"mine"}), "mine"), 200);
}

TEST(AccessPolicy, TargetAndHeaderBothCount) {
  HttpRequest request = to_host("localhost");
  request.host = "evil.example";  // GET http://evil.example/
  EXPECT_FALSE(policy({}).check_host(request).ok());
  request = to_host("evil.example");
  request.host = "localhost";
  EXPECT_FALSE(policy({}).check_host(request).ok());
}

int origin_status(const AccessPolicy& access, const std::string& host, const Headers& headers,
                  bool has_body) {
  const Status status = access.check_origin(to_host(host, headers), has_body);
  return status.ok() ? 200 : error_detail(status).http;
}

TEST(AccessPolicy, TheOwnPagePasses) {
  const AccessPolicy plain = policy({});
  const auto from = [&](const char* host, const char* origin) {
    return origin_status(plain, host, {{"origin", origin}}, true);
  };
  EXPECT_EQ(from("localhost:8000", "http://localhost:8000"), 200);
  EXPECT_EQ(from("LOCALHOST:8000", "http://localhost:8000"), 200);
  EXPECT_EQ(from("localhost", "http://localhost"), 200);
  EXPECT_EQ(from("localhost:80", "http://localhost"), 200);
  EXPECT_EQ(from("[::1]:8000", "http://[::1]:8000"), 200);
  EXPECT_EQ(from("api.example", "https://api.example"), 200) << "behind a proxy that speaks TLS";
  for (const char* origin :
       {"http://localhost:3000", "http://localhost", "https://localhost:8001", "http://127.0.0.1:8000",
        "null", "", "http://", "://", "localhost:8000", "ftp://localhost:8000",
        "http://localhost:8000.evil.example", "http://evil.example", "http://[", "http://[::1]:8000",
        "file://localhost:8000"}) {
    EXPECT_EQ(from("localhost:8000", origin), 403) << origin;
  }
  EXPECT_EQ(from("", "http://localhost"), 403) << "HTTP/1.0 without Host";
  const AccessPolicy tls = policy({}, {}, true, true);
  EXPECT_EQ(origin_status(tls, "h:1", {{"origin", "https://h:1"}}, true), 200);
  EXPECT_EQ(origin_status(tls, "h:1", {{"origin", "http://h:1"}}, true), 403);
}

TEST(AccessPolicy, OtherPagesOnlyWhenListedAndWithJson) {
  const AccessPolicy access = policy({}, {"https://App.example", "tauri://localhost"});
  const Headers json = {{"content-type", "application/json; charset=utf-8"}};
  const auto with = [](Headers headers, const Headers& more) {
    headers.insert(headers.end(), more.begin(), more.end());
    return headers;
  };
  for (const char* origin : {"https://app.example", "https://APP.example", "tauri://localhost"}) {
    const Headers from = {{"origin", origin}};
    EXPECT_EQ(origin_status(access, "h", with(from, json), true), 200) << origin;
    EXPECT_EQ(origin_status(access, "h", from, false), 200) << origin;
    EXPECT_EQ(origin_status(access, "h", from, true), 403) << "no type";
    for (const char* type :
         {"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
          "application/jsonx", "text/plain; application/json"}) {
      EXPECT_EQ(origin_status(access, "h", with(from, {{"content-type", type}}), true), 403) << type;
    }
  }
  for (const char* origin :
       {"http://app.example", "https://app.example:444", "https://app.example.evil", "null"}) {
    EXPECT_EQ(origin_status(access, "h", with({{"origin", origin}}, json), true), 403) << origin;
  }
  EXPECT_EQ(origin_status(access, "h", {{"origin", "https://app.example"}, {"origin", "http://h"}}, false),
            400);
  EXPECT_EQ(origin_status(policy({}, {"*"}), "h", with({{"origin", "null"}}, json), true), 200);
}

TEST(AccessPolicy, CrossSiteWithoutOrigin) {
  const AccessPolicy access = policy({});
  const auto get = [&](Headers headers, bool has_body = false, const char* method = "GET") {
    headers.emplace_back("sec-fetch-site", "cross-site");
    HttpRequest request = to_host("localhost", headers);
    request.method = method;
    return access.check_origin(request, has_body).ok();
  };
  EXPECT_FALSE(get({}));
  EXPECT_FALSE(get({{"sec-fetch-mode", "no-cors"}, {"sec-fetch-dest", "image"}}));
  EXPECT_TRUE(get({{"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "document"}})) << "a link";
  EXPECT_FALSE(get({{"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "iframe"}}));
  EXPECT_FALSE(get({{"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "document"}}, true));
  EXPECT_FALSE(get({{"sec-fetch-mode", "navigate"}, {"sec-fetch-dest", "document"}}, false, "POST"));
  EXPECT_FALSE(get({{"origin", "http://localhost"}})) << "the browser says that another site is behind it";
}

TEST(AccessPolicy, AnswersAreReadableOnlyForListedPages) {
  const Headers from = {{"origin", "https://app.example"}};
  EXPECT_EQ(policy({}).answer_headers(to_host("h", from)), "");
  EXPECT_EQ(policy({}, {"https://other"}).answer_headers(to_host("h", from)), "Vary: Origin\r\n");
  const std::string listed = policy({}, {"https://app.example"}).answer_headers(to_host("h", from));
  EXPECT_NE(listed.find("Access-Control-Allow-Origin: https://app.example\r\n"), std::string::npos) << listed;
  EXPECT_NE(listed.find("Vary: Origin\r\n"), std::string::npos) << listed;
  EXPECT_TRUE(policy({}).preflight_headers(to_host("h", from), "GET").empty());
  Headers asks = from;
  asks.emplace_back("access-control-request-headers", "authorization,content-type");
  EXPECT_EQ(policy({}, {"*"}).preflight_headers(to_host("h", asks), "GET"),
            (Headers{{"Access-Control-Allow-Methods", "GET"},
                     {"Access-Control-Max-Age", "600"},
                     {"Access-Control-Allow-Headers", "authorization,content-type"}}));
}

}  // namespace
}  // namespace omnibus
