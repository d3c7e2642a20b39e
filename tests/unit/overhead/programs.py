# SPDX-License-Identifier: GPL-2.0
"""The timed programs of benchmarks/programs, built as the guests have them, and run here."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

from lab.pipeline.paths import REPO

NAMES = ("npb_ep", "npb_is", "npb_cg", "npb_mg", "random_access", "stream")
SOURCES = REPO / "benchmarks" / "programs"
SECONDS = 300


def build(folder: Path) -> Path:
    """Make all of them in `folder`. Returns it."""
    goals = [folder / name for name in NAMES]
    subprocess.run(["make", "-s", "-C", REPO / "benchmarks", f"O={folder}", *goals], check=True)
    return folder


def environment(library: Path | None = None, **settings: str) -> dict[str, str]:
    """Of a program with the libgomp in `library`, or the compiler's; what this process's OpenMP was told counts for nothing."""
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("OMP_", "GOMP_"))}
    found = {**kept, "OMP_WAIT_POLICY": "passive", **settings}
    return found | {"LD_LIBRARY_PATH": str(library)} if library else found


def run(program: Path, *words: str, env: Mapping[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    """Run to the end."""
    return subprocess.run(
        [program, *words],
        env=dict(env or environment()),
        capture_output=True,
        text=True,
        check=False,
        timeout=SECONDS,
    )
