"""F8 over gRPC: a client that resets its stream, closes its connection or lets its deadline pass frees its KV blocks."""

import time

import pytest

from harness import grpc_client
from harness.leaving import STEP_MS, Leaver, check_blocks_return
from harness.metrics import RUNNING
from harness.script import script, says
from harness.wait import wait_until


@pytest.fixture(scope="module")
def server(pool):
    return pool(script(says("x", when="endless", eos=False, delay_ms=STEP_MS), says("ok")), "--grpc-port", "0",
                "--max-num-seqs", "2", "--max-num-batched-tokens", "16")


class GrpcLeaver(Leaver):
    def __init__(self, *arguments):
        super().__init__(*arguments)
        self.client = grpc_client.Client(self.server)

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
            self.await_state(lambda: next(iter(call)))
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

    def close(self):
        self.client.channel.close()
        super().close()


@pytest.mark.parametrize("how", ["reset", "close", "deadline"])
@pytest.mark.parametrize("state", ["queue", "prefill", "decode"])
def test_f8_blocks_return(server, how, state, figures):
    check_blocks_return(GrpcLeaver, server, how, state, figures)
