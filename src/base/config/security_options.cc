#include "security_options.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include "omnibus/base/common/small_file.h"
#include "omnibus/base/config/admin_place.h"

namespace omnibus {
namespace {

constexpr size_t kMaxNameLength = 64;
constexpr char kBlanks[] = " \t\r\n";

bool is_address(const std::string& host) {
  in6_addr any{};
  return inet_pton(AF_INET, host.c_str(), &any) == 1 || inet_pton(AF_INET6, host.c_str(), &any) == 1;
}

bool is_word_char(char c) {
  return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

bool is_made_of(std::string_view text, std::string_view also) {
  return !text.empty() && std::all_of(text.begin(), text.end(), [&](char c) {
    return is_word_char(c) || also.find(c) != std::string_view::npos;
  });
}

// "[v6]", "name" or "1.2.3.4", each with or without ":PORT".
bool is_host_and_port(std::string_view text) {
  std::string_view port;
  if (text.starts_with('[')) {
    const size_t close = text.find(']');
    if (close == std::string_view::npos) return false;
    in6_addr any{};
    if (inet_pton(AF_INET6, std::string(text.substr(1, close - 1)).c_str(), &any) != 1) return false;
    port = text.substr(close + 1);
  } else {
    const size_t colon = std::min(text.find(':'), text.size());
    if (!is_made_of(text.substr(0, colon), ".-_")) return false;
    port = text.substr(colon);
  }
  if (port.empty()) return true;
  port.remove_prefix(1);
  return !port.empty() && port.size() <= 5 && port.find_first_not_of("0123456789") == std::string_view::npos;
}

Status check_hosts(const std::vector<std::string>& hosts) {
  for (const std::string& host : hosts) {
    std::string_view name = host;
    if (name == "*") continue;
    if (name.starts_with("*.")) name.remove_prefix(2);
    if (is_host_and_port(name)) continue;
    return absl::InvalidArgumentError(
        fmt::format("--allowed-hosts: '{}' is not a host: write name, name:port, *.name, [IPv6], or * for "
                    "all",
                    host));
  }
  return {};
}

Status check_origins(const std::vector<std::string>& origins) {
  for (const std::string& origin : origins) {
    if (origin == "*") continue;
    const size_t colon = std::min(origin.find("://"), origin.size());
    const std::string_view view(origin);
    if (colon + 3 < origin.size() && is_made_of(view.substr(0, colon), "+.-") &&
        is_host_and_port(view.substr(colon + 3)))
      continue;
    return absl::InvalidArgumentError(
        fmt::format("--allowed-origins: '{}' is not an origin: write scheme://host or scheme://host:port, "
                    "without a path, or * for all",
                    origin));
  }
  return {};
}

Status check_certificate(const HttpConfig& http) {
  if (!http.ssl_certfile.empty()) return {};
  if (!http.ssl_keyfile.empty()) return absl::InvalidArgumentError("--ssl-keyfile: needs --ssl-certfile");
  if (!http.ssl_ca_certs.empty()) return absl::InvalidArgumentError("--ssl-ca-certs: needs --ssl-certfile");
  return {};
}

void warn_if_others_read(const char* flag, const std::string& path, std::vector<std::string>& warnings) {
  struct stat info {};
  if (path.empty() || stat(path.c_str(), &info) != 0 || (info.st_mode & S_IROTH) == 0) return;
  warnings.push_back(
      fmt::format("{}: every user of this machine can read '{}' (chmod 600 mends it)", flag, path));
}

// Collects keys under names; says which of two is in the way, by place and never by content.
class KeyRing {
 public:
  explicit KeyRing(std::vector<ApiKey>& keys) : keys_(keys) {}

  Status add(std::string name, std::string key, const std::string& place) {
    // Blanks around the value of a header are not part of it, so no client could ever send such a key.
    if (key.find_first_of(kBlanks) == 0 || key.find_last_of(kBlanks) + 1 == key.size()) {
      return absl::InvalidArgumentError(place + " begins or ends with a blank, which no client can send");
    }
    if (name.empty()) name = fmt::format("key{}", keys_.size() + 1);
    if (name.size() > kMaxNameLength || !is_made_of(name, "._-")) {
      return absl::InvalidArgumentError(fmt::format(
          "{} has a bad name: up to {} letters, digits, '.', '_' and '-'", place, kMaxNameLength));
    }
    if (!names_.insert(name).second) {
      return absl::InvalidArgumentError(
          fmt::format("{}: the name '{}' is taken by another key", place, name));
    }
    if (!values_.insert(key).second) return absl::InvalidArgumentError(place + " is there twice");
    keys_.push_back({std::move(name), std::move(key)});
    return {};
  }

 private:
  std::vector<ApiKey>& keys_;
  std::set<std::string> names_, values_;
};

// Lines "KEY" or "NAME KEY"; # starts a comment.
Status read_key_file(const std::string& path, KeyRing& ring) {
  const auto text = read_small_file(path);
  if (!text.ok()) {
    return absl::InvalidArgumentError(
        fmt::format("--api-key-file: cannot read the file '{}': {}", path, status_message(text.status())));
  }
  std::istringstream in(*text);
  bool found = false;
  int number = 0;
  for (std::string line; std::getline(in, line);) {
    ++number;
    const size_t begin = line.find_first_not_of(kBlanks);
    if (begin == std::string::npos || line[begin] == '#') continue;
    line = line.substr(begin, line.find_last_not_of(kBlanks) + 1 - begin);
    const size_t gap = line.find_first_of(" \t");
    std::string name = gap == std::string::npos ? "" : line.substr(0, gap);
    std::string key = gap == std::string::npos ? line : line.substr(line.find_first_not_of(" \t", gap));
    const std::string place = fmt::format("--api-key-file: the key in line {} of '{}'", number, path);
    if (key.find_first_of(" \t") != std::string::npos) {
      return absl::InvalidArgumentError(place + ": a line holds a key, or a name and a key");
    }
    OMNIBUS_RETURN_IF_ERROR(ring.add(std::move(name), std::move(key), place));
    found = true;
  }
  if (found) return {};
  return absl::InvalidArgumentError(fmt::format(
      "--api-key-file: '{}' holds no key (one a line, with or without a name before it; # starts a comment)",
      path));
}

Status collect_keys(ServeConfig& config) {
  config.keys.clear();
  KeyRing ring(config.keys);
  for (size_t i = 0; i < config.api_keys.size(); ++i) {
    OMNIBUS_RETURN_IF_ERROR(ring.add("", config.api_keys[i],
                                     fmt::format("--api-key: key {} of {}", i + 1, config.api_keys.size())));
  }
  return config.api_key_file.empty() ? Status() : read_key_file(config.api_key_file, ring);
}

// Admin keys are no inference keys, and the other way round.
Status check_admin(const ServeConfig& config) {
  OMNIBUS_RETURN_IF_ERROR(parse_admin_place(config.http).status());
  std::vector<ApiKey> all;
  KeyRing ring(all);
  for (const ApiKey& key : config.keys) OMNIBUS_RETURN_IF_ERROR(ring.add("", key.key, "--api-key"));
  const auto& keys = config.http.admin_api_keys;
  for (size_t i = 0; i < keys.size(); ++i) {
    OMNIBUS_RETURN_IF_ERROR(
        ring.add("", keys[i], fmt::format("--admin-api-key: key {} of {}", i + 1, keys.size())));
  }
  return {};
}

Status check_bind(const ServeConfig& config) {
  if (!config.keys.empty() || config.allow_unauthenticated || is_loopback_host(config.http.host)) return {};
  if (!is_address(config.http.host)) {
    return absl::InvalidArgumentError(
        fmt::format("--host: '{}' is not an address: give an IP address or localhost (a name also needs "
                    "--api-key or --allow-unauthenticated)",
                    config.http.host));
  }
  return absl::InvalidArgumentError(
      fmt::format("--host: {} can be reached from other machines: give --api-key or --api-key-file, or "
                  "--allow-unauthenticated to open it to everybody",
                  config.http.host));
}

}  // namespace

bool is_loopback_host(const std::string& host) {
  if (host == "localhost") return true;
  in_addr v4{};
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1) return ntohl(v4.s_addr) >> 24 == 127;
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6);
}

