# SPDX-License-Identifier: GPL-2.0
"""A topology page as the guest's kernel writes it, for programs that run without that kernel: the layout of version 1.

It is that of `struct xtopo_page`, linux-guest/overlay/include/uapi/xen/topology.h; a unit test compares them.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence

MAGIC = 0x3130304F504F5458
ABI = 1
PAGE_SIZE = 4096
STABLE, GROWING, DRAINING = 0, 1, 2
NO_NODE = 0xFF
MAX_NODES = 64
MAX_CPUS = 4096  # bits in cpus_usable
MAX_CPU_NODE = 2048  # CPUs whose node is listed

# Where each field begins, in bytes.
OFFSET = {
    "magic": 0,
    "version": 8,
    "seq": 16,
    "phase": 20,
    "nr_cpus_possible": 24,
    "nr_nodes_possible": 28,
    "reset_nr": 32,
    "abi": 36,
    "nodes_online": 40,
    "nodes_draining": 56,
    "cpus_usable": 72,
    "node_mem_mb": 584,
    "node_bw": 840,
    "cpu_node": 968,
}
_HEAD = struct.Struct("<QQIIIIiI4Q")  # all before cpus_usable


def topology_page(usable: int, node_of_cpu: Sequence[int], *, reset_nr: int = 0) -> bytearray:
    """A page that is whole, stable and of version 1; all its nodes are online.

    `usable` is a mask of CPUs, also of such as are not possible; `node_of_cpu` has the node of each possible CPU; `reset_nr` is
    the number of numa_reset(2). Raises ValueError for more CPUs or nodes than a page can hold.
    """
    nodes = max(node_of_cpu, default=0) + 1
    if usable >> MAX_CPUS or len(node_of_cpu) > MAX_CPUS or nodes > MAX_NODES:
        raise ValueError(
            f"usable {usable:#x}, {len(node_of_cpu)} CPUs, {nodes} nodes: a page has {MAX_CPUS} CPUs, {MAX_NODES} nodes"
        )
    page = bytearray(PAGE_SIZE)
    online = (1 << nodes) - 1
    _HEAD.pack_into(page, 0, MAGIC, 1, 0, STABLE, len(node_of_cpu), nodes, reset_nr, ABI, online, 0, 0, 0)
    page[OFFSET["cpus_usable"] : OFFSET["node_mem_mb"]] = usable.to_bytes(MAX_CPUS // 8, "little")
    listed = bytes(node_of_cpu[:MAX_CPU_NODE]).ljust(MAX_CPU_NODE, bytes([NO_NODE]))
    page[OFFSET["cpu_node"] : OFFSET["cpu_node"] + MAX_CPU_NODE] = listed
    return page
