#include <stdexcept>

#include <gtest/gtest.h>

#include "omnibus/control/executor/executor.h"

#include "executor_steps.h"

namespace omnibus {
namespace {

using fakes::FakeWorker;
using fakes::FakeWorkerOptions;

std::unique_ptr<Executor> started(FakeWorkerOptions options) {
  auto executor = make_uniproc_executor(std::make_unique<FakeWorker>(std::move(options)));
  const auto plan = executor->start();
  EXPECT_TRUE(plan.ok()) << plan.status();
  EXPECT_EQ(plan->kv.num_blocks, 64);
  return executor;
}

TEST(UniProcExecutor, RunsStepsInOrder) {
  auto executor = started({});
  for (uint64_t seq = 1; seq <= 3; ++seq) {
    const auto output = executor->execute(one_row(seq)).get();
    ASSERT_TRUE(output.ok()) << output.status();
    EXPECT_EQ(output->id, (StepId{1, seq}));
    EXPECT_EQ(output->rows[0].tokens.size(), 1U);
  }
  EXPECT_EQ(executor->max_concurrent_batches(), 1);
}

TEST(UniProcExecutor, PlanThatTheWorkerReadsOtherwiseNeverRuns) {
  FakeWorkerOptions options;
  int commits = 0;
  options.wrong_digest = true;
  options.before_commit = [&](const SchedulerOutput&) {
    ++commits;
    return absl::OkStatus();
  };
  auto executor = started(options);
  EXPECT_EQ(executor->execute(one_row(1)).get().status().code(), StatusCode::kInternal);
  EXPECT_EQ(commits, 0);
}

TEST(UniProcExecutor, FailureIsFinal) {
  FakeWorkerOptions options;
  options.before_commit = [n = 0](const SchedulerOutput&) mutable {
    return ++n == 2 ? absl::UnavailableError("gone") : absl::OkStatus();
  };
  auto executor = started(options);
  EXPECT_TRUE(executor->execute(one_row(1)).get().ok());
  for (uint64_t seq : {2, 3})
    EXPECT_EQ(executor->execute(one_row(seq)).get().status(), absl::UnavailableError("gone"));
}

TEST(UniProcExecutor, ExceptionBecomesAStatus) {
  FakeWorkerOptions options;
  options.before_commit = [](const SchedulerOutput&) -> Status { throw std::runtime_error("bang"); };
  auto executor = started(options);
  const auto output = executor->execute(one_row(1)).get();
  EXPECT_EQ(output.status().code(), StatusCode::kInternal);
  EXPECT_NE(output.status().message().find("bang"), absl::string_view::npos);
}

TEST(UniProcExecutor, StepOfAnotherEpochIsRefused) {
  auto executor = started({});
  SchedulerOutput plan = one_row(1);
  plan.id.epoch = 2;
  EXPECT_FALSE(executor->execute(plan).get().ok());
}

}  // namespace
}  // namespace omnibus
