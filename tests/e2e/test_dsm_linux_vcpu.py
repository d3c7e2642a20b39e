# SPDX-License-Identifier: GPL-2.0
"""Linux with its second CPU in another slice, which is another domain of the same host: steps 6 to 8 of docs/plan/8.md.

Once with event channels, as it comes: its CPUs interrupt each other, and have their ticks, by events; then somebody asks it to
shut down. And once without (`xen_no_vector_callback`), by the local APIC; then it powers off by itself. A PVH guest has no way
to power off: it halts both CPUs, and the daemon ends both slices. Its `init` says on Xen's console what it has found.
"""

from __future__ import annotations

import base64
import contextlib
import dataclasses
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import litmus
from benchmarks.results import Metric, kept, write
from lab.command import Run, checked
from lab.complaints import complaints
from lab.images.tree import Tree
from lab.patience import wait_for
from lab.span_guest import HZ, LEASE_US
from tests.e2e.conftest import Stable
from tests.e2e.dsm_program import DsmProgram, below

pytestmark = pytest.mark.fresh

HOME_MIB = 256
FRAMES = 256  # of a MiB
FAR, FAR_FRAMES = 0x40000, 512  # slice 1 needs a range of its own, which the guest does not know
ROOM = 16384

# Other commands than the second CPU's are kept at home by `maxcpus=`, until somebody asks for the CPU.
ARGUMENTS = (
    "maxcpus=1 {more} earlyprintk=xen,keep console=ttyS9 lpj={lpj} tsc=reliable nopvspin "
    "nowatchdog rcupdate.rcu_cpu_stall_timeout=300 rdinit=/vcpu-init"
)


@dataclasses.dataclass(frozen=True)
class Way:
    """How CPUs interrupt each other."""

    arguments: str
    ticks: str  # lines of /proc/interrupts that are the second CPU's timer
    calls: int  # of the first CPU about the second one, at least
    slow: int  # the guest's clock, so many times: a tick is long against a fault, as it is on hardware
    sum: str  # a program that has a checksum
    end: str  # what `init` does at last
    litmus: str = ""  # words for dsm_litmus instead, while both CPUs are online


# Without events the PV clock says nothing, and the guest cannot measure its time stamp counter. Nor is there a slower clock: in
# the lab a tick's faults take longer than a tick, and the second CPU has little time for anything else.
# Once: vcpu_info. Each time that it comes: the vector of its events, five ports bound and unmasked; that it goes: five closed.
WAYS = {
    "events": Way("", "timer1", 1 + 2 * 11 + 5, 10, "sh -c 'cat /usr/bin/b* | md5sum'", "sleep 1000000"),
    "apic": Way(
        "xen_no_vector_callback tsc_early_khz={khz}", "LOC", 1, 1, "md5sum </usr/bin/bash", "/opt/xenuma/bin/power_off"
    ),
}
# An access of the guest that takes 0.1 ms of its clock, a millisecond of the host's, has waited for a page.
# Five variants of each shape: 1000 raced rounds.
LITMUS = "--cpus=0,1 --rounds=3200 --raced=200 --slow-us=100"
ALL = WAYS | {"litmus": dataclasses.replace(WAYS["events"], end=WAYS["apic"].end, litmus=LITMUS)}

CONFIG = """
name = "dsm"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/tmp/vcpu.cpio"
extra = "{arguments}"
memory = {memory}
vcpus = 2
tsc_mode = "native"
nomigrate = 1
on_poweroff = "preserve"
on_reboot = "preserve"
on_crash = "preserve"
"""

