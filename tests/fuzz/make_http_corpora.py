#!/usr/bin/env python3
"""Writes the seed corpora of fuzz_http_request, fuzz_json, fuzz_sse and fuzz_openai_body: a small input for each idea.
Standard library only; the same bytes on every run. Files that begin with crash_ were found by fuzzing and are kept.

usage: make_http_corpora.py [OUTPUT_FOLDER]"""
import json
import sys
from pathlib import Path

BODY = b'{"prompt":"hi"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"5\r\n%s\r\na;x=y\r\n%s\r\n0\r\n\r\n" % (BODY[:5], BODY[5:])


def get(headers=b"Host: h\r\n", target=b"/v1/models", version=b"HTTP/1.1", method=b"GET"):
    return b"%s %s %s\r\n%s\r\n" % (method, target, version, headers)


def post(headers, body=b""):
    return get(b"Host: h\r\n" + headers, b"/v1/completions", method=b"POST") + body


def http_request():
    """First byte: where the bytes are cut in two."""
    yield "get", 128, get()
    yield "get_1_0", 40, get(b"", version=b"HTTP/1.0")
    yield "absolute", 90, get(target=b"http://a.example:80/%76%31?x=1")
    yield "options_star", 10, get(target=b"*", method=b"OPTIONS")
    yield "length", 200, post(LENGTH, BODY)
    yield "length_zero", 200, post(b"Content-Length: 0\r\n")
    yield "chunked", 220, post(CHUNKED, CHUNKS)
    yield "chunked_trailers", 230, post(CHUNKED, CHUNKS[:-2] + b"X-T: 1\r\n\r\n")
    yield "chunked_empty", 230, post(CHUNKED, b"0\r\n\r\n")
    yield "pipelined", 100, post(LENGTH, BODY) + b"\r\n" + post(CHUNKED, CHUNKS) + get(b"Host: h\r\nConnection: close\r\n")
    yield "expect", 150, post(LENGTH + b"Expect: 100-continue\r\n", BODY)
    framings = {
        "cl_te": LENGTH + CHUNKED, "te_cl": CHUNKED + LENGTH, "cl_cl": LENGTH + b"Content-Length: 5\r\n",
        "cl_same": LENGTH + LENGTH, "cl_list": b"Content-Length: 15, 15\r\n", "cl_plus": b"Content-Length: +15\r\n",
        "cl_minus": b"Content-Length: -1\r\n", "cl_hex": b"Content-Length: 0xf\r\n", "cl_empty": b"Content-Length: \r\n",
        "cl_huge": b"Content-Length: 99999999999999999999\r\n", "cl_spaces": b"Content-Length:   15  \r\n",
        "te_te": CHUNKED + CHUNKED, "te_gzip": b"Transfer-Encoding: gzip, chunked\r\n",
        "te_identity": b"Transfer-Encoding: identity\r\n", "te_case": b"transfer-ENCODING: Chunked\r\n",
        "te_space": b"Transfer-Encoding : chunked\r\n", "te_tab": b"Transfer-Encoding:\tchunked\t\r\n",
        "te_comma": b"Transfer-Encoding: chunked,\r\n", "folded": b"X: a\r\n b\r\n" + LENGTH,
    }
    for name, headers in framings.items():
        yield f"framing_{name}", 160, post(headers, CHUNKS if b"hunked" in headers else BODY)
    for name, chunks in {
        "size_not_hex": b"xyz\r\n", "size_minus": b"-1\r\n", "size_huge": b"ffffffffffffffffff\r\n",
        "size_zeros": b"00000005\r\n" + BODY[:5] + b"\r\n0\r\n\r\n", "no_crlf": b"f\r\n" + BODY + b"0\r\n\r\n",
        "bare_lf": b"f\n" + BODY + b"\n0\n\n", "space": b"f \r\n" + BODY + b"\r\n0\r\n\r\n",
        "long_extension": b"f;" + b"a" * 300 + b"\r\n" + BODY + b"\r\n0\r\n\r\n", "over_limit": b"2000\r\n" + b"x" * 8192,
        "ones": b"".join(b"1\r\n%c\r\n" % c for c in BODY) + b"0\r\n\r\n",
    }.items():
        yield f"chunk_{name}", 210, post(CHUNKED, chunks)
    yield "bare_lf", 20, b"GET / HTTP/1.1\nHost: h\n\n"
    yield "bare_cr", 20, b"GET / HTTP/1.1\r\nHost: h\rX: y\r\n\r\n"
    yield "nul", 60, get(b"Host: h\r\nX: a\0b\r\n")
    yield "no_host", 20, get(b"")
    yield "two_hosts", 20, get(b"Host: a\r\nHost: b\r\n")
    yield "bad_host", 20, get(b"Host: h/?\r\n")
    yield "http_2", 5, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
    yield "tls", 5, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n"
    yield "high_bytes", 50, get(b"Host: h\r\nX: \xff\xfe\r\n")


