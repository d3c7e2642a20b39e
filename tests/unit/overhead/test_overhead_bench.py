# SPDX-License-Identifier: GPL-2.0
"""The measurement's orchestration: with a played guest, and with real programs whose topology a played operator changes."""

from __future__ import annotations

import contextlib
import json
import math
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import overhead
from benchmarks.overhead import CLASSES, LARGER_CLASSES, Bench, Shapes, chosen, missing, report
from benchmarks.overhead_figures import ADD, KINDS, LARGE, REMOVE, SMALL, Counters, Sample, WrongTeam
from benchmarks.overhead_journal import Journal
from benchmarks.program_output import parse_timed
from lab.command import Done
from lab.elastic_guest import ElasticGuest
from lab.errors import CommandFailedError, LabError, Malformed
from lab.rack import Rack
from tests.unit.libgomp.gomp_player import AB, CPUS, ELASTIC, A, page
from tests.unit.overhead import programs
from tests.unit.overhead.runs import said
from tests.unit.overhead.test_overhead_programs import turn_page

COUNTERS = "cpu  0 0 {0} 0 0 0 0 0 0 0\n---\npgmigrate_success {1}\n"


class Played:
    """A guest with nodes, and a dom0. A program's run begins with the nodes that are there, and ends with those then there."""

    def __init__(
        self, *, fails: str = "", follows: bool = True, right: bool = True, status: str = "0", over: int = 9, less: str = ""
    ) -> None:
        self.fails, self.follows, self.right, self.status = fails, follows, right, status
        self.over = over  # iterations done when an operation has ended, of 10
        self.less = less  # a program that does less work than it was told
        self.vnodes = {0, 1}
        self.runs: list[tuple[str, int, int, str]] = []  # program, nodes first and last, rounds
        self.begun: tuple[str, int, str] | None = None
        self.asked = 0
        self.pages = 0
        self.typed: list[str] = []
        self.problem = ""
        self.counted = 0

    def dom0(self, command: str, timeout: float = 60.0) -> Done:
        self.typed.append(command)
        if self.fails and self.fails in command:
            return Done(3, "", "refused", 1.0)
        assert timeout == 300.0, "beside a program that keeps all CPUs busy"
        match = re.fullmatch(r"xl vnode-(attach|detach) g (\d)", command)
        assert match and self.begun, f"{command}, while {self.begun} runs"
        assert self.asked >= 2, "the change began before the program had done anything"
        (self.vnodes.add if match[1] == "attach" else self.vnodes.remove)(int(match[2]))
        self.pages += 100
        return Done(0, "", "", 2.5)

    def guest(self, command: str, timeout: float = 60.0) -> Done:
        if "/proc/stat" in command:
            return Done(0, COUNTERS.format(len(self.runs) * 1000, self.pages))
        if "mkfifo" in command:
            program = r"LD_LIBRARY_PATH=/opt/xenuma/lib /opt/xenuma/bin/(\w+) --class=(\w) --rounds=(\d+) >out"
            match = re.search(rf"OMP_PLACES=threads OMP_PROC_BIND=close OMP_WAIT_POLICY=passive {program}", command)
            assert match and self.begun is None
            self.begun, self.asked, self.problem = (match[1], len(self.vnodes), match[3]), 0, match[2]
            return Done(0, "")
        if "grep -c" in command:
            counts = command.startswith("grep -c")
            assert counts or "-ge 2 ]" in command, "a change begins as early as can be"
            self.counted += counts
            self.asked += not counts
            return Done(0 if self.asked >= 2 else 1, f"{self.over}\n")
        if command.endswith("/ended"):
            assert self.begun and timeout == 900.0, "nothing runs, or has no time to end"
            name, first, rounds = self.begun
            self.runs.append((name, first, len(self.vnodes), rounds))
            self.begun = None
            return Done(0, f"{self.status}\n")
        if command == "tail -c 500 /tmp/overhead/err":
            return Done(0, "Killed")
        assert command.endswith("/out")
        name, first, last, rounds = self.runs[-1]
        last = last if self.follows else first
        sizes, done = [first] * 3 + [last] * 7, 1 if name == self.less else int(rounds)
        return Done(0, said(name, sizes, seconds=0.5 * done, right=self.right, rounds=done, problem=self.problem))


