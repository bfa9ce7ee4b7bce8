#!/usr/bin/env python3
"""Goldens of the chat-template engine, by Jinja2 set up as Hugging Face transformers sets it up.

usage: template_goldens.py expressions OUT.json [COUNT SEED]   small expressions and statements, hand-made and random
       template_goldens.py templates DIR OUT.json        full text of our own templates (tests/data/templates)
       template_goldens.py unicode OUT.json              case mappings and classes of every character
       template_goldens.py corpus DIR OUT.json [GGUF]    SHA-256 of templates and renders only: other people's
                                                         templates are not ours to commit

Read by tests/text/template/*_golden_test.cc. Needs jinja2 3.1.6 (and gguf, for the default model's template).

One deviation from transformers: list.append, extend, insert, pop and dict.pop are allowed. transformers forbids
them, and published templates (Kimi-K2) call them; "strict_raises" counts the renders that differ by it.
"""
import datetime
import functools
import hashlib
import json
import random
import sys
import unicodedata
from pathlib import Path

import jinja2
from jinja2.ext import Extension
from jinja2.sandbox import ImmutableSandboxedEnvironment

SEED = 20250717
NOW = datetime.datetime(2025, 7, 17, 9, 5, 3)  # the tests set TZ=UTC and now_seconds = 1752743103
ALLOWED = {(list, "append"), (list, "extend"), (list, "insert"), (list, "pop"), (dict, "pop")}


