"""S5: input that looks valid and has ended other engines. Every request error is a value: the process stays, the answer
is 200 or a 4xx, and the next request is served."""

import os
import random

import pytest

from fuzz.http_fuzzer import FLAGS, SCRIPT, fuzz
from harness.script import HELLO

CHAT, COMPLETIONS = "/v1/chat/completions", "/v1/completions"
USER = [{"role": "user", "content": "hello"}]


def tool(parameters):
    return {"messages": USER, "tools": [{"type": "function", "function": {"name": "f", "parameters": parameters}}]}


def schema(value):
    return {"messages": USER, "response_format": {"type": "json_schema", "json_schema": {"name": "s", "schema": value}}}


ODD = {
    "tool type": (CHAT, tool({"type": "something"})),
    "tool pattern": (CHAT, tool({"type": "object", "properties": {"a": {"type": "string", "pattern": "{"}}})),
    "tool without parameters": (CHAT, {"messages": USER, "tools": [{"type": "function", "function": {"name": "f"}}]}),
    "tool choice of nothing": (CHAT, {"messages": USER, "tool_choice": {"type": "function", "function": {"name": "g"}}}),
    "empty schema": (CHAT, schema({})),
    "null schema": (CHAT, schema(None)),
    "schema that refers to itself": (CHAT, schema({"$ref": "#"})),
    "schema loop": (CHAT, schema({"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"})),
    "bad regex": (COMPLETIONS, {"prompt": "hello", "guided_regex": "("}),
    "bad grammar": (COMPLETIONS, {"prompt": "hello", "grammar": "root ::= root"}),
    "empty prompt": (COMPLETIONS, {"prompt": ""}),
    "no prompt": (COMPLETIONS, {"prompt": []}),
    "prompts with an empty one": (COMPLETIONS, {"prompt": ["a", ""]}),
    "empty ids": (COMPLETIONS, {"prompt": [[]]}),
    "only special tokens": (COMPLETIONS, {"prompt": [256, 257, 258]}),
    "only special tokens as text": (COMPLETIONS, {"prompt": "<|im_start|><|im_end|><|endoftext|>"}),
    "ids beyond": (COMPLETIONS, {"prompt": [2**31 - 1]}),
    "empty content": (CHAT, {"messages": [{"role": "user", "content": ""}]}),
    "only an assistant": (CHAT, {"messages": [{"role": "assistant", "content": "x"}]}),
    "a tool's answer alone": (CHAT, {"messages": [{"role": "tool", "tool_call_id": "x", "content": "y"}]}),
    "image without image": (CHAT, {"messages": [{"role": "user", "content": [{"type": "image_url"}]}]}),
    "image placeholder": (CHAT, {"messages": [{"role": "user", "content": "<image><|image_pad|><|vision_start|>"}]}),
    "penalties at their ends": (COMPLETIONS, {"prompt": "hello", "frequency_penalty": 2, "presence_penalty": -2,
                                              "repetition_penalty": 1e6, "max_tokens": 8}),
    "all bans": (COMPLETIONS, {"prompt": "hello", "logit_bias": {str(i): -100 for i in range(258)}, "max_tokens": 4}),
    "stop ids banned": (COMPLETIONS, {"prompt": "hello", "min_tokens": 4, "max_tokens": 4, "stop_token_ids": list(range(258))}),
    "one token allowed": (COMPLETIONS, {"prompt": "hello", "allowed_token_ids": [97], "max_tokens": 8}),
    "tiny temperature": (COMPLETIONS, {"prompt": "hello", "temperature": 1e-30, "max_tokens": 4}),
    "top_p tiny": (COMPLETIONS, {"prompt": "hello", "top_p": 1e-38, "temperature": 2, "max_tokens": 4}),
    "min_p one": (COMPLETIONS, {"prompt": "hello", "min_p": 1, "temperature": 2, "max_tokens": 4}),
    "odd salt": (COMPLETIONS, {"prompt": "hello", "cache_salt": "~!#$%^&*()_+`-={}|[]:;'<>?,."}),
    "bad salt": (COMPLETIONS, {"prompt": "hello", "cache_salt": "a/../b"}),
    "salt with NUL": (COMPLETIONS, {"prompt": "hello", "cache_salt": "a\0"}),
    "seed at its ends": (COMPLETIONS, {"prompt": "hello", "seed": -(2**63), "n": 128, "max_tokens": 1}),
    "longer than the context": (COMPLETIONS, {"prompt": "a" * 5000}),
    "as long as the context": (COMPLETIONS, {"prompt": "a" * 4096, "max_tokens": 1}),
    "one less than the context": (COMPLETIONS, {"prompt": "a" * 4095, "max_tokens": 5}),
    "echo of nothing": (COMPLETIONS, {"prompt": "hello", "echo": True, "max_tokens": 0, "logprobs": 20}),
    "stop of one byte of a character": (COMPLETIONS, {"prompt": "hello", "stop": ["\ufffd", "é"], "max_tokens": 4}),
}


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ODD)
def test_s05_odd_inputs(hello, name, stream):
    route, body = ODD[name]
    answer = hello.post(route, {**body, "stream": True} if stream else body)
    assert answer.status_code in (200, 400, 404), answer.text
    if answer.status_code != 200:
        assert set(answer.json()["error"]) == {"message", "type", "param", "code"}
    elif stream:
        assert answer.text.endswith("data: [DONE]\n\n")
    hello.assert_serves()


def test_s05_fuzzed_requests(own_replay):
    """The structure-aware fuzzer over every route; OMNIBUS_TEST_FUZZ_REQUESTS for more than make test can afford."""
    count = int(os.environ.get("OMNIBUS_TEST_FUZZ_REQUESTS", "3000"))
    server = own_replay(SCRIPT, *FLAGS)
    fuzz(server, count, random.randrange(2**32))
    assert server.stop() == 0


def test_s05_the_fuzzer_can_fail(own_replay):
    """A server that answers wrongly is noticed: here one that gives everybody 500 with a path in it."""
    import http.server
    import threading

    from fuzz.http_fuzzer import Finding, Fuzzer
    from harness.routes import ROUTES

    class Broken(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        reply = (500, b'{"error":{"message":"m","type":"t","param":null,"code":null}}')

        def answer(self):
            length = int(self.headers.get("content-length") or 0)
            self.rfile.read(length)
            status, body = self.reply
            self.send_response(status)
            self.send_header("x-request-id", "r")
            self.send_header("content-type", "application/json")
            self.send_header("content-length", str(len(body)))
            self.end_headers()
            if self.command != "HEAD":
                self.wfile.write(body)

        do_GET = do_POST = do_HEAD = do_OPTIONS = do_PUT = do_DELETE = answer

        def log_message(self, *args):
            pass

    class Fake:
        process = own_replay(HELLO).process

        def log(self):
            return ""

    right = b'{"error":{"message":"m","type":"t","param":null,"code":null}}'
    for reply in ((500, right), (400, b"oops"), (400, right.replace(b'"m"', b'"at 0x7ffd12345678"')),
                  (404, right.replace(b'"m"', b'"/usr/lib/x.so"')), (422, right), (200, b"{")):
        Broken.reply = reply
        listener = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Broken)
        thread = threading.Thread(target=listener.serve_forever)
        thread.start()
        fake = Fake()
        fake.port = listener.server_address[1]
        try:
            with pytest.raises(Finding):
                Fuzzer(fake, ROUTES, 1).run_threads(range(50), 1)
        finally:
            listener.shutdown()
            listener.server_close()
            thread.join()
