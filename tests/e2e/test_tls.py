"""HTTPS: the same server behind TLS. Certificates are made here, clients check them."""

import json
import socket
import ssl
import struct
import subprocess
import time

import pytest
import requests

from harness.raw import connect, read_answer, request_bytes
from harness.script import HELLO, script, says
from harness.server import program
from harness.sse import joined, parse_events
from harness.tls import Certificate, connect_tls
from harness.wait import wait_until


@pytest.fixture(scope="module")
def certificate(tmp_path_factory):
    return Certificate(tmp_path_factory.mktemp("tls"), "omnibus-test")


@pytest.fixture(scope="module")
def secure(pool, certificate):
    server = pool(HELLO, *certificate.flags(), "--header-timeout", "1", "--body-timeout", "5")
    server.verify = str(certificate.certificate)
    assert server.url.startswith("https://")
    yield server
    server.assert_serves()


def read_all(connection):
    data = b""
    while more := connection.recv(65536):
        data += more
    return data


def test_answers_and_streams(secure):
    assert secure.chat("hello").json()["choices"][0]["message"]["content"] == "Hello world!"
    answer = secure.chat("hello", stream=True)
    assert joined(parse_events(answer.content.decode())) == "Hello world!"


def test_unmodified_client(secure, certificate):
    import httpx
    import openai

    trust = ssl.create_default_context(cafile=str(certificate.certificate))
    with httpx.Client(verify=trust) as http:
        client = openai.OpenAI(base_url=secure.url + "/v1", api_key="none", http_client=http)
        answer = client.chat.completions.create(model="replay", messages=[{"role": "user", "content": "hello"}])
        assert answer.choices[0].message.content == "Hello world!"


def test_large_body_and_large_answer(secure):
    text = "a" * (3 * 2**20)
    answer = secure.post("/tokenize", {"prompt": text})
    assert answer.status_code == 200 and answer.json()["count"] == len(text)


def test_keep_alive_pipelining_and_an_orderly_end(secure, certificate):
    with connect_tls(secure, certificate) as connection:
        for _ in range(3):
            connection.sendall(request_bytes())
            assert read_answer(connection)[0] == 200
        connection.sendall(request_bytes() * 20 + request_bytes(headers=["Connection: close"]))
        assert read_all(connection).count(b"HTTP/1.1 200 OK") == 21  # and close_notify, or recv would raise


def test_one_byte_records(secure, certificate):
    with connect_tls(secure, certificate) as connection:
        for byte in request_bytes(headers=["Connection: close"]):
            connection.sendall(bytes([byte]))
        assert read_all(connection).startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("how", ["close_notify", "fin", "rst"])
def test_a_client_that_leaves_frees_its_blocks(secure, certificate, how, stream):
    body = json.dumps({"prompt": "endless", "stream": stream, "max_tokens": 3000, "ignore_eos": True}).encode()
    connection = connect_tls(secure, certificate)
    connection.sendall(request_bytes("POST", "/v1/completions", body=body))
    wait_until(lambda: secure.metric("vllm:num_requests_running") == 1, 10, "running")
    if how == "close_notify":
        try:
            connection.unwrap()  # sends it; data of the stream may come in place of the server's own
        except OSError:
            pass
    elif how == "fin":
        connection.shutdown(socket.SHUT_RDWR)
    else:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()
    wait_until(secure.idle, 2, "idle after the client left")


def test_413_reaches_a_client_that_is_still_sending(secure, certificate):
    with connect_tls(secure, certificate) as connection:
        connection.sendall(b"POST /detokenize HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n")
        try:
            connection.sendall(b"x" * 500_000)
        except OSError:
            pass
        assert read_answer(connection)[0] == 413


def test_an_answer_larger_than_the_kernels_buffers(secure, certificate):
    text = "a" * 1_500_000  # some 10 MB of answer, read only once it waits
    body = json.dumps({"prompt": text, "return_token_strs": True}).encode()
    with connect_tls(secure, certificate) as connection:
        connection.sendall(request_bytes("POST", "/tokenize", ["Connection: close"], body))
        data = read_all(connection)
    assert json.loads(data.split(b"\r\n\r\n", 1)[1])["count"] == len(text)


def test_versions_ciphers_and_protocols(secure, certificate):
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        with connect_tls(secure, certificate, minimum_version=version, maximum_version=version) as connection:
            connection.sendall(request_bytes())
            assert read_answer(connection)[0] == 200
            assert "GCM" in connection.cipher()[0] or "CHACHA20" in connection.cipher()[0]
    with connect_tls(secure, certificate, alpn=["h2", "http/1.1"]) as connection:
        assert connection.selected_alpn_protocol() == "http/1.1"
    with pytest.raises(ssl.SSLError):
        connect_tls(secure, certificate, alpn=["h2"])
    old = ["openssl", "s_client", "-connect", f"127.0.0.1:{secure.port}", "-tls1_1", "-cipher", "ALL:@SECLEVEL=0"]
    for refused in (old, [*old[:4], "-tls1_2", "-cipher", "AES128-SHA:AES256-SHA:AES128-SHA256"]):
        got = subprocess.run(refused, input=b"", capture_output=True, timeout=30)
        assert got.returncode != 0, got.stdout.decode(errors="replace")


