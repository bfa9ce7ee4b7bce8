"""A Hugging Face tokenizer.json (as a dict) for a vocabulary given as plain values, and its reading from GGUF.

The plain values ("spec") are a dict: model, pre, tokens, kinds, scores, merges, bos, eos, unknown,
add_space_prefix. kinds are GGUF's: 1 normal, 2 unknown, 3 control, 4 user defined, 6 byte.
"""

GPT2 = r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
LLAMA3 = CONTRACTIONS + (r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+"
                         r"|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = CONTRACTIONS + (r"|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+"
                         r"|\s+(?!\S)|\s+")

# pre -> (patterns, ignore_merges, NFC)
FAMILIES = {
    "gpt-2": (None, False, False), "phi-2": (None, False, False), "mpt": (None, False, False),
    "llama-bpe": ([LLAMA3], True, False),
    "dbrx": ([LLAMA3], False, False),
    "qwen2": ([QWEN2], False, True),
    "stablelm2": ([QWEN2], False, False),
    "qwen35": ([QWEN35], False, False),
    "smollm": ("digits", False, False), "starcoder": ("digits", False, False),
    "refact": ("digits", False, False), "command-r": ("digits", False, False),
    "default": ([r"[\p{P}\$\+<=>\^~\|]+", GPT2, r"\p{N}+", "[0-9][0-9][0-9]"], False, False),
}


def pre_tokenizer(pre):
    patterns = FAMILIES[pre][0]
    regex_inside = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True, "use_regex": True}
    if patterns is None:
        return regex_inside
    if patterns == "digits":
        return {"type": "Sequence",
                "pretokenizers": [{"type": "Digits", "individual_digits": True}, regex_inside]}
    splits = [{"type": "Split", "pattern": {"Regex": p}, "behavior": "Isolated", "invert": False}
              for p in patterns]
    return {"type": "Sequence", "pretokenizers": splits + [{**regex_inside, "use_regex": False}]}


def spm_merges(spec):
    """Merges from scores, in the order of transformers' converter."""
    index = {t: i for i, t in enumerate(spec["tokens"]) if spec["kinds"][i] in (1, 4)}
    merges = []
    for token, i in index.items():
        local = [(token[:k], token[k:]) for k in range(1, len(token)) if token[:k] in index and token[k:] in index]
        local.sort(key=lambda pair: (index[pair[0]], index[pair[1]]))
        merges.extend((spec["scores"][i], len(a), len(b), a, b) for a, b in local)
    merges.sort(key=lambda m: (m[0], m[1], m[2]), reverse=True)
    return [[m[3], m[4]] for m in merges]


def tokenizer_json(spec, trusted):
    """`trusted`: control and unknown tokens are matched in text; otherwise only user-defined ones."""
    kinds, tokens = spec["kinds"], spec["tokens"]
    matched = (2, 3, 4) if trusted else (4,)
    added = [{"id": i, "content": t, "single_word": False, "lstrip": False, "rstrip": False,
              "normalized": False, "special": kinds[i] != 4}
             for i, t in enumerate(tokens) if kinds[i] in matched and t]
    spm = spec["model"] == "llama"
    # Text must not spell such a token. (In SPM no merge leads to one, and <unk> must be there.)
    unreachable = () if trusted or spm else (2, 3)
    vocab = {t: i for i, t in enumerate(tokens) if kinds[i] not in unreachable}
    model = {"type": "BPE", "dropout": None, "unk_token": None, "continuing_subword_prefix": None,
             "end_of_word_suffix": None, "fuse_unk": False, "byte_fallback": False, "vocab": vocab}
    out = {"version": "1.0", "truncation": None, "padding": None, "added_tokens": added,
           "post_processor": None, "model": model}
    if spm:
        replace = {"type": "Replace", "pattern": {"String": " "}, "content": "\u2581"}
        prefix = [{"type": "Prepend", "prepend": "\u2581"}] if spec["add_space_prefix"] else []
        out["normalizer"] = {"type": "Sequence", "normalizers": prefix + [replace]}
        out["pre_tokenizer"] = None
        out["decoder"] = None
        model.update(merges=spm_merges(spec), byte_fallback=True, fuse_unk=True,
                     unk_token=tokens[spec["unknown"]])
    else:
        _, ignore_merges, nfc = FAMILIES[spec["pre"]]
        out["normalizer"] = {"type": "NFC"} if nfc else None
        out["pre_tokenizer"] = pre_tokenizer(spec["pre"])
        out["decoder"] = {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
        # A merge splits at the first space after position 0.
        pairs = [[m[:m.index(" ", 1)], m[m.index(" ", 1) + 1:]] for m in spec["merges"]]
        model.update(merges=pairs, ignore_merges=ignore_merges)
    return out


def read_gguf(path):
    import gguf

    reader = gguf.GGUFReader(path)

    def get(key, default=None):
        field = reader.get_field("tokenizer.ggml." + key)
        return default if field is None else field.contents()

    model = get("model")
    return {"model": model, "pre": get("pre", "default"), "tokens": get("tokens"), "kinds": get("token_type"),
            "scores": get("scores", []), "merges": get("merges", []), "bos": get("bos_token_id", -1),
            "eos": get("eos_token_id", -1), "unknown": get("unknown_token_id", -1),
            "add_space_prefix": get("add_space_prefix", model == "llama")}
