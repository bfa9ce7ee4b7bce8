// HttpSite: what a listener serves, and to whom. A running server swaps it as one value, so that a request is
// judged and answered by one generation of it from beginning to end.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/authenticator.h"
#include "omnibus/server/http/route_table.h"

namespace omnibus {

// PEM files; no certificate: plain HTTP.
struct TlsFiles {
  std::string certificate;  // the chain, own certificate first
  std::string key;          // empty: in `certificate`
  std::string client_ca;    // not empty: who connects shows a certificate that one of these signed
};

struct HttpSite {
  std::shared_ptr<const RouteTable> routes;
  std::shared_ptr<const Authenticator> auth;
  // Names that requests may be addressed to, beside those of loopback; "*": any, "*.name": all below it. None
  // given: any, unless the listener is on loopback.
  std::vector<std::string> allowed_hosts;
  std::vector<std::string> allowed_origins;  // of web pages that may call; "*": all
  TlsFiles tls;                              // read when the site is prepared; for connections made later
  // What is answered to the requests that `routes` has nothing for, once they may come in at all. OK: that
  // there is no such route.
  Status elsewhere;
};

// An HttpSite made ready for one server: files read, rules compiled.
struct LiveSite;
using LiveSitePtr = std::shared_ptr<const LiveSite>;

}  // namespace omnibus
