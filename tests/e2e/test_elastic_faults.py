# SPDX-License-Identifier: GPL-2.0
"""Something goes wrong half-way: nothing hangs, nothing is lost, and `xl vnode-list` tells the truth afterwards."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from benchmarks.elastic_guest import (
    PROGRAMS,
    Done,
    ElasticGuest,
    Run,
    checked,
    pages_off,
    settled_free_pages,
    wait_for,
)
from benchmarks.in_lab import elastic
from lab.host import Host
from tests.e2e.conftest import CONFIGS, Stable

# The driver's initcalls: a kernel that skips them is a kernel without the driver.
NO_DRIVER = "initcall_blacklist=elastic_init"


def start_operation(guest: ElasticGuest, operation: str) -> int:
    """Begin an operation in the background of dom0; returns xl's pid there."""
    command = guest.command(operation, "1")
    return int(checked(guest.dom0, f"setsid {command} >/tmp/xl.out 2>&1 </dev/null & echo $!"))


def await_announced(guest: ElasticGuest, domid: int, old: str) -> None:
    """Wait until the toolstack has told the guest: from then on the operation is half-way."""
    path = f"/local/domain/{domid}/vnuma/generation"
    wait_for("the operation is announced", 30, lambda: guest.dom0(f"xenstore-read {path}").out != old, 0.05)


def generation(guest: ElasticGuest, domid: int) -> str:
    """The toolstack's count of operations."""
    return guest.dom0(f"xenstore-read /local/domain/{domid}/vnuma/generation").out


def test_guest_without_the_driver(stable: Stable, host: Host, dom0: Run) -> None:
    """The attach times out and is taken back; nothing of it remains."""
    stable.leave("guest4.cfg")
    stable.leave("guest2.cfg")
    text = (CONFIGS / "guest2.cfg").read_text(encoding="utf-8")
    extra = re.findall(r'^extra\s*=\s*"([^"]*)"', text, re.MULTILINE)
    guest = host.start_guest(
        CONFIGS / "guest2.cfg", {"extra": f'"{" ".join([*extra[-1:], NO_DRIVER])}"', "name": '"driverless"'}
    )
    try:
        found = elastic(guest)
        before = settled_free_pages(dom0)
        done = found.attach(1, "--timeout=5")
        assert done.status != 0
        assert re.search(r"no driver in the guest answered", done.text), done.text
        assert done.seconds < 30
        assert found.vnode(1).target_kib == 0
        assert pages_off(dom0, before) == {}
        assert sorted(found.nodes()) == [0]
        assert found.listed()[1]["fault"] is None
    finally:
        guest.destroy()


def driver_of_another(dom0: Run, name: str, domid: int) -> bool:
    """Whether a domain of that name runs that is not `domid`, and its driver is there."""
    done = dom0(f"xl domid {name}")
    if done.status != 0 or int(done.out) == domid:
        return False
    return dom0(f"xenstore-read /local/domain/{int(done.out)}/vnuma/guest/version").status == 0


ENDS = ("crash", "reboot", "destroy")


@pytest.mark.parametrize("operation", ["vnode-attach", "vnode-detach"])
@pytest.mark.parametrize("end", ENDS)
def test_guest_ends_half_way(stable: Stable, dom0: Run, end: str, operation: str) -> None:
    """It crashes, reboots or is destroyed while an operation runs: xl ends with an error, all memory comes back."""
    stable.leave("guest2.cfg")
    before = settled_free_pages(dom0)
    guest = stable.get("guest2.cfg")
    handle = stable.handle("guest2.cfg")
    if operation == "vnode-detach":
        assert guest.attach(1).status == 0
    domid = guest.domid()
    old = generation(guest, domid)
    pid = start_operation(guest, operation)
    await_announced(guest, domid, old)
    actions: dict[str, Callable[[], object]] = {
        "crash": lambda: guest.guest(
            "echo 1 >/proc/sys/kernel/sysrq; (sleep 0.1; echo c >/proc/sysrq-trigger) &", 20.0
        ),
        "reboot": lambda: guest.guest(
            "echo 1 >/proc/sys/kernel/sysrq; (sleep 0.1; echo b >/proc/sysrq-trigger) &", 20.0
        ),
        "destroy": lambda: dom0(f"xl destroy {guest.name}", 60.0),
    }
    actions[end]()
    wait_for("xl ends", 90, lambda: dom0(f"kill -0 {pid} 2>/dev/null").status != 0)
    dom0(f"xl vnode-list {guest.name}")
    handle.disconnect()
    if end == "reboot":
        # Its next life, with the elastic node absent: what was under way does not outlive the domain.
        wait_for("the guest is back with its driver", 180, lambda: driver_of_another(dom0, guest.name, domid), 1.0)
        assert [vnode["state"] for _, vnode in sorted(guest.listed().items())] == ["home", "offline"]
        checked(dom0, f"xl destroy {guest.name}", 60.0)
    stable.leave("guest2.cfg", ask=False)
    assert dom0(f"xenstore-ls /libxl/{domid}").status != 0, "keys of the dead domain remain"
    assert pages_off(dom0, before, 30.0) == {}


def finish(guest: ElasticGuest) -> Done:
    """The same operation once more."""
    return guest.attach(1)


def undo(guest: ElasticGuest) -> Done:
    """The opposite."""
    return guest.detach(1)


