#include <algorithm>

#include "omnibus/text/template/dialect.h"
#include "omnibus/text/template/reasoning_splitter.h"

namespace omnibus {
namespace {

constexpr size_t kSlice = 1024;

bool ends_with_any(std::string_view text, const std::vector<std::string>& markers) {
  return std::any_of(markers.begin(), markers.end(),
                     [&](const std::string& marker) { return text.ends_with(marker); });
}

}  // namespace

ReasoningStart reasoning_start(const ReasoningFormat& format, const RenderedPrompt& prompt) {
  if (prompt.ranges.empty() || !prompt.ranges.back().trusted) return ReasoningStart::kBefore;
  std::string_view tail = std::string_view(prompt.text).substr(prompt.ranges.back().begin);
  tail = tail.substr(0, tail.find_last_not_of(" \t\r\n") + 1);
  if (ends_with_any(tail, format.open)) return ReasoningStart::kInside;
  // Where blocks follow each other, a message may end like a block, and another block may come.
  if (format.repeat) return ReasoningStart::kBefore;
  return ends_with_any(tail, format.close) || ends_with_any(tail, format.drop) ? ReasoningStart::kClosed
                                                                               : ReasoningStart::kBefore;
}

// In slices: the splitter's work on a piece grows with its size times the markers in it.
ReasoningStart reasoning_start_behind(const std::shared_ptr<const ReasoningFormat>& format,
                                      std::string_view text) {
  ReasoningSplitter splitter({format, ReasoningStart::kBefore});
  ReasoningStart start = ReasoningStart::kBefore;
  std::vector<TextRun> runs;
  const auto follow = [&] {
    for (const TextRun& run : runs) {
      if (run.part == TextPart::kOpening) start = ReasoningStart::kInside;
      if (run.part == TextPart::kClosing)
        start = format->repeat ? ReasoningStart::kBefore : ReasoningStart::kClosed;
    }
    runs.clear();
  };
  for (size_t at = 0; at < text.size(); at += kSlice) {
    splitter.feed(text.substr(at, kSlice), runs);
    follow();
  }
  splitter.finish(runs);
  follow();
  return start;
}

}  // namespace omnibus
