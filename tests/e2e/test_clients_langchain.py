"""The langchain-openai package, unmodified, against the real program: ChatOpenAI and OpenAI."""

import asyncio

import openai
import pytest
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_openai import ChatOpenAI, OpenAI

from harness.clients import FRANCE, KEY, LONG, MAX_MODEL_LEN, model_name, tokens_of_chat
from harness.wait import wait_until

pytestmark = pytest.mark.filterwarnings("ignore")  # its own, of its own dependencies


@pytest.fixture(scope="module")
def name(real):
    return model_name(real)


@pytest.fixture(scope="module")
def chat(real, name):
    def make(**fields):
        return ChatOpenAI(
            **{
                "model": name, "base_url": real.url + "/v1", "api_key": KEY, "temperature": 0, "max_tokens": 12,
                "max_retries": 0, **fields,
            }
        )

    return make


@pytest.fixture(scope="module")
def complete(real, name):
    def make(**fields):
        return OpenAI(
            **{
                "model": name, "base_url": real.url + "/v1", "api_key": KEY, "temperature": 0, "max_tokens": 8,
                "max_retries": 0, **fields,
            }
        )

    return make


def test_invoke(chat, real, name):
    answer = chat().invoke(FRANCE)
    assert isinstance(answer, AIMessage) and answer.content.strip()
    usage = answer.usage_metadata
    assert usage["input_tokens"] == tokens_of_chat(real, {"role": "user", "content": FRANCE})
    assert 0 < usage["output_tokens"] <= 12
    assert usage["total_tokens"] == usage["input_tokens"] + usage["output_tokens"]
    assert answer.response_metadata["model_name"] == name
    assert answer.response_metadata["finish_reason"] in ("stop", "length")
    assert answer.response_metadata["system_fingerprint"]


def test_stream_is_the_whole_and_counts(chat):
    whole = chat().invoke(FRANCE)
    chunks = list(chat(stream_usage=True).stream(FRANCE))
    total = chunks[0]
    for chunk in chunks[1:]:
        total = total + chunk
    assert total.content == whole.content and len(chunks) > 3
    assert total.usage_metadata["output_tokens"] == whole.usage_metadata["output_tokens"]
    assert total.usage_metadata["input_tokens"] == whole.usage_metadata["input_tokens"]
    assert total.response_metadata["finish_reason"] == whole.response_metadata["finish_reason"]


def test_messages_of_every_role(chat, real):
    answer = chat().invoke(
        [SystemMessage("You are terse."), HumanMessage(FRANCE), AIMessage("Paris."), HumanMessage("And of Italy?")]
    )
    assert answer.usage_metadata["input_tokens"] == tokens_of_chat(
        real,
        {"role": "system", "content": "You are terse."},
        {"role": "user", "content": FRANCE},
        {"role": "assistant", "content": "Paris."},
        {"role": "user", "content": "And of Italy?"},
    )


def test_a_chain(chat):
    chain = ChatPromptTemplate.from_messages([("system", "Be brief."), ("user", "{q}")]) | chat() | StrOutputParser()
    whole = chain.invoke({"q": FRANCE})
    assert whole.strip() and "".join(chain.stream({"q": FRANCE})) == whole


def test_batch(chat):
    questions = [FRANCE, "What is 2 + 2?", "Name a colour."] * 3
    together = chat().batch(questions)
    assert [a.content for a in together] == [chat().invoke(q).content for q in questions[:3]] * 3


def test_async(chat):
    async def both():
        chunks = [chunk.content async for chunk in chat().astream(FRANCE)]
        answers = await chat().abatch([FRANCE] * 4)
        return (await chat().ainvoke(FRANCE)).content, "".join(chunks), {a.content for a in answers}

    whole, streamed, batched = asyncio.run(both())
    assert streamed == whole and batched == {whole}


