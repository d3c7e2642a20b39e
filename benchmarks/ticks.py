# SPDX-License-Identifier: GPL-2.0
"""Faults per tick: for how many pages CPUs of a guest wait while they have one tick, which comes each 10 ms on any machine.

Nobody counts a guest's ticks for us: a timer is set with each, but Xen tells nobody, and the letters between hosts are about
other hosts' events. So ticks are the guest's, of /proc/interrupts, and faults those of the host that its CPUs are on, by
`waits` of dsm-stats (Xen) or by its dsmd (`dsmctl --json status`). They are read one after the other, so the interval has to
be long against that. A CPU that is idle has no ticks (NO_HZ): keep it busy with something that touches no page of others.
"""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Sequence

from benchmarks.results import Metric
from lab.errors import Malformed

LEAST_TICKS = 100
"""In an interval: fewer say nothing."""
GOAL = 2.0
"""Faults per tick, issue 8."""

# Xen's VIRQ_TIMER has a line for each CPU, with one column that counts; the local APIC has one line for all.
XEN_TIMER = re.compile(r"^ *\d+:((?: +\d+)+) .*\btimer(\d+)$", re.M)
APIC_TIMER = re.compile(r"^ *LOC:((?: +\d+)+) ", re.M)
ONLINE = re.compile(r"^((?: +CPU\d+)+) *$", re.M)  # the head: a column for each CPU that is online


def ticks_of(interrupts: str) -> list[int]:
    """By CPU that is online, from the text of /proc/interrupts, by events and by the local APIC. Raises Malformed."""
    found: dict[int, int] = {}
    for columns, cpu in XEN_TIMER.findall(interrupts):
        found[int(cpu)] = sum(int(column) for column in columns.split())
    local, head = APIC_TIMER.search(interrupts), ONLINE.search(interrupts)
    cpus, columns = (re.findall(r"\d+", line[1]) if line else [] for line in (head, local))
    if local and len(cpus) != len(columns):
        raise Malformed(f"/proc/interrupts: {len(columns)} columns of {len(cpus)} CPUs: {interrupts[:200]!r}")
    for cpu, column in zip(map(int, cpus), columns, strict=False):
        found[cpu] = found.get(cpu, 0) + int(column)
    if not found:
        raise Malformed(f"/proc/interrupts has no timer: {interrupts[:200]!r}")
    return [found.get(cpu, 0) for cpu in range(max(found) + 1)]


def uptime_of(text: str) -> float:
    """Seconds, from the text of /proc/uptime. Raises Malformed."""
    found = re.match(r"(\d{1,12}\.\d\d) ", text)
    if not found:
        raise Malformed(f"/proc/uptime: {text[:200]!r}")
    return float(found[1])


def faults_of(text: str) -> int:
    """Of one host, from what dsm-stats or `dsmctl --json status` of one VM print. Raises Malformed."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise Malformed(f"faults: not JSON: {text[:200]!r}") from error
    if isinstance(data, list) and len(data) == 1:
        data = data[0]
    keys = ("waits",) if isinstance(data, dict) and "waits" in data else ("read_faults", "write_faults")
    if not isinstance(data, dict) or any(type(data.get(key)) is not int or data[key] < 0 for key in keys):
        raise Malformed(f"faults: neither dsm-stats nor a status: {text[:200]!r}")
    return sum(data[key] for key in keys)


@dataclasses.dataclass(frozen=True)
class Moment:
    """What was counted until then: ticks by CPU, faults of the hosts, and seconds by the guest's clock."""

    ticks: Sequence[int]
    faults: Sequence[int]
    uptime_s: float = 0.0


def per_tick(
    name: str, hosts: Sequence[str], cpus: Sequence[Sequence[int]], begun: Moment, ended: Moment
) -> list[Metric]:
    """`name.HOST` for each host: faults there in the interval, for each tick of the CPUs that are there, `cpus`."""
    figures = []
    for host, there, first, last in zip(hosts, cpus, begun.faults, ended.faults, strict=True):
        ticks = sum(ended.ticks[cpu] - begun.ticks[cpu] for cpu in there)
        faults = last - first
        if ticks < 0 or faults < 0:
            raise Malformed(f"{name}: {host}: {ticks} ticks and {faults} faults in an interval")
        beside: dict[str, float | str] = {"faults": float(faults), "ticks": float(ticks)}
        if ticks < LEAST_TICKS:
            figures.append(Metric(f"{name}.{host}", None, "1", "lower", beside, note=f"{ticks} ticks are too few"))
        else:
            figures.append(Metric(f"{name}.{host}", faults / ticks, "1", "lower", beside, note=f"goal: {GOAL:g}"))
    return figures


def per_period(name: str, hosts: Sequence[str], hz: int, begun: Moment, ended: Moment) -> list[Metric]:
    """`name.HOST` for each host: faults there for each 1 / `hz` s of the guest, which may do without ticks (NO_HZ_FULL)."""
    periods = (ended.uptime_s - begun.uptime_s) * hz
    if periods < LEAST_TICKS:
        raise Malformed(f"{name}: from {begun.uptime_s} s to {ended.uptime_s} s are {periods:g} periods: too few")
    figures = []
    for host, first, last in zip(hosts, begun.faults, ended.faults, strict=True):
        faults = last - first
        if faults < 0:
            raise Malformed(f"{name}: {host}: {faults} faults in an interval")
        beside: dict[str, float | str] = {"faults": float(faults), "periods": periods}
        figures.append(Metric(f"{name}.{host}", faults / periods, "1", "lower", beside))
    return figures
