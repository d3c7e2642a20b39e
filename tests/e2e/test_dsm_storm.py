# SPDX-License-Identifier: GPL-2.0
"""Pages that leave a guest and come back: the hypervisor's part of a guest on several hosts, with one slice and no protocol.

`test-dsm` tries each page operation and each refusal on a domain that does not run. `dsm-storm` takes pages away from a guest
that does: nothing may be lost, and the guest must not notice.
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
from lab.hypervisor import settled_free_pages
from lab.patience import wait_for
from tests.e2e.conftest import SOAK, Stable
from tests.e2e.dsm_program import FOLDER, DsmProgram, below, lasts

pytestmark = pytest.mark.fresh

MIB = 512
FRAMES = MIB * 256
SECONDS = 600 if SOAK else 60
TAKES_PER_S = 300
CHECKED_MIB = 48
LESS_MIB = 32
# New processes, pipes and the page cache: the same sum each time.
SUM = "cat /usr/bin/* | md5sum"
SUMS = f"while [ ! -e /tmp/stop ]; do {SUM}; done"

CONFIG = f"""
name = "dsm"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = {MIB}
vcpus = 2
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:31,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


def test_each_operation_and_each_refusal(stable: Stable, dom0: Run) -> None:
    """The hypervisor's own test. It looks at the host's free memory, which a guest of ours would move."""
    stable.leave_all()
    settled_free_pages(dom0)
    done = dom0(f"{FOLDER}/test-dsm", 240.0)
    lines = done.out.splitlines()
    plan = [line for line in lines if line.startswith("1..")]
    passed = [line for line in lines if line.startswith("ok ") and "# SKIP" not in line]
    assert done.status == 0 and plan and int(plan[0][3:]) == len(passed) > 0, done.text


@pytest.fixture
def stormy(stable: Stable, host: Host, dom0: Run) -> Iterator[tuple[Guest, DsmProgram]]:
    """A guest with DSM from its first instruction on, and the program that may take its pages."""
    stable.leave_all()
    checked(dom0, f"printf %s {shlex.quote(CONFIG)} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 120.0)
    guest = host.guest("dsm")
    try:
        domid = int(checked(dom0, "xl domid dsm"))
        storm = DsmProgram.start(dom0, "dsm-storm", f"-r {TAKES_PER_S} {domid} 0 {FRAMES}")
        checked(dom0, "xl unpause dsm")
        guest.wait_ready(180)
        yield guest, storm
    finally:
        guest.destroy()


def metrics(found: dict[str, Any]) -> list[Metric]:
    """The cost of a fault: what a vCPU waited, as Xen measured it, and what dom0 did meanwhile."""
    xen = found["xen"]
    waits = xen["waits"]
    mean = xen["wait_ns"] / waits / 1000
    return [
        Metric("dsm.storm.faults", waits, "faults"),
        Metric("dsm.storm.fault_mean", mean, "us", "lower", {"max_us": xen["wait_max_ns"] / 1000}),
        Metric("dsm.storm.fault_p50_below", below(xen["wait_hist"], 0.5) / 1000, "us", "lower"),
        Metric("dsm.storm.fault_p99_below", below(xen["wait_hist"], 0.99) / 1000, "us", "lower"),
        *(
            Metric(
                f"dsm.storm.{what}_p50",
                found[f"{what}_ns"]["p50"] / 1000,
                "us",
                "lower",
                {"p99_us": found[f"{what}_ns"]["p99"] / 1000, "number": found[f"{what}_ns"]["nr"]},
            )
            for what in ("inval", "downgrade", "install", "upgrade", "answer")
        ),
        Metric("dsm.storm.takes_per_s", found["takes"] / found["seconds"], "1/s"),
        Metric("dsm.storm.wrong", found["wrong"], "pages", "lower"),
    ]


def balloon(dom0: Run, mib: int) -> None:
    """Have the guest come to that size."""
    checked(dom0, f"xl mem-set dsm {mib}")
    size = "xl list dsm | awk 'NR == 2 {print $3}'"
    # Xen and the guest count some pages differently.
    wait_for(f"the guest has {mib} MiB", 120, lambda: abs(int(checked(dom0, size)) - mib) <= 2, interval=1)


@pytest.mark.alone
def test_a_guest_does_not_notice_that_pages_leave_it(stormy: tuple[Guest, DsmProgram], dom0: Run) -> None:
    """Pages are taken at random, most of them just used: no byte is wrong, and neither kernel says anything."""
    guest, storm = stormy
    inside = run_in(guest)
    checked(
        inside, f"({PROGRAMS}/memcheck {CHECKED_MIB} 2 >/tmp/memcheck.out 2>&1 & echo $! >/tmp/memcheck.pid) </dev/null"
    )
    wait_for("memcheck has written all pages", 120, lambda: "ready" in inside("cat /tmp/memcheck.out").out)
    true_sum = checked(inside, SUM).strip()

    # First beside memcheck alone: most faults. Then beside programs that begin and end: other paths of both kernels.
    storm.signal("USR1")
    lasts(dom0, SECONDS / 2)
    checked(inside, f"({SUMS}) >/tmp/sums 2>&1 </dev/null & echo $! >/tmp/sums.pid")
    lasts(dom0, SECONDS / 2)
    # What the guest gives back has to come home first, and what it gets then was never elsewhere.
    for mib in (MIB - LESS_MIB, MIB):
        balloon(dom0, mib)
    storm.signal("USR2")

    checked(inside, "touch /tmp/stop && kill $(cat /tmp/memcheck.pid)")
    running = "kill -0 $(cat /tmp/memcheck.pid) || kill -0 $(cat /tmp/sums.pid)"
    wait_for("both end", 120, lambda: inside(running).status != 0)
    verdict = json.loads(checked(inside, "cat /tmp/memcheck.out").splitlines()[-1])
    sums = checked(inside, "cat /tmp/sums").splitlines()
    found = storm.end()

    assert verdict["bad_pages"] == 0 and verdict["checks"] > 0, verdict
    assert set(sums) == {true_sum}, sums
    assert complaints(checked(inside, "dmesg")) == []
    # The storm has happened: pages left in both ways, came back in each, and the guest missed them.
    for what in ("invals", "downgrades", "installs_s", "installs_m", "upgrades", "compared"):
        assert found[what] > 0, found
    assert found["xen"]["waits"] > 100 and found["xen"]["recalls"] > 0, found
    assert found["xen"]["pooled"] == found["xen"]["reserved"] == 0, found
    # Every page that a hypercall of Linux used was found before it ran.
    assert found["xen"]["uncovered"] == 0, found
    write("dsm-storm", metrics(found))
