# SPDX-License-Identifier: GPL-2.0
"""What was measured of the overhead, run by run, in a file: a call that ends early loses nothing, and a later one continues.

One JSON object a line, written when a run has ended. The first has the terms: the tree, what it was built to, the machine, and
what was asked for; a call with other ones is refused, since its figures are not of the same thing. Each call is a session, with
a rack and a guest of its own. A round of a program is compared with itself, so it counts if all of it is of one session: a part
of one is discarded, and played anew. How often a program computes its problem is found once, and is the same in all
sessions. Runs that were left out, and failures, stay in it: what is played again is told.

Locking: who has it open holds a lock of the file.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import fcntl
import itertools
import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TextIO

from benchmarks.overhead_figures import Counters, Sample
from benchmarks.program_output import Outcome, Step, TimedRun
from benchmarks.results import now
from lab.errors import LabError


class JournalError(LabError):
    """A journal that cannot be continued, and why."""


def encode(sample: Sample) -> dict[str, Any]:
    """As JSON."""
    return dataclasses.asdict(sample)


def decode(data: Mapping[str, Any]) -> Sample:
    """The opposite. Raises KeyError, TypeError."""
    run, outcome = data["run"], data["run"]["outcome"]
    whole = TimedRun(
        run["program"],
        run["problem"],
        run["bytes"],
        tuple(Step(**step) for step in run["steps"]),
        tuple(run["wrong"]),
        Outcome(**outcome) if outcome else None,
    )
    return Sample(data["round"], data["kind"], whole, Counters(**data["counted"]), data["operation_s"])


@dataclasses.dataclass
class Journal:
    """What is known so far. Without a file, what this call has measured."""

    out: TextIO | None = None
    sessions: int = 1
    rounds: dict[str, int] = dataclasses.field(default_factory=dict)  # how often a program computes its problem in a run
    samples: dict[str, list[Sample]] = dataclasses.field(default_factory=dict)  # with those of a round under way
    whole: set[tuple[str, int]] = dataclasses.field(default_factory=set)  # rounds that count: of a program, its number
    left_out: list[tuple[str, str, str]] = dataclasses.field(default_factory=list)  # program, kind, why
    failures: list[str] = dataclasses.field(default_factory=list)
    aside: Path | None = None  # where an earlier one has been moved
    dropped: int = 0  # runs of rounds that were not whole when an earlier session ended

    # --- files --------------------------------------------------------------------------------------------------------

    @staticmethod
    def begin(path: Path, terms: Mapping[str, Any]) -> Journal:
        """A new one; one that is there is set aside. Raises JournalError, OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = None
        if path.exists():
            with path.open("a", encoding="utf-8") as old:
                _lock(old, path)
                written = datetime.datetime.fromtimestamp(path.stat().st_mtime, datetime.UTC).strftime("%Y-%m-%dT%H%M%SZ")
                names = (path.with_name(f"{path.name}.{written}{f'-{n}' if n else ''}") for n in itertools.count())
                aside = path.rename(next(name for name in names if not name.exists()))
        journal = Journal(path.open("x", encoding="utf-8"), aside=aside)
        _lock(journal.out, path)
        journal._note("terms", terms=dict(terms))
        journal._note("session", when=now())
        return journal

    @staticmethod
    def resume(path: Path, terms: Mapping[str, Any]) -> Journal:
        """Continue one. Raises JournalError if it is of something else, or of no use; OSError."""
        try:
            out = path.open("r+", encoding="utf-8")
        except FileNotFoundError as error:
            raise JournalError(f"{path}: nothing to continue") from error
        _lock(out, path)
        journal = Journal(out, sessions=0)
        try:
            text = out.read()
            text = text[: text.rfind("\n") + 1]  # a line that was being written when its session ended is of no run
            first, *others = [json.loads(line) for line in text.splitlines()]
            known = first["terms"]
            if different := [key for key in sorted({*known, *terms}) if known.get(key) != terms.get(key)]:
                words = (f"{key} was {known.get(key)}, and is {terms.get(key)}" for key in different)
                raise JournalError(f"{path}: of something else: {'; '.join(words)}")
            for event in others:
                journal._read(event)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise JournalError(f"{path}: cannot be read: {error!r}") from error
        out.seek(0)
        out.truncate(len(text.encode()))
        out.seek(0, os.SEEK_END)
        journal._session()
        journal._note("session", when=now())
        return journal

    @property
    def begun(self) -> bool:
        """Whether anything has been measured, in any session, or was to be continued."""
        return self.sessions > 1 or bool(self.rounds or self.samples or self.left_out)

    def withdraw(self, path: Path) -> bool:
        """Of a session in which nothing was begun: no file, and what was set aside is where it was. Whether there was any.

        Raises OSError.
        """
        self.close()
        if not self.aside:
            path.unlink(missing_ok=True)
            return False
        self.aside.replace(path)
        return True

    def close(self) -> None:
        """End with the file. What could not be written was told when it was to be."""
        if self.out:
            with contextlib.suppress(OSError):
                self.out.close()
        self.out = None

    def _note(self, event: str, **data: object) -> None:
        """Write a line, and have it on the disk: what comes next may end this process."""
        if self.out:
            self.out.write(json.dumps({"event": event, **data}, allow_nan=False) + "\n")
            self.out.flush()
            os.fsync(self.out.fileno())

    def _session(self) -> None:
        """Another session: rounds of the one before that are not whole are discarded."""
        self.sessions += 1
        for name, samples in self.samples.items():
            whole = [sample for sample in samples if (name, sample.round) in self.whole]
            self.dropped += len(samples) - len(whole)
            self.samples[name] = whole

    def _read(self, event: Mapping[str, Any]) -> None:
        """A line after the first. Raises KeyError, TypeError, ValueError."""
        match event["event"]:
            case "session":
                self._session()
            case "times":
                self.rounds[event["program"]] = int(event["times"])
            case "sample":
                self.samples.setdefault(event["program"], []).append(decode(event["sample"]))
            case "left out":
                self.left_out.append((event["program"], event["kind"], event["why"]))
            case "round":
                self.whole.add((event["program"], int(event["round"])))
            case "failure":
                self.failures.append(str(event["why"]))
            case other:
                raise ValueError(f"event {other!r}")

    # --- what comes ---------------------------------------------------------------------------------------------------

    def times(self, name: str, times: int) -> None:
        """A program computes its problem so often in a run."""
        self.rounds[name] = times
        self._note("times", program=name, times=times)

    def add(self, name: str, sample: Sample) -> None:
        """A run that counts, if its round becomes whole."""
        self.samples.setdefault(name, []).append(sample)
        self._note("sample", program=name, sample=encode(sample))

    def leave_out(self, name: str, kind: str, why: str) -> None:
        """A run that does not, and does not keep its round from being whole."""
        self.left_out.append((name, kind, why))
        self._note("left out", program=name, kind=kind, why=why)

    def end_round(self, name: str, number: int) -> None:
        """All runs of a round of a program are there."""
        self.whole.add((name, number))
        self._note("round", program=name, round=number)

    def fail(self, why: str) -> None:
        """The session ends here."""
        self.failures.append(why)
        self._note("failure", why=why)

    @property
    def discarded(self) -> int:
        """Runs that count for nothing, if this session ends now."""
        return self.dropped + sum(len(samples) - len(self.of_whole_rounds(name)) for name, samples in self.samples.items())

    def of_whole_rounds(self, name: str) -> list[Sample]:
        """The runs of a program that count."""
        return [sample for sample in self.samples.get(name, ()) if (name, sample.round) in self.whole]


def _lock(file: TextIO | None, path: Path) -> None:
    if file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise JournalError(f"{path}: another call is at it") from error
