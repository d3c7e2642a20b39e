# SPDX-License-Identifier: GPL-2.0
"""What a guest shows of its NUMA nodes: parsers of the text of numactl and of the kernel's files.

Plain functions from text to values. All text comes from a guest and is not trusted: what does not have the expected
form raises `Malformed`, which names the line.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping

from lab.errors import Malformed

MAX_NODES = 64
MAX_CPUS = 4096


@dataclasses.dataclass(frozen=True)
class GuestNode:
    """One node of `numactl -H`; sizes in MiB."""

    number: int
    cpus: tuple[int, ...]
    size_mib: int
    free_mib: int


_MAPPING = re.compile(r"(?:^|\s)N(\d+)=(\d+)(?=\s|$)")
_PAGE_SIZE = re.compile(r"\bkernelpagesize_kB=(\d+)\b")


def parse_numa_maps(text: str) -> dict[int, int]:
    """Resident KiB a node, from /proc/PID/numa_maps. A file name that looks like an item cannot be told apart."""
    resident: dict[int, int] = {}
    for line in text.splitlines():
        size = _PAGE_SIZE.search(line)
        for node, pages in _MAPPING.findall(line):
            if int(node) >= MAX_NODES:
                raise Malformed(f"node {node} in {line[:200]!r}")
            resident[int(node)] = resident.get(int(node), 0) + int(pages) * (int(size[1]) if size else 4)
    return resident


_NODE_LINE = re.compile(r"node (\d+) (cpus|size|free):\s*(.*)")


def parse_numactl(text: str) -> dict[int, GuestNode]:
    """The nodes that `numactl -H` lists, by number. Raises Malformed if there is no node at all."""
    found: dict[int, dict[str, str]] = {}
    for line in text.splitlines():
        match = _NODE_LINE.fullmatch(line.strip())
        if match:
            found.setdefault(int(match[1]), {})[match[2]] = match[3]
    if not found:
        raise Malformed(f"no node in {text[:200]!r}")
    return {number: _node(number, lines) for number, lines in sorted(found.items())}


def _node(number: int, lines: Mapping[str, str]) -> GuestNode:
    try:
        cpus = tuple(int(cpu) for cpu in lines.get("cpus", "").split())
        size = int(lines.get("size", "0 MB").split()[0])
        free = int(lines.get("free", "0 MB").split()[0])
    except (ValueError, IndexError) as error:
        raise Malformed(f"node {number}: {dict(lines)!r}") from error
    return GuestNode(number, cpus, size, free)


def parse_list(text: str, high: int = MAX_CPUS) -> tuple[int, ...]:
    """The numbers of a kernel list, `0-3,6`, all below `high`. Raises Malformed."""
    numbers: list[int] = []
    for part in text.strip().split(",") if text.strip() else ():
        match = re.fullmatch(r"(\d{1,9})(?:-(\d{1,9}))?", part)
        if not match:
            raise Malformed(f"{part[:60]!r} in list {text[:200]!r}")
        low, last = int(match[1]), int(match[2] or match[1])
        if last < low or last >= high:
            raise Malformed(f"{part!r} in list {text[:200]!r}: not below {high}")
        numbers += range(low, last + 1)
    return tuple(numbers)


def parse_nmis(text: str) -> dict[int, int]:
    """How many NMIs each CPU that is online has had, from /proc/interrupts. Raises Malformed."""
    cpus = re.match(r" *((?:CPU\d{1,4} *)+)\n", text)
    counts = re.search(r"^ *NMI:((?: +\d+)+) ", text, re.M)
    names = cpus[1].split() if cpus else []
    found = counts[1].split() if counts else []
    if not names or len(names) != len(found):
        raise Malformed(f"/proc/interrupts: {text[:300]!r}")
    return {int(name.removeprefix("CPU")): int(count) for name, count in zip(names, found, strict=True)}
