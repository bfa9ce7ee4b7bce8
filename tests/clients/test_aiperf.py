"""aiperf, NVIDIA's load generator, unmodified, against the real program: it ends well and its own counts are what was
asked for. It checks shapes, tokens and time stamps of every answer by itself."""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import requests

from harness.clients import KEY, model_name, start_real_server, tokens_of_chat
from harness.script import says, script
from harness.server import program

ROOT = Path(__file__).resolve().parents[2]
REQUESTS, CONCURRENCY, INPUT_TOKENS, OUTPUT_TOKENS = 24, 4, 64, 16
# For the comparison with `omnibus bench serve`.
ROUNDS, STEP_MS = 3, 20


@pytest.fixture(scope="module")
def tokenizer_folder(default_model, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokenizer")
    subprocess.run(
        [sys.executable, str(ROOT / "tests/oracles/tokenizer_folder.py"), "--gguf", default_model, "--out", str(folder)],
        check=True, timeout=120,
    )
    return folder


def test_its_tokenizer_is_ours(real, tokenizer_folder):
    from tokenizers import Tokenizer

    theirs = Tokenizer.from_file(str(tokenizer_folder / "tokenizer.json"))
    for text in ("Hello world, 123 buses!", "\n\n  def f(x):\n\treturn x**2", "Überraschung: 東京 🙂", "a" * 300):
        ours = requests.post(
            real.url + "/tokenize", json={"prompt": text, "add_special_tokens": False}, headers={"X-Api-Key": KEY},
            timeout=10,
        ).json()["tokens"]
        assert theirs.encode(text, add_special_tokens=False).ids == ours


@pytest.fixture(scope="module")
def profile(real, tokenizer_folder, tmp_path_factory):
    def profile(*flags, server=real, seed=7):
        """(exit code, its summary, its records of single requests, what it printed)"""
        out = tmp_path_factory.mktemp("aiperf")
        command = [
            str(Path(sys.executable).parent / "aiperf"), "profile", "--model", model_name(server), "--url", server.url,
            "--api-key", KEY, "--tokenizer", str(tokenizer_folder), "--isl", str(INPUT_TOKENS), "--osl",
            str(OUTPUT_TOKENS), "--request-count", str(REQUESTS), "--concurrency", str(CONCURRENCY), "--random-seed",
            str(seed), "--extra-inputs", "ignore_eos:true", "--ui", "none", "--no-gpu-telemetry", "--output-artifact-dir",
            str(out), *flags,
        ]
        environment = {k: v for k, v in os.environ.items() if k != "HF_HUB_OFFLINE"}
        run = subprocess.run(command, capture_output=True, text=True, timeout=300, env=environment, cwd=out)
        printed = (run.stdout + run.stderr)[-4000:]
        summary = json.loads(next(out.rglob("profile_export_aiperf.json")).read_text()) if run.returncode == 0 else {}
        records = [
            json.loads(line) for path in out.rglob("profile_export.jsonl") for line in path.read_text().splitlines()
        ]
        return run.returncode, summary, records, printed

    return profile


@pytest.mark.parametrize(
    "flags",
    [
        ("--endpoint-type", "chat", "--streaming"),
        ("--endpoint-type", "chat", "--streaming", "--use-server-token-count"),
        ("--endpoint-type", "completions"),
    ],
    ids=" ".join,
)
def test_counts_are_what_was_asked_for(profile, real, flags):
    before = real.metric("vllm:generation_tokens_total")
    code, summary, records, printed = profile(*flags)
    assert code == 0, printed
    assert summary["request_count"]["avg"] == REQUESTS, printed
    assert "error_request_count" not in summary or summary["error_request_count"]["avg"] == 0, printed
    # It counts the tokens of the answer's text, where a control token is no text and neighbours may merge, unless told
    # to believe the server.
    counted = summary["output_sequence_length"]["avg"]
    assert abs(counted - OUTPUT_TOKENS) <= (0 if "--use-server-token-count" in flags else 1), printed
    assert len(records) == REQUESTS and all(not record.get("error") for record in records)
    # As many tokens as the server counted.
    assert real.metric("vllm:generation_tokens_total") - before == REQUESTS * OUTPUT_TOKENS
    # Its prompts are of 64 tokens by its own count; the server adds the chat template's.
    lengths = summary["input_sequence_length"]
    assert INPUT_TOKENS - 4 <= lengths["avg"] <= INPUT_TOKENS + 40, lengths
    if "--streaming" in flags:
        assert summary["time_to_first_token"]["min"] > 0 and summary["inter_token_latency"]["avg"] > 0


def bench_serve(server, seed):
    """The result file of `omnibus bench serve` with the settings that aiperf has here."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        command = [
            program("omnibus"), "bench", "serve", "--base-url", server.url, "--model", model_name(server),
            "--backend", "openai-chat", "--num-prompts", str(REQUESTS), "--max-concurrency", str(CONCURRENCY),
            "--random-input-len", str(INPUT_TOKENS), "--random-output-len", str(OUTPUT_TOKENS), "--ignore-eos",
            "--seed", str(seed), "--result-filename", str(path),
        ]  # fmt: skip
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=300, env={**os.environ, "OPENAI_API_KEY": KEY}
        )
        assert run.returncode == 0, run.stdout + run.stderr
        return json.loads(path.read_text())


# aiperf's name, ours: what it calls inter token latency is the time per output token.
FIGURES = {
    "output_token_throughput": ("output_throughput", "tok/s"),
    "request_throughput": ("request_throughput", "/s"),
    "time_to_first_token": ("mean_ttft_ms", "ms"),
    "inter_token_latency": ("mean_tpot_ms", "ms"),
    "request_latency": ("mean_e2el_ms", "ms"),
}


# What the server says of the same requests.
SERVERS_OWN = {
    "time_to_first_token": "vllm:time_to_first_token_seconds",
    "inter_token_latency": "vllm:request_time_per_output_token_seconds",
    "request_latency": "vllm:e2e_request_latency_seconds",
}


def figures_of_aiperf(profile, server, seed):
    code, summary, _, printed = profile(
        "--endpoint-type", "chat", "--streaming", "--use-server-token-count", "--num-conversations", str(REQUESTS),
        server=server, seed=seed,
    )  # fmt: skip
    assert code == 0, printed
    assert summary["request_count"]["avg"] == REQUESTS and summary["output_sequence_length"]["avg"] == OUTPUT_TOKENS
    return {name: summary[name]["avg"] for name in FIGURES}


def figures_of_bench_serve(_, server, seed):
    result = bench_serve(server, seed)
    assert result["completed"] == REQUESTS and result["failed"] == 0
    assert result["total_output_tokens"] == REQUESTS * OUTPUT_TOKENS
    return {name: result[key] for name, (key, _) in FIGURES.items()}


def in_turns(profile, server):
    """(aiperf's figures, ours), of each round. Both ask for chat, streamed, over kept connections, of a server that is warm;
    each run has its own seed, or the server's cache would have the prompts of the round before."""
    bench_serve(server, 99)
    # What the chat template puts in front is common to all, and the cache's.
    common = tokens_of_chat(server, {"role": "user", "content": "x"})

    def run(take, seed):
        def totals():
            sums = {name: server.metric(metric + "_sum") for name, metric in SERVERS_OWN.items()}
            counts = {name: server.metric(f"vllm:{name}_total") for name in ("prompt_tokens", "prompt_tokens_cached")}
            return {**sums, **counts}

        before = totals()
        figures = take(profile, server, seed)
        after = totals()
        prompts, cached = (after[name] - before[name] for name in ("prompt_tokens", "prompt_tokens_cached"))
        assert cached <= common * REQUESTS
        # By the vocabulary that both count with; the scripted model has one of bytes.
        assert model_name(server) == "replay" or abs(prompts / REQUESTS - (INPUT_TOKENS + common - 1)) <= 4
        for name in SERVERS_OWN:
            figures[f"{name}, server's"] = (after[name] - before[name]) * 1e3 / REQUESTS
        return figures

    sides = figures_of_aiperf, figures_of_bench_serve
    rounds = []
    for i in range(ROUNDS):
        got = {take: run(take, 100 + i) for take in (sides if i % 2 == 0 else sides[::-1])}
        rounds.append(tuple(got[take] for take in sides))
    return rounds


def show(rounds, capsys):
    with capsys.disabled():
        print(f"\n{'median (least to most)':34}{'aiperf':>28}{'bench serve':>28}")
        for name in rounds[0][0]:
            sides = [[got[side][name] for got in rounds] for side in (0, 1)]
            shown = [f"{statistics.median(side):.2f} ({min(side):.2f} to {max(side):.2f})" for side in sides]
            print(f"{name:34}{shown[0]:>28}{shown[1]:>28} {FIGURES.get(name, ('', 'ms'))[1]}")


def test_bench_serve_and_aiperf_agree_where_the_time_is_known(profile, own_replay, capsys):
    """A server whose steps take STEP_MS and no processor: what both say is held against that, and against each other."""
    server = own_replay(script(says("x", eos=False, delay_ms=STEP_MS)), "--max-num-seqs", "8")
    rounds = in_turns(profile, server)
    show(rounds, capsys)
    for name in FIGURES:
        theirs, ours = (statistics.median(got[side][name] for got in rounds) for side in (0, 1))
        assert 0.8 < theirs / ours < 1.25, name
        steps = {"time_to_first_token": 1, "inter_token_latency": 1, "request_latency": OUTPUT_TOKENS}.get(name, 0)
        assert min(theirs, ours) > 0.9 * steps * STEP_MS, name


@pytest.fixture
def on_a_core_of_its_own(default_model):
    """The real program on the last core, and whoever asks it on the others: its speed is the same for all of them."""
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        pytest.skip("needs two cores: on one, a client slows the server down")
    os.sched_setaffinity(0, cores[-1:])  # inherited by what is started
    try:
        server = start_real_server(default_model)
        os.sched_setaffinity(0, cores[:-1])
        yield server
    finally:
        os.sched_setaffinity(0, cores)
    assert server.stop() == 0, server.log()
    server.close()


def test_bench_serve_and_aiperf_agree(profile, on_a_core_of_its_own, capsys):
    """The default model: against each other, and against the server's own times of the same requests."""
    rounds = in_turns(profile, on_a_core_of_its_own)
    show(rounds, capsys)
    for name in FIGURES:
        theirs, ours = (statistics.median(got[side][name] for got in rounds) for side in (0, 1))
        assert 0.8 < theirs / ours < 1.25, name
    for name in SERVERS_OWN:
        theirs, ours = (statistics.median(got[side][name] / got[side][f"{name}, server's"] for got in rounds) for side in (0, 1))
        assert 0.95 < ours < 1.25 and 0.8 < theirs / ours < 1.25, (name, theirs, ours)