ONLINE = "/sys/devices/system/cpu/cpu1/online"
BEGIN = """#!/bin/sh
export PATH=/usr/sbin:/usr/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
say() {{ echo "<1>VCPU $*" >/dev/kmsg; }}
# What talks to devices stays where they are.
for task in /proc/[0-9]*; do taskset -p 1 ${{task#/proc/}}; done >/dev/null 2>&1
echo 1 >/sys/devices/virtual/workqueue/cpumask
"""
INIT = """say first $(cat /sys/devices/system/cpu/online)
say home $(taskset -c 0 {sum})
echo 1 >{online}
say online $(cat /sys/devices/system/cpu/online)
say away $(taskset -c 1 {sum})
say ticks $(awk '/{ticks}/ {{print $3}}' /proc/interrupts)
echo 0 >{online}
echo 1 >{online}
say again $(taskset -c 1 {sum})
say last $(cat /sys/devices/system/cpu/online)
exec {end}
"""
# Xen's console takes 80 characters a line: without names, and without the outcomes, which the exit status is about.
LITMUS_INIT = """echo 1 >{online}
say online $(cat /sys/devices/system/cpu/online)
/opt/xenuma/bin/dsm_litmus {litmus} >/litmus.out 2>/litmus.err
say litmus $?
grep '"shape"' /litmus.out | sed 's/,"outcomes.*//; s/"[a-z_]*"://g; s/[{{"]//g' |
  while read -r line; do say $line; done
head -n 3 /litmus.err | while read -r line; do say error $line; done
say last $(cat /sys/devices/system/cpu/online)
exec {end}
"""


