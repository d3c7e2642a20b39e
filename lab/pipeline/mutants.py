# SPDX-License-Identifier: GPL-2.0
"""``make mutants``: a part with one wrong line at a time. Its unit tests have to notice every one.

The parts are libgomp, which is meant if none is named, the toolstack, dsmd, soak and bounce (``make mutants MUTANTS=dsmd``).
The table of a part is tests/unit/PART/mutants.toml; its head says what the fields mean. Each mutant is made in a place of its
own, and the tests that it names run against it. Tests that do not end have noticed it if they end without it at that time, so
a busy machine kills no mutant. The last line counts; a mutant that no test notices, a line that is not there any more, and
tests that fail without a mutant are failures. ``python3 -m lab.pipeline.mutants [PART] WORD...`` takes only the mutants with
one of the words in their names, and ``--all-tests`` runs all of the part's tests for each.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from . import trees
from .build import JOBS, OBJECTS, UAPI, archive
from .cache import files_below
from .paths import REPO
from .progress import Progress, StepFailed

UNIT_TESTS = REPO / "tests" / "unit"
TESTERS = 2
SECONDS = 900
"""For all the tests without a mutant; those of one mutant may hang if they need longer than that took, or LEAST_SECONDS."""
LEAST_SECONDS = 60


@dataclass(frozen=True)
class Mutant:
    """One wrong line, and the tests that have to notice."""

    breaks: str  # what no longer holds: the name of the mutant
    file: str  # below the part's folder of sources
    line: str  # without white space around it
    becomes: str
    tests: tuple[str, ...]  # below the folder of the table
    within: str = ""  # the function, if the line is in several

    def apply(self, text: str) -> str:
        """The text of the file with this mistake. Raises StepFailed unless the line is there exactly once."""
        lines = text.splitlines(keepends=True)
        start, end = self.function(lines)
        found = [n for n in range(start, end) if lines[n].strip() == self.line]
        if len(found) != 1:
            place = f"{self.within} of {self.file}" if self.within else self.file
            raise StepFailed(f"mutant '{self.breaks}': {len(found)} lines '{self.line}' in {place}; adapt the table")
        old = lines[found[0]]
        lines[found[0]] = old.replace(self.line, self.becomes)
        return "".join(lines)

    def function(self, lines: Sequence[str]) -> tuple[int, int]:
        """First line of the function, and the one after its last; the whole file if no function is given."""
        if not self.within:
            return 0, len(lines)
        head = re.compile(
            rf"(?:\w.*[ *])?{re.escape(self.within)} ?\([^;{{]*\{{"
        )  # a declaration has a semicolon first
        heads = [n for n, line in enumerate(lines) if self.within in line and head.match("".join(lines[n : n + 12]))]
        if len(heads) != 1:
            raise StepFailed(f"mutant '{self.breaks}': {len(heads)} functions {self.within} in {self.file}")
        end = next((n for n in range(heads[0], len(lines)) if lines[n].startswith("}")), len(lines))
        return heads[0], end


def load(table: Path) -> list[Mutant]:
    """The mutants of a table. Raises StepFailed if two have the same name, or one changes nothing or names no test."""
    with table.open("rb") as file:
        rows = tomllib.load(file)["mutant"]
    mutants = [Mutant(**{**row, "tests": tuple(row["tests"])}) for row in rows]
    names = [mutant.breaks for mutant in mutants]
    for mutant in mutants:
        if names.count(mutant.breaks) > 1 or not mutant.tests or mutant.line in ("", mutant.becomes):
            raise StepFailed(f"{table.name}: '{mutant.breaks}' is there twice, changes nothing or names no test")
        for test in mutant.tests:
            if not (table.parent / test.split("::")[0]).is_file():
                raise StepFailed(f"{table.name}: '{mutant.breaks}' names {test}, which is not there")
    return mutants


class Part(Protocol):
    """What is mistaken, and how it is tested."""

    def configure(self) -> None:
        """Before anything is built."""

    def source(self, mutant: Mutant) -> Path:
        """The file in which the mutant is."""

    def build(self, folder: Path) -> Path:
        """Build what there is now into the new ``folder``. Returns it."""

    def command(self, tests: Sequence[str], built: Path) -> tuple[list[str], dict[str, str]]:
        """pytest's arguments for these tests ([""]: all) of what was built there, and their environment."""


