# SPDX-License-Identifier: GPL-2.0
"""``make test``: run the tests with pytest; the last line is ``N passed, N failed``.

It counts pytest's items: a test function counts once for each case that it is parametrised with. The line before says how
many functions these are, and how many checks programs made that a test started, in a guest for instance, and counted with
``record_property("checks", N)``; they decide about their test and are no tests of their own.

A test that ends in an error, in set-up or tear-down too, counts as failed. Nothing to run is a failure. What was left out, as
tests marked `fresh` or `soak` are by `make test`, and what was not run though it should have been, is said there, too.

Tests that need no rack run beside those that do, and these on several racks where that is wanted (lanes.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from .paths import BUILD, REPO


class Counter:
    """Counts tests, each once: failed if any of its phases failed, skipped if one was skipped and none failed."""

    def __init__(self) -> None:
        self.outcome: dict[str, str] = {}
        self.checks: dict[str, int] = {}
        self.collection_errors = 0
        self.collected: set[str] = set()
        self.deselected: set[str] = set()

    def pytest_deselected(self, items: Sequence[pytest.Item]) -> None:
        self.deselected.update(item.nodeid for item in items)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self.collected = {item.nodeid for item in session.items}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.outcome[report.nodeid] = "failed"
        elif report.skipped:
            self.outcome.setdefault(report.nodeid, "skipped")
        elif report.when == "call":
            self.outcome.setdefault(report.nodeid, "passed")
        # Each phase's report has all properties so far.
        self.checks[report.nodeid] = sum(int(str(value)) for name, value in report.user_properties if name == "checks")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.collection_errors += report.failed

    def count(self, outcome: str) -> int:
        return sum(1 for each in self.outcome.values() if each == outcome)

    def as_json(self) -> dict[str, Any]:
        """All that add() needs."""
        return {
            "outcome": self.outcome,
            "checks": self.checks,
            "collected": sorted(self.collected),
            "deselected": sorted(self.deselected),
            "collection_errors": self.collection_errors,
        }

    def add(self, other: Mapping[str, Any]) -> None:
        """Count what another process ran of the same collection, as_json(). A test that both ran counts once, as the worse."""
        for nodeid, outcome in other["outcome"].items():
            either = {outcome, self.outcome.get(nodeid, outcome)}
            self.outcome[nodeid] = next(word for word in ("failed", "skipped", "passed") if word in either)
        for nodeid, checks in other["checks"].items():
            self.checks[nodeid] = self.checks.get(nodeid, 0) + checks
        self.collected.update(other["collected"])
        self.deselected.update(other["deselected"])
        self.collection_errors = max(self.collection_errors, other["collection_errors"])

    def functions(self) -> int:
        """Of how many functions the tests are cases. A name in brackets is a case's, and may have brackets itself."""
        return len({nodeid.partition("[")[0] for nodeid in self.outcome})

    def closing(self, code: int, seconds: float) -> tuple[list[str], int]:
        """The closing lines, and the exit code: 0 only if all went well, pytest agrees, and something ran."""
        failed = self.count("failed") + self.collection_errors
        passed, skipped = self.count("passed"), self.count("skipped")
        missing = len(self.collected - self.outcome.keys())
        if not failed and (code != pytest.ExitCode.OK or not passed or missing):
            failed += 1  # interrupted, misused, broken off, or nothing ran: never a success
        lines = [
            f"tests in {REPO.name}: {seconds:.0f} s, logs below build/logs",
            f"{self.functions()} test functions with {len(self.outcome)} cases"
            + (f", {missing} more were not run" if missing else "")
            + (f", {len(self.deselected)} were left out (marked fresh or soak, or by -k or -m)" if self.deselected else "")
            + f"; programs that they ran made {sum(self.checks.values())} checks",
            f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""),
        ]
        return lines, 1 if failed else 0


def main(arguments: Sequence[str] = ()) -> int:
    """Run what the arguments name, by default all tests."""
    from . import lanes

    begun = time.monotonic()
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
