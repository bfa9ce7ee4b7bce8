"""pytest plugin for llama.cpp's server tests: leaves out what deselected.toml lists, each with its reason, puts our
model's values where a parameter states what stories260K says (replaced.toml), and counts.

Run by run.sh, which sets OMNIBUS_PEER_BAR: fewer passing tests than that are a failure."""
import os
import socket
import sys
import tomllib
import types
from contextlib import nullcontext
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
# Their harness imports these to fetch models, one process at a time; here nothing is fetched.
sys.modules["wget"] = types.ModuleType("wget")
sys.modules["filelock"] = types.ModuleType("filelock")
sys.modules["filelock"].FileLock = lambda path: nullcontext()

REASONS = {
    "model": "needs a model that is no language model of the llama family, or a real one of gigabytes",
    "later": "a feature that a later issue brings",
    "llama-only": "an option or a detail of llama.cpp that omnibus does not have and does not promise",
    "decided": "where clients contradict each other, omnibus decided otherwise (fingerprint, first delta, error type, ...)",
    "wording": "asserts what stories260K writes, or how its vocabulary cuts a text",
    "peer": "the peer itself leaves it out",
}


def read_table(name):
    with open(HERE / name, "rb") as file:
        return tomllib.load(file)["rule"]


def matches(rule, item):
    """rule["test"] is FILE, FILE::TEST or FILE::TEST[PART OF THE PARAMETERS]."""
    file, _, test = rule["test"].partition("::")
    name, _, part = test.partition("[")
    if item.path.name != file or (name and item.originalname != name):
        return False
    return part.rstrip("]") in item.name.partition("[")[2] if part else True


class Counts:
    def __init__(self):
        self.deselected = dict.fromkeys(REASONS, 0)
        self.by_file = {}
        self.replaced = 0

    def of(self, file):
        return self.by_file.setdefault(file, {"passed": 0, "failed": 0, "deselected": 0})


COUNTS = Counts()


def reason_for(item, rules):
    if item.get_closest_marker("slow"):
        return "model"
    if item.get_closest_marker("skip") or any(m.args[0] for m in item.iter_markers("skipif")):
        return "peer"
    for rule in rules:
        if matches(rule, item):
            rule["used"] = True
            return rule["reason"]
    return None


def replace_values(item, rules):
    for rule in rules:
        if matches(rule, item):
            rule["used"] = True
            for name, value in rule["values"].items():
                assert name in item.callspec.params, f"replaced.toml: {rule['test']} has no parameter {name}"
                item.callspec.params[name] = value
            COUNTS.replaced += 1


def pytest_configure(config):
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        os.environ["PORT"] = str(probe.getsockname()[1])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    rules, replacements = read_table("deselected.toml"), read_table("replaced.toml")
    kept, left_out = [], []
    for item in items:
        reason = reason_for(item, rules)
        if reason is None:
            replace_values(item, replacements)
            kept.append(item)
            continue
        COUNTS.deselected[reason] += 1
        COUNTS.of(item.path.name)["deselected"] += 1
        left_out.append(item)
    whole = list(config.args) == ["unit"] and not config.option.keyword
    stale = [r["test"] for r in rules + replacements if "used" not in r]
    if whole and stale:
        raise pytest.UsageError(f"rules that match no test: {', '.join(stale)}")
    config.hook.pytest_deselected(items=left_out)
    items[:] = kept
    # The presets name models on a hub; the shim serves its own whatever the name.
    import utils

    utils.ServerPreset.load_all = staticmethod(lambda: None)


def pytest_runtest_logreport(report):
    file = Path(report.nodeid.split("::")[0]).name
    if report.when == "call" and report.passed:
        COUNTS.of(file)["passed"] += 1
    elif report.failed or (report.skipped and report.when != "teardown"):
        # A test that leaves itself out has shown nothing.
        COUNTS.of(file)["failed"] += 1


def pytest_terminal_summary(terminalreporter):
    out = terminalreporter
    out.section("llama.cpp's server tests against omnibus")
    for file, n in sorted(COUNTS.by_file.items()):
        out.line(f"{file:32} {n['passed']:4} passed {n['failed']:4} failed {n['deselected']:4} deselected")
    out.line("")
    for reason, n in COUNTS.deselected.items():
        out.line(f"{n:4} {reason:12} {REASONS[reason]}")
    total = {key: sum(n[key] for n in COUNTS.by_file.values()) for key in ("passed", "failed", "deselected")}
    parts = ", ".join(f"{n} {reason}" for reason, n in COUNTS.deselected.items())
    out.line("")
    out.line(f"{COUNTS.replaced} of these ran with values of our own model (replaced.toml)")
    out.line(f"{total['passed']} passed, {total['failed']} failed, {total['deselected']} deselected ({parts})")


def pytest_sessionfinish(session, exitstatus):
    passed = sum(n["passed"] for n in COUNTS.by_file.values())
    bar = int(os.environ.get("OMNIBUS_PEER_BAR", "0"))
    if passed < bar:
        print(f"\n{passed} passed: fewer than {bar}", file=sys.stderr)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
