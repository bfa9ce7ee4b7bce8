// The prefix cache as a request meets it: what is shared, with whom, and how it is counted.
#include <map>
#include <string>

#include <gtest/gtest.h>

#include "scheduler_loop.h"

namespace omnibus {
namespace {

using fakes::FakeWorkerOptions;

// All ids get the same prompt.
Request same_prompt(RequestId id, size_t prompt_size, int32_t max_tokens) {
  Request r = request_of(1, prompt_size, max_tokens);
  r.id = id;
  return r;
}

struct Counted {
  int32_t computed = 0;  // tokens
  int32_t cached = 0;    // as its timeline says
};

// Serves one request alone and counts what was computed for it.
Counted serve(Loop& loop, const Request& request) {
  loop.add(request);
  Counted counted;
  while (loop.busy()) {
    while (loop.plan_one())
      for (const auto& row : loop.last_plan.rows) counted.computed += row.n_tokens;
    if (!loop.step()) break;
  }
  EXPECT_EQ(loop.tokens[request.id], expected(request, 4096).first);
  counted.cached = loop.ends.at(request.id).timeline.cached_tokens;
  return counted;
}

TEST(PrefixHits, SecondRequestComputesOnlyWhatIsNew) {
  Loop loop(config_of(4, 64), {});
  EXPECT_EQ(serve(loop, same_prompt(1, 70, 1)).computed, 70);
  const Counted second = serve(loop, same_prompt(2, 70, 1));
  EXPECT_EQ(second.cached, 64);
  EXPECT_EQ(second.computed, 6);
  EXPECT_EQ(loop.scheduler->prefix_cache_queries(), 140);
  EXPECT_EQ(loop.scheduler->prefix_cache_hits(), 64);
}

// The last token of a prompt is computed even if its KV is there: the next is sampled from it.
TEST(PrefixHits, AtLeastOneTokenIsComputed) {
  Loop loop(config_of(4, 64), {});
  serve(loop, same_prompt(1, 48, 1));
  const Counted second = serve(loop, same_prompt(2, 48, 1));
  EXPECT_EQ(second.cached, 32);
  EXPECT_EQ(second.computed, 16);
}

// A conversation: the next turn's prompt is this prompt and answer, and more.
TEST(PrefixHits, AnswersAreFoundToo) {
  Loop loop(config_of(4, 64), {});
  Request first = same_prompt(1, 20, 30);
  serve(loop, first);
  Request next = first;
  next.id = 2;
  next.prompt_token_ids.insert(next.prompt_token_ids.end(), loop.tokens[1].begin(), loop.tokens[1].end());
  next.prompt_token_ids.resize(60, 7);
  EXPECT_EQ(serve(loop, next).cached, 48) << "of 49 computed tokens";
}

// S15: nothing is shared across salts, adapters or media, and the engine computes as much as when cold.
TEST(PrefixHits, StrangersShareNothing) {
  Loop loop(config_of(4, 64), {});
  Request a = same_prompt(1, 70, 1);
  a.tenant_salt = "a";
  serve(loop, a);
  RequestId id = 2;
  const auto cold = [&](Request r) {
    r.id = id++;
    const Counted counted = serve(loop, r);
    EXPECT_EQ(counted.cached, 0);
    EXPECT_EQ(counted.computed, 70);
  };
  Request b = a;
  b.tenant_salt = "b";
  cold(b);
  Request lora = a;
  lora.adapter = AdapterRef{"name", "digest"};
  cold(lora);
  lora.adapter->digest = "digest2";
  cold(lora);
  Request media = a;
  media.media = {MediaItem{0, 4, "hash", {2, 2}, ""}};
  cold(media);
  media.media[0].shape = {4, 1};
  cold(media);
  a.id = id;
  EXPECT_EQ(serve(loop, a).cached, 64) << "its own is still there";
}

TEST(PrefixHits, ModelsHaveOtherKeys) {
  Loop loop(config_of(4, 64), {});
  SchedulerConfig other = config_of(4, 64);
  other.model = "other";
  Loop second(other, {});
  const Request r = same_prompt(1, 70, 1);
  EXPECT_EQ(loop.scheduler->make_prefix_keys(r).size(), 4U);
  EXPECT_NE(loop.scheduler->make_prefix_keys(r)[0], second.scheduler->make_prefix_keys(r)[0]);
}

TEST(PrefixHits, KeysMadeBeforeAdmissionAreTheSame) {
  Loop loop(config_of(4, 64), {});
  serve(loop, same_prompt(1, 70, 1));
  Request r = same_prompt(2, 70, 1);
  r.prefix_keys = loop.scheduler->make_prefix_keys(r);
  EXPECT_EQ(serve(loop, r).cached, 64);
  r.id = 3;
  r.prefix_keys.resize(2);  // the scheduler makes the rest
  EXPECT_EQ(serve(loop, r).cached, 64);
}

TEST(PrefixHits, OffMeansOff) {
  SchedulerConfig config = config_of(4, 64);
  config.prefix_caching = false;
  Loop loop(config, {});
  serve(loop, same_prompt(1, 70, 1));
  EXPECT_EQ(serve(loop, same_prompt(2, 70, 1)).computed, 70);
  EXPECT_TRUE(loop.scheduler->make_prefix_keys(same_prompt(3, 70, 1)).empty());
  EXPECT_EQ(loop.scheduler->prefix_cache_queries(), 0);
}

TEST(PrefixHits, PromptLogprobsAreComputedNotFound) {
  Loop loop(config_of(4, 64), {});
  Request r = same_prompt(1, 70, 1);
  auto p = r.sampling();
  p.prompt_logprobs = 0;
  r.params = p;
  serve(loop, r);
  r.id = 2;
  EXPECT_EQ(serve(loop, r).computed, 70);
  EXPECT_EQ(loop.scheduler->prefix_cache_queries(), 0);
  EXPECT_EQ(serve(loop, same_prompt(3, 70, 1)).cached, 64) << "what it computed serves others";
}

TEST(PrefixHits, FailedRowPublishesNothing) {
  FakeWorkerOptions options;
  options.is_nan = [](const Request& r, size_t) { return r.id == 1; };
  Loop loop(config_of(4, 128), options);
  loop.add(same_prompt(1, 70, 1));
  loop.run();
  EXPECT_EQ(loop.ends.at(1).finish_reason, FinishReason::kError);
  EXPECT_EQ(loop.scheduler->kv().cached_blocks(), 0);
  EXPECT_EQ(serve(loop, same_prompt(2, 70, 1)).cached, 0);
}

TEST(PrefixHits, ResetForgets) {
  Loop loop(config_of(4, 64), {});
  serve(loop, same_prompt(1, 70, 1));
  loop.scheduler->reset_prefix_cache();
  EXPECT_EQ(serve(loop, same_prompt(2, 70, 1)).cached, 0);
  EXPECT_EQ(serve(loop, same_prompt(3, 70, 1)).cached, 64);
}

// A preempted request finds its own blocks again when it comes back, which is no hit of its prompt.
TEST(PrefixHits, ComingBackAfterAPreemptionIsNotCounted) {
  FakeWorkerOptions options;
  options.num_blocks = 6;
  Loop loop(config_of(2, 64), options);
  loop.add(request_of(1, 40, 40));
  loop.add(request_of(2, 40, 40));
  loop.run();
  ASSERT_GT(loop.scheduler->num_preemptions(), 0);
  for (RequestId id : {1, 2}) {
    EXPECT_EQ(loop.tokens[id], expected(request_of(id, 40, 40), 4096).first);
    EXPECT_EQ(loop.ends.at(id).timeline.cached_tokens, 0);
  }
  EXPECT_EQ(loop.scheduler->prefix_cache_queries(), 80);
  EXPECT_EQ(loop.scheduler->prefix_cache_hits(), 0);
}

// Sixteen requests whose prompts are alike fit together where two would not without sharing.
TEST(PrefixHits, SharingSavesBlocks) {
  FakeWorkerOptions options;
  options.num_blocks = 24;
  Loop loop(config_of(16, 400), options);
  serve(loop, same_prompt(1, 200, 1));
  for (RequestId id = 2; id <= 9; ++id) loop.add(same_prompt(id, 200, 8));
  ASSERT_TRUE(loop.step());
  EXPECT_EQ(loop.scheduler->num_running(), 8);
  loop.run();
  EXPECT_EQ(loop.scheduler->num_preemptions(), 0);
  for (RequestId id = 2; id <= 9; ++id)
    EXPECT_EQ(loop.tokens[id], expected(same_prompt(id, 200, 8), 4096).first);
}

}  // namespace
}  // namespace omnibus
