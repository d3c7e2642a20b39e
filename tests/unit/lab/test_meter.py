# SPDX-License-Identifier: GPL-2.0
"""Arithmetic of the NUMA meter's counters, and the layout that C and Python share."""

from __future__ import annotations

import struct

import pytest

from lab.errors import LabError
from lab.meter import CPU, HEADER, MAGIC, MAX_CPUS, Counts, parse_counters


def test_layout_is_that_of_meter_c() -> None:
    """meter.c asserts the same sizes at compile time."""
    assert (HEADER.size, CPU.size) == (64, 192)


def counters(samples: dict[tuple[int, int, int], int]) -> bytes:
    """The file's bytes; keys are (cpu, node, 1 for a write)."""
    data = bytearray(HEADER.size + CPU.size * MAX_CPUS)
    HEADER.pack_into(data, 0, MAGIC, 1, 16, 0, 0, 0, 0, 0)
    for (cpu, node, write), count in samples.items():
        struct.pack_into("<Q", data, HEADER.size + CPU.size * cpu + 16 * node + 8 * write, count)
    return bytes(data)


def test_counts_by_cpu_node_and_direction() -> None:
    counts = parse_counters(counters({(0, 0, 0): 5, (0, 1, 1): 2, (3, 1, 0): 7}), [0, 0, 1, 1], 2)
    assert counts.reads == ((5, 0), (0, 0), (0, 0), (0, 7))
    assert counts.writes == ((0, 2), (0, 0), (0, 0), (0, 0))
    assert counts.matrix() == [[5, 2], [0, 0], [0, 0], [0, 7]]


@pytest.mark.parametrize(
    "data", [b"", counters({})[:-1], b"\0" * len(counters({}))], ids=["empty", "short", "no magic"]
)
def test_foreign_file_is_refused(data: bytes) -> None:
    with pytest.raises(LabError, match="meter's magic"):
        parse_counters(data, [0], 1)


COUNTS = Counts((0, 0, 1, 1), ((30, 10), (0, 0), (5, 5), (0, 40)), ((0, 0), (0, 0), (0, 0), (10, 0)))

SHARES: dict[tuple[int, ...] | None, float | None] = {
    None: 25.0,
    (0,): 25.0,
    (1,): None,
    (2,): 50.0,
    (3,): 20.0,
    (2, 3): 25.0,
}


@pytest.mark.parametrize("cpus", SHARES)
def test_remote_share(cpus: tuple[int, ...] | None) -> None:
    assert COUNTS.remote_pct(cpus) == SHARES[cpus]


def test_difference() -> None:
    later = Counts(COUNTS.cpu_node, ((31, 12), (1, 0), (5, 5), (0, 40)), COUNTS.writes)
    assert (later - COUNTS).matrix() == [[1, 2], [1, 0], [0, 0], [0, 0]]
    assert (later - COUNTS).remote() == 2
