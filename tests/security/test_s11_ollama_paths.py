"""S11: no name or digest of a request reaches a path unchecked; what is refused touches no file."""

import fcntl
import hashlib
import os
import time
from pathlib import Path

import pytest
import requests

from harness.inotify import Watch
from harness.raw import connect, exchange, request_bytes
from harness.script import HELLO
from harness.server import Server, program
from harness.store import add_model, names_in, serve_with_store
from harness.wait import wait_until

HEX = "0" * 64
GOOD = "good:1b"


class Watched:
    """A server with a store beside files that are none of its business, and a record of all of them."""

    def __init__(self, folder):
        self.folder = folder
        self.home = folder / "home"
        self.digest = add_model(self.home, GOOD, b"model", aliases=["good"])
        (folder / "secret").write_text("secret")
        (folder / "outside").mkdir()
        self.server = serve_with_store(folder, self.home, HELLO)

    def snapshot(self):
        """Every path below the folder with its content, links as links; the server's lock left out."""
        out = {}
        for path in sorted(self.folder.rglob("*")):
            if path.name == "lock":
                continue
            key = str(path.relative_to(self.folder))
            out[key] = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() else None
        return out


@pytest.fixture
def watched(tmp_path):
    watched = Watched(tmp_path)
    yield watched
    assert watched.server.stop() == 0
    watched.server.close()


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    watched = Watched(tmp_path_factory.mktemp("paths"))
    yield watched
    assert watched.server.stop() == 0
    watched.server.close()


BAD_NAMES = ["../x", "..", ".", "a/../b", "a/b", "/etc/passwd", "a:../b", "a:b/c", "a:b:c", ":", ":x", "x:", "a\x00b",
             "a\nb", "a b", "%2e%2e", "a%2fb", "\\x", "é", "x" * 129, "a:" + "x" * 129, "registry.ollama.ai/../x",
             "registry.ollama.ai/library/../x", "library/..", "~", "$HOME", "-:/"]


@pytest.mark.parametrize("name", BAD_NAMES, ids=[repr(n)[:24] for n in BAD_NAMES])
def test_s11_names(shared, name):
    before = shared.snapshot()
    server = shared.server
    copied = server.post("/api/copy", {"source": GOOD, "destination": name})
    assert copied.status_code == 400 and list(copied.json()) == ["error"], copied.text
    assert server.post("/api/copy", {"source": name, "destination": "fine"}).status_code in (400, 404)
    deleted = requests.delete(server.url + "/api/delete", json={"model": name}, timeout=10)
    assert deleted.status_code in (400, 404)
    assert server.post("/api/show", {"model": name}).status_code in (400, 404)
    assert server.post("/api/generate", {"model": name, "prompt": "x"}).status_code in (400, 404)
    assert shared.snapshot() == before


BAD_DIGESTS = ["sha256:" + "0" * 63, "sha256:" + "0" * 65, "sha256:" + "g" * 64, "sha256:" + "A" * 64, "sha256:" + HEX + "/x",
               "sha256:../../etc/passwd", "sha256:..%2f..%2fetc%2fpasswd", "sha256-" + HEX, HEX, "sha512:" + HEX, "sha256:",
               "sha256:" + "0" * 62 + "..", "sha256:%00" + "0" * 63, "SHA256:" + HEX, "sha256:" + "0" * 63 + "%0a",
               "%2e%2e", "../blobs/sha256:" + HEX]


@pytest.mark.parametrize("digest", BAD_DIGESTS)
def test_s11_digests(shared, digest):
    before = shared.snapshot()
    with connect(shared.server) as connection:  # an answer to HEAD has no body to wait for
        connection.sendall(request_bytes("HEAD", "/api/blobs/" + digest))
        assert connection.recv(65536).split(b" ")[1] in (b"400", b"404")
    assert exchange(shared.server, request_bytes("POST", "/api/blobs/" + digest, body=b"content"))[0] in (400, 404)
    assert shared.snapshot() == before


