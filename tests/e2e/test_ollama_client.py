"""The ollama package, unmodified, against the replay server and the default model."""

import asyncio
import time

import ollama
import pytest

from harness.script import script, says
from harness.server import Server, program
from harness.store import add_model, names_in, serve_with_store
from harness.wait import wait_until

SCRIPT = script(
    says("Hel", "lo", " ", "wor", "ld", "!", when="hello"),
    says("abcdef", "STOP", "ghi", when="stop here"),
    says("a", "b", rows=[{"97": -0.1, "98": -2.5, "99": -4.0}, None], when="logprobs"),
    says("x", "y", "z", eos=False, when="endless"),
    says("boom", when="crash", fault={"at": 2, "kind": "nan"}, eos=False),
    says("ok"),
)


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    home = tmp_path_factory.mktemp("store")
    add_model(home, "other:1b", b"no model at all", aliases=["other"])
    return home


@pytest.fixture(scope="module")
def server(tmp_path_factory, home):
    server = serve_with_store(tmp_path_factory.mktemp("ollama"), home, SCRIPT)
    yield server
    assert server.stop() == 0, server.log()
    server.close()


@pytest.fixture(scope="module")
def client(server):
    with ollama.Client(host=server.url) as client:
        yield client


def user(text):
    return [{"role": "user", "content": text}]


def test_chat(client):
    answer = client.chat("replay", user("hello"))
    assert answer.message.role == "assistant" and answer.message.content == "Hello world!"
    assert answer.done and answer.done_reason == "stop" and answer.model == "replay"
    assert answer.eval_count == 7  # six pieces and EOS
    assert answer.prompt_eval_count > 5 and answer.message.thinking is None
    parts = answer.load_duration + answer.prompt_eval_duration + answer.eval_duration
    assert abs(parts - answer.total_duration) <= 3  # each at least 1 ns
    assert all(d > 0 for d in (answer.load_duration, answer.prompt_eval_duration, answer.eval_duration))


def test_chat_stream(client):
    parts = list(client.chat("replay", user("hello"), stream=True))
    assert "".join(p.message.content for p in parts) == "Hello world!"
    assert [p.done for p in parts] == [False] * (len(parts) - 1) + [True]
    assert parts[-1].done_reason == "stop" and parts[-1].message.content == ""
    assert parts[-1].eval_count == 7 and parts[0].eval_count is None


def test_prompt_eval_count_is_the_whole_prompt_also_when_cached(client):
    counts = {client.chat("replay", user("hello " + "w" * 400)).prompt_eval_count for _ in range(3)}
    assert len(counts) == 1 and counts.pop() > 400


def test_generate(client):
    answer = client.generate("replay", "hello", system="be brief")
    assert answer.response == "Hello world!" and answer.done_reason == "stop"
    follow = client.generate("replay", "and now", context=answer.context)
    assert list(follow.context[: len(answer.context)]) == list(answer.context)
    assert follow.prompt_eval_count > answer.prompt_eval_count


def test_generate_stream(client):
    parts = list(client.generate("replay", "hello", stream=True))
    assert "".join(p.response for p in parts) == "Hello world!"
    assert parts[-1].context and all(p.context is None for p in parts[:-1])
    assert list(parts[-1].context) == list(client.generate("replay", "hello").context)


def test_generate_raw(client):
    raw = client.generate("replay", "hello", raw=True)
    assert raw.response == "Hello world!" and raw.context is None
    assert raw.prompt_eval_count == len("hello")  # a token a byte, and no template
    with pytest.raises(ollama.ResponseError, match="raw mode does not support") as error:
        client.generate("replay", "hello", raw=True, system="x")
    assert error.value.status_code == 400


def test_async(server):
    async def talk():
        client = ollama.AsyncClient(host=server.url)
        whole = await client.chat("replay", user("hello"))
        text = ""
        async for part in await client.chat("replay", user("hello"), stream=True):
            text += part.message.content
        await client.close()
        return whole.message.content, text

    assert asyncio.run(talk()) == ("Hello world!", "Hello world!")


