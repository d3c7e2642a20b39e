# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""What libgomp asks of the kernel: the promise, the reset of memory, the acknowledgement; in order, once each."""

from __future__ import annotations

import pytest

from lab.topology_page import DRAINING, GROWING, STABLE
from tests.unit.libgomp.gomp_player import AB, CPUS, A, B, Player, page

TOUCH, POLICY, FOLLOW = 1, 2, 4

BOUND = {"OMP_PLACES": f"{{{CPUS[0]}}},{{{CPUS[-1]}}}"}


def test_a_program_without_regions_promises_nothing() -> None:
    with Player(A, record=True) as p:
        p.icv()
        p.set(AB)
        assert p.recorded() == []


def test_promise_with_the_first_region_then_reset_and_acknowledgement() -> None:
    with Player(A, record=True) as p:
        p.run()
        assert p.recorded() == ["register", "ack 1"]
        p.run()
        assert p.recorded() == []
        version = p.set(AB)
        p.run()
        assert p.recorded() == [f"reset syscall {version} {TOUCH | FOLLOW} 0", f"ack {version}"]
        p.run()
        assert p.recorded() == []


def test_a_change_before_the_first_region_is_followed() -> None:
    with Player(A, record=True) as p:
        p.set(AB)
        p.run()
        assert p.recorded() == ["register", f"reset syscall 2 {TOUCH | FOLLOW} 0", "ack 2"]


def test_several_versions_at_once_are_one_change() -> None:
    with Player(A, record=True) as p:
        p.run()
        p.recorded()
        for usable in (AB, A, B, AB):
            last = p.set(usable)
        p.run()
        assert p.recorded() == [f"reset syscall {last} {TOUCH | FOLLOW} 0", f"ack {last}"]


@pytest.mark.parametrize("env", [{}, BOUND], ids=["unbound", "bound"])
def test_draining_is_left_before_it_is_acknowledged(env: dict[str, str]) -> None:
    with Player(AB, record=True, env=env) as p:
        assert p.team() == 2
        p.recorded()
        version = p.set(A, DRAINING)
        region = p.run()
        assert region["team"] == 1
        if env:
            assert all(cpus & ~A == 0 for cpus in p.do("tasks")["cpus"])
        assert p.recorded() == [f"reset syscall {version} {TOUCH | FOLLOW} 0", f"ack {version}"]


def test_growing_is_acknowledged_without_a_reset() -> None:
    """The node is not usable yet: nothing to move, and the next version comes with it."""
    with Player(A, record=True) as p:
        p.run()
        p.recorded()
        version = p.set(A, GROWING)
        assert p.team() == 1
        assert p.recorded() == [f"ack {version}"]
        version = p.set(AB, STABLE)
        assert p.team() == 2
        assert p.recorded() == [f"reset syscall {version} {TOUCH | FOLLOW} 0", f"ack {version}"]


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        ({"GOMP_TOPO_RESET": "touch"}, [f"reset syscall 2 {TOUCH | FOLLOW} 0"]),
        ({"GOMP_TOPO_RESET": "policy"}, [f"reset syscall 2 {TOUCH | POLICY | FOLLOW} 0"]),
        ({"GOMP_TOPO_RESET": "none"}, []),
        ({"GOMP_TOPO_RESET": " Policy "}, [f"reset syscall 2 {TOUCH | POLICY | FOLLOW} 0"]),
        ({"GOMP_TOPO_GRANULE": "64k"}, [f"reset syscall 2 {TOUCH | FOLLOW} 16"]),
        ({"GOMP_TOPO_GRANULE": "2M"}, [f"reset syscall 2 {TOUCH | FOLLOW} 21"]),
        ({"GOMP_TOPO_GRANULE": "4096"}, [f"reset syscall 2 {TOUCH | FOLLOW} 12"]),
    ],
)
def test_variables_of_the_reset(env: dict[str, str], expected: list[str]) -> None:
    with Player(A, record=True, env=env) as p:
        p.run()
        p.recorded()
        p.set(AB)
        p.run()
        assert p.recorded() == [*expected, "ack 2"]
        assert p.end() == ""


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("GOMP_TOPO", "maybe"),
        ("GOMP_TOPO", ""),
        ("GOMP_TOPO_RESET", "all"),
        ("GOMP_TOPO_PROCS", "8"),
        ("GOMP_TOPO_GRANULE", "4095"),
        ("GOMP_TOPO_GRANULE", "2k"),
        ("GOMP_TOPO_GRANULE", "12k"),
        ("GOMP_TOPO_GRANULE", "4m"),
        ("GOMP_TOPO_GRANULE", "0"),
        ("GOMP_TOPO_GRANULE", "-4096"),
        ("GOMP_TOPO_GRANULE", "4096x"),
        ("GOMP_TOPO_GRANULE", "18446744073709551616"),
        ("GOMP_TOPO_GRANULE", "9007199254740992k"),
    ],
)
def test_an_invalid_value_is_named_and_the_default_used(name: str, value: str) -> None:
    with Player(A, record=True, env={name: value}) as p:
        p.run()
        p.set(AB)
        assert p.team() == 2
        assert f"reset syscall 2 {TOUCH | FOLLOW} 0" in p.recorded()
        assert p.end().strip() == f"libgomp: Invalid value for environment variable {name}: {value}".strip()


