# SPDX-License-Identifier: GPL-2.0
"""One guest in two slices, which are two domains of one host, and a vCPU in each: milestone (d) of issue 7.

`dsm-guest` is a small kernel that looks at what its two vCPUs have of each other; `dsm-slices -v` is the daemon of both
slices, without a network.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from benchmarks.results import Metric, write
from lab.command import Run, checked
from lab.host import Host
from lab.hypervisor import refused_calls
from lab.patience import wait_for
from tests.e2e.conftest import Stable
from tests.e2e.dsm_program import FOLDER, DsmProgram, below, frames_lost

pytestmark = pytest.mark.fresh

HOME_MIB, FAR_MIB = 64, 2
FRAMES = 256  # of a MiB
FAR = 0x40000  # the frame that dsm-guest knows as REMOTE
REPORT = 7  # and as REPORT
ROOM = 1024
ROUNDS = 4  # of coming and going: more than what may be missing afterwards

CONFIG = f"""
name = "dsm"
type = "pvh"
kernel = "{FOLDER}/dsm-guest"
memory = {HOME_MIB}
vcpus = 2
tsc_mode = "native"
on_poweroff = "preserve"
on_reboot = "preserve"
on_crash = "preserve"
"""

# struct report of dsm-guest.c
WORDS = (
    "magic",
    "stage",
    "line",
    "got",
    "want",
    "counted",
    "turns",
    "least_ticks",
    "both_new",
    "one_old",
    "pings",
    "pongs",
    "pong_ticks",
    "crowd",
    "nmis",
    "starts",
    "ticks",
    "events",
    "event_ticks",
    "late_ns",
)
END = 13
# Hypercalls and operations that its vCPU 1 makes, and nobody does in its slice: memory_op maximum_ram_page, vcpu_op is_up and
# set_singleshot_timer of vCPU 0, event_channel_op bind_vcpu.
REFUSED = {(12, 2), (24, 3), (24, 8), (32, 8)}


# Each second, one slice after the other: less than what a page takes to the other slice, so neither is seen to be ahead.
JUMP = 1000


@pytest.fixture(params=[0, JUMP], ids=["one clock", "clocks that jump"])
def daemon(stable: Stable, dom0: Run, request: pytest.FixtureRequest) -> Iterator[DsmProgram]:
    """Both slices, with the guest not yet running."""
    stable.leave_all()
    checked(dom0, f"printf %s {shlex.quote(CONFIG)} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 120.0)
    started = None
    try:
        domid = checked(dom0, "xl domid dsm").strip()
        started = DsmProgram.start(
            dom0,
            "dsm-slices",
            f"-v -j {request.param} -w {REPORT} -c {ROOM} {domid} {HOME_MIB * FRAMES} {FAR} {FAR_MIB * FRAMES}",
        )
        yield started
    finally:
        dom0("xl destroy dsm")
        if started is not None and not started.ended():
            dom0(f"kill -KILL {started.pid}")
            dom0("for d in $(xl list | awk '$1 == \"(null)\" {print $2}'); do xl destroy $d; done")


def states(dom0: Run) -> list[str]:
    """The state column of the two slices, by domain number."""
    lines = checked(dom0, "xl list").splitlines()[1:]
    return [line.split()[-2] for line in lines if line.split()[0] in ("dsm", "(null)")]


@pytest.mark.alone
def test_two_vcpus_in_two_slices(daemon: DsmProgram, dom0: Run, host: Host, request: pytest.FixtureRequest) -> None:
    """The guest starts its second vCPU by SIPI, both share memory, interrupt each other, and power off together.

    What the second one may not ask for in its slice Xen's log says, once each, and nothing else.
    With clocks that jump: times are one, timers come after their time, and nothing else is otherwise.
    """
    log = host.paths.console_log
    before = log.stat().st_size
    checked(dom0, "xl unpause dsm")
    wait_for("both slices have shut down", 300, lambda: all("s" in state for state in states(dom0)))
    ended = states(dom0)
    assert len(ended) == 2 and not any("c" in state for state in ended), ended
    found = daemon.end()
    told = dict(zip(WORDS, found["words"], strict=False))

    assert told["line"] == 0, f"dsm-guest.c:{told['line']}: {told}"
    assert told["stage"] == END, told
    assert told["counted"] == 400000, told
    assert told["turns"] == 200, told
    assert told["both_new"] + told["one_old"] == 100, told
    assert told["pings"] == told["pongs"] == 100, told
    assert told["crowd"] == 1 and told["nmis"] >= 1 and told["starts"] == 2, told
    # In slice 0: INIT and SIPI twice, pings, the NMI, the broadcast. In slice 1: pongs.
    assert found["events"][0] >= 100 + 2 * 2 + 2 and found["events"][1] >= 100, found
    # The first one was sent while its port was masked; and one more after the port was bound anew.
    assert told["events"] == 101 and 0 < told["late_ns"] < 10**10, told
    # vCPU 0: all about vCPU 1 or its ports, vcpu_info first; vCPU 1: ports of slice 0.
    assert found["calls"][0] >= 12 and found["calls"][1] >= 4, found["calls"]
    assert found["ports"][0] >= 101 and found["ports"][1] >= 101, found["ports"]
    assert bool(found["jumps"]) == ("jump" in request.node.name), found["jumps"]
    # Of slice 0; that of slice 1, which follows, may come when the daemon ends already.
    assert found["shutdowns"] >= 1, found
    refused = refused_calls(log.read_bytes()[before:].decode(errors="replace"))
    assert {each.vcpu for each in refused} == {1} and len({each.domain for each in refused}) == 1, refused
    assert sorted((each.hypercall, each.operation) for each in refused) == sorted(REFUSED), refused

    if found["jumps"]:
        return
    xen = found["xen"]
    write(
        "dsm-vcpus",
        [
            Metric("dsm.vcpus.ipi_round_trip", told["pong_ticks"] / 100, "ticks", "lower"),
            Metric("dsm.vcpus.event_round_trip", told["event_ticks"] / 100, "ticks", "lower"),
            Metric("dsm.vcpus.faults", xen["waits"], "faults"),
            Metric("dsm.vcpus.fault_p50_below", below(xen["wait_hist"], 0.5) / 1000, "us", "lower"),
            Metric("dsm.vcpus.least_message", told["least_ticks"], "ticks", "lower"),
        ],
    )


def test_no_frame_is_lost_with_a_vcpu_elsewhere(stable: Stable, dom0: Run) -> None:
    """Two slices that never ran, with a vCPU placed in the second one."""

    def come_and_go() -> None:
        checked(dom0, f"printf %s {shlex.quote(CONFIG)} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 120.0)
        try:
            frames = f"{HOME_MIB * FRAMES} {FAR} {FAR_MIB * FRAMES}"
            domid = int(checked(dom0, "xl domid dsm"))
            DsmProgram.start(dom0, "dsm-slices", f"-v -c {ROOM} {domid} {frames}").end()
        finally:
            checked(dom0, "xl destroy dsm")

    stable.leave_all()
    lost = frames_lost(dom0, come_and_go, ROUNDS)
    assert all(number < ROUNDS for number in lost.values()), lost
