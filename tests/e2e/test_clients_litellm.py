"""The litellm package, unmodified, against the real program: each provider prefix that people point at a server of
OpenAI's shape."""

import asyncio
import os

import pytest

from harness.clients import FRANCE, KEY, LONG, MAX_MODEL_LEN, model_name, tokens_of_chat
from harness.script import script, says
from harness.wait import wait_until

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # else it asks the network
import litellm  # noqa: E402

litellm.suppress_debug_info = True
litellm.telemetry = False
pytestmark = pytest.mark.filterwarnings("ignore")  # its own, of its own dependencies

CHAT_PROVIDERS = ["openai", "hosted_vllm", "litellm_proxy", "custom_openai"]
USER = {"role": "user", "content": FRANCE}


@pytest.fixture(scope="module")
def name(real):
    return model_name(real)


@pytest.fixture(scope="module", params=CHAT_PROVIDERS)
def ask(request, real, name):
    def ask(*messages, **fields):
        fields = {"model": f"{request.param}/{name}", "temperature": 0, "max_tokens": 12, "num_retries": 0, **fields}
        return litellm.completion(
            messages=list(messages or [USER]), api_base=real.url + "/v1", **{"api_key": KEY, **fields}
        )

    return ask


def text_of(chunks):
    return "".join(choice.delta.content or "" for chunk in chunks for choice in chunk.choices)


def test_chat(ask, real, name):
    answer = ask()
    assert answer.choices[0].message.content.strip() and answer.choices[0].message.role == "assistant"
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.object == "chat.completion" and answer.id.startswith("chatcmpl-")
    assert answer.usage.prompt_tokens == tokens_of_chat(real, USER)
    assert 0 < answer.usage.completion_tokens <= 12
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens


def test_stream_is_the_whole_and_counts(ask):
    whole = ask()
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    assert text_of(chunks) == whole.choices[0].message.content
    assert [c.finish_reason for k in chunks for c in k.choices if c.finish_reason] == [
        whole.choices[0].finish_reason
    ]
    usage = [k.usage for k in chunks if getattr(k, "usage", None)]
    assert len(usage) == 1 and usage[0].completion_tokens == whole.usage.completion_tokens
    assert usage[0].prompt_tokens == whole.usage.prompt_tokens
    rebuilt = litellm.stream_chunk_builder(chunks, messages=[USER])
    assert rebuilt.choices[0].message.content == whole.choices[0].message.content


def test_system_and_turns_reach_the_model(ask, real):
    turns = [
        {"role": "system", "content": "You are terse."},
        USER,
        {"role": "assistant", "content": "Paris."},
        {"role": "user", "content": "And of Italy?"},
    ]
    answer = ask(*turns)
    assert answer.usage.prompt_tokens == tokens_of_chat(real, *turns)


