# SPDX-License-Identifier: GPL-2.0
"""One guest in two slices, which are two domains of one host: its elastic node is the other slice's memory.

`dsm-slices` is the daemon of both, without a network. The guest attaches the node as any other, and its programs use it while
a stub in the other slice reads and writes the same pages.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from benchmarks.results import Metric, write
from lab.command import Run, checked, run_in
from lab.complaints import complaints
from lab.elastic_guest import PROGRAMS
from lab.guest import Guest
from lab.host import Host
from lab.patience import wait_for
from tests.e2e.conftest import SOAK, Stable
from tests.e2e.dsm_program import DsmProgram, below, frames_lost, lasts

pytestmark = pytest.mark.fresh

HOME_MIB, NODE_MIB = 512, 128
FRAMES = 256  # of a MiB
# More than the guest checks on the node fits in: pages are evicted, too.
ROOM = 12 * FRAMES
CHECKED_MIB = 16
SECONDS = 600 if SOAK else 40
ACCESSES_PER_S = 200
ROUNDS = 4  # of coming and going: more than what may be missing afterwards

CONFIG = f"""
name = "dsm"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = {HOME_MIB}
vnuma = [
    [ "pnode=0", "size={HOME_MIB}", "vcpus=0-1", "vdistances=10,21" ],
    [ "pnode=1", "size={NODE_MIB}", "vcpus=2", "vdistances=21,10", "elastic=1" ],
]
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:31,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


@pytest.fixture
def spanning(stable: Stable, host: Host, dom0: Run) -> Iterator[tuple[Guest, DsmProgram]]:
    """A guest whose node 1, which is absent, is homed on another slice; and the daemon of both slices."""
    stable.leave_all()
    checked(dom0, f"printf %s {shlex.quote(CONFIG)} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 120.0)
    guest = host.guest("dsm")
    daemon = None
    try:
        start = int(guest.vnode(1).keys["node/1/start"], 16) // 4096
        frames = f"{HOME_MIB * FRAMES} {start} {NODE_MIB * FRAMES}"
        daemon = DsmProgram.start(
            dom0, "dsm-slices", f"-r {ACCESSES_PER_S} -c {ROOM} {checked(dom0, 'xl domid dsm').strip()} {frames}"
        )
        checked(dom0, "xl unpause dsm")
        guest.wait_ready(180)
        yield guest, daemon
    finally:
        guest.destroy()
        if daemon is not None and not daemon.ended():
            # Nobody waits for it any more. Its slice, which has no name, goes with it.
            dom0(f"kill -KILL {daemon.pid}")
            dom0("for d in $(xl list | awk '$1 == \"(null)\" {print $2}'); do xl destroy $d; done")


def metrics(found: dict[str, Any]) -> list[Metric]:
    """What a vCPU waited for a page, of the other slice mostly, as Xen measured it."""
    xen = found["xen"]
    return [
        Metric("dsm.slices.faults", xen["waits"], "faults"),
        Metric("dsm.slices.fault_p50_below", below(xen["wait_hist"], 0.5) / 1000, "us", "lower"),
        Metric("dsm.slices.fault_p99_below", below(xen["wait_hist"], 0.99) / 1000, "us", "lower"),
        Metric(
            "dsm.slices.serve_p50",
            found["serve_ns"]["p50"] / 1000,
            "us",
            "lower",
            {"p99_us": found["serve_ns"]["p99"] / 1000, "number": found["serve_ns"]["nr"]},
        ),
        *(
            Metric(f"dsm.slices.{what}", found[what], "pages")
            for what in ("moves", "copies", "upgrades", "evictions", "stub_reads", "stub_writes")
        ),
    ]


@pytest.mark.alone
def test_a_node_whose_memory_another_slice_has(spanning: tuple[Guest, DsmProgram], dom0: Run) -> None:
    """It is attached, used by a program while the other slice uses it, too, and detached: no byte is wrong."""
    guest, daemon = spanning
    inside = run_in(guest)
    attached = guest.attach(1, timeout=300.0)
    assert attached.status == 0, attached.text
    # The memory is not this slice's: what it has more are the frames for pages of the other.
    listed = checked(dom0, "xl list dsm").splitlines()[-1].split()
    assert int(listed[2]) <= HOME_MIB + ROOM // FRAMES + 8, listed

    checked(
        inside,
        f"(numactl --membind=1 {PROGRAMS}/memcheck {CHECKED_MIB} 3 >/tmp/memcheck.out 2>&1 &"
        " echo $! >/tmp/memcheck.pid) </dev/null",
    )
    wait_for("memcheck has written all pages", 120, lambda: "ready" in inside("cat /tmp/memcheck.out").out)
    daemon.signal("USR1")
    lasts(dom0, SECONDS)
    daemon.signal("USR2")

    checked(inside, "kill $(cat /tmp/memcheck.pid)")
    wait_for("memcheck ends", 120, lambda: inside("kill -0 $(cat /tmp/memcheck.pid)").status != 0)
    verdict = json.loads(checked(inside, "cat /tmp/memcheck.out").splitlines()[-1])
    assert verdict["bad_pages"] == 0 and verdict["checks"] > 0, verdict
    assert complaints(checked(inside, "dmesg")) == []

    # The guest leaves the node; the host's side is in order when the frames for the other slice are gone, too.
    guest.detach(1, timeout=300.0)
    assert guest.vnode(1).state == "offline", guest.vnode(1).keys
    found = daemon.end()
    detached = guest.detach(1)
    assert "absent already" in detached.text, detached.text

    for what in ("moves", "copies", "upgrades", "evictions", "compared", "stub_reads", "stub_writes"):
        assert found[what] > 0, found
    assert found["stub_unstable"] == 0, found
    write("dsm-slices", metrics(found))


def come_and_go(dom0: Run) -> None:
    """Two slices whose guest never runs."""
    checked(dom0, f"printf %s {shlex.quote(CONFIG)} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 120.0)
    try:
        domid = int(checked(dom0, "xl domid dsm"))
        frames = f"{HOME_MIB * FRAMES} {1 << 20} {NODE_MIB * FRAMES}"
        DsmProgram.start(dom0, "dsm-slices", f"-c {ROOM} {domid} {frames}").end()
    finally:
        checked(dom0, "xl destroy dsm")


def test_no_frame_is_lost_when_both_slices_are_gone(stable: Stable, dom0: Run) -> None:
    """The host's memory afterwards is what it was before; but for what Xen allocates once, for the first that come."""
    stable.leave_all()
    lost = frames_lost(dom0, lambda: come_and_go(dom0), ROUNDS)
    assert all(number < ROUNDS for number in lost.values()), lost
