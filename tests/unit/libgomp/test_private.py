# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Data that threads keep from one region to the next: a team that changed its size would lose some, or find none."""

from __future__ import annotations

from tests.unit.libgomp import program
from tests.unit.libgomp.gomp_player import AB, A, Player, build


def test_a_library_with_threadprivate_data_that_is_loaded_late_keeps_the_number_that_there_was() -> None:
    module = build("late.c", "-fopenmp", "-shared", "-fPIC", "-DMODULE", name="module")
    reply = program.run("late.c", str(module), f"{A:x}", env={"OMP_DYNAMIC": "false"})
    assert reply == {"teams": [1, 1, 2, 2, 2, 2, 2], "lost": 0}


def private_player(usable: int) -> Player:
    flags = ("-fopenmp", "-Wno-unknown-pragmas", "-DWITH_PRIVATE_DATA")
    return Player(usable, program=build("player.c", *flags, name="private_player"))


def test_a_question_does_not_make_the_teams_of_a_root_smaller_that_has_data_in_its_threads() -> None:
    """Though another root has fewer threads, and was told so first."""
    with private_player(A) as p:
        assert p.team() == 1
        p.set(AB)
        assert p.do("second run parallel 0")["team"] == 2
        assert p.team() == p.told() == 1
        assert p.do("second told") == {"max_threads": 2}
        assert p.do("second run parallel 0")["team"] == 2


def test_data_of_threads_count_more_than_a_number_that_may_have_been_handed_over() -> None:
    with private_player(A) as p:
        assert p.team() == 1
        p.set(AB)
        p.do("second dynamic 1")
        assert p.do("second run parallel 0")["team"] == 2
        p.do("second dynamic 0")
        assert p.do("second run parallel 0")["team"] == 2
        assert p.told() == 1
        p.set(A)
        assert p.do("second run parallel 0")["team"] == 2
