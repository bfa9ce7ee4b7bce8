"""Things that stand nowhere, and the few places that are excused (allowed.txt, each with its reason)."""

import re

# name: (what it looks like in code, where it is looked for, why not)
BANS = {
    "regex": (r"std::(?:w|basic_)?regex", "*", "std::regex recurses on its input; use PCRE2"),
    "clock": (
        r"\b(?:system|steady|high_resolution)_clock\b|\b(?:clock_gettime|gettimeofday)\s*\(|std::time\s*\(",
        "product",
        "time comes from an injected Clock",
    ),
    "random": (r"\b(?:std::)?s?rand\s*\(|std::random_device", "product", "randomness comes from a counted seed"),
    "rand-in-tests": (r"(?<![\w:])s?rand\s*\(", "tests", "a test's randomness has a printed seed"),
    "sleep": (
        r"\bsleep_(?:for|until)\s*\(|\b(?:u|nano)?sleep\s*\(",
        "tests",
        "wait for a condition with a deadline",
    ),
    "using-std": (r"using\s+namespace\s+std\b", "*", "names of std are written out"),
    "backend-ifdef": (
        r"#\s*(?:el)?if.*(?:CUDA|NCCL|__AVX|__SSE)",
        "shared",
        "CMake picks files; shared code knows no backend",
    ),
    "mutants": (r"\bOMNIBUS_WITH_MUTANTS\b", "product", "planted defects are switched by tests/sim alone"),
    "system": (r"std::system\s*\(|(?<![\w.>])popen\s*\(", "product", "no shell is started"),
}
_COMMENT_BANS = {
    "todo": (r"\b(?:TODO|FIXME|XXX|HACK)\b", "unfinished work is an issue, not a comment"),
}
# In every tracked kind of text, not in C++ alone. What is joined to a folder (`home + "/tmp/x"`) is no absolute path.
_TEXT_SUFFIXES = (".cc", ".h", ".py", ".sh", ".md", ".txt", ".toml", ".cmake", ".json", ".yaml", ".yml", ".html", ".cpu")
_MADE = ("out", "build", "goldens", "corpus")
_MACHINE_PATH = re.compile(r"""(?<![\w.}\])$*+/-])(?<!\+ ")/(?:home|root|work|tmp|opt|mnt)/\w""")


def check(tree):
    used = set()
    found = [(file.path, *violation) for file in tree.files for violation in violations(file)]
    for path, name, line, message in found + list(machine_paths(tree.root)):
        if (name, path) in tree.allowed:
            used.add((name, path))
        else:
            yield f"{path}:{line}: {name}: {message}"
    for name, path in sorted(tree.allowed.keys() - used):
        yield f"tests/lint/allowed.txt: '{name} {path}' excuses nothing"


def violations(file):
    product = file.path.startswith(("src/", "include/", "kernels/"))
    scopes = {"*", "product" if product else "tests"}
    if file.path.startswith(("src/", "include/")):
        scopes.add("shared")
    for name, (pattern, scope, why) in BANS.items():
        if scope in scopes:
            for number, line in enumerate(file.code_lines, 1):
                if re.search(pattern, line):
                    yield name, number, why
    for name, (pattern, why) in _COMMENT_BANS.items():
        for number, line in enumerate(file.lines, 1):
            if re.search(pattern, line):
                yield name, number, why
    yield from uncommented_catch_all(file)
    if file.is_header and "#pragma once" not in file.text:
        yield "pragma-once", 1, "a header begins with #pragma once"


def machine_paths(root):
    for path in sorted(root.rglob("*")):
        place = path.relative_to(root)
        skipped = any(part in _MADE or part.startswith(".") for part in place.parts)
        if skipped or path.suffix not in _TEXT_SUFFIXES or not path.is_file():
            continue
        for number, line in enumerate(path.read_text(encoding="utf-8", errors="replace").split("\n"), 1):
            if _MACHINE_PATH.search(line):
                yield place.as_posix(), "path", number, "a path of one machine"


def uncommented_catch_all(file):
    for number, line in enumerate(file.code_lines, 1):
        if re.search(r"\bcatch\s*\(\s*\.\.\.\s*\)", line):
            around = file.lines[max(0, number - 2) : number + 1]
            if not any("//" in text for text in around):
                yield "catch-all", number, "catch (...) says in a comment what may come and why all of it is caught"


def parse_allowed(text):
    """allowed.txt: `name path: reason` per line."""
    allowed = {}
    for line in text.splitlines():
        line = line.strip()
        if not line or line.startswith("#"):
            continue
        key, _, reason = line.partition(": ")
        name, _, path = key.partition(" ")
        if not reason.strip():
            raise ValueError(f"tests/lint/allowed.txt: '{line}' gives no reason")
        allowed[(name, path.strip())] = reason.strip()
    return allowed
