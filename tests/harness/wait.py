"""Waiting for a condition with a deadline; no fixed sleeps in tests."""

import time


def wait_until(condition, limit=10.0, what="condition"):
    """The first true value of condition(), polled; fails with `what` after `limit` seconds."""
    deadline = time.monotonic() + limit
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {limit} s: {what}")
        time.sleep(0.005)
