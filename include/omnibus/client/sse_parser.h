// SseParser: server-sent events out of a byte stream that may be cut anywhere (WHATWG HTML, 9.2.6).
#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <string_view>

namespace omnibus::client {

// Reads `data` fields only: `event`, `id`, `retry` and comments mean nothing to a client of OpenAI's API.
class SseParser {
 public:
  // An event that holds more, lines and data together, is none.
  static constexpr size_t kMostEventBytes = 1 << 20;

  // Called once per event, within push(), with its data lines joined by "\n". Events without data are none.
  using OnEvent = std::function<void(std::string_view data)>;
  explicit SseParser(OnEvent on_event) : on_event_(std::move(on_event)) {}

  void push(std::string_view bytes);
  // An event was longer than kMostEventBytes. Nothing is read or kept after that.
  bool too_long() const { return too_long_; }
  // Whether bytes of an event are waiting for its end. The standard says that such an event is dropped.
  bool incomplete() const { return has_data_ || !line_.empty(); }

 private:
  void end_line();

  OnEvent on_event_;
  std::string line_, data_;
  bool has_data_ = false;
  bool too_long_ = false;
  bool after_cr_ = false;  // a "\n" that follows belongs to the same line end
  bool at_start_ = true;   // a byte order mark may stand here
};

}  // namespace omnibus::client
