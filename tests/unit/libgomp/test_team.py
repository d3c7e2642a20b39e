# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The size of a team follows the usable CPUs, whatever starts it, unless the program was told a number or has set one."""

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


# Environment: ICVs, what the program is told with one of two CPUs usable if it asks, then the teams with A, with A and B,
# with B if it does not ask.
ICVS: dict[str, tuple[dict[str, str], dict[str, int], int, tuple[int, ...]]] = {
    "default": ({}, {"dynamic": 0}, 1, (1, 2, 1)),
    "OMP_NUM_THREADS is met exactly": ({"OMP_NUM_THREADS": "2"}, {"dynamic": 0}, 2, (2, 2, 2)),
    "OMP_NUM_THREADS=1": ({"OMP_NUM_THREADS": "1"}, {}, 1, (1, 1, 1)),
    "more than there ever are": ({"OMP_NUM_THREADS": "40"}, {}, 40, (40, 40, 40)),
    "OMP_DYNAMIC=false": ({"OMP_DYNAMIC": "false"}, {"dynamic": 0}, 1, (1, 2, 1)),
    "OMP_DYNAMIC=false with a number": (
        {"OMP_DYNAMIC": "false", "OMP_NUM_THREADS": "3"}, {"dynamic": 0}, 3, (3, 3, 3)),
    "OMP_DYNAMIC=true": ({"OMP_DYNAMIC": "true"}, {"dynamic": 1}, MAX_THREADS, (1, 2, 1)),
    "OMP_DYNAMIC=true: a number is an upper bound": (
        {"OMP_DYNAMIC": "true", "OMP_NUM_THREADS": "2"}, {"dynamic": 1}, 2, (1, 2, 1)),
    "OMP_DYNAMIC=true: more than there ever are": (
        {"OMP_DYNAMIC": "true", "OMP_NUM_THREADS": "40"}, {"dynamic": 1}, 40, (1, 2, 1)),
    "OMP_THREAD_LIMIT": ({"OMP_THREAD_LIMIT": "1"}, {"limit": 1}, 1, (1, 1, 1)),
    "invalid OMP_NUM_THREADS": ({"OMP_NUM_THREADS": "x"}, {}, 1, (1, 2, 1)),
    "bound": (BOUND, {"bind": 1}, 1, (1, 2, 1)),
    "bound, OMP_DYNAMIC=true": (BOUND | {"OMP_DYNAMIC": "true"}, {"bind": 1, "dynamic": 1}, MAX_THREADS, (1, 2, 1)),
}  # fmt: skip


@pytest.mark.parametrize("name", ICVS)
def test_icvs_are_honoured_and_never_drift(name: str) -> None:
    env, expected, told, teams = ICVS[name]
    with Player(A, env=env) as p:
        start = p.icv()
        assert {key: start[key] for key in expected} == expected
        for usable, team in zip((A, AB, B), teams, strict=True):
            p.set(usable)
            assert p.team() == team
            now = p.icv()
            for key in ("dynamic", "limit", "bind"):
                assert now[key] == start[key], key
    with Player(A, env=env) as p:
        assert p.told() == told


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_region_keeps_to_what_the_program_was_told(kind: str, binding: dict[str, str]) -> None:
    with Player(AB, env=binding) as p:
        assert p.told() == 2
        for usable in (A, AB, B, A):
            p.set(usable)
            reply = p.run(kind)
            assert reply["team"] == 2, f"usable {usable:b}"
            if binding:
                assert all(t["cpus"] & ~usable == 0 for t in reply["threads"])


@pytest.mark.parametrize("command", ["told", "procs"])
def test_the_statement_that_asked_is_told_the_new_number(command: str, binding: dict[str, str]) -> None:
    with Player(AB, env=binding) as p:
        ask = getattr(p, command)
        for usable in (AB, A, AB, B, AB):
            p.set(usable)
            n = usable.bit_count()
            assert ask() == n
            assert p.team() == n
            p.set(A)
            assert p.team() == n


def test_it_is_told_no_more_than_at_first(binding: dict[str, str]) -> None:
    """There may be an array of that size."""
    with Player(A, env=binding) as p:
        assert p.team() == 1
        assert p.told() == 1
        for usable in (AB, B, AB):
            p.set(usable)
            assert p.told() == p.team() == 1
    with Player(A, env=binding | {"GOMP_TOPO_PROCS": "latest"}) as p:
        for usable in (A, AB, B, AB):
            p.set(usable)
            assert p.told() == p.team() == usable.bit_count()


def test_a_program_that_grows_before_it_asks_is_told_what_there_is() -> None:
    with Player(A) as p:
        assert p.team() == 1
        p.set(AB)
        assert p.team() == 2
        for usable in (AB, A, AB):
            p.set(usable)
            assert p.told() == p.team() == usable.bit_count()


