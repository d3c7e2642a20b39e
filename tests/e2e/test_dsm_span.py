# SPDX-License-Identifier: GPL-2.0
"""One Linux on two hosts by xl alone: `vnode-attach` brings memory and a CPU of the other host, `vnode-detach` sends both home.

Step 10 of docs/plan/8.md. dsmd-host(8) runs on both hosts, and nobody starts a dsmd by hand. As test_dsm_far_vcpu.py, the guest
has a slower clock, since a fault of the lab takes longer than a tick: dsmd-host starts each dsmd by a script that says so.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.spanning import CONFIGURATION
from lab.command import Done, checked, run_in, write_file
from lab.complaints import complaints
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from tests.e2e.dsm_hosts import slices
from tests.e2e.far_guest import (
    LOG,
    DsmSite,
    Shape,
    dsm_site,
    far_guest,
    kill_dsmd_host,
    left_nothing,
    listens,
    said,
)
from tests.e2e.test_dsm_far_vcpu import CLOCK_ERROR_US
from tests.e2e.test_dsm_linux_vcpu import HZ, LEASE_US

pytestmark = pytest.mark.fresh

SLOW = 10  # of the guest's clock
FAR_CPU = 1
LIMITS = {"opening_ms": 10000, "question_ms": 5000, "deadline_ms": 60000}
PATIENCE = 1800.0  # s, for a command of xl
WAIT = "--timeout=1500"  # of xl, for the guest

# What libxl does not know of a guest: how slow the lab is.
SCRIPT = f"""#!/bin/sh
for vm; do :; done
more='"slow": {SLOW}, "lease_us": {LEASE_US}, "keepalive_ms": 60000, '
at=/tmp/slow.$$
sed "s/^{{ *\\"/{{$more\\"/" "$vm" >$at
exec dsmd $(echo " $* " | sed "s| $vm | $at |")
"""

# Only what is asked to run there does; what is sent to all CPUs does, too.
EXTRA = (
    "console=hvc0 loglevel=5 tsc=reliable lpj={lpj} nopvspin nowatchdog rcupdate.rcu_cpu_stall_timeout=300 "
    f"isolcpus=domain,managed_irq,{FAR_CPU} workqueue.power_efficient=1"
)
CONFIG = """
name = "far"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "{extra}"
memory = {home}
maxvcpus = 2
vnuma = [
    [ "pnode=0", "size={home}", "vcpus=0", "vdistances=10,21" ],
    [ "host={host}", "size={node}", "vcpus={cpu}", "vdistances=21,10", "elastic=1", "remote_vcpus=1" ],
]
vif = [ "mac=00:16:3e:4d:00:44,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
{more}
"""
SUM = "md5sum </usr/bin/bash"


@dataclasses.dataclass(frozen=True)
class SpanShape(Shape):
    """`lpj`: of a CPU of the hosts, by the guest's clock; `more`: lines of its configuration."""

    home_mib: int = 384
    node_mib: int = 128
    lpj: int = 0
    more: str = ""

    def xl_cfg(self, other: str) -> str:
        return CONFIG.format(
            extra=EXTRA.format(lpj=self.lpj),
            home=self.home_mib,
            node=self.node_mib,
            host=other,
            cpu=FAR_CPU,
            more=self.more,
        )


def shape_for(home: Host) -> SpanShape:
    found = re.search(r"cpu_mhz\s*: (\d+)\.(\d{3})", checked(run_in(home), "xl info"))
    assert found, "xl info has no cpu_mhz"
    return SpanShape(lpj=int(found[1] + found[2]) * SLOW * 1000 // HZ)


@contextlib.contextmanager
def slow_site(scratch: Path, rack: str = "two-hosts") -> Iterator[DsmSite]:
    """Hosts whose dsmds give guests a slower clock."""
    with dsm_site(scratch, LIMITS, rack=rack) as made:
        for host in made.hosts:
            run = run_in(host)
            limits = f"[limits]\nclock_error_us = {CLOCK_ERROR_US}"
            write_file(run, CONFIGURATION, checked(run, f"cat {CONFIGURATION}").replace("[limits]", limits))
            write_file(run, "/root/slow-dsmd", SCRIPT)
            kill_dsmd_host(host)
            checked(run, f"chmod +x /root/slow-dsmd && (setsid dsmd-host -d /root/slow-dsmd >>{LOG} 2>&1 </dev/null &)")
            wait_for("dsmd-host", 60, functools.partial(listens, host))
        yield made
    assert not made.rack.wrong_ends


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    with slow_site(tmp_path_factory.mktemp("dsm")) as made:
        yield made


def done_well(site: DsmSite, done: Done, words: str) -> None:
    assert done.status == 0 and words in done.text, done.text + said(site.hosts)
    print(f"{done.seconds:.0f} s: {done.text.strip()}")


def attach(site: DsmSite, guest: Guest) -> None:
    """It brings memory and the CPU."""
    other = site.other.description.name
    done_well(site, guest.attach(1, WAIT, timeout=PATIENCE), f" MiB on host {other}, CPUs {FAR_CPU}")
    assert guest.online_cpus() == (0, FAR_CPU)
    assert len(slices(site.other)) == 1
    found = guest.listed()[1]["host"]
    print(found)
    assert found["link"] == "up" and found["remote_vcpus"] and found["cpus"] == [FAR_CPU], found
    table = checked(run_in(site.home), "xl vnode-list far")
    assert f"vnode 1: on host {other}, link up, CPUs {FAR_CPU} run there" in table, table


def detach(site: DsmSite, guest: Guest) -> None:
    """It sends both home."""
    done_well(site, guest.detach(1, WAIT, timeout=PATIENCE), "offline")
    assert guest.online_cpus() == (0,)
    assert guest.vnode(1).state == "offline", guest.vnode(1).keys
    assert slices(site.other) == []
    assert guest.listed()[1]["host"]["cpus"] == [], guest.listed()


def ticks(guest: Guest) -> int:
    """Of the far CPU's timer."""
    line = checked(run_in(guest), "grep timer1 /proc/interrupts", 300)
    return int(line.split()[1 + FAR_CPU])


def test_memory_and_cpu_of_another_host(site: DsmSite) -> None:
    """Twice: attached, a program's checksum there is the one of home, `numactl -H` shows the node with its CPU, detached."""
    # It boots by the slower clock.
    with far_guest(site.both, site.other.description.name, shape_for(site.home), 900.0) as guest:
        inside = run_in(guest)
        checked(inside, "echo 1 >/sys/devices/virtual/workqueue/cpumask")
        at_home = checked(inside, f"taskset -c 0 sh -c {shlex.quote(SUM)}", 300)
        assert re.match(r"[0-9a-f]{32} ", at_home)
        assert guest.online_cpus() == (0,)
        for turn in range(2):
            attach(site, guest)
            node = guest.nodes()[1]
            print(turn, node)
            assert node.cpus == (FAR_CPU,) and node.size_mib > SpanShape.node_mib // 2, node
            before = ticks(guest)
            assert checked(inside, f"taskset -c {FAR_CPU} sh -c {shlex.quote(SUM)}", PATIENCE) == at_home
            # And with the memory that came. numactl(8) itself binds to no CPU that is isolated.
            bound = f"taskset -c {FAR_CPU} numactl --membind=1 sh -c {shlex.quote(SUM)}"
            assert checked(inside, bound, PATIENCE) == at_home
            assert ticks(guest) > before
            refused = run_in(site.home)("xl pause far")
            assert refused.status != 0 and "run on host" in refused.text, refused.text
            detach(site, guest)
        checked(run_in(site.home), "xl pause far && xl unpause far")
        attach(site, guest)
        assert complaints(checked(inside, "dmesg", 300)) == []
    # Destroyed, with its CPU there.
    left_nothing(site.both)


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ('tsc_mode = "always_emulate"', "tsc_mode=always_emulate"),
        ("max_event_channels = 8192", "8192 event channels"),
        ("nestedhvm = 1", "nested"),
    ],
)
def test_what_is_refused_at_create(site: DsmSite, more: str, why: str) -> None:
    """With a reason, and nothing of the guest is left."""
    dom0 = run_in(site.home)
    shape = dataclasses.replace(shape_for(site.home), more=more)
    write_file(dom0, "/tmp/far.cfg", shape.xl_cfg(site.other.description.name))
    done = dom0("xl create /tmp/far.cfg", scaled(240))
    assert done.status != 0 and why in done.text, done.text
    assert dom0("xl domid far").status != 0
    left_nothing(site.both)
