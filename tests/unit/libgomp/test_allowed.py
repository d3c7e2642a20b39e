# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Nobody is bound outside what the user's taskset allows, and changes of it are followed."""

from __future__ import annotations

import pytest

from tests.unit.libgomp.gomp_player import AB, ALL, CPUS, A, B, Player, Reply

BINDINGS = {
    "unbound": {},
    "bound": {"OMP_PLACES": f"{{{CPUS[0]}}},{{{CPUS[-1]}}}"},
    "bound to threads": {"OMP_PLACES": "threads"},
}


@pytest.fixture(params=BINDINGS)
def binding(request: pytest.FixtureRequest) -> dict[str, str]:
    return BINDINGS[request.param]


def inside(reply: Reply, mask: int) -> bool:
    return all(cpus & ~mask == 0 for cpus in reply["cpus"])


@pytest.mark.parametrize("mask", [A, B])
def test_taskset_at_the_start(mask: int, binding: dict[str, str]) -> None:
    with Player(A, confine=mask, env=binding) as p:
        assert p.told() == 1
        for usable in (AB, A, B, AB):
            p.set(usable)
            assert p.team() == 1
            assert p.told() == 1
            assert inside(p.do("tasks"), mask), f"usable {usable:b}"


def test_taskset_with_a_cpu_that_comes_later(binding: dict[str, str]) -> None:
    with Player(A, confine=AB, env=binding) as p:
        assert p.team() == 1
        p.set(AB)
        assert p.team() == 2


def test_taskset_of_all_threads_while_running(binding: dict[str, str]) -> None:
    with Player(AB, env=binding) as p:
        assert p.team() == 2
        assert p.do(f"taskset all {B:x}") == {"failed": 0}
        for usable in (AB, A, AB, B, AB):
            p.set(usable)
            assert p.team() == 1
            assert inside(p.do("tasks"), B), f"usable {usable:b}"


def test_taskset_is_lifted(binding: dict[str, str]) -> None:
    with Player(AB, env=binding) as p:
        assert p.team() == 2
        p.do(f"taskset all {B:x}")
        p.set(AB)
        assert p.team() == 1
        p.do(f"taskset all {AB:x}")
        p.set(AB)
        assert p.team() == 2


def test_a_program_that_binds_its_first_thread_itself() -> None:
    """One thread alone says nothing about what the program may use: the team does not collapse."""
    with Player(AB) as p:
        assert p.team() == 2
        p.do(f"taskset self {B:x}")
        for usable in (AB, A, AB):
            p.set(usable)
            p.run()
        assert p.team() == 2


def test_changes_of_the_page_do_not_pass_for_a_taskset(binding: dict[str, str]) -> None:
    with Player(AB, env=binding) as p:
        for usable in (AB, A, B, A, AB, B, AB) * 3:
            p.set(usable)
            assert p.team() == usable.bit_count()


EVERYWHERE = (1 << 64) - 1
"""The mask that the kernel gives a thread whose CPUs have all gone: all that the container permits."""


@pytest.mark.parametrize("steps", [(A,), (), (A, A), (0, A)], ids=["followed", "between two regions", "twice", "none"])
def test_cpus_that_leave_and_come_back_do_not_lift_a_taskset(steps: tuple[int, ...], binding: dict[str, str]) -> None:
    """The kernel opens the masks of the threads when their CPU goes, and leaves them so when it comes back."""
    with Player(AB, confine=B, env=binding) as p:
        assert p.team() == 1
        p.set(A)
        p.do(f"taskset all {EVERYWHERE:x}")  # as the kernel does
        for usable in steps:
            p.run()
            p.set(usable)
        for _ in range(3):
            p.set(AB)
            assert p.team() == 1
            assert inside(p.do("tasks"), B)
        assert p.told() == p.procs() == 1


def test_a_taskset_while_running_survives_the_same(binding: dict[str, str]) -> None:
    with Player(AB, env=binding) as p:
        assert p.team() == 2
        p.do(f"taskset all {B:x}")
        p.set(AB)
        assert p.team() == 1
        p.set(A)
        p.do(f"taskset all {EVERYWHERE:x}")
        p.set(AB)
        assert p.team() == 1
        assert inside(p.do("tasks"), B)


def test_a_taskset_is_narrowed_after_the_kernel_has_opened_it(binding: dict[str, str]) -> None:
    """A mask that is not all there is comes from the user, whatever has happened."""
    with Player(AB, confine=B, env=binding) as p:
        assert p.team() == 1
        p.set(A)
        p.set(AB)
        p.do(f"taskset all {A:x}")
        p.set(AB)
        assert p.team() == 1
        assert inside(p.do("tasks"), A)


def test_asking_does_not_take_the_kernels_mask_for_the_users(binding: dict[str, str]) -> None:
    with Player(AB, confine=B, env=binding) as p:
        assert p.team() == 1
        p.set(A)
        p.do(f"taskset all {EVERYWHERE:x}")
        p.set(AB)
        masks = p.do("tasks")
        assert p.told() == p.procs() == 1
        assert p.do("tasks") == masks, "asking must not change masks"
        assert p.team() == 1
        assert inside(p.do("tasks"), B)


def test_asking_does_not_take_a_mask_of_the_moment_for_the_users() -> None:
    """A taskset that is lifted again before the next region was never there."""
    with Player(AB) as p:
        assert p.team() == 2
        p.do(f"taskset all {B:x}")
        p.set(AB)
        assert p.told() == 1
        p.do(f"taskset all {EVERYWHERE:x}")
        p.set(AB)
        assert p.team() == 1
        assert set(p.do("tasks")["cpus"]) == {ALL}
    with Player(AB, env={"OMP_PLACES": "threads", "OMP_NUM_THREADS": "2"}) as p:
        assert p.team() == 2
        p.do(f"taskset all {B:x}")
        p.set(AB)
        assert p.procs() == 1
        p.do(f"taskset all {EVERYWHERE:x}")
        p.set(AB)
        assert {thread["cpus"] for thread in p.run()["threads"]} == {A, B}
