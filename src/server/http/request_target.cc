#include "request_target.h"

#include <algorithm>

#include "ascii.h"

namespace omnibus {
namespace {

bool is_digit(char c) { return c >= '0' && c <= '9'; }
bool is_alnum(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }

Status bad_target(const char* why) {
  return absl::InvalidArgumentError(std::string("Bad request target: ") + why);
}

StatusOr<std::string> percent_decode(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i];
      continue;
    }
    const int high = i + 1 < text.size() ? hex_digit(text[i + 1]) : -1;
    const int low = i + 2 < text.size() ? hex_digit(text[i + 2]) : -1;
    if (high < 0 || low < 0) return bad_target("a % without two hexadecimal digits");
    const char byte = static_cast<char>(high * 16 + low);
    if (byte == '\0') return bad_target("%00");
    out += byte;
    i += 2;
  }
  return out;
}

}  // namespace

StatusOr<RequestTarget> parse_target(std::string_view target) {
  const bool printable =
      std::all_of(target.begin(), target.end(), [](char c) { return c > 0x20 && c < 0x7F; });
  if (!printable) return bad_target("a byte outside printable ASCII");
  RequestTarget result;
  if (target == "*") {
    result.path = "*";
    return result;
  }
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!target.starts_with(scheme)) continue;
    target.remove_prefix(scheme.size());
    const size_t end = std::min(target.find_first_of("/?#"), target.size());
    result.authority = target.substr(0, end);
    if (!is_valid_host(result.authority)) return bad_target("a malformed host");
    target.remove_prefix(end);
    if (target.empty()) target = "/";
    break;
  }
  if (!target.starts_with("/")) return bad_target("it does not begin with /");
  if (target.find('#') != std::string_view::npos) return bad_target("a fragment");
  const size_t question = target.find('?');
  if (question != std::string_view::npos) result.query = target.substr(question + 1);
  OMNIBUS_ASSIGN_OR_RETURN(result.path, percent_decode(target.substr(0, question)));
  return result;
}

bool is_valid_host(std::string_view host) {
  if (host.empty() || host.size() > 300) return false;
  size_t port = std::string_view::npos;
  if (host.front() == '[') {
    const size_t close = host.find(']');
    if (close == std::string_view::npos) return false;
    const std::string_view inside = host.substr(1, close - 1);
    const bool ok = std::all_of(inside.begin(), inside.end(),
                                [](char c) { return hex_digit(c) >= 0 || c == ':' || c == '.'; });
    if (!ok || inside.empty()) return false;
    if (close + 1 < host.size() && host[close + 1] != ':') return false;
    port = close + 1 < host.size() ? close + 1 : port;
  } else {
    port = host.find(':');
    const std::string_view name = host.substr(0, port);
    const bool ok = std::all_of(name.begin(), name.end(),
                                [](char c) { return is_alnum(c) || c == '.' || c == '-' || c == '_'; });
    if (!ok || name.empty()) return false;
  }
  if (port == std::string_view::npos) return true;
  const std::string_view digits = host.substr(port + 1);
  return digits.size() <= 5 && std::all_of(digits.begin(), digits.end(), is_digit);
}

}  // namespace omnibus
