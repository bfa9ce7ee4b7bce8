"""SIGHUP and POST /reload: the configuration is read again; all of it holds afterwards, or none."""

import json
import os
import re
import signal
import subprocess
from pathlib import Path

import pytest
import requests

from harness.admin import Admin, admin_place
from harness.raw import connect, read_answer, request_bytes
from harness.script import HELLO, script, says
from harness.server import program
from harness.tls import Certificate, connect_tls
from harness.wait import wait_until

SLOW = script(
    says(*["a"] * 150, when="finite", delay_ms=10),
    says("x", when="endless", eos=False, delay_ms=5),
    says("ok"),
)


def status_of(server, key, path="/v1/models"):
    return requests.get(server.url + path, headers={"X-Api-Key": key} if key else {}, timeout=10).status_code


@pytest.fixture
def configured(own_replay, tmp_path):
    """configured(toml, *flags, script=): a server with a configuration file; .write(toml) changes it."""

    def start(text, *flags, model=HELLO, admin=True):
        path = tmp_path / "omnibus.toml"
        path.write_text(text)
        server = own_replay(model, "--config", str(path), *flags)
        server.write = path.write_text
        server.admin = Admin(server) if admin else None
        return server

    return start


def test_keys_of_the_file_and_of_the_configuration(configured, tmp_path):
    keys = tmp_path / "keys"
    keys.write_text("alice sk-alice\n")
    keys.chmod(0o600)
    server = configured('api-key = ["sk-one"]\n', "--api-key-file", str(keys))
    assert [status_of(server, k) for k in ("sk-one", "sk-alice", "sk-two", None)] == [200, 200, 401, 401]
    server.write('api-key = ["sk-two"]\n')
    keys.write_text("bob sk-bob\n")
    answer = server.admin.post("/reload")
    assert answer.status == 200 and answer.json() == {"generation": 2, "needs_restart": [], "last_error": None}
    assert [status_of(server, k) for k in ("sk-one", "sk-alice", "sk-two", "sk-bob", None)] == [401, 401, 200, 200, 401]
    assert "sk-" not in server.log()


def test_a_hangup_does_the_same(configured):
    server = configured('api-key = ["sk-one"]\n')
    server.write('api-key = ["sk-two"]\n')
    server.process.send_signal(signal.SIGHUP)
    wait_until(lambda: status_of(server, "sk-two") == 200, 10, "the new key")
    assert status_of(server, "sk-one") == 401
    wait_until(lambda: "configuration 2 holds" in server.log(), 5, "a line in the log")
    assert server.metric("omnibus_config_reloads_total", result="success") == 1
    assert server.metric("omnibus_config_generation") == 2


def test_seeds_go_on_where_they_were(configured, tmp_path):
    """What --seed draws does not start over, nor skip, with a reload that fails or one that succeeds."""
    letters = script(says("a", eos=False, rows=[{str(ord(letter)): 0 for letter in "abcdefgh"}] * 20))

    def answers(server, n):
        return [server.post("/v1/completions", {"prompt": "x", "max_tokens": 20, "temperature": 1}).json()["choices"][0]["text"]
                for _ in range(n)]

    left_alone = answers(configured("seed = 5\n", model=letters), 6)
    assert len(set(left_alone)) == 6
    tls = Certificate(tmp_path, "here")
    server = configured("seed = 5\n", "--ssl-certfile", str(tls.certificate), "--ssl-keyfile", str(tls.key), model=letters, admin=False)
    server.verify = str(tls.certificate)
    server.admin = Admin(server)
    got = answers(server, 2)
    key = Path(tls.key).read_text()
    Path(tls.key).write_text("no key")  # fails late, when the routes have been made
    assert server.admin.post("/reload").status == 400
    got += answers(server, 2)
    Path(tls.key).write_text(key)
    assert server.admin.post("/reload").status == 200
    assert got + answers(server, 2) == left_alone