def test_two_questions_without_a_region_in_between_keep_the_number() -> None:
    """There may be two who were told: objects, each of which asks when it is made."""
    for command in ("told", "procs"):
        with Player(AB) as p:
            ask = getattr(p, command)
            assert ask() == 2
            p.set(A)
            assert ask() == 2
            assert p.team() == 2
            assert ask() == 2


@pytest.mark.parametrize("region", ["run parallel 2", "run sections 0", "target"])
def test_any_region_lets_the_same_question_be_asked_anew(region: str) -> None:
    with Player(AB) as p:
        assert p.team() == 2
        assert p.told() == 2
        p.do(region)
        assert p.told() == 2
        p.do(region)
        p.set(A)
        assert p.told() == 1


def test_once_a_second_statement_has_asked_the_number_stays() -> None:
    """The first may still count on it: another library must not change the teams of the program."""
    with Player(AB) as p:
        assert p.told() == 2
        p.set(A)
        assert p.do("elsewhere") == {"max_threads": 2}
        for usable in (A, AB, B):
            p.set(usable)
            assert p.told() == p.procs() == 2
            assert p.team() == 2
    with Player(AB, env={"GOMP_TOPO_PROCS": "latest"}) as p:
        assert p.told() == 2
        p.set(A)
        assert p.do("elsewhere") == {"max_threads": 1}
        assert p.team() == 1


def test_a_number_told_in_a_team_is_that_of_the_team_and_stays() -> None:
    with Player(A) as p:
        p.set(AB)
        assert p.do("in_team") == {"max_threads": 2}
        for usable in (A, AB, B):
            p.set(usable)
            assert p.team() == 2
            assert p.do("in_team") == {"max_threads": 2}
            assert p.told() == p.procs() == 2


def test_the_same_statement_elsewhere_on_the_stack_is_another_one() -> None:
    """A function that asks, for several callers."""
    with Player(AB) as p:
        assert p.do("deep 1")["max_threads"] == 2
        assert p.team() == 2
        p.set(A)
        assert p.do("deep 1")["max_threads"] == 1
        assert p.team() == 1
        p.set(AB)
        assert p.do("deep 2")["max_threads"] == 1
        assert p.team() == 1
        assert p.do("deep 1")["max_threads"] == 1


def test_a_thread_that_has_the_stack_of_one_that_has_ended_is_another_one() -> None:
    """What the first was told may be kept by somebody: the second statement at the same depth is not the same one."""
    with Player(AB) as p:
        first = p.do("ask_thread")
        assert (first["max_threads"], first["team"]) == (2, 2)
        p.set(A)
        assert p.do("ask_thread") == first, "the frame included"
        assert p.team() == 2
        assert p.told() == 2


def test_a_region_of_another_thread_does_not_use_the_answer() -> None:
    """A region in a task looks at the topology each time, and has an answer of nobody."""
    with Player(AB) as p:
        assert p.do("second task")["team"] == 2
        for ask in (p.told, p.procs):
            assert ask() == 2
            assert p.do("second task")["team"] == 2
            p.set(A)
            assert ask() == 2
            assert p.team() == 2
            p.set(AB)


@pytest.mark.parametrize(("before", "after"), [(A, AB), (AB, A)])
def test_a_team_is_told_what_it_has_whatever_others_are_told(before: int, after: int, binding: dict[str, str]) -> None:
    """Another root asks meanwhile, and is told another number, the first of all."""
    n = before.bit_count()
    with Player(before, env=binding) as p:
        assert p.do(f"team_told {after:x}") == {"threads": [[n, n]] * n}
        for usable in (after, before):
            p.set(usable)
            assert p.team() == n
            assert p.told() == n


def test_the_number_of_processors_is_that_of_the_team_though_another_has_set_a_number() -> None:
    """The one who has set a number was told less, and first."""
    with Player(A) as p:
        p.do("threads 2")
        assert p.procs() == 1
        p.set(AB)
        assert p.do("second procs") == {"num_procs": 1}
        assert p.do("second run parallel 0")["team"] == 1
    with Player(A) as p:
        p.do("threads 2")
        assert p.procs() == 1
        p.set(AB)
        assert p.do("second told") == {"max_threads": 2}
        assert p.do("second procs") == {"num_procs": 2}
        assert p.do("second run parallel 0")["team"] == 2


def test_dynamic_adjustment_in_a_team_is_no_promise_of_its_root() -> None:
    with Player(A) as p:
        assert p.do("dynamic_in_team") == {"max_threads": MAX_THREADS}
        for usable in (AB, A):
            p.set(usable)
            assert p.team() == usable.bit_count()


