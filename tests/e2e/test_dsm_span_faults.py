# SPDX-License-Identifier: GPL-2.0
"""Faults between two hosts with a CPU of the guest on each: section 5 of docs/plan/8.md.

A program on the CPU of the other host checks each word that it reads, of memory of both hosts. What a guest survives costs it
nothing; what it does not ends it, with a reason that names the host, its CPU, and how many pages were there, and which. Then
one command, `xl destroy`, cleans up on both hosts. An ordinary guest beside it does not notice, and its console works.
"""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Iterator

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.far_guest import DsmSite, far_guest, left_nothing, slices
from lab.guest import Guest
from lab.guestview import parse_list
from lab.host import Host
from lab.patience import wait_for
from lab.span_guest import BOOT, LIMITS, PATIENCE, SLOW_DSMD, SlowSite, keep_work_at_home, measured
from tests.e2e.dsm_hosts import Memcheck, free_pages
from tests.e2e.far_faults import (
    CUT,
    DIED,
    Deadly,
    Survived,
    cables,
    cut_for_long,
    dsmd,
    faults,
    is_ended,
    is_well,
    plain_guest,
    power_off,
    repair,
    stands_still,
    stop_until_lost,
    survives,
    without_dsmd_host,
)
from tests.e2e.span_guest import attach, detach, slow_site

pytestmark = pytest.mark.fresh

HOME_CPU, FAR_CPU = 0, 1
DEADLINE = LIMITS["deadline_ms"] / 1000  # s until a silent host is lost
CHECKED_MIB = 4
DSMD_HOST = f"dsmd-host -d {SLOW_DSMD}"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowSite]:
    with slow_site(tmp_path_factory.mktemp("faults")) as made:
        yield made


@pytest.fixture(scope="module")
def plain(site: SlowSite) -> Iterator[Guest]:
    with plain_guest(site) as guest:
        yield guest


@contextlib.contextmanager
def span_guest(site: DsmSite) -> Iterator[Guest]:
    """A guest with a CPU on either host, and a program on the other one's that writes memory of home, and checks it."""
    assert isinstance(site, SlowSite)
    shape = measured(site)
    with far_guest(site.both, site.other.description.name, shape, BOOT) as guest:
        keep_work_at_home(guest)
        attach(site, guest, shape)
        Memcheck(guest, 0, CHECKED_MIB, cpu=FAR_CPU, patience=PATIENCE)
        yield guest


def online_cpus(guest: Guest) -> tuple[int, ...]:
    """As Guest.online_cpus(), with the patience that a guest on two hosts needs."""
    return parse_list(checked(run_in(guest), "cat /sys/devices/system/cpu/online", PATIENCE))


def xl_works(site: DsmSite, plain: Guest) -> None:
    """What the operator asks of the hypervisor and of other guests is answered, and their console works."""
    host = site.home
    for command in ("xl list", "xl info", "xl vnode-list", "xl dmesg"):
        done = run_in(host)(command)
        assert done.status == 0, done.text
    done = run_in(host)("dsmctl hosts")
    # It says, by its status, too, that a host is not there.
    gone = site.other.ended()
    assert done.status == (1 if gone else 0), done.text
    assert re.search(rf"^beta +{'unreachable' if gone else 'up'}\b", done.text, re.M), done.text
    word = f"console-{time.monotonic_ns()}"
    checked(run_in(plain), f"echo {word} >/dev/hvc0")
    wait_for("a word comes through the console", 60, lambda: word in plain.console_tail())


# ---- What a guest survives ----


def host_daemon_dies(which: Callable[[DsmSite], Host]) -> Callable[[DsmSite], contextlib.AbstractContextManager[None]]:
    return lambda site: without_dsmd_host(which(site), DSMD_HOST)


SURVIVED = [
    Survived("a cable is cut and repaired in time", lambda site: cables(site, CUT), DEADLINE / 3, waits=True),
    Survived("the other host is slow", lambda site: stands_still(site.other), DEADLINE / 3, waits=True),
    Survived("home is slow", lambda site: stands_still(site.home), DEADLINE / 3, waits=True),
    Survived("dsmd-host dies at home", host_daemon_dies(lambda site: site.home)),
    Survived("dsmd-host dies at the other host", host_daemon_dies(lambda site: site.other)),
]


