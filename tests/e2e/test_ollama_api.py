"""Ollama's API from the wire: framing, every field and option, every error."""

import concurrent.futures
import hashlib
import json
import random
import re

import pytest
import requests

from harness.raw import exchange, request_bytes
from harness.script import HELLO, script, says
from harness.sse import joined, stream_chat
from harness.store import add_model, serve_with_store
from harness.wait import wait_until

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z")
TIMINGS = ["total_duration", "load_duration", "prompt_eval_count", "prompt_eval_duration", "eval_count",
           "eval_duration"]


def lines_of(answer):
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == "application/x-ndjson"
    text = answer.content.decode("utf-8")
    assert text.endswith("\n")
    return [json.loads(line) for line in text[:-1].split("\n")]


def generate(server, prompt="hello", **fields):
    return server.post("/api/generate", {"model": "replay", "prompt": prompt, **fields})


def chat(server, text="hello", **fields):
    return server.post("/api/chat", {"model": "replay", "messages": [{"role": "user", "content": text}], **fields})


def error_of(answer, status):
    """The text of an error in Ollama's form, and nothing beside it."""
    assert answer.status_code == status, answer.text
    assert list(answer.json()) == ["error"] and isinstance(answer.json()["error"], str)
    return answer.json()["error"]


def test_generate_streams_by_default(hello):
    lines = lines_of(generate(hello))
    assert all(list(line) == ["model", "created_at", "response", "done"] for line in lines[:-1])
    assert list(lines[-1]) == ["model", "created_at", "response", "done", "done_reason", "context", *TIMINGS]
    assert "".join(line["response"] for line in lines) == "Hello world!"
    assert all(RFC3339.fullmatch(line["created_at"]) for line in lines)
    assert lines[-1]["done"] is True and lines[-1]["response"] == ""


def test_chat_streams_by_default(hello):
    lines = lines_of(chat(hello))
    assert all(list(line) == ["model", "created_at", "message", "done"] for line in lines[:-1])
    assert all(line["message"]["role"] == "assistant" for line in lines)
    assert list(lines[-1]) == ["model", "created_at", "message", "done", "done_reason", *TIMINGS]
    assert "".join(line["message"]["content"] for line in lines) == "Hello world!"


def test_whole_answers(hello):
    body = generate(hello, stream=False)
    assert body.headers["content-type"] == "application/json"
    assert list(body.json()) == ["model", "created_at", "response", "done", "done_reason", "context", *TIMINGS]
    assert list(chat(hello, stream=False).json()) == ["model", "created_at", "message", "done", "done_reason", *TIMINGS]


def test_a_stream_joined_is_the_whole_for_every_split(replay):
    seed = random.randrange(1 << 30)
    source = random.Random(seed)
    text = "Grüße 👩‍👩‍👧 \"{}\" \\n\n 東京 " * 3
    data = text.encode()
    for _ in range(4):
        cuts = sorted({0, len(data), *(source.randrange(len(data)) for _ in range(source.randrange(1, len(data))))})
        pieces = [data[a:b] for a, b in zip(cuts, cuts[1:])]
        server = replay(script(says(*pieces)))
        for ask, part in ((generate, lambda l: l["response"]), (chat, lambda l: l["message"]["content"])):
            whole = ask(server, stream=False).json()
            lines = lines_of(ask(server))
            assert part(whole) == text, f"seed {seed}"
            assert "".join(part(line) for line in lines) == text, f"seed {seed}"
            assert lines[-1]["eval_count"] == whole["eval_count"] == len(pieces) + 1
            assert lines[-1].get("context") == whole.get("context")


def test_the_doors_say_the_same(hello):
    assert chat(hello, stream=False).json()["message"]["content"] == joined(stream_chat(hello, "hello"))


def test_noise_of_the_python_client(hello):
    noise = {"format": "", "options": {}, "keep_alive": None, "tools": [], "think": None, "stream": False}
    assert chat(hello, **noise).json()["message"]["content"] == "Hello world!"
    noise = {"suffix": "", "system": "", "template": "", "context": None, "raw": False, "images": [], "format": "",
             "options": None, "keep_alive": None, "stream": False}
    answer = generate(hello, **noise)
    assert answer.json()["response"] == "Hello world!" and "x-omnibus-ignored-fields" not in answer.headers
    by_name = hello.post("/api/generate", {"name": "replay", "prompt": "hello", "stream": False})
    assert by_name.json()["response"] == "Hello world!"


