"""Metrics, the log's line per request, and timings in answers: complete, well-formed, and the same numbers everywhere
(law 6). What the metrics are called is vLLM's word, written down here once more."""

import concurrent.futures
import json
import random
import re
import subprocess
import uuid
from pathlib import Path

import pytest
import requests

from harness.prometheus import scrape, total
from harness.raw import connect, request_bytes
from harness.script import HELLO, says, script
from harness.server import program
from harness.sse import joined, parse_events, stream_chat
from harness.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
JSON_LOG = ("--log-format", "json")

# vllm/v1/metrics/loggers.py; names of counters with the _total that its client library adds.
VLLM = {
    "counter": "num_preemptions_total prompt_tokens_total prompt_tokens_by_source_total prompt_tokens_cached_total "
    "generation_tokens_total prefix_cache_queries_total prefix_cache_hits_total request_success_total",
    "gauge": "num_requests_running num_requests_waiting kv_cache_usage_perc cache_config_info lora_requests_info",
    "histogram": "iteration_tokens_total request_prompt_tokens request_generation_tokens request_params_n "
    "request_max_num_generation_tokens request_params_max_tokens request_prefill_kv_computed_tokens "
    "time_to_first_token_seconds inter_token_latency_seconds request_time_per_output_token_seconds "
    "e2e_request_latency_seconds request_queue_time_seconds request_inference_time_seconds "
    "request_prefill_time_seconds request_decode_time_seconds",
}


def documented():
    """{metric: type} of docs/observability.md."""
    rows = re.findall(r"^\| `([a-z0-9_:]+)` \| (counter|gauge|histogram) \| (.*) \|$",
                      (ROOT / "docs/observability.md").read_text(), re.MULTILINE)
    assert all(words for _, _, words in rows) and len(rows) == len({name for name, _, _ in rows})
    return {name: kind for name, kind, _ in rows}


def test_every_metric_is_documented_and_every_documented_one_is_there(hello):
    hello.chat("hello")
    scraped = {name: family.kind for name, family in scrape(hello).items()}
    assert scraped == documented()


def test_names_and_types_are_those_of_vllm(hello):
    families = scrape(hello)
    expected = {"vllm:" + name: kind for kind, names in VLLM.items() for name in names.split()}
    assert {name: family.kind for name, family in families.items() if name.startswith("vllm:")} == expected
    for name, family in families.items():
        if name.startswith("vllm:") and not name.endswith("_info"):
            assert {"model_name", "engine"} <= family.labels(), name
    assert {"block_size", "num_gpu_blocks"} <= families["vllm:cache_config_info"].labels()
    assert families["vllm:lora_requests_info"].labels() == {
        "max_lora", "running_lora_adapters", "waiting_lora_adapters"}
    reasons = {labels["finished_reason"] for _, labels, _ in families["vllm:request_success_total"].samples}
    assert reasons == {"stop", "length", "abort", "error"}


def test_help_is_one_sentence_fragment_each(hello):
    for name, family in scrape(hello).items():
        assert family.help and not family.help.endswith("."), name


# The same numbers everywhere.


def phases(line):
    """(queue, prefill, decode, e2e) in nanoseconds."""
    values = [line[key + "_ms"] * 1e6 for key in ("queue", "prefill", "decode", "e2e")]
    whole = [round(value) for value in values]
    assert all(abs(value - ns) < 0.01 and ns >= 0 for value, ns in zip(values, whole)), line
    return whole


def check_phases(line):
    queue, prefill, decode, e2e = phases(line)
    assert queue + prefill + decode == e2e, line


