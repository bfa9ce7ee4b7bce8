#include "access_policy.h"

#include <algorithm>
#include <utility>

#include <arpa/inet.h>
#include <fmt/format.h>

#include "ascii.h"
#include "http_error.h"

namespace omnibus {
namespace {

constexpr size_t kMaxQuoted = 100;
constexpr char kExposed[] =
    "x-request-id, request-id, x-omnibus-ignored-fields, openai-processing-ms, retry-after, retry-after-ms";

std::string quoted(std::string_view text) {
  return text.size() <= kMaxQuoted ? std::string(text) : std::string(text.substr(0, kMaxQuoted)) + "...";
}

struct Authority {
  std::string host;  // lower case, no brackets, no dot at the end
  std::string port;  // empty: none given
  bool v6 = false;
};

// `text` has the form of is_valid_host.
Authority split_authority(std::string_view text) {
  Authority out;
  size_t end = 0;
  if (text.starts_with('[')) {
    out.v6 = true;
    end = std::min(text.find(']'), text.size());
    out.host = to_lower(text.substr(1, end - 1));
    end = std::min(end + 1, text.size());
  } else {
    end = std::min(text.find(':'), text.size());
    out.host = to_lower(text.substr(0, end));
    if (out.host.ends_with('.')) out.host.pop_back();
  }
  if (end < text.size()) out.port = std::string(text.substr(end + 1));
  return out;
}

bool is_loopback_name(const Authority& name) {
  if (name.v6) {
    in6_addr v6{};
    return inet_pton(AF_INET6, name.host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
  }
  in_addr v4{};
  if (inet_pton(AF_INET, name.host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  return name.host == "localhost" || name.host.ends_with(".localhost");
}

std::string_view default_port(std::string_view scheme) {
  return scheme == "https" ? "443" : scheme == "http" ? "80" : "";
}

// A type that a page cannot send to another site without asking first (Fetch: CORS-safelisted types).
bool is_json_type(std::string_view type) {
  std::string name = to_lower(type.substr(0, type.find(';')));
  while (name.ends_with(' ') || name.ends_with('\t')) name.pop_back();
  return name == "application/json";
}

// A link on another page, followed in the browser's window: its reader sees what we answer, the page does
// not.
bool is_navigation(const HttpRequest& request, bool has_body) {
  const std::string_view destination = request.header("sec-fetch-dest");
  return !has_body && (request.method == "GET" || request.method == "HEAD") &&
         request.header("sec-fetch-mode") == "navigate" && (destination.empty() || destination == "document");
}

bool is_header_list(std::string_view text) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_' || c == ',' || c == ' ';
  });
}

Status forbidden(const std::string& message) { return http_error(403, message); }

}  // namespace

AccessPolicy::AccessPolicy(Config config) : config_(std::move(config)) {
  for (std::string& origin : config_.origins) origin = to_lower(origin);
  any_origin_ = std::find(config_.origins.begin(), config_.origins.end(), "*") != config_.origins.end();
  const auto& hosts = config_.hosts;
  check_hosts_ =
      (config_.loopback || !hosts.empty()) && std::find(hosts.begin(), hosts.end(), "*") == hosts.end();
}

bool AccessPolicy::serves(std::string_view authority) const {
  const Authority asked = split_authority(authority);
  if (is_loopback_name(asked)) return true;
  return std::any_of(config_.hosts.begin(), config_.hosts.end(), [&](const std::string& entry) {
    const bool below = entry.starts_with("*.");
    const Authority known =
        split_authority(below ? std::string_view(entry).substr(2) : std::string_view(entry));
    if (!known.port.empty() && known.port != asked.port) return false;
    if (below) return asked.host.ends_with("." + known.host);
    return known.host == asked.host && known.v6 == asked.v6;
  });
}

Status AccessPolicy::check_host(const HttpRequest& request) const {
  if (!check_hosts_) return {};
  // Both, where the target names another host than the header does.
  for (const std::string_view name : {std::string_view(request.host), request.header("host")}) {
    if (name.empty() || serves(name)) continue;
    return forbidden(fmt::format(
        "This server does not answer to the host '{}': start it with --allowed-hosts to add names",
        quoted(name)));
  }
  return {};
}

bool AccessPolicy::lists(std::string_view origin) const {
  return any_origin_ ||
         std::find(config_.origins.begin(), config_.origins.end(), to_lower(origin)) != config_.origins.end();
}

bool AccessPolicy::is_own_origin(const HttpRequest& request, std::string_view origin) const {
  const size_t colon = origin.find("://");
  if (colon == std::string_view::npos || request.host.empty()) return false;
  const std::string scheme = to_lower(origin.substr(0, colon));
  // Over plain HTTP an https origin of the same name is ours behind a proxy that speaks TLS; the reverse is
  // a page that somebody on the way may have written.
  if (scheme != "https" && (scheme != "http" || config_.tls)) return false;
  Authority page = split_authority(origin.substr(colon + 3)), own = split_authority(request.host);
  for (Authority* each : {&page, &own}) {
    if (each->port.empty()) each->port = default_port(scheme);
  }
  return page.host == own.host && page.port == own.port && page.v6 == own.v6;
}

Status AccessPolicy::check_origin(const HttpRequest& request, bool has_body) const {
  const std::string_view origin = request.header("origin");
  const size_t origins = request.count_header("origin");
  const bool cross_site = request.header("sec-fetch-site") == "cross-site";
  if (origins > 1) return http_error(400, "More than one Origin");
  if (!cross_site && (origins == 0 || is_own_origin(request, origin))) return {};
  if (origins == 0 && is_navigation(request, has_body)) return {};
  if (origins == 0 || !lists(origin)) {
    return forbidden(
        fmt::format("Web pages of {} may not use this server: start it with --allowed-origins to let them",
                    origins == 0 ? "other sites" : "'" + quoted(origin) + "'"));
  }
  if (has_body && !is_json_type(request.header("content-type"))) {
    return forbidden("A web page of another site has to send its body as application/json");
  }
  return {};
}

std::string AccessPolicy::answer_headers(const HttpRequest& request) const {
  if (config_.origins.empty()) return {};
  std::string lines = "Vary: Origin\r\n";
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !lists(origin)) return lines;
  return lines + fmt::format("Access-Control-Allow-Origin: {}\r\nAccess-Control-Expose-Headers: {}\r\n",
                             origin, kExposed);
}

std::vector<std::pair<std::string, std::string>> AccessPolicy::preflight_headers(
    const HttpRequest& request, const std::string& methods) const {
  const std::string_view origin = request.header("origin");
  if (origin.empty() || !lists(origin)) return {};
  std::vector<std::pair<std::string, std::string>> out = {{"Access-Control-Allow-Methods", methods},
                                                          {"Access-Control-Max-Age", "600"}};
  const std::string_view wanted = request.header("access-control-request-headers");
  if (is_header_list(wanted)) out.emplace_back("Access-Control-Allow-Headers", wanted);
  if (request.header("access-control-request-private-network") == "true") {
    out.emplace_back("Access-Control-Allow-Private-Network", "true");
  }
  return out;
}

}  // namespace omnibus