@pytest.mark.parametrize("name", ["replay", "replay:latest", "REPLAY", "Replay:Latest",
                                  "registry.ollama.ai/library/replay:latest", "library/replay"])
def test_names_of_the_model(hello, name):
    answer = hello.post("/api/chat", {"model": name, "messages": [{"role": "user", "content": "hello"}],
                                      "stream": False})
    assert answer.json()["message"]["content"] == "Hello world!" and answer.json()["model"] == name


@pytest.mark.parametrize("name", ["replay:7b", "someone/replay", "example.com/library/replay", "repla", "x" * 300, "x" + "é" * 200])
def test_other_names(hello, name):
    for path, body in (("/api/chat", {"messages": []}), ("/api/generate", {}), ("/api/show", {})):
        told = name if len(name) <= 200 else {"x": "x" * 200 + "...", "é": "x" + "é" * 99 + "..."}[name[-1]]
        assert error_of(hello.post(path, {"model": name, **body}), 404) == f"model '{told}' not found"


def test_no_name(hello):
    for path in ("/api/chat", "/api/generate", "/api/show"):
        assert error_of(hello.post(path, {"prompt": "hello"}), 400) == "model is required"


def test_any_model(replay):
    server = replay(HELLO, "--any-model")
    assert server.post("/api/chat", {"model": "x", "messages": []}).json()["done_reason"] == "load"


# Options: name, values that pass, values that are out of bounds, a value of the wrong type, Ollama's name of the type.
OPTIONS = [
    ("temperature", [0, 0.8, 1.5, 5], [-1, 1e9], "1", "float32"),
    ("top_k", [0, 40, -1, 40.0], [-2, 2**31, 2**63, 1e300], 1.5, "integer"),
    ("top_p", [0, 0.9, 1], [-0.1, 1.1], True, "float32"),
    ("min_p", [0, 0.05, 1], [-0.1, 2], [], "float32"),
    ("repeat_penalty", [1, 1.1, 0.9], [0, -1, 1e30], "1.1", "float32"),
    ("repeat_last_n", [64, 0, -1], [-2, 2**40], "64", "integer"),
    ("presence_penalty", [0, -2, 2], [3, -3], {}, "float32"),
    ("frequency_penalty", [0, -2, 2], [3, -3], "x", "float32"),
    ("seed", [-1, 0, 42, -(2**63), 2**63 - 1], [2**64], "42", "integer"),
    ("num_predict", [-2, -1, 0, 1, 100], [-3, 2**31], "9", "integer"),
    ("num_ctx", [1024, 4096], [0, -1, 4097, 2**31], "2048", "integer"),
    ("num_keep", [-1, 0, 4], [-2, 2**31], "4", "integer"),
    ("stop", [[], ["x"], ["a", "b"]], [[""], ["x"] * 65, ["x" * 257], [1]], "x", "array"),
    ("num_batch", [512], [], "512", "integer"),
    ("num_gpu", [-1, 99], [], 0.5, "integer"),
    ("main_gpu", [0], [], "0", "integer"),
    ("num_thread", [8], [], "8", "integer"),
    ("use_mmap", [True, False], [], 1, "boolean"),
    ("mirostat_tau", [5.0], [], "5", "float32"),
]
HINTS = ("num_batch", "num_gpu", "main_gpu", "num_thread", "use_mmap", "mirostat_tau")


@pytest.mark.parametrize("name,right,wrong,mistyped,type_name", OPTIONS, ids=[o[0] for o in OPTIONS])
def test_options(hello, name, right, wrong, mistyped, type_name):
    for value in [*right, None]:
        answer = generate(hello, stream=False, options={name: value})
        assert answer.status_code == 200, f"{value}: {answer.text}"
        named = answer.headers.get("x-omnibus-ignored-fields", "")
        assert named == (f"options.{name}" if name in HINTS and value is not None else "")
    for value in wrong:
        assert name in error_of(generate(hello, options={name: value}), 400), value
    assert error_of(chat(hello, options={name: mistyped}), 400) == f'option "{name}" must be of type {type_name}'


