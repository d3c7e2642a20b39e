# SPDX-License-Identifier: GPL-2.0
"""credit2: no vCPU that can run waits for ever while CPUs idle (hook 0015 of xen/).

An idle CPU resisted a unit of another one that had hardly more than the least credit, and who runs for long has that
(docs/decisions/0157). Here Xen is told to resist more than credit can make up for: without the hook a guest stands still in
its boot.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import pytest

from lab.command import checked, run_in
from lab.description import RackDescription
from lab.host import Host
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from tests.e2e.conftest import CONFIGS

pytestmark = pytest.mark.fresh

CPUS, VCPUS = 4, 6  # of the host, and of the guest: with dom0's there are more than CPUs
RESIST_US = 20000  # idle has 10 ms of credit less than nothing, and a unit 10.5 ms at most
ASKED = 20  # times, whether the guest answers


def resisting() -> RackDescription:
    """A host of one node with these CPUs, all in one queue, whose Xen is told to resist."""
    rack = RackDescription.load("one-host")
    (alpha,) = rack.hosts
    node = dataclasses.replace(alpha.nodes[0], cpus=CPUS)
    words = f"sched_credit2_migrate_resist={RESIST_US}"
    wide = dataclasses.replace(alpha, nodes=(node,), distances=((10,),), xen_arguments=words)
    return dataclasses.replace(rack, hosts=(wide,))


@pytest.fixture(scope="module")
def resisting_host() -> Iterator[Host]:
    with Rack.boot(resisting(), meter=False) as booted:
        (found,) = show_consoles_of(booted).hosts
        yield found
    assert not booted.wrong_ends


def test_a_guest_comes_up_and_answers(resisting_host: Host) -> None:
    """Its first CPU gave way to dom0's once, and then nobody took it: the guest stood still in the midst of its boot."""
    guest = resisting_host.start_guest(CONFIGS / "stock1.cfg", {"vcpus": f"{VCPUS}"})
    try:
        dom0 = run_in(resisting_host)
        said = checked(dom0, f"ping -c {ASKED} -i 0.1 {guest.address()} && xl vcpu-list", 60)
        print(said)
        assert f"{ASKED} received" in said, said
    finally:
        guest.destroy()
