# SPDX-License-Identifier: GPL-2.0
"""The end-to-end tests of Debian's OpenMP programs that go to another host and come back, with a guest that is played: they
pass if one process has had all teams, on all CPUs, and its answer is that of one thread; and only then."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import debian_merge
from lab.command import Done
from lab.span_guest import SpanShape
from tests.e2e import test_dsm_span_teams as span_teams

PID = 70
SITE = SimpleNamespace(home="alpha", other="beta")
STAT = "{} (program) S " + "0 " * 35 + "{} 0 0\n"
HOME, THERE, BACK = range(3)  # before the other host comes, while it is there, and when it has gone


@dataclasses.dataclass
class World:
    """A guest and a program in it: what is said here is what is well."""

    teams: tuple[tuple[int, ...], ...] = ((2,), (4,), (2,))  # that come at each stage
    cpus: tuple[int, ...] = (0, 1, 2, 3)  # where its threads are, while the other host is there
    ends: int | None = None  # the stage in which it ends before all was seen
    status: int = 0
    failed_at: int | None = None  # the stage in which the guest ends
    alone: str = "(a,b);\n"
    answer: str = "(a,b);\n"
    stage: int = HOME
    asked_back: int = 0

    def run(self, command: str, timeout: float = 60.0) -> Done:
        """A command in the guest."""
        if command.startswith("taskset -c 0 "):
            return Done(0, self.alone)
        if command == f"cat {span_teams.SAID}":
            sizes = [size for stage in self.teams[: self.stage + 1] for size in stage]
            return Done(0, "".join(f"team={size}\n" for size in sizes))
        if command == f"cat {span_teams.PID}":
            return Done(0, f"{PID}\n")
        if f"/proc/{PID}/task" in command:
            return Done(0, "0-3\n" + "".join(STAT.format(PID + n, cpu) for n, cpu in enumerate(self.cpus)))
        return Done(0, "")

    def start(self, command: str, output: Path) -> World:
        """The program."""
        assert "exec taskset -c 0,1,2,3 env OMP_" in command and "/opt/xenuma/lib" in command, command
        output.write_text(self.answer, encoding="utf-8")
        return self

    def running(self) -> bool:
        """Until its last team was seen, and not much longer."""
        self.asked_back += self.stage == BACK
        return self.stage != self.ends and self.asked_back < 3

    def wait(self) -> Done:
        """It has ended."""
        return Done(self.status, "")

    def attach(self, *_: object) -> None:
        """The other host comes."""
        self.stage = THERE

    def detach(self, *_: object) -> None:
        """It goes."""
        self.stage = BACK


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """A test, for a world."""

    def whole(world: World, test: str) -> None:
        @contextlib.contextmanager
        def borrowed(**_: object) -> Iterator[World]:
            yield world

        for name, function in {
            "attach": world.attach,
            "detach": world.detach,
            "state": lambda _: "failed: x" if world.stage == world.failed_at else "running: None",
            "run_in": lambda guest: guest.run,
            "write_file": lambda *_: None,
            "ASK_S": 0.001,
            "PATIENCE": 0.2,
        }.items():
            monkeypatch.setattr(span_teams, name, function)
        monkeypatch.setattr(debian_merge, "install", lambda *_, **__: None)
        lives: Any = SimpleNamespace(site=SITE, shape=SpanShape(), borrowed=borrowed)
        getattr(span_teams, test)(lives, tmp_path)

    yield whole


TESTS = ("test_fasttree", "test_msgmerge")


@pytest.mark.parametrize("test", TESTS)
def test_all_is_well(played: Any, test: str) -> None:
    """Also if it had teams of three threads in between, as fasttreeMP has."""
    played(World(teams=((2,), (3, 4, 3, 4), (3, 2))), test)


WRONG: dict[str, dict[str, Any]] = {
    "it has ended at home": {"ends": HOME},
    "it has ended there": {"ends": THERE},
    "it has ended when the host had gone": {"ends": BACK},
    "no team at home": {"teams": ((), (4,), (2,))},
    "a team of three at first": {"teams": ((3, 2), (4,), (2,))},
    "it does not grow": {"teams": ((2,), (), ())},
    "one too many": {"teams": ((2,), (5, 4), (2,))},
    "no thread is at home": {"cpus": (2, 2, 3, 3)},
    "it does not shrink": {"teams": ((2,), (4,), ())},
    "all threads are at home": {"cpus": (0, 1, 0, 1)},
    "the guest ends at home": {"failed_at": HOME},
    "the guest ends there": {"failed_at": THERE},
    "the guest ends when the host has gone": {"failed_at": BACK},
    "another status": {"status": 1},
    "another answer": {"answer": "(b,a);\n"},
    "no answer at all": {"answer": "", "alone": ""},
}


@pytest.mark.parametrize("test", TESTS)
@pytest.mark.parametrize("wrong", WRONG)
def test_one_thing_is_wrong(played: Any, wrong: str, test: str) -> None:
    with pytest.raises((AssertionError, TimeoutError)):
        played(World(**WRONG[wrong]), test)


# Of fasttreeMP's steps most have three parts.
FEWER: dict[str, dict[str, Any]] = {
    "a team of three": {"teams": ((2,), (3,), (2,))},
    "no thread on one CPU": {"cpus": (0, 1, 2, 2)},
}


@pytest.mark.parametrize("fewer", FEWER)
def test_three_are_enough_of_fasttree_only(played: Any, fewer: str) -> None:
    played(World(**FEWER[fewer]), "test_fasttree")
    with pytest.raises((AssertionError, TimeoutError)):
        played(World(**FEWER[fewer]), "test_msgmerge")
