"""Certificates made for a test, and clients that trust them. OpenSSL's own command makes them."""

import socket
import ssl
import subprocess


def openssl(*args):
    subprocess.run(["openssl", *map(str, args)], check=True, capture_output=True, timeout=60)


class Certificate:
    """A key and its certificate, signed by itself or by `issuer`."""

    def __init__(self, folder, name, issuer=None):
        self.name = name
        self.certificate, self.key = folder / f"{name}.pem", folder / f"{name}.key"
        self.folder = folder
        common = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-keyout", self.key,
                  "-subj", f"/CN={name}"]
        if issuer is None:
            openssl("req", "-x509", "-days", 2, "-out", self.certificate, *common,
                    "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1")
            return
        request = folder / f"{name}.csr"
        openssl("req", "-new", "-out", request, *common)
        openssl("x509", "-req", "-days", 2, "-in", request, "-CA", issuer.certificate, "-CAkey", issuer.key,
                "-CAcreateserial", "-out", self.certificate)

    def flags(self):
        return ["--ssl-certfile", str(self.certificate), "--ssl-keyfile", str(self.key)]

    def encrypted_key(self):
        path = self.folder / f"{self.name}.encrypted.key"
        openssl("pkey", "-in", self.key, "-aes256", "-passout", "pass:x", "-out", path)
        return path


def connect_tls(server, trust, timeout=10, client=None, **settings):
    """A TLS connection that checks the server's certificate. settings: attributes of ssl.SSLContext."""
    context = ssl.create_default_context(cafile=str(trust.certificate))
    if client is not None:
        context.load_cert_chain(str(client.certificate), str(client.key))
    protocols = settings.pop("alpn", None)
    if protocols:
        context.set_alpn_protocols(protocols)
    for name, value in settings.items():
        setattr(context, name, value)
    plain = socket.create_connection(("127.0.0.1", server.port), timeout=timeout)
    try:
        return context.wrap_socket(plain, server_hostname="localhost", suppress_ragged_eofs=False)
    except (OSError, ssl.SSLError):
        plain.close()
        raise
