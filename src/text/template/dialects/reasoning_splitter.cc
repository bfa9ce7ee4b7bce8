#include "omnibus/text/template/reasoning_splitter.h"

#include <algorithm>
#include <span>

namespace omnibus {
namespace {

// Length of the longest end of `text` that is a proper beginning of `marker`.
size_t begun(std::string_view text, std::string_view marker) {
  for (size_t n = std::min(text.size(), marker.size() - 1); n > 0; --n)
    if (text.ends_with(marker.substr(0, n))) return n;
  return 0;
}

struct Found {
  size_t begin = std::string::npos;
  size_t size = 0;
  bool is_drop = false;
};

// One scan of held text for the markers that count at this moment.
class MarkerSearch {
 public:
  MarkerSearch(std::string_view text, size_t from) : text_(text), from_(from) {}

  void look_for(std::span<const std::string> markers, bool is_drop) {
    for (const std::string& marker : markers) {
      const size_t at = text_.find(marker, from_);
      if (at < first_.begin) first_ = {at, marker.size(), is_drop};
      tail_ = std::max(tail_, begun(text_.substr(from_), marker));
    }
  }

  bool found() const { return first_.begin != std::string::npos; }
  const Found& first() const { return first_; }
  // Bytes at the end that may become a marker.
  size_t tail() const { return tail_; }

 private:
  const std::string_view text_;
  const size_t from_;
  Found first_;
  size_t tail_ = 0;
};

}  // namespace

ReasoningSplitter::ReasoningSplitter(const ReasoningSplit& split) : format_(split.format) {
  if (split.start == ReasoningStart::kBefore) return;
  strip_ = true;
  may_echo_ = split.start == ReasoningStart::kInside;
  phase_ = may_echo_ ? Phase::kReasoning : format_->repeat ? Phase::kOpenable : Phase::kContent;
}

void ReasoningSplitter::feed(std::string_view text, std::vector<TextRun>& runs) {
  held_ += text;
  while (step(runs, false)) {
  }
}

void ReasoningSplitter::finish(std::vector<TextRun>& runs) {
  while (step(runs, true)) {
  }
}

// Decides what can be decided; true when more may follow.
bool ReasoningSplitter::step(std::vector<TextRun>& runs, bool is_end) {
  if (may_echo_) return skip_echo(runs, is_end);
  MarkerSearch search(held_, searched_);
  if (phase_ == Phase::kReasoning) {
    search.look_for(format_->close, false);
  } else {
    if (phase_ == Phase::kOpenable) search.look_for(format_->open, false);
    search.look_for(format_->drop, true);
  }
  if (search.found()) {
    const Found marker = search.first();
    const size_t trimmed = undecided_trim(marker.begin);
    take_text(marker.begin - trimmed, runs);
    emit(TextPart::kDropped, trimmed, runs);
    take_marker(marker.size, marker.is_drop, runs);
    return true;
  }
  if (is_end) {
    take_text(held_.size(), runs);
    return false;
  }
  const size_t trimmed = undecided_trim(held_.size() - search.tail());
  take_text(held_.size() - search.tail() - trimmed, runs);
  searched_ = trimmed;
  return false;
}

// Some models write the marker with which the prompt ends once more.
bool ReasoningSplitter::skip_echo(std::vector<TextRun>& runs, bool is_end) {
  size_t leading = 0;
  while (leading < held_.size() && is_trimmed(held_[leading])) ++leading;
  emit(TextPart::kDropped, leading, runs);
  for (const std::string& marker : format_->open) {
    if (!held_.starts_with(marker)) continue;
    may_echo_ = false;
    emit(TextPart::kOpening, marker.size(), runs);
    return true;
  }
  const bool waits = std::any_of(format_->open.begin(), format_->open.end(),
                                 [&](const std::string& marker) { return marker.starts_with(held_); });
  may_echo_ = waits && !is_end;
  return !may_echo_;
}

void ReasoningSplitter::take_marker(size_t size, bool is_drop, std::vector<TextRun>& runs) {
  if (is_drop) return emit(TextPart::kDropped, size, runs);
  const bool closes = phase_ == Phase::kReasoning;
  emit(closes ? TextPart::kClosing : TextPart::kOpening, size, runs);
  phase_ = !closes ? Phase::kReasoning : format_->repeat ? Phase::kOpenable : Phase::kContent;
  strip_ = true;
}

void ReasoningSplitter::take_text(size_t size, std::vector<TextRun>& runs) {
  size_t leading = 0;
  while (strip_ && leading < size && is_trimmed(held_[leading])) ++leading;
  emit(TextPart::kDropped, leading, runs);
  if (leading == size) return;
  strip_ = false;
  at_start_ = false;
  emit(phase_ == Phase::kReasoning ? TextPart::kReasoning : TextPart::kContent, size - leading, runs);
}

void ReasoningSplitter::emit(TextPart part, size_t size, std::vector<TextRun>& runs) {
  searched_ = 0;
  if (size == 0) return;
  held_.erase(0, size);
  if (!runs.empty() && runs.back().part == part) {
    runs.back().size += size;
  } else {
    runs.push_back({part, size});
  }
}

// Trimmed characters before `end` whose part the text behind them decides: a marker drops them.
size_t ReasoningSplitter::undecided_trim(size_t end) const {
  size_t begin = end;
  // What was held back before searched_ is such a run itself.
  while (begin > searched_ && is_trimmed(held_[begin - 1])) --begin;
  const bool is_all = begin <= searched_;
  if (is_all) begin = 0;
  if (strip_ && is_all) return 0;  // dropped anyway
  if (phase_ == Phase::kReasoning) return end - begin;
  // Lines before a block that stands in the middle of the answer are the answer's own.
  return phase_ == Phase::kOpenable && at_start_ && is_all ? end - begin : 0;
}

}  // namespace omnibus
