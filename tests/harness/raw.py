"""HTTP by hand, for what no client library would send."""

import socket


def connect(server, timeout=10):
    return socket.create_connection(("127.0.0.1", server.port), timeout=timeout)


def read_answer(connection):
    """(status, headers as a dict of lower-case names, body) of one answer; status 0 when the peer closed first."""
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            more = connection.recv(65536)
        except ConnectionError:
            more = b""
        if not more:
            return 0, {}, data
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    lines = head.decode("latin-1").split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines[1:])}
    status = int(lines[0].split(" ")[1])
    if status == 100:
        return status, headers, body
    length = int(headers.get("content-length", 0))
    while len(body) < length:
        more = connection.recv(65536)
        if not more:
            break
        body += more
    return status, headers, body


def exchange(server, data, timeout=10):
    """Sends bytes on a new connection; the first answer."""
    with connect(server, timeout) as connection:
        try:
            connection.sendall(data)
        except ConnectionError:
            pass  # refused before all was sent: the answer may still be there
        return read_answer(connection)


def request_bytes(method="GET", path="/health", headers=(), body=b"", version="HTTP/1.1"):
    lines = [f"{method} {path} {version}", "Host: localhost", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body
