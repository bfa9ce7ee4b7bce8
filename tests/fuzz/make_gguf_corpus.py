#!/usr/bin/env python3
"""Writes the seed corpus of fuzz_gguf: one small valid file of each kind, and one file for each hostile idea of the
loader's tests. Standard library only; the same bytes on every run.

usage: make_gguf_corpus.py [OUTPUT_FOLDER]"""
import struct
import sys
from pathlib import Path

U8, I8, U16, I16, U32, I32, F32, BOOL, STR, ARR, U64, I64, F64 = range(13)
PACK = {U8: "<B", I8: "<b", U16: "<H", I16: "<h", U32: "<I", I32: "<i", F32: "<f", BOOL: "<B", U64: "<Q", I64: "<q", F64: "<d"}
TYPE_F32, TYPE_Q8_0, TYPE_Q4_K = 0, 8, 12
BLOCKS = {TYPE_F32: (1, 4), TYPE_Q8_0: (32, 34), TYPE_Q4_K: (256, 144)}


def text(value):
    data = value if isinstance(value, bytes) else value.encode()
    return struct.pack("<Q", len(data)) + data


def scalar(kind, value):
    return text(value) if kind == STR else struct.pack(PACK[kind], value)


def pair(key, kind, value):
    return text(key) + struct.pack("<I", kind) + scalar(kind, value)


def array(key, kind, values):
    return text(key) + struct.pack("<IIQ", ARR, kind, len(values)) + b"".join(scalar(kind, v) for v in values)


def tensor(name, dims, kind, offset):
    return text(name) + struct.pack("<I", len(dims)) + b"".join(struct.pack("<Q", d) for d in dims) + struct.pack("<IQ", kind, offset)


def header(n_tensors, n_pairs, version=3, magic=b"GGUF"):
    return magic + struct.pack("<IQQ", version, n_tensors, n_pairs)


def file(pairs, tensors, alignment=32, version=3):
    """A whole valid file; tensors are (name, dims, type)."""
    infos, data, offset = b"", b"", 0
    for name, dims, kind in tensors:
        elements = 1
        for d in dims:
            elements *= d
        size = elements // BLOCKS[kind][0] * BLOCKS[kind][1]
        infos += tensor(name, dims, kind, offset)
        data += bytes(size) + bytes(-size % alignment)
        offset = len(data)
    head = header(len(tensors), len(pairs), version) + b"".join(pairs) + infos
    return head + bytes(-len(head) % alignment) + data


def vocabulary(model):
    if model == "llama":
        return [
            pair("tokenizer.ggml.model", STR, "llama"),
            array("tokenizer.ggml.tokens", STR, ["<unk>", "<s>", "</s>", "<0x0A>", "\u2581a"]),
            array("tokenizer.ggml.scores", F32, [0, 0, 0, 0, -1]),
            array("tokenizer.ggml.token_type", I32, [2, 3, 3, 6, 1]),
        ]
    return [
        pair("tokenizer.ggml.model", STR, "gpt2"),
        pair("tokenizer.ggml.pre", STR, "qwen2"),
        array("tokenizer.ggml.tokens", STR, ["a", "b", "ab", "<|im_end|>", "<|endoftext|>"]),
        array("tokenizer.ggml.token_type", I32, [1, 1, 1, 3, 3]),
        array("tokenizer.ggml.merges", STR, ["a b"]),
        pair("tokenizer.ggml.eos_token_id", U32, 3),
        pair("tokenizer.ggml.add_bos_token", BOOL, 0),
        pair("tokenizer.chat_template", STR, "{{ messages }}"),
    ]


