# SPDX-License-Identifier: GPL-2.0
"""Guests whose administrator has set memory options of the kernel: they are obeyed, and nodes come and go all the same."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest

from lab.command import Run, checked
from lab.elastic_guest import ElasticGuest
from lab.hypervisor import pages_off, settled_free_pages
from tests.e2e.conftest import CONFIGS, Stable

pytestmark = pytest.mark.fresh

NODE_KIB = 512 * 1024
STRUCT_PAGE = 64  # bytes of one, on x86-64


@pytest.fixture
def without_memmap_on_memory(stable: Stable) -> Iterator[ElasticGuest]:
    """The two-node guest, with struct pages wherever the kernel has room for them."""
    stable.leave_all()
    options = '"console=hvc0 loglevel=5 memory_hotplug.memmap_on_memory=0"'
    guest = stable.host.start_guest(CONFIGS / "guest2.cfg", {"extra": options})
    yield guest
    guest.destroy()


def test_memmap_on_memory_is_off(without_memmap_on_memory: ElasticGuest, dom0: Run) -> None:
    """The driver would switch it on, and the command line goes before that: all of the node's memory can be used then."""
    guest = without_memmap_on_memory
    assert checked(guest.guest, "cat /sys/module/memory_hotplug/parameters/memmap_on_memory").strip() == "N"
    before = settled_free_pages(dom0)
    for _ in range(2):
        assert guest.attach(1).status == 0
        text = checked(guest.guest, "cat /sys/devices/system/node/node1/meminfo")
        total = re.search(r"MemTotal:\s+(\d+) kB", text)
        assert total and int(total[1]) == NODE_KIB, text
        assert guest.detach(1).status == 0
        assert sorted(guest.nodes()) == [0]
        assert pages_off(dom0, before) == {}


def test_memmap_on_memory_is_on_by_itself(pair: ElasticGuest) -> None:
    """The other way round: nobody has said anything, and the node brings its struct pages along."""
    assert checked(pair.guest, "cat /sys/module/memory_hotplug/parameters/memmap_on_memory").strip() == "Y"
    assert pair.attach(1).status == 0
    text = checked(pair.guest, "cat /sys/devices/system/node/node1/meminfo")
    total = re.search(r"MemTotal:\s+(\d+) kB", text)
    assert total and int(total[1]) == NODE_KIB - NODE_KIB // 4 * STRUCT_PAGE // 1024, text
    assert pair.detach(1).status == 0
