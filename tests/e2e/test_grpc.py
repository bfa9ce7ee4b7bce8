"""omnibus.v1.Inference: what Generate, Chat and the rest answer, next to what HTTP answers to the same."""

import random
import re
import signal
import subprocess
import sys
import threading
import time

import grpc
import pytest
import requests
from h2.events import DataReceived, TrailersReceived

from harness.clients import KEY, start_real_server
from harness.grpc_client import ROOT, Client, address, collect, refusal
from harness.raw_http2 import RawConnection
from harness.script import IM_END, script, says
from harness.server import program
from harness.tls import Certificate
from harness.wait import wait_until

STOP, LENGTH = 1, 2
WORDS = ("Grüße", ", ", "W", "elt", " \N{THINKING FACE}", "!")
SCRIPT = script(
    says("Hel", "lo", " ", "wor", "ld", "!", when="hello"),
    says("x", when="endless", eos=False, delay_ms=2),
    says(*WORDS, when="greet"),
    # Characters in pieces: three bytes, four bytes, and half a character at the end.
    says(b"\xe2\x82", b"\xac", "-", b"\xf0\x9f", b"\xa4", b"\x94", b"\xe2", when="split"),
    says("ok"),
)
FLAGS = ("--grpc-port", "0", "--max-num-seqs", "8")


@pytest.fixture(scope="module")
def server(pool):
    return pool(SCRIPT, *FLAGS)


@pytest.fixture(scope="module")
def client(server):
    with Client(server) as client:
        yield client


def completion(server, prompt, **fields):
    answer = server.post("/v1/completions", {"prompt": prompt, "return_token_ids": True, **fields})
    assert answer.status_code == 200, answer.text
    return answer.json()


# What comes back.


def test_generate_is_what_http_says(server, client):
    for prompt in ("hello", "greet", "split", "anything"):
        for streamed in (True, False):
            mine = client.generate(prompt, max_tokens=20, seed=7, stream=streamed, return_token_ids=True)
            theirs = completion(server, prompt, max_tokens=20, seed=7)
            choice = theirs["choices"][0]
            assert mine[0].text == choice["text"]
            assert mine[0].ids == choice["token_ids"]
            assert list(mine.first.prompt_token_ids) == choice["prompt_token_ids"]
            assert mine[0].finish_reason == {"stop": STOP, "length": LENGTH}[choice["finish_reason"]]
            assert mine.usage.prompt_tokens == theirs["usage"]["prompt_tokens"]
            assert mine.usage.completion_tokens == theirs["usage"]["completion_tokens"]
            assert mine.first.model == theirs["model"]
            assert mine.first.id.startswith("cmpl-") and abs(mine.first.created - time.time()) < 60


@pytest.mark.parametrize("max_tokens", [1, 2])
def test_a_short_answer_in_a_stream_ends(server, client, max_tokens):
    """Its only update, its end and the usage are there at once."""
    for _ in range(10):
        mine = client.generate("the bus goes from town to the sea " * 4, max_tokens=max_tokens, stream=True)
        assert mine[0].text and mine.usage.completion_tokens in (1, 2)


def test_chat_is_what_http_says(server, client):
    for prompt in ("hello", "greet"):
        mine = client.chat(prompt, max_tokens=20, seed=7)
        theirs = server.chat(prompt, max_tokens=20, seed=7).json()
        assert mine[0].text == theirs["choices"][0]["message"]["content"]
        assert mine.usage.prompt_tokens == theirs["usage"]["prompt_tokens"]
        assert mine.first.id.startswith("chatcmpl-")


@pytest.mark.parametrize("streamed", [True, False])
def test_timings_add_up(client, streamed):
    for ask in (client.generate, client.chat):
        started = time.monotonic()
        usage = ask("hello", max_tokens=20, stream=streamed, include_timings=True).usage
        elapsed = 1000 * (time.monotonic() - started)
        timings = usage.timings
        parts = timings.queue_ms + timings.prefill_ms + timings.decode_ms
        assert parts == pytest.approx(timings.e2e_ms, abs=1e-6) and 0 < timings.e2e_ms < elapsed
        assert timings.preemptions == 0
        assert not ask("hello", max_tokens=20, stream=streamed).usage.HasField("timings")


