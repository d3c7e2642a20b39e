# SPDX-License-Identifier: GPL-2.0
"""What the hypervisor shows: parsers of `xenperf`, `xl info -n` and the `u` debug key.

Plain functions from text to values; text without the expected form raises `Malformed`.
"""

from __future__ import annotations

import dataclasses
import re

from benchmarks.guestview import Malformed

PAGE_KIB = 4


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
