"""F18: the disk is full, the home is read-only, memory runs out. Descriptors running out: F10."""

import hashlib
import json
import os
import resource
import subprocess
import time

import pytest
import requests

from harness.admin import admin_place
from harness.process import virtual_bytes
from harness.raw import connect, read_answer, request_bytes
from harness.script import HELLO
from harness.server import Server, replay_command
from harness.wait import wait_until

LOST_LINES = 30_000  # more than the queue of the log holds


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 1 MiB, writable or not."""
    folder = tmp_path / "disk"
    folder.mkdir()
    made = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)], capture_output=True)
    if made.returncode != 0:
        pytest.skip("mounting a tmpfs is not allowed here")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder):
    fd = os.open(folder / "filler", os.O_WRONLY | os.O_CREAT)
    try:
        while True:
            os.write(fd, b"x" * 4096)
    except OSError:
        os.close(fd)


@pytest.fixture
def start(tmp_path):
    started = []

    def start(home, *flags, **env):
        path = tmp_path / "script"
        path.write_text(HELLO)
        started.append(Server(replay_command(path, *flags), env={**os.environ, "OMNIBUS_HOME": str(home), **env}))
        return started[-1]

    yield start
    for server in started:
        server.stop()
        server.close()


def add_blob(server, data):
    digest = hashlib.sha256(data).hexdigest()
    return requests.post(f"{server.url}/api/blobs/sha256:{digest}", data=data, timeout=30)


def test_f18_disk_full_for_the_home(start, small_disk):
    server = start(small_disk)
    assert add_blob(server, b"small").status_code == 201
    answer = add_blob(server, b"large" * 300_000)
    assert answer.status_code >= 500 and answer.json()["error"], answer.text
    server.assert_serves()
    # What failed left nothing behind: there is room for another.
    assert add_blob(server, b"other").status_code == 201
    fill(small_disk)
    assert add_blob(server, b"none is left").status_code >= 500
    server.assert_serves()
    assert server.stop() == 0


def test_f18_start_on_a_full_disk(start, small_disk):
    """The admin socket needs no block on tmpfs but its folder does: served all the same, with a line at most."""
    fill(small_disk)
    server = start(small_disk / "home")
    server.assert_serves()
    if admin_place(server) == "off":
        server.wait_logged("there are no admin routes")
    assert server.stop() == 0


def test_f18_read_only_home(start, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    server = start(small_disk / "home")
    assert admin_place(server) == "off"
    server.wait_logged("Read-only file system")
    assert server.log().count("there are no admin routes") == 1
    server.assert_serves()
    assert add_blob(server, b"x").status_code >= 500
    server.assert_serves()
    assert server.stop() == 0


def test_f18_read_only_home_and_a_place_that_was_asked_for(tmp_path, small_disk):
    """What was asked for by name and cannot be had ends the start, and says which flag to change."""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    path = tmp_path / "script"
    path.write_text(HELLO)
    command = [*replay_command(path, "--admin-listen", f"unix:{small_disk}/a.sock"), "--port", "0"]
    refused = subprocess.run(command, capture_output=True, text=True, timeout=30, stdin=subprocess.DEVNULL)
    assert refused.returncode == 1 and "--admin-listen" in refused.stderr and "Read-only" in refused.stderr


def test_f18_a_log_on_a_full_disk(tmp_path, small_disk):
    fill(small_disk)
    path, out = tmp_path / "script", tmp_path / "out"
    path.write_text(HELLO)
    command = [*replay_command(path, "--log-level", "debug"), "--port", "0"]
    env = {**os.environ, "OMNIBUS_HOME": str(tmp_path / "home")}
    with open(small_disk / "log", "wb") as log, open(out, "wb") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=log, stdin=subprocess.DEVNULL, env=env)
    try:
        url = wait_until(lambda: address_in(out), 30, "the start")
        body = {"messages": [{"role": "user", "content": "hello"}]}
        for _ in range(20):
            answer = requests.post(url + "/v1/chat/completions", json=body, timeout=10)
            assert answer.json()["choices"][0]["message"]["content"] == "Hello world!"
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_f18_nobody_reads_the_log(tmp_path, figures):
    """stderr is a pipe whose reader stands still: requests go on, the oldest lines are dropped, and the log says so."""
    path, out = tmp_path / "script", tmp_path / "out"
    path.write_text(HELLO)
    command = [*replay_command(path, "--log-level", "debug", "--log-format", "json"), "--port", "0"]
    env = {**os.environ, "OMNIBUS_HOME": str(tmp_path / "home")}
    with open(out, "wb") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env)
    try:
        url = wait_until(lambda: address_in(out), 30, "the start")
        session, slowest = requests.Session(), 0
        body = {"messages": [{"role": "user", "content": "hello"}]}
        ids = {"X-Request-Id": "x" * 120}

        def ask():
            answer = session.post(url + "/v1/chat/completions", json=body, headers=ids, timeout=20)
            assert answer.json()["choices"][0]["message"]["content"] == "Hello world!"
            return answer.elapsed.total_seconds()

        for _ in range(300):  # more than a pipe holds
            slowest = max(slowest, ask())
        figures.bar("slowest of 300 answers with an unread log", slowest * 1e3, 200, "ms")
        lines = LOST_LINES
        dropped = 0
        while not dropped and lines:  # cheap lines, until the queue is full, too
            for _ in range(500):
                session.get(url + "/livez", headers=ids, timeout=20)
            lines -= 500
            dropped = value_of(session.get(url + "/metrics", timeout=20).text, "omnibus_log_lines_dropped_total")
        assert dropped > 0
        ask()
        assert session.get(url + "/livez", timeout=20).status_code == 200
        text = read_until(process.stderr, b"log lines were dropped")
        assert b"log lines were dropped: stderr was not read in time" in text
    finally:
        process.terminate()
        rest = process.stderr.read()
        assert process.wait(20) == 0
    for line in (text + rest).splitlines():
        json.loads(line)


def test_f18_a_log_that_is_never_read_does_not_keep_the_process(tmp_path, figures):
    path, out = tmp_path / "script", tmp_path / "out"
    path.write_text(HELLO)
    command = [*replay_command(path, "--log-level", "debug"), "--port", "0"]
    env = {**os.environ, "OMNIBUS_HOME": str(tmp_path / "home")}
    with open(out, "wb") as stdout:
        process = subprocess.Popen(command, stdout=stdout, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL, env=env)
    try:
        url = wait_until(lambda: address_in(out), 30, "the start")
        for _ in range(600):
            requests.get(url + "/livez", headers={"X-Request-Id": "x" * 120}, timeout=20)
        started = time.monotonic()
        process.terminate()
        assert process.wait(30) == 0
        figures.bar("exit with an unread log in", time.monotonic() - started, 3, "s")
    finally:
        process.kill()
        process.stderr.close()


def address_in(out):
    lines = [line.split() for line in out.read_text().splitlines()]
    return next((line[1] for line in lines if line[:1] == ["address"]), None)


def value_of(metrics, name):
    return next((float(line.split()[1]) for line in metrics.splitlines() if line.startswith(name + " ")), 0)


def read_until(stream, text):
    data = b""
    while text not in data:
        more = os.read(stream.fileno(), 1 << 16)
        assert more, "the log ended"
        data += more
    return data


def test_f18_out_of_memory(start, tmp_path, figures):
    """Address space for small requests only: a large one is 503, or its connection ends; the server goes on."""
    # One arena: others have address space in hand, in which a large body would find room.
    server = start(tmp_path / "home", MALLOC_ARENA_MAX="1")
    for _ in range(5):
        server.assert_serves()
    pid = server.process.pid
    old = resource.prlimit(pid, resource.RLIMIT_AS)
    resource.prlimit(pid, resource.RLIMIT_AS, (virtual_bytes(pid) + (4 << 20), old[1]))
    seen = []
    body = b'{"prompt": "' + b"a" * (12 << 20) + b'"}'
    for _ in range(5):
        with connect(server, 30) as connection:
            try:
                connection.sendall(request_bytes("POST", "/tokenize", body=body))
            except ConnectionError:
                pass
            seen.append(read_answer(connection)[0])
        server.assert_serves()
    figures.note(f"12 MiB bodies without memory for them: {seen}")
    assert set(seen) <= {0, 503} and 503 in seen
    resource.prlimit(pid, resource.RLIMIT_AS, old)
    answer = requests.post(server.url + "/tokenize", data=body, timeout=60)
    assert answer.status_code == 200
    assert server.stop() == 0
