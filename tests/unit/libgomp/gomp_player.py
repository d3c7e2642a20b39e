# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""A topology page in a file, and an OpenMP program that is told what to do while the page changes."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
import threading
import zlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from lab.topology_page import OFFSET, STABLE, topology_page

HERE = Path(__file__).resolve().parent
REPO = HERE.parents[2]
UAPI = REPO / "linux-guest" / "overlay" / "include" / "uapi"

RESET_NR = 600
"""What recorder.c plays."""

# The two CPUs of the tests; every other CPU of the machine is left out of the page.
CPUS = sorted(os.sched_getaffinity(0))[:2]
A = 1 << CPUS[0]
B = 1 << CPUS[-1]
AB = A | B
POSSIBLE = CPUS[-1] + 3
"""CPUs that the page says there may be: two more than there are."""

ALL = sum(1 << cpu for cpu in os.sched_getaffinity(0))
"""What a thread that nobody has bound runs on."""


def confined() -> bool:
    """Has somebody confined these tests to some CPUs, other than by a cpuset?"""
    before = os.sched_getaffinity(0)
    after: list[set[int]] = []

    def widen() -> None:
        os.sched_setaffinity(0, range(os.sysconf("SC_NPROCESSORS_CONF")))
        after.append(os.sched_getaffinity(0))

    thread = threading.Thread(target=widen)
    thread.start()
    thread.join()
    return after[0] != before


MAX_THREADS = (ALL & ((1 << POSSIBLE) - 1)).bit_count() if confined() else POSSIBLE
"""What omp_get_max_threads() is by default."""

Reply = dict[str, Any]

_scratch = tempfile.TemporaryDirectory(prefix="xenuma-libgomp.")
SCRATCH = Path(_scratch.name)


def library(variable: str, artifact: str) -> Path | None:
    """Folder with the libgomp.so.1 to test: from the environment, else as the pipeline leaves it."""
    folder = Path(os.environ.get(variable) or REPO / "build" / "artifacts" / artifact / "lib").resolve()
    return folder if (folder / "libgomp.so.1").exists() else None


ELASTIC = library("XENUMA_LIBGOMP", "libgomp")
STOCK = library("XENUMA_LIBGOMP_STOCK", "libgomp-stock")


@cache
def build(source: str, *flags: str, name: str = "") -> Path:
    """Compile a program, or take it from the folder in which others have left theirs."""
    programs = Path(os.environ.get("XENUMA_LIBGOMP_PROGRAMS", SCRATCH))
    name = f"{name or source.removesuffix('.c')}.{zlib.crc32(' '.join(flags).encode()):08x}"
    program = programs / (name + (".so" if "-shared" in flags else ""))
    if program.exists():
        return program
    fresh = Path(tempfile.mkdtemp(dir=programs)) / program.name
    subprocess.run(
        [
            "gcc",
            "-std=gnu17",
            "-g",
            "-O1",
            "-Wall",
            "-Wextra",
            "-Werror",
            "-I",
            UAPI,
            *flags,
            "-o",
            fresh,
            HERE / source,
        ],
        check=True,
    )
    fresh.replace(program)
    return program


def player() -> Path:
    return build("player.c", "-fopenmp", "-Wno-unknown-pragmas")


def recorder() -> Path:
    return build("recorder.c", "-shared", "-fPIC")


def page(usable: int, *, possible: int = POSSIBLE, reset_nr: int = RESET_NR) -> bytearray:
    """A page of version 1: CPUs up to CPUS[0] on node 0, all others on node 1."""
    return topology_page(usable, [0 if cpu <= CPUS[0] else 1 for cpu in range(possible)], reset_nr=reset_nr)


class Player:
    """player.c at work.  ``with Player(...) as p: p.set(AB); p.run()``."""

    def __init__(
        self,
        usable: int | bytes | None = A,
        *,
        lib: Path | None = ELASTIC,
        env: Mapping[str, str] | None = None,
        record: bool = False,
        confine: int = 0,
        prefix: tuple[str, ...] = (),
        program: Path | None = None,
    ) -> None:
        """Start with a page in which USABLE is usable, with these bytes as the page, or, if None, without one.

        CONFINE: the mask that the program inherits, if not ours.  RECORD: play the kernel behind the page.  PREFIX: a command
        that runs the program, such as strace.  PROGRAM: another player than the one that build() makes.
        """
        self.folder = Path(tempfile.mkdtemp(dir=SCRATCH))
        self.page = self.folder / "page"
        self.log = self.folder / "log"
        variables = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_", "RECORDER_"))}
        variables["OMP_WAIT_POLICY"] = "passive"  # the machine may be busy
        if lib is not None:
            variables["LD_LIBRARY_PATH"] = str(lib)
        if usable is not None:
            self.page.write_bytes(page(usable) if isinstance(usable, int) else usable)
            variables["GOMP_TOPO_DEV"] = str(self.page)
        if record:
            variables |= {"LD_PRELOAD": str(recorder()), "RECORDER_LOG": str(self.log)}
        variables |= env or {}
        cpus = [str(cpu) for cpu in range(confine.bit_length()) if confine >> cpu & 1]
        taskset = ["taskset", "-c", ",".join(cpus)] if cpus else []
        self.errors = (self.folder / "stderr").open("w+")
        self.process = subprocess.Popen(
            [*taskset, *prefix, program or player()],
            env=variables,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.errors,
            text=True,
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is not None:
            self.process.kill()
        self.end()

    def end(self) -> str:
        """Let the program end; its standard error.  Fails unless it ended well."""
        if self.process.stdin and not self.process.stdin.closed:
            self.process.stdin.close()
        status = self.process.wait(timeout=60)
        if self.process.stdout:
            self.process.stdout.close()
        text = self.stderr()
        self.errors.close()
        assert status in (0, -9), f"status {status}: {text}"
        return text

    def stderr(self) -> str:
        return (self.folder / "stderr").read_text()

    def say(self, line: str) -> None:
        assert self.process.stdin
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def hear(self) -> Reply:
        assert self.process.stdout
        line = self.process.stdout.readline()
        if not line:
            status = self.process.wait(timeout=60)
            raise AssertionError(f"the program ended with status {status}: {self.stderr()}")
        reply: Reply = json.loads(line)
        return reply

    def do(self, line: str) -> Reply:
        self.say(line)
        return self.hear()

    def set(self, usable: int, phase: int = STABLE) -> int:
        return int(self.do(f"set {usable:x} {phase}")["version"])

    def poke(self, field: str, data: bytes) -> None:
        self.do(f"raw {OFFSET[field]} {data.hex()}")

    def run(self, kind: str = "parallel", threads: int = 0) -> Reply:
        """One region; every region must have done its work."""
        reply = self.do(f"run {kind} {threads}")
        assert reply["ok"], reply
        return reply

    def team(self, kind: str = "parallel", threads: int = 0) -> int:
        return int(self.run(kind, threads)["team"])

    def icv(self) -> Reply:
        """ICVs and places; tells the program no number that it could count on."""
        return self.do("icv")

    def told(self) -> int:
        """The program asks for max_threads, always with the same statement, and then counts on it."""
        return int(self.do("told")["max_threads"])

    def procs(self) -> int:
        """The same for num_procs, with another statement."""
        return int(self.do("procs")["num_procs"])

    def recorded(self) -> list[str]:
        """What libgomp has asked of the kernel since the last call."""
        text = self.log.read_text() if self.log.exists() else ""
        self.log.write_text("")
        return text.splitlines()
