# SPDX-License-Identifier: GPL-2.0
"""Programs that follow the topology: a removal waits for those that promised to acknowledge, and for nobody else."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from lab.command import Done, checked
from lab.elastic_guest import PROGRAMS, ElasticGuest
from lab.patience import scaled, wait_for

pytestmark = pytest.mark.fresh

NODE_MIB = 512
LONG_MS = 600000  # the longest grace period there is: no test waits for it, however slow the machine
FULL_KIB = NODE_MIB * 1024

Background = Callable[[str, str], int]


class Follower:
    """topology_follower in the guest."""

    def __init__(self, guest: ElasticGuest, background: Background, mode: str) -> None:
        self.guest, self.output = guest, f"/tmp/follower-{mode}.out"
        self.pid = background(f"{PROGRAMS}/topology_follower {mode}", self.output)
        wait_for("the follower has the page", 30, lambda: bool(self.seen()))

    def text(self) -> str:
        """All that it has said."""
        return self.guest.guest(f"cat {self.output}").out

    def seen(self) -> list[tuple[int, str]]:
        """Versions and phases that it was told of, the one at its start first."""
        return [(int(version), phase) for version, phase in re.findall(r"version (\d+) phase (\w+)", self.text())]

    def await_draining(self) -> None:
        """Wait until it was told that a node is about to leave."""
        wait_for("the follower is told", 60, lambda: self.seen()[-1][1] == "draining")

    def signal(self, name: str) -> None:
        """Send it a signal."""
        checked(self.guest.guest, f"kill -{name} {self.pid}")


class Detach:
    """`xl vnode-detach` in the background of dom0."""

    def __init__(self, guest: ElasticGuest, grace_ms: int) -> None:
        self.guest = guest
        command = guest.command("vnode-detach", "1", f"--grace={grace_ms}")
        script = f"{command} >/tmp/xl.out 2>&1 & echo $! >/tmp/xl.pid; wait $!; echo $? >/tmp/xl.status"
        checked(guest.dom0, f"rm -f /tmp/xl.*; setsid sh -c '{script}' >/dev/null 2>&1 </dev/null &")
        wait_for("xl runs", 30, lambda: guest.dom0("test -s /tmp/xl.pid").status == 0)
        self.pid = int(checked(guest.dom0, "cat /tmp/xl.pid"))

    def signal(self, name: str) -> None:
        """Send xl a signal."""
        checked(self.guest.dom0, f"kill -{name} {self.pid}")

    def result(self, seconds: float = 60.0) -> Done:
        """Wait for its end."""
        took = wait_for("xl ends", seconds, lambda: self.guest.dom0("test -s /tmp/xl.status").status == 0)
        status = int(checked(self.guest.dom0, "cat /tmp/xl.status"))
        return Done(status, checked(self.guest.dom0, "cat /tmp/xl.out"), "", took)


def assert_untouched(guest: ElasticGuest) -> None:
    """Nothing of the node has left."""
    vnode = guest.vnode(1)
    assert (vnode.state, vnode.current_kib) == ("draining", FULL_KIB)
    assert guest.online_cpus() == (0, 1, 2, 3)


def test_a_removal_waits_and_an_acknowledgement_ends_the_wait(pair: ElasticGuest, background: Background) -> None:
    """CPUs and memory stay until the program has followed, and then leave long before the grace period is over."""
    assert pair.attach(1).status == 0
    follower = Follower(pair, background, "register")
    detach = Detach(pair, LONG_MS)
    follower.await_draining()
    assert_untouched(pair)
    follower.signal("USR1")
    wait_for("it has acknowledged", 30, lambda: "acknowledged" in follower.text())
    done = detach.result()
    assert done.status == 0, done.text
    vnode = pair.vnode(1)
    assert vnode.state == "offline"
    assert 0 < vnode.phases["acks"] < LONG_MS / 1000
    assert f"not acknowledge within {LONG_MS} ms" not in checked(pair.guest, "dmesg")


def test_the_grace_period_ends_the_wait(pair: ElasticGuest, background: Background) -> None:
    """A program that does not acknowledge costs the period and no more."""
    assert pair.attach(1).status == 0
    follower = Follower(pair, background, "register")
    done = pair.detach(1, "--grace=1500")
    assert done.status == 0, done.text
    assert 1.5 <= pair.vnode(1).phases["acks"] < scaled(15)
    assert "1 programs did not acknowledge within 1500 ms" in checked(pair.guest, "dmesg")
    assert follower.seen()[-1][1] == "draining"


def test_the_end_of_a_program_ends_its_promise(pair: ElasticGuest, background: Background) -> None:
    """However it ends."""
    assert pair.attach(1).status == 0
    follower = Follower(pair, background, "register")
    detach = Detach(pair, LONG_MS)
    follower.await_draining()
    assert_untouched(pair)
    follower.signal("KILL")
    done = detach.result()
    assert done.status == 0, done.text
    assert pair.vnode(1).phases["acks"] < LONG_MS / 1000


@pytest.mark.parametrize("how", ["watch", "epoll"])
def test_who_only_watches_is_told_once_and_not_waited_for(pair: ElasticGuest, background: Background, how: str) -> None:
    """poll() raised POLLPRI for ever for a program that cannot acknowledge."""
    watcher = Follower(pair, background, how)
    assert pair.attach(1).status == 0
    done = pair.detach(1, f"--grace={LONG_MS}")
    assert done.status == 0, done.text
    assert pair.vnode(1).phases["acks"] < LONG_MS / 1000
    watcher.signal("TERM")
    wait_for("the watcher ends", 30, lambda: "told" in watcher.text())
    versions = [version for version, _ in watcher.seen()]
    assert len(versions) >= 3, "it was not told of the attach and of the detach"
    assert versions == sorted(set(versions)), f"told twice of the same: {versions[:20]}"


def test_who_follows_while_it_runs_is_waited_for_while_it_runs(pair: ElasticGuest, background: Background) -> None:
    """A runtime follows when it starts work: while its threads sleep there is nothing to wait for."""
    assert pair.attach(1).status == 0
    follower = Follower(pair, background, "running")
    done = pair.detach(1, f"--grace={LONG_MS}")
    assert done.status == 0, done.text
    assert pair.vnode(1).phases["acks"] < LONG_MS / 1000

    assert pair.attach(1).status == 0
    follower.signal("USR2")
    wait_for("it runs", 30, lambda: "runs" in follower.text())
    detach = Detach(pair, LONG_MS)
    follower.await_draining()
    assert_untouched(pair)
    follower.signal("USR2")
    wait_for("it sleeps", 30, lambda: "sleeps" in follower.text())
    done = detach.result()
    assert done.status == 0, done.text
    assert pair.vnode(1).phases["acks"] < LONG_MS / 1000


def test_silence_ends_the_promise_of_who_runs(pair: ElasticGuest, background: Background) -> None:
    """It was waited for in vain once; a removal does not wait for it a second time."""
    assert pair.attach(1).status == 0
    follower = Follower(pair, background, "running")
    follower.signal("USR2")
    wait_for("it runs", 30, lambda: "runs" in follower.text())
    done = pair.detach(1, "--grace=1700")  # another number than above: the kernel's log has that test's words, too
    assert done.status == 0, done.text
    assert 1.7 <= pair.vnode(1).phases["acks"] < scaled(15)
    assert "1 programs did not acknowledge within 1700 ms" in checked(pair.guest, "dmesg")
    assert pair.attach(1).status == 0
    done = pair.detach(1, f"--grace={LONG_MS}")
    assert done.status == 0, done.text
    assert pair.vnode(1).phases["acks"] < LONG_MS / 1000
