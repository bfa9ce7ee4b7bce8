"""F11: more than the queue holds is 429 with Retry-After, everybody is answered, and memory does not grow."""

import json
import selectors
import time

import pytest

from harness.figures import SOAK
from harness.metrics import RUNNING, WAITING, Metrics
from harness.process import allow_descriptors, rss_bytes, sanitized
from harness.raw import connect, request_bytes
from harness.script import script, says
from harness.wait import wait_until

REQUESTS, QUEUE, SLOTS = 5000, 256, 32
STORMS = 20 if SOAK else 3
PROMPT = "hello, I wait in a queue"  # 24 byte tokens


def request_of(text):
    body = json.dumps({"prompt": text, "max_tokens": 8}).encode()
    return request_bytes("POST", "/v1/completions", body=body)


class Crowd:
    """Clients that are connected before they all ask at once."""

    def __init__(self, server, count):
        self.connections = [connect(server, 30) for _ in range(count)]
        self.selector = selectors.DefaultSelector()
        self.data = {}
        for connection in self.connections:
            connection.setblocking(False)
            self.selector.register(connection, selectors.EVENT_READ)

    def ask(self, request, limit):
        """(seconds until all had asked, until all were answered, answers): each (status, headers)."""
        self.data = {connection: b"" for connection in self.connections}
        start = time.monotonic()
        for connection in self.connections:
            assert connection.send(request) == len(request)
        asked = time.monotonic() - start
        open_ones = len(self.connections)
        while open_ones:
            left = start + limit - time.monotonic()
            assert left > 0, f"{open_ones} of {len(self.connections)} without an answer after {limit} s"
            for key, _ in self.selector.select(left):
                open_ones -= self._read(key.fileobj)
        return asked, time.monotonic() - start, [self._answer(data) for data in self.data.values()]

    def _read(self, connection):
        """True when its answer is whole."""
        more = connection.recv(65536)
        assert more, f"closed without an answer: {self.data[connection]!r}"
        self.data[connection] += more
        head, end, body = self.data[connection].partition(b"\r\n\r\n")
        length = next((line for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:")), None)
        return bool(end) and len(body) >= int(length.split(b":")[1])

    @staticmethod
    def _answer(data):
        head, _, body = data.partition(b"\r\n\r\n")
        status, *lines = head.decode().split("\r\n")
        headers = dict(line.lower().split(": ", 1) for line in lines)
        return int(status.split()[1]), headers, json.loads(body)

    def close(self):
        self.selector.close()
        for connection in self.connections:
            connection.close()


@pytest.mark.parametrize(
    "kind,limit",
    [("requests", ["--max-waiting-requests", str(QUEUE)]),
     ("tokens", ["--max-waiting-tokens", str(QUEUE * len(PROMPT)), "--max-waiting-requests", "100000"])],
)
def test_f11_storm(own_replay, figures, kind, limit):
    # Each token takes a while: nearly all are still there when the last one asks.
    server = own_replay(script(says("x", eos=False, delay_ms=5)), "--max-num-seqs", str(SLOTS), *limit)
    metrics = Metrics(server)
    allow_descriptors(REQUESTS + 500)
    crowd = Crowd(server, REQUESTS)
    memory, slowest = [], 0
    for _ in range(STORMS):
        asked, answered, answers = crowd.ask(request_of(PROMPT), 60)
        slowest = max(slowest, answered)
        served = [a for a in answers if a[0] == 200]
        refused = [a for a in answers if a[0] == 429]
        assert len(served) + len(refused) == REQUESTS
        # Those that had a place, and those that came when a place was free again.
        assert len(served) >= QUEUE + SLOTS and refused
        for _, headers, body in refused:
            assert int(headers["retry-after"]) >= 1
            assert (body["error"]["code"], body["error"]["type"]) == ("rate_limit_exceeded", "rate_limit_error")
        for _, _, body in served:
            assert body["choices"][0]["text"] == "x" * 8
        wait_until(metrics.balanced, 10, "all blocks back")
        memory.append(rss_bytes(server.process.pid))
    crowd.close()
    server.assert_serves()
    metrics.close()
    assert server.stop() == 0
    mark = max(STORMS // 10, 1)  # of storms: until then the heap finds its size
    growth = 100 * (memory[-1] / memory[mark - 1] - 1)
    figures.note(f"{REQUESTS} requests asked in {asked:.2f} s: {len(served)} served, {len(refused)} refused")
    figures.bar("all answered after", slowest, 2, "s")
    figures.bar(f"RSS growth to storm {STORMS} from storm {mark}", growth, 5, "%")
    assert growth < 30 or sanitized(), memory


def test_f11_the_queue_limit_holds(own_replay):
    """Never more wait than may: with all places taken, the next is refused."""
    server = own_replay(script(says("x", when="endless", eos=False, delay_ms=5), says("ok")), "--max-num-seqs", "1",
                        "--max-waiting-requests", "3")
    metrics = Metrics(server)
    held = []
    for running, waiting in ((1, 0), (1, 1), (1, 2), (1, 3)):
        held.append(connect(server))
        body = b'{"prompt":"endless","max_tokens":3000}'
        held[-1].sendall(request_bytes("POST", "/v1/completions", body=body))
        wait_until(lambda: (metrics(RUNNING), metrics(WAITING)) == (running, waiting), 10, f"{waiting} in the queue")
    for _ in range(20):
        answer = server.chat("hi")
        assert answer.status_code == 429 and int(answer.headers["retry-after"]) >= 1
        assert metrics(WAITING) == 3
    held.pop().close()
    wait_until(lambda: metrics(WAITING) == 2, 10, "a free place")
    for connection in held:
        connection.close()
    wait_until(metrics.balanced, 10, "all blocks back")
    server.assert_serves()
    metrics.close()
