# SPDX-License-Identifier: GPL-2.0
"""Measurements of hours: who asks one how it is used, or has mistyped a word, gets an answer and no rack."""

from __future__ import annotations

import importlib

import pytest

from lab.rack import Rack

MODULES = ("balloon", "detach", "extent_profile", "overhead", "scrub")


@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize(("word", "status"), [("--help", 0), ("--rnus=1", 2)])
def test_nothing_is_booted(name: str, word: str, status: int, monkeypatch: pytest.MonkeyPatch) -> None:
    def boot(*_: object, **__: object) -> None:
        pytest.fail("it boots a rack")

    monkeypatch.setattr(Rack, "boot", boot)
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{name}").main([word])
    assert ended.value.code == status
