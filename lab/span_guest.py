# SPDX-License-Identifier: GPL-2.0
"""Guests with CPUs on other hosts: hosts that can run one, its configuration, and an OpenMP program on all of its CPUs.

dsmd-host(8) runs on all hosts, and nobody starts a dsmd by hand. The guest has a slower clock, since a fault of the lab takes
longer than a tick: dsmd-host starts each dsmd by a script that says so. Without class U (decision 0126) what needs a device
stays at home: CPUs of other hosts are isolated, and run what is asked to run there. With it they run what they like.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from pathlib import Path

from lab.command import checked, run_in, write_file
from lab.elastic_guest import LIBGOMP, PROGRAMS
from lab.errors import LabError, Malformed
from lab.far_guest import GUEST, DsmSite, Shape, made_ready
from lab.guest import Guest
from lab.guestview import parse_list
from lab.rack import Rack

HZ = 100  # of the lab's Linux
LEASE_US = 4000
CLOCK_ERROR_US = 100000  # of a network between two emulators; what is meant is much less
# How many times slower the guest's clock is: a tick is long against the pages that it bounces, as on hardware. A fault is some
# round trips, and a tick bounces some six pages on either side.
TICK_MS, LEAST_SLOW, MOST_SLOW = 10.0, 10, 100  # the last one is Xen's
ROUND_TRIPS = 2 * 6 * 3
LIMITS = {"opening_ms": 10000, "question_ms": 5000, "deadline_ms": 60000}
SLOW_DSMD = "/root/slow-dsmd"  # in dom0: SCRIPT
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
EXTRA = "console=hvc0 loglevel=1 tsc=reliable lpj={lpj} nopvspin"
# A kernel that does not watch itself; or one that does, with the limits of its own (lab/watchdogs.py), and a CPU elsewhere that
# is locked up says so in dmesg only: what it prints of that would be on the console else, and end the guest.
UNWATCHED = " nowatchdog rcupdate.rcu_cpu_stall_timeout=300"
WATCHED = " loglevel=0"
# A node's own thread looks twice a second whether its memory is to be compacted, on a CPU of it, isolated or not.
ISOLATED = " isolcpus=domain,managed_irq,{cpus} workqueue.power_efficient=1 sysctl.vm.compaction_proactiveness=0"


def numbers(first: int, count: int) -> str:
    """A list as the kernel and xl write it."""
    return f"{first}" if count == 1 else f"{first}-{first + count - 1}"


@dataclasses.dataclass(frozen=True)
class SpanShape(Shape):
    """`cpus`: of each host. `lenders`: nodes whose host has none of them: theirs run at home.

    `lpj`: of a CPU of the hosts, by the guest's clock; `isolated`: its CPUs elsewhere run only what they are asked to run;
    `kernel` and its `arguments`; `watched`: it says so when a CPU is locked up or stalls, as it does by itself; `more`: lines
    of its configuration.
    """

    home_mib: int = 384
    node_mib: int = 128
    cpus: int = 1
    lenders: tuple[int, ...] = ()
    lpj: int = 0
    isolated: bool = True
    kernel: str = "/boot/vmlinuz"
    arguments: str = ""
    watched: bool = False
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

        cpus = ",".join(numbers(node * self.cpus, self.cpus) for node in nodes if node and node not in self.lenders)
        extra = EXTRA.format(lpj=self.lpj) + (WATCHED if self.watched else UNWATCHED)
        extra += ISOLATED.format(cpus=cpus) if self.isolated else ""
        return f"""
