#!/usr/bin/env python3
"""Goldens of the dequantising reference decoder: random blocks of every supported type and what gguf-py makes of them.

Usage: dequant_goldens.py [OUT]   (default: tests/data/dequant.golden)

File: one text line (script, versions, seed), then per type, little-endian: u32 ggml type, u32 blocks, u32 elements per
block, u32 bytes per block, the blocks, the expected floats.
"""
import pathlib
import struct
import sys
from importlib.metadata import version

import numpy as np
from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType as T
from gguf.quants import dequantize

SEED = 20240611
# Byte offsets of the f16 fields in a block: they must be finite, everything else may be any bits.
HALVES = {
    T.Q4_0: [0], T.Q4_1: [0, 2], T.Q5_0: [0], T.Q5_1: [0, 2], T.Q8_0: [0],
    T.Q2_K: [80, 82], T.Q3_K: [108], T.Q4_K: [0, 2], T.Q5_K: [0, 2], T.Q6_K: [208],
}


def finite_halves(rng, n):
    bits = rng.integers(0, 1 << 16, n, dtype=np.uint16)
    return np.where((bits & 0x7C00) == 0x7C00, bits & 0x83FF, bits)  # infinities and NaNs become subnormals


def random_blocks(rng, kind, count):
    _, size = GGML_QUANT_SIZES[kind]
    if kind == T.F32:
        values = rng.integers(0, 1 << 32, count, dtype=np.uint32)
        values = np.where((values & 0x7F800000) == 0x7F800000, values & 0x807FFFFF, values)
        return values.astype("<u4").view(np.uint8).reshape(count, 4)
    if kind == T.F16:
        return finite_halves(rng, count).astype("<u2").view(np.uint8).reshape(count, 2)
    if kind == T.BF16:
        values = rng.integers(0, 1 << 16, count, dtype=np.uint16)
        values = np.where((values & 0x7F80) == 0x7F80, values & 0x807F, values)
        return values.astype("<u2").view(np.uint8).reshape(count, 2)
    blocks = rng.integers(0, 256, (count, size), dtype=np.uint8)
    for at in HALVES[kind]:
        blocks[:, at:at + 2] = finite_halves(rng, count).astype("<u2").view(np.uint8).reshape(count, 2)
    return blocks


def main():
    root = pathlib.Path(__file__).resolve().parents[1]
    out = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else root / "data" / "dequant.golden"
    rng = np.random.default_rng(SEED)
    kinds = [T.F32, T.F16, T.BF16, *HALVES]
    with open(out, "wb") as f:
        f.write(f"tests/oracles/dequant_goldens.py gguf {version('gguf')} numpy {np.__version__} "
                f"seed {SEED} types {len(kinds)}\n".encode())
        for kind in kinds:
            elements, size = GGML_QUANT_SIZES[kind]
            count = {1: 512, 32: 48, 256: 8}[elements]
            blocks = random_blocks(rng, kind, count)
            values = dequantize(blocks.reshape(1, -1), kind).astype("<f4")
            assert values.size == count * elements and np.isfinite(values).all()
            f.write(struct.pack("<4I", kind.value, count, elements, size))
            f.write(blocks.tobytes())
            f.write(values.tobytes())


if __name__ == "__main__":
    main()
