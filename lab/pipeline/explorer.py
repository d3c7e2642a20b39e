# SPDX-License-Identifier: GPL-2.0
"""Build dsm/core with dsm/explorer, run worlds, and run mutants of the core.

A mutant is the core with one wrong line (tests/unit/dsm/mutants.toml); a world, or the unit tests of the core, have to notice.
Everything is compiled by the sandbox's own gcc into a folder of the caller's; nothing here needs a machine.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from .mutants import Mutant
from .paths import REPO
from .progress import StepFailed

CORE = REPO / "dsm" / "core"
EXPLORER = REPO / "dsm" / "explorer"
TESTS = REPO / "tests" / "unit" / "dsm"
TABLE = TESTS / "mutants.toml"
CASES = REPO / "tests" / "unit" / "linux"  # case.h
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Werror"]
C = ["ccache", "gcc", "-std=c11", *WARNINGS, "-Wconversion"]
CXX = ["ccache", "g++", "-std=c++17", *WARNINGS]
OPTIMIZED = ["-O2", "-g1"]
CHECKED = ["-O1", "-g", "-fsanitize=address,undefined", "-fno-sanitize-recover=all"]
TEST_PROGRAMS = ("core_test", "wire_test", "vcpu_test", "token_test", "fuzz_test")
SECONDS = 1800

# A state that the right core never has, so that the explorer does not keep all of it: an error, and of a mutant its end.
LOST = re.compile(r": the bits lose (\S+)$", re.M)

# What a run of the explorer found.
FINE, VIOLATION, TOO_LARGE = "fine", "violation", "too large"


def compile_all(sources: Sequence[Path], folder: Path, flags: Sequence[str]) -> list[Path]:
    """One object for each source, in ``folder``. Raises StepFailed with what the compiler says."""
    folder.mkdir(parents=True, exist_ok=True)
    objects = []
    for source in sources:
        target = folder / f"{source.stem}.o"
        compiler = CXX if source.suffix == ".cc" else C
        call([*compiler, *flags, f"-I{CORE}", f"-I{CASES}", "-c", str(source), "-o", str(target)])
        objects.append(target)
    return objects


def call(words: Sequence[str]) -> None:
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    if done.returncode:
        raise StepFailed(f"{' '.join(words)}\n{done.stdout}{done.stderr}")


@dataclass(frozen=True)
class Build:
    """The explorer and the test programs, linked with a core that can be another one."""

    folder: Path
    flags: Sequence[str] = tuple(OPTIMIZED)

    def objects(self, part: str) -> list[Path]:
        return sorted((self.folder / part).glob("*.o"))

    def core(self) -> Build:
        compile_all(sorted(CORE.glob("*.c")), self.folder / "core", self.flags)
        return self

    def explorer(self, core: Sequence[Path] = ()) -> Path:
        """The program ``explore``. ``core``: other objects."""
        if not self.objects("explorer"):
            compile_all(sorted(EXPLORER.glob("*.cc")), self.folder / "explorer", self.flags)
        return self.link("explore", self.objects("explorer"), core)

    def test(self, name: str, core: Sequence[Path] = ()) -> Path:
        """A program of tests/unit/dsm."""
        own = self.folder / "tests" / f"{name}.o"
        if not own.is_file():
            compile_all([TESTS / f"{name}.c"], own.parent, self.flags)
        return self.link(name, [own], core)

    def all_tests(self) -> None:
        """What several mutants at once would build otherwise, each over the other's."""
        for name in TEST_PROGRAMS:
            self.test(name)

    def link(self, name: str, own: Sequence[Path], core: Sequence[Path]) -> Path:
        program = (core[0].parent if core else self.folder) / name
        if program.is_file() and not core:
            return program  # it is asked for by each of many tests
        words = [*CXX, *self.flags, *map(str, own), *map(str, core or self.objects("core")), "-o", str(program)]
        call(words)
        return program

    def with_mistake(self, mutant: Mutant, folder: Path) -> list[Path]:
        """The objects of a core with one wrong line. Raises StepFailed if the line is not there once."""
        source = folder / mutant.file
        folder.mkdir(parents=True, exist_ok=True)
        source.write_text(mutant.apply((CORE / mutant.file).read_text()))
        harmless = ["-Wno-error", "-w"]  # what is unused now
        (wrong,) = compile_all([source], folder, [*self.flags, *harmless])
        right = [each for each in self.objects("core") if each.name != wrong.name]
        return [wrong, *right]


def mutants(table: Path = TABLE) -> list[Mutant]:
    """The rows of the table; ``tests`` are worlds, or programs of tests/unit/dsm. Raises StepFailed for a row without sense."""
    with table.open("rb") as file:
        rows = [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in tomllib.load(file)["mutant"]]
    names = [row.breaks for row in rows]
    for row in rows:
        if names.count(row.breaks) > 1 or not row.tests or row.line in ("", row.becomes):
            raise StepFailed(f"{table.name}: '{row.breaks}' is there twice, changes nothing or names no test")
    return rows


def verdict(done: subprocess.CompletedProcess[str]) -> str:
    """What a run of the explorer found. Raises StepFailed if it found nothing out: one that crashed has not said "fine"."""
    if done.returncode == 0:
        return FINE
    if done.returncode == 1 and re.search(r"^VIOLATION", done.stdout, re.M):
        return VIOLATION
    if done.returncode == 2 and re.search(r": more than \d+ states$", done.stderr, re.M):
        return TOO_LARGE
    words = " ".join(map(str, done.args))
    raise StepFailed(f"{words}\nended with status {done.returncode}:\n{done.stdout}{done.stderr}")


def noticed(build: Build, mutant: Mutant, folder: Path) -> str:
    """Which of its tests notices the mutant, and how; nothing: it survives."""
    core = build.with_mistake(mutant, folder)
    for test in mutant.tests:
        program = [str(build.test(test, core))] if test in TEST_PROGRAMS else [str(build.explorer(core)), *test.split()]
        try:
            done = subprocess.run(program, capture_output=True, text=True, timeout=SECONDS, check=False)
        except subprocess.TimeoutExpired:
            return f"{test}: {SECONDS} s were not enough"
        if test not in TEST_PROGRAMS and done.returncode == 2:
            if lost := LOST.search(done.stderr):
                return f"{test}: a state with {lost[1]}, which no right core has"
            if verdict(done) == TOO_LARGE:
                continue  # nothing was found
        if done.returncode:
            found = re.search(r"^VIOLATION.*?: (.*)$", done.stdout, re.M)
            lines = done.stdout.splitlines() or done.stderr.splitlines() or [f"status {done.returncode}"]
            return f"{test}: {found[1] if found else lines[-1].strip()}"
    return ""


@dataclass(frozen=True)
class Explored:
    """What the explorer said of one world."""

    world: str
    states: int
    transitions: int
    seconds: float
    outcomes: int  # of a litmus test; else 0

    LINE = re.compile(r"(\S+) +(\d+) states +(\d+) transitions +([\d.]+) s (?: *\d+ states/s (\d+) outcomes,)?")


def explored(output: str) -> list[Explored]:
    found = Explored.LINE.findall(output)
    return [
        Explored(name, int(states), int(moves), float(seconds), int(outcomes or 0))
        for name, states, moves, seconds, outcomes in found
    ]


def worlds(program: Path) -> Mapping[str, str]:
    """Names of the worlds, and what they are about."""
    done = subprocess.run([program, "--list"], capture_output=True, text=True, check=True)
    return dict(line.split("\t", 1) for line in done.stdout.splitlines())
