# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Places: what our libgomp makes of OMP_PLACES for the usable CPUs is what stock libgomp makes of it under taskset."""

from __future__ import annotations

import pytest

from tests.unit.libgomp.gomp_player import AB, CPUS, POSSIBLE, STOCK, A, B, Player, Reply

C, D = CPUS[0], CPUS[-1]

PLACES = {
    "threads": {"OMP_PLACES": "threads"},
    "threads(1)": {"OMP_PLACES": "threads(1)"},
    "cores": {"OMP_PLACES": "cores"},
    "cores spread": {"OMP_PLACES": "cores", "OMP_PROC_BIND": "spread"},
    "sockets": {"OMP_PLACES": "sockets"},
    "ll_caches": {"OMP_PLACES": "ll_caches"},
    "explicit": {"OMP_PLACES": f"{{{C}}},{{{D}}}"},
    "explicit backwards": {"OMP_PLACES": f"{{{D}}},{{{C}}}"},
    "explicit close": {"OMP_PLACES": f"{{{C}}},{{{D}}}", "OMP_PROC_BIND": "close"},
    "explicit spread": {"OMP_PLACES": f"{{{C}}},{{{D}}}", "OMP_PROC_BIND": "spread"},
    "explicit primary": {"OMP_PLACES": f"{{{C}}},{{{D}}}", "OMP_PROC_BIND": "primary"},
    "one place of both": {"OMP_PLACES": f"{{{C},{D}}}"},
    "overlapping": {"OMP_PLACES": f"{{{C},{D}}},{{{D}}},{{{C}}}", "OMP_PROC_BIND": "close"},
    "OMP_PROC_BIND alone": {"OMP_PROC_BIND": "true"},
    "OMP_PROC_BIND=spread alone": {"OMP_PROC_BIND": "spread"},
    "not bound": {"OMP_PLACES": "threads", "OMP_PROC_BIND": "false"},
}


def view(reply: Reply) -> list[tuple[int, int]]:
    """Where each thread may run, and the number of its place."""
    return [(thread["cpus"], thread["place"]) for thread in reply["threads"]]


@pytest.mark.parametrize("name", PLACES)
def test_same_places_and_binding_as_stock_under_taskset(name: str) -> None:
    env = PLACES[name]
    bound = env.get("OMP_PROC_BIND") != "false"
    oracle = {}
    for usable in (A, AB, B):
        with Player(None, lib=STOCK, confine=usable, env=env | {"OMP_NUM_THREADS": str(usable.bit_count())}) as p:
            oracle[usable] = (p.icv()["places"], view(p.run()) if bound else None)
    with Player(A, env=env) as p:
        for usable in (A, AB, A, B, AB, AB, B, A):
            p.set(usable)
            region = p.run()
            found = (p.icv()["places"], view(region) if bound else None)
            assert found == oracle[usable], f"usable {usable:b}"
        assert "places" not in p.stderr()


def test_gomp_cpu_affinity() -> None:
    """Stock libgomp leaves CPUs in this list that the process may not use; ours keeps its order, and drops them."""
    with Player(A, env={"GOMP_CPU_AFFINITY": f"{D} {C}"}) as p:
        for usable, places in ((A, [A]), (AB, [B, A]), (B, [B]), (AB, [B, A])):
            p.set(usable)
            assert [t["cpus"] for t in p.run()["threads"]] == places
            assert p.icv()["places"] == places


def test_numa_domains_come_from_the_page() -> None:
    """The page puts the first CPU on node 0 and the second on node 1, whatever the machine is."""
    with Player(AB, env={"OMP_PLACES": "numa_domains"}) as p:
        assert (p.team(), p.icv()["places"]) == (2, [A, B])
        p.set(B)
        assert (p.team(), p.icv()["places"]) == (1, [B])
        p.set(AB)
        assert (p.team(), p.icv()["places"]) == (2, [A, B])


def test_places_that_are_not_there_yet() -> None:
    """A place whose CPU comes later: one place of all usable CPUs until then, and no complaint."""
    with Player(A, env={"OMP_PLACES": f"{{{D}}}"}) as p:
        assert (p.team(), p.icv()["places"]) == (1, [A])
        p.set(AB)
        region = p.run()
        assert p.icv()["places"] == [B]
        assert [t["cpus"] for t in region["threads"]] == [B, B]
        p.set(A)
        assert (p.team(), p.icv()["places"]) == (1, [A])
        assert p.end() == ""


def test_no_message_when_the_number_of_places_is_reduced() -> None:
    with Player(A, env={"OMP_PLACES": f"{{{C}}},{{{D}}},{{{POSSIBLE - 1}}}"}) as p:
        for usable in (A, AB, B, A):
            p.set(usable)
            p.run()
        assert p.end() == ""


def test_docked_threads_do_not_stay_on_a_cpu_that_leaves() -> None:
    """The next region has one thread: the pool is not used, and must be off the other CPU all the same."""
    with Player(AB, env=PLACES["explicit"]) as p:
        assert p.team() == 2
        p.set(A)
        assert p.team() == 1
        assert all(cpus & ~A == 0 for cpus in p.do("tasks")["cpus"])
        p.set(B)
        assert p.team() == 1
        assert all(cpus & ~B == 0 for cpus in p.do("tasks")["cpus"])


def test_display_affinity_shows_each_change() -> None:
    env = PLACES["explicit"] | {"OMP_DISPLAY_AFFINITY": "true", "OMP_AFFINITY_FORMAT": "T%n:%A"}
    with Player(AB, env=env) as p:
        p.run()
        p.run()
        assert sorted(p.stderr().split()) == [f"T0:{C}", f"T1:{D}"]
        p.set(AB)
        p.run()
        p.run()
        assert sorted(p.stderr().split()) == [f"T0:{C}", f"T0:{C}", f"T1:{D}", f"T1:{D}"]


@pytest.mark.parametrize("places", [f"{{{C},{D}}}", f"{{{C}}},{{{D}}}", "threads"])
def test_an_array_of_the_size_that_was_told_is_large_enough(places: str) -> None:
    """Another root thread follows between two questions; this one has not, and sees the list that it is bound by."""
    with Player(AB, env={"OMP_PLACES": places}) as p:
        for idle in ("idle", ""):
            reply = p.do(f"places 300 {A:x} {AB:x} {idle}")
            assert reply["questions"] > 10
            assert reply["wrong"] == 0


def test_what_affinity_is_shown_is_that_of_the_root_that_asks() -> None:
    """Another root thread has followed; this one is still bound as before."""
    with Player(A, env={"OMP_PLACES": f"{{{C},{D}}}"}) as p:
        assert p.team() == 1
        assert p.do(f"capture {B:x}") == {"before": str(C), "after": str(C), "places": [1, 1]}
        assert p.team() == 1
        assert p.do(f"capture {A:x}") == {"before": str(D), "after": str(D), "places": [1, 1]}


def test_a_shorter_list_of_another_root_does_not_change_the_number_of_places() -> None:
    with Player(AB, env=PLACES["explicit"]) as p:
        assert p.team() == 2
        assert p.do(f"capture {A:x}")["places"] == [2, 2]
        assert p.team() == 1
        assert p.do(f"capture {AB:x}")["places"] == [1, 1]


def test_a_shorter_list_of_another_root_can_be_used_with_old_numbers() -> None:
    """A team of this root is at work, and has places that the newest list does not have."""
    with Player(AB, env=PLACES["explicit"] | {"OMP_PROC_BIND": "spread,close"}) as p:
        assert p.team() == 2
        assert p.do(f"nested_root {A:x}") == {"inner": 4, "cpus": A}
        assert p.team() == 1
