# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Places, masks and containers on a machine of 16 CPUs with sockets, cores and threads, which machine.c plays.

What stock libgomp makes of OMP_PLACES under a taskset is what ours makes of it when the page offers the same CPUs.
"""

from __future__ import annotations

from functools import cache

import pytest

from tests.unit.libgomp.gomp_player import STOCK, Reply
from tests.unit.libgomp.machine import (
    EVERY,
    FIRST_SOCKET,
    FIRST_THREADS,
    NO_CONTAINER,
    SECOND_SOCKET,
    SECOND_THREADS,
    MachinePlayer,
    cpus,
    machine_page,
)

FOLLOW = {"OMP_DYNAMIC": "true"}
BOUND = FOLLOW | {"OMP_PLACES": "threads"}

PLACES = {
    "threads": {"OMP_PLACES": "threads"},
    "threads(3)": {"OMP_PLACES": "threads(3)"},
    "cores": {"OMP_PLACES": "cores"},
    "cores(2)": {"OMP_PLACES": "cores(2)"},
    "cores spread": {"OMP_PLACES": "cores", "OMP_PROC_BIND": "spread"},
    "sockets": {"OMP_PLACES": "sockets"},
    "sockets(1)": {"OMP_PLACES": "sockets(1)"},
    "stride": {"OMP_PLACES": "{0}:4:2"},
    "stride of both threads": {"OMP_PLACES": "{0,8}:8:1"},
    "stride backwards": {"OMP_PLACES": "{15}:8:-1"},
    "stride within a place": {"OMP_PLACES": "{0:4:2}:2:8"},
    "interval": {"OMP_PLACES": "{0:8}:2:8"},
    "exclusion of a place": {"OMP_PLACES": "{0,8}:8:1,!{4,12}"},
    "exclusion of a CPU": {"OMP_PLACES": "{0:8,!3}:2:8"},
    "overlapping": {"OMP_PLACES": "{0:4},{2:4},{4:4}", "OMP_PROC_BIND": "close"},
    "primary": {"OMP_PLACES": "{1},{2},{3}", "OMP_PROC_BIND": "primary"},
    "OMP_PROC_BIND alone": {"OMP_PROC_BIND": "close"},
}

USABLE = {
    "all": EVERY,
    "one socket": FIRST_SOCKET,
    "one thread of each core": FIRST_THREADS,
    "a hole": EVERY & ~cpus(2, 3, 10, 11),
    "both threads of two cores": cpus(1, 9, 6, 14),
    "the last CPU": cpus(15),
}


def view(reply: Reply) -> list[tuple[int, int]]:
    return [(thread["cpus"], thread["place"]) for thread in reply["threads"]]


@cache
def of_stock(name: str, usable: int) -> tuple[list[int], list[tuple[int, int]]]:
    """Places and threads of stock libgomp that may use these CPUs."""
    env = PLACES[name] | {"OMP_NUM_THREADS": str(usable.bit_count())}
    with MachinePlayer(None, lib=STOCK, env=env, taskset=usable) as p:
        return p.icv()["places"], view(p.run())


def none_left(name: str, usable: int) -> bool:
    """Does no place of an explicit list have a usable CPU?  Stock does not bind then; ours has one place of all."""
    with MachinePlayer(None, lib=STOCK, env=PLACES[name], taskset=usable) as p:
        return not p.icv()["places"]


@pytest.mark.parametrize("name", PLACES)
def test_same_places_and_binding_as_stock_under_taskset(name: str) -> None:
    """Growing, shrinking, and sideways; threads beyond the CPUs that a list names included."""
    with MachinePlayer(cpus(0), env=PLACES[name] | FOLLOW) as p:
        for step, usable in (*USABLE.items(), *reversed(USABLE.items())):
            p.set(usable)
            region = p.run()
            places = p.icv()["places"]
            if none_left(name, usable):
                assert (places, {cpus for cpus, _ in view(region)}) == ([usable], {usable}), step
            else:
                assert (places, view(region)) == of_stock(name, usable), step
        assert p.end() == "", "nothing is printed about places that are not there"


@pytest.mark.parametrize("count", [0, 3])
def test_a_place_for_each_last_level_cache(count: int) -> None:
    """Two cores share one. Stock libgomp reads the file of the first CPU only, and so has a single place."""
    caches = [cpus(core, core + 1, core + 8, core + 9) for core in (0, 2, 4, 6)]
    name = f"ll_caches({count})" if count else "ll_caches"
    with MachinePlayer(cpus(0), env=FOLLOW | {"OMP_PLACES": name}) as p:
        for usable in (*USABLE.values(), EVERY):
            p.set(usable)
            region = p.run()
            places = [cache & usable for cache in caches if cache & usable][: count or None]
            assert p.icv()["places"] == places
            assert {mask for mask, _ in view(region)} <= set(places)


@pytest.mark.parametrize("count", [0, 1])
def test_a_place_for_each_node_of_the_page(count: int) -> None:
    name = f"numa_domains({count})" if count else "numa_domains"
    with MachinePlayer(cpus(0), env=FOLLOW | {"OMP_PLACES": name}) as p:
        for usable in (*USABLE.values(), EVERY):
            p.set(usable)
            p.run()
            places = [node & usable for node in (FIRST_SOCKET, SECOND_SOCKET) if node & usable][: count or None]
            assert p.icv()["places"] == places


def test_an_affinity_list_keeps_its_order() -> None:
    with MachinePlayer(cpus(0), env=FOLLOW | {"GOMP_CPU_AFFINITY": "12 9 6 3 0"}) as p:
        for usable in (EVERY, FIRST_SOCKET, SECOND_SOCKET, EVERY):
            p.set(usable)
            p.run()
            assert p.icv()["places"] == [cpus(n) for n in (12, 9, 6, 3, 0) if usable >> n & 1]


def test_every_docked_thread_leaves_the_cpus_that_leave() -> None:
    """The next region has one thread: nobody distributes the others."""
    with MachinePlayer(EVERY, env=BOUND) as p:
        assert p.team() == 16
        p.set(FIRST_SOCKET)
        assert p.team(threads=1) == 1
        assert all(mask & SECOND_SOCKET == 0 for mask in p.masks())
        p.set(EVERY)
        assert p.team() == 16, "where they wait is not somebody's taskset"


def test_the_masks_of_a_few_threads_do_not_confine_the_program() -> None:
    """Somebody has moved two threads; the other fourteen show that the program may run everywhere."""
    for env in (FOLLOW, BOUND):
        with MachinePlayer(EVERY, env=env) as p:
            assert p.team() == 16
            p.do(f"taskset 2 {cpus(0, 1):x}")
            p.set(EVERY)
            assert p.team() == 16, env


@pytest.mark.parametrize("env", [FOLLOW, BOUND], ids=["unbound", "bound"])
def test_a_taskset_of_all_threads_confines_the_program(env: dict[str, str]) -> None:
    with MachinePlayer(EVERY, env=env) as p:
        assert p.team() == 16
        p.do(f"taskset all {FIRST_THREADS:x}")
        for usable, team in ((EVERY, 8), (SECOND_SOCKET, 4), (cpus(3, 4, 11), 2), (EVERY, 8)):
            p.set(usable)
            assert p.team() == team
            if env == BOUND:
                assert all(mask & SECOND_THREADS == 0 for mask in p.masks())


@pytest.mark.parametrize("env", [FOLLOW, BOUND], ids=["unbound", "bound"])
def test_a_taskset_at_the_start_and_cpus_that_come_later(env: dict[str, str]) -> None:
    with MachinePlayer(FIRST_SOCKET, env=env, taskset=FIRST_THREADS) as p:
        for usable, team in ((FIRST_SOCKET, 4), (EVERY, 8), (SECOND_SOCKET, 4), (EVERY, 8)):
            p.set(usable)
            assert p.team() == team
            assert all(mask & SECOND_THREADS == 0 for mask in p.masks())


@pytest.mark.parametrize("env", [FOLLOW, BOUND], ids=["unbound", "bound"])
def test_the_set_of_a_container_shrinks_and_grows(env: dict[str, str]) -> None:
    """The page is the machine's; what the container allows is found at the next version."""
    with MachinePlayer(EVERY, env=env, container=FIRST_SOCKET) as p:
        assert p.team() == 8
        for container, usable in (
            (cpus(0, 1), EVERY),
            (EVERY, EVERY),
            (SECOND_SOCKET, EVERY),
            (EVERY, FIRST_THREADS),
            (NO_CONTAINER, EVERY),
            (FIRST_SOCKET, SECOND_SOCKET | cpus(3)),
            (EVERY, EVERY),
        ):
            p.contain(container)
            p.set(usable)
            ours = container & usable
            region = p.run()
            assert region["team"] == ours.bit_count()
            if env == BOUND:
                assert sorted(mask for mask, _ in view(region)) == [1 << n for n in range(16) if ours >> n & 1]


