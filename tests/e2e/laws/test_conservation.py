"""Law 6, conservation, over HTTP: usage is what was delivered, and the server's counters are what its clients counted."""

import concurrent.futures
import random

import pytest

from harness.metrics import Metrics, total
from harness.mixed_requests import LETTERS, Mix, ask_stream, seeded
from harness.script import IM_END, script, says
from harness.wait import wait_until

REQUESTS = 300


@pytest.fixture(scope="module")
def server(pool):
    rng = random.Random(6)
    rows = [{str(i): round(rng.uniform(-3, 0), 3) for i in rng.sample(LETTERS, 8)} | {str(IM_END): -4} for _ in range(40)]
    # Tokens come one, three or two a step, and few blocks make for preemptions.
    return pool(script(says("a", when="kind0", eos=False, rows=rows, delay_ms=1), says(*"abcdefghij", k=[1, 3, 2], delay_ms=1),
                       num_blocks=48, max_model_len=512),
                "--max-num-seqs", "16", "--max-num-batched-tokens", "64", "--max-waiting-requests", "1000")


def delivered(answer):
    """Token ids that the choices of an answer brought."""
    return sum(len(choice.get("token_ids") or []) for choice in answer["choices"])


def test_law6_usage_is_what_was_delivered_and_metrics_are_what_clients_count(server):
    seed, rng = seeded()
    mix = Mix()
    wanted = [mix.request(rng, f"kind{rng.randrange(2)} " + "p" * rng.choice([0, 30, 150])) for _ in range(REQUESTS)]
    how = [rng.random() < 0.5 for _ in wanted]
    metrics = Metrics(server)
    before = metrics.scrape()

    def one(job):
        (route, body), stream = job
        if stream:
            return body, ask_stream(server, route, body)
        answer = server.post(route, body, timeout=60)
        assert answer.status_code == 200, (body, answer.text)
        return body, answer.json()

    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(one, zip(wanted, how)))
    wait_until(metrics.balanced, 5, "all blocks back")
    counted = {"prompt": 0, "generation": 0, "stop": 0, "length": 0}
    for (body, answer), stream in zip(answers, how):
        usage = answer["usage"]
        assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
        assert len(answer["choices"]) == body.get("n", 1)
        echoed = body.get("echo") is True
        if not echoed:  # there the prompt's ids stand before the answer's
            assert usage["completion_tokens"] == delivered(answer), f"seed {seed}, streamed {stream}: {body}: {answer}"
        counted["prompt"] += usage["prompt_tokens"]
        counted["generation"] += usage["completion_tokens"]
        for choice in answer["choices"]:
            counted[choice["finish_reason"]] += 1
    after = metrics.scrape()

    def grown(name, **labels):
        return total(after, name, **labels) - total(before, name, **labels)

    metrics.close()
    assert grown("vllm:prompt_tokens_total") == counted["prompt"], f"seed {seed}"
    assert grown("vllm:generation_tokens_total") == counted["generation"], f"seed {seed}"
    for reason in ("stop", "length"):
        assert grown("vllm:request_success_total", finished_reason=reason) == counted[reason], f"seed {seed}"
    for reason in ("abort", "error"):
        assert grown("vllm:request_success_total", finished_reason=reason) == 0, f"seed {seed}"
    choices = counted["stop"] + counted["length"]
    assert grown("vllm:e2e_request_latency_seconds_count") == choices
    assert grown("vllm:time_to_first_token_seconds_count") == choices
    assert grown("vllm:num_preemptions_total") > 0, "nothing was preempted: the test has lost its point"
    print(f"{REQUESTS} requests, {choices} choices, {counted}")
