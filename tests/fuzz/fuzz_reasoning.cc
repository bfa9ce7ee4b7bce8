// The reasoning splitter: for any text, however it is cut, the runs cover it, and are those of the whole
// text. Input: dialect, start, then pieces, each with its length in front.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "omnibus/text/template/reasoning_splitter.h"

namespace {

using omnibus::ReasoningSplit;
using omnibus::ReasoningSplitter;
using omnibus::TextPart;
using omnibus::TextRun;

std::string parts_of(const std::vector<TextRun>& runs) {
  std::string parts;
  for (const TextRun& run : runs) {
    if (run.size == 0) __builtin_trap();
    parts.append(run.size, static_cast<char>('0' + static_cast<int>(run.part)));
  }
  return parts;
}

std::string split(const ReasoningSplit& how, const std::vector<std::string>& pieces) {
  ReasoningSplitter splitter(how);
  std::vector<TextRun> runs;
  for (const std::string& piece : pieces) splitter.feed(piece, runs);
  splitter.finish(runs);
  return parts_of(runs);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size < 2) return 0;
  const auto dialects = omnibus::builtin_dialects();
  const ReasoningSplit how{dialects[data[0] % dialects.size()]->reasoning,
                           static_cast<omnibus::ReasoningStart>(data[1] % 3)};
  std::vector<std::string> pieces;
  std::string text;
  for (size_t at = 2; at < size;) {
    const size_t n = std::min<size_t>(data[at++], size - at);
    pieces.emplace_back(reinterpret_cast<const char*>(data) + at, n);
    text += pieces.back();
    at += n;
  }
  const std::string whole = split(how, {text});
  if (whole.size() != text.size() || split(how, pieces) != whole) __builtin_trap();
  std::vector<std::string> bytes;
  for (const char c : text) bytes.emplace_back(1, c);
  if (split(how, bytes) != whole) __builtin_trap();
  return 0;
}