def test_bind_stop(chat):
    whole = chat().invoke(FRANCE).content
    stop = whole[len(whole) // 2 :][:3]
    cut = chat().bind(stop=[stop]).invoke(FRANCE)
    assert cut.content == whole[: whole.index(stop)] and cut.response_metadata["finish_reason"] == "stop"
    assert "".join(c.content for c in chat().bind(stop=[stop]).stream(FRANCE)) == cut.content


def test_logprobs(chat):
    answer = chat(logprobs=True, top_logprobs=2, max_tokens=4).invoke(FRANCE)
    entries = answer.response_metadata["logprobs"]["content"]
    assert len(entries) == 4 and "".join(e["token"] for e in entries) == answer.content
    assert all(len(e["top_logprobs"]) == 2 and e["logprob"] == e["top_logprobs"][0]["logprob"] for e in entries)


def test_n_and_seed(chat):
    texts = lambda: [
        g.text for g in chat(n=3, seed=11, temperature=1.0).generate([[HumanMessage("A story.")]]).generations[0]
    ]
    first = texts()
    assert len(first) == 3 and len(set(first)) == 3 and texts() == first


def test_extra_body(chat):
    """vLLM's fields, as langchain users pass them."""
    answer = chat(max_tokens=6, extra_body={"ignore_eos": True, "top_k": 1}).invoke(FRANCE)
    assert answer.usage_metadata["output_tokens"] == 6
    assert answer.response_metadata["finish_reason"] == "length"


def test_errors(chat):
    with pytest.raises(openai.AuthenticationError) as error:
        chat(api_key="sk-wrong").invoke(FRANCE)
    assert error.value.code == "invalid_api_key"
    with pytest.raises(openai.NotFoundError) as error:
        chat(model="nobody").invoke(FRANCE)
    assert error.value.code == "model_not_found"
    with pytest.raises(openai.BadRequestError) as error:
        chat().invoke("word " * 2 * MAX_MODEL_LEN)
    assert str(MAX_MODEL_LEN) in str(error.value)
    with pytest.raises(openai.BadRequestError) as error:
        chat(temperature=7).invoke(FRANCE)
    assert error.value.param == "temperature"


def test_timeout_and_leaving(chat, real):
    story = "Tell me a long story."
    long = {"max_tokens": LONG["max_tokens"], "extra_body": {"ignore_eos": True}}
    idle = lambda: real.metric("vllm:num_requests_running") == 0 and real.metric("vllm:kv_cache_usage_perc") == 0
    with pytest.raises(openai.APITimeoutError):
        chat(timeout=0.1, **long).invoke(story)
    wait_until(idle, 10, "the request that timed out is gone")
    stream = chat(**long).stream(story)
    next(stream), next(stream)
    stream.close()
    wait_until(idle, 10, "the stream that was left is gone")


def test_completions(complete):
    prompt = "The step of boiling water is:"
    whole = complete().invoke(prompt)
    assert whole and "".join(complete().stream(prompt)) == whole
    result = complete().generate([prompt, "Once upon a time"])
    assert result.generations[0][0].text == whole and len(result.generations) == 2
    usage = result.llm_output["token_usage"]
    assert usage["total_tokens"] == usage["prompt_tokens"] + usage["completion_tokens"]
    assert usage["completion_tokens"] <= 16
    stop = whole[len(whole) // 2 :][:3]
    assert complete().bind(stop=[stop]).invoke(prompt) == whole[: whole.index(stop)]
    assert asyncio.run(complete().ainvoke(prompt)) == whole
    assert complete().batch([prompt, prompt]) == [whole, whole]


def test_tools_and_structured_output_are_refused_by_name(chat):
    def weather(city: str) -> str:
        """The weather in a city."""
        return city

    with pytest.raises(openai.BadRequestError) as error:
        chat().bind_tools([weather]).invoke(FRANCE)
    assert error.value.param == "tools" and error.value.code == "unsupported_parameter"
    schema = {"title": "T", "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]}
    with pytest.raises(openai.BadRequestError) as error:
        chat().with_structured_output(schema, method="json_schema").invoke(FRANCE)
    assert error.value.param == "response_format"
