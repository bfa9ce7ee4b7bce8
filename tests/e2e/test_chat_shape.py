"""The exact shapes of /v1/chat/completions, read from the wire."""

import pytest
import requests

from harness.script import HELLO, IM_END, script, says
from harness.sse import finish_reasons, joined, parse_events, stream_chat


def test_whole_answer(hello):
    body = hello.chat("hello").json()
    assert list(body) == ["id", "object", "created", "model", "system_fingerprint", "choices", "usage"]
    assert body["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "Hello world!", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
            "stop_reason": None,
        }
    ]
    assert set(body["usage"]) == {
        "prompt_tokens",
        "completion_tokens",
        "total_tokens",
        "prompt_tokens_details",
        "completion_tokens_details",
    }
    assert body["usage"]["prompt_tokens_details"]["cached_tokens"] >= 0


def test_stream_chunks(hello):
    events = stream_chat(hello, "hello")
    assert {tuple(e) for e in events} == {("id", "object", "created", "model", "system_fingerprint", "choices")}
    assert len({(e["id"], e["created"], e["object"]) for e in events}) == 1
    assert events[0]["choices"] == [
        {"index": 0, "delta": {"role": "assistant", "content": ""}, "logprobs": None, "finish_reason": None}
    ]
    assert all(set(e["choices"][0]["delta"]) == {"content"} for e in events[1:-1])
    assert events[-1]["choices"][0]["delta"] == {}
    assert joined(events) == "Hello world!"


def test_B52_exactly_one_finish_reason(hello):
    assert finish_reasons(stream_chat(hello, "hello")) == ["stop"]


def test_B05_eos_is_stop(hello):
    assert hello.chat("hello").json()["choices"][0]["finish_reason"] == "stop"


def test_include_usage(hello):
    events = stream_chat(hello, "hello", stream_options={"include_usage": True})
    assert all(e["usage"] is None for e in events[:-1])
    assert events[-1]["choices"] == []
    assert events[-1]["usage"] == hello.chat("hello").json()["usage"]


def test_continuous_usage(hello):
    options = {"include_usage": True, "continuous_usage_stats": True}
    events = stream_chat(hello, "hello", stream_options=options)
    counts = [e["usage"]["completion_tokens"] for e in events]
    assert counts == sorted(counts) and counts[-1] == 7


@pytest.mark.parametrize("options", [{}, {"include_usage": False}, {"include_usage": None}, None])
def test_B19c_no_usage_unless_asked(hello, options):
    assert not any("usage" in e for e in stream_chat(hello, "hello", stream_options=options))


def test_B12_n_in_a_stream(hello):
    events = stream_chat(hello, "hello", n=3)
    for index in range(3):
        mine = [c for e in events for c in e["choices"] if c["index"] == index]
        assert [c["delta"].get("role") for c in mine].count("assistant") == 1 and mine[0]["delta"]["role"]
        assert joined(events, index) == "Hello world!"
        assert finish_reasons(events, index) == ["stop"]


def test_max_tokens_is_length(hello):
    for field in ("max_tokens", "max_completion_tokens"):
        body = hello.chat("hello", **{field: 2}).json()
        assert body["choices"][0]["message"]["content"] == "Hello"
        assert body["choices"][0]["finish_reason"] == "length"
        assert body["usage"]["completion_tokens"] == 2


def test_max_completion_tokens_wins(hello):
    body = hello.chat("hello", max_tokens=1, max_completion_tokens=2).json()
    assert body["choices"][0]["message"]["content"] == "Hello"


def test_larger_than_the_room_is_clamped(replay):
    server = replay(script(says("x", eos=False), max_model_len=64))
    body = server.chat("hi", max_tokens=100000).json()
    assert body["choices"][0]["finish_reason"] == "length"
    assert body["usage"]["total_tokens"] == 64


@pytest.mark.parametrize("limit", [-1, None])
def test_no_limit_means_until_the_context_is_full(replay, limit):
    server = replay(script(says("x", eos=False), max_model_len=64))
    assert server.chat("hi", max_tokens=limit).json()["usage"]["total_tokens"] == 64


def test_B51_ignore_eos(hello):
    body = hello.chat("hello", ignore_eos=True, max_tokens=64).json()
    assert body["usage"]["completion_tokens"] == 64
    assert body["choices"][0]["finish_reason"] == "length"