BAD = [
    ('api-key = ["sk-one"', "omnibus.toml"),  # half written
    ('api-key = ["sk-two", "sk-two"]\n', "--api-key"),
    ("max-num-seqs = 0\n", "max-num-seqs"),
    ('no-such-option = 1\n', "no-such-option"),
    ("", "omnibus.toml"),  # emptied, and not written yet
    ('allowed-origins = ["nonsense"]\n', "--allowed-origins"),
    ('default-chat-template-kwargs = "[1]"\n', "--default-chat-template-kwargs"),
    ('reasoning-parser = "nonsense"\n', "--reasoning-parser"),
    ('admin-api-key = ["sk-one"]\napi-key = ["sk-one"]\n', "--admin-api-key"),
    ('api-key-file = "/no/such/file"\n', "/no/such/file"),
    ("\x00\xff", "omnibus.toml"),
]


def test_what_is_wrong_changes_nothing(configured):
    server = configured('api-key = ["sk-one"]\nserved-model-name = ["first"]\n')
    right = {"X-Api-Key": "sk-one"}
    for number, (text, named) in enumerate(BAD, 1):
        server.write(text)
        answer = server.admin.post("/reload")
        assert answer.status == 400, (text, answer.text)
        assert named in answer.json()["error"]["message"], (text, answer.text)
        assert status_of(server, "sk-one") == 200 and status_of(server, "sk-two") == 401, text
        models = requests.get(server.url + "/v1/models", headers=right, timeout=10).json()
        assert [m["id"] for m in models["data"]] == ["first"]
        config = server.admin.status()["config"]
        assert config["generation"] == 1 and named in config["last_error"]
        assert requests.get(server.url + "/metrics", timeout=10).text.count(
            f'omnibus_config_reloads_total{{result="error"}} {number}')
    # A good one ends the trouble.
    server.write('api-key = ["sk-two"]\n')
    assert server.admin.post("/reload").json() == {"generation": 2, "needs_restart": [], "last_error": None}
    assert status_of(server, "sk-two") == 200


def test_settings_of_the_api(configured):
    server = configured("# nothing yet\n")
    body = {"messages": [{"role": "user", "content": "hello"}]}

    def chat(**fields):
        return server.post("/v1/chat/completions", {**body, **fields})

    assert chat().json()["choices"][0]["message"]["content"] == "Hello world!"
    assert chat(model="other").status_code == 404 and chat(nonsense=1).status_code == 200
    server.write('served-model-name = ["other"]\nstrict-fields = true\ndefault-max-tokens = 2\nslots = false\n')
    assert server.admin.post("/reload").status == 200
    answer = chat(model="other").json()
    assert answer["choices"][0]["message"]["content"] == "Hello" and answer["usage"]["completion_tokens"] == 2
    assert chat(nonsense=1).status_code == 400 and chat(model="replay").status_code == 404
    assert requests.get(server.url + "/slots", timeout=10).status_code == 501
    # All doors, and what they say of themselves.
    assert server.post("/api/chat", {**body, "model": "other", "stream": False}).json()["model"] == "other"
    assert server.post("/completion", {"prompt": "hello"}).json()["content"] == "Hello"
    examples = requests.get(server.url + "/openapi.json", timeout=10).text
    assert '"other"' in examples


def test_hosts_and_origins(configured):
    server = configured("# nothing yet\n")
    page = {"Origin": "https://page.example", "Sec-Fetch-Site": "cross-site"}
    assert requests.get(server.url + "/v1/models", headers=page, timeout=10).status_code == 403
    assert requests.get(server.url + "/health", headers={"Host": "box.lan"}, timeout=10).status_code == 403
    server.write('allowed-origins = ["https://page.example"]\nallowed-hosts = ["box.lan"]\n')
    assert server.admin.post("/reload").status == 200
    answer = requests.get(server.url + "/v1/models", headers=page, timeout=10)
    assert answer.status_code == 200 and answer.headers["access-control-allow-origin"] == "https://page.example"
    assert requests.get(server.url + "/health", headers={"Host": "box.lan"}, timeout=10).status_code == 200


