"""The programs' command lines: help, version, wrong flags, wrong models."""

import os
import re
import subprocess

import pytest

from harness.server import program


def run(*arguments, name="omnibus", stdin=None, env=None, timeout=60):
    return subprocess.run(
        [program(name), *arguments], capture_output=True, text=True, timeout=timeout,
        env={**os.environ, **(env or {})},
        **({"stdin": subprocess.DEVNULL} if stdin is None else {"input": stdin}),
    )


def test_version():
    result = run("version")
    assert result.returncode == 0 and result.stdout.startswith("omnibus 0.")
    assert run("--version").stdout == result.stdout


COMMON = {"help", "config"}
LOG = {"log-level", "log-format"}
ENGINE = {
    "max-model-len", "max-num-batched-tokens", "numerics", "threads", "cpu-isa", "kv-cache-memory",
    "tensor-parallel-size", "pipeline-parallel-size", "seed", "chat-template",
}  # fmt: skip
FLAGS = {
    "serve": COMMON | LOG | ENGINE | {
        "host", "port", "max-body-bytes", "max-connections", "header-timeout", "body-timeout", "keep-alive-timeout",
        "drain-timeout", "served-model-name", "api-key", "api-key-file", "allow-unauthenticated",
        "grpc-port", "admin-listen", "admin-api-key", "stall-timeout", "drain-delay", "scheduling-policy",
        "enable-prefix-caching", "async-scheduling", "step-timeout", "max-waiting-tokens", "fair-sharing",
        "max-waiting-requests", "any-model", "strict-fields", "trust-request-chat-template", "max-num-seqs",
        "max-logprobs", "prefill-assistant", "reasoning-parser", "reasoning-field", "generation-config",
        "ollama-port", "default-chat-template-kwargs", "default-max-tokens", "slots",
        "allowed-hosts", "allowed-origins", "ssl-certfile", "ssl-keyfile", "ssl-ca-certs",
    },
    "run": COMMON | LOG | ENGINE | {"system", "temperature", "top-p", "top-k", "max-tokens"},
    "bench serve": COMMON | {
        "base-url", "backend", "endpoint", "model", "header", "ssl-ca-certs", "insecure", "request-timeout",
        "num-prompts", "num-warmups", "request-rate", "burstiness", "max-concurrency", "seed", "dataset-name",
        "random-input-len", "random-output-len", "random-range-ratio", "random-prefix-len", "num-prefixes", "stream",
        "ignore-eos", "temperature", "extra-body", "percentile-metrics", "metric-percentiles", "goodput", "progress",
        "save-result", "save-detailed", "result-filename",
    },
    "pull": COMMON, "list": COMMON, "show": COMMON, "version": COMMON,
}  # fmt: skip


@pytest.mark.parametrize("command", FLAGS)
def test_help(command):
    result = run(*command.split(), "--help")
    assert result.returncode == 0 and not result.stderr
    shown = re.findall(r"^ +(?:-\w, ?)?--(?:\[no-\])?([a-z-]+)", result.stdout, re.MULTILINE)
    assert sorted(shown) == sorted(FLAGS[command])


def test_help_names_every_command():
    result = run("--help")
    assert result.returncode == 0 and not result.stderr
    for command in FLAGS:
        assert re.search(rf"^ +{command.split()[0]}\b", result.stdout, re.MULTILINE), command


@pytest.mark.parametrize(
    "arguments,named",
    [
        (["serve", "--no-such-flag"], "no-such-flag"),
        (["serve", "--port", "70000"], "port"),
        (["serve", "--port", "x"], "port"),
        (["serve", "--max-num-seqs", "0"], "max-num-seqs"),
        (["serve", "--tensor-parallel-size", "2"], "tensor-parallel-size"),
        (["serve", "--numerics", "f99"], "numerics"),
        (["serve", "--host", "0.0.0.0"], "--api-key"),
        (["serve", "--host", "127.0.0.300"], "not an address"),
        (["run", "m", ""], "PROMPT: is empty"),
        (["show"], "MODEL"),
        (["dance"], "dance"),
        (["bench"], "bench serve"),
        (["bench", "dance"], "bench dance"),
        (["bench", "serve", "--request-rate", "0"], "request-rate"),
        (["bench", "serve", "--goodput", "ttft"], "goodput"),
    ],
)
def test_wrong_command_lines_are_named(arguments, named):
    result = run(*arguments)
    assert result.returncode == 2 and named in result.stderr and "\n" == result.stderr[-1]


@pytest.mark.parametrize("command", ["serve", "run", "show"])
def test_unknown_model(command, tmp_path):
    port = ["--port", "0"] if command == "serve" else []
    result = run(command, "no-such-model", *port, env={"OMNIBUS_HOME": str(tmp_path)})
    assert result.returncode == 1 and "no-such-model" in result.stderr


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x03\0\0\0" + b"\xff" * 16, b"not a model at all" * 100])
def test_hostile_model_file(content, tmp_path):
    path = tmp_path / "bad.gguf"
    path.write_bytes(content)
    for command in (["serve", "--port", "0"], ["show"]):
        result = run(*command, str(path), timeout=10)
        assert result.returncode == 1 and "bad.gguf" in result.stderr


