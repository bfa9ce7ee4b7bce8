// Dialect files: any bytes give a dialect or an error; what is accepted splits a text of its own markers the
// same way whole and byte by byte.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "omnibus/text/template/reasoning_splitter.h"

namespace {

std::string split(const omnibus::ReasoningSplit& how, std::string_view text, size_t step) {
  omnibus::ReasoningSplitter splitter(how);
  std::vector<omnibus::TextRun> runs;
  for (size_t at = 0; at < text.size(); at += step) splitter.feed(text.substr(at, step), runs);
  splitter.finish(runs);
  std::string parts;
  for (const auto& run : runs) parts.append(run.size, static_cast<char>('0' + static_cast<int>(run.part)));
  return parts;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto dialect = omnibus::parse_dialect("fuzz", {reinterpret_cast<const char*>(data), size});
  if (!dialect.ok()) return 0;
  const auto& format = *dialect->reasoning;
  if (format.open.empty() || format.close.empty()) __builtin_trap();
  std::string text = "a" + format.trim;
  for (const auto* markers : {&format.open, &format.close, &format.drop, &format.open}) {
    for (const std::string& marker : *markers)
      text += marker + format.trim + marker.substr(0, marker.size() / 2) + "b" + format.trim;
  }
  for (const auto start : {omnibus::ReasoningStart::kBefore, omnibus::ReasoningStart::kInside,
                           omnibus::ReasoningStart::kClosed}) {
    const omnibus::ReasoningSplit how{dialect->reasoning, start};
    const std::string whole = split(how, text, text.size());
    if (whole.size() != text.size() || split(how, text, 1) != whole || split(how, text, 3) != whole)
      __builtin_trap();
  }
  return 0;
}
