"""F19: the wall clock jumps, and everything stands still for a while: no time-out fires for either."""

import json
import os
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from h2.events import ConnectionTerminated, DataReceived, StreamEnded, StreamReset

from harness.figures import SOAK
from harness.grpc_client import Client
from harness.raw import connect, read_answer, request_bytes
from harness.raw_http2 import RawConnection
from harness.script import script, says
from harness.server import Server, replay_command
from harness.wait import wait_until

PAUSE, LIMIT = 60 if SOAK else 6, "5"
SLOW = script(
    says("x", when="endless", eos=False, delay_ms=5),
    says(*["a"] * 100, when="finite", delay_ms=10),
    says("ok"),
    max_model_len=100000,
    num_blocks=20000,
)


def faketime_library():
    (library,) = Path("/usr/lib").glob("*/faketime/libfaketimeMT.so.1")  # of scripts/packages.txt
    return str(library)


def open_stream(server, prompt):
    connection = connect(server, 60 + PAUSE)
    body = json.dumps({"prompt": prompt, "stream": True, "max_tokens": 50000}).encode()
    connection.sendall(request_bytes("POST", "/v1/completions", ["Connection: close"], body))
    assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    return connection


def still_flows(connection):
    """Bytes come that were made after now."""
    connection.setblocking(False)
    try:
        while connection.recv(1 << 20):
            pass
        return False
    except BlockingIOError:
        pass
    finally:
        connection.settimeout(30)
    return len(connection.recv(65536)) > 0


def date_of(server):
    with connect(server) as connection:
        connection.sendall(request_bytes())
        return time.mktime(time.strptime(read_answer(connection)[1]["date"], "%a, %d %b %Y %H:%M:%S GMT"))


def test_f19_the_wall_clock_jumps(tmp_path):
    now = tmp_path / "clock"
    now.write_text("+0")
    script_path = tmp_path / "script"
    script_path.write_text(SLOW)
    env = {**os.environ, "OMNIBUS_HOME": str(tmp_path / "home"), "LD_PRELOAD": faketime_library(),
           "FAKETIME_TIMESTAMP_FILE": str(now), "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1",
           "FAKETIME_NO_CACHE": "1"}
    flags = ["--keep-alive-timeout", "600", "--stall-timeout", "60", "--drain-timeout", "20"]
    server = Server(replay_command(script_path, *flags), env=env)
    try:
        streams = [open_stream(server, "endless") for _ in range(4)]
        idle, half = connect(server), connect(server)
        idle.sendall(request_bytes())
        assert read_answer(idle)[0] == 200
        half.sendall(b"GET /health HTTP/1.1\r\nHo")
        for jump in ("-3600", "+3600", "+0", "+1"):  # the last: a leap second
            before = date_of(server)
            now.write_text(jump)
            if abs(int(jump)) > 1:
                wait_until(lambda: abs(date_of(server) - before) > 1000, 10, "the jump")
            assert all(still_flows(c) for c in streams), jump
            server.assert_serves()
            idle.sendall(request_bytes())
            assert read_answer(idle)[0] == 200, jump
            answer = server.post("/v1/completions", {"prompt": "finite", "max_tokens": 200}).json()
            assert answer["usage"]["completion_tokens"] == 101, answer["usage"]  # with the end
        half.sendall(b"st: localhost\r\n\r\n")
        assert read_answer(half)[0] == 200
        # A drain's limit is no wall clock's either.
        for connection in streams[1:]:
            connection.close()
        finite = open_stream(server, "finite")
        server.terminate()
        now.write_text("+7200")
        data = b""
        while more := finite.recv(65536):
            data += more
        assert b"data: [DONE]" in data
        streams[0].close()
        assert server.process.wait(30) == 0
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()
        server.close()


