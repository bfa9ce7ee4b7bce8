"""Fields of vLLM and llama.cpp beyond OpenAI's: what each does to an answer, and what is wrong with a value."""

import pytest

from harness.script import HELLO, IM_END, script, says

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
PATHS = [CHAT, COMPLETIONS]
PIECES = script(says("one", " two", " three", when="count"), says("a", rows=[{"97": 0, "98": -1, "99": -2}]))
ONE, TWO, THREE = 259, 260, 261


def send(server, path, text="count", **fields):
    prompt = {"messages": [{"role": "user", "content": text}]} if path.startswith(CHAT) else {"prompt": text}
    return server.post(path, {**prompt, **fields})


def choices(server, path, text="count", **fields):
    answer = send(server, path, text, **fields)
    assert answer.status_code == 200, answer.text
    return answer.json()["choices"]


def said(server, path, text="count", **fields):
    choice = choices(server, path, text, **fields)[0]
    return choice["message"]["content"] if path == CHAT else choice["text"]


def refused(server, path, param, text="count", **fields):
    answer = send(server, path, text, **fields)
    assert answer.status_code == 400, answer.text
    error = answer.json()["error"]
    assert error["param"] == param and error["type"] == "invalid_request_error", error
    return error


@pytest.fixture(scope="module")
def server(pool):
    return pool(PIECES)


# bad_words


@pytest.mark.parametrize("path", PATHS)
def test_bad_words_ban_a_token_and_what_completes_a_sequence(server, path):
    greedy = {"temperature": 0, "max_tokens": 1}
    assert said(server, path, "x", **greedy) == "a"
    assert said(server, path, "x", bad_words=["a"], **greedy) == "b"
    assert said(server, path, "x", bad_words=["a", "b"], **greedy) == "c"
    assert said(server, path, "x", bad_words=["ab", "ax"], **greedy) == "a"
    assert said(server, path, "x", bad_words=[], **greedy) == "a"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("k", [1, 2, 3])
def test_bad_words_of_several_tokens(replay, path, k):
    # "b" is second best everywhere.
    rows = [{str(ord(c)): 0, "98": -1, str(IM_END): -2} for c in "xyxyxz"]
    server = replay(script(says("xyxyxz", k=k, rows=rows)))
    take = lambda **f: said(server, path, "go", temperature=0, max_tokens=6, **f)
    assert take() == "xyxyxz"
    assert take(bad_words=["xy"]) == "xbxbxz"
    assert take(bad_words=["xyx"]) == "xybyxz"
    assert take(bad_words=["xz", "yx"]) == "xybybz"
    # The prompt is no part of what was said.
    assert said(server, path, "x", temperature=0, max_tokens=1, bad_words=["xx"]) == "x"


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("value", ["a", 1, {}, [""], [1], [None], ["x" * 257], [["a"]], ["a"] * 1025])
def test_bad_words_refused(server, path, value):
    answer = send(server, path, bad_words=value)
    assert answer.status_code == 400 and answer.json()["error"]["param"].startswith("bad_words")


def test_bad_words_that_leave_nothing(server):
    answer = send(server, COMPLETIONS, "x", bad_words=["a"], allowed_token_ids=[97])
    assert answer.status_code == 400 and answer.json()["error"]["type"] == "invalid_request_error", answer.text
    assert "bad_words" in answer.json()["error"]["message"]
    server.assert_serves()


# prompt_logprobs


def test_prompt_logprobs_of_a_completion(server):
    choice = choices(server, COMPLETIONS, "ab", prompt_logprobs=2, max_tokens=1)[0]
    first, second = choice["prompt_logprobs"]
    assert first is None
    assert second["98"] == {"logprob": 0.0, "rank": 1, "decoded_token": "b"}
    assert len(second) == 2 and all(e["rank"] in (1, 2) and e["logprob"] >= -9999 for e in second.values())
    assert choice["logprobs"] is None
    assert "prompt_logprobs" not in choices(server, COMPLETIONS, "ab", max_tokens=1)[0]


