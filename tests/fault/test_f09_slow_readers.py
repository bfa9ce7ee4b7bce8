"""F9: a reader that takes next to nothing neither fills memory nor holds others up, and is let go in the end."""

import json
import socket
import threading
import time

from harness.figures import SOAK, percentile
from harness.metrics import RUNNING, Metrics
from harness.process import descriptors, rss_bytes, sanitized
from harness.raw import connect, request_bytes
from harness.script import script, says
from harness.wait import wait_until

SLOW, FAST = (200, 16) if SOAK else (40, 4)
STALL = 30 if SOAK else 2  # seconds
OUTBOX = 256 << 10  # bytes for one reader before what follows is joined to fewer events


def ask_for_stream(server, prompt, tokens, window=None):
    connection = connect(server, 120)
    if window:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
    body = json.dumps({"prompt": prompt, "stream": True, "max_tokens": tokens}).encode()
    connection.sendall(request_bytes("POST", "/v1/completions", body=body))
    return connection


class SlowReaders(threading.Thread):
    """Take one byte a second each."""

    def __init__(self, connections):
        super().__init__(daemon=True)
        self.connections = connections
        self.stopped = threading.Event()

    def run(self):
        for connection in self.connections:
            connection.setblocking(False)
        while not self.stopped.wait(1):
            for connection in self.connections:
                try:
                    connection.recv(1)
                except (BlockingIOError, ConnectionError):
                    pass

    def stop(self):
        self.stopped.set()
        self.join()
        for connection in self.connections:
            connection.close()


def read_gaps(connection, gaps, texts):
    """Reads a stream as fast as it comes; the seconds between its events."""
    data, last = b"", None
    while not data.endswith(b"0\r\n\r\n"):
        more = connection.recv(65536)
        assert more, "the stream ended early"
        now = time.monotonic()
        if last is not None:
            gaps.append(now - last)
        last = now
        data += more
    texts.append(data.count(b'"text":"y"'))
    connection.close()


def test_f9_slow_beside_fast(own_replay, figures):
    tokens, most = (2000, 9000) if SOAK else (500, 6000)  # of a fast and of a slow reader
    piece = "slow word " * 50
    server = own_replay(
        script(says(piece, when="slow", eos=False, delay_ms=5 if SOAK else 1), says("y", when="fast", eos=False), says("ok"),
               max_model_len=10000, num_blocks=(SLOW + FAST) * most // 16),
        "--max-num-seqs", str(SLOW + FAST), "--stall-timeout", str(STALL), "--max-num-batched-tokens", "1024")
    metrics = Metrics(server)
    server.assert_serves()
    memory, opened, start = rss_bytes(server.process.pid), descriptors(server.process.pid), time.monotonic()
    slow = SlowReaders([ask_for_stream(server, "slow", most, window=4096) for _ in range(SLOW)])
    wait_until(lambda: metrics(RUNNING) == SLOW, 30, "all slow ones run")
    slow.start()
    gaps, texts = [], []
    fast = [threading.Thread(target=read_gaps, args=(ask_for_stream(server, "fast", tokens), gaps, texts)) for _ in range(FAST)]
    for thread in fast:
        thread.start()
    # Nobody takes their text: each slow one is aborted, its blocks come back, long before its answer would have ended.
    drops, peak = [], 0
    while len(drops) < SLOW:
        assert time.monotonic() < start + 20 * STALL + 60, f"only {len(drops)} slow readers were dropped\n{server.log()}"
        gone = int(metrics("vllm:request_success_total", finished_reason="abort"))
        drops += [time.monotonic() - start] * (gone - len(drops))
        peak = max(peak, rss_bytes(server.process.pid) - memory)
        slow.stopped.wait(0.01)
    for thread in fast:
        thread.join(60)
    assert texts == [tokens] * FAST  # every token, each in an event of its own
    wait_until(metrics.balanced, 5, "all blocks back")
    wait_until(lambda: descriptors(server.process.pid) <= opened + 1, 5, "connections closed")  # one is that of the metrics
    slow.stop()
    generated = (metrics("vllm:generation_tokens_total") - FAST * tokens) / SLOW  # for one slow reader
    assert generated < 0.8 * most, "they were dropped too late to be of use"
    server.assert_serves()
    metrics.close()
    assert server.stop() == 0
    figures.note(f"{SLOW} slow readers dropped {min(drops):.1f} to {max(drops):.1f} s after they asked (limit {STALL} s without a byte)")
    figures.note(f"fast readers' p50 {1000 * percentile(gaps, 0.5):.2f} ms, p99 {1000 * percentile(gaps, 0.99):.2f} ms between tokens")
    # The outbox. What waits to follow is text.
    text = generated * len(piece)
    figures.bar("memory a slow reader beyond its text", (peak / SLOW - text) / 1024, OUTBOX / 1024, "KiB")
    assert peak / SLOW < 8 * OUTBOX + text or sanitized()


def test_f9_nobody_waits_for_a_reader_that_sleeps(own_replay, figures):
    """Within its time a reader that takes nothing gets all in the end, in fewer and larger events."""
    piece = "word " * 200  # 1,000 bytes a token
    tokens, readers = 2000 if sanitized() else 8000, 6
    server = own_replay(
        script(says(piece, when="slow", eos=False), says("ok"), max_model_len=20000, num_blocks=20000),
        "--max-num-seqs",
        "16",
        "--stall-timeout",
        "120",
    )
    before = rss_bytes(server.process.pid)
    slow = [ask_for_stream(server, "slow", tokens, window=32768) for _ in range(readers)]
    for _ in range(10):  # others are served meanwhile
        assert server.post("/v1/completions", {"prompt": "hi"}).json()["choices"][0]["text"] == "ok"
    # The engine never waits for them: all is generated while nobody reads.
    wait_until(lambda: server.metric("vllm:num_requests_running") == 0, 60, "all generated")
    grown = (rss_bytes(server.process.pid) - before) / readers
    figures.note(f"{grown / 2**20:.1f} MiB a stream for {tokens * len(piece) / 2**20:.1f} MiB of text")
    assert grown < 4 * tokens * len(piece) or sanitized()  # the text once, its event, and what the allocator keeps
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
