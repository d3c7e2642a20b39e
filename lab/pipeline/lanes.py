# SPDX-License-Identifier: GPL-2.0
"""Tests side by side: pytest in a few processes, the lanes, each with a rack of its own.

A rack leaves a good part of two CPUs idle while it waits; a second one uses that. A lane collects all tests and takes files
of them until none is left, those first that took longest the last time. Two marks change that: `each_rack` is about a lane's
own rack and run by each lane, after its files; `alone` measures how long something takes, and is run at the very end, when the
other lanes have nothing to do. The first lane has the usual rack, lane 2 its copy "one-host@2" (lab/description.py).

As each lane then has only a part of the CPUs, the lab's patience grows with their number (lab/patience.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TextIO
from xml.etree import ElementTree

import pytest

from .paths import BUILD, CACHE
from .test import Counter

MOST = 2
MIB_EACH = 7000  # what lab/bootstrap asks for one rack
TIMES = CACHE / "test-times.json"
UNKNOWN_S = 120.0  # for a file that has never been run: early, so that it is not what all wait for


def number(arguments: Sequence[str]) -> int:
    """How many lanes to use for these arguments of pytest: XENUMA_LANES, "auto" for what CPUs and memory allow; else one.

    One, too, if there are not two files of tests that need machines.
    """
    machines = [
        file
        for argument in arguments
        if (path := Path(argument.partition("::")[0])).exists()
        for file in ([path] if path.is_file() else path.rglob("test_*.py"))
        if {"e2e", "guest"} & {*file.parts}
    ]
    if len(machines) < 2:
        return 1
    asked = os.environ.get("XENUMA_LANES") or "1"
    if asked != "auto":
        return max(1, int(asked))
    return max(1, min(MOST, os.cpu_count() or 1, available_mib() // MIB_EACH))


def available_mib() -> int:
    """Memory that programs can have, MiB."""
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) // 1024
    return 0


# --- A lane ------------------------------------------------------------------------------------------------------------


class Queue:
    """The names of what lanes have taken, in a file that they share."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def take(self, names: Sequence[str]) -> str | None:
        """The first of these that no lane has taken, now ours."""
        with open(self.path, "a+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            file.seek(0)
            taken = set(file.read().splitlines())
            for name in names:
                if name not in taken:
                    file.write(f"{name}\n")
                    return name
        return None

    @contextlib.contextmanager
    def machine(self, alone: bool) -> Iterator[None]:
        """Be one of those who use the machine, or wait until nobody does and be `alone`."""
        with open(self.path.with_name("machine"), "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield


@dataclass(frozen=True)
class Batch:
    """Tests that a lane runs in a row: those of a file that have a mark in common, or none."""

    name: str
    items: list[pytest.Item] = field(default_factory=list)
    alone: bool = False


class Lane:
    """A plugin that runs what this lane takes, and says on `screen` how that went."""

    def __init__(self, label: str, queue: Queue, screen: TextIO, counter: Counter, times: dict[str, float]) -> None:
        self.label, self.queue, self.screen, self.counter, self.usual = label, queue, screen, counter, times
        self.times: dict[str, float] = {}
        self.begun = time.monotonic()
        self.shared: dict[str, Batch] = {}
        self.own: dict[str, Batch] = {}
        self.alone: dict[str, Batch] = {}

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Instead of pytest's own loop: the same for one batch after the other."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        for item in session.items:
            self._sort(item)
        with contextlib.ExitStack() as machine:
            machine.enter_context(self.queue.machine(alone=False))
            batch = self._next()
            while batch:
                if batch.alone:
                    machine.close()
                    machine.enter_context(self.queue.machine(alone=True))
                batch = self._run(session, batch)
        return True

    def _sort(self, item: pytest.Item) -> None:
        file = item.nodeid.partition("::")[0]
        if item.get_closest_marker("alone"):
            batch = self.alone.setdefault(file, Batch(f"{file}, alone", alone=True))
        elif item.get_closest_marker("each_rack"):
            batch = self.own.setdefault(file, Batch(file))
        else:
            batch = self.shared.setdefault(file, Batch(file))
        batch.items.append(item)

    def _next(self) -> Batch | None:
        """A batch that no lane has taken; then one about this lane's rack; then one that has to be alone."""
        order = sorted(self.shared, key=lambda file: -self.usual.get(file, UNKNOWN_S))
        if (file := self.queue.take(order)) is not None:
            return self.shared[file]
        if self.own:
            return self.own.pop(next(iter(self.own)))
        names = {batch.name: batch for batch in self.alone.values()}
        name = self.queue.take(list(names))
        return names[name] if name is not None else None

    def _run(self, session: pytest.Session, batch: Batch) -> Batch | None:
        """Run a batch; returns the next one."""
        begun = time.monotonic()
        following: Batch | None = None
        for index, item in enumerate(batch.items):
            if index + 1 < len(batch.items):
                after: pytest.Item | None = batch.items[index + 1]
            else:
                # Known before this last one ends: its end would be that of the rack, too, if nothing came after.
                following = self._next()
                after = following.items[0] if following else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=after)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
        self._say(batch, time.monotonic() - begun)
        return following

    def _say(self, batch: Batch, seconds: float) -> None:
        self.times[batch.name] = round(seconds, 1)
        ended = [self.counter.outcome.get(item.nodeid, "not run") for item in batch.items]
        counts = ", ".join(f"{ended.count(word)} {word}" for word in ("passed", "failed", "skipped") if word in ended)
        when = time.monotonic() - self.begun
        self.screen.write(f"[{when:5.0f}s] {self.label}: {batch.name}: {counts} in {seconds:.0f} s\n")
        self.screen.flush()


def log_of(label: str) -> Path:
    """What pytest prints in a lane."""
    return BUILD / "logs" / f"tests-{label.replace(' ', '-')}.log"


def junit_of(label: str) -> Path:
    """The results of a lane as JUnit's XML."""
    return log_of(label).with_suffix(".xml")


def run_lane(label: str, folder: Path, screen: TextIO, arguments: Sequence[str]) -> None:
    """One lane, in its own process: leaves its counts in `folder`."""
    counter = Counter()
    lane = Lane(label, Queue(folder / "taken"), screen, counter, usual_times())
    code = pytest.main([*arguments, f"--junitxml={junit_of(label)}"], plugins=[counter, lane])
    result = {"code": int(code), "times": lane.times, **counter.as_json()}
    (folder / f"{label}.json").write_text(json.dumps(result), encoding="utf-8")


# --- Who starts them -----------------------------------------------------------------------------------------------------


def usual_times() -> dict[str, float]:
    """Seconds of each file of tests, when it was run last."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return {str(k): float(v) for k, v in json.loads(TIMES.read_text(encoding="utf-8")).items()}
    return {}


def run(count: int, arguments: Sequence[str], junit: Path) -> tuple[Counter, int]:
    """Run pytest with these arguments in `count` lanes; returns the sum of their counts and the worst exit code."""
    labels = [f"lane {index}" for index in range(1, count + 1)]
    print(f"{count} lanes with a rack each; what pytest prints in them comes at the end", flush=True)
    total, worst, times = Counter(), 0, usual_times()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with started(labels, folder, arguments) as lanes:
            for process in lanes:
                process.wait()
        for label in labels:
            print(f"\n--- {label} ---", flush=True)
            sys.stdout.write(log_of(label).read_text(encoding="utf-8", errors="replace"))
            try:
                result = json.loads((folder / f"{label}.json").read_text(encoding="utf-8"))
            except OSError:
                print(f"{label} ended before its tests did", flush=True)
                worst = max(worst, int(pytest.ExitCode.INTERNAL_ERROR))
                continue
            total.add(result)
            worst = max(worst, result["code"])
            times |= result["times"]
    merge_junit([junit_of(label) for label in labels], junit)
    TIMES.write_text(json.dumps(times, indent=1, sort_keys=True), encoding="utf-8")
    return total, worst


@contextlib.contextmanager
def started(labels: Sequence[str], folder: Path, arguments: Sequence[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The lanes' processes. Ctrl-C reaches them as it does us: they are waited for while they power off their racks."""
    rack = os.environ.get("XENUMA_RACK", "one-host")
    screen = os.dup(sys.stdout.fileno())
    lanes: list[subprocess.Popen[bytes]] = []
    try:
        for index, label in enumerate(labels, 1):
            with log_of(label).open("wb") as log:
                lanes.append(
                    subprocess.Popen(
                        [sys.executable, "-m", __name__, label, str(folder), str(screen), *arguments],
                        env={
                            **os.environ,
                            "XENUMA_RACK": rack if index == 1 else f"{rack}@{index}",
                            "XENUMA_TIME_SCALE": str(len(labels)),
                        },
                        stdin=subprocess.DEVNULL,
                        stdout=log,
                        stderr=subprocess.STDOUT,
                        pass_fds=(screen,),
                    )
                )
        yield lanes
    finally:
        os.close(screen)
        for process in lanes:
            process.wait()


def merge_junit(parts: Sequence[Path], whole: Path) -> None:
    """One file of JUnit's XML from several; a lane that left none is left out."""
    suites = ElementTree.Element("testsuites")
    for part in parts:
        if part.is_file():
            suites.extend(ElementTree.parse(part).getroot())
    ElementTree.ElementTree(suites).write(whole, encoding="utf-8", xml_declaration=True)


def main() -> None:
    """A lane's process: label, folder, file descriptor of the screen, pytest's arguments."""
    label, folder, screen, *arguments = sys.argv[1:]
    with os.fdopen(int(screen), "w", encoding="utf-8") as file:
        run_lane(label, Path(folder), file, arguments)


if __name__ == "__main__":
    main()
