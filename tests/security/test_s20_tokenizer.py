"""S20: long and hostile text is answered or refused in bounded time."""

import time

import pytest

from harness.script import HELLO


@pytest.mark.parametrize("unit", ["a", "😀", " ", "\n", "<|im_end|>", "a b"])
def test_s20_long_text(hello, unit):
    text = unit * (4 * 2**20 // len(unit.encode()))
    started = time.monotonic()
    answer = hello.post("/v1/completions", {"prompt": text}, timeout=60)
    print(f"{len(text.encode()) / 2**20:.0f} MiB: {time.monotonic() - started:.2f} s")
    assert answer.status_code == 400 and answer.json()["error"]["code"] == "context_length_exceeded"
    hello.assert_serves()


def test_s20_more_than_16_mib_is_413(hello):
    answer = hello.post("/v1/completions", {"prompt": "a" * (16 * 2**20 + 1)}, timeout=60)
    assert answer.status_code == 413 and answer.json()["error"]["param"] == "prompt"
    hello.assert_serves()
