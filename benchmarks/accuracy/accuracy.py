#!/usr/bin/env python3
"""How far the served numerics are from the model itself: KL divergence, top-1 and perplexity against a float64 forward
pass of the dequantised weights, ours beside llama.cpp's, on the same file and text.

  accuracy.py --model FILE.gguf --eval build/omnibus-eval [--peer DIR/llama_eval] [--positions 4096] [--json OUT]

The text is Python's own reference documentation (pydoc_data.topics: prose that every Python carries), cut into
sequences of 512 ids. Needs numpy, gguf and tokenizers (tests/oracles/requirements.txt). Bars (docs/testing.md): mean KL <=
1.10 x llama.cpp's, top-1 equal wherever the reference's margin is > 0.6, perplexity <= 0.5 % off.
"""
import argparse
import json
import os
import pydoc_data.topics
import struct
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.join(os.path.dirname(__file__), "..", "..", "tests", "oracles"))
from default_model_goldens import Reference, make_tokenizer  # noqa: E402

LENGTH = 512


def sequences(model, positions):
    text = "\n\n".join(pydoc_data.topics.topics[k] for k in sorted(pydoc_data.topics.topics))
    ids = make_tokenizer(model.fields).encode(text[:positions * 8], add_special_tokens=False).ids
    count = (positions + LENGTH - 2) // (LENGTH - 1)
    assert len(ids) >= count * LENGTH, "the text is too short"
    return [ids[i * LENGTH:(i + 1) * LENGTH] for i in range(count)]


def read_logits(path):
    """The file of omnibus-eval, one [n, vocabulary] array per sequence (mapped, not read)."""
    data = np.memmap(path, dtype=np.uint8, mode="r")
    assert bytes(data[:8]) == b"OMNILOGT"
    _, vocab, count = struct.unpack("<III", bytes(data[8:20]))
    at, out = 20, []
    for _ in range(count):
        (n,) = struct.unpack("<I", bytes(data[at:at + 4]))
        out.append(data[at + 4:at + 4 + 4 * n * vocab].view("<f4").reshape(n, vocab))
        at += 4 + 4 * n * vocab
    return out


def log_softmax(x):
    x = x.astype(np.float64)
    x -= x.max(axis=-1, keepdims=True)
    return x - np.log(np.exp(x).sum(axis=-1, keepdims=True))


class Score:
    def __init__(self):
        self.kl, self.wrong_clear, self.agree, self.nll, self.max_abs = [], 0, 0, 0.0, 0.0

    def add(self, reference, ref_logp, logits, targets):
        logp = log_softmax(logits)
        self.kl += list((np.exp(ref_logp) * (ref_logp - logp)).sum(axis=-1))
        best = reference.argmax(axis=-1)
        top2 = np.partition(reference, -2, axis=-1)[:, -2:]
        clear = np.abs(top2[:, 1] - top2[:, 0]) > 0.6
        same = logits.argmax(axis=-1) == best
        self.agree += int(same.sum())
        self.wrong_clear += int((~same & clear).sum())
        self.nll -= float(logp[np.arange(len(targets)), targets].sum())
        self.max_abs = max(self.max_abs, float(np.abs(logits - reference).max()))

    def row(self, name, ref_nll):
        n = len(self.kl)
        ppl, ref = np.exp(self.nll / n), np.exp(ref_nll / n)
        return {"name": name, "positions": n, "mean_kl": float(np.mean(self.kl)), "p99_kl": float(np.quantile(self.kl, .99)),
                "max_abs_logit": self.max_abs, "top1": self.agree / n, "top1_wrong_where_margin_over_0.6": self.wrong_clear,
                "perplexity": float(ppl), "perplexity_off_percent": float(100 * (ppl / ref - 1))}


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--model", required=True)
    p.add_argument("--eval", required=True, help="omnibus-eval")
    p.add_argument("--peer", help="llama_eval of benchmarks/peers/llama_cpp")
    p.add_argument("--positions", type=int, default=4096)
    p.add_argument("--threads", type=int, default=2)
    p.add_argument("--json")
    a = p.parse_args()
    model = Reference(a.model)
    seqs = sequences(model, a.positions)
    with tempfile.TemporaryDirectory() as tmp:
        ids = os.path.join(tmp, "ids.txt")
        with open(ids, "w", encoding="ascii") as f:
            f.writelines(" ".join(map(str, s)) + "\n" for s in seqs)
        logits = {}
        for numerics in ("fast", "f32"):
            out = os.path.join(tmp, numerics)
            subprocess.run([a.eval, a.model, ids, "--out", out, "--numerics", numerics, "--threads", str(a.threads)],
                           check=True)
            logits["omnibus " + numerics] = read_logits(out)
        if a.peer:
            subprocess.run([a.peer, a.model, ids, os.path.join(tmp, "peer"), str(a.threads)], check=True)
            logits["llama.cpp"] = read_logits(os.path.join(tmp, "peer"))
        scores, ref_nll = {name: Score() for name in logits}, 0.0
        for i, s in enumerate(seqs):
            hidden = model.hidden(s, [])[:-1]
            for begin in range(0, LENGTH - 1, 128):   # bounds the [n, vocabulary] float64 arrays
                reference = model.logits(hidden[begin:begin + 128])
                logp = log_softmax(reference)
                targets = np.array(s[begin + 1:begin + 1 + len(reference)])
                ref_nll -= float(logp[np.arange(len(targets)), targets].sum())
                for name, values in logits.items():
                    scores[name].add(reference, logp, values[i][begin:begin + len(reference)], targets)
        rows = [score.row(name, ref_nll) for name, score in scores.items()]
    for r in rows:
        print(f"{r['name']:13s} mean KL {r['mean_kl']:.3e}  p99 {r['p99_kl']:.2e}  max |dlogit| {r['max_abs_logit']:.4f}  "
              f"top-1 {100 * r['top1']:.2f} %  wrong where margin > 0.6: {r['top1_wrong_where_margin_over_0.6']}  "
              f"perplexity {r['perplexity']:.4f} ({r['perplexity_off_percent']:+.3f} %)")
    by_name = {r["name"]: r for r in rows}
    if "llama.cpp" in by_name:
        print(f"mean KL, omnibus fast / llama.cpp: {by_name['omnibus fast']['mean_kl'] / by_name['llama.cpp']['mean_kl']:.3f}"
              f"   over {rows[0]['positions']} positions")
    if a.json:
        with open(a.json, "w", encoding="utf-8") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
