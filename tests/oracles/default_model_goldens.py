#!/usr/bin/env python3
"""Goldens of the default model: float64 NumPy forward pass from dequantised weights, greedy, 8 prompts x 64 tokens.

usage: default_model_goldens.py MODEL.gguf OUT_DIR

One file per prompt, default_model_<n>.bin. A text line (script, versions, model), then little-endian:
  u32 prompt length, u32 ids[]; u32 positions, u32 kept (64), u32 stride (97), u32 vocabulary; per position:
  u32 greedy token, f64 log-sum-exp, f64 gap between the best two logits,
  u32 ids[kept] by descending logit, f32 logits[kept], f32 logits of ids 0, stride, 2 * stride, ...
Position i holds the logits after prompt + i greedy tokens; the greedy tokens follow one another whatever they are
(also past an end-of-turn token), so that every file has 64 positions.
"""
import os
import struct
import sys

import gguf
import numpy as np
import tokenizers

POSITIONS, KEPT, STRIDE = 64, 64, 97

SYSTEM = "You are a helpful AI assistant named SmolLM, trained by Hugging Face"


def chat(question):
    return (f"<|im_start|>system\n{SYSTEM}<|im_end|>\n<|im_start|>user\n{question}<|im_end|>\n"
            "<|im_start|>assistant\n")


LONG = " ".join(
    f"Chapter {i}. The ship left harbour number {i * 7} with {i + 3} sailors, who spoke of winds, maps and bread."
    for i in range(1, 15))

PROMPTS = [
    chat("What is the capital of France?"),
    chat("Write a short poem about the sea."),
    "The history of the printing press begins",
    "def fibonacci(n):\n    \"\"\"Return the n-th Fibonacci number.\"\"\"\n",
    "1, 2, 4, 8, 16, 32, 64, 128,",
    "La Révolution française a commencé en",
    LONG + " Chapter 15.",
    "Q",
]


def make_tokenizer(fields):
    """SmolLM's: digits one by one, then GPT-2's byte-level BPE."""
    tokens = fields["tokenizer.ggml.tokens"].contents()
    kinds = fields["tokenizer.ggml.token_type"].contents()
    merges = [tuple(m.split(" ", 1)) for m in fields["tokenizer.ggml.merges"].contents()]
    tok = tokenizers.Tokenizer(
        tokenizers.models.BPE({t: i for i, t in enumerate(tokens)}, merges, ignore_merges=False))
    pre = tokenizers.pre_tokenizers
    tok.pre_tokenizer = pre.Sequence(
        [pre.Digits(individual_digits=True), pre.ByteLevel(add_prefix_space=False, use_regex=True)])
    tok.add_special_tokens([tokenizers.AddedToken(t, special=True, normalized=False)
                            for t, k in zip(tokens, kinds) if k == 3])
    return tok


