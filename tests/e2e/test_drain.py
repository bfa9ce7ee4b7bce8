"""The end of a server that nobody is using: F14 (tests/fault) has the others."""

import signal
import subprocess
import time

import requests

from harness.raw import connect, request_bytes
from harness.script import HELLO, script, says
from harness.server import program
from harness.wait import wait_until


def test_who_reads_the_log_may_leave(tmp_path):
    path = tmp_path / "script"
    path.write_text(HELLO)
    command = [program("omnibus-replay"), "--script", str(path), "--port", "0", "--log-level", "debug"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    lines = iter(process.stdout.readline, b"")
    url = next(line.split()[1] for line in lines if line.startswith(b"address")).decode()
    process.stdout.close()
    process.stderr.close()
    body = {"messages": [{"role": "user", "content": "hi"}]}
    for _ in range(3):
        assert requests.post(url + "/v1/chat/completions", json=body, timeout=10).status_code == 200
    process.send_signal(signal.SIGTERM)
    assert process.wait(20) == 0


def test_an_engine_that_fails_meanwhile_is_no_clean_end(own_replay):
    doomed = says("x", eos=False, delay_ms=20, fault={"at": 100, "kind": "twice"})
    server = own_replay(script(doomed), "--drain-timeout", "60")
    with connect(server, 60) as stream:
        body = b'{"prompt": "hi", "stream": true, "max_tokens": 1000}'
        stream.sendall(request_bytes("POST", "/v1/completions", body=body))
        data = stream.recv(65536)
        server.terminate()
        wait_until(lambda: "draining" in server.log(), 20, "the drain")
        while more := stream.recv(65536):
            data += more
    assert b"the engine failed" in data, data[-500:]
    assert server.process.wait(20) == 1
    assert "the engine failed while the server drained" in server.log()


def test_idle_keep_alive_connections_do_not_hold_the_end_up(own_replay):
    server = own_replay(HELLO, "--drain-timeout", "20")
    idle = [connect(server) for _ in range(5)]
    for connection in idle:
        connection.sendall(request_bytes())
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    started = time.monotonic()
    assert server.stop() == 0
    assert time.monotonic() - started < 3
