"""F8 (T form): a client that leaves, in whatever way and state, frees its KV blocks."""

import json
import random
import socket
import struct

import pytest

from harness.raw import connect
from harness.script import script, says
from harness.wait import wait_until

ROUNDS = 50
# Prefill in chunks of 16 tokens, 2 running at once: long prompts stay in prefill, the third waits.
FLAGS = ("--max-num-seqs", "2", "--max-num-batched-tokens", "16")


@pytest.fixture(scope="module")
def server(pool):
    return pool(script(says("x", when="endless", eos=False, delay_ms=2), says("ok")), *FLAGS)


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
        connection.settimeout(10)
        try:
            while connection.recv(65536):
                pass  # the server ends the connection
        except ConnectionError:
            pass
        connection.close()


@pytest.mark.parametrize("how", ["fin", "rst", "half-close"])
@pytest.mark.parametrize("state", ["queue", "prefill", "decode"])
def test_f8_blocks_return(server, how, state):
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    print("seed", seed)
    wait_until(server.idle, 10, "idle at the start")
    prompt = "endless" + ("y" * 3000 if state == "prefill" else "")
    for i in range(ROUNDS):
        stream = rng.random() < 0.5
        holders = []
        if state == "queue" and i % 10 == 0:
            holders = [send_request(server, False, "endless") for _ in range(2)]
            wait_until(lambda: server.metric("vllm:num_requests_running") == 2, 10, "two running")
        connection = send_request(server, stream, prompt)
        if i % 10 == 0:  # in that state for certain; the others leave at once, wherever they are
            if state == "queue":
                wait_until(lambda: server.metric("vllm:num_requests_waiting") == 1, 10, "one waiting")
            else:
                wait_until(lambda: server.metric("vllm:num_requests_running") == 1, 10, "one running")
            if state == "decode" and stream:
                connection.recv(1)
        leave(connection, how)
        for holder in holders:
            leave(holder, how)
    wait_until(server.idle, 2, f"idle after {ROUNDS} clients left (seed {seed})\n{server.log()}")
    assert server.metric("vllm:request_success_total", finished_reason="error") == 0
    server.assert_serves()


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
