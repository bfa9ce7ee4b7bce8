#include "continuation.h"

#include <algorithm>
#include <string_view>

namespace omnibus {
namespace {

// transformers' own words: some templates know them. The space at the end shows whether the template trims.
constexpr std::string_view kMark = "CONTINUE_FINAL_MESSAGE_TAG ";
constexpr std::string_view kTrimmedMark = kMark.substr(0, kMark.size() - 1);
constexpr std::string_view kSpaces = " \t\n\r\f\v";
constexpr const char* kField = "continue_final_message";

std::string_view stripped_at_end(std::string_view text) {
  const size_t last = text.find_last_not_of(kSpaces);
  return text.substr(0, last == std::string_view::npos ? 0 : last + 1);
}

std::string_view stripped(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpaces);
  return first == std::string_view::npos ? std::string_view() : stripped_at_end(text.substr(first));
}

void cut(RenderedPrompt& prompt, size_t size) {
  prompt.text.resize(size);
  std::erase_if(prompt.ranges, [&](const RenderedPrompt::Range& range) { return range.begin >= size; });
  if (!prompt.ranges.empty()) prompt.ranges.back().end = std::min(prompt.ranges.back().end, size);
}

}  // namespace

StatusOr<std::string> mark_final_message(Json& messages) {
  Json& last = messages.back();
  if (last["role"] != "assistant") {
    return invalid_field(kField, "'continue_final_message' needs an assistant message at the end, not a " +
                                     last["role"].get<std::string>() + " message");
  }
  auto& content = last["content"].get_ref<std::string&>();
  std::string message = content;
  content.append(kMark);
  return message;
}

Status cut_at_mark(std::string_view message, RenderedPrompt& prompt) {
  const std::string_view text = prompt.text;
  const size_t mark = text.rfind(kTrimmedMark);
  // In front of the mark and nowhere else: looking for long texts in long texts takes forever.
  if (mark == std::string_view::npos || !stripped_at_end(text.substr(0, mark)).ends_with(stripped(message))) {
    return invalid_field(kField,
                         "'continue_final_message': the chat template leaves the last message out, or a part "
                         "of it");
  }
  const bool trims = !text.substr(mark).starts_with(kMark);
  cut(prompt, trims ? stripped_at_end(text.substr(0, mark)).size() : mark);
  return {};
}

}  // namespace omnibus
