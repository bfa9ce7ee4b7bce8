"""The admin listener: where it is, who gets in, what its routes do; and the probes while the model is loaded."""

import os
import signal
import socket
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
import requests

from harness.admin import Admin, admin_place, admin_socket, ask
from harness.script import HELLO
from harness.server import Server, replay_command
from harness.wait import wait_until

KEY = "sk-admin-secret"


@pytest.fixture(scope="module")
def served(pool):
    return pool(HELLO)


def test_the_socket_is_for_this_user_alone(own_replay):
    server = own_replay(HELLO)
    path = admin_socket(server)
    assert path.name == f"admin-{server.port}.sock" and path.parent.name == "run"
    assert stat.S_ISSOCK(path.stat().st_mode) and stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert server.stop() == 0
    assert not path.exists()


def test_status(served):
    assert served.chat("hello").status_code == 200
    status = Admin(served).status()
    assert status["version"] and status["phase"] == "serving" and status["live"] and status["ready"]
    assert status["reason"] is None and status["uptime_s"] >= 0 and status["steps"] > 0
    assert status["requests"] == {"running": 0, "waiting": 0}
    assert status["kv_blocks"]["total"] > status["kv_blocks"]["used"] == 0
    assert status["config"] == {"generation": 1, "needs_restart": [], "last_error": None}


def test_probes_and_metrics_are_there_too(served):
    admin = Admin(served)
    for path in ("/livez", "/readyz", "/health", "/v1/health", "/ping"):
        assert admin.get(path).status == 200, path
    metrics = admin.get("/metrics")
    assert metrics.status == 200 and "vllm:num_requests_running" in metrics.text
    assert "omnibus_config_generation 1" in metrics.text


def test_inference_is_not_there(served):
    for method, path in (("POST", "/v1/chat/completions"), ("GET", "/v1/models"), ("GET", "/openapi.json")):
        assert ask(admin_socket(served), method, path, b"{}" if method == "POST" else None).status == 404


def test_log_level(own_replay):
    server = own_replay(HELLO)
    admin = Admin(server)
    assert admin.status()["log_level"] == "info"
    assert admin.post("/log_level", {"level": "debug"}).json() == {"level": "debug"}
    requests.get(server.url + "/v1/models", timeout=10)
    wait_until(lambda: "method=GET handler=/v1/models status=200" in server.log(), 5, "a debug line")
    for body in (b"", b"{}", b"[]", b'{"level": 3}', b'{"level": "loud"}', b'{"level": "info", "x": 1}', b"\xff"):
        answer = admin.post("/log_level", body)
        assert answer.status == 400 and answer.json()["error"]["type"] == "invalid_request_error", body
    assert admin.status()["log_level"] == "debug"
    assert admin.get("/log_level").status == 405


def test_reset_prefix_cache(served):
    assert Admin(served).post("/reset_prefix_cache").status == 200
    served.assert_serves()


def test_the_body_has_a_small_limit(served):
    assert Admin(served).post("/log_level", b"x" * 100_000).status == 413


def test_off(own_replay):
    server = own_replay(HELLO, "--admin-listen", "off")
    assert admin_place(server) == "off"
    assert server.stop() == 0


