# SPDX-License-Identifier: GPL-2.0
"""Node addresses out of QEMU's memory map, and their arithmetic."""

from __future__ import annotations

import pytest

from lab.errors import LabError
from lab.memory_map import Extent, join, node_sizes, parse_mtree

GIB = 1 << 30

# As QEMU 10.0 prints it for q35 with two nodes of 2 GiB, shortened; the second view must not be counted again.
MTREE = """FlatView #0
 AS "virtio-blk-pci", root: bus master container
 Root memory region: (none)
  No rendered FlatView

FlatView #1
 AS "memory", root: system
 AS "cpu-memory-0", root: system
 Root memory region: system
  0000000000000000-000000000009ffff (prio 0, ram): node0
  00000000000a0000-00000000000affff (prio 1, ram): vga.vram alias
  00000000000c0000-00000000000cafff (prio 0, rom): node0 @00000000000c0000
  0000000000100000-000000007fffffff (prio 0, ram): node0 @0000000000100000
  00000000b0000000-00000000bfffffff (prio 0, i/o): pcie-mmcfg-mmio
  0000000100000000-000000017fffffff (prio 0, ram): node1

FlatView #2
 AS "I/O", root: io
 Root memory region: io
  0000000000000000-000000000009ffff (prio 0, ram): node0
"""


def test_reads_the_system_memory_alone() -> None:
    assert parse_mtree(MTREE) == [
        Extent(0, 0xA0000, 0),
        Extent(0x100000, 2 * GIB, 0),
        Extent(4 * GIB, 6 * GIB, 1),
    ]


def test_no_memory_is_an_error() -> None:
    with pytest.raises(LabError, match="no RAM of a NUMA node"):
        parse_mtree(MTREE.replace("node", "m"))


JOIN = {
    "nothing": ([], []),
    "neighbours of one node": ([Extent(4, 8, 0), Extent(0, 4, 0)], [Extent(0, 8, 0)]),
    "neighbours of two nodes": ([Extent(0, 4, 0), Extent(4, 8, 1)], [Extent(0, 4, 0), Extent(4, 8, 1)]),
    "hole between": ([Extent(0, 4, 0), Extent(5, 8, 0)], [Extent(0, 4, 0), Extent(5, 8, 0)]),
    "three in a row": ([Extent(0, 1, 2), Extent(1, 2, 2), Extent(2, 3, 2)], [Extent(0, 3, 2)]),
}


@pytest.mark.parametrize("case", JOIN)
def test_join(case: str) -> None:
    extents, joined = JOIN[case]
    assert join(extents) == joined


def test_overlap_is_an_error() -> None:
    with pytest.raises(LabError, match="overlapping memory"):
        join([Extent(0, 5, 0), Extent(4, 8, 1)])


def test_sizes() -> None:
    assert node_sizes(parse_mtree(MTREE)) == {0: 2 * GIB - 0x60000, 1: 2 * GIB}
