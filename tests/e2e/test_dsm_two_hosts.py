# SPDX-License-Identifier: GPL-2.0
"""A guest of one host whose elastic node is memory of another: a dsmd on each, begun by hand. Milestone (e) of issue 7."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.description import RackDescription
from lab.far_guest import slices
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from lab.spanning import NAME, Shape, Spanning, spanning
from tests.e2e.dsm_hosts import Memcheck, free_pages, listed_mib
from tests.e2e.dsm_program import lasts

pytestmark = pytest.mark.fresh

SHAPE = Shape(home_mib=512, node_mib=128, frames=3072)
# More than the pool holds, so that pages go back, too.
CHECKED_MIB = 16
SECONDS = 30


@pytest.fixture(scope="module")
def dsm_rack() -> Iterator[Rack]:
    with Rack.boot(RackDescription.load("two-hosts"), meter=False) as booted:
        yield show_consoles_of(booted)
    assert not booted.wrong_ends


@pytest.fixture
def spanned(dsm_rack: Rack) -> Iterator[Spanning]:
    with spanning(dsm_rack, SHAPE, "tcp") as found:
        yield found


def waited(found: Spanning) -> dict[str, str]:
    """Faults that dsmd has answered at home, and how long they took: rough, of an emulator beside other load."""
    status = found.status()
    kinds = {kind: status[kind] for kind in ("read_fault", "write_fault")}
    return {
        kind: f"{each['count']}, median {each['median_ns'] / 1e3:.0f} us, p99 {each['p99_ns'] / 1e3:.0f} us"
        for kind, each in kinds.items()
    }


def test_a_node_of_another_host(spanned: Spanning) -> None:
    """It is attached, used by a program that evicts pages all the time, and detached: no word is wrong."""
    guest, (alpha, beta) = spanned.guest, spanned.hosts
    assert len(slices(beta)) == 1
    attached = guest.attach(1, timeout=600.0)
    assert attached.status == 0, attached.text + spanned.said()
    print("attach:", attached.seconds, "s;", waited(spanned))
    # Memory of the other host: what is here more are frames for its pages.
    assert listed_mib(alpha, NAME) <= SHAPE.home_mib + SHAPE.frames // 256 + 8

    memory = Memcheck(guest, 1, CHECKED_MIB)
    lasts(run_in(alpha), SECONDS)
    verdict = memory.end()
    print("memcheck:", verdict, waited(spanned))
    here, there = spanned.status(0), spanned.status(1)
    print("alpha:", here, "\nbeta:", there)
    assert here["state"] == there["state"] == "running"
    assert complaints(checked(run_in(guest), "dmesg")) == []

    detached = guest.detach(1, timeout=600.0)
    assert detached.status == 0, detached.text + spanned.said()
    assert guest.vnode(1).state == "offline", guest.vnode(1).keys
    print("detach:", detached.seconds, "s")


def test_all_frames_are_back(dsm_rack: Rack) -> None:
    """On both hosts, and no slice is left; what the first guest makes Xen allocate once does not count."""
    free = []
    for _ in range(2):
        with spanning(dsm_rack, SHAPE, "tcp") as found:
            hosts = found.hosts
            assert found.guest.attach(1, timeout=600.0).status == 0, found.said()
        assert slices(hosts[1]) == []
        free.append(free_pages(hosts))
    assert free[0] == free[1]
