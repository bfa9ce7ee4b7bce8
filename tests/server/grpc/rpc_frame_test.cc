#include "rpc_frame.h"

#include <random>
#include <string>
#include <utility>
#include <vector>

#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>
#include <omnibus/v1/inference.pb.h>

#include "rpc_error.h"

namespace omnibus {
namespace {

TEST(RpcFrame, ComeBackAsTheyWere) {
  const uint64_t seed = std::random_device{}();
  std::mt19937_64 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<std::pair<RpcFrameKind, std::string>> frames;
    std::string bytes;
    for (uint64_t n = random() % 6; n > 0; --n) {
      std::string payload(random() % 300, '\0');
      for (char& c : payload) c = static_cast<char>(random());
      frames.emplace_back(random() % 2 == 0 ? RpcFrameKind::kMessage : RpcFrameKind::kError, payload);
      append_frame(bytes, frames.back().first, payload);
    }
    std::string_view rest = bytes;
    for (const auto& [kind, payload] : frames) {
      const auto frame = take_frame(rest);
      ASSERT_TRUE(frame.has_value()) << "seed " << seed;
      EXPECT_EQ(frame->kind, kind);
      EXPECT_EQ(frame->payload, payload) << "seed " << seed;
    }
    EXPECT_FALSE(take_frame(rest).has_value());
  }
}

google::rpc::Status parsed(const Status& error) {
  google::rpc::Status status;
  EXPECT_TRUE(status.ParseFromString(rpc_status_bytes(error)));
  return status;
}

TEST(RpcError, CarriesCodeMessageAndDetail) {
  const Status error = with_detail(
      absl::ResourceExhaustedError("Full"),
      ErrorDetail{
          .http = 429, .type = {}, .code = "rate_limit_exceeded", .param = "n", .retry_after_ms = 1500});
  const google::rpc::Status status = parsed(error);
  EXPECT_EQ(status.code(), 8);
  EXPECT_EQ(status.message(), "Full");
  v1::ErrorDetail detail;
  ASSERT_TRUE(status.details(0).UnpackTo(&detail));
  EXPECT_EQ(detail.http_status(), 429);
  EXPECT_EQ(detail.type(), "rate_limit_error");
  EXPECT_EQ(detail.code(), "rate_limit_exceeded");
  EXPECT_EQ(detail.param(), "n");
  EXPECT_EQ(detail.retry_after_ms(), 1500);
}

TEST(RpcError, LongMessagesFitIntoTrailers) {
  std::string text;
  while (text.size() < 100'000) text += "\xE2\x82\xAC";
  const google::rpc::Status status = parsed(absl::InvalidArgumentError(text));
  EXPECT_LE(status.ByteSizeLong(), 1400U);
  EXPECT_TRUE(status.message().starts_with("\xE2\x82\xAC"));
  EXPECT_TRUE(status.message().ends_with("\xE2\x82\xAC..."));
  // What a client sent as a key may be no UTF-8.
  EXPECT_EQ(parsed(invalid_field("\xFF", "\xFF")).message(), "\xEF\xBF\xBD");
}

TEST(RpcError, CodesFollowTheTableOfTheSpec) {
  const std::vector<std::pair<int, int>> table = {{400, 3},  {401, 16}, {403, 7}, {404, 5},
                                                  {413, 3},  {429, 8},  {499, 1}, {500, 13},
                                                  {501, 12}, {503, 14}, {504, 4}};
  for (const auto& [http, code] : table) EXPECT_EQ(rpc_code_of(http), code) << http;
}

}  // namespace
}  // namespace omnibus
