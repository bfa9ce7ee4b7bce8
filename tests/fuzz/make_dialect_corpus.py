"""Writes corpus/dialect and corpus/reasoning: the dialect files, whole and damaged, and texts of each family in pieces.

Run from anywhere: python3 tests/fuzz/make_dialect_corpus.py (seed 1).
"""

import random
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
CORPUS = ROOT / "tests/fuzz/corpus"


def write(folder, name, data):
    (CORPUS / folder).mkdir(parents=True, exist_ok=True)
    (CORPUS / folder / name).write_bytes(data)


def in_pieces(rng, index, start, text):
    out = bytearray([index, start])
    at = 0
    while at < len(text):
        n = rng.randint(0, 9)
        piece = text[at : at + n]
        out += bytes([len(piece)]) + piece
        at += n
    return bytes(out)


def main():
    rng = random.Random(1)
    files = sorted((ROOT / "configs/dialects").glob("*.toml"))
    for index, path in enumerate(files):
        data = path.read_bytes()
        write("dialect", path.stem, data)
        cut = rng.randrange(len(data))
        write("dialect", f"{path.stem}_cut", data[:cut])
        write("dialect", f"{path.stem}_byte", data[:cut] + bytes([rng.randrange(256)]) + data[cut + 1 :])
        form = tomllib.loads(data.decode())["reasoning"]
        opener, closer = form["open"][0], form["close"][0]
        drop = "".join(form.get("drop", []))
        texts = [
            f"\n{opener}\nthought\n{closer}\n\n{drop}answer\n",
            f"{opener}not closed {closer[:-1]}",
            f"a{opener}b{closer}c{opener}d{closer}e",
            f"\n\n{opener[:-1]} é😀 {closer}{closer}\n",
        ]
        for i, text in enumerate(texts):
            write("reasoning", f"{path.stem}_{i}", in_pieces(rng, index, i % 3, text.encode()))
    for name, text in {
        "nested": "[detect]\n[reasoning]\nopen=['a','ab']\nclose=['b']\n",
        "types": "aliases=1\n[detect]\ntemplate='x'\n[reasoning]\nopen=1\n",
        "empty": "",
        "deep": "a=" + "[" * 300,
        "dotted": "reasoning.open=['a']\nreasoning.close=['b']\ndetect={}\n",
    }.items():
        write("dialect", name, text.encode())


if __name__ == "__main__":
    main()
