"""Sizes: lines per file and function, parameters per function.

The function finder is a heuristic on braces: good enough for clang-formatted code, and planted_test.py shows what
it must see.
"""

import re

LIMITS = {"kernel": 800, "source": 600, "header": 250}
FUNCTION_LINES = 100
PARAMETERS = 6

_FUNCTION_END = re.compile(
    r"\)\s*(?:(?:const|noexcept(?:\s*\([^()]*\))?|override|final|mutable|try|&&|&)\s*)*(?:->[^;{}]*|requires\b[^;{}]*)?$"
)
_NOT_A_FUNCTION = re.compile(r"(?:^|\s)(?:if|for|while|switch|catch|return|else|do|namespace|enum|class|struct|union)\b")
_DECLARATION_END = re.compile(r"\)\s*(?:(?:const|noexcept|override|final|&&|&)\s*)*(?:=\s*(?:0|default|delete)\s*)?$")


def check(tree):
    for file in tree.files:
        yield from check_file_size(file)
        if file.path.startswith("tests/"):
            continue
        for head, line, lines in functions(file.code):
            if lines > FUNCTION_LINES:
                yield f"{file.path}:{line}: function of {lines} lines, limit {FUNCTION_LINES}"
            count = parameters(head)
            if count > PARAMETERS:
                yield f"{file.path}:{line}: {count} parameters, limit {PARAMETERS}: use a params struct"


def check_file_size(file):
    lines = file.text.count("\n")
    kind = "header" if file.is_header else "kernel" if file.path.startswith("kernels/") else "source"
    if lines > LIMITS[kind]:
        yield f"{file.path}: {lines} lines, limit {LIMITS[kind]}"


def functions(code):
    """(head, first line, lines) of every function outside of other functions; a declaration has 0 lines."""
    code = re.sub(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", lambda m: re.sub(r"[^\n]", " ", m.group(0)), code, flags=re.MULTILINE)
    stack = []  # per open brace: (head, line) of a function, or None
    inside = 0
    start = parens = 0
    line_of = _line_counter(code)
    for match in re.finditer(r"[{}();]", code):
        at, mark = match.start(), match.group(0)
        if mark in "()":
            parens += 1 if mark == "(" else -1
        elif mark == ";" and parens == 0:
            head = code[start:at]
            if inside == 0 and _DECLARATION_END.search(head) and "=" not in head.split("(")[0]:
                yield head, line_of(start + _leading(head)), 0
            start = at + 1
        elif mark == "{":
            head = code[start:at]
            is_function = inside == 0 and parens == 0 and _is_function(head)
            stack.append((head, start + _leading(head)) if is_function else None)
            inside += is_function
            if parens == 0:
                start = at + 1
        elif mark == "}" and stack:
            opened = stack.pop()
            if opened:
                inside -= 1
                first = line_of(opened[1])
                yield opened[0], first, line_of(at) - first + 1
            if parens == 0:
                start = at + 1


def _leading(text):
    return len(text) - len(text.lstrip())


def _line_counter(code):
    starts = [0] + [m.end() for m in re.finditer("\n", code)]

    def line_of(offset):
        low, high = 0, len(starts)
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if starts[middle] <= offset else (low, middle)
        return low + 1

    return line_of


def _is_function(head):
    before = head.split("(")[0]
    return bool("(" in head and _FUNCTION_END.search(head) and not _NOT_A_FUNCTION.search(before.split("template")[0]))


def parameters(head):
    """Parameters of the first parenthesis that is not inside template brackets."""
    head = re.sub(r"\boperator\s*\(\s*\)", "operator_call", head)
    angle, begin = 0, None
    for match in re.finditer(r"<|>|\(", head):
        mark = match.group(0)
        if mark == "(" and angle <= 0:
            begin = match.end()
            break
        angle += {"<": 1, ">": -1}.get(mark, 0)
    if begin is None:
        return 0
    depth, count, something = 1, 1, False
    for mark in head[begin:]:
        if mark in "([{<":
            depth += 1
        elif mark in ")]}>":
            depth -= 1
            if depth == 0:
                break
        elif mark == "," and depth == 1:
            count += 1
        something |= not mark.isspace()
    return count if something else 0