def test_what_a_guest_survives(site: SlowSite, plain: Guest) -> None:
    """Each fault in turn, and in the end its CPU and its pages come home while the program runs: nothing is lost.

    Attached and detached twice: with what is checked in memory of home, and in memory of the other host, which has to move.
    """
    shape = measured(site)
    with far_guest(site.both, site.other.description.name, shape, BOOT) as guest:
        inside = run_in(guest)
        keep_work_at_home(guest)
        attach(site, guest, shape)
        memory = Memcheck(guest, 0, CHECKED_MIB, cpu=FAR_CPU, patience=PATIENCE)
        for fault in SURVIVED:
            survives(site, guest, fault, patience=300)
            assert FAR_CPU in online_cpus(guest)
            xl_works(site, plain)
        # Its CPU goes; the program goes on at home.
        detach(site, guest, shape)
        assert online_cpus(guest) == (HOME_CPU,) and slices(site.other) == []
        print("memcheck of home's memory:", memory.end())
        attach(site, guest, shape)
        memory = Memcheck(guest, 1, CHECKED_MIB, cpu=FAR_CPU, bind="preferred", patience=PATIENCE)
        pid = int(checked(inside, "cat /tmp/memcheck.pid", PATIENCE))
        resident = guest.resident(pid)
        print(resident, faults(site.home), faults(site.other))
        assert resident.get(1, 0) > CHECKED_MIB * 1024 // 2, resident
        detach(site, guest, shape)
        assert guest.resident(pid).get(1, 0) == 0
        print("memcheck of the other host's memory:", memory.end())
        assert complaints(checked(inside, "dmesg", PATIENCE)) == []
    left_nothing(site.both)
    is_well(plain)


# ---- What ends a guest ----

# What home has lost: a CPU, pages of home's memory that the program there has written, and which.
OF_BETA = r"vCPUs 1 ran there, [1-9]\d* pages of alpha were modified there; of its own 32768 pages \d+ are here"
OF_ALPHA = r"vCPUs 0 ran there, \d+ pages of beta were modified there"
FIRST = r"; of alpha's the first are gfns 0x"
SILENT = r"\(.* in time.*\): "

DEADLY = [
    Deadly(
        "dsmd dies at home",
        lambda site: dsmd(site.home, "KILL"),
        f"host alpha: {DIED}",
        rf"host alpha is lost \(.*\): {OF_ALPHA}",
    ),
    Deadly(
        "dsmd dies at the other host",
        lambda site: dsmd(site.other, "KILL"),
        rf"host beta is lost \(.*\): {OF_BETA}{FIRST}",
        f"host beta: {DIED}",
    ),
    Deadly(
        "the other host is too slow",
        lambda site: stop_until_lost(site, site.other, DEADLINE * 2),
        rf"host beta is lost {SILENT}{OF_BETA}{FIRST}",
        rf"host alpha is lost \(.*\): {OF_ALPHA}",
    ),
    Deadly(
        "a cable is cut and repaired too late",
        cut_for_long,
        rf"host beta is lost {SILENT}{OF_BETA}{FIRST}",
        None,
        after=repair,
        gives_back=True,
    ),
    # The last one: there is no other host after it.
    Deadly("the other host is powered off", power_off, rf"host beta is lost {SILENT}{OF_BETA}{FIRST}", None),
]


@pytest.fixture(scope="module")
def baseline() -> dict[str, int]:
    """Free frames of each host after the first guest: what Xen allocates once does not count."""
    return {}


@pytest.mark.parametrize("fault", DEADLY, ids=str)
def test_what_ends_a_guest(site: SlowSite, plain: Guest, baseline: dict[str, int], fault: Deadly) -> None:
    is_ended(site, plain, fault, span_guest, deadline=DEADLINE * 2)
    xl_works(site, plain)
    if not site.other.ended():
        free = dict(zip(("alpha", "beta"), free_pages(site.both), strict=True))
        print("free:", free, baseline)
        assert not baseline or free == baseline, (free, baseline)
        baseline.update(free)
