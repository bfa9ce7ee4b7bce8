#!/usr/bin/env python3
"""Tiny random-weight models, one for each dense architecture and variant, and one for each tensor type.

usage: make_tiny_models.py OUTPUT_FOLDER        needs NumPy only

Writes NAME.gguf for every row of MODELS and of TYPES, and for MODELS also NAME/config.json and NAME/model.safetensors
(Hugging Face's names and layout, float32) with the same weights. The same bytes on every machine and NumPy version, for
goldens are made from them once (tests/oracles/transformers_goldens.py). A stamp makes a second run do nothing."""
import hashlib
import json
import struct
import sys
from pathlib import Path

import numpy as np

import tiny_gguf as gg
import tiny_vocab

VOCABULARY = 515  # 3 control tokens, 256 bytes, 256 merges; odd on purpose
LLAMA3 = {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0,
          "original_max_position_embeddings": 64}


def row(arch, hf, hidden, heads, kv_heads, head_dim, ffn, layers=2, **more):
    """Optional: theta, eps, tied, bias, qk_norm, scaling (HF's rope_scaling), pre, spm."""
    return dict(arch=arch, hf=hf, hidden=hidden, heads=heads, kv_heads=kv_heads, head_dim=head_dim, ffn=ffn,
                layers=layers, **more)


MODELS = {
    "tiny_llama": row("llama", "Llama", 144, 9, 3, 16, 184, 3, tied=True, theta=10000.0),
    "tiny_llama3": row("llama", "Llama", 128, 8, 2, 16, 192, scaling=LLAMA3, theta=500000.0, pre="llama-bpe"),
    "tiny_llama_linear": row("llama", "Llama", 64, 4, 2, 16, 96, tied=True,
                             scaling={"rope_type": "linear", "factor": 4.0}),
    "tiny_mistral": row("llama", "Mistral", 96, 4, 2, 32, 160, theta=1000000.0, spm=True),
    "tiny_smollm": row("llama", "Llama", 192, 3, 1, 64, 160, tied=True, theta=100000.0),
    "tiny_qwen2": row("qwen2", "Qwen2", 128, 4, 2, 32, 160, bias=True, theta=1000000.0, eps=1e-6, pre="qwen2"),
    "tiny_qwen2_tied": row("qwen2", "Qwen2", 96, 6, 3, 16, 128, 3, bias=True, tied=True, theta=1000000.0, eps=1e-6,
                           pre="qwen2"),
    "tiny_qwen3": row("qwen3", "Qwen3", 96, 4, 2, 32, 160, 3, qk_norm=True, tied=True, theta=1000000.0, eps=1e-6,
                      pre="qwen2"),
}
# All matrices in one type; 256 is the longest block.
TYPED = row("llama", "Llama", 256, 4, 2, 64, 256, tied=True, theta=10000.0)
TYPES = [gg.F16, gg.BF16, gg.Q4_0, gg.Q4_1, gg.Q5_0, gg.Q5_1, gg.Q8_0, gg.Q2_K, gg.Q3_K, gg.Q4_K, gg.Q5_K, gg.Q6_K]


def metadata(name, m):
    a = m["arch"]
    out = {
        "general.architecture": a,
        "general.name": name,
        f"{a}.block_count": m["layers"],
        f"{a}.context_length": 512,
        f"{a}.embedding_length": m["hidden"],
        f"{a}.feed_forward_length": m["ffn"],
        f"{a}.attention.head_count": m["heads"],
        f"{a}.attention.head_count_kv": m["kv_heads"],
        f"{a}.attention.layer_norm_rms_epsilon": m.get("eps", 1e-5),
        f"{a}.rope.dimension_count": m["head_dim"],
        f"{a}.rope.freq_base": m.get("theta", 10000.0),
        f"{a}.vocab_size": VOCABULARY,
    }
    if m["heads"] * m["head_dim"] != m["hidden"] or a == "qwen3":
        out[f"{a}.attention.key_length"] = m["head_dim"]
        out[f"{a}.attention.value_length"] = m["head_dim"]
    if m.get("scaling", {}).get("rope_type") == "linear":
        out[f"{a}.rope.scaling.type"] = "linear"
        out[f"{a}.rope.scaling.factor"] = m["scaling"]["factor"]
    words = tiny_vocab.sentence_piece(VOCABULARY) if m.get("spm") else tiny_vocab.byte_level(m.get("pre", "smollm"), VOCABULARY)
    out.update({f"tokenizer.ggml.{k}": v for k, v in words.items()})
    out["tokenizer.chat_template"] = tiny_vocab.CHAT_TEMPLATE
    return out


