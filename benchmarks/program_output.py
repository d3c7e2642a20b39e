# SPDX-License-Identifier: GPL-2.0
"""What our programs print in a guest: parsers of the lines of stream_check, of numa_watch and of those with timed_run.h.

Plain functions from text to values. All text comes from a guest and is not trusted: what does not have the expected
form raises `Malformed`, which names the line.
"""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from typing import Any

from lab.errors import Malformed
from lab.guestview import MAX_CPUS, MAX_NODES


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
class Step:
    """One iteration of a timed program: its end (seconds), its time, the team's size, the CPU time of all until then."""

    n: int
    t: float
    ms: float
    threads: int
    user_s: float
    system_s: float


@dataclasses.dataclass(frozen=True)
class Outcome:
    """A timed program's last words; times and faults are those of its iterations."""

    verified: bool
    rounds: int
    iterations: int
    seconds: float
    user_s: float
    system_s: float
    user_ticks_s: float  # the same by the kernel's ticks, as /proc/stat counts
    system_ticks_s: float
    gap_ms: float
    minor_faults: int
    major_faults: int


@dataclasses.dataclass(frozen=True)
class TimedRun:
    """All that a program with timed_run.h printed; `outcome` is None as long as it has not ended."""

    program: str
    problem: str  # its class, a letter
    bytes: int  # that the iterations touch
    steps: tuple[Step, ...]
    wrong: tuple[str, ...]  # what was checked and is not as it should be
    outcome: Outcome | None


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


def _bool(data: Mapping[str, Any], key: str) -> bool:
    value = data.get(key)
    if not isinstance(value, bool):
        raise Malformed(f"{key} {value!r} is neither true nor false")
    return value


def _outcome(data: Mapping[str, Any]) -> Outcome:
    return Outcome(
        _bool(data, "verified"),
        _int(data, "rounds"),
        _int(data, "iterations"),
        _float(data, "seconds"),
        _float(data, "user_s"),
        _float(data, "system_s"),
        _float(data, "user_ticks_s"),
        _float(data, "system_ticks_s"),
        _float(data, "gap_ms"),
        _int(data, "minor_faults"),
        _int(data, "major_faults"),
    )


def parse_timed(text: str) -> TimedRun:
    """The output of a program with timed_run.h, complete or as far as it has come.

    Raises Malformed, also without a start line, with iterations missing, behind a result, and for a result that says
    something else than the lines before it.
    """
    start: dict[str, Any] | None = None
    outcome: Outcome | None = None
    steps: list[Step] = []
    wrong: list[str] = []
    for data in _objects(text):
        event = data.get("event")
        if outcome is not None or (start is None) != (event == "start"):
            raise Malformed(f"unexpected event {event!r}")
        if event == "start":
            start = data
        elif event == "iteration":
            steps.append(
                Step(
                    _int(data, "n"),
                    _float(data, "t"),
                    _float(data, "ms"),
                    _int(data, "threads", MAX_CPUS),
                    _float(data, "user_s"),
                    _float(data, "system_s"),
                )
            )
            if steps[-1].n != len(steps):
                raise Malformed(f"iteration {steps[-1].n} follows {len(steps) - 1}")
        elif event == "check":
            if not _bool(data, "right"):
                wrong.append(f"{_text(data, 'what')}: {_text(data, 'got')}, wanted {_text(data, 'wanted')}")
        elif event == "result":
            outcome = _outcome(data)
            if outcome.iterations != len(steps) or outcome.verified != (not wrong):
                raise Malformed(f"{outcome} after {len(steps)} iterations and {len(wrong)} wrong results")
        else:
            raise Malformed(f"unknown event {event!r}")
    if start is None:
        raise Malformed("no start line")
    return TimedRun(_text(start, "program"), _text(start, "class"), _int(start, "bytes"), tuple(steps), tuple(wrong), outcome)