def test_s11_content_that_is_not_its_digest(shared):
    before = shared.snapshot()
    answer = requests.post(f"{shared.server.url}/api/blobs/sha256:{HEX}", data=b"content", timeout=10)
    assert answer.status_code == 400 and "digest mismatch" in answer.json()["error"]
    after = shared.snapshot()
    assert {k: v for k, v in after.items() if v is not None} == {k: v for k, v in before.items() if v is not None}


def test_s11_too_large_a_blob(shared):
    head = f"POST /api/blobs/sha256:{HEX} HTTP/1.1\r\nHost: localhost\r\nContent-Length: 40000000\r\n\r\n"
    assert exchange(shared.server, head.encode())[0] == 413


def test_s11_blobs_do_not_fill_the_disk(watched):
    (watched.home / "blobs" / ("sha256-" + "0" * 64)).touch()
    os.truncate(watched.home / "blobs" / ("sha256-" + "0" * 64), 1 << 30)  # sparse
    url = watched.server.url + "/api/blobs/sha256:" + hashlib.sha256(b"content").hexdigest()
    answer = requests.post(url, data=b"content", timeout=10)
    assert answer.status_code == 507 and "limit" in answer.json()["error"]
    os.truncate(watched.home / "blobs" / ("sha256-" + "0" * 64), 1 << 20)
    assert requests.post(url, data=b"content", timeout=10).status_code == 201


def test_s11_links_in_the_store_are_not_followed(watched):
    home, outside = watched.home, watched.folder / "outside"
    blob = home / "blobs" / ("sha256-" + hashlib.sha256(b"content").hexdigest())
    url = watched.server.url + "/api/blobs/sha256:" + hashlib.sha256(b"content").hexdigest()
    blob.symlink_to(watched.folder / "secret")
    assert requests.head(url, timeout=10).status_code not in (200, 201)
    assert requests.post(url, data=b"content", timeout=10).status_code >= 400
    blob.unlink()
    # A manifest folder, the tmp folder and the blobs that lead elsewhere.
    (home / "manifests" / "linked").symlink_to(outside)
    assert watched.server.post("/api/copy", {"source": GOOD, "destination": "linked"}).status_code >= 400
    (home / "manifests" / "linked").unlink()
    (home / "tmp").mkdir(exist_ok=True)
    for part in (home / "tmp").iterdir():
        part.unlink()
    (home / "tmp").rmdir()
    (home / "tmp").symlink_to(outside)
    assert requests.post(url, data=b"content", timeout=10).status_code >= 400
    assert list(outside.iterdir()) == [] and (watched.folder / "secret").read_text() == "secret"


def test_s11_delete_takes_what_the_manifest_names_and_nothing_else(watched):
    server = watched.server
    assert server.post("/api/copy", {"source": "good", "destination": "two"}).status_code == 200
    assert requests.delete(server.url + "/api/delete", json={"model": GOOD}, timeout=10).status_code == 200
    blob = watched.home / "blobs" / f"sha256-{watched.digest}"
    assert blob.exists(), "a second name still means this file"
    assert requests.delete(server.url + "/api/delete", json={"name": "two"}, timeout=10).status_code == 200
    assert not blob.exists() and names_in(watched.home) == []
    assert (watched.folder / "secret").exists()


def test_s11_errors_name_no_paths(shared):
    home = str(shared.home)
    for method, path, body in (("POST", "/api/show", {"model": "x"}), ("POST", "/api/copy", {"source": "x", "destination": "y"}),
                               ("DELETE", "/api/delete", {"model": "replay"}), ("GET", "/api/tags", None),
                               ("POST", "/api/show", {"model": GOOD, "verbose": True}),
                               ("POST", f"/api/blobs/sha256:{HEX}", {})):
        answer = requests.request(method, shared.server.url + path, json=body, timeout=10)
        assert home not in answer.text and "/" + "home" not in answer.text