def ask_openai(server, rng, path, request_id):
    n, stream = rng.choice([1, 1, 1, 2, 3]), rng.random() < 0.5
    text = rng.choice(["hello", "stop", "long", "other"])
    body = {"n": n, "stream": stream, "return_token_ids": True, "include_timings": rng.random() < 0.7,
            "max_tokens": rng.choice([1, 3, 20])}
    body |= {"stop": ["lo w"]} if rng.random() < 0.4 else {}
    body |= {"stream_options": {"include_usage": True}} if stream and rng.random() < 0.5 else {}
    body |= {"prompt": text} if path == "/v1/completions" else {"messages": [{"role": "user", "content": text}]}
    answer = server.post(path, body, headers={"X-Request-Id": request_id})
    assert answer.status_code == 200, answer.text
    objects = parse_events(answer.content.decode()) if stream else [answer.json()]
    ids = [0] * n
    reasons = []
    for choice in [c for o in objects for c in o["choices"]]:
        ids[choice["index"]] += len(choice.get("token_ids") or [])
        reasons += [choice["finish_reason"]] if choice["finish_reason"] else []
    usage = objects[-1].get("usage")
    asked = not stream or body["include_timings"] or "stream_options" in body
    assert (usage is not None) == asked and len(reasons) == n
    if usage:
        assert usage["completion_tokens"] == sum(ids)
        assert ("omnibus" in usage) == body["include_timings"]
    if usage and body["include_timings"]:
        check_phases(usage["omnibus"])
        assert usage["omnibus"]["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"]
    return {"tokens": sum(ids), "reasons": reasons, "longest": max(ids), "usage": usage}


def ask_llama_cpp(server, rng, request_id):
    body = {"prompt": rng.choice(["hello", "long"]), "n_predict": rng.choice([1, 4, 20])}
    answer = server.post("/completion", body, headers={"X-Request-Id": request_id}).json()
    assert answer["tokens_cached"] == answer["timings"]["cache_n"]
    assert answer["timings"]["prompt_n"] + answer["timings"]["cache_n"] == answer["tokens_evaluated"]
    reason = "length" if answer["stop_type"] == "limit" else "stop"
    return {"tokens": answer["tokens_predicted"], "reasons": [reason], "longest": answer["tokens_predicted"], "usage": None}


def ask_ollama(server, rng, request_id):
    body = {"model": "replay", "prompt": rng.choice(["hello", "long"]), "stream": False,
            "options": {"num_predict": rng.choice([1, 4, 20])}}
    answer = server.post("/api/generate", body, headers={"X-Request-Id": request_id}).json()
    return {"tokens": answer["eval_count"], "reasons": [answer["done_reason"]], "longest": answer["eval_count"], "usage": None}


def ask(server, seed, request_id):
    rng = random.Random(seed)
    door = rng.choice(["/v1/chat/completions", "/v1/chat/completions", "/v1/completions", "llama_cpp", "ollama"])
    if door == "llama_cpp":
        return ask_llama_cpp(server, rng, request_id)
    if door == "ollama":
        return ask_ollama(server, rng, request_id)
    return ask_openai(server, rng, door, request_id)


