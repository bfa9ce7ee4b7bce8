"""Fixtures of the fault tests. T forms (make test) judge what is right and print how long it took; with OMNIBUS_SOAK=1
(make soak) they are the L forms, which judge the bars, too."""

import re
from pathlib import Path

import pytest

from harness.figures import SOAK, Figures

_lines = []

# What is too long for `make test` in any form.
collect_ignore = [] if SOAK else ["test_f15_rolling_restart.py"]


@pytest.fixture(scope="session")
def soak():
    """True: the L form."""
    return SOAK


@pytest.fixture
def figures(request):
    """The figures of this test (harness/figures.py), named by the number in its file's name."""
    number = re.match(r"test_f(\d+)", Path(request.path).name)
    name = f"F{int(number.group(1))}" if number else Path(request.path).stem
    test = re.sub(r"^test_(f\d+_)?", "", request.node.name)
    figures = Figures(f"{name} {test}")
    yield figures
    if figures.parts:
        _lines.append(figures.line())
        figures.finish()


def pytest_terminal_summary(terminalreporter):
    if _lines:
        terminalreporter.section("fault figures")
        for line in _lines:
            terminalreporter.write_line(line)
