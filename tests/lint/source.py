"""What the lints see of the tree: files, their modules, their code without comments and strings."""

import re
from pathlib import Path

CODE_ROOTS = ("src", "include", "kernels", "tests", "benchmarks")
CODE_SUFFIXES = (".cc", ".h", ".cu", ".cuh")

_TOKEN = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<delimiter>[^\s()\\]{0,16})\(.*?\)(?P=delimiter)"'
    r"|(?<![A-Za-z0-9_])(?:u8|[uUL])?\"(?:\\.|[^\"\\\n])*\"|(?<![A-Za-z0-9_'])'(?:\\.|[^'\\\n])+'",
    re.DOTALL,
)


class SourceFile:
    """One file of C++. `path` is relative to the root, with forward slashes."""

    def __init__(self, root, path):
        self.path = path
        self.text = (root / path).read_text(encoding="utf-8", errors="replace")
        self.lines = self.text.split("\n")
        # Same length and lines as the text; comments and the insides of strings are blanks.
        self.code = _TOKEN.sub(_blank, self.text)
        self.code_lines = self.code.split("\n")
        self.is_header = path.endswith((".h", ".cuh"))

    def includes(self):
        """(line, header, quoted?) of every #include."""
        for number, line in enumerate(self.lines, 1):
            match = re.match(r'\s*#\s*include\s*(?:"([^"]+)"|<([^>]+)>)', line)
            if match:
                yield number, match.group(1) or match.group(2), match.group(1) is not None


def _blank(match):
    text = match.group(0)
    if text.startswith(("//", "/*")):
        return re.sub(r"[^\n]", " ", text)
    return '"' + re.sub(r"[^\n]", " ", text[1:-1]) + '"'


def source_files(root):
    """Every C++ file of the project."""
    root = Path(root)
    paths = []
    for folder in CODE_ROOTS:
        for path in sorted((root / folder).rglob("*")):
            if path.suffix in CODE_SUFFIXES and path.is_file():
                paths.append(path.relative_to(root).as_posix())
    return [SourceFile(root, path) for path in paths]


class ModuleTable:
    """modules.txt: which module may include which."""

    def __init__(self, text):
        self.may_use = {}  # "group/name" -> names; None means all
        for line in text.splitlines():
            line = line.split("#")[0].strip()
            if line:
                path, _, names = line.partition(":")
                self.may_use[path.strip()] = None if names.strip() == "*" else names.split()
        self.path_of = {path.split("/")[-1]: path for path in self.may_use}

    def module_of_path(self, path):
        """The module whose folder holds `path`, or None: src/ and include/omnibus/ mirror each other."""
        for prefix in ("src/", "include/omnibus/"):
            if path.startswith(prefix):
                return self.module_of_folder(path[len(prefix) :])
        return "kernels" if path.startswith(("kernels/", "include/omnibus_kernels/")) else None

    def module_of_folder(self, folder):
        parts = folder.split("/")
        for length in (2, 1):
            if "/".join(parts[:length]) in self.may_use and len(parts) > length:
                return "/".join(parts[:length])
        return None

    def module_of_header(self, header):
        """The module that a quoted #include names, or None for a private header."""
        if header.startswith("omnibus_kernels/"):
            return "kernels"
        if header.startswith("omnibus/v1/"):
            return "proto"
        if header.startswith("omnibus/"):
            return self.module_of_folder(header[len("omnibus/") :]) or "unknown:" + header
        return None
