// ReasoningSplitter: which part of an answer each byte of a model's output belongs to. A state machine over
// the text with special tokens visible. The parts depend on the text alone, not on how it is cut.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/text/template/dialect.h"

namespace omnibus {

enum class TextPart {
  kContent,
  kReasoning,
  kOpening,  // marker that opens the reasoning
  kClosing,  // marker that closes it
  kDropped,  // trimmed, or a marker of neither
};

struct TextRun {
  TextPart part = TextPart::kContent;
  size_t size = 0;  // bytes
};

// One per sequence.
class ReasoningSplitter {
 public:
  explicit ReasoningSplitter(const ReasoningSplit& split);

  // Takes the next piece of text, in whole characters. Appends runs for what is certain now: they cover the
  // text in order; the rest is held back until it is no possible beginning of a marker.
  void feed(std::string_view text, std::vector<TextRun>& runs);
  // The text has ended: runs for all that was held back. A block that was not closed is reasoning to the end.
  void finish(std::vector<TextRun>& runs);

 private:
  enum class Phase { kOpenable, kReasoning, kContent };
  bool step(std::vector<TextRun>& runs, bool is_end);
  bool skip_echo(std::vector<TextRun>& runs, bool is_end);
  void take_marker(size_t size, bool is_drop, std::vector<TextRun>& runs);
  void take_text(size_t size, std::vector<TextRun>& runs);
  void emit(TextPart part, size_t size, std::vector<TextRun>& runs);
  size_t undecided_trim(size_t end) const;
  bool is_trimmed(char c) const { return format_->trim.find(c) != std::string::npos; }

  const std::shared_ptr<const ReasoningFormat> format_;
  Phase phase_ = Phase::kOpenable;
  bool may_echo_ = false;  // the model may repeat the opening marker of the prompt
  bool strip_ = false;     // behind a marker: trimmed characters are dropped
  bool at_start_ = true;   // no text yet but trimmed characters
  std::string held_;
  size_t searched_ = 0;  // held_ begins with so many trimmed characters; no marker begins there
};

}  // namespace omnibus
