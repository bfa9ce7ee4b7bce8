"""Throughput of Hugging Face tokenizers on one core, to stand beside bench_tokenizer.

  hf_tokenizers.py MODEL.gguf TEXT...

The tokenizer.json is made of the GGUF's vocabulary as for the goldens. Best CPU time of five.
"""

import json
import os
import pathlib
import sys
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "oracles"))

import tokenizer_json  # noqa: E402
from tokenizers import Tokenizer, __version__  # noqa: E402


def main():
    spec = tokenizer_json.read_gguf(sys.argv[1])
    tokenizer = Tokenizer.from_str(json.dumps(tokenizer_json.tokenizer_json(spec, False)))
    for path in sys.argv[2:]:
        text = open(path, encoding="utf-8", newline="").read()
        best = float("inf")
        for _ in range(5):
            begin = time.process_time()
            ids = tokenizer.encode(text, add_special_tokens=False).ids
            best = min(best, time.process_time() - begin)
        print("tokenizers %s  %s  %.2f MB/s  %d ids" % (__version__, path, len(text.encode()) / 1e6 / best, len(ids)))


if __name__ == "__main__":
    main()
