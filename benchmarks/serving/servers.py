"""omnibus and llama-server with equal means, and `omnibus bench serve` run against them. Standard library only."""

import contextlib
import http.client
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


class Server:
    """A server on a free port of loopback, its output in a file that is shown when it fails to start."""

    def __init__(self, name, argv):
        self.name, self.port = name, free_port()
        self.log = tempfile.TemporaryFile()
        command = [str(word) for word in argv] + ["--port", str(self.port)]
        environment = {k: v for k, v in os.environ.items() if not k.startswith(("OMNIBUS_", "LLAMA_"))}
        self.process = subprocess.Popen(command, stdout=self.log, stderr=self.log, stdin=subprocess.DEVNULL, env=environment)

    @property
    def url(self):
        return f"http://127.0.0.1:{self.port}"

    def wait_ready(self, seconds=180):
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self.process.poll() is not None:
                break
            with contextlib.suppress(OSError, http.client.HTTPException):
                connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=2)
                connection.request("GET", "/health")
                if connection.getresponse().status == 200:
                    return self
            time.sleep(0.1)
        self.log.seek(0)
        log = self.log.read().decode(errors="replace")[-2000:]
        self.stop()
        sys.exit(f"{self.name} was not ready within {seconds} s\n{log}")

    def cpu_seconds(self):
        """What its threads have used of processors so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def stop(self):
        self.process.terminate()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def omnibus(arguments, slots, context, batch=None, extra=()):
    """`batch`: most tokens in a step; None: the program's default."""
    return Server(
        "omnibus",
        [arguments.omnibus, "serve", arguments.model, "--threads", arguments.threads, "--max-num-seqs", slots,
         "--max-model-len", context, "--served-model-name", "m", "--log-level", "warning", "--admin-listen", "off",
         *(["--max-num-batched-tokens", batch] if batch else []), *extra],
    )  # fmt: skip


def llama(arguments, slots, context, batch=None):
    """Its cache of prompts in memory is off: no prompt comes twice, and keeping them would only cost it time. What its
    slots hold it may use again, as omnibus may its blocks: both do so by default."""
    return Server(
        "llama.cpp",
        [arguments.llama, "-m", arguments.model, "-t", arguments.threads, "-tb", arguments.threads, "-np", slots,
         "-c", slots * context, "-fa", "on", "--no-webui", "--cache-ram", 0, "-a", "m",
         *(["-b", batch, "-ub", batch] if batch else [])],
    )  # fmt: skip


def start_bench(arguments, server, *flags):
    """`omnibus bench serve` under way; finish_bench() gives its result file."""
    handle, path = tempfile.mkstemp(suffix=".json")
    os.close(handle)
    command = [arguments.omnibus, "bench", "serve", "--base-url", server.url, "--model", "m", "--ignore-eos",
               "--temperature", 0, "--no-progress", "--result-filename", path, *flags]  # fmt: skip
    process = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    return process, Path(path), server


# Tokens of a prompt that a server may have from one before without any having come twice: omnibus keeps whole blocks,
# llama-server single tokens, so that a common start of text and an equal first word count there.
CACHED_BY_CHANCE = {"omnibus": 0, "llama.cpp": 2}


def check_result(result, name):
    """What is wrong with a run as a measurement; "" when nothing is."""
    if result["failed"] > 0 or result["answers_of_another_length"] > 0 or result["answers_without_usage"] > 0:
        return "not every answer came whole, in the length that was asked for, and counted"
    cached, by_chance = result["total_cached_tokens"], CACHED_BY_CHANCE[name] * result["completed"]
    if cached > by_chance:
        return f"{cached} of {result['total_input_tokens']} prompt tokens came from a cache; by chance it may be {by_chance}"
    return ""


def finish_bench(started):
    process, path, server = started
    printed, _ = process.communicate()
    result = json.loads(path.read_text() or "{}")
    path.unlink()
    wrong = check_result(result, server.name) if process.returncode == 0 else f"exit code {process.returncode}"
    if wrong:
        sys.exit(f"bench serve against {server.name}: {wrong}\n{printed}")
    return result


def run_bench(arguments, server, *flags):
    return finish_bench(start_bench(arguments, server, *flags))
