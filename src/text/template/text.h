// Text: an immutable string that knows who wrote each byte. Trusted bytes come from the template's author,
// untrusted ones from a client's variables. Every operation of the engine keeps that knowledge.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "budget.h"

namespace omnibus::jinja {

// Bytes up to `end` (from the end of the run before) share their trust; neighbours differ.
struct TrustRun {
  uint32_t end = 0;
  bool trusted = false;
};

class Text {
 public:
  // `budget` (may be null: text of the compiled template) is told of the memory and must outlive the text.
  Text(std::string bytes, std::vector<TrustRun> runs, bool markup, Budget* budget);
  ~Text();
  Text(const Text&) = delete;
  Text& operator=(const Text&) = delete;

  std::string_view view() const { return bytes_; }
  size_t size() const { return bytes_.size(); }
  bool empty() const { return bytes_.empty(); }
  // One byte per code point.
  bool ascii() const { return ascii_; }
  // HTML-safe text, as the filters `safe` and `escape` make it: joining escapes the other side.
  bool markup() const { return markup_; }
  const std::vector<TrustRun>& runs() const { return runs_; }

  // Calls f(piece, trusted) for the runs of bytes [begin, end).
  template <typename F>
  void for_each_run(size_t begin, size_t end, F f) const {
    for (auto run = run_at(begin); begin < end && run != runs_.end(); ++run) {
      const size_t to = run->end < end ? run->end : end;
      f(view().substr(begin, to - begin), run->trusted);
      begin = to;
    }
  }
  bool trusted_at(size_t byte) const;

 private:
  std::vector<TrustRun>::const_iterator run_at(size_t byte) const;

  std::string bytes_;
  std::vector<TrustRun> runs_;
  bool markup_ = false;
  bool ascii_ = false;
  Budget* budget_ = nullptr;
  size_t charged_ = 0;
};

using TextPtr = std::shared_ptr<const Text>;

// Grows a text piece by piece; charges size, memory and work to the budget.
class TextBuilder {
 public:
  explicit TextBuilder(Budget* budget) : budget_(budget) {}

  void append(std::string_view bytes, bool trusted);
  void append(const Text& text) { append(text, 0, text.size()); }
  void append(const Text& text, size_t begin, size_t end);
  void append_repeated(std::string_view bytes, size_t count, bool trusted);
  size_t size() const { return bytes_.size(); }
  std::string_view view() const { return bytes_; }

  TextPtr build(bool markup = false);
  // For the final result: takes the bytes and runs out.
  std::string take_bytes() { return std::move(bytes_); }
  std::vector<TrustRun> take_runs() { return std::move(runs_); }

 private:
  void charge(size_t more);

  Budget* budget_;
  std::string bytes_;
  std::vector<TrustRun> runs_;
};

TextPtr make_text(std::string_view bytes, bool trusted, Budget* budget);
// Bytes [begin, end) of `text`, keeping trust and markup.
TextPtr slice_text(const Text& text, size_t begin, size_t end, Budget* budget);

}  // namespace omnibus::jinja
