"""F13: a request larger than all KV blocks together is refused at every door, with both numbers."""

import pytest

from harness.script import script, says

BLOCKS = 8  # 128 tokens; the context is larger
DOORS = {
    "/v1/chat/completions": lambda text: {"messages": [{"role": "user", "content": text}]},
    "/v1/completions": lambda text: {"prompt": text},
    "/chat/completions": lambda text: {"messages": [{"role": "user", "content": text}]},
    "/completion": lambda text: {"prompt": text},
    "/api/chat": lambda text: {"model": "replay", "messages": [{"role": "user", "content": text}], "stream": False},
    "/api/generate": lambda text: {"model": "replay", "prompt": text, "stream": False},
}


@pytest.mark.parametrize("door", sorted(DOORS))
def test_f13_larger_than_all_kv(replay, door, figures):
    server = replay(script(says("ok"), num_blocks=BLOCKS, max_model_len=4096))
    for stream in (False, True):
        answer = server.post(door, DOORS[door]("x" * 400) | {"stream": stream})
        assert answer.status_code == 400, answer.text
        assert str(16 * BLOCKS) in answer.text, answer.text
        asked = [n for n in range(400, 480) if str(n) in answer.text]
        assert asked, f"how much was asked for is missing: {answer.text}"
    figures.note(answer.text.strip()[:120])
    server.assert_serves()


def test_f13_the_error_names_the_field(replay):
    server = replay(script(says("ok"), num_blocks=BLOCKS, max_model_len=4096))
    assert server.chat("x" * 400).json()["error"]["param"] == "messages"
    assert server.post("/v1/completions", {"prompt": "x" * 400}).json()["error"]["param"] == "prompt"
