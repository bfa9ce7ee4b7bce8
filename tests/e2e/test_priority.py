"""--scheduling-policy priority: the lowest `priority` goes first."""

import concurrent.futures
import json

from harness.raw import connect, request_bytes
from harness.script import says, script
from harness.wait import wait_until

SCRIPT = script(says("x", when="endless", eos=False, delay_ms=2), says("ok", delay_ms=10))


def test_the_lowest_goes_first(own_replay):
    """One row, held until all the others wait."""
    server = own_replay(SCRIPT, "--max-num-seqs", "1", "--scheduling-policy", "priority", "--log-format", "json")
    priorities = [3, -5, 0, 2147483647, -2147483648, 7]
    body = json.dumps({"prompt": "endless", "max_tokens": 4000, "stream": True, "priority": -2147483648}).encode()
    with connect(server) as connection:
        connection.sendall(request_bytes("POST", "/v1/completions", body=body))
        wait_until(lambda: server.metric("vllm:num_requests_running") == 1, 10, "running")
        with concurrent.futures.ThreadPoolExecutor(len(priorities)) as threads:
            ask = lambda p: server.post("/v1/chat/completions", {"messages": [{"role": "user", "content": "hi"}], "priority": p},
                                        headers={"X-Request-Id": str(p)})
            answers = [threads.submit(ask, p) for p in priorities]
            wait_until(lambda: server.metric("vllm:num_requests_waiting") == len(priorities), 10, "waiting")
            connection.close()
            assert [a.result().status_code for a in answers] == [200] * len(priorities)
    wait_until(lambda: len(server.logged_requests()) == len(priorities) + 1, 10, "all lines")
    order = [int(line["request_id"]) for line in server.logged_requests() if not line["request_id"].startswith("req_")]
    assert order == sorted(priorities)
    assert server.stop() == 0


def test_without_the_policy_only_0(replay):
    server = replay(SCRIPT)
    assert server.chat(priority=0).status_code == 200
    for value in (1, -1):
        error = server.chat(priority=value).json()["error"]
        assert error["param"] == "priority" and error["code"] == "unsupported_parameter"
        assert "--scheduling-policy priority" in error["message"]
