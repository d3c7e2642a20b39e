# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Target regions that run on the host: libgomp hides there that the thread is one of a team, or a root that has followed."""

from __future__ import annotations

import pytest

from tests.unit.libgomp.gomp_player import AB, CPUS, A, B, Player

BOUND = {"OMP_PLACES": f"{{{CPUS[0]}}},{{{CPUS[-1]}}}"}


@pytest.mark.parametrize("thread", [0, 1])
def test_a_target_region_of_a_team_leaves_the_team_as_it_is(thread: int) -> None:
    with Player(AB, env=BOUND) as p:
        for usable in (AB, AB, A, AB):
            p.set(usable)
            reply = p.do(f"target_team {thread}")
            assert reply["masks"] == [[A, B if usable == AB else A]] * 3
            assert reply["target"] == usable.bit_count()


@pytest.mark.parametrize("thread", [0, 1])
def test_a_region_in_a_target_region_has_the_number_of_the_root(thread: int) -> None:
    """Not the one that the program began with."""
    with Player(A) as p:
        p.set(AB)
        assert p.do(f"target_team {thread}")["target"] == 2
        assert p.do("target")["team"] == 2
        assert p.do("target_told") == {"max_threads": 2}
        p.set(B)
        assert p.do("target")["team"] == 2
        assert p.do(f"target_team {thread}")["target"] == 2


@pytest.mark.parametrize("thread", [0, 1])
def test_a_target_region_of_a_team_does_not_follow(thread: int) -> None:
    """The team is at work; a change that comes meanwhile is for the next region of the root."""
    with Player(AB, env=BOUND, record=True) as p:
        assert p.team(threads=2) == 2
        p.recorded()
        p.do(f"target_team {thread}")
        assert p.recorded() == []
    with Player(A, env={"OMP_PLACES": f"{{{CPUS[0]},{CPUS[-1]}}}"}) as p:
        assert p.do(f"target_view {AB:x}") == {"before": 1, "after": 1}
        assert p.do(f"target_view {AB:x}") == {"before": 2, "after": 2}


@pytest.mark.parametrize("env", [{}, BOUND], ids=["unbound", "bound"])
def test_a_target_region_follows_only_if_something_has_changed(env: dict[str, str]) -> None:
    with Player(AB, env=env, record=True) as p:
        assert p.team() == 2
        p.recorded()
        assert p.do("target")["team"] == 2
        assert p.team() == 2
        assert p.recorded() == []
        p.set(A)
        assert p.do("target")["team"] == 1
        assert p.recorded() != []
        assert p.team() == 1


@pytest.mark.parametrize("thread", [0, 1])
def test_a_number_told_in_a_target_region_of_a_team_is_that_of_the_root(thread: int) -> None:
    with Player(AB) as p:
        for usable in (AB, A, AB, B):
            p.set(usable)
            assert p.do(f"target_told {thread}") == {"max_threads": 2}
            assert p.team() == 2
            p.set(A)
            assert p.team() == 2
            assert p.do("target")["team"] == 2
            assert p.told() == 2
    with Player(AB) as p:
        assert p.team() == 2
        assert p.do(f"target_told {thread} {A:x}") == {"max_threads": 2}
        assert p.team() == 2


def test_a_question_in_a_target_region_is_one_of_the_program() -> None:
    with Player(AB) as p:
        for usable in (AB, AB, A, A, AB):
            p.set(usable)
            for _ in range(2):
                assert p.do("target_told") == {"max_threads": usable.bit_count()}
                assert p.team() == usable.bit_count()
        assert p.do("target_told") == {"max_threads": 2}
        p.set(A)
        assert p.do("target_told") == {"max_threads": 2}
        assert p.team() == 2
