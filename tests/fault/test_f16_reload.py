"""F16: reloads under load: valid, invalid and half-written files, one after the other. Nothing is dropped, nothing leaks,
and what is in force is always one of the whole configurations."""

import http.client
import json
import os
import random
import threading
import time

from harness.admin import Admin
from harness.figures import SOAK, percentile
from harness.process import descriptors, rss_bytes, sanitized, threads
from harness.script import script, says
from harness.wait import wait_until

ROUNDS = 1_000 if SOAK else 50
SLOW = script(says(*["a"] * 30, when="finite", delay_ms=3), says("ok"), num_blocks=4096)


def configuration(generation):
    """Name and key belong together: an answer that mixes two generations would show it."""
    return (f'served-model-name = ["model-{generation}", "always"]\napi-key = ["sk-always", "sk-{generation}"]\n'
            f'default-max-tokens = {100 + generation}\nlog-level = "{("info", "warning")[generation % 2]}"\n')


BROKEN = ["half", "unknown", "value", "key"]


def broken(kind, text, rng):
    if kind == "half":
        # Cut at any quote but the last: in a string or in a list, which is no TOML.
        return text[: rng.choice([i for i, c in enumerate(text) if c == '"'][:-1]) + 1]
    if kind == "unknown":
        return text + "no-such-option = 1\n"
    if kind == "value":
        return text + "max-num-seqs = -1\n"
    return text.replace("sk-always", "sk always ")  # ends in a blank


class Load(threading.Thread):
    """Streams, one after the other, each checked to be whole."""

    def __init__(self, server):
        super().__init__()
        self.server, self.done, self.served, self.failures = server, threading.Event(), 0, []

    def run(self):
        while not self.done.is_set():
            try:
                self.one()
                self.served += 1
            except Exception as error:  # noqa: BLE001  whatever it is, the test shows it
                self.failures.append(repr(error))

    def one(self):
        connection = http.client.HTTPConnection("127.0.0.1", self.server.port, timeout=60)
        body = {"model": "always", "prompt": "finite", "stream": True}
        connection.request("POST", "/v1/completions", json.dumps(body), {"Authorization": "Bearer sk-always"})
        answer = connection.getresponse()
        data = answer.read()
        assert answer.status == 200, data
        assert data.count(b'"text":"a') == 30 and data.endswith(b"data: [DONE]\n\n"), data[-200:]


def test_f16_reloads_under_load(own_replay, tmp_path, figures):
    seed = int(os.environ.get("OMNIBUS_TEST_SEED", time.time_ns() % 2**32))
    print(f"F16: seed {seed}")
    rng = random.Random(seed)
    path = tmp_path / "omnibus.toml"
    path.write_text(configuration(0))
    server = own_replay(SLOW, "--config", str(path))
    admin, pid = Admin(server), server.process.pid
    load = [Load(server) for _ in range(4)]
    for each in load:
        each.start()
    wait_until(lambda: all(each.served for each in load), 60, "load")

    def in_force():
        connection = http.client.HTTPConnection("127.0.0.1", server.port, timeout=30)
        connection.request("GET", "/v1/models", headers={"Authorization": "Bearer sk-always"})
        return json.loads(connection.getresponse().read())["data"][0]["id"]

    generation, times, baseline = 0, [], None
    for turn in range(1, ROUNDS + 1):
        text = configuration(turn)
        kind = rng.choice(BROKEN) if turn % 3 == 0 else None
        path.write_text(broken(kind, text, rng) if kind else text)
        at = time.monotonic()
        answer = admin.post("/reload")
        times.append(time.monotonic() - at)
        assert answer.status == (400 if kind else 200), (seed, turn, kind, answer.text)
        generation = generation if kind else turn
        assert in_force() == f"model-{generation}", (seed, turn, kind)
        if turn == ROUNDS // 4:
            baseline = rss_bytes(pid), threads(pid)
    for each in load:
        each.done.set()
    for each in load:
        each.join(60)
    assert not [f for each in load for f in each.failures]
    good = ROUNDS - ROUNDS // 3
    assert server.metric("omnibus_config_reloads_total", result="success") == good
    assert server.metric("omnibus_config_reloads_total", result="error") == ROUNDS // 3
    assert admin.status()["config"]["generation"] == good + 1
    wait_until(lambda: descriptors(pid) < 60, 20, "descriptors back")
    figures.note(f"{ROUNDS} reloads, {sum(each.served for each in load)} streams, 0 dropped, "
                 f"{1e3 * percentile(times, 0.5):.1f} ms a reload")
    figures.bar("memory after the last reload, of that after the first quarter", rss_bytes(pid) / baseline[0], 1.05, "times")
    assert threads(pid) == baseline[1]
    assert rss_bytes(pid) - baseline[0] < 32 * 2**20 or sanitized()
    assert server.stop(30) == 0
