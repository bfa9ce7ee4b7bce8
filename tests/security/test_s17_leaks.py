"""S17: errors carry no addresses and no paths, prompts are not logged, label sets are closed."""

import json
import os
import random
import re

import requests

from harness.raw import exchange, request_bytes
from harness.script import HELLO

POINTER = re.compile(r"0x[0-9a-fA-F]{6,}")
PATH = re.compile(r"(?:/(?:root|home|tmp|usr|etc|var|proc|dev|wt|work|src|build)/)|\.(?:cc|h|so)\b")


def random_value(rng, depth=0):
    kinds = [
        lambda: rng.choice([None, True, False]),
        lambda: rng.choice([0, -1, 2**31, 2**63, 2**64, -(2**63)]),
        lambda: rng.uniform(-1e6, 1e6),
        lambda: "".join(chr(rng.choice([10, 34, 60, 92, 97, 233, 0x6F22, 0x1F600])) for _ in range(rng.randrange(12))),
        lambda: [random_value(rng, depth + 1) for _ in range(rng.randrange(4))] if depth < 4 else [],
        lambda: {rng.choice("abcxyz"): random_value(rng, depth + 1) for _ in range(rng.randrange(4))} if depth < 4 else {},
    ]
    return rng.choice(kinds)()


FIELDS = [
    "messages", "prompt", "temperature", "top_p", "n", "stop", "max_tokens", "logit_bias", "logprobs", "top_logprobs",
    "seed", "stream", "stream_options", "tools", "response_format", "top_k", "min_p", "stop_token_ids", "echo", "tokens",
    "chat_template", "chat_template_kwargs", "allowed_token_ids", "cache_salt", "suffix", "best_of", "model", "user",
]
ROUTES = ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"]


def test_s17_s05_fuzzed_bodies(own_replay):
    """Random bodies: never a 5xx, never a leak, always the error object; the server lives."""
    server = own_replay(HELLO)
    seed = random.randrange(2**32)
    rng = random.Random(seed)
    print("seed", seed)
    base = {
        "/v1/chat/completions": {"messages": [{"role": "user", "content": "hello"}], "max_tokens": 2},
        "/v1/completions": {"prompt": "hello", "max_tokens": 2},
        "/tokenize": {"prompt": "a"},
        "/detokenize": {"tokens": [97]},
    }
    statuses = {}
    with requests.Session() as session:
        for _ in range(1500):
            route = rng.choice(ROUTES)
            body = dict(base[route])
            for _ in range(rng.randrange(1, 4)):
                body[rng.choice(FIELDS)] = random_value(rng)
            if body.get("max_tokens") in (None, -1):
                body["max_tokens"] = 2
            text = json.dumps(body)
            if rng.random() < 0.1:
                at = rng.randrange(len(text))
                text = text[:at] + rng.choice(["", "}", "\\", "\x01", '"']) + text[at + 1 :]
            answer = session.post(server.url + route, data=text.encode(), timeout=30)
            statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
            assert answer.status_code in (200, 400, 404, 413), f"seed {seed}: {text[:500]} -> {answer.text[:500]}"
            if answer.status_code != 200:
                error = answer.json()["error"]
                assert set(error) == {"message", "type", "param", "code"}
                assert not POINTER.search(answer.text), f"seed {seed}: {answer.text}"
                assert not PATH.search(error["message"]), f"seed {seed}: {answer.text}"
                assert len(error["message"]) < 700
    print(statuses)
    assert len(statuses) >= 2
    server.assert_serves()
    assert server.stop() == 0


def test_s17_prompts_are_not_logged(own_replay):
    server = own_replay(HELLO, "--log-level", "debug")
    secret = "zq7-secret-prompt"
    server.chat(secret)
    server.chat(secret, temperature=9)
    server.post("/v1/completions", {"prompt": secret * 2000})
    requests.get(server.url + "/" + secret, headers={"X-Api-Key": secret}, timeout=10)
    assert server.stop() == 0
    assert secret not in server.log()


def test_s17_label_sets_are_closed(own_replay):
    """OMNIBUS_TEST_LABEL_REQUESTS for more than make test can afford."""
    server = own_replay(HELLO)
    rng = random.Random(5)
    count = int(os.environ.get("OMNIBUS_TEST_LABEL_REQUESTS", "3000"))

    def series():
        text = requests.get(server.url + "/metrics", timeout=10).text
        return len([line for line in text.splitlines() if not line.startswith("#")])

    def abuse(count):
        for i in range(count):
            name = "".join(rng.choice("ABCDEFGHIJ") for _ in range(8))
            exchange(server, request_bytes(name, "/" + name))
            exchange(server, request_bytes(name, "/v1/models", [f"Origin: http://{name}"]))
            for path in ("/v1/completions", "/api/generate"):
                headers = [f"X-Request-Id: {name}", f"X-Deadline: {name if i % 2 else 9}", f"Traceparent: {name}"]
                body = b'{"prompt":"hi","model":"%s"}' % name.encode()
                assert exchange(server, request_bytes("POST", path, headers, body))[0] in (400, 404)

    abuse(5)
    series()  # /metrics has a series of its own from now on
    before = series()
    abuse(count // 3)
    assert series() == before
    server.assert_serves()
    assert server.stop() == 0