def test_list_of_an_empty_store(tmp_path):
    result = run("list", env={"OMNIBUS_HOME": str(tmp_path)})
    assert result.returncode == 0 and "omnibus pull" in result.stdout


def test_replay_names_what_is_wrong_with_a_script(tmp_path):
    path = tmp_path / "script"
    for text, named in (("[1]", "line 1"), ('{"pieces":["a"]}\n{"when":"x"}', "line 2"), ('{"tokens":[99999]}', "99999")):
        path.write_text(text)
        result = run("--script", str(path), "--port", "0", name="omnibus-replay")
        assert result.returncode == 1 and named in result.stderr


def test_port_in_use(hello, tmp_path):
    path = tmp_path / "script"
    path.write_text('{"pieces":["a"]}')
    result = run("--script", str(path), "--port", str(hello.port), name="omnibus-replay")
    assert result.returncode == 1 and str(hello.port) in result.stderr


def test_one_port_for_both_listeners_is_refused_before_the_model_is_loaded(tmp_path):
    result = run("serve", "no-such-model", "--port", "18123", "--ollama-port", "18123", env={"OMNIBUS_HOME": str(tmp_path)})
    assert result.returncode == 1 and "--ollama-port: 18123" in result.stderr, result.stderr


def test_an_address_is_tried_before_the_model_is_loaded(hello, tmp_path):
    # The model does not exist: had it been looked for first, it would be what is named.
    for arguments in (["--port", str(hello.port)], ["--host", "192.0.2.1", "--api-key", "k"]):
        result = run("serve", "no-such-model", *arguments, env={"OMNIBUS_HOME": str(tmp_path)})
        assert result.returncode == 1 and "Cannot listen on" in result.stderr, result.stderr


@pytest.mark.parametrize("command", ["serve", "run", "show"])
def test_a_model_that_is_no_file(command, tmp_path):
    os.mkfifo(tmp_path / "fifo.gguf")
    port = ["--port", "0"] if command == "serve" else []
    for path, kind in ((tmp_path, "a directory"), (tmp_path / "fifo.gguf", "a FIFO")):
        result = run(command, str(path), *port, timeout=10)
        assert result.returncode == 1 and f"'{path}' is {kind}" in result.stderr, result.stderr


def test_help_is_a_word():
    assert run("help").stdout == run("--help").stdout
    assert run("help", "serve").stdout == run("serve", "--help").stdout


def test_a_variable_that_means_nothing_is_named():
    result = run("version", env={"OMNIBUS_PROT": "1", "OMNIBUS_PORT": "1"})
    assert result.returncode == 0 and "OMNIBUS_PROT" in result.stderr and "OMNIBUS_PORT" not in result.stderr


def test_a_served_name_that_is_no_text(tmp_path):
    path = tmp_path / "script"
    path.write_text('{"pieces":["a"]}')
    result = run("--script", str(path), "--port", "0", "--served-model-name", b"a\xff", name="omnibus-replay")
    assert result.returncode == 1 and "--served-model-name" in result.stderr and "not UTF-8" in result.stderr


@pytest.mark.parametrize("flag", ["--config", "--api-key-file", "--ssl-certfile", "--chat-template"])
@pytest.mark.parametrize("kind", ["pipe", "device", "folder", "huge"])
def test_a_file_to_read_is_a_regular_file_of_sane_size(flag, kind, tmp_path):
    path = tmp_path / "file"
    why = "not a regular file"
    if kind == "pipe":
        os.mkfifo(path)
    elif kind == "device":
        path = "/dev/zero"
    elif kind == "folder":
        path, why = tmp_path, "it is a directory"
    else:
        path.write_bytes(b"#" * ((1 << 20) + 1))
        why = "larger than 1 MiB"
    script = tmp_path / "script"
    script.write_text('{"pieces":["a"]}')
    also = ["--ssl-keyfile", str(path)] if flag == "--ssl-certfile" else []
    result = run("--script", str(script), "--port", "0", flag, str(path), *also, name="omnibus-replay", timeout=20)
    assert result.returncode in (1, 2) and why in result.stderr and str(path) in result.stderr, result.stderr


def test_an_empty_configuration_file_is_named(tmp_path):
    path = tmp_path / "empty.toml"
    path.write_text("")
    result = run("serve", "no-such-model", "--port", "0", "--config", str(path), env={"OMNIBUS_HOME": str(tmp_path)})
    assert result.returncode == 2 and "empty" in result.stderr and str(path) in result.stderr
    path.write_text("# nothing yet\n")
    result = run("serve", "no-such-model", "--port", "0", "--config", str(path), env={"OMNIBUS_HOME": str(tmp_path)})
    assert result.returncode == 1 and "no-such-model" in result.stderr and "--config" not in result.stderr
