# SPDX-License-Identifier: GPL-2.0
"""Limits of the lab grow with what else the host has to do; waits end, or say what they waited for."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from lab import patience
from lab.patience import VARIABLE, scaled, wait_for


def test_limits_are_multiplied(monkeypatch: pytest.MonkeyPatch) -> None:
    for text, wanted in (("", 60.0), ("1", 60.0), ("2", 120.0), ("2.5", 150.0)):
        monkeypatch.setenv(VARIABLE, text)
        assert scaled(60) == wanted
    monkeypatch.delenv(VARIABLE)
    assert scaled(60) == 60.0


@pytest.mark.parametrize("text", ["0", "0.5", "-2", "two", "inf", "nan"])
def test_what_is_no_factor_is_refused(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    """A limit is never shortened, and never taken away."""
    monkeypatch.setenv(VARIABLE, text)
    with pytest.raises(ValueError, match=rf"{VARIABLE}={text}: want a number of at least 1"):
        scaled(60)


def test_waiting_ends_or_says_what_it_waited_for() -> None:
    answers = iter([False, False, True])
    assert wait_for("it", 5, lambda: next(answers), interval=0.001) < 5
    with pytest.raises(TimeoutError, match="the moon: not so"):
        wait_for("the moon", 0.01, lambda: False, interval=0.001)


def test_waits_are_longer_where_racks_run_side_by_side(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is not given up before, and the message has the real limit."""
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds

    monkeypatch.setattr(patience, "time", SimpleNamespace(monotonic=lambda: passed[0], sleep=sleep))
    monkeypatch.setenv("XENUMA_TIME_SCALE", "3")
    assert wait_for("it", 10, lambda: passed[0] >= 29) == 29
    with pytest.raises(TimeoutError, match="it: not so after 30 s"):
        wait_for("it", 10, lambda: False)
