"""The llm command (package `llm`), unmodified, against the real program: models of extra-openai-models.yaml, and the
ad-hoc `llm openai endpoint`."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner
from llm.cli import cli

from harness.clients import FRANCE, KEY, MAX_MODEL_LEN, model_name, tokens_of_chat

pytestmark = pytest.mark.filterwarnings("ignore")  # its own, of its own dependencies


@pytest.fixture(scope="module")
def name(real):
    return model_name(real)


@pytest.fixture(scope="module")
def home(real, name, tmp_path_factory):
    """LLM_USER_PATH with a chat model "omni" and a completion model "omni-text"."""
    home = tmp_path_factory.mktemp("llm")
    base = {"model_name": name, "api_base": real.url + "/v1", "api_key_name": "omnibus"}
    # YAML reads JSON.
    models = [
        {"model_id": "omni", **base},
        {"model_id": "omni-text", "completion": True, **base},
        {"model_id": "omni-wrong", "model_name": "nobody", **{k: base[k] for k in ("api_base", "api_key_name")}},
    ]
    (home / "extra-openai-models.yaml").write_text(json.dumps(models))
    (home / "keys.json").write_text(json.dumps({"omnibus": KEY}))
    return home


@pytest.fixture(scope="module")
def llm(home):
    """The command in this process: its import alone takes a second."""

    def llm(*arguments, stdin=""):
        result = CliRunner().invoke(cli, arguments, input=stdin, env={"LLM_USER_PATH": str(home)})
        return subprocess.CompletedProcess(arguments, result.exit_code, result.stdout, result.stderr)

    return llm


GREEDY = ("-o", "temperature", "0", "-o", "max_tokens", "12")


@pytest.fixture(scope="module")
def whole(llm):
    """The greedy answer, not streamed."""
    answer = llm("-m", "omni", FRANCE, "--no-stream", "--no-log", *GREEDY)
    assert answer.returncode == 0, answer.stderr
    assert answer.stdout.strip()
    return answer.stdout


def test_the_program_itself(home, whole):
    answer = subprocess.run(
        [str(Path(sys.executable).parent / "llm"), "-m", "omni", FRANCE, "--no-log", *GREEDY],
        capture_output=True, text=True, timeout=60, stdin=subprocess.DEVNULL,
        env={**os.environ, "LLM_USER_PATH": str(home)},
    )
    assert answer.returncode == 0 and answer.stdout == whole, answer.stderr


def test_streamed_is_the_whole(llm, whole):
    answer = llm("-m", "omni", FRANCE, "--no-log", *GREEDY)
    assert answer.returncode == 0 and answer.stdout == whole, answer.stderr
    assert llm("-m", "omni", "--async", FRANCE, "--no-log", *GREEDY).stdout == whole
    assert llm("-m", "omni", "--no-log", *GREEDY, stdin=FRANCE).stdout == whole


def test_usage_system_and_options(llm, real):
    system = {"role": "system", "content": "You are terse."}
    count = tokens_of_chat(real, system, {"role": "user", "content": FRANCE})
    for more in ((), ("--no-stream",)):
        answer = llm("-m", "omni", "-s", system["content"], FRANCE, "--no-log", "-u", *GREEDY, *more)
        assert answer.returncode == 0 and f"Token usage: {count} input" in answer.stderr, answer.stderr
    drawn = lambda seed: llm(
        "-m", "omni", FRANCE, "--no-log", "-o", "temperature", "1", "-o", "seed", seed, "-o", "max_tokens", "12"
    ).stdout
    assert drawn("5") == drawn("5") != drawn("6")


def test_continue_a_conversation(llm, whole, real):
    first = llm("-m", "omni", FRANCE, *GREEDY)
    second = llm("-c", "And of Italy?", *GREEDY, "-u")
    assert first.returncode == 0 and second.returncode == 0, second.stderr
    count = tokens_of_chat(
        real,
        {"role": "user", "content": FRANCE},
        {"role": "assistant", "content": first.stdout.removesuffix("\n")},
        {"role": "user", "content": "And of Italy?"},
    )
    assert f"Token usage: {count} input" in second.stderr
    logged = json.loads(llm("logs", "--json", "-n", "2").stdout)
    assert [entry["prompt"] for entry in logged] == [FRANCE, "And of Italy?"]
    assert logged[0]["response"] == whole.removesuffix("\n") and logged[1]["input_tokens"] == count


def test_chat_in_the_terminal(llm):
    answer = llm("chat", "-m", "omni", *GREEDY, stdin=f"{FRANCE}\nAnd of Italy?\nexit\n")
    assert answer.returncode == 0 and "Chatting with omni" in answer.stdout, answer.stderr


def test_completion_model(llm):
    prompt = "The step of boiling water is:"
    streamed = llm("-m", "omni-text", prompt, "--no-log", *GREEDY)
    answer = llm("-m", "omni-text", prompt, "--no-log", "--no-stream", *GREEDY)
    assert answer.returncode == 0 and answer.stdout.strip() and streamed.stdout == answer.stdout, answer.stderr


def test_endpoint(llm, real, name, whole):
    models = llm("openai", "endpoint", real.url + "/v1", "--models", "--key", KEY)
    assert models.returncode == 0 and name in models.stdout, models.stderr
    answer = llm("openai", "endpoint", real.url + "/v1", "-m", name, "--key", KEY, *GREEDY, FRANCE)
    assert answer.returncode == 0 and answer.stdout == whole, answer.stderr


def test_errors_are_said(llm, home):
    answer = llm("-m", "omni-wrong", FRANCE, "--no-log")
    assert answer.returncode == 1 and "nobody" in answer.stderr
    answer = llm("-m", "omni", "--key", "sk-wrong", FRANCE, "--no-log")
    assert answer.returncode == 1 and "key" in answer.stderr.lower()
    answer = llm("-m", "omni", "word " * 2 * MAX_MODEL_LEN, "--no-log")
    assert answer.returncode == 1 and str(MAX_MODEL_LEN) in answer.stderr
    answer = llm("-m", "omni", "--schema", "name, age int", "Invent a dog", "--no-log")
    assert answer.returncode == 1 and ("response_format" in answer.stderr or "schema" in answer.stderr)
