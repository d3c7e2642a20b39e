# SPDX-License-Identifier: GPL-2.0
"""`make soak SEED=N`: what it prints, writes and ends with."""

from __future__ import annotations

import collections
import functools
import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks.results import read
from benchmarks.soak import __main__ as soak
from benchmarks.soak.model import SHAPES
from benchmarks.soak.plan import Step, plan, said
from benchmarks.soak.play import Outcome, Soak
from lab.command import Done
from lab.errors import LabError
from lab.rack import Rack
from tests.unit.soak.played import PlayedHome

SHAPE = SHAPES["guest2"]


class Played:
    """A rack with a played host, and what the command prints on it."""

    def __init__(self, folder: Path, faults: set[str] | None = None) -> None:
        self.logs, self.results = folder / "logs", folder / "results"
        self.logs.mkdir()
        self.home = PlayedHome(SHAPE, self.logs / "alpha-guest2.log", faults)
        self.said: list[str] = []
        self.wrong_ends: list[str] = []

    def host(self) -> PlayedHome:
        return self.home

    def run(self, *words: str) -> int:
        options = soak.parse(["--seed", "2", *words])
        return soak.run(options, options.seed, self.said.append, self.results)


def quick(late_s: float) -> Callable[..., Soak]:
    """What makes a soak that looks without a pause, and waits so long for what is late."""
    return functools.partial(Soak, late_s=late_s, look_s=0.0)


@pytest.fixture
def rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    played = Played(tmp_path)

    @contextmanager
    def rack_of(options: object) -> Iterator[Played]:
        yield played

    monkeypatch.setattr(soak, "rack_of", rack_of)
    monkeypatch.setattr(soak, "LabHome", lambda host, shape, kernel: host)
    monkeypatch.setattr(soak, "Soak", quick(0.0))
    return played


