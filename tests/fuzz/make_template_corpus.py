#!/usr/bin/env python3
"""Writes the seed corpus of fuzz_template from the expression goldens (those that render), so that every construct of
the language is in some seed, and a few hostile templates. tests/data/templates serves as a second corpus folder.
Standard library only; the same bytes on every run.

usage: make_template_corpus.py [OUTPUT_FOLDER]"""
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
GOLDENS = HERE.parent / "data" / "goldens" / "template" / "expressions.json"
PER_FILE = 24  # expressions; small seeds fuzz better than one large one

HOSTILE = {
    "nesting": "{{ " + "(" * 600 + "1" + ")" * 600 + " }}",
    "recursion": "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}",
    "self_list": "{% set l = [] %}{% set _ = l.append(l) %}{{ l }}{{ l|tojson }}",
    "variables": "{{ messages|tojson }}{{ x.y }}\n====\n{\"messages\": [{\"role\": \"user\"}], \"x\": {\"y\": 1e400}}",
    "not_utf8": "{{ '\udcff' }}\udcc3(",
    "range": "{% for i in range(99999) %}{% for j in range(99999) %}{{ 'x' * 9999 }}{% endfor %}{% endfor %}",
}


def main():
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else HERE / "corpus" / "template"
    folder.mkdir(parents=True, exist_ok=True)
    cases = [source for source, text in json.loads(GOLDENS.read_text(encoding="utf-8"))["cases"] if text is not None]
    for i in range(0, len(cases), PER_FILE):
        path = folder / f"expressions_{i // PER_FILE:02d}.jinja"
        path.write_text("\n".join(cases[i:i + PER_FILE]), encoding="utf-8")
    for name, source in HOSTILE.items():
        (folder / f"hostile_{name}.jinja").write_bytes(source.encode("utf-8", "surrogateescape"))


if __name__ == "__main__":
    main()