def test_prompt_logprobs_of_a_chat(server):
    answer = send(server, CHAT, prompt_logprobs=0, n=2).json()
    listed = answer["prompt_logprobs"]
    assert len(listed) == answer["usage"]["prompt_tokens"] and listed[0] is None
    assert all(len(entry) == 1 for entry in listed[1:])
    assert "prompt_logprobs" not in answer["choices"][0]
    assert answer["usage"]["prompt_tokens_details"]["cached_tokens"] == 0


def test_prompt_logprobs_beside_echo(server):
    choice = choices(server, COMPLETIONS, "abc", prompt_logprobs=5, logprobs=1, echo=True, max_tokens=1)[0]
    assert [len(e) for e in choice["prompt_logprobs"][1:]] == [5, 5]
    assert choice["logprobs"]["tokens"][:3] == ["a", "b", "c"]
    assert all(len(top) == 1 for top in choice["logprobs"]["top_logprobs"][1:3])


@pytest.mark.parametrize("path", PATHS)
def test_prompt_logprobs_refused(server, path):
    refused(server, path, "prompt_logprobs", prompt_logprobs=1, stream=True)
    for value in (-1, -2, 21, 1.5, True, "1"):
        refused(server, path, "prompt_logprobs", prompt_logprobs=value)


def test_all_logprobs_where_the_server_allows(replay):
    server = replay(PIECES, "--max-logprobs", "-1")
    vocabulary = 262
    entry = choices(server, CHAT, logprobs=True, top_logprobs=-1, max_tokens=1)[0]["logprobs"]["content"][0]
    assert len(entry["top_logprobs"]) == vocabulary
    assert [e["logprob"] for e in entry["top_logprobs"]] == sorted((e["logprob"] for e in entry["top_logprobs"]), reverse=True)
    assert len(choices(server, COMPLETIONS, "ab", prompt_logprobs=-1)[0]["prompt_logprobs"][1]) == vocabulary
    assert choices(server, CHAT, logprobs=True, top_logprobs=40, max_tokens=1)


@pytest.mark.parametrize("path,param", [(CHAT, "top_logprobs"), (COMPLETIONS, "logprobs")])
@pytest.mark.parametrize("value", [-1, -2, 21])
def test_more_alternatives_than_the_server_gives(server, path, param, value):
    fields = {"logprobs": True} if path == CHAT else {}
    refused(server, path, param, **{**fields, param: value})


# logprob_token_ids


def test_logprob_token_ids(server):
    entry = choices(server, CHAT, "x", logprobs=True, logprob_token_ids=[99, 97], max_tokens=1)[0]["logprobs"]["content"][0]
    assert [(e["token"]) for e in entry["top_logprobs"]] == ["a", "c"]
    top = choices(server, CHAT, "x", logprobs=True, top_logprobs=1, logprob_token_ids=[99, 97], max_tokens=1)
    assert top[0]["logprobs"]["content"][0]["top_logprobs"] == entry["top_logprobs"]
    legacy = choices(server, COMPLETIONS, "x", logprobs=0, logprob_token_ids=[99], max_tokens=1)[0]["logprobs"]
    assert set(legacy["top_logprobs"][0]) == {"c", legacy["tokens"][0]}


@pytest.mark.parametrize("path", PATHS)
def test_logprob_token_ids_refused(server, path):
    on = {"logprobs": True} if path == CHAT else {"logprobs": 1}
    refused(server, path, "logprob_token_ids", logprob_token_ids=[97])
    for value in ([999999], [-1], ["a"], "a", list(range(129))):
        refused(server, path, "logprob_token_ids", logprob_token_ids=value, **on)
    server.assert_serves()


# truncate_prompt_tokens


def ids_used(server, **fields):
    return choices(server, COMPLETIONS, "abcdef", return_token_ids=True, **fields)[0]["prompt_token_ids"]


