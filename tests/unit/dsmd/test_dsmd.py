# SPDX-License-Identifier: GPL-2.0
"""The transport, the configuration and the statistics of dsmd: compiled with sanitizers; each case of a *_test.c is a test.

A program is compiled when a test of it is about to run, so that collecting tests costs nothing.
"""

from __future__ import annotations

import functools
import os
import re
import subprocess
import tempfile
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from lab.pipeline.mutants import load

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[2]
LIST = HERE / "cases.txt"
# Another place, and only these cases, PROGRAM::CASE, without the slow sanitizers: for make mutants.
DSM = Path(os.environ.get("XENUMA_DSMD", ROOT / "dsm"))
ONLY = [line.partition("::")[::2] for line in os.environ.get("XENUMA_DSMD_CASES", "").splitlines()]

CORE = ["protocol.c", "vcpu.c", "wire.c"]
RIG = [HERE / "rig.c", HERE / "papers.c"]
PARTS = [
    *(DSM / "core" / name for name in CORE),
    *(
        DSM / "transport" / name
        for name in (
            *("backend.c", "binding.c", "expiry.c", "link.c", "opening.c", "queue_pair.c", "rdma.c", "tcp_tls.c", "tls.c"),
            "transport.c",
        )
    ),
]
ENGINE = [
    *(
        DSM / "core" / f"{noun}.c"
        for noun in ("act", "directory", "holder", "lease", "protocol", "rules", "step", "token", "vcpu")
    ),
    *(
        DSM / "daemon" / f"engine{part}.c"
        for part in (
            *("", "_answers", "_evacuate", "_fail", "_frames", "_here", "_idle", "_letters", "_merge", "_misses"),
            *("_open", "_pages", "_pause", "_peers"),
            *("_place", "_prefetch", "_ranges", "_said", "_state", "_stop", "_token", "_uncached", "_vcpus", "_waits"),
        )
    ),
    *(DSM / "daemon" / f"{noun}.c" for noun in ("histogram", "profile", "table")),
]
WORKER = list(
    dict.fromkeys(
        [
            *ENGINE,
            *PARTS,
            DSM / "daemon" / "config.cc",
            *(
                DSM / "daemon" / f"{noun}.c"
                for noun in (
                    *("clock", "control", "description", "drift", "jump", "peers", "peers_clock", "polling", "resize"),
                    *("stats", "tune"),
                    *("pause", "place", "start", "worker", "worker_state"),
                )
            ),
        ]
    )
)
PROGRAMS = {
    "binding_test.c": [*PARTS, *RIG],
    "link_test.c": PARTS,
    "identity_test.c": [*PARTS, *RIG],
    "expiry_test.c": [*PARTS, HERE / "papers.c"],
    "transport_test.c": [*PARTS, *RIG],
    "rdma_test.c": [*PARTS, *RIG, HERE / "line.c"],
    "adapter_test.c": [*PARTS, *RIG, HERE / "played_rdma.c"],
    "config_test.c": [*PARTS, DSM / "daemon" / "config.cc"],
    "stats_test.c": [*PARTS, *(DSM / "daemon" / f"{noun}.c" for noun in ("clock", "histogram", "profile", "stats"))],
    "top_test.c": [DSM / "daemon" / "symbols.c", DSM / "daemon" / "top.c"],
    "profile_test.c": [DSM / "daemon" / "profile.c"],
    "jump_test.c": [DSM / "daemon" / f"{noun}.c" for noun in ("clock", "jump")],
    "clock_test.c": [DSM / "daemon" / f"{noun}.c" for noun in ("clock", "tsc")],
    "engine_test.c": [*ENGINE, HERE / "played_xen.c"],
    "engine_vcpu_test.c": [*ENGINE, HERE / "played_xen.c", HERE / "vcpu_rig.c"],
    "engine_uncached_test.c": [*ENGINE, HERE / "played_xen.c", HERE / "vcpu_rig.c"],
    "engine_pause_test.c": [*ENGINE, HERE / "played_xen.c", HERE / "vcpu_rig.c"],
    "engine_place_test.c": [*ENGINE, HERE / "played_xen.c", HERE / "vcpu_rig.c"],
    "description_test.c": [*PARTS, DSM / "daemon" / "description.c", DSM / "daemon" / "config.cc"],
    "xen_test.c": [
        *PARTS,
        *(
            DSM / "daemon" / name
            for name in ("xen_libxc.c", "tsc.c", "slice.c", "cpu_features.c", "description.c", "config.cc")
        ),
    ],
    "polling_test.c": [DSM / "daemon" / "polling.c", DSM / "daemon" / "tune.c"],
    "log_test.c": [DSM / "daemon" / "log.c"],
    "liar_test.c": [DSM / "core" / name for name in CORE],
    "control_test.c": [DSM / "daemon" / "control.c"],
    "worker_test.c": [*WORKER, *RIG, HERE / "played_xen.c"],
    "resize_test.c": [*WORKER, *RIG, HERE / "played_xen.c"],
}
# A file that is compiled in one copy of dsm/ need not be compiled in the next.
ENVIRONMENT = {**os.environ, **({"CCACHE_BASEDIR": "/", "CCACHE_NOHASHDIR": "1"} if ONLY else {})}
INCLUDED = [
    HERE / "fake_xen",
    ROOT / "xen" / "overlay" / "tools" / "include",
    *(DSM / folder for folder in ("core", "transport", "daemon")),
    *(ROOT / "tests" / "unit" / folder for folder in ("dsm", "dsmd", "linux")),
]
FLAGS = [
    *["-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra", "-Wshadow"],
    *([] if ONLY else ["-Werror", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]),
    *(f"-I{folder}" for folder in INCLUDED),
]
C = ["ccache", "gcc", "-std=c11", *FLAGS]
CXX = ["ccache", "g++", "-std=c++17", *FLAGS]
LIBRARIES = ["-lev", "-lrdmacm", "-libverbs", "-lssl", "-lcrypto", "-ljson-c", "-ltomlplusplus"]
SECONDS = 600

