"""The openai package, unmodified, against the replay server."""

import asyncio
import json
import threading

import openai
import pytest

from harness.script import HELLO, script, says
from harness.wait import wait_until


@pytest.fixture(scope="module")
def server(pool):
    return pool(
        script(
            says("Hel", "lo", " ", "wor", "ld", "!", when="hello"),
            says("abcdef", "STOP", "ghi", when="stop here"),
            says("a", "b", rows=[{"97": -0.1, "98": -2.5, "99": -4.0}, None], when="logprobs"),
            says("ok"),
        )
    )


@pytest.fixture(scope="module")
def client(server):
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0) as client:
        yield client


def ask(client, text, **fields):
    return client.chat.completions.create(model="replay", messages=[{"role": "user", "content": text}], **fields)


def test_models(client):
    assert [m.id for m in client.models.list()] == ["replay"]
    assert client.models.retrieve("replay").id == "replay"
    with pytest.raises(openai.NotFoundError) as error:
        client.models.retrieve("a/b")
    assert error.value.code == "model_not_found"


def test_chat(client):
    answer = ask(client, "hello")
    choice = answer.choices[0]
    assert choice.message.content == "Hello world!"
    assert choice.message.role == "assistant"
    assert choice.finish_reason == "stop"
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-") and answer.model == "replay"
    assert answer.usage.completion_tokens == 7  # six pieces and EOS
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 7
    assert answer._request_id.startswith("req_")


def test_chat_stream(client):
    chunks = list(ask(client, "hello", stream=True, stream_options={"include_usage": True}))
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "Hello world!"
    assert len({c.id for c in chunks}) == 1 and len({c.created for c in chunks}) == 1
    assert chunks[0].choices[0].delta.role == "assistant"
    assert [c.choices[0].finish_reason for c in chunks if c.choices][-1] == "stop"
    assert chunks[-1].choices == [] and chunks[-1].usage.completion_tokens == 7


def test_stream_helper(client):
    with client.chat.completions.stream(
        model="replay", messages=[{"role": "user", "content": "hello"}]
    ) as stream:
        for _ in stream:
            pass
        final = stream.get_final_completion()
    assert final.choices[0].message.content == "Hello world!"
    assert final.choices[0].finish_reason == "stop"


def test_stop(client):
    answer = ask(client, "stop here", stop=["STOP"])
    assert answer.choices[0].message.content == "abcdef"
    assert answer.choices[0].finish_reason == "stop"


def test_logprobs(client):
    answer = ask(client, "logprobs", logprobs=True, top_logprobs=3, temperature=0)
    entries = answer.choices[0].logprobs.content
    assert [e.token for e in entries] == ["a", "b"]
    top = entries[0].top_logprobs
    assert [t.token for t in top] == ["a", "b", "c"]
    assert top[0].logprob == entries[0].logprob
    # log-softmax of the scripted row
    assert top[0].logprob - top[1].logprob == pytest.approx(2.4, abs=1e-5)
    assert entries[0].bytes == [97]


def test_logprobs_without_top(client):
    entries = ask(client, "logprobs", logprobs=True).choices[0].logprobs.content
    assert all(e.top_logprobs == [] for e in entries)


def test_n(client):
    answer = ask(client, "hello", n=3)
    assert [c.index for c in answer.choices] == [0, 1, 2]
    assert {c.message.content for c in answer.choices} == {"Hello world!"}
    assert answer.usage.completion_tokens == 21
    one = ask(client, "hello")
    assert answer.usage.prompt_tokens == one.usage.prompt_tokens


def test_completion(client):
    answer = client.completions.create(model="replay", prompt="say hello")
    assert answer.choices[0].text == "Hello world!"
    assert answer.object == "text_completion" and answer.id.startswith("cmpl-")


def test_completion_stream(client):
    chunks = list(client.completions.create(model="replay", prompt="say hello", stream=True))
    assert "".join(c.choices[0].text for c in chunks) == "Hello world!"
    assert chunks[-1].choices[0].finish_reason == "stop"


def test_completion_echo(client):
    answer = client.completions.create(model="replay", prompt="say hello", echo=True, logprobs=0)
    choice = answer.choices[0]
    assert choice.text == "say helloHello world!"
    assert "".join(choice.logprobs.tokens) == choice.text
    assert choice.logprobs.token_logprobs[0] is None
    assert choice.logprobs.text_offset[:3] == [0, 1, 2]


def test_completion_of_several_prompts(client):
    answer = client.completions.create(model="replay", prompt=["say hello", "say nothing"], n=2)
    assert [c.index for c in answer.choices] == [0, 1, 2, 3]
    assert [c.text for c in answer.choices] == ["Hello world!"] * 2 + ["ok"] * 2


def test_errors(client):
    with pytest.raises(openai.NotFoundError) as error:
        client.chat.completions.create(model="nobody", messages=[{"role": "user", "content": "x"}])
    assert error.value.code == "model_not_found" and error.value.param == "model"
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, "x", temperature=3)
    assert error.value.param == "temperature" and error.value.code == "decimal_above_max_value"
    with pytest.raises(openai.BadRequestError) as error:
        client.chat.completions.create(model="replay", messages=[])
    assert error.value.param == "messages"
    tool = {"type": "function", "function": {"name": "f", "parameters": {}}}
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, "x", tools=[tool])
    assert error.value.param == "tools" and error.value.code == "unsupported_parameter"


def test_context_length(client):
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, "x" * 5000)
    assert error.value.code == "context_length_exceeded" and error.value.param == "messages"
    assert "4096" in error.value.message and "50" in error.value.message


