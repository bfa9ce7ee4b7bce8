#!/usr/bin/env python3
"""Goldens of continue_final_message, by Hugging Face transformers' own code.

usage: continue_goldens.py tests/data/templates OUT.json

Read by tests/server/api/continuation_test.cc. Needs transformers 5.24.0 and jinja2 3.1.6. A render is null where
transformers raises.
"""
import datetime
import json
import sys
from pathlib import Path

import jinja2
import transformers
from transformers.utils import chat_template_utils
from transformers.utils.chat_template_utils import render_jinja_template

NOW = datetime.datetime(2025, 7, 17, 9, 5, 3)  # the test sets TZ=UTC and now_seconds = 1752743103
USER = {"role": "user", "content": "Hello, \u4e16\u754c"}
ENDS = {
    "plain": "Once upon",
    "empty": "",
    "spaces": "  Once upon \n ",
    "thought": "<think>\nhm\n</think>\n\nOne",
    "control": "a <|im_end|> b </s>",
    "twice": "Once upon a time: Once upon",
}


class Clock(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return NOW


chat_template_utils.datetime = Clock


def render(source, messages):
    try:
        text = render_jinja_template(
            conversations=[messages], chat_template=source, add_generation_prompt=False,
            continue_final_message=True, bos_token="<s>", eos_token="</s>", documents=[],
        )[0][0]
        text.encode("utf-8")
        return text
    except Exception:  # whatever a template can provoke
        return None


def main(folder, out):
    templates = {}
    for path in sorted(Path(folder).iterdir()):
        source = path.read_text(encoding="utf-8")
        templates[path.name] = {
            name: render(source, [USER, {"role": "assistant", "content": end}]) for name, end in ENDS.items()
        }
    golden = {
        "script": "tests/oracles/continue_goldens.py", "transformers": transformers.__version__,
        "jinja2": jinja2.__version__, "seed": None, "user": USER["content"], "ends": ENDS, "templates": templates,
    }
    Path(out).write_text(json.dumps(golden, ensure_ascii=False, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