@pytest.mark.parametrize("name,neutral,value", [("mirostat", 0, 1), ("typical_p", 1.0, 0.9), ("tfs_z", 1, 0.5)])
def test_options_that_are_refused_by_name(hello, name, neutral, value):
    assert generate(hello, stream=False, options={name: neutral}).status_code == 200
    assert f"'{name}' is not supported" in error_of(generate(hello, options={name: value}), 400)


def test_penalties_look_at_the_last_tokens(pool):
    server = pool(script(says("aa", rows=[{"97": -0.1, "98": -0.15}] * 2, eos=False)))

    def said(prompt, **options):
        options = {"temperature": 0, "num_predict": 2, "repeat_penalty": 2, **options}
        return generate(server, prompt=prompt, raw=True, stream=False, options=options).json()["response"]

    assert said("aqq", repeat_penalty=1) == "aa"
    assert said("aqq") == said("aqq", repeat_last_n=64) == said("aqq", repeat_last_n=-1) == "ba"
    assert said("aqq", repeat_last_n=2) == "ab"
    assert said("aqq", repeat_last_n=0) == "aa"


def test_unknown_options_are_named(hello, replay):
    answer = generate(hello, stream=False, options={"numa": True, "no_such": 1}, no_field=2)
    assert answer.json()["response"] == "Hello world!"
    assert answer.headers["x-omnibus-ignored-fields"] == "no_field, options.numa, options.no_such"
    strict = replay(HELLO, "--strict-fields")
    assert "no_such" in error_of(generate(strict, options={"no_such": 1}), 400)
    assert "no_field" in error_of(generate(strict, no_field=1), 400)


@pytest.mark.parametrize("field,value", [
    ("format", "json"), ("format", {"type": "object"}), ("suffix", "x"), ("images", ["aGk="]), ("shift", True)])
def test_what_is_not_built_is_refused_by_name(hello, field, value):
    assert field in error_of(generate(hello, **{field: value}), 400)


@pytest.mark.parametrize("field,value", [
    ("model", 1), ("prompt", 1), ("prompt", []), ("system", {}), ("template", 1), ("context", "x"), ("context", [-1]),
    ("context", [1.5]), ("context", [10**6]), ("context", [2**40]), ("raw", "true"), ("stream", 1), ("stream", "x"),
    ("think", 1), ("think", "some"), ("truncate", 0), ("logprobs", 2), ("top_logprobs", 21), ("top_logprobs", -1),
    ("top_logprobs", 1), ("keep_alive", "x"), ("keep_alive", []), ("keep_alive", "5 m"), ("keep_alive", ""),
    ("options", []), ("options", "x"), ("model", "x" * 513)])
def test_wrong_fields(hello, field, value):
    assert field in error_of(generate(hello, **{field: value}), 400)


def test_wrong_messages(hello):
    def ask(messages):
        return hello.post("/api/chat", {"model": "replay", "messages": messages})

    assert "messages" in error_of(ask("hello"), 400)
    assert "messages[0]" in error_of(ask(["hello"]), 400)
    assert "messages[0].role" in error_of(ask([{"content": "x"}]), 400)
    assert "messages[1].role" in error_of(ask([{"role": "user", "content": "x"}, {"role": "boss"}]), 400)
    assert "messages[0].content" in error_of(ask([{"role": "user", "content": 1}]), 400)
    assert "messages[0].images" in error_of(ask([{"role": "user", "content": "x", "images": ["aGk="]}]), 400)
    assert lines_of(ask([{"role": "user", "content": "hello", "images": []}, {"role": "assistant", "thinking": "hm"},
                         {"role": "user"}]))[-1]["done"]


@pytest.mark.parametrize("body,text", [
    (b"", "missing request body"), (b" \n", "missing request body"), (b"[]", "object"), (b"{", "JSON"),
    (b'{"model":"\xff"}', "UTF-8"), (b'{"model": 1e999}', "model has a number"), (b"[" * 100000, "JSON")])
def test_wrong_bodies(hello, body, text):
    for path in ("/api/generate", "/api/chat", "/api/show", "/api/copy"):
        answer = requests.post(hello.url + path, data=body, timeout=10)
        assert text in error_of(answer, 400), path
    assert text in error_of(requests.delete(hello.url + "/api/delete", data=body, timeout=10), 400)


