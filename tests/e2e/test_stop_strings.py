"""Stop strings and law 1: however a text is cut into tokens and steps, the answer is the same."""

import itertools
import json

import pytest

from harness.script import script, says
from harness.sse import joined, parse_events, stream_chat


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


# case, text, fields, expected content, the stop string that ends it (None: EOS)
LAW_CASES = [
    ("B40a", "abcabdab", {"stop": ["abd"]}, "abc", "abd"),
    ("B40a-included", "abcabdab", {"stop": ["abd"], "include_stop_str_in_output": True}, "abcabd", "abd"),
    ("B40a-bytes", "aé漢😀zz", {"stop": ["😀"]}, "aé漢", "😀"),
    ("overlap", "abababc", {"stop": ["babc", "zz"]}, "aba", "babc"),
    ("never-complete", "abababc", {"stop": ["abac"]}, "abababc", None),
    ("plain", "hello", {}, "hello", None),
    ("B15", "Hi Alice\nx", {"stop": ["\n", "Alice:"]}, "Hi Alice", "\n"),
    ("B17", "UNO DUE TRE", {"stop": ["TRE\nAAAAAAAA"]}, "UNO DUE TRE", None),
    ("first-complete", "UNO DUE TREA", {"stop": ["TREAT", "E T"]}, "UNO DU", "E T"),
]


def bytes_of(entries):
    return b"".join(bytes(e["bytes"]) for e in entries)


def chat_answer(server, text, stream, **fields):
    """(content, finish_reason, stop_reason, completion tokens, bytes that have logprobs)"""
    if not stream:
        body = server.chat(text, logprobs=True, **fields).json()
        choice = body["choices"][0]
        said, entries, usage = choice["message"]["content"], choice["logprobs"]["content"], body["usage"]
    else:
        events = stream_chat(server, text, logprobs=True, stream_options={"include_usage": True}, **fields)
        entries = [x for e in events for c in e["choices"] if c["logprobs"] for x in c["logprobs"]["content"]]
        said, usage = joined(events), events[-1]["usage"]
        choice = [c for e in events for c in e["choices"] if c["finish_reason"]][0]
    return said, choice["finish_reason"], choice["stop_reason"], usage["completion_tokens"], bytes_of(entries)


def completion_answer(server, text, stream, **fields):
    raw = server.post("/v1/completions", {
        "prompt": text, "logprobs": 0, "max_tokens": 64, "stream": stream, **fields,
        **({"stream_options": {"include_usage": True}} if stream else {}),
    })  # fmt: skip
    assert raw.status_code == 200, raw.text
    events = parse_events(raw.content.decode()) if stream else [raw.json()]
    choices = [c for e in events for c in e["choices"]]
    end = [c for c in choices if c["finish_reason"]][0]
    tokens = [t for c in choices if c["logprobs"] for t in c["logprobs"]["tokens"]]
    offsets = [o for c in choices if c["logprobs"] for o in c["logprobs"]["text_offset"]]
    assert offsets == sorted(offsets)
    said = "".join(c["text"] for c in choices)
    usage = events[-1]["usage"]["completion_tokens"]
    return said, end["finish_reason"], end["stop_reason"], usage, "".join(tokens).encode()


@pytest.mark.parametrize("text,fields,expected,stop", [c[1:] for c in LAW_CASES], ids=[c[0] for c in LAW_CASES])
def test_law1_split_invariance(replay, text, fields, expected, stop):
    """Every segmentation of the text, with each number of tokens per step, route, streamed or not: one answer."""
    ways = list(itertools.product((1, 3, [2, 1]), (chat_answer, completion_answer), (False, True)))
    # Short texts: each segmentation in three ways; long ones: in one. All the ways come up in turn.
    each = 3 if len(text) < 10 else 1
    splits = [pieces for pieces in segmentations(text) for _ in range(each)]
    cases = [(pieces, *ways[i % len(ways)]) for i, pieces in enumerate(splits)]
    lines = [says(*pieces, k=k, when=f"<{i}>") for i, (pieces, k, _, _) in enumerate(cases)]
    server = replay(script(*lines))
    shown = len(expected.encode())
    end = len(text.encode()) if stop is None else text.encode().index(stop.encode()) + len(stop.encode())
    wrong = []
    for i, (pieces, k, ask, stream) in enumerate(cases):
        ends = list(itertools.accumulate(len(p.encode()) for p in pieces))
        # Tokens up to the one that completes the stop string; with EOS where there is none.
        tokens = len(ends) + 1 if stop is None else next(n for n, e in enumerate(ends, 1) if e >= end)
        # What is cut from the text is cut from the logprobs: those of tokens that begin in what is shown.
        begins = [0, *ends]
        scored = max((e for b, e in zip(begins, ends) if b < shown), default=0)
        want = (expected, "stop", stop, tokens)
        got = ask(server, f"<{i}>", stream, **fields)
        if got[:4] != want or got[4] != text.encode()[:scored]:
            wrong.append((pieces, k, ask.__name__, stream, got[:4], got[4].decode(errors="replace"), want))
    assert not wrong, f"{len(wrong)}: " + json.dumps(wrong[:3], ensure_ascii=False)


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
