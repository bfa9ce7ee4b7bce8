"""Figures that fault tests measure: printed, kept in out/test-results/faults.txt, and judged in soak alone.

A machine that others use, too, is noisy: `make test` judges what is right, `make soak` how fast."""

import os
from pathlib import Path

SOAK = os.environ.get("OMNIBUS_SOAK") == "1"  # the long forms run
RESULTS = Path(__file__).resolve().parents[2] / "out" / "test-results" / "faults.txt"


class Figures:
    """The figures of one test: one line."""

    def __init__(self, name):
        self.name = name
        self.parts = []
        self.missed = []

    def note(self, text):
        self.parts.append(text)

    def bar(self, what, value, limit, unit):
        """`value` must not exceed `limit`; soak fails if it does."""
        self.note(f"{what} {value:.3g} {unit} (bar {limit:g})")
        if value > limit:
            self.missed.append(self.parts[-1])

    def line(self):
        return f"{self.name}: {', '.join(self.parts)}"

    def finish(self):
        RESULTS.parent.mkdir(parents=True, exist_ok=True)
        with open(RESULTS, "a", encoding="utf-8") as out:
            out.write(self.line() + "\n")
        if SOAK:
            assert not self.missed, f"bars missed: {'; '.join(self.missed)}"


def percentile(values, share):
    """The value below which `share` (0 to 1) of the values lie."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]
