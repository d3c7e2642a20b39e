# SPDX-License-Identifier: GPL-2.0
"""Seconds for a GiB: of each run a line through the times of several sizes, so that what a command takes in any case is apart.

Two sizes always lie on a line: a third one is the first that can show how far the times are from it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sized

from benchmarks.membench import slope

LEAST_SIZES = 3
LEAST_RUNS = 3  # for a ratio: a median of fewer has no spread that says anything
MIB_A_GIB = 1024


@dataclasses.dataclass(frozen=True)
class Line:
    """Of one run: seconds for a GiB, and what a command takes besides."""

    run: int
    seconds_per_gib: float
    fixed_seconds: float

    def seconds(self, mib: float) -> float:
        """Of a command of so much."""
        return self.fixed_seconds + self.seconds_per_gib * mib / MIB_A_GIB


def too_few(runs: Sized) -> str:
    """Why a ratio of these is none, or nothing."""
    return "" if len(runs) >= LEAST_RUNS else f"not measured: only {len(runs)} rounds, it takes {LEAST_RUNS}"


def lines(times: Iterable[tuple[int, float, float]]) -> list[Line]:
    """One for each run that has enough sizes, by the runs' numbers; of (run, MiB, seconds)."""
    runs: dict[int, list[tuple[float, float]]] = {}
    for run, mib, seconds in times:
        runs.setdefault(run, []).append((mib / MIB_A_GIB, seconds))
    return [Line(run, *slope(runs[run])) for run in sorted(runs) if len({gib for gib, _ in runs[run]}) >= LEAST_SIZES]
