"""/v1/completions: prompts in all forms, echo, legacy logprobs."""

import pytest

from harness.script import FIRST_PIECE, script, says
from harness.sse import parse_events


@pytest.fixture(scope="module")
def server(pool):
    return pool(script(says("Hel", "lo", " wor", "ld", "é", "!", when="hi"), says("ok")))


def complete(server, **fields):
    answer = server.post("/v1/completions", {"prompt": "hi", **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def test_shape(server):
    body = complete(server)
    assert list(body) == ["id", "object", "created", "model", "system_fingerprint", "choices", "usage"]
    assert body["choices"] == [
        {"text": "Hello worldé!", "index": 0, "logprobs": None, "finish_reason": "stop", "stop_reason": None}
    ] and body["usage"]["prompt_tokens"] == 2


def test_default_is_16_tokens(replay):
    server = replay(script(says("x", eos=False)))
    for fields in ({}, {"max_tokens": None}):
        choice = complete(server, **fields)["choices"][0]
        assert choice["text"] == "x" * 16 and choice["finish_reason"] == "length"


def test_prompt_forms(server):
    assert complete(server, prompt=[104, 105])["choices"][0]["text"] == "Hello worldé!"
    for prompt in (["hi", "yo"], [[104, 105], [121, 111]]):
        assert [c["text"] for c in complete(server, prompt=prompt)["choices"]] == ["Hello worldé!", "ok"]


@pytest.mark.parametrize("prompt", ["", [], [""], [[]], [1, "a"], ["a", 1], ["hi", [121, 111]], [[121], "hi"], [-1], [[-1]], [999999], [[1.5]], [True], 7, {}])
def test_bad_prompts(server, prompt):
    answer = server.post("/v1/completions", {"prompt": prompt})
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["param"].startswith("prompt")


def test_missing_prompt(server):
    error = server.post("/v1/completions", {}).json()["error"]
    assert error["code"] == "missing_required_parameter" and error["param"] == "prompt"


def test_list_is_independent(server):
    alone = [complete(server, prompt=p, temperature=0)["choices"][0]["text"] for p in ("hi", "yo")]
    together = complete(server, prompt=["hi", "yo"], temperature=0)
    assert [c["text"] for c in together["choices"]] == alone
    assert together["usage"]["prompt_tokens"] == 4


def test_echo(server):
    assert complete(server, echo=True)["choices"][0]["text"] == "hiHello worldé!"
    assert complete(server, prompt=[104, 105], echo=True)["choices"][0]["text"] == "hiHello worldé!"


def test_echo_without_tokens(server):
    body = complete(server, echo=True, max_tokens=0)
    assert body["choices"][0]["text"] == "hi" and body["choices"][0]["finish_reason"] == "length"
    assert body["usage"] == {
        "prompt_tokens": 2,
        "completion_tokens": 0,
        "total_tokens": 2,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": 0},
    }


@pytest.mark.parametrize("stop", [{"stop_token_ids": [FIRST_PIECE]}, {"stop": ["Hel"]}])
def test_no_tokens_no_stop_reason(server, stop):
    """The token that is computed for the prompt's sake and not shown cannot have stopped anything."""
    assert complete(server, **stop)["choices"][0]["stop_reason"] == next(iter(stop.values()))[0]
    choice = complete(server, max_tokens=0, **stop)["choices"][0]
    assert choice["text"] == "" and choice["finish_reason"] == "length" and choice["stop_reason"] is None


def test_B25b_tokens_join_to_the_echo(server):
    prompt = "\n1. Carol has 20"
    choice = complete(server, prompt=prompt, echo=True, logprobs=1)["choices"][0]
    assert "".join(choice["logprobs"]["tokens"]) == choice["text"] == prompt + "ok"


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("prompt", ["\n1. Carol has 20", " leading", "trailing \n", "\ttab", "<|im_end|>x", [10, 97, 32, 33]])
def test_B25b_whatever_the_prompt(server, prompt, stream):
    raw = server.post("/v1/completions", {"prompt": prompt, "echo": True, "logprobs": 1, "stream": stream})
    choices = [c for e in (parse_events(raw.content.decode()) if stream else [raw.json()]) for c in e["choices"]]
    tokens = [t for c in choices if c["logprobs"] for t in c["logprobs"]["tokens"]]
    offsets = [o for c in choices if c["logprobs"] for o in c["logprobs"]["text_offset"]]
    text = bytes(prompt).decode() if isinstance(prompt, list) else prompt
    assert "".join(tokens) == "".join(c["text"] for c in choices) == text + "ok"
    assert offsets == [len("".join(tokens[:i])) for i in range(len(tokens))]


def test_B25d_echo_with_logprobs(server):
    prompt = "The step of boiling water is: "
    choice = complete(server, prompt=prompt, echo=True, logprobs=5, max_tokens=1)["choices"][0]
    logprobs = choice["logprobs"]
    assert len(logprobs["tokens"]) == len(prompt) + 1
    assert logprobs["token_logprobs"][0] is None and logprobs["top_logprobs"][0] is None
    assert all(isinstance(v, float) for v in logprobs["token_logprobs"][1:])
    assert logprobs["text_offset"] == list(range(len(prompt) + 1))
    assert all(5 <= len(t) <= 6 for t in logprobs["top_logprobs"][1:])
    only = complete(server, prompt=prompt, echo=True, logprobs=5, max_tokens=0)["choices"][0]["logprobs"]
    assert only["tokens"] == logprobs["tokens"][:-1]


def test_text_offsets_count_characters(server):
    logprobs = complete(server, logprobs=0)["choices"][0]["logprobs"]
    assert logprobs["tokens"] == ["Hel", "lo", " wor", "ld", "é", "!"]
    assert logprobs["text_offset"] == [0, 3, 5, 9, 11, 12]
    assert [list(t) for t in logprobs["top_logprobs"]] == [[t] for t in logprobs["tokens"]]


def test_tokens_as_token_ids(server):
    tokens = complete(server, logprobs=0, return_tokens_as_token_ids=True)["choices"][0]["logprobs"]["tokens"]
    assert tokens[0] == f"token_id:{FIRST_PIECE}"


def test_stream_equals_whole(server):
    fields = {"prompt": ["hi", "yo"], "n": 2, "echo": True, "logprobs": 2, "max_tokens": 5}
    whole = complete(server, **fields)
    raw = server.post("/v1/completions", {**fields, "stream": True, "stream_options": {"include_usage": True}})
    events = parse_events(raw.content.decode())
    assert events[-1]["usage"]["completion_tokens"] == whole["usage"]["completion_tokens"]
    for choice in whole["choices"]:
        mine = [c for e in events for c in e["choices"] if c["index"] == choice["index"]]
        assert "".join(c["text"] for c in mine) == choice["text"]
        assert [c["finish_reason"] for c in mine if c["finish_reason"]] == [choice["finish_reason"]]
        for key in ("tokens", "token_logprobs", "top_logprobs", "text_offset"):
            assert [x for c in mine if c["logprobs"] for x in c["logprobs"][key]] == choice["logprobs"][key]


def test_best_of(server):
    assert complete(server, best_of=1)["choices"][0]["text"] == "Hello worldé!"
    assert complete(server, best_of=2, n=2)["choices"][1]["text"] == "Hello worldé!"
    assert len(complete(server, best_of=3)["choices"]) == 1
    for fields in ({"best_of": 1, "n": 2}, {"best_of": 21}, {"best_of": 2, "stream": True}):
        error = server.post("/v1/completions", {"prompt": "hi", **fields})
        assert error.status_code == 400 and error.json()["error"]["param"] == "best_of"


def test_suffix(server):
    assert complete(server, suffix="")["choices"][0]["text"]
    error = server.post("/v1/completions", {"prompt": "hi", "suffix": "x"})
    assert error.status_code == 400 and error.json()["error"]["code"] == "unsupported_parameter"


@pytest.mark.parametrize("waiting", ["0", "3"])
def test_more_prompts_than_can_ever_run_and_wait_is_no_case_for_a_retry(own_replay, waiting):
    server = own_replay(script(says("ok")), "--max-num-seqs", "2", "--max-waiting-requests", waiting)
    most = 2 + int(waiting)
    for prompts, n in ((most + 1, 1), (most, 2)):
        answer = server.post("/v1/completions", {"prompt": ["x"] * prompts, "n": n})
        assert answer.status_code == 400 and answer.json()["error"]["param"] == "prompt", answer.text
        assert f"at most {most}" in answer.text
    assert server.post("/v1/completions", {"prompt": "x", "n": most + 1}).json()["error"]["param"] == "n"
    assert server.post("/v1/completions", {"prompt": ["x"] * most}).status_code == 200
