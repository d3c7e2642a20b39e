# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Data that threads keep from one region to the next: a team that changed its size would lose some, or find none."""

from __future__ import annotations

from tests.unit.libgomp import program
from tests.unit.libgomp.gomp_player import A, build


def test_a_library_with_threadprivate_data_that_is_loaded_late_keeps_the_number_that_there_was() -> None:
    module = build("late.c", "-fopenmp", "-shared", "-fPIC", "-DMODULE", name="module")
    reply = program.run("late.c", str(module), f"{A:x}", env={"OMP_DYNAMIC": "false"})
    assert reply == {"teams": [1, 1, 2, 2, 2, 2, 2], "lost": 0}