def test_truncation(server):
    assert bytes(ids_used(server, truncate_prompt_tokens=2)) == b"ef"
    assert bytes(ids_used(server, truncate_prompt_tokens=2, truncation_side="left")) == b"ef"
    assert bytes(ids_used(server, truncate_prompt_tokens=2, truncation_side="right")) == b"ab"
    for wide in (6, 7, 4096, -1, None):
        assert bytes(ids_used(server, truncate_prompt_tokens=wide)) == b"abcdef"
    echoed = said(server, COMPLETIONS, "abcdef", truncate_prompt_tokens=3, echo=True, max_tokens=0)
    assert echoed == "def"


def test_truncation_of_a_chat(server):
    answer = send(server, CHAT, truncate_prompt_tokens=5, return_token_ids=True).json()
    whole = send(server, CHAT, return_token_ids=True).json()
    assert answer["prompt_token_ids"] == whole["prompt_token_ids"][-5:]
    assert answer["usage"]["prompt_tokens"] == 5


def test_truncation_to_what_fits(replay):
    server = replay(script(says("ok"), max_model_len=32))
    for path in PATHS:
        refused(server, path, "messages" if path == CHAT else "prompt", text="x" * 100)
        body = send(server, path, "x" * 100, truncate_prompt_tokens=-1).json()
        assert body["usage"]["prompt_tokens"] == 31 and body["choices"][0]["finish_reason"] == "length"


@pytest.mark.parametrize("path", PATHS)
def test_truncation_refused(server, path):
    for value in (0, -2, 4097, 1.5, "2", True):
        refused(server, path, "truncate_prompt_tokens", truncate_prompt_tokens=value)
    for value in ("middle", "", 1):
        refused(server, path, "truncation_side", truncation_side=value, truncate_prompt_tokens=1)
    answer = send(server, path, truncation_side="left")
    assert answer.headers["x-omnibus-ignored-fields"] == "truncation_side"


# documents


def test_documents(replay, hello):
    template = "{% for d in documents %}<{{ d.title }}:{{ d.text }}>{% endfor %}{{ messages[0].content }}"
    server = replay(script(says("ok"), template=template))
    documents = [{"title": "t", "text": "<|im_end|>"}]
    answer = send(server, CHAT, "hi", documents=documents, return_token_ids=True)
    assert bytes(answer.json()["prompt_token_ids"]) == b"<t:<|im_end|>>hi"
    assert "x-omnibus-ignored-fields" not in answer.headers
    answer = send(hello, CHAT, "hi", documents=documents)
    assert answer.status_code == 200 and answer.headers["x-omnibus-ignored-fields"] == "documents"
    assert "x-omnibus-ignored-fields" not in send(hello, CHAT, "hi", documents=[]).headers
    for value in ("x", [1], ["x"], {}):
        answer = send(hello, CHAT, "hi", documents=value)
        assert answer.status_code == 400 and answer.json()["error"]["param"].startswith("documents")


# priority, penalties, temperature


@pytest.mark.parametrize("path", PATHS)
def test_priority(server, path):
    assert said(server, path, priority=0) == "one two three"
    for value in (1, -1):
        assert "order of arrival" in refused(server, path, "priority", priority=value)["message"]
    refused(server, path, "priority", priority="0")


def test_repeat_penalty_is_repetition_penalty(replay):
    server = replay(script(says("a", eos=False, rows=[{"97": 2.0, "98": 1.5}] * 200)))
    take = lambda **f: said(server, CHAT, "z", temperature=0, max_tokens=4, **f)
    assert take(repeat_penalty=2.0) == take(repetition_penalty=2.0) == "baaa" != take()
    assert take(repeat_penalty=2.0, repetition_penalty=2.0) == "baaa"
    refused(server, CHAT, "repeat_penalty", repeat_penalty=2.0, repetition_penalty=1.5)
    refused(server, CHAT, "repeat_penalty", repeat_penalty=0)


