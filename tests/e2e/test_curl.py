"""curl against the real program: every example of the README and the guides as it stands, and what curl does by itself
(form content type, Expect: 100-continue, -N, -I, --http2, multipart)."""

import json
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from harness.clients import FRANCE, KEY, LONG, MAX_MODEL_LEN
from harness.server import Server, program
from harness.sse import joined, parse_events
from harness.wait import wait_until

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
CURL = shutil.which("curl")
AUTH = ("-H", f"Authorization: Bearer {KEY}")


def blocks_of(language, word):
    """(page, text) of each fenced block in that language whose text has `word`."""
    for page in PAGES:
        for text in re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL):
            if word in text:
                yield pytest.param(text, id=f"{page.name}: {text.strip().splitlines()[0][:60]}")


SHELL = list(blocks_of("sh", "curl "))
PYTHON = list(blocks_of("python", "import"))


@pytest.fixture(scope="module")
def open_server(default_model):
    """Without a key, as somebody who reads the README starts it."""
    server = Server([program("omnibus"), "serve", default_model, "--max-model-len", str(MAX_MODEL_LEN)])
    yield server
    assert server.stop() == 0, server.log()
    server.close()


def test_the_readme_has_examples():
    assert SHELL and PYTHON


@pytest.mark.parametrize("text", SHELL)
def test_shell_examples_of_the_guides(open_server, text, tmp_path):
    script = text.replace("http://127.0.0.1:8000", open_server.url)
    script = script.replace("admin-8000.sock", f"admin-{open_server.port}.sock")
    assert script != text, "an example names the default address"
    script = re.sub(r"\bcurl ", "curl -sS --fail-with-body ", script)
    run = subprocess.run(["bash", "-e", "-c", script], capture_output=True, text=True, timeout=60, cwd=tmp_path)
    assert run.returncode == 0, f"{script}\n{run.stdout}{run.stderr}"
    assert run.stdout.strip() and '"error"' not in run.stdout


@pytest.mark.parametrize("text", PYTHON)
def test_python_examples_of_the_guides(open_server, text):
    script = text.replace("http://127.0.0.1:8000", open_server.url)
    assert script != text, "an example names the default address"
    run = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=60)
    assert run.returncode == 0 and run.stdout.strip(), f"{script}\n{run.stdout}{run.stderr}"


def curl(server, *arguments, path="/v1/chat/completions", stdin=None, limit=60):
    return subprocess.run(
        [CURL, "-sS", *arguments, server.url + path], capture_output=True, timeout=limit, input=stdin
    )


def status_of(server, *arguments, **more):
    """Status and body of one exchange."""
    run = curl(server, "-w", "\n%{http_code}", *arguments, **more)
    assert run.returncode == 0, run.stderr
    body, _, status = run.stdout.rpartition(b"\n")
    return int(status), body


def body_of(**fields):
    return json.dumps({"messages": [{"role": "user", "content": FRANCE}], "temperature": 0, "max_tokens": 8, **fields})


def test_plain_d_sends_a_form_content_type(real):
    """`curl -d` says application/x-www-form-urlencoded: what parses as JSON is JSON."""
    status, body = status_of(real, *AUTH, "-d", body_of())
    assert status == 200 and json.loads(body)["choices"][0]["message"]["content"]
    assert status_of(real, *AUTH, "--json", body_of())[0] == 200
    assert status_of(real, "-H", f"X-Api-Key: {KEY}", "-d", body_of())[0] == 200
    assert status_of(real, "--oauth2-bearer", KEY, "-d", body_of())[0] == 200


def test_no_buffer_stream_is_the_whole(real):
    whole = json.loads(status_of(real, *AUTH, "-d", body_of())[1])
    run = curl(real, "-N", *AUTH, "-d", body_of(stream=True))
    events = parse_events(run.stdout.decode())
    assert joined(events) == whole["choices"][0]["message"]["content"]


def test_headers_and_methods(real):
    head = curl(real, "-I", *AUTH, path="/v1/models").stdout.decode()
    assert head.startswith("HTTP/1.1 200 OK\r\n") and "content-length" in head.lower() and head.endswith("\r\n\r\n")
    shown = curl(real, "-i", *AUTH, "-d", body_of()).stdout.decode()
    assert re.search(r"^x-request-id: req_", shown, re.MULTILINE | re.IGNORECASE)
    assert status_of(real, *AUTH)[0] == 405  # GET
    assert status_of(real, *AUTH, "-X", "POST")[0] == 400  # no body
    assert status_of(real, path="/v1/models")[0] == 401
    assert status_of(real, "-u", f"user:{KEY}", path="/v1/models")[0] == 401  # Basic is no key


def test_versions_of_http(real):
    assert status_of(real, *AUTH, "--http1.0", "-d", body_of())[0] == 200
    # An upgrade is offered, not asked for: the answer stays HTTP/1.1.
    status, body = status_of(real, *AUTH, "--http2", "-d", body_of())
    assert status == 200 and json.loads(body)["object"] == "chat.completion"
    stream = curl(real, *AUTH, "--http1.0", "-N", "-d", body_of(stream=True))
    assert stream.returncode == 0 and b"data: [DONE]" in stream.stdout


def test_a_large_body_waits_for_100_continue(real):
    """Beyond 1 MB curl sends Expect: 100-continue and waits a second for it."""
    large = body_of(messages=[{"role": "user", "content": "word " * 300_000}]).encode()
    started = time.monotonic()
    status, body = status_of(real, *AUTH, "--expect100-timeout", "20", "--data-binary", "@-", stdin=large)
    assert status == 400 and json.loads(body)["error"]["code"] == "context_length_exceeded"
    assert time.monotonic() - started < 15
    # Without a key nothing is asked for.
    assert status_of(real, "--expect100-timeout", "20", "--data-binary", "@-", stdin=large)[0] == 401


def test_what_is_no_json(real):
    for arguments in (("-F", "model=x"), ("-d", "model=x&n=1"), ("-d", "")):
        status, body = status_of(real, *AUTH, *arguments)
        assert status == 400 and json.loads(body)["error"]["type"] == "invalid_request_error", arguments


def test_chunked_upload_and_keep_alive(real):
    status, _ = status_of(real, *AUTH, "-H", "Transfer-Encoding: chunked", "--data-binary", "@-", stdin=body_of().encode())
    assert status == 200
    twice = subprocess.run(
        [CURL, "-sS", "-v", *AUTH, real.url + "/v1/models", real.url + "/v1/models"],
        capture_output=True, text=True, timeout=30,
    )
    assert twice.returncode == 0 and "Re-using existing connection" in twice.stderr


def test_giving_up_frees_the_server(real):
    story = body_of(messages=[{"role": "user", "content": "Tell me a long story."}], **LONG)
    run = curl(real, *AUTH, "--max-time", "0.1", "-d", story)
    assert run.returncode == 28  # timed out
    idle = lambda: real.metric("vllm:num_requests_running") == 0 and real.metric("vllm:kv_cache_usage_perc") == 0
    wait_until(idle, 10, "the request that curl left is gone")