def test_plain_http_on_the_tls_port_is_told(secure):
    with connect(secure) as connection:
        connection.sendall(request_bytes())
        code, headers, body = read_answer(connection)
        assert code == 400 and headers["connection"] == "close" and b"HTTPS" in body
        assert connection.recv(1) == b""


@pytest.mark.parametrize("data", [b"\x16\x03\x01\x00\xff" + b"\x00" * 255, b"\x80" * 1000, b"\x16\x03\x03\xff\xff", b""])
def test_broken_handshakes_end(secure, data):
    """Garbage at once, silence and half a hello after the header timeout of 1 s."""
    started = time.monotonic()
    with connect(secure) as connection:
        connection.sendall(data)
        try:
            while connection.recv(65536):
                pass
        except ConnectionError:
            pass
    assert time.monotonic() - started < 3


def test_records_damaged_on_the_way_end_the_connection(secure, certificate):
    with connect_tls(secure, certificate) as connection:
        raw = socket.socket(fileno=socket.dup(connection.fileno()))
        raw.settimeout(10)
        raw.sendall(b"\x17\x03\x03\x00\x20" + b"\x00" * 32)  # a record that no key made
        try:
            while raw.recv(65536):
                pass
        except ConnectionError:
            pass
        raw.close()


def test_drain(own_replay, certificate):
    slow = script(says(*["a"] * 40, when="finite", delay_ms=10), says("ok"))
    server = own_replay(slow, *certificate.flags())
    idle = connect_tls(server, certificate)
    idle.sendall(request_bytes())
    assert read_answer(idle)[0] == 200
    body = json.dumps({"prompt": "finite", "stream": True}).encode()
    with connect_tls(server, certificate, 30) as busy:
        busy.sendall(request_bytes("POST", "/v1/completions", body=body))
        head = busy.recv(65536)
        started = time.monotonic()
        server.terminate()
        data = head + read_all(busy)
    assert b"data: [DONE]\n\n" in data
    assert idle.recv(1) == b""  # with close_notify
    idle.close()
    wait_until(lambda: server.process.poll() is not None, 5, "the end")
    assert server.process.returncode == 0 and time.monotonic() - started < 5


def test_client_certificates(own_replay, tmp_path):
    server_side = Certificate(tmp_path, "server")
    authority = Certificate(tmp_path, "authority")
    known, stranger = Certificate(tmp_path, "known", authority), Certificate(tmp_path, "stranger")
    server = own_replay(HELLO, *server_side.flags(), "--ssl-ca-certs", str(authority.certificate))

    def status(client):
        try:
            with connect_tls(server, server_side, client=client) as connection:
                connection.sendall(request_bytes())
                return read_answer(connection)[0]
        except OSError:
            return "refused"

    assert status(known) == 200
    assert status(None) in ("refused", 0) and status(stranger) in ("refused", 0)
    assert status(known) == 200
    assert server.stop() == 0


def test_start_errors_name_file_and_reason(tmp_path, certificate):
    other = Certificate(tmp_path, "other")
    script_path, empty = tmp_path / "script", tmp_path / "empty.pem"
    script_path.write_text(HELLO)
    empty.write_text("")
    missing = tmp_path / "missing.pem"
    cases = [
        (missing, certificate.key, None, missing, "No such file"),
        (empty, certificate.key, None, empty, "no start line"),
        (certificate.certificate, missing, None, missing, "No such file"),
        (certificate.certificate, empty, None, empty, ""),
        (certificate.certificate, other.key, None, other.key, "key values mismatch"),
        (certificate.certificate, certificate.certificate, None, certificate.certificate, ""),
        (certificate.certificate, certificate.encrypted_key(), None, "encrypted.key", "without a passphrase"),
        (certificate.certificate, certificate.key, missing, missing, "No such file"),
        (certificate.certificate, certificate.key, empty, empty, ""),
    ]
    for chain, key, authority, named, reason in cases:
        flags = ["--ssl-certfile", str(chain), "--ssl-keyfile", str(key)]
        flags += ["--ssl-ca-certs", str(authority)] if authority else []
        command = [program("omnibus-replay"), "--script", str(script_path), "--port", "0", *flags]
        got = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
        assert got.returncode == 1 and str(named) in got.stderr and reason in got.stderr, (flags, got.stderr)


def test_a_readable_key_is_warned_of(own_replay, tmp_path):
    mine = Certificate(tmp_path, "mine")
    mine.key.chmod(0o644)
    server = own_replay(HELLO, *mine.flags())
    server.wait_logged("every user of this machine can read")
    plain = requests.get(server.url + "/health", verify=str(mine.certificate), timeout=10)
    assert plain.status_code == 200
    assert server.stop() == 0
