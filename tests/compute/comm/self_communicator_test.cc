#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "omnibus/compute/comm/communicator.h"

namespace omnibus {
namespace {

TEST(SelfCommunicatorTest, CollectivesOfOneAreCopies) {
  const auto comm = make_self_communicator(3);
  EXPECT_EQ(comm->size(), 1);
  EXPECT_EQ(comm->epoch(), 3U);
  std::array<uint8_t, 8> a{1, 2, 3, 4, 5, 6, 7, 8}, b{};
  const auto before = a;
  EXPECT_TRUE(comm->all_reduce({}, a, DType::kF32, ReduceOp::kSum).ok());
  EXPECT_EQ(a, before);
  EXPECT_TRUE(comm->all_gather({}, a, b).ok());
  EXPECT_EQ(a, b);
  b = {};
  EXPECT_TRUE(comm->reduce_scatter({}, a, b, DType::kF32).ok());
  EXPECT_EQ(a, b);
  b = {};
  const int64_t bytes = 8;
  EXPECT_TRUE(comm->all_to_all_v({}, a, {&bytes, 1}, b, {&bytes, 1}).ok());
  EXPECT_EQ(a, b);
  EXPECT_TRUE(comm->broadcast({}, a, 0).ok());
  EXPECT_TRUE(comm->barrier({}).ok());
}

TEST(SelfCommunicatorTest, TransfersMeetInOrderWhicheverHalfComesFirst) {
  const auto comm = make_self_communicator(1);
  const std::vector<uint8_t> one{1}, two{2};
  std::vector<uint8_t> first(1), second(1);
  const auto receive = comm->post_recv({}, first, 0);
  const auto send = comm->post_send({}, one, 0);
  ASSERT_TRUE(receive.ok() && send.ok());
  ASSERT_TRUE(comm->post_send({}, two, 0).ok());
  const auto late = comm->post_recv({}, second, 0);
  EXPECT_TRUE(comm->wait(*receive, 0).ok());
  EXPECT_TRUE(comm->wait(*late, 0).ok());
  EXPECT_EQ(first, one);
  EXPECT_EQ(second, two);
  const auto never = comm->post_recv({}, second, 0);
  EXPECT_EQ(comm->wait(*never, 0).code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(comm->barrier({}).code(), StatusCode::kAborted);
}

TEST(SelfCommunicatorTest, DeadAfterAnyErrorAndAfterAbort) {
  std::array<uint8_t, 8> a{};
  std::array<uint8_t, 4> small{};
  auto comm = make_self_communicator(1);
  EXPECT_EQ(comm->all_gather({}, a, small).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(comm->all_gather({}, a, a).code(), StatusCode::kAborted);
  comm = make_self_communicator(2);
  EXPECT_EQ(comm->broadcast({}, a, 1).code(), StatusCode::kInvalidArgument);
  EXPECT_EQ(comm->barrier({}).code(), StatusCode::kAborted);
  comm = make_self_communicator(3);
  comm->abort();
  comm->abort();
  EXPECT_EQ(comm->post_send({}, a, 0).status().code(), StatusCode::kAborted);
  EXPECT_EQ(comm->all_reduce({}, a, DType::kF32, ReduceOp::kMax).code(), StatusCode::kAborted);
}

}  // namespace
}  // namespace omnibus
