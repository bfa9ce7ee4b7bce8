"""F2 in one process: a step that never ends. The server says so, takes nothing new, and can be ended."""

import json
import signal
import time

import pytest
import requests

from harness.admin import Admin
from harness.raw import connect, request_bytes
from harness.script import script, says
from harness.wait import wait_until

STEP_TIMEOUT = 1
NOTICED = STEP_TIMEOUT + 1
STALLS_AT = 3
HANG = 30  # far more than anything here takes
SCRIPT = script(
    says("s", when="stalls", eos=False, fault={"at": STALLS_AT, "kind": "stall"}),
    says("x", when="endless", eos=False, delay_ms=2),
    says("ok"),
)
EXIT_FAILURE = 1


def start(own_replay, *flags, step_timeout=STEP_TIMEOUT):
    return own_replay(SCRIPT, "--step-timeout", str(step_timeout), "--max-num-seqs", "8", *flags)


def open_stream(server, prompt):
    body = json.dumps({"prompt": prompt, "stream": True, "max_tokens": 1000}).encode()
    connection = connect(server, HANG)
    connection.sendall(request_bytes("POST", "/v1/completions", body=body))
    return connection


def read_until(connection, mark):
    data = b""
    while mark not in data:
        more = connection.recv(65536)
        assert more, data
        data += more
    return data


def probe(server, path):
    answer = requests.get(server.url + path, timeout=10)
    return answer.status_code, answer.json()["error"]["reason"] if answer.status_code == 503 else ""


def stall(server):
    """(an open stream whose step never ends, what came of it, when its last token came)"""
    connection = open_stream(server, "stalls")
    data = b""
    while data.count(b'"text":"s') < STALLS_AT:
        more = connection.recv(65536)
        assert more, data
        data += more
    return connection, data, time.monotonic()


def stalled(server):
    return probe(server, "/livez") == (503, "stalled")


def test_f02_the_server_says_so_and_takes_nothing_new(own_replay):
    server = start(own_replay, "--drain-timeout", "1")
    other = open_stream(server, "endless")
    other_data = read_until(other, b'"text":"x')
    connection, data, since = stall(server)
    wait_until(lambda: stalled(server), HANG, "a stall")
    print(f"F2: /livez says stalled {time.monotonic() - since:.2f} s after the last token (bar {NOTICED})")
    for path in ("/livez", "/readyz", "/health"):
        assert probe(server, path) == (503, "stalled"), path
    status = Admin(server).status()
    assert not status["live"] and not status["ready"] and status["reason"] == "stalled"
    for _ in range(3):
        refused = server.post("/v1/completions", {"prompt": "hi"})
        assert refused.status_code == 503 and int(refused.headers["Retry-After"]) >= 1, refused.text
    # The process is the unit that restarts: SIGTERM ends it although the step does not end.
    since = time.monotonic()
    server.terminate()
    for stream, got in ((connection, data), (other, other_data)):
        while more := stream.recv(65536):
            got += more
        assert b"[DONE]" not in got and b'"finish_reason":"stop"' not in got, got[-400:]
    assert server.process.wait(HANG) == EXIT_FAILURE, server.log()
    assert "the engine stands still: leaving without it" in server.log()
    print(f"F2: exit {time.monotonic() - since:.1f} s after SIGTERM, with a drain of 1 s")


@pytest.mark.parametrize("drain_timeout,step_timeout,logged", [(600, STEP_TIMEOUT, "draining"),
                                                               (0.1, 600, "the rest was aborted")],
                         ids=["while draining", "after the drain"])
def test_f02_a_second_signal_ends_it_at_once(own_replay, drain_timeout, step_timeout, logged):
    """Also when the drain is over and only the step is waited for, which nobody calls a stall yet."""
    server = start(own_replay, "--drain-timeout", str(drain_timeout), step_timeout=step_timeout)
    stall(server)
    server.terminate()
    wait_until(lambda: logged in server.log(), HANG, logged)
    since = time.monotonic()
    server.process.send_signal(signal.SIGINT)
    assert server.process.wait(HANG) == 128 + signal.SIGINT, server.log()
    print(f"F2: exit {(time.monotonic() - since) * 1e3:.0f} ms after the second signal (bar 2,000)")


def test_f02_an_idle_engine_is_no_stall(own_replay):
    server = start(own_replay)
    server.assert_serves()
    until = time.monotonic() + 2.5 * STEP_TIMEOUT
    while time.monotonic() < until:  # longer than a step may take
        assert probe(server, "/livez") == (200, "") and probe(server, "/readyz") == (200, "")
        time.sleep(0.05)
    server.assert_serves()
    assert server.stop() == 0
