"""X-Deadline: a request ends when its client stops waiting, queued or running, on every door."""

import json
import time

import pytest
import requests

from harness.prometheus import scrape, total
from harness.raw import connect, request_bytes
from harness.script import says, script
from harness.sse import parse_events
from harness.wait import wait_until

MESSAGES = [{"role": "user", "content": "quick"}]
DOORS = {
    "/v1/chat/completions": {"messages": MESSAGES},
    "/v1/completions": {"prompt": "quick"},
    "/chat/completions": {"messages": MESSAGES},
    "/completion": {"prompt": "quick"},
    "/api/generate": {"model": "replay", "prompt": "quick", "stream": False},
    "/api/chat": {"model": "replay", "messages": MESSAGES, "stream": False},
}
SLOW = script(says("x", when="endless", eos=False, delay_ms=5), says("ok", when="quick"))


def post(server, path, body, deadline):
    return requests.post(server.url + path, json=body, headers={"X-Deadline": deadline}, timeout=30)


def message_of(answer):
    error = answer.json()["error"]
    return error if isinstance(error, str) else error["message"]


@pytest.mark.parametrize("path", DOORS)
def test_in_time_changes_nothing(replay, path):
    server = replay(SLOW)
    for deadline in ("30", "2.5", "604800", "0030.000", "12.50"):
        answer = post(server, path, DOORS[path], deadline)
        assert answer.status_code == 200, answer.text


@pytest.mark.parametrize("path", [*DOORS, "/v1/models"])
def test_a_bad_value_is_400_naming_the_header(replay, path):
    server = replay(SLOW)
    for deadline in ("", "0", "0.0", "-1", "+1", "1e3", "0x10", "1.", ".5", "5s", "1,5", "1 2", "inf", "nan", "604801",
                     "9" * 40, "soon"):
        answer = post(server, path, DOORS[path], deadline) if path in DOORS else requests.get(
            server.url + path, headers={"X-Deadline": deadline}, timeout=10)
        assert answer.status_code == 400, (deadline, answer.text)
        assert "X-Deadline" in message_of(answer), answer.text
    server.assert_serves()


def test_two_of_them_are_400(replay):
    server = replay(SLOW)
    with connect(server) as connection:
        connection.sendall(request_bytes("GET", "/v1/models", ["X-Deadline: 5", "X-Deadline: 6"]))
        assert connection.recv(4096).startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize("path", DOORS)
def test_in_the_queue_it_is_504(own_replay, path):
    """One row, taken by a request that does not end."""
    server = own_replay(SLOW, "--max-num-seqs", "1", "--log-format", "json")
    body = json.dumps({"prompt": "endless", "max_tokens": 4000, "stream": True}).encode()
    with connect(server) as connection:
        connection.sendall(request_bytes("POST", "/v1/completions", body=body))
        wait_until(lambda: server.metric("vllm:num_requests_running") == 1, 10, "running")
        began = time.monotonic()
        answer = post(server, path, DOORS[path], "0.2")
        print(f"504 after {time.monotonic() - began:.3f} s")
        assert answer.status_code == 504 and "deadline" in message_of(answer), answer.text
        assert time.monotonic() - began >= 0.2
        if not path.startswith("/api/"):
            assert answer.headers["x-should-retry"] == "false" if path.startswith("/v1/") else True
        line = wait_until(lambda: server.logged_requests(answer.headers["x-request-id"]), 10, "its line")[0]
        assert line["error"] == "DEADLINE_EXCEEDED" and line["prefill_ms"] == line["decode_ms"] == 0
        assert line["queue_ms"] == line["e2e_ms"] > 0 and line["completion_tokens"] == 0
    wait_until(server.idle, 10, "idle")
    assert total(scrape(server), "omnibus_requests_expired_total") == 1
    assert server.stop() == 0


def test_after_the_first_token_it_is_an_event_and_the_end(own_replay):
    server = own_replay(SLOW)
    body = {"messages": [{"role": "user", "content": "endless"}], "stream": True, "max_tokens": 4000}
    answer = post(server, "/v1/chat/completions", body, "0.3")
    events = parse_events(answer.content.decode())
    assert answer.status_code == 200 and "deadline" in events[-1]["error"]["message"]
    assert any(c["delta"].get("content") for e in events[:-1] for c in e["choices"])
    whole = post(server, "/v1/chat/completions", {**body, "stream": False}, "0.3")
    assert whole.status_code == 504
    last = post(server, "/api/generate", {"model": "replay", "prompt": "endless", "options": {"num_predict": 4000}}, "0.3")
    assert "deadline" in json.loads(last.content.decode().splitlines()[-1])["error"]
    wait_until(server.idle, 10, "idle: its memory is free")
    server.assert_serves()
    assert server.stop() == 0
