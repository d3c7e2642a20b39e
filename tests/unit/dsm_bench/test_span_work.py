# SPDX-License-Identifier: GPL-2.0
"""End-to-end tests of one guest on two hosts whose programs are played: they fail if a program has found something, or has
shown nothing, and what was measured is kept all the same, beside what an earlier run has left."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import litmus, results, starve, torture
from benchmarks.results import Metric
from benchmarks.ticks import Moment
from lab.command import Done
from lab.span_guest import SpanShape
from tests.e2e import test_dsm_litmus as span_litmus
from tests.e2e import test_dsm_span_starved as span_starved
from tests.e2e import test_dsm_span_work as span_work

SITE = SimpleNamespace(slow=10, home="alpha", other="beta", both=("alpha", "beta"), hosts=("alpha", "beta"))


class Lives:
    """A guest that is always there."""

    def __init__(self, cpus: int = 1) -> None:
        self.site, self.shape = SITE, SpanShape(cpus=cpus)

    @contextlib.contextmanager
    def borrowed(self, attached: bool, shape: SpanShape | None = None) -> Iterator[SimpleNamespace]:
        """It."""
        yield SimpleNamespace(run=lambda command, timeout=60.0: Done(0, ""))


def lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


CONTROL = ("plain", "lock", "split", "nt")  # of one host's CPUs


def litmus_output(
    shapes: list[str], raced: int = 500, weak: int = 0, variants: tuple[str, ...] = litmus.VARIANTS
) -> str:
    """Of a run in which so many rounds of each raced, and so many of the last variant saw what none may see."""
    pairs = [(shape, variant) for shape in shapes for variant in variants]
    found: list[dict[str, Any]] = [
        {
            "event": "shape", "shape": shape, "variant": variant, "rounds": 900 + raced, "overlapped": 600 + raced,
            "raced": raced, "raced_slots": raced // 3, "weak": 0,
            "weak_allowed": (shape, variant) in litmus.ALLOWED, "impossible": 0, "outcomes": {"else": 900 + raced},
        }
        for shape, variant in pairs
    ]  # fmt: skip
    if weak:
        found[-1] |= {"weak": weak, "outcomes": {litmus.WEAK[pairs[-1][0]]: weak, "else": 900 + raced - weak}}
    return lines(*found, {"event": "result", "rounds": (900 + raced) * len(found), "forbidden": weak})


def torture_output(wrong: int = 0, slow: int = 3) -> str:
    numbers = {"thread": 0, "number": 1, "page": 2, "found": 1, "expected": 2}
    said = {"event": "wrong", "operation": "read", "what": "torn", **numbers}
    each: list[dict[str, Any]] = [
        {"event": "operation", "operation": name, "count": 9, "slow": slow, "wrong": (wrong + 1) // 2 if name == "read" else 0}
        for name in torture.OPERATIONS
    ]
    each[1]["wrong"] = wrong // 2
    total = 9 * len(each)
    return lines(*[said] * wrong, *each, {"event": "result", "turns": 5, "operations": total, "wrong": wrong, "again": 2})


def starve_output(wrong: int = 0, few: int = 900) -> str:
    """`few`: words and instructions of the second host."""
    found = []
    for phase, what in enumerate(starve.WHATS):
        found += [
            {
                "event": "thread", "phase": phase, "what": what, "cpu": host, "host": host, "wide": what != "word",
                "count": few if host else 900, "waits": min(few, 90), "longest_us": 70,
            }
            for host in (0, 1)
        ]  # fmt: skip
    return lines(*found, {"event": "result", "phases": len(starve.WHATS), "ms": 9, "wrong": wrong})


ALL = list(litmus.SHAPES)


def litmus_of_all(path: Path) -> None:
    span_litmus.test_litmus(Lives(cpus=4), path)  # type: ignore[arg-type]


def litmus_for_long(path: Path) -> None:
    span_litmus.test_litmus_for_long(Lives(cpus=4), path, "iriw")  # type: ignore[arg-type]


def tortured(path: Path) -> None:
    span_work.test_torture(Lives(), path)  # type: ignore[arg-type]


def starved(path: Path) -> None:
    span_starved.test_nobody_starves(Lives(), path, 1, 0)  # type: ignore[arg-type]


@dataclasses.dataclass(frozen=True)
class Case:
    """A test, the status and output of its program, whether it passes then, and a figure of the file that it writes."""

    test: Callable[[Path], None]
    status: int
    out: str
    passes: bool
    file: str
    metric: str
    value: float


CASES = {
    "litmus": Case(litmus_of_all, 0, litmus_output(ALL), True, "litmus", "litmus.raced.s", 2500),
    "litmus, forbidden": Case(litmus_of_all, 1, litmus_output(ALL, weak=3), False, "litmus", "litmus.forbidden", 3),
    "litmus, a status": Case(litmus_of_all, 1, litmus_output(ALL), False, "litmus", "litmus.forbidden", 0),
    "litmus, a race too few": Case(litmus_of_all, 0, litmus_output(ALL, 199), False, "litmus", "litmus.raced.iriw", 995),
    "litmus, a shape too few": Case(litmus_of_all, 0, litmus_output(ALL[1:]), False, "litmus", "litmus.raced.s", 2500),
    "iriw": Case(litmus_for_long, 0, litmus_output(["iriw"], 20000), True, "litmus-iriw", "litmus.forbidden", 0),
    "iriw, forbidden": Case(litmus_for_long, 1, litmus_output(["iriw"], 20000, 1), False, "litmus-iriw", "litmus.forbidden", 1),
    "iriw, a race too few": Case(litmus_for_long, 0, litmus_output(["iriw"], 19999), False, "litmus-iriw", "litmus.raced.iriw",
                                 99995),
    "iriw, another one": Case(litmus_for_long, 0, litmus_output(["sb"], 20000), False, "litmus-iriw", "litmus.raced.sb",
                              100000),
    "torture": Case(tortured, 0, torture_output(), True, "dsm-torture-span", "torture.wrong", 0),
    "torture, wrong": Case(tortured, 1, torture_output(2), False, "dsm-torture-span", "torture.wrong", 2),
    "torture, a status": Case(tortured, 2, torture_output(), False, "dsm-torture-span", "torture.wrong", 0),
    "torture, nobody waited": Case(tortured, 0, torture_output(slow=0), False, "dsm-torture-span", "torture.slow", 0),
    "starve": Case(starved, 0, starve_output(), True, "dsm-starve-1-0", "starve.wrong", 0),
    "starve, wrong": Case(starved, 1, starve_output(4), False, "dsm-starve-1-0", "starve.wrong", 4),
    "starve, a share": Case(starved, 0, starve_output(few=110), False, "dsm-starve-1-0", "starve.wrong", 0),
    "starve, nobody waited": Case(starved, 0, starve_output(few=4), False, "dsm-starve-1-0", "starve.wrong", 0),
}


@pytest.fixture
def figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where they are kept."""

    def kept(name: str, metrics: list[Metric]) -> Path:
        return results.kept(name, metrics, tmp_path)

    for module in (span_work, span_litmus, span_starved):
        monkeypatch.setattr(module, "kept", kept)
    monkeypatch.setattr(span_starved, "tokens", lambda host: 7)
    return tmp_path


