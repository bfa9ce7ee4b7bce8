#!/usr/bin/env python3
"""scripts/: the sum of results loses nothing, and the package list is read as it is meant."""

import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]

CTEST = """<?xml version="1.0"?><testsuite tests="3">
<testcase name="a" classname="a" status="run"/>
<testcase name="b" classname="b" status="fail"><failure message="x"/></testcase>
<testcase name="c" classname="c" status="notrun"><skipped message="SKIP_REGULAR_EXPRESSION"/></testcase></testsuite>"""
PYTEST = """<?xml version="1.0"?><testsuites><testsuite name="pytest">
<testcase classname="t" name="a"/><testcase classname="t" name="b"/>
<testcase classname="t" name="c"><error message="at setup"/></testcase></testsuite></testsuites>"""
GREEN = '<testsuite><testcase name="a" classname="a" status="run"/></testsuite>'


class SumResults(unittest.TestCase):
    def sum(self, runner, *texts):
        with tempfile.TemporaryDirectory() as folder:
            files = []
            for number, text in enumerate(texts):
                files.append(Path(folder, f"{number}.xml"))
                if text is not None:
                    files[-1].write_text(text)
            command = [sys.executable, str(ROOT / "scripts/sum_results.py"), runner, *map(str, files)]
            done = subprocess.run(command, capture_output=True, text=True)
            return done.stdout.splitlines()[-1], done.returncode

    def test_both_runners_are_summed(self):
        self.assertEqual(self.sum("1", CTEST, PYTEST), ("3 passed, 2 failed, 1 skipped", 1))
        self.assertEqual(self.sum("0", GREEN, GREEN), ("2 passed, 0 failed", 0))

    def test_suite_whose_set_up_failed_is_not_skipped(self):
        case = '<testcase name="a" classname="a" status="notrun"><skipped message="x"/><system-out>{}</system-out></testcase>'
        self.assertEqual(self.sum("0", GREEN, f"<testsuite>{case.format('[  SKIPPED ] A.b')}</testsuite>")[0],
                         "1 passed, 0 failed, 1 skipped")
        for output in ("a_test.cc:1: Failure\nValue of: x\n[  SKIPPED ] A.b",
                       "[  SKIPPED ] A.b\n[  FAILED  ] A: SetUpTestSuite or TearDownTestSuite\n"):
            self.assertEqual(self.sum("0", GREEN, f"<testsuite>{case.format(output)}</testsuite>")[0],
                             "1 passed, 1 failed")

    def test_nothing_that_went_wrong_is_lost(self):
        self.assertEqual(self.sum("0", GREEN, None), ("1 passed, 1 failed", 1))
        self.assertEqual(self.sum("0", GREEN, "<testsuite"), ("1 passed, 1 failed", 1))
        self.assertEqual(self.sum("0", GREEN, "<testsuite/>"), ("1 passed, 1 failed", 1))
        self.assertEqual(self.sum("1", GREEN), ("1 passed, 1 failed", 1))


class Serve(unittest.TestCase):
    """serve.sh with its neighbours replaced: what it asks of the program."""

    def calls(self, *arguments, **environment):
        with tempfile.TemporaryDirectory() as folder:
            root = Path(folder)
            for name in ("scripts/install_deps.sh", "scripts/build.sh", "build/omnibus"):
                (root / name).parent.mkdir(exist_ok=True)
                (root / name).write_text("#!/bin/sh\n" + ('echo "$*" >> "${0%/*}/calls"\n' if "omnibus" in name else ""))
            (root / "build/omnibus").chmod(0o755)
            (root / "scripts/serve.sh").write_text((ROOT / "scripts/serve.sh").read_text())
            subprocess.run(["sh", str(root / "scripts/serve.sh"), *arguments], env={"PATH": "/usr/bin:/bin", **environment}, check=True)
            return (root / "build/calls").read_text().splitlines()

    def test_only_the_default_model_is_fetched(self):
        self.assertEqual(self.calls(), ["pull", "serve"])
        self.assertEqual(self.calls("--port", "9000"), ["pull", "serve --port 9000"])
        for arguments in (["my.gguf"], ["name:tag", "--port", "9000"], ["--port", "9000", "my.gguf"]):
            self.assertEqual(self.calls(*arguments), ["serve " + " ".join(arguments)])
        self.assertEqual(self.calls(OMNIBUS_MODEL="my.gguf"), ["serve"])


class PackageList(unittest.TestCase):
    def test_every_line_is_a_package_and_a_known_mark(self):
        rows = [
            line.split()
            for line in (ROOT / "scripts/packages.txt").read_text().splitlines()
            if line and not line.startswith("#")
        ]
        self.assertTrue(rows)
        for row in rows:
            self.assertEqual(len(row), 2, row)
            self.assertIn(row[1], ("build", "test", "fuzz", "bench", "soak", "image"), row)
        self.assertEqual(len({tuple(row) for row in rows}), len(rows), "a line stands there twice")

    def test_installer_has_nothing_to_do_where_everything_is_there(self):
        # The machine that runs this test has the build and test packages: it built the tests.
        done = subprocess.run(["sh", str(ROOT / "scripts/install_deps.sh"), "build"], capture_output=True, text=True)
        self.assertEqual((done.returncode, done.stderr), (0, ""))


if __name__ == "__main__":
    unittest.main()
