# SPDX-License-Identifier: GPL-2.0
"""What is asked of a guest after a fault that it survives: pages come again, and not only before the fault."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from lab.command import Done
from tests.e2e import far_faults
from tests.e2e.far_faults import Survived, survives

SITE: Any = SimpleNamespace(home="alpha", other="beta", both=("alpha", "beta"), hosts=("alpha", "beta"))


class Played:
    """Pages come until the fault begins, `late` more while it is begun, and `each` with each look after it."""

    def __init__(self, each: int, late: int = 400, during: int = 0) -> None:
        self.each, self.late, self.during = each, late, during
        self.faults, self.over = 1000, False

    @contextlib.contextmanager
    def begin(self, site: object) -> Iterator[None]:
        """The fault."""
        self.faults += self.late
        yield
        self.over = True

    def count(self, host: str) -> int:
        """Misses of the home until now."""
        assert host == "alpha"
        self.faults += self.each if self.over else self.during
        return self.faults


def asked(monkeypatch: pytest.MonkeyPatch, played: Played, waits: bool, memcheck: int = 0) -> None:
    monkeypatch.setattr(far_faults, "faults", played.count)
    monkeypatch.setattr(far_faults, "status", lambda host: {"state": "running"})
    monkeypatch.setattr(far_faults, "said", lambda hosts: "")
    guest: Any = SimpleNamespace(
        listed=lambda: {1: {"host": {"link": "up"}}}, run=lambda command, timeout=60.0: Done(memcheck, "")
    )
    survives(SITE, guest, Survived("a fault", played.begin, 0.0, waits), 0.5)


@pytest.mark.parametrize("waits", [False, True])
def test_a_guest_that_goes_on(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    asked(monkeypatch, Played(each=30, during=0 if waits else 5), waits)


@pytest.mark.parametrize("waits", [False, True])
def test_a_guest_whose_pages_never_come_again(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    """However many came while the fault was on its way."""
    with pytest.raises(TimeoutError, match="pages come again"):
        asked(monkeypatch, Played(each=0, during=0 if waits else 5), waits)


def test_a_fault_that_met_no_traffic(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="met no traffic"):
        asked(monkeypatch, Played(each=30, late=0), waits=False)


def test_a_program_that_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(AssertionError, match="memcheck ended"):
        asked(monkeypatch, Played(each=30), waits=True, memcheck=1)
