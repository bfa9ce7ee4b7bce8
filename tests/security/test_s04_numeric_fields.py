"""S4: every field of every route with values that have ended other servers. The table below is written from the API
specification, not from the server's own table: what it says must hold."""

import json

import pytest
import requests

from harness.script import HELLO

BAD = {
    "-1": "-1", "0": "0", "max+1": None, "2^31": str(2**31), "2^63": str(2**63), "-2^63-1": str(-(2**63) - 1),
    "1e999": "1e999", "NaN": "NaN", "-Infinity": "-Infinity", "string": '"1"', "true": "true", "null": "null",
    "[]": "[]", "{}": "{}", "0.5": "0.5", "1e300": "1e300",
}
NOT_JSON = {"1e999", "NaN", "-Infinity"}


def number(low, high, low_open=False):
    def accepts(text):
        value = json.loads(text)
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return False
        return (low < value or (not low_open and low == value)) and value <= high

    return accepts, str(high + 1)


def integer(low, high, also=()):
    def accepts(text):
        value = json.loads(text)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value != int(value):
            return False
        return low <= value <= high or value in also

    return accepts, str(high + 1)


def boolean():
    return (lambda text: text == "true"), "2"


def only(*accepted):
    return (lambda text: text in accepted), "2"


INT32, INT64 = 2**31 - 1, 2**63 - 1
SAMPLING = {
    "temperature": number(0, 2),
    "top_p": number(0, 1),
    "top_k": integer(-1, INT32),
    "min_p": number(0, 1),
    "repetition_penalty": number(0, 1e6, low_open=True),
    "repeat_penalty": number(0, 1e6, low_open=True),
    "frequency_penalty": number(-2, 2),
    "presence_penalty": number(-2, 2),
    "logit_bias": only("{}"),
    "seed": integer(-(2**63), INT64),
    "n": integer(1, 128),
    "stop": only("[]", '"1"'),
    "stop_token_ids": only("[]"),
    "allowed_token_ids": only(),
    "min_tokens": integer(0, 3),  # max_tokens is 3
    "ignore_eos": boolean(),
    "include_stop_str_in_output": boolean(),
    "skip_special_tokens": boolean(),
    "return_token_ids": boolean(),
    "return_tokens_as_token_ids": boolean(),
    "add_special_tokens": boolean(),
    "cache_salt": only('"1"'),
    "stream_options": only(),  # needs stream
    "priority": only("0"),
    "use_beam_search": only(),
    "length_penalty": only(),
    "prompt_logprobs": integer(0, 20),
    "logprob_token_ids": only("[]"),
    "truncate_prompt_tokens": integer(1, 4096, also=(-1,)),
    "truncation_side": only(),
    "response_format": only(),
    "structured_outputs": only(),
    "guided_json": only(),
    "grammar": only(),
    "bad_words": only("[]"),
    "vllm_xargs": only("{}"),
}
CHAT = {
    **SAMPLING,
    "logprobs": boolean(),
    "top_logprobs": only("0"),  # more needs logprobs
    "max_tokens": integer(1, INT32, also=(-1,)),
    "max_completion_tokens": integer(1, INT32),
    "messages": only(),
    "tools": only("[]"),
    "tool_choice": only(),
    "functions": only("[]"),
    "reasoning_effort": only(),
    "chat_template": only(),
    "chat_template_kwargs": only("{}"),
    "add_generation_prompt": boolean(),
    "continue_final_message": only(),  # the last message is the user's
    "documents": only("[]"),
    "modalities": only(),
    "audio": only(),
    "prediction": only(),
    "web_search_options": only(),
    "echo": boolean(),
}
COMPLETIONS = {
    **SAMPLING,
    "logprobs": integer(0, 20),
    "max_tokens": integer(0, INT32, also=(-1,)),
    "best_of": integer(1, 20),
    "echo": boolean(),
    "suffix": only(),
    "prompt": only('"1"'),
}
TOKENIZE = {
    "prompt": only('"1"'),
    "add_special_tokens": boolean(),
    "return_token_strs": boolean(),
    "tools": only("[]"),
}
DETOKENIZE = {"tokens": only("[]")}
# llama.cpp clamps where OpenAI refuses.
CLAMPED = number(float("-inf"), 1e308)
NATIVE = {
    "prompt": only('"1"'),
    "n_predict": integer(-1, INT32),
    "temperature": CLAMPED,
    "top_p": CLAMPED,
    "min_p": CLAMPED,
    "top_k": integer(-(2**63), INT64),
    "repeat_penalty": number(0, 1e6, low_open=True),
    "repeat_last_n": integer(-1, INT32),
    "presence_penalty": number(-1e6, 1e6),
    "frequency_penalty": number(-1e6, 1e6),
    "seed": integer(-(2**63), INT64),
    "n_probs": integer(0, 20),
    "n_cmpl": integer(1, 128),
    "logit_bias": only("[]", "{}"),
    "stop": only("[]", '"1"'),
    "ignore_eos": boolean(),
    "return_tokens": boolean(),
    "timings_per_token": boolean(),
    "response_fields": only("[]"),
    "top_n_sigma": number(float("-inf"), 0),
    "t_max_predict_ms": integer(-(2**63), 0),
    "min_keep": integer(0, 1),
    "mirostat": only("0"),
    "dry_multiplier": only("0"),
    "lora": only("[]"),
    "samplers": only(),
    "grammar": only(),
    "json_schema": only(),
}
TEMPLATE = {
    "messages": only(),
    "tools": only("[]"),
    "add_generation_prompt": boolean(),
    "chat_template_kwargs": only("{}"),
    "reasoning_effort": only(),
}
ROUTES = {
    "/v1/chat/completions": (CHAT, {"messages": '[{"role":"user","content":"endless"}]', "max_tokens": "3"}),
    "/v1/completions": (COMPLETIONS, {"prompt": '"endless"', "max_tokens": "3"}),
    "/tokenize": (TOKENIZE, {"prompt": '"a"'}),
    "/detokenize": (DETOKENIZE, {"tokens": "[97]"}),
    "/completion": (NATIVE, {"prompt": '"endless"', "n_predict": "3"}),
    "/apply-template": (TEMPLATE, {"messages": '[{"role":"user","content":"endless"}]'}),
}
REQUIRED = {"messages", "prompt", "tokens"}


