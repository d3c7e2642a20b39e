# SPDX-License-Identifier: GPL-2.0
"""An operation is called off half-way, by the operator or by a guest in need: all is as it was, for bystanders, too.

What holds an operation is an event and no clock: a program that has promised to acknowledge holds a drain before anything
has left, and a paused guest holds a growth.
"""

from __future__ import annotations

import re

import pytest

from benchmarks.elastic_guest import PROGRAMS, ElasticGuest, Run, checked, pages_off, settled_free_pages, wait_for
from tests.e2e.test_elastic_ack import FULL_KIB, LONG_MS, Background, Detach, Follower
from tests.e2e.test_elastic_faults import await_announced, generation, start_operation

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
    done = detach.result()
    assert done.status != 0
    assert_all_there(pair)
    assert policy(pair, bystander) == before
    # The allocator is not kept off the node any more.
    assert "0 wrong" in checked(pair.guest, f"sh -c '{PROGRAMS}/pinner 1 8 & sleep 1; kill $!; wait $!'")
    assert pair.detach(1, "--grace=0").status == 0


def test_a_guest_that_needs_the_memory_calls_the_drain_off(pair: ElasticGuest, background: Background) -> None:
    """It grew beyond the nodes that stay, and the OOM killer ended it beside a node full of free memory."""
    assert pair.attach(1).status == 0
    nodes = pair.nodes()
    follower = Follower(pair, background, "register")
    detach = Detach(pair, LONG_MS)
    follower.await_draining()
    mib = nodes[0].free_mib + nodes[1].free_mib // 2
    eater = background(f"{PROGRAMS}/memcheck {mib} 2", "/tmp/eater.out")
    done = detach.result()
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


def test_a_growth_that_is_called_off_leaves_nothing(pair: ElasticGuest, dom0: Run) -> None:
    """The guest is paused while it grows, and finds another target when it goes on."""
    before = settled_free_pages(dom0)
    domid = pair.domid()
    old = generation(pair, domid)
    pid = start_operation(pair, "vnode-attach")
    state = f"/local/domain/{domid}/vnuma/guest/node/1/state"
    await_announced(pair, domid, old)
    wait_for("the guest grows", 60, lambda: dom0(f"xenstore-read {state}").out.strip() == "growing", 0.02)
    checked(dom0, f"xl pause {pair.name}")
    assert pair.vnode(1).state == "growing", "the growth was over before the guest was paused: nothing was tested"
    old = generation(pair, domid)
    checked(dom0, f"kill -TERM {pid}")
    await_announced(pair, domid, old)
    checked(dom0, f"xl unpause {pair.name}")
    wait_for("xl ends", 90, lambda: dom0(f"kill -0 {pid} 2>/dev/null").status != 0)
    assert "now offline, 0 KiB (-125)" in checked(pair.guest, "dmesg | grep elastic-numa | tail -n 3")
    assert pair.vnode(1).state == "offline"
    assert sorted(pair.nodes()) == [0]
    assert pages_off(dom0, before) == {}
    assert pair.attach(1).status == 0
    assert pair.detach(1).status == 0


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
