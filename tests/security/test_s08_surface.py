"""S8: every route with every kind of key, and paths that mean to be another."""

import pytest
import requests

from harness.raw import connect, exchange, read_answer, request_bytes
from harness.script import HELLO
from harness.server import program

KEY, OTHER = "sk-right", "sk-second"
PUBLIC = {"GET": ["/", "/health", "/v1/health", "/livez", "/readyz", "/ping"], "POST": ["/ping"]}
GUARDED = {
    "GET": ["/v1/models", "/v1/models/replay", "/version"],
    "POST": ["/v1/chat/completions", "/v1/completions", "/tokenize", "/detokenize"],
}
NOWHERE = ["/v1", "/v1/", "/admin", "/v1/nothing", "/debug", "/docs", "/openapi.json", "/.env", "/v1/models/"]


@pytest.fixture(scope="module")
def keyed(pool):
    return pool(HELLO, "--api-key", KEY, "--api-key", OTHER)


KEYS = {
    "none": ([], False),
    "wrong": (["Authorization: Bearer sk-wrong"], False),
    "empty": (["Authorization: Bearer "], False),
    "prefix": (["Authorization: Bearer sk-righ"], False),
    "longer": (["Authorization: Bearer sk-right1"], False),
    "other scheme": (["Authorization: Basic sk-right"], False),
    "no scheme": ([f"Authorization: {KEY}"], False),
    "query": ([], False),
    "right": ([f"Authorization: Bearer {KEY}"], True),
    "scheme in capitals": ([f"AUTHORIZATION: BEARER {KEY}"], True),
    "second key": ([f"authorization: bearer {OTHER}"], True),
    "x-api-key": ([f"X-Api-Key: {KEY}"], True),
    "wrong x-api-key": (["X-Api-Key: sk-wrong"], False),
}


def status(server, method, path, headers):
    body = b"{}" if method == "POST" else b""
    return exchange(server, request_bytes(method, path, headers, body))[0]


@pytest.mark.parametrize("name", KEYS)
def test_s08_every_route_with_every_key(keyed, name):
    headers, right = KEYS[name]
    suffix = f"?api_key={KEY}" if name == "query" else ""
    for method, paths in PUBLIC.items():
        for path in paths:
            assert status(keyed, method, path + suffix, headers) == 200, path
    for method, paths in GUARDED.items():
        for path in paths:
            got = status(keyed, method, path + suffix, headers)
            assert (got != 401) if right else (got == 401), f"{method} {path}: {got}"
    # On loopback /metrics is open.
    assert status(keyed, "GET", "/metrics", headers) == 200
    # What does not exist: nobody's business without a key.
    for path in NOWHERE:
        assert status(keyed, "GET", path, headers) == (404 if right else 401), path


VARIANTS = [
    "//v1/models", "/V1/models", "/v1//models", "/./v1/models", "/v1/../v1/models", "/health/../v1/models",
    "/v1/models;x", "/v1/models/..;/x", "/%2fv1/models", "/v1%2fmodels", "/%76%31/models", "/v1/models%00",
    "/v1/models%", "/v1/models%zz", "/health%2f..%2fv1%2fmodels", "http://localhost/v1/models",
    "http://evil/v1/models", "http://localhost:80/%76%31/models", "/v1/models?x=/health", "/v1/models#/health",
    "/health;/v1/models", "/metrics/../v1/models", "\\v1\\models", "v1/models", "*", "",
]


@pytest.mark.parametrize("target", VARIANTS)
def test_s08_no_spelling_of_a_path_gets_past_the_key(keyed, target):
    code, _, body = exchange(keyed, request_bytes("GET", target))
    assert code in (400, 401, 403, 404), f"{target}: {code}"
    assert b'"object":"list"' not in body
    # With a key: the handler of the decoded path, or nothing.
    code, _, body = exchange(keyed, request_bytes("GET", target, [f"X-Api-Key: {KEY}"]))
    decoded = target in ("/%76%31/models", "/v1%2fmodels", "http://localhost/v1/models",
                         "http://localhost:80/%76%31/models", "/v1/models?x=/health")
    assert code == 200 if decoded else code in (400, 403, 404), f"{target}: {code}"


@pytest.mark.parametrize("host", ["h/?", "h/#", "h h", "h@evil", "", "[::1", "a:b:c", "h:port", "h\\", "h,h"])
def test_s08_malformed_hosts(keyed, host):
    data = f"GET /v1/models HTTP/1.1\r\nHost: {host}\r\nX-Api-Key: {KEY}\r\n\r\n".encode()
    assert exchange(keyed, data)[0] == 400


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "TRACE", "CONNECT", "get", "PROPFIND"])
def test_s08_methods(keyed, method):
    code, headers, _ = exchange(keyed, request_bytes(method, "/v1/models", [f"X-Api-Key: {KEY}"]))
    assert code == 405 and headers["allow"] == "GET, HEAD, OPTIONS"
    assert exchange(keyed, request_bytes(method, "/v1/models"))[0] == 401


def test_s08_options_needs_no_key_and_opens_nothing(keyed):
    answer = requests.options(keyed.url + "/v1/chat/completions", headers={"Origin": "http://evil"}, timeout=10)
    assert answer.status_code == 204 and answer.headers["allow"] == "POST, OPTIONS"
    assert not any(h.lower().startswith("access-control") for h in answer.headers)
    assert requests.options(keyed.url + "/nothing", timeout=10).status_code == 401


def test_s08_401_shape(keyed):
    answer = requests.get(keyed.url + "/v1/models", timeout=10)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert answer.json()["error"] == {
        "message": answer.json()["error"]["message"], "type": "invalid_request_error", "param": None,
        "code": "invalid_api_key",
    }


def test_s08_a_body_is_not_read_without_a_key(keyed):
    with connect(keyed) as connection:
        connection.sendall(b"POST /v1/completions HTTP/1.1\r\nHost: localhost\r\nContent-Length: 30000000\r\n\r\n")
        assert read_answer(connection)[0] == 401


def test_s08_key_file(own_replay, tmp_path):
    path = tmp_path / "keys"
    path.write_text("# a comment\nsk-file\n")
    server = own_replay(HELLO, "--api-key-file", str(path))
    assert requests.get(server.url + "/v1/models", timeout=10).status_code == 401
    assert requests.get(server.url + "/v1/models", headers={"X-Api-Key": "sk-file"}, timeout=10).status_code == 200


def test_s08_bind_beyond_loopback(own_replay, tmp_path):
    import subprocess

    path = tmp_path / "script"
    path.write_text(HELLO)
    refused = subprocess.run(
        [program("omnibus-replay"), "--script", str(path), "--host", "0.0.0.0", "--port", "0"],
        capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL,
    )
    assert refused.returncode == 2 and "--allow-unauthenticated" in refused.stderr
    # With a key it starts, and /metrics needs the key, too.
    server = own_replay(HELLO, "--host", "0.0.0.0", "--api-key", KEY)
    server.url = f"http://127.0.0.1:{server.port}"
    assert requests.get(server.url + "/metrics", timeout=10).status_code == 401
    assert requests.get(server.url + "/metrics", headers={"X-Api-Key": KEY}, timeout=10).status_code == 200
    assert requests.get(server.url + "/health", timeout=10).status_code == 200
