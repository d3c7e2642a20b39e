# SPDX-License-Identifier: GPL-2.0
"""What dsm_torture prints in a guest, and the figures of it: what was lost, torn or old, and how often it waited for a page."""

from __future__ import annotations

import dataclasses
import functools
import json
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.json_lines import count, objects
from benchmarks.results import Metric
from lab.errors import Malformed

_count = functools.partial(count, "dsm_torture")

OPERATIONS = (
    "read", "write", "add", "exchange", "stretch", "record", "pipe", "file", "vector", "drop", "protect", "remap", "pressure",
    "migrate", "hypercall",
)  # fmt: skip
LINES = 32  # about what is wrong, at most


@dataclasses.dataclass(frozen=True)
class Wrong:
    """What one operation has found, and what had to be there. `number`: of the thread's operation; its seed repeats it."""

    operation: str
    thread: int
    number: int
    page: int
    what: str
    found: int
    expected: int


@dataclasses.dataclass(frozen=True)
class Operation:
    """All of one kind: how many, how many of them waited, how often something was wrong."""

    operation: str
    count: int
    slow: int
    wrong: int


@dataclasses.dataclass(frozen=True)
class Run:
    """A run that has ended. `again`: calls of Xen that were made once more, since a page was not mapped."""

    turns: int
    operations: Sequence[Operation]
    wrongs: Sequence[Wrong]
    again: int

    @property
    def wrong(self) -> int:
        """Over all operations."""
        return sum(each.wrong for each in self.operations)


def _name(data: Mapping[str, Any]) -> str:
    name = data.get("operation")
    if name not in OPERATIONS:
        raise Malformed(f"dsm_torture: unexpected operation {name!r}")
    return str(name)


def _wrong(data: Mapping[str, Any]) -> Wrong:
    what = data.get("what")
    if not isinstance(what, str) or not what:
        raise Malformed(f"dsm_torture: what is wrong: {what!r}")
    thread, number, page, found, expected = (
        _count(data, key) for key in ("thread", "number", "page", "found", "expected")
    )
    return Wrong(_name(data), thread, number, page, what, found, expected)


def _operation(data: Mapping[str, Any]) -> Operation:
    found = Operation(_name(data), _count(data, "count"), _count(data, "slow"), _count(data, "wrong"))
    if found.slow > found.count:
        raise Malformed(f"dsm_torture: more than all: {found}")
    return found


def parse(text: str) -> Run:
    """The output of a run that has ended, with what was wrong. Raises Malformed."""
    operations: list[Operation] = []
    wrongs: list[Wrong] = []
    turns = None
    again = 0
    for data in objects("dsm_torture", text):
        line = json.dumps(data)
        if turns is not None:
            raise Malformed(f"dsm_torture: unexpected line {line[:200]!r}")
        if data.get("event") == "wrong":
            wrongs.append(_wrong(data))
        elif data.get("event") == "operation":
            operations.append(_operation(data))
        elif data.get("event") == "result":
            turns, again = _count(data, "turns"), _count(data, "again")
            want = {"operations": sum(each.count for each in operations), "wrong": sum(each.wrong for each in operations)}
            if {key: _count(data, key) for key in want} != want:
                raise Malformed(f"dsm_torture: its sums are {line[:200]!r}, those of its lines {want}")
        else:
            raise Malformed(f"dsm_torture: unexpected line {line[:200]!r}")
    if turns is None:
        raise Malformed("dsm_torture: it has not ended: no result")
    names = [each.operation for each in operations]
    if names != [name for name in OPERATIONS if name in names]:
        raise Malformed(f"dsm_torture: operations {names}")
    found = Run(turns, operations, wrongs, again)
    if min(found.wrong, LINES) != len(wrongs):
        raise Malformed(f"dsm_torture: {found.wrong} times something was wrong, and {len(wrongs)} lines about it")
    return found


def metrics(run: Run) -> list[Metric]:
    """torture.wrong, torture.operations, torture.slow: operations that waited for a page, by operation beside it, and
    torture.again: calls of Xen that were made once more.
    """
    note = "; ".join(f"{each.operation} {each.what}: {each.found:#x}, not {each.expected:#x}" for each in run.wrongs)
    return [
        Metric("torture.wrong", float(run.wrong), "1", "lower", {"turns": float(run.turns)}, note=note),
        Metric(
            "torture.operations", float(sum(each.count for each in run.operations)), "1", "higher",
            {each.operation: float(each.count) for each in run.operations},
        ),
        Metric(
            "torture.slow", float(sum(each.slow for each in run.operations)), "1", "higher",
            {each.operation: float(each.slow) for each in run.operations},
        ),
        Metric("torture.again", float(run.again), "1", "lower", note="of hypercall: a page of it was not mapped"),
    ]  # fmt: skip