def test_min_tokens_holds_eos_back(replay):
    # EOS is likeliest everywhere; "a" is the next best.
    server = replay(script(says("a", rows=[{str(IM_END): 0, "97": -1}] * 8)))
    body = server.chat("hi", min_tokens=3, temperature=0).json()
    assert body["choices"][0]["message"]["content"] == "aaa"
    assert body["usage"]["completion_tokens"] == 4


def test_return_token_ids(hello):
    body = hello.chat("hello", return_token_ids=True).json()
    assert body["choices"][0]["token_ids"] == [259, 260, 32, 261, 262, 33, IM_END]
    count = len(body["prompt_token_ids"])
    assert count == body["usage"]["prompt_tokens"]
    events = stream_chat(hello, "hello", return_token_ids=True)
    assert events[0]["prompt_token_ids"] == body["prompt_token_ids"]
    assert not any("prompt_token_ids" in e for e in events[1:])
    ids = [i for e in events for c in e["choices"] for i in c.get("token_ids", [])]
    assert ids == body["choices"][0]["token_ids"]


def test_stop_token_ids(hello):
    body = hello.chat("hello", stop_token_ids=[261]).json()
    assert body["choices"][0]["message"]["content"] == "Hello "
    assert body["choices"][0]["finish_reason"] == "stop" and body["choices"][0]["stop_reason"] == 261


def test_stop_reason_names_the_string(hello):
    choice = hello.chat("hello", stop=["xyz", "o w"]).json()["choices"][0]
    assert choice["message"]["content"] == "Hell" and choice["stop_reason"] == "o w"
    choice = hello.chat("hello", stop="o w", include_stop_str_in_output=True).json()["choices"][0]
    assert choice["message"]["content"] == "Hello w"


def test_seed_decides(replay):
    server = replay(script(says("a", eos=False, rows=[{str(97 + i): 0 for i in range(26)}] * 200)))
    texts = {
        seed: server.chat("hi", seed=seed, max_tokens=12).json()["choices"][0]["message"]["content"]
        for seed in (1, 2, -1, 2**63 - 1, -(2**63))
    }
    assert len(set(texts.values())) == len(texts)
    for seed, text in texts.items():
        assert joined(stream_chat(server, "hi", seed=seed, max_tokens=12)) == text


def test_choices_of_one_request_differ_and_repeat(replay):
    server = replay(script(says("a", eos=False, rows=[{str(97 + i): 0 for i in range(26)}] * 200)))
    draw = lambda: [c["message"]["content"] for c in server.chat("hi", seed=7, n=4, max_tokens=12).json()["choices"]]
    first = draw()
    assert len(set(first)) == 4 and draw() == first


def test_logit_bias_and_allowed_ids(replay):
    server = replay(script(says("a", rows=[{"97": 0, "98": -1}])))
    content = lambda **f: server.chat("hi", temperature=0, **f).json()["choices"][0]["message"]["content"]
    assert content() == "a"
    assert content(logit_bias={"98": 5}) == "b"
    assert content(logit_bias={"97": -100}) == "b"
    assert content(allowed_token_ids=[98, IM_END]) == "b"


def test_penalties(replay):
    server = replay(script(says("a", eos=False, rows=[{"97": 2.0, "98": 1.5}] * 200)))
    content = lambda **f: server.chat("z", temperature=0, max_tokens=4, **f).json()["choices"][0]["message"]["content"]
    assert content() == "aaaa"
    assert content(presence_penalty=1) == "abaa"
    assert content(frequency_penalty=0.3) == "aaba"
    # "a" stands in the prompt ("assistant"), "b" does not: 1 against 1.5, then 1 against 0.75.
    assert content(repetition_penalty=2.0) == "baaa"


def test_ignored_fields_are_named(hello):
    answer = hello.chat("hello", user="me", metadata={"a": "b"}, mystery=1, **{"odd\r\nname": 1})
    assert answer.status_code == 200
    assert answer.headers["x-omnibus-ignored-fields"] == "user, metadata, mystery, odd??name"
    assert "x-omnibus-ignored-fields" not in hello.chat("hello").headers


def test_unknown_message_keys_are_named(hello):
    messages = [{"role": "user", "content": "hello", "mood": "good"}]
    answer = hello.post("/v1/chat/completions", {"messages": messages})
    assert answer.headers["x-omnibus-ignored-fields"] == "messages[0].mood"
    part = {"type": "text", "text": "hello", "cache_control": {}}
    answer = hello.post("/v1/chat/completions", {"messages": [{"role": "user", "content": [part]}]})
    assert answer.headers["x-omnibus-ignored-fields"] == "messages[0].content[0].cache_control"