@pytest.fixture(autouse=True)
def at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(overhead, "ASK_S", 0.02)


def bench(played: Played, classes: dict[str, str]) -> Bench:
    return Bench(ElasticGuest("g", played.dom0, played.guest), classes=classes, tell=lambda text: None)


def test_all_rounds() -> None:
    """Each program once to calibrate it, then all four kinds in each round: none has a change of its own before it."""
    played = Played()
    measured = bench(played, {"npb_cg": "A", "stream": "W"})
    measured.measure(2, 10.0)
    once = [(name, 2, 2, "2") for name in ("npb_cg", "stream")]
    kinds = [(2, 2), (2, 4), (4, 4), (4, 2)]
    assert played.runs == once + [(name, *kind, "20") for _ in range(2) for name in ("npb_cg", "stream") for kind in kinds]
    order = [f"xl vnode-{word} g {node}" for word, nodes in (("attach", (2, 3)), ("detach", (3, 2))) for node in nodes]
    assert played.typed == order * 4
    assert played.counted == len(played.runs), "asking costs the guest time: all kinds of runs are asked the same"
    for program in measured.programs():
        assert [(sample.round, sample.kind) for sample in program.samples] == [(n, kind) for n in range(2) for kind in KINDS]
        assert [sample.operation_s for sample in program.of(ADD)] == [5.0, 5.0]
        assert [sample.counted.moved_pages for sample in program.of(REMOVE)] == [200, 200]
        assert [sample.counted.moved_pages for sample in program.of(LARGE)] == [0, 0]
        assert [sample.counted.kernel_s for sample in program.of(SMALL)] == [10.0, 10.0]


@pytest.mark.parametrize(
    ("played", "error", "words", "whole"),
    [
        (Played(fails="attach g 3"), CommandFailedError, "add vnode 3: exit status 3: refused", [SMALL]),
        (Played(fails="detach g 2"), CommandFailedError, "remove vnode 2: exit status 3: refused", [SMALL, ADD, LARGE]),
        (Played(right=False), Malformed, "wrong results", []),
        (Played(status="139"), LabError, "it ended with '139': Killed", []),
        (Played(status=""), LabError, "it ended with", []),
        (Played(status="137"), LabError, "it ended with '137'", []),
        (Played(less="npb_cg"), Malformed, r"it did \('npb_cg', 'A', 1\), not \('npb_cg', 'A', 2\)", []),
    ],
    ids=["attach", "detach", "result", "signal", "nothing", "killed", "less work"],
)
def test_what_goes_wrong_ends_it(played: Played, error: type[Exception], words: str, whole: list[str]) -> None:
    """What was measured until then is kept, and no program is left behind."""
    measured = bench(played, {"npb_cg": "A"})
    with pytest.raises(error, match=words):
        measured.measure(1, 10.0)
    assert [sample.kind for sample in measured.samples["npb_cg"]] == whole
    assert played.begun is None


@pytest.mark.parametrize(
    ("played", "words"),
    [
        (Played(follows=False), "add: its team had 2 threads first and 2 last, not 2 and 4"),
        (Played(over=10), "add: the change was over after the end of its last iteration"),
    ],
    ids=["team", "operation"],
)
def test_a_change_that_came_too_late_is_left_out(played: Played, words: str) -> None:
    """A program may end before its team could follow, or the change end after it: what then is disturbed is nobody.

    Twice, it says that it never does, or that runs are too short: the program is given up, and the others go on.
    """
    measured = bench(played, {"npb_cg": "A", "stream": "W"})
    measured.measure(3, 10.0)
    for program in ("npb_cg", "stream"):
        wanted = [(number, kind) for number in (0, 1) for kind in (SMALL, LARGE)]
        assert [(sample.round, sample.kind) for sample in measured.samples[program]] == wanted
        assert measured.given_up[program].startswith(f"{program} given up: {program}, ")
    assert measured.journal.left_out[0] == ("npb_cg", ADD, f"npb_cg, {words}")
    assert missing(measured.journal, measured.classes, 3) == [(2, "npb_cg"), (2, "stream")]
    told = [f"{name}, {kind}" for name, kind, _ in measured.journal.left_out]
    assert told == ["npb_cg, add", "npb_cg, remove", "stream, add", "stream, remove"] * 2
    assert played.begun is None


