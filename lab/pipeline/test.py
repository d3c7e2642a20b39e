# SPDX-License-Identifier: GPL-2.0
"""``make test``: run the tests with pytest; the last line is ``N passed, N failed``.

It counts pytest's items: a test function counts once for each case that it is parametrised with. The line before says how
many functions these are, and how many checks programs made that a test started, in a guest for instance, and counted with
``record_property("checks", N)``; they decide about their test and are no tests of their own.

A test that ends in an error, in set-up or tear-down too, counts as failed. Nothing to run is a failure. What was left out, as
tests marked `fresh` or `soak` are by `make test`, and what was not run though it should have been, is said there, too.

What tests measure is written to build/results-test, unless XENUMA_RESULTS names another folder: build/results is for what
`make bench` and the demos have measured.

Tests that need no rack run beside those that do, and these on several racks where that is wanted (lanes.py).
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Sequence

import pytest

from . import lanes
from .counter import Counter
from .paths import BUILD

HELP = """usage: python3 -m lab.pipeline.test [FILE or FOLDER]... [-k WORDS] [option of pytest]...

Runs tests; all below tests/ if none is named. The last line is 'N passed, N failed', and the exit status 0 if none failed.
Tests that are marked soak or fresh are left out without XENUMA_SOAK=1, which gives those that repeat something more rounds.
XENUMA_LANES=N: racks side by side, by default 1; auto: 2 where there are 2 CPUs and 14 GB of free memory.
XENUMA_RESULTS=FOLDER: where what is measured goes, by default build/results-test. All other words are pytest's.
By make: 'make test TESTS=...', 'make unit UNIT_TESTS=...', 'make soak SOAK_TESTS=...', which build what they need."""


def main(arguments: Sequence[str] = ()) -> int:
    """Run what the arguments name, by default all tests."""
    if {"-h", "--help"} & set(arguments):
        print(HELP)
        return 0
    begun = time.monotonic()
    os.environ["XENUMA_RESULTS"] = os.environ.get("XENUMA_RESULTS") or str(BUILD / "results-test")
    (BUILD / "logs").mkdir(parents=True, exist_ok=True)
    junit = BUILD / "logs" / "tests.xml"
    words = ["-q", "-ra", "--durations=10", "--color=auto", *(arguments or ["tests"])]
    try:
        labels = lanes.labels(arguments or ["tests"])
    except ValueError as error:
        print(f"xenuma: {error}", file=sys.stderr, flush=True)
        counter, code = Counter(), int(pytest.ExitCode.USAGE_ERROR)
    else:
        counter, code = lanes.run(labels, words, junit) if len(labels) > 1 else lanes.run_one(words, junit)
    lines, status = counter.closing(code, time.monotonic() - begun)
    print("\n".join(lines), flush=True)
    return status


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