def test_a_path_of_ones_own_replaces_a_dead_socket_only(own_replay, tmp_path):
    path = tmp_path / "a.sock"
    dead = socket.socket(socket.AF_UNIX)
    dead.bind(str(path))
    dead.close()  # the file stays, nobody listens
    server = own_replay(HELLO, "--admin-listen", f"unix:{path}")
    assert Admin(server).path == path and Admin(server).status()["ready"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    # A living one is not taken from its owner, a file is never removed.
    plain = tmp_path / "file"
    plain.write_text("precious")
    for taken, reason in ((path, "another process listens"), (plain, "no socket"), (tmp_path / "none" / "x", "No such file"),
                          (tmp_path / ("x" * 120), "more than 107 bytes")):
        refused = start_and_fail(tmp_path, "--admin-listen", f"unix:{taken}")
        assert refused.returncode == 1 and "--admin-listen" in refused.stderr and reason in refused.stderr, refused.stderr
    assert plain.read_text() == "precious" and Admin(server).status()["ready"]
    assert server.stop() == 0 and not path.exists()


def start_and_fail(tmp_path, *flags):
    path = tmp_path / "script"
    path.write_text(HELLO)
    env = {**os.environ, "OMNIBUS_HOME": str(tmp_path / "home")}
    return subprocess.run([*replay_command(path, *flags), "--port", "0"], capture_output=True, text=True, timeout=30,
                          stdin=subprocess.DEVNULL, env=env)


@pytest.mark.parametrize("place,reason", [
    ("127.0.0.1:0", "--admin-api-key"), ("0.0.0.0:0", "not on loopback"), ("10.0.0.1:80", "not on loopback"),
    ("[::]:80", "not on loopback"), ("localhost", "none of"), ("unix:", "none of"), ("127.0.0.1:x", "none of"),
    ("127.0.0.1:70000", "none of"), ("::1:80", "none of"), ("", "--admin-listen"), ("on", "none of"),
])
def test_wrong_places_are_named(tmp_path, place, reason):
    refused = start_and_fail(tmp_path, f"--admin-listen={place}")
    assert refused.returncode == 2 and "--admin-listen" in refused.stderr and reason in refused.stderr, refused.stderr


def test_over_tcp_it_wants_an_admin_key(own_replay):
    server = own_replay(HELLO, "--admin-listen", "127.0.0.1:0", "--admin-api-key", KEY, "--api-key", "sk-infer")
    url = admin_place(server)
    assert url.startswith("http://127.0.0.1:")
    for headers, code in (({}, 401), ({"X-Api-Key": "sk-infer"}, 401), ({"X-Api-Key": KEY}, 200),
                          ({"Authorization": f"Bearer {KEY}"}, 200)):
        assert requests.get(url + "/status", headers=headers, timeout=10).status_code == code
        assert requests.post(url + "/reset_prefix_cache", headers=headers, timeout=10).status_code == code
    assert requests.get(url + "/nothing", timeout=10).status_code == 401
    for open_path in ("/livez", "/readyz", "/metrics"):
        assert requests.get(url + open_path, timeout=10).status_code == 200
    # Pages of other sites and names that are made to point here are kept out.
    right = {"X-Api-Key": KEY}
    assert requests.get(url + "/status", headers={**right, "Origin": "http://evil"}, timeout=10).status_code == 403
    assert requests.get(url + "/status", headers={**right, "Host": "evil.example"}, timeout=10).status_code == 403
    # The admin key opens nothing on the public listener.
    assert requests.get(server.url + "/v1/models", headers=right, timeout=10).status_code == 401
    assert server.stop() == 0
    assert KEY not in server.log()


def test_one_key_cannot_be_both(tmp_path):
    refused = start_and_fail(tmp_path, "--api-key", "same", "--admin-api-key", "same")
    assert refused.returncode == 2 and "--admin-api-key: key 1 of 1 is there twice" in refused.stderr


@pytest.mark.parametrize("spoil", ["file for a folder", "home is a file"])
def test_a_place_that_cannot_be_made_costs_a_line(tmp_path, spoil):
    home = tmp_path / "home"
    if spoil == "home is a file":
        home.write_text("x")
    else:
        home.mkdir()
        (home / "run").write_text("x")
    path = tmp_path / "script"
    path.write_text(HELLO)
    server = Server(replay_command(path), env={**os.environ, "OMNIBUS_HOME": str(home)})
    try:
        assert admin_place(server) == "off"
        assert server.log().count("there are no admin routes") == 1
        server.assert_serves()
        assert server.stop() == 0
    finally:
        server.stop()
        server.close()


# While the model is loaded: its script comes through a pipe that the test writes to when it likes.


class Loading:
    def __init__(self, folder, *flags):
        self.fifo = folder / "script"
        os.mkfifo(self.fifo)
        self.log_path, self.out_path = folder / "log", folder / "out"
        env = {**os.environ, "OMNIBUS_HOME": str(folder / "home")}
        command = [*replay_command(self.fifo, *flags), "--port", "0"]
        with open(self.log_path, "wb") as log, open(self.out_path, "wb") as out:
            self.process = subprocess.Popen(command, stdout=out, stderr=log, stdin=subprocess.DEVNULL, env=env)
        self.url = wait_until(self.address, 30, "listening")
        self.port = int(self.url.rsplit(":", 1)[1])
        self.socket = folder / "home" / "run" / f"admin-{self.port}.sock"

    def address(self):
        assert self.process.poll() is None, self.log_path.read_text()
        for line in self.log_path.read_text().splitlines():
            if "listening on http" in line:
                return line.split("listening on ")[1].split(",")[0]
        return None

    def finish(self, text):
        self.fifo.write_text(text)

    def get(self, path, **kwargs):
        return requests.get(self.url + path, timeout=10, **kwargs)


@pytest.fixture
def loading():
    started = []
    with tempfile.TemporaryDirectory(prefix="omnibus-test-") as folder:  # short, for the path of a socket

        def start(*flags):
            started.append(Loading(Path(folder), *flags))
            return started[-1]

        yield start
        for server in started:
            if server.process.poll() is None:
                server.process.kill()
            server.process.wait()


def test_probes_while_loading(loading):
    server = loading()
    assert server.get("/livez").status_code == 200
    for path in ("/readyz", "/health", "/v1/health", "/ping"):
        answer = server.get(path)
        error = answer.json()["error"]
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1", path
        assert error["code"] == 503 and error["reason"] == "loading" and error["type"] == "unavailable_error"
    for method, path in (("GET", "/v1/models"), ("POST", "/v1/chat/completions"), ("GET", "/"), ("POST", "/api/chat"),
                         ("POST", "/completion"), ("GET", "/nothing")):
        answer = requests.request(method, server.url + path, json={} if method == "POST" else None, timeout=10)
        assert answer.status_code == 503 and answer.headers["retry-after"] == "1", path
        assert "oading model" in answer.text, path
    assert server.get("/metrics").status_code == 200
    status = ask(server.socket, "GET", "/status").json()
    assert status["phase"] == "loading" and status["live"] and not status["ready"] and status["reason"] == "loading"
    for path in ("/drain", "/reload", "/reset_prefix_cache"):
        assert ask(server.socket, "POST", path, b"").status == 503
    server.finish(HELLO)
    wait_until(lambda: server.get("/readyz").status_code == 200, 30, "ready")
    assert server.get("/v1/models").status_code == 200 and server.get("/nothing").status_code == 404
    assert ask(server.socket, "GET", "/status").json()["phase"] == "serving"
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(15) == 0
    assert not server.socket.exists()


def test_keys_count_while_loading(loading):
    server = loading("--api-key", "sk-k")
    assert server.get("/v1/models").status_code == 401
    assert server.get("/v1/models", headers={"X-Api-Key": "sk-k"}).status_code == 503
    assert server.get("/livez").status_code == 200


@pytest.mark.parametrize("stop", [signal.SIGTERM, signal.SIGINT])
def test_a_stop_signal_while_loading_ends_at_once(loading, stop):
    server = loading()
    server.process.send_signal(signal.SIGHUP)  # waits for the end of the load
    assert server.get("/livez").status_code == 200
    server.process.send_signal(stop)
    assert server.process.wait(5) == 128 + stop


def test_a_hangup_while_loading_is_a_reload_afterwards(loading):
    server = loading()
    server.process.send_signal(signal.SIGHUP)
    server.finish(HELLO)
    wait_until(lambda: "configuration 2 holds" in server.log_path.read_text(), 30, "the reload")


def test_a_load_that_fails_ends_the_process(loading):
    server = loading()
    server.finish("not a script")
    assert server.process.wait(15) == 1
    assert "line 1" in server.log_path.read_text() and not server.socket.exists()

