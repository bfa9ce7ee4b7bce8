// Metrics registry: vLLM's names verbatim, prometheus-cpp underneath. Labels come from closed sets only.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace omnibus {

using MetricLabels = std::vector<std::pair<std::string, std::string>>;

// Handles are cheap to copy, valid as long as the registry, and callable from any thread. Keep them: making
// one takes a lock. One that no registry made does nothing.
class Counter {
 public:
  void add(double value = 1) const;

 private:
  friend class MetricsRegistry;
  void* impl_ = nullptr;
};
class Gauge {
 public:
  void set(double value) const;
  void add(double value) const;  // negative: less

 private:
  friend class MetricsRegistry;
  void* impl_ = nullptr;
};
class Histogram {
 public:
  void observe(double value) const;

 private:
  friend class MetricsRegistry;
  void* impl_ = nullptr;
};

class MetricsRegistry {
 public:
  MetricsRegistry();
  ~MetricsRegistry();
  MetricsRegistry(const MetricsRegistry&) = delete;
  MetricsRegistry& operator=(const MetricsRegistry&) = delete;

  // The same (name, labels) gives the same metric again. `help` must be one line. A name used with two types
  // is a bug (checked).
  Counter counter(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Gauge gauge(const std::string& name, const std::string& help, const MetricLabels& labels = {});
  Histogram histogram(const std::string& name, const std::string& help, std::vector<double> buckets,
                      const MetricLabels& labels = {});

  // Prometheus text exposition format 0.0.4: the metrics above and those of the process itself (process_*:
  // CPU time, memory, file descriptors, start).
  std::string serialize() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace omnibus
