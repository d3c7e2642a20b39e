# SPDX-License-Identifier: GPL-2.0
"""What tests of guests with CPUs on other hosts share: hosts that can run one, its configuration, its nodes' way in and out.

dsmd-host(8) runs on all hosts, and nobody starts a dsmd by hand. The guest has a slower clock, since a fault of the lab takes
longer than a tick: dsmd-host starts each dsmd by a script that says so. Without class U (issue 8) what needs a device stays
at home: CPUs of other hosts are isolated, and run what is asked to run there.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from benchmarks.spanning import CONFIGURATION
from lab.command import Done, checked, run_in, write_file
from lab.errors import Malformed
from lab.guest import Guest
from lab.patience import wait_for
from tests.e2e.dsm_hosts import slices
from tests.e2e.far_guest import LOG, DsmSite, Shape, dsm_site, kill_dsmd_host, listens, said
from tests.e2e.test_dsm_far_vcpu import CLOCK_ERROR_US
from tests.e2e.test_dsm_linux_vcpu import HZ, LEASE_US

# How many times slower the guest's clock is: a tick is long against the pages that it bounces, as on hardware. A fault is some
# round trips, and a tick bounces some six pages on either side.
TICK_MS, LEAST_SLOW, MOST_SLOW = 10.0, 10, 100  # the last one is Xen's
ROUND_TRIPS = 2 * 6 * 3
LIMITS = {"opening_ms": 10000, "question_ms": 5000, "deadline_ms": 60000}
BOOT = 900.0  # s, by the slower clock
PATIENCE = 1800.0  # s, for a command of xl, and for a program on CPUs elsewhere
WAIT = "--timeout=1500"  # of xl, for the guest

# What libxl does not know of a guest: how slow the lab is.
SCRIPT = f"""#!/bin/sh
for vm; do :; done
more='"slow": SLOW, "lease_us": {LEASE_US}, "keepalive_ms": 60000, '
at=/tmp/slow.$$
sed "s/^{{ *\\"/{{$more\\"/" "$vm" >$at
exec dsmd $(echo " $* " | sed "s| $vm | $at |")
"""

# Only what is asked to run there does; what is sent to all CPUs does, too. A CPU elsewhere that warns would print
# that by itself, to a page that can't leave: only what ends the guest is on the console, and all else in dmesg.
EXTRA = (
    "console=hvc0 loglevel=1 tsc=reliable lpj={lpj} nopvspin nowatchdog rcupdate.rcu_cpu_stall_timeout=300 "
    "isolcpus=domain,managed_irq,{isolated} workqueue.power_efficient=1"
)


def numbers(first: int, count: int) -> str:
    """A list as the kernel and xl write it."""
    return f"{first}" if count == 1 else f"{first}-{first + count - 1}"


@dataclasses.dataclass(frozen=True)
class SpanShape(Shape):
    """`cpus`: of each host. `lenders`: nodes whose host has none of them: theirs run at home.

    `lpj`: of a CPU of the hosts, by the guest's clock; `kernel` and its `arguments`; `more`: lines of its configuration.
    """

    home_mib: int = 384
    node_mib: int = 128
    cpus: int = 1
    lenders: tuple[int, ...] = ()
    lpj: int = 0
    kernel: str = "/boot/vmlinuz"
    arguments: str = ""
    more: str = ""

    def cpus_of(self, node: int) -> tuple[int, ...]:
        """Their numbers."""
        return tuple(range(node * self.cpus, (node + 1) * self.cpus))

    def xl_cfg(self, other: str) -> str:
        """Its configuration; `other` is the host of node 1, `also` are those of the next."""
        hosts = (other, *self.also)
        nodes = range(len(hosts) + 1)

        def row(node: int) -> str:
            where = (
                f'"host={hosts[node - 1]}", "size={self.node_mib}"' if node else f'"pnode=0", "size={self.home_mib}"'
            )
            distances = ",".join("10" if to == node else "21" for to in nodes)
            remote = ', "elastic=1"' if node else ""
            if node and node not in self.lenders:
                remote += ', "remote_vcpus=1"'
            return (
                f'    [ {where}, "vcpus={numbers(node * self.cpus, self.cpus)}", "vdistances={distances}"{remote} ],\n'
            )

        isolated = ",".join(numbers(node * self.cpus, self.cpus) for node in nodes if node and node not in self.lenders)
        return f"""
name = "far"
type = "pvh"
kernel = "{self.kernel}"
ramdisk = "/boot/guest.cpio.gz"
extra = "{EXTRA.format(lpj=self.lpj, isolated=isolated)} {self.arguments}"
memory = {self.home_mib}
maxvcpus = {self.cpus * len(nodes)}
vnuma = [
{"".join(map(row, nodes))}]
vif = [ "mac=00:16:3e:4d:00:44,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "{self.on_reboot}"
on_crash = "preserve"
{self.more}
"""


@dataclasses.dataclass
class SlowSite(DsmSite):
    """`slow`: so many times slower is the clock of its guests than its own."""

    slow: int = LEAST_SLOW


def measured(site: SlowSite, shape: SpanShape | None = None) -> SpanShape:
    """The shape, for a guest at home there."""
    found = re.search(r"cpu_mhz\s*: (\d+)\.(\d{3})", checked(run_in(site.home), "xl info"))
    assert found, "xl info has no cpu_mhz"
    return dataclasses.replace(shape or SpanShape(), lpj=int(found[1] + found[2]) * site.slow * 1000 // HZ)


def slow_for(said: str) -> int:
    """How slow the clock of guests has to be, by what ping says of round trips: they are long on a machine that is busy."""
    found = re.search(r" = [\d.]+/(\d+\.\d+)/", said)
    if not found:
        raise Malformed(f"ping: {said[:300]!r}")
    return min(max(LEAST_SLOW, round(float(found[1]) * ROUND_TRIPS / TICK_MS)), MOST_SLOW)


def slowness(site: DsmSite) -> int:
    """That of guests between the first two hosts, now."""
    wire = site.rack.description.wire(site.other.description.name)
    assert wire
    said = checked(run_in(site.home), f"ping -q -c 20 -i 0.2 {wire.address()}", 120)
    slow = slow_for(said)
    print(f"{said.strip().splitlines()[-1]}: guests have clocks {slow} times slower")
    return slow


@contextlib.contextmanager
def slow_site(scratch: Path, rack: str = "two-hosts") -> Iterator[SlowSite]:
    """Hosts whose dsmds give guests a slower clock."""
    with dsm_site(scratch, LIMITS, rack=rack) as booted:
        made = SlowSite(booted.rack, booted.home, booted.other, booted.third, slowness(booted))
        for host in made.hosts:
            run = run_in(host)
            limits = f"[limits]\nclock_error_us = {CLOCK_ERROR_US}"
            write_file(run, CONFIGURATION, checked(run, f"cat {CONFIGURATION}").replace("[limits]", limits))
            write_file(run, "/root/slow-dsmd", SCRIPT.replace("SLOW", f"{made.slow}"))
            kill_dsmd_host(host)
            checked(run, f"chmod +x /root/slow-dsmd && (setsid dsmd-host -d /root/slow-dsmd >>{LOG} 2>&1 </dev/null &)")
            wait_for("dsmd-host", 60, functools.partial(listens, host))
        yield made
    assert not made.rack.wrong_ends


def keep_work_at_home(guest: Guest) -> None:
    """What the kernel does for nobody in particular is done at home."""
    checked(run_in(guest), "echo 1 >/sys/devices/virtual/workqueue/cpumask")


def done_well(site: DsmSite, done: Done, words: str) -> None:
    """A command of xl that said these words, and is shown."""
    assert done.status == 0 and words in done.text, done.text + said(site.hosts)
    print(f"{done.seconds:.0f} s: {done.text.strip()}")


def of_node(guest: Guest, node: int) -> dict[str, Any]:
    """What `xl vnode-list` says of the host of a node."""
    found: dict[str, Any] = guest.listed()[node]["host"]
    return found


def attach(site: DsmSite, guest: Guest, shape: SpanShape, node: int = 1) -> None:
    """It brings memory and, unless the host only lends it, CPUs."""
    host, cpus = site.hosts[node], shape.cpus_of(node)
    name, listed = host.description.name, numbers(cpus[0], len(cpus))
    done_well(site, guest.attach(node, WAIT, timeout=PATIENCE), f" MiB on host {name}, CPUs {listed}")
    assert set(cpus) <= set(guest.online_cpus())
    assert len(slices(host)) == 1
    found = of_node(guest, node)
    print(found)
    remote = () if node in shape.lenders else cpus
    assert found["link"] == "up" and tuple(found.get("cpus") or ()) == remote, found
    if remote:
        assert found["remote_vcpus"], found
        table = checked(run_in(site.home), "xl vnode-list far")
        assert f"vnode {node}: on host {name}, link up, CPUs {listed} run there" in table, table


def detach(site: DsmSite, guest: Guest, shape: SpanShape, node: int = 1) -> None:
    """It sends both home."""
    done_well(site, guest.detach(node, WAIT, timeout=PATIENCE), "offline")
    assert not set(shape.cpus_of(node)) & set(guest.online_cpus())
    assert guest.vnode(node).state == "offline", guest.vnode(node).keys
    assert slices(site.hosts[node]) == []
    assert not of_node(guest, node).get("cpus"), guest.listed()
