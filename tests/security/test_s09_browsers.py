"""S9: web pages. A page on another origin reaches nothing: not by a name that it made point here (DNS rebinding), not by
a form, an image or fetch; a listed origin does, and may read the answer."""

import json

import pytest

from harness.raw import exchange
from harness.script import HELLO

LISTED = "https://app.example"
BODY = b'{"prompt":"hello","max_tokens":1}'
KEY = "sk-right"


@pytest.fixture(scope="module")
def closed(pool):
    server = pool(HELLO)
    yield server
    server.assert_serves()


@pytest.fixture(scope="module")
def listing(pool):
    server = pool(HELLO, "--allowed-origins", LISTED, "--allowed-origins", "tauri://localhost")
    yield server
    server.assert_serves()


def send(server, headers, method="POST", path="/v1/completions", body=BODY, host=None):
    """(status, headers, body); `host` None: the address that was connected to."""
    host = host or f"127.0.0.1:{server.port}"
    lines = [f"{method} {path} HTTP/1.1", f"Host: {host}", *headers]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return exchange(server, "\r\n".join([*lines, "", ""]).encode() + body)


def get(server, headers, path="/v1/models", host=None):
    return send(server, headers, "GET", path, b"", host)


def is_error(body, kind="permission_error"):
    error = json.loads(body)["error"]
    return set(error) == {"message", "type", "param", "code"} and error["type"] == kind


# The Host of the request.

OWN = ["localhost", "localhost:1234", "LOCALHOST", "localhost.", "x.localhost", "127.0.0.1", "127.0.0.1:1", "127.9.8.7",
       "[::1]", "[::1]:8000"]
FOREIGN = ["evil.example", "evil.example:8000", "localhost.evil.example", "127.0.0.1.evil.example", "0.0.0.0", "10.0.0.1",
           "host.docker.internal", "[::]", "[::2]", "127.1", "2130706433", "0x7f.1", "localhost.."]
# /livez and the page included: nothing is told to a page that came by a false name.
PATHS = ["/", "/livez", "/health", "/v1/models", "/metrics", "/nothing"]


@pytest.mark.parametrize("host", OWN)
def test_s09_own_names(closed, host):
    assert get(closed, [], host=host)[0] == 200
    assert get(closed, [], f"http://{host}/v1/models")[0] == 200


@pytest.mark.parametrize("host", FOREIGN)
def test_s09_names_that_point_here_from_outside(closed, host):
    for path in PATHS:
        code, _, body = get(closed, [], path, host)
        assert code == 403 and is_error(body) and host.encode() in body, (path, code, body)
    assert send(closed, ["Content-Type: application/json"], host=host)[0] == 403
    assert send(closed, [], "OPTIONS", host=host, body=b"")[0] == 403
    # By the target, which counts before Host; and by Host, behind an innocent target.
    assert get(closed, [], f"http://{host}/v1/models")[0] == 403
    assert get(closed, [], f"http://127.0.0.1:{closed.port}/v1/models", host)[0] == 403


def test_s09_other_hosts_by_flag_only(replay):
    server = replay(HELLO, "--allowed-hosts", "host.docker.internal", "--allowed-hosts", "*.lan")
    for host in ("host.docker.internal", "HOST.docker.internal:11434", "box.lan", "localhost"):
        assert get(server, [], host=host)[0] == 200, host
    for host in ("docker.internal", "lan", "xlan", "evil.example"):
        assert get(server, [], host=host)[0] == 403, host
    server.assert_serves()


def test_s09_missing_and_several_hosts(closed):
    assert exchange(closed, b"GET /health HTTP/1.1\r\n\r\n")[0] == 400
    assert exchange(closed, b"GET /health HTTP/1.1\r\nHost: localhost\r\nHost: localhost\r\n\r\n")[0] == 400
    assert exchange(closed, b"GET /health HTTP/1.0\r\n\r\n")[0] == 200


# The page behind the request.


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "application/json", None]
)
@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://localhost:3000", "https://127.0.0.1:1"])
def test_s09_a_foreign_page_sends_nothing(closed, origin, kind):
    headers = [f"Origin: {origin}"] + ([f"Content-Type: {kind}"] if kind else [])
    before = closed.metric("vllm:prompt_tokens_total")
    code, answer, body = send(closed, headers)
    assert code == 403 and is_error(body)
    assert not any(name.startswith("access-control") for name in answer)
    assert closed.metric("vllm:prompt_tokens_total") == before
    assert get(closed, [f"Origin: {origin}"])[0] == 403