_scratch = tempfile.TemporaryDirectory(prefix="dsmd_test.")


@functools.cache
def compiled(source: Path, stem: str = "") -> Path:
    """The object of a source. ev.h and the tests' macros convert freely; what is ours does not."""
    target = Path(_scratch.name) / f"{stem or source.stem}.o"
    if source.suffix == ".cc":
        words = [*CXX]
    else:
        strict = source.is_relative_to(DSM)
        words = [*C, *(["-Wconversion"] if strict else [])]
    done = subprocess.run(
        [*words, "-c", source, "-o", target], cwd=DSM, env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return target


def linked(name: str, sources: Sequence[Path], libraries: Sequence[Path] = ()) -> Path:
    """A program. `libraries`: are asked before the system's."""
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = list(pool.map(compiled, sources))
    target = Path(_scratch.name) / name
    subprocess.run([*CXX, *objects, "-o", target, *libraries, *LIBRARIES], check=True, capture_output=True)
    return target


@functools.cache
def fabric() -> Path:
    """An RDMA adapter that is played, between processes: a library of its own, so that others can stand before it."""
    target = Path(_scratch.name) / "played_fabric.so"
    words = ["ccache", "gcc", "-std=c11", "-O1", "-g", "-D_GNU_SOURCE", "-pthread", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run(
        [*words, "-fPIC", "-shared", HERE / "played_fabric.c", "-o", target],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return target


def linked_apart(name: str, sources: Sequence[Path], shared: Sequence[Path]) -> Path:
    """Sources of another folder, whose names may be those of ours."""
    apart = [compiled(source, f"{name}-{source.stem}") for source in sources]
    target = Path(_scratch.name) / name
    objects = [*apart, *(compiled(source) for source in shared)]
    subprocess.run([*CXX, *objects, "-o", target, *LIBRARIES], check=True, capture_output=True)
    return target


@functools.cache
def program(name: str) -> Path:
    return linked(name.removesuffix(".c"), [HERE / name, *PROGRAMS[name]])


def run(name: str, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program(name), *words], capture_output=True, text=True, timeout=SECONDS, check=False)


def cases() -> list[tuple[str, str]]:
    """The cases, as they are written down: nothing is compiled before a test is about to run."""
    if ONLY:
        return [(name, case) for name, case in ONLY if not name.endswith(".py")]
    lines = LIST.read_text(encoding="utf-8").splitlines()
    return [line.partition("::")[::2] for line in lines if line and not line.startswith("#")]


def listed(name: str) -> list[tuple[str, str]]:
    """The cases that a program says it has."""
    return [(name, case) for case in run(name, "--list").stdout.splitlines()]


def of_rdma() -> list[str]:
    """The cases that need an RDMA device (tests/guest/test_rdma.py)."""
    words = [str(program("rdma_test.c")), "--list"]
    environment = {**os.environ, "DSMD_TRANSPORT": "rdma"}
    return subprocess.run(words, check=True, capture_output=True, text=True, env=environment).stdout.splitlines()


# What has sockets and real time in it has not passed often enough yet to be in everybody's way.
FRESH = (
    ()
    if ONLY
    else (
        *("adapter_test.c", "control_test.c", "identity_test.c", "transport_test.c", "worker_test.c"),
        "resize_test.c",
    )
)


# But these are promises to who sets it up, and nothing in them rests on who is quick.
STEADY = re.compile(
    r"((a client's|a server's|our) certificate|without TLS): .*|our (files|key)|the CA's certificate"
    r"|certificates in between|a long certificate|a (session|record) played again|bits flipped on the way"
)


def marked(name: str, *values: str) -> ParameterSet:
    steady = any(STEADY.fullmatch(value) for value in values)
    return pytest.param(name, *values, marks=[pytest.mark.fresh] if name in FRESH and not steady else [])


@pytest.mark.parametrize(("name", "case"), [marked(*case) for case in cases()], ids=str)
def test_case(name: str, case: str) -> None:
    done = run(name, case)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.skipif(bool(ONLY), reason="for make mutants")
@pytest.mark.parametrize("name", [marked(name) for name in PROGRAMS])
def test_no_case_is_missing(name: str) -> None:
    """cases.txt is what the programs say; ``python3 -m tests.unit.dsmd.test_dsmd`` writes it anew."""
    assert [case for case in cases() if case[0] == name] == listed(name)


@pytest.mark.skipif(bool(ONLY), reason="for make mutants")
def test_no_name_of_libc() -> None:
    """A function of ours called send() would be the one that OpenSSL calls."""

    def names(words: Sequence[str | Path]) -> set[str]:
        done = subprocess.run(["nm", "--defined-only", "-g", *words], capture_output=True, text=True, check=True)
        return {line.split()[2].partition("@")[0] for line in done.stdout.splitlines() if len(line.split()) == 3}

    (libc,) = (
        line.split()[-1]
        for line in Path("/proc/self/maps").read_text().splitlines()
        if "/libc.so" in line[-20:] and " r-xp " in line
    )
    assert "send" in names(["-D", libc])
    assert not names([compiled(source) for source in WORKER]) & names(["-D", libc])


@pytest.mark.skipif(bool(ONLY), reason="for make mutants")
def test_every_mutant_fits() -> None:
    """Each line is there once, and each case exists."""
    known = {f"{name}::{case}" for name, case in cases()}
    for name in (
        *(f"test_dsmd_host{part}.py" for part in ("", "_mesh", "_places", "_refuses")),
        "test_dsmd_process.py",
    ):
        text = (HERE / name).read_text(encoding="utf-8")
        known |= {f"{name}::{test}" for test in re.findall(r"^def (test_\w+)", text, re.MULTILINE)}
    known |= {f"rdma_test.c::{case}" for case in of_rdma()}
    mutants = load(HERE / "mutants.toml")
    assert len(mutants) >= 15
    for mutant in mutants:
        mutant.apply((DSM / mutant.file).read_text(encoding="utf-8"))
        assert known.issuperset(mutant.tests), mutant.breaks


if __name__ == "__main__":
    head = "# SPDX-License-Identifier: GPL-2.0\n# The cases of these programs: python3 -m tests.unit.dsmd.test_dsmd\n"
    LIST.write_text(
        head + "".join(f"{name}::{case}\n" for each in PROGRAMS for name, case in listed(each)), encoding="utf-8"
    )