def spreads(m):
    """HF name without layer -> (shape, spread, mean). Spreads keep activations near 1 and logits a few units apart."""
    h, f, d = m["hidden"], m["ffn"], m["head_dim"]
    q, kv = m["heads"] * d, m["kv_heads"] * d
    matrix = lambda rows, columns, gain: ((rows, columns), gain / columns**0.5, 0.0)
    norm = lambda size: ((size,), 0.2, 1.0)
    layer = {
        "input_layernorm.weight": norm(h),
        "self_attn.q_proj.weight": matrix(q, h, 1.5),
        "self_attn.k_proj.weight": matrix(kv, h, 1.5),
        "self_attn.v_proj.weight": matrix(kv, h, 1.0),
        "self_attn.o_proj.weight": matrix(h, q, 1.0),
        "post_attention_layernorm.weight": norm(h),
        "mlp.gate_proj.weight": matrix(f, h, 1.5),
        "mlp.up_proj.weight": matrix(f, h, 1.0),
        "mlp.down_proj.weight": matrix(h, f, 1.0),
    }
    if m.get("bias"):
        for name, size in (("q", q), ("k", kv), ("v", kv)):
            layer[f"self_attn.{name}_proj.bias"] = ((size,), 0.5, 0.0)
    if m.get("qk_norm"):
        layer["self_attn.q_norm.weight"] = layer["self_attn.k_norm.weight"] = norm(d)
    outer = {"model.embed_tokens.weight": ((VOCABULARY, h), 0.3, 0.0), "model.norm.weight": norm(h)}
    if not m.get("tied"):
        outer["lm_head.weight"] = ((VOCABULARY, h), 0.3, 0.0)
    return outer, layer


def all_spreads(m):
    outer, layer = spreads(m)
    out = dict(outer)
    for i in range(m["layers"]):
        out.update({f"model.layers.{i}.{name}": value for name, value in layer.items()})
    return out


def weights(m, random):
    """HF name -> float32 array."""
    return {name: random.normal(*shape) * np.float32(spread) + np.float32(mean)
            for name, (shape, spread, mean) in all_spreads(m).items()}


RENAMES = {
    "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output", "input_layernorm": "attn_norm",
    "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output", "self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm",
    "post_attention_layernorm": "ffn_norm", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
}


def gguf_name(hf_name):
    stem, kind = hf_name.rsplit(".", 1)
    if stem.startswith("model.layers."):
        layer, stem = stem[len("model.layers."):].split(".", 1)
        return f"blk.{layer}.{RENAMES[stem]}.{kind}"
    return f"{RENAMES[stem]}.{kind}"


def interleaved(array, heads):
    """HF's order of a head's rows (first halves, then second halves) to GGUF's for NORM rope: pairs side by side."""
    halves = array.reshape(heads, 2, -1, *array.shape[1:])
    return np.ascontiguousarray(halves.swapaxes(1, 2)).reshape(array.shape)


