"""F21: a day's worth of everything at once. Random requests of all kinds, a fifth cancelled, a tenth invalid, a tenth from
clients that vanish, and a fault now and then. Each valid request gets the answer that it gets alone; no block, descriptor,
thread or memory is lost."""

import concurrent.futures
import itertools
import json
import os
import random
import signal
import socket
import struct
import threading
import time

import requests

from harness.figures import SOAK
from harness.flat import Flat
from harness.metrics import Metrics
from harness.mixed_requests import LETTERS, Mix, ask_stream, difference, essence, seeded
from harness.process import descriptors, sanitized
from harness.raw import connect, exchange, request_bytes
from harness.script import IM_END, script, says
from harness.wait import wait_until

REQUESTS, SECONDS = (20_000, 600) if SOAK else (2_000, 0)  # at least so many, for at least so long
SECONDS = int(os.environ.get("OMNIBUS_SOAK_SECONDS", SECONDS))
BATCHES = 10
CLIENTS = 16
FAULT_EVERY = 40  # requests: in each batch one of each kind
FLAGS = ("--max-num-seqs", "12", "--max-num-batched-tokens", "64", "--max-waiting-requests", "1000", "--max-waiting-tokens", "1000000",
         "--stall-timeout", "2",
         "--header-timeout", "1", "--body-timeout", "1", "--keep-alive-timeout", "2", "--max-body-bytes", "1000000")

INVALID = [
    ("/v1/completions", {"prompt": "a", "max_tokens": -5}),
    ("/v1/completions", {"prompt": ""}),
    ("/v1/completions", {"prompt": "a", "n": 1_000_000}),
    ("/v1/completions", {"prompt": "a", "logit_bias": {"99999999": 1}}),
    ("/v1/completions", {"prompt": "x" * 5000}),
    ("/v1/completions", {"prompt": [[1, 2], "a"]}),
    ("/v1/chat/completions", {"messages": []}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "temperature": "hot"}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "stop": [""]}),
    ("/v1/chat/completions", {"messages": "hello"}),
    ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}], "model": "no such model"}),
    ("/api/chat", {"model": "replay", "messages": 5}),
    ("/completion", {"prompt": {"a": 1}}),
    ("/tokenize", {"prompt": 7}),
    ("/no/such/route", {}),
]


def weights(rng):
    rows = [{str(i): round(rng.uniform(-3, 0), 3) for i in rng.sample(LETTERS, 8)} for _ in range(40)]
    for row in rows:
        row[str(IM_END)] = round(rng.uniform(-6, -3), 3)
    return rows