class Generation(Extension):
    """{% generation %}: rendered as its body, in a scope of its own."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        return jinja2.nodes.CallBlock(self.call_method("_body"), [], [], body).set_lineno(line)

    def _body(self, caller):
        return caller()


class Environment(ImmutableSandboxedEnvironment):
    strict = False

    def is_safe_attribute(self, obj, attr, value):
        if not self.strict and any(isinstance(obj, kind) and attr == name for kind, name in ALLOWED):
            return True
        return super().is_safe_attribute(obj, attr, value)


def raise_exception(message):
    raise jinja2.exceptions.TemplateError(message)


def tojson(x, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(x, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)


@functools.lru_cache(maxsize=2)
def environment(strict=False):
    env = Environment(trim_blocks=True, lstrip_blocks=True, extensions=[Generation, "jinja2.ext.loopcontrols"])
    env.strict = strict
    env.filters["tojson"] = tojson
    env.filters["from_json"] = json.loads
    env.globals["raise_exception"] = raise_exception
    env.globals["strftime_now"] = lambda fmt: NOW.strftime(fmt)
    return env


def render(env, source, variables):
    """The text, or None when Jinja2 (or Python under it) raises."""
    try:
        text = env.from_string(source).render(**json.loads(json.dumps(variables)))
        text.encode("utf-8")
        return text
    except RecursionError:
        raise
    except Exception:  # whatever a template can provoke is an error of the template
        return None


# --- conversations -----------------------------------------------------------------------------------------------

WEATHER = {"type": "function", "function": {
    "name": "get_weather", "description": "Current weather of a city.",
    "parameters": {"type": "object", "properties": {
        "city": {"type": "string", "description": "Name of the city, e.g. \"Zürich\""},
        "unit": {"type": "string", "enum": ["celsius", "fahrenheit"], "description": "Unit"},
        "days": {"type": "integer", "minimum": 1, "default": 3, "description": "How many <days> & nights"}},
        "required": ["city"]}}}
ADD = {"type": "function", "function": {
    "name": "add", "description": "Adds numbers.",
    "parameters": {"type": "object", "properties": {
        "values": {"type": "array", "items": {"type": "number"}, "description": "Numbers"},
        "exact": {"type": "boolean", "default": False, "description": "Exact?"}}, "required": ["values"]}}}


def tool_conversation(arguments):
    return [
        {"role": "system", "content": "You help with the weather."},
        {"role": "user", "content": "How warm is it in Zürich?"},
        {"role": "assistant", "content": "", "tool_calls": [
            {"id": "abc123def", "type": "function", "function": {"name": "get_weather", "arguments": arguments}}]},
        {"role": "tool", "tool_call_id": "abc123def", "name": "get_weather", "content": "{\"temperature\": 21.5}"},
        {"role": "assistant", "content": "It is 21.5 °C in Zürich."},
        {"role": "user", "content": "Thanks. And 1 + 2?"}]


ARGUMENTS = {"city": "Zürich", "unit": "celsius", "days": 2, "deep": {"list": [1, 2.5, True, None]}}
CONVERSATIONS = {
    "system": {"messages": [{"role": "system", "content": "You are terse.  "},
                            {"role": "user", "content": "  Hello,\n\"world\"! <b>&amp;</b> \U0001F600 "}],
               "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>"},
    "turns": {"messages": [{"role": "user", "content": "One?"},
                           {"role": "assistant", "content": "<think>\nhm\n</think>\n\nOne."},
                           {"role": "user", "content": "Two? <|im_end|> [INST] </s>"},
                           {"role": "assistant", "content": "Two.\nReally.", "reasoning_content": "Two it is."}],
              "add_generation_prompt": False, "bos_token": "<s>", "eos_token": "</s>"},
    "tools": {"messages": tool_conversation(ARGUMENTS), "tools": [WEATHER, ADD], "add_generation_prompt": True,
              "bos_token": "<|begin_of_text|>", "eos_token": "<|eot_id|>", "enable_thinking": False},
    "reasoning": {"messages": [
        {"role": "user", "content": "Plan a trip."},
        {"role": "assistant", "content": "Sure.", "reasoning_content": "They want a trip.", "thinking": "A trip.",
         "tool_calls": [
             {"id": "functions.get_weather:0", "type": "function",
              "function": {"name": "get_weather", "arguments": {"city": "Bern"}}},
             {"id": "functions.add:1", "type": "function",
              "function": {"name": "add", "arguments": {"values": [1, 2.0], "exact": True}}}]},
        {"role": "tool", "tool_call_id": "functions.get_weather:0", "name": "get_weather", "content": "sunny"},
        {"role": "tool", "tool_call_id": "functions.add:1", "name": "add", "content": "3"}],
        "tools": [WEATHER, ADD], "add_generation_prompt": True, "bos_token": "<s>", "eos_token": "</s>",
        "enable_thinking": True, "thinking": True, "reasoning_effort": "high", "tools_in_user_message": False},
    "tools_text": {"messages": tool_conversation(json.dumps(ARGUMENTS, ensure_ascii=False))[:4],
                   "tools": [WEATHER], "add_generation_prompt": True, "bos_token": "", "eos_token": "",
                   "enable_thinking": True, "thinking": True, "reasoning_effort": "low"},
}


def digest(text):
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def header(kind):
    return {"script": "tests/oracles/template_goldens.py " + kind, "jinja2": jinja2.__version__, "seed": SEED,
            "conversations": CONVERSATIONS}


def corpus(folder, gguf_path):
    sources = {p.name: p.read_text(encoding="utf-8") for p in sorted(Path(folder).glob("*.jinja"))}
    if gguf_path:
        import gguf
        field = gguf.GGUFReader(gguf_path).fields["tokenizer.chat_template"]
        sources["default-model"] = bytes(field.parts[field.data[0]]).decode("utf-8")
    out = header("corpus")
    out["templates"], strict_raises = {}, 0
    for name, source in sources.items():
        renders = {}
        for label, conversation in CONVERSATIONS.items():
            text = render(environment(), source, conversation)
            strict_raises += (text is None) != (render(environment(True), source, conversation) is None)
            renders[label] = None if text is None else [len(text.encode("utf-8")), digest(text)]
        out["templates"][name] = {"sha256": digest(source), "renders": renders}
    out["strict_raises"] = strict_raises
    return out


def own_templates(folder):
    out = header("templates")
    out["templates"] = {}
    for path in sorted(Path(folder).glob("*.jinja")):
        source = path.read_text(encoding="utf-8")
        out["templates"][path.name] = {
            label: render(environment(), source, conversation) for label, conversation in CONVERSATIONS.items()}
    return out


# --- expressions -------------------------------------------------------------------------------------------------

VARIABLES = {
    "s": "Hello, Wörld", "t": " a,b ,c\t\n", "u": "ǅ ﬁn ΌΣΟΣ straße İ ŉ", "empty": "", "n": 7, "z": 0, "neg": -3,
    "f": 2.5, "big": 12345678901234567890, "tiny": 1e-7, "yes": True, "no": False, "nothing": None,
    "l": [3, 1, 2], "words": ["b", "A", "c", "a", "B"], "mixed": [1, "x", None, 2.0, True],
    "d": {"b": 1, "a": {"x": [1, 2]}, "items": "shadow", "C": 3},
    "rows": [{"name": "x", "age": 3, "tag": {"k": "v"}}, {"name": "Y", "age": 1}, {"name": "z", "age": 2, "ok": True}],
    "html": "<a href=\"x\">'&'</a>", "lines": "one\n\n two\r\nthree\n", "emoji": "a😀b\u200bc\u00a0d",
}
HAND = Path(__file__).with_name("template_expressions.txt")


def hand_cases():
    """Cases between lines of "----"; lines that begin with "#!" are comments."""
    text = HAND.read_text(encoding="utf-8")
    cases = ["\n".join(line for line in part.split("\n") if not line.startswith("#!")).strip("\n")
             for part in text.split("\n----\n")]
    return [c for c in cases if c]


ATOMS = ["s", "t", "u", "empty", "n", "z", "neg", "f", "big", "yes", "no", "nothing", "l", "words", "mixed", "d",
         "rows", "html", "lines", "emoji", "missing", "1", "0", "-2", "3", "2.0", "1.5e3", "'x'", "'ab'", "\"'\"",
         "[]", "[1, 'a']", "{}", "{'k': 1}", "(1, 2)", "true", "none", "d.a", "d.b", "d['items']", "rows[0]",
         "rows[-1].name", "l[0]", "s[1:4]", "l[::-1]", "words[1:]", "range(3)", "missing.x"]
BINARY = ["+", "-", "*", "/", "//", "%", "~", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or", "**"]
FILTERS = ["tojson", "length", "upper", "lower", "title", "capitalize", "trim", "string", "list", "first", "last",
           "int", "float", "abs", "round", "join('-')", "default('dft')", "default('e', true)", "sort", "unique|list",
           "reverse", "reverse|list", "replace('a', 'OO')", "e", "safe", "sum", "min", "max", "items|list", "dictsort",
           "map('upper')|list", "map(attribute='name')|list", "select|list", "reject('none')|list", "indent",
           "selectattr('ok')|list", "tojson(indent=1)", "tojson(sort_keys=true, ensure_ascii=true)", "wordcount",
           "batch(2)|list", "format(1)", "center(9)"]
TESTS = ["defined", "undefined", "none", "string", "number", "integer", "float", "boolean", "true", "false", "mapping",
         "iterable", "sequence", "callable", "odd", "even", "divisibleby(2)", "in [1, 'x', none]", "eq(1)", "lt 3",
         "ge(0)", "lower", "upper", "sameas none"]
METHODS = [".strip()", ".split(',')", ".split()", ".upper()", ".title()", ".startswith('H')", ".endswith(('d', 'c'))",
           ".replace('l', 'L', 1)", ".get('b')", ".get('q', 5)", ".keys()|list", ".values()|list", ".items()|list",
           ".rstrip('\\n,c ')", ".lstrip()", ".find('l')", ".count('l')", ".join(['p', 'q'])", ".format(1, k=2)",
           ".splitlines()", ".rsplit(',', 1)", ".swapcase()", ".isdigit()", ".zfill(15)", ".partition(',')", "[0]",
           "[-1]", "['b']", ".b", ".x", ".capitalize()", ".copy()"]
# Jinja2 folds slices of constants by other rules than it runs them: only variables are sliced.
SLICED = ["s", "t", "u", "emoji", "l", "words", "mixed", "rows", "range(n)", "d.a.x", "n", "missing"]
SLICES = ["[1:]", "[:-1]", "[::2]", "[::-1]", "[-3:]", "[1:-1:2]", "[n:]", "[:z]", "[neg:f]", "[nothing:2]"]


def random_expression(rng, depth):
    if depth == 0 or rng.random() < 0.2:
        return rng.choice(ATOMS)
    kind = rng.randrange(9)
    if kind == 8:
        return rng.choice(SLICED) + rng.choice(SLICES)
    inner = random_expression(rng, depth - 1)
    if kind <= 1:
        return f"({inner} {rng.choice(BINARY)} {random_expression(rng, depth - 1)})"
    if kind <= 3:
        return f"({inner})|{rng.choice(FILTERS)}"
    if kind == 4:
        return f"(({inner}) is {rng.choice(['', 'not '])}{rng.choice(TESTS)})"
    if kind == 5:
        return f"({inner}){rng.choice(METHODS)}"
    if kind == 6:
        return f"({inner} if {random_expression(rng, depth - 1)} else {random_expression(rng, depth - 1)})"
    return rng.choice(["not {}", "-{}", "[{}, 1]", "{{'k': {}}}"]).format(inner)


def random_cases(count, seed):
    rng = random.Random(seed)
    wanted, seen = [], set()
    errors = 0
    while len(wanted) < count:
        # Printed twice: as str() shows it, and inside a list as repr() does.
        expression = random_expression(rng, rng.randrange(1, 4))
        source = "{{ " + expression + " }}" + ("|{{ [" + expression + "] }}" if rng.random() < 0.3 else "")
        if "**" in source and ("big" in source or source.count("**") > 1):
            continue  # Python would compute numbers without end
        text = render(environment(), source, VARIABLES)
        # Addresses of objects have no golden; powers beyond 128 bits are refused on purpose.
        if source in seen or (text is not None and (" at 0x" in text.lower() or len(text) > 400)):
            continue
        if "**" in source and text and len(text) > 60:
            continue
        if text is None:
            errors += 1
            if errors > count // 3:
                continue
        seen.add(source)
        wanted.append((source, text))
    return wanted


def expressions(count=900, seed=SEED):
    out = header("expressions")
    del out["conversations"]
    out["variables"] = VARIABLES
    cases = [(c, render(environment(), c, VARIABLES)) for c in hand_cases()] + random_cases(int(count), int(seed))
    out["cases"] = [[source, text] for source, text in cases]
    return out


# --- characters --------------------------------------------------------------------------------------------------

def unicode_table():
    """Per mapping: {code point: text} where the mapping changes it; per class: ranges [first, last]."""
    out = header("unicode")
    del out["conversations"]
    out["unidata"] = unicodedata.unidata_version
    known = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in ("Cn", "Cs", "Co")]
    out["assigned"] = ranges(known)
    for name in ("upper", "lower", "title", "casefold"):
        out[name] = {str(c): getattr(chr(c), name)() for c in known if getattr(chr(c), name)() != chr(c)}
    for name in ("isspace", "isalpha", "isdecimal", "isdigit", "isnumeric", "isupper", "islower", "isprintable"):
        out[name] = ranges([c for c in known if getattr(chr(c), name)()])
    return out


def ranges(numbers):
    out = []
    for n in numbers:
        if out and out[-1][1] == n - 1:
            out[-1][1] = n
        else:
            out.append([n, n])
    return [end for pair in out for end in pair]


def main():
    kind, *rest = sys.argv[1:]
    if kind == "expressions":
        result, path = expressions(*rest[1:]), rest[0]
    elif kind == "unicode":
        result, path = unicode_table(), rest[0]
    elif kind == "templates":
        result, path = own_templates(rest[0]), rest[1]
    elif kind == "corpus":
        result, path = corpus(rest[0], rest[2] if len(rest) > 2 else None), rest[1]
    else:
        sys.exit(__doc__)
    # One line per entry keeps differences readable; tables of numbers would be all lines.
    indent = None if kind == "unicode" else 0
    Path(path).write_text(json.dumps(result, ensure_ascii=False, indent=indent) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
