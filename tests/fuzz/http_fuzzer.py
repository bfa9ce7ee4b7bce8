#!/usr/bin/env python3
"""Structure-aware fuzzer of the whole server: valid requests of every route, bent in one or several ways (fields, types,
bounds, nesting, text, headers, chunking, pipelining, early ends), over kept and new connections of several threads.

Checked of every answer: HTTP that reads strictly, in time; no status above 499 but 501 and 503; the error object, without
addresses and paths; streams that end with [DONE]. Checked of the server: alive, memory flat from the tenth part on, the
series of /metrics from closed sets, nothing running and no block in use at the end.

Request i of a seed is the same on every run: a finding is repeated by --seed S --only I.

usage: http_fuzzer.py [--requests N] [--seed S] [--threads T] [--only I]     (needs a built omnibus-replay)"""

import argparse
import json
import os
import random
import re
import socket
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from harness.process import sanitized  # noqa: E402
from harness.routes import LLAMA_CPP_ERRORS, ROUTES, served  # noqa: E402
from harness.script import script, says  # noqa: E402
from harness.server import Server, replay_command  # noqa: E402
from harness.wait import wait_until  # noqa: E402

DEADLINE = 20  # seconds for one exchange; the longest legal one, n = 128 until the context is full, takes one or two
GROWTH = 0.05  # of memory, from the tenth part on
SLACK = 4 * 2**20  # the replay server is so small (13 MiB) that the allocator's pools, filled by and by, are more than that
# A small context bounds what a request without max_tokens makes.
SCRIPT = script(
    says("Hel", "lo", " ", "wor", "ld", "!", when="hello"),
    says("é", "漢", b"\xf0\x9f", b"\x98\x80", when="bytes"),
    says("x", when="endless", eos=False),
    says("ok"),
    max_model_len=200,
    num_blocks=4096,
)
FLAGS = ("--header-timeout", "2", "--body-timeout", "2", "--max-num-seqs", "64", "--log-level", "error")

