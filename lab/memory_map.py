# SPDX-License-Identifier: GPL-2.0
"""Which physical addresses belong to which NUMA node of an emulated machine.

Not computed from the memory size: a PC has a hole below 4 GiB whose place depends on machine type and size. QEMU is asked
for its flat memory map ("info mtree -f"), where the memory of node N is the RAM block of the backend "node<N>".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from lab.errors import LabError

BACKEND = "node"

# "  0000000000000000-000000000009ffff (prio 0, ram): node0 @0000000000000000 KVM"
_LINE = re.compile(
    r"\s+([0-9a-f]{16})-([0-9a-f]{16}) \(prio -?\d+, ram\): " + BACKEND + r"(\d+)(?: @[0-9a-f]+)?(?: KVM)?\s*$"
)


@dataclass(frozen=True, order=True)
class Extent:
    """Physical addresses start <= a < end, bytes, of one node."""

    start: int
    end: int
    node: int


def parse_mtree(text: str) -> list[Extent]:
    """Node extents from the output of "info mtree -f", in address order, neighbours joined. LabError if there are none.

    Small holes (video memory, ROM shadows below 1 MiB) stay holes: nothing that a guest owns lies there.
    """
    extents = set()
    in_system_memory = False
    for line in text.splitlines():
        if line.startswith("FlatView"):
            in_system_memory = False
        elif line.startswith(' AS "memory"'):
            in_system_memory = True
        elif in_system_memory and (match := _LINE.match(line)):
            extents.add(Extent(int(match[1], 16), int(match[2], 16) + 1, int(match[3])))
    if not extents:
        raise LabError("QEMU's memory map has no RAM of a NUMA node: 'info mtree -f' has changed its format")
    return join(extents)


def join(extents: Iterable[Extent]) -> list[Extent]:
    """Sort and join extents of the same node that touch; LabError if two overlap."""
    result: list[Extent] = []
    for extent in sorted(extents):
        if result and extent.start < result[-1].end:
            raise LabError(f"overlapping memory: {result[-1]} and {extent}")
        if result and (result[-1].end, result[-1].node) == (extent.start, extent.node):
            result[-1] = Extent(result[-1].start, extent.end, extent.node)
        else:
            result.append(extent)
    return result


def node_sizes(extents: Iterable[Extent]) -> dict[int, int]:
    """Bytes of each node."""
    sizes: dict[int, int] = {}
    for extent in extents:
        sizes[extent.node] = sizes.get(extent.node, 0) + extent.end - extent.start
    return sizes