def test_without_the_system_call_the_device_resets() -> None:
    """It is not there, a filter forbids it, or the page does not know its number."""
    for usable, env in (
        (A, {"RECORDER_NOSYS": "1"}),
        (A, {"RECORDER_NOSYS": "EPERM"}),
        (bytes(page(A, reset_nr=0)), {}),
    ):
        with Player(usable, record=True, env=env) as p:
            p.run()
            p.recorded()
            p.set(AB)
            p.run()
            assert p.recorded() == ["reset ioctl 2 0 0", "ack 2"]


@pytest.mark.parametrize("number", [-1, 1, 11, 60, 231, 462, 0x7FFFFFFF])
def test_a_known_system_call_is_never_made_in_place_of_the_reset(number: int) -> None:
    """60 and 231 are exit and exit_group, 11 is munmap."""
    with Player(bytes(page(A, reset_nr=number)), record=True) as p:
        p.run()
        p.set(AB)
        assert p.team() == 2
        assert "reset ioctl 2 0 0" in p.recorded()


def test_a_page_without_a_device_behind_it() -> None:
    with Player(A, record=True, env={"RECORDER_NODEV": "1"}) as p:
        for usable in (AB, A, AB):
            p.set(usable)
            assert p.team() == usable.bit_count()
        assert not any(line.startswith("ack") for line in p.recorded())


def test_a_reset_that_comes_too_late_is_repeated_and_given_up_in_the_end() -> None:
    with Player(A, record=True, env={"RECORDER_ESTALE": "2"}) as p:
        p.run()
        p.recorded()
        p.set(AB)
        p.run()
        assert p.recorded() == [f"reset syscall 2 {TOUCH | FOLLOW} 0"] * 3 + ["ack 2"]
    with Player(A, record=True, env={"RECORDER_ESTALE": "1000"}) as p:
        p.set(AB)
        assert p.team() == 2
        assert len([line for line in p.recorded() if line.startswith("reset")]) < 10


def test_a_page_that_cannot_be_read_is_not_acknowledged() -> None:
    with Player(A, record=True) as p:
        p.run()
        p.recorded()
        p.poke("seq", (1001).to_bytes(4, "little"))
        p.poke("version", (50).to_bytes(8, "little"))
        p.run()
        assert p.recorded() == []


def test_a_program_that_closes_descriptors_that_are_not_its_own() -> None:
    with Player(A, record=True) as p:
        p.run()
        p.recorded()
        p.do("closeall")
        version = p.set(AB)
        assert p.team() == 2
        assert sorted(p.recorded()) == sorted(
            ["register", f"reset syscall {version} {TOUCH | FOLLOW} 0", f"ack {version}"]
        )


def test_each_root_thread_resets_after_it_has_moved() -> None:
    with Player(A, record=True) as p:
        p.run()
        p.recorded()
        p.do(f"roots 2 {A:x} {AB:x}")
        for _ in range(3):
            p.hear()
        lines = p.recorded()
        assert lines.count(f"reset syscall 3 {TOUCH | FOLLOW} 0") == 2
        assert lines.count("register") == 0


def test_forked_child_makes_its_own_promise() -> None:
    with Player(A, record=True) as p:
        p.do("fork")
        assert p.hear() == {"status": 0}
        assert p.recorded() == ["register", "ack 1"]
        p.run()
        assert p.recorded() == ["register", "ack 1"]


def test_a_promise_that_has_ended_is_made_again() -> None:
    """A removal has waited for this process in vain; now it follows again."""
    with Player(A, record=True, env={"RECORDER_FORGET": "2"}) as p:
        p.run()
        assert p.recorded() == ["register", "ack 1"]
        p.set(AB)
        p.run()
        assert p.recorded() == [f"reset syscall 2 {TOUCH | FOLLOW} 0", "ack 2 fails", "register", "ack 2"]
        p.set(A)
        p.run()
        assert p.recorded() == [f"reset syscall 3 {TOUCH | FOLLOW} 0", "ack 3"]


def test_a_kernel_that_always_waits() -> None:
    with Player(A, record=True, env={"RECORDER_OLD": "1"}) as p:
        p.run()
        p.set(AB)
        p.run()
        assert p.recorded() == ["register always", "ack 1", f"reset syscall 2 {TOUCH | FOLLOW} 0", "ack 2"]
