#include "omnibus/contract/request/merge_timeline.h"

#include <vector>

#include <gtest/gtest.h>

#include "omnibus/base/common/rng.h"

namespace omnibus {
namespace {

// Of any sequences, in any order: phases sum to the whole, none is negative, and it covers each of them.
TEST(MergeTimeline, PhasesStillSumToEndToEnd) {
  const uint64_t seed = random_seed();
  SCOPED_TRACE(seed);
  for (uint64_t round = 0; round < 500; ++round) {
    uint64_t draws = 0;
    const auto draw = [&] { return static_cast<int64_t>(splitmix64(seed ^ round, draws++) % 1000); };
    RequestTimeline merged;
    std::vector<RequestTimeline> parts(static_cast<size_t>(1 + draw() % 5));
    int32_t preemptions = 0;
    for (RequestTimeline& t : parts) {
      t.arrival_ns = 1 + draw();
      t.first_scheduled_ns = t.arrival_ns + draw();
      t.first_token_ns = t.first_scheduled_ns + draw();
      t.finished_ns = t.first_token_ns + draw();
      t.preemptions = static_cast<int32_t>(draw() % 3);
      preemptions += t.preemptions;
      merge_timeline(merged, t);
    }
    EXPECT_EQ(merged.queue_ns() + merged.prefill_ns() + merged.decode_ns(), merged.e2e_ns());
    EXPECT_GE(merged.queue_ns(), 0);
    EXPECT_GE(merged.prefill_ns(), 0);
    EXPECT_GE(merged.decode_ns(), 0);
    EXPECT_EQ(merged.preemptions, preemptions);
    for (const RequestTimeline& t : parts) {
      EXPECT_LE(merged.arrival_ns, t.arrival_ns);
      EXPECT_LE(merged.first_token_ns, t.first_token_ns);
      EXPECT_GE(merged.finished_ns, t.finished_ns);
    }
  }
}

}  // namespace
}  // namespace omnibus