def model(arch, hidden=4, heads=2, kv_heads=1, head_dim=2, ffn=3, vocab=5, bias=False, norms=False, untied=False, freqs=False, vocab_model="gpt2"):
    a = arch + "."
    pairs = [
        pair("general.architecture", STR, arch),
        pair(a + "block_count", U32, 1),
        pair(a + "context_length", U32, 16),
        pair(a + "embedding_length", U32, hidden),
        pair(a + "feed_forward_length", U32, ffn),
        pair(a + "attention.head_count", U32, heads),
        pair(a + "attention.head_count_kv", U32, kv_heads),
        pair(a + "attention.key_length", U32, head_dim),
        pair(a + "attention.value_length", U32, head_dim),
        pair(a + "attention.layer_norm_rms_epsilon", F32, 1e-5),
        pair(a + "rope.freq_base", F32, 10000),
        pair(a + "rope.scaling.type", STR, "linear"),
        pair(a + "rope.scaling.factor", F32, 2),
    ] + vocabulary(vocab_model)
    q, kv, b = heads * head_dim, kv_heads * head_dim, "blk.0."
    tensors = [("token_embd.weight", [hidden, vocab]), ("output_norm.weight", [hidden]), (b + "attn_norm.weight", [hidden])]
    tensors += [(b + "attn_q.weight", [hidden, q]), (b + "attn_k.weight", [hidden, kv]), (b + "attn_v.weight", [hidden, kv])]
    tensors += [(b + "attn_output.weight", [q, hidden]), (b + "ffn_norm.weight", [hidden]), (b + "ffn_gate.weight", [hidden, ffn])]
    tensors += [(b + "ffn_up.weight", [hidden, ffn]), (b + "ffn_down.weight", [ffn, hidden])]
    if bias:
        tensors += [(b + "attn_q.bias", [q]), (b + "attn_k.bias", [kv]), (b + "attn_v.bias", [kv])]
    if norms:
        tensors += [(b + "attn_q_norm.weight", [head_dim]), (b + "attn_k_norm.weight", [head_dim])]
    if untied:
        tensors += [("output.weight", [hidden, vocab])]
    if freqs:
        tensors += [("rope_freqs.weight", [head_dim // 2])]
    return file(pairs, [(n, d, TYPE_F32) for n, d in tensors])


def valid():
    scalars = [pair(f"k{kind}", kind, 1) for kind in PACK] + [pair("s", STR, b"\xff\x00text")]
    arrays = [array(f"a{kind}", kind, [0, 1]) for kind in PACK] + [array("as", STR, ["", "x"]), array("none", I32, [])]
    return {
        "valid_empty_v2": header(0, 0, version=2),
        "valid_scalars": file(scalars, []),
        "valid_arrays": file(arrays, []),
        "valid_types": file([], [("f", [3], TYPE_F32), ("q", [32, 2], TYPE_Q8_0), ("k", [256, 1, 1, 1], TYPE_Q4_K), ("none", [0], TYPE_F32), ("scalar", [], TYPE_F32)]),
        "valid_alignment": file([pair("general.alignment", U32, 64)], [("a", [1], TYPE_F32), ("b", [2], TYPE_F32)], 64),
        "valid_llama": model("llama", untied=True, freqs=True, vocab_model="llama"),
        "valid_qwen2": model("qwen2", bias=True),
        "valid_qwen3": model("qwen3", norms=True, head_dim=4),
    }


def hostile():
    big = 1 << 32
    good = model("llama")
    one = lambda dims, kind=TYPE_F32, offset=0: header(1, 0) + tensor("t", dims, kind, offset) + bytes(96)
    return {
        "hostile_n_kv": header(0, 1 << 63) + bytes(64),
        "hostile_n_tensors": header(1 << 63, 0) + bytes(64),
        "hostile_dims_wrap": one([big, big, 1, 1]),
        "hostile_bytes_wrap": one([big, big >> 2]),
        "hostile_string_length": header(0, 1) + text("k") + struct.pack("<IQ", STR, 2**64 - 1) + bytes(32),
        "hostile_key_length": header(0, 1) + struct.pack("<Q", 2**64 - 8) + bytes(32),
        "hostile_array_count": header(0, 1) + text("k") + struct.pack("<IIQ", ARR, U64, 1 << 61) + bytes(32),
        "hostile_array_nested": header(0, 1) + text("k") + struct.pack("<IIQ", ARR, ARR, 1) + bytes(32),
        "hostile_alignment_zero": file([pair("general.alignment", U32, 0)], [("a", [1], TYPE_F32)]),
        "hostile_offset": one([4], offset=1 << 40),
        "hostile_type": one([4], kind=536870912),
        "hostile_five_dims": one([1, 1, 1, 1, 1]),
        "hostile_overlap": header(2, 0) + tensor("a", [16], TYPE_F32, 0) + tensor("b", [16], TYPE_F32, 32) + bytes(160),
        "hostile_same_name": header(2, 0) + tensor("a", [8], TYPE_F32, 0) + tensor("a", [8], TYPE_F32, 32) + bytes(160),
        "hostile_same_key": file([pair("k", U8, 1), pair("k", U8, 1)], []),
        "hostile_key_infinite_name": file([pair("direction.536870912", U8, 1)], [("direction.536870912", [1], TYPE_F32)]),
        "hostile_merge_absent": file([pair("tokenizer.ggml.model", STR, "gpt2"), array("tokenizer.ggml.tokens", STR, ["a"]), array("tokenizer.ggml.merges", STR, ["a zz"])], []),
        "hostile_token_minus_one": file(vocabulary("gpt2")[:5] + [pair("tokenizer.ggml.bos_token_id", I32, -1)], []),
        "hostile_big_endian": b"GGUF" + struct.pack(">IQQ", 3, 0, 0),
        "hostile_cut_header": good[:200],
        "hostile_cut_data": good[:-40],
    }


def main():
    out = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "corpus/gguf"
    out.mkdir(parents=True, exist_ok=True)
    for name, data in {**valid(), **hostile()}.items():
        (out / (name + ".gguf")).write_bytes(data)


if __name__ == "__main__":
    main()
