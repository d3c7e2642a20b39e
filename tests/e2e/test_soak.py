# SPDX-License-Identifier: GPL-2.0
"""A short random soak of each guest, of a fixed seed: `make soak SEED=N OPS=N` does many."""

from __future__ import annotations

import pytest

from benchmarks.soak.logs import Logs
from benchmarks.soak.model import SHAPES
from benchmarks.soak.plan import plan
from benchmarks.soak.play import LabHome, Outcome, Soak, play
from lab.host import Host
from lab.rack import Rack
from tests.e2e.conftest import Stable, rounds

# Plans that have in twelve operations much of what a long one has: tests/unit/soak/test_plan.py says what.
SHORT = (("guest2", 4951), ("guest4", 4729))


@pytest.mark.parametrize(("name", "seed"), SHORT)
def test_a_short_soak(stable: Stable, host: Host, rack: Rack, name: str, seed: int) -> None:
    """After each operation host, books, hypervisor and guest agree, and no program has lost a byte."""
    stable.leave_all()
    shape = SHAPES[name]
    steps = plan(seed, rounds(12, soak=40), shape)
    soak = Soak(LabHome(host, shape), shape, Logs(rack.logs))
    told: list[Outcome] = []
    try:
        assert soak.begin(steps[0].before) == []
        play(soak, steps, told.append)
    finally:
        wrong = [
            f"{outcome.step.number}: {outcome.step.operation}: {outcome.wrong}" for outcome in told if outcome.wrong
        ]
        left = soak.end()
    assert wrong == [] and left == []
    assert len(told) == len(steps)
