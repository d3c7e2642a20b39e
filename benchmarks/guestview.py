# SPDX-License-Identifier: GPL-2.0
"""What a guest shows of its NUMA nodes: parsers of the text that programs and the kernel print in it.

Plain functions from text to values. All text comes from a guest and is not trusted: what does not have the expected
form raises `Malformed`, which names the line.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

MAX_NODES = 64
MAX_CPUS = 4096


class Malformed(ValueError):
    """Text that does not have the form it should have."""


@dataclasses.dataclass(frozen=True)
class Iteration:
    """One iteration of stream_check: its number, its end (seconds), its time, the team's size, the array's sum."""

    n: int
    t: float
    ms: float
    threads: int
    sum: str


@dataclasses.dataclass(frozen=True)
class StreamRun:
    """All that stream_check printed; `checksum` is None as long as it has not ended."""

    pid: int
    mib: int
    iterations: tuple[Iteration, ...]
    checksum: str | None
    wrong_words: int | None


@dataclasses.dataclass(frozen=True)
class Sample:
    """One line of numa_watch. The lists have one entry a node number; `nodes` are those online."""

    t: float
    nodes: tuple[int, ...]
    cpus: tuple[int, ...]
    kib: tuple[int, ...]
    threads: tuple[int, ...]
    running: tuple[int, ...]

    def on(self, what: str, node: int) -> int:
        """Entry `node` of list `what` (cpus, kib, threads, running); 0 for a node that has none."""
        values: tuple[int, ...] = getattr(self, what)
        return values[node] if node < len(values) else 0


@dataclasses.dataclass(frozen=True)
class Node:
    """One node of `numactl -H`; sizes in MiB."""

    number: int
    cpus: tuple[int, ...]
    size_mib: int
    free_mib: int


def _objects(text: str) -> Iterable[dict[str, Any]]:
    """The JSON objects of a text, one a line; a last line without its newline is still being written: left out."""
    for line in text[: text.rfind("\n") + 1].splitlines():
        if not line.strip():
            continue
        try:
            data = json.loads(line)
        except ValueError as error:
            raise Malformed(f"not JSON: {line[:200]!r}") from error
        if not isinstance(data, dict):
            raise Malformed(f"not an object: {line[:200]!r}")
        yield data


def _int(data: Mapping[str, Any], key: str, high: int = 2**63) -> int:
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= high:
        raise Malformed(f"{key} {value!r} is not a number from 0 to {high}")
    return value


def _float(data: Mapping[str, Any], key: str) -> float:
    value = data.get(key)
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value) or value < 0:
        raise Malformed(f"{key} {value!r} is not a finite number")
    return float(value)


def _text(data: Mapping[str, Any], key: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise Malformed(f"{key} {value!r} is not text")
    return value


def _ints(data: Mapping[str, Any], key: str) -> tuple[int, ...]:
    value = data.get(key)
    if not isinstance(value, list) or len(value) > MAX_NODES:
        raise Malformed(f"{key} {value!r} is not a list of at most {MAX_NODES} numbers")
    return tuple(_int({key: item}, key) for item in value)


def parse_stream(text: str) -> StreamRun:
    """The output of stream_check, complete or as far as it has come. Raises Malformed, also without a start line."""
    start: dict[str, Any] | None = None
    result: dict[str, Any] | None = None
    iterations: list[Iteration] = []
    for data in _objects(text):
        event = data.get("event")
        if event == "start":
            start = data
        elif event == "iteration":
            iterations.append(
                Iteration(
                    _int(data, "n"),
                    _float(data, "t"),
                    _float(data, "ms"),
                    _int(data, "threads", MAX_CPUS),
                    _text(data, "sum"),
                )
            )
        elif event == "result":
            result = data
        elif event != "wrong":  # for people: which words were wrong
            raise Malformed(f"unknown event {event!r}")
    if start is None:
        raise Malformed("no start line")
    return StreamRun(
        _int(start, "pid"),
        _int(start, "mib"),
        tuple(iterations),
        _text(result, "checksum") if result else None,
        _int(result, "wrong_words") if result else None,
    )


def parse_samples(text: str) -> list[Sample]:
    """The output of numa_watch. Raises Malformed."""
    samples = []
    for data in _objects(text):
        nodes = _ints(data, "nodes")
        samples.append(
            Sample(
                _float(data, "t"),
                nodes,
                _ints(data, "cpus"),
                _ints(data, "kib"),
                _ints(data, "threads"),
                _ints(data, "running"),
            )
        )
    return samples


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


def parse_numactl(text: str) -> dict[int, Node]:
    """The nodes that `numactl -H` lists, by number. Raises Malformed if there is no node at all."""
    found: dict[int, dict[str, str]] = {}
    for line in text.splitlines():
        match = _NODE_LINE.fullmatch(line.strip())
        if match:
            found.setdefault(int(match[1]), {})[match[2]] = match[3]
    if not found:
        raise Malformed(f"no node in {text[:200]!r}")
    return {number: _node(number, lines) for number, lines in sorted(found.items())}


def _node(number: int, lines: Mapping[str, str]) -> Node:
    try:
        cpus = tuple(int(cpu) for cpu in lines.get("cpus", "").split())
        size = int(lines.get("size", "0 MB").split()[0])
        free = int(lines.get("free", "0 MB").split()[0])
    except (ValueError, IndexError) as error:
        raise Malformed(f"node {number}: {dict(lines)!r}") from error
    return Node(number, cpus, size, free)


_PHASE = re.compile(r"([a-z][a-z0-9_-]{0,31})=(\d{1,12})")


def parse_phases(text: str) -> dict[str, float]:
    """Seconds of each phase, in order, from xenstore's `name=microseconds,...`. Raises Malformed."""
    phases: dict[str, float] = {}
    for item in text.strip().split(",") if text.strip() else ():
        match = _PHASE.fullmatch(item)
        if not match or match[1] in phases:
            raise Malformed(f"phase {item[:60]!r} in {text[:200]!r}")
        phases[match[1]] = int(match[2]) / 1e6
    return phases


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
