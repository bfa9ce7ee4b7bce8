"""F15, the L form alone: two replicas behind nginx are restarted in turns, over and over, and no client sees an error."""

import concurrent.futures
import json
import os
import shutil
import socket
import subprocess
import time

import pytest
import requests

from harness.figures import percentile
from harness.script import script, says
from harness.server import Server, replay_command
from harness.wait import wait_until

SECONDS = int(os.environ.get("OMNIBUS_F15_SECONDS", 300))
RATE = 20  # requests per second, sent whether or not the answers come
TOKENS = 40
SCRIPT = script(says(*["a"] * TOKENS, delay_ms=10), max_model_len=1000, num_blocks=4000)

# docs/operations.md says why. Not retried is what has begun to arrive at the client: nginx can't.
CONFIG = """
daemon off;
pid {folder}/pid;
error_log {folder}/errors warn;
worker_processes 1;
events {{}}
http {{
  access_log off;
  client_body_temp_path {folder}/body;
  proxy_temp_path {folder}/proxy;
  fastcgi_temp_path {folder}/fastcgi;
  uwsgi_temp_path {folder}/uwsgi;
  scgi_temp_path {folder}/scgi;
  upstream replicas {{
    server 127.0.0.1:{first} max_fails=0;
    server 127.0.0.1:{second} max_fails=0;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://replicas;
      proxy_set_header Host $host;
      proxy_buffering off;
      proxy_next_upstream error http_503 non_idempotent;
    }}
  }}
}}
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


@pytest.fixture
def replicas(tmp_path):
    """Two servers on ports that stay theirs; restart(i) ends one well and starts another in its place."""
    path = tmp_path / "script"
    path.write_text(SCRIPT)
    ports = free_ports(3)
    servers = [None, None]

    def start(index):
        servers[index] = Server(replay_command(path, "--drain-delay", "1", "--max-num-seqs", "64"), port=ports[index])

        def ready():
            return requests.get(f"{servers[index].url}/readyz", timeout=5).status_code == 200

        wait_until(ready, 30, "ready")

    def restart(index):
        old = servers[index]
        assert old.stop(60) == 0, old.log()
        old.close()
        start(index)

    start(0)
    start(1)
    yield ports, restart
    for server in servers:
        server.stop()
        server.close()


@pytest.fixture
def proxy(replicas, tmp_path):
    """The URL of nginx in front of both."""
    program = shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
    assert program, "nginx is missing: scripts/install_deps.sh soak"
    (first, second, port), _ = replicas
    config = tmp_path / "nginx.conf"
    config.write_text(CONFIG.format(folder=tmp_path, first=first, second=second, port=port))
    process = subprocess.Popen([program, "-p", str(tmp_path), "-e", str(tmp_path / "errors"), "-c", str(config)])
    url = f"http://127.0.0.1:{port}"

    def listens():
        assert process.poll() is None, (tmp_path / "errors").read_text()
        with socket.socket() as probe:
            return probe.connect_ex(("127.0.0.1", port)) == 0

    wait_until(listens, 20, "nginx")
    yield url
    process.terminate()
    process.wait(20)


def ask(url, stream):
    """What is wrong with the answer, or None; and how long it took."""
    began = time.monotonic()
    body = {"prompt": "hi", "max_tokens": 100, "stream": stream}
    try:
        answer = requests.post(f"{url}/v1/completions", json=body, timeout=60)
        if answer.status_code != 200:
            return f"{answer.status_code} {answer.text[:300]}", 0
        if stream:
            *events, last = [line[6:] for line in answer.text.split("\n") if line.startswith("data: ")]
            if last != "[DONE]":
                return f"the stream ends with {last[:300]}", 0
            parts = [json.loads(event) for event in events]
        else:
            parts = [answer.json()]
        text = "".join(choice["text"] for part in parts for choice in part["choices"])
        wrong = None if text == "a" * TOKENS else f"other text: {text!r}"
    except (requests.RequestException, ValueError, KeyError) as error:
        wrong = repr(error)
    return wrong, time.monotonic() - began


def test_f15_rolling_restart(replicas, proxy, figures):
    _, restart = replicas
    restarts = 0
    began = time.monotonic()

    def load():
        with concurrent.futures.ThreadPoolExecutor(64) as pool:
            answers = []
            for number in range(SECONDS * RATE):
                time.sleep(max(0.0, began + number / RATE - time.monotonic()))  # the schedule of an open loop
                answers.append(pool.submit(ask, proxy, number % 2 == 0))
            return [answer.result() for answer in answers]

    with concurrent.futures.ThreadPoolExecutor(1) as loader:
        loading = loader.submit(load)
        while not loading.done():
            restart(restarts % 2)
            restarts += 1
        answers = loading.result()
    errors = [wrong for wrong, _ in answers if wrong]
    figures.note(f"{len(answers)} requests through {restarts} restarts, {len(errors)} errors, "
                 f"p99 {percentile([took for _, took in answers], 0.99) * 1e3:.0f} ms")
    assert restarts >= 4
    assert not errors, f"{len(errors)} of {len(answers)}: {errors[:5]}"
