"""F8: clients that leave, over whatever door: the rounds, what is timed, and what must hold afterwards."""

import random

from harness.figures import SOAK, percentile
from harness.metrics import RUNNING, WAITING, Metrics
from harness.wait import wait_until

ROUNDS = 1000 if SOAK else 50
STEP_MS = 2  # of the scripted model


class Leaver:
    """Sends requests and leaves them. A door adds `round(sure)`; where `sure`, the request's state is made sure of before it
    is left, and the return of its blocks timed."""

    def __init__(self, server, how, state, rng):
        self.server, self.how, self.state, self.rng = server, how, state, rng
        self.metrics = Metrics(server)
        self.times = []  # ms until all blocks were back

    def await_state(self, await_token):
        if self.state == "queue":
            wait_until(lambda: self.metrics(WAITING) == 1, 10, "one waiting")
        elif self.state == "prefill":
            wait_until(lambda: self.metrics(RUNNING) == 1, 10, "one running")
        else:
            await_token()

    def close(self):
        self.metrics.close()


def check_blocks_return(kind, server, how, state, figures):
    seed = random.randrange(2**32)
    print("seed", seed)
    leaver = kind(server, how, state, random.Random(seed))
    wait_until(leaver.metrics.balanced, 10, "idle at the start")
    for i in range(ROUNDS):
        leaver.round(sure=i % 10 == 0)
    wait_until(leaver.metrics.balanced, 2, f"idle after {ROUNDS} clients left (seed {seed})\n{server.log()}")
    assert leaver.metrics("vllm:request_success_total", finished_reason="error") == 0
    server.assert_serves()
    leaver.close()
    figures.note(f"{ROUNDS} left, blocks back after p50 {percentile(leaver.times, 0.5):.1f} ms")
    # Not the maximum: a poll may meet a busy machine.
    figures.bar("p90", percentile(leaver.times, 0.9), 100 + STEP_MS, "ms")
