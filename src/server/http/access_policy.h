// AccessPolicy: which names a request may be addressed to, and which web pages may send one. Against DNS
// rebinding and pages of other sites that reach for a server on their reader's machine.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_message.h"

namespace omnibus {

// Immutable; any thread.
class AccessPolicy {
 public:
  struct Config {
    std::vector<std::string> hosts;    // as --allowed-hosts; checked there
    std::vector<std::string> origins;  // as --allowed-origins
    bool loopback = false;             // nobody but this machine can connect, so Host names it or is forged
    bool tls = false;
  };
  explicit AccessPolicy(Config config);

  // 403 when the request is addressed to a name that is not ours.
  Status check_host(const HttpRequest& request) const;
  // 403 for what a page of another site sends and may not: see SECURITY.md, S9.
  Status check_origin(const HttpRequest& request, bool has_body) const;
  // Header lines that let a listed page read the answer; empty for everybody else.
  std::string answer_headers(const HttpRequest& request) const;
  // Header fields of the answer to OPTIONS that asks before a request of a listed page.
  std::vector<std::pair<std::string, std::string>> preflight_headers(const HttpRequest& request,
                                                                     const std::string& methods) const;

 private:
  bool serves(std::string_view authority) const;
  bool lists(std::string_view origin) const;
  bool is_own_origin(const HttpRequest& request, std::string_view origin) const;

  Config config_;
  bool check_hosts_, any_origin_;
};

}  // namespace omnibus
