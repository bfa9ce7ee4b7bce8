// Lines from a terminal or a pipe, with Ctrl-C as a value.
#pragma once

#include <atomic>
#include <string>

namespace omnibus {

// While it lives, SIGINT sets a flag and interrupts a pending read instead of ending the program. One at a
// time; one thread.
class InterruptFlag {
 public:
  // `flag` is set by the handler and outlives this object.
  explicit InterruptFlag(std::atomic<bool>* flag);
  ~InterruptFlag();
  InterruptFlag(const InterruptFlag&) = delete;
  InterruptFlag& operator=(const InterruptFlag&) = delete;
};

class LineReader {
 public:
  enum class Result { kLine, kEnd, kInterrupted };
  // The next line of stdin, without its end.
  Result read_line(std::string& line);
  // Everything up to the end of stdin.
  std::string read_all();

 private:
  std::string buffer_;
  bool ended_ = false;
};

}  // namespace omnibus
