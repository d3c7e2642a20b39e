# SPDX-License-Identifier: GPL-2.0
"""What the tests of elastic nodes share: one rack for all of them, a guest of two nodes and one of four.

Booting costs more than most tests, so rack and guests live as long as they can. A test gets a guest whose elastic nodes are
absent and that runs no load; a guest that a test has lost or spoilt is started anew for the next one.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from lab.command import Run, checked, run_in
from lab.complaints import complaints
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError
from lab.guest import Guest
from lab.host import Host
from lab.hypervisor import settled_free_pages
from lab.pipeline.paths import REPO
from lab.pytest_plugin import (
    expects,
    host,
    pytest_runtest_call,
    pytest_runtest_makereport,
    pytest_runtest_setup,
    pytest_runtest_teardown,
    rack,
)

__all__ = [
    "expects",
    "host",
    "pytest_runtest_call",
    "pytest_runtest_makereport",
    "pytest_runtest_setup",
    "pytest_runtest_teardown",
    "rack",
]

CONFIGS = REPO / "configs"


SOAK = bool(os.environ.get("XENUMA_SOAK"))
LEFT_TO_SOAK = ("fresh", "soak")


def soak(*values: object, name: str | None = None) -> Any:
    """A case of a parametrised test that is left to `make soak`, as pytest.param()."""
    return pytest.param(*values, id=name, marks=pytest.mark.soak)


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave some tests to `make soak`.

    Those marked `fresh`: one that fails now and then would cost everybody a whole run. Those marked `soak`: further cases of
    what others show already.
    """
    left = [] if SOAK else [item for item in items if any(map(item.get_closest_marker, LEFT_TO_SOAK))]
    if left:
        config.hook.pytest_deselected(items=left)
        items[:] = [item for item in items if item not in left]


def rounds(usual: int, soak: int) -> int:
    """How often a test does the same again: `usual` times, or `soak` times for `make soak`, which sets XENUMA_SOAK."""
    return soak if SOAK else usual


@pytest.fixture(scope="session")
def dom0(host: Host) -> Run:
    """Commands in its dom0."""
    return run_in(host)


class Stable:
    """Guests by configuration, started when first asked for; one at a time.

    A guest lives until somebody leaves it: a test that ends or spoils one says so with leave(). One that is found dead, or
    started anew, without that has failed the test after which it was found.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self.guests: dict[str, Guest] = {}
        self.lives: dict[str, str] = {}  # of each guest, what its kernel calls this boot
        self.asked = 0  # guests whose kernel log was read before they went
        self.complaints: list[str] = []  # of their kernels

    def get(self, config: str) -> Guest:
        """A guest of that configuration, with all elastic nodes absent."""
        for other in list(self.guests):
            if other != config:
                self.leave(other)
        if config not in self.guests:
            guest = self.guests[config] = self.host.start_guest(CONFIGS / config)
            self.lives[config] = life(guest)
        found = self.guests[config]
        try:
            absent(found)
        except BaseException:
            self.leave(config, ask=False)  # the next test gets another one
            raise
        return found

    def lost(self) -> list[str]:
        """Which guests do not run any more as they were started, and why. They are destroyed, and forgotten."""
        found = []
        for config, guest in list(self.guests.items()):
            try:
                now = life(guest)
                why = "" if now == self.lives[config] else "it has started anew"
            except LabError as error:
                why = f"it does not answer: {error}"
            if why:
                found.append(f"guest {guest.name}: {why}")
                self.leave(config, ask=False)
        return found

    def leave(self, config: str, ask: bool = True) -> None:
        """Destroy a guest, if it runs: its memory is needed, or it is spoilt; do not `ask` one that cannot answer."""
        guest = self.guests.pop(config, None)
        if guest is not None:
            try:
                if ask:
                    log = guest.run("dmesg", timeout=20, check=True)
                    self.asked += 1
                    self.complaints += complaints(log.out)
            finally:
                guest.destroy()

    def leave_all(self) -> None:
        """Destroy all of them."""
        for config in list(self.guests):
            self.leave(config)


def life(guest: Guest) -> str:
    """What a guest's kernel calls the time since it was booted: another text after each boot. Raises LabError."""
    return guest.run("cat /proc/sys/kernel/random/boot_id", timeout=20, check=True).out.strip()


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


@pytest.fixture(autouse=True)
def none_is_lost(request: pytest.FixtureRequest) -> Iterator[None]:
    """After each test that has to do with guests: those that nobody left still run."""
    guests: Stable | None = request.getfixturevalue("stable") if "stable" in request.fixturenames else None
    yield
    if guests is not None and (lost := guests.lost()):
        pytest.fail("lost during this test, which did not leave it: " + "; ".join(lost), pytrace=False)


@pytest.fixture
def pair(stable: Stable) -> ElasticGuest:
    """A guest with node 0 and elastic node 1, which is absent."""
    return stable.get("guest2.cfg")


class Baseline:
    """How much memory of the host is free while nothing happens; found out once for each guest that runs.

    For tests that change nothing: each compares with it, so that a page that one loses fails that one. A test that moved
    memory legally asks settled_free_pages() itself.
    """

    def __init__(self, dom0: Run) -> None:
        self._dom0 = dom0
        self._of: list[str] | None = None
        self._pages: dict[int, int] = {}

    def pages(self, lives: list[str]) -> dict[int, int]:
        """Free pages of each physical node, while the guests run that have these lives."""
        if self._of != lives:
            self._of, self._pages = lives, settled_free_pages(self._dom0)
        return self._pages


@pytest.fixture(scope="module")
def baselines(dom0: Run) -> Baseline:
    """Of the tests of a file."""
    return Baseline(dom0)


@pytest.fixture
def baseline(baselines: Baseline, stable: Stable) -> dict[int, int]:
    """Free pages of each physical node, as they have been since the guest that runs was started."""
    return baselines.pages(sorted(stable.lives[config] for config in stable.guests))


@pytest.fixture
def narrow_pool(dom0: Run) -> Iterator[None]:
    """Pool-0, in which all domains are, has no CPU of pnode 1 while the test runs."""
    try:
        checked(dom0, "xl cpupool-cpu-remove Pool-0 node:1", 60.0)
        yield
    finally:
        checked(dom0, "xl cpupool-cpu-add Pool-0 node:1", 60.0)


@pytest.fixture
def four(stable: Stable) -> Iterator[ElasticGuest]:
    """A guest with node 0 and elastic nodes 1 to 3, all absent."""
    yield stable.get("guest4.cfg")


@pytest.fixture
def background(pair: ElasticGuest) -> Iterator[Callable[[str, str], int]]:
    """Start programs in the two-node guest: (command, output file) -> pid. Those that still run afterwards are ended."""
    pids: list[int] = []

    def start(command: str, output: str) -> int:
        # What an earlier test has left there must not be taken for this program's words.
        done = pair.guest(f": >{output}; setsid {command} >{output} 2>&1 </dev/null & echo $!", 30.0)
        pids.append(int(done.out))
        return pids[-1]

    yield start
    for pid in pids:
        checked(
            pair.guest,
            f"gone() {{ for i in 1 2 3 4 5 6 7 8 9 10; do [ -e /proc/{pid} ] || exit 0; sleep 0.5; done; }}; "
            f"kill -TERM {pid}; gone; kill -KILL {pid}; gone; echo 'pid {pid} cannot be killed'; exit 1",
            30.0,
        )
