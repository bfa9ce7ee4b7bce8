"""F10: idle connections by the thousand, headers and bodies that come slowly or not at all, no descriptors left."""

import resource
import socket
import time

import pytest

from harness.figures import SOAK, percentile
from harness.process import allow_descriptors, descriptors, rss_bytes, sanitized
from harness.raw import connect, exchange, read_answer, request_bytes
from harness.script import HELLO
from harness.wait import wait_until

IDLE, SLOW = (10_000, 100) if SOAK else (1_000, 10)
HEADER_TIMEOUT, BODY_TIMEOUT = (10, 30) if SOAK else (2, 2)  # seconds


def closed(connection, limit=60):
    """The answer's status when the server has closed the connection; 0 without an answer."""
    connection.settimeout(limit)
    data = b""
    try:
        while more := connection.recv(65536):
            data += more
    except ConnectionError:
        pass
    return int(data.split(b" ", 2)[1]) if data else 0


def test_f10_idle_connections(own_replay, figures):
    allow_descriptors(IDLE + 2 * SLOW + 300)
    server = own_replay(HELLO, "--max-connections", str(IDLE + 2 * SLOW + 100), "--header-timeout",
                        str(HEADER_TIMEOUT), "--body-timeout", str(BODY_TIMEOUT), "--keep-alive-timeout", "600")
    server.assert_serves()
    before = rss_bytes(server.process.pid)
    idle = []
    for _ in range(IDLE):
        connection = connect(server)
        connection.sendall(request_bytes())  # one that has been used: it keeps what a request left behind
        idle.append(connection)
    for connection in idle:
        assert read_answer(connection)[0] == 200
    grown = (rss_bytes(server.process.pid) - before) / IDLE
    figures.bar(f"memory of each of {IDLE} idle connections", grown / 1024, 20, "KiB")
    assert grown < 64 * 1024 or sanitized()  # a leak of buffers, not noise

    started = time.monotonic()
    headers = [connect(server) for _ in range(SLOW)]
    for connection in headers:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: local")
    bodies = [connect(server) for _ in range(SLOW)]
    for connection in bodies:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n\r\n{")
    times = []
    for _ in range(50):
        at = time.monotonic()
        assert exchange(server, request_bytes(headers=["Connection: close"]))[0] == 200
        times.append(time.monotonic() - at)
    figures.bar("a new connection answered in (p95)", percentile(times, 0.95) * 1e3, 10, "ms")
    for name, connections, limit in (("headers", headers, HEADER_TIMEOUT), ("bodies", bodies, BODY_TIMEOUT)):
        assert {closed(c) for c in connections} == {408}
        figures.bar(f"half {name} gone after", time.monotonic() - started, limit + 2, "s")
    # Those that only wait are still there.
    for connection in idle[:: max(1, IDLE // 50)]:
        connection.sendall(request_bytes())
        assert read_answer(connection)[0] == 200
    for connection in idle:
        connection.close()
    wait_until(lambda: descriptors(server.process.pid) < 100, 30, "descriptors back")
    assert server.stop() == 0


def test_f10_idle_connections_end_in_time(own_replay):
    server = own_replay(HELLO, "--keep-alive-timeout", "1")
    fresh, used = connect(server), connect(server)
    used.sendall(request_bytes())
    assert read_answer(used)[0] == 200
    for connection in (fresh, used):
        assert closed(connection) == 0  # without a word


def test_f10_more_connections_than_allowed(own_replay):
    server = own_replay(HELLO, "--max-connections", "5")
    held = [connect(server) for _ in range(5)]
    for connection in held:
        connection.sendall(request_bytes())
        assert read_answer(connection)[0] == 200
    status, headers, _ = exchange(server, request_bytes())
    assert status == 503 and headers["retry-after"] == "1" and headers["connection"] == "close"
    held.pop().close()

    def has_room():
        return exchange(server, request_bytes(headers=["Connection: close"]))[0] == 200

    wait_until(has_room, 10, "room for another")
    assert server.stop() == 0


@pytest.mark.parametrize("spare", [1, 20])
def test_f10_out_of_descriptors(own_replay, spare, figures):
    """At the limit connections are turned away at once, nothing spins, and all is well when there is room again."""
    server = own_replay(HELLO)
    server.assert_serves()
    pid = server.process.pid
    old = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (descriptors(pid) + spare, old[1]))
    held, refused = [], 0
    for _ in range(spare + 30):
        connection = connect(server, 20)
        connection.sendall(request_bytes())
        status = read_answer(connection)[0]
        held.append(connection)
        refused += status != 200
    assert 0 < refused < spare + 30 and server.process.poll() is None
    assert 1 <= server.log().count("out of file descriptors") <= 2  # one in ten seconds
    cpu = cpu_seconds(pid)
    started = time.monotonic()
    wait_until(lambda: time.monotonic() - started > 0.5, 5)
    figures.bar(f"{refused} turned away; CPU in half a second at the limit", cpu_seconds(pid) - cpu, 0.1, "s")
    resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
    for connection in held:
        connection.close()
    wait_until(lambda: try_serves(server), 10, "serving again")
    assert server.stop() == 0


def cpu_seconds(pid):
    with open(f"/proc/{pid}/stat") as f:
        fields = f.read().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / 100


def try_serves(server):
    try:
        return exchange(server, request_bytes(headers=["Connection: close"]))[0] == 200
    except (OSError, socket.timeout):
        return False