def config(dom0: Run, way: Way) -> str:
    """Of the guest."""
    found = re.search(r"cpu_mhz\s*: (\d+)\.(\d{3})", checked(dom0, "xl info"))
    assert found, "xl info has no cpu_mhz"
    khz = int(found[1] + found[2])
    more = way.arguments.format(khz=khz)
    return CONFIG.format(arguments=ARGUMENTS.format(more=more, lpj=khz * way.slow * 1000 // HZ), memory=HOME_MIB)


def initramfs(dom0: Run, scratch: Path, way: Way) -> None:
    """The guest's own, with our init behind it: Linux unpacks one archive after the other."""
    tree = Tree()
    init = BEGIN + (LITMUS_INIT if way.litmus else INIT)
    words = {"ticks": way.ticks, "sum": way.sum, "online": ONLINE, "end": way.end, "litmus": way.litmus}
    tree.add_bytes("/vcpu-init", init.format(**words).encode(), 0o755)
    archive = scratch / "vcpu-init.cpio"
    tree.write_cpio(archive)
    text = base64.b64encode(archive.read_bytes()).decode()
    checked(dom0, f"cp /boot/guest.cpio.gz /tmp/vcpu.cpio && printf %s {text} | base64 -d >>/tmp/vcpu.cpio")


@pytest.fixture
def console(dom0: Run) -> Iterator[None]:
    """Xen's console has what guests print."""
    level = checked(dom0, "xenhypfs cat /params/guest_loglvl").strip()
    checked(dom0, "xenhypfs write /params/guest_loglvl all && xl dmesg -c >/dev/null")
    yield
    checked(dom0, f"xenhypfs write /params/guest_loglvl {shlex.quote(level)}")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> str:
    """One after the other."""
    return str(request.param)


@contextlib.contextmanager
def two_slices(dom0: Run, text: str, slow: int) -> Iterator[DsmProgram]:
    """Both slices, with the guest of this configuration not yet running."""
    checked(dom0, f"printf %s {shlex.quote(text)} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 120.0)
    started = None
    try:
        domid = checked(dom0, "xl domid dsm").strip()
        frames = f"{HOME_MIB * FRAMES} {FAR} {FAR_FRAMES}"
        started = DsmProgram.start(
            dom0, "dsm-slices", f"-v -l {LEASE_US} -f {slow} -c {ROOM} {domid} {frames}"
        )
        yield started
    finally:
        print("\n".join(checked(dom0, "xl dmesg").splitlines()[-60:]))
        if started is not None:
            print(started.log())
        dom0("xl destroy dsm")
        if started is not None and not started.ended():
            dom0(f"kill -KILL {started.pid}")
            dom0("for d in $(xl list | awk '$1 == \"(null)\" {print $2}'); do xl destroy $d; done")


@pytest.fixture
def daemon(stable: Stable, dom0: Run, console: None, tmp_path: Path, way: str) -> Iterator[DsmProgram]:
    """Of the guest with the initramfs of this way."""
    stable.leave_all()
    initramfs(dom0, tmp_path, ALL[way])
    with two_slices(dom0, config(dom0, ALL[way]), ALL[way].slow) as started:
        yield started


def states(dom0: Run) -> list[str]:
    """The state column of the slices."""
    slices = [line.split() for line in checked(dom0, "xl list").splitlines()[1:]]
    return [words[-2] for words in slices if words[0] in ("dsm", "(null)")]


def have_ended(dom0: Run) -> bool:
    """Both slices have shut down, or crashed."""
    return all(state[3] == "s" or state[4] == "c" for state in states(dom0))


def said_of(log: str) -> dict[str, str]:
    """What `init` has said on Xen's console."""
    return dict(re.findall(r"^\(d\d+\) VCPU (\w+) (.*?)(?: +-)?\r?$", log, re.M))


def test_linux_with_a_cpu_in_another_slice(daemon: DsmProgram, dom0: Run, way: str) -> None:
    """CPU 1 comes online there, runs a program that sums up files, goes and comes back; then Linux powers off."""
    checked(dom0, "xl unpause dsm")
    took = wait_for(
        "CPU 1 came back", 600, lambda: "last" in said_of(checked(dom0, "xl dmesg")) or have_ended(dom0), interval=3
    )
    if way == "events":
        checked(dom0, "xl shutdown dsm", 120)
    wait_for("both slices have shut down", 120, lambda: have_ended(dom0), interval=1)
    ended = states(dom0)
    log = checked(dom0, "xl dmesg")
    said = said_of(log)

    assert complaints(log) == []
    assert len(ended) == 2 and all("s" in state and "c" not in state for state in ended), ended
    assert said.keys() == {"first", "home", "online", "away", "ticks", "again", "last"}, said
    assert said["first"] == "0" and said["online"] == said["last"] == "0-1", said
    assert re.fullmatch(r"[0-9a-f]{32}", said["home"]) and said["home"] == said["away"] == said["again"], said
    assert int(said["ticks"]) > 0, said

    found = daemon.end()
    # INIT and SIPI of two starts. What the CPU used, it missed.
    assert found["calls"][0] >= ALL[way].calls and found["calls"][1] == 0, found["calls"]
    assert all(found["ports"]) if way == "events" else not any(found["ports"]), found["ports"]
    assert found["events"][0] >= 2 * 2 and found["misses"][1] > 1000, found
    # Nobody has shut it down: all CPUs were halted.
    assert found["halts"] == 1 and found["shutdowns"] >= 1 and found["pinned"] == 0, found

    xen = found["xen"]
    write(
        f"dsm-linux-vcpu-{way}",
        [
            Metric(f"dsm.linux_vcpu.{way}.run", took, "s", "lower"),
            Metric(f"dsm.linux_vcpu.{way}.misses_home", found["misses"][0], "faults", "lower"),
            Metric(f"dsm.linux_vcpu.{way}.misses_away", found["misses"][1], "faults", "lower"),
            Metric(f"dsm.linux_vcpu.{way}.fault_p50_below", below(xen["wait_hist"], 0.5) / 1000, "us", "lower"),
        ],
    )


@pytest.mark.parametrize("way", ["litmus"], indirect=True)
def test_litmus(daemon: DsmProgram, dom0: Run, way: str) -> None:
    """Two CPUs in two slices show nothing that x86-TSO forbids, in rounds in which a page was on its way."""
    checked(dom0, "xl unpause dsm")
    wait_for("the guest has ended", 1200, lambda: have_ended(dom0), interval=3)
    now = states(dom0)
    assert len(now) == 2 and not any("c" in state for state in now), now
    log = checked(dom0, "xl dmesg")
    said = said_of(log)
    found = litmus.parse_short(log)
    assert found, said
    kept("litmus-slices", litmus.metrics(found))
    assert complaints(log) == [] and "error" not in said, said
    assert said["online"] == said["last"] == "0-1" and said["litmus"] == "0", said
    pairs = [(shape, variant) for shape in litmus.SHAPES if shape != "iriw" for variant in litmus.VARIANTS]
    assert [(each.shape, each.variant) for each in found] == pairs, found
    for each in found:
        print(each)
        assert each.forbidden == 0 and each.rounds >= each.overlapped >= each.raced > 0, each
    ended = daemon.end()
    assert ended["pinned"] == 0, ended
