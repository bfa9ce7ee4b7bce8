"""Replay scripts (tests/fakes/replay_script.h), written as Python values."""

import json

SPECIALS = ["<|endoftext|>", "<|im_start|>", "<|im_end|>"]
# Ids of the replay vocabulary: 256 bytes, the specials, then the pieces in order of first use.
ENDOFTEXT, IM_START, IM_END = 256, 257, 258
FIRST_PIECE = 259


def script(*behaviours, **header):
    lines = [{"specials": SPECIALS, **header}, *behaviours]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def says(*pieces, when=None, **more):
    """The model's answer as tokens; bytes become hex."""
    out = {"pieces": [{"hex": p.hex()} if isinstance(p, bytes) else p for p in pieces], **more}
    return out if when is None else {"when": when, **out}


HELLO = script(
    says("Hel", "lo", " ", "wor", "ld", "!", when="hello"),
    says("x", when="endless", eos=False, delay_ms=2),
    says("ok"),
)
