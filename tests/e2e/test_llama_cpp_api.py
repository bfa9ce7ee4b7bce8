"""llama-server's native API: /completion and what its clients look for beside it."""

import itertools
import json

import pytest
import requests

from harness.raw import exchange, request_bytes
from harness.script import HELLO, SPECIALS, script, says

PIECES = ["Hel", "lo", " wor", "ld", "\n", "é", "!"]
TEXT = "".join(PIECES)
HI = script(says(*PIECES, when="hi"), says("x", when="endless", eos=False), says("ok"))
# Not the same in two answers.
MEASURED = ("prompt_ms", "prompt_per_token_ms", "prompt_per_second", "predicted_ms", "predicted_per_token_ms",
            "predicted_per_second")


@pytest.fixture(scope="module")
def server(pool):
    return pool(HI)


def complete(server, prompt="hi", path="/completion", **fields):
    answer = server.post(path, {"prompt": prompt, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


def chunks(server, prompt="hi", **fields):
    answer = server.post("/completion", {"prompt": prompt, "stream": True, **fields})
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "text/event-stream; charset=utf-8"
    blocks = answer.content.decode("utf-8").split("\n\n")
    assert blocks.pop() == "" and all(b.startswith("data: {") and "\n" not in b for b in blocks), blocks
    return [json.loads(block[len("data: ") :]) for block in blocks]


def refused(server, body, path="/completion", status=400):
    answer = server.post(path, body)
    assert answer.status_code == status, answer.text
    return answer.json()["error"]


# The answer.


def test_shape(server):
    body = complete(server, temperature=0)
    assert list(body) == [
        "index", "content", "tokens", "id_slot", "stop", "model", "tokens_predicted", "tokens_evaluated",
        "generation_settings", "prompt", "has_new_line", "truncated", "stop_type", "stopping_word", "tokens_cached",
        "timings",
    ]
    assert body["content"] == TEXT and body["has_new_line"] is True
    assert body["prompt"] == "hi" and body["tokens_evaluated"] == 2 and body["tokens"] == []
    assert (body["stop"], body["stop_type"], body["stopping_word"]) == (True, "eos", "")
    assert body["tokens_predicted"] == len(PIECES) + 1 and body["truncated"] is False
    assert complete(server, path="/completions")["content"] == TEXT


def test_timings(server):
    timings = complete(server)["timings"]
    assert (timings["prompt_n"], timings["cache_n"], timings["predicted_n"]) == (2, 0, len(PIECES) + 1)
    assert all(timings[name] >= 0 for name in MEASURED)
    rate = 1000 * len(PIECES) / timings["predicted_ms"]
    assert timings["predicted_per_second"] == pytest.approx(rate)
    assert timings["prompt_per_second"] == pytest.approx(2000 / timings["prompt_ms"])
    one = complete(server, n_predict=1)["timings"]
    assert one["predicted_n"] == 1 and one["predicted_per_second"] == 0 and one["predicted_per_token_ms"] == 0


def without_times(answer):
    answer = {**answer, "timings": {k: v for k, v in answer["timings"].items() if k not in MEASURED}}
    settings = {k: v for k, v in answer.pop("generation_settings").items() if k not in ("seed", "stream")}
    return {**answer, "generation_settings": settings}


@pytest.mark.parametrize("fields", [{}, {"n_predict": 3}, {"stop": ["ld\n"]}, {"n_probs": 2}, {"seed": 5}])
def test_stream_equals_whole(server, fields):
    whole = complete(server, return_tokens=True, **fields)
    events = chunks(server, **fields)
    parts, end = events[:-1], events[-1]
    assert [e["stop"] for e in events] == [False] * len(parts) + [True]
    assert "".join(e["content"] for e in parts) == whole["content"]
    assert list(itertools.chain.from_iterable(e["tokens"] for e in parts)) == whole["tokens"]
    if "n_probs" in fields:
        streamed = list(itertools.chain.from_iterable(e["completion_probabilities"] for e in parts))
        assert streamed == whole.pop("completion_probabilities")
    assert (end["content"], end["tokens"]) == ("", [])
    whole["content"], whole["tokens"] = "", []
    assert without_times(end) == without_times(whole)
    assert parts[-1]["tokens_predicted"] == whole["tokens_predicted"]


def all_cuts(text):
    for mask in range(1 << (len(text) - 1)):
        pieces, begin = [], 0
        for i in range(1, len(text)):
            if mask >> (i - 1) & 1:
                pieces.append(text[begin:i])
                begin = i
        yield [*pieces, text[begin:]]


def test_every_split_gives_the_same_answer(pool):
    cuts = list(all_cuts("aab\ncd"))
    server = pool(script(*(says(*pieces, when=f"<{i}>", k=1 + i % 3) for i, pieces in enumerate(cuts))))
    for i in range(len(cuts)):
        whole = complete(server, f"<{i}>", stop="b\nc")
        assert (whole["content"], whole["stop_type"], whole["stopping_word"]) == ("aa", "word", "b\nc"), cuts[i]
        assert whole["has_new_line"] is False
        events = chunks(server, f"<{i}>", stop="b\nc")
        assert "".join(e["content"] for e in events) == "aa", cuts[i]
        assert (events[-1]["stop_type"], events[-1]["stopping_word"]) == ("word", "b\nc")
        assert events[-1]["has_new_line"] is False


@pytest.mark.parametrize("stream", [False, True])
def test_headers_of_openai_stay_there(server, stream):
    bodies = {"/completion": {"prompt": "hi"}, "/api/generate": {"prompt": "hi", "model": "replay"}}
    for path, body in bodies.items():
        answer = server.post(path, {**body, "stream": stream})
        assert answer.status_code == 200, answer.text
        assert not [name for name in answer.headers if name.lower().startswith("openai-")], path
    answer = server.post("/v1/completions", {"prompt": "hi", "stream": stream})
    assert int(answer.headers["openai-processing-ms"]) >= 0


def test_lengths(server):
    limited = complete(server, n_predict=2)
    assert (limited["content"], limited["stop_type"], limited["truncated"]) == ("Hello", "limit", False)
    for name in ("max_tokens", "max_completion_tokens"):
        assert complete(server, **{name: 1})["content"] == "Hel"
    assert complete(server, n_predict=1, max_tokens=3)["content"] == "Hel"
    nothing = complete(server, n_predict=0, return_tokens=True)
    assert (nothing["content"], nothing["tokens"], nothing["tokens_predicted"]) == ("", [], 0)
    assert (nothing["stop_type"], nothing["truncated"]) == ("limit", False)
    assert [e["stop"] for e in chunks(server, n_predict=0)] == [True]


def test_answer_to_the_end_of_the_context(pool):
    server = pool(HI, "--max-model-len", "64")
    full = complete(server, "endless", n_predict=-1)
    assert (full["tokens_predicted"], full["stop_type"], full["truncated"]) == (64 - 7, "limit", True)
    assert complete(server, "endless", n_predict=100)["truncated"] is True
    assert complete(server, "endless", n_predict=64 - 7)["truncated"] is False
    error = refused(server, {"prompt": "y" * 64})
    assert "exceeds the available context size" in error["message"]
    assert (error["type"], error["code"], error["param"]) == (
        "exceed_context_size_error", "context_length_exceeded", "prompt")
    assert (error["n_prompt_tokens"], error["n_ctx"]) == (64, 64)
    assert "n_ctx" not in refused(server, {"prompt": "hi", "n_predict": "x"})


def test_default_max_tokens(pool):
    server = pool(HI, "--default-max-tokens", "3")
    body = complete(server, "endless")
    assert body["content"] == "xxx" and body["generation_settings"]["n_predict"] == 3
    assert complete(server, "endless", n_predict=5)["content"] == "xxxxx"
    legacy = server.post("/v1/completions", {"prompt": "endless"}).json()
    assert legacy["choices"][0]["text"] == "xxx"
    assert server.chat("endless").json()["choices"][0]["message"]["content"] == "xxx"
    assert server.chat("endless", max_tokens=4).json()["choices"][0]["message"]["content"] == "xxxx"


def test_settings_and_defaults(server):
    settings = complete(server, stop=["a", ""], ignore_eos=True, n_predict=4)["generation_settings"]
    shown = {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.05, "repeat_penalty": 1, "n_predict": 4}
    for name, value in shown.items():
        assert settings[name] == pytest.approx(value), name
    assert settings["stop"] == ["a"] and settings["ignore_eos"] is True and settings["stream"] is False
    assert settings["logit_bias"] and all(entry["bias"] is None for entry in settings["logit_bias"])
    assert complete(server)["generation_settings"]["logit_bias"] == []


def test_values_beyond_a_soft_bound_mean_the_bound(server):
    settings = complete(server, temperature=-1, top_p=1.5, min_p=-2, top_k=-1)["generation_settings"]
    assert [settings[n] for n in ("temperature", "top_p", "min_p", "top_k")] == [0, 1, 0, 0]


FLAT = script(says(*"abcdefgh", rows=[{str(i): 0.0 for i in range(97, 105)}] * 9, eos=False))


def test_seeds(pool):
    server = pool(FLAT, "--seed", "42")
    first = complete(server, "q", n_predict=9)
    assert first["generation_settings"]["seed"] == 42
    assert complete(server, "q", n_predict=9)["content"] == first["content"]
    assert complete(server, "q", n_predict=9, seed=42)["content"] == first["content"]
    assert complete(server, "q", n_predict=9, seed=43)["content"] != first["content"]
    # -1 asks for a new one; the answer says which, and that one repeats it.
    drawn = complete(server, "q", n_predict=9, seed=-1)
    seed = drawn["generation_settings"]["seed"]
    assert seed != 42 and 0 <= seed < 2**31
    assert complete(server, "q", n_predict=9, seed=seed)["content"] == drawn["content"]


@pytest.mark.parametrize(("flags", "seed"), [((), {}), ((), {"seed": -1}), (("--seed", "42"), {"seed": -1})])
def test_prompts_of_a_list_draw_each_for_itself(pool, flags, seed):
    server = pool(FLAT, *flags)
    body = complete(server, ["q"] * 3, n_predict=30, **seed)
    assert len({b["content"] for b in body}) == 3
    for answer in body:
        again = complete(server, "q", n_predict=30, seed=answer["generation_settings"]["seed"])
        assert again["content"] == answer["content"]


def test_several(server):
    both = complete(server, ["hi", "yo"])
    assert [(b["index"], b["content"], b["prompt"]) for b in both] == [(0, TEXT, "hi"), (1, "ok", "yo")]
    for name in ("n_cmpl", "n"):
        twice = complete(server, "yo", **{name: 2})
        assert [(b["index"], b["content"]) for b in twice] == [(0, "ok"), (1, "ok")]
    events = chunks(server, ["hi", "yo"])
    for index, text in enumerate((TEXT, "ok")):
        mine = [e for e in events if e["index"] == index]
        assert "".join(e["content"] for e in mine) == text and [e["stop"] for e in mine].count(True) == 1


def test_probabilities(pool):
    server = pool(script(says("a", rows=[{"97": -0.1, "98": -2.5}, {"258": 0.0}])))
    body = complete(server, "q", n_probs=2, temperature=0)
    (first, *_) = body["completion_probabilities"]
    assert (first["id"], first["token"], first["bytes"]) == (97, "a", [97])
    assert [(t["id"], t["token"]) for t in first["top_logprobs"]] == [(97, "a"), (98, "b")]
    assert first["logprob"] == first["top_logprobs"][0]["logprob"] < 0
    assert first["top_logprobs"][0]["logprob"] - first["top_logprobs"][1]["logprob"] == pytest.approx(2.4, abs=1e-4)
    assert "completion_probabilities" not in complete(server, "q", n_probs=0)
    assert len(complete(server, "q", logprobs=1)["completion_probabilities"][0]["top_logprobs"]) == 1


def test_number_of_probabilities(pool):
    error = refused(pool(HI, "--max-logprobs", "3"), {"prompt": "hi", "n_probs": 4})
    assert (error["param"], error["code"]) == ("n_probs", "integer_above_max_value")
    unlimited = pool(HI, "--max-logprobs", "-1")
    assert complete(unlimited)["content"] == TEXT
    few = complete(unlimited, n_probs=30, n_predict=1)["completion_probabilities"][0]["top_logprobs"]
    all_there_are = complete(unlimited, n_probs=2**31 - 1, n_predict=1)["completion_probabilities"][0]["top_logprobs"]
    assert len(few) == 30 and len({t["id"] for t in all_there_are}) == len(all_there_are) > 256


def test_probabilities_of_a_whole_vocabulary_have_a_limit(pool):
    server = pool(HI, "--max-logprobs", "-1", "--max-model-len", "65536")
    assert complete(server, n_probs=250, n_predict=9)["content"] == TEXT
    user = [{"role": "user", "content": "hi"}]
    for path, body, param in [
        ("/completion", {"prompt": "hi", "n_probs": 250}, "n_probs"),
        ("/completion", {"prompt": ["hi", "hi"], "n_probs": 250, "n_predict": 60000}, "n_probs"),
        ("/v1/completions", {"prompt": "hi", "logprobs": -1, "max_tokens": 60000}, "logprobs"),
        ("/v1/completions", {"prompt": "h" * 30000, "prompt_logprobs": -1}, "prompt_logprobs"),
        ("/v1/chat/completions", {"messages": user, "logprobs": True, "top_logprobs": -1}, "top_logprobs"),
    ]:
        error = refused(server, body, path)
        assert (error["param"], error["code"]) == (param, "integer_above_max_value"), error
    for path, body in [
        ("/v1/completions", {"prompt": "hi", "logprobs": -1, "prompt_logprobs": -1}),
        ("/v1/chat/completions", {"messages": user, "logprobs": True, "top_logprobs": -1, "max_tokens": 9}),
    ]:
        assert server.post(path, body).status_code == 200


def test_response_fields(server):
    body = complete(server, response_fields=["content", "generation_settings/n_predict", "no/such", "prompt"], n_predict=2)
    assert body == {"content": "Hello", "generation_settings/n_predict": 2, "prompt": "hi"}
    end = chunks(server, response_fields=["stop_type"], n_predict=2)[-1]
    assert end == {"stop_type": "limit"}


def test_timings_per_token(server):
    parts = chunks(server, timings_per_token=True)[:-1]
    assert [p["timings"]["predicted_n"] for p in parts] == [p["tokens_predicted"] for p in parts]
    assert all("timings" not in p for p in chunks(server)[:-1])


# Prompts.


@pytest.mark.parametrize("prompt", ["hi", [104, 105], [104, "i"], ["h", 105], {"prompt_string": "hi"}, [["h", "i"]],
                                    {"prompt_string": "hi", "multimodal_data": []}])
def test_prompt_forms(server, prompt):
    body = complete(server, prompt)
    assert body["content"] == TEXT and body["prompt"] == "hi" and body["tokens_evaluated"] == 2


def test_lists_of_mixed_prompts(server):
    answers = complete(server, ["hi", [104, 105], {"prompt_string": "hi"}, [121, "o"]])
    assert [a["content"] for a in answers] == [TEXT] * 3 + ["ok"]


@pytest.mark.parametrize("prompt, param", [
    ("", "prompt"), ([], "prompt"), ([[]], "prompt[0]"), (7, "prompt"), (True, "prompt"), ([1, True], "prompt[1]"),
    ([-1], "prompt[0]"), ([1.5], "prompt[0]"), ([999999], "prompt[0]"), (["a", {}], "prompt[1].prompt_string"),
    ({}, "prompt.prompt_string"), ({"prompt_string": 1}, "prompt.prompt_string"), ([[1, None]], "prompt[0][1]"),
    ({"prompt_string": "a", "multimodal_data": ["x"]}, "prompt.multimodal_data"), (["a"] * 257, "prompt"),
])
def test_bad_prompts(server, prompt, param):
    error = refused(server, {"prompt": prompt})
    assert error["param"] == param and error["type"] == "invalid_request_error"


def test_missing_prompt(server):
    for body in ({}, {"prompt": None}):
        error = refused(server, body)
        assert (error["param"], error["code"]) == ("prompt", "missing_required_parameter")


# Fields.


@pytest.mark.parametrize("bias", [[[97, False]], [["a", False]], {"97": False}, {"a": False}, [[97, -1e9]]])
def test_bias_against_a_token(pool, bias):
    server = pool(script(says("a", rows=[{"97": 0.0, "98": -1.0}, {"258": 0.0}])))
    assert complete(server, "q", temperature=0)["content"] == "a"
    body = complete(server, "q", temperature=0, logit_bias=bias)
    assert body["content"] == "b"
    (entry,) = body["generation_settings"]["logit_bias"]
    assert entry["token"] == 97 and entry["bias"] in (None, pytest.approx(-1e9))


def test_bias_on_each_token_of_a_text(pool):
    server = pool(script(says("a", rows=[{"97": 0.0, "98": -1.0, "99": -2.0}, {"258": 0.0}])))
    assert complete(server, "q", temperature=0, logit_bias=[["ab", -50]])["content"] == "c"


@pytest.mark.parametrize("bias", [7, "a", [1], [[1]], [[1, 2, 3]], [[1.5, 1]], [[None, 1]], [[97, "x"]], [[97, True]],
                                  [[-1, 1]], [[999999, 1]], {"999999": 1}, {"97": None}, {"-1": 1}])
def test_bad_bias(server, bias):
    assert refused(server, {"prompt": "hi", "logit_bias": bias})["param"] == "logit_bias"


NEUTRAL = {
    "grammar": "", "post_sampling_probs": False, "return_progress": False, "verbose": False, "n_indent": 0,
    "mirostat": 0, "xtc_probability": 0, "dry_multiplier": 0.0, "dynatemp_range": 0, "top_n_sigma": -1,
    "t_max_predict_ms": -1, "adaptive_target": -1, "typical_p": 1, "min_keep": 1, "lora": [{"id": 0, "scale": 0}],
    "samplers": ["penalties", "temperature", "top_k", "top_p", "min_p"], "repeat_last_n": 64,
}
EFFECT = {
    "grammar": 'root ::= "a"', "json_schema": {}, "post_sampling_probs": True, "return_progress": True,
    "verbose": True, "n_indent": 1, "mirostat": 2, "xtc_probability": 0.5, "dry_multiplier": 0.8,
    "dynatemp_range": 0.1, "top_n_sigma": 1, "t_max_predict_ms": 50, "adaptive_target": 0, "typical_p": 0.9,
    "min_keep": 2, "lora": [{"id": 0, "scale": 1}], "samplers": ["top_k"],
}


def test_fields_without_effect(server):
    answer = server.post("/completion", {"prompt": "hi", **NEUTRAL})
    assert answer.status_code == 200, answer.text
    assert "x-omnibus-ignored-fields" not in answer.headers
    hints = {"cache_prompt": True, "id_slot": 0, "n_keep": 4, "dry_base": 2, "mirostat_tau": 1, "nothing_known": 1}
    answer = server.post("/completion", {"prompt": "hi", **hints})
    assert set(answer.headers["x-omnibus-ignored-fields"].split(", ")) == set(hints)


@pytest.mark.parametrize("name", EFFECT)
def test_samplers_that_are_not_there(server, name):
    error = refused(server, {"prompt": "hi", name: EFFECT[name]})
    assert (error["param"], error["code"]) == (name, "unsupported_parameter")


@pytest.mark.parametrize("name, value", [
    ("n_predict", -2), ("n_predict", 2**31), ("n_predict", "5"), ("n_predict", True), ("n_cmpl", 0), ("n", 129),
    ("n_probs", -1), ("n_probs", 21), ("temperature", "x"), ("top_k", 0.5), ("repeat_penalty", 0),
    ("repeat_last_n", -2), ("seed", 1.5), ("seed", 2**63), ("stop", 5), ("stream", 1),
    ("response_fields", "content"), ("response_fields", [1]), ("ignore_eos", "yes"), ("model", 3),
])
def test_bad_values(server, name, value):
    assert refused(server, {"prompt": "hi", name: value})["param"] == name


def test_stops(server):
    assert complete(server, stop="")["stop_type"] == "eos" and complete(server, stop=[])["stop_type"] == "eos"
    assert complete(server, stop=["", "lo"])["stopping_word"] == "lo"
    assert refused(server, {"prompt": "hi", "stop": ["a", "", 1]})["param"] == "stop[2]"
    assert refused(server, {"prompt": "hi", "stop": ["a"] * 65})["param"] == "stop"


def test_repeat_last_n(pool):
    # "a" is likelier each time, by less than the penalty takes. Prompt and answer count alike.
    server = pool(script(says("aa", rows=[{"97": -0.1, "98": -0.15}, {"97": -0.1, "98": -0.15}], eos=False)))
    ask = dict(temperature=0, n_predict=2)
    assert complete(server, "q", **ask)["content"] == "aa"
    assert complete(server, "q", repeat_penalty=2, **ask)["content"] == "ab"
    assert complete(server, "q", repeat_penalty=2, repeat_last_n=-1, **ask)["content"] == "ab"
    assert complete(server, "q", repeat_penalty=2, repeat_last_n=0, **ask)["content"] == "aa"
    assert complete(server, "q", repeat_penalty=2, repeat_last_n=64, **ask)["content"] == "ab"
    for name in ("repeat_penalty", "presence_penalty", "frequency_penalty"):
        settings = dict(ask, add_special=False, **{name: 2})
        assert complete(server, "qa", repeat_last_n=2, **settings)["content"] == "ba"
        assert complete(server, "qa", repeat_last_n=1, **settings)["content"] == "ba"
        assert complete(server, "aq", repeat_last_n=1, **settings)["content"] == "ab"
        assert complete(server, "aqq", repeat_last_n=2, **settings)["content"] == "ab"
        assert complete(server, "aqq", **settings)["content"] == "ba"
    props = requests.get(server.url + "/props", timeout=10).json()
    settings = complete(server, "q", repeat_last_n=-1, **ask)["generation_settings"]
    assert settings["repeat_last_n"] == props["default_generation_settings"]["n_ctx"]


def test_model_names(pool):
    server = pool(HI, "--served-model-name", "one", "--served-model-name", "two")
    assert complete(server)["model"] == "one" and complete(server, model="two")["model"] == "two"
    error = refused(server, {"prompt": "hi", "model": "three"}, status=404)
    assert (error["code"], error["type"]) == ("model_not_found", "not_found_error")


# Filling in.


def test_infill_of_a_model_without_the_tokens(server):
    error = refused(server, {"input_prefix": "a", "input_suffix": "b"}, "/infill", 501)
    assert error["type"] == "not_supported_error"


@pytest.mark.parametrize("fields, param", [
    ({"input_prefix": None}, "input_prefix"), ({"input_suffix": None}, "input_suffix"),
    ({"input_prefix": 1}, "input_prefix"), ({"prompt": [1]}, "prompt"), ({"input_extra": {}}, "input_extra"),
    ({"input_extra": [1]}, "input_extra[0]"), ({"input_extra": [{}]}, "input_extra[0].text"),
    ({"input_extra": [{"text": 1}]}, "input_extra[0].text"),
    ({"input_extra": [{"text": "a", "filename": 1}]}, "input_extra[0].filename"),
])
def test_bad_infill(server, fields, param):
    body = {"input_prefix": "a", "input_suffix": "b", **fields}
    assert refused(server, body, "/infill")["param"] == param


FIM = ["<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"]


def test_infill(pool):
    server = pool(script(says("mid"), specials=[*SPECIALS, *FIM]))
    body = server.post("/infill", {"input_prefix": "int f(", "prompt": "int ", "input_suffix": "a) {}"}).json()
    assert body["prompt"] == "<|fim_prefix|>int f(int <|fim_suffix|>a) {}<|fim_middle|>"
    assert body["content"] == "mid"
    extra = [{"filename": "a.h", "text": "int g();"}]
    body = server.post("/infill", {"input_prefix": "x", "input_suffix": "y", "input_extra": extra}).json()
    assert body["prompt"] == "\n\n--- a.h\nint g();<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>"
    # Text that spells a control token stays text.
    body = server.post("/infill", {"input_prefix": FIM[2], "input_suffix": "", "n_predict": 1}).json()
    assert body["tokens_evaluated"] == len(FIM[2]) + 3


def test_infill_of_files_without_names(pool):
    server = pool(script(says("mid"), specials=[*SPECIALS, *FIM]))
    for file in ({"text": "a"}, {"text": "a", "filename": None}):
        body = {"input_prefix": "x", "input_suffix": "y", "input_extra": [file]}
        assert server.post("/infill", body).json()["prompt"].startswith("\n\n--- file\na<|fim_prefix|>")


def test_limit_of_infill_counts_all_that_is_encoded(pool):
    server = pool(script(says("mid"), specials=[*SPECIALS, *FIM]))
    extra = [{"text": "a" * (6 << 20)}, {"text": "b", "filename": "n" * (10 << 20)}]
    error = refused(server, {"input_prefix": "x", "input_suffix": "y", "input_extra": extra}, "/infill", 413)
    assert (error["code"], error["param"]) == ("string_above_max_length", "input_prefix")


def test_infill_with_names_of_files(pool):
    server = pool(script(says("mid"), specials=[*SPECIALS, *FIM, "<|repo_name|>", "<|file_sep|>"]))
    extra = [{"filename": "a.h", "text": "int g();"}]
    body = server.post("/infill", {"input_prefix": "x", "input_suffix": "y", "input_extra": extra}).json()
    assert body["prompt"] == (
        "<|repo_name|>project\n<|file_sep|>a.h\nint g();<|file_sep|>filename\n"
        "<|fim_prefix|>x<|fim_suffix|>y<|fim_middle|>"
    )


# Beside it.


def test_tokenize(server):
    assert server.post("/tokenize", {"content": "ab"}).json() == {"tokens": [97, 98]}
    assert server.post("/tokenize", {"content": ""}).json() == {"tokens": []}
    pieces = server.post("/tokenize", {"content": "aé", "with_pieces": True}).json()["tokens"]
    assert pieces == [{"id": 97, "piece": "a"}, {"id": 0xC3, "piece": [0xC3]}, {"id": 0xA9, "piece": [0xA9]}]
    control = server.post("/tokenize", {"content": SPECIALS[1]}).json()["tokens"]
    assert len(control) == 1
    text = server.post("/tokenize", {"content": SPECIALS[1], "parse_special": False}).json()["tokens"]
    assert len(text) == len(SPECIALS[1])
    for body in ({"content": 1}, {"content": "a", "prompt": "b"}):
        assert server.post("/tokenize", body).status_code == 400
    assert server.post("/detokenize", {"tokens": [97, 98]}).json()["content"] == "ab"


def test_apply_template(server):
    messages = [{"role": "user", "content": "hi"}]
    body = server.post("/apply-template", {"messages": messages}).json()
    assert body == {"prompt": "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\n"}
    body = server.post("/apply-template", {"messages": messages, "add_generation_prompt": False}).json()
    assert body == {"prompt": "<|im_start|>user\nhi<|im_end|>\n"}
    messages.append({"role": "assistant", "content": "yo"})
    body = server.post("/apply-template", {"messages": messages, "continue_final_message": True}).json()
    assert body == {"prompt": "<|im_start|>user\nhi<|im_end|>\n<|im_start|>assistant\nyo"}
    for body in ({}, {"messages": []}, {"messages": [{}]}, {"messages": messages, "tools": [1]}):
        assert refused(server, body, "/apply-template")["param"].split("[")[0] == list(body or {"messages": 0})[-1]


def test_templates_variables(pool, tmp_path):
    file = tmp_path / "t.jinja"
    file.write_text("{{ mood }}|{{ tools | length if tools else 0 }}|{{ messages[0].content }}")
    server = pool(HI, "--chat-template", str(file), "--default-chat-template-kwargs", '{"mood": "calm"}')
    messages = [{"role": "user", "content": "q"}]

    def prompt(**fields):
        return server.post("/apply-template", {"messages": messages, **fields}).json()["prompt"]

    assert prompt() == "calm|0|q"
    assert prompt(chat_template_kwargs={"mood": "wild"}) == "wild|0|q"
    assert prompt(tools=[{"type": "function"}, {}]) == "calm|2|q"
    counted = server.post("/v1/chat/completions/input_tokens", {"messages": messages}).json()
    assert counted["input_tokens"] == len("calm|0|q")
    assert server.chat("q").json()["usage"]["prompt_tokens"] == len("calm|0|q")


def test_input_tokens(server):
    body = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
    used = server.post("/chat/completions", body).json()["usage"]["prompt_tokens"]
    for path in ("/v1/chat/completions/input_tokens", "/chat/completions/input_tokens"):
        assert server.post(path, body).json() == {"object": "response.input_tokens", "input_tokens": used}
    assert refused(server, {"messages": []}, "/chat/completions/input_tokens")["param"] == "messages"


def test_props(pool):
    server = pool(HI, "--seed", "9", "--max-num-seqs", "3", "--max-model-len", "128", "--served-model-name", "me")
    props = requests.get(server.url + "/props", timeout=10).json()
    assert props["total_slots"] == 3 and props["model_alias"] == "me" and props["is_sleeping"] is False
    assert props["default_generation_settings"]["n_ctx"] == 128
    assert props["default_generation_settings"]["params"]["seed"] == 9
    assert "<|im_start|>" in props["chat_template"] and props["modalities"] == {"vision": False, "audio": False}
    assert server.post("/props", {}).status_code == 501


def test_slots(pool):
    server = pool(script(says("x", when="endless", eos=False, delay_ms=5), says("ok")), "--max-num-seqs", "2")

    def busy():
        slots = requests.get(server.url + "/slots", timeout=10).json()
        assert [(s["id"], s["n_ctx"]) for s in slots] == [(0, 4096), (1, 4096)]
        return sum(s["is_processing"] for s in slots)

    assert busy() == 0
    streams = [
        requests.post(server.url + "/completion", json={"prompt": "endless", "stream": True}, stream=True, timeout=30)
        for _ in range(2)
    ]
    readers = [stream.iter_content(1) for stream in streams]
    for reader in readers:
        next(reader)
    assert busy() == 2
    full = requests.get(server.url + "/slots?fail_on_no_slot=1", timeout=10)
    assert full.status_code == 503
    for stream in streams:
        stream.close()
    assert server.post("/slots/0?action=save", {"filename": "x"}).status_code == 501
    for path in ("/slots/0/", "/slots/x", "/slots/../props"):
        assert exchange(server, request_bytes("POST", path, body=b"{}"))[0] == 404, path


def test_no_slots(pool):
    server = pool(HI, "--no-slots")
    answer = requests.get(server.url + "/slots", timeout=10)
    assert answer.status_code == 501 and answer.json()["error"]["type"] == "not_supported_error"


def test_models_and_adapters(pool):
    server = pool(HI, "--served-model-name", "me", "--served-model-name", "also")
    models = requests.get(server.url + "/models", timeout=10).json()
    assert [(m["id"], m["aliases"]) for m in models["data"]] == [("me", ["me", "also"])]
    assert requests.get(server.url + "/lora-adapters", timeout=10).json() == []


@pytest.mark.parametrize("path", ["/embedding", "/embeddings", "/rerank", "/reranking", "/v1/rerank", "/lora-adapters"])
def test_what_is_not_there_says_so(server, path):
    answer = server.post(path, {})
    assert answer.status_code == 501 and path in answer.json()["error"]["message"]


def test_keys(pool):
    server = pool(HELLO, "--api-key", "sk-1")
    error = refused(server, {"prompt": "hello"}, status=401)
    assert error["type"] == "authentication_error"
    answer = server.post("/completion", {"prompt": "hello"}, headers={"X-Api-Key": "sk-1"})
    assert answer.status_code == 200
    for path in ("/props", "/slots", "/models", "/lora-adapters"):
        assert requests.get(server.url + path, timeout=10).status_code == 401
