# SPDX-License-Identifier: GPL-2.0
"""Made-up runs of timed programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from benchmarks.overhead_figures import ADD, LARGE, REMOVE, SMALL, Counters, Sample
from benchmarks.program_output import parse_timed

TEAMS = {SMALL: 2, LARGE: 4}
SIZES = {SMALL: [2] * 10, ADD: [2] * 3 + [4] * 7, LARGE: [4] * 10, REMOVE: [4] * 4 + [2] * 6}


def said(  # a program's output
    program: str = "p",
    sizes: Sequence[int] = (2, 2),
    *,
    seconds: float = 10.0,
    cpu_s: float = 16.0,
    right: bool = True,
    rounds: int = 1,
    rests: Mapping[int, float] | None = None,  # seconds that are not timed, before these iterations
    problem: str = "S",
) -> str:
    each = seconds / len(sizes)
    lines: list[dict[str, object]] = [{"event": "start", "program": program, "class": problem, "pid": 1, "bytes": 1}]
    for n, size in enumerate(sizes, 1):
        done = n / len(sizes)
        lines.append(
            {"event": "iteration", "n": n, "t": each * n + sum(rest for at, rest in (rests or {}).items() if at <= n)}
            | {"ms": each * 1e3, "threads": size}
            | {"user_s": cpu_s * done * 0.75, "system_s": cpu_s * done * 0.25}
        )
    lines.append({"event": "check", "what": "sum", "got": "1", "wanted": "1" if right else "2", "right": right})
    lines.append(
        {"event": "result", "verified": right, "rounds": rounds, "iterations": len(sizes), "seconds": seconds}
        | {"user_s": cpu_s * 0.75, "system_s": cpu_s * 0.25, "gap_ms": each * 1e3 + 5, "minor_faults": 900}
        | {"user_ticks_s": cpu_s * 11 / 16, "system_ticks_s": cpu_s * 3.5 / 16, "major_faults": 100, "bytes": 1}
    )
    return "".join(json.dumps(line) + "\n" for line in lines)


def sample(
    kind: str, seconds: float, number: int = 0, *, moved: int = 0, operation_s: float = 0.0, cpu_s: float = 16.0
) -> Sample:
    run = parse_timed(said(sizes=SIZES[kind], seconds=seconds, cpu_s=cpu_s))
    return Sample(number, kind, run, Counters(cpu_s * 0.25 + 1.5, moved, cpu_s * 0.75 + 2.0, 1.25), operation_s)
