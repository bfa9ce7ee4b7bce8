#include "src/server/api/request_params.h"

#include <set>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

// Two requests share cached prompts only if both their keys and their salts are the same. Neither has an '@'.
TEST(TenantSalt, TellsApartEveryPairOfKeyAndSalt) {
  std::set<std::string> seen;
  for (const char* tenant : {"", "a", "b", "ab"}) {
    for (const char* salt : {"", "a", "b", "ab"}) {
      HttpRequest request;
      request.tenant = tenant;
      EXPECT_TRUE(seen.insert(tenant_salt(request, salt)).second) << tenant << " / " << salt;
    }
  }
  EXPECT_EQ(tenant_salt(HttpRequest()), "");
}

}  // namespace
}  // namespace omnibus