def rope_factors(m):
    """Divisors of the rope frequencies for llama3 scaling."""
    s = m["scaling"]
    out = []
    for i in range(m["head_dim"] // 2):
        wavelength = 2 * np.pi * m["theta"] ** (2 * i / m["head_dim"])
        t = (s["original_max_position_embeddings"] / wavelength - s["low_freq_factor"])
        t /= s["high_freq_factor"] - s["low_freq_factor"]
        t = min(max(t, 0.0), 1.0)
        out.append(1.0 / ((1.0 - t) / s["factor"] + t))
    return np.array(out, np.float32)


def gguf_tensors(m, arrays):
    out = []
    for name, array in arrays.items():
        target = gguf_name(name)
        if m["arch"] == "llama" and ".attn_q." in target:
            array = interleaved(array, m["heads"])
        if m["arch"] == "llama" and ".attn_k." in target:
            array = interleaved(array, m["kv_heads"])
        out.append((target, array.shape, gg.F32, gg.encoded(array, gg.F32)))
    if m.get("scaling", {}).get("rope_type") == "llama3":
        factors = rope_factors(m)
        out.append(("rope_freqs.weight", factors.shape, gg.F32, gg.encoded(factors, gg.F32)))
    return out


def typed_tensors(m, kind, random):
    """Row order means nothing for random weights, so nothing is permuted here: there is no HF twin."""
    out = []
    for name, (shape, spread, mean) in all_spreads(m).items():
        if len(shape) == 1:
            data = gg.encoded(random.normal(*shape) * np.float32(spread) + np.float32(mean), gg.F32)
            out.append((gguf_name(name), shape, gg.F32, data))
        elif kind in gg.K_BLOCKS:
            out.append((gguf_name(name), shape, kind, gg.random_blocks(random, shape, kind, spread).tobytes()))
        else:
            out.append((gguf_name(name), shape, kind, gg.encoded(random.normal(*shape) * np.float32(spread), kind)))
    return out


def hf_config(m):
    config = {
        "architectures": [m["hf"] + "ForCausalLM"], "model_type": m["hf"].lower(), "vocab_size": VOCABULARY,
        "hidden_size": m["hidden"], "intermediate_size": m["ffn"], "num_hidden_layers": m["layers"],
        "num_attention_heads": m["heads"], "num_key_value_heads": m["kv_heads"], "head_dim": m["head_dim"],
        "max_position_embeddings": 512, "rms_norm_eps": m.get("eps", 1e-5), "rope_theta": m.get("theta", 10000.0),
        "tie_word_embeddings": bool(m.get("tied")), "hidden_act": "silu", "torch_dtype": "float32",
        "attention_bias": False, "bos_token_id": 1, "eos_token_id": 2,
    }
    if "scaling" in m:
        config["rope_scaling"] = m["scaling"]
    if m["hf"] == "Mistral":
        config["sliding_window"] = None
    return config


def write_safetensors(path, arrays):
    header, offset = {}, 0
    for name, array in arrays.items():
        header[name] = {"dtype": "F32", "shape": list(array.shape), "data_offsets": [offset, offset + array.nbytes]}
        offset += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as out:
        out.write(struct.pack("<Q", len(text)) + text)
        for array in arrays.values():
            out.write(array.tobytes())


def make(out):
    for seed, (name, m) in enumerate(MODELS.items(), 1):
        arrays = weights(m, gg.Random(seed))
        gg.write(out / f"{name}.gguf", metadata(name, m), gguf_tensors(m, arrays))
        (out / name).mkdir(exist_ok=True)
        (out / name / "config.json").write_text(json.dumps(hf_config(m), indent=1))
        write_safetensors(out / name / "model.safetensors", arrays)
    for kind in TYPES:
        name = "tiny_type_" + gg.NAMES[kind].lower()
        gg.write(out / f"{name}.gguf", metadata(name, TYPED), typed_tensors(TYPED, kind, gg.Random(100 + kind)))


def main():
    out = Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    sources = sorted(Path(__file__).resolve().parent.glob("*tiny*.py"))
    digest = hashlib.sha256(b"".join(s.read_bytes() for s in sources)).hexdigest()
    stamp = out / "stamp"
    if stamp.exists() and stamp.read_text() == digest:
        return
    make(out)
    stamp.write_text(digest)


if __name__ == "__main__":
    main()
