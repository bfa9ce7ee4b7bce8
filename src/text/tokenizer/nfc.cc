#include "nfc.h"

#include <algorithm>
#include <vector>

#include <utf8proc.h>

#include "utf8.h"

namespace omnibus {
namespace {

constexpr auto kCompose = static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE);
// No character's canonical decomposition is longer.
constexpr utf8proc_ssize_t kMaxDecomposition = 32;

int combining_class(utf8proc_int32_t code) { return utf8proc_get_property(code)->combining_class; }

// Puts each run of combining marks in canonical order. utf8proc's own ordering moves one mark at a time,
// which a long run of marks makes quadratic.
void order_marks(std::vector<utf8proc_int32_t>& codes) {
  for (size_t i = 0; i < codes.size(); ++i) {
    if (combining_class(codes[i]) == 0) continue;
    const size_t begin = i;
    while (i < codes.size() && combining_class(codes[i]) != 0) ++i;
    const auto first = codes.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto last = codes.begin() + static_cast<std::ptrdiff_t>(i);
    const auto by_class = [](utf8proc_int32_t a, utf8proc_int32_t b) {
      return combining_class(a) < combining_class(b);
    };
    if (!std::is_sorted(first, last, by_class)) std::stable_sort(first, last, by_class);
  }
}

void append_normalised(std::string_view text, std::vector<utf8proc_int32_t>& codes, std::string& out) {
  codes.clear();
  for (size_t i = 0; i < text.size();) {
    const Utf8Step step = next_utf8(text.substr(i));
    i += step.length;
    utf8proc_int32_t parts[kMaxDecomposition];
    int last_boundclass = 0;
    const utf8proc_ssize_t count = utf8proc_decompose_char(static_cast<utf8proc_int32_t>(step.code), parts,
                                                           kMaxDecomposition, kCompose, &last_boundclass);
    if (count <= 0 || count > kMaxDecomposition) {
      codes.push_back(static_cast<utf8proc_int32_t>(step.code));
    } else {
      codes.insert(codes.end(), parts, parts + count);
    }
  }
  order_marks(codes);
  const utf8proc_ssize_t length =
      utf8proc_normalize_utf32(codes.data(), static_cast<utf8proc_ssize_t>(codes.size()), kCompose);
  for (utf8proc_ssize_t i = 0; i < length; ++i) {
    append_utf8(static_cast<char32_t>(codes[static_cast<size_t>(i)]), out);
  }
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& buffer) {
  size_t foreign = find_non_ascii(text, 0);
  if (foreign == text.size()) return text;
  buffer.clear();
  buffer.reserve(text.size() + text.size() / 8);
  std::vector<utf8proc_int32_t> codes;
  // An ASCII character composes with nothing before it: whatever lies between two of them is independent.
  size_t done = 0;
  while (foreign < text.size()) {
    const size_t begin = foreign > done ? foreign - 1 : foreign;
    size_t end = foreign;
    while (end < text.size() && static_cast<uint8_t>(text[end]) >= 0x80) ++end;
    buffer.append(text.substr(done, begin - done));
    append_normalised(text.substr(begin, end - begin), codes, buffer);
    done = end;
    foreign = find_non_ascii(text, done);
  }
  buffer.append(text.substr(done));
  return buffer;
}

}  // namespace omnibus
