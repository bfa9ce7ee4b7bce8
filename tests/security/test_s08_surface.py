"""S8: every route with every kind of key, and paths that mean to be another."""

import pytest
import requests

from harness.raw import connect, exchange, read_answer, request_bytes
from harness.admin import Admin, admin_place
from harness.routes import ADMIN_ROUTES, INFERENCE, METRICS, PUBLIC, ROUTES, documented, served
from harness.script import HELLO
from harness.server import program
from harness.wait import wait_until

KEY, OTHER = "sk-right", "sk-second"
NOWHERE = ["/v1", "/v1/", "/admin", "/v1/nothing", "/debug", "/.env", "/v1/models/"]


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
    if method == "HEAD":  # names the length of a body that does not come
        headers = [*headers, "Connection: close"]
    return exchange(server, request_bytes(method, path, headers, body))[0]


@pytest.mark.parametrize("name", KEYS)
def test_s08_every_route_with_every_key(keyed, name):
    headers, right = KEYS[name]
    suffix = f"?api_key={KEY}" if name == "query" else ""
    for route in ROUTES:
        got = status(keyed, route.method, route.path + suffix, headers)
        place = f"{route.method} {route.path}: {got}"
        if route.scope in (PUBLIC, METRICS):  # on loopback /metrics is open
            assert got == 200, place
        else:
            assert (got != 401) if right else (got == 401), place
    # What does not exist: nobody's business without a key.
    for path in NOWHERE:
        assert status(keyed, "GET", path, headers) == (404 if right else 401), path


def test_s08_every_route_is_in_the_list(keyed):
    """A route that is served and documented has a scope in harness/routes.py."""
    known = {(route.method, route.pattern) for route in ROUTES}
    assert documented(keyed, headers={"X-Api-Key": KEY}) <= known
    assert served(keyed) == ROUTES
    # What needs no key is this and no more.
    open_paths = {route.path for route in ROUTES if route.scope == PUBLIC}
    assert open_paths == {"/", "/health", "/v1/health", "/livez", "/readyz", "/ping"}
    assert {route.scope for route in ROUTES} == {PUBLIC, METRICS, INFERENCE}


def tricks(path):
    """Spellings of a path; those that decode to it are it, the others are nothing."""
    encoded = "".join(f"%{ord(c):02x}" if c != "/" else c for c in path)
    same = [encoded, encoded.upper().replace("/V1", "/v1"), path.replace("/", "%2f").replace("%2f", "/", 1), path + "?",
            path + "?x=/health", f"http://localhost{path}", f"http://127.0.0.1:1{encoded}"]
    other = ["/" + path, path.upper(), path + "/", path + ";x=1", "/." + path, "/health/.." + path, path + "/../health",
             path + "%00", path + "%", path + "#/health", path.replace("/", "\\"), path + "%20", path + "%2f",
             "/%2e" + path, "/health;" + path, f"http://evil.example{path}", f"ftp://localhost{path}", f"http://h/?{path}"]
    return same, other


@pytest.mark.parametrize("route", [r for r in ROUTES if r.path != "/"], ids=lambda r: f"{r.method} {r.path}")
def test_s08_every_route_in_every_spelling(keyed, route):
    """The decision is made on the decoded path that the handler gets: each spelling is the route, or nothing."""
    same, other = tricks(route.path)
    key = [f"X-Api-Key: {KEY}"]
    plain, keyed_plain = status(keyed, route.method, route.path, []), status(keyed, route.method, route.path, key)
    for target in same:
        assert status(keyed, route.method, target, []) == plain, target
        assert status(keyed, route.method, target, key) == keyed_plain, target
    for target in other:
        assert status(keyed, route.method, target, []) in (400, 401, 403, 404), target
        # 405: below a route of another method.
        assert status(keyed, route.method, target, key) in (400, 403, 404, 405), target


@pytest.mark.parametrize("method,path", ADMIN_ROUTES)
def test_s08_admin_routes_are_not_on_the_public_listener(keyed, pool, method, path):
    """No key and no spelling of the path makes them: 404 with an inference key, 401 without."""
    same, other = tricks(path)
    assert Admin(keyed).get("/status").status == 200  # they are where they belong
    for target in [path, *same, *other]:
        assert status(keyed, method, target, []) in (400, 401, 403, 404), target
        assert status(keyed, method, target, [f"X-Api-Key: {KEY}"]) in (400, 403, 404), target
        assert status(pool(HELLO), method, target, []) in (400, 403, 404), target
    assert Admin(keyed).status()["config"]["generation"] == 1 and Admin(keyed).status()["phase"] == "serving"


def test_s08_every_admin_route_with_every_key(own_replay):
    """Over TCP: an admin key opens them, an inference key never does, and the admin key opens nothing else."""
    server = own_replay(HELLO, "--api-key", KEY, "--admin-listen", "127.0.0.1:0", "--admin-api-key", "sk-admin")
    admin = admin_place(server)
    for name, (headers, _) in KEYS.items():
        sent = dict(line.split(": ", 1) if ": " in line else line.split(":", 1) for line in headers)
        for method, path in ADMIN_ROUTES:
            assert requests.request(method, admin + path, headers=sent, timeout=10).status_code == 401, (name, path)
    right = {"X-Api-Key": "sk-admin"}
    for method, path in ADMIN_ROUTES:
        if path == "/drain":
            continue  # last: it ends the server
        assert requests.request(method, admin + path, headers=right, timeout=10).status_code in (200, 400), path
    for route in ROUTES:
        if route.scope == INFERENCE:
            assert status(server, route.method, route.path, ["X-Api-Key: sk-admin"]) == 401, route.path
            found = requests.request(route.method, admin + route.path, headers=right, timeout=10).status_code
            assert found == 404 or route.method == "HEAD", route.path
    assert requests.post(admin + "/drain", headers=right, timeout=10).status_code == 202
    assert server.process.wait(20) == 0


def test_s08_many_headers_of_keys(keyed):
    """Any right one is enough, any number of wrong ones is not."""
    wrong = ["Authorization: Bearer sk-wrong", "X-Api-Key: sk-wrong"] * 10
    assert status(keyed, "GET", "/v1/models", wrong) == 401
    assert status(keyed, "GET", "/v1/models", [*wrong, f"X-Api-Key: {KEY}"]) == 200


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


def test_s08_named_keys_in_the_log(own_replay, tmp_path):
    """The log says whose key it was, and never the key."""
    path = tmp_path / "keys"
    path.write_text("alice sk-a-secret\nsk-b-secret\n")
    path.chmod(0o600)
    server = own_replay(HELLO, "--api-key-file", str(path), "--log-level", "debug")
    for key, name in (("sk-a-secret", "alice"), ("sk-b-secret", "key2")):
        assert requests.get(server.url + "/v1/models", headers={"X-Api-Key": key}, timeout=10).status_code == 200
        wait_until(lambda: f"key={name} method=GET handler=/v1/models status=200" in server.log(), 5, "the name in the log")
    assert requests.get(server.url + "/v1/models", headers={"X-Api-Key": "sk-wrong-secret"}, timeout=10).status_code == 401
    assert server.stop() == 0
    assert "secret" not in server.log() and "every user" not in server.log()


def test_s08_a_key_file_for_everybody_is_warned_of(own_replay, tmp_path):
    path = tmp_path / "keys"
    path.write_text("sk-file\n")
    path.chmod(0o644)
    server = own_replay(HELLO, "--api-key-file", str(path))
    server.wait_logged(f"every user of this machine can read '{path}'")


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
