# SPDX-License-Identifier: GPL-2.0
"""Tests file by file, in one process of pytest or side by side in a few: the lanes.

A rack leaves a good part of two CPUs idle while it waits. One lane without a rack uses that for the tests that need none, at a
low priority; a second rack uses more of it. A lane collects all tests and takes files of them until none is left. What needs no
rack is left to the lane without one as long as there is something else to do. Among lanes with racks those files come first
that took longest the last time; a single rack has them in the order in which they are collected.

Two marks change that: `each_rack` is about a lane's own rack and run by each lane, after its files; `alone` measures how long
something takes, and is run at the very end, when the other lanes have nothing to do. The first lane has the usual rack, lane 2
its copy "one-host@2" (lab/description.py).

As each lane then has only a part of the CPUs, the lab's patience grows with their number (lab/patience.py).

A rack that cannot be booted fails one test, the one that asked for it. Its lane runs only tests without a rack from then on,
and leaves the others to lanes that have one.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO
from xml.etree import ElementTree

import pytest

from lab import patience

from .counter import Counter
from .paths import BUILD, CACHE

MOST = 2
MIB_EACH = 7000  # what lab/bootstrap asks for one rack
TIMES = CACHE / "test-times.json"
UNKNOWN_S = 120.0  # for a file that has never been run: early, so that it is not what all wait for

# What lanes are called: the only one; the only one with a rack; several with a rack; the one without.
ONLY, RACK, LANE, NO_RACK = "", "rack", "lane {}", "no rack"
LOW_PRIORITY = 10  # nice(2), of the lane without a rack


def needs_rack(file: str | Path) -> bool:
    """Whether a file of tests is one of those that need a rack; tests/guest boots machines of its own, which are small."""
    return "e2e" in Path(file).parts


def labels(arguments: Sequence[str]) -> list[str]:
    """The lanes to use for these arguments of pytest: [ONLY], or several.

    As many with a rack as XENUMA_LANES says, "auto" for what CPUs and memory allow, else one; one, too, if there are not two
    files of tests that need one. One without, if there are tests of both kinds, and two CPUs. Raises ValueError for what
    is no number.
    """
    asked = os.environ.get("XENUMA_LANES") or "1"
    if asked != "auto" and not re.fullmatch("[1-9][0-9]*", asked):
        raise ValueError(f"XENUMA_LANES={asked}: want a number of lanes, or auto")
    files = [
        file
        for argument in arguments
        if (path := Path(argument.partition("::")[0])).exists()
        for file in ([path] if path.is_file() else path.rglob("*.py"))
        if file.match("test_*.py")
    ]
    with_rack = sum(map(needs_rack, files))
    cpus = os.cpu_count() or 1
    if with_rack < 2:
        racks = 1
    elif asked != "auto":
        racks = int(asked)
    else:
        racks = max(1, min(MOST, cpus, available_mib() // MIB_EACH))
    beside = [NO_RACK] if 0 < with_rack < len(files) and cpus > 1 else []
    if racks > 1:
        return [LANE.format(index) for index in range(1, racks + 1)] + beside
    return [RACK, *beside] if beside else [ONLY]


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

    def give_back(self, name: str) -> None:
        """It is nobody's again."""
        with open(self.path, "r+", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            taken = file.read().splitlines()
            file.seek(0)
            file.truncate()
            file.writelines(f"{other}\n" for other in taken if other != name)

    @contextlib.contextmanager
    def machine(self, alone: bool) -> Iterator[None]:
        """Be one of those who use the machine, or wait until nobody does and be `alone`."""
        with self._locked("machine", alone):
            yield

    @contextlib.contextmanager
    def without_rack(self) -> Iterator[None]:
        """Be one of those who have no rack yet, and may give something back."""
        with self._locked("without-rack", False):
            yield

    def wait_for_racks(self) -> None:
        """Return when nobody is without_rack() any more."""
        with self._locked("without-rack", True):
            pass

    @contextlib.contextmanager
    def _locked(self, name: str, alone: bool) -> Iterator[None]:
        with open(self.path.with_name(name), "a", encoding="utf-8") as file:
            fcntl.flock(file, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield


@dataclass(frozen=True)
class Batch:
    """Tests that a lane runs in a row: those of a file that have a mark in common, or none."""

    name: str
    items: list[pytest.Item] = field(default_factory=list)
    alone: bool = False


class Rest(pytest.Item):
    """What a lane may still run, as the test after the last one of a batch: for its sake, the rack stays."""

    def runtest(self) -> None:
        raise NotImplementedError("never run")


class Lane:
    """A plugin that runs what this lane takes, and says on `screen` how that went; `label` is one of labels()."""

    def __init__(self, label: str, queue: Queue, screen: TextIO, counter: Counter, times: dict[str, float]) -> None:
        self.label, self.queue, self.screen, self.counter, self.usual = label, queue, screen, counter, times
        self.results = queue.path.with_name(f"{label}.json")
        self.times: dict[str, float] = {}
        self.begun = time.monotonic()
        self.shared: dict[str, Batch] = {}
        self.own: dict[str, Batch] = {}
        self.alone: dict[str, Batch] = {}
        self.broken = False  # the rack could not be booted
        self.undecided = contextlib.ExitStack()  # open as long as that is not known
        self.last: pytest.Item | None = None  # that was run

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> bool | None:
        """Instead of pytest's own loop: the same for one batch after the other."""
        if session.testsfailed and not session.config.option.continue_on_collection_errors:
            raise session.Interrupted(f"{session.testsfailed} errors during collection")
        if session.config.option.collectonly:
            return None
        for item in session.items:
            self._sort(item)
        with self.undecided, contextlib.ExitStack() as machine:
            if self.label != NO_RACK:
                self.undecided.enter_context(self.queue.without_rack())
            machine.enter_context(self.queue.machine(alone=False))
            while batch := self._next():
                if batch.alone:
                    self.undecided.close()
                    machine.close()
                    machine.enter_context(self.queue.machine(alone=True))
                self._run(session, batch)
            self._undo(session, None)  # the rack above all
        return True

    def _sort(self, item: pytest.Item) -> None:
        file = item.nodeid.partition("::")[0]
        if item.get_closest_marker("alone"):
            batch = self.alone.setdefault(file, Batch(f"{file}, alone", alone=True))
        elif item.get_closest_marker("each_rack"):
            batch = self.own.setdefault(file, Batch(f"{file}, each rack"))
        else:
            batch = self.shared.setdefault(file, Batch(file))
        batch.items.append(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """See whether there is a rack."""
        if fixturedef.argname != "rack":
            return (yield)
        try:
            result = yield
        except (Exception, pytest.fail.Exception):
            self.broken = True
            raise
        self.undecided.close()
        return result

    def _runs(self, item: pytest.Item) -> bool:
        """Whether this lane can run a test."""
        if self.label == NO_RACK:
            return not needs_rack(item.nodeid.partition("::")[0])
        return not self.broken or "rack" not in getattr(item, "fixturenames", ())

    def _order(self, file: str) -> tuple[bool, float]:
        """What comes first has the least: what the lane without a rack cannot run, then what took long."""
        return self.label != ONLY and not needs_rack(file), -self.usual.get(file, UNKNOWN_S)

    def _next(self) -> Batch | None:
        """What this lane runs next. The end only when no other lane can give anything back any more."""
        if batch := self._take():
            return batch
        self.undecided.close()
        self.queue.wait_for_racks()
        return self._take()

    def _take(self) -> Batch | None:
        """A batch that no lane has taken; then one about this lane's rack; then one that has to be alone."""
        shared = {name: batch for name, batch in self.shared.items() if all(map(self._runs, batch.items))}
        if (name := self.queue.take(sorted(shared, key=self._order))) is not None:
            return shared[name]
        while self.own:
            batch = self.own.pop(next(iter(self.own)))
            if all(map(self._runs, batch.items)):
                return batch
        alone = {batch.name: batch for batch in self.alone.values() if all(map(self._runs, batch.items))}
        name = self.queue.take(list(alone))
        return alone[name] if name is not None else None

    def _run(self, session: pytest.Session, batch: Batch) -> None:
        """Run a batch, and leave it to others if that cannot be done with this rack."""
        begun = time.monotonic()
        rest = Rest.from_parent(session, name="what is still to come")
        waiting = list(batch.items)
        while waiting:
            item = self.last = waiting.pop(0)
            self.write()
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=waiting[0] if waiting else rest)
            if session.shouldfail:
                raise session.Failed(session.shouldfail)
            if session.shouldstop:
                raise session.Interrupted(session.shouldstop)
            if not all(map(self._runs, waiting)):
                waiting = [item for item in waiting if self._runs(item)]
                self._undo(session, waiting[0] if waiting else rest)
                self.queue.give_back(batch.name)
            if self.broken:
                self.undecided.close()
        self._say(batch, time.monotonic() - begun)

    def _undo(self, session: pytest.Session, until: pytest.Item | None) -> None:
        """Undo what was made for past tests and is of no use for the next. What goes wrong is an error of the last test."""
        if self.last is None:
            return
        call = pytest.CallInfo.from_call(
            lambda: session._setupstate.teardown_exact(until),
            when="teardown",
            reraise=(KeyboardInterrupt, pytest.exit.Exception),
        )
        report = self.last.ihook.pytest_runtest_makereport(item=self.last, call=call)
        if report.failed:
            self.last.ihook.pytest_runtest_logreport(report=report)

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, tuple[str, str, Any], tuple[str, str, Any]]:
        """No dots: what pytest would draw of them is in the way of our lines."""
        category, _, word = yield
        return category, "", word

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Say at once what has failed; pytest's own words about it come when the lane has ended."""
        if report.failed:
            crash = getattr(report.longrepr, "reprcrash", None)
            reason = (crash.message if crash else report.longreprtext).strip()
            first, *_ = reason.splitlines() or ["no reason given"]
            self._line(f"FAILED {report.nodeid} ({report.when}): {first}")

    def _say(self, batch: Batch, seconds: float) -> None:
        ended = [self.counter.outcome.get(item.nodeid, "not run") for item in batch.items]
        words = ("passed", "failed", "skipped", "not run")
        counts = ", ".join(f"{ended.count(word)} {word}" for word in words if word in ended)
        if "not run" not in ended:
            self.times[batch.name] = round(seconds, 1)
        self._line(f"{batch.name}: {counts} in {seconds:.0f} s")

    def _line(self, text: str) -> None:
        self.screen.write(f"[{time.monotonic() - self.begun:5.0f}s] {self.label and f'{self.label}: '}{text}\n")
        self.screen.flush()

    def write(self, code: int | None = None) -> None:
        """Leave what is known so far to who adds it up: this lane may die. `code` is pytest's when all is over."""
        result = {
            "code": code,
            "times": self.times,
            "last": self.last.nodeid if self.last else "the collection",
            **self.counter.as_json(),
        }
        fresh = self.results.with_suffix(".new")
        fresh.write_text(json.dumps(result), encoding="utf-8")
        fresh.replace(self.results)


def log_of(label: str) -> Path:
    """What pytest prints in a lane."""
    return BUILD / "logs" / f"tests-{label.replace(' ', '-')}.log"


def junit_of(label: str) -> Path:
    """The results of a lane as JUnit's XML."""
    return log_of(label).with_suffix(".xml")


def run_lane(label: str, folder: Path, screen: TextIO, arguments: Sequence[str]) -> None:
    """One lane, in its own process: leaves its counts in `folder`."""
    counter = Counter()
    lane = Lane(label, Queue(folder / "taken"), screen, counter, {} if label == RACK else usual_times())
    lane.write()
    lane.write(run_pytest(arguments, junit_of(label), counter, lane))


def run_pytest(arguments: Sequence[str], junit: Path, counter: Counter, lane: Lane) -> int:
    """All tests, as the lane takes them; returns pytest's exit code."""
    quiet = ["-o", "console_output_style=classic"]  # it would end each line with how many per cent are done
    return int(pytest.main([*arguments, *quiet, f"--junitxml={junit}"], plugins=[counter, lane]))


# --- Who starts them -----------------------------------------------------------------------------------------------------


def usual_times() -> dict[str, float]:
    """Seconds of each file of tests, when it was run last."""
    with contextlib.suppress(OSError, ValueError, AttributeError):
        return {str(k): float(v) for k, v in json.loads(TIMES.read_text(encoding="utf-8")).items()}
    return {}


def remember(times: dict[str, float], arguments: Sequence[str]) -> None:
    """Keep how long files took, but for a run of parts of files."""
    if "-k" not in arguments and not any("::" in argument for argument in arguments):
        TIMES.parent.mkdir(parents=True, exist_ok=True)
        TIMES.write_text(json.dumps(usual_times() | times, indent=1, sort_keys=True), encoding="utf-8")


def run_one(arguments: Sequence[str], junit: Path) -> tuple[Counter, int]:
    """Run pytest with these arguments in this process, in the order in which tests are collected."""
    counter = Counter()
    with tempfile.TemporaryDirectory() as folder, os.fdopen(os.dup(sys.stdout.fileno()), "w") as screen:
        lane = Lane(ONLY, Queue(Path(folder) / "taken"), screen, counter, {})
        code = run_pytest(arguments, junit, counter, lane)
    remember(lane.times, arguments)
    return counter, code


def run(labels: Sequence[str], arguments: Sequence[str], junit: Path) -> tuple[Counter, int]:
    """Run pytest with these arguments in these lanes; returns the sum of their counts and the worst exit code."""
    for label in labels:
        junit_of(label).unlink(missing_ok=True)
    print(f"tests run side by side ({', '.join(labels)}); what pytest prints comes at the end", flush=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        with started(labels, folder, arguments) as lanes:
            await_all(lanes)
        for label in labels:
            print(f"\n--- {label} ---", flush=True)
            sys.stdout.write(log_of(label).read_text(encoding="utf-8", errors="replace"))
        total, worst, times = add_up([folder / f"{label}.json" for label in labels])
    merge_junit([junit_of(label) for label in labels], junit)
    remember(times, arguments)
    return total, worst


def await_all(lanes: Sequence[subprocess.Popen[bytes]]) -> None:
    """Wait for the lanes. Ctrl-C reaches them as it does us: they power off their racks. A second one ends them at once.

    Not by KeyboardInterrupt: Popen.wait() gives the child a moment before it raises that, and takes two within it for one.
    """
    presses = 0

    def interrupted(number: int, frame: object) -> None:
        nonlocal presses
        presses += 1
        what = "the lanes power off their racks" if presses == 1 else "ending the lanes"
        os.write(sys.stdout.fileno(), f"interrupted: {what}\n".encode())  # print() may be at work
        for process in lanes if presses > 1 else ():
            process.kill()

    before = signal.signal(signal.SIGINT, interrupted)
    try:
        for process in lanes:
            process.wait()
    finally:
        signal.signal(signal.SIGINT, before)


def add_up(results: Sequence[Path]) -> tuple[Counter, int, dict[str, float]]:
    """The sum of what the lanes have left, the worst exit code, the times. A lane that has died gives what it had till then."""
    total, worst, times = Counter(), 0, dict[str, float]()
    for path in results:
        try:
            result = json.loads(path.read_text(encoding="utf-8"))
        except OSError:
            result = {"code": None, "times": {}, "last": "its start", **Counter().as_json()}
        code = result["code"]
        if code is None:
            code = int(pytest.ExitCode.INTERNAL_ERROR)
            print(f"{path.stem} ended before its tests did: the last was {result['last']}", flush=True)
        total.add(result)
        worst = max(worst, code)
        times |= result["times"]
    return total, worst, times


@contextlib.contextmanager
def started(labels: Sequence[str], folder: Path, arguments: Sequence[str]) -> Iterator[list[subprocess.Popen[bytes]]]:
    """The lanes' processes; none is left when this ends."""
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
                            patience.VARIABLE: f"{patience.scaled(len(labels)):g}",
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
    """One file of JUnit's XML from several; a lane that left none, or was killed as it wrote it, is left out."""
    suites = ElementTree.Element("testsuites")
    for part in parts:
        with contextlib.suppress(FileNotFoundError, ElementTree.ParseError):
            suites.extend(ElementTree.parse(part).getroot())
    ElementTree.ElementTree(suites).write(whole, encoding="utf-8", xml_declaration=True)


def main() -> None:
    """A lane's process: label, folder, file descriptor of the screen, pytest's arguments."""
    label, folder, screen, *arguments = sys.argv[1:]
    if label == NO_RACK:
        os.nice(LOW_PRIORITY)
    with os.fdopen(int(screen), "w", encoding="utf-8") as file:
        run_lane(label, Path(folder), file, arguments)


if __name__ == "__main__":
    main()
