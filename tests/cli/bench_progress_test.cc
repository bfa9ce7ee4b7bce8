#include "src/cli/bench_progress.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace omnibus {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

client::LoadProgress some_progress() {
  client::LoadProgress progress;
  progress.planned = 100;
  progress.sent = 42;
  progress.done = 30;
  progress.outputs = 9000;
  progress.elapsed = 7'000'000'000;
  return progress;
}

TEST(BenchProgress, SaysHowItGoes) {
  const std::string line = bench_progress_line("requests", some_progress(), 4.25, 1234.5, 200);
  for (const char* part : {"30 of 100 done", "12 running", "4.2 requests/s", "1234 tok/s", "7 s"}) {
    EXPECT_THAT(line, HasSubstr(part));
  }
  EXPECT_THAT(line, Not(HasSubstr("failed")));
  client::LoadProgress failing = some_progress();
  failing.failed = 3;
  EXPECT_THAT(bench_progress_line("requests", failing, 1, 1, 200), HasSubstr("(3 failed)"));
}

TEST(BenchProgress, FitsIntoAnyWidth) {
  for (int width = 0; width < 120; ++width) {
    EXPECT_LE(bench_progress_line("requests", some_progress(), 4.25, 1234.5, width).size(),
              static_cast<size_t>(std::max(0, width - 1)));
  }
}

}  // namespace
}  // namespace omnibus
