#!/usr/bin/env python3
"""Runs lints over the tree:  lint.py [--root DIR] [--build DIR] [RULE...]

Rules: layering, sizes, bans, determinism, and with --build also feature_pairs. Prints one line per violation; exit code 1 when
there is one.
"""

import argparse
import sys
from pathlib import Path

import bans
import determinism
import feature_pairs
import layering
import sizes
from source import ModuleTable, source_files


class Tree:
    """All that the rules look at, read once."""

    def __init__(self, root):
        self.root = Path(root)
        self.files = source_files(root)
        self.paths = {file.path for file in self.files}
        self.templates = {p.relative_to(self.root).as_posix() for p in (self.root / "src").rglob("*.h.in")}
        self.table = ModuleTable(self.read("tests/lint/modules.txt"))
        self.header_rules = layering.parse_header_rules(self.read("tests/lint/headers.txt"))
        self.allowed = bans.parse_allowed(self.read("tests/lint/allowed.txt"))
        self.cmake_lists = {
            path.relative_to(self.root).as_posix(): path.read_text()
            for folder in ("src", "kernels")
            for path in sorted((self.root / folder).rglob("CMakeLists.txt"))
        }

    def read(self, path):
        return (self.root / path).read_text()


RULES = {"layering": layering.check, "sizes": sizes.check, "bans": bans.check, "determinism": determinism.check}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--root", default=Path(__file__).resolve().parents[2])
    parser.add_argument("--build", help="build folder, for feature_pairs")
    parser.add_argument("rules", nargs="*", choices=[[], *RULES, "feature_pairs"])
    arguments = parser.parse_args()
    tree = Tree(arguments.root)
    found = []
    for rule in arguments.rules or [*RULES, *(["feature_pairs"] if arguments.build else [])]:
        if rule == "feature_pairs":
            names = feature_pairs.ctest_names(arguments.build)
            found += feature_pairs.check(tree.read("configs/feature_pairs.toml"), names)
        else:
            found += RULES[rule](tree)
    print("\n".join(found) or f"{len(tree.files)} files, nothing found")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