def test_law_6_metrics_log_and_answers_count_alike(own_replay):
    """Random requests of every door, several at once, memory short enough for preemptions."""
    server = own_replay(
        script(
            says("Hel", "lo", " ", "wor", "ld", "!", when="hello", delay_ms=1),
            says("lo ", "w", "lo", " w", when="stop"),
            says(*"abcdefghijklmnop", when="long", eos=False, delay_ms=1),
            says("ok"),
            num_blocks=24,
            max_model_len=256,
        ),
        *JSON_LOG,
    )
    seed = random.randrange(2**32)
    print("seed", seed)
    before = scrape(server)
    ids = [f"law6-{i}" for i in range(120)]
    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        answers = dict(zip(ids, threads.map(lambda i: ask(server, f"{seed}-{i}", ids[i]), range(len(ids)))))
    wait_until(lambda: server.idle() and len(server.logged_requests()) == len(ids), 10, "a line for each request")
    wait_until(lambda: server.metric("http_requests_total", method="POST") == len(ids), 10, "all answers counted")
    after = scrape(server)
    lines = {line["request_id"]: line for line in server.logged_requests()}
    assert set(lines) == set(ids)
    grown = lambda name, **labels: total(after, name, **labels) - total(before, name, **labels)
    rank = ["stop", "length", "abort", "error"]
    for request_id, answer in answers.items():
        line = lines[request_id]
        check_phases(line)
        assert line["completion_tokens"] == answer["tokens"], (line, answer)
        assert line["choices"] == len(answer["reasons"])
        assert line["finish_reason"] == max(answer["reasons"], key=rank.index)
        assert line["model"] == "replay" and "trace_id" not in line and "error" not in line
        usage = answer["usage"]
        if usage:
            assert line["prompt_tokens"] == usage["prompt_tokens"]
            assert line["cached_tokens"] == usage["prompt_tokens_details"]["cached_tokens"]
        if usage and "omnibus" in usage:
            assert phases(line) == phases(usage["omnibus"])
            assert line["preemptions"] == usage["omnibus"]["preemptions"]
    sequences = sum(len(answer["reasons"]) for answer in answers.values())
    assert grown("vllm:generation_tokens_total") == sum(answer["tokens"] for answer in answers.values())
    assert grown("vllm:prompt_tokens_total") == sum(line["prompt_tokens"] for line in lines.values())
    assert grown("vllm:prompt_tokens_cached_total") == sum(line["cached_tokens"] for line in lines.values())
    assert grown("vllm:prompt_tokens_by_source_total") == grown("vllm:prompt_tokens_total")
    assert grown("vllm:prompt_tokens_by_source_total", source="local_cache_hit") == grown("vllm:prompt_tokens_cached_total")
    assert grown("vllm:num_preemptions_total") == sum(line["preemptions"] for line in lines.values())
    for reason in rank:
        expected = sum(answer["reasons"].count(reason) for answer in answers.values())
        assert grown("vllm:request_success_total", finished_reason=reason) == expected
    for name in ("e2e_request_latency_seconds", "request_queue_time_seconds", "request_prefill_time_seconds",
                 "request_decode_time_seconds", "request_inference_time_seconds", "time_to_first_token_seconds",
                 "request_prompt_tokens", "request_generation_tokens", "request_prefill_kv_computed_tokens"):
        assert grown(f"vllm:{name}_count") == sequences, name
    assert grown("vllm:request_generation_tokens_sum") == grown("vllm:generation_tokens_total")
    assert grown("vllm:inter_token_latency_seconds_count") <= grown("vllm:generation_tokens_total") - sequences
    assert grown("vllm:request_params_n_count") == len(ids) and grown("vllm:request_params_n_sum") == sequences
    assert grown("vllm:request_max_num_generation_tokens_sum") == sum(a["longest"] for a in answers.values())
    assert grown("omnibus_steps_total") == grown("omnibus_step_duration_seconds_count") > 0
    assert grown("omnibus_steps_total") == grown("vllm:iteration_tokens_total_count")
    seconds = sum(line["e2e_ms"] for line in lines.values()) / 1e3
    assert grown("vllm:e2e_request_latency_seconds_sum") <= seconds * 3 + 1e-6  # at most three choices each
    assert grown("http_requests_total", method="POST", status="200") == len(ids)
    assert server.stop() == 0


def test_a_cached_prompt_is_counted_where_it_is_not_computed(own_replay):
    server = own_replay(HELLO, *JSON_LOG)
    text = "the same long beginning of a prompt, again and again: " * 8
    first, second = (server.chat(text, max_tokens=2).json()["usage"] for _ in range(2))
    cached = second["prompt_tokens_details"]["cached_tokens"]
    assert first["prompt_tokens_details"]["cached_tokens"] == 0
    assert cached > 0 and cached % 16 == 0 and cached < second["prompt_tokens"] == first["prompt_tokens"]
    families = scrape(server)
    assert total(families, "vllm:prompt_tokens_cached_total") == cached
    assert total(families, "vllm:prefix_cache_hits_total") == cached
    assert total(families, "vllm:prefix_cache_queries_total") >= 2 * first["prompt_tokens"]
    assert total(families, "vllm:cache_config_info", enable_prefix_caching="True") == 1
    third = server.post("/completion", {"prompt": [97] * 64, "n_predict": 1}).json()
    fourth = server.post("/completion", {"prompt": [97] * 64, "n_predict": 1}).json()
    assert third["tokens_cached"] == 0 and fourth["tokens_cached"] == fourth["timings"]["cache_n"] == 48
    assert server.stop() == 0


