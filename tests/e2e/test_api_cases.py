"""Public bugs of other servers, as inputs (cases of the spec that need no more than this version has)."""

import pytest
import requests

from harness.script import script, says
from harness.sse import stream_chat


@pytest.mark.parametrize("bias", [{"191222": -100}, {"-1": 1}, {"abc": 1}, {"5": "x"}, {"5": 101}, {"": 1}, {"1e2": 1}])
def test_B21_logit_bias(hello, bias):
    answer = hello.chat(logit_bias=bias)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "logit_bias"
    hello.assert_serves()


@pytest.mark.parametrize("ids", [[999999999], [-5], [2**31], ["a"], [1.5], [None]])
@pytest.mark.parametrize("field", ["stop_token_ids", "allowed_token_ids"])
def test_B22_ids_outside_the_vocabulary(hello, field, ids):
    answer = hello.chat(**{field: ids})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == field
    hello.assert_serves()


def test_B24_no_infinity_in_the_answer(replay):
    server = replay(script(says("a", rows=[{"97": 0}])))
    answer = server.chat(logprobs=True, top_logprobs=20, logit_bias={"5": -100})
    assert "Infinity" not in answer.text and "NaN" not in answer.text
    for entry in answer.json()["choices"][0]["logprobs"]["content"][0]["top_logprobs"]:
        assert -9999.0 <= entry["logprob"] <= 0


def test_logprobs_are_of_the_raw_row(replay):
    server = replay(script(says("a", rows=[{"97": -0.5, "98": -1.5}])))
    raw = server.chat(logprobs=True, top_logprobs=2, temperature=1).json()
    for fields in ({"temperature": 0}, {"temperature": 0.3, "logit_bias": {"98": -50}}):
        entry = server.chat(logprobs=True, top_logprobs=2, **fields).json()["choices"][0]["logprobs"]["content"][0]
        assert entry["top_logprobs"] == raw["choices"][0]["logprobs"]["content"][0]["top_logprobs"]


def test_nan_ends_one_request_only(replay):
    server = replay(
        script(
            says("a", "b", "c", when="poison", fault={"at": 1, "kind": "nan"}),
            says("poisoned", when="first", fault={"at": 0, "kind": "nan"}),
            says("ok"),
        )
    )
    # Before the first token: a status. After it: an error event, then [DONE].
    answer = server.chat("first")
    assert answer.status_code == 500 and answer.json()["error"]["type"] == "server_error"
    assert server.chat("first", stream=True).status_code == 500
    events = stream_chat(server, "poison")
    assert events[-1]["error"]["type"] == "server_error"
    assert not any(c["finish_reason"] for e in events[:-1] for c in e["choices"])
    server.assert_serves()


def test_null_is_absent(hello):
    fields = [
        "temperature", "top_p", "n", "stop", "max_tokens", "max_completion_tokens", "frequency_penalty", "logit_bias",
        "logprobs", "top_logprobs", "seed", "stream", "stream_options", "tools", "tool_choice", "response_format",
        "user", "top_k", "min_p", "stop_token_ids", "model",
    ]
    answer = hello.chat("hello", **dict.fromkeys(fields))
    assert answer.status_code == 200 and answer.json()["choices"][0]["message"]["content"] == "Hello world!"
    assert "x-omnibus-ignored-fields" not in answer.headers


def test_integral_floats_are_integers(hello):
    assert hello.chat("hello", max_tokens=2.0).json()["usage"]["completion_tokens"] == 2


def test_values_that_ask_for_nothing_pass(hello):
    answer = hello.chat(
        "hello", tools=[], functions=[], response_format={"type": "text"}, modalities=["text"], tool_choice="none",
        use_beam_search=False, length_penalty=1.0, logit_bias={}, stop=[], stop_token_ids=[],
    )
    assert answer.status_code == 200, answer.text


def test_duplicate_keys_last_wins(hello):
    body = '{"messages":[{"role":"user","content":"hello"}],"max_tokens":1,"max_tokens":2}'
    answer = requests.post(hello.url + "/v1/chat/completions", data=body, timeout=10)
    assert answer.json()["usage"]["completion_tokens"] == 2
