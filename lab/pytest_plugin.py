# SPDX-License-Identifier: GPL-2.0
"""pytest and the lab: a rack that is booted once, and consoles that are read with each test.

A conftest.py takes all of it: from lab.pytest_plugin import *, by name.
The rack is the one that XENUMA_RACK names (a name from lab/racks or a file), by default one-host.

No test is run a second time. Whatever a kernel or the hypervisor complains of on a console, a guest lost to a triple fault
among it, fails the test during which it was logged, even if all else went well: a machine that came back would hide it. A
test that provokes a complaint announces it:

    def test_crash(expects, ...):
        expects(r"Kernel panic - not syncing: sysrq triggered crash")

and fails, too, when what it has announced is not logged. A guest's console comes by way of dom0, so a line of it can be
counted for the next test; none is lost.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest

from lab.complaints import Complaint, Consoles
from lab.description import RackDescription
from lab.host import Host
from lab.patience import scaled
from lab.rack import Rack

# Lines of each console in the report of a failed test.
CONSOLE_LINES = 25

# Seconds until what a test has announced must have been logged, and between two looks.
ANNOUNCED_S = 30.0
LOOK_S = 0.1

_log_directories: list[Path] = []


class Watch:
    """The consoles of all racks of the session, and what the test that runs has announced."""

    def __init__(self) -> None:
        self.consoles = Consoles()
        self._announced: dict[re.Pattern[str], bool] = {}  # and whether it was seen

    def announce(self, pattern: str) -> None:
        """Complaints that match are this test's doing, until forget()."""
        self._announced[re.compile(pattern)] = False

    def forget(self) -> None:
        """The test is over: nothing is announced any more."""
        self._announced.clear()

    def unannounced(self, final: bool = False) -> list[Complaint]:
        """New complaints that nobody announced."""
        found = []
        for complaint in self.consoles.new(final):
            matching = [pattern for pattern in self._announced if pattern.search(complaint.line)]
            self._announced.update(dict.fromkeys(matching, True))
            if not matching:
                found.append(complaint)
        return found

    def missing(self) -> list[str]:
        """What was announced and has not been seen."""
        return [pattern.pattern for pattern, seen in self._announced.items() if not seen]


_watch = Watch()


def show_consoles_of(rack: Rack) -> Rack:
    """From now on, failed tests show the last lines of this rack's consoles, and complaints there fail tests. Returns it."""
    _log_directories.append(rack.logs)
    _watch.consoles.add(rack.logs)
    return rack


@pytest.fixture(scope="session")
def rack() -> Iterator[Rack]:
    """A rack for all tests of the session."""
    with Rack.boot(RackDescription.load(os.environ.get("XENUMA_RACK", "one-host"))) as booted:
        yield show_consoles_of(booted)
    wrong = list(booted.wrong_ends)
    if left := _watch.unannounced(final=True):
        wrong.append(_said(left))
    if wrong:
        pytest.fail("\n".join(wrong), pytrace=False)


@pytest.fixture(scope="session")
def host(rack: Rack) -> Host:
    """The rack's first host."""
    return rack.host()


@pytest.fixture
def expects() -> Callable[[str], None]:
    """Announce what this test provokes: a regular expression, which a complaint on a console has to match by its end."""
    return _watch.announce


def tails(directory: Path, lines: int = CONSOLE_LINES) -> list[tuple[str, str]]:
    """Title and last lines of every log in a directory that is not empty."""
    found = []
    for log in sorted(directory.glob("*.log")):
        last = log.read_text(encoding="utf-8", errors="replace").splitlines()[-lines:]
        if last:
            found.append((f"last lines of {log.name}", "\n".join(last)))
    return found


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Append the consoles' last lines to a failed report, whichever phase failed."""
    report = yield
    if report.failed and _log_directories:
        report.sections += tails(_log_directories[-1])
    return report


def _said(found: list[Complaint]) -> str:
    return "on the consoles during this test, announced by none:\n" + "\n".join(f"    {each}" for each in found)


def _attributed(item: pytest.Item, phase: str) -> Generator[None, object, object]:
    """Run a phase of a test and fail it if something was logged meanwhile that the test did not announce.

    A phase that failed by itself shows what was logged beside its own reason; one that is skipped fails all the same.
    """
    try:
        result = yield
    except pytest.skip.Exception:
        if found := _watch.unannounced():
            pytest.fail(_said(found), pytrace=False)
        raise
    except BaseException:
        if found := _watch.unannounced():
            item.add_report_section(phase, "complaints", _said(found))
        raise
    found = _watch.unannounced()
    if phase == "call":
        deadline = time.monotonic() + scaled(ANNOUNCED_S)
        while not found and _watch.missing() and time.monotonic() < deadline:
            time.sleep(LOOK_S)
            found = _watch.unannounced()
    if found:
        pytest.fail(_said(found), pytrace=False)
    if phase == "call" and (missing := _watch.missing()):
        pytest.fail(
            f"announced, and on no console within {scaled(ANNOUNCED_S):g} s: {', '.join(missing)}", pytrace=False
        )
    return result


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> Generator[None, object, object]:
    """What is logged while fixtures are made, or was after the test before, is this test's."""
    return (yield from _attributed(item, "setup"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """What is logged while the test runs; what it has announced must be."""
    return (yield from _attributed(item, "call"))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """What is logged while its fixtures are undone."""
    try:
        return (yield from _attributed(item, "teardown"))
    finally:
        _watch.forget()
