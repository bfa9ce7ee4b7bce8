// LiveSite: an HttpSite as sessions use it. Immutable; any thread.
#pragma once

#include <memory>
#include <mutex>

#include "omnibus/server/http/http_site.h"

#include "access_policy.h"
#include "tls_context.h"

namespace omnibus {

struct LiveSite {
  std::shared_ptr<const RouteTable> routes;
  std::shared_ptr<const Authenticator> auth;
  AccessPolicy access;
  TlsContext tls;
  Status elsewhere;
};

// Errors name the file of the certificate.
StatusOr<LiveSitePtr> make_live_site(HttpSite site, bool loopback);

// The site of the moment.
class SiteSlot {
 public:
  LiveSitePtr get() const {
    std::lock_guard lock(mutex_);
    return site_;
  }
  void set(LiveSitePtr site) {
    std::lock_guard lock(mutex_);
    site_.swap(site);  // the old one is let go of without the lock
  }

 private:
  mutable std::mutex mutex_;
  LiveSitePtr site_;
};

}  // namespace omnibus