def test_a_container_is_not_taken_for_a_taskset() -> None:
    """A program that starts in a small container may grow with it; under a taskset as well it may not."""
    for taskset, team in ((0, 16), (cpus(0, 1, 2), 3)):
        with MachinePlayer(EVERY, env=BOUND, container=cpus(0, 1, 2, 3), taskset=taskset) as p:
            assert p.team() == min(team, 4)
            p.contain(EVERY)
            p.set(EVERY)
            assert p.team() == team


@pytest.mark.parametrize("env", [FOLLOW, BOUND], ids=["unbound", "bound"])
def test_cpus_that_the_page_calls_impossible_are_not_used(env: dict[str, str]) -> None:
    with MachinePlayer(machine_page(EVERY, possible=8), env=env) as p:
        for usable, team in ((EVERY, 8), (cpus(0, 7, 8), 2), (EVERY, 8)):
            p.set(usable)
            assert p.team() == team


def test_cpus_that_go_and_come_back() -> None:
    """Offline CPUs have no files: places are made from what is there."""
    with MachinePlayer(EVERY, env=FOLLOW | {"OMP_PLACES": "cores"}) as p:
        for usable in (EVERY, FIRST_SOCKET, EVERY, FIRST_THREADS, EVERY):
            if usable & ~p.online:
                p.plug(usable)
                p.set(usable)
            else:
                p.set(usable)
                p.run()
                p.plug(usable)
            assert p.team() == usable.bit_count()
            cores = [cpus(core, core + 8) & usable for core in range(8) if cpus(core, core + 8) & usable]
            assert p.icv()["places"] == cores