def test_a_number_told_to_the_first_thread_of_a_team_stays() -> None:
    with Player(AB) as p:
        for usable in (AB, A, AB, A):
            p.set(usable)
            assert p.do("in_first") == {"max_threads": 2}
            assert p.team() == 2


@pytest.mark.parametrize("roots", [1, 3])
def test_threads_that_have_not_asked_keep_to_what_another_was_told(roots: int, binding: dict[str, str]) -> None:
    """The number may have been handed to them."""
    with Player(AB, env=binding) as p:
        assert p.told() == 2
        replies = [p.do(f"roots {roots} {A:x} {B:x}"), *(p.hear() for _ in range(2 * roots - 1))]
        assert [region["team"] for region in replies] == [2] * (2 * roots)
        assert p.team() == 2
        p.set(A)
        assert p.told() == 2, "others count on it now"


def test_what_is_told_under_dynamic_adjustment_is_no_promise_to_other_threads() -> None:
    with Player(AB) as p:
        p.do("dynamic 1")
        assert p.told() == MAX_THREADS
        assert p.do(f"roots 1 {A:x} {AB:x}")["team"] == 1
        assert p.hear()["team"] == 2


def test_the_number_of_processors_is_a_promise_though_a_number_was_set(binding: dict[str, str]) -> None:
    """It is kept by the question alone: there may be an array of that size, and each step sets what is told."""
    with Player(AB, env=binding | {"OMP_NUM_THREADS": "2"}) as p:
        for usable in (AB, A, AB, B):
            p.set(usable)
            assert p.told() == 2
            assert p.procs() == usable.bit_count()
            assert p.team() == 2
    with Player(A, env=binding | {"OMP_NUM_THREADS": "2"}) as p:
        for usable in (A, AB, B):
            p.set(usable)
            assert p.procs() == 1
            assert p.team() == 2
        p.set(AB)
        assert p.do("procs_elsewhere") == {"num_procs": 1}
    with Player(AB, env=binding) as p:
        assert p.procs() == 2
        p.do("threads 2")
        p.set(A)
        assert p.do("procs_elsewhere") == {"num_procs": 2}
        assert p.team() == 2
        assert p.procs() == 2


def test_the_number_of_processors_told_in_a_team_is_that_of_the_root_and_stays(binding: dict[str, str]) -> None:
    with Player(AB, env=binding | {"OMP_NUM_THREADS": "2"}) as p:
        assert p.do(f"procs_in_team {A:x}") == {"num_procs": 2}
        for usable in (A, AB, B):
            p.set(usable)
            assert p.team() == 2
            assert p.do("procs_in_team") == {"num_procs": 2}
        assert p.procs() == 2


