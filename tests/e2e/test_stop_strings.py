"""Stop strings and law 1: however a text is cut into tokens and steps, the answer is the same."""

import itertools
import json

import pytest

from harness.script import script, says
from harness.sse import finish_reasons, joined, stream_chat


def segmentations(text):
    """Every way to cut `text` into pieces."""
    for cuts in itertools.product([False, True], repeat=len(text) - 1):
        pieces, start = [], 0
        for i, cut in enumerate(cuts, 1):
            if cut:
                pieces.append(text[start:i])
                start = i
        yield [*pieces, text[start:]]


def test_B15_text_is_sent_once(replay):
    server = replay(script(says("Hi", " Al", "ice", "\n", "x")))
    assert joined(stream_chat(server, stop=["\n", "Alice:"])) == "Hi Alice"


def test_B17_held_back_text_is_flushed_at_eos(replay):
    server = replay(script(says("UNO DUE ", "TRE")))
    assert joined(stream_chat(server, stop=["TRE\nAAAAAAAA"])) == "UNO DUE TRE"
    assert server.chat(stop=["TRE\nAAAAAAAA"]).json()["choices"][0]["message"]["content"] == "UNO DUE TRE"


# text, fields, expected content, finish reason
LAW_CASES = [
    ("abcabdab", {"stop": ["abd"]}, "abc", "stop"),
    ("abcabdab", {"stop": ["abd"], "include_stop_str_in_output": True}, "abcabd", "stop"),
    ("aé漢😀zz", {"stop": ["😀"]}, "aé漢", "stop"),
    ("abababc", {"stop": ["babc", "zz"]}, "aba", "stop"),
    ("abababc", {"stop": ["abac"]}, "abababc", "stop"),
    ("hello", {}, "hello", "stop"),
]


@pytest.mark.parametrize("text,fields,expected,reason", LAW_CASES)
def test_law1_split_invariance(replay, text, fields, expected, reason):
    cases = [(pieces, k) for pieces in segmentations(text) for k in (1, 3, [2, 1])]
    lines = [says(*pieces, k=k, when=f"<{i}>") for i, (pieces, k) in enumerate(cases)]
    server = replay(script(*lines))
    wrong = []
    for i, (pieces, k) in enumerate(cases):
        whole = server.chat(f"<{i}>", logprobs=True, **fields).json()["choices"][0]
        got = (whole["message"]["content"], whole["finish_reason"])
        # What is cut from the text is cut from the logprobs.
        said = b"".join(bytes(e["bytes"]) for e in whole["logprobs"]["content"]).decode(errors="replace")
        if got != (expected, reason) or not (expected.startswith(said) or said.startswith(expected)):
            wrong.append((pieces, k, got, said))
        if i % 3 == 0:
            events = stream_chat(server, f"<{i}>", **fields)
            streamed = (joined(events), *finish_reasons(events))
            if streamed != (expected, reason):
                wrong.append((pieces, k, "stream", streamed))
    assert not wrong, json.dumps(wrong[:5], ensure_ascii=False)


def test_stop_and_max_tokens_meet(replay):
    server = replay(script(says("a", "b", "c", "d")))
    choice = server.chat(stop="c", max_tokens=3).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("ab", "stop")
    choice = server.chat(stop="cd", max_tokens=3).json()["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("abc", "length")


def test_usage_counts_delivered_tokens_whatever_k(replay):
    lines = [says("a", "b", "c", "d", "e", k=k, when=f"<{k}>") for k in (1, 2, 3, 7)]
    server = replay(script(*lines))
    for k in (1, 2, 3, 7):
        assert server.chat(f"<{k}>").json()["usage"]["completion_tokens"] == 6
        assert server.chat(f"<{k}>", max_tokens=2).json()["usage"]["completion_tokens"] == 2
        stopped = server.chat(f"<{k}>", stop="c").json()
        assert stopped["choices"][0]["message"]["content"] == "ab"
        assert stopped["usage"]["completion_tokens"] == 3


def test_B40a_stop_strings_wait_for_min_tokens(replay):
    server = replay(script(says("a", "b", "a", "b")))
    choice = server.chat(stop="b", min_tokens=3).json()["choices"][0]
    assert choice["message"]["content"] == "aba"
