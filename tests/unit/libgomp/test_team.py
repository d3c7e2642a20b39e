# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The size of a team follows the usable CPUs, whatever starts it; ICVs stay as they are."""

from __future__ import annotations

import re
import time

import pytest

from tests.unit.libgomp.gomp_player import AB, ALL, CPUS, HERE, MAX_THREADS, A, B, Player

KINDS = re.findall(r"KIND \((\w+)\)", (HERE / "player.c").read_text())

BOUND = {"OMP_PLACES": f"{{{CPUS[0]}}},{{{CPUS[-1]}}}"}
BINDINGS = {"unbound": {}, "bound": BOUND}


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> dict[str, str]:
    return BINDINGS[request.param]


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_region_follows(kind: str, binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        assert p.team(kind) == 1
        for usable in (AB, B, AB, A, AB):
            p.set(usable)
            reply = p.run(kind)
            assert reply["team"] == usable.bit_count(), f"usable {usable:b}"
            if binding:
                for thread in reply["threads"]:
                    assert thread["cpus"] & ~usable == 0
                    assert thread["cpus"].bit_count() == 1
        assert p.team("parallel") == 2


@pytest.mark.parametrize("kind", [k for k in KINDS if k != "parallel"])
def test_each_kind_uses_the_threads_of_the_last_one(kind: str) -> None:
    with Player(AB) as p:
        first = {t["tid"] for t in p.run()["threads"]}
        assert {t["tid"] for t in p.run(kind)["threads"]} <= first


def test_threads_and_threadprivate_data_survive_changes(binding: dict[str, str]) -> None:
    with Player(AB, env=binding) as p:
        before = p.run()["threads"]
        assert [t["kept"] for t in before] == [0, 0]
        for usable in (AB, AB, A, AB, B, AB):
            p.set(usable)
            after = p.run()["threads"]
            assert [t["tid"] for t in after] == [t["tid"] for t in before[: len(after)]]
            assert [t["kept"] for t in after] == [100, 101][: len(after)]


def test_surplus_threads_end_and_none_leaks(binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        for _ in range(50):
            p.set(AB)
            assert p.run()["tasks"] == 2
            p.set(A)
            assert p.run()["tasks"] <= 2
            assert p.team() == 1


# Environment: ICVs at the start with one of two CPUs usable, then the teams with A, with A and B, with B.
ICVS = {
    "default": ({}, {"max_threads": MAX_THREADS, "dynamic": 1}, (1, 2, 1)),
    "OMP_NUM_THREADS is an upper bound": ({"OMP_NUM_THREADS": "2"}, {"max_threads": 2, "dynamic": 1}, (1, 2, 1)),
    "OMP_NUM_THREADS=1": ({"OMP_NUM_THREADS": "1"}, {"max_threads": 1}, (1, 1, 1)),
    "more than there ever are": ({"OMP_NUM_THREADS": "40"}, {"max_threads": 40}, (1, 2, 1)),
    "OMP_DYNAMIC=false fixes the team": ({"OMP_DYNAMIC": "false"}, {"max_threads": 1, "dynamic": 0}, (1, 1, 1)),
    "OMP_DYNAMIC=false with a number": (
        {"OMP_DYNAMIC": "false", "OMP_NUM_THREADS": "3"}, {"max_threads": 3, "dynamic": 0}, (3, 3, 3)),
    "OMP_DYNAMIC=true": ({"OMP_DYNAMIC": "true"}, {"max_threads": MAX_THREADS, "dynamic": 1}, (1, 2, 1)),
    "OMP_THREAD_LIMIT": ({"OMP_THREAD_LIMIT": "1"}, {"limit": 1}, (1, 1, 1)),
    "invalid OMP_NUM_THREADS": ({"OMP_NUM_THREADS": "x"}, {"max_threads": MAX_THREADS}, (1, 2, 1)),
    "bound": (BOUND, {"max_threads": MAX_THREADS, "bind": 1}, (1, 2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", ICVS)
def test_icvs_are_honoured_and_never_drift(name: str) -> None:
    env, expected, teams = ICVS[name]
    with Player(A, env=env) as p:
        start = p.icv()
        assert {key: start[key] for key in expected} == expected
        for usable, team in zip((A, AB, B), teams, strict=True):
            p.set(usable)
            assert p.team() == team
            now = p.icv()
            assert now["num_procs"] == usable.bit_count()
            for key in ("max_threads", "dynamic", "limit", "bind"):
                assert now[key] == start[key], key


def test_num_threads_clause_is_an_upper_bound() -> None:
    with Player(A) as p:
        assert p.team(threads=2) == 1
        p.set(AB)
        assert p.team(threads=2) == 2
        assert p.team(threads=1) == 1
        assert p.team(threads=9) == 2


def test_without_dynamic_adjustment_the_program_gets_what_it_asks_for() -> None:
    with Player(A) as p:
        p.do("dynamic 0")
        assert p.team(threads=2) == 2
        p.do("threads 3")
        p.set(AB)
        assert p.team() == 3


def test_omp_set_num_threads_bounds_the_team() -> None:
    with Player(AB) as p:
        p.do("threads 1")
        assert p.team() == 1
        p.do("threads 2")
        assert p.team() == 2
        p.set(A)
        assert p.team() == 1


def test_a_program_that_asks_for_all_processors_at_its_start_can_be_made_to_grow() -> None:
    with Player(A, env={"GOMP_TOPO_PROCS": "possible"}) as p:
        procs = p.icv()["num_procs"]
        assert procs == p.icv()["max_threads"]
        p.do(f"threads {procs}")
        assert p.team() == 1
        p.set(AB)
        assert p.team() == 2


def test_num_procs_is_up_to_date_before_the_next_region(binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        assert p.team() == 1
        p.set(AB)
        cpus = p.icv()["cpus"]
        assert p.icv()["num_procs"] == 2
        assert p.icv()["cpus"] == cpus, "asking must not change the binding"
        assert p.team() == 2


def test_nested_teams(binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        assert p.do("nested") == {"outer": 1, "cpus": A if binding else ALL, "inner": [1]}
        p.set(AB)
        assert p.do("nested") == {"outer": 2, "cpus": AB if binding else ALL, "inner": [2, 2]}
        p.set(B)
        reply = p.do("nested")
        assert (reply["outer"], reply["inner"]) == (1, [1])
        if binding:
            assert reply["cpus"] == B


def test_regions_of_a_target_region_that_runs_on_the_host(binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        for usable in (A, AB, B, AB):
            p.set(usable)
            region = p.do("target")
            assert region["team"] == usable.bit_count()
            if binding:
                assert all(t["cpus"] & ~usable == 0 for t in region["threads"])
            assert p.team() == usable.bit_count()


def test_a_target_region_that_follows_first(binding: dict[str, str]) -> None:
    """The thread is then bound to a new place, which must not pass for somebody's taskset."""
    with Player(B, env=binding) as p:
        assert p.team() == 1
        p.set(AB)
        assert p.do("target")["team"] == 2
        assert p.team() == 2
        p.set(AB)
        assert p.team() == 2


@pytest.mark.parametrize("roots", [1, 2, 5])
def test_each_root_thread_follows_with_its_own_pool(roots: int, binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        assert p.team() == 1
        for before, after in ((A, AB), (AB, B), (B, AB)):
            replies = [p.do(f"roots {roots} {before:x} {after:x}"), *(p.hear() for _ in range(2 * roots - 1))]
            for usable, region in zip((before, after) * roots, replies, strict=True):
                assert region["team"] == usable.bit_count()
                if binding:
                    assert all(t["cpus"] & ~usable == 0 for t in region["threads"])
            for early, late in zip(replies[::2], replies[1::2], strict=True):
                assert late["threads"][0]["tid"] == early["threads"][0]["tid"]
                assert late["threads"][0]["kept"] == 100


def test_fork_before_the_first_region(binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        p.set(AB)
        child = p.do("fork")
        assert child["team"] == 2
        assert p.hear() == {"status": 0}
        assert p.team() == 2


def test_forked_child_leaves_the_threads_of_its_parent_alone() -> None:
    """A child of a program that has run a team cannot run another (with any libgomp), but it can run one thread."""
    with Player(AB, env=BOUND | {"OMP_NUM_THREADS": "2"}) as p:
        assert p.team() == 2
        p.do("threads 1")
        p.set(B)
        child = p.do("fork")
        assert child["team"] == 1
        assert p.hear() == {"status": 0}
        assert sorted(p.do("tasks")["cpus"]) == sorted((A, B)), "the child has bound its parent's threads"


def test_storm_of_changes() -> None:
    """Two root threads, all kinds of regions, a writer that does not always behave; then all is well again."""
    with Player(A, env=BOUND) as p:
        began = time.monotonic()
        reply = p.do("storm 3000")
        assert time.monotonic() - began < 60
        assert reply["changes"] > 100
        assert min(reply["regions"]) > 50
        for usable in (A, AB, B):
            p.set(usable)
            region = p.run()
            assert region["team"] == usable.bit_count()
            assert all(t["cpus"] & ~usable == 0 for t in region["threads"])
        deadline = time.monotonic() + 20
        while len(p.do("tasks")["cpus"]) > 2:  # threads of the other root are still ending
            assert time.monotonic() < deadline, "threads have been left behind"
