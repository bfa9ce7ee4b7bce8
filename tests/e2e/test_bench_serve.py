"""`omnibus bench serve` against servers whose answers are known beforehand: a scripted model, and sockets that fail."""

import contextlib
import json
import os
import re
import signal
import socket
import statistics
import subprocess
import threading

import pytest

from harness.clients import KEY, tokens_of_chat
from harness.script import says, script
from harness.server import program
from harness.tls import Certificate
from harness.wait import wait_until

DELAY_MS = 20
# Each step takes DELAY_MS; the second behaviour gives four tokens a step.
SLOW = script(
    says("x", eos=False, delay_ms=DELAY_MS, k=4, when="four at a time"),
    says("x", eos=False, delay_ms=DELAY_MS),
)


def bench(*arguments, env=None, timeout=120, cwd=None):
    return subprocess.run(
        [program("omnibus"), "bench", "serve", *map(str, arguments)], capture_output=True, text=True, timeout=timeout,
        env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, cwd=cwd,
    )


@pytest.fixture
def measured(tmp_path):
    def measured(url, *arguments, code=0, **more):
        """The result file of a run, and what it printed."""
        path = tmp_path / f"result{len(list(tmp_path.iterdir()))}.json"
        run = bench("--base-url", url, "--result-filename", path, *arguments, **more)
        assert run.returncode == code, run.stdout + run.stderr
        return json.loads(path.read_text()), run.stdout + run.stderr

    return measured


@pytest.fixture
def slow(replay):
    return replay(SLOW, "--max-num-seqs", "8")


@pytest.mark.parametrize("backend", ["openai", "openai-chat"])
def test_times_agree_with_the_script_and_counts_are_exact(slow, measured, backend):
    before = slow.metric("vllm:generation_tokens_total"), slow.metric("vllm:prompt_tokens_total")
    result, printed = measured(
        slow.url, "--backend", backend, "--num-prompts", 12, "--max-concurrency", 4, "--random-input-len", 40,
        "--random-output-len", 16, "--ignore-eos", "--save-detailed",
    )  # fmt: skip
    assert (result["completed"], result["failed"], result["failures"]) == (12, 0, {}), printed
    assert result["total_output_tokens"] == 12 * 16 == slow.metric("vllm:generation_tokens_total") - before[0]
    assert result["total_input_tokens"] == slow.metric("vllm:prompt_tokens_total") - before[1]
    assert result["prompts"] == {"counted": True, "exact": 12}
    assert (result["backend"], result["num_prompts"], result["request_rate"], result["max_concurrency"]) == (backend, 12, "inf", 4)
    if backend == "openai":
        assert result["total_input_tokens"] == 12 * 40
    assert result["max_concurrent_requests"] == 4 and result["answers_of_another_length"] == 0
    # A machine may be slow; a clock is never fast. One step is one token.
    for name in ("ttft", "itl", "tpot", "e2el"):
        low = DELAY_MS * (16 if name == "e2el" else 1)
        assert 0.8 * low <= result[f"median_{name}_ms"] <= 20 * low, (name, result)
    records = result["requests"]
    assert len(records) == 12
    for record in records:
        assert record["sent"] < record["outputs"][0] <= record["outputs"][-1] <= record["ended"]
        assert record["completion_tokens"] == 16 and record["finish_reason"] == "length"
    # The summary is that of the records.
    assert result["mean_ttft_ms"] == pytest.approx(sum(r["outputs"][0] - r["sent"] for r in records) / 12 * 1e3)
    assert result["mean_tpot_ms"] == pytest.approx(sum(r["ended"] - r["outputs"][0] for r in records) / 12 / 15 * 1e3)
    span = max(r["ended"] for r in records) - min(r["sent"] for r in records)
    assert result["output_throughput"] == pytest.approx(12 * 16 / span)
    for shown in ("TTFT", "ITL", "TPOT", "E2EL", "output token throughput", "exact, by the server's /tokenize"):
        assert shown in printed