@contextlib.contextmanager
def mistaken(part: Part, mutant: Mutant) -> Iterator[None]:
    """The sources hold the mutant while the block runs."""
    path = part.source(mutant)
    right = path.read_text(encoding="utf-8")
    path.write_text(mutant.apply(right), encoding="utf-8")
    try:
        yield
    finally:
        path.write_text(right, encoding="utf-8")


class Library:
    """A tree and an object folder in which libgomp is built with mistakes."""

    def __init__(self, tree: Path, programs: Path, progress: Progress) -> None:
        self.tree = tree
        self.programs = programs
        self.objects = OBJECTS / "libgomp-mutants"
        self.progress = progress

    def configure(self) -> None:
        """As the build does it, without debugging information."""
        headers = OBJECTS / "uapi-mutants"  # a place that is the same for each clone
        for file in files_below([UAPI]):
            trees.put(headers / file.relative_to(UAPI), file)
        triple = "x86_64-linux-gnu"
        command = [
            str(self.tree / "libgomp" / "configure"),
            *(f"--{kind}={triple}" for kind in ("build", "host", "target")),
            "--disable-multilib",
            "--disable-werror",
            "--enable-shared",
            "--disable-static",
            "CC=ccache gcc",
            "CXX=ccache g++",
            "GFORTRAN=/usr/bin/gfortran-14",
            "CFLAGS=-O2",
            f"CPPFLAGS=-I{headers}",
        ]
        stamp = self.objects / "configured-with"
        if not stamp.is_file() or stamp.read_text(encoding="utf-8") != "\n".join(command):
            shutil.rmtree(self.objects, ignore_errors=True)
            self.objects.mkdir(parents=True)
            self.progress.run("mutants", command, cwd=self.objects)
            stamp.write_text("\n".join(command), encoding="utf-8")

    def build(self, folder: Path) -> Path:
        """Build what the tree holds; the library is then in the new ``folder``. Returns it."""
        self.progress.run("mutants", ["make", f"-j{JOBS}", "all-am"], cwd=self.objects)
        folder.mkdir()
        shutil.copy2(self.objects / ".libs" / "libgomp.so.1.0.0", folder / "libgomp.so.1")
        return folder

    def source(self, mutant: Mutant) -> Path:
        return self.tree / "libgomp" / mutant.file

    def command(self, tests: Sequence[str], built: Path) -> tuple[list[str], dict[str, str]]:
        variables = {"XENUMA_LIBGOMP": str(built), "XENUMA_LIBGOMP_PROGRAMS": str(self.programs)}
        return [str(UNIT_TESTS / "libgomp" / test) for test in tests], variables


class Toolstack:
    """A copy of the overlay's tools; their tests compile what they test."""

    def __init__(self, tools: Path) -> None:
        self.tools = tools

    def configure(self) -> None:
        shutil.copytree(REPO / "toolstack" / "overlay" / "tools", self.tools)

    def source(self, mutant: Mutant) -> Path:
        return self.tools / mutant.file

    def build(self, folder: Path) -> Path:
        shutil.copytree(self.tools, folder)
        return folder

    def command(self, tests: Sequence[str], built: Path) -> tuple[list[str], dict[str, str]]:
        variables = {"XENUMA_TOOLSTACK": str(built), "XENUMA_TOOLSTACK_PROGRAMS": " ".join(tests)}
        return [str(UNIT_TESTS / "toolstack" / "test_toolstack.py")], variables


