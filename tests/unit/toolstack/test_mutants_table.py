# SPDX-License-Identifier: GPL-2.0
"""The table of mutants fits the toolstack; the mutants themselves are run by ``make mutants MUTANTS=toolstack``."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.pipeline import mutants

TABLE = Path(__file__).with_name("mutants.toml")
TOOLS = Path(__file__).resolve().parents[3] / "toolstack" / "overlay" / "tools"


@pytest.mark.parametrize("mutant", mutants.load(TABLE), ids=lambda mutant: mutant.breaks)
def test_the_line_is_there(mutant: mutants.Mutant) -> None:
    """Once: else apply() raises."""
    text = (TOOLS / mutant.file).read_text(encoding="utf-8")
    assert mutant.apply(text) != text
