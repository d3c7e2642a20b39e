# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""A page that makes no sense: refused at the start with the reason, survived later."""

from __future__ import annotations

import random
import struct

import pytest

from lab.topology_page import OFFSET, PAGE_SIZE
from tests.unit.libgomp.gomp_player import AB, CPUS, POSSIBLE, A, B, Player, page

BOUND = {"OMP_PLACES": f"{{{CPUS[0]}}},{{{CPUS[-1]}}}"}


def changed(field: str, data: bytes) -> bytes:
    raw = page(A)
    raw[OFFSET[field] : OFFSET[field] + len(data)] = data
    return bytes(raw)


def u32(value: int) -> bytes:
    return struct.pack("<I", value)


def u64(value: int) -> bytes:
    return struct.pack("<Q", value)


REFUSED = {
    "magic": (changed("magic", b"XTOPO999"), "magic"),
    "layout": (changed("abi", u32(2)), "layout 2"),
    "version 0": (changed("version", u64(0)), "version 0"),
    "being written for ever": (changed("seq", u32(7)), "sequence 7"),
    "no CPUs possible": (changed("nr_cpus_possible", u32(0)), "0 possible CPUs"),
    "too many CPUs": (changed("nr_cpus_possible", u32(4097)), "4097 possible CPUs"),
    "2^32 - 1 CPUs": (changed("nr_cpus_possible", u32(0xFFFFFFFF)), "4294967295 possible CPUs"),
    "zeroes": (bytes(PAGE_SIZE), "magic 0"),
    "ones": (b"\xff" * PAGE_SIZE, "magic ffffffffffffffff"),
    "too short": (bytes(page(A))[:3015], "too short"),
    "empty": (b"", "too short"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_at_the_start_with_the_reason(name: str) -> None:
    """The program then has the teams and ICVs of stock libgomp."""
    data, reason = REFUSED[name]
    with Player(data, env={"OMP_NUM_THREADS": "2", "PLAYER_NO_PAGE": "1"}) as p:
        assert p.team() == 2
        assert p.icv()["dynamic"] == 0
        message = p.end()
    assert reason in message, message
    assert str(p.page) in message


@pytest.mark.parametrize("path", ["/nonexistent/page", "/", "/dev/null", "/proc/self/status"])
def test_a_file_that_cannot_be_a_page(path: str) -> None:
    env = {"OMP_NUM_THREADS": "2", "PLAYER_NO_PAGE": "1", "GOMP_TOPO_DEV": path}
    with Player(None, env=env) as p:
        assert p.team() == 2
        assert p.icv()["dynamic"] == 0
        assert path in p.end()


@pytest.mark.parametrize("env", [{}, BOUND], ids=["unbound", "bound"])
def test_no_cpu_usable(env: dict[str, str]) -> None:
    """Nobody can run nowhere: what is allowed is used."""
    with Player(AB, env=env) as p:
        assert p.team() == 2
        p.set(0)
        assert p.team() >= 2
        p.set(A)
        assert p.team() == 1


def test_cpus_beyond_the_possible_ones_are_ignored() -> None:
    with Player(AB, env=BOUND) as p:
        p.poke("cpus_usable", b"\xff" * 512)
        p.set((1 << 64) - 1)
        assert p.team() >= 2
        assert p.told() < 4096


def test_more_cpus_than_the_machine_has() -> None:
    raw = page((1 << 4096) - 1, possible=4096)
    with Player(bytes(raw), env={"OMP_PLACES": "threads"}) as p:
        assert p.team() >= 2
        p.set(B)
        assert p.team() == 1


def test_the_number_of_possible_cpus_is_believed_once() -> None:
    with Player(AB, env=BOUND) as p:
        for number in (0, 1, 4096, 0xFFFFFFFF):
            p.poke("nr_cpus_possible", u32(number))
            for usable in (A, AB):
                p.set(usable)
                assert p.team() == usable.bit_count()


def test_magic_and_layout_are_believed_once() -> None:
    with Player(AB, env=BOUND) as p:
        p.poke("magic", u64(0))
        p.poke("abi", u32(9))
        for usable in (A, AB):
            p.set(usable)
            assert p.team() == usable.bit_count()


@pytest.mark.parametrize("env", [{}, BOUND], ids=["unbound", "bound"])
def test_a_writer_that_never_finishes(env: dict[str, str]) -> None:
    """The old CPUs stay in use, and only the first region pays for the attempt."""
    with Player(AB, env=env) as p:
        assert p.team() == 2
        p.poke("seq", u32(1001))
        p.poke("version", u64(50))
        for _ in range(5):
            assert p.team() == 2
        p.poke("seq", u32(1002))
        p.set(A)
        assert p.team() == 1


def test_versions_that_go_back() -> None:
    with Player(A) as p:
        for version, usable in ((9, AB), (3, A), (0, AB), ((1 << 64) - 1, A)):
            p.poke("version", u64((version - 1) % (1 << 64)))
            p.set(usable)
            assert p.team() == usable.bit_count(), f"version {version}"


@pytest.mark.parametrize("env", [{}, BOUND, {"OMP_PLACES": "numa_domains"}], ids=["unbound", "bound", "numa"])
def test_noise(env: dict[str, str]) -> None:
    """Any bytes behind the version; then the page is right again, and so is the program."""
    noise = random.Random(1)
    with Player(AB, env=env, record=True) as p:
        for _ in range(100):
            at = noise.randrange(16, PAGE_SIZE - 32)
            p.do(f"raw {at} {noise.randbytes(noise.choice((1, 4, 32))).hex()}")
            p.do(f"raw {OFFSET['version']} {noise.randbytes(1).hex()}")
            assert 1 <= p.team() <= POSSIBLE
        for start in range(16, PAGE_SIZE, 200):
            p.do(f"raw {start} {page(AB)[start : start + 200].hex()}")
        for usable in (A, AB, B):
            p.set(usable)
            assert p.team() == usable.bit_count()
