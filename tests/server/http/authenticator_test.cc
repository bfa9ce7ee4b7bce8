#include "omnibus/server/http/authenticator.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

HttpRequest with(std::vector<std::pair<std::string, std::string>> headers) {
  HttpRequest request;
  request.headers = std::move(headers);
  return request;
}

TEST(Authenticator, NamesTheKey) {
  const std::vector<ApiKey> keys = {{"alice", "k1"}, {"bob", "k2"}};
  const Authenticator auth(keys, false);
  const auto name = [&](const HttpRequest& request) {
    const auto found = auth.check(Scope::kInference, request);
    return found.ok() ? *found : "status " + std::to_string(error_detail(found.status()).http);
  };
  EXPECT_EQ(name(with({{"authorization", "Bearer k1"}})), "alice");
  EXPECT_EQ(name(with({{"authorization", "bearer   k2"}})), "bob");
  EXPECT_EQ(name(with({{"x-api-key", "k2"}})), "bob");
  EXPECT_EQ(name(with({{"authorization", "Bearer wrong"}, {"x-api-key", "k1"}})), "alice");
  for (const char* value : {"", "k1", "Bearer", "Bearer ", "Basic k1", "Bearer k", "Bearer k11"}) {
    EXPECT_EQ(name(with({{"authorization", value}})), "status 401") << value;
  }
  EXPECT_EQ(name(with({})), "status 401");
  EXPECT_EQ(*auth.check(Scope::kPublic, with({})), "");
  EXPECT_FALSE(auth.check(Scope::kMetrics, with({})).ok());
  EXPECT_EQ(auth.check(Scope::kMetrics, with({{"x-api-key", "k1"}})).value(), "alice");
}

TEST(Authenticator, AdminRoutesAreNotForThisListener) {
  const std::vector<ApiKey> keys = {{"alice", "k1"}};
  const auto verdict = Authenticator(keys, true).check(Scope::kAdmin, with({{"x-api-key", "k1"}}));
  EXPECT_EQ(error_detail(verdict.status()).http, 403);
}

TEST(Authenticator, OfAnAdminListener) {
  const std::vector<ApiKey> keys = {{"admin", "k1"}};
  const auto code = [](const Authenticator& auth, Scope scope, const HttpRequest& request) {
    const auto verdict = auth.check(scope, request);
    return verdict.ok() ? 200 : error_detail(verdict.status()).http;
  };
  const Authenticator keyed = Authenticator::for_admin(keys), open = Authenticator::for_admin({});
  for (const Scope scope : {Scope::kAdmin, Scope::kInference}) {
    EXPECT_EQ(code(keyed, scope, with({{"x-api-key", "k1"}})), 200);
    EXPECT_EQ(code(keyed, scope, with({{"x-api-key", "k2"}})), 401);
    EXPECT_EQ(code(keyed, scope, with({})), 401);
    EXPECT_EQ(code(open, scope, with({})), 200);
  }
  for (const Scope scope : {Scope::kPublic, Scope::kMetrics}) EXPECT_EQ(code(keyed, scope, with({})), 200);
}

TEST(Authenticator, WithoutKeysEverybodyMayInfer) {
  const Authenticator open({}, true);
  EXPECT_EQ(open.check(Scope::kInference, with({})).value(), "");
  EXPECT_EQ(open.check(Scope::kMetrics, with({})).value(), "");
}

}  // namespace
}  // namespace omnibus