def test_a_number_of_threads_is_met_exactly(binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        for usable in (A, AB, B):
            p.set(usable)
            for threads in (1, 2, 3, 9, 2):
                reply = p.run(threads=threads)
                assert reply["team"] == threads
                if binding:
                    assert all(t["cpus"] & ~usable == 0 for t in reply["threads"])
        p.do("threads 3")
        for usable in (A, AB, B):
            p.set(usable)
            assert p.team() == 3


def test_with_dynamic_adjustment_a_number_is_an_upper_bound() -> None:
    with Player(A) as p:
        p.do("dynamic 1")
        for usable in (A, AB, B):
            p.set(usable)
            assert p.team(threads=3) == usable.bit_count()
            assert p.team() == usable.bit_count()
        p.do("threads 2")
        p.set(AB)
        assert p.team() == 2
        p.do("dynamic 0")
        p.set(B)
        assert p.team() == 2


def test_dynamic_adjustment_never_exceeds_what_was_told_before_it() -> None:
    with Player(A) as p:
        assert p.told() == 1
        p.do("dynamic 1")
        p.set(AB)
        assert p.team() == 1
    with Player(AB) as p:
        assert p.told() == 2
        p.do("dynamic 1")
        p.set(A)
        assert p.team() == 1
        assert p.told() == 2
        assert p.procs() == 1
        p.do("dynamic 0")
        assert p.team() == 2
    with Player(AB, env={"OMP_DYNAMIC": "true"}) as p:
        assert p.team() == 2
        assert p.told() == MAX_THREADS
        p.do("dynamic 0")
        assert p.team() == MAX_THREADS


def test_sections_keep_the_pool_unless_the_user_wants_adjustment() -> None:
    """Two sections and more threads: the surplus ones stay, with their data; with OMP_DYNAMIC=true they end, as in stock."""
    with Player(AB, env={"OMP_NUM_THREADS": "3"}) as p:
        tids = [t["tid"] for t in p.run()["threads"]]
        for _ in range(3):
            assert p.run("sections")["tasks"] == 3
            again = p.run()["threads"]
            assert [t["tid"] for t in again] == tids
            assert [t["kept"] for t in again] == [100, 101, 102]


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_without_a_cpu_do_not_spin(threads: int, binding: dict[str, str]) -> None:
    """A team of more threads than CPUs: who waits gives up the CPU at once, though OMP_WAIT_POLICY=active."""
    with Player(AB, env=binding | {"OMP_WAIT_POLICY": "active"}) as p:
        assert p.team(threads=threads) == threads
        p.set(A)
        assert p.team(threads=threads) == threads
        assert p.do(f"waste 20 {threads}")["waits"] < 0.5


def test_threads_of_a_child_spin_as_the_user_wants() -> None:
    """Those of its parent are not there, and do not need CPUs."""
    with Player(AB, env={"OMP_WAIT_POLICY": "active"}) as p:
        assert p.team() == 2
        assert p.do("fork waste")["waits"] > 0.2
        assert p.hear() == {"status": 0}


def test_a_program_that_asks_for_all_processors_at_its_start_can_be_made_to_use_those_that_come() -> None:
    with Player(A, env={"GOMP_TOPO_PROCS": "possible"}) as p:
        assert p.told() == p.procs() == MAX_THREADS
        for usable in (A, AB, B):
            p.set(usable)
            assert p.team() == MAX_THREADS
            assert p.told() == p.procs() == MAX_THREADS


def test_asking_is_up_to_date_before_the_next_region_and_does_not_bind(binding: dict[str, str]) -> None:
    with Player(A, env=binding) as p:
        assert p.team() == 1
        p.set(AB)
        cpus = p.icv()["cpus"]
        assert p.procs() == 2
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


@pytest.mark.parametrize("first", ["task", "run parallel", "threads 3"])
def test_a_region_in_a_task_outside_of_all_regions(first: str) -> None:
    """Such a task has ICVs of its own; what it follows with must not be lost at its end, or remain unknown outside."""
    with Player(A) as p:
        p.do(first)
        for usable in (AB, A, B, AB):
            p.set(usable)
            n = 3 if first == "threads 3" else usable.bit_count()
            assert [p.do("task")["team"], p.team(), p.do("task")["team"], p.team()] == [n] * 4
            p.set(A)
            n = 3 if first == "threads 3" else 1
            assert [p.team(), p.do("task")["team"]] == [n] * 2


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


def test_forked_child_has_teams_of_its_own(binding: dict[str, str]) -> None:
    """Its threads are new, and it never touches those of its parent."""
    with Player(AB, env=binding) as p:
        parent = p.run()["threads"]
        p.set(B)
        child = p.do("fork")
        assert child["team"] == 1
        assert p.hear() == {"status": 0}
        if binding:
            assert sorted(p.do("tasks")["cpus"]) == sorted((A, B)), "the child has bound its parent's threads"
        p.set(AB)
        child = p.do("fork")
        assert child["team"] == 2
        assert not {t["tid"] for t in child["threads"]} & {t["tid"] for t in parent}
        assert p.hear() == {"status": 0}
        assert [t["tid"] for t in p.run()["threads"]] == [t["tid"] for t in parent]


@pytest.mark.parametrize("env", [{}, {"OMP_DYNAMIC": "true"}], ids=["default", "dynamic"])
def test_root_threads_of_a_forked_child_follow(env: dict[str, str]) -> None:
    """Whatever the load average is."""
    with Player(AB, env=env) as p:
        assert p.team() == 2
        p.say("fork roots")
        assert p.hear()["team"] == 2
        assert p.hear() == {"status": 0}
        p.set(A)
        p.say("fork roots")
        assert p.hear()["team"] == 1
        assert p.hear() == {"status": 0}


def test_forked_child_keeps_to_what_its_parent_was_told() -> None:
    with Player(AB) as p:
        assert p.told() == 2
        p.set(A)
        assert p.do("fork")["team"] == 2
        assert p.hear() == {"status": 0}


def test_storm_of_changes() -> None:
    """Two root threads, all kinds of regions, a writer that does not always behave; then all is well again."""
    with Player(A, env=BOUND | {"GOMP_TOPO_PROCS": "latest"}) as p:
        began = time.monotonic()
        reply = p.do("storm 3000")
        assert time.monotonic() - began < 60
        assert reply["changes"] > 100
        assert min(reply["regions"]) > 50
        for usable in (A, AB, B):
            p.set(usable)
            assert p.told() == usable.bit_count()
            region = p.run()
            assert region["team"] == usable.bit_count()
            assert all(t["cpus"] & ~usable == 0 for t in region["threads"])
        deadline = time.monotonic() + 20
        while len(p.do("tasks")["cpus"]) > 2:  # threads of the other root are still ending
            assert time.monotonic() < deadline, "threads have been left behind"
