"""Public bugs of other servers, as inputs (cases of the spec that need no more than this version has)."""

import pytest
import requests

from harness.script import ENDOFTEXT, script, says
from harness.sse import finish_reasons, joined, parse_events, stream_chat


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


# Neighbours of the rows: the other field of the same type, the other route, streamed and not.

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"


def body(path, text="hi", **fields):
    prompt = {"messages": [{"role": "user", "content": text}]} if path == CHAT else {"prompt": text}
    return {**prompt, **fields}


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("bias", [{"191222": -100}, {"-1": 1}, {"abc": 1}, {"5": "x"}, {"5": None}, {" 5": 1}, {"5.0": 1}])
def test_B21_on_both_routes(hello, path, stream, bias):
    answer = hello.post(path, body(path, logit_bias=bias, stream=stream))
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "logit_bias"
    hello.assert_serves()


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
@pytest.mark.parametrize("field", ["stop_token_ids", "allowed_token_ids", "logprob_token_ids"])
@pytest.mark.parametrize("ids", [[999999999], [-5], [97, 2**31 - 1]])
def test_B22_on_both_routes(hello, path, field, ids):
    logprobs = {"logprobs": True if path == CHAT else 1}
    for stream in (False, True):
        answer = hello.post(path, body(path, **{field: ids}, **logprobs, stream=stream))
        assert answer.status_code == 400 and answer.json()["error"]["param"] == field
    hello.assert_serves()


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_B05_B52_end_by_itself(hello, path):
    whole = hello.post(path, body(path, "hello")).json()
    assert whole["choices"][0]["finish_reason"] == "stop"
    events = parse_events(hello.post(path, body(path, "hello", stream=True)).content.decode())
    assert finish_reasons(events) == ["stop"]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_B12_one_end_per_choice(hello, path):
    events = parse_events(hello.post(path, body(path, "hello", stream=True, n=2)).content.decode())
    assert [finish_reasons(events, i) for i in range(2)] == [["stop"], ["stop"]]
    assert events[-1]["choices"][0]["finish_reason"] == "stop"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_B19c_on_both_routes(hello, path):
    for options in ({}, None, {"include_usage": False}):
        raw = hello.post(path, body(path, "hello", stream=True, stream_options=options)).content.decode()
        assert not any("usage" in e for e in parse_events(raw))
    refused = hello.post(path, body(path, stream_options={}))
    assert refused.status_code == 400 and refused.json()["error"]["param"] == "stream_options"


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_B51_on_both_routes(hello, path):
    for fields in ({}, {"stream": True, "stream_options": {"include_usage": True}}):
        answer = hello.post(path, body(path, "hello", ignore_eos=True, max_tokens=64, **fields))
        last = parse_events(answer.content.decode()) if fields else [answer.json()]
        assert last[-1]["usage"]["completion_tokens"] == 64 and finish_reasons(last) == ["length"]


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_B40a_a_stop_id_of_a_special_token(replay, path):
    server = replay(script({"tokens": [97, ENDOFTEXT, 98]}))
    for stream in (False, True):
        text = lambda **f: whole_text(server, path, stream, stop_token_ids=[ENDOFTEXT], **f)
        assert text() == "a"
        assert text(include_stop_str_in_output=True) == "a"
        assert text(include_stop_str_in_output=True, skip_special_tokens=False) == "a<|endoftext|>"
        assert text(skip_special_tokens=False) == "a"


def whole_text(server, path, stream, **fields):
    answer = server.post(path, body(path, stream=stream, **fields))
    assert answer.status_code == 200, answer.text
    if not stream:
        choice = answer.json()["choices"][0]
        return choice["message"]["content"] if path == CHAT else choice["text"]
    events = parse_events(answer.content.decode())
    if path == CHAT:
        return joined(events)
    return "".join(c["text"] for e in events for c in e["choices"])


BOS_TEMPLATE = "{{ bos_token }}{% for m in messages %}[{{ m.role }}]{{ m.content }}{% endfor %}"


@pytest.mark.parametrize("add_special_tokens", [None, False, True])
def test_B26_one_bos(replay, add_special_tokens):
    server = replay(script(says("ok"), bos="<|endoftext|>", template=BOS_TEMPLATE))
    fields = {} if add_special_tokens is None else {"add_special_tokens": add_special_tokens}
    chat = {"messages": [{"role": "user", "content": "hi"}], **fields}
    ids = server.post("/tokenize", chat).json()
    assert ids["tokens"][0] == ENDOFTEXT and ids["tokens"].count(ENDOFTEXT) == 1
    assert ids["count"] == len(ids["tokens"]) == 9
    used = server.post(CHAT, {**chat, "return_token_ids": True}).json()
    assert used["prompt_token_ids"] == ids["tokens"] and used["usage"]["prompt_tokens"] == ids["count"]


def test_B26_a_prompt_that_brings_its_bos(replay):
    server = replay(script(says("ok"), bos="<|endoftext|>", template=BOS_TEMPLATE))
    for prompt in ("<|endoftext|>hi", "hi"):
        choice = server.post(COMPLETIONS, body(COMPLETIONS, prompt, return_token_ids=True, echo=True, max_tokens=1)).json()
        assert choice["choices"][0]["prompt_token_ids"] == [ENDOFTEXT, 104, 105]
        assert choice["choices"][0]["text"].startswith(prompt)
        assert server.post("/tokenize", {"prompt": prompt}).json()["tokens"] == [ENDOFTEXT, 104, 105]
        bare = server.post("/tokenize", {"prompt": "hi", "add_special_tokens": False}).json()["tokens"]
        assert bare == [104, 105]
    # Ids are taken as they are.
    ids = server.post(COMPLETIONS, body(COMPLETIONS, [104, 105], return_token_ids=True)).json()
    assert ids["choices"][0]["prompt_token_ids"] == [104, 105]


