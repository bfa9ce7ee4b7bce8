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

// A client chooses the names of its keys: no byte in them may cost the rest of the detail.
TEST(Status, DetailSurvivesAnyByteInAParam) {
  for (int byte = 0; byte < 256; ++byte) {
    const std::string param = std::string("a") + static_cast<char>(byte) + "b" + static_cast<char>(byte);
    ErrorDetail d{.http = 422, .type = "", .code = "unknown_parameter", .param = param, .retry_after_ms = -3};
    const ErrorDetail got = error_detail(with_detail(absl::InvalidArgumentError("m"), d));
    EXPECT_EQ(got.http, 422) << byte;
    EXPECT_EQ(got.code, "unknown_parameter") << byte;
    EXPECT_EQ(got.param, param) << byte;
    EXPECT_EQ(got.retry_after_ms, -3) << byte;
  }
}

TEST(Status, DetailIsDerivedFromTheCode) {
  const ErrorDetail got = error_detail(absl::ResourceExhaustedError("queue"));
  EXPECT_EQ(got.http, 429);
  EXPECT_EQ(got.type, "rate_limit_error");
}

}  // namespace
}  // namespace omnibus