def test_token_ids_in_are_the_text_in(client):
    tokens = client.call("Tokenize", client.messages.TokenizeRequest(prompt="greet"))
    by_text = client.generate("greet", max_tokens=20)
    by_ids = client.generate(list(tokens.tokens), max_tokens=20)
    assert by_ids[0].text == by_text[0].text == "".join(WORDS)
    assert by_ids[0].ids == by_text[0].ids and len(by_ids[0].ids) > 5


def test_pieces_are_whole_characters(client):
    """The .proto says string, so a half character could not even be sent; nothing is lost or made up either."""
    mine = client.generate("split", max_tokens=20)
    assert mine[0].text == "€-\N{THINKING FACE}\N{REPLACEMENT CHARACTER}"
    assert mine.updates > 3
    assert all("\N{REPLACEMENT CHARACTER}" not in piece for piece in mine[0].pieces[:-1])


@pytest.mark.parametrize("streamed", [True, False])
def test_logprobs(server, client, streamed):
    mine = client.generate("greet", max_tokens=20, logprobs=2, seed=1, stream=streamed)
    theirs = completion(server, "greet", max_tokens=20, logprobs=2, seed=1)["choices"][0]["logprobs"]
    # One for each token that has text: the token that ends the answer has none.
    assert [p.token.id for p in mine[0].logprobs] == mine[0].ids[:-1] and mine[0].ids[-1] == IM_END
    assert b"".join(p.token.token for p in mine[0].logprobs).decode() == mine[0].text
    assert [p.token.logprob for p in mine[0].logprobs] == pytest.approx(theirs["token_logprobs"])
    assert all(len(p.top) == 2 and p.top[0].logprob >= p.top[1].logprob for p in mine[0].logprobs)
    assert not client.generate("greet", max_tokens=3)[0].logprobs


def test_prompt_logprobs(server, client):
    mine = client.generate("hello", max_tokens=2, prompt_logprobs=3, stream=False)
    theirs = completion(server, "hello", max_tokens=2, prompt_logprobs=3)["choices"][0]["prompt_logprobs"]
    assert len(mine[0].prompt_logprobs) == len(theirs)
    assert not mine[0].prompt_logprobs[0].HasField("token") and theirs[0] is None
    for position, entry in zip(mine[0].prompt_logprobs[1:], theirs[1:]):
        own = entry[str(position.token.id)]
        assert position.token.logprob == pytest.approx(own["logprob"]) and position.rank == own["rank"]
        assert {t.id for t in position.top} | {position.token.id} == set(map(int, entry))


def test_logprobs_larger_than_a_client_takes(pool):
    """Clients refuse messages of more than 4 MiB: one position has 60 kB here, an answer held back by nobody some 12 MB."""
    wide = pool(SCRIPT, *FLAGS, "--max-logprobs", "-1", "--max-model-len", "4096")
    with Client(wide) as client:
        answer = client.generate("endless", max_tokens=2000, logprobs=-1, stream=False)
        assert len(answer[0].logprobs) == 2000
        assert len(answer[0].logprobs[0].top) > 250
        assert answer.updates > 3


def test_many_choices(client):
    mine = client.generate("greet", n=3, max_tokens=20, seed=3)
    assert sorted(mine.choices) == [0, 1, 2]
    assert {c.text for c in mine.choices.values()} == {"".join(WORDS)}
    assert mine.usage.completion_tokens == sum(len(c.ids) for c in mine.choices.values())
    best = client.generate("greet", n=1, best_of=3, max_tokens=20, stream=False)
    assert sorted(best.choices) == [0]
    assert best.usage.completion_tokens == mine.usage.completion_tokens


def test_stops(client):
    mine = client.generate("hello", max_tokens=20, stop=["wor"])
    assert (mine[0].text, mine[0].stop, mine[0].finish_reason) == ("Hello ", "wor", STOP)
    space = mine[0].ids[2]
    mine = client.generate("hello", max_tokens=20, stop_token_ids=[space])
    assert (mine[0].text, mine[0].stop, mine[0].finish_reason) == ("Hello", space, STOP)
    assert client.generate("hello", max_tokens=2)[0].finish_reason == LENGTH


