# SPDX-License-Identifier: GPL-2.0
"""What the hypervisor prints becomes values."""

from __future__ import annotations

import pytest

from benchmarks import xenview
from benchmarks.guestview import Malformed

XENPERF = """exceptions                          T=         0
hypercalls                          T=      5120         12       4000
p2m superpage removals              T=       184        184
apic timer interrupts               T=4294967295
"""
XL_INFO = """host                   : dom0
numa_info              :
node:    memsize    memfree    distances
   0:      2048        901      10,21
   1:      2048       1990      21,10
"""


def test_counters() -> None:
    counters = xenview.parse_xenperf(XENPERF)
    assert counters["p2m superpage removals"] == 184
    assert counters["hypercalls"] == 5120


def test_a_hypervisor_without_counters_is_said_plainly() -> None:
    with pytest.raises(Malformed, match="no performance counter"):
        xenview.parse_xenperf("Error getting number of perf counters: 38 (Function not implemented)\n")


def test_a_counter_that_wrapped_and_one_that_is_not_there() -> None:
    before = {"apic timer interrupts": 2**32 - 1}
    assert xenview.counted(before, {"apic timer interrupts": 4}, "apic timer interrupts") == 5
    with pytest.raises(Malformed, match="no counter 'frees'"):
        xenview.counted(before, before, "frees")


def test_nodes_of_xl_info() -> None:
    nodes = xenview.parse_xl_info(XL_INFO)
    assert nodes[1] == xenview.HostNode(1, 2048, 1990, (21, 10))
    with pytest.raises(Malformed):
        xenview.parse_xl_info("host : dom0\n")


def test_the_last_heap_report_counts() -> None:
    text = "(XEN) NODE0 start->0 size->524288 free->7\n(XEN) NODE0 start->0 size->524288 free->201\n"
    text += "(XEN) NODE1 start->1048576 size->524288 free->500000\n"
    assert xenview.parse_heap(text) == {0: 201, 1: 500000}
    with pytest.raises(Malformed):
        xenview.parse_heap("(XEN) nothing\n")
