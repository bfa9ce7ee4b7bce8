"""F8 over gRPC: a client that resets its stream, closes its connection or lets its deadline pass frees its KV blocks."""

import random
import time

import pytest

from harness.figures import SOAK, percentile
from harness.metrics import RUNNING, WAITING, Metrics
from harness.script import script, says
from harness.wait import wait_until

grpc_client = pytest.importorskip("harness.grpc_client", reason="there is no gRPC door")

ROUNDS = 1000 if SOAK else 50
STEP_MS = 2


@pytest.fixture(scope="module")
def server(pool):
    return pool(script(says("x", when="endless", eos=False, delay_ms=STEP_MS), says("ok")), "--grpc-port", "0",
                "--max-num-seqs", "2", "--max-num-batched-tokens", "16")


class Leaver:
    """Calls and leaves, every tenth time with the state made sure of and the return of the blocks timed."""

    def __init__(self, server, how, state, rng):
        self.server, self.how, self.state, self.rng = server, how, state, rng
        self.metrics = Metrics(server)
        self.client = grpc_client.Client(server)
        self.times = []  # ms

    def call(self, client, text, timeout=60):
        request = client.generate_request(f"{self.rng.random()} endless {text}", max_tokens=3000, ignore_eos=True)
        return client.call("Generate", request, timeout=timeout)

    def round(self, sure):
        client = grpc_client.Client(self.server) if self.how == "close" else self.client
        holders = [self.call(self.client, "") for _ in range(2 if sure and self.state == "queue" else 0)]
        if holders:
            wait_until(lambda: self.metrics(RUNNING) == 2, 10, "two running")
        timeout = self.rng.uniform(0.02, 0.1) if self.how == "deadline" else 60
        call = self.call(client, "y" * 3000 if self.state == "prefill" else "", timeout)
        if sure and self.how != "deadline":
            self.await_state(call)
        for holder in holders:
            holder.cancel()
        start = time.monotonic()
        if self.how == "reset":
            call.cancel()
        elif self.how == "close":
            client.channel.close()
        else:
            assert grpc_client.refusal(lambda: list(call)).code.name == "DEADLINE_EXCEEDED"
            start = time.monotonic()  # from when the client heard of it
        if sure:
            wait_until(self.metrics.balanced, 10, f"blocks back\n{self.server.log()}")
            self.times.append(1000 * (time.monotonic() - start))

    def await_state(self, call):
        if self.state == "queue":
            wait_until(lambda: self.metrics(WAITING) == 1, 10, "one waiting")
        elif self.state == "prefill":
            wait_until(lambda: self.metrics(RUNNING) == 1, 10, "one running")
        else:
            next(iter(call))

    def close(self):
        self.client.channel.close()
        self.metrics.close()


@pytest.mark.parametrize("how", ["reset", "close", "deadline"])
@pytest.mark.parametrize("state", ["queue", "prefill", "decode"])
def test_f8_blocks_return(server, how, state, figures):
    seed = random.randrange(2**32)
    print("seed", seed)
    leaver = Leaver(server, how, state, random.Random(seed))
    wait_until(leaver.metrics.balanced, 10, "idle at the start")
    for i in range(ROUNDS):
        leaver.round(i % 10 == 0)
    wait_until(leaver.metrics.balanced, 2, f"idle after {ROUNDS} calls were left (seed {seed})\n{server.log()}")
    assert leaver.metrics("vllm:request_success_total", finished_reason="error") == 0
    server.assert_serves()
    leaver.close()
    figures.note(f"{ROUNDS} left, blocks back after p50 {percentile(leaver.times, 0.5):.1f} ms")
    figures.bar("p90", percentile(leaver.times, 0.9), 100 + STEP_MS, "ms")