class Dsmd:
    """A copy of dsm/; the tests compile what they test. (The mutants of dsm/core are the explorer's: ``make explore``.)"""

    def __init__(self, sources: Path) -> None:
        self.sources = sources

    def configure(self) -> None:
        shutil.copytree(REPO / "dsm", self.sources)

    def source(self, mutant: Mutant) -> Path:
        return self.sources / mutant.file

    def build(self, folder: Path) -> Path:
        shutil.copytree(self.sources, folder)
        return folder

    def command(self, tests: Sequence[str], built: Path) -> tuple[list[str], dict[str, str]]:
        """A test is a case of a program, PROGRAM.c::CASE, or one of pytest's, FILE.py::TEST, which may be `fresh`.

        Cases of rdma_test.c need a device, and so a machine: one is booted for all of them.
        """
        folder = UNIT_TESTS / "dsmd"
        booted = [test for test in tests if test.startswith("rdma_test.c::")]
        others = [test for test in tests if not test.partition("::")[0].endswith(".py") and test not in booted]
        files = [str(folder / test) for test in tests if test.partition("::")[0].endswith(".py")]
        variables = {"XENUMA_DSMD": str(built), "XENUMA_DSMD_CASES": "\n".join(others or tests)}
        variables |= {"DSMD_PATIENCE": "120" if booted else "20", "XENUMA_SOAK": "1"}
        if booted:
            patterns = [re.sub(r"[ ,*[]", "?", test.partition("::")[2]) for test in booted]
            variables["DSMD_CASE"] = ",".join(patterns)
            files.append(f"{REPO / 'tests' / 'guest' / 'test_rdma.py'}::test_program[rdma_test]")
        if others:
            files.append(str(folder / "test_dsmd.py"))
        return files, variables


class Soak:
    """A copy of benchmarks/soak, which its tests import instead (tests/unit/soak/conftest.py)."""

    def __init__(self, sources: Path) -> None:
        self.sources = sources

    def configure(self) -> None:
        shutil.copytree(REPO / "benchmarks" / "soak", self.sources, ignore=shutil.ignore_patterns("__pycache__"))

    def source(self, mutant: Mutant) -> Path:
        return self.sources / mutant.file

    def build(self, folder: Path) -> Path:
        shutil.copytree(self.sources, folder)
        return folder

    def command(self, tests: Sequence[str], built: Path) -> tuple[list[str], dict[str, str]]:
        return [str(UNIT_TESTS / "soak" / test) for test in tests], {"XENUMA_SOAK_SOURCES": str(built)}


class Bounce:
    """A copy of lab/bounce, which its tests compile and import instead (tests/unit/bounce/conftest.py)."""

    def __init__(self, sources: Path) -> None:
        self.sources = sources

    def configure(self) -> None:
        shutil.copytree(REPO / "lab" / "bounce", self.sources, ignore=shutil.ignore_patterns("__pycache__"))

    def source(self, mutant: Mutant) -> Path:
        return self.sources / mutant.file

    def build(self, folder: Path) -> Path:
        shutil.copytree(self.sources, folder)
        return folder

    def command(self, tests: Sequence[str], built: Path) -> tuple[list[str], dict[str, str]]:
        return [str(UNIT_TESTS / "bounce" / test) for test in tests], {"XENUMA_BOUNCE": str(built)}


PARTS = ("libgomp", "toolstack", "dsmd", "soak", "bounce")


@contextlib.contextmanager
def prepared(name: str, scratch: Path) -> Iterator[Part]:
    """The part of that name."""
    if name == "toolstack":
        yield Toolstack(scratch / "tools")
        return
    if name == "dsmd":
        yield Dsmd(scratch / "dsm")
        return
    if name == "soak":
        yield Soak(scratch / "soak")
        return
    if name == "bounce":
        yield Bounce(scratch / "bounce")
        return
    progress = Progress(0)
    with trees.prepared("libgomp", archive("gcc"), progress, variant="-mutants") as tree:
        programs = scratch / "programs"
        programs.mkdir()
        yield Library(tree, programs, progress)


@dataclass(frozen=True)
class Verdict:
    noticed: bool
    by: str  # the test that failed
    hung: bool = False  # the tests did not end


def judge(run: Callable[[Path, float], Verdict], built: Path, right: Path, seconds: float) -> Verdict:
    """What tests say of a mutant: `run` them with what was built, for so many seconds.

    If they do not end, they run without the mutant; where these do not end either it is the machine that has no time, and
    both have twice as long. Raises StepFailed if that does not help.
    """
    while (verdict := run(built, seconds)).hung:
        begun = time.monotonic()
        if not run(right, seconds).hung:
            without = time.monotonic() - begun
            return Verdict(True, f"did not end in {seconds:.0f} s; {without:.0f} s without the mutant", hung=True)
        seconds *= 2
        if seconds > SECONDS:
            raise StepFailed(f"tests did not end in {seconds / 2:.0f} s, nor did they without a mutant: no time for it now")
    return verdict


