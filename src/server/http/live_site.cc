#include "live_site.h"

#include <utility>

namespace omnibus {

StatusOr<LiveSitePtr> make_live_site(HttpSite site, bool loopback) {
  OMNIBUS_ASSIGN_OR_RETURN(TlsContext tls, make_tls_context(site.tls));
  AccessPolicy access({.hosts = std::move(site.allowed_hosts),
                       .origins = std::move(site.allowed_origins),
                       .loopback = loopback,
                       .tls = tls != nullptr});
  return std::make_shared<const LiveSite>(LiveSite{.routes = std::move(site.routes),
                                                   .auth = std::move(site.auth),
                                                   .access = std::move(access),
                                                   .tls = std::move(tls),
                                                   .elsewhere = std::move(site.elsewhere)});
}

}  // namespace omnibus
