"""F18: the disk is full, the home is read-only, memory runs out. Descriptors running out: F10."""

import hashlib
import os
import resource
import subprocess

import pytest
import requests

from harness.admin import admin_place
from harness.process import virtual_bytes
from harness.raw import connect, read_answer, request_bytes
from harness.script import HELLO
from harness.server import Server, replay_command
from harness.wait import wait_until


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
    assert server.log().count("there are no admin routes") == (admin_place(server) == "off")
    assert server.stop() == 0


def test_f18_read_only_home(start, small_disk):
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    server = start(small_disk / "home")
    assert admin_place(server) == "off"
    assert server.log().count("there are no admin routes") == 1 and "Read-only file system" in server.log()
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
        def address():
            lines = [line.split() for line in out.read_text().splitlines()]
            return next((line[1] for line in lines if line[:1] == ["address"]), None)

        url = wait_until(address, 30, "the start")
        body = {"messages": [{"role": "user", "content": "hello"}]}
        for _ in range(20):
            answer = requests.post(url + "/v1/chat/completions", json=body, timeout=10)
            assert answer.json()["choices"][0]["message"]["content"] == "Hello world!"
    finally:
        process.terminate()
        assert process.wait(20) == 0


def test_f18_out_of_memory(start, tmp_path):
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
    print(f"F18: 12 MiB bodies without memory for them: {seen}")
    assert set(seen) <= {0, 503} and 503 in seen
    resource.prlimit(pid, resource.RLIMIT_AS, old)
    answer = requests.post(server.url + "/tokenize", data=body, timeout=60)
    assert answer.status_code == 200
    assert server.stop() == 0
