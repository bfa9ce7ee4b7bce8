"""Law 2, one request, one answer: however a server is set up and whatever else it does, the same request gives the same
text, token ids, stop position, usage and logprobs, bit for bit.

A tiny random model that is computed for real. The answers of a server that does one request at a time, whole prompts in one step,
with one thread and room for everything, are held against those of other servers under load.
OMNIBUS_IDENTITY_MODEL=FILE (scripts/soak.sh identity) takes another model, OMNIBUS_IDENTITY_REQUESTS another number of requests."""

import concurrent.futures
import os
import random

import pytest
import requests

from harness.metrics import Metrics
from harness.mixed_requests import Mix, ask_stream, difference, essence, seeded, words
from harness.server import Server, program
from harness.tiny_models import tiny_model
from harness.wait import wait_until

REQUESTS = int(os.environ.get("OMNIBUS_IDENTITY_REQUESTS", "500"))
MODEL = os.environ.get("OMNIBUS_IDENTITY_MODEL")
ROOMY, TIGHT = ("512", "16") if MODEL else ("64", "1")  # MiB of KV cache
PLAIN = {"--threads": "1", "--max-num-batched-tokens": "512", "--kv-cache-memory": ROOMY, "--max-num-seqs": "32",
         "--enable-prefix-caching": "false", "--async-scheduling": "false"}
# Name -> flags that differ, and requests at a time.
SERVERS = {
    "batch of 32": ({}, 32),
    "chunks of 16": ({"--max-num-batched-tokens": "16", "--max-num-seqs": "16"}, 16),
    "chunks of 64": ({"--max-num-batched-tokens": "64"}, 32),
    "two threads": ({"--threads": "2"}, 32),
    "preemption": ({"--kv-cache-memory": TIGHT}, 32),
    "prefix hits": ({"--enable-prefix-caching": "true"}, 32),
    "asynchronous": ({"--async-scheduling": "true"}, 32),
    "priority": ({"--scheduling-policy": "priority"}, 32),
    "all together": ({"--max-num-batched-tokens": "48", "--threads": "2", "--kv-cache-memory": TIGHT, "--scheduling-policy": "priority",
                      "--enable-prefix-caching": "true", "--async-scheduling": "true"}, 32),
}


def start(model, changes):
    flags = []
    for flag, value in {**PLAIN, **changes}.items():
        flags += [flag if value == "true" else "--no-" + flag[2:]] if value in ("true", "false") else [flag, value]
    return Server([program("omnibus"), "serve", str(model), "--max-model-len", "512", "--seed", "7",
                   "--max-waiting-requests", "100000", "--max-waiting-tokens", "100000000", *flags])


def random_requests(rng, count):
    """Prompts of 1 to 200 words, many of which begin alike."""
    beginnings = [words(rng, n) for n in (20, 60, 120)]
    mix = Mix(range(300, 500), ["e", "th", " the", "a", "er"], most_tokens=24)
    for _ in range(count):
        text = (rng.choice(beginnings) + " " if rng.random() < 0.5 else "") + words(rng, rng.choice([1, 4, 30, 80]))
        yield mix.request(rng, text)


@pytest.fixture(scope="module")
def solo():
    """(model, seed, [(request, its answer alone)])"""
    model = MODEL or tiny_model("tiny_type_q4_1")
    seed, rng = seeded()
    server = start(model, {})
    answers = []
    session = requests.Session()
    for route, body in random_requests(rng, REQUESTS):
        answer = session.post(server.url + route, json=body, timeout=120)
        assert answer.status_code == 200, (body, answer.text)
        answers.append(((route, body), essence(answer.json())))
    kinds = len({repr(answer) for _, answer in answers})
    assert kinds > len(answers) * 0.7, f"{kinds} kinds of answers: too few to compare"
    session.close()
    assert server.stop() == 0
    server.close()
    return model, seed, answers


@pytest.mark.parametrize("name", SERVERS)
def test_law2_same_answers(solo, name):
    model, seed, answers = solo
    changes, at_once = SERVERS[name]
    server = start(model, changes)
    streamed = random.Random(seed)
    jobs = [(request, wanted, streamed.random() < 0.3) for request, wanted in answers]

    def one(job):
        (route, body), wanted, stream = job
        if "priority" in changes.get("--scheduling-policy", ""):
            body = body | {"priority": body["seed"] % 7 - 3}
        if stream:
            whole = ask_stream(server, route, body)
        else:
            answer = server.post(route, body, timeout=120)
            assert answer.status_code == 200, (body, answer.text)
            whole = answer.json()
        got = essence(whole)
        assert got == wanted, f"seed {seed}, {route} {'streamed' if stream else 'whole'} {body}: {difference(wanted, got)}"
        return ((whole["usage"] or {}).get("prompt_tokens_details") or {}).get("cached_tokens", 0)

    with concurrent.futures.ThreadPoolExecutor(at_once) as threads:
        cached = sum(threads.map(one, jobs))
    metrics = Metrics(server)
    wait_until(metrics.balanced, 5, "all blocks back")
    preemptions = metrics("vllm:num_preemptions_total")
    metrics.close()
    print(f"{len(jobs)} requests, {preemptions:.0f} preemptions, {cached} cached tokens")
    # Each setting was seen to be at work.
    assert (preemptions > 0) == (changes.get("--kv-cache-memory") == TIGHT)
    assert (cached > 0) == (changes.get("--enable-prefix-caching") == "true")
    assert server.stop() == 0
    server.close()
