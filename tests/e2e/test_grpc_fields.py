"""S4 and S8 at the gRPC door: every numeric field with odd values gets HTTP's verdict, every method asks for its key."""

import math
import subprocess

import grpc
import pytest
import requests

from harness.grpc_client import Client, refusal
from harness.script import HELLO, script, says
from harness.server import program

KEYS = ("--api-key", "sk-alice", "--api-key", "sk-other")
ODD = (-1, 0, 1, 20, 21, 128, 129, 1.5, 2, 2.5, 101, 2**31 - 1, 2**31, 2**63 - 1, -(2**63), math.nan, math.inf, -math.inf, 1e300)


@pytest.fixture(scope="module")
def server(pool):
    return pool(script(says("a", "b", "c")), "--grpc-port", "0", "--max-num-seqs", "128", "--max-waiting-requests", "4096")


@pytest.fixture(scope="module")
def client(server):
    with Client(server) as client:
        yield client


def numeric_fields(message):
    """[(name, is a float, is in `sampling`)] of the single numbers of a request."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None and field.message_type.name == "SamplingParams":
            for own in field.message_type.fields:
                if own.type in (own.TYPE_DOUBLE, own.TYPE_INT64) and not own.is_repeated:
                    yield own.name, own.type == own.TYPE_DOUBLE
        elif field.type in (field.TYPE_DOUBLE, field.TYPE_INT64) and not field.is_repeated:
            yield field.name, field.type == field.TYPE_DOUBLE


def fits(value, is_float):
    return is_float or (isinstance(value, int) and -(2**63) <= value < 2**63)


@pytest.mark.parametrize("method", ["Generate", "Chat"])
def test_s04_numbers_get_the_verdict_of_http(server, client, method):
    message = client.messages.GenerateRequest if method == "Generate" else client.messages.ChatRequest
    path = "/v1/completions" if method == "Generate" else "/v1/chat/completions"
    walked = 0
    for name, is_float in numeric_fields(message):
        for value in ODD:
            if not fits(value, is_float):
                continue
            needs = {"max_tokens": 3} if name not in ("max_tokens", "max_completion_tokens") else {}
            if name in ("prompt_logprobs", "best_of"):
                needs["stream"] = False
            if name == "top_logprobs":
                needs["logprobs"] = True
            make = client.generate_request if method == "Generate" else client.chat_request
            request = make("hi", **{**needs, name: value})
            # A double is written as an integer where it is one.
            said_as = float(value) if is_float and abs(value) > 2**53 else value
            http = {**needs, name: said_as, "stream": needs.get("stream", True)}
            http |= {"prompt": "hi"} if method == "Generate" else {"messages": [{"role": "user", "content": "hi"}]}
            walked += 1
            if isinstance(value, float) and not math.isfinite(value):  # JSON has no such number: 400 there, too
                error = refusal(lambda: client.call(method, request))
                assert (error.code, error.detail.param) == (grpc.StatusCode.INVALID_ARGUMENT, name), error
                continue
            answer = server.post(path, http)
            if answer.status_code == 200:
                updates = list(client.call(method, request))
                assert updates[-1].HasField("usage"), (name, value)
                continue
            assert answer.status_code == 400, answer.text
            error = refusal(lambda: client.call(method, request))
            said = answer.json()["error"]
            assert error.code == grpc.StatusCode.INVALID_ARGUMENT, (name, value, error)
            assert (error.message, error.detail.param, error.detail.code) == (
                said["message"], said["param"], said["code"] or ""), (name, value)
    print("walked", walked)
    assert walked > 150
    assert client.generate("hi", max_tokens=5)[0].text == "abc"


@pytest.mark.parametrize("field", ["stop_token_ids", "allowed_token_ids", "logprob_token_ids", "logit_bias", "prompt"])
def test_s04_token_ids(server, client, field):
    for value in (-1, 0, 10**6, 2**31, 2**32 + 5, 2**63 - 1, -(2**63)):
        http = {"prompt": "hi", "max_tokens": 3, "logprobs": 1}
        if field == "prompt":
            http["prompt"] = [value]
            request = client.generate_request([value], max_tokens=3, logprobs=1)
        else:
            http[field] = {str(value): 1} if field == "logit_bias" else [value]
            own = {value: 1.0} if field == "logit_bias" else [value]
            request = client.generate_request("hi", max_tokens=3, logprobs=1, **{field: own})
        answer = server.post("/v1/completions", http)
        if answer.status_code == 200:
            assert list(client.call("Generate", request))
        else:
            error = refusal(lambda: client.call("Generate", request))
            assert error.code == grpc.StatusCode.INVALID_ARGUMENT
            assert error.message == answer.json()["error"]["message"], (field, value)


def test_s04_lists_that_are_too_long(client):
    for fields in (
        {"stop": ["a"] * 65},
        {"stop": ["a" * 257]},
        {"logit_bias": {i: 1.0 for i in range(1025)}},
        {"logit_bias": {i: 1.0 for i in range(9000)}},  # more keys than JSON may have
        {"logprob_token_ids": [1] * 129, "logprobs": 1},
        {"bad_words": ["a"] * 1025},
    ):
        error = refusal(lambda: client.call("Generate", client.generate_request("hi", **fields)))
        assert error.code == grpc.StatusCode.INVALID_ARGUMENT, fields


# S8.

PUBLIC = {"/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"}
REFLECTION = ("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
              "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")


def paths(client):
    own = [f"/omnibus.v1.Inference/{m.name}" for m in client.messages.DESCRIPTOR.services_by_name["Inference"].methods]
    return [*own, *REFLECTION, *sorted(PUBLIC), "/omnibus.v1.Inference/Nothing", "/omnibus.v1.Inference/generate",
            "//omnibus.v1.Inference/Generate", "/omnibus.v1.Inference/Generate/", "/omnibus.v1.inference/Generate"]


def verdict(client, path, metadata):
    """The code of a call with an empty message, read up to its first answer."""
    call = client.channel.stream_stream(path)(iter([b""]), timeout=20, metadata=metadata)
    try:
        next(call)
        call.cancel()
        return grpc.StatusCode.OK
    except StopIteration:
        return grpc.StatusCode.OK
    except grpc.RpcError as error:
        return error.code()


@pytest.fixture(scope="module")
def keyed(pool):
    return pool(HELLO, "--grpc-port", "0", *KEYS)


@pytest.mark.parametrize("metadata, right", [
    ([], False),
    ([("authorization", "Bearer wrong")], False),
    ([("authorization", "sk-alice")], False),
    ([("authorization", "Basic sk-alice")], False),
    ([("authorization", "Bearer ")], False),
    ([("x-api-key", "sk-alic")], False),
    ([("x-api-key-bin", b"sk-alice")], False),
    ([("authorization", "Bearer sk-alice")], True),
    ([("authorization", "bearer sk-other")], True),
    ([("x-api-key", "sk-alice")], True),
])  # fmt: skip
def test_s08_every_method_asks_for_the_key(keyed, metadata, right):
    with Client(keyed) as client:
        for path in paths(client):
            code = verdict(client, path, metadata)
            if right or path in PUBLIC:
                assert code not in (grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED), path
            else:
                assert code == grpc.StatusCode.UNAUTHENTICATED, path


def test_s08_a_wrong_key_is_told_as_over_http(keyed):
    with Client(keyed, key="wrong") as client:
        error = refusal(lambda: client.generate("hi"))
        http = requests.post(keyed.url + "/v1/completions", json={"prompt": "hi"}, timeout=10).json()["error"]
        assert (error.message, error.detail.code) == (http["message"], http["code"])


def test_s08_no_key_no_bind_beyond_loopback(tmp_path):
    run = subprocess.run([program("omnibus"), "serve", "--host", "0.0.0.0", "--port", "0", "--grpc-port", "0"],
                         capture_output=True, text=True, timeout=60)
    assert run.returncode == 2 and "api-key" in run.stderr, run.stderr