def test_errors_of_http_are_in_ollamas_form(hello):
    for path in ("/api/nothing", "/api/", "/api/blobs", "/api/tags/x"):
        error_of(requests.get(hello.url + path, timeout=10), 404)
    for method, path in (("GET", "/api/chat"), ("GET", "/api/generate"), ("POST", "/api/tags"), ("POST", "/api/ps"),
                         ("POST", "/api/version"), ("POST", "/api/delete"), ("PUT", "/api/copy")):
        answer = requests.request(method, hello.url + path, timeout=10)
        error_of(answer, 405)
        assert answer.headers["allow"]
    large = exchange(hello, b"POST /api/chat HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40000000\r\n\r\n")
    assert large[0] == 413 and list(json.loads(large[2])) == ["error"]
    assert "error" in requests.get(hello.url + "/v1/nothing", timeout=10).json()
    assert isinstance(requests.get(hello.url + "/v1/nothing", timeout=10).json()["error"], dict)


def test_head(hello):
    for path in ("/", "/api/version", "/api/tags"):
        answer = requests.head(hello.url + path, timeout=10)
        assert answer.status_code == 200 and answer.content == b""
    assert requests.get(hello.url + "/", timeout=10).text == "Ollama is running"
    assert re.fullmatch(r"\d+\.\d+\.\d+.*", requests.get(hello.url + "/api/version", timeout=10).json()["version"])


def test_keys_guard_every_route(replay):
    server = replay(HELLO, "--api-key", "sk-right")
    for method, path in (("GET", "/api/version"), ("GET", "/api/tags"), ("GET", "/api/ps"), ("POST", "/api/show"),
                         ("POST", "/api/generate"), ("POST", "/api/chat"), ("POST", "/api/copy"),
                         ("DELETE", "/api/delete"), ("POST", "/api/blobs/sha256:" + "0" * 64), ("POST", "/api/embed"),
                         ("POST", "/api/embeddings"), ("POST", "/api/create"), ("POST", "/api/pull"),
                         ("POST", "/api/push"), ("GET", "/api/nothing")):
        answer = requests.request(method, server.url + path, timeout=10)
        error_of(answer, 401)
        assert answer.headers["www-authenticate"] == "Bearer"
        right = requests.request(method, server.url + path, headers={"Authorization": "Bearer sk-right"}, timeout=10)
        assert right.status_code != 401, path
    assert requests.head(server.url + "/api/blobs/sha256:" + "0" * 64, timeout=10).status_code == 401


def test_num_ctx_limits_prompt_and_answer(hello):
    prompt_tokens = generate(hello, "endless", stream=False, options={"num_predict": 1}).json()["prompt_eval_count"]
    whole = generate(hello, "endless", stream=False, options={"num_ctx": prompt_tokens + 5}).json()
    assert whole["eval_count"] == 5 and whole["done_reason"] == "length"
    text = error_of(generate(hello, "endless", options={"num_ctx": prompt_tokens}), 400)
    assert str(prompt_tokens) in text and "truncate" in text
    assert "--max-model-len" in error_of(generate(hello, options={"num_ctx": 5000}), 400)


def test_default_max_tokens(replay):
    server = replay(HELLO, "--default-max-tokens", "3")
    for ask in (generate, chat):
        short = ask(server, "endless", stream=False).json()
        assert short["eval_count"] == 3 and short["done_reason"] == "length"
        assert ask(server, "endless", stream=False, options={"num_predict": 5}).json()["eval_count"] == 5
    full = generate(server, "endless", stream=False, options={"num_predict": -1, "num_ctx": 200}).json()
    assert full["eval_count"] + full["prompt_eval_count"] == 200


def test_too_long_prompts_are_cut_only_when_asked(hello):
    long = "a" * 3000 + "b" * 3000 + "endless"
    assert "4096" in error_of(generate(hello, long), 400)
    cut = generate(hello, long, stream=False, truncate=True, options={"num_predict": 3}).json()
    assert cut["prompt_eval_count"] == 4093 and cut["eval_count"] == 3
    # The last message and the system message stay, the oldest others go.
    messages = [{"role": "system", "content": "S"}]
    for i in range(60):
        messages.append({"role": ["user", "assistant"][i % 2], "content": chr(97 + i % 26) * 100})
    messages += [{"role": "user", "content": "hello"}]
    body = {"model": "replay", "messages": messages, "stream": False, "options": {"num_ctx": 1000}}
    error_of(hello.post("/api/chat", body), 400)
    cut = hello.post("/api/chat", {**body, "truncate": True}).json()
    assert cut["message"]["content"] == "Hello world!" and 600 < cut["prompt_eval_count"] <= 750
    only = {**body, "messages": [{"role": "user", "content": "x" * 2000}], "truncate": True}
    assert "truncate: true" not in error_of(hello.post("/api/chat", only), 400)


