#!/usr/bin/env python3
"""Writes the seed corpus of fuzz_ollama_body: a small body for each idea, its first byte the route (0 generate, 1 chat,
2 show, 3 delete, 4 copy). Standard library only; the same bytes on every run. Files that begin with crash_ were found
by fuzzing and are kept.

usage: make_ollama_corpus.py [OUTPUT_FOLDER]"""
import json
import sys
from pathlib import Path

GENERATE, CHAT, SHOW, DELETE, COPY = range(5)
OPTIONS = {
    "temperature": 0.7, "top_k": 40, "top_p": 0.9, "min_p": 0.05, "repeat_penalty": 1.1, "repeat_last_n": 64,
    "presence_penalty": 0.5, "frequency_penalty": -0.5, "seed": 42, "num_predict": 100, "num_ctx": 2048, "num_keep": 4,
    "stop": ["a", "b"], "num_batch": 512, "num_gpu": -1, "main_gpu": 0, "num_thread": 8, "use_mmap": True, "mirostat": 0,
    "mirostat_tau": 5.0, "mirostat_eta": 0.1, "typical_p": 1.0, "tfs_z": 1,
}
USER = [{"role": "user", "content": "hi"}]


def seeds():
    yield "generate", GENERATE, {"model": "m", "prompt": "hi"}
    yield "generate_all", GENERATE, {
        "model": "m", "prompt": "hi", "system": "s", "template": "t", "context": [1, 2, 3], "raw": False, "stream": False,
        "think": "high", "truncate": True, "shift": False, "logprobs": True, "top_logprobs": 3, "keep_alive": "1h30m",
        "format": "", "suffix": "", "images": [], "options": OPTIONS,
    }
    yield "generate_raw", GENERATE, {"model": "m", "prompt": "hi", "raw": True}
    yield "generate_raw_system", GENERATE, {"model": "m", "raw": True, "system": "s"}
    yield "noise", CHAT, {"model": "m", "format": "", "options": {}, "keep_alive": None, "tools": [], "messages": []}
    yield "chat", CHAT, {"model": "m", "messages": USER, "options": OPTIONS, "keep_alive": -1, "think": True}
    yield "chat_images", CHAT, {"name": "m", "messages": [{"role": "user", "images": ["aGk="], "thinking": None}]}
    for name, value in OPTIONS.items():
        yield f"option_{name}", GENERATE, {"options": {name: value}}
    for i, value in enumerate(("x", None, True, [], {}, -1, 1e300, 2**63, 1.5, "")):
        yield f"options_all_{i}", GENERATE, {"options": dict.fromkeys(list(OPTIONS)[:8], value)}
    for i, value in enumerate((0, -1, 1.5, 1e300, "5m", "-1", "1h0m1.5s", "250ms", "\u00b5s", "5m3", "", "inf", [])):
        yield f"keep_alive_{i}", CHAT, {"keep_alive": value}
    yield "show", SHOW, {"model": "m", "verbose": True}
    yield "show_name", SHOW, {"name": "registry.ollama.ai/library/m:latest"}
    yield "delete", DELETE, {"model": "m"}
    yield "copy", COPY, {"source": "a", "destination": "b:tag"}
    yield "copy_half", COPY, {"source": "a"}


RAW = {
    "empty": (GENERATE, b""), "spaces": (CHAT, b" \n"), "array": (SHOW, b"[]"), "half": (COPY, b'{"source":'),
    "not_utf8": (CHAT, b'{"model":"\xff"}'), "deep": (CHAT, b'{"messages":' + b"[" * 70 + b"]" * 70 + b"}"),
    "twice": (GENERATE, b'{"model":"a","model":"b","options":{"seed":1,"seed":"x"}}'),
    "huge_number": (GENERATE, b'{"options":{"seed":1e999}}'), "surrogate": (DELETE, b'{"model":"\\ud800"}'),
}


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent / "corpus" / "ollama_body"
    folder.mkdir(parents=True, exist_ok=True)
    for name, route, body in seeds():
        (folder / name).write_bytes(bytes([route]) + json.dumps(body, separators=(",", ":")).encode())
    for name, (route, body) in RAW.items():
        (folder / name).write_bytes(bytes([route]) + body)


if __name__ == "__main__":
    main()