class Traffic:
    """What the clients do, each request by a random number of its own."""

    def __init__(self, server, rng):
        self.server = server
        self.kinds = [self.random_kind(rng) for _ in range(80)]
        self.solo = [self.alone(route, body) for route, body in self.kinds]
        self.counts = {}
        self.lock = threading.Lock()
        self.slowest = 0.0
        self.overdue = 0.0  # seconds that an answer came after its deadline

    @staticmethod
    def random_kind(rng):
        text = f"kind{rng.randrange(6)} " + "p" * rng.choice([0, 0, 40, 200])
        if rng.random() < 0.7:
            return Mix().request(rng, text)
        options = {"seed": rng.randrange(2**31), "num_predict": rng.randrange(1, 30), "temperature": rng.choice([0, 1])}
        return rng.choice([
            ("/api/generate", {"model": "replay", "prompt": text, "stream": False, "options": options}),
            ("/api/chat", {"model": "replay", "messages": [{"role": "user", "content": text}], "stream": False, "options": options}),
            ("/completion", {"prompt": text, "n_predict": options["num_predict"], "seed": options["seed"]}),
            ("/tokenize", {"prompt": text}),
        ])

    def alone(self, route, body):
        answer = self.server.post(route, body)
        assert answer.status_code == 200, (route, body, answer.text)
        return self.what_repeats(route, answer.json())

    @staticmethod
    def what_repeats(route, answer):
        if route.startswith("/v1/"):
            return essence(answer)
        if route == "/tokenize":
            return answer
        return [answer.get(key) for key in ("response", "message", "content", "eval_count", "prompt_eval_count", "tokens_predicted", "done_reason", "stop_type")]

    def one(self, seed):
        rng = random.Random(seed)
        what = rng.choices([self.valid, self.late, self.cancelled, self.invalid, self.vanished], [57, 3, 20, 10, 10])[0]
        start = time.monotonic()
        what(rng)
        with self.lock:
            self.counts[what.__name__] = self.counts.get(what.__name__, 0) + 1
            self.slowest = max(self.slowest, time.monotonic() - start)

    def valid(self, rng):
        index = rng.randrange(len(self.kinds))
        route, body = self.kinds[index]
        if route.startswith("/v1/") and rng.random() < 0.4:
            got = essence(ask_stream(self.server, route, body))
        else:
            answer = self.server.post(route, body, timeout=60)
            assert answer.status_code == 200, (body, answer.text)
            got = self.what_repeats(route, answer.json())
        wanted = self.solo[index]
        assert got == wanted, f"{route} {body}: {difference(wanted, got) if route.startswith('/v1/') else (wanted, got)}"

    def late(self, rng):
        """More than can be made in the time that the client waits."""
        deadline = rng.choice([0.01, 0.05, 0.2])
        start = time.monotonic()
        answer = self.server.post("/v1/completions", {"prompt": "kind0 late", "max_tokens": 450, "ignore_eos": True},
                                  headers={"X-Deadline": str(deadline)})
        over = time.monotonic() - start - deadline
        assert answer.status_code == 504, answer.text
        with self.lock:
            self.overdue = max(self.overdue, over)

    def cancelled(self, rng):
        route, body = self.kinds[rng.randrange(len(self.kinds))]
        body = body | {"stream": rng.random() < 0.7}
        with connect(self.server, 30) as connection:
            connection.sendall(request_bytes("POST", route, body=json.dumps(body).encode()))
            if body["stream"]:
                connection.recv(rng.choice([1, 100, 1000]))
            if rng.random() < 0.3:
                connection.shutdown(socket.SHUT_WR)

    def invalid(self, rng):
        if rng.random() < 0.2:
            status, _, _ = exchange(self.server, rng.choice([b"\x00\x01\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"POST /v1/completions HTTP/1.1\r\n"
                                                             b"Host: x\r\nContent-Length: -1\r\n\r\n"]))
            assert 400 <= status < 600, status
            return
        route, body = rng.choice(INVALID)
        answer = self.server.post(route, body)
        assert 400 <= answer.status_code < 500, (route, str(body)[:100], answer.text)

    def vanished(self, rng):
        route, body = self.kinds[rng.randrange(len(self.kinds))]
        data = request_bytes("POST", route, body=json.dumps(body).encode())
        connection = connect(self.server, 30)
        connection.sendall(data[: rng.randrange(1, len(data) + 1)])
        if rng.random() < 0.5:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        connection.close()

    # Faults.

    def faults(self):
        return [self.pause, self.crowd, self.sleeper, self.not_a_number, self.too_much]

    def fault(self, what, seed):
        what(random.Random(seed))
        with self.lock:
            self.counts[what.__name__] = self.counts.get(what.__name__, 0) + 1

    def pause(self, rng):
        self.server.process.send_signal(signal.SIGSTOP)
        time.sleep(rng.uniform(0.01, 0.2))
        self.server.process.send_signal(signal.SIGCONT)

    def crowd(self, rng):
        """Connections that say nothing, or half of it."""
        crowd = [connect(self.server, 30) for _ in range(50)]
        for connection in crowd:
            connection.sendall(rng.choice([b"", b"GET /he", b"POST /v1/completions HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n{"]))
        for connection in crowd:
            connection.close()

    def sleeper(self, rng):
        """Asks for a stream, takes nothing of it for a while, and is given all the same."""
        body = {"prompt": "kind0 sleeper", "stream": True, "max_tokens": 100, "ignore_eos": True}
        with connect(self.server, 30) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            connection.sendall(request_bytes("POST", "/v1/completions", body=json.dumps(body).encode()))
            time.sleep(rng.uniform(0.1, 0.5))
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                more = connection.recv(65536)
                assert more, f"the stream ended early: {data[-300:]}"
                data += more
            assert b"data: [DONE]\n\n" in data

    def not_a_number(self, rng):
        answer = self.server.post("/v1/completions", {"prompt": "kind-nan", "max_tokens": 10})
        assert answer.status_code == 500 and answer.json()["error"]["type"] == "server_error", answer.text

    def too_much(self, rng):
        try:
            answer = self.server.post("/v1/completions", {"prompt": "x" * rng.choice([900_000, 2_000_000])})
            assert answer.status_code in (400, 413), answer.status_code
        except requests.ConnectionError:
            pass  # refused while it was still being sent


