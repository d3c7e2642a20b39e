# SPDX-License-Identifier: GPL-2.0
"""What the hypervisor shows by way of dom0: its nodes, free memory to the page, domains that die, performance counters.

First the parsers of `xenperf`, `xl info -n`, `xl list` and the `u` debug key: plain functions from text to values, which raise
`Malformed` for text without the expected form. Then what asks dom0. No state is kept: what is answered is what is so.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Mapping

from lab.command import Run, checked
from lab.errors import Malformed
from lab.patience import scaled

SETTLED = 3  # equal answers in a row
REST = 0.25  # seconds between two questions to the hypervisor


@dataclasses.dataclass(frozen=True)
class HostNode:
    """One physical node of `xl info -n`; sizes in MiB."""

    number: int
    size_mib: int
    free_mib: int
    distances: tuple[int, ...]


_COUNTER = re.compile(r"(.+?)\s+T=\s*(\d+)\b.*")


def parse_xenperf(text: str) -> dict[str, int]:
    """The total of each software performance counter. Raises Malformed if there is none (Xen without PERF_COUNTERS)."""
    counters: dict[str, int] = {}
    for line in text.splitlines():
        match = _COUNTER.fullmatch(line.strip())
        if match:
            counters[match[1]] = int(match[2])
    if not counters:
        raise Malformed(f"no performance counter in {text[:200]!r}")
    return counters


def counted(before: dict[str, int], after: dict[str, int], name: str) -> int:
    """How far counter `name` went from `before` to `after`. Counters are 32 bits wide and wrap.

    Raises Malformed when the hypervisor has no such counter.
    """
    if name not in before or name not in after:
        raise Malformed(f"the hypervisor has no counter {name!r}; it has {', '.join(sorted(after))}")
    return (after[name] - before[name]) % 2**32


_INFO_NODE = re.compile(r"\s*(\d+):\s+(\d+)\s+(\d+)\s+(\d+(?:,\d+)*)\s*")


def parse_xl_info(text: str) -> dict[int, HostNode]:
    """The physical nodes of `xl info -n`, by number. Raises Malformed if there is none."""
    nodes: dict[int, HostNode] = {}
    table = False
    for line in text.splitlines():
        if line.startswith("numa_info"):
            table = True
        match = _INFO_NODE.fullmatch(line) if table else None
        if match:
            distances = tuple(int(d) for d in match[4].split(","))
            nodes[int(match[1])] = HostNode(int(match[1]), int(match[2]), int(match[3]), distances)
    if not nodes:
        raise Malformed(f"no numa_info in {text[:200]!r}")
    return nodes


_HEAP = re.compile(r"NODE(\d+) start->\S+ size->\d+ free->(\d+)")


_LISTED = re.compile(r"^.*\s(\d+)\s+\d+\s+\d+\s+[r-][b-][p-][s-][c-]([d-])\s+[\d.]+\s*$", re.MULTILINE)


def parse_dying(text: str) -> list[int]:
    """The domains that `xl list` shows as dying: destroyed, but dom0's back ends still hold pages of them.

    Raises Malformed if there is no domain at all in the text.
    """
    listed = _LISTED.findall(text)
    if not listed:
        raise Malformed(f"xl list: {text[:300]!r}")
    return [int(domid) for domid, dying in listed if dying == "d"]


def parse_heap(text: str) -> dict[int, int]:
    """Free pages (4 KiB) a physical node, from what `xl debug-keys u` puts into `xl dmesg`: the exact count.

    The last report in the text counts. Raises Malformed if there is none.
    """
    free = {int(node): int(pages) for node, pages in _HEAP.findall(text)}
    if not free:
        raise Malformed("no heap report in the hypervisor's log")
    return free


# The hypervisor's heap, by way of its debug key. One command: an emulated dom0 spends more on a login than on these three.
HEAP = "xl dmesg -c >/dev/null && xl debug-keys u && xl dmesg"
DOMAINS_AND_HEAP = f"xl list && echo --- && {HEAP}"


def host_free_pages(dom0: Run) -> dict[int, int]:
    """Free pages of each physical node, exactly."""
    return parse_heap(checked(dom0, HEAP))


def settled_free_pages(dom0: Run, seconds: float = 30.0) -> dict[int, int]:
    """The same, once nothing changes it any more: what remains of a destroyed domain is freed a little later.

    dom0's back ends let go of its pages when they hear of its end, and Xen frees the domain's own structures after an
    RCU grace period, of which dom0 is told nothing. So this asks until no domain is dying and three answers in a row
    agree. Raises TimeoutError, with what it saw last, after `seconds`.
    """
    seconds = scaled(seconds)
    began = time.monotonic()
    last: dict[int, int] = {}
    alike = 0
    while alike < SETTLED:
        domains, _, heap = checked(dom0, DOMAINS_AND_HEAP).partition("\n---\n")
        dying, now = parse_dying(domains), parse_heap(heap)
        alike = 0 if dying else alike + 1 if now == last else 1
        if alike < SETTLED and time.monotonic() - began > seconds:
            raise TimeoutError(
                f"the host is not at rest after {seconds:.0f} s: {last}, then {now} pages free, dying domains: {dying}"
            )
        last = now
    return last


def pages_off(dom0: Run, wanted: Mapping[int, int], seconds: float = 15.0) -> dict[int, int]:
    """By how many pages the free memory of each physical node is off `wanted`, of those where it is: {} if of none.

    What an operation needs for itself, an event channel of the tool or a page on its way through a back end, is freed a
    little after it: this asks again, for up to `seconds`, until not one page is off.
    """
    seconds = scaled(seconds)
    began = time.monotonic()
    while True:
        now = host_free_pages(dom0)
        off = {node: now[node] - pages for node, pages in wanted.items() if now[node] != pages}
        if not off or time.monotonic() - began > seconds:
            return off
        time.sleep(REST)


def counters(dom0: Run) -> dict[str, int]:
    """The hypervisor's performance counters."""
    return parse_xenperf(checked(dom0, "xenperf"))
