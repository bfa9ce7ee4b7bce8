"""F11 (T form): more than the queue holds is 429 with Retry-After, everybody is answered."""

import concurrent.futures

from harness.script import script, says
from harness.wait import wait_until


def test_f11_queue_full(own_replay):
    server = own_replay(
        script(says("x", eos=False, delay_ms=1)), "--max-num-seqs", "4", "--max-waiting-requests", "8"
    )
    with concurrent.futures.ThreadPoolExecutor(64) as threads:
        answers = list(threads.map(lambda _: server.chat("hi", max_tokens=50), range(200)))
    statuses = [a.status_code for a in answers]
    assert set(statuses) <= {200, 429} and 429 in statuses and statuses.count(200) >= 12
    for answer in answers:
        if answer.status_code == 429:
            assert int(answer.headers["retry-after"]) >= 1
            assert answer.json()["error"]["code"] == "rate_limit_exceeded"
            assert answer.json()["error"]["type"] == "rate_limit_error"
    wait_until(server.idle, 5, "idle")
    assert server.stop() == 0


def test_f13_larger_than_all_kv(replay):
    server = replay(script(says("ok"), num_blocks=8, max_model_len=4096))
    answer = server.chat("x" * 400)
    error = answer.json()["error"]
    assert answer.status_code == 400 and error["param"] == "messages" and "128" in error["message"]
    server.assert_serves()


def test_f12_preemption_changes_nothing(own_replay):
    # Steps long enough for requests to meet, on however idle a machine.
    lines = [says(*["abcdefgh"[(i + j) % 8] for j in range(120)], when=f"<{i}>", delay_ms=2) for i in range(16)]
    server = own_replay(script(*lines, num_blocks=30, max_model_len=400), "--max-num-seqs", "16")
    with concurrent.futures.ThreadPoolExecutor(16) as threads:
        answers = list(threads.map(lambda i: server.chat(f"<{i}>", max_tokens=200).json(), range(16)))
    for i, answer in enumerate(answers):
        assert answer["choices"][0]["message"]["content"] == "".join("abcdefgh"[(i + j) % 8] for j in range(120))
    assert server.metric("vllm:num_preemptions_total") > 0
    wait_until(server.idle, 5, "idle")
    assert server.stop() == 0