def test_unset_is_the_default_and_zero_is_zero(default_model):
    """The trap of other servers' messages: a temperature that is not set reads as 0. Told apart by the real model."""
    real = start_real_server(default_model, "--grpc-port", "0")
    messages = [{"role": "user", "content": "Tell me a story."}]

    def http(**fields):
        answer = real.post("/v1/chat/completions", {"messages": messages, "max_tokens": 16, "seed": 11, **fields},
                           headers={"Authorization": f"Bearer {KEY}"})
        return answer.json()["choices"][0]["message"]["content"]

    with Client(real, key=KEY) as client:
        unset = client.chat(messages[0]["content"], max_tokens=16, seed=11)[0].text
        greedy = client.chat(messages[0]["content"], max_tokens=16, seed=11, temperature=0)[0].text
        assert unset == http() and greedy == http(temperature=0) and unset != greedy
        # Completions' own default of 16 tokens, too.
        assert len(client.generate("Once upon a time", seed=1)[0].ids) == 16
        assert client.generate("Once upon a time", seed=2**63 - 1)[0].text == \
            client.generate("Once upon a time", seed=2**63 - 1)[0].text
    assert real.stop() == 0
    real.close()


def test_tokens_there_and_back(server, client):
    rng = random.Random(seed := random.randrange(2**32))
    print("seed", seed)
    for _ in range(20):
        text = "".join(rng.choice(["a", " ", "é", "€", "\N{THINKING FACE}", "Hel", "lo", "\n"]) for _ in range(rng.randrange(40)))
        mine = client.call("Tokenize", client.messages.TokenizeRequest(prompt=text, return_token_strs=True))
        theirs = server.post("/tokenize", {"prompt": text, "return_token_strs": True}).json()
        assert list(mine.tokens) == theirs["tokens"] and mine.count == theirs["count"]
        assert list(mine.token_strs) == theirs["token_strs"] and mine.max_model_len == theirs["max_model_len"]
        back = client.call("Detokenize", client.messages.DetokenizeRequest(tokens=mine.tokens))
        assert back.prompt == text
    message = client.messages.Message(role="user", content="hello")
    mine = client.call("Tokenize", client.messages.TokenizeRequest(messages=[message]))
    theirs = server.post("/tokenize", {"messages": [{"role": "user", "content": "hello"}]}).json()
    assert list(mine.tokens) == theirs["tokens"]


def test_models(server, client):
    mine = client.call("ListModels", client.messages.ListModelsRequest())
    theirs = requests.get(server.url + "/v1/models", timeout=10).json()["data"]
    assert [(m.id, m.created, m.max_model_len) for m in mine.data] == [
        (m["id"], m["created"], m["max_model_len"]) for m in theirs
    ]


def test_template_arguments_and_documents(pool):
    """Structs arrive as the JSON that they stand for: whole numbers are no floats."""
    template = "{{ kw }} {{ flag }}{% if documents is defined %} {{ documents[0].n }}{% endif %} {{ messages[0].content }}"
    server = pool(script(says("ok"), template=template), *FLAGS)
    with Client(server) as client:
        request = client.messages.TokenizeRequest(messages=[client.messages.Message(role="user", content="hi")])
        request.chat_template_kwargs.update({"kw": 3, "flag": True, "documents_": None})
        text = client.call("Detokenize", client.messages.DetokenizeRequest(
            tokens=client.call("Tokenize", request).tokens)).prompt
        assert text == "3 True hi"
        chat = client.chat_request("hi", max_tokens=2, return_token_ids=True)
        chat.chat_template_kwargs.update({"kw": "a", "flag": False})
        chat.documents.add().update({"n": 12, "nested": {"list": [1, "two", None]}})
        answer = collect(client.call("Chat", chat))
        text = client.call("Detokenize", client.messages.DetokenizeRequest(tokens=answer.first.prompt_token_ids)).prompt
        assert text == "a False 12 hi"


def test_the_example_of_the_guide(default_model, tmp_path):
    page = (ROOT / "docs" / "grpc.md").read_text()
    code = re.search(r"^```py\n(.*?)^```$", page, re.MULTILINE | re.DOTALL).group(1)
    server = start_real_server(default_model, "--grpc-port", "0")
    try:
        code = code.replace("localhost:8001", address(server)).replace("KEY", KEY)
        shell = re.search(r"^```text\npython (.*?)\n```$", page, re.MULTILINE | re.DOTALL).group(1)
        stubs = shell.replace("-I proto", f"-I {ROOT / 'proto'}").split()
        for command in (stubs, ["-c", code]):
            run = subprocess.run([sys.executable, *command], cwd=tmp_path, capture_output=True, text=True, timeout=60)
            assert run.returncode == 0, run.stderr
        assert "Paris" in run.stdout
    finally:
        assert server.stop() == 0
        server.close()