def test_options(client):
    answer = client.generate("replay", "stop here", options={"stop": ["STOP"], "num_predict": 50, "seed": 1})
    assert answer.response == "abcdef" and answer.done_reason == "stop"
    short = client.generate("replay", "hello", options=ollama.Options(num_predict=2, temperature=0.0))
    assert short.response == "Hello" and short.done_reason == "length" and short.eval_count == 2
    with pytest.raises(ollama.ResponseError) as error:
        client.generate("replay", "hello", options={"temperature": "hot"})
    assert error.value.error == 'option "temperature" must be of type float32' and error.value.status_code == 400


def test_logprobs(client):
    answer = client.chat("replay", user("logprobs"), logprobs=True, top_logprobs=3, options={"temperature": 0})
    assert [e.token for e in answer.logprobs[:2]] == ["a", "b"]
    top = answer.logprobs[0].top_logprobs
    assert [t.token for t in top] == ["a", "b", "c"] and top[0].logprob == answer.logprobs[0].logprob
    assert top[0].logprob - top[1].logprob == pytest.approx(2.4, abs=1e-5)
    streamed = [e for p in client.generate("replay", "logprobs", logprobs=True, stream=True) for e in p.logprobs or []]
    assert [e.token for e in streamed[:2]] == ["a", "b"] and not streamed[0].top_logprobs


def test_keep_alive_load_and_unload(client):
    assert client.generate("replay", "hello", keep_alive="1h30m").response == "Hello world!"
    model = client.ps().models[0]
    left = model.expires_at.timestamp() - time.time()
    assert 5300 < left <= 5400
    assert client.generate("replay").done_reason == "load"
    assert client.chat("replay").done_reason == "load"
    assert client.generate("replay", keep_alive=-1).done_reason == "load"
    assert client.ps().models[0].expires_at.year > 2200
    assert client.generate("replay", keep_alive=0).done_reason == "unload"
    assert client.chat("replay", [], keep_alive=0).done_reason == "unload"
    # The one model of this server stays: what follows is answered as before.
    assert client.generate("replay", "hello").response == "Hello world!"
    with pytest.raises(ollama.ResponseError, match="keep_alive"):
        client.generate("replay", "hello", keep_alive="soon")


def test_think(client):
    with pytest.raises(ollama.ResponseError) as error:
        client.chat("replay", user("hello"), think=True)
    assert error.value.error == '"replay" does not support thinking' and error.value.status_code == 400
    assert client.chat("replay", user("hello"), think=False).message.content == "Hello world!"
    with pytest.raises(ollama.ResponseError):
        client.generate("replay", "hello", think="low")


def test_ps(client):
    models = client.ps().models
    assert [m.model for m in models] == ["replay:latest"]
    assert models[0].context_length == 4096 and models[0].size_vram == 0 and len(models[0].digest) == 64


def test_errors(client):
    with pytest.raises(ollama.ResponseError) as error:
        client.chat("nobody", user("hello"))
    assert error.value.status_code == 404 and error.value.error == "model 'nobody' not found"
    with pytest.raises(ollama.ResponseError) as error:
        list(client.chat("nobody", user("hello"), stream=True))
    assert error.value.status_code == 404
    with pytest.raises(ollama.ResponseError) as error:
        client.chat("other", user("hello"))
    assert error.value.status_code == 400 and "serves 'replay' only" in error.value.error
    with pytest.raises(ollama.ResponseError) as error:
        client.chat("replay", user("hello"), format="json")
    assert error.value.status_code == 400 and "format" in error.value.error
    with pytest.raises(ollama.ResponseError) as error:
        client.chat("replay", user("hello"), tools=[{"type": "function", "function": {"name": "f"}}])
    assert error.value.status_code == 400 and "tools" in error.value.error
    for images in (b"png", b"jpg"):
        with pytest.raises(ollama.ResponseError, match="images"):
            client.generate("replay", "hello", images=[images])
    with pytest.raises(ollama.ResponseError, match="images"):
        client.chat("replay", [{"role": "user", "content": "hello", "images": [b"png"]}])


def test_a_stream_that_breaks_off_raises(client):
    with pytest.raises(ollama.ResponseError):
        list(client.generate("replay", "crash", stream=True, options={"temperature": 0.5}))


