"""F14 (T form): SIGTERM drains, a second signal ends at once."""

import json
import signal
import subprocess
import time

import requests

from harness.raw import connect, request_bytes
from harness.script import script, says
from harness.server import program
from harness.sse import parse_events
from harness.wait import wait_until

SLOW = script(
    says(*["a"] * 40, when="finite", delay_ms=10),
    says("x", when="endless", eos=False, delay_ms=5),
    says("ok"),
    max_model_len=100000,
    num_blocks=20000,
)


def start_stream(server, prompt):
    body = json.dumps({"prompt": prompt, "stream": True, "max_tokens": 90000}).encode()
    connection = connect(server, 30)
    connection.sendall(request_bytes("POST", "/v1/completions", body=body))
    first = connection.recv(65536)
    assert first.startswith(b"HTTP/1.1 200"), first
    return connection, first


def read_events(connection, data):
    while more := connection.recv(65536):
        data += more
    head, body = data.split(b"\r\n\r\n", 1)
    text, at = b"", 0
    while True:  # chunks
        end = body.index(b"\r\n", at)
        size = int(body[at:end], 16)
        if size == 0:
            return parse_events(text.decode())
        text += body[end + 2 : end + 2 + size]
        at = end + 2 + size + 2


def health(server):
    """Status of /health on a new connection; 0 when nobody answers."""
    try:
        return requests.get(server.url + "/health", timeout=2).status_code
    except requests.ConnectionError:
        return 0


def test_f14_streams_finish_and_new_work_is_refused(own_replay):
    server = own_replay(SLOW, "--drain-timeout", "20")
    streams = [start_stream(server, "finite") for _ in range(8)]
    started = time.monotonic()
    server.terminate()
    wait_until(lambda: health(server) == 503, 5, "not ready")
    print(f"not ready after {time.monotonic() - started:.3f} s (bar 0.1)")
    answer = server.chat("hi")
    assert answer.status_code == 503 and int(answer.headers["retry-after"]) >= 1
    assert answer.headers["connection"] == "close"
    assert answer.json()["error"]["type"] == "unavailable_error"
    for connection, first in streams:
        events = read_events(connection, first)
        assert "".join(c["text"] for e in events for c in e["choices"]) == "a" * 40
    assert server.process.wait(20) == 0


def test_f14_what_does_not_finish_in_time_gets_an_error_event(own_replay):
    server = own_replay(SLOW, "--drain-timeout", "1")
    connection, first = start_stream(server, "endless")
    server.terminate()
    events = read_events(connection, first)
    assert events[-1]["error"]["type"] == "unavailable_error"
    assert server.process.wait(10) == 0


def test_f14_a_second_signal_ends_at_once(own_replay):
    for first, second in ((signal.SIGTERM, signal.SIGTERM), (signal.SIGINT, signal.SIGTERM)):
        server = own_replay(SLOW, "--drain-timeout", "60")
        connection, _ = start_stream(server, "endless")  # kept: a closed one would end the drain
        server.process.send_signal(first)
        wait_until(lambda: health(server) == 503, 5, "draining")
        started = time.monotonic()
        server.process.send_signal(second)
        server.process.wait(10)
        assert time.monotonic() - started < 2
        assert server.process.returncode == 128 + second
        connection.close()


def test_who_reads_the_log_may_leave(tmp_path):
    path = tmp_path / "script"
    path.write_text(SLOW)
    command = [program("omnibus-replay"), "--script", str(path), "--port", "0", "--log-level", "debug"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = iter(process.stdout.readline, b"")
    url = next(line.split()[1] for line in lines if line.startswith(b"address")).decode()
    process.stdout.close()
    process.stderr.close()
    body = {"messages": [{"role": "user", "content": "hi"}]}
    for _ in range(3):
        assert requests.post(url + "/v1/chat/completions", json=body, timeout=10).status_code == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_idle_keep_alive_connections_do_not_hold_the_end_up(own_replay):
    server = own_replay(SLOW, "--drain-timeout", "20")
    idle = [connect(server) for _ in range(5)]
    for connection in idle:
        connection.sendall(request_bytes())
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 3