# Ends of every kind have their line.


def start_endless(server, request_id):
    connection = connect(server)
    body = json.dumps({"messages": [{"role": "user", "content": "endless"}], "stream": True, "max_tokens": 4000})
    connection.sendall(request_bytes("POST", "/v1/chat/completions", [f"X-Request-Id: {request_id}"], body.encode()))
    return connection


def test_a_cancelled_request_has_its_line(own_replay, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("team-a sk-1\n")
    server = own_replay(HELLO, *JSON_LOG, "--api-key-file", str(keys))
    connection = connect(server)
    body = json.dumps({"messages": [{"role": "user", "content": "endless"}], "stream": True, "max_tokens": 4000}).encode()
    connection.sendall(request_bytes("POST", "/v1/chat/completions",
                                     ["X-Request-Id: gone", "Authorization: Bearer sk-1"], body))
    assert b"200" in connection.recv(4096)
    connection.close()
    wait_until(lambda: server.logged_requests("gone"), 10, "the line")
    (line,) = server.logged_requests("gone")
    check_phases(line)
    assert line["finish_reason"] == "abort" and line["error"] == "CANCELLED" and line["key"] == "team-a"
    assert server.stop() == 0


def test_a_failed_request_has_its_line(own_replay):
    server = own_replay(script(says("a", "b", "c", fault={"at": 1, "kind": "nan"}, when="bad"), says("ok")), *JSON_LOG)
    answer = server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "bad"}]},
                         headers={"X-Request-Id": "bad"})
    assert answer.status_code == 500
    wait_until(lambda: server.logged_requests("bad"), 10, "the line")
    (line,) = server.logged_requests("bad")
    check_phases(line)
    assert line["finish_reason"] == "error" and line["error"] == "INTERNAL"
    not_served = lambda: [l for l in server.json_log() if l["msg"] == "http request not served"]  # noqa: E731
    refused = wait_until(not_served, 10, "the line of the answer")
    assert [l["request_id"] for l in refused] == ["bad"] and refused[0]["status"] == 500 and refused[0]["level"] == "warning"
    assert total(scrape(server), "vllm:request_success_total", finished_reason="error") == 1
    assert server.stop() == 0


# JSON, from the first line to the last.


def test_every_line_is_json_from_start_to_drain(own_replay):
    server = own_replay(HELLO, *JSON_LOG, "--log-level", "debug", "--drain-timeout", "0.2")
    server.chat("hello")
    server.chat("hello", temperature=9)
    requests.get(server.url + "/nowhere", timeout=10)
    connection = connect(server)
    connection.sendall(b"\xff\xfe not http\r\n\r\n")
    connection.close()
    running = start_endless(server, 'odd "id" \\')
    wait_until(lambda: server.metric("vllm:num_requests_running") == 1, 10, "running")
    assert server.stop() == 0
    running.close()
    lines = server.json_log()
    assert server.log_path.read_text().endswith("\n") and len(lines) > 5
    messages = " ".join(line["msg"] for line in lines)
    assert "draining" in messages and "stopped" in messages
    assert [line["error"] for line in server.logged_requests('odd "id" \\')] == ["UNAVAILABLE"]


def test_a_start_that_fails_is_json_too(tmp_path):
    bad = tmp_path / "bad.gguf"
    bad.write_bytes(b"no model \xff")
    run = subprocess.run([program("omnibus"), "serve", str(bad), "--port", "0", *JSON_LOG], capture_output=True, timeout=60,
                         env={"OMNIBUS_HOME": str(tmp_path), "OMNIBUS_NO_SUCH_OPTION": "1"})
    assert run.returncode == 1
    lines = [json.loads(line) for line in run.stderr.decode().splitlines()]
    assert lines[-1]["level"] == "error" and "bad.gguf" in lines[-1]["msg"]
    assert any("OMNIBUS_NO_SUCH_OPTION" in line["msg"] for line in lines)