def test_a_program_is_given_up_when_a_mean_is_out_of_reach() -> None:
    """Of five rounds three are enough: two that came late by chance cost no figure, a third one ends it."""
    for late, rounds in ({0, 1}, 5), ({0, 4}, 5), ({0, 2, 3}, 4), ({0, 1, 2}, 3):
        played = Played()
        measured = bench(played, {"npb_cg": "A"})
        play = measured.play

        def sometimes(name: str, number: int, kind: str, late: set[int] = late, real: Any = play) -> Sample:
            sample: Sample = real(name, number, kind)
            if kind == REMOVE and number in late and sample.run.outcome and sample.run.outcome.rounds > 2:
                raise WrongTeam("late")
            return sample

        measured.play = sometimes  # type: ignore[method-assign]
        measured.measure(5, 10.0)
        found = measured.programs()[0]
        assert len(found.rounds(ADD)) == rounds and len(found.rounds(REMOVE)) == rounds - len(late)
        assert bool(measured.given_up) == (len(late) == 3)


def test_progress_does_not_count_what_is_given_up() -> None:
    told: list[str] = []
    played = Played(over=10)
    guest = ElasticGuest("g", played.dom0, played.guest)
    Bench(guest, classes={"npb_cg": "A", "stream": "W"}, tell=told.append).measure(3, 1.0)
    counts = [text.split(",")[0] for text in told if text.startswith("[")]
    assert counts == ["[1/24", "[3/24", "[5/24", "[7/24", "[9/24", "[11/24", "[13/20", "[15/20"]


def test_what_was_given_up_in_an_earlier_session_is_not_run() -> None:
    """Nor counted, and the other programs are."""
    told: list[str] = []
    played, journal = Played(), Journal()
    journal.times("npb_cg", 2)
    for _ in range(2):
        journal.leave_out("npb_cg", ADD, "late")
    guest = ElasticGuest("g", played.dom0, played.guest)
    Bench(guest, classes={"npb_cg": "A", "stream": "W"}, journal=journal, tell=told.append).measure(3, 1.0)
    assert {name for name, *_ in played.runs} == {"stream"} and len(played.runs) == 1 + 12
    assert told[0] == "npb_cg given up: late, 2 times" and told[2].startswith("[1/12,")


def test_what_went_wrong_first_is_told() -> None:
    """Not that the program has not ended well, either, in a guest that is gone."""
    measured = bench(Played(fails="attach g 3", status="137"), {"npb_cg": "A"})
    measured.rounds["npb_cg"] = 1
    with pytest.raises(CommandFailedError, match="add vnode 3: exit status 3: refused"):
        measured.play("npb_cg", 0, ADD)


def test_a_run_is_as_long_as_was_asked_with_all_that_is_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """A round of 2 s of iterations and 3 s of what is not timed takes 5 s, and the last one 2 s; of half as long, at least."""
    measured = bench(Played(), {"npb_is": "A"})
    run = parse_timed(said("npb_is", [2] * 10, seconds=4.0, rounds=2, rests={6: 3.0}))
    monkeypatch.setattr(measured, "play", lambda *_: Sample(0, SMALL, run, Counters(0, 0)))
    for seconds, times in ((30.0, 7), (29.0, 6), (12.0, 3), (7.0, 2), (4.4, 2), (4.0, 1), (1.0, 1)):
        measured.calibrate("npb_is", seconds)
        assert measured.rounds == {"npb_is": times}, seconds


def test_progress_is_told_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """How many of how many, and how long it will take: who waits for hours looks at a file."""
    flushed: list[bool] = []
    monkeypatch.setattr("builtins.print", lambda *_, flush=False: flushed.append(flush))
    played = Played()
    told: list[str] = []
    overhead.say("x")
    assert flushed == [True]
    measured = Bench(ElasticGuest("g", played.dom0, played.guest), classes={"npb_cg": "A"}, tell=told.append)
    measured.measure(2, 1.0)
    assert [text.split(",")[0] for text in told[1:]] == [f"[{n}/8" for n in range(1, 9)] and "min left" in told[1]


