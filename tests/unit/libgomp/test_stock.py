# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""Without a topology page our libgomp is stock libgomp: same symbols, same teams, same system calls."""

from __future__ import annotations

import re
import subprocess
from collections import Counter
from functools import cache
from pathlib import Path

import pytest

from tests.unit.libgomp.gomp_player import AB, ELASTIC, STOCK, A, Player

SCRIPT = [
    "run parallel",
    "run for_dynamic",
    "told",
    "procs",
    "icv",
    "run sections",
    "nested",
    "threads 1",
    "run parallel",
    "told",
    "procs",
    "icv",
    "run teams",
]
# No thread ends, and each makes the same calls whoever is first.
QUIET_SCRIPT = ["run parallel", "told", "procs", "icv", "repeat 10", "run old_abi", "dynamic 0", "run parallel", "icv"]

ENVIRONMENTS = {
    "plain": {},
    "places": {"OMP_PLACES": "threads"},
    "spread": {"OMP_PROC_BIND": "spread"},
    "number": {"OMP_NUM_THREADS": "3"},
    "dynamic": {"OMP_DYNAMIC": "true"},
    "limit": {"OMP_THREAD_LIMIT": "1"},
    "display": {"OMP_DISPLAY_ENV": "verbose"},
    "impossible place": {"OMP_PLACES": "{0},{4000}"},
}

# What a thread waits for depends on the others; the rest must be the same, call for call.
TIMING = {"futex", "sched_yield", "restart_syscall", "clock_gettime", "clock_nanosleep"}


def exported(lib: Path) -> list[str]:
    out = subprocess.run(
        ["nm", "-D", "--with-symbol-versions", "--defined-only", lib], capture_output=True, text=True, check=True
    ).stdout
    return sorted(line.split(" ", 1)[1] for line in out.splitlines())


def test_same_symbols_and_versions_as_debian() -> None:
    """A library of another make (-1 KiB of Fortran wrappers, a symbol too many) would be noticed by some program."""
    path = subprocess.run(["gcc", "-print-file-name=libgomp.so.1"], capture_output=True, text=True, check=True).stdout
    debian = Path(path.strip())
    if not debian.is_absolute():
        debian = Path("/usr/lib/x86_64-linux-gnu/libgomp.so.1")
    assert ELASTIC
    assert exported(ELASTIC / "libgomp.so.1") == exported(debian)


def session(
    lib: Path | None, env: dict[str, str], script: list[str], prefix: tuple[str, ...] = ()
) -> tuple[list[object], str]:
    """All that the program says, without the numbers of threads, and its messages."""
    with Player(None, lib=lib, env=env | {"PLAYER_NO_PAGE": "1"}, prefix=prefix) as p:
        said: list[object] = []
        for line in script:
            reply = p.do(line)
            reply.pop("tasks", None)  # a thread that is ending is still there for a while
            for thread in reply.get("threads", []):
                del thread["tid"]
            if re.search("for|sections|teams", line):
                reply.pop("threads", None)  # which thread gets which iteration is a race
            said.append(reply)
        return said, p.end()


@pytest.mark.parametrize("off", [{}, {"GOMP_TOPO": "off", "GOMP_TOPO_DEV": "/dev/null"}], ids=["no device", "off"])
@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_same_behaviour(name: str, off: dict[str, str]) -> None:
    env = ENVIRONMENTS[name]
    ours, stock = session(ELASTIC, env | off, SCRIPT), session(STOCK, env, SCRIPT)
    if name == "dynamic":
        # The load average decides there; it may change between the two.
        assert ours[0][2:5] == stock[0][2:5]
    else:
        assert ours == stock


def test_switched_off_with_a_page() -> None:
    with Player(A, env={"GOMP_TOPO": "off", "OMP_NUM_THREADS": "2"}) as p:
        assert p.team() == 2
        p.set(A)
        assert p.team() == 2
        assert p.icv()["dynamic"] == 0


@cache
def strace_works() -> bool:
    try:
        return subprocess.run(["strace", "-f", "-o", "/dev/null", "true"], check=False).returncode == 0
    except FileNotFoundError:
        return False


def calls(lib: Path | None, env: dict[str, str], trace: Path) -> Counter[str]:
    session(lib, env, QUIET_SCRIPT, prefix=("strace", "-f", "-qq", "-o", str(trace)))
    names = re.findall(r"^\d+ +(\w+)\(", trace.read_text(), re.M)
    return Counter(name for name in names if name not in TIMING)


@pytest.mark.parametrize("name", ["plain", "places", "number"])
def test_same_system_calls(name: str, tmp_path: Path) -> None:
    """Switched off: the very same. Without a device: one openat() more, that finds this out."""
    assert strace_works(), "strace is needed, and ptrace"
    env = ENVIRONMENTS[name]
    stock = calls(STOCK, env, tmp_path / "stock")
    assert stock["sched_getaffinity"] > 0
    assert calls(ELASTIC, env | {"GOMP_TOPO": "off"}, tmp_path / "off") == stock
    assert calls(ELASTIC, env, tmp_path / "ours") - stock == Counter({"openat": 1})


def test_no_system_call_in_a_region_while_nothing_changes(tmp_path: Path) -> None:
    """Other than those that wait, and those that obey the test."""
    trace = tmp_path / "trace"
    with Player(AB, prefix=("strace", "-f", "-qq", "-o", str(trace))) as p:
        assert p.team() == 2
        begin = len(trace.read_text())
        p.do("repeat 100")
        made = set(re.findall(r"^\d+ +(\w+)\(", trace.read_text()[begin:], re.M))
        assert made - TIMING <= {"read", "write"}
