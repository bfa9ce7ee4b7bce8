// ProgressBar: long work, shown. A bar that redraws itself on a terminal, a line at each quarter elsewhere.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>

namespace omnibus {

// Columns of the terminal that stderr is; 80 when it tells none.
int terminal_width();

// What a bar draws, cut to fit into `width` columns; the bar itself shrinks first.
std::string progress_line(std::string_view title, int64_t done, int64_t total, std::string_view rate,
                          int width);

// One thread at a time. Writes to stderr.
class ProgressBar {
 public:
  explicit ProgressBar(std::string title);
  // Ends an unfinished bar's line.
  ~ProgressBar();
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  // A new title starts over.
  void set_title(const std::string& title);
  // Bytes; `total` 0: unknown.
  void update(int64_t done, int64_t total);

 private:
  void draw(int64_t done, int64_t total);
  void finish_line();

  std::string title_;
  const bool terminal_;
  std::chrono::steady_clock::time_point started_, drawn_;
  int quarter_ = -1;
  bool line_open_ = false;
};

}  // namespace omnibus
