#!/usr/bin/env python3
"""Goldens of the tiny models (tests/data/make_tiny_models.py): logits for a fixed sequence of ids.

usage: transformers_goldens.py TINY_FOLDER [OUTPUT_FOLDER]      needs numpy, gguf, torch, transformers

TINY_FOLDER is what make_tiny_models.py wrote. Two oracles that share no code and no file:
- `transformers` in float64 from the Hugging Face folder (its norms and its rope tables are float32 even so);
- a float64 NumPy forward pass from the GGUF, written here, which also covers the quantised files (dequantised by the
  `gguf` package).
For the models that both can read they must agree to 1e-4, or nothing is written. The models of single tensor types
have only the second.

Output: tiny_<name>.json, one object:
  made_by, versions   where it comes from
  oracle              "transformers float64" or "numpy float64"
  difference          largest |transformers - numpy| over all logits (absent for one oracle)
  model, architecture, vocabulary
  ids                 the input sequence; all positions are computed at once
  top, stride         how many best logits are kept (64), and the step of the sample (97)
  positions[]         one per input id, the logits *after* that id:
    lse               log of the sum of exp of all logits
    gap               best logit minus second best (compare the argmax only where it is large)
    top_ids, top_logits       the best `top`, best first; ties by lower id
    stride_logits     logits of ids 0, stride, 2 * stride, ...
Logits are rounded to 6 decimals."""
import json
import os
import sys
from importlib.metadata import version
from pathlib import Path

os.environ["HF_HUB_OFFLINE"] = "1"
import gguf
import numpy as np

TOP, STRIDE = 64, 97
TOLERANCE = 1e-4
LONG, SHORT = 40, 12  # ids for the float models, and for those of single tensor types


class DenseForward:
    """Pre-norm decoder with grouped-query attention, rotary embedding and SwiGLU; float64, all positions at once."""

    def __init__(self, path):
        reader = gguf.GGUFReader(str(path))
        fields = {key: field.contents() for key, field in reader.fields.items()}
        self.architecture = fields["general.architecture"]
        get = lambda key, default=None: fields.get(f"{self.architecture}.{key}", default)
        self.layers, self.heads, self.kv_heads = get("block_count"), get("attention.head_count"), get("attention.head_count_kv")
        self.head_dim = get("attention.key_length", get("embedding_length") // self.heads)
        self.eps = float(get("attention.layer_norm_rms_epsilon"))
        self.base = float(get("rope.freq_base"))
        self.factor = float(get("rope.scaling.factor", 1.0))
        self.vocabulary = get("vocab_size")
        self.w = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float64) for t in reader.tensors}

    def linear(self, x, name):
        y = x @ self.w[name + ".weight"].T
        bias = self.w.get(name + ".bias")
        return y if bias is None else y + bias

    def rms(self, x, name):
        return self.w[name + ".weight"] * x / np.sqrt((x**2).mean(-1, keepdims=True) + self.eps)

    def rope(self, x):
        """x is [token, head, head_dim]."""
        half = self.head_dim // 2
        frequency = self.base ** (-np.arange(half) / half) / self.factor
        if "rope_freqs.weight" in self.w:
            frequency = frequency / self.w["rope_freqs.weight"]
        angle = np.arange(len(x))[:, None, None] * frequency
        cos, sin = np.cos(angle), np.sin(angle)
        first, second = (np.s_[..., 0::2], np.s_[..., 1::2])
        if self.architecture != "llama":
            first, second = (np.s_[..., :half], np.s_[..., half:])
        out = np.empty_like(x)
        out[first] = x[first] * cos - x[second] * sin
        out[second] = x[first] * sin + x[second] * cos
        return out

    def attention(self, h, block):
        n = len(h)
        q = self.linear(h, block + "attn_q").reshape(n, self.heads, self.head_dim)
        k = self.linear(h, block + "attn_k").reshape(n, self.kv_heads, self.head_dim)
        v = self.linear(h, block + "attn_v").reshape(n, self.kv_heads, self.head_dim)
        if block + "attn_q_norm.weight" in self.w:
            q, k = self.rms(q, block + "attn_q_norm"), self.rms(k, block + "attn_k_norm")
        q, k = self.rope(q), self.rope(k)
        out = np.empty_like(q)
        for head in range(self.heads):
            kv = head // (self.heads // self.kv_heads)
            scores = q[:, head] @ k[:, kv].T / np.sqrt(self.head_dim)
            scores[np.triu_indices(n, 1)] = -np.inf
            p = np.exp(scores - scores.max(-1, keepdims=True))
            out[:, head] = p / p.sum(-1, keepdims=True) @ v[:, kv]
        return self.linear(out.reshape(n, -1), block + "attn_output")

    def logits(self, ids):
        x = self.w["token_embd.weight"][ids]
        for layer in range(self.layers):
            block = f"blk.{layer}."
            x = x + self.attention(self.rms(x, block + "attn_norm"), block)
            h = self.rms(x, block + "ffn_norm")
            gate = self.linear(h, block + "ffn_gate")
            x = x + self.linear(gate / (1 + np.exp(-gate)) * self.linear(h, block + "ffn_up"), block + "ffn_down")
        return self.linear(self.rms(x, "output_norm"), "output" if "output.weight" in self.w else "token_embd")


def transformers_logits(folder, ids):
    import torch
    from transformers import AutoModelForCausalLM

    model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").double().eval()
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0].double().numpy()


def positions(logits):
    out = []
    for row in logits:
        best = np.lexsort((np.arange(len(row)), -row))[:TOP]
        high = row.max()
        out.append({
            "lse": round(float(high + np.log(np.exp(row - high).sum())), 6),
            "gap": round(float(row[best[0]] - row[best[1]]), 6),
            "top_ids": best.tolist(),
            "top_logits": [round(float(v), 6) for v in row[best]],
            "stride_logits": [round(float(v), 6) for v in row[::STRIDE]],
        })
    return out


def main():
    tiny = Path(sys.argv[1])
    default = Path(__file__).resolve().parent.parent / "data/goldens/tiny"
    out = Path(sys.argv[2]) if len(sys.argv) > 2 else default
    out.mkdir(parents=True, exist_ok=True)
    for path in sorted(tiny.glob("tiny_*.gguf")):
        model, folder = DenseForward(path), path.with_suffix("")
        both = folder.is_dir()
        ids = [(37 * i + 11) % model.vocabulary for i in range(LONG if both else SHORT)]
        logits, extra = model.logits(ids), {}
        if both:
            reference = transformers_logits(folder, ids)
            extra["difference"] = float(f"{np.abs(reference - logits).max():.3g}")
            if extra["difference"] > TOLERANCE:
                sys.exit(f"{path.name}: transformers and NumPy differ by {extra['difference']}")
            logits = reference
        golden = {
            "made_by": "tests/oracles/transformers_goldens.py",
            "versions": {p: version(p) for p in ("numpy", "gguf", "torch", "transformers")},
            "oracle": "transformers float64" if both else "numpy float64", **extra,
            "model": path.stem, "architecture": model.architecture, "vocabulary": model.vocabulary,
            "ids": ids, "top": TOP, "stride": STRIDE, "positions": positions(logits),
        }
        (out / f"{path.stem}.json").write_text(json.dumps(golden, separators=(",", ":")) + "\n")
        gaps = [p["gap"] for p in golden["positions"]]
        print(f"{path.stem}: difference {extra.get('difference', '-')}, logits spread {logits.std():.2f}, "
              f"median gap {np.median(gaps):.3f}")


if __name__ == "__main__":
    main()