@pytest.mark.parametrize(("then", "nodes"), [(finish, [0, 1]), (undo, [0])], ids=["finished", "undone"])
def test_xl_killed_half_way(
    pair: ElasticGuest, dom0: Run, then: Callable[[ElasticGuest], Done], nodes: list[int]
) -> None:
    """The next `xl vnode-list` tells what is; the operation can be finished, or undone."""
    before = settled_free_pages(dom0)
    domid = pair.domid()
    old = generation(pair, domid)
    pid = start_operation(pair, "vnode-attach")
    await_announced(pair, domid, old)
    checked(dom0, f"kill -KILL {pid}")
    listed = pair.listed()[1]
    assert listed["state"] in ("growing", "online", "attaching"), listed
    assert listed["target_kib"] > 0
    wait_for("the guest has done its part", 60, lambda: pair.vnode(1).state in ("online", "offline"))
    done = then(pair)
    assert done.status == 0 or "attached already" in done.text, done.text
    assert sorted(pair.nodes()) == nodes
    if 1 in nodes:
        assert pair.listed()[1]["state"] == "online"
        assert pair.detach(1).status == 0
    assert pages_off(dom0, before) == {}


# What a guest may write under vnuma/guest/, against the protocol: key, value.
GARBAGE = (
    ("a state that is none", "node/1/state", "purple"),
    ("memory that is no number", "node/1/current-kb", "many"),
    ("memory below zero", "node/1/current-kb", "-4"),
    ("more memory than Xen counts", "node/1/current-kb", "524288"),
    ("a number beyond 64 bits", "node/1/residual-kb", "9" * 30),
    ("a reason without end", "node/1/reason", "x" * 1500),
    ("control characters", "node/1/error", "\\\\x1b[2J"),
    ("phases that are none", "node/1/phases", "a=b,,=1"),
    ("a generation from the future", "ack-generation", "4294967296"),
    ("a version that is none", "version", "two"),
)


@pytest.mark.parametrize(("key", "value"), [case[1:] for case in GARBAGE], ids=[case[0] for case in GARBAGE])
def test_garbage_from_the_guest_is_shown_and_not_believed(pair: ElasticGuest, dom0: Run, key: str, value: str) -> None:
    """The toolstack survives, says `faulty` where a vnode's report cannot be, and works again with a sane guest."""
    old = pair.guest(f"xenstore-read vnuma/guest/{key}")
    checked(pair.guest, f"xenstore-write -- vnuma/guest/{key} '{value}'")
    before = settled_free_pages(dom0)
    try:
        listing = dom0(f"xl vnode-list {pair.name}")
        assert listing.status in range(0, 126), f"xl died: {listing}"
        if key.startswith("node/"):
            assert pair.listed()[1]["state"] == "faulty"
            assert pair.listed()[1]["fault"]
        assert "\x1b" not in listing.text
        assert pages_off(dom0, before) == {}
    finally:
        if old.status == 0:
            checked(pair.guest, f"xenstore-write -- vnuma/guest/{key} '{old.out.rstrip()}'")
        else:
            checked(pair.guest, f"xenstore-rm vnuma/guest/{key}")
    assert pair.listed()[1]["fault"] is None
    done = pair.attach(1)
    assert done.status == 0, done.text
    assert pair.detach(1).status == 0


def test_a_guest_that_writes_without_end(pair: ElasticGuest, background: Callable[[str, str], int]) -> None:
    """Each write wakes the toolstack, which waits below that key; operations end as usual all the same."""
    flood = "sh -c 'while :; do xenstore-write vnuma/guest/flood $((n = n + 1)) || exit; done'"
    pid = background(flood, "/tmp/flood.out")
    for operation in (pair.attach, pair.detach):
        done = operation(1)
        assert done.status == 0, done.text
    assert pair.guest(f"kill -TERM {pid}").status == 0, pair.guest("cat /tmp/flood.out").text
    assert int(checked(pair.guest, "xenstore-read vnuma/guest/flood")) > 10
    checked(pair.guest, "xenstore-rm vnuma/guest/flood")
    assert pair.listed()[1]["state"] == "offline"


def test_a_program_that_pins_memory(pair: ElasticGuest, dom0: Run, background: Callable[[str, str], int]) -> None:
    """Reported as residual with its reason, without a hang; when the program ends, a second detach takes the rest."""
    before = settled_free_pages(dom0)
    assert pair.attach(1).status == 0
    pid = background(f"{PROGRAMS}/pinner 1 24", "/tmp/pinner.out")
    wait_for("the pages are pinned", 30, lambda: "pinned" in pair.guest("cat /tmp/pinner.out").out)
    done = pair.detach(1, timeout=180.0)
    assert done.status != 0 and done.seconds < 120
    assert re.search(r"\d+ KiB could not leave: .*pinned", done.text), done.text
    vnode = pair.vnode(1)
    assert vnode.state == "residual"
    assert 0 < vnode.residual_kib <= 256 * 1024
    assert "pinner" in vnode.reason or str(pid) in vnode.reason, vnode.reason
    assert pair.listed()[1]["state"] == "residual"
    checked(pair.guest, f"kill -TERM {pid}")
    wait_for("pinner ends", 30, lambda: "released, 0 wrong" in pair.guest("cat /tmp/pinner.out").out)
    done = pair.detach(1)
    assert done.status == 0, done.text
    assert sorted(pair.nodes()) == [0]
    assert pages_off(dom0, before) == {}