def cases():
    for route, (table, _) in ROUTES.items():
        for field in table:
            yield route, field


def verdict(route, field, name, text):
    """True: accepted; False: 400 with param; None: not JSON, 400."""
    if name in NOT_JSON:
        return None
    if text == "null":
        return field not in REQUIRED
    accepts, _ = ROUTES[route][0][field]
    return accepts(text)


def body_of(base, field, text):
    fields = {**base, field: text}
    return "{" + ",".join(f"{json.dumps(k)}:{v}" for k, v in fields.items()) + "}"


@pytest.fixture(scope="module")
def server(pool):
    server = pool(HELLO)
    yield server
    server.assert_serves()


@pytest.fixture(scope="module")
def session():
    with requests.Session() as session:
        yield session


@pytest.mark.parametrize("route,field", list(cases()), ids=lambda v: str(v).strip("/"))
def test_s04_every_value_gets_its_verdict(server, session, route, field):
    table, base = ROUTES[route]
    for name, text in BAD.items():
        text = table[field][1] if text is None else text
        expected = verdict(route, field, name, text)
        if field in ("max_tokens", "max_completion_tokens", "n_predict") and expected and name in ("-1", "2^31-1", "null"):
            continue  # generates until the context is full: tested elsewhere
        answer = session.post(server.url + route, data=body_of(base, field, text), timeout=30)
        place = f"{field}={text} on {route}: {answer.status_code} {answer.text[:300]}"
        if expected:
            assert answer.status_code == 200, place
            continue
        assert answer.status_code == 400, place
        error = answer.json()["error"]
        assert set(error) == {"message", "type", "param", "code"} and error["type"] == "invalid_request_error"
        if expected is not None:
            assert error["param"] and error["param"].split(".")[0].split("[")[0] == field, place


def test_s04_limits_of_counts(server, session):
    chat = lambda **fields: server.chat("hello", max_tokens=3, **fields)
    assert chat(stop=["x"] * 64).status_code == 200
    for fields, param in (
        ({"stop": ["x"] * 65}, "stop"),
        ({"stop": ["x" * 257]}, "stop[0]"),
        ({"stop": [""]}, "stop[0]"),
        ({"stop": ""}, "stop"),
        ({"stop": [1]}, "stop[0]"),
        ({"logit_bias": {str(i): 1 for i in range(1025)}}, "logit_bias"),
        ({"top_logprobs": 21, "logprobs": True}, "top_logprobs"),
        ({"top_logprobs": 5}, "top_logprobs"),
        ({"min_tokens": 4}, "min_tokens"),
        ({"stream_options": {"include_usage": 1}, "stream": True}, "stream_options.include_usage"),
        ({"cache_salt": "a@b"}, "cache_salt"),
    ):
        answer = chat(**fields)
        assert answer.status_code == 400 and answer.json()["error"]["param"] == param, (fields, answer.text)
    answer = server.post("/v1/completions", {"prompt": ["x"] * 257})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "prompt"
    answer = server.post("/v1/completions", {"prompt": ["x"] * 256, "n": 128})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "n"


def test_s04_the_value_is_quoted_and_cut(server):
    answer = server.chat("hello", temperature="y" * 5000)
    assert "yyy" in answer.json()["error"]["message"] and len(answer.text) < 600


def test_s04_others_go_on(server):
    """While bad requests rain, a stream keeps its pace."""
    import concurrent.futures

    before = server.metric("vllm:generation_tokens_total")
    with concurrent.futures.ThreadPoolExecutor(4) as threads:
        stream = threads.submit(server.chat, "endless", max_tokens=200)
        list(threads.map(lambda i: server.chat("hello", n=i), range(-100, 0)))
        assert stream.result().json()["usage"]["completion_tokens"] == 200
    assert server.metric("vllm:generation_tokens_total") >= before + 200
    server.assert_serves()
