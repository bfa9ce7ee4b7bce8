"""F12: more tokens in flight than the KV cache holds. All finish with the answers of an unconstrained run, the oldest
first; two of which each fits alone do not block each other."""

import concurrent.futures
import itertools
import random
import time

from harness.figures import SOAK
from harness.metrics import Metrics
from harness.script import script, says
from harness.wait import wait_until

REQUESTS, LENGTH, BLOCKS = (64, 4096, 512) if SOAK else (16, 512, 64)
ROOMY = REQUESTS * LENGTH // 16 + 64


def behaviours(count, tokens, delay_ms):
    """Each request has an answer of its own that its prompt alone decides."""
    for i in range(count):
        letters = [random.Random(i).choice("abcdefgh") for _ in range(97)]
        yield says(*letters, when=f"<{i}>", eos=False, delay_ms=delay_ms)


def answers(server, prompts, tokens):
    """(answers, order in which they ended) of requests that arrive in order and all at once."""
    metrics = Metrics(server)
    ended = itertools.count()

    def one(prompt):
        answer = server.post("/v1/completions", {"prompt": prompt, "max_tokens": tokens, "return_token_ids": True}, timeout=1200)
        return answer.json()["choices"][0], next(ended)

    with concurrent.futures.ThreadPoolExecutor(len(prompts)) as threads:
        jobs = []
        for i, prompt in enumerate(prompts, 1):
            jobs.append(threads.submit(one, prompt))
            here = lambda: metrics("vllm:num_requests_running") + metrics("vllm:num_requests_waiting")  # noqa: E731
            wait_until(lambda: here() >= i or any(j.done() for j in jobs), 30, f"request {i}")
        results = [job.result() for job in jobs]
    wait_until(metrics.balanced, 5, "all blocks back")
    preemptions = metrics("vllm:num_preemptions_total")
    metrics.close()
    return [choice for choice, _ in results], [place for _, place in results], preemptions


def test_f12_preemption_changes_nothing(own_replay, figures):
    tokens = LENGTH // 2
    prompts = [f"<{i}>" + "p" * (LENGTH - tokens - len(f"<{i}>")) for i in range(REQUESTS)]
    lines = list(behaviours(REQUESTS, tokens, 1))
    flags = ("--max-num-seqs", str(REQUESTS), "--max-num-batched-tokens", "512", "--max-waiting-tokens", "1000000")
    wanted, _, none = answers(own_replay(script(*lines, num_blocks=ROOMY, max_model_len=LENGTH), *flags), prompts, tokens)
    assert none == 0
    server = own_replay(script(*lines, num_blocks=BLOCKS, max_model_len=LENGTH), *flags)
    start = time.monotonic()
    got, places, preemptions = answers(server, prompts, tokens)
    seconds = time.monotonic() - start
    for i, (a, b) in enumerate(zip(got, wanted)):
        assert a == b, f"request {i}"
        assert len(a["token_ids"]) == tokens
    assert preemptions > 0, "nothing was preempted: the test has lost its point"
    # All are of one length: who came earlier ends earlier. Ends of one step may reach the clients in any order.
    assert places[0] == 0 and all(abs(place - i) <= 4 for i, place in enumerate(places)), places
    server.assert_serves()
    figures.note(f"{REQUESTS} x {LENGTH} tokens into {BLOCKS * 16}: {preemptions:.0f} preemptions, {seconds:.1f} s, "
                 f"order of ends off by {max(abs(place - i) for i, place in enumerate(places))} at most")


def test_f12_two_that_each_fit_alone(own_replay, figures):
    """Each takes four fifths of the cache: one waits for the other, both finish."""
    lines = list(behaviours(2, 400, 1))
    server = own_replay(script(*lines, num_blocks=32, max_model_len=512), "--max-num-seqs", "2")
    got, places, preemptions = answers(server, ["<0>", "<1>"], 400)
    for i in range(2):
        letters = [random.Random(i).choice("abcdefgh") for _ in range(97)]
        assert got[i]["text"] == "".join(itertools.islice(itertools.cycle(letters), 400))
    assert places == [0, 1] and preemptions >= 1
    # Once thrown out it waits until the other has ended: not a tug of war.
    assert preemptions <= 3
    figures.note(f"two of 400 tokens into 512: {preemptions:.0f} preemptions")


def test_f12_the_oldest_advances_under_arrivals(own_replay, figures):
    """Newcomers keep coming; the first one's answer is never held up for longer than a few steps."""
    server = own_replay(
        script(says("x", when="first", eos=False, delay_ms=1), says("y", eos=False, delay_ms=1), num_blocks=40, max_model_len=512),
        "--max-num-seqs", "8")
    metrics = Metrics(server)
    with concurrent.futures.ThreadPoolExecutor(9) as threads:
        first = threads.submit(server.post, "/v1/completions", {"prompt": "first", "max_tokens": 400})
        wait_until(lambda: metrics("vllm:num_requests_running") == 1, 10, "the first one runs")
        others = [threads.submit(server.post, "/v1/completions", {"prompt": f"{i}" + "p" * 100, "max_tokens": 200}) for i in range(30)]
        assert len(first.result().json()["choices"][0]["text"]) == 400
        unfinished = sum(not other.done() for other in others)
        assert unfinished >= 10, f"{unfinished}: 30 newcomers were served before the oldest"
        for other in others:
            assert other.result().json()["choices"][0]["text"] == "y" * 200
    figures.note(f"{unfinished} of 30 newcomers were still there when the oldest ended, {metrics('vllm:num_preemptions_total'):.0f} preemptions")
    metrics.close()
