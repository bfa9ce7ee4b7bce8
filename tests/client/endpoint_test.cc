#include "omnibus/client/endpoint.h"

#include <gtest/gtest.h>

namespace omnibus::client {
namespace {

TEST(Endpoint, PartsOfAUrl) {
  const auto plain = parse_base_url("http://127.0.0.1:8000");
  ASSERT_TRUE(plain.ok());
  EXPECT_FALSE(plain->tls);
  EXPECT_EQ(plain->host, "127.0.0.1");
  EXPECT_EQ(plain->port, 8000);
  EXPECT_EQ(plain->prefix, "");
  EXPECT_EQ(plain->host_header(), "127.0.0.1:8000");

  const auto secure = parse_base_url("https://api.example.com/v2/");
  ASSERT_TRUE(secure.ok());
  EXPECT_TRUE(secure->tls);
  EXPECT_EQ(secure->port, 443);
  EXPECT_EQ(secure->prefix, "/v2");
  EXPECT_EQ(secure->host_header(), "api.example.com");

  const auto six = parse_base_url("http://[::1]:81/");
  ASSERT_TRUE(six.ok());
  EXPECT_EQ(six->host, "::1");
  EXPECT_EQ(six->host_header(), "[::1]:81");
}

TEST(Endpoint, WrongUrlsAreNamed) {
  for (const char* url : {"", "localhost:8000", "ftp://x", "http://", "http://:80", "http://h:", "http://h:0",
                          "http://h:65536", "http://h:8x", "http://[::1", "http://[::1]x", "http://h /",
                          "http://u@h", "http://h?x", "http://h\r\nX: y"}) {
    const auto endpoint = parse_base_url(url);
    ASSERT_FALSE(endpoint.ok()) << url;
    EXPECT_EQ(endpoint.status().code(), StatusCode::kInvalidArgument);
  }
}

}  // namespace
}  // namespace omnibus::client
