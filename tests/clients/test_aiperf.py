"""aiperf, NVIDIA's load generator, unmodified, against the real program: it ends well and its own counts are what was
asked for. It checks shapes, tokens and time stamps of every answer by itself."""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
import requests

from harness.clients import KEY, model_name
from harness.server import program

ROOT = Path(__file__).resolve().parents[2]
REQUESTS, CONCURRENCY, INPUT_TOKENS, OUTPUT_TOKENS = 24, 4, 64, 16


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
    def profile(*flags):
        """(exit code, its summary, its records of single requests, what it printed)"""
        out = tmp_path_factory.mktemp("aiperf")
        command = [
            str(Path(sys.executable).parent / "aiperf"), "profile", "--model", model_name(real), "--url", real.url,
            "--api-key", KEY, "--tokenizer", str(tokenizer_folder), "--isl", str(INPUT_TOKENS), "--osl",
            str(OUTPUT_TOKENS), "--request-count", str(REQUESTS), "--concurrency", str(CONCURRENCY), "--random-seed",
            "7", "--extra-inputs", "ignore_eos:true", "--ui", "none", "--no-gpu-telemetry", "--output-artifact-dir",
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


def bench_serve(server, *flags):
    """The result file of `omnibus bench serve` with the settings that aiperf has here."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.json"
        command = [
            program("omnibus"), "bench", "serve", "--base-url", server.url, "--model", model_name(server),
            "--num-prompts", str(REQUESTS), "--max-concurrency", str(CONCURRENCY), "--random-input-len",
            str(INPUT_TOKENS), "--random-output-len", str(OUTPUT_TOKENS), "--ignore-eos", "--result-filename", str(path),
            *flags,
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


def test_bench_serve_and_aiperf_agree(profile, real, capsys):
    """Same server, same settings, one after the other: counts are equal; times, of a machine that is not idle, are near."""
    code, theirs, _, printed = profile("--endpoint-type", "chat", "--streaming", "--use-server-token-count")
    assert code == 0, printed
    ours = bench_serve(real, "--backend", "openai-chat")
    assert theirs["request_count"]["avg"] == ours["completed"] == REQUESTS and ours["failed"] == 0
    assert theirs["output_sequence_length"]["avg"] * REQUESTS == ours["total_output_tokens"] == REQUESTS * OUTPUT_TOKENS
    with capsys.disabled():
        print(f"\n{'':26}{'aiperf':>12}{'bench serve':>12}")
        for name, (key, unit) in FIGURES.items():
            print(f"{name:26}{theirs[name]['avg']:12.2f}{ours[key]:12.2f} {unit}")
    for name, (key, _) in FIGURES.items():
        assert 1 / 5 < theirs[name]["avg"] / ours[key] < 5, name