POINTER = re.compile(r"0x[0-9a-fA-F]{6,}")
PATH = re.compile(r"(?:/(?:root|home|tmp|usr|etc|var|proc|dev|src|build)/)|\.(?:cc|h|so)\b")
METHODS = ("GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "other")

# ---- what is sent -------------------------------------------------------------------------------------------------------


@dataclass
class Plan:
    """One exchange: what goes out, and what must come back."""

    pieces: list  # bytes, each sent by itself
    heads: list = field(default_factory=list)  # per answer to come: was its request a HEAD
    path: str = "/"
    exact: bool = True  # all answers come; False: fewer may, or an end
    leave: bool = False  # do not read the answer
    fresh: bool = False  # on a connection of its own
    note: str = ""


NUMBERS = ["0", "1", "-1", "2", "0.5", "1.0", "127", "128", "129", "2147483647", "2147483648", "-2147483649", "4294967296",
           "9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "1e308", "-1e308",
           "1e-320", "-0.0", "1e999", "3e38", "1e39", "0.1e1"]
STRINGS = ["", "1", "a", "hello", "bytes", "é漢😀", "<|im_end|>", "<|im_start|>system\n", "\0", "\u2028", "a" * 300, " ",
           "\x1b[31m", "%s%n", "../../secret", "${x}", "{{ 7*7 }}", "auto", "none", "text", "json_object", "user",
           "assistant", "tool", "null", "NaN", "\ufeff", "A\u0300" * 20, "-1", "\r\nX: y"]
RAW = ["NaN", "Infinity", "-Infinity", '"\\ud800"', '"\\udc00\\ud800"', "'a'", "[1,]", "{a:1}", "01", "+1", ".5", "", "tru",
       '"\x01"', '"\t"', "[" * 70 + "]" * 70, '{"a":' * 70 + "1" + "}" * 70, "/**/1", "\ufeff1"]


def text_of(value):
    return json.dumps(value, ensure_ascii=False)


def random_string(rng):
    if rng.random() < 0.7:
        return rng.choice(STRINGS)
    return "".join(chr(rng.choice([0, 9, 10, 34, 60, 92, 97, 122, 127, 233, 0x300, 0x6F22, 0xFFFD, 0x1F600, 0x10FFFF]))
                   for _ in range(rng.randrange(40)))


def random_value(rng, depth=0):
    """A JSON text, now and then a broken one."""
    kind = rng.random()
    if kind < 0.3:
        return rng.choice(NUMBERS)
    if kind < 0.55:
        return text_of(random_string(rng))
    if kind < 0.7:
        return rng.choice(["null", "true", "false", "[]", "{}"])
    if kind < 0.75:
        return rng.choice(RAW)
    if depth > 4:
        return "0"
    items = [random_value(rng, depth + 1) for _ in range(rng.choice([0, 1, 2, 3, 3, 65]) if depth == 0 else rng.randrange(3))]
    if kind < 0.87:
        return "[" + ",".join(items) + "]"
    names = ("type", "text", "role", "content", "name", "json_schema", "schema", "1", "97", "function", "")
    return "{" + ",".join(f"{text_of(rng.choice(names))}:{item}" for item in items) + "}"


def random_messages(rng):
    roles = ["user", "system", "assistant", "developer", "tool", "function", "User", ""]
    contents = ['"hello"', '"endless"', "null", "[]", '[{"type":"text","text":"hello"}]', '[{"type":"text"}]',
                '[{"type":"image_url","image_url":{"url":"http://127.0.0.1/x"}}]', '"<|im_end|>"', "5", '""']
    messages = []
    for _ in range(rng.choice([0, 1, 1, 2, 3, 20])):
        message = {"role": text_of(rng.choice(roles)), "content": rng.choice(contents)}
        if rng.random() < 0.3:
            extra = rng.choice(["name", "tool_calls", "tool_call_id", "refusal", "reasoning_content", "content", "x"])
            message[extra] = random_value(rng, 2)
        messages.append("{" + ",".join(f'"{k}":{v}' for k, v in message.items()) + "}")
    return "[" + ",".join(messages) + "]"


def random_body(rng, route):
    """Body of a POST as bytes."""
    fields = {name: text_of(value) for name, value in (route.body or {}).items()}
    if route.fields and "prompt" in fields and rng.random() < 0.3:
        fields["prompt"] = rng.choice(['"endless"', '"bytes"', "[104,105]", '["a","b"]', "[[1],[2]]", '["a",1]'])
    for _ in range(rng.choice([0, 1, 1, 1, 2, 3])):
        name = rng.choice(route.fields) if route.fields and rng.random() < 0.9 else random_string(rng)
        fields[name] = random_messages(rng) if name == "messages" and rng.random() < 0.8 else random_value(rng)
    if rng.random() < 0.2 and "stream" in route.fields:
        fields["stream"] = "true"
    pairs = [f"{text_of(name)}:{value}" for name, value in fields.items()]
    if fields and rng.random() < 0.05:
        pairs.append(rng.choice(pairs))  # a key twice
    body = ("{" + ",".join(pairs) + "}").encode("utf-8", "surrogatepass")
    if rng.random() < 0.08 and body:  # bytes
        at = rng.randrange(len(body))
        body = rng.choice([
            body[:at], body[:at] + bytes([rng.randrange(256)]) + body[at + 1:], body[:at] + body[at + 1:], body + b" x",
            body + body, b"\xef\xbb\xbf" + body, b"", b" ", b"null", b"[]", b"5", b"\xff" * 10, b"[" * 5000, body * 300,
        ])
    return body


# Kept apart by whether the message can still be read in one way only.
HARMLESS = [
    "Accept: text/event-stream", "Accept: */*;q=0", "User-Agent: " + "x" * 500, "X-Request-Id: abc", "X-Request-Id: \xff",
    "X-Request-Id: " + "r" * 200, "Authorization: Bearer x", "Authorization: \x7f", "X-Api-Key: ", "Cookie: a=b",
    "Content-Type: text/plain", "Content-Type: application/json", "Content-Type: multipart/form-data; boundary=" + "-" * 70,
    "Content-Type: \xe9", "Content-Encoding: identity", "Content-Encoding: gzip", "Expect: 100-continue", "Expect: x",
    "Origin: http://evil.example", "Origin: null", "Sec-Fetch-Site: cross-site", "Upgrade: h2c", "X-Forwarded-For: ::1",
    "TE: trailers", "Range: bytes=0-1", "If-None-Match: *", "anthropic-version: 2023-06-01", "X-Long: " + "y" * 20000,
    "X-Http-Method-Override: DELETE", "Max-Forwards: 0", "Via: 1.1 x", "X-Empty:",
]
FRAMING = [
    "Transfer-Encoding: chunked", "Transfer-Encoding: gzip, chunked", "Transfer-Encoding: identity", "Content-Length: 0",
    "Content-Length: 5", "Content-Length: -1", "Content-Length: 99999999999999999999", "Content-Length: 1, 1",
    "Content-Length : 4", "Host: a", "Host: evil.example", " folded", "no colon", ": empty", "X: a\0b", "X: a\rb",
    "Connection: close", "X-Long: " + "z" * 40000,
]


def random_target(rng, path):
    if rng.random() < 0.8:
        return path
    return rng.choice([
        path + "?" + "q=1&" * rng.randrange(200), path + "/", "/" + path, path.upper(), path + ";x=y", path + "%00",
        "/%2e%2e" + path, "/." + path, "/x/.." + path, path + "#f", "http://localhost" + path, "http://evil.example" + path,
        "https://[::1]:1" + path, "*", path[1:], path.replace("/", "%2f"), "".join(f"%{ord(c):02x}" for c in path),
        "/" + "a" * rng.choice([100, 9000]), "/v1/models/" + "".join(rng.choice("ab/.%~") for _ in range(20)),
        "/\xe9", "/a b", "", "/v1/models/%2e%2e%2f%2e%2e%2fsecret", "/v1/" + str(rng.random()),
    ])


def chunked(rng, body):
    out, at = b"", 0
    while at < len(body):
        size = rng.choice([1, 2, 7, 100, 5000])
        piece = body[at:at + size]
        extension = rng.choice(["", "", "", ";a=b", ";x"])
        out += b"%x%s\r\n%s\r\n" % (len(piece), extension.encode(), piece)
        at += size
    return out + b"0\r\n" + rng.choice([b"", b"", b"X-Trailer: 1\r\n"]) + b"\r\n"


def random_message(rng, routes):
    """(bytes, is it HEAD, path, is it surely one well-framed message)."""
    route = rng.choice(routes) if rng.random() < 0.3 else rng.choice([r for r in routes if r.fields])
    method, sure = route.method, True
    if rng.random() < 0.06:
        method = rng.choice(["GET", "POST", "HEAD", "OPTIONS", "PUT", "DELETE", "PATCH", "TRACE", "FOO", "get",
                             "".join(rng.choice("ABCDEFG") for _ in range(9))])
    target = random_target(rng, route.path) if rng.random() < 0.15 else route.path
    lines = [f"{method} {target} HTTP/1.1", "Host: localhost"]
    for _ in range(rng.choice([0, 0, 0, 1, 2])):
        lines.append(rng.choice(HARMLESS))
    if rng.random() < 0.03:
        lines += [f"X-{i}: y" for i in range(rng.choice([90, 200]))]
    body = random_body(rng, route) if route.body is not None else b""
    if body and rng.random() < 0.15:
        lines.append("Transfer-Encoding: chunked")
        payload = chunked(rng, body)
    else:
        if body or method == "POST":
            lines.append(f"Content-Length: {len(body)}")
        payload = body
    if rng.random() < 0.05:
        lines.insert(rng.randrange(1, len(lines) + 1), rng.choice(FRAMING))
        sure = False
    version = lines[0]
    if rng.random() < 0.01:
        lines[0] = version.replace("HTTP/1.1", rng.choice(["HTTP/1.0", "HTTP/2.0", "HTTP/0.9", "HTTP/1.1 x", "http/1.1"]))
        sure = False
    end = "\r\n" if rng.random() < 0.995 else "\n"
    data = end.join([*lines, "", ""]).encode("latin-1", "replace") + payload
    return data, method == "HEAD", route.pattern, sure and end == "\r\n"


def make_plan(seed, index, routes):
    rng = random.Random(f"{seed}/{index}")
    kind = rng.random()
    if kind < 0.03:  # several at once
        # No HEAD: after a bent message nobody knows which answer would be without its body.
        messages = [m for m in (random_message(rng, routes) for _ in range(rng.randrange(2, 7))) if not m[1]]
        messages = messages or [(b"", False, "/", False)]
        return Plan([b"".join(m[0] for m in messages)], [m[1] for m in messages], messages[0][2],
                    exact=False, fresh=True, note="pipelined")
    data, head, path, sure = random_message(rng, routes)
    if kind < 0.06:  # a part of it, then an end
        return Plan([data[:rng.randrange(len(data) + 1)]], [head], path, exact=False, leave=rng.random() < 0.9, fresh=True,
                    note="cut short")
    if kind < 0.09:  # all of it, and nobody reads the answer
        return Plan([data], [head], path, exact=False, leave=True, fresh=True, note="not read")
    if kind < 0.12:  # broken bytes
        noise = bytearray(data)
        for _ in range(rng.randrange(1, 8)):
            noise[rng.randrange(len(noise))] = rng.randrange(256)
        return Plan([bytes(noise) + b"\r\n\r\n"], [head], path, exact=False, leave=rng.random() < 0.5, fresh=True, note="noise")
    if kind < 0.2:  # in pieces
        cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(1, 6)))
        pieces = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)])]
        return Plan(pieces, [head], path, exact=sure, fresh=not sure, note="in pieces")
    return Plan([data], [head], path, exact=sure, fresh=not sure, note="plain" if sure else "bent")