def test_templates_in_requests(hello, replay):
    template = "{% for m in messages %}{{ m.content }}{% endfor %}"
    assert "--trust-request-chat-template" in error_of(generate(hello, template=template), 400)
    trusting = replay(HELLO, "--trust-request-chat-template")
    assert generate(trusting, template=template, stream=False).json()["prompt_eval_count"] == len("hello")
    error_of(generate(trusting, template="{{ .Prompt }}"), 400)


def test_system(hello):
    plain = generate(hello, stream=False).json()["prompt_eval_count"]
    assert generate(hello, stream=False, system="be brief").json()["prompt_eval_count"] > plain + len("be brief")


THINKING = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}" \
           "{% if enable_thinking is defined and enable_thinking %}THINK{% endif %}<|im_start|>assistant\n"


def test_think_reaches_the_template(replay):
    server = replay(script(says("deep", when="THINK"), says("shallow"), template=THINKING))
    assert chat(server, stream=False, think=True).json()["message"]["content"] == "deep"
    assert chat(server, stream=False, think="high").json()["message"]["content"] == "deep"
    assert chat(server, stream=False, think=False).json()["message"]["content"] == "shallow"
    assert generate(server, stream=False, think=True).json()["response"] == "deep"
    assert server.post("/api/show", {"model": "replay"}).json()["capabilities"] == ["completion", "thinking"]


def test_show_says_of_thinking_what_requests_are_told(replay):
    """Also where the flag, and no word of the template, says that the model thinks."""
    server = replay(script(says("[THINK]hm[/THINK]yes")), "--reasoning-parser", "magistral")
    assert chat(server, stream=False, think=True).json()["message"]["thinking"] == "hm"
    assert server.post("/api/show", {"model": "replay"}).json()["capabilities"] == ["completion", "thinking"]


def test_an_error_in_the_stream_is_a_line(replay):
    server = replay(script(says("a", "b", "c", "d", eos=False, fault={"at": 3, "kind": "nan"})))
    lines = lines_of(generate(server, options={"temperature": 0.7}))
    assert list(lines[-1]) == ["error"] and isinstance(lines[-1]["error"], str)
    assert all("error" not in line and not line["done"] for line in lines[:-1]) and len(lines) > 1
    error_of(generate(server, stream=False, options={"temperature": 0.7}), 500)


def test_a_full_queue_is_503(own_replay):
    server = own_replay(HELLO, "--max-num-seqs", "2", "--max-waiting-requests", "2")
    with concurrent.futures.ThreadPoolExecutor(32) as threads:
        ask = lambda _: generate(server, "endless", stream=False, options={"num_predict": 50})  # noqa: E731
        answers = list(threads.map(ask, range(32)))
    assert {a.status_code for a in answers} == {200, 503}
    for answer in answers:
        if answer.status_code == 503:
            error_of(answer, 503)
            assert int(answer.headers["retry-after"]) >= 1


def test_a_client_that_leaves_frees_its_place(hello):
    stream = requests.post(hello.url + "/api/generate", json={"model": "replay", "prompt": "endless"}, stream=True,
                           timeout=30)
    next(stream.iter_lines())
    stream.close()
    wait_until(hello.idle, what="the answer of a client that left ends")


def test_the_second_port(own_replay):
    server = own_replay(HELLO, "--ollama-port", "0", "--api-key", "sk-right")
    url = re.search(r"^Ollama\s+(http://127\.0\.0\.1:\d+)$", server.out_path.read_text(), re.MULTILINE).group(1)
    assert url != server.url and requests.get(url, timeout=10).text == "Ollama is running"
    assert requests.get(url + "/api/tags", timeout=10).status_code == 401
    key = {"Authorization": "Bearer sk-right"}
    body = {"model": "replay", "prompt": "hello", "stream": False}
    for base in (url, server.url):
        assert requests.post(base + "/api/generate", json=body, headers=key, timeout=10).json()["response"] == "Hello world!"
    assert requests.get(url + "/v1/models", headers=key, timeout=10).status_code == 200
    assert requests.get(url + "/health", timeout=10).status_code == 200


