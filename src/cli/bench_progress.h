// BenchProgress: how a run of `bench serve` goes, on stderr. One line that is redrawn on a terminal, a line
// at each quarter elsewhere.
#pragma once

#include <deque>
#include <string>
#include <string_view>
#include <utility>

#include "omnibus/client/load_generator.h"

namespace omnibus {

// What is drawn, cut to fit into `width` columns. `rate` and `outputs` are per second.
std::string bench_progress_line(std::string_view title, const client::LoadProgress& progress, double rate,
                                double outputs, int width);

// One thread at a time.
class BenchProgress {
 public:
  explicit BenchProgress(bool shown);
  ~BenchProgress();
  BenchProgress(const BenchProgress&) = delete;
  BenchProgress& operator=(const BenchProgress&) = delete;

  // A new phase starts over.
  void begin(std::string title);
  void update(const client::LoadProgress& progress);
  void finish();

 private:
  const bool shown_, terminal_;
  std::string title_;
  std::deque<client::LoadProgress> recent_;  // of the last seconds: what rates are made of
  int quarter_ = 0;
  bool line_open_ = false;
};

}  // namespace omnibus
