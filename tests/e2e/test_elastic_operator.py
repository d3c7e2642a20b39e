# SPDX-License-Identifier: GPL-2.0
"""What else an operator of a host does, next to elastic nodes: CPU pools, save and migrate, the scheduler's weights."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lab.command import Run, checked
from lab.elastic_guest import ElasticGuest
from lab.hypervisor import pages_off, settled_free_pages
from lab.patience import wait_for

pytestmark = pytest.mark.fresh

REFUSED = 3  # exit code of xl vnode-*, as in xl-vnode(1)
PHASES = ["prepare", "guest", "settle"]


def test_attach_from_outside_the_cpupool_is_refused(pair: ElasticGuest, dom0: Run, narrow_pool: None) -> None:
    """Up front, with the pool and its pnodes; afterwards nothing has changed, and no operation is on the books."""
    before = settled_free_pages(dom0)
    listed = pair.listed()
    for pnode in ("", "pnode=1"):  # the configuration names pnode 1, too
        done = pair.attach(1, *pnode.split())
        assert done.status == REFUSED, done.text
        assert re.search(r"vnode 1: pnode 1 has no CPU in Pool-0,.* CPUs on pnodes 0:", done.text), done.text
        assert pair.listed() == listed
        assert pages_off(dom0, before) == {}
    assert sorted(pair.nodes()) == [0]


def test_attach_from_inside_the_cpupool(pair: ElasticGuest, dom0: Run, narrow_pool: None) -> None:
    """Only the pnodes outside are refused."""
    done = pair.attach(1, "pnode=0", "size=64M")
    assert done.status == 0, done.text
    assert pair.listed()[1]["pnode"] == 0
    assert pair.detach(1).status == 0


@pytest.fixture
def other_pool(dom0: Run) -> Iterator[str]:
    """The name of a second pool with one CPU of each pnode."""
    name = "Other"
    removed: list[int] = []
    try:
        for cpu in (1, 3):
            checked(dom0, f"xl cpupool-cpu-remove Pool-0 {cpu}", 60.0)
            removed.append(cpu)
        checked(dom0, f'printf \'name="{name}"\\nsched="credit2"\\ncpus=["1","3"]\\n\' >/tmp/pool.cfg')
        checked(dom0, "xl cpupool-create /tmp/pool.cfg", 60.0)
        try:
            yield name
        finally:
            checked(dom0, f"xl cpupool-destroy {name}", 60.0)
    finally:
        for cpu in removed:
            checked(dom0, f"xl cpupool-cpu-add Pool-0 {cpu}", 60.0)


def hard_affinity(guest: ElasticGuest, vcpu: int) -> str:
    """Where one vCPU may run, by `xl vcpu-list`."""
    for line in guest.vcpu_affinity().splitlines()[1:]:
        words = line.split()
        if int(words[2]) == vcpu:
            return words[words.index("/") - 1]
    raise AssertionError(f"no vCPU {vcpu}")


def test_a_node_is_bound_again_after_a_move_to_another_pool(pair: ElasticGuest, dom0: Run, other_pool: str) -> None:
    """Xen lets all vCPUs of a domain run anywhere that moves; the next command binds those of the node."""
    assert pair.attach(1).status == 0
    try:
        assert hard_affinity(pair, 2) == "2-3"
        checked(dom0, f"xl cpupool-migrate {pair.name} {other_pool}", 60.0)
        assert hard_affinity(pair, 2) == "all"
        assert pair.listed()[1]["state"] == "online"
        assert hard_affinity(pair, 2) == hard_affinity(pair, 3) == "2-3"
        checked(dom0, f"xl cpupool-migrate {pair.name} Pool-0", 60.0)
        done = pair.detach(1)
        assert done.status == 0, done.text
        assert hard_affinity(pair, 2) == "all"
    finally:
        checked(dom0, f"xl cpupool-migrate {pair.name} Pool-0", 60.0)


# Migration is tried to the host itself; remus without a partner, to /dev/null.
SAVED = (
    ("save", "xl save {guest} /tmp/refused.save"),
    ("migrate", "xl migrate -s '' {guest} 'xl migrate-receive'"),
    ("remus", "xl remus -F -b -n -d {guest} nobody"),
)


@pytest.mark.parametrize("command", [case[1] for case in SAVED], ids=[case[0] for case in SAVED])
def test_save_and_migrate_are_refused(pair: ElasticGuest, dom0: Run, command: str) -> None:
    """As xl-vnode(1) says, with its message; the guest runs on and its node comes and goes as before."""
    before = settled_free_pages(dom0)
    try:
        done = dom0(command.format(guest=pair.name), 120.0)
    finally:
        dom0("rm -f /tmp/refused.save")
    assert done.status != 0
    assert "Cannot save a guest with vNUMA configured" in done.text, done.text
    assert sorted(pair.nodes()) == [0]
    # xl waits 2 s for the receiver, and the receiver may take longer.
    wait_for("the receiver has gone", 60, lambda: "--incoming" not in checked(dom0, "xl list"))
    assert pages_off(dom0, before) == {}
    assert pair.attach(1).status == 0
    assert sorted(pair.nodes()) == [0, 1]


def test_the_toolstacks_phases_are_reported(pair: ElasticGuest) -> None:
    """In the line that says how it ended and in JSON; together they are no longer than the command took."""
    for operation in (pair.attach, pair.detach):
        done = operation(1)
        assert done.status == 0, done.text
        assert re.search(r"\(prepare \d+\.\d\d s, guest \d+\.\d\d s, settle \d+\.\d\d s\)$", done.out.rstrip()), (
            done.out
        )
        times = pair.listed()[1]["toolstack_us"]
        assert sorted(times) == sorted(PHASES)
        assert 0 < sum(times.values()) <= done.seconds * 1e6


def test_progress_begins_before_the_guest(pair: ElasticGuest, dom0: Run) -> None:
    """On a terminal the operator sees something as soon as the command runs."""
    done = dom0(f"script -qec 'xl vnode-attach {pair.name} 1' /dev/null </dev/null", 120.0)
    assert done.status == 0, done.text
    begin, grown, end = (done.out.find(text) for text in ("preparing", "vnode 1: growing", "vnode 1: online, 512 of"))
    assert 0 <= begin < grown < end, repr(done.out)


def test_dom0_has_more_weight_than_a_guest(pair: ElasticGuest, dom0: Run) -> None:
    """Guests that are all busy must not hold up the toolstack."""
    weights = {
        line.split()[0]: int(line.split()[2])
        for line in checked(dom0, "xl sched-credit2").splitlines()
        if len(line.split()) == 4 and line.split()[2].isdigit()
    }
    assert weights["Domain-0"] == 2 * weights[pair.name]
