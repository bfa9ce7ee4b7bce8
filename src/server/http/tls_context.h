// What all TLS connections of a listener share: certificate, key, and what is spoken (TLS 1.2 and 1.3, AEAD
// ciphers with ephemeral keys, ALPN http/1.1).
#pragma once

#include <memory>

#include <openssl/types.h>

#include "omnibus/base/common/status.h"
#include "omnibus/server/http/http_site.h"

namespace omnibus {

using TlsContext = std::shared_ptr<SSL_CTX>;

// Null when there is no certificate. Errors name the file and OpenSSL's reason.
StatusOr<TlsContext> make_tls_context(const TlsFiles& files);

}  // namespace omnibus
