# SPDX-License-Identifier: GPL-2.0
"""pytest and the lab: a rack that is booted once, and consoles in the report of a failed test.

A conftest.py takes what it wants:
    from lab.pytest_plugin import host, pytest_runtest_makereport, pytest_runtest_protocol, pytest_terminal_summary, rack
The rack is the one that XENUMA_RACK names (a name from lab/racks or a file), by default one-host.

An emulator can lose a guest, as QEMU did (docs/decisions/0005): Xen logs a triple fault. A test that fails after that is
run once more on a rack booted anew, unless it is marked `once`, MOST_REPEATED times in a session; the summary names it.
"""

from __future__ import annotations

import os
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from _pytest.runner import runtestprotocol
from _pytest.terminal import TerminalReporter

from lab.description import RackDescription
from lab.host import Host
from lab.rack import Rack

# Lines of each console in the report of a failed test.
CONSOLE_LINES = 25

# Tests that may be repeated: more losses than these are no accident.
MOST_REPEATED = 2
LOST = "Triple fault"
SAID_LINES = 8  # of a first failure, in the summary

_log_directories: list[Path] = []
_lost_before: dict[Path, int] = {}
_repeated: list[tuple[str, str]] = []  # test, and how it failed the first time


def show_consoles_of(rack: Rack) -> Rack:
    """From now on, failed tests show the last lines of this rack's consoles. Returns the rack."""
    _log_directories.append(rack.logs)
    return rack


@pytest.fixture(scope="session")
def rack() -> Iterator[Rack]:
    """A rack for all tests of the session."""
    with Rack.boot(RackDescription.load(os.environ.get("XENUMA_RACK", "one-host"))) as booted:
        yield show_consoles_of(booted)


@pytest.fixture(scope="session")
def host(rack: Rack) -> Host:
    """The rack's first host."""
    return rack.host()


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


def newly_lost() -> int:
    """How many guests have been lost to a triple fault since this was last asked, by the newest rack's consoles."""
    if not _log_directories:
        return 0
    directory = _log_directories[-1]
    now = sum(log.read_text(encoding="utf-8", errors="replace").count(LOST) for log in directory.glob("*-console.log"))
    before, _lost_before[directory] = _lost_before.get(directory, 0), now
    return now - before


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> bool:
    """Run a test, and once more, with all fixtures made anew, if it failed and a guest was lost."""
    item.ihook.pytest_runtest_logstart(nodeid=item.nodeid, location=item.location)
    reports = runtestprotocol(item, log=False, nextitem=nextitem)
    failed = [report for report in reports if report.failed]
    again = len(_repeated) < MOST_REPEATED and not item.get_closest_marker("once")
    if failed and again and newly_lost():
        _repeated.append((item.nodeid, failed[0].longreprtext))
        item.session._setupstate.teardown_exact(None)
        if isinstance(item, pytest.Function):
            item._initrequest()
        reports = runtestprotocol(item, log=False, nextitem=nextitem)
    for report in reports:
        item.ihook.pytest_runtest_logreport(report=report)
    item.ihook.pytest_runtest_logfinish(nodeid=item.nodeid, location=item.location)
    return True


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    """Name the tests that were repeated, with the end of what they said the first time."""
    for nodeid, said in _repeated:
        terminalreporter.write_line(f"run twice, a guest was lost to a triple fault (docs/decisions/0005): {nodeid}")
        for line in said.splitlines()[-SAID_LINES:]:
            terminalreporter.write_line(f"    {line}")