def test_fields_that_the_template_does_not_use_are_named(hello):
    messages = [{"role": "user", "content": "hello", "name": "ann"}]
    answer = hello.post("/v1/chat/completions", {"messages": messages, "reasoning_effort": "none"})
    assert answer.status_code == 200
    assert answer.headers["x-omnibus-ignored-fields"] == "reasoning_effort, messages[0].name"


def test_fields_that_the_template_uses_are_not_named(replay, tmp_path):
    path = tmp_path / "template"
    path.write_text("{{ reasoning_effort }}{% for m in messages %}{{ m.name }}: {{ m.content }}{% endfor %}")
    server = replay(HELLO, "--chat-template", str(path))
    messages = [{"role": "user", "content": "hello", "name": "ann"}]
    answer = server.post("/v1/chat/completions", {"messages": messages, "reasoning_effort": "low"})
    assert answer.status_code == 200 and "x-omnibus-ignored-fields" not in answer.headers


def test_strict_fields(replay):
    server = replay(HELLO, "--strict-fields")
    answer = server.chat("hello", mystery=1)
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "mystery"
    messages = [{"role": "user", "content": "hello", "mood": "good"}]
    answer = server.post("/v1/chat/completions", {"messages": messages})
    assert answer.status_code == 400 and answer.json()["error"]["param"] == "messages[0].mood"
    # A harmless hint stays ignored and named.
    answer = server.chat("hello", user="me")
    assert answer.status_code == 200 and answer.headers["x-omnibus-ignored-fields"] == "user"


def server_models(server):
    return requests.get(server.url + "/v1/models", timeout=10).json()["data"]


def test_model_names(replay):
    server = replay(HELLO, "--served-model-name", "one", "--served-model-name", "two/2")
    assert [m["id"] for m in server_models(server)] == ["one", "two/2"]
    assert server.chat("hello", model="two/2").json()["model"] == "two/2"
    assert server.chat("hello").json()["model"] == "one"
    answer = server.chat("hello", model="replay")
    assert answer.status_code == 404 and answer.json()["error"]["code"] == "model_not_found"
    for path in ("/v1/models/two/2", "/v1/models/two%2F2"):
        assert requests.get(server.url + path, timeout=10).json()["id"] == "two/2"


def test_any_model(replay):
    server = replay(HELLO, "--any-model")
    assert server.chat("hello", model="gpt-x").json()["model"] == "gpt-x"


def test_stream_of_nothing(replay):
    server = replay(script({"tokens": []}))
    events = stream_chat(server, "hi")
    assert joined(events) == "" and finish_reasons(events) == ["stop"]
    assert server.chat("hi").json()["choices"][0]["message"]["content"] == ""


def test_utf8_is_never_cut(replay):
    text = "aé漢😀z"
    server = replay(script(says(*[bytes([b]) for b in text.encode()])))
    raw = server.chat("hi", stream=True).content.decode("utf-8")  # strict
    events = parse_events(raw)
    assert joined(events) == text and "\ufffd" not in raw
    assert joined(stream_chat(server, "hi", max_tokens=2)) == "a\ufffd"


def test_models_for_clients_of_anthropic(replay):
    server = replay(HELLO, "--served-model-name", "one", "--served-model-name", "two/2")
    headers = {"anthropic-version": "2023-06-01"}
    body = requests.get(server.url + "/v1/models", headers=headers, timeout=10).json()
    assert list(body) == ["data", "has_more", "first_id", "last_id"]
    assert (body["has_more"], body["first_id"], body["last_id"]) == (False, "one", "two/2")
    assert set(body["data"][0]) == {"type", "id", "display_name", "created_at"} and body["data"][0]["type"] == "model"
    assert body["data"][0]["created_at"].endswith("Z")
    one = requests.get(server.url + "/v1/models/two%2F2", headers=headers, timeout=10).json()
    assert one == body["data"][1]
    plain = requests.get(server.url + "/v1/models", timeout=10).json()
    assert list(plain) == ["object", "data"]
    deleted = requests.delete(server.url + "/v1/models/one", timeout=10)
    assert deleted.status_code == 405 and "GET" in deleted.headers["allow"]
