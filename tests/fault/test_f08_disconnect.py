"""F8: a client that leaves, in whatever way and state, frees its KV blocks."""

import json
import socket
import struct
import time

import pytest

from harness.leaving import STEP_MS, Leaver, check_blocks_return
from harness.metrics import RUNNING
from harness.raw import connect
from harness.script import script, says
from harness.wait import wait_until

# Prefill in chunks of 16 tokens, 2 running at once: long prompts stay in prefill, the third waits.
FLAGS = ("--max-num-seqs", "2", "--max-num-batched-tokens", "16")


@pytest.fixture(scope="module")
def server(pool):
    return pool(script(says("x", when="endless", eos=False, delay_ms=STEP_MS), says("ok")), *FLAGS)


def send_request(server, stream, prompt, path="/v1/completions", **fields):
    asked = {"messages": [{"role": "user", "content": prompt}]} if "chat" in path else {"prompt": prompt}
    body = json.dumps({**asked, "stream": stream, "max_tokens": 3000, "ignore_eos": True, **fields}).encode()
    connection = connect(server)
    connection.sendall(
        b"POST %s HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (path.encode(), len(body), body)
    )
    return connection


def leave(connection, how):
    if how == "fin":
        connection.close()
    elif how == "rst":
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()
    else:
        connection.shutdown(socket.SHUT_WR)


def see_off(connection):
    """After a half-close the server ends the connection."""
    connection.settimeout(10)
    try:
        while connection.recv(65536):
            pass
    except ConnectionError:
        pass
    connection.close()


class HttpLeaver(Leaver):
    def round(self, sure):
        stream = self.rng.random() < 0.5
        # A prompt of its own: nothing of it is in a prefix cache.
        prompt = f"{self.rng.random()} endless" + ("y" * 3000 if self.state == "prefill" else "")
        holders = [send_request(self.server, False, "endless") for _ in range(2 if sure and self.state == "queue" else 0)]
        if holders:
            wait_until(lambda: self.metrics(RUNNING) == 2, 10, "two running")
        connection = send_request(self.server, stream, prompt)
        if sure:
            self.await_state(lambda: self.await_token(connection, stream))
        for holder in holders:
            leave(holder, self.how)
        start = time.monotonic()
        leave(connection, self.how)
        if sure:
            wait_until(self.metrics.balanced, 10, f"blocks back\n{self.server.log()}")
            self.times.append(1000 * (time.monotonic() - start))
        if self.how == "half-close":
            for each in [connection, *holders]:
                see_off(each)

    def await_token(self, connection, stream):
        if stream:
            connection.recv(1)
        else:
            before = self.metrics("vllm:generation_tokens_total")
            wait_until(lambda: self.metrics("vllm:generation_tokens_total") > before, 10, "a token")


@pytest.mark.parametrize("how", ["fin", "rst", "half-close"])
@pytest.mark.parametrize("state", ["queue", "prefill", "decode"])
def test_f8_blocks_return(server, how, state, figures):
    check_blocks_return(HttpLeaver, server, how, state, figures)


@pytest.mark.parametrize("path", ["/v1/completions", "/v1/chat/completions"])
@pytest.mark.parametrize("stream,fields", [(False, {}), (True, {}), (False, {"n": 2}), (True, {"n": 2}), (False, {"best_of": 2})])
def test_B39_the_client_leaves_in_mid_answer(server, path, stream, fields):
    connection = send_request(server, stream, "endless", path, **fields)
    before = server.metric("vllm:generation_tokens_total")
    wait_until(lambda: server.metric("vllm:generation_tokens_total") > before + 10, 10, "tokens")
    leave(connection, "fin")
    wait_until(server.idle, 1, "idle within 1 s")


def test_pipelined_request_is_not_a_goodbye(server):
    """Bytes that arrive while an answer is made are the next request."""
    body = b'{"prompt":"hi"}'
    one = b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    with connect(server) as connection:
        connection.sendall(one * 5 + b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        data = b""
        while more := connection.recv(65536):
            data += more
    assert data.count(b"HTTP/1.1 200 OK") == 6 and data.count(b'"text":"ok"') == 5
