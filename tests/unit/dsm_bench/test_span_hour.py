# SPDX-License-Identifier: GPL-2.0
"""The end-to-end test of an hour of load, with a guest and hosts that are played: it passes if all is well, and only then."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import hour
from benchmarks.program_output import parse_stream
from benchmarks.results import Metric
from benchmarks.ticks import Moment
from lab import watchdogs
from lab.command import Done
from lab.errors import LabError, Malformed
from lab.span_guest import SpanShape
from tests.e2e import test_dsm_span_hour as span_hour

SITE = SimpleNamespace(slow=11, home="alpha", other="beta", both=("alpha", "beta"), hosts=("alpha", "beta"))
LOCKUP = "[ 9.0] watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [dsm_torture:412]"
OWN = {
    "soft": "1", "hard": "1", "lockup_s": "10", "cpus": "0-1", "hung_s": "120", "hung_reports": "10", "rcu_s": "21",
    "rcu_expedited_ms": "0", "rcu_suppressed": "0", "workers_s": "30", "taints": "0", "clock": "tsc",
}  # fmt: skip


def stream(threads: Sequence[int], sums: str = "7", checksum: str = "abc", wrong: int = 0) -> str:
    """What an OpenMP program has printed that had teams of so many threads."""
    lines: list[dict[str, Any]] = [{"event": "start", "pid": 70, "mib": 2, "threads": 1}]
    lines += [
        {"event": "iteration", "n": n, "t": n / 10, "ms": 100.0, "threads": each, "sum": sums}
        for n, each in enumerate(threads)
    ]
    lines.append({"event": "result", "iterations": len(threads), "checksum": checksum, "wrong_words": wrong})
    return "".join(f"{json.dumps(line)}\n" for line in lines)


@dataclasses.dataclass
class Job:
    """It runs until it is told to end, or a while less."""

    world: World
    file: Path
    name: str

    def __post_init__(self) -> None:
        self.file.write_text(self.world.printed.get(self.name, "3\n"), encoding="utf-8")

    def running(self) -> bool:
        """Not before it may, and not after it has to."""
        lingers = time.monotonic() < self.world.stopped_at + self.world.lingers
        return self.name != self.world.early and (not self.world.stopped or lingers)

    def wait(self) -> Done:
        """It has ended."""
        return Done(self.world.statuses.get(self.name, 0), "")


@dataclasses.dataclass
class World:
    """The guest and its hosts: what is said here is what is well."""

    values: dict[str, str] = dataclasses.field(default_factory=lambda: dict(OWN))
    later: dict[str, str] = dataclasses.field(default_factory=dict)  # of these, when the load is over
    attached: dict[str, str] = dataclasses.field(default_factory=dict)  # and before it, when the host has come
    log: list[str] = dataclasses.field(default_factory=lambda: ["[ 1.0] Linux version 6.12.107-xenuma"])
    during: list[str] = dataclasses.field(default_factory=list)  # of the log, from the begin of the load on
    lost: bool = False  # the log's begin
    asleep: int | None = None  # a CPU whose timer never comes
    stream: str = stream((1, 2, 2, 1))
    printed: dict[str, str] = dataclasses.field(default_factory=dict)
    statuses: dict[str, int] = dataclasses.field(default_factory=dict)
    early: str = ""  # a job that ends by itself
    failed: str = "running: None"  # the home's dsmd, from the begin of the load on
    faults: tuple[int, int] = (500, 700)  # in each turn
    ticks: tuple[int, int] = (100, 200)
    longest_ms: float = 40.0
    refused: list[str] = dataclasses.field(default_factory=list)
    lingers: float = 0.0  # s, for which a job goes on after it was told to end
    stays: int = 0  # the number of a time when the host does not go
    stopped: bool = False
    stopped_at: float = 0.0
    loaded: bool = False
    times: int = 0
    did: list[str] = dataclasses.field(default_factory=list)
    aside: list[str] = dataclasses.field(default_factory=list)
    found: list[Metric] = dataclasses.field(default_factory=list)

    def timers(self) -> str:
        """Each CPU's, which comes between any two looks."""
        self.times += 1
        text = f"now at {self.times * 10**9} nsecs\n\n"
        for cpu in (0, 1):
            due = 8 if cpu == self.asleep else self.times + 2
            text += f"cpu: {cpu}\n clock 0:\nactive timers:\n #0: <0>, {watchdogs.TIMER}, S:01\n"
            text += f" # expires at {due * 10**9}-{due * 10**9} nsecs [in 7 to 7 nsecs]\n"
        return text

    def run(self, command: str, timeout: float = 60) -> Done:
        """A command in the guest."""
        out = ""
        if command == watchdogs.question():
            values = {**self.values, **(self.later if self.stopped else self.attached if "attach" in self.did else {})}
            out = "".join(f"{file} {values[name]}\n" for name, file in watchdogs.FILES.items())
        elif command == watchdogs.TIMERS:
            out = self.timers()
        elif command.startswith("dmesg"):
            lines = self.log + (self.during if self.loaded else [])
            out = "\n".join(lines[2:] if self.lost and self.loaded else lines) + "\n"
        elif "/dev/kmsg" in command:
            self.log.append(f"[ 2.0] {span_hour.MARK}")
        elif command.startswith("rm -f "):
            self.stopped = False
        elif command == f": >{hour.GO}":
            self.loaded = True
        elif command == f": >{hour.STOP}":
            self.stopped, self.stopped_at = True, time.monotonic()
        elif command.startswith(("cat ", "head ")):
            out = self.stream if command.startswith("cat ") else self.stream.splitlines(keepends=True)[0]
        return Done(0, out)

    def start(self, command: str, sink: Path) -> Job:
        """A job, before any may begin."""
        assert hour.GO in command
        return Job(self, sink, sink.name.rpartition("-")[0])

    def detach(self, *_: object) -> None:
        """The host goes."""
        self.did.append("detach")
        assert self.did.count("detach") != self.stays

    def moment(self, *_: object) -> Moment:
        """So much has been counted."""
        self.times += 1
        ticks = [self.times * each for each in self.ticks]
        return Moment(ticks, [self.times * each for each in self.faults], self.times * 10.0)


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Any]:
    """The test, for a world; turns of no time."""

    def whole(world: World, turns: int = 1) -> World:
        monkeypatch.setattr(hour, "TURN_MINUTES", 0.001 / turns)

        @contextlib.contextmanager
        def borrowed(**_: object) -> Iterator[World]:
            yield world

        for name, function in {
            "attach": lambda *_: world.did.append("attach"),
            "detach": world.detach,
            "start_stream": lambda *_: world.did.append("stream"),
            "moment": world.moment,
            "state": lambda _: world.failed if world.loaded else "running: None",
            "status": lambda _: {kind: {"max_ns": int(world.longest_ms * 1e6)} for kind in ("read_fault", "write_fault")},
            "refused_elsewhere": lambda _: world.refused,
            "reference_run": lambda *_: parse_stream(stream((1, 1, 1, 1))),
            "write": lambda _, found: world.found.extend(found),
            "set_aside": lambda path: world.aside.append(path.name),
            "run_in": lambda place: place.run,
        }.items():
            monkeypatch.setattr(span_hour, name, function)
        lives: Any = SimpleNamespace(site=SITE, borrowed=borrowed)
        shape: Any = SimpleNamespace()
        span_hour.test_an_hour_without_lockup_or_stall(lives, shape, tmp_path)
        return world

    monkeypatch.setenv(span_hour.VARIABLE, "0.001")
    for name in ("ASK_S", "LOOK_S"):
        monkeypatch.setattr(span_hour, name, 0.001)
    yield whole