def test_several_tokens_in_one_event(replay, measured):
    server = replay(script(says("x", eos=False, delay_ms=DELAY_MS, k=4)))
    result, printed = measured(
        server.url, "--num-prompts", 2, "--max-concurrency", 1, "--random-output-len", 32, "--random-input-len", 9,
        "--save-detailed",
    )  # fmt: skip
    assert result["total_output_tokens"] == 64
    # At most a step's tokens in an event: by events there are fewer than by tokens, and the figures tell which is which.
    events = [record["outputs"] for record in result["requests"]]
    assert 16 <= result["output_events"] == sum(map(len, events)) < 64
    assert re.search(rf"tokens per event +{64 / result['output_events']:.2f}\n", printed), printed
    # TPOT is by tokens, ITL by events.
    spans = [(record["ended"] - record["outputs"][0]) * 1e3 for record in result["requests"]]
    assert result["mean_tpot_ms"] == pytest.approx(statistics.mean(span / 31 for span in spans))
    assert result["mean_tpot_ms"] < statistics.mean(span / (len(times) - 1) for span, times in zip(spans, events))
    gaps = [(b - a) * 1e3 for times in events for a, b in zip(times, times[1:])]
    assert result["median_itl_ms"] == pytest.approx(statistics.median(gaps))
    assert result["mean_itl_ms"] == pytest.approx(statistics.mean(gaps))
    # A clock is never fast: 32 tokens are 8 steps, seven of them behind the first token.
    assert min(spans) > 0.8 * 7 * DELAY_MS


def test_answers_that_end_early_are_told(replay, measured):
    server = replay(script(says("a", "b", "c")))
    result, printed = measured(server.url, "--num-prompts", 5, "--random-output-len", 50, "--random-input-len", 5)
    assert result["completed"] == 5 and result["answers_of_another_length"] == 5
    assert "answers of another length" in printed


def test_without_a_stream(slow, measured):
    result, printed = measured(slow.url, "--no-stream", "--num-prompts", 4, "--random-output-len", 8, "--random-input-len", 8)
    assert result["total_output_tokens"] == 32 and result["total_input_tokens"] == 32
    assert 0.8 * 8 * DELAY_MS <= result["median_e2el_ms"] and "mean_ttft_ms" not in result and "TTFT" not in printed


def test_open_loop_arrives_when_it_should(slow, measured):
    result, _ = measured(
        slow.url, "--num-prompts", 20, "--request-rate", 40, "--burstiness", "inf", "--random-output-len", 2,
        "--random-input-len", 4, "--save-detailed",
    )  # fmt: skip
    due = [record["due"] for record in result["requests"]]
    assert due == pytest.approx([i / 40 for i in range(20)], abs=1e-6)
    # Never before its time, however busy the server is.
    assert all(record["sent"] >= record["due"] for record in result["requests"])
    assert result["duration"] >= 19 / 40


def test_closed_loop_keeps_its_limit_and_its_connections(slow, measured):
    result, _ = measured(slow.url, "--num-prompts", 12, "--max-concurrency", 3, "--random-output-len", 2, "--random-input-len", 4)
    assert result["max_concurrent_requests"] == 3 and result["connections"] <= 3 + result["retries"]


def test_warmups_are_not_counted(slow, measured):
    before = slow.metric("vllm:request_success_total")
    result, _ = measured(slow.url, "--num-prompts", 3, "--num-warmups", 2, "--random-output-len", 1, "--random-input-len", 4)
    assert result["completed"] == 3 and slow.metric("vllm:request_success_total") - before == 5


def test_prompts_with_a_prefix_are_as_long_as_asked_for(replay, measured):
    server = replay(script(says("ok")))
    flags = ["--num-prompts", 10, "--random-prefix-len", 24, "--num-prefixes", 2, "--random-input-len", 16, "--random-output-len", 1]
    result, _ = measured(server.url, *flags, "--seed", 5)
    assert result["total_input_tokens"] == 10 * 40 and result["prompts"]["exact"] == 10


def test_goodput(slow, measured):
    flags = ["--num-prompts", 6, "--random-output-len", 4, "--random-input-len", 4]
    result, printed = measured(slow.url, *flags, "--goodput", "ttft:60000", "--goodput", "e2el:60000")
    assert result["good"] == 6 and result["request_goodput"] == pytest.approx(result["request_throughput"])
    result, printed = measured(slow.url, *flags, "--goodput", f"e2el:{DELAY_MS}")
    assert result["good"] == 0 and "0 of 6" in printed