def test_what_is_not_built_raises(client):
    for call in (
        lambda: client.embed("replay", "x"),
        lambda: client.embeddings("replay", "x"),
        lambda: client.pull("replay"),
        lambda: list(client.pull("replay", stream=True)),
        lambda: client.push("replay"),
        lambda: list(client.push("replay", stream=True)),
        lambda: client.create("mine", from_="replay"),
        lambda: list(client.create("mine", from_="replay", stream=True)),
    ):
        with pytest.raises(ollama.ResponseError, match="not supported") as error:
            call()
        assert error.value.status_code == 501


def test_list_copy_delete(client, home):
    assert {m.model for m in client.list().models} == {"replay:latest", "other:1b"}
    assert client.copy("other", "mine").status == "success"
    assert client.copy("OTHER:1b", "registry.ollama.ai/library/second:tag").status == "success"
    assert {m.model for m in client.list().models} == {"replay:latest", "other:1b", "mine:latest", "second:tag"}
    assert names_in(home) == ["mine/latest.json", "other/1b.json", "second/tag.json"]
    assert client.delete("mine").status == "success"
    assert client.delete("second:tag").status == "success"
    assert names_in(home) == ["other/1b.json"] and len(list((home / "blobs").iterdir())) == 1
    for name in ("mine", "nobody"):
        answer = client._client.request("DELETE", "/api/delete", json={"model": name})
        assert answer.status_code == 404 and answer.json() == {"error": f"model '{name}' not found"}


def test_a_name_in_other_letters_is_replaced(client, home):
    assert client.copy("other", "Mine").status == client.copy("other", "mINE:LATEST").status == "success"
    assert names_in(home) == ["Mine/latest.json", "other/1b.json"]
    assert client.copy("other", "OTHER:1B").status == "success"
    assert client.delete("mine").status == "success" and names_in(home) == ["other/1b.json"]


def test_show(client):
    shown = client.show("replay")
    assert shown.capabilities == ["completion"] and "im_start" in shown.template
    assert shown.details.format == "gguf" and shown.modified_at.year > 2000
    other = client.show("other")
    assert other.license == "MIT" and other.modelinfo == {}
    with pytest.raises(ollama.ResponseError) as error:
        client.show("nobody")
    assert error.value.status_code == 404


def test_create_blob(client, home, tmp_path):
    path = tmp_path / "weights"
    path.write_bytes(b"weights" * 1000)
    digest = client.create_blob(path)
    assert (home / "blobs" / digest.replace(":", "-")).read_bytes() == path.read_bytes()


@pytest.fixture(scope="module")
def real(default_model):
    server = Server([program("omnibus"), "serve", default_model, "--ollama-port", "0", "--max-model-len", "1024"])
    yield server
    assert server.stop() == 0, server.log()
    server.close()


def test_default_model(real):
    port = next(line.split()[-1] for line in real.out_path.read_text().splitlines() if line.startswith("Ollama"))
    name = "SmolLM2-135M-Instruct.Q4_1"
    with ollama.Client(host=port) as client:
        def served():
            (listed,) = [m for m in client.list().models if m.model == name + ":latest"]
            return listed

        # The digest of a file outside the store is computed beside the requests.
        wait_until(lambda: served().digest != "0" * 64, what="the digest of the served file")
        listed = served()
        assert listed.details.family == "llama" and listed.details.parameter_size == "134.5M"
        assert listed.details.quantization_level == "Q4_1" and listed.size == 98362432
        assert listed.digest == "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53"
        shown = client.show(name)
        info = shown.modelinfo
        assert info["general.architecture"] == "llama" and info["llama.block_count"] == 30
        assert info["tokenizer.ggml.tokens"] is None and info["general.parameter_count"] == 134515008
        assert "im_start" in shown.template and shown.modelfile.count("/") == shown.template.count("/")
        answer = client.chat(name, user("What is the capital of France?"), options={"temperature": 0})
        assert "Paris" in answer.message.content and answer.done_reason == "stop"
        verbose = client._client.post("/api/show", json={"model": name, "verbose": True}).json()
        assert len(verbose["model_info"]["tokenizer.ggml.tokens"]) == 49152
