"""S11: names from requests never become paths. Each place that takes a name gets names that are paths; the answer is an
error, and no file is opened, made or removed."""

import json
import os

import pytest

from harness.inotify import Watch
from harness.raw import connect, read_answer
from harness.script import HELLO, script, says
from harness.server import Server, replay_command

CANARY = "canary-4711"
LISTED = "0x40000020"  # IN_OPEN of a folder


@pytest.fixture(scope="module")
def home(tmp_path_factory):
    """The server's own folders, each with a file that nothing may touch."""
    folder = tmp_path_factory.mktemp("home")
    for name in ("store", "store/blobs", "store/manifests", "store/tmp", "outside"):
        (folder / name).mkdir()
        (folder / name / "secret").write_text(CANARY)
    (folder / "store" / "blobs" / ("sha256-" + "a" * 64)).write_text(CANARY)
    os.symlink(folder / "outside" / "secret", folder / "store" / "blobs" / "link")
    return folder


@pytest.fixture(scope="module")
def server(home):
    path = home / "script.jsonl"
    path.write_text(HELLO)
    env = {**os.environ, "OMNIBUS_HOME": str(home / "store"), "TMPDIR": str(home / "outside")}
    server = Server(replay_command(path), env=env)
    yield server
    server.assert_serves()
    assert server.stop() == 0, server.log()
    server.close()


def names(home):
    secret = str(home / "outside" / "secret")
    return [
        "../outside/secret", "..", ".", "/", secret, secret[1:], "../../etc/passwd", "%2e%2e/%2e%2e/etc/passwd",
        "..%2f..%2fetc%2fpasswd", "....//....//etc/passwd", "..\\..\\etc\\passwd", "a/../../b", "blobs/secret", "replay/../x",
        "replay\0", "replay\0.json", "\0", "x" * 129, "x" * 5000, "sha256:" + "a" * 64, "sha256-" + "a" * 64,
        "sha256:" + "a" * 65, "sha256:" + "a" * 63, "sha256:" + "g" * 64, "sha256:../../etc/passwd", "sha512:" + "a" * 64,
        "link", "file://" + secret, "http://127.0.0.1/x", "~/x", "$HOME", "`id`", "a b", "é", "\u202etxt", "CON", ".hidden",
        "registry.example/x/y:z", "a:b:c", "name:", ":tag",
    ]


# Where names go in. path: {} is the name, percent-encoded whole. body: the name is the value of "field", beside `more`.
HELLO_CHAT = {"messages": [{"role": "user", "content": "hi"}], "max_tokens": 1}
PLACES = {
    "GET /v1/models/{id}": {"method": "GET", "path": "/v1/models/{}"},
    "chat model": {"path": "/v1/chat/completions", "field": "model", "more": HELLO_CHAT},
    "completion model": {"path": "/v1/completions", "field": "model", "more": {"prompt": "hi", "max_tokens": 1}},
    "tokenize model": {"path": "/tokenize", "field": "model", "more": {"prompt": "hi"}},
    "detokenize model": {"path": "/detokenize", "field": "model", "more": {"tokens": [97]}},
    "show": {"path": "/api/show", "field": "model", "more": {}},
    "generate": {"path": "/api/generate", "field": "model", "more": {"prompt": "hi"}},
    "copy from": {"path": "/api/copy", "field": "source", "more": {"destination": "x"}},
    "copy to": {"path": "/api/copy", "field": "destination", "more": {"source": "replay"}},
    "delete": {"method": "DELETE", "path": "/api/delete", "field": "model", "more": {}},
    "blob": {"method": "POST", "path": "/api/blobs/{}"},
    "chat template": {"path": "/v1/chat/completions", "field": "chat_template", "more": HELLO_CHAT},
}


def opened(watch):
    """Events, but for the server reading its own list of models: no name leads there."""
    return [event for event in watch.events() if event not in (("manifests", LISTED), ("", LISTED), ("blobs", LISTED))]


def encoded(name):
    return "".join(f"%{byte:02x}" for byte in name.encode())


def ask(server, place, name):
    method, path, body = place.get("method", "POST"), place["path"], b""
    if "field" in place:
        body = json.dumps({**place["more"], place["field"]: name}).encode()
    else:
        path = path.format(encoded(name))
    lines = [f"{method} {path} HTTP/1.1", "Host: localhost", f"Content-Length: {len(body)}", "", ""]
    with connect(server) as connection:
        connection.sendall("\r\n".join(lines).encode() + body)
        return read_answer(connection)


@pytest.mark.parametrize("place", PLACES)
def test_s11_names_are_not_paths(server, home, place):
    assert ask(server, {**PLACES[place], "method": "OPTIONS"}, "x")[0] == 204
    with Watch(home / "outside", home / "store", home / "store" / "blobs", home / "store" / "manifests", home / "store" / "tmp") as watch:
        for name in names(home):
            if place == "blob" and name == "sha256:" + "a" * 64:
                continue  # the one name here that is a digest, and the store has it
            code, _, body = ask(server, PLACES[place], name)
            assert code in (400, 404, 414), f"{name!r}: {code} {body[:300]}"
            assert CANARY.encode() not in body and b"root:" not in body
            # Unknown is all that is said: not whether a file of that name exists.
            assert b"No such file" not in body and b"ermission" not in body, body
        assert opened(watch) == []


def test_s11_raw_targets(server, home):
    """Spelled into the target as they are, without escapes."""
    with Watch(home / "outside", home / "store", home / "store" / "blobs") as watch:
        for name in names(home):
            target = f"/v1/models/{name}".encode()
            with connect(server) as connection:
                connection.sendall(b"GET " + target + b" HTTP/1.1\r\nHost: localhost\r\n\r\n")
                code, _, body = read_answer(connection)
            assert code in (400, 404, 414, 505), (name, code)  # 505: a blank in it
            assert CANARY.encode() not in body
        assert watch.events() == []


def test_s11_the_watch_sees_files(home):
    with Watch(home / "outside") as watch:
        (home / "outside" / "secret").read_text()
        assert ("secret", "0x20") in watch.events()


def test_s11_the_model_may_say_paths(replay):
    """Text is text: what the model says is not looked at."""
    server = replay(script(says("../../etc/passwd")))
    assert server.chat("hi").json()["choices"][0]["message"]["content"] == "../../etc/passwd"