void declare_security(OptionSet& options, ServeConfig& config) {
  HttpConfig& http = config.http;
  options.begin_group("Security");
  options.add_list("api-key", config.api_keys, "KEY", "Key that clients must send; repeatable");
  options.add("api-key-file", config.api_key_file, "FILE", "File of keys: a line is KEY, or NAME KEY");
  options.add("allow-unauthenticated", config.allow_unauthenticated,
              "Listen beyond this machine without any key");
  options.add_list("allowed-hosts", http.allowed_hosts, "HOST",
                   "Name, name:port, *.name or * that requests may be addressed to; repeatable (default: "
                   "localhost and its addresses on a loopback listener, else any)");
  options.add_list("allowed-origins", http.allowed_origins, "ORIGIN",
                   "Web page that may call, as https://host:port; repeatable; *: every page on the web, "
                   "which then can use this server (default: only the own page)");
  options.add("ssl-certfile", http.ssl_certfile, "FILE", "Serve HTTPS with this certificate chain (PEM)");
  options.add("ssl-keyfile", http.ssl_keyfile, "FILE", "Its private key (default: in --ssl-certfile)");
  options.add("ssl-ca-certs", http.ssl_ca_certs, "FILE",
              "Want a certificate of every client, signed by one of these");
}

Status finish_security(ServeConfig& config) {
  OMNIBUS_RETURN_IF_ERROR(collect_keys(config));
  OMNIBUS_RETURN_IF_ERROR(check_bind(config));
  OMNIBUS_RETURN_IF_ERROR(check_hosts(config.http.allowed_hosts));
  OMNIBUS_RETURN_IF_ERROR(check_origins(config.http.allowed_origins));
  OMNIBUS_RETURN_IF_ERROR(check_certificate(config.http));
  OMNIBUS_RETURN_IF_ERROR(check_admin(config));
  config.warnings.clear();
  warn_if_others_read("--api-key-file", config.api_key_file, config.warnings);
  warn_if_others_read("--ssl-keyfile",
                      config.http.ssl_keyfile.empty() ? config.http.ssl_certfile : config.http.ssl_keyfile,
                      config.warnings);
  return {};
}

}  // namespace omnibus
