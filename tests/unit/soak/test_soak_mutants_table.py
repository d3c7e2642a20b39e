# SPDX-License-Identifier: GPL-2.0
"""The table of mutants fits the soak; the mutants themselves are run by ``make mutants MUTANTS=soak``."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.pipeline import mutants
from lab.pipeline.paths import REPO

TABLE = Path(__file__).with_name("mutants.toml")


@pytest.mark.parametrize("mutant", mutants.load(TABLE), ids=lambda mutant: mutant.breaks)
def test_the_line_is_there(mutant: mutants.Mutant) -> None:
    """Once: else apply() raises."""
    text = (REPO / "benchmarks" / "soak" / mutant.file).read_text(encoding="utf-8")
    assert mutant.apply(text) != text