def test_limits_of_the_queue(configured):
    server = configured("max-num-seqs = 1\n", model=SLOW)
    body = json.dumps({"prompt": "endless", "stream": True, "max_tokens": 3000}).encode()
    held = [connect(server, 30) for _ in range(2)]
    for connection in held:
        connection.sendall(request_bytes("POST", "/v1/completions", body=body))
    wait_until(lambda: server.metric("vllm:num_requests_waiting") == 1, 10, "one runs, one waits")
    server.write("max-num-seqs = 1\nmax-waiting-requests = 1\n")
    assert server.admin.post("/reload").json()["needs_restart"] == []
    assert server.post("/v1/completions", {"prompt": "hi"}).status_code == 429
    assert server.metric("vllm:num_requests_waiting") == 1  # who was let in stays
    for connection in held:
        connection.close()


def test_log_level(configured):
    server = configured("# nothing yet\n")
    server.write('log-level = "debug"\n')
    assert server.admin.post("/reload").status == 200
    assert server.admin.status()["log_level"] == "debug"


def test_what_waits_for_a_restart_is_named(configured):
    server = configured("# nothing yet\n")
    server.write('max-num-seqs = 3\nfair-sharing = "equal"\nhost = "0.0.0.0"\nheader-timeout = 3.5\nany-model = true\n'
                 'api-key = ["sk-k"]\n')
    config = server.admin.post("/reload").json()
    assert sorted(config["needs_restart"]) == ["--header-timeout", "--host", "--max-num-seqs"]
    assert server.admin.status()["config"] == config
    server.wait_logged("waiting for a restart: ")
    answer = server.post("/v1/chat/completions", {"model": "anything", "messages": [{"role": "user", "content": "hello"}]},
                         headers={"X-Api-Key": "sk-k"})
    assert answer.status_code == 200


def test_a_key_cannot_be_taken_off_a_public_address_by_another_address_in_the_file(own_replay, tmp_path):
    """The rule that a listener beyond loopback has a key is asked of the address that is bound."""
    path = tmp_path / "omnibus.toml"
    path.write_text('host = "0.0.0.0"\napi-key = ["sk-k"]\n')
    server = own_replay(HELLO, "--config", str(path))
    server.url = f"http://127.0.0.1:{server.port}"
    path.write_text('host = "127.0.0.1"\n')
    answer = Admin(server).post("/reload")
    assert answer.status == 400 and "--allow-unauthenticated" in answer.text
    assert status_of(server, None) == 401 and status_of(server, "sk-k") == 200


def test_admin_keys(configured):
    path_of = 'admin-api-key = ["{}"]\nadmin-listen = "127.0.0.1:0"\n'
    server = configured(path_of.format("sk-old"), admin=False)
    url = admin_place(server)

    def reload(key):
        return requests.post(url + "/reload", headers={"X-Api-Key": key}, timeout=10).status_code

    server.write(path_of.format("sk-new"))
    assert reload("sk-new") == 401 and reload("sk-old") == 200
    assert reload("sk-old") == 401 and reload("sk-new") == 200


def test_streams_go_on_under_what_they_began_with(configured):
    server = configured('api-key = ["sk-one"]\nserved-model-name = ["first"]\n', model=SLOW)
    body = json.dumps({"prompt": "finite", "stream": True, "model": "first", "max_tokens": 200}).encode()
    streams = [connect(server, 30) for _ in range(8)]
    for connection in streams:
        connection.sendall(request_bytes("POST", "/v1/completions", ["X-Api-Key: sk-one", "Connection: close"], body))
        assert connection.recv(65536).startswith(b"HTTP/1.1 200")
    server.write('api-key = ["sk-two"]\nserved-model-name = ["second"]\n')
    assert server.admin.post("/reload").status == 200
    assert server.metric("vllm:num_requests_running") > 0  # or nothing was tested
    for connection in streams:
        data = b""
        while more := connection.recv(65536):
            data += more
        assert b"data: [DONE]" in data and b'"model":"second"' not in data
    assert status_of(server, "sk-one") == 401