# Errors.


def test_errors_name_the_field(server, client):
    m = client.messages
    generate, chat = client.generate_request, client.chat_request
    deep = m.ChatRequest(messages=[m.Message(role="user", content="hi")])
    for _ in range(3):
        deep.chat_template_kwargs.update({"a": {"b": [1]}})
    cases = [
        ("Generate", m.GenerateRequest(), "prompt", "missing_required_parameter"),
        ("Generate", generate(""), "prompt", "invalid_value"),
        ("Generate", generate([]), "prompt", "invalid_value"),
        ("Generate", generate([10**6]), "prompt", None),
        ("Generate", generate([2**40]), "prompt", None),
        ("Generate", generate("hi", temperature=2.5), "temperature", "decimal_above_max_value"),
        ("Generate", generate("hi", stop=[""]), "stop[0]", "invalid_value"),
        ("Generate", generate("hi", logit_bias={10**6: 1.0}), "logit_bias", None),
        ("Generate", generate("hi", logit_bias={1: float("nan")}), "logit_bias", "invalid_type"),
        ("Generate", generate("hi", best_of=3), "best_of", "invalid_value"),
        ("Generate", generate("hi", prompt_logprobs=1), "prompt_logprobs", "invalid_value"),
        ("Generate", generate("x" * 100_000), "prompt", "context_length_exceeded"),
        ("Chat", m.ChatRequest(), "messages", "missing_required_parameter"),
        ("Chat", m.ChatRequest(messages=[m.Message(content="hi")]), "messages[0].role", "missing_required_parameter"),
        ("Chat", m.ChatRequest(messages=[m.Message(role="cat", content="hi")]), "messages[0].role", "invalid_value"),
        ("Chat", chat("hi", top_logprobs=3), "top_logprobs", "invalid_value"),
        ("Chat", chat("hi", reasoning_effort="furious"), "reasoning_effort", None),
        ("Chat", deep, None, None),
        ("Tokenize", m.TokenizeRequest(), "prompt", "missing_required_parameter"),
        ("Detokenize", m.DetokenizeRequest(tokens=[-1]), "tokens", None),
    ]
    for name, request, param, code in cases:
        error = refusal(lambda: client.call(name, request))
        assert error.code == grpc.StatusCode.INVALID_ARGUMENT, (name, request, error)
        assert error.detail.http_status == 400 and error.detail.type == "invalid_request_error"
        if param is not None:
            assert error.detail.param == param, error
            assert param.split("[")[0] in error.message, error
        if code is not None:
            assert error.detail.code == code, error
    assert client.generate("hello", max_tokens=20)[0].text == "Hello world!"


def test_every_code(pool, server, client):
    code = grpc.StatusCode
    unknown = refusal(lambda: client.call("Generate", client.generate_request("hi", model="other")))
    assert (unknown.code, unknown.detail.code) == (code.NOT_FOUND, "model_not_found")
    embed = refusal(lambda: client.call("Embed", client.messages.EmbedRequest(input=["hi"])))
    assert embed.code == code.UNIMPLEMENTED and "Embed" in embed.message and embed.detail.http_status == 501
    for path in ("/omnibus.v1.Inference/Other", "/other.Service/Generate", "/omnibus.v1.Inference/generate"):
        assert refusal(lambda: client.raw_call(path)).code == code.UNIMPLEMENTED
    for body in (b"\x0a", b"\x12\x02\xff\xff", b"\xff" * 20):  # cut short, invalid UTF-8, no protobuf
        wrong = refusal(lambda: client.raw_call("/omnibus.v1.Inference/Generate", body))
        assert wrong.code == code.INVALID_ARGUMENT and "GenerateRequest" in wrong.message
    full = pool(SCRIPT, "--grpc-port", "0", "--max-num-seqs", "1", "--max-waiting-requests", "1")
    with Client(full) as busy:
        held = [busy.call("Generate", busy.generate_request("endless", max_tokens=3000))]
        wait_until(lambda: full.metric("vllm:num_requests_running") == 1, 10, "one running")
        held.append(busy.call("Generate", busy.generate_request("endless", max_tokens=3000)))
        wait_until(lambda: full.metric("vllm:num_requests_waiting") == 1, 10, "one waiting")
        error = refusal(lambda: busy.generate("hi"))
        assert error.code == code.RESOURCE_EXHAUSTED
        assert error.detail.retry_after_ms > 0 and int(error.pushback_ms) == error.detail.retry_after_ms
        for call in held:
            call.cancel()
        wait_until(full.idle, 10, "idle")