# ---- what comes back ------------------------------------------------------------------------------------------------------


class Finding(AssertionError):
    pass


class Ended(Exception):
    """The server closed the connection."""


class Connection:
    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=DEADLINE)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.data = b""

    def close(self):
        self.socket.close()

    def send(self, data):
        try:
            self.socket.sendall(data)
        except ConnectionError:
            pass  # refused already: the answer may be there

    def more(self):
        try:
            data = self.socket.recv(65536)
        except socket.timeout:
            raise Finding(f"no answer within {DEADLINE} s") from None
        except ConnectionError:
            raise Ended from None
        if not data:
            raise Ended
        self.data += data

    def until(self, mark):
        while mark not in self.data:
            self.more()
        out, self.data = self.data.split(mark, 1)
        return out

    def exactly(self, count):
        while len(self.data) < count:
            self.more()
        out, self.data = self.data[:count], self.data[count:]
        return out

    def answer(self, head_only):
        """(status, headers, body) of the next final answer."""
        while True:
            head = self.until(b"\r\n\r\n").decode("latin-1").split("\r\n")
            found = re.fullmatch(r"HTTP/1\.1 (\d{3}) [A-Za-z -]+", head[0])
            if not found:
                raise Finding(f"status line {head[0]!r}")
            if found[1] != "100":
                break
        status, headers = int(found[1]), {}
        for line in head[1:]:
            name, colon, value = line.partition(": ")
            if not colon or not re.fullmatch(r"[A-Za-z0-9-]+", name) or name.lower() in headers:
                raise Finding(f"header line {line!r}")
            headers[name.lower()] = value
        if head_only or status == 204:
            return status, headers, b""
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while size := int(self.until(b"\r\n"), 16):
                body += self.exactly(size)
                if self.exactly(2) != b"\r\n":
                    raise Finding("a chunk without its end")
            self.exactly(2)
            return status, headers, body
        if "content-length" not in headers:  # HTTP/1.0
            try:
                while True:
                    self.more()
            except Ended:
                body, self.data = self.data, b""
                return status, headers, body
        return status, headers, self.exactly(int(headers["content-length"]))


