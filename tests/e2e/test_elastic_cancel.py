# SPDX-License-Identifier: GPL-2.0
"""An operation is called off half-way, by the operator or by a guest in need: all is as it was, for bystanders, too.

What holds an operation is an event and no clock: a program that has promised to acknowledge holds a drain before anything
has left, and a paused guest holds a growth.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lab.command import Run, checked
from lab.elastic_guest import PROGRAMS, ElasticGuest
from lab.hypervisor import pages_off, settled_free_pages
from lab.patience import wait_for
from tests.e2e.test_elastic_ack import FULL_KIB, LONG_MS, Background, Detach, Follower
from tests.e2e.test_elastic_faults import (
    UNSETTLED,
    await_announced,
    ended,
    generation,
    start_operation,
    when_written,
)

pytestmark = pytest.mark.fresh


def policy(guest: ElasticGuest, pid: int) -> set[str]:
    """The policies that a process's memory is under."""
    return set(re.findall(r"^\S+ (\S+)", checked(guest.guest, f"cat /proc/{pid}/numa_maps"), re.MULTILINE))


def assert_all_there(guest: ElasticGuest) -> None:
    """The node is as attached."""
    vnode = guest.vnode(1)
    assert (vnode.state, vnode.current_kib, vnode.target_kib) == ("online", FULL_KIB, FULL_KIB)
    assert guest.online_cpus() == (0, 1, 2, 3)


@pytest.mark.parametrize("option", ["--interleave=0,1", "--membind=0,1", "--preferred=1"])
def test_a_drain_that_is_called_off_leaves_policies_alone(
    pair: ElasticGuest, background: Background, option: str
) -> None:
    """A plain policy that was shrunk to the nodes that stay did not grow again: interleave:0-1 was interleave:0."""
    assert pair.attach(1).status == 0
    bystander = background(f"numactl {option} sleep 600", "/tmp/bystander.out")
    wait_for("numactl has set it", 30, lambda: "default" not in policy(pair, bystander))
    before = policy(pair, bystander)
    follower = Follower(pair, background, "register")
    detach = Detach(pair, LONG_MS)
    follower.await_draining()
    detach.signal("TERM")
    assert detach.result().status == UNSETTLED
    wait_for("the guest has undone it", 60, lambda: pair.listed()[1]["operation"] is None)
    assert_all_there(pair)
    assert policy(pair, bystander) == before
    # The allocator is not kept off the node any more.
    pinner = background(f"{PROGRAMS}/pinner 1 8", "/tmp/pinner.out")
    wait_for("the pages are pinned", 30, lambda: "pinned" in pair.guest("cat /tmp/pinner.out").out)
    checked(pair.guest, f"kill -TERM {pinner}")
    wait_for("pinner ends", 30, lambda: "released, 0 wrong" in pair.guest("cat /tmp/pinner.out").out)
    assert pair.detach(1, "--grace=0").status == 0


def test_a_guest_that_needs_the_memory_calls_the_drain_off(pair: ElasticGuest, background: Background) -> None:
    """It grew beyond the nodes that stay, and the OOM killer ended it beside a node full of free memory."""
    assert pair.attach(1).status == 0
    nodes = pair.nodes()
    checked(pair.guest, "dmesg -c >/dev/null")
    follower = Follower(pair, background, "register")
    detach = Detach(pair, LONG_MS)
    follower.await_draining()
    mib = nodes[0].free_mib + nodes[1].free_mib // 2
    eater = background(f"{PROGRAMS}/memcheck {mib} 2", "/tmp/eater.out")
    done = detach.result(120)
    wait_for("all memory was written", 120, lambda: "ready" in pair.guest("cat /tmp/eater.out").out)
    assert done.status not in (0, 5), done.text
    assert "ran out of memory" in done.text, done.text
    assert_all_there(pair)
    assert "Killed process" not in checked(pair.guest, "dmesg")
    checked(pair.guest, f"kill -TERM {eater}")
    wait_for("memcheck ends", 90, lambda: "bad_pages" in pair.guest("cat /tmp/eater.out").out)
    assert '"bad_pages":0' in pair.guest("cat /tmp/eater.out").out
    follower.signal("KILL")
    assert pair.detach(1).status == 0