def test_a_kept_connection_gets_the_new_rules(configured):
    server = configured('api-key = ["sk-one"]\n')
    with connect(server) as connection:
        for code in (200, 401):
            connection.sendall(request_bytes("GET", "/v1/models", ["X-Api-Key: sk-one"]))
            assert read_answer(connection)[0] == code
            server.write('api-key = ["sk-two"]\n')
            assert server.admin.post("/reload").status == 200


def serial(connection):
    return connection.getpeercert()["serialNumber"]


def test_certificates(own_replay, tmp_path):
    """New connections see the new certificate; old ones go on under theirs; a broken file changes nothing."""
    first, second = Certificate(tmp_path, "first"), Certificate(tmp_path, "second")
    chain, key = tmp_path / "chain.pem", tmp_path / "key.pem"

    def install(certificate):
        chain.write_bytes(certificate.certificate.read_bytes())
        key.write_bytes(certificate.key.read_bytes())
        key.chmod(0o600)

    install(first)
    server = own_replay(HELLO, "--ssl-certfile", str(chain), "--ssl-keyfile", str(key))
    server.verify = str(first.certificate)
    admin = Admin(server)
    old = connect_tls(server, first)
    key.write_bytes(second.key.read_bytes())  # half of a change
    answer = admin.post("/reload")
    assert answer.status == 400 and "key" in answer.text
    connect_tls(server, first).close()
    install(second)
    assert admin.post("/reload").status == 200
    with connect_tls(server, second) as new:
        new.sendall(request_bytes())
        assert read_answer(new)[0] == 200 and serial(new) != serial(old)
    old.sendall(request_bytes())
    assert read_answer(old)[0] == 200
    old.close()


def test_tls_is_not_turned_on_under_way(configured, tmp_path):
    certificate = Certificate(tmp_path, "late")
    server = configured("# nothing yet\n")
    server.write(f'ssl-certfile = "{certificate.certificate}"\nssl-keyfile = "{certificate.key}"\n')
    assert sorted(server.admin.post("/reload").json()["needs_restart"]) == ["--ssl-certfile", "--ssl-keyfile"]
    server.assert_serves()


@pytest.mark.parametrize("flag", ["--api-key-file", "--config", "--ssl-certfile", "--ssl-keyfile"])
def test_a_pipe_in_a_files_place_does_not_hold_the_server(own_replay, tmp_path, flag):
    certificate = Certificate(tmp_path, "here")
    files = {"--ssl-certfile": certificate.certificate, "--ssl-keyfile": certificate.key}
    if flag in ("--api-key-file", "--config"):
        files = {flag: tmp_path / "file"}
        files[flag].write_text("alice sk-alice\n" if flag == "--api-key-file" else 'api-key = ["sk-alice"]\n')
    server = own_replay(HELLO, *(str(word) for pair in files.items() for word in pair))
    server.verify = str(certificate.certificate)
    admin = Admin(server)
    files[flag].unlink()
    os.mkfifo(files[flag])
    answer = admin.post("/reload")
    assert answer.status == 400 and "not a regular file" in answer.text
    server.process.send_signal(signal.SIGTERM)
    assert server.process.wait(20) == 0


def test_a_hangup_while_the_program_starts_is_a_reload_later(tmp_path):
    path = tmp_path / "script"
    path.write_text(HELLO if isinstance(HELLO, str) else json.dumps(HELLO))
    log = tmp_path / "log"
    with open(log, "wb") as out:
        process = subprocess.Popen([program("omnibus-replay"), "--script", str(path), "--port", "0"], stdout=out, stderr=out)

    def blocked():
        mask = re.search(r"^SigBlk:\s+(\w+)$", Path(f"/proc/{process.pid}/status").read_text(), re.MULTILINE)
        return int(mask.group(1), 16) & 1

    try:
        wait_until(blocked, 20, "SIGHUP is held back")
        process.send_signal(signal.SIGHUP)
        wait_until(lambda: "configuration 2 holds" in log.read_text() or process.poll() is not None, 20, "a reload")
        assert process.poll() is None
    finally:
        process.kill()
        process.wait()
