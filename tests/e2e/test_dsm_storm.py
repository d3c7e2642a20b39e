# SPDX-License-Identifier: GPL-2.0
"""Pages that leave a guest and come back: the hypervisor's part of a guest on several hosts, with one slice and no protocol.

`test-dsm` tries each page operation and each refusal on a domain that does not run. `dsm-storm` takes pages away from a guest
that does: nothing may be lost, and the guest must not notice.
"""

from __future__ import annotations

import dataclasses
import json
import re
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

pytestmark = pytest.mark.fresh

TEST_PROGRAM = "/usr/lib/xen/bin/test-dsm"
STORM = "/usr/lib/xen/bin/dsm-storm"
LOG, FIGURES = "/tmp/dsm-storm.log", "/tmp/dsm-storm.json"
MIB = 512
FRAMES = MIB * 256
SECONDS = 600 if SOAK else 60
TAKES_PER_S = 300
CHECKED_MIB = 48
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
    done = dom0(TEST_PROGRAM, 240.0)
    lines = done.out.splitlines()
    plan = [line for line in lines if line.startswith("1..")]
    passed = [line for line in lines if line.startswith("ok ") and "# SKIP" not in line]
    assert done.status == 0 and plan and int(plan[0][3:]) == len(passed) > 0, done.text


@dataclasses.dataclass
class Storm:
    """dsm-storm in dom0, for one domain."""

    dom0: Run
    pid: int

    @classmethod
    def over(cls, dom0: Run, domid: int) -> Storm:
        """Switch DSM on for a domain that has not run yet. Returns when the domain may be unpaused."""
        arguments = f"-r {TAKES_PER_S} -o {FIGURES} {domid} 0 {FRAMES}"
        checked(
            dom0, f"rm -f {FIGURES}; nohup {STORM} {arguments} >{LOG} 2>&1 </dev/null & echo $! >/run/dsm-storm.pid"
        )
        wait_for("dsm-storm is ready", 30, lambda: "ready" in dom0(f"cat {LOG}").out)
        return cls(dom0, int(checked(dom0, "cat /run/dsm-storm.pid")))

    def signal(self, name: str) -> None:
        """USR1: take pages. USR2: take none, go on answering."""
        checked(self.dom0, f"kill -{name} {self.pid}")

    def log(self) -> str:
        """What it has said."""
        return self.dom0(f"cat {LOG}").out

    def end(self) -> dict[str, Any]:
        """Have it bring everything back; its figures. The program's own verdict is in its log's last line."""
        self.signal("TERM")
        wait_for("dsm-storm ends", 60, lambda: self.dom0(f"kill -0 {self.pid}").status != 0)
        assert re.search(r"^end after .*: 0 wrong, 0 errors$", self.log(), re.M), self.log()
        found: dict[str, Any] = json.loads(checked(self.dom0, f"cat {FIGURES}"))
        return found


@pytest.fixture
def stormy(stable: Stable, host: Host, dom0: Run) -> Iterator[tuple[Guest, Storm]]:
    """A guest with DSM from its first instruction on, and the program that may take its pages."""
    stable.leave_all()
    checked(dom0, f"printf %s {shlex.quote(CONFIG)} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 120.0)
    guest = host.guest("dsm")
    try:
        storm = Storm.over(dom0, int(checked(dom0, "xl domid dsm")))
        checked(dom0, "xl unpause dsm")
        guest.wait_ready(180)
        yield guest, storm
    finally:
        guest.destroy()


def below(histogram: list[int], share: float) -> float:
    """Upper bound, in ns, of the bucket below which that share of all waits ended: four between powers of two."""
    wanted = share * sum(histogram)
    for bucket, number in enumerate(histogram):
        wanted -= number
        if wanted <= 0:
            return (5 + bucket % 4) * 2.0 ** (bucket // 4 - 2)
    raise AssertionError(f"a share of {share} of {sum(histogram)} waits")


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


def lasts(dom0: Run, seconds: float) -> None:
    """Return when so much time has passed in dom0: no event tells that there was enough of a storm."""

    def uptime() -> float:
        return float(checked(dom0, "cut -d' ' -f1 /proc/uptime"))

    began = uptime()
    wait_for("the storm has lasted", seconds + 60, lambda: uptime() - began >= seconds, interval=2)


@pytest.mark.alone
def test_a_guest_does_not_notice_that_pages_leave_it(stormy: tuple[Guest, Storm], dom0: Run) -> None:
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
    assert found["xen"]["waits"] > 100, found
    assert found["xen"]["pooled"] == found["xen"]["reserved"] == 0, found
    write("dsm-storm", metrics(found))