name = "{GUEST}"
type = "pvh"
kernel = "{self.kernel}"
ramdisk = "/boot/guest.cpio.gz"
extra = "{extra} {self.arguments}"
memory = {self.home_mib}
maxvcpus = {self.cpus * len(nodes)}
vnuma = [
{"".join(map(row, nodes))}]
vif = [ "mac=00:16:3e:4d:00:45,bridge=xenbr0" ]
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
    """The shape, for a guest at home there. Raises CommandFailedError, Malformed."""
    said = checked(run_in(site.home), "xl info")
    found = re.search(r"cpu_mhz\s*: (\d+)\.(\d{3})", said)
    if not found:
        raise Malformed(f"xl info has no cpu_mhz: {said[:300]!r}")
    return dataclasses.replace(shape or SpanShape(), lpj=int(found[1] + found[2]) * site.slow * 1000 // HZ)


def slow_for(said: str) -> int:
    """How slow the clock of guests has to be, by what ping says of round trips: they are long on a machine that is busy."""
    found = re.search(r" = [\d.]+/(\d+\.\d+)/", said)
    if not found:
        raise Malformed(f"ping: {said[:300]!r}")
    return min(max(LEAST_SLOW, round(float(found[1]) * ROUND_TRIPS / TICK_MS)), MOST_SLOW)


def slowness(rack: Rack) -> int:
    """That of guests between the first two hosts, now. Raises LabError, Malformed."""
    home, other = rack.hosts[:2]
    wire = rack.description.wire(other.description.name)
    if not wire:
        raise LabError("the rack has no network between its hosts")
    said = checked(run_in(home), f"ping -q -c 20 -i 0.2 {wire.address()}", 120)
    slow = slow_for(said)
    print(f"{said.strip().splitlines()[-1]}: guests have clocks {slow} times slower")
    return slow


def slow_hosts(rack: Rack, scratch: Path, class_u: bool = False, slow: int = 0) -> SlowSite:
    """The hosts of a rack, whose dsmds give guests a slower clock, with class U or without. Raises LabError.

    `scratch`: a folder for certificates. `slow`: so many times slower; 0: as slow as it has to be, by round trips.
    """
    slow = slow or slowness(rack)
    for host in rack.hosts:
        write_file(run_in(host), SLOW_DSMD, SCRIPT.replace("SLOW", f"{slow}"))
        checked(run_in(host), f"chmod +x {SLOW_DSMD}")
    ready = made_ready(
        rack,
        scratch,
        LIMITS,
        more_limits=f"clock_error_us = {CLOCK_ERROR_US}\n",
        class_u=class_u,
        program=f"dsmd-host -d {SLOW_DSMD}",
    )
    return SlowSite(ready.rack, ready.home, ready.other, ready.third, slow)


def keep_work_at_home(guest: Guest) -> None:
    """What the kernel does for nobody in particular is done at home."""
    checked(run_in(guest), "echo 1 >/sys/devices/virtual/workqueue/cpumask")


# ---- An OpenMP program ----

STREAM = "/tmp/stream_check.jsonl"


def around(cpus: Sequence[int]) -> str:
    """What an OpenMP program is started with, to have a thread on each of these CPUs as they come and go.

    A team's thread stays where its place is: nobody moves a thread to an isolated CPU but who binds it. Who waits sleeps.
    """
    places = "OMP_PLACES=threads OMP_PROC_BIND=close OMP_WAIT_POLICY=passive"
    return f"taskset -c {','.join(map(str, cpus))} env {places} LD_LIBRARY_PATH={LIBGOMP}"


def stream_command(cpus: Sequence[int], mib: int) -> str:
    """stream_check with arrays of so many MiB, until it is told to end."""
    return f"{around(cpus)} {PROGRAMS}/stream_check --mib={mib} --iterations=0"


def start_stream(guest: Guest, cpus: Sequence[int], mib: int) -> None:
    """It prints to STREAM. Raises CommandFailedError."""
    checked(run_in(guest), f"(setsid {stream_command(cpus, mib)} >{STREAM} 2>/tmp/stream_check.err </dev/null &)")


def where_question(pid: int) -> str:
    """A command of the guest, for cpus_of_threads()."""
    return f"cat /sys/devices/system/cpu/online /proc/{pid}/task/*/stat"


def cpus_of_threads(said: str) -> list[int]:
    """Where a program's threads have run last, from what where_question() prints. Raises Malformed.

    A thread that has slept since its CPU went is nowhere. The first line is the CPUs that are online, the others are
    /proc/PID/task/TID/stat, whose field 39 is the CPU. Empty: there is no such program.
    """
    online, _, stats = said.partition("\n")
    found = [line.rpartition(")")[2].split() for line in stats.splitlines()]
    if not all(len(fields) > 39 - 3 and fields[39 - 3].isdigit() for fields in found):
        raise Malformed(f"/proc/PID/task/TID/stat: {stats[:300]!r}")
    cpus = parse_list(online)
    if not cpus:
        raise Malformed(f"no CPU is online: {said[:300]!r}")
    return [cpu for cpu in (int(fields[39 - 3]) for fields in found) if cpu in cpus]
