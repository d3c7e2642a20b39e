# SPDX-License-Identifier: GPL-2.0
"""``make test``: run the tests with pytest; the last line is ``N passed, N failed``.

A test that ends in an error, in set-up or tear-down too, counts as failed. Nothing to run is a failure.
"""

from __future__ import annotations

import sys
import time

import pytest

from .paths import BUILD, REPO


class Counter:
    """Counts tests, each once: failed if any of its phases failed."""

    def __init__(self) -> None:
        self.outcome: dict[str, str] = {}
        self.collection_errors = 0

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.outcome[report.nodeid] = "failed"
        elif report.skipped:
            self.outcome.setdefault(report.nodeid, "skipped")
        elif report.when == "call":
            self.outcome.setdefault(report.nodeid, "passed")

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        self.collection_errors += report.failed

    def count(self, outcome: str) -> int:
        return sum(1 for each in self.outcome.values() if each == outcome)


def main() -> int:
    counter = Counter()
    begun = time.monotonic()
    (BUILD / "logs").mkdir(parents=True, exist_ok=True)
    code = pytest.main(
        [
            "-q",
            "-ra",
            "--durations=10",
            "--color=auto",
            f"--junitxml={BUILD / 'logs' / 'tests.xml'}",
            *(sys.argv[1:] or ["tests"]),
        ],
        plugins=[counter],
    )
    failed = counter.count("failed") + counter.collection_errors
    passed, skipped = counter.count("passed"), counter.count("skipped")
    if not failed and (code != pytest.ExitCode.OK or not passed):
        failed += 1  # interrupted, misused, or nothing ran: never a success
    print(f"tests in {REPO.name}: {time.monotonic() - begun:.0f} s, logs below build/logs")
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