def run_batch(traffic, rng, count):
    """Requests and faults of one batch; afterwards the ledger is balanced."""
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as threads, concurrent.futures.ThreadPoolExecutor(1) as faults:
        jobs = [threads.submit(traffic.one, rng.randrange(2**63)) for _ in range(count)]
        kinds = itertools.cycle(traffic.faults())
        jobs += [faults.submit(traffic.fault, next(kinds), rng.randrange(2**63)) for _ in range(count // FAULT_EVERY)]
        for job in jobs:
            job.result()


def test_f21_soak(own_replay, figures):
    seed, rng = seeded()
    behaviours = [says("a", when=f"kind{i}", eos=False, rows=weights(rng), delay_ms=1) for i in range(6)]
    nan = says(*"abcde", when="kind-nan", fault={"at": 3, "kind": "nan"})
    server = own_replay(script(nan, *behaviours, says("ok"), num_blocks=40, max_model_len=512), *FLAGS)
    traffic = Traffic(server, rng)
    metrics = Metrics(server)
    opened = descriptors(server.process.pid)
    for fault in 3 * traffic.faults():  # none of them is the first of its kind after the 10 % mark
        traffic.fault(fault, rng.randrange(2**63))
    start, done, flat = time.monotonic(), 0, None
    while done < REQUESTS or time.monotonic() - start < SECONDS:
        run_batch(traffic, rng, REQUESTS // BATCHES)
        done += REQUESTS // BATCHES
        wait_until(metrics.balanced, 10, f"a balanced ledger after {done} requests (seed {seed})\n{server.log()}")
        wait_until(lambda: descriptors(server.process.pid) <= opened, 10, f"closed connections after {done} requests (seed {seed})")
        if done >= REQUESTS / 10 and time.monotonic() - start >= SECONDS / 10:
            flat = flat or Flat(server)  # from the 10 % mark on
    seconds, growth = time.monotonic() - start, flat.growth()
    assert metrics("vllm:num_preemptions_total") > 0
    assert metrics("vllm:request_success_total", finished_reason="error") == traffic.counts.get("not_a_number", 0)
    server.assert_serves()
    preemptions = metrics("vllm:num_preemptions_total")
    metrics.close()
    assert server.stop() == 0, server.log()
    figures.note(f"{done} requests in {seconds:.1f} s ({', '.join(f'{n} {name}' for name, n in sorted(traffic.counts.items()))}), "
                 f"{preemptions:.0f} preemptions, slowest request {traffic.slowest:.2f} s, seed {seed}")
    figures.bar("answers after their deadline", traffic.overdue, 1, "s")
    assert traffic.overdue < 10
    figures.note(f"RSS {flat.start['rss'] >> 20} MiB at 10 %")
    for kind in ("fds", "threads", "rss"):
        figures.bar(f"{kind} grew", growth[kind], 5, "%")
    assert growth["fds"] <= 5 and growth["threads"] <= 5, growth
    assert growth["rss"] <= 30 or sanitized(), growth
