#include "omnibus/base/common/status.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

TEST(Status, DetailSurvivesTheTrip) {
  ErrorDetail d{.http = 400, .type = "t", .code = "c", .param = "messages[2].content", .retry_after_ms = 7};
  const ErrorDetail got = error_detail(with_detail(absl::InvalidArgumentError("m"), d));
  EXPECT_EQ(got.http, 400);
  EXPECT_EQ(got.type, "t");
  EXPECT_EQ(got.code, "c");
  EXPECT_EQ(got.param, "messages[2].content");
  EXPECT_EQ(got.retry_after_ms, 7);
}

TEST(Status, DetailIsDerivedFromTheCode) {
  const ErrorDetail got = error_detail(absl::ResourceExhaustedError("queue"));
  EXPECT_EQ(got.http, 429);
  EXPECT_EQ(got.type, "rate_limit_error");
}

}  // namespace
}  // namespace omnibus