@pytest.mark.parametrize(
    ("until", "words"),
    [
        (math.inf, "[1/4, about 9 min left]"),
        (1000.0 + 800, "[1/4, about 9 min left]"),
        (1000.0 + 300, "[1/4, about 9 min left, no round begins in more than 2 min]"),
        (1000.0 + 100, "[1/4, about 9 min left, no other round begins]"),
    ],
)
def test_progress_knows_that_time_is_up(monkeypatch: pytest.MonkeyPatch, until: float, words: str) -> None:
    """With --minutes it may end before all is done: then not only how long that would take is told."""
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    progress = overhead.Progress(4, until)
    progress.done, now[0] = 1, 1180.0
    assert str(progress) == words


def test_a_static_run_in_a_wrong_team_ends_it() -> None:
    played = Played()
    played.vnodes = {0}
    with pytest.raises(WrongTeam, match="npb_cg, small: its team had 1 threads first"):
        bench(played, {"npb_cg": "A"}).measure(1, 10.0)


def test_nor_is_it_left_out() -> None:
    """In a round, either: then the guest has not the shape that all runs after it would begin with."""
    played = Played()
    measured = bench(played, {"npb_cg": "A"})
    measured.calibrate("npb_cg", 1.0)
    played.vnodes = {0}
    with pytest.raises(WrongTeam, match="npb_cg, small: its team had 1 threads first"):
        measured.measure(1, 10.0)
    assert not measured.journal.left_out and not measured.journal.whole


def test_nothing_is_begun_when_the_time_is_over() -> None:
    """No calibration, either: six of them take minutes."""
    played = Played()
    bench(played, {"npb_cg": "A", "stream": "W"}).measure(2, 10.0, until=0.0)
    assert not played.runs


def test_a_program_that_is_slow_runs_once() -> None:
    measured = bench(Played(), {"npb_cg": "A"})
    measured.calibrate("npb_cg", 0.1)
    assert measured.rounds == {"npb_cg": 1}
    measured.calibrate("npb_cg", 1e6)
    assert measured.rounds == {"npb_cg": overhead.MAX_ROUNDS}


# --- the command ---------------------------------------------------------------------------------------------------------


def test_programs_and_classes_by_words() -> None:
    assert chosen(None, None) == CLASSES
    assert chosen("stream,npb_cg", "npb_cg=W,npb_ep=A") == {"stream": "A", "npb_cg": "W"}
    assert chosen(None, None, larger=True) == LARGER_CLASSES
    assert chosen("stream,npb_ep", "npb_ep=B", larger=True) == {"stream": "A", "npb_ep": "B"}
    for words in (("npb_lu", None), (None, "npb_cg"), (None, "npb_cg=C"), (None, "npb_lu=S")):
        with pytest.raises(ValueError, match=r"want"):
            chosen(*words)


def metrics_of(folder: Path) -> dict[str, Any]:
    data = json.loads((folder / "overhead.json").read_text(encoding="utf-8"))
    return {metric["metric"]: metric["value"] for metric in data["metrics"]}


def test_some_programs_have_no_mean(tmp_path: Path) -> None:
    """A mean of two would pass for that of all six."""
    measured = bench(Played(), {"npb_cg": "A", "stream": "W"})
    measured.measure(1, 10.0)
    report(measured.journal, measured.classes, tmp_path)
    found = metrics_of(tmp_path)
    assert found["overhead.add.stream.pct"] == 0 and not [name for name in found if name.endswith("mean_pct")]


def test_all_programs_have_one(tmp_path: Path) -> None:
    measured = bench(Played(), dict(CLASSES))
    measured.measure(3, 10.0)
    report(measured.journal, CLASSES, tmp_path)
    found = metrics_of(tmp_path)
    assert found["overhead.add.mean_pct"] == 0 and found["overhead.remove.mean_pct"] == 0