def check_error(status, body, path):
    try:
        error = json.loads(body)["error"]
    except (ValueError, KeyError, TypeError):
        raise Finding(f"{status} without an error object: {body[:300]!r}") from None
    # `path` None: one of several requests sent together, any of the forms.
    if isinstance(error, str) and (path is None or path.startswith("/api/")):  # Ollama's form
        message = error
    else:
        native = isinstance(error, dict) and (path is None or path in LLAMA_CPP_ERRORS)
        if not native and (not isinstance(error, dict) or set(error) != {"message", "type", "param", "code"}):
            raise Finding(f"{status} with a bent error object: {body[:300]!r}")
        message = error["message"]
        if not isinstance(error["type"], str) or not isinstance(error.get("param"), (str, type(None))):
            raise Finding(f"{status} with a bent error object: {body[:300]!r}")
    # Values of the client's own are quoted: nothing that is sent looks like what is looked for.
    if not message or len(body) > 4096 or POINTER.search(message) or PATH.search(message):
        raise Finding(f"{status} says too much: {body[:500]!r}")


def check_answer(status, headers, body, path, head_only, whole):
    """`whole`: it was waited for, so that it must be there to its end."""
    if status >= 500 and status not in (501, 503, 505):
        raise Finding(f"{status}: {body[:500]!r}")
    if status in (422,) or "x-request-id" not in headers:
        raise Finding(f"{status} with headers {headers}")
    if status >= 400 and not head_only:
        check_error(status, body, path)
    kind = headers.get("content-type", "")
    if status == 200 and whole and not head_only:
        if kind.startswith("text/event-stream"):
            events = [event.removeprefix("data: ") for event in body.decode("utf-8").split("\n\n")]
            native = path in LLAMA_CPP_ERRORS  # these streams end with an event that says so
            if events.pop() or not (json.loads(events[-1]).get("stop") if native else events.pop() == "[DONE]"):
                raise Finding(f"a stream ends with {body[-200:]!r}")
            for event in events:
                json.loads(event)
        elif kind.startswith("application/x-ndjson"):
            if not json.loads(body.splitlines()[-1]).get("done"):
                raise Finding(f"a stream ends with {body[-200:]!r}")
        elif kind.startswith("application/json"):
            json.loads(body)