def test_who_is_bound_to_the_node_is_not_killed(pair: ElasticGuest, background: Background) -> None:
    """Nothing is free on its node while the last block is isolated: the OOM killer ended it beside a free node."""
    assert pair.attach(1).status == 0
    checked(pair.guest, "dmesg -c >/dev/null")
    bound = background(f"numactl --membind=1 {PROGRAMS}/memcheck 64 2", "/tmp/bound.out")
    wait_for("all memory was written", 60, lambda: "ready" in pair.guest("cat /tmp/bound.out").out)
    assert pair.detach(1).status == 0
    assert "Killed process" not in checked(pair.guest, "dmesg")
    checked(pair.guest, f"kill -TERM {bound}")
    wait_for("memcheck ends", 60, lambda: "bad_pages" in pair.guest("cat /tmp/bound.out").out)
    assert '"bad_pages":0' in pair.guest("cat /tmp/bound.out").out


def test_a_drain_is_called_off_after_blocks_have_left(pair: ElasticGuest, background: Background) -> None:
    """The lowest block holds it up; the others have left, and come back."""
    assert pair.attach(1, "size=128M").status == 0
    checked(pair.guest, "mkdir -p /tmp/stall")
    stalled = background(f"{PROGRAMS}/fuse_stall 1 /tmp/stall", "/tmp/stall.out")
    wait_for("the read stalls", 30, lambda: "stalled" in pair.guest("cat /tmp/stall.out").out)
    assert pair.resize(1, f"{FULL_KIB // 1024}M").status == 0
    detach = Detach(pair, 0)
    wait_for("blocks have left", 60, lambda: pair.vnode(1).current_kib < FULL_KIB // 2, 0.1)
    assert pair.vnode(1).state == "draining"
    detach.signal("TERM")
    assert detach.result().status == UNSETTLED
    wait_for("the guest has undone it", 60, lambda: pair.listed()[1]["operation"] is None)
    assert_all_there(pair)
    checked(pair.guest, f"kill -USR1 {stalled}")
    wait_for("the read ends", 30, lambda: "read 4096 bytes, 0 wrong" in pair.guest("cat /tmp/stall.out").out)
    assert pair.detach(1).status == 0
    assert sorted(pair.nodes()) == [0]


def test_huge_pages_that_are_promised_are_there(pair: ElasticGuest, background: Background) -> None:
    """Their owner got SIGBUS while the node was drained; untouched they were a residue without a reason."""
    assert pair.attach(1).status == 0
    owner = background(f"{PROGRAMS}/huge_owner 1 8", "/tmp/owner.out")
    wait_for("the pool is there", 30, lambda: "promised 8" in pair.guest("cat /tmp/owner.out").out)
    done = pair.detach(1)
    assert done.status == 5, done.text
    assert re.search(r"reserved huge: [1-9]\d* pages", done.text), done.text
    checked(pair.guest, f"kill -USR1 {owner}")
    wait_for("they are touched", 30, lambda: "touched 8 huge pages, 0 wrong" in pair.guest("cat /tmp/owner.out").out)
    checked(pair.guest, f"kill -TERM {owner}")
    wait_for("the owner ends", 30, lambda: pair.guest(f"kill -0 {owner}").status != 0)
    assert pair.detach(1).status == 0


CAP_PERCENT = 8  # of one CPU: a growth that takes a second otherwise takes ten, and dom0 is in time for it


@pytest.fixture
def slow(pair: ElasticGuest, dom0: Run) -> Iterator[ElasticGuest]:
    """The two-node guest, which gets little time while the test runs."""
    try:
        checked(dom0, f"xl sched-credit2 -d {pair.name} -c {CAP_PERCENT}")
        yield pair
    finally:
        dom0(f"xl unpause {pair.name}")
        checked(dom0, f"xl sched-credit2 -d {pair.name} -c 0")


def test_a_growth_that_is_called_off_leaves_nothing(slow: ElasticGuest, dom0: Run) -> None:
    """The guest is paused while it grows, and finds another target when it goes on."""
    before = settled_free_pages(dom0)
    state = f"/local/domain/{slow.domid()}/vnuma/guest/node/1/state"
    when_written(dom0, state, f"xl pause {slow.name}")
    start_operation(slow, "vnode-attach")
    wait_for("the guest is paused", 60, lambda: "--p---" in checked(dom0, f"xl list {slow.name}"))
    old = generation(slow, slow.domid())
    checked(dom0, "kill -TERM $(cat /tmp/xl.pid)")
    await_announced(slow, slow.domid(), old)
    checked(dom0, f"xl unpause {slow.name}; xl sched-credit2 -d {slow.name} -c 0")
    assert ended(dom0) == UNSETTLED
    wait_for("the guest has undone it", 90, lambda: slow.listed()[1]["operation"] is None)
    assert "now offline, 0 KiB (-125)" in checked(slow.guest, "dmesg | grep 'elastic-numa.*now' | tail -n 1")
    assert slow.vnode(1).state == "offline"
    assert sorted(slow.nodes()) == [0]
    assert pages_off(dom0, before) == {}
    assert slow.attach(1).status == 0
    assert slow.detach(1).status == 0


def test_a_page_that_nobody_unlocks(pair: ElasticGuest, background: Background) -> None:
    """A FUSE server that does not answer stopped the driver for ever; now its page is a residue, within bounded time."""
    assert pair.attach(1).status == 0
    checked(pair.guest, "mkdir -p /tmp/stall")
    pid = background(f"{PROGRAMS}/fuse_stall 1 /tmp/stall", "/tmp/stall.out")
    wait_for("the read stalls", 30, lambda: "stalled" in pair.guest("cat /tmp/stall.out").out)
    done = pair.detach(1)
    assert done.status == 5, done.text
    assert re.search(r"locked: [1-9]\d* pages", done.text), done.text
    vnode = pair.vnode(1)
    assert vnode.state == "residual" and 0 < vnode.residual_kib < FULL_KIB
    checked(pair.guest, f"kill -USR1 {pid}")
    wait_for("the read ends", 30, lambda: "read 4096 bytes, 0 wrong" in pair.guest("cat /tmp/stall.out").out)
    assert pair.detach(1).status == 0
    assert sorted(pair.nodes()) == [0]


def test_a_suspend_that_would_lose_the_node_is_refused(pair: ElasticGuest, dom0: Run) -> None:
    """Whoever writes control/shutdown, as a toolstack does that knows nothing of elastic nodes."""
    assert pair.attach(1).status == 0
    key = f"/local/domain/{pair.domid()}/control/shutdown"
    checked(dom0, f"xenstore-write {key} suspend")
    wait_for("the guest has answered", 60, lambda: "no suspend: vnode 1" in pair.guest("dmesg").out)
    assert pair.online_cpus() == (0, 1, 2, 3)
    assert pair.vnode(1).state == "online"
    assert pair.detach(1).status == 0


def test_a_pinner_whose_name_is_not_ascii(pair: ElasticGuest, background: Background) -> None:
    """Its name is part of the reason; bytes beyond ASCII made the report faulty, and undid a detach."""
    assert pair.attach(1).status == 0
    name = "gr\u00f6\u00dfe"
    checked(pair.guest, f"cp {PROGRAMS}/pinner /tmp/{name}")
    background(f"/tmp/{name} 1 8", "/tmp/pinner.out")
    wait_for("the pages are pinned", 30, lambda: "pinned" in pair.guest("cat /tmp/pinner.out").out)
    done = pair.detach(1)
    assert done.status == 5, done.text
    listed = pair.listed()[1]
    assert (listed["state"], listed["fault"]) == ("residual", None)
    assert re.search(r"pid \d+ \(gr\?\?\?\?e\)", listed["reason"]), listed["reason"]
