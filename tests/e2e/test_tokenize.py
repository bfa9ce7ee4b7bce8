"""/tokenize and /detokenize."""

import pytest

from harness.script import IM_END, IM_START, script, says


@pytest.fixture(scope="module")
def server(pool):
    return pool(script(says("ok")))


def test_prompt(server):
    body = server.post("/tokenize", {"prompt": "ab"}).json()
    assert body == {"count": 2, "max_model_len": 4096, "tokens": [97, 98], "token_strs": None}
    body = server.post("/tokenize", {"prompt": "aé", "return_token_strs": True}).json()
    assert body["tokens"] == [97, 0xC3, 0xA9] and body["token_strs"] == ["a", "\ufffd", "\ufffd"]
    assert server.post("/tokenize", {"prompt": ""}).json()["count"] == 0


def test_messages(server):
    tokens = server.post("/tokenize", {"messages": [{"role": "user", "content": "hi"}]}).json()["tokens"]
    text = "".join({IM_START: "<|im_start|>", IM_END: "<|im_end|>"}.get(i) or chr(i) for i in tokens)
    assert text.endswith("<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n")
    without = server.post(
        "/tokenize", {"messages": [{"role": "user", "content": "hi"}], "add_generation_prompt": False}
    ).json()["tokens"]
    assert tokens[: len(without)] == without and len(without) < len(tokens)


def test_ids_are_those_that_generation_uses(server):
    messages = [{"role": "user", "content": "hi"}]
    used = server.chat("hi", return_token_ids=True).json()["prompt_token_ids"]
    assert server.post("/tokenize", {"messages": messages}).json()["tokens"] == used


@pytest.mark.parametrize("text", ["", "plain", "aé漢😀", "\x00\x7f\r\n", "<|im_end|>"])
def test_round_trip(server, text):
    tokens = server.post("/tokenize", {"prompt": text}).json()["tokens"]
    assert server.post("/detokenize", {"tokens": tokens}).json() == {"prompt": text, "content": text}


@pytest.mark.parametrize("tokens", [[-1], [999999], [1.5], ["a"], "a", 5, {}])
def test_bad_tokens(server, tokens):
    answer = server.post("/detokenize", {"tokens": tokens})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "tokens"


def test_both_or_neither(server):
    for body in ({}, {"prompt": "a", "messages": [{"role": "user", "content": "b"}]}, {"prompt": None}):
        assert server.post("/tokenize", body).status_code == 400
    assert server.post("/detokenize", {}).json()["error"]["param"] == "tokens"
