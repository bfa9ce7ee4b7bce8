#include "omnibus/base/common/metrics.h"

#include <gtest/gtest.h>

namespace omnibus {
namespace {

TEST(Metrics, AGaugeIsMovedByMany) {
  MetricsRegistry metrics;
  const Gauge gauge = metrics.gauge("g", "h");
  gauge.add(3);
  gauge.add(-1);
  EXPECT_NE(metrics.serialize().find("\ng 2\n"), std::string::npos) << metrics.serialize();
}

TEST(Metrics, TheProcessDescribesItself) {
  const std::string text = MetricsRegistry().serialize();
  for (const char* name :
       {"process_cpu_seconds_total", "process_open_fds", "process_max_fds", "process_virtual_memory_bytes",
        "process_resident_memory_bytes", "process_start_time_seconds"}) {
    const std::string line = std::string("\n") + name + " ";
    const size_t at = text.find(line);
    ASSERT_NE(at, std::string::npos) << text;
    EXPECT_GE(std::stod(text.substr(at + line.size())), 0) << name;
  }
  EXPECT_GT(std::stod(text.substr(text.find("\nprocess_resident_memory_bytes ") + 31)), 1 << 20);
}

}  // namespace
}  // namespace omnibus