def test_s09_cross_site_without_an_origin(closed):
    site = "Sec-Fetch-Site: cross-site"
    assert send(closed, [site, "Content-Type: application/json"])[0] == 403
    assert get(closed, [site, "Sec-Fetch-Mode: no-cors", "Sec-Fetch-Dest: image"])[0] == 403
    assert get(closed, [site, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: iframe"], "/")[0] == 403
    # A link on another page shows the chat page to who follows it.
    code, headers, _ = get(closed, [site, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Accept: text/html"], "/")
    assert code == 200 and headers["content-type"].startswith("text/html")
    form = [site, "Sec-Fetch-Mode: navigate", "Sec-Fetch-Dest: document", "Content-Type: text/plain", "Origin: http://e"]
    assert send(closed, form)[0] == 403


def test_s09_the_own_page_passes(closed):
    own = f"Origin: http://127.0.0.1:{closed.port}"
    assert send(closed, [own, "Sec-Fetch-Site: same-origin", "Content-Type: application/json"])[0] == 200
    assert get(closed, ["Sec-Fetch-Site: same-origin"])[0] == 200
    assert get(closed, ["Sec-Fetch-Site: none", "Sec-Fetch-Mode: navigate"], "/")[0] == 200
    assert send(closed, [own.replace("http:", "https:")])[0] == 200  # behind a proxy that speaks TLS


def test_s09_user_agents_are_not_believed(closed):
    assert send(closed, ["Origin: http://evil.example", "User-Agent: curl/8.0"])[0] == 403


def test_s09_no_browser_no_rules(closed):
    """curl's examples: form type, JSON body."""
    assert send(closed, ["Content-Type: application/x-www-form-urlencoded"])[0] == 200
    assert send(closed, [])[0] == 200


# CORS.


def test_s09_cors_is_off(closed):
    ask = ["Origin: http://evil.example", "Access-Control-Request-Method: POST",
           "Access-Control-Request-Headers: content-type"]
    code, headers, _ = send(closed, ask, "OPTIONS", body=b"")
    assert code == 204 and headers["allow"] == "POST, OPTIONS"
    assert not any(name.startswith("access-control") for name in headers)
    assert "vary" not in get(closed, [])[1]


@pytest.mark.parametrize("origin", [LISTED, "tauri://localhost"])
def test_s09_listed_origins(listing, origin):
    ask = [f"Origin: {origin}", "Access-Control-Request-Method: POST",
           "Access-Control-Request-Headers: authorization,content-type,x-stainless-os",
           "Access-Control-Request-Private-Network: true"]
    code, headers, _ = send(listing, ask, "OPTIONS", body=b"")
    assert code == 204 and headers["access-control-allow-origin"] == origin and headers["vary"] == "Origin"
    assert headers["access-control-allow-methods"] == "POST, OPTIONS"
    assert headers["access-control-allow-headers"] == "authorization,content-type,x-stainless-os"
    assert headers["access-control-allow-private-network"] == "true"

    site = [f"Origin: {origin}", "Sec-Fetch-Site: cross-site"]
    code, headers, _ = send(listing, [*site, "Content-Type: application/json"])
    assert code == 200 and headers["access-control-allow-origin"] == origin and headers["vary"] == "Origin"
    exposed = headers["access-control-expose-headers"].split(", ")
    assert {"x-request-id", "x-omnibus-ignored-fields", "openai-processing-ms", "retry-after"} <= set(exposed)
    assert "access-control-allow-credentials" not in headers
    # Errors can be read, too.
    code, headers, _ = send(listing, [*site, "Content-Type: application/json"], body=b"{")
    assert code == 400 and headers["access-control-allow-origin"] == origin
    # What a form can send is refused, whoever sends it.
    for kind in ("text/plain", "application/x-www-form-urlencoded"):
        assert send(listing, [*site, f"Content-Type: {kind}"])[0] == 403


@pytest.mark.parametrize("origin", ["http://app.example", "https://app.example:8443", "https://app.example.evil", "null"])
def test_s09_unlisted_origins_beside_listed_ones(listing, origin):
    code, headers, _ = send(listing, [f"Origin: {origin}", "Content-Type: application/json"])
    assert code == 403 and "access-control-allow-origin" not in headers and headers["vary"] == "Origin"
    code, headers, _ = send(listing, [f"Origin: {origin}"], "OPTIONS", body=b"")
    assert code == 204 and "access-control-allow-origin" not in headers


def test_s09_streams_carry_the_headers(listing):
    body = b'{"prompt":"hello","stream":true}'
    code, headers, _ = send(listing, [f"Origin: {LISTED}", "Content-Type: application/json"], body=body)
    assert code == 200 and headers["access-control-allow-origin"] == LISTED


def test_s09_requested_headers_are_echoed_only_as_names(listing):
    for asked in ("a b; c", "x:y", "<script>"):
        ask = [f"Origin: {LISTED}", f"Access-Control-Request-Headers: {asked}"]
        code, headers, _ = send(listing, ask, "OPTIONS", body=b"")
        assert code == 204 and "access-control-allow-headers" not in headers


def test_s09_every_origin_when_asked_for(replay):
    server = replay(HELLO, "--allowed-origins", "*", "--api-key", KEY)
    headers = ["Origin: http://any.example", "Content-Type: application/json"]
    # The preflight has no key; the request needs one as ever.
    assert send(server, headers, "OPTIONS", body=b"")[1]["access-control-allow-origin"] == "http://any.example"
    code, answer, _ = send(server, headers)
    assert code == 401 and answer["access-control-allow-origin"] == "http://any.example"
    assert send(server, [*headers, f"Authorization: Bearer {KEY}"])[0] == 200
    assert get(server, [f"X-Api-Key: {KEY}"], host="evil.example")[0] == 403
    assert get(server, [f"X-Api-Key: {KEY}"])[0] == 200