def test_a_mean_says_how_many_runs_were_left_out(tmp_path: Path) -> None:
    """They are those in which the change took longest."""
    measured = bench(Played(), dict(CLASSES))
    measured.measure(3, 10.0)
    measured.journal.leave_out("stream", REMOVE, "late")
    report(measured.journal, CLASSES, tmp_path)
    data = json.loads((tmp_path / "overhead.json").read_text(encoding="utf-8"))
    beside = {metric["metric"]: metric["baseline"].get("left_out") for metric in data["metrics"] if "baseline" in metric}
    names = ("add.mean_pct", "remove.mean_pct", "remove.mixed.mean_pct", "remove.stream.pct")
    assert [beside[f"overhead.{name}"] for name in names] == [None, 1, 1, None]


@pytest.mark.parametrize(("why", "status"), [(LabError("no rack"), 1), (KeyboardInterrupt(), 130)], ids=["rack", "ctrl-c"])
def test_without_a_rack_nothing_is_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], why: BaseException, status: int
) -> None:
    """And what an earlier measurement has left is where it was: a typo takes no figures off the page."""

    @contextlib.contextmanager
    def none(options: object) -> Iterator[Any]:
        raise why
        yield

    monkeypatch.setattr(overhead, "rack_of", none)
    monkeypatch.setattr(overhead, "report", lambda journal, classes: report(journal, classes, tmp_path))
    call = [f"--journal={tmp_path}/journal"]
    assert overhead.main(call) == status and not list(tmp_path.iterdir())
    said = capsys.readouterr().err
    assert "overhead: nothing was measured" in said and ("overhead: no rack" in said) == (status == 1)
    for name in ("journal", "overhead.json"):
        (tmp_path / name).write_text(f"of an earlier {name}\n", encoding="utf-8")
    assert overhead.main(call) == status
    assert f"the earlier journal is {tmp_path}/journal again" in capsys.readouterr().err
    assert {path.name: path.read_text(encoding="utf-8") for path in tmp_path.iterdir()} == {
        name: f"of an earlier {name}\n" for name in ("journal", "overhead.json")
    }


def test_what_cannot_be_put_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(journal: Journal, path: Path) -> bool:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Journal, "withdraw", full)
    monkeypatch.setattr(overhead, "rack_of", lambda options: (_ for _ in ()).throw(LabError("no rack")))
    assert overhead.main([f"--journal={tmp_path}/journal"]) == 1
    assert f"{tmp_path}/journal is of this call, with nothing in it: [Errno 28]" in capsys.readouterr().err


def test_a_rack_that_ended_badly_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    """What its machines say when they are powered off counts, too."""

    class Booted(contextlib.nullcontext[Any]):
        wrong_ends = ("alpha: it did not power off",)

    booted = Booted()
    booted.enter_result = booted
    monkeypatch.setattr(Rack, "boot", lambda *_, **__: booted)
    with pytest.raises(LabError, match="did not power off"), overhead.rack_of(SimpleNamespace(use=None, rack="four-nodes")):  # type: ignore[arg-type]
        pass


