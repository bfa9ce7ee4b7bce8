#include "omnibus/contract/step/plan_digest.h"

#include <bit>

#include <gtest/gtest.h>

namespace omnibus {
namespace {

SchedulerOutput plan_with(const Request& request) {
  SchedulerOutput plan;
  plan.id = {1, 1};
  plan.new_requests.push_back({request, {}});
  return plan;
}

// Without a tag the two words of a FromStep could be read as the beginning of a longer list of drafts.
TEST(PlanDigest, SourceOfTokensIsTold) {
  SchedulerOutput known;
  ScheduledRow row;
  row.drafts = {7, 0};  // words 2 (how many), 7, 0
  row.adapter_slot = -1;
  known.rows = {row};
  SchedulerOutput from_step;
  ScheduledRow other;
  other.source = FromStep{2, 7};  // words 2, 7; then 0 (no drafts)
  other.adapter_slot = -1;
  from_step.rows = {other};
  EXPECT_NE(digest_plan(0, known), digest_plan(0, from_step));
  other.source = FromStep{};
  SchedulerOutput zero;
  zero.rows = {other};
  EXPECT_NE(digest_plan(0, from_step), digest_plan(0, zero));
}

// Which ids a sequence has, and where one ends and the next begins, both count.
TEST(PlanDigest, BadSequencesAreToldApart) {
  const auto digest = [](std::vector<std::vector<TokenId>> bad, std::vector<TokenId> reported) {
    Request request;
    request.prompt_token_ids = {1};
    SamplingParams sampling;
    sampling.bad_sequences = std::move(bad);
    sampling.logprob_token_ids = std::move(reported);
    request.params = sampling;
    return digest_plan(0, plan_with(request));
  };
  const std::vector<PlanDigest> all = {digest({}, {}),          digest({{1, 2}}, {}), digest({{1}, {2}}, {}),
                                       digest({{2, 1}}, {}),    digest({}, {1}),      digest({{1}}, {}),
                                       digest({{1, 2}, {}}, {})};
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j) EXPECT_NE(all[i], all[j]) << i << " " << j;
}

// An adapter's digest and a media item's offset and hash are words of the same kind: only a tag and a count
// tell "adapter" from "media". Text of n characters gives n + 1 words, a media item one word more.
TEST(PlanDigest, AdapterAndMediaAreToldApart) {
  Request adapter;
  adapter.prompt_token_ids = {1};
  adapter.adapter = AdapterRef{"a", std::string("\0", 1)};  // words 1, 0
  Request media = adapter;
  media.adapter.reset();
  media.media.push_back({1, 1, "", {}, ""});  // words offset 1, hash length 0
  EXPECT_NE(digest_plan(0, plan_with(adapter)), digest_plan(0, plan_with(media)));
}

TEST(PlanDigest, PoolingAndSamplingAreToldApart) {
  Request sampling;
  sampling.prompt_token_ids = {1};
  Request pooling = sampling;
  pooling.params = PoolingParams{};
  EXPECT_NE(digest_plan(0, plan_with(sampling)), digest_plan(0, plan_with(pooling)));
  EXPECT_EQ(digest_plan(0, plan_with(sampling)), digest_plan(0, plan_with(sampling)));
}

}  // namespace
}  // namespace omnibus
