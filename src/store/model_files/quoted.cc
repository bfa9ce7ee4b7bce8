#include "quoted.h"

#include <fmt/format.h>

namespace omnibus::model_files {

std::string quoted(std::string_view name) {
  constexpr size_t kShown = 64;
  std::string out = "'";
  for (const char c : name.substr(0, kShown)) {
    if (c >= 0x20 && c < 0x7f && c != '\'' && c != '\\') {
      out += c;
    } else {
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
    }
  }
  out += '\'';
  if (name.size() > kShown) out += "...";
  return out;
}

}  // namespace omnibus::model_files
