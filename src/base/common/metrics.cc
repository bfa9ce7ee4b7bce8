#include "omnibus/base/common/metrics.h"

#include <iterator>
#include <map>

#include <prometheus/counter.h>
#include <prometheus/gauge.h>
#include <prometheus/histogram.h>
#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include "process_metrics.h"

namespace omnibus {

void Counter::add(double value) const {
  if (impl_ != nullptr) static_cast<prometheus::Counter*>(impl_)->Increment(value);
}
void Gauge::set(double value) const {
  if (impl_ != nullptr) static_cast<prometheus::Gauge*>(impl_)->Set(value);
}
void Gauge::add(double value) const {
  if (impl_ != nullptr) static_cast<prometheus::Gauge*>(impl_)->Increment(value);
}
void Histogram::observe(double value) const {
  if (impl_ != nullptr) static_cast<prometheus::Histogram*>(impl_)->Observe(value);
}

struct MetricsRegistry::Impl {
  prometheus::Registry registry;
};

namespace {
std::map<std::string, std::string> to_map(const MetricLabels& labels) {
  return {labels.begin(), labels.end()};
}
}  // namespace

MetricsRegistry::MetricsRegistry() : impl_(std::make_unique<Impl>()) {}
MetricsRegistry::~MetricsRegistry() = default;

Counter MetricsRegistry::counter(const std::string& name, const std::string& help,
                                 const MetricLabels& labels) {
  Counter c;
  c.impl_ = &prometheus::BuildCounter().Name(name).Help(help).Register(impl_->registry).Add(to_map(labels));
  return c;
}

Gauge MetricsRegistry::gauge(const std::string& name, const std::string& help, const MetricLabels& labels) {
  Gauge g;
  g.impl_ = &prometheus::BuildGauge().Name(name).Help(help).Register(impl_->registry).Add(to_map(labels));
  return g;
}

Histogram MetricsRegistry::histogram(const std::string& name, const std::string& help,
                                     std::vector<double> buckets, const MetricLabels& labels) {
  Histogram h;
  h.impl_ = &prometheus::BuildHistogram()
                 .Name(name)
                 .Help(help)
                 .Register(impl_->registry)
                 .Add(to_map(labels), std::move(buckets));
  return h;
}

std::string MetricsRegistry::serialize() const {
  auto families = impl_->registry.Collect();
  auto process = process_metrics();
  families.insert(families.end(), std::make_move_iterator(process.begin()),
                  std::make_move_iterator(process.end()));
  return prometheus::TextSerializer().Serialize(families);
}

}  // namespace omnibus