def test_overload_is_counted_by_its_status(own_replay, measured):
    server = own_replay(SLOW, "--max-num-seqs", "1", "--max-waiting-requests", "2")
    result, printed = measured(server.url, "--num-prompts", 30, "--random-output-len", 4, "--random-input-len", 4)
    refused = result["failures"]["http 429"]["count"]
    assert refused > 0 and result["completed"] + refused == 30 == result["completed"] + result["failed"]
    assert "http 429" in printed and result["failures"]["http 429"]["example"]


def test_a_key_is_taken_from_the_environment(own_replay, measured):
    server = own_replay(SLOW, "--api-key", "sk-bench")
    flags = ["--num-prompts", 2, "--random-output-len", 1, "--random-input-len", 4]
    refused = bench("--base-url", server.url, *flags)
    assert refused.returncode == 1 and "401" in refused.stderr
    result, printed = measured(server.url, *flags, env={"OPENAI_API_KEY": "sk-bench"})
    assert result["completed"] == 2
    assert "sk-bench" not in json.dumps(result) + printed
    # Named: nothing is asked before, and each request is refused.
    result, _ = measured(server.url, *flags, "--model", "replay", code=1)
    assert result["failures"]["http 401"]["count"] == 2


class FakeServer:
    """Reads a request's head and body, then does what it is told with the connection."""

    def __init__(self, behave):
        self.behave = behave
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self.listener.getsockname()[1]}"
        self.requests = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                connection, _ = self.listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection):
        with connection, contextlib.suppress(ConnectionError):
            data = b""
            while True:
                while b"\r\n\r\n" not in data:
                    more = connection.recv(65536)
                    if not more:
                        return
                    data += more
                head, data = data.split(b"\r\n\r\n", 1)
                lengths = [line for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")]
                length = int(lengths[0].split(b":")[1]) if lengths else 0
                while len(data) < length:
                    data += connection.recv(65536)
                body, data = data[:length], data[length:]
                self.requests.append((head, body))
                if not self.behave(connection, head.split(b" ")[1].decode(), body):
                    return

    def close(self):
        self.listener.close()


def answer(status="200 OK", kind="text/event-stream", body=b""):
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


def event(text="", finish=None, **more):
    chunk = {"choices": [{"index": 0, "text": text, "finish_reason": finish}], **more}
    return b"data: " + json.dumps(chunk).encode() + b"\n\n"


WHOLE = event("a") + event("b", "length") + b"data: [DONE]\n\n"
FAULTS = {
    "closed in the head": (b"HTTP/1.1 200 OK\r\nContent-", "closed"),
    "closed in the stream": (answer(body=WHOLE)[:-20], "closed"),
    "reset of a chunked stream": (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n5\r\ndata:", "closed",
    ),
    "500": (answer("500 Oops", "application/json", b'{"error":{"message":"broken"}}'), "http 500"),
    "503 without JSON": (answer("503 No", "text/plain", b"later"), "http 503"),
    "not HTTP": (b"hello there\r\n\r\n", "malformed"),
    "not a stream": (answer(kind="application/json", body=b"{}"), "malformed"),
    "not JSON": (answer(body=b"data: {oops\n\n"), "malformed"),
    "no end": (answer(body=event("a")), "malformed"),
    "no choices": (answer(body=b"data: [DONE]\n\n"), "malformed"),
    "an error in the stream": (answer(body=event("a") + b'data: {"error":{"message":"out of luck"}}\n\n'), "error"),
}  # fmt: skip


@pytest.fixture
def fake():
    servers = []

    def start(behave):
        servers.append(FakeServer(behave))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


def behaving(*answers):
    """Gives `answers` to requests for completions, in turn and from the start again; closes where one is a fault."""
    turn = [0]

    def behave(connection, path, body):
        if not path.endswith("/v1/completions"):
            connection.sendall(answer("404 Not Found", "application/json", b"{}"))
            return True
        data, keep = answers[turn[0] % len(answers)]
        turn[0] += 1
        connection.sendall(data)
        return keep

    return behave


FEW = ["--model", "m", "--num-prompts", 4, "--max-concurrency", 1, "--random-input-len", 4, "--random-output-len", 2]


@pytest.mark.parametrize("fault", FAULTS)
def test_faults_are_counted_by_kind(fake, measured, fault):
    data, kind = FAULTS[fault]
    server = fake(behaving((answer(body=WHOLE), True), (data, False)))
    result, printed = measured(server.url, *FEW)
    assert result["completed"] == 2 and result["failed"] == 2, printed
    assert list(result["failures"]) == [kind] and result["failures"][kind]["count"] == 2, printed
    assert kind in printed
    # Without usage: tokens are events, and the report says so. There is no /tokenize either.
    assert result["answers_without_usage"] == 2 and result["total_output_tokens"] == 4
    assert "has no /tokenize" in printed and result["prompts"] == {"counted": False, "exact": 0}


def test_a_connection_that_is_closed_without_an_answer(fake, measured):
    server = fake(behaving((b"", False)))
    result, _ = measured(server.url, *FEW, code=1)
    assert result["failures"]["closed"]["count"] == 4 and result["retries"] == 0


@pytest.mark.parametrize(
    "begins, goes_on, failure",
    [
        (b"data: ", b"x" * 65536, "an event is longer than 1 MiB"),
        (b"", b'data: {"choices":[{"text":"a"}]}\n\n' * 2000, "the answer has more than 1048576 events"),
    ],
    ids=["one event", "events"],
)
def test_an_answer_without_end(fake, measured, begins, goes_on, failure):
    """Given up on after a MiB without a line, or a million small events, not when memory or time has run out."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n" + begins

    def behave(connection, path, body):
        if not path.endswith("/v1/completions"):
            connection.sendall(answer("404 Not Found", "application/json", b"{}"))
            return True
        connection.sendall(head)
        try:
            while True:
                connection.sendall(goes_on)
        except OSError:
            return False

    result, printed = measured(fake(behave).url, "--model", "m", "--num-prompts", 1, "--random-input-len", 4, code=1)
    assert result["failures"] == {"malformed": {"count": 1, "example": failure}}, printed


def test_a_server_does_not_steer_the_terminal(fake, measured):
    server = fake(behaving((answer("500 Oops", "application/json", b'{"error":{"message":"\\u001b[2J\\u009b2J"}}'), True)))
    result, printed = measured(server.url, *FEW, code=1)
    assert "\x1b" not in printed and "\x9b" not in printed and "\\x1b[2J\\xc2\\x9b2J" in printed
    assert result["failures"]["http 500"]["example"] == "\x1b[2J\x9b2J"


def test_no_request_completed_is_a_failure_of_the_run(fake, measured):
    server = fake(behaving((FAULTS["500"][0], True)))
    result, printed = measured(server.url, *FEW, code=1)
    assert result["failures"] == {"http 500": {"count": 4, "example": "broken"}} and "mean_ttft_ms" not in result


def test_a_kept_connection_that_was_closed_is_no_failure(fake, measured):
    server = fake(behaving((answer(body=WHOLE), False)))
    result, printed = measured(server.url, *FEW)
    assert result["completed"] == 4 and result["failed"] == 0 and "sent again" in printed
    # Each later request found the last one's connection closed.
    assert result["retries"] == 3 and result["connections"] == 4


def test_a_request_that_takes_too_long(fake, measured):
    ended = threading.Event()

    def behave(connection, path, body):
        if not path.endswith("/v1/completions"):
            connection.sendall(answer("404 Not Found", "application/json", b"{}"))
            return True
        connection.sendall(answer(body=WHOLE)[:-20])
        ended.wait(60)
        return False

    server = fake(behave)
    result, printed = measured(server.url, *FEW, "--request-timeout", "0.2", code=1)
    ended.set()
    assert result["failures"]["timeout"]["count"] == 4 and "within the time-out" in printed


def test_nobody_listens(measured):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    for flags in ([], ["--model", "m"]):
        refused = bench("--base-url", url, *flags)
        assert refused.returncode == 1 and f"connecting to {url}" in refused.stderr + refused.stdout, refused.stderr


def test_the_request_is_what_was_asked_for(fake, measured):
    server = fake(behaving((answer(body=WHOLE), True)))
    measured(
        server.url + "/api/", *FEW, "--header", "X-Test: yes", "--extra-body", '{"top_k": 5, "temperature": 0.5}',
        "--ignore-eos", "--temperature", "1", env={"OPENAI_API_KEY": "sk-1"},
    )  # fmt: skip
    head, body = server.requests[-1]
    assert head.startswith(b"POST /api/v1/completions HTTP/1.1\r\n")
    assert b"\r\nX-Test: yes\r\n" in head + b"\r\n" and b"\r\nAuthorization: Bearer sk-1" in head
    sent = json.loads(body)
    prompt = sent.pop("prompt")
    assert len(prompt.split()) == 4
    assert sent == {
        "model": "m", "max_tokens": 2, "stream": True, "stream_options": {"include_usage": True}, "temperature": 0.5,
        "ignore_eos": True, "top_k": 5,
    }  # fmt: skip
    prompts = {json.loads(body)["prompt"] for head, body in server.requests if b"/v1/completions" in head}
    assert len(prompts) == 4


def test_prompts_are_exact_for_a_real_vocabulary(real, measured):
    flags = ["--num-prompts", 6, "--random-input-len", 100, "--random-prefix-len", 30, "--random-output-len", 2, "--ignore-eos"]
    key = {"OPENAI_API_KEY": KEY}
    for flag, extra in (("openai", 0), ("openai-chat", tokens_of_chat(real, {"role": "user", "content": "x"}) - 1)):
        result, printed = measured(real.url, *flags, "--backend", flag, env=key)
        assert result["prompts"] == {"counted": True, "exact": 6}, printed
        assert result["total_input_tokens"] == 6 * (130 + extra), printed
        assert result["total_output_tokens"] == 12 and result["failed"] == 0


def test_hundreds_of_requests_at_once(own_replay, measured):
    server = own_replay(script(says("x", eos=False, delay_ms=5)), "--max-num-seqs", "64", "--max-waiting-requests", "1000")
    result, printed = measured(server.url, "--num-prompts", 400, "--random-input-len", 3, "--random-output-len", 5)
    assert result["completed"] == 400 and result["total_output_tokens"] == 2000, printed
    assert result["max_concurrent_requests"] == 400


def test_prompts_share_a_prefix_and_nothing_else(fake, measured):
    server = fake(behaving((answer(body=WHOLE), True)))
    flags = ["--random-prefix-len", 24, "--num-prefixes", 2, "--num-prompts", 12, "--random-input-len", 16]
    measured(server.url, "--model", "m", *flags)
    prompts = [json.loads(body)["prompt"].split() for head, body in server.requests if b"/v1/completions" in head]
    assert len(prompts) == 12 and all(len(words) == 40 for words in prompts)
    fronts = {tuple(words[:24]) for words in prompts}
    assert len(fronts) == 2 and len({front[0] for front in fronts} | {front[1] for front in fronts}) > 2
    assert len({tuple(words[24:28]) for words in prompts}) == 12


def test_one_seed_sends_the_same_prompts_another_others(fake, measured):
    sent = []
    for seed in (3, 3, 4):
        server = fake(behaving((answer(body=WHOLE), True)))
        measured(server.url, *FEW, "--seed", seed)
        sent.append([body for head, body in server.requests if b"/v1/completions" in head])
    assert sent[0] == sent[1] != sent[2]


def test_a_signal_ends_the_run_with_its_report(own_replay, tmp_path):
    server = own_replay(script(says("x", eos=False, delay_ms=5)), "--max-model-len", "4096")
    path = tmp_path / "result.json"
    command = [
        program("omnibus"), "bench", "serve", "--base-url", server.url, "--num-prompts", "50", "--max-concurrency", "2",
        "--random-input-len", "4", "--random-output-len", "4000", "--ignore-eos", "--result-filename", str(path),
    ]  # fmt: skip
    run = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        wait_until(lambda: server.metric("vllm:num_requests_running") == 2, 30, "two requests run")
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=30)
    finally:
        run.kill()
    result = json.loads(path.read_text())
    assert run.returncode == 1 and result["failures"]["cancelled"]["count"] == 50, out
    wait_until(server.idle, 10, "the server has noticed that its clients are gone")


def completions(server):
    return [body for head, body in server.requests if b"/v1/completions" in head]


def test_a_signal_in_the_warm_up_ends_the_run(fake, tmp_path):
    """What would have been measured is not sent any more."""
    warming, ended = threading.Event(), threading.Event()

    def behave(connection, path, body):
        if not path.endswith("/v1/completions"):
            connection.sendall(answer("404 Not Found", "application/json", b"{}"))
            return True
        warming.set()
        ended.wait(60)
        return False

    server, path = fake(behave), tmp_path / "result.json"
    command = [program("omnibus"), "bench", "serve", "--base-url", server.url, *FEW, "--num-warmups", 1, "--result-filename", path]
    run = subprocess.Popen([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    try:
        assert warming.wait(30)
        run.send_signal(signal.SIGINT)
        out, _ = run.communicate(timeout=30)
    finally:
        run.kill()
        ended.set()
    result = json.loads(path.read_text())
    assert run.returncode == 1 and result["completed"] == 0, out
    assert result["failures"] == {"cancelled": {"count": 4, "example": "the run was stopped before it was sent"}}, out
    assert result["connections"] == 0 and len(completions(server)) == 1


def test_a_signal_while_prompts_are_counted(fake):
    started, runs, counted = threading.Event(), [], []

    def behave(connection, path, body):
        if path.endswith("/tokenize"):
            counted.append(body)
            if len(counted) == 10:
                assert started.wait(30)
                runs[0].send_signal(signal.SIGINT)
            tokens = {"tokens": [1] * len(json.loads(body)["prompt"].split())}
            connection.sendall(answer(kind="application/json", body=json.dumps(tokens).encode()))
        else:
            connection.sendall(answer(body=WHOLE))
        return True

    server = fake(behave)
    command = [program("omnibus"), "bench", "serve", "--base-url", server.url, "--model", "m", "--num-prompts", "1000"]
    runs.append(subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True))
    started.set()
    try:
        out, _ = runs[0].communicate(timeout=30)
    finally:
        runs[0].kill()
    assert runs[0].returncode == 1 and "stopped while the prompts were made" in out
    # The one that was being made is counted to its end.
    assert 10 <= len(counted) <= 15 and not completions(server)


def test_over_tls(own_replay, tmp_path):
    certificate = Certificate(tmp_path, "server")
    server = own_replay(SLOW, *certificate.flags())
    flags = ["--num-prompts", 2, "--random-output-len", 2, "--random-input-len", 4]
    for host in ("localhost", "127.0.0.1"):
        url = f"https://{host}:{server.port}"
        assert "TLS" in bench("--base-url", url, *flags).stderr
        for trust in (["--ssl-ca-certs", certificate.certificate], ["--insecure"]):
            run = bench("--base-url", url, *flags, *trust)
            assert run.returncode == 0, run.stdout + run.stderr
    named_otherwise = bench("--base-url", f"https://127.0.0.2:{server.port}", *flags, "--ssl-ca-certs", certificate.certificate)
    assert named_otherwise.returncode == 1
    missing = bench("--base-url", url, *flags, "--ssl-ca-certs", tmp_path / "none.pem")
    assert missing.returncode == 1 and "none.pem" in missing.stderr


@pytest.mark.parametrize("status,prefix,hint", [(401, "", "OPENAI_API_KEY"), (404, "/v1", "without /v1"), (500, "", "--model")])
def test_no_model_to_be_had_says_what_helps(fake, status, prefix, hint):
    def refuse(connection, path, body):
        connection.sendall(answer(f"{status} Refused", "application/json", b"{}"))
        return True

    server = fake(refuse)
    run = bench("--base-url", server.url + prefix, "--num-prompts", 1, env={**os.environ, "OPENAI_API_KEY": ""})
    assert run.returncode == 1 and f"{server.url}{prefix}/v1/models: status {status}" in run.stderr and hint in run.stderr


def test_a_base_url_that_is_none_is_a_wrong_command_line():
    run = bench("--base-url", "foo")
    assert run.returncode == 2 and "--base-url: 'foo' is not the URL" in run.stderr


def test_a_result_file_that_cannot_be_written(fake, tmp_path):
    """Is noticed before anything is sent."""
    server = fake(behaving((answer(body=WHOLE), True)))
    run = bench("--base-url", server.url, "--num-prompts", 1, "--random-output-len", 1, "--random-input-len", 4,
                "--result-filename", tmp_path / "no" / "x.json")  # fmt: skip
    assert run.returncode == 1 and "x.json': No such file" in run.stderr and not server.requests