class Reference:
    """A pre-norm decoder with rotary embedding, grouped-query attention and SwiGLU, in float64."""

    def __init__(self, path):
        reader = gguf.GGUFReader(path)
        self.fields = reader.fields
        get = lambda key: self.fields["llama." + key].contents()
        assert self.fields["general.architecture"].contents() == "llama"
        self.layers, self.heads = get("block_count"), get("attention.head_count")
        self.kv_heads, self.width = get("attention.head_count_kv"), get("embedding_length")
        self.head_dim = self.width // self.heads
        self.eps = float(get("attention.layer_norm_rms_epsilon"))
        self.base = float(get("rope.freq_base"))
        self.weights = {t.name: gguf.dequantize(t.data, t.tensor_type).astype(np.float64)
                        for t in reader.tensors}

    def norm(self, x, name):
        return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + self.eps) * self.weights[name + ".weight"]

    def project(self, x, name):
        return x @ self.weights[name + ".weight"].T

    def rotate(self, x, positions):
        """Rotates pairs (2i, 2i+1) of x [tokens, heads, head_dim]."""
        frequency = self.base ** (-2.0 * np.arange(self.head_dim // 2) / self.head_dim)
        angle = positions[:, None, None] * frequency
        z = (x[..., 0::2] + 1j * x[..., 1::2]) * np.exp(1j * angle)
        out = np.empty_like(x)
        out[..., 0::2], out[..., 1::2] = z.real, z.imag
        return out

    def attend(self, q, k, v, first):
        """q [t, heads, d] at positions first.. over k, v [n, kv_heads, d], causal."""
        group = self.heads // self.kv_heads
        qg = q.reshape(len(q), self.kv_heads, group, self.head_dim)
        scores = np.einsum("tkgd,nkd->kgtn", qg, k) / np.sqrt(self.head_dim)
        hidden = np.arange(k.shape[0])[None, :] > (first + np.arange(len(q)))[:, None]
        scores[..., hidden] = -np.inf
        p = np.exp(scores - scores.max(axis=-1, keepdims=True))
        p /= p.sum(axis=-1, keepdims=True)
        return np.einsum("kgtn,nkd->tkgd", p, v).reshape(len(q), self.width)

    def hidden(self, ids, cache):
        """Normed hidden states of ids; `cache` (a list, empty at first) holds keys and values per layer."""
        first = cache[0][0].shape[0] if cache else 0
        positions = first + np.arange(len(ids), dtype=np.float64)
        x = self.weights["token_embd.weight"][ids]
        for layer in range(self.layers):
            b = f"blk.{layer}."
            h = self.norm(x, b + "attn_norm")
            shape = (len(ids), -1, self.head_dim)
            q = self.rotate(self.project(h, b + "attn_q").reshape(shape), positions)
            k = self.rotate(self.project(h, b + "attn_k").reshape(shape), positions)
            v = self.project(h, b + "attn_v").reshape(shape)
            if first:
                k, v = np.concatenate([cache[layer][0], k]), np.concatenate([cache[layer][1], v])
                cache[layer] = (k, v)
            else:
                cache.append((k, v))
            x = x + self.project(self.attend(q, k, v, first), b + "attn_output")
            h = self.norm(x, b + "ffn_norm")
            gate = self.project(h, b + "ffn_gate")
            x = x + self.project(gate / (1 + np.exp(-gate)) * self.project(h, b + "ffn_up"), b + "ffn_down")
        return self.norm(x, "output_norm")

    def logits(self, hidden):
        return self.project(hidden, "output" if "output.weight" in self.weights else "token_embd")

    def forward(self, ids, cache):
        """Logits of the last id."""
        return self.logits(self.hidden(ids, cache)[-1])


def main():
    path, out_dir = sys.argv[1:]
    model = Reference(path)
    tokenizer = make_tokenizer(model.fields)
    header = (f"# tests/oracles/default_model_goldens.py, numpy {np.__version__}, no seed (greedy), "
              f"{os.path.basename(path)}\n")
    for number, prompt in enumerate(PROMPTS):
        ids = tokenizer.encode(prompt, add_special_tokens=False).ids
        out = bytearray(header.encode())
        out += struct.pack(f"<I{len(ids)}I", len(ids), *ids)
        cache, step, greedy = [], ids, []
        for position in range(POSITIONS):
            logits = model.forward(step, cache)
            if position == 0:
                out += struct.pack("<IIII", POSITIONS, KEPT, STRIDE, len(logits))
            order = np.argsort(-logits, kind="stable")[:KEPT]
            top = logits[order[0]]
            lse = top + np.log(np.exp(logits - top).sum())
            out += struct.pack("<Idd", order[0], lse, top - logits[order[1]])
            out += order.astype("<u4").tobytes() + logits[order].astype("<f4").tobytes()
            out += logits[::STRIDE].astype("<f4").tobytes()
            step = [int(order[0])]
            greedy += step
        with open(os.path.join(out_dir, f"default_model_{number}.bin"), "wb") as f:
            f.write(out)
        print(number, len(ids), repr(tokenizer.decode(greedy, skip_special_tokens=False))[:160], flush=True)


if __name__ == "__main__":
    main()
