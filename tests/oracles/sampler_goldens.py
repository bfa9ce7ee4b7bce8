#!/usr/bin/env python3
"""Goldens of the sampler: a float64 NumPy filter chain (temperature, min-p, top-k, top-p).

usage: sampler_goldens.py OUT.txt
Each case: a line "case T top_k top_p min_p V", a line of V logits (exact decimals), a line of the kept ids, a
line of their probabilities. Parameters whose cut would fall within 1e-5 of a token's cumulative probability are
drawn again, so that float32 weights cannot turn the set.
"""
import sys

import numpy as np

SEED = 20240731
CASES = 60


def filter_chain(logits, temperature, top_k, top_p, min_p):
    """Returns (kept ids ascending, their probabilities, distance of the nearest cut)."""
    x = logits.astype(np.float64) / temperature
    prob = np.exp(x - x.max())
    prob /= prob.sum()
    gap = np.inf
    keep = np.ones(len(x), bool)
    if min_p > 0:
        ratio = prob / prob.max()
        gap = min(gap, np.abs(ratio - min_p).min() / min_p)
        keep &= ratio >= min_p
    order = np.lexsort((np.arange(len(x)), -logits.astype(np.float64)))
    order = order[keep[order]]
    if top_k > 0:
        order = order[:top_k]
    if top_p < 1:
        p = prob[order] / prob[order].sum()
        before = np.concatenate([[0.0], np.cumsum(p)[:-1]])
        gap = min(gap, np.abs(before[1:] - top_p).min() if len(p) > 1 else np.inf)
        stays = before < top_p
        stays[0] = True
        order = order[stays]
    ids = np.sort(order)
    return ids, prob[ids] / prob[ids].sum(), gap


def draw_case(rng):
    vocab = int(rng.choice([1, 2, 7, 33, 160, 300, 517]))
    spread = float(rng.choice([0.3, 2.0, 6.0]))
    logits = rng.standard_normal(vocab) * spread + rng.choice([-40.0, 0.0, 11.0])
    logits = (np.round(logits * 1024) / 1024).astype(np.float32)
    if rng.random() < 0.4:  # many exact ties
        logits = np.round(logits).astype(np.float32)
    if rng.random() < 0.3:  # masked ids
        logits[rng.random(vocab) < 0.3] = -np.inf
        if np.isinf(logits).all():
            logits[0] = 0.0
    temperature = float(np.float32(rng.choice([0.2, 0.7, 1.0, 1.7])))
    top_k = int(rng.choice([-1, 0, 1, 2, 5, 40, 256, 257, 400]))
    top_p = float(np.float32(rng.choice([1.0, 0.0, rng.random(), 0.9, 0.999])))
    min_p = float(np.float32(rng.choice([0.0, 0.0, rng.random() * 0.3])))
    return logits, temperature, top_k, top_p, min_p


def main():
    rng = np.random.default_rng(SEED)
    lines = [f"# tests/oracles/sampler_goldens.py, numpy {np.__version__}, seed {SEED}"]
    made = 0
    with np.errstate(divide="ignore"):
        while made < CASES:
            logits, temperature, top_k, top_p, min_p = draw_case(rng)
            ids, prob, gap = filter_chain(logits, temperature, top_k, top_p, min_p)
            if gap < 1e-5:
                continue
            ids, prob = ids[prob > 1e-30], prob[prob > 1e-30]  # what float32 weights can represent
            lines.append(f"case {temperature!r} {top_k} {top_p!r} {min_p!r} {len(logits)}")
            lines.append(" ".join(repr(float(v)) for v in logits))
            lines.append(" ".join(map(str, ids)))
            lines.append(" ".join(f"{p:.9e}" for p in prob))
            made += 1
    with open(sys.argv[1], "w") as f:
        f.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
