"""HTTP over a Unix socket: the admin listener's."""

import http.client
import json
import socket


class _Connection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


def ask(path, method, target, body=None, timeout=10):
    """(status, body as text) of one request."""
    connection = _Connection(path, timeout)
    try:
        data = None if body is None else json.dumps(body)
        connection.request(method, target, data, {} if data is None else {"Content-Type": "application/json"})
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()