# Errors (api.md 1.1): status, type, code, param and headers.


@pytest.mark.parametrize(
    "fields,param,code",
    [
        ({"temperature": "1"}, "temperature", "invalid_type"),
        ({"temperature": 2.1}, "temperature", "decimal_above_max_value"),
        ({"top_p": -0.1}, "top_p", "decimal_below_min_value"),
        ({"n": 0}, "n", "integer_below_min_value"),
        ({"n": 129}, "n", "integer_above_max_value"),
        ({"stop": ["x"] * 65}, "stop", "array_above_max_length"),
        ({"tools": [1]}, "tools", "unsupported_parameter"),
        ({"logprobs": 1}, "logprobs", "invalid_type"),
        ({"top_logprobs": 2}, "top_logprobs", "invalid_value"),
        ({"use_beam_search": True}, "use_beam_search", "unsupported_parameter"),
        ({"min_tokens": 5, "max_tokens": 2}, "min_tokens", "integer_above_max_value"),
        ({"stream_options": {}}, "stream_options", "invalid_value"),
        ({"messages": None}, "messages", "missing_required_parameter"),
        ({"messages": []}, "messages", "array_below_min_length"),
        ({"reasoning_effort": "huge"}, "reasoning_effort", "invalid_value"),
        ({"chat_template_kwargs": []}, "chat_template_kwargs", "invalid_type"),
        ({"cache_salt": "a/b"}, "cache_salt", "invalid_value"),
        ({"modalities": ["audio"]}, "modalities", "unsupported_parameter"),
    ],
)
def test_codes(hello, fields, param, code):
    answer = hello.post(CHAT, body(CHAT, **fields) if "messages" not in fields else fields)
    assert answer.status_code == 400 and answer.headers["content-type"] == "application/json"
    error = answer.json()["error"]
    assert list(answer.json()) == ["error"] and list(error) == ["message", "type", "param", "code"]
    assert (error["type"], error["param"], error["code"]) == ("invalid_request_error", param, code)


def test_logprobs_of_completions_is_no_boolean(hello):
    for value in (True, False):
        error = hello.post(COMPLETIONS, body(COMPLETIONS, logprobs=value)).json()["error"]
        assert error["param"] == "logprobs" and error["code"] == "invalid_type"


def test_statuses(hello):
    url = hello.url
    unknown = requests.get(url + "/v1/nothing", timeout=10)
    assert unknown.status_code == 404 and set(unknown.json()["error"]) == {"message", "type", "param", "code"}
    wrong = requests.get(url + CHAT, timeout=10)
    assert wrong.status_code == 405 and wrong.json()["error"]["code"] == "method_not_allowed"
    assert "POST" in wrong.headers["allow"]
    for text in ("{", "[]", '"x"', '{"messages": NaN}', '{"temperature": 1e999}', b"\xff{}", "{}x"):
        bad = requests.post(url + CHAT, data=text, timeout=10)
        assert bad.status_code == 400 and bad.json()["error"]["type"] == "invalid_request_error", text
        assert bad.json()["error"]["param"] == ("temperature" if "1e999" in str(text) else None), text
    plain = requests.post(
        url + CHAT, data='{"messages":[{"role":"user","content":"hello"}]}', headers={"Content-Type": "text/plain"}, timeout=10
    )
    assert plain.status_code == 200  # whatever parses as JSON is JSON
    zipped = requests.post(url + CHAT, data=b"x", headers={"Content-Encoding": "br"}, timeout=10)
    assert zipped.status_code == 415 and zipped.json()["error"]["type"] == "invalid_request_error"
    large = requests.post(url + "/detokenize", data=b" " * (40 << 20), timeout=30)
    assert large.status_code == 413 and large.json()["error"]["type"] == "invalid_request_error"
    missing = hello.chat(model="nobody")
    assert missing.status_code == 404 and missing.json()["error"]["code"] == "model_not_found"
    for answer in (unknown, wrong, missing):
        assert answer.headers["x-request-id"] == answer.headers["request-id"]
    hello.assert_serves()


def test_long_values_are_cut_in_messages(hello):
    answer = hello.chat(temperature="x" * 100_000)
    assert answer.status_code == 400 and len(answer.text) < 700


# Hints that change nothing.


@pytest.mark.parametrize("path", [CHAT, COMPLETIONS])
def test_hints_are_ignored_and_named(hello, path):
    hints = {"user": "u", "request_id": "r", "keep_alive": 5, "options": {}}
    if path == CHAT:
        hints |= {
            "verbosity": "low", "service_tier": "auto", "store": True, "metadata": {"a": "b"}, "safety_identifier": "s",
            "prompt_cache_key": "k", "prompt_cache_retention": "24h", "parallel_tool_calls": True,
        }
    answer = hello.post(path, body(path, "hello", **hints))
    assert answer.status_code == 200
    assert set(answer.headers["x-omnibus-ignored-fields"].split(", ")) == set(hints)
