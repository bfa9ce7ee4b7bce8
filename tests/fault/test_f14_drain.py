"""F14: SIGTERM with streams open and more coming; a second SIGTERM."""

import http.client
import json
import signal
import threading
import time

import pytest

from harness.admin import Admin
from harness.raw import connect, request_bytes
from harness.script import script, says
from harness.wait import wait_until

SLOW = script(
    says(*["a"] * 60, when="finite", delay_ms=10),
    says("x", when="endless", eos=False, delay_ms=5),
    says("ok"),
    max_model_len=100000,
    num_blocks=20000,
)
STREAMS = 32


def open_stream(server, prompt):
    body = json.dumps({"prompt": prompt, "stream": True, "max_tokens": 90000}).encode()
    connection = connect(server, 60)
    connection.sendall(request_bytes("POST", "/v1/completions", body=body))
    return connection


def first_bytes(connection):
    data = connection.recv(65536)
    assert data.startswith(b"HTTP/1.1 200"), data
    return data


def rest_of(connection, data):
    while more := connection.recv(65536):
        data += more
    return data


def not_ready_after(server, since, limit=10):
    def ready():
        try:
            connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=5)
            connection.request("GET", "/readyz")
            return connection.getresponse().status == 200
        except ConnectionError:
            return False

    wait_until(lambda: not ready(), limit, "not ready")
    return time.monotonic() - since


def test_f14_thirty_two_streams_under_load(own_replay, figures):
    """All that was accepted is finished whole; what comes later hears 503 with Retry-After and Connection: close."""
    server = own_replay(SLOW, "--drain-timeout", "60", "--max-num-seqs", "64")
    streams = [open_stream(server, "finite") for _ in range(STREAMS)]
    heads = [first_bytes(c) for c in streams]
    answers, stop = [], threading.Event()

    def keep_asking():
        while not stop.is_set():
            try:
                connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
                connection.request("POST", "/v1/completions", json.dumps({"prompt": "hi"}),
                                   {"Content-Type": "application/json"})
                answer = connection.getresponse()
                answers.append((answer.status, answer.getheader("Retry-After"), answer.getheader("Connection"),
                                answer.read()))
            except (ConnectionError, http.client.HTTPException) as error:
                answers.append((0, None, None, repr(error)))
                return

    askers = [threading.Thread(target=keep_asking) for _ in range(4)]
    for asker in askers:
        asker.start()
    wait_until(lambda: len(answers) > 4, 30, "load")
    started = time.monotonic()
    server.terminate()
    figures.bar("not ready after SIGTERM in", not_ready_after(server, started) * 1e3, 100, "ms")
    for connection, head in zip(streams, heads):
        data = rest_of(connection, head)
        assert data.count(b'"text":"a') == 60 and data.endswith(b"data: [DONE]\n\n\r\n0\r\n\r\n"), data[-300:]
    assert server.process.wait(60) == 0
    stop.set()
    for asker in askers:
        asker.join(30)
    refused = [a for a in answers if a[0] == 503]
    assert refused and all(a[1] and int(a[1]) >= 1 and a[2] == "close" for a in refused)
    # Everything was answered until nobody listened any more: each asker's last word is that.
    assert {a[0] for a in answers} <= {200, 503, 0}, answers
    assert sum(a[0] == 0 for a in answers) <= len(askers)
    figures.note(f"{sum(a[0] == 200 for a in answers)} served, {len(refused)} refused, exit "
                 f"{time.monotonic() - started:.1f} s after SIGTERM")


def test_f14_what_does_not_finish_hears_of_it(own_replay, figures):
    server = own_replay(SLOW, "--drain-timeout", "1", "--max-num-seqs", "8")
    running = [open_stream(server, "endless") for _ in range(8)]
    heads = [first_bytes(c) for c in running]
    waiting = [open_stream(server, "endless") for _ in range(8)]  # there is no row for them
    wait_until(lambda: server.metric("vllm:num_requests_waiting") == 8, 10, "waiting")
    started = time.monotonic()
    server.terminate()
    for connection, head in zip(running, heads):
        data = rest_of(connection, head)
        assert b'"unavailable_error"' in data and b"[DONE]" not in data.split(b'"unavailable_error"')[0], data[-400:]
    for connection in waiting:
        data = rest_of(connection, b"")
        # Streams whose head was sent get an event, the rest a status.
        assert data.startswith(b"HTTP/1.1 503") or b'"unavailable_error"' in data, data[:400]
    assert server.process.wait(20) == 0
    figures.bar("exit after SIGTERM, limit 1 s, in", time.monotonic() - started, 3, "s")


@pytest.mark.parametrize("first,second", [(signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM),
                                          (signal.SIGTERM, signal.SIGINT)])
def test_f14_a_second_signal(own_replay, first, second, figures):
    server = own_replay(SLOW, "--drain-timeout", "60", "--max-num-seqs", "64")
    streams = [open_stream(server, "endless") for _ in range(STREAMS)]
    for connection in streams:
        first_bytes(connection)
    server.process.send_signal(first)
    not_ready_after(server, time.monotonic())
    started = time.monotonic()
    server.process.send_signal(second)
    assert server.process.wait(20) == 128 + second
    figures.bar("exit after the second signal in", time.monotonic() - started, 2, "s")


def test_f14_drain_delay(own_replay, figures):
    """Slow routers: not ready at once, and yet served for as long as they may still send."""
    server = own_replay(SLOW, "--drain-delay", "600", "--drain-timeout", "20")
    started = time.monotonic()
    server.terminate()
    figures.bar("not ready after SIGTERM, with a delay, in", not_ready_after(server, started) * 1e3, 100, "ms")
    for _ in range(3):
        answer = server.post("/v1/completions", {"prompt": "hi"})
        assert answer.status_code == 200 and answer.headers.get("connection") != "close"
    status = Admin(server).status()
    assert status["phase"] == "draining" and status["live"] and status["reason"] == "draining"
    server.terminate()  # second: not another 600 s
    assert server.process.wait(20) == 128 + signal.SIGTERM


def test_f14_the_admin_route_drains_too(own_replay):
    server = own_replay(SLOW, "--drain-timeout", "60")
    stream = open_stream(server, "finite")
    head = first_bytes(stream)
    admin = Admin(server)
    answer = admin.post("/drain")
    assert answer.status == 202 and answer.json() == {"status": "draining"}
    assert admin.get("/readyz").status == 503 and admin.get("/livez").status == 200
    assert admin.post("/drain").status == 202  # again: no second signal
    assert admin.post("/reload").status == 503
    assert rest_of(stream, head).count(b'"text":"a') == 60
    assert server.process.wait(60) == 0