def test_what_a_measurement_is_by_default(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Five rounds of half a minute, of all six, from two nodes to four: nobody reads a figure's options."""
    seen: list[Any] = []

    def session(*words: object) -> int:
        seen.append(words)
        return 0

    monkeypatch.setattr(overhead, "session", session)
    assert overhead.main([f"--journal={tmp_path}/journal"]) == 0
    options, classes, _ = seen[0]
    assert (options.runs, options.seconds, options.rack, options.config.name) == (5, 30.0, "four-nodes", "guest4x1.cfg")
    assert list(classes) == list(programs.NAMES) and Shapes((2, 3), {SMALL: 2, LARGE: 4}) == overhead.SHAPES


def test_the_guest_is_destroyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever happens; its vCPUs are placed, and what was measured is written."""
    played, started = Played(fails="attach g 3"), []

    class Destroyed(ElasticGuest):
        def destroy(self) -> None:
            started.append("destroyed")

    class Host:
        def start_guest(self, config: Path, overrides: dict[str, str]) -> Destroyed:
            started.append(f"{config.name} {overrides}")
            return Destroyed("g", played.dom0, played.guest)

    monkeypatch.setattr(overhead, "rack_of", lambda options: contextlib.nullcontext(SimpleNamespace(host=Host)))
    monkeypatch.setattr(overhead, "report", lambda journal, classes: report(journal, classes, tmp_path))
    assert overhead.main(["--runs=1", "--seconds=1", "--programs=npb_cg", f"--journal={tmp_path}/journal"]) == 1
    assert started == [f"guest4x1.cfg {overhead.PLACED}", "destroyed"]
    assert metrics_of(tmp_path)["overhead.add.npb_cg.pct"] is None


WRONG = (
    "--runs=0", "--seconds=0", "--seconds=nan", "--seconds=inf", "--minutes=0", "--minutes=nan", "--programs=x",
    "--classes=x",
)


@pytest.mark.parametrize("word", WRONG)
def test_words_that_make_no_sense(word: str) -> None:
    with pytest.raises(SystemExit) as ended:
        overhead.main([word])
    assert ended.value.code == 2


# --- with real programs --------------------------------------------------------------------------------------------------


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU only: a team cannot grow")
def test_real_programs_on_a_played_guest(tmp_path: Path) -> None:
    """The scripts run here, in this machine's shell; the operator changes the page that the project's libgomp follows."""
    assert ELASTIC
    built, file = programs.build(tmp_path / "programs"), tmp_path / "page"
    file.write_bytes(page(A))

    def here(command: str, timeout: float = 60.0) -> Done:
        done = subprocess.run(
            ["bash", "-c", command], capture_output=True, text=True, timeout=timeout, check=False, env=programs.environment()
        )
        return Done(done.returncode, done.stdout, done.stderr)

    def dom0(command: str, timeout: float = 60.0) -> Done:
        turn_page(file, AB if "attach" in command else A)
        return Done(0, "", "", 0.5)

    settings = f"OMP_WAIT_POLICY=passive GOMP_TOPO_DEV={file} LD_LIBRARY_PATH={ELASTIC}"
    shapes = Shapes((1,), {SMALL: 1, LARGE: 2})
    measured = Bench(
        ElasticGuest("g", dom0, here),
        shapes,
        {"random_access": "S"},
        folder=str(tmp_path / "work"),
        environment=settings,
        programs=str(built),
        tell=lambda text: None,
    )
    measured.measure(1, 1.5)
    report(measured.journal, measured.classes, tmp_path, shapes.teams)
    found = metrics_of(tmp_path)
    for name in measured.classes:
        assert found[f"overhead.add.{name}.pct"] is not None and found[f"overhead.remove.{name}.mixed_pct"] is not None
    for program in measured.programs():
        teams = {sample.kind: {step.threads for step in sample.run.steps} for sample in program.samples}
        assert teams == {SMALL: {1}, ADD: {1, 2}, LARGE: {2}, REMOVE: {1, 2}}
    assert sorted(os.listdir(tmp_path / "work")) == ["ended", "err", "out", "over"]


@pytest.mark.parametrize("kind", [SMALL, ADD])
def test_a_program_that_ends_at_once_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    """With its own words, and without a wait for iterations that never come. A run does not see the end of the one before."""
    monkeypatch.setattr(overhead, "START_TIMEOUT", 10.0)
    program = tmp_path / "npb_cg"
    program.write_text("#!/bin/sh\nsleep 0.2\necho no memory >&2\nexit 2\n", encoding="utf-8")
    program.chmod(0o755)

    def here(command: str, timeout: float = 60.0) -> Done:
        if "/proc/stat" in command:
            return Done(0, COUNTERS.format(0, 0))
        done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, timeout=timeout, check=False)
        return Done(done.returncode, done.stdout, done.stderr)

    guest = ElasticGuest("g", lambda command, timeout=60.0: Done(0, "", "", 0.1), here)
    measured = Bench(guest, classes={"npb_cg": "A"}, folder=str(tmp_path / "work"), programs=str(tmp_path))
    measured.rounds["npb_cg"] = 1
    for _ in range(2):
        with pytest.raises(LabError, match="npb_cg: it ended with '2': no memory"):
            measured.play("npb_cg", 0, kind)