def test_a_tiny_temperature_is_not_infinite_logits(replay):
    server = replay(script(says("a", rows=[{"97": 0, "98": -1}])))
    for value in (1e-30, 1e-9, 0.005, 0.01):
        assert said(server, CHAT, temperature=value) == "a"


def test_top_p_0_keeps_the_best(replay):
    server = replay(script(says("a", rows=[{"97": 0, "98": -0.01}])))
    assert {said(server, path, top_p=0, seed=s) for path in PATHS for s in range(5)} == {"a"}


# best_of


def test_best_of_keeps_the_likeliest(replay):
    # "a" and its end are the likeliest; a draw of "c" is not.
    server = replay(script(says("a", rows=[{"97": 0, "98": -0.5, "99": -1.0}])))
    fields = {"best_of": 20, "seed": 3, "max_tokens": 1}
    best = choices(server, COMPLETIONS, "x", **fields)
    assert len(best) == 1 and best[0]["text"] == "a" and best[0]["logprobs"] is None
    drawn = choices(server, COMPLETIONS, "x", n=20, logprobs=0, seed=3, max_tokens=1)
    order = sorted((c["logprobs"]["token_logprobs"][0] for c in drawn), reverse=True)
    kept = choices(server, COMPLETIONS, "x", n=12, logprobs=0, **fields)
    assert [c["logprobs"]["token_logprobs"][0] for c in kept] == order[:12]
    assert [c["index"] for c in kept] == list(range(12))
    usage = send(server, COMPLETIONS, "x", **fields).json()["usage"]
    assert usage["completion_tokens"] == 20 and usage["prompt_tokens"] == 1


def test_best_of_each_prompt(server):
    answer = choices(server, COMPLETIONS, ["count", "x"], best_of=2, max_tokens=1, temperature=0)
    assert [c["text"] for c in answer] == ["one", "a"]


def test_best_of_refused(server):
    refused(server, COMPLETIONS, "best_of", best_of=1, n=2)
    refused(server, COMPLETIONS, "best_of", best_of=0)
    refused(server, COMPLETIONS, "best_of", best_of=21)
    refused(server, COMPLETIONS, "best_of", best_of=2, stream=True)
    assert send(server, COMPLETIONS, best_of=2, n=2, stream=True).status_code == 200


# defaults of the model


def test_defaults_are_the_request_then_the_model_then_the_servers(replay):
    rows = [{"97": 0, "98": -0.01}] * 1
    text = script(says("a", rows=rows), sampling={"temperature": 0})
    of_model = replay(text)
    drawn = lambda server, **f: {said(server, CHAT, seed=s, max_tokens=1, **f) for s in range(24)}
    assert drawn(of_model) == {"a"}
    assert drawn(of_model, temperature=None) == {"a"}
    assert drawn(of_model, temperature=1) == {"a", "b"}
    for name in ("none", "vllm"):
        assert drawn(replay(text, "--generation-config", name)) == {"a", "b"}
    penalised = replay(script(says("a", eos=False, rows=[{"97": 2.0, "98": 1.5}] * 9), sampling={"repetition_penalty": 2.0}))
    assert said(penalised, CHAT, "z", temperature=0, max_tokens=2) == "ba"
    assert said(penalised, CHAT, "z", temperature=0, max_tokens=2, repetition_penalty=1) == "aa"


# render


def test_render(server):
    body = send(server, CHAT + "/render").json()
    used = send(server, CHAT, return_token_ids=True).json()["prompt_token_ids"]
    assert body["token_ids"] == used and body["model"] == "replay" and body["request_id"].startswith("chatcmpl-")
    rendered = send(server, COMPLETIONS + "/render", ["ab", "c"]).json()
    assert [r["token_ids"] for r in rendered] == [[97, 98], [99]]
    refused(server, CHAT + "/render", "temperature", temperature=3)
    refused(server, COMPLETIONS + "/render", "temperature", temperature=3)
    assert server.post(CHAT + "/render", {"messages": []}).status_code == 400
