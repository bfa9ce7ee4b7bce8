"""F9 (T form): a reader that takes nothing neither fills memory nor holds others up, and is let go in the end."""

import json
import os
import socket

from harness.raw import connect, request_bytes
from harness.script import script, says
from harness.wait import wait_until


def rss(server):
    with open(f"/proc/{server.process.pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def test_f9_slow_readers(own_replay):
    piece = "word " * 200  # 1,000 bytes a token
    tokens, readers = 8000, 6
    server = own_replay(
        script(says(piece, when="slow", eos=False), says("ok"), max_model_len=20000, num_blocks=20000),
        "--max-num-seqs",
        "16",
    )
    body = json.dumps({"prompt": "slow", "stream": True, "max_tokens": tokens}).encode()
    slow = [connect(server) for _ in range(readers)]
    before = rss(server)
    for connection in slow:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 32768)
        connection.sendall(request_bytes("POST", "/v1/completions", body=body))
    for _ in range(10):  # others are served meanwhile
        assert server.post("/v1/completions", {"prompt": "hi"}).json()["choices"][0]["text"] == "ok"
    # The engine never waits for them: all is generated while nobody reads.
    wait_until(lambda: server.metric("vllm:num_requests_running") == 0, 60, "all generated")
    grown = (rss(server) - before) / readers
    print(f"{grown / 2**20:.1f} MiB a stream for {tokens * len(piece) / 2**20:.1f} MiB of text")
    assert grown < 4 * tokens * len(piece)  # the text once, its event, and what the allocator keeps
    # A reader that wakes up finds every word, in fewer and larger events.
    data = b""
    slow[0].settimeout(30)
    while not data.endswith(b"0\r\n\r\n"):
        more = slow[0].recv(1 << 20)
        assert more, "the stream ended early"
        data += more
    assert data.count(b"data: ") < tokens
    assert sum(line.count(b"word ") for line in data.split(b"\r\n")) >= tokens * 200 - data.count(b"\r\n")
    for connection in slow:
        connection.close()
    assert server.stop() == 0
