// What every Prometheus client library says about its own process, under the same names.
#pragma once

#include <vector>

#include <prometheus/metric_family.h>

namespace omnibus {

// As of now, from /proc; what cannot be read is left out.
std::vector<prometheus::MetricFamily> process_metrics();

}  // namespace omnibus
