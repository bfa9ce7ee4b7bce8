// A run that is stopped before it has begun.
#include "omnibus/client/load_generator.h"

#include <atomic>

#include <gtest/gtest.h>

#include "omnibus/client/prompt_maker.h"

namespace omnibus::client {
namespace {

Endpoint nowhere() { return *parse_base_url("http://127.0.0.1:9"); }

TEST(LoadGenerator, SendsNothingOnceItIsStopped) {
  for (const int64_t limit : {0, 1}) {
    LoadJob job;
    job.endpoint = nowhere();
    job.max_concurrency = limit;
    job.plan.resize(5);
    job.bodies.resize(5);
    const std::atomic<bool> stop{true};
    const auto result = run_load(job, SteadyClock(), stop, nullptr);
    ASSERT_TRUE(result.ok()) << result.status();
    EXPECT_EQ(result->connections, 0);
    ASSERT_EQ(result->records.size(), 5U);
    for (const RequestRecord& record : result->records) EXPECT_EQ(failure_name(record), "cancelled");
  }
}

TEST(PromptMaker, AsksNothingOnceItIsStopped) {
  HttpClient http(nowhere(), 60);
  TokenCounter counter(&http, "m", true);
  const std::atomic<bool> stop{true};
  const auto prompts = make_prompts(BenchServeConfig(), {PlannedRequest()}, counter, stop);
  EXPECT_TRUE(absl::IsCancelled(prompts.status())) << prompts.status();
}

}  // namespace
}  // namespace omnibus::client
