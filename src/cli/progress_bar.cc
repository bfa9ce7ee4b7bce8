#include "progress_bar.h"

#include <algorithm>
#include <cstdio>

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "omnibus/base/common/log.h"

#include "text_layout.h"

namespace omnibus {
namespace {

constexpr int kBarWidth = 30;
constexpr int kUnknownWidth = 80;
constexpr auto kRedraw = std::chrono::milliseconds(100);

int terminal_width() {
  winsize size{};
  const bool known = ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : kUnknownWidth;
}

}  // namespace

std::string progress_line(std::string_view title, int64_t done, int64_t total, std::string_view rate,
                          int width) {
  std::string line;
  if (total <= 0) {
    line = fmt::format("{}  {}  {}", title, mebibytes(done), rate);
  } else {
    const std::string amount = fmt::format("  {} of {}  {}", mebibytes(done), mebibytes(total), rate);
    const int room = width - static_cast<int>(title.size() + amount.size()) - 5;
    const int bar = std::min(kBarWidth, room);
    const auto filled = bar > 0 ? static_cast<int>(bar * std::min(done, total) / total) : 0;
    line = std::string(title);
    if (bar > 0) line += fmt::format("  [{:#<{}}{:.<{}}]", "", filled, "", bar - filled);
    line += amount;
  }
  // One column stays free: a full line wraps, and a wrapped one cannot be redrawn.
  size_t end = std::min(line.size(), static_cast<size_t>(std::max(0, width - 1)));
  while (end > 0 && end < line.size() && (static_cast<unsigned char>(line[end]) & 0xC0U) == 0x80U) --end;
  return line.substr(0, end);
}

ProgressBar::ProgressBar(std::string title)
    : title_(std::move(title)),
      terminal_(isatty(STDERR_FILENO) == 1 && !log_is_json()),
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
  if (log_is_json()) {
    log_line(LogLevel::kInfo, title_, {{"done_bytes", done}, {"total_bytes", total}});
    return;
  }
  fmt::print(stderr, "{}: {}{}\n", title_, mebibytes(done), total > 0 ? " of " + mebibytes(total) : "");
}

void ProgressBar::draw(int64_t done, int64_t total) {
  const std::chrono::duration<double> elapsed = std::chrono::steady_clock::now() - started_;
  const std::string rate =
      elapsed.count() > 0.05
          ? mebibytes(static_cast<int64_t>(static_cast<double>(done) / elapsed.count())) + "/s"
          : "";
  line_open_ = true;
  fmt::print(stderr, "\r\x1b[K{}", progress_line(title_, done, total, rate, terminal_width()));
  std::fflush(stderr);
}

}  // namespace omnibus
