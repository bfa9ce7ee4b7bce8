"""S16: the state of one request never shows in another's answer. Many mixed requests at once, with cancels, preemption
and reordering, each equal to its run alone; one X-Request-Id for a hundred requests."""

import concurrent.futures
import json
import os
import random

import pytest
import requests

from harness.mixed_requests import LETTERS, Mix, ask_stream, essence
from harness.raw import connect, request_bytes
from harness.script import IM_END, script, says
from harness.wait import wait_until

POSITIONS = 40


def choices(rng):
    """What the model leans to at each position, with a way to end."""
    rows = []
    for _ in range(POSITIONS):
        row = {str(i): round(rng.uniform(-3, 0), 3) for i in rng.sample(LETTERS, 8)}
        row[str(IM_END)] = round(rng.uniform(-6, -3), 3)
        rows.append(row)
    return rows


@pytest.fixture(scope="module")
def server(pool):
    rng = random.Random(16)
    behaviours = [says("a", when=f"kind{i}", eos=False, rows=choices(rng), delay_ms=1) for i in range(6)]
    # Few blocks, and steps long enough for requests to meet: they are preempted and computed again.
    return pool(script(*behaviours, says("ok"), num_blocks=40, max_model_len=512), "--max-num-seqs", "24",
                "--max-num-batched-tokens", "64", "--max-waiting-requests", "1000")


def random_request(rng):
    """(route, body) of a request that repeats: it carries its seed. Prompts of one kind begin alike."""
    return Mix().request(rng, f"kind{rng.randrange(6)} " + "p" * rng.choice([0, 0, 40, 200]))


def leave_in_the_middle(server, route, body):
    connection = connect(server)
    connection.sendall(request_bytes("POST", route, body=json.dumps(body | {"stream": True}).encode()))
    connection.recv(100)
    connection.close()


def test_s16_each_answer_is_its_solo_run(server):
    """OMNIBUS_TEST_MIXED_REQUESTS for more than make test can afford."""
    count = int(os.environ.get("OMNIBUS_TEST_MIXED_REQUESTS", "600"))
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    print("seed", seed)
    kinds = [random_request(rng) for _ in range(max(60, count // 10))]
    solo = []
    with requests.Session() as session:
        for route, body in kinds:
            answer = session.post(server.url + route, json=body, timeout=30)
            assert answer.status_code == 200, (body, answer.text)
            solo.append(answer.json())
    assert len({json.dumps(essence(s)) for s in solo}) > len(solo) / 2  # the kinds do differ
    preempted, hits = server.metric("vllm:num_preemptions_total"), server.metric("vllm:prefix_cache_hits_total")

    def one(index, how):
        route, body = kinds[index]
        if how == "leave":
            return leave_in_the_middle(server, route, body)
        if how == "stream":
            assert essence(ask_stream(server, route, body)) == essence(solo[index]), f"seed {seed}: {body}"
            return None
        answer = server.post(route, body, timeout=60)
        assert answer.status_code == 200, f"seed {seed}: {body}: {answer.text}"
        assert essence(answer.json()) == essence(solo[index]), f"seed {seed}: {body}"
        return None

    jobs = [(rng.randrange(len(kinds)), rng.choice(["whole", "whole", "stream", "leave"])) for _ in range(count)]
    with concurrent.futures.ThreadPoolExecutor(12) as threads:
        for done in [threads.submit(one, *job) for job in jobs]:
            done.result()
    wait_until(server.idle, 10, "idle")
    preempted = server.metric("vllm:num_preemptions_total") - preempted
    hits = server.metric("vllm:prefix_cache_hits_total") - hits
    print(f"{count} requests, {preempted:.0f} preemptions, {hits:.0f} tokens found in the prefix cache")
    assert preempted > 0 and hits > 0, "nothing was preempted, or nothing found: the test has lost its point"
    server.assert_serves()


def test_s16_one_request_id_for_many(server):
    """The client's id is echoed and identifies nothing: answers keep apart, and a cancel ends its own request alone."""
    headers = {"X-Request-Id": "same"}
    rng = random.Random(99)
    kinds = [random_request(rng) for _ in range(20)]
    solo = [server.post(route, body).json() for route, body in kinds]

    def one(i):
        route, body = kinds[i % len(kinds)]
        if i % 5 == 4:
            connection = connect(server)
            data = json.dumps(body | {"stream": True}).encode()
            connection.sendall(request_bytes("POST", route, ["X-Request-Id: same"], data))
            connection.recv(100)
            connection.close()
            return None
        answer = server.post(route, body, headers=headers, timeout=60)
        assert answer.headers["x-request-id"] == "same"
        assert essence(answer.json()) == essence(solo[i % len(kinds)])
        return answer.json()["id"]

    with concurrent.futures.ThreadPoolExecutor(20) as threads:
        ids = [i for i in threads.map(one, range(100)) if i]
    assert len(ids) == 80 and len(set(ids)) == 80 and "same" not in ids
    wait_until(server.idle, 10, "idle")
    server.assert_serves()