def test_all_is_well(played: Any) -> None:
    """Two turns: the program begins at home, the host comes, there is load, the host goes."""
    world = played(World(lingers=0.2), turns=2)
    assert world.did == ["stream", "attach", "detach"] * 2
    value = {each.metric: each.value for each in world.found}
    assert value["hour.faults.away"] == 2 * 700 and value["hour.ticks.home"] == 2 * 100, value
    assert value["hour.rounds.pipe"] == 6 and value["hour.limit.rcu_stall"] == 21 * 11, value
    assert world.aside == ["dsm-span-hour.json"]
    # What jobs do after they were told to end is no load.
    load = next(each for each in reversed(world.found) if each.metric == "hour.load")
    assert load.value is not None and float(load.baseline["whole_s"]) - load.value > 0.39, load


def test_a_host_that_does_not_go(played: Any) -> None:
    """The turn before it is written down."""
    world = World(stays=2)
    with pytest.raises(AssertionError):
        played(world, turns=2)
    assert [each.value for each in world.found if each.metric == "hour.rounds.pipe"] == [3]


WRONG: dict[str, dict[str, Any]] = {
    "the usual kernel": {"values": {**dict.fromkeys(OWN, "-"), "rcu_s": "21", "clock": "tsc"}},
    "nobody looks for soft lockups": {"values": {**OWN, "soft": "0"}},
    "CPU 1 is not watched": {"values": {**OWN, "cpus": "0"}},
    "stalls of RCU are told late": {"values": {**OWN, "rcu_s": "300"}},
    "off while the other host is there": {"attached": {"soft": "0"}},
    "switched off meanwhile": {"later": {"soft": "0"}},
    "a warning that the log has lost": {"later": {"taints": "512"}},
    "a task that hung, and the log has lost": {"later": {"hung_reports": "9"}},
    "a soft lockup": {"during": [LOCKUP]},
    "a stall of RCU": {"during": ["[ 9.0] rcu: INFO: rcu_sched self-detected stall on CPU"]},
    "another complaint": {"during": ["[ 9.0] WARNING: CPU: 1 PID: 7 at kernel/sched/core.c:1 f+0x1/0x2"]},
    "CPU 1's timer does not come": {"asleep": 1},
    "a wrong sum": {"stream": stream((1, 2, 2, 1), sums="8")},
    "a wrong checksum": {"stream": stream((1, 2, 2, 1), checksum="abd")},
    "a wrong word": {"stream": stream((1, 2, 2, 1), wrong=1)},
    "never two threads": {"stream": stream((1, 1, 1, 1))},
    "a job that has ended": {"early": "files"},
    "the guest was ended": {"failed": "failed: gfn 0x54fe"},
    "a job without a round": {"printed": {"calls": "0\n"}},
    "no faults at home": {"faults": (0, 700)},
    "no tick away": {"ticks": (100, 0)},
    "a wait of 20 s": {"longest_ms": 20000.0},
    "a call that is refused": {"refused": ["memory_op"]},
}