def test_raw_response_headers(client):
    raw = client.chat.completions.with_raw_response.create(
        model="replay",
        messages=[{"role": "user", "content": "hello"}],
        user="someone",
        extra_headers={"X-Request-Id": "mine-1"},
        extra_body={"no_such_field": 1},
    )
    assert raw.headers["x-request-id"] == "mine-1"
    assert raw.headers["x-omnibus-ignored-fields"] == "user, no_such_field"
    assert int(raw.headers["openai-processing-ms"]) >= 0
    assert json.loads(raw.content)["choices"][0]["message"]["content"] == "Hello world!"


def test_retrieve_a_model_with_a_slash(replay):
    server = replay(script(says("ok")), "--served-model-name", "org/model")
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0) as client:
        assert client.models.retrieve("org/model").id == "org/model"
        with pytest.raises(openai.APIStatusError) as error:
            client.models.delete("org/model")
        assert error.value.status_code == 405 and error.value.code == "method_not_allowed"
        assert "GET" in error.value.response.headers["allow"]


def test_stream_helper_of_every_event(client):
    kinds, text = [], ""
    with client.chat.completions.stream(
        model="replay", messages=[{"role": "user", "content": "hello"}], stream_options={"include_usage": True}
    ) as stream:
        for event in stream:
            kinds.append(event.type)
            if event.type == "content.delta":
                text += event.delta
                assert event.snapshot == text
        final = stream.get_final_completion()
    assert text == "Hello world!" and kinds[-1] != "error" and "content.done" in kinds
    assert final.usage.completion_tokens == 7 and final.choices[0].finish_reason == "stop"


def test_stream_helper_with_logprobs_and_n(client):
    with client.chat.completions.stream(
        model="replay", messages=[{"role": "user", "content": "logprobs"}], logprobs=True, top_logprobs=2, n=2, temperature=0
    ) as stream:
        final = stream.get_final_completion()
    assert [c.index for c in final.choices] == [0, 1]
    for choice in final.choices:
        assert choice.message.content == "ab" and choice.finish_reason == "stop"
        assert [e.token for e in choice.logprobs.content] == ["a", "b"]


def test_streaming_response_and_request_id(client):
    with client.chat.completions.with_streaming_response.create(
        model="replay", messages=[{"role": "user", "content": "hello"}]
    ) as raw:
        assert raw.headers["request-id"] == raw.headers["x-request-id"] == raw.request_id
        assert raw.parse().choices[0].message.content == "Hello world!"


def test_extension_fields_of_extra_body(client):
    answer = ask(client, "hello", extra_body={"top_k": 1, "stop_token_ids": [261], "return_token_ids": True, "min_p": 0.1})
    assert answer.choices[0].message.content == "Hello " and answer.choices[0].stop_reason == 261
    assert answer.choices[0].token_ids == [259, 260, 32, 261] and answer.prompt_token_ids
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, "hello", extra_body={"min_p": 2})
    assert error.value.param == "min_p"
    with pytest.raises(openai.BadRequestError) as error:
        ask(client, "hello", extra_body={"guided_json": {}})
    assert error.value.code == "unsupported_parameter"


def test_async_client(server):
    async def talk():
        async with openai.AsyncOpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0) as client:
            messages = [{"role": "user", "content": "hello"}]
            create = client.chat.completions.create
            answers = await asyncio.gather(*(create(model="replay", messages=messages) for _ in range(8)))
            assert {a.choices[0].message.content for a in answers} == {"Hello world!"}
            text = ""
            async for chunk in await create(model="replay", messages=messages, stream=True):
                text += chunk.choices[0].delta.content or ""
            assert text == "Hello world!"
            async with client.chat.completions.stream(model="replay", messages=messages) as stream:
                assert (await stream.get_final_completion()).choices[0].message.content == "Hello world!"

    asyncio.run(talk())


def test_leaving_a_stream_frees_its_memory(own_replay):
    server = own_replay(HELLO)
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0) as client:
        stream = ask(client, "endless", stream=True)
        for _ in range(3):
            next(stream)
        assert not server.idle()
        stream.close()
        wait_until(server.idle, 5, "the stream's request ended")
        with pytest.raises(openai.APITimeoutError):
            ask(client, "endless", timeout=0.3)
        wait_until(server.idle, 5, "the request that timed out ended")
    server.assert_serves()


def test_retries_where_the_queue_is_full(own_replay):
    """429 with retry-after-ms: the client comes again by itself and is served."""
    server = own_replay(HELLO, "--max-num-seqs", "1", "--max-waiting-requests", "0")
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0) as client:
        busy = ask(client, "endless", stream=True)
        next(busy)
        with pytest.raises(openai.RateLimitError) as error:
            ask(client, "hello")
        headers = error.value.response.headers
        assert error.value.code == "rate_limit_exceeded" and error.value.type == "rate_limit_error"
        assert int(headers["retry-after"]) >= 1 and int(headers["retry-after-ms"]) > 0
        timer = threading.Timer(0.2, busy.close)
        timer.start()
        answer = ask(client.with_options(max_retries=5), "hello")
        assert answer.choices[0].message.content == "Hello world!"
        timer.join()


def test_an_error_in_mid_stream_reaches_the_caller(replay):
    server = replay(script(says("a", "b", "c", fault={"at": 2, "kind": "nan"}, when="poison"), says("ok")))
    with openai.OpenAI(base_url=server.url + "/v1", api_key="any", max_retries=0) as client:
        with pytest.raises(openai.APIError):
            list(ask(client, "poison", stream=True))
        assert ask(client, "x").choices[0].message.content == "ok"
