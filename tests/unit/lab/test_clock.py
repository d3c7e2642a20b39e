# SPDX-License-Identifier: GPL-2.0
"""The clock of a guest, next to ours."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lab import clock as module
from lab.clock import Clock
from lab.command import Done


def test_the_quickest_answer_sets_the_clock(monkeypatch: pytest.MonkeyPatch) -> None:
    """The guest's time is that of the middle of the question; half of how long it took may be wrong."""
    ours = iter([100.0, 104.0, 200.0, 202.0, 300.0, 308.0, 400.0])
    theirs = iter(["153.5", "251.25", "351.0"])
    monkeypatch.setattr(module, "time", SimpleNamespace(time=lambda: next(ours)))
    clock = Clock.compare(lambda command, timeout=60.0: Done(0, next(theirs) + "\n"))
    assert clock == Clock(50.25, 1.0)
    assert clock.now() == 450.25