@pytest.mark.parametrize("wrong", WRONG)
def test_one_thing_is_wrong(played: Any, wrong: str) -> None:
    world = World(**WRONG[wrong])
    with pytest.raises(AssertionError):
        played(world)
    # What was measured until then is written down, too.
    assert bool(world.found) or wrong not in FOUND_AT_THE_END


FOUND_AT_THE_END = (
    "switched off meanwhile", "a warning that the log has lost", "a task that hung, and the log has lost",
    "a job without a round", "no faults at home", "no tick away", "a wait of 20 s", "a call that is refused",
)  # fmt: skip


@pytest.mark.parametrize(
    ("world", "words"),
    [
        (World(statuses={"files": 1}, printed={"files": "files: round 2 is wrong\n"}), "files: status 1: .*round 2"),
        (World(printed={"pages": "killed\n"}), "pages: status 0: killed"),
        (World(lost=True), "a log without"),
    ],
)
def test_what_makes_no_sense(played: Any, world: World, words: str) -> None:
    with pytest.raises(Malformed, match=words):
        played(world)


def test_no_minutes(played: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(span_hour.VARIABLE, "long")
    with pytest.raises(LabError, match="want minutes"):
        played(World())


def test_the_guest_that_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the kernel that watches itself, and nothing on its command line that says otherwise."""
    monkeypatch.setattr(span_hour, "with_kernel", lambda _, shape, step: dataclasses.replace(shape, kernel=step))
    lives: Any = SimpleNamespace(site=SITE, shape=SpanShape())
    found = span_hour.shape.__wrapped__(lives)  # type: ignore[attr-defined]
    text = found.xl_cfg("beta")
    assert found.kernel == "linux-watched" and "watchdog" not in text and "xen_privcmd.unrestricted=1" in text
