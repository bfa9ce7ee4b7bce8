#include "bench_progress.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "progress_bar.h"

namespace omnibus {
namespace {

constexpr MonotonicNs kWindow = 2'000'000'000;

}  // namespace

std::string bench_progress_line(std::string_view title, const client::LoadProgress& progress, double rate,
                                double outputs, int width) {
  std::string line = fmt::format("{}  {} of {} done", title, progress.done, progress.planned);
  if (progress.failed > 0) line += fmt::format(" ({} failed)", progress.failed);
  line += fmt::format("  {} running  {:.1f} requests/s  {:.0f} tok/s  {:.0f} s", progress.running(), rate,
                      outputs, static_cast<double>(progress.elapsed) * 1e-9);
  // One column stays free: a full line wraps, and a wrapped one cannot be redrawn.
  return line.substr(0, static_cast<size_t>(std::max(0, width - 1)));
}

BenchProgress::BenchProgress(bool shown) : shown_(shown), terminal_(isatty(STDERR_FILENO) == 1) {}

BenchProgress::~BenchProgress() { finish(); }

void BenchProgress::begin(std::string title) {
  finish();
  title_ = std::move(title);
}

void BenchProgress::finish() {
  if (line_open_) fmt::print(stderr, "\n");
  line_open_ = false;
  recent_.clear();
  quarter_ = 0;
}

void BenchProgress::update(const client::LoadProgress& progress) {
  if (!shown_) return;
  recent_.push_back(progress);
  while (recent_.size() > 2 && progress.elapsed - recent_.front().elapsed > kWindow) recent_.pop_front();
  const client::LoadProgress& first = recent_.front();
  const double seconds = std::max(static_cast<double>(progress.elapsed - first.elapsed) * 1e-9, 1e-3);
  const double rate = static_cast<double>(progress.done - first.done) / seconds;
  const double outputs = static_cast<double>(progress.outputs - first.outputs) / seconds;
  if (terminal_) {
    fmt::print(stderr, "\r\x1b[K{}", bench_progress_line(title_, progress, rate, outputs, terminal_width()));
    std::fflush(stderr);
    line_open_ = true;
    return;
  }
  const int quarter = progress.planned > 0 ? static_cast<int>(4 * progress.done / progress.planned) : 0;
  if (quarter == quarter_) return;
  quarter_ = quarter;
  fmt::print(stderr, "{}\n", bench_progress_line(title_, progress, rate, outputs, 200));
}

}  // namespace omnibus
