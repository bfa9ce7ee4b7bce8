"""S13: HTTP/1 as attackers write it. Each input ends in 4xx or a closed connection, memory stays flat, and the next
client is served."""

import os
import time

import pytest

from harness.raw import connect, exchange, read_answer, request_bytes
from harness.script import HELLO
from harness.wait import wait_until

FLAGS = ("--header-timeout", "1", "--body-timeout", "1", "--keep-alive-timeout", "2")


@pytest.fixture(scope="module")
def server(pool):
    return pool(HELLO, *FLAGS)


@pytest.fixture(autouse=True)
def memory_stays_flat(server):
    def rss():
        with open(f"/proc/{server.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    before = rss()
    yield
    server.assert_serves()
    assert rss() - before < 64 * 2**20


def post(headers=b"", body=b"", path=b"/v1/completions"):
    return b"POST " + path + b" HTTP/1.1\r\nHost: localhost\r\n" + headers + b"\r\n" + body


BODY = b'{"prompt":"hi"}'
LENGTH = b"Content-Length: %d\r\n" % len(BODY)
CHUNKED = b"Transfer-Encoding: chunked\r\n"
CHUNKS = b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)

MALFORMED = {
    "CL and TE": post(LENGTH + CHUNKED, CHUNKS),
    "TE and CL": post(CHUNKED + LENGTH, CHUNKS),
    "two CL": post(LENGTH + b"Content-Length: 5\r\n", BODY),
    "two equal CL": post(LENGTH + LENGTH, BODY),
    "CL list": post(b"Content-Length: 15, 15\r\n", BODY),
    "CL +15": post(b"Content-Length: +15\r\n", BODY),
    "CL -1": post(b"Content-Length: -1\r\n", BODY),
    "CL hex": post(b"Content-Length: 0xf\r\n", BODY),
    "CL huge": post(b"Content-Length: 99999999999999999999999\r\n", BODY),
    "CL empty": post(b"Content-Length: \r\n", BODY),
    "TE twice": post(CHUNKED + CHUNKED, CHUNKS),
    "TE gzip, chunked": post(b"Transfer-Encoding: gzip, chunked\r\n", CHUNKS),
    "TE chunked, gzip": post(b"Transfer-Encoding: chunked, gzip\r\n", CHUNKS),
    "TE identity": post(b"Transfer-Encoding: identity\r\n", BODY),
    "TE xchunked": post(b"Transfer-Encoding: xchunked\r\n", CHUNKS),
    "TE tab": post(b"Transfer-Encoding:\x0bchunked\r\n", CHUNKS),
    "TE in HTTP/1.0": post(CHUNKED, CHUNKS).replace(b"HTTP/1.1", b"HTTP/1.0"),
    "space before colon": post(b"Content-Length : 15\r\n", BODY),
    "bare LF": b"GET /health HTTP/1.1\nHost: localhost\n\n",
    "bare LF in header": b"GET /health HTTP/1.1\r\nHost: localhost\nX: y\r\n\r\n",
    "bare CR": b"GET /health HTTP/1.1\r\nHost: localhost\rX: y\r\n\r\n",
    "folded": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
    "folded first": b"GET /health HTTP/1.1\r\n Host: localhost\r\n\r\n",
    "NUL in header": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX: a\0b\r\n\r\n",
    "NUL in target": b"GET /hea\0lth HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "two hosts": b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: y\r\n\r\n",
    "no version": b"GET /health\r\n\r\n",
    "HTTP/0.9": b"GET /health HTTP/0.9\r\nHost: localhost\r\n\r\n",
    "HTTP/2.0": b"GET /health HTTP/2.0\r\nHost: localhost\r\n\r\n",
    "HTTP/2 preface": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "TLS hello": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\r\n\r\n",
    "binary": bytes(range(256)) * 4 + b"\r\n\r\n",
    "no colon": b"GET /health HTTP/1.1\r\nHost: localhost\r\nnonsense\r\n\r\n",
    "empty header name": b"GET /health HTTP/1.1\r\nHost: localhost\r\n: y\r\n\r\n",
    "header name with space": b"GET /health HTTP/1.1\r\nHost: localhost\r\nX Y: z\r\n\r\n",
    "chunk size not hex": post(CHUNKED, b"xyz\r\n" + BODY),
    "chunk size negative": post(CHUNKED, b"-1\r\n" + BODY),
    "chunk size huge": post(CHUNKED, b"ffffffffffffffffff\r\n" + BODY),
    "chunk without CRLF": post(CHUNKED, b"f\r\n" + BODY + b"0\r\n\r\n"),
    "chunk bare LF": post(CHUNKED, b"f\n" + BODY + b"\n0\n\n"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_s13_malformed(server, name):
    code, headers, _ = exchange(server, MALFORMED[name])
    assert 400 <= code < 600 and code != 500, f"{code}"
    assert headers.get("connection") == "close"


def test_s13_the_connection_ends_after_a_framing_error(server):
    """What follows a message that can be read in two ways is not read as a request."""
    smuggled = request_bytes(path="/version")
    with connect(server) as connection:
        connection.sendall(post(LENGTH + CHUNKED, b"0\r\n\r\n") + smuggled)
        data = b""
        while more := connection.recv(65536):
            data += more
    assert data.count(b"HTTP/1.1 ") == 1 and b'"version"' not in data


def test_s13_header_limits(server):
    many = b"".join(b"X-%d: y\r\n" % i for i in range(100000))
    assert exchange(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + many + b"\r\n")[0] == 431
    hundred = b"".join(b"X-%d: y\r\n" % i for i in range(99))
    assert exchange(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + hundred + b"\r\n")[0] == 200
    assert exchange(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + hundred + b"Z: y\r\n\r\n")[0] == 431
    large = b"X: " + b"y" * 40000 + b"\r\n"
    assert exchange(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + large + b"\r\n")[0] == 431
    endless = b"X: " + b"y" * 4_000_000
    assert exchange(server, b"GET /health HTTP/1.1\r\nHost: localhost\r\n" + endless)[0] == 431
    target = b"/health?" + b"q" * 9000
    assert exchange(server, b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 414
    target = b"/health?" + b"q" * 8000
    assert exchange(server, b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")[0] == 200


def test_s13_body_limits(server):
    assert exchange(server, post(b"Content-Length: 33554433\r\n"))[0] == 413
    assert exchange(server, post(b"Content-Length: 8388609\r\n", path=b"/detokenize"))[0] == 413
    # Chunked: no length is announced, the sum counts.
    chunk = b"100000\r\n" + b"x" * 0x100000 + b"\r\n"
    with connect(server) as connection:
        try:
            connection.sendall(post(CHUNKED, path=b"/detokenize"))
            for _ in range(40):
                connection.sendall(chunk)
        except ConnectionError:
            pass
        assert read_answer(connection)[0] == 413


def test_s13_tiny_chunks(server):
    chunks = b"".join(b"1\r\n%c\r\n" % c for c in b'{"prompt":"hi","x":"' + b"a" * 500000 + b'"}')
    code, headers, _ = exchange(server, post(CHUNKED, chunks + b"0\r\n\r\n"), 30)
    assert code == 200 and headers["x-omnibus-ignored-fields"] == "x"


def test_s13_chunk_extensions(server):
    short = b"f;a=b\r\n" + BODY + b"\r\n0;c\r\n\r\n"
    assert exchange(server, post(CHUNKED, short))[0] == 200
    long = b"f;a=" + b"b" * 100000 + b"\r\n" + BODY + b"\r\n0\r\n\r\n"
    assert exchange(server, post(CHUNKED, long))[0] == 400
    many = b"".join(b"1;aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa\r\nx\r\n" for _ in range(20000))
    assert exchange(server, post(CHUNKED, many))[0] == 400


def test_s13_trailers(server):
    assert exchange(server, post(CHUNKED, CHUNKS[:-2] + b"X-Trailer: y\r\n\r\n"))[0] == 200
    endless = CHUNKS[:-2] + b"".join(b"X-%d: y\r\n" % i for i in range(100000))
    assert exchange(server, post(CHUNKED, endless))[0] in (400, 431)


@pytest.mark.parametrize(
    "body",
    [
        b"[" * 1000000,
        b'{"a":' * 100000,
        b'{"messages":' + b"[" * 64 + b"]" * 64 + b"}",
        b'{"prompt":"hi"} x',
        b'{"prompt":"hi"}{}',
        b'{"prompt":"hi"}\0',
        b'{"prompt":"hi"}\0{"prompt":"x"}',
        b'\xef\xbb\xbf{"prompt":"hi"}',
        b'{"prompt":"\xff"}',
        b'{"prompt":"\xed\xa0\x80"}',
        b'{"prompt":"\\ud800"}',
        b'{"prompt":"a\x00b"}',
        b"{" + b",".join(b'"k%d":1' % i for i in range(8193)) + b"}",
        b'{"x":1e999,"prompt":"hi"}',
        b'{"x":NaN,"prompt":"hi"}',
        b'{"prompt":"hi",}',
        b"{'prompt':'hi'}",
        b"",
        b" ",
        b"null",
        b"5",
        b'"x"',
        b"[]",
    ],
    ids=range(23),
)
def test_s13_json(server, body):
    code, _, answer = exchange(server, post(b"Content-Length: %d\r\n" % len(body), body))
    assert code == 400, answer
    assert len(answer) < 1000


def test_s13_many_objects_of_many_keys(server):
    one = b"{" + b",".join(b'"%x":1' % i for i in range(8000)) + b"}"
    body = b'{"prompt":"hi","x":[' + b",".join([one] * 100) + b"]}"
    started = time.monotonic()
    assert exchange(server, post(b"Content-Length: %d\r\n" % len(body), body), 60)[0] == 400
    print(f"{time.monotonic() - started:.2f} s")


def test_s13_multipart(server):
    body = b"-" * 1000000
    headers = b"Content-Type: multipart/form-data; boundary=" + b"-" * 1000 + b"\r\nContent-Length: %d\r\n" % len(body)
    assert exchange(server, post(headers, body))[0] == 400


def test_s13_any_content_type_whose_body_is_json(server):
    for kind in (b"", b"Content-Type: text/plain\r\n", b"Content-Type: application/x-www-form-urlencoded\r\n"):
        assert exchange(server, post(kind + LENGTH, BODY))[0] == 200


@pytest.mark.parametrize("encoding", [b"gzip", b"zstd", b"br", b"gzip, gzip"])
def test_s12_compressed_bodies_are_refused(server, encoding):
    assert exchange(server, post(b"Content-Encoding: " + encoding + b"\r\n" + LENGTH, BODY))[0] == 415


def test_s13_expect(server):
    with connect(server) as connection:
        connection.sendall(post(b"Expect: 100-continue\r\n" + LENGTH))
        assert read_answer(connection)[0] == 100
        connection.sendall(BODY)
        assert read_answer(connection)[0] == 200
    # Refused before the body is asked for.
    assert exchange(server, post(b"Expect: 100-continue\r\nContent-Length: 99999999\r\n"))[0] == 413
    assert exchange(server, post(b"Expect: 200-maybe\r\n" + LENGTH, BODY))[0] == 417


def test_s13_slow_header_slow_body_idle(server):
    started = time.monotonic()
    with connect(server) as connection:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost:")
        assert read_answer(connection)[0] == 408
    with connect(server) as connection:
        connection.sendall(post(LENGTH, BODY[:3]))
        assert read_answer(connection)[0] == 408
    with connect(server) as connection:  # an idle one is just closed
        assert connection.recv(1) == b""
    assert time.monotonic() - started < 8


def test_s13_drip_fed_header_has_one_deadline(server):
    """A byte now and then does not keep a header alive."""
    with connect(server) as connection:
        connection.setblocking(False)
        started = time.monotonic()
        data = b""

        def answered():
            nonlocal data
            try:
                connection.send(b"X")
            except (BlockingIOError, ConnectionError):
                pass
            try:
                data += connection.recv(65536)
            except (BlockingIOError, ConnectionError):
                pass
            return data

        connection.send(b"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Long: ")
        wait_until(answered, 5, "408")
        assert data.startswith(b"HTTP/1.1 408") and time.monotonic() - started < 3


def test_s13_pipelining(server):
    with connect(server) as connection:
        connection.sendall(request_bytes() * 50 + request_bytes(headers=["Connection: close"]))
        data = b""
        while more := connection.recv(65536):
            data += more
    assert data.count(b"HTTP/1.1 200 OK") == 51


PIPELINE_CAP = 64 * 1024


def test_s13_pipelining_has_a_cap(server):
    """Requests sent ahead while an answer is made are kept up to 64 KiB; more ends the connection."""
    body = b'{"prompt":"endless","max_tokens":2000}'
    flood = request_bytes() * (16 * 2**20 // len(request_bytes()))  # more than the kernel's buffers take
    answered = b""
    with connect(server) as connection:
        connection.sendall(post(b"Content-Length: %d\r\n" % len(body), body))
        with pytest.raises(ConnectionError):
            connection.sendall(flood)
        try:
            while more := connection.recv(65536):
                answered += more
        except ConnectionError:
            pass
    assert answered == b"", "it ended while the first answer was being made"
    wait_until(server.idle, 5, "idle")


def test_s13_pipelining_below_the_cap(server):
    body = b'{"prompt":"endless","max_tokens":100}'
    last = request_bytes(headers=["Connection: close"])
    ahead = (PIPELINE_CAP - len(last)) // len(request_bytes())
    with connect(server) as connection:
        connection.sendall(post(b"Content-Length: %d\r\n" % len(body), body))
        connection.sendall(request_bytes() * ahead + last)
        data = b""
        while more := connection.recv(65536):
            data += more
    assert data.count(b"HTTP/1.1 200 OK") == ahead + 2


def test_s13_split_at_every_byte(server):
    data = post(CHUNKED, CHUNKS[:-2] + b"X: y\r\n\r\n") + request_bytes(headers=["Connection: close"])
    for at in range(1, len(data)):
        with connect(server) as connection:
            connection.sendall(data[:at])
            connection.sendall(data[at:])
            answer = b""
            while more := connection.recv(65536):
                answer += more
        assert answer.count(b"HTTP/1.1 200 OK") == 2, f"split at {at}: {answer[:200]}"


def test_s13_http_1_0(server):
    code, headers, _ = exchange(server, b"GET /health HTTP/1.0\r\n\r\n")
    assert code == 200 and headers["connection"] == "close"
    body = b'{"prompt":"hi","stream":true}'
    with connect(server) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.0\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
        data = b""
        while more := connection.recv(65536):
            data += more
    assert b"chunked" not in data and data.endswith(b"data: [DONE]\n\n")


def test_s13_request_ids_are_echoed_only_when_fit(server):
    for sent, fit in (("abc-1", True), ("x" * 128, True), ("x" * 129, False), ("a\tb", False), ("é", False)):
        data = f"GET /health HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: {sent}\r\n\r\n".encode("latin-1")
        got = exchange(server, data)[1]["x-request-id"]
        assert (got == sent) if fit else got.startswith("req_")


def test_f10_many_connections(server):
    connections = [connect(server) for _ in range(400)]
    for connection in connections[::4]:
        connection.sendall(b"GET /health HTTP/1.1\r\nHost: localhost\r\n")  # never finished
    server.assert_serves()
    for connection in connections:
        connection.close()


def test_connection_limit(own_replay):
    server = own_replay(HELLO, "--max-connections", "20")
    held = [connect(server) for _ in range(20)]
    for connection in held:
        connection.sendall(request_bytes())
        assert read_answer(connection)[0] == 200
    code, headers, _ = exchange(server, b"")
    assert code == 503 and "retry-after" in headers
    for connection in held:
        connection.close()
    wait_until(lambda: exchange(server, request_bytes())[0] == 200, 5, "served again")


def test_f18_out_of_descriptors(own_replay):
    import resource

    server = own_replay(HELLO)
    resource.prlimit(server.process.pid, resource.RLIMIT_NOFILE, (64, 64))
    held = [connect(server) for _ in range(100)]
    for connection in held:
        connection.close()
    wait_until(lambda: exchange(server, request_bytes())[0] == 200, 10, "served again")
    assert server.stop() == 0