def test_n_stop_seed_and_logprobs(ask):
    whole = ask().choices[0].message.content
    stop = whole[len(whole) // 2 :][:3]
    cut = ask(stop=[stop]).choices[0]
    assert cut.message.content == whole[: whole.index(stop)] and cut.finish_reason == "stop"
    drawn = [c.message.content for c in ask(n=3, seed=5, temperature=1.0).choices]
    assert len(set(drawn)) == 3
    assert drawn == [c.message.content for c in ask(n=3, seed=5, temperature=1.0).choices]
    entries = ask(logprobs=True, top_logprobs=3, max_tokens=4).choices[0].logprobs.content
    assert len(entries) == 4
    for entry in entries:
        assert len(entry.top_logprobs) == 3 and entry.top_logprobs[0].logprob == entry.logprob <= 0


def test_length_is_said(ask):
    answer = ask(max_tokens=1)
    assert answer.choices[0].finish_reason == "length" and answer.usage.completion_tokens == 1


def test_errors_are_its_own_classes(ask):
    with pytest.raises(litellm.AuthenticationError):
        ask(api_key="sk-wrong")
    with pytest.raises(litellm.ContextWindowExceededError) as error:
        ask({"role": "user", "content": "word " * 2 * MAX_MODEL_LEN})
    assert str(MAX_MODEL_LEN) in str(error.value)
    with pytest.raises(litellm.BadRequestError) as error:
        ask(temperature=7)
    assert "temperature" in str(error.value)


def test_unknown_model(real):
    with pytest.raises(litellm.NotFoundError) as error:
        litellm.completion(
            model="openai/nobody", messages=[USER], api_base=real.url + "/v1", api_key=KEY, num_retries=0
        )
    assert "nobody" in str(error.value)


def test_timeout(ask, real):
    with pytest.raises(litellm.Timeout):
        ask({"role": "user", "content": "Tell me a long story."}, timeout=0.1, **LONG)
    wait_until(lambda: idle(real), 10, "the request that timed out is gone")


def idle(real):
    # /metrics is open on loopback.
    return real.metric("vllm:num_requests_running") == 0 and real.metric("vllm:kv_cache_usage_perc") == 0


def test_leaving_a_stream_frees_the_server(ask, real):
    stream = ask({"role": "user", "content": "Tell me a long story."}, stream=True, **LONG)
    for _ in range(3):
        next(stream)
    # litellm offers no way to end a stream early; the connection goes with the object under it.
    stream.completion_stream.close()
    wait_until(lambda: idle(real), 10, "the stream that was left is gone")


def test_async(real, name):
    async def both():
        fields = {
            "model": f"openai/{name}", "api_base": real.url + "/v1", "api_key": KEY, "temperature": 0,
            "max_tokens": 12, "messages": [USER],
        }
        answers = await asyncio.gather(*(litellm.acompletion(**fields) for _ in range(8)))
        chunks = [chunk async for chunk in await litellm.acompletion(stream=True, **fields)]
        return {a.choices[0].message.content for a in answers}, text_of(chunks)

    texts, streamed = asyncio.run(both())
    assert texts == {streamed}


def test_text_completion(real, name):
    fields = {
        "model": f"text-completion-openai/{name}", "api_base": real.url + "/v1", "api_key": KEY, "temperature": 0,
        "max_tokens": 8,
    }
    whole = litellm.text_completion(prompt="The step of boiling water is:", **fields)
    assert whole.choices[0].text and whole.usage.completion_tokens <= 8 and whole.object == "text_completion"
    chunks = list(litellm.text_completion(prompt="The step of boiling water is:", stream=True, **fields))
    assert "".join(c.choices[0].text or "" for c in chunks if c.choices) == whole.choices[0].text
    two = litellm.text_completion(prompt=["The step of boiling water is:", "Once upon a time"], **fields)
    assert [c.index for c in two.choices] == [0, 1] and two.choices[0].text == whole.choices[0].text


def test_a_full_queue_is_its_rate_limit_error(own_replay):
    server = own_replay(
        script(says("x", eos=False, delay_ms=5)), "--max-num-seqs", "1", "--max-waiting-requests", "1"
    )

    async def crowd():
        calls = (
            litellm.acompletion(
                model="openai/replay", messages=[USER], api_base=server.url + "/v1", api_key="x", max_tokens=100,
                max_retries=0, num_retries=0,
            )
            for _ in range(8)
        )
        return await asyncio.gather(*calls, return_exceptions=True)

    ends = asyncio.run(crowd())
    refused = [e for e in ends if isinstance(e, litellm.RateLimitError)]
    answered = [e for e in ends if not isinstance(e, Exception)]
    assert refused and answered and len(refused) + len(answered) == 8, ends


def test_list_of_models(real, name):
    assert litellm.get_valid_models(
        check_provider_endpoint=True, custom_llm_provider="openai", api_key=KEY, api_base=real.url + "/v1"
    ) == [name]


# Ollama's API: /api/generate and /api/chat.


@pytest.fixture(scope="module", params=["ollama", "ollama_chat"])
def ask_ollama(request, real, name):
    def ask(*messages, **fields):
        fields = {"model": f"{request.param}/{name}", "temperature": 0, "max_tokens": 12, "num_retries": 0, **fields}
        return litellm.completion(
            messages=list(messages or [USER]), api_base=real.url, **{"api_key": KEY, **fields}
        )

    return ask


def test_ollama_chat(ask_ollama):
    whole = ask_ollama()
    assert whole.choices[0].message.content.strip() and whole.choices[0].finish_reason in ("stop", "length")
    assert whole.usage.prompt_tokens > 10 and 0 < whole.usage.completion_tokens <= 12
    chunks = list(ask_ollama(stream=True))
    assert text_of(chunks) == whole.choices[0].message.content
    assert [c.finish_reason for k in chunks for c in k.choices if c.finish_reason][-1] in ("stop", "length")


def test_ollama_stop_and_seed(ask_ollama):
    whole = ask_ollama().choices[0].message.content
    stop = whole[len(whole) // 2 :][:3]
    assert ask_ollama(stop=[stop]).choices[0].message.content == whole[: whole.index(stop)]
    draw = lambda seed: ask_ollama(seed=seed, temperature=1.0).choices[0].message.content
    assert draw(5) == draw(5) != draw(6)


def test_ollama_errors(ask_ollama, name):
    with pytest.raises(litellm.AuthenticationError):
        ask_ollama(api_key="sk-wrong")
    with pytest.raises(litellm.BadRequestError) as error:
        ask_ollama({"role": "user", "content": "word " * 2 * MAX_MODEL_LEN})
    assert str(MAX_MODEL_LEN) in str(error.value)


def test_ollama_async(real, name):
    async def both():
        fields = {
            "model": f"ollama_chat/{name}", "api_base": real.url, "api_key": KEY, "temperature": 0, "max_tokens": 12,
            "messages": [USER],
        }
        answers = await asyncio.gather(*(litellm.acompletion(**fields) for _ in range(4)))
        chunks = [chunk async for chunk in await litellm.acompletion(stream=True, **fields)]
        return {a.choices[0].message.content for a in answers}, text_of(chunks)

    texts, streamed = asyncio.run(both())
    assert texts == {streamed}