def test_unknown_fields_are_named_or_refused(pool, server):
    """Field 900 of the message, which this version does not have."""
    body_of = lambda client: client.generate_request("hello", max_tokens=3).SerializeToString() + b"\xa2\x38\x01x"  # noqa: E731
    with Client(server) as client:
        call = client.channel.unary_stream("/omnibus.v1.Inference/Generate")(body_of(client), timeout=30)
        assert dict(call.initial_metadata())["x-omnibus-ignored-fields"] == "#900"
        assert len(list(call)) > 1
    strict = pool(SCRIPT, *FLAGS, "--strict-fields")
    with Client(strict) as client:
        error = refusal(lambda: client.raw_call("/omnibus.v1.Inference/Generate", body_of(client)))
        assert (error.code, error.detail.param) == (grpc.StatusCode.INVALID_ARGUMENT, "#900")


# Leaving.


def test_deadline(pool):
    server = pool(SCRIPT, "--grpc-port", "0", "--max-num-seqs", "1")
    with Client(server) as client:
        running = client.call("Generate", client.generate_request("endless", max_tokens=3000, ignore_eos=True), timeout=1)
        wait_until(lambda: server.metric("vllm:num_requests_running") == 1, 10, "one running")
        queued = client.call("Generate", client.generate_request("hello", max_tokens=3), timeout=0.3)
        for call in (queued, running):
            assert refusal(lambda: call).code == grpc.StatusCode.DEADLINE_EXCEEDED
        wait_until(server.idle, 10, "idle after both deadlines")
        assert client.generate("hello", max_tokens=20)[0].text == "Hello world!"
        # The client resets its stream at the same moment: what the server hears first is what it counts.
        counted = lambda code: server.metric("omnibus_grpc_requests_total", method="omnibus.v1.Inference/Generate", code=code)  # noqa: E731
        wait_until(lambda: counted("DEADLINE_EXCEEDED") + counted("CANCELLED") == 2, 10, "counted")


def test_a_timeout_of_centuries(server):
    """The largest there is: a request with one is served like any other."""
    with Client(server) as client, RawConnection(server) as connection:
        body = client.generate_request("hello", max_tokens=20).SerializeToString()
        connection.open(body=body, extra=[("grpc-timeout", "99999999H")])
        connection.flush()
        data, trailers = b"", {}
        for event in connection.events():
            data += event.data if isinstance(event, DataReceived) else b""
            if isinstance(event, TrailersReceived):
                trailers = dict(event.headers)
                break
        assert trailers[b"grpc-status"] == b"0" and b"lo" in data, (trailers, data)


@pytest.mark.parametrize("streamed", [True, False])
def test_cancel_frees_blocks(server, client, streamed):
    wait_until(server.idle, 10, "idle at the start")
    for _ in range(20):
        call = client.call("Generate", client.generate_request("endless", max_tokens=3000, stream=streamed))
        if streamed:
            next(call)
        call.cancel()
    wait_until(server.idle, 5, "idle after the clients left")
    held = [Client(server) for _ in range(3)]
    calls = [c.call("Generate", c.generate_request("endless", max_tokens=3000)) for c in held]
    for call in calls:
        next(call)
    for other in held:
        other.channel.close()  # the connection goes, not the call
    wait_until(server.idle, 5, "idle after the connections went")
    assert server.metric("vllm:request_success_total", finished_reason="error") == 0


