"""Goldens of text/tokenizer: token ids of Hugging Face tokenizers for fixed strings.

  tokenizer_goldens.py --out DIR                      small vocabularies, trained here: what is committed
  tokenizer_goldens.py --out DIR --gguf FILE...       the vocabularies of GGUF files, written out whole
  tokenizer_goldens.py --out DIR --ids-only --gguf FILE...   without the vocabulary, into DIR/model_files
  tokenizer_goldens.py --out DIR --inp-out --gguf FILE...    strings and ids from llama.cpp's FILE.inp, FILE.out

Versions are pinned in requirements.txt. Formats: strings.txt holds one escaped string a line. NAME.golden
starts with lines "# ..." and "key value", then "tokens N" with N lines "kind score text", "merges N" with N
lines, and "ids N" with one line per string:
  COUNT HASH   ids with control tokens recognised (trusted text), FNV-1a over their little-endian int32
  COUNT HASH   the same for untrusted text, or "=" when equal
and for the first strings the ids themselves, "trusted / untrusted". "-": no oracle for this string.
"""

import argparse
import json
import os
import sys

import tokenizers
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

import tokenizer_json
import tokenizer_strings

SEED = 20240611
COUNT = 2100
FULL_IDS = 120

TRAINED = {  # name -> (pre, vocabulary size)
    "gpt2": ("gpt-2", 1300), "llama3": ("llama-bpe", 1300), "llama3_merging": ("dbrx", 900),
    "qwen2": ("qwen2", 1300), "qwen35": ("qwen35", 900), "smollm": ("smollm", 1300), "default": ("default", 900),
}
CONTROL = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|im"]
USER_DEFINED = ["<tool_call>", "</tool_call>", "<tool", "🙂🙂"]
# In the vocabulary, but no merge leads there: only ignore_merges reaches them.
UNREACHABLE = [" international", "国際", " Übersetzung", " transaction"]


def byte_alphabet():
    keep = list(range(0x21, 0x7F)) + list(range(0xA1, 0xAD)) + list(range(0xAE, 0x100))
    moved = [b for b in range(256) if b not in keep]
    return {b: chr(b) if b in keep else chr(0x100 + moved.index(b)) for b in range(256)}


def alphabet_text(text):
    table = byte_alphabet()
    return "".join(table[b] for b in text.encode())


def train_bpe(pre, size):
    tokenizer = Tokenizer.from_str(json.dumps({
        "version": "1.0", "truncation": None, "padding": None, "added_tokens": [], "post_processor": None,
        "normalizer": {"type": "NFC"} if tokenizer_json.FAMILIES[pre][2] else None, "decoder": None,
        "pre_tokenizer": tokenizer_json.pre_tokenizer(pre),
        "model": {"type": "BPE", "vocab": {}, "merges": []}}))
    trainer = trainers.BpeTrainer(vocab_size=size, initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
                                  show_progress=False)
    tokenizer.train_from_iterator(tokenizer_strings.SENTENCES * 3, trainer)
    model = json.loads(tokenizer.to_str())["model"]
    words = sorted(model["vocab"], key=model["vocab"].get)
    extra = [alphabet_text(t) for t in UNREACHABLE]
    words += [t for t in extra if t not in model["vocab"]]
    tokens = CONTROL[:2] + words + CONTROL[2:] + USER_DEFINED
    kinds = [3] * 2 + [1] * len(words) + [3] * (len(CONTROL) - 2) + [4] * len(USER_DEFINED)
    return {"model": "gpt2", "pre": pre, "tokens": tokens, "kinds": kinds, "scores": [],
            "merges": [" ".join(m) for m in model["merges"]], "bos": 0, "eos": tokens.index("<|im_end|>"),
            "unknown": -1, "add_space_prefix": False}


def train_spm(size, byte_tokens, add_space_prefix):
    tokenizer = Tokenizer(models.BPE())
    tokenizer.normalizer = normalizers.Sequence([normalizers.Prepend("\u2581"),
                                                 normalizers.Replace(" ", "\u2581")])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="never")
    trainer = trainers.BpeTrainer(vocab_size=size, show_progress=False)
    tokenizer.train_from_iterator(tokenizer_strings.SENTENCES * 3, trainer)
    vocab = tokenizer.get_vocab()
    words = sorted(vocab, key=vocab.get)
    merged = [w for w in words if len(w) > 1]
    runs = ["\u2581" * n for n in (2, 4, 8, 16, 3)]
    pieces = merged[:200] + [r for r in runs if r not in vocab] + merged[200:]
    pieces += [w for w in words if len(w) == 1]  # as in SentencePiece: characters last, with the worst scores
    tokens = ["<unk>", "<s>", "</s>"] + ["<0x%02X>" % b for b in range(byte_tokens)] + pieces
    tokens += USER_DEFINED + CONTROL
    kinds = [2, 3, 3] + [6] * byte_tokens + [1] * len(pieces) + [4] * len(USER_DEFINED) + [3] * len(CONTROL)
    scores = [0.0] * (3 + byte_tokens) + [-float(i) for i in range(len(pieces))] + [0.0] * (len(USER_DEFINED) + len(CONTROL))
    return {"model": "llama", "pre": "default", "tokens": tokens, "kinds": kinds, "scores": scores,
            "merges": [], "bos": 1, "eos": 2, "unknown": 0, "add_space_prefix": add_space_prefix}