def test_s11_a_broken_store_says_so_without_a_path(watched):
    (watched.home / "manifests" / "good" / "1b.json").write_text("{")
    for method, path, body in (("GET", "/api/tags", None), ("POST", "/api/show", {"model": "x"}),
                               ("POST", "/api/generate", {"model": "x", "prompt": "y"})):
        answer = requests.request(method, watched.server.url + path, json=body, timeout=10)
        assert answer.status_code == 500 and "log" in answer.json()["error"]
        assert str(watched.folder) not in answer.text
        watched.server.wait_logged(str(watched.home))
    assert watched.server.post("/api/generate", {"model": "replay", "prompt": "x", "stream": False}).status_code == 200


def test_s11_a_store_that_somebody_changes_stalls_nobody(watched):
    """As a pull does in another process, for as long as it downloads."""
    (watched.home / "lock").touch()
    with open(watched.home / "lock") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        answers = [watched.server.post("/api/copy", {"source": GOOD, "destination": "two"}),
                   requests.delete(watched.server.url + "/api/delete", json={"model": GOOD}, timeout=10),
                   requests.post(f"{watched.server.url}/api/blobs/sha256:{hashlib.sha256(b'x').hexdigest()}", data=b"x",
                                 timeout=10)]
        for answer in answers:
            assert answer.status_code == 503 and "try again" in answer.json()["error"], answer.text
            assert int(answer.headers["retry-after"]) >= 1
        assert requests.get(watched.server.url + "/api/tags", timeout=10).status_code == 200
    assert watched.server.post("/api/copy", {"source": GOOD, "destination": "two"}).status_code == 200


def test_s11_names_of_generation_requests_read_no_manifests(tmp_path):
    """Else any client makes the threads that tokenise read the whole store, once per request."""
    home = tmp_path / "home"
    add_model(home, "other:1b", b"other", aliases=["nick"])
    server = serve_with_store(tmp_path, home, HELLO)
    try:
        with Watch(home / "manifests" / "other") as watch:
            begin = time.monotonic()
            for _ in range(50):
                stored = server.post("/api/generate", {"model": "Nick", "prompt": "x"})
                assert stored.status_code == 400 and "in the store" in stored.json()["error"]
            assert watch.events() == []
            for i in range(50):
                assert server.post("/api/generate", {"model": f"x{i}", "prompt": "x"}).status_code == 404
            reads = [event for event in watch.events() if event[0] == "1b.json"]
            assert len(reads) <= 2 + (time.monotonic() - begin)
        # What another process adds is known soon after the first request for it.
        add_model(home, "late", b"late")
        wait_until(lambda: server.post("/api/generate", {"model": "late", "prompt": "x"}).status_code == 400,
                   what="the server sees a model that came later")
    finally:
        assert server.stop() == 0
        server.close()


def test_s11_the_served_model_is_not_deleted(tmp_path, default_model):
    home = tmp_path / "home"
    digest = add_model(home, "mine:q4", Path(default_model).read_bytes())
    server = Server([program("omnibus"), "serve", "mine:q4", "--max-model-len", "256"],
                    env={**os.environ, "OMNIBUS_HOME": str(home)})
    try:
        def delete(name):
            return requests.delete(server.url + "/api/delete", json={"model": name}, timeout=10)

        def ask(name):
            return server.post("/api/generate", {"model": name, "prompt": "hi", "stream": False,
                                                 "options": {"num_predict": 2}})

        refused = delete("mine:q4")
        assert refused.status_code == 409 and "being served" in refused.json()["error"]
        assert server.post("/api/copy", {"source": "mine:q4", "destination": "copy"}).status_code == 200
        # A further name of the file that is served means it, at once.
        assert ask("copy").status_code == 200 and ask("copy").json()["model"] == "copy"
        add_model(home, "other", b"another file")
        assert server.post("/api/copy", {"source": "other", "destination": "mine:q4"}).status_code == 409
        assert delete("copy").status_code == 200 and ask("copy").status_code == 404
        assert delete("mine:q4").status_code == 409
        assert (home / "blobs" / f"sha256-{digest}").exists()
    finally:
        assert server.stop() == 0
        server.close()
