# SPDX-License-Identifier: GPL-2.0
"""Linux with its second CPU in another slice, which is another domain of the same host: step 6 of docs/plan/8.md.

The guest has no event channels (`xen_no_vector_callback`): its CPUs interrupt each other, and have their ticks, by the local
APIC. So it has no store, no devices and no console but Xen's; its `init` says there what it has found, and ends the guest.
"""

from __future__ import annotations

import base64
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.results import Metric, write
from lab.command import Run, checked
from lab.elastic_guest import PROGRAMS
from lab.images.tree import Tree
from lab.patience import wait_for
from tests.e2e.conftest import Stable
from tests.e2e.dsm_program import DsmProgram, below

pytestmark = pytest.mark.fresh

HOME_MIB = 256
FRAMES = 256  # of a MiB
FAR, FAR_FRAMES = 0x40000, 512  # slice 1 needs a range of its own, which the guest does not know
ROOM = 16384
LEASE_US = 4000

# Other commands than the second CPU's are kept at home by `maxcpus=`, until somebody asks for the CPU.
ARGUMENTS = (
    "maxcpus=1 xen_no_vector_callback earlyprintk=xen,keep console=ttyS9 tsc_early_khz={khz} lpj={lpj} tsc=reliable nopvspin "
    "nowatchdog rcupdate.rcu_cpu_stall_timeout=300 rdinit=/vcpu-init"
)
HZ = 100

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
SUM = "sh -c 'cat /usr/bin/b* | md5sum'"
INIT = f"""#!/bin/sh
export PATH=/usr/sbin:/usr/bin
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mount -t devtmpfs devtmpfs /dev
say() {{ echo "<1>VCPU $*" >/dev/kmsg; }}
say first $(cat /sys/devices/system/cpu/online)
say home $(taskset -c 0 {SUM})
echo 1 >{ONLINE}
say online $(cat /sys/devices/system/cpu/online)
say away $(taskset -c 1 {SUM})
say ticks $(awk '/LOC/ {{print $3}}' /proc/interrupts)
echo 0 >{ONLINE}
echo 1 >{ONLINE}
say again $(taskset -c 1 {SUM})
say last $(cat /sys/devices/system/cpu/online)
exec {PROGRAMS}/power_off
"""


def config(dom0: Run) -> str:
    """The guest cannot measure the time stamp counter: the PV clock knows it, which needs event channels."""
    found = re.search(r"cpu_mhz\s*: (\d+)\.(\d{3})", checked(dom0, "xl info"))
    assert found, "xl info has no cpu_mhz"
    khz = int(found[1] + found[2])
    return CONFIG.format(arguments=ARGUMENTS.format(khz=khz, lpj=khz * 1000 // HZ), memory=HOME_MIB)


def initramfs(dom0: Run, scratch: Path) -> None:
    """The guest's own, with our init behind it: Linux unpacks one archive after the other."""
    tree = Tree()
    tree.add_bytes("/vcpu-init", INIT.encode(), 0o755)
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


@pytest.fixture
def daemon(stable: Stable, dom0: Run, console: None, tmp_path: Path) -> Iterator[DsmProgram]:
    """Both slices, with the guest not yet running."""
    stable.leave_all()
    initramfs(dom0, tmp_path)
    checked(dom0, f"printf %s {shlex.quote(config(dom0))} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 120.0)
    started = None
    try:
        domid = checked(dom0, "xl domid dsm").strip()
        frames = f"{HOME_MIB * FRAMES} {FAR} {FAR_FRAMES}"
        started = DsmProgram.start(dom0, "dsm-slices", f"-v -l {LEASE_US} -c {ROOM} {domid} {frames}")
        yield started
    finally:
        print("\n".join(checked(dom0, "xl dmesg").splitlines()[-60:]))
        if started is not None:
            print(started.log())
        dom0("xl destroy dsm")
        if started is not None and not started.ended():
            dom0(f"kill -KILL {started.pid}")
            dom0("for d in $(xl list | awk '$1 == \"(null)\" {print $2}'); do xl destroy $d; done")


def have_ended(dom0: Run) -> bool:
    """Both slices have shut down, or crashed."""
    slices = [line.split() for line in checked(dom0, "xl list").splitlines()[1:]]
    return all(words[-2][3] == "s" or words[-2][4] == "c" for words in slices if words[0] in ("dsm", "(null)"))


def test_linux_with_a_cpu_in_another_slice(daemon: DsmProgram, dom0: Run) -> None:
    """CPU 1 comes online there, runs a program that sums up files, goes and comes back; then Linux powers off."""
    checked(dom0, "xl unpause dsm")
    took = wait_for("both slices have shut down", 400, lambda: have_ended(dom0), interval=3)
    log = checked(dom0, "xl dmesg")
    said = dict(re.findall(r"^\(d\d+\) VCPU (\w+) (.*?)(?:  -)?\r?$", log, re.M))

    assert said.keys() == {"first", "home", "online", "away", "ticks", "again", "last"}, said
    assert said["first"] == "0" and said["online"] == said["last"] == "0-1", said
    assert re.fullmatch(r"[0-9a-f]{32}", said["home"]) and said["home"] == said["away"] == said["again"], said
    assert int(said["ticks"]) > 0, said

    found = daemon.end()
    # One vcpu_info, registered from slice 0; INIT and SIPI of two starts. What the CPU used, it missed.
    assert found["calls"] == [1, 0], found["calls"]
    assert found["events"][0] >= 2 * 2 and found["misses"][1] > 1000, found
    assert found["shutdowns"] >= 1 and found["pinned"] == 0, found

    xen = found["xen"]
    write(
        "dsm-linux-vcpu",
        [
            Metric("dsm.linux_vcpu.run", took, "s", "lower"),
            Metric("dsm.linux_vcpu.misses_home", found["misses"][0], "faults", "lower"),
            Metric("dsm.linux_vcpu.misses_away", found["misses"][1], "faults", "lower"),
            Metric("dsm.linux_vcpu.fault_p50_below", below(xen["wait_hist"], 0.5) / 1000, "us", "lower"),
        ],
    )