class Fuzzer:
    def __init__(self, server, routes, seed):
        self.server, self.routes, self.seed = server, routes, seed
        self.statuses, self.notes = Counter(), Counter()
        self.findings = []
        self.lock = threading.Lock()

    def exchange(self, connection, plan):
        """True when the connection can go on."""
        for piece in plan.pieces:
            if piece:
                connection.send(piece)
        if plan.leave:
            return False
        if not plan.exact:
            # Half a message would wait for its rest.
            connection.send(b"\r\n\r\n")
            try:
                connection.socket.shutdown(socket.SHUT_WR)
            except OSError:
                pass
        close = False
        for i, head_only in enumerate(plan.heads):
            try:
                status, headers, body = connection.answer(head_only)
            except (Ended, ValueError):
                if plan.exact and not close:
                    raise Finding("the connection ended without an answer") from None
                return False
            check_answer(status, headers, body, plan.path if len(plan.heads) == 1 else None, head_only, plan.exact)
            with self.lock:
                self.statuses[status] += 1
            close = headers.get("connection") == "close"
            if close:
                return False
        if connection.data and plan.exact:
            raise Finding(f"{len(connection.data)} bytes too many: {connection.data[:200]!r}")
        return plan.exact

    def run(self, indices):
        connection = None
        for index in indices:
            if self.findings:
                break
            plan = make_plan(self.seed, index, self.routes)
            try:
                if connection is None or plan.fresh:
                    if connection is not None:
                        connection.close()
                    connection = Connection(self.server.port)
                if not self.exchange(connection, plan):
                    connection.close()
                    connection = None
            except Exception as error:  # noqa: BLE001: whatever it is, it is reported with what was sent
                with self.lock:
                    self.findings.append(f"seed {self.seed}, request {index} ({plan.note}): {type(error).__name__}: {error}\n"
                                         f"sent: {b'|'.join(plan.pieces)[:2000]!r}")
                break
            with self.lock:
                self.notes[plan.note] += 1
        if connection is not None:
            connection.close()

    def run_threads(self, indices, threads):
        workers = [threading.Thread(target=self.run, args=(indices[i::threads],)) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        if self.findings:
            raise Finding("\n".join(self.findings) + f"\nlog:\n{self.server.log()}")
        if self.server.process.poll() is not None:
            raise Finding(f"the server ended with {self.server.process.returncode}\nlog:\n{self.server.log()}")


def rss(server):
    with open(f"/proc/{server.process.pid}/statm") as f:
        return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def series(server):
    """Names with labels, of all metrics but those of HTTP requests; and the labels of these."""
    import requests

    lines = [line.rsplit(" ", 1)[0] for line in requests.get(server.url + "/metrics", timeout=10).text.splitlines()
             if line and not line.startswith("#")]
    of_http = [line for line in lines if line.startswith("http_")]
    return sorted(set(lines) - set(of_http)), [dict(re.findall(r'(\w+)="([^"]*)"', line)) for line in of_http]


def fuzz(server, requests_count, seed, threads=4, say=print):
    """Runs it; raises Finding."""
    routes = served(server)
    fuzzer = Fuzzer(server, routes, seed)
    started = time.monotonic()
    tenth = max(1, requests_count // 10)
    fuzzer.run_threads(range(tenth), threads)
    wait_until(server.idle, 30, "nothing running, no block in use")
    before, known = rss(server), series(server)[0]
    fuzzer.run_threads(range(tenth, requests_count), threads)
    wait_until(server.idle, 30, "nothing running, no block in use")
    after, (names, counts) = rss(server), series(server)
    say(f"seed {seed}: {requests_count} requests in {time.monotonic() - started:.0f} s on {len(routes)} routes; statuses "
        f"{dict(sorted(fuzzer.statuses.items()))}; kinds {dict(fuzzer.notes)}; memory {before / 2**20:.1f} -> "
        f"{after / 2**20:.1f} MiB; {len(names)} + {len(counts)} series")
    if names != known:
        raise Finding(f"new series in /metrics: {sorted(set(names) ^ set(known))[:10]}")
    handlers = {route.pattern for route in ROUTES} | {"none"}
    for labels in counts:
        if (labels.get("handler", "none") not in handlers or labels.get("method", "GET") not in METHODS
                or not labels.get("status", "0").isdigit()):
            raise Finding(f"labels from outside: {labels}")
    if after > before + max(before * GROWTH, SLACK) and not sanitized():
        raise Finding(f"memory grew from {before} to {after} bytes")
    server.assert_serves()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--requests", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=random.randrange(2**32))
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--only", type=int, help="send this request alone and show it")
    args = parser.parse_args()
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "script.jsonl"
        path.write_text(SCRIPT, encoding="utf-8")
        server = Server(replay_command(path, *FLAGS))
        try:
            if args.only is None:
                fuzz(server, args.requests, args.seed, args.threads)
            else:
                print(make_plan(args.seed, args.only, served(server)))
                Fuzzer(server, served(server), args.seed).run_threads(range(args.only, args.only + 1), 1)
        except Finding as finding:
            print(finding)
            return 1
        finally:
            code = server.stop()
            server.close()
    if code != 0:
        print(f"exit code {code}")
    return 0 if code == 0 else 1


if __name__ == "__main__":
    sys.exit(main())
