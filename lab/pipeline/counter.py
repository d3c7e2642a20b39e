# SPDX-License-Identifier: GPL-2.0
"""Which tests ran, and how each ended: what ``make test`` counts, in one process or in several."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from .paths import REPO


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