def run_tests(tests: Sequence[str], part: Part, built: Path, seconds: float) -> Verdict:
    """Run tests until one fails. Raises StepFailed if they could not be run."""
    arguments, variables = part.command(tests, built)
    with subprocess.Popen(
        [sys.executable, "-m", "pytest", "-x", "-q", "-rfE", "--tb=line", "-p", "no:cacheprovider", "--color=no",
         *arguments],
        cwd=REPO, env={**os.environ, **variables}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        start_new_session=True,
    ) as process:  # fmt: skip
        try:
            said, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return Verdict(True, f"did not end in {seconds:.0f} s", hung=True)
    if process.returncode not in (0, 1):
        raise StepFailed(f"pytest ended with status {process.returncode}:\n{said}")
    failed = re.findall(r"^(?:FAILED|ERROR) (?:\S*/)?(.+?)(?: - .*)?$", said, re.M)
    return Verdict(process.returncode == 1, failed[0] if failed else "")


def report(mutant: Mutant, future: Future[Verdict]) -> bool:
    """Wait for the verdict, and say it.  Was the mutant noticed?"""
    verdict = future.result()
    by = verdict.by or ", ".join(mutant.tests)
    print(f"{'killed  ' if verdict.noticed else 'SURVIVED'}  {mutant.breaks}: {by}", flush=True)
    return verdict.noticed


def examine(name: str, mutants: Sequence[Mutant], all_tests: bool) -> int:
    """Build and test every mutant of a part; the number of those that no test noticed."""
    survivors = 0
    with (
        tempfile.TemporaryDirectory(prefix="xenuma-mutants.") as scratch,
        prepared(name, Path(scratch)) as part,
        ThreadPoolExecutor(TESTERS) as testers,
    ):
        folder = Path(scratch)
        part.configure()
        for mutant in mutants:
            mutant.apply(part.source(mutant).read_text(encoding="utf-8"))
        named = [""] if all_tests else sorted({test for mutant in mutants for test in mutant.tests})
        right = part.build(folder / "right")
        begun = time.monotonic()
        verdict = run_tests(named, part, right, SECONDS)
        seconds = max(LEAST_SECONDS, time.monotonic() - begun)
        if verdict.noticed:
            raise StepFailed(f"{verdict.by} fails without any mutant")
        pending: deque[tuple[Mutant, Future[Verdict]]] = deque()
        for number, mutant in enumerate(mutants):
            with mistaken(part, mutant):
                built = part.build(folder / str(number))
            tests = [""] if all_tests else mutant.tests
            run = functools.partial(run_tests, tests, part)
            pending.append((mutant, testers.submit(judge, run, built, right, seconds)))
            while pending and (pending[0][1].done() or number == len(mutants) - 1):
                survivors += not report(*pending.popleft())
    return survivors


def main() -> int:
    if {"-h", "--help"} & set(sys.argv[1:]):
        print("usage: python3 -m lab.pipeline.mutants [--all-tests] [PART] [WORD...]")
        print(f"parts: {', '.join(PARTS)}; {PARTS[0]} if none is named")
        return 0
    words = [word for word in sys.argv[1:] if word != "--all-tests"]
    name = words.pop(0) if words and words[0] in PARTS else PARTS[0]
    begun = time.monotonic()
    try:
        mutants = load(UNIT_TESTS / name / "mutants.toml")
        chosen = [m for m in mutants if not words or any(word in m.breaks for word in words)]
        if not chosen:
            raise StepFailed(
                f"no mutant of {name} has any of these words in its name: {' '.join(words)}; parts: {', '.join(PARTS)}"
            )
        survivors = examine(name, chosen, "--all-tests" in sys.argv[1:])
    except StepFailed as error:
        print(f"\nxenuma: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    print(f"{len(chosen)} mutants: {len(chosen) - survivors} killed, {survivors} survived; "
          f"{time.monotonic() - begun:.0f} s")  # fmt: skip
    return 1 if survivors else 0


if __name__ == "__main__":
    raise SystemExit(main())
