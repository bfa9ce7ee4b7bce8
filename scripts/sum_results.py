#!/usr/bin/env python3
"""Sums JUnit files into one last line.

    sum_results.py FAILED_RUNNERS FILE...

FAILED_RUNNERS is 0 when every runner ended with code 0. A file that is missing or holds no test, and a runner that
failed though none of its tests did, count as one failure each: nothing that went wrong is summed away.
Exit code 0 only when nothing failed.
"""

import re
import sys
import xml.etree.ElementTree as ElementTree


def failed_under_skip(case):
    """GoogleTest skips the tests of a suite whose set-up failed, and ctest then calls them skipped."""
    output = case.find("system-out")
    text = output.text if output is not None and output.text else ""
    return re.search(r"^\[  FAILED  \] .*SetUpTestSuite or TearDownTestSuite|: Failure$", text, re.MULTILINE) is not None


def count(path):
    """(passed, failed, skipped) of one file."""
    passed = failed = skipped = 0
    for case in ElementTree.parse(path).getroot().iter("testcase"):
        marked = case.find("failure") is not None or case.find("error") is not None or case.get("status") == "fail"
        if marked or failed_under_skip(case):
            failed += 1
            print(f"failed: {case.get('classname')} {case.get('name')}")
        elif case.find("skipped") is not None or case.get("status") in ("notrun", "disabled"):
            skipped += 1
            reason = case.find("skipped")
            text = reason.get("message") if reason is not None else None
            print(f"skipped: {case.get('classname')} {case.get('name')}: {text or 'no reason given'}")
        else:
            passed += 1
    return passed, failed, skipped


def main(arguments):
    runner_failed = arguments[0] != "0"
    passed = failed = skipped = 0
    for path in arguments[1:]:
        try:
            counts = count(path)
        except (OSError, ElementTree.ParseError) as error:
            print(f"failed: no results in {path}: {error}")
            counts = (0, 1, 0)
        if sum(counts) == 0:
            print(f"failed: {path} holds no test")
            counts = (0, 1, 0)
        passed, failed, skipped = passed + counts[0], failed + counts[1], skipped + counts[2]
    if runner_failed and failed == 0:
        print("failed: a test runner reported a failure that is none of its tests")
        failed = 1
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
