"""GET /: the chat page for browsers, Ollama's line for the rest; health, version."""

import re

import requests


def get(server, path, **headers):
    return requests.get(server.url + path, headers=headers, timeout=10)


def test_page(hello):
    answer = get(hello, "/", Accept="text/html,application/xhtml+xml")
    assert answer.headers["content-type"] == "text/html; charset=utf-8"
    policy = answer.headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy and "frame-ancestors 'none'" in policy
    assert "require-trusted-types-for 'script'" in policy and "img-src data:;" in policy
    # Nothing from elsewhere, no markup made from text; what tests/e2e/page finds in the browser, found by reading.
    markup = re.sub(r"<(script|style)>.*?</\1>", "", answer.text, flags=re.DOTALL)
    assert all(value.startswith("data:image/svg+xml,") for value in re.findall(r"(?:src|href|action)=\"([^\"#]+)", markup))
    assert not re.search(r"@import|url\(|<(?:img|iframe|object|embed|base)\b", answer.text)
    assert not re.search(r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|Function\(|\.src\b", answer.text)
    assert " style=" not in answer.text and not re.search(r"<[^>]+\son\w+=", answer.text)


def test_page_hashes_match_its_script_and_style(hello):
    import base64
    import hashlib

    answer = get(hello, "/", Accept="text/html")
    for tag, directive in (("script", "script-src"), ("style", "style-src")):
        text = re.search(rf"<{tag}>(.*?)</{tag}>", answer.text, re.DOTALL).group(1)
        digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
        assert f"{directive} 'sha256-{digest}'" in answer.headers["content-security-policy"]


def test_others_get_a_line(hello):
    for headers in ({}, {"Accept": "*/*"}, {"Accept": "application/json"}):
        answer = get(hello, "/", **headers)
        assert answer.text == "Ollama is running" and answer.headers["content-type"].startswith("text/plain")
    head = requests.head(hello.url + "/", headers={"Accept": "text/html"}, timeout=10)
    assert head.status_code == 200 and head.content == b""


def test_health(hello):
    for path in ("/health", "/v1/health", "/readyz", "/livez", "/ping"):
        answer = get(hello, path)
        assert answer.status_code == 200 and answer.text == ""
    assert requests.post(hello.url + "/ping", timeout=10).status_code == 200


def test_version(hello):
    assert re.fullmatch(r"\d+\.\d+\.\d+", get(hello, "/version").json()["version"])


def test_metrics(hello):
    hello.chat("hello")
    answer = get(hello, "/metrics")
    assert answer.headers["content-type"] == "text/plain; version=0.0.4; charset=utf-8"
    for name in (
        "vllm:num_requests_running", "vllm:num_requests_waiting", "vllm:kv_cache_usage_perc",
        "vllm:prompt_tokens_total", "vllm:generation_tokens_total", "vllm:time_to_first_token_seconds_bucket",
        "vllm:inter_token_latency_seconds_bucket", "vllm:e2e_request_latency_seconds_bucket",
        "vllm:request_success_total",
    ):
        assert name in answer.text


def test_law6_metrics_equal_what_clients_counted(own_replay):
    from harness.script import HELLO

    server = own_replay(HELLO)
    usage = [server.chat(text, n=n).json()["usage"] for text in ("hello", "other") for n in (1, 3)]
    assert server.metric("vllm:generation_tokens_total") == sum(u["completion_tokens"] for u in usage)
    assert server.metric("vllm:request_success_total", finished_reason="stop") == 8
