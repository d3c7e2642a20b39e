# SPDX-License-Identifier: GPL-2.0
"""What the tests of elastic nodes share: one rack for all of them, a guest of two nodes and one of four.

Booting costs more than most tests, so rack and guests live as long as they can. A test gets a guest whose elastic nodes are
absent and that runs no load; a guest that a test has lost or spoilt is started anew for the next one.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable, Iterator

import pytest

from benchmarks.elastic_guest import ElasticGuest, Run
from benchmarks.in_lab import elastic, run_in
from benchmarks.results import ROOT
from lab.errors import LabError
from lab.guest import Guest
from lab.host import Host
from lab.pytest_plugin import (
    host,
    pytest_runtest_makereport,
    pytest_runtest_protocol,
    pytest_terminal_summary,
    rack,
)

__all__ = ["host", "pytest_runtest_makereport", "pytest_runtest_protocol", "pytest_terminal_summary", "rack"]

CONFIGS = ROOT / "configs"

# What kernels and the hypervisor write when something is wrong with themselves; a crash that a test asked for, by sysrq or
# by leaving out the root file system, is none.
COMPLAINT = re.compile(
    r"WARNING: |BUG: |Oops|INFO: task .* blocked|invalid APIC ID|llc-sibling"
    r"|Kernel panic(?!.*(?:sysrq triggered crash|Unable to mount root fs))"
    r"|possible recursive locking|\(XEN\) (Assertion |Xen BUG|Xen WARN|FATAL)"
)


# Upstream's own, seen with `make e2e-debug`: gntdev copies to user space under its lock, which its mmap() takes inside the
# mmap lock; Xen does not like the size of the XSAVE area that QEMU's CPU announces.
KNOWN = re.compile(r"lock: *\n.*gntdev_mmap|Xen WARN at arch/x86/xstate\.c")
KNOWN_LINES = 6  # where it has to be, from the line that complains


def complaints(log: str) -> list[str]:
    """The lines of a log that complain, but for what is known of upstream."""
    lines = [line for line in log.splitlines() if line.strip()]  # a serial console has two ends for each line
    return [
        line.strip()
        for number, line in enumerate(lines)
        if COMPLAINT.search(line) and not KNOWN.search("\n".join(lines[number : number + KNOWN_LINES]))
    ]


@pytest.fixture(scope="session")
def dom0(host: Host) -> Run:
    """Commands in its dom0."""
    return run_in(host)


class Stable:
    """Guests by configuration, started when first asked for, and anew when they do not answer; one at a time."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.guests: dict[str, Guest] = {}
        self.asked = 0  # guests whose kernel log was read before they went
        self.complaints: list[str] = []  # of their kernels

    def get(self, config: str) -> ElasticGuest:
        """A guest of that configuration, with all elastic nodes absent."""
        for other in list(self.guests):
            if other != config:
                self.leave(other)
        guest = self.guests.get(config)
        if guest is not None and not answers(guest):
            guest.destroy()
            guest = None
        if guest is None:
            guest = self.guests[config] = self.host.start_guest(CONFIGS / config)
        found = elastic(guest)
        absent(found)
        return found

    def handle(self, config: str) -> Guest:
        """The lab's own handle of it."""
        return self.guests[config]

    def leave(self, config: str, ask: bool = True) -> None:
        """Destroy a guest, if it runs: its memory is needed, or it is spoilt; do not `ask` one that cannot answer."""
        guest = self.guests.pop(config, None)
        if guest is not None:
            if ask and answers(guest):
                log = guest.run("dmesg", timeout=20)
                self.asked += log.rc == 0
                self.complaints += [f"{guest.name}: {line}" for line in complaints(log.out)]
            guest.destroy()

    def leave_all(self) -> None:
        """Destroy all of them."""
        for config in list(self.guests):
            self.leave(config)


def answers(guest: Guest) -> bool:
    """Whether a guest still runs commands."""
    try:
        return guest.run("true", timeout=20).rc == 0
    except LabError:
        return False


def absent(guest: ElasticGuest) -> None:
    """Detach all nodes that are there; fails when one cannot be detached, since then nothing that follows means anything."""
    for number in sorted(guest.nodes(), reverse=True):
        if number != 0:
            done = guest.detach(number)
            assert done.status == 0, f"cannot get rid of node {number}: {done.text}"


@pytest.fixture(scope="session")
def stable(host: Host) -> Iterator[Stable]:
    """The guests of this session."""
    guests = Stable(host)
    yield guests
    guests.leave_all()


@pytest.fixture
def pair(stable: Stable) -> ElasticGuest:
    """A guest with node 0 and elastic node 1, which is absent."""
    return stable.get("guest2.cfg")


@pytest.fixture
def four(stable: Stable) -> Iterator[ElasticGuest]:
    """A guest with node 0 and elastic nodes 1 to 3, all absent."""
    yield stable.get("guest4.cfg")


@pytest.fixture
def background(pair: ElasticGuest) -> Iterator[Callable[[str, str], int]]:
    """Start programs in the two-node guest: (command, output file) -> pid. Those that still run afterwards are ended."""
    pids: list[int] = []

    def start(command: str, output: str) -> int:
        done = pair.guest(f"setsid {command} >{output} 2>&1 </dev/null & echo $!", 30.0)
        pids.append(int(done.out))
        return pids[-1]

    yield start
    for pid in pids:
        with contextlib.suppress(LabError):
            pair.guest(
                f"kill -TERM {pid}; for i in 1 2 3 4 5 6 7 8 9 10; do [ -e /proc/{pid} ] || exit 0; sleep 0.5; done; "
                f"kill -KILL {pid}",
                30.0,
            )
