#!/usr/bin/env python3
"""The model that stands in for stories260K, which the peer's tests fetch from a hub.

usage: peer_model.py FILE.gguf        needs NumPy only

Random weights on the SentencePiece vocabulary of tests/data, a context of 8,192 tokens and a BOS like the original. The
head's rows of control and byte tokens are zero and the others large, so that answers are made of words and do not end by
themselves: the tests ask for a number of tokens and count them."""
import sys
from pathlib import Path

import numpy as np

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "data"))
import make_tiny_models as tiny  # noqa: E402
import tiny_gguf  # noqa: E402

NOT_WORDS = 5 + 256  # control tokens and bytes come first
SEED = 260


def main():
    shape = tiny.row("llama", "Llama", 64, 4, 2, 16, 96, theta=10000.0, spm=True)
    arrays = tiny.weights(shape, tiny_gguf.Random(SEED))
    arrays["lm_head.weight"] *= np.float32(2)
    arrays["lm_head.weight"][:NOT_WORDS] = np.float32(0)
    values = tiny.metadata("stories", shape)
    values["llama.context_length"] = 8192
    tiny_gguf.write(Path(sys.argv[1]), values, tiny.gguf_tensors(shape, arrays))


if __name__ == "__main__":
    main()
