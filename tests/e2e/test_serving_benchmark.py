"""benchmarks/serving: the comparison with a peer, with omnibus itself in the peer's place. What the machine measures is of no
account here; that both sides are asked the same, and nothing twice, is."""

import importlib
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from harness.server import program

FOLDER = Path(__file__).resolve().parents[2] / "benchmarks/serving"
# llama-server's flags, as far as the comparison gives them, in omnibus' words.
STAND_IN = """#!{python}
import os, sys
flags = dict(zip(sys.argv[1:], sys.argv[2:]))
slots = int(flags["-np"])
os.execv({omnibus!r}, ["omnibus", "serve", flags["-m"], "--port", flags["--port"], "--max-num-seqs", str(slots),
                       "--max-model-len", str(int(flags["-c"]) // slots), "--served-model-name", flags["-a"],
                       "--admin-listen", "off"])
"""


@pytest.fixture
def compare(monkeypatch):
    monkeypatch.syspath_prepend(FOLDER)
    for name in ("compare", "servers"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module("compare")


class Recorded:
    """A server's place, and the load that it is asked for: (words of the flags, seed) of each run."""

    all = []

    def __init__(self, name, *_):
        self.name, self.runs, self.cpu = name, [], 0.0
        Recorded.all.append(self)

    def wait_ready(self):
        return self

    def cpu_seconds(self):
        self.cpu += 1
        return self.cpu

    def stop(self):
        pass

    def take(self, flags):
        words = [str(flag) for flag in flags]
        at = words.index("--seed")
        self.runs.append((tuple(words[:at] + words[at + 2 :]), int(words[at + 1])))
        requests = [{"sent": 0.1 * i, "ended": 50.0, "outputs": [0.1, 0.2, 49.0]} for i in range(2)]
        if "--max-concurrency" in words and words[words.index("--max-concurrency") + 1] == "1":
            requests = [{"sent": 1.0, "ended": 2.0, "outputs": [2.0]}]
        return {
            "total_output_tokens": 10, "total_input_tokens": 10, "total_cached_tokens": 0, "output_throughput": 1.0,
            "median_ttft_ms": 1.0, "p99_itl_ms": 1.0, "monotonic_start": 0.0, "requests": requests,
        }  # fmt: skip


@pytest.mark.parametrize("scenario", ["streams_scenario", "interference_scenario"])
def test_no_prompt_comes_twice(compare, monkeypatch, scenario):
    monkeypatch.setattr(Recorded, "all", [])
    monkeypatch.setattr(compare, "omnibus", lambda *_: Recorded("omnibus"))
    monkeypatch.setattr(compare, "llama", lambda *_: Recorded("llama.cpp"))
    monkeypatch.setattr(compare, "run_bench", lambda a, server, *flags: server.take(flags))
    monkeypatch.setattr(compare, "start_bench", lambda a, server, *flags: server.take(flags))
    monkeypatch.setattr(compare, "finish_bench", lambda started: started)
    monkeypatch.setattr(compare.time, "sleep", lambda seconds: None)
    getattr(compare, scenario)(SimpleNamespace(
        input=8, output=8, streams=[1, 8, 32], pairs=3, rounds=2, fewest=4, long=100, long_prompts=1, running=2,
        stream_tokens=50, interference_pairs=2,
    ))  # fmt: skip
    for server in Recorded.all:
        seeds = [seed for _, seed in server.runs]
        assert len(seeds) == len(set(seeds)) >= 3, server.runs
    # Both sides are asked the same, in whatever order.
    asked = {name: sorted(run for server in Recorded.all if server.name == name for run in server.runs) for name in ("omnibus", "llama.cpp")}
    assert asked["omnibus"] == asked["llama.cpp"]


def test_a_run_that_measures_a_cache_is_an_error(compare):
    check = sys.modules["servers"].check_result
    whole = {
        "failed": 0, "answers_of_another_length": 0, "answers_without_usage": 0, "completed": 10, "total_input_tokens": 1280,
        "total_cached_tokens": 0,
    }  # fmt: skip
    assert check(whole, "omnibus") == check(whole, "llama.cpp") == ""
    assert "16 of 1280 prompt tokens came from a cache" in check({**whole, "total_cached_tokens": 16}, "omnibus")
    assert check({**whole, "total_cached_tokens": 20}, "llama.cpp") == ""
    assert check({**whole, "total_cached_tokens": 21}, "llama.cpp")
    for fault in ("failed", "answers_of_another_length", "answers_without_usage"):
        assert check({**whole, fault: 1}, "llama.cpp")


def test_streams(default_model, tmp_path):
    peer = tmp_path / "llama-server"
    peer.write_text(STAND_IN.format(python=sys.executable, omnibus=program("omnibus")))
    peer.chmod(0o755)
    command = [
        sys.executable, FOLDER / "compare.py", "--omnibus", program("omnibus"), "--llama", peer, "--model", default_model,
        "--scenario", "streams", "--streams", 1, 2, "--pairs", 2, "--rounds", 1, "--fewest", 2, "--input", 40, "--output", 4,
        "--json", tmp_path / "result.json",
    ]  # fmt: skip
    run = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=300)
    assert run.returncode == 0, run.stdout + run.stderr
    assert run.stdout.count("cached 0.00 / 0.00 %") == 4
    table = json.loads((tmp_path / "result.json").read_text())["result"]["streams"]
    for streams in ("1", "2"):
        assert table[streams]["cached_percent"] == {"ours": [0, 0], "peer": [0, 0]}
        row = table[streams]["output_throughput"]
        assert row["ratios"] == pytest.approx([ours / theirs for ours, theirs in zip(row["ours"], row["peer"])])