JSON = {
    "object": b'{"a":[1,-2.5e3,true,null,"x\\u00e9\\n"]}', "deep_64": b"[" * 64 + b"]" * 64, "deep_65": b"[" * 65 + b"]" * 65,
    "deep_many": b"[" * 100000, "deep_objects": b'{"a":' * 2000, "big_exponent": b"[1e999]", "small_exponent": b"[1e-999]",
    "minus_zero": b"[-0,-0.0,0e5]", "int64": b"[9223372036854775807,9223372036854775808,18446744073709551616]",
    "int64_min": b"[-9223372036854775808,-9223372036854775809]", "lone_surrogate": b'["\\ud800"]',
    "low_surrogate": b'["\\udc00\\ud800"]', "pair": b'["\\ud83d\\ude00"]', "duplicates": b'{"a":1,"b":2,"a":[3]}',
    "nul_byte": b'["a\0b"]', "nul_escape": b'["a\\u0000b"]', "bom": b'\xef\xbb\xbf{}', "utf8": '["漢字😀"]'.encode(),
    "overlong": b'["\xc0\xaf"]', "surrogate_bytes": b'["\xed\xa0\x80"]', "cut_utf8": b'["\xe6\xbc"]', "nan": b"[NaN]",
    "infinity": b"[-Infinity]", "comma": b"[1,]", "single": b"{'a':1}", "comment": b"[1/*x*/]", "two": b"{} {}",
    "empty": b"", "blank": b" \n\t\r", "scalar": b" 5 ", "long_number": b"[0." + b"123456789" * 40 + b"]",
    "empty_key": b'{"":{"":{}}}', "control": b'["a\x01b"]', "leading_zero": b"[01]", "plus": b"[+1]",
}


def sse():
    """First two bytes: number of events, and of writes per read."""
    for i, text in enumerate(
        ["Hello", "a\nb\r\nc\rd", "data: x\n\n", "漢字😀 é", "\0\x01\x1f\x7f", '"\\/<script>', "\u2028\u2029", "[DONE]"]
    ):
        yield f"text_{i}", bytes([i, i]) + text.encode() * 3
    yield "bad_utf8", b"\x06\x02" + b"ok \xff\xc3\x28\xed\xa0\x80\xf4\x90\x80\x80 \xe6\xbc"
    yield "empty", b"\x03\x01"
    yield "doubles", b"\x06\x00" + bytes(range(64)) + b"\0\0\0\0\0\0\xf0\x7f" * 4 + b"\0\0\0\0\0\0\xf8\x7f" * 4


MESSAGES = [{"role": "user", "content": "hello"}]
CHAT = {
    "plain": {"messages": MESSAGES}, "roles": {"messages": [
        {"role": "developer", "content": "d"}, {"role": "user", "name": "n", "content": [{"type": "text", "text": "t"}]},
        {"role": "assistant", "content": None, "refusal": "r"}, {"role": "tool", "tool_call_id": "x", "content": "{}"}]},
    "sampling": {"messages": MESSAGES, "temperature": 2, "top_p": 0, "top_k": -1, "min_p": 1, "seed": -1, "n": 128,
                 "frequency_penalty": -2.0, "presence_penalty": 2, "repetition_penalty": 1.1, "logit_bias": {"5": -100}},
    "stopping": {"messages": MESSAGES, "stop": ["a"] * 64, "stop_token_ids": [1], "max_tokens": -1, "min_tokens": 0,
                 "max_completion_tokens": 5.0, "ignore_eos": True},
    "output": {"messages": MESSAGES, "stream": True, "stream_options": {"include_usage": True, "x": 1}, "logprobs": True,
               "top_logprobs": 20, "return_token_ids": True},
    "wrong": {"messages": "x", "temperature": "1", "n": 1.5, "stop": [""], "logit_bias": {"x": 1}},
    "image": {"messages": [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]},
    "kwargs": {"messages": MESSAGES, "chat_template_kwargs": {"enable_thinking": False}, "reasoning_effort": "none",
               "cache_salt": "a", "user": "u", "unknown_field": {"a": [1]}},
    "tools": {"messages": MESSAGES, "tools": [], "tool_choice": "none", "response_format": {"type": "json_object"}},
}
COMPLETION = {
    "text": {"prompt": "hello", "max_tokens": 0, "echo": True, "logprobs": 20}, "texts": {"prompt": ["a", "b"], "best_of": 1},
    "ids": {"prompt": [1, 2, 3]}, "lists": {"prompt": [[1], [2]]}, "mixed": {"prompt": ["a", 1]}, "empty": {"prompt": ""},
}


def openai_body():
    """First byte: bit 0 for chat, bit 1 for strict fields."""
    for route, bodies in ((1, CHAT), (0, COMPLETION)):
        for name, body in bodies.items():
            text = json.dumps(body).encode()
            yield f"{'chat' if route else 'completion'}_{name}", bytes([route]) + text
            yield f"strict_{'chat' if route else 'completion'}_{name}", bytes([route | 2]) + text
    yield "not_object", b"\x01[]"
    yield "huge_number", b'\x01{"messages":[{"role":"user","content":"x"}],"n":1e308,"seed":9223372036854775808}'


def main():
    root = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "corpus"
    corpora = {
        "http_request": {name: bytes([cut]) + data for name, cut, data in http_request()},
        "json": JSON, "sse": dict(sse()), "openai_body": dict(openai_body()),
    }
    for target, inputs in corpora.items():
        folder = root / target
        folder.mkdir(parents=True, exist_ok=True)
        for old in folder.iterdir():
            if not old.name.startswith("crash_"):
                old.unlink()
        for name, data in inputs.items():
            (folder / name).write_bytes(data)
        print(f"{folder}: {len(inputs)} files, {sum(map(len, inputs.values()))} bytes")


if __name__ == "__main__":
    main()
