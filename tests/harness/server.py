"""Servers under test: started on a free loopback port, stopped with SIGTERM, log kept for failures."""

import json
import os
import re
import signal
import subprocess
import tempfile
from pathlib import Path

import requests

from harness.wait import wait_until

BUILD_DIR = Path(os.environ.get("OMNIBUS_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))


def program(name):
    path = BUILD_DIR / name
    assert path.exists(), f"{path} is missing: build first (scripts/build.sh), or set OMNIBUS_BUILD_DIR"
    return str(path)


class Server:
    """A running server. `url` has no slash at its end."""

    verify = True  # with TLS: path of the certificate to trust

    def __init__(self, command, env=None, port=0):
        self.folder = tempfile.TemporaryDirectory(prefix="omnibus-test-")
        if env is None and Path(command[0]).name == "omnibus-replay":
            # A store of its own: routes that copy and delete models must not reach the developer's.
            env = {**os.environ, "OMNIBUS_HOME": str(Path(self.folder.name) / "store")}
        self.log_path = Path(self.folder.name) / "log"
        self.out_path = Path(self.folder.name) / "out"
        with open(self.log_path, "wb") as log, open(self.out_path, "wb") as out:
            self.process = subprocess.Popen(
                [*command, "--port", str(port)], stdout=out, stderr=log, stdin=subprocess.DEVNULL, env=env
            )
        try:
            self.url = wait_until(self._address, 60, f"start of {' '.join(command)}\n{self.log_path}")
        except AssertionError as error:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{error}\n{self.log()}") from None
        self.port = int(self.url.rsplit(":", 1)[1])

    def _address(self):
        if self.process.poll() is not None:
            raise AssertionError(f"exit code {self.process.returncode} at start:\n{self.log()}")
        found = re.search(r"^address\s+(https?://\S+)$", self.out_path.read_text(), re.MULTILINE)
        return found and found.group(1)

    def log(self):
        return self.log_path.read_text(errors="replace")[-4000:]

    def wait_logged(self, text):
        """A thread of its own writes the log: what is said there may come after the answer."""
        wait_until(lambda: text in self.log(), 20, f"a line of the log with: {text}")

    def json_log(self):
        """Every line of the log, of a server with --log-format json: whole lines, each an object with ts, level, msg."""
        text = self.log_path.read_text(encoding="utf-8")
        lines = [json.loads(line) for line in text[: text.rfind("\n") + 1].splitlines()]
        for line in lines:
            assert list(line)[:3] == ["ts", "level", "msg"] and line["level"] in ("debug", "info", "warning", "error"), line
            assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", line["ts"]), line
        return lines

    def logged_requests(self, request_id=None):
        """The log's lines about requests that ended; of this id, if one is given."""
        lines = [line for line in self.json_log() if line["msg"] == "request finished"]
        return [line for line in lines if request_id is None or line["request_id"] == request_id]

    def terminate(self):
        self.process.send_signal(signal.SIGTERM)

    def stop(self, limit=15):
        """Exit code after SIGTERM."""
        if self.process.poll() is None:
            self.terminate()
        try:
            code = self.process.wait(limit)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"still alive {limit} s after SIGTERM\n{self.log()}") from None
        return code

    def close(self):
        self.folder.cleanup()

    # Requests.

    def post(self, path, body, **kwargs):
        return requests.post(
            self.url + path, json=body, timeout=kwargs.pop("timeout", 30), verify=self.verify, **kwargs
        )

    def chat(self, text="hi", **fields):
        return self.post("/v1/chat/completions", {"messages": [{"role": "user", "content": text}], **fields})

    def metric(self, name, **labels):
        """Sum of the samples of `name` whose labels include `labels`."""
        total = 0.0
        for line in requests.get(self.url + "/metrics", timeout=10, verify=self.verify).text.splitlines():
            found = re.fullmatch(rf"{re.escape(name)}(?:\{{(.*)\}})? (\S+)", line)
            if found and all(f'{k}="{v}"' in (found.group(1) or "") for k, v in labels.items()):
                total += float(found.group(2))
        return total

    def idle(self):
        return (
            self.metric("omnibus_open_prompt_tokens") == 0
            and self.metric("vllm:num_requests_running") == 0
            and self.metric("vllm:num_requests_waiting") == 0
            and self.metric("vllm:kv_cache_usage_perc") == 0
        )

    def assert_serves(self):
        """A plain request gets its answer: whatever came before harmed nobody."""
        answer = self.chat("hi", max_tokens=4)
        assert answer.status_code == 200, answer.text


def replay_command(script_path, *flags):
    return [program("omnibus-replay"), "--script", str(script_path), *flags]