def test_a_run_without_violations(rack: Played) -> None:
    assert rack.run("--ops", "25") == 0
    result = read(rack.results / "soak.json")
    figures = {metric.metric: metric for metric in result.metrics}
    assert figures["soak.operations"].value == sum(map(float, figures["soak.operations"].baseline.values())) == 25
    assert figures["soak.violations"].value == 0 and figures["soak.violations"].note == "seed 2, 25 operations"
    assert result.host["seed"] == 2 and len(figures["soak.seconds"].runs) == 25
    journal = [json.loads(line) for line in (rack.logs / "soak.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [line["step"] for line in journal] == list(range(1, 26))
    assert [str(step.operation) for step in plan(2, 25, SHAPE)] == [line["operation"] for line in journal]
    assert rack.said[-1] == "soak: 25 operations, 0 violations"


def test_operations_are_counted_by_kind(rack: Played) -> None:
    """With the programs that started and what became of them: so a run shows whether it had memory pressure."""
    assert rack.run("--ops", "200") == 0
    wanted = collections.Counter(said(step) for step in plan(2, 200, SHAPE))
    operations = read(rack.results / "soak.json").find("soak.operations")
    assert operations and operations.baseline == dict(wanted) and sum(wanted.values()) == 200
    assert {"start crowd", "wrong crowded", "detach moved", "start pin", "start fork", "start lock"} <= set(wanted)


def test_an_xl_that_had_ended_before_it_was_to_be_killed_is_not_counted_as_cut(rack: Played) -> None:
    """By journal, line and figure: else a run could say of itself that it had killed what it never did."""
    assert rack.run("--ops", "60") == 0
    journal = [json.loads(line) for line in (rack.logs / "soak.jsonl").read_text(encoding="utf-8").splitlines()]
    ways = {step.number: step.operation for step in plan(2, 60, SHAPE) if step.operation.how}
    how = {number: f"call {each.call}" if each.how == "call" else str(each.how) for number, each in ways.items()}
    cuts = {line["step"]: line["cut"] for line in journal if "cut" in line}
    assert set(cuts) == set(how) and set(cuts.values()) == {True, False}
    result = read(rack.results / "soak.json")
    for name, was in (("soak.cut", True), ("soak.ended_before", False)):
        wanted = collections.Counter(how[number] for number, cut in cuts.items() if cut == was)
        figure = result.find(name)
        assert figure and figure.baseline == dict(wanted) and figure.value == sum(wanted.values())
    assert sum("it had ended before" in line for line in rack.said) == list(cuts.values()).count(False)


def test_a_violation_is_told_with_the_command_that_repeats_it(rack: Played) -> None:
    rack.home.faults.add("page")
    first = next(step.number for step in plan(2, 60, SHAPE) if step.before.vnodes and step.after.vnodes == ())
    assert rack.run("--ops", "60", "--from", str(first - 1)) == 1
    assert not rack.results.exists(), "a part of a plan is no measurement"
    again = [line for line in rack.said if "make soak" in line]
    number = rack.said[-1].split()[1]
    at = first - 2 + int(number)
    wanted = [f"soak: again, from the state before it: make soak SEED=2 OPS=60 FROM={at} TO={at}"]
    if at > first - 1:  # what has built up is not in that state
        wanted.append(f"soak: again, with all before it: make soak SEED=2 OPS=60 FROM={first - 1} TO={at}")
    assert again == wanted
    assert any("WRONG: " in line for line in rack.said) and rack.said[-1].endswith("violations")


def test_the_first_operation_of_a_part_is_repeated_by_one_command(rack: Played) -> None:
    """There is nothing before it that the other one would do."""
    rack.home.faults.add("words")
    first = next(step.number for step in plan(2, 60, SHAPE) if step.number > 1 and step.operation.name == "wrong")
    assert rack.run("--ops", "60", "--from", str(first)) == 1
    again = [line for line in rack.said if "make soak" in line]
    assert again == [f"soak: again, from the state before it: make soak SEED=2 OPS=60 FROM={first} TO={first}"]


def test_what_moves_and_what_nobody_asks_is_counted(rack: Played) -> None:
    """By journal and figure: a detach whose programs have nothing on the node shows nothing of memory that moves."""
    assert rack.run("--ops", "200") == 0
    journal = [json.loads(line) for line in (rack.logs / "soak.jsonl").read_text(encoding="utf-8").splitlines()]
    moved: collections.Counter[str] = collections.Counter()
    for line in journal:
        moved.update(line.get("moved", {}))
    result = read(rack.results / "soak.json")
    pages, unasked = result.find("soak.moved_pages"), result.find("soak.unasked")
    assert pages and pages.baseline == dict(moved) and pages.value == sum(moved.values()) > 0 and len(moved) > 1
    assert unasked and unasked.value == sum(line.get("unasked", 0) for line in journal)


def test_a_run_in_which_no_kill_comes_in_time_is_wrong(rack: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """It would show nothing of an xl that is killed, which is what it is for."""
    usual = PlayedHome.dom0

    def dom0(self: PlayedHome, command: str, timeout: float = 60.0) -> Done:
        return usual(self, re.sub(r"^(?:strace .*inject=\S+|timeout .* KILL \S+) ", "", command), timeout)

    monkeypatch.setattr(PlayedHome, "dom0", dom0)
    assert rack.run("--ops", "200") == 1
    assert any(re.search(r"of \d+ that were to be killed at a call none was: each had", line) for line in rack.said)


@pytest.mark.parametrize("how", ["call", "time"])
def test_how_many_kills_that_come_too_late_are_wrong(how: str) -> None:
    """Of each way by itself: kills at a call say nothing of those at a time."""
    few = [Outcome(step, cut=False) for step in plan(2, 600, SHAPE) if step.operation.how == how][: soak.MANY]
    said = [f"of {soak.MANY} that were to be killed at a {how} none was: each had ended before"]
    assert len(few) == soak.MANY and soak.uncut(few) == said and not soak.uncut(few[:-1])
    few[0].cut = True
    assert not soak.uncut(few)


BANNER = "(XEN) Xen version 4.20.4-pre (@) (gcc (Debian 14.2.0-19) 14.2.0) debug={} Mon Nov 30 02:59:11 UTC 2026\n"

LESS = " is off: this run checks less than it says"


@pytest.mark.parametrize(
    ("banner", "faults", "wrong"),
    [
        (BANNER.format("y"), (), ""),
        (BANNER.format("n"), (), f"xen_assertions{LESS}"),
        ("", (), f"xen_assertions{LESS}"),
        (BANNER.format("y"), ("unlocked",), f"before the first operation: guest_lockdep{LESS}"),
    ],
    ids=["on", "xen", "no-console", "guest"],
)
def test_a_run_with_checks_has_them(rack: Played, tmp_path: Path, banner: str, faults: tuple[str, ...], wrong: str) -> None:
    """A release build of Xen, or a guest whose lockdep has turned itself off, is none; the result says which were on."""
    (rack.logs / "alpha-console.log").write_text(banner, encoding="utf-8")
    (tmp_path / "vmlinuz").write_bytes(b"")
    rack.home.faults |= set(faults)
    status = rack.run("--ops", "3", "--kernel", str(tmp_path / "vmlinuz"))
    assert status == bool(wrong) and (not wrong or f"soak: {wrong}" in rack.said)
    checks = str(read(rack.results / "soak.json").host["checks"]).split()
    assert ("xen_assertions" in checks) == ("=y" in banner) and ("guest_kasan" in checks) == ("=y" in banner)
    assert ("guest_lockdep" in checks) == (not wrong)


def test_a_run_without_checks_says_so(rack: Played) -> None:
    rack.home.faults.add("unlocked")
    assert rack.run("--ops", "3") == 0
    assert read(rack.results / "soak.json").host["checks"] == "guest_kasan"


def test_the_home_has_the_memory_that_is_asked_for() -> None:
    options = soak.parse(["--seed", "2", "--home", "768"])
    shape, steps = soak.chosen(options, 2)
    assert shape.home_mib == 768 and {step.before.home_mib for step in steps} <= {768, 752, 736}


def test_a_rack_that_cannot_be_had_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """By the real function that has it."""

    def boot(*_: object, **__: object) -> None:
        raise LabError("no memory for it")

    monkeypatch.setattr(Rack, "boot", boot)
    said: list[str] = []
    assert soak.run(soak.parse(["--seed", "2", "--ops", "3"]), 2, said.append, tmp_path) == 1
    assert said[-1] == "soak: no rack, nothing was done: no memory for it" and not list(tmp_path.iterdir())


def test_what_was_found_before_a_rack_is_lost_is_told(rack: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*words: object, **_: object) -> list[str]:
        telling = words[-1]
        assert isinstance(telling, soak.Telling)
        telling(Outcome(plan(2, 3, SHAPE)[0], wrong=["a page is missing"]))
        raise OSError("the rack is gone")

    monkeypatch.setattr(soak, "on_rack", lost)
    assert rack.run("--ops", "3") == 1
    assert "soak: a page is missing" in rack.said and "soak: the rack is gone" in rack.said
    assert rack.said[-1] == "soak: 1 operations, 2 violations"


def test_what_came_late_is_counted(rack: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(soak, "Soak", quick(5.0))
    rack.home.faults.add("slow")
    assert rack.run("--ops", "25") == 0
    journal = [json.loads(line) for line in (rack.logs / "soak.jsonl").read_text(encoding="utf-8").splitlines()]
    late = read(rack.results / "soak.json").find("soak.late")
    assert late and late.value == sum("late" in line for line in journal) > 0
    assert sum(" late" in line for line in rack.said) == late.value


def test_stalls_are_counted(rack: Played) -> None:
    rack.home.faults.add("stall")
    assert rack.run("--ops", "25") == 0
    journal = [json.loads(line) for line in (rack.logs / "soak.jsonl").read_text(encoding="utf-8").splitlines()]
    stalls = read(rack.results / "soak.json").find("soak.stalls")
    assert stalls and stalls.value == sum(line.get("stalls", 0) for line in journal) > 0


def test_the_figures_count_violations(rack: Played) -> None:
    rack.home.faults.add("bytes")
    assert rack.run("--ops", "60") == 1
    result = read(rack.results / "soak.json")
    violations, operations = result.find("soak.violations"), result.find("soak.operations")
    assert violations and violations.value == 1 and "says mapped" in violations.note
    assert operations and operations.value and operations.value < 60 and "ended after" in operations.note


def test_the_part_that_is_asked_for_is_done(rack: Played) -> None:
    assert rack.run("--ops", "40", "--from", "11", "--to", "15") == 0
    journal = [json.loads(line)["step"] for line in (rack.logs / "soak.jsonl").read_text(encoding="utf-8").splitlines()]
    assert journal == [11, 12, 13, 14, 15]


@pytest.mark.parametrize("words", [("--from", "0"), ("--from", "9", "--to", "8"), ("--to", "41"), ("--from", "-1")])
def test_a_part_that_is_none_is_refused(
    rack: Played, words: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    assert soak.main(["--seed", "1", "--ops", "40", *words]) == 2
    assert "want 1 <= FROM <= TO <= OPS, which is 40" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["--from", "3"], ["--to", "3"], ["--from", "3", "--to", "4", "--plan"]])
def test_a_part_without_a_seed_is_refused(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It would be of a plan that nobody has seen."""
    with pytest.raises(SystemExit) as ended:
        soak.main(words)
    assert ended.value.code == 2 and "--seed" in capsys.readouterr().err


def test_the_plan_alone(rack: Played) -> None:
    assert rack.run("--ops", "30", "--plan") == 0
    assert rack.said == [f"{step.number:5d}  {step.operation}" for step in plan(2, 30, SHAPE)]
    assert rack.home.typed == []


def test_interrupted(rack: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was done so far is written, and the exit status says it."""
    usual = Soak.play

    def play(self: Soak, step: object) -> Outcome:
        if getattr(step, "number", 0) == 9:
            raise KeyboardInterrupt
        return usual(self, step)  # type: ignore[arg-type]

    monkeypatch.setattr(Soak, "play", play)
    assert rack.run("--ops", "30") == 130
    operations = read(rack.results / "soak.json").find("soak.operations")
    assert operations and operations.value == 8 and operations.note == "seed 2: ended after 8 of 30"
    assert rack.said[-1] == "soak: interrupted: 8 operations, 0 violations"
    assert read(rack.results / "soak.json").find("soak.violations") is None, "a run that was not done has found nothing"
    rack.home.domid = 0
    rack.home.faults.add("home")
    assert rack.run("--ops", "30", "--keep-going") == 130
    wrong = sum("WRONG: " in line for line in rack.said)
    assert wrong and rack.said[-1] == f"soak: interrupted: 8 operations, {wrong} violations"


def test_what_was_wrong_is_told_though_the_checks_are_interrupted(
    rack: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They wait for what may be late, up to two minutes."""
    usual = Soak._judge

    def judge(self: Soak, step: Step) -> list[str]:
        if step.number == (1 if found else 7):
            raise KeyboardInterrupt
        return usual(self, step)

    done = Soak._perform

    def perform(self: Soak, step: Step, outcome: Outcome) -> None:
        done(self, step, outcome)
        outcome.wrong += found

    found = ["exit status 1, not 0"]
    monkeypatch.setattr(Soak, "_judge", judge)
    monkeypatch.setattr(Soak, "_perform", perform)
    assert rack.run("--ops", "30") == 130
    assert any("WRONG: exit status 1, not 0" in line for line in rack.said)
    assert rack.said[-1] == "soak: interrupted: 1 operations, 1 violations"
    found.clear()
    rack.home.domid = 0
    assert rack.run("--ops", "30") == 130
    assert rack.said[-1] == "soak: interrupted: 6 operations, 0 violations"


def test_what_was_wrong_is_told_though_the_guests_end_is_interrupted(
    rack: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That can take a minute, in which nothing is printed."""

    def end(self: Soak, asks: bool = True) -> list[str]:
        raise KeyboardInterrupt

    monkeypatch.setattr(Soak, "end", end)
    rack.home.faults.add("bytes")
    assert rack.run("--ops", "30") == 130
    assert any("WRONG: program 1" in line for line in rack.said)
    assert rack.said[-1] == "soak: interrupted: 1 operations, 1 violations"
    violations = read(rack.results / "soak.json").find("soak.violations")
    assert violations and violations.value == 1


def test_what_was_wrong_with_the_beginning_is_told_though_the_guest_does_not_end(
    rack: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    def end(self: Soak, asks: bool = True) -> list[str]:
        raise LabError("no end")

    monkeypatch.setattr(Soak, "end", end)
    rack.home.faults.add("mute")
    assert rack.run("--ops", "3") == 1
    assert rack.said[-1] == "soak: 0 operations, 2 violations"
    assert any("no console" in line for line in rack.said) and any("no end" in line for line in rack.said)


def test_a_rack_that_is_lost_is_a_violation(rack: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    def lost(*_: object, **__: object) -> None:
        raise OSError("no rack")

    monkeypatch.setattr(soak, "on_rack", lost)
    assert rack.run("--ops", "3") == 1
    assert "soak: no rack" in rack.said


@pytest.mark.parametrize(("why", "status"), [(LabError("no rack nix"), 1), (KeyboardInterrupt(), 130)], ids=["none", "ctrl-c"])
def test_a_rack_that_never_was_is_none(
    rack: Played, monkeypatch: pytest.MonkeyPatch, why: BaseException, status: int
) -> None:
    """Whoever mistypes its name has found nothing wrong with a guest, and loses no result."""
    assert rack.run("--ops", "3") == 0
    before = (rack.results / "soak.json").read_bytes()

    @contextmanager
    def none(options: object) -> Iterator[Played]:
        raise why
        yield

    monkeypatch.setattr(soak, "rack_of", none)
    rack.said.clear()
    assert rack.run("--ops", "3") == status
    last = "soak: interrupted: 0 operations, 0 violations" if status == 130 else "soak: no rack, nothing was done: no rack nix"
    assert rack.said[1:] == [last]
    assert (rack.results / "soak.json").read_bytes() == before and not (rack.results / "earlier").exists()


def test_what_the_consoles_say_as_the_rack_ends_counts(rack: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """After the last look, while dom0 and the hypervisor go down; of a rack that runs on nobody asks."""

    @contextmanager
    def rack_of(options: object) -> Iterator[Played]:
        yield rack
        rack.home.say("[ 99.9] WARNING: CPU: 0 PID: 1 at kernel/reboot.c:1 f+0x1/0x2")

    monkeypatch.setattr(soak, "rack_of", rack_of)
    assert rack.run("--ops", "3", "--use", "that") == 0
    rack.home.domid = 0
    assert rack.run("--ops", "3") == 1
    assert rack.said[-1] == "soak: 3 operations, 1 violations" and any("kernel/reboot.c:1" in line for line in rack.said)


def test_an_earlier_result_is_set_aside(rack: Played) -> None:
    assert rack.run("--ops", "3") == 0
    rack.home.domid = 0
    assert rack.run("--ops", "2") == 0
    operations = read(rack.results / "soak.json").find("soak.operations")
    assert operations and operations.value == 2
    assert len(list((rack.results / "earlier").iterdir())) == 1


def test_a_host_that_ends_badly_is_a_violation(rack: Played) -> None:
    rack.wrong_ends.append("host alpha did not power off")
    assert rack.run("--ops", "3") == 1
    assert rack.said[-1] == "soak: 3 operations, 1 violations"


def test_how_to_repeat_it_with_checks() -> None:
    options = SimpleNamespace(ops=300, guest="guest4", kernel=Path("vmlinuz"))
    step = plan(5, 12, SHAPES["guest4"])[-1]
    assert soak.replay(options, 5, step) == "make soak-debug SEED=5 OPS=300 FROM=12 TO=12 SOAK_GUEST=guest4"  # type: ignore[arg-type]
    assert soak.replay(options, 5, step, 3) == "make soak-debug SEED=5 OPS=300 FROM=3 TO=12 SOAK_GUEST=guest4"  # type: ignore[arg-type]


@pytest.mark.parametrize("status", [0, 130, 143, 6])
def test_an_xl_that_takes_no_signal_is_wrong(status: int) -> None:
    """Of eight or more that were told to give up one at least has to have done so, of both signals together."""
    steps = [step for step in plan(2, 600, SHAPE) if step.operation.how in ("INT", "TERM")][: soak.MANY]
    outcomes = [Outcome(step, cut=bool(status), cut_status=status) for step in steps]
    said = [] if status == 6 else [f"of {soak.MANY} that were told to give up none has told the guest to undo it"]
    assert len(outcomes) == soak.MANY and soak.uncut(outcomes) == said and soak.uncut(outcomes[:-1]) == []
