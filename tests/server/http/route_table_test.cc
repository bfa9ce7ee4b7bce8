#include "omnibus/server/http/route_table.h"

#include <type_traits>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

// A route cannot be made without a scope.
static_assert(!std::is_default_constructible_v<Route>);
static_assert(!std::is_constructible_v<Route, const char*, const char*, RouteHandler>);
static_assert(std::is_constructible_v<Route, const char*, const char*, Scope, uint64_t, RouteHandler>);

RouteTable table() {
  RouteTable routes;
  const RouteHandler nothing = [](const HttpRequest&, const ReplyPtr&) {};
  routes.add({"GET", "/v1/models", Scope::kInference, 0, nothing});
  routes.add({"GET", "/v1/models/{id}", Scope::kInference, 0, nothing});
  routes.add({"POST", "/v1/models", Scope::kAdmin, 0, nothing});
  routes.add({"GET", "/", Scope::kPublic, 0, nothing});
  return routes;
}

TEST(RouteTable, FindsByMethodAndPath) {
  const RouteTable routes = table();
  EXPECT_EQ(routes.find("GET", "/v1/models").route->scope, Scope::kInference);
  EXPECT_EQ(routes.find("POST", "/v1/models").route->scope, Scope::kAdmin);
  EXPECT_EQ(routes.find("HEAD", "/").route->pattern, "/");
}

TEST(RouteTable, TailTakesSlashes) {
  const RouteTable routes = table();
  EXPECT_EQ(routes.find("GET", "/v1/models/a/b c").parameter, "a/b c");
  EXPECT_EQ(routes.find("GET", "/v1/models/").route, nullptr);
  EXPECT_TRUE(routes.find("GET", "/v1/models/").allow.empty());
}

TEST(RouteTable, ComparesByteByByte) {
  const RouteTable routes = table();
  for (const char* path :
       {"//v1/models", "/V1/models", "/v1/models?", "/v1/../v1/models", "/v1/models;x", ""}) {
    EXPECT_EQ(routes.find("GET", path).route, nullptr) << path;
  }
}

TEST(RouteTable, NamesTheMethodsOfAPath) {
  const RouteTable routes = table();
  const auto match = routes.find("DELETE", "/v1/models");
  EXPECT_EQ(match.route, nullptr);
  EXPECT_EQ(match.allow, "GET, POST, HEAD, OPTIONS");
  EXPECT_EQ(routes.find("get", "/v1/models").route, nullptr);
}

}  // namespace
}  // namespace omnibus
