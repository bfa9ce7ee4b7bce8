#!/usr/bin/env python3
"""Reads the protections off a built program:  hardening.py PROGRAM"""

import re
import subprocess
import sys


def read(program):
    return run("readelf", "-W", "-h", "-l", "-d", "--dyn-syms", program), run("objdump", "-d", "--disassemble=main", program)


def check(readelf, main_code):
    """`readelf`: headers, segments, dynamic section and symbols; `main_code`: main() disassembled."""
    wanted = {
        "position-independent executable (-pie)": r"Type:\s+DYN .*\n(?:.*\n)*.*FLAGS_1.*\bPIE\b",
        "read-only relocations (-z relro)": r"\bGNU_RELRO\b",
        "no lazy binding (-z now)": r"FLAGS(?:_1)?\).*\b(?:BIND_NOW|NOW)\b",
        "stack protector (-fstack-protector-strong)": r"\b__stack_chk_fail\b",
        "checked libc calls (-D_FORTIFY_SOURCE=3)": r"\b__(?:mem|str|s?n?printf|read|fprintf|vsn?printf)\w*_chk\b",
    }
    for what, pattern in wanted.items():
        if not re.search(pattern, readelf):
            yield f"missing: {what}"
    # Debian's start-up objects carry no IBT note, so the linker drops the program's: look at the code itself.
    if "endbr64" not in main_code:
        yield "missing: control-flow protection (-fcf-protection)"
    stack = re.search(r"GNU_STACK\s.*", readelf)
    if not stack or "RWE" in stack.group(0):
        yield "the stack is executable"
    if re.search(r"\bR(?:UN)?PATH\b", readelf):
        yield "libraries are looked for in a folder of the build machine (RPATH)"


def foreign_symbols(names):
    """The product holds no test code."""
    for name in names.splitlines():
        if re.search(r"omnibus::.*(?:Replay|Fake|[Mm]utant)|testing::internal", name):
            yield f"test code in the product: {name.strip()}"
            return


def run(*command):
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def main(program):
    found = list(check(*read(program)))
    found += foreign_symbols(run("nm", "-C", program))
    print("\n".join(found) or f"{program}: every protection is there")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