FOUR, EIGHT, TWELVE = cpus(*range(4)), cpus(*range(8)), cpus(*range(12))


@pytest.mark.parametrize(
    "env", [{}, {"OMP_NUM_THREADS": "4"}, {"OMP_PLACES": "threads"}], ids=["never asks", "number", "bound"]
)
def test_nodes_that_come_between_two_regions_are_used(env: dict[str, str]) -> None:
    """Nobody confines the program: a mask that was all there was, and is all there is, has only grown."""
    with MachinePlayer(FOUR, env=env, online=FOUR) as p:
        assert p.team() == 4
        for online in (EIGHT, TWELVE):
            p.plug(online)
            p.set(online)
        assert p.team() == (4 if "OMP_NUM_THREADS" in env else 12)
        if "OMP_PLACES" not in env:
            assert set(p.masks()) == {TWELVE}
        p.plug(EVERY)
        p.set(EVERY)
        assert p.team() == (4 if "OMP_NUM_THREADS" in env else 16)


def test_a_node_that_goes_and_comes_back_between_two_regions_is_used() -> None:
    with MachinePlayer(FIRST_SOCKET, online=FIRST_SOCKET) as p:
        assert p.team() == 8
        p.plug(EVERY)
        p.set(EVERY)
        assert p.team() == 16
        p.set(FIRST_SOCKET)
        p.plug(FIRST_SOCKET)
        p.set(FIRST_SOCKET)
        assert p.team() == 8
        for usable in (FIRST_SOCKET, EVERY, EVERY):
            p.plug(EVERY)
            p.set(usable)
        for _ in range(2):
            assert p.team() == 16
            p.set(EVERY)