def fnv1a(ids):
    value = 0xCBF29CE484222325
    for i in ids:
        for byte in i.to_bytes(4, "little"):
            value = (value ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return value


class Oracle:
    """Ids of byte strings. Bytes that are no UTF-8 become single byte tokens; the text between is the library's."""

    def __init__(self, spec, trusted):
        self.spm = spec["model"] == "llama"
        self.tokenizer = Tokenizer.from_str(json.dumps(tokenizer_json.tokenizer_json(spec, trusted)))
        self.alphabet = byte_alphabet()

    def ids(self, data):
        text = data.decode("utf-8", "surrogateescape")
        if self.spm and any(0xDC80 <= ord(c) <= 0xDCFF for c in text):
            return None
        out, run = [], ""
        for c in text + "\udc00":
            if 0xDC00 <= ord(c) <= 0xDCFF:
                out += self.tokenizer.encode(run, add_special_tokens=False).ids
                run = ""
                token = self.tokenizer.token_to_id(self.alphabet[ord(c) - 0xDC00]) if ord(c) > 0xDC00 else None
                out += [] if token is None else [token]
            else:
                run += c
        return out


def escape(data):
    out = []
    for c in data.decode("utf-8", "surrogateescape"):
        if 0xDC80 <= ord(c) <= 0xDCFF:
            out.append("\\x%02x" % (ord(c) - 0xDC00))
        elif c == "\\" or ord(c) < 0x20 or 0x7F <= ord(c) < 0xA0 or c in "\u2028\u2029\u0085\ufeff":
            out.append("".join("\\x%02x" % b for b in c.encode()))
        else:
            out.append(c)
    return "".join(out)


def write_strings(path, strings, header):
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write(header + "".join(escape(s) + "\n" for s in strings))


def ids_lines(pairs):
    """One line of the format above per (trusted ids, untrusted ids)."""
    for i, (trusted, untrusted) in enumerate(pairs):
        if trusted is None:
            yield "-"
            continue
        fields = ["%d %016x" % (len(trusted), fnv1a(trusted))]
        fields.append("=" if trusted == untrusted else "%d %016x" % (len(untrusted), fnv1a(untrusted)))
        if i < FULL_IDS:
            fields.append(" ".join(map(str, trusted)))
            if trusted != untrusted:
                fields.append("/ " + " ".join(map(str, untrusted)))
        yield " ".join(fields)


def write_golden(path, spec, pairs, strings_name, header, with_vocabulary):
    lines = [header.rstrip("\n"), "strings " + strings_name]
    if with_vocabulary:
        lines += ["%s %s" % (k, int(v) if isinstance(v, bool) else v) for k, v in spec.items()
                  if k not in ("tokens", "kinds", "scores", "merges")]
        scores = spec["scores"] or [0.0] * len(spec["tokens"])
        lines.append("tokens %d" % len(spec["tokens"]))
        lines += ["%d %r %s" % (k, s, escape(t.encode())) for k, s, t in zip(spec["kinds"], scores, spec["tokens"])]
        lines.append("merges %d" % len(spec["merges"]))
        lines += [escape(m.encode()) for m in spec["merges"]]
    lines.append("ids %d" % len(pairs))
    lines += ids_lines(pairs)
    with open(path, "w", encoding="utf-8", newline="\n") as f:
        f.write("\n".join(lines) + "\n")


def read_inp_out(path):
    strings = open(path + ".inp", "rb").read().split(b"\n__ggml_vocab_test__\n")
    ids = [[int(x) for x in line.split()] for line in open(path + ".out")]
    return strings[:len(ids)], [(i, i) for i in ids]


def golden_from_gguf(args, path, strings, header):
    name = os.path.basename(path).removesuffix(".gguf").lower()
    spec = tokenizer_json.read_gguf(path)
    if spec["pre"] not in tokenizer_json.FAMILIES or spec["model"] not in ("gpt2", "llama"):
        print("skipped %s: %s, %s" % (name, spec["model"], spec["pre"]), file=sys.stderr)
        return
    strings_name = "strings.txt"
    if args.inp_out:
        strings, pairs = read_inp_out(path)
        name, strings_name = name + ".peer", name + ".peer.strings.txt"
        write_strings(os.path.join(args.out, strings_name), strings, header)
    else:
        trusted, untrusted = Oracle(spec, True), Oracle(spec, False)
        pairs = [(trusted.ids(s), untrusted.ids(s)) for s in strings]
    folder = args.out
    if args.ids_only:
        folder, strings_name = os.path.join(args.out, "model_files"), "../" + strings_name
        os.makedirs(folder, exist_ok=True)
    write_golden(os.path.join(folder, name + ".golden"), spec, pairs, strings_name, header, not args.ids_only)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", required=True)
    parser.add_argument("--gguf", nargs="*", default=[])
    parser.add_argument("--ids-only", action="store_true")
    parser.add_argument("--inp-out", action="store_true")
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)
    header = "# tests/oracles/tokenizer_goldens.py, tokenizers %s, python %d.%d, seed %d\n" % (
        tokenizers.__version__, *sys.version_info[:2], SEED)
    strings = tokenizer_strings.make_strings(SEED, COUNT)
    if not args.ids_only:
        write_strings(os.path.join(args.out, "strings.txt"), strings, header)
    for path in args.gguf:
        golden_from_gguf(args, path, strings, header)
    if not args.gguf:
        specs = {name: train_bpe(*how) for name, how in TRAINED.items()}
        specs["llama_spm"] = train_spm(1300, 256, True)
        specs["llama_spm_unknown"] = train_spm(900, 0, False)
        for name, spec in specs.items():
            trusted, untrusted = Oracle(spec, True), Oracle(spec, False)
            pairs = [(trusted.ids(s), untrusted.ids(s)) for s in strings]
            write_golden(os.path.join(args.out, name + ".golden"), spec, pairs, "strings.txt", header, True)


if __name__ == "__main__":
    main()
