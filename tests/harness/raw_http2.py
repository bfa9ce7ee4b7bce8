"""HTTP/2 frame by frame, against the gRPC listener."""

import socket

from h2.config import H2Configuration
from h2.connection import H2Connection

from harness.grpc_client import address


class RawConnection:
    """HTTP/2 frame by frame."""

    def __init__(self, server):
        host, port = address(server).rsplit(":", 1)
        self.socket = socket.create_connection((host, int(port)), timeout=20)
        self.h2 = H2Connection(H2Configuration(client_side=True, header_encoding=None,
                                               validate_outbound_headers=False, normalize_outbound_headers=False))
        self.h2.initiate_connection()
        self.flush()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def flush(self):
        self.socket.sendall(self.h2.data_to_send())

    def open(self, path="/omnibus.v1.Inference/Generate", body=None, extra=(), end=True):
        """A new call; its stream's number."""
        stream = self.h2.get_next_available_stream_id()
        headers = [(":method", "POST"), (":scheme", "http"), (":path", path), (":authority", "localhost"),
                   ("te", "trailers"), ("content-type", "application/grpc"), *extra]
        self.h2.send_headers(stream, headers)
        if body is not None:
            self.h2.send_data(stream, b"\0" + len(body).to_bytes(4, "big") + body, end_stream=end)
        return stream

    def events(self, timeout=20):
        """What comes until the peer closes or nothing comes for `timeout`. Acknowledges no data."""
        self.socket.settimeout(timeout)
        try:
            while data := self.socket.recv(65536):
                yield from self.h2.receive_data(data)
                self.flush()
        except (TimeoutError, ConnectionError):
            return