@pytest.mark.parametrize("versions", [1, 2])
def test_cpus_of_a_taskset_that_come_are_used_and_others_are_not(versions: int) -> None:
    """What the user allowed includes CPUs that were not there, which the kernel does not show at once."""
    with MachinePlayer(cpus(0), online=cpus(0), taskset=TWELVE) as p:
        assert p.team() == 1
        for online in (cpus(0, 1), FOUR, EIGHT, EVERY):
            p.plug(online)
            for _ in range(versions):
                p.set(online)
            assert p.team() == (online & TWELVE).bit_count()
            assert set(p.masks()) == {online & TWELVE}


def test_a_first_thread_that_the_program_binds_itself_stays_bound() -> None:
    """Though the masks of all threads together are all there is."""
    with MachinePlayer(FOUR, online=FOUR) as p:
        assert p.team() == 4
        p.do(f"taskset 1 {cpus(1):x}")
        for online in (EIGHT, TWELVE):
            p.plug(online)
            p.set(online)
            p.set(online)
            assert p.team() == online.bit_count()
            assert p.masks()[0] == cpus(1)


@pytest.mark.parametrize("container", [NO_CONTAINER, cpus(0, 8)], ids=["no container", "container"])
def test_asking_does_not_narrow_a_place(container: int) -> None:
    """One CPU of it is away while the program asks: it still belongs to the place, and is used when it comes back."""
    both = cpus(0, 8)
    with MachinePlayer(both, env={"OMP_PLACES": "cores"}, online=both, container=container) as p:
        assert p.procs() == 2
        assert p.team(threads=1) == 1
        p.plug(cpus(0))
        p.set(cpus(0))
        assert p.procs() == 1
        p.plug(both)
        p.set(both)
        assert p.team(threads=1) == 1
        assert p.masks() == [both]
        assert p.procs() == 2
        p.set(both)
        assert p.team() == 2
        assert p.masks() == [both, both]


def test_asking_keeps_a_taskset_of_a_bound_thread() -> None:
    with MachinePlayer(EVERY, env={"OMP_PLACES": "cores"}) as p:
        assert p.team(threads=1) == 1
        p.do(f"taskset all {cpus(8):x}")
        p.set(EVERY)
        assert p.procs() == 1
        assert p.masks() == [cpus(8)]


def test_cpus_of_a_taskset_that_go_and_come_back_before_the_first_region() -> None:
    with MachinePlayer(EVERY, taskset=SECOND_SOCKET) as p:
        assert p.masks() == [SECOND_SOCKET], "the program has begun"
        for online in (FIRST_SOCKET, EVERY):
            p.plug(online)
            p.set(online)
        assert p.team() == 8
        assert set(p.masks()) == {SECOND_SOCKET}


@pytest.mark.parametrize("asks", [False, True])
def test_a_taskset_counts_again_when_its_cpus_are_back(asks: bool) -> None:
    """The program runs somewhere else meanwhile, and knows that it was the kernel that let it."""
    with MachinePlayer(EVERY, taskset=SECOND_SOCKET) as p:
        assert p.team() == 8
        p.plug(FIRST_SOCKET)
        p.set(FIRST_SOCKET)
        assert p.team() == 8
        assert set(p.masks()) == {EVERY & p.online}
        p.plug(FIRST_SOCKET | cpus(4))
        p.set(FIRST_SOCKET | cpus(4))
        if asks:
            assert p.told() == 1
        assert p.team() == 1
        assert set(p.masks()) == {cpus(4)}


def test_a_taskset_that_was_lifted_does_not_confine_threads_that_begin_later() -> None:
    with MachinePlayer(EVERY, taskset=FIRST_THREADS) as p:
        assert p.team() == 8
        p.do(f"taskset all {NO_CONTAINER:x}")
        p.set(EVERY)
        assert p.team() == 16
        assert [p.do(f"roots 1 {EVERY:x} {EVERY:x}")["team"], p.hear()["team"]] == [16, 16]