def test_calls_side_by_side(client):
    """Many streams of one connection, each with its own answer."""
    failures = []

    def one(i):
        prompt = ("hello", "greet")[i % 2]
        if client.generate(prompt, max_tokens=20)[0].text != ("Hello world!", "".join(WORDS))[i % 2]:
            failures.append(i)

    threads = [threading.Thread(target=one, args=(i,)) for i in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert not failures and not any(thread.is_alive() for thread in threads)


# Metadata, health, reflection, TLS.


def test_request_ids(client):
    call = client.call("Generate", client.generate_request("hello", max_tokens=2), metadata=[("x-request-id", "mine-7")])
    assert dict(call.initial_metadata())["x-request-id"] == "mine-7"
    list(call)
    call = client.call("Generate", client.generate_request("hello", max_tokens=2))
    assert dict(call.initial_metadata())["x-request-id"].startswith("req_")
    list(call)


def test_health(server, client):
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    stub = health_pb2_grpc.HealthStub(client.channel)
    for service in ("", "omnibus.v1.Inference"):
        assert stub.Check(health_pb2.HealthCheckRequest(service=service), timeout=10).status == 1
    error = refusal(lambda: stub.Check(health_pb2.HealthCheckRequest(service="other"), timeout=10))
    assert error.code == grpc.StatusCode.NOT_FOUND
    unknown = stub.Watch(health_pb2.HealthCheckRequest(service="other"), timeout=10)
    assert next(unknown).status == health_pb2.HealthCheckResponse.SERVICE_UNKNOWN
    unknown.cancel()


def test_watches_are_bounded(own_replay):
    """Keyless peers cannot hold any number of calls by watching, and the places come back."""
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    with Client(own_replay(SCRIPT, *FLAGS)) as client:
        stub = health_pb2_grpc.HealthStub(client.channel)
        watches = [stub.Watch(health_pb2.HealthCheckRequest(), timeout=60) for _ in range(64)]
        assert all(next(watch).status == health_pb2.HealthCheckResponse.SERVING for watch in watches)
        error = refusal(lambda: next(stub.Watch(health_pb2.HealthCheckRequest(), timeout=10)))
        assert error.code == grpc.StatusCode.RESOURCE_EXHAUSTED and int(error.pushback_ms) > 0
        assert stub.Check(health_pb2.HealthCheckRequest(), timeout=10).status == 1
        for watch in watches:
            watch.cancel()

        def is_taken():
            watch = stub.Watch(health_pb2.HealthCheckRequest(), timeout=10)
            try:
                return next(watch).status == health_pb2.HealthCheckResponse.SERVING
            except grpc.RpcError:
                return False
            finally:
                watch.cancel()

        wait_until(is_taken, 10, "a place")


def test_health_follows_the_drain(own_replay):
    from grpc_health.v1 import health_pb2, health_pb2_grpc

    server = own_replay(SCRIPT, *FLAGS)
    with Client(server) as client, Client(server) as second:
        watch = health_pb2_grpc.HealthStub(client.channel).Watch(health_pb2.HealthCheckRequest(), timeout=30)
        assert next(watch).status == health_pb2.HealthCheckResponse.SERVING
        running = client.call("Generate", client.generate_request("endless", max_tokens=1000, ignore_eos=True))
        pieces = [next(running).choice.text]
        server.terminate()
        assert next(watch).status == health_pb2.HealthCheckResponse.NOT_SERVING
        error = refusal(lambda: second.generate("hello"))
        assert error.code == grpc.StatusCode.UNAVAILABLE and int(error.pushback_ms) > 0
        pieces += [update.choice.text for update in running]
        assert "".join(pieces) == "x" * 1000
        assert server.process.wait(15) == 0


def test_reflection(server, client):
    from google.protobuf.descriptor_pool import DescriptorPool
    from grpc_reflection.v1alpha.proto_reflection_descriptor_database import ProtoReflectionDescriptorDatabase

    database = ProtoReflectionDescriptorDatabase(client.channel)
    assert {"omnibus.v1.Inference", "grpc.health.v1.Health"} <= set(database.get_services())
    service = DescriptorPool(database).FindServiceByName("omnibus.v1.Inference")
    assert [m.name for m in service.methods] == [m.name for m in client.messages.DESCRIPTOR.services_by_name["Inference"].methods]
    fields = {f.name: f.number for f in service.methods_by_name["Chat"].input_type.fields}
    assert fields == {f.name: f.number for f in client.messages.ChatRequest.DESCRIPTOR.fields}
    with pytest.raises(KeyError):
        database.FindFileContainingSymbol("omnibus.v1.Nothing")


def test_tls(pool, tmp_path):
    own = Certificate(tmp_path, "own")
    server = pool.start(SCRIPT, *FLAGS, *own.flags())
    try:
        trust = grpc.ssl_channel_credentials(own.certificate.read_bytes())
        with Client(server, credentials=trust) as client:
            assert client.generate("hello", max_tokens=20)[0].text == "Hello world!"
        stranger = grpc.ssl_channel_credentials(Certificate(tmp_path, "other").certificate.read_bytes())
        with Client(server, credentials=stranger) as client:
            assert refusal(lambda: client.generate("hello")).code == grpc.StatusCode.UNAVAILABLE
        with Client(server) as plain:
            assert refusal(lambda: plain.generate("hello")).code == grpc.StatusCode.UNAVAILABLE
    finally:
        assert server.stop() == 0
        server.close()


def test_a_certificate_is_renewed_in_place(pool, tmp_path):
    """Connections made after the files changed get the new certificate; no restart, nothing to tell the server."""
    old, new = Certificate(tmp_path, "old"), Certificate(tmp_path, "new")
    server = pool.start(SCRIPT, *FLAGS, *old.flags())

    def serves(certificate):
        try:
            with Client(server, credentials=grpc.ssl_channel_credentials(certificate)) as client:
                return client.generate("hello", max_tokens=20)[0].text == "Hello world!"
        except grpc.RpcError:
            return False

    try:
        first, second = old.certificate.read_bytes(), new.certificate.read_bytes()
        assert serves(first) and not serves(second)
        new.key.rename(old.key)
        new.certificate.rename(old.certificate)
        wait_until(lambda: serves(second), 60, "the new certificate")
        assert not serves(first)
    finally:
        assert server.stop() == 0
        server.close()


def test_client_certificates(pool, tmp_path):
    ours, authority = Certificate(tmp_path, "ours"), Certificate(tmp_path, "authority")
    known = Certificate(tmp_path, "known", issuer=authority)
    server = pool.start(SCRIPT, *FLAGS, *ours.flags(), "--ssl-ca-certs", str(authority.certificate))
    server.verify = str(ours.certificate)
    try:
        root = ours.certificate.read_bytes()
        own = grpc.ssl_channel_credentials(root, known.key.read_bytes(), known.certificate.read_bytes())
        with Client(server, credentials=own) as client:
            assert client.generate("hello", max_tokens=20)[0].text == "Hello world!"
        with Client(server, credentials=grpc.ssl_channel_credentials(root)) as nobody:
            assert refusal(lambda: nobody.generate("hello")).code == grpc.StatusCode.UNAVAILABLE
    finally:
        assert server.stop() == 0
        server.close()


def test_ports_that_cannot_be_had(pool, server, tmp_path):
    taken = address(server).rsplit(":", 1)[1]
    for flags, said in (
        (["--port", "0", "--grpc-port", taken], f"port {taken}"),
        (["--port", "7001", "--grpc-port", "7001"], "--grpc-port: 7001 is --port already"),
    ):
        run = subprocess.run([program("omnibus"), "serve", str(tmp_path / "none.gguf"), *flags],
                             capture_output=True, text=True, timeout=60)
        assert run.returncode != 0 and said in run.stderr, run.stderr


# Serving while it changes.


def test_reload_changes_keys_and_settings(own_replay, tmp_path):
    """A reload is gRPC's, too: who may call, and what a request may have; a stream that runs goes on."""
    keys = tmp_path / "keys"
    keys.write_text("one sk-one\n")
    server = own_replay(SCRIPT, *FLAGS, "--api-key-file", str(keys))
    with Client(server, key="sk-one") as first, Client(server, key="sk-two") as second:
        running = first.call("Generate", first.generate_request("endless", max_tokens=2000, ignore_eos=True))
        pieces = [next(running).choice.text]
        assert refusal(lambda: second.generate("hello")).code == grpc.StatusCode.UNAUTHENTICATED
        keys.with_suffix(".new").write_text("two sk-two\n")
        keys.with_suffix(".new").rename(keys)
        server.process.send_signal(signal.SIGHUP)

        def second_may():
            try:
                return second.generate("hello", max_tokens=20)[0].text == "Hello world!"
            except grpc.RpcError:
                return False

        wait_until(second_may, 20, "the new key")
        assert refusal(lambda: first.generate("hello")).code == grpc.StatusCode.UNAUTHENTICATED
        pieces += [update.choice.text for update in running]
        assert "".join(pieces) == "x" * 2000
