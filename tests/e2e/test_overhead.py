# SPDX-License-Identifier: GPL-2.0
"""Timed programs in the guest while nodes come and go, as `make bench` runs them, but small and once: results stay right."""

from __future__ import annotations

import pytest

from benchmarks.overhead import Bench, Shapes
from benchmarks.overhead_figures import ADD, FINAL, LARGE, REMOVE, SMALL, metrics
from benchmarks.results import write
from lab.elastic_guest import ElasticGuest

CLASSES = {"npb_cg": "S", "npb_mg": "S", "random_access": "W"}
SECONDS = 30.0  # for two nodes to come while it runs, beside a busy guest


@pytest.mark.fresh
@pytest.mark.alone
def test_programs_follow_and_stay_right(four: ElasticGuest) -> None:
    """Two nodes of one CPU come to a guest of two CPUs, and go: each program's team follows, once; its results are known."""
    shapes = Shapes((1, 2), {SMALL: 2, LARGE: 4})
    bench = Bench(four, shapes, CLASSES)
    bench.measure(1, SECONDS)
    for program in bench.programs():
        by_kind = {sample.kind: sample for sample in program.samples}
        assert set(by_kind) == {SMALL, ADD, LARGE, REMOVE}
        for kind in FINAL:
            sizes = [step.threads for step in by_kind[kind].run.steps]
            assert sizes == sorted(sizes, reverse=kind == REMOVE), f"{program.name}, {kind}: it changed more than once"
        # What was on the nodes that went has moved.
        assert by_kind[REMOVE].counted.moved_pages > 0
    assert sorted(four.nodes()) == [0]
    write("overhead_short", [metric for metric in metrics(bench.programs(), shapes.teams) if "mean_pct" not in metric.metric])