def test_the_real_program_logs_json_while_it_loads(default_model, tmp_path):
    from harness.server import Server

    server = Server([program("omnibus"), "serve", default_model, "--max-model-len", "128", *JSON_LOG])
    server.chat("hi", max_tokens=2)
    assert server.stop() == 0
    assert any("done_bytes" in line for line in server.json_log()) and server.logged_requests()
    server.close()


def test_the_text_log_has_the_same_values(own_replay):
    server = own_replay(HELLO)
    server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hello"}]}, headers={"X-Request-Id": "x y"})
    line = lambda: re.search(r"^\d\d:\d\d:\d\d\.\d{3} I request finished (.*)$", server.log(), re.MULTILINE)
    wait_until(line, 10, "the line")
    assert line()[1].startswith('request_id="x y" model=replay finish_reason=stop prompt_tokens=')
    assert server.stop() == 0


# Timings in answers.


def test_timings_only_when_asked_for(hello):
    assert "omnibus" not in hello.chat("hello").json()["usage"]
    assert "omnibus" not in hello.chat("hello", include_timings=False).json()["usage"]
    assert hello.chat("hello", include_timings="yes").status_code == 400
    events = stream_chat(hello, "hello", include_timings=True)
    assert events[-1]["choices"] == [] and joined(events) == "Hello world!"
    assert all("usage" not in event for event in events[:-1])
    check_phases(events[-1]["usage"]["omnibus"])
    events = stream_chat(hello, "hello", include_timings=True,
                         stream_options={"include_usage": True, "continuous_usage_stats": True})
    assert all("omnibus" not in event["usage"] for event in events[:-1]) and "omnibus" in events[-1]["usage"]


# A flood of bad requests does not flood the log.


def test_s17_a_flood_is_counted_and_not_written(own_replay):
    server = own_replay(HELLO, *JSON_LOG)
    with requests.Session() as session:
        for i in range(600):
            assert session.post(server.url + "/v1/chat/completions", data=f"{{ {i}", timeout=10).status_code == 400
    assert server.stop() == 0
    lines = server.json_log()
    written = [line for line in lines if line["msg"] == "http request not served"]
    suppressed = sum(line.get("suppressed", 0) for line in lines)
    assert 100 <= len(written) < 600 and len(written) + suppressed == 600
    assert all(line["handler"] == "/v1/chat/completions" and line["status"] == 400 for line in written)


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/completions", "/completion", "/api/generate", "/api/chat"])
def test_ids_of_request_and_trace_go_to_the_log(own_replay, path):
    server = own_replay(HELLO, *JSON_LOG)
    trace = uuid.uuid4().hex
    body = {"model": "replay", "prompt": "hello", "messages": [{"role": "user", "content": "hello"}]}
    body.pop("prompt" if "chat" in path else "messages")
    for traceparent, expected in [
        (f"00-{trace}-00f067aa0ba902b7-01", trace), (f"00-{trace.upper()}-00f067aa0ba902b7-01", None),
        (f"00-{'0' * 32}-00f067aa0ba902b7-01", None), (f"ff-{trace}-00f067aa0ba902b7-01", None),
        (f"00-{trace}-00f067aa0ba902b7-01-more", None), ("", None),
    ]:
        request_id = "r-" + uuid.uuid4().hex
        answer = server.post(path, body, headers={"X-Request-Id": request_id, "traceparent": traceparent})
        assert answer.status_code == 200 and answer.headers["x-request-id"] == request_id
        wait_until(lambda: server.logged_requests(request_id), 10, "the line")
        assert [line.get("trace_id") for line in server.logged_requests(request_id)] == [expected]
    answer = server.post(path, body)
    own = answer.headers["x-request-id"]
    wait_until(lambda: server.logged_requests(own), 10, "the line of an id of the server's own")
    answer = server.post(path, "{", headers={"X-Request-Id": "bad", "traceparent": f"00-{trace}-00f067aa0ba902b7-01"})
    assert answer.status_code == 400
    wait_until(lambda: any(line.get("request_id") == "bad" for line in server.json_log()), 10, "the line")
    assert [line["trace_id"] for line in server.json_log() if line.get("request_id") == "bad"] == [trace]
    assert server.stop() == 0
