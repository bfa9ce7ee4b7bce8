#include "tls_context.h"

#include <string_view>

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>

#include "omnibus/base/common/small_file.h"

namespace omnibus {
namespace {

constexpr char kCiphers12[] = "ECDHE+AESGCM:ECDHE+CHACHA20";
// As ALPN writes names: length, then bytes.
constexpr unsigned char kHttp11[] = "\x08http/1.1";
constexpr unsigned char kSessionContext[] = "omnibus";

int choose_protocol(SSL* /*ssl*/, const unsigned char** out, unsigned char* out_length,
                    const unsigned char* in, unsigned int in_length, void* /*unused*/) {
  unsigned char* chosen = nullptr;
  const int found = SSL_select_next_proto(&chosen, out_length, kHttp11, sizeof kHttp11 - 1, in, in_length);
  if (found != OPENSSL_NPN_NEGOTIATED) return SSL_TLSEXT_ERR_ALERT_FATAL;
  *out = chosen;
  return SSL_TLSEXT_ERR_OK;
}

// OpenSSL would ask at the terminal.
int no_passphrase(char* /*buffer*/, int /*size*/, int /*writing*/, void* asked) {
  *static_cast<bool*>(asked) = true;
  return -1;
}

Status bad_file(const char* what, const std::string& path, bool encrypted = false) {
  const char* reason = ERR_reason_error_string(ERR_peek_error());
  std::string why = reason != nullptr ? reason : "it is not usable";
  if (encrypted) why = "the key is encrypted; give one without a passphrase";
  ERR_clear_error();
  return absl::InvalidArgumentError(fmt::format("TLS: cannot use the {} '{}': {}", what, path, why));
}

// OpenSSL opens by name, and would wait at a pipe.
Status check_readable(const char* what, const std::string& path) {
  const auto bytes = read_small_file(path);
  if (bytes.ok()) return {};
  return absl::InvalidArgumentError(
      fmt::format("TLS: cannot use the {} '{}': {}", what, path, status_message(bytes.status())));
}

}  // namespace

StatusOr<TlsContext> make_tls_context(const TlsFiles& files) {
  if (files.certificate.empty()) return TlsContext();
  const std::string& key = files.key.empty() ? files.certificate : files.key;
  OMNIBUS_RETURN_IF_ERROR(check_readable("certificate", files.certificate));
  OMNIBUS_RETURN_IF_ERROR(check_readable("key", key));
  if (!files.client_ca.empty()) OMNIBUS_RETURN_IF_ERROR(check_readable("client CA", files.client_ca));
  ERR_clear_error();
  TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  SSL_CTX* raw = context.get();
  if (raw == nullptr || SSL_CTX_set_min_proto_version(raw, TLS1_2_VERSION) != 1 ||
      SSL_CTX_set_cipher_list(raw, kCiphers12) != 1) {
    return absl::InternalError("TLS: OpenSSL cannot be set up");
  }
  SSL_CTX_set_options(raw, SSL_OP_NO_COMPRESSION | SSL_OP_NO_RENEGOTIATION);
  SSL_CTX_set_mode(raw, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_set_session_id_context(raw, kSessionContext, sizeof kSessionContext - 1);
  SSL_CTX_set_alpn_select_cb(raw, choose_protocol, nullptr);

  bool encrypted = false;
  SSL_CTX_set_default_passwd_cb(raw, no_passphrase);
  SSL_CTX_set_default_passwd_cb_userdata(raw, &encrypted);
  if (SSL_CTX_use_certificate_chain_file(raw, files.certificate.c_str()) != 1) {
    return bad_file("certificate", files.certificate);
  }
  if (SSL_CTX_use_PrivateKey_file(raw, key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(raw) != 1) {
    return bad_file("key", key, encrypted);
  }
  SSL_CTX_set_default_passwd_cb_userdata(raw, nullptr);
  if (files.client_ca.empty()) return context;

  STACK_OF(X509_NAME)* names = SSL_load_client_CA_file(files.client_ca.c_str());
  if (names == nullptr || SSL_CTX_load_verify_file(raw, files.client_ca.c_str()) != 1) {
    sk_X509_NAME_pop_free(names, X509_NAME_free);
    return bad_file("client CA", files.client_ca);
  }
  SSL_CTX_set_client_CA_list(raw, names);  // takes them
  SSL_CTX_set_verify(raw, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
  return context;
}

}  // namespace omnibus
