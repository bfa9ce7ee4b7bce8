"""S15: the prefix cache tells no tenant what another one has asked: not in counts, and not in the work that is done."""

import random

import pytest

from harness.admin import ask
from harness.metrics import Metrics
from harness.script import script, says

PROMPT = 2000  # tokens; each byte is one
BLOCK = 16
ANSWER = 5  # with EOS
ALICE, BOB = "sk-alice", "sk-bob"


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    folder = tmp_path_factory.mktemp("s15")
    keys = folder / "keys"
    keys.write_text(f"alice {ALICE}\nbob {BOB}\n")
    keys.chmod(0o600)
    return folder


@pytest.fixture(scope="module")
def server(pool, place):
    return pool(script(says("a", "b", "c", "d"), num_blocks=1024), "--api-key-file", str(place / "keys"), "--admin-listen",
                f"unix:{place}/admin", "--enable-prefix-caching", "--no-async-scheduling")


class Asker:
    """Asks and sees what is told and what is computed."""

    def __init__(self, server):
        self.server = server
        self.metrics = Metrics(server)

    def __call__(self, prompt, key=ALICE, **fields):
        """(cached tokens as told, tokens that the engine computed)"""
        before = self.metrics("vllm:iteration_tokens_total_sum")
        answer = self.server.post("/v1/completions", {"prompt": prompt, "max_tokens": 16, **fields},
                                  headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200, answer.text
        assert answer.json()["choices"][0]["text"].endswith("abcd")
        told = answer.json()["usage"]["prompt_tokens_details"]["cached_tokens"]
        return told, self.metrics("vllm:iteration_tokens_total_sum") - before


@pytest.fixture
def ask_for(server):
    asker = Asker(server)
    yield asker
    asker.metrics.close()


@pytest.fixture
def prompt():
    """A prompt that nobody had before."""
    return f"{random.random()} ".ljust(PROMPT, "p")


COLD = (0, PROMPT + ANSWER - 1)  # the last token of the answer is not computed on
WARM_AT_LEAST = PROMPT - 2 * BLOCK  # the last token is always computed, and blocks are whole


def test_s15_another_tenant_finds_nothing(ask_for, prompt):
    assert ask_for(prompt) == COLD
    told, computed = ask_for(prompt)
    assert told >= WARM_AT_LEAST and told % BLOCK == 0 and computed == COLD[1] - told
    # Neither what he is told nor how much is computed for him differs from a cold cache.
    assert ask_for(prompt, BOB) == COLD
    told, computed = ask_for(prompt, BOB)
    assert told >= WARM_AT_LEAST and computed == COLD[1] - told


def test_s15_a_salt_separates_within_a_tenant(ask_for, prompt):
    assert ask_for(prompt) == COLD
    assert ask_for(prompt, cache_salt="one") == COLD
    assert ask_for(prompt, cache_salt="two") == COLD
    assert ask_for(prompt, cache_salt="one")[0] >= WARM_AT_LEAST
    # The same salt under another key is another cache.
    assert ask_for(prompt, BOB, cache_salt="one") == COLD
    assert ask_for(prompt)[0] >= WARM_AT_LEAST


@pytest.mark.parametrize("salt,fits", [
    ("x", True), ("x" * 128, True), ("".join(chr(c) for c in range(33, 127) if chr(c) not in "@/\\"), True), (" ", True),
    ("", False), ("x" * 129, False), ("a@b", False), ("a/b", False), ("a\\b", False), ("é", False), ("a\n", False), ("\x7f", False), (7, False),
])
def test_s15_bounds_of_a_salt(server, salt, fits):
    for path, asked in (("/v1/completions", {"prompt": "a"}), ("/v1/chat/completions", {"messages": [{"role": "user", "content": "a"}]})):
        answer = server.post(path, asked | {"max_tokens": 1, "cache_salt": salt}, headers={"Authorization": f"Bearer {ALICE}"})
        assert answer.status_code == (200 if fits else 400), (salt, answer.text)
        if not fits:
            assert answer.json()["error"]["param"] == "cache_salt"


def test_s15_prompt_logprobs_pass_the_cache_by(ask_for, prompt):
    assert ask_for(prompt) == COLD
    assert ask_for(prompt, prompt_logprobs=0) == COLD
    assert ask_for(prompt, logprobs=0, echo=True) == COLD
    assert ask_for(prompt)[0] >= WARM_AT_LEAST


def test_s15_one_wrong_token_ends_the_hit(ask_for, prompt):
    """What is shared ends with the last whole block before the first difference."""
    rng = random.Random(15)
    assert ask_for(prompt) == COLD
    for _ in range(20):
        place = rng.randrange(100, PROMPT)
        told, computed = ask_for(prompt[:place] + "q" + prompt[place + 1 :])
        assert told == place // BLOCK * BLOCK and computed == COLD[1] - told


def test_s15_the_cache_can_be_emptied(ask_for, prompt, place):
    assert ask_for(prompt) == COLD
    assert ask_for(prompt)[0] >= WARM_AT_LEAST
    answer = ask(f"{place}/admin", "POST", "/reset_prefix_cache", b"")
    assert answer.status == 200, answer.text
    assert ask_for(prompt) == COLD


def test_s15_who_may_not_empty_the_cache(ask_for, server, prompt):
    """The route is the admin listener's alone."""
    assert ask_for(prompt) == COLD
    answer = server.post("/reset_prefix_cache", {}, headers={"Authorization": f"Bearer {ALICE}"})
    assert answer.status_code == 404
    assert ask_for(prompt)[0] >= WARM_AT_LEAST


def test_s15_counts_of_all_doors(server, prompt):
    """A stream and a chat tell the same."""
    headers = {"Authorization": f"Bearer {ALICE}"}
    body = {"messages": [{"role": "user", "content": prompt}], "max_tokens": 4}
    first = server.post("/v1/chat/completions", body, headers=headers).json()["usage"]
    again = server.post("/v1/chat/completions", body, headers=headers).json()["usage"]
    assert first["prompt_tokens_details"]["cached_tokens"] % BLOCK == 0  # the template's beginning may be known already
    assert again["prompt_tokens_details"]["cached_tokens"] >= WARM_AT_LEAST
    streamed = server.post("/v1/chat/completions", body | {"stream": True, "stream_options": {"include_usage": True}}, headers=headers)
    last = [line for line in streamed.text.splitlines() if '"usage":{' in line][-1]
    assert f'"cached_tokens":{again["prompt_tokens_details"]["cached_tokens"]}' in last
