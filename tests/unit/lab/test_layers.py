# SPDX-License-Identifier: GPL-2.0
"""Tests stand on benchmarks, benchmarks on the lab, and the lab on its pipeline; never the other way round.

The pipeline shares with the lab how long it waits.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from lab.pipeline.paths import REPO

# Each folder, and what of this repository its modules may import; the longest that fits counts.
MAY_IMPORT = {
    "lab/pipeline": ("lab.pipeline", "lab.patience"),
    "lab/images": ("lab.images",),
    "lab": ("lab",),
    "benchmarks": ("benchmarks", "lab"),
    "tests": ("tests", "benchmarks", "lab"),
}


def imported(path: Path) -> set[str]:
    """All modules of this repository that a file imports, also within its functions."""
    package = path.relative_to(REPO).parent.parts
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = package[: len(package) - node.level + 1] if node.level else ()
            found.update(".".join([*above, *filter(None, [node.module]), alias.name]) for alias in node.names)
    return {name for name in found if name.split(".")[0] in ("lab", "benchmarks", "tests")}


@pytest.mark.parametrize("folder", MAY_IMPORT)
def test_arrows_point_down(folder: str) -> None:
    deeper = [REPO / other for other in MAY_IMPORT if other.startswith(f"{folder}/")]
    files = [path for path in (REPO / folder).rglob("*.py") if not any(path.is_relative_to(other) for other in deeper)]
    assert files
    allowed = tuple(f"{name}." for name in MAY_IMPORT[folder])
    up = [f"{path.relative_to(REPO)}: {name}" for path in files for name in sorted(imported(path))]
    assert [line for line in up if not f"{line.split()[1]}.".startswith(allowed)] == []


def test_imports_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of every kind, or the test above would see nothing."""
    monkeypatch.setitem(globals(), "REPO", tmp_path)
    (tmp_path / "lab/pipeline").mkdir(parents=True)
    path = tmp_path / "lab/pipeline/x.py"
    path.write_text(
        "import os, lab.host\nfrom .paths import REPO\nfrom . import trees\nfrom tests import unit\n"
        "def f():\n    from benchmarks.results import write as w\n"
    )
    assert imported(path) == {
        "lab.host", "lab.pipeline.paths.REPO", "lab.pipeline.trees", "tests.unit", "benchmarks.results.write",
    }  # fmt: skip
