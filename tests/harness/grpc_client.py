"""Clients of the gRPC door: stubs generated from the .proto for the session, channels, and errors as values."""

import re
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path

import grpc
from google.rpc import status_pb2

ROOT = Path(__file__).resolve().parents[2]
SERVICE = "omnibus.v1.Inference"


@cache
def stubs():
    """(messages, services): the modules that protoc makes of proto/omnibus/v1/inference.proto."""
    folder = tempfile.TemporaryDirectory(prefix="omnibus-stubs-")
    subprocess.run(
        [sys.executable, "-m", "grpc_tools.protoc", "-I", ROOT / "proto", f"--python_out={folder.name}",
         f"--grpc_python_out={folder.name}", "omnibus/v1/inference.proto"],
        check=True, timeout=120,
    )  # fmt: skip
    sys.path.insert(0, folder.name)
    try:
        from omnibus.v1 import inference_pb2, inference_pb2_grpc
    finally:
        sys.path.remove(folder.name)
        folder.cleanup()
    return inference_pb2, inference_pb2_grpc


def address(server):
    """HOST:PORT of the gRPC listener, from the table that the server prints at start."""
    return re.search(r"^gRPC\s+(\S+)", server.out_path.read_text(), re.MULTILINE).group(1)


class Client:
    """One connection. `key` goes with each call."""

    def __init__(self, server, key=None, credentials=None, options=()):
        # A pool of its own, or channels of one process to one address would share a connection.
        options = [("grpc.use_local_subchannel_pool", 1), *options]
        where = address(server)
        if credentials is None:
            self.channel = grpc.insecure_channel(where, options)
        else:
            port = where.rsplit(":", 1)[1]
            self.channel = grpc.secure_channel(f"localhost:{port}", credentials, options)
        self.messages, services = stubs()
        self.stub = services.InferenceStub(self.channel)
        self.metadata = [("authorization", f"Bearer {key}")] if key else []

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.channel.close()

    def call(self, name, request, timeout=30, metadata=()):
        return getattr(self.stub, name)(request, timeout=timeout, metadata=[*self.metadata, *metadata])

    def raw_call(self, path, body=b"", timeout=30, metadata=()):
        """A call by its path, with any bytes as its message; the answer's messages as bytes."""
        stream = self.channel.unary_stream(path)
        return list(stream(body, timeout=timeout, metadata=[*self.metadata, *metadata]))

    def generate_request(self, prompt, **fields):
        return request_of(self.messages.GenerateRequest, fields, prompt)

    def chat_request(self, text, **fields):
        message = self.messages.Message(role="user", content=text)
        return request_of(self.messages.ChatRequest, {"messages": [message], **fields}, None)

    def generate(self, prompt, **fields):
        return collect(self.call("Generate", self.generate_request(prompt, **fields)))

    def chat(self, text, **fields):
        return collect(self.call("Chat", self.chat_request(text, **fields)))


def request_of(message, fields, prompt):
    """Fields by their names, be they of the message or of its `sampling`."""
    names = {f.name for f in message.DESCRIPTOR.fields}
    sampling = {name: value for name, value in fields.items() if name not in names}
    request = message(**{name: value for name, value in fields.items() if name in names})
    if isinstance(prompt, str):
        request.prompt = prompt
    elif prompt is not None:
        request.prompt_token_ids.ids.extend(prompt)
    bias = sampling.pop("logit_bias", {})
    if sampling or bias:
        request.sampling.MergeFrom(type(request.sampling)(**sampling))
        request.sampling.logit_bias.update(bias)
    return request


class Answer:
    """What one choice came to."""

    def __init__(self):
        self.pieces, self.ids, self.logprobs, self.prompt_logprobs = [], [], [], []
        self.reasoning, self.finish_reason, self.stop = "", 0, None

    @property
    def text(self):
        return "".join(self.pieces)


class Result:
    def __init__(self):
        self.choices, self.usage, self.updates, self.first = {}, None, 0, None

    def __getitem__(self, index):
        return self.choices[index]


def collect(stream):
    """A stream of GenerationUpdate, put together."""
    result = Result()
    for update in stream:
        result.first = result.first or update
        result.updates += 1
        if update.HasField("choice"):
            choice = update.choice
            answer = result.choices.setdefault(choice.index, Answer())
            assert answer.finish_reason == 0, "an update behind the last one"
            answer.pieces.append(choice.text)
            answer.reasoning += choice.reasoning
            answer.ids += choice.token_ids
            answer.logprobs += choice.logprobs
            answer.prompt_logprobs += choice.prompt_logprobs
            answer.finish_reason = choice.finish_reason
            if choice.WhichOneof("stop_reason"):
                answer.stop = getattr(choice, choice.WhichOneof("stop_reason"))
        if update.HasField("usage"):
            assert result.usage is None
            result.usage = update.usage
    return result


class Refusal:
    """What a call that failed told its client."""

    def __init__(self, error):
        self.code, self.message = error.code(), error.details()
        trailers = dict(error.trailing_metadata() or ())
        self.pushback_ms = trailers.get("grpc-retry-pushback-ms")
        self.detail = None
        # At its own deadline a client says so whatever the server has answered by then.
        by_client = self.code == grpc.StatusCode.DEADLINE_EXCEEDED
        if "grpc-status-details-bin" in trailers and not by_client:
            status = status_pb2.Status.FromString(trailers["grpc-status-details-bin"])
            assert status.code == self.code.value[0] and status.message == self.message
            self.detail = stubs()[0].ErrorDetail()
            assert status.details[0].Unpack(self.detail)

    def __repr__(self):
        return f"{self.code} {self.message} {self.detail}"


def refusal(call):
    """The error that `call` ends with."""
    try:
        answer = call()
        if hasattr(answer, "__iter__"):
            list(answer)
    except grpc.RpcError as error:
        return Refusal(error)
    raise AssertionError("the call succeeded")