def test_f19_everything_stands_still(own_replay, figures):
    """Time-outs shorter than the pause, and nobody is blamed for it."""
    server = own_replay(SLOW, "--header-timeout", LIMIT, "--body-timeout", LIMIT, "--keep-alive-timeout", LIMIT,
                        "--stall-timeout", LIMIT, "--drain-timeout", "20", "--max-num-seqs", "64")
    streams = [open_stream(server, "endless") for _ in range(16)]
    idle, half, bodies = [], [], []
    for _ in range(100):
        idle.append(connect(server))
        half.append(connect(server))
        bodies.append(connect(server))
    for connection in idle:
        connection.sendall(request_bytes())
    for connection in half:
        connection.sendall(b"GET /health HTTP/1.1\r\nHo")
    for connection in bodies:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 15\r\n\r\n{")
    for connection in idle:
        assert read_answer(connection)[0] == 200
    server.process.send_signal(signal.SIGSTOP)
    wait_until(lambda: state_of(server) == "T", 5, "stopped")
    at = time.monotonic()
    wait_until(lambda: time.monotonic() - at > PAUSE, PAUSE + 5)
    server.process.send_signal(signal.SIGCONT)
    answers = {"idle": 0, "half headers": 0, "half bodies": 0}
    groups = {"idle": (idle, request_bytes()), "half headers": (half, b"st: localhost\r\n\r\n"),
              "half bodies": (bodies, b'"prompt":"hi"}')}
    for connections, rest in groups.values():
        for connection in connections:
            try:
                connection.sendall(rest)
            except OSError:
                pass  # it has no answer below
    for name, (connections, _) in groups.items():
        for connection in connections:
            connection.settimeout(30)
            try:
                answers[name] += read_answer(connection)[0] == 200
            except (OSError, socket.timeout):
                pass
    flowing = sum(still_flows(c) for c in streams)
    figures.note(f"after a pause of {PAUSE} s {flowing} of 16 streams flow, answered of 100 each: "
                 f"{', '.join(f'{name} {count}' for name, count in answers.items())}")
    assert flowing == 16 and answers["half headers"] == answers["half bodies"] == 100 and answers["idle"] == 100
    server.assert_serves()
    # The time-outs themselves are still there.
    late = connect(server)
    late.sendall(b"GET /health HTTP/1.1\r\nHo")
    assert read_answer(late)[0] == 408
    for connection in streams:
        connection.close()
    assert server.stop(30) == 0


def take_messages(connection, limit, most=1 << 30):
    """(bytes of messages that came, whether the stream ended) until it is `most` or nothing comes for `limit` s. Opens
    no window."""
    got = 0
    for event in connection.events(limit):
        if isinstance(event, DataReceived):
            got += len(event.data)
            if got >= most:
                break
        elif isinstance(event, (StreamReset, StreamEnded, ConnectionTerminated)):
            return got, True
    return got, False


def test_f19_a_grpc_stream_stands_still(own_replay):
    """A message is on its way over gRPC all through the pause, and nobody is blamed for it."""
    words = script(says("x" * 2000, when="endless", eos=False, delay_ms=1), says("ok"), max_model_len=100000, num_blocks=20000)
    server = own_replay(words, "--grpc-port", "0", "--stall-timeout", LIMIT, "--drain-timeout", "20")
    with Client(server) as client:
        body = client.generate_request("endless", max_tokens=50_000, ignore_eos=True).SerializeToString()
    with RawConnection(server) as connection:
        stream = connection.open(body=body)
        connection.flush()
        got, ended = take_messages(connection, 10, 65_535)
        assert got == 65_535 and not ended  # the window is full, so that a message waits
        server.process.send_signal(signal.SIGSTOP)
        wait_until(lambda: state_of(server) == "T", 5, "stopped")
        at = time.monotonic()
        wait_until(lambda: time.monotonic() - at > PAUSE, PAUSE + 5)
        server.process.send_signal(signal.SIGCONT)
        # Before it is read on, the server's time-outs have their chance.
        assert take_messages(connection, 1) == (0, False)
        connection.h2.acknowledge_received_data(got, stream)
        connection.flush()
        got, ended = take_messages(connection, 10, 1)
        assert got > 0 and not ended
        # The time-out itself is still there.
        assert take_messages(connection, 30)[1]
    assert server.stop(30) == 0


def state_of(server):
    with open(f"/proc/{server.process.pid}/stat") as f:
        return f.read().rsplit(")", 1)[1].split()[0]
