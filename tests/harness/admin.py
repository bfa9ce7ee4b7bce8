"""The admin listener of a server: HTTP over its Unix socket."""

import http.client
import json
import re
import socket
from pathlib import Path


class _UnixConnection(http.client.HTTPConnection):
    def __init__(self, path, timeout):
        super().__init__("localhost", timeout=timeout)
        self.path = str(path)

    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.settimeout(self.timeout)
        self.sock.connect(self.path)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.text = status, headers, body.decode()

    def json(self):
        return json.loads(self.text)


def ask(path, method, target, body=None, timeout=30, headers=()):
    """One request over the Unix socket `path`. `body`: bytes, or what becomes JSON."""
    connection = _UnixConnection(path, timeout)
    try:
        data = body if body is None or isinstance(body, bytes) else json.dumps(body).encode()
        connection.request(method, target, body=data, headers=dict(headers))
        answer = connection.getresponse()
        return Answer(answer.status, {k.lower(): v for k, v in answer.getheaders()}, answer.read())
    finally:
        connection.close()


def admin_place(server):
    """What the start table says: "off", "unix:PATH" or a URL."""
    return re.search(r"^admin\s+(\S+)$", server.out_path.read_text(), re.MULTILINE).group(1)


def admin_socket(server):
    place = admin_place(server)
    assert place.startswith("unix:"), place
    return Path(place.removeprefix("unix:"))


class Admin:
    """Admin(server).get("/status"), .post("/reload")"""

    def __init__(self, server):
        self.path = admin_socket(server)

    def get(self, target, **kwargs):
        return ask(self.path, "GET", target, **kwargs)

    def post(self, target, body=None, **kwargs):
        return ask(self.path, "POST", target, body if body is not None else b"", **kwargs)

    def status(self):
        answer = self.get("/status")
        assert answer.status == 200, answer.text
        return answer.json()