@pytest.mark.parametrize("what", CASES)
def test_a_program_that_has_found_something(figures: Path, monkeypatch: pytest.MonkeyPatch, what: str) -> None:
    case = CASES[what]
    for module in (span_work, span_litmus, span_starved):
        monkeypatch.setattr(module, "ran", lambda *_: Done(case.status, case.out))
    earlier = results.write(case.file, [Metric("earlier.run", 1.0, "1")], figures)
    if case.passes:
        case.test(figures)
    else:
        with pytest.raises(AssertionError):
            case.test(figures)
    now, aside = results.read(earlier), list((figures / "earlier").iterdir())
    figure = now.find(case.metric)
    assert figure and figure.value == case.value
    assert [json.loads(each.read_text())["metrics"][0]["metric"] for each in aside] == ["earlier.run"]


def test_rounds_that_race_are_between_two_hosts(figures: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program believes what it is told of CPUs: which host has each, by turns, and how long a page takes there."""
    asked = []

    def ran(site: object, guest: object, command: str, output: Path, seconds: float) -> Done:
        asked.append(command)
        return Done(0, litmus_output(ALL))

    monkeypatch.setattr(span_litmus, "ran", ran)
    litmus_of_all(figures)
    (command,) = asked
    words = dict(word.removeprefix("--").split("=") for word in command.split()[1:])
    shape, cpus, hosts = SpanShape(cpus=span_litmus.CPUS), words["cpus"].split(","), words["hosts"].split(",")
    assert hosts == ["0", "1"] * span_litmus.CPUS and len(set(cpus)) == len(cpus)
    assert all(int(cpu) in shape.cpus_of(int(host)) for cpu, host in zip(cpus, hosts, strict=True)), command
    assert words["slow-us"] == f"{span_litmus.WAITED_US // SITE.slow}" and words["raced"] == "200"
    # x is at home, and y at the other host.
    assert words["nodes"] == "0,1" and int(words["rounds"]) > 1000 * int(words["raced"])
    assert all(host.cpus == span_litmus.CPUS for host in span_litmus.wide().hosts)


@pytest.mark.parametrize(
    ("raced", "split", "passes"),
    [(0, (600, 0), True), (45, (600, 0), True), (60, (600, 0), False), (0, (600, 600), True), (0, (7, 0), True)],
    ids=["none", "some", "too many", "of split", "split that hardly overlaps"],
)
def test_rounds_of_one_host_that_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raced: int, split: tuple[int, int], passes: bool
) -> None:
    """A few in a hundred may, by chance; of split any, also none. It is told of two hosts, and has CPUs of one."""
    asked = []

    def ran(site: object, guest: object, command: str, output: Path, seconds: float) -> Done:
        asked.append(command)
        said = [json.loads(line) for line in litmus_output(["mp"], raced, variants=CONTROL).splitlines()]
        overlapped, slow = split
        said[CONTROL.index("split")] |= {"overlapped": overlapped, "raced": slow, "raced_slots": slow}
        return Done(0, lines(*said))

    monkeypatch.setattr(span_litmus, "ran", ran)
    with contextlib.nullcontext() if passes else pytest.raises(AssertionError):
        span_litmus.test_rounds_of_one_host_do_not_race(Lives(cpus=4), tmp_path)  # type: ignore[arg-type]
    (command,) = asked
    assert " --hosts=0,1,0,1 " in command and " --cpus=0,1,2,3 " in command and f"--variant={','.join(CONTROL)} " in command
    assert " --nodes=0,0 " in command and f" --slow-us={span_litmus.WAITED_US // SITE.slow}" in command


@pytest.mark.parametrize(("ticks", "passes"), [((70, 71), True), ((70, 70), False)])
def test_a_team_whose_threads_are_all_at_home(ticks: tuple[int, int], passes: bool) -> None:
    """Nothing has run in the other host's CPU but its kernel."""
    said = iter(ticks)

    def run(command: str, timeout: float = 60.0) -> Done:
        assert command == "grep '^cpu1 ' /proc/stat"
        return Done(0, f"cpu1 {next(said)} 0 900 80000 0 0 3 0 0 0\n")

    guest: Any = SimpleNamespace(run=run)
    with contextlib.nullcontext() if passes else pytest.raises(AssertionError), span_work.work_there(guest):
        pass


BEGUN = Moment([100, 100], [1000, 1000], 10.0)


@pytest.mark.parametrize(
    ("ended", "worked", "passes", "value"),
    [
        (Moment([700, 110], [1100, 1060], 16.0), 500, True, 0.1),
        (Moment([700, 110], [1100, 1200], 16.0), 500, False, 0.33),
        (Moment([700, 160], [1100, 1060], 16.0), 500, False, 0.1),
        (Moment([700, 100], [1100, 1000], 16.0), 0, False, 0),
    ],
    ids=["nearly none", "faults", "ticks", "it stood still"],
)
def test_faults_without_ticks(
    figures: Path, monkeypatch: pytest.MonkeyPatch, *, ended: Moment, worked: int, passes: bool, value: float
) -> None:
    """A goal that was not met is written down, too."""
    asked = []

    def quietly(site: object, guest: object, seconds: float, output: Path) -> tuple[Moment, Moment]:
        asked.append(seconds)
        return BEGUN, ended

    stat = iter(f"cpu1 {ticks} 0 900 80000 0 0 3 0 0 0\n" for ticks in (70, 70 + worked))

    def run(command: str, timeout: float = 60.0) -> Done:
        return Done(0, next(stat) if "/proc/stat" in command else "4711\n")

    monkeypatch.setattr(span_work, "with_kernel", lambda site, shape, step: shape)
    monkeypatch.setattr(span_work, "quietly", quietly)
    monkeypatch.setattr(span_work, "run_in", lambda where: run)
    with contextlib.nullcontext() if passes else pytest.raises(AssertionError):
        span_work.test_faults_without_ticks(Lives(), figures)  # type: ignore[arg-type]
    # Twice as long as RCU puts things off.
    assert asked == [20]
    if worked:
        figure = results.read(figures / "dsm-tick-nohz.json").find("dsm.tick.nohz.away")
        assert figure and figure.value == pytest.approx(value, abs=0.01)


def words_of(pattern: str, text: str) -> set[str]:
    """Those that the pattern finds, a list each; CPUs 2 and 3 of the document's guest are what CPU 1 is of the lab's."""
    (found,) = re.findall(pattern, text)
    return {re.sub(r"\b2-3\b", "1", word) for word in found.split()}


def test_a_guest_without_ticks_is_that_of_the_document(monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps CPUs elsewhere from pages is what was measured, word by word: each of these arguments is worth some."""
    monkeypatch.setattr(span_work, "with_kernel", lambda site, shape, step: dataclasses.replace(shape, kernel=step))
    shape = span_work.nohz_shape(Lives())  # type: ignore[arg-type]
    assert shape.kernel == "linux-nohz"
    text = (Path(__file__).parents[3] / "docs/two-hosts.md").read_text(encoding="utf-8")
    ticking = words_of(r'extra = "(.*tsc=reliable .* isolcpus=.*)"', text)
    without = words_of(r"`(nohz_full=.*?)` in `extra`", text)
    for wanted, each in ((ticking, SpanShape()), (ticking | without, shape)):
        given = words_of(r'extra = "(.*)"', each.xl_cfg("beta"))
        assert {word for word in wanted if not word.startswith(("root=", "console="))} <= given, (wanted, given)
    assert {word.partition("=")[0] for word in ticking | without} >= {
        "isolcpus", "workqueue.power_efficient", "sysctl.vm.compaction_proactiveness", "nohz_full", "rcu_nocbs",
        "rcutree.rcu_nocb_gp_stride",
    }  # fmt: skip


@pytest.mark.parametrize(("faults", "passes"), [(1200, True), (1201, False)])
def test_faults_per_tick(figures: Path, monkeypatch: pytest.MonkeyPatch, faults: int, passes: bool) -> None:
    """Two at most, of the CPU there; an idle home has too few ticks for a figure."""
    ended = Moment([150, 700], [9000, 1000 + faults], 16.0)
    monkeypatch.setattr(span_work, "while_busy", lambda *_: (BEGUN, ended))
    with contextlib.nullcontext() if passes else pytest.raises(AssertionError):
        span_work.test_faults_per_tick(Lives(), figures, "")  # type: ignore[arg-type]
    found = results.read(figures / "dsm-tick-span.json")
    home, away = found.find("dsm.tick.span.home"), found.find("dsm.tick.span.away")
    assert home and home.value is None and away and away.value == pytest.approx(faults / 600)


@pytest.mark.parametrize(("faults", "passes"), [(1200, True), (1201, False)])
def test_faults_per_tick_of_a_full_kernel(
    figures: Path, monkeypatch: pytest.MonkeyPatch, faults: int, passes: bool
) -> None:
    """Two at most there, too."""
    ended = Moment([150, 700], [9000, 1000 + faults], 16.0)
    monkeypatch.setattr(span_work, "with_kernel", lambda site, shape, step: shape)
    monkeypatch.setattr(span_work, "while_busy", lambda *_: (BEGUN, ended))
    with contextlib.nullcontext() if passes else pytest.raises(AssertionError):
        span_work.test_faults_per_tick_of_a_full_kernel(Lives(), figures)  # type: ignore[arg-type]
    away = results.read(figures / "dsm-tick-full.json").find("dsm.tick.full.away")
    assert away and away.value == pytest.approx(faults / 600)