def test_without_a_second_port_there_is_none(hello):
    assert "Ollama" not in hello.out_path.read_text()


def test_one_name_for_one_model_in_the_lists(tmp_path):
    server = serve_with_store(tmp_path, tmp_path / "no store", HELLO, "--served-model-name", "a", "--served-model-name", "b")
    try:
        models = requests.get(server.url + "/api/tags", timeout=10).json()["models"]
        assert sorted(m["name"] for m in models) == ["a:latest", "b:latest"]
        assert all(list(m) == ["name", "model", "modified_at", "size", "digest", "details"] for m in models)
        assert list(models[0]["details"]) == ["parent_model", "format", "family", "families", "parameter_size",
                                              "quantization_level"]
        running = requests.get(server.url + "/api/ps", timeout=10).json()["models"]
        assert len(running) == 1 and RFC3339.fullmatch(running[0]["expires_at"])
        assert exchange(server, request_bytes("GET", "/api/tags"))[0] == 200
        # A store that is not there yet appears with the first change.
        data = b"x"
        digest = hashlib.sha256(data).hexdigest()
        url = server.url + "/api/blobs/sha256:" + digest
        assert requests.head(url, timeout=10).status_code == 404
        assert requests.post(url, data=data, timeout=10).status_code == 201
        assert requests.head(url, timeout=10).status_code == 200
        assert (tmp_path / "no store" / "blobs" / f"sha256-{digest}").read_bytes() == data
    finally:
        assert server.stop() == 0
        server.close()


@pytest.mark.parametrize("strict", [False, True])
def test_fields_of_the_store_that_mean_nothing(tmp_path, strict):
    add_model(tmp_path / "home", "a", b"a")
    server = serve_with_store(tmp_path, tmp_path / "home", HELLO, *(["--strict-fields"] if strict else []))
    try:
        for method, path, body in (("POST", "/api/show", {"model": "a"}),
                                   ("POST", "/api/copy", {"source": "a", "destination": "b"}),
                                   ("DELETE", "/api/delete", {"model": "b"})):
            answer = requests.request(method, server.url + path, json={**body, "no_such": 1}, timeout=10)
            if strict:
                assert "no_such" in error_of(answer, 400)
            else:
                assert answer.status_code == 200 and answer.headers["x-omnibus-ignored-fields"] == "no_such"
    finally:
        assert server.stop() == 0
        server.close()


def test_the_models_own_defaults_go_before_ollamas(replay):
    server = replay(script(says("ok"), sampling={"temperature": 0.25, "top_k": 7}))
    lines = server.post("/api/show", {"model": "replay"}).json()["parameters"].split("\n")
    assert [line.split() for line in lines] == [["temperature", "0.25"], ["top_k", "7"]]
    assert generate(server, stream=False).json()["response"] == "ok"


def test_an_assistant_message_at_the_end(replay):
    messages = [{"role": "user", "content": "hi"}, {"role": "assistant", "content": "Well, "}]
    body = {"model": "replay", "messages": messages, "stream": False}
    said = script(says("new", when="<|im_start|>assistant\nWell, <|im_end|>"), says("more", when="assistant\nWell,"))
    assert replay(said).post("/api/chat", body).json()["message"]["content"] == "new"
    assert replay(said, "--prefill-assistant").post("/api/chat", body).json()["message"]["content"] == "more"


REASONING = "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}<|im_start|>assistant\n" \
            "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}"


def test_thoughts_have_a_field_of_their_own(replay):
    pieces = says("<thi", "nk>\n", "Hm", "m\n</", "think>\n\n", "Yes", "!", k=2)
    server = replay(script(says("No", when="</think>"), pieces, template=REASONING))
    message = chat(server, stream=False).json()["message"]
    assert message == {"role": "assistant", "content": "Yes!", "thinking": "Hmm"}
    messages = [line["message"] for line in lines_of(chat(server, think=True))]
    assert "".join(m.get("thinking", "") for m in messages) == "Hmm"
    assert "".join(m["content"] for m in messages) == "Yes!"
    whole = generate(server, stream=False, think=True).json()
    assert (whole["response"], whole["thinking"]) == ("Yes!", "Hmm")
    assert chat(server, stream=False, think=False).json()["message"] == {"role": "assistant", "content": "No"}
    assert generate(server, raw=True, stream=False).json()["response"].startswith("<think>")
