#include "progress_bar.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <unistd.h>

#include "text_layout.h"

namespace omnibus {
namespace {

constexpr int kBarWidth = 30;
constexpr auto kRedraw = std::chrono::milliseconds(100);

}  // namespace

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)),
      terminal_(isatty(STDERR_FILENO) == 1),
      started_(std::chrono::steady_clock::now()) {}

ProgressBar::~ProgressBar() { finish_line(); }

void ProgressBar::set_title(const std::string& title) {
  if (title == title_) return;
  finish_line();
  title_ = title;
  quarter_ = -1;
  started_ = std::chrono::steady_clock::now();
}

void ProgressBar::finish_line() {
  if (line_open_) fmt::print(stderr, "\n");
  line_open_ = false;
}

void ProgressBar::update(int64_t done, int64_t total) {
  const auto now = std::chrono::steady_clock::now();
  const bool complete = total > 0 && done >= total;
  if (terminal_) {
    if (!complete && line_open_ && now - drawn_ < kRedraw) return;
    drawn_ = now;
    draw(done, total);
    if (complete) finish_line();
    return;
  }
  const int quarter = total > 0 ? static_cast<int>(4 * std::min(done, total) / total) : 0;
  if (quarter == quarter_) return;
  quarter_ = quarter;
  fmt::print(stderr, "{}: {}{}\n", title_, mebibytes(done), total > 0 ? " of " + mebibytes(total) : "");
}

void ProgressBar::draw(int64_t done, int64_t total) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  const std::string rate =
      elapsed.count() > 0.05
          ? mebibytes(static_cast<int64_t>(static_cast<double>(done) / elapsed.count())) + "/s"
          : "";
  line_open_ = true;
  if (total <= 0) {
    fmt::print(stderr, "\r\x1b[K{}  {}  {}", title_, mebibytes(done), rate);
  } else {
    const auto filled = static_cast<int>(kBarWidth * std::min(done, total) / total);
    fmt::print(stderr, "\r\x1b[K{}  [{:#<{}}{:.<{}}]  {} of {}  {}", title_, "", filled, "",
               kBarWidth - filled, mebibytes(done), mebibytes(total), rate);
  }
  std::fflush(stderr);
}

}  // namespace omnibus
