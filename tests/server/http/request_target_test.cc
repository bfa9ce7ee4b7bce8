#include "src/server/http/request_target.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

TEST(RequestTarget, Forms) {
  const std::vector<std::pair<const char*, std::pair<const char*, const char*>>> cases = {
      {"/", {"/", ""}},
      {"/a?b?c", {"/a", "b?c"}},
      {"/%76%31/a%2Fb", {"/v1/a/b", ""}},
      {"/a%3fb", {"/a?b", ""}},
      {"http://h", {"/", ""}},
      {"http://h:8000/a?b", {"/a", "b"}},
      {"https://[::1]:80/a", {"/a", ""}},
      {"*", {"*", ""}},
      {"/v1/../x", {"/v1/../x", ""}},
  };
  for (const auto& [target, expected] : cases) {
    const auto parsed = parse_target(target);
    ASSERT_TRUE(parsed.ok()) << target;
    EXPECT_EQ(parsed->path, expected.first) << target;
    EXPECT_EQ(parsed->query, expected.second) << target;
  }
}

TEST(RequestTarget, Refused) {
  for (const char* target : {"", "a", "/%", "/%2", "/%zz", "/%00", "/a b", "/\x7f", "/\xc3\xa9", "/a#b",
                             "ftp://h/", "http://", "http://h h/", "http://u@h/", "//"}) {
    if (std::string_view(target) == "//") {
      EXPECT_EQ(parse_target(target)->path, "//");  // a path of its own, which no route has
      continue;
    }
    EXPECT_FALSE(parse_target(target).ok()) << target;
  }
}

TEST(RequestTarget, Hosts) {
  for (const char* host : {"h", "h:80", "a.b-c_d", "127.0.0.1:1", "[::1]", "[::1]:80"}) {
    EXPECT_TRUE(is_valid_host(host)) << host;
  }
  for (const char* host :
       {"", "h/?", "h/#", "h?", "a b", "u@h", "h:x", "h:123456", "[::1", "::1", "[]", "[x]", "[::1]a"}) {
    EXPECT_FALSE(is_valid_host(host)) << host;
  }
}

}  // namespace
}  // namespace omnibus
