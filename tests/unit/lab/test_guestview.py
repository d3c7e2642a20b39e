# SPDX-License-Identifier: GPL-2.0
"""What a guest shows of its nodes becomes values; what is malformed is refused, with the line named."""

from __future__ import annotations

import pytest

from lab import guestview
from lab.errors import Malformed

NUMA_MAPS = """00400000 default file=/opt/xenuma/bin/stream_check mapped=2 N0=2 kernelpagesize_kB=4
7f0000000000 default anon=24576 dirty=24576 active=0 N0=12288 N1=12288 kernelpagesize_kB=4
7f1000000000 default anon=3 dirty=3 huge N1=3 kernelpagesize_kB=2048
7ffc00000000 default stack anon=3 dirty=3 N0=3 kernelpagesize_kB=4
"""


def test_numa_maps_counts_each_page_size() -> None:
    assert guestview.parse_numa_maps(NUMA_MAPS) == {0: 4 * (2 + 12288 + 3), 1: 4 * 12288 + 3 * 2048}


def test_numa_maps_of_a_process_without_memory() -> None:
    assert guestview.parse_numa_maps("") == {}


def test_numa_maps_with_an_impossible_node() -> None:
    with pytest.raises(Malformed, match="node 64"):
        guestview.parse_numa_maps("1000 default N64=3 kernelpagesize_kB=4\n")


NUMACTL = """available: 2 nodes (0-1)
node 0 cpus: 0 1
node 0 size: 433 MB
node 0 free: 310 MB
node 1 cpus: 2 3
node 1 size: 504 MB
node 1 free: 500 MB
node distances:
node   0   1
  0:  10  21
  1:  21  10
"""


def test_numactl_lists_nodes_with_cpus_and_sizes() -> None:
    nodes = guestview.parse_numactl(NUMACTL)
    assert sorted(nodes) == [0, 1]
    assert nodes[1] == guestview.GuestNode(1, (2, 3), 504, 500)


def test_numactl_with_a_hole_and_a_node_without_cpus() -> None:
    nodes = guestview.parse_numactl("node 0 cpus: 0\nnode 0 size: 10 MB\nnode 0 free: 1 MB\nnode 2 cpus:\nnode 2 size: 9 MB\n")
    assert sorted(nodes) == [0, 2]
    assert nodes[2].cpus == () and nodes[2].free_mib == 0


@pytest.mark.parametrize("text", ["", "No NUMA available on this system\n", "node 0 cpus: zero\n"])
def test_numactl_malformed(text: str) -> None:
    with pytest.raises(Malformed):
        guestview.parse_numactl(text)


@pytest.mark.parametrize(("text", "want"), [("", ()), ("0\n", (0,)), ("0-3,6", (0, 1, 2, 3, 6)), ("5-5", (5,))])
def test_lists(text: str, want: tuple[int, ...]) -> None:
    assert guestview.parse_list(text) == want


@pytest.mark.parametrize("text", ["x", "3-1", "0-4096", "1,,2", "-1", "0-99999999999"])
def test_malformed_lists_are_refused(text: str) -> None:
    with pytest.raises(Malformed):
        guestview.parse_list(text)


INTERRUPTS = """           CPU0       CPU1       CPU3
  0:       4711          0          7   xen-percpu    -virq      timer0
NMI:          1         22        333   Non-maskable interrupts
LOC:          0          0          0   Local timer interrupts
"""


def test_nmis() -> None:
    assert guestview.parse_nmis(INTERRUPTS) == {0: 1, 1: 22, 3: 333}
    for text in ("", INTERRUPTS.replace("NMI", "IRQ"), INTERRUPTS.replace("CPU3", ""), INTERRUPTS.replace(" 22 ", "")):
        with pytest.raises(Malformed, match="/proc/interrupts"):
            guestview.parse_nmis(text)
