# SPDX-License-Identifier: GPL-2.0
"""Limits of the lab grow with what else the host has to do."""

from __future__ import annotations

import pytest

from lab.patience import VARIABLE, scaled


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
