# SPDX-License-Identifier: GPL-2.0
"""`make explore`: what it makes of what the explorer says, and what it leaves; an explorer that is played says it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import explorer as module
from benchmarks import results
from benchmarks.explorer import Findings, explore, main, run
from benchmarks.results import Metric
from lab.pipeline import explorer
from lab.pipeline.mutants import Mutant
from lab.pipeline.progress import StepFailed

STATES = "echo '2x1                  71 states        200 transitions     0.5 s      142 states/s'"
LITMUS = STATES.replace("142 states/s", "142 states/s 3 outcomes, all that are allowed")
FORBIDDEN = "echo 'VIOLATION in 2x1: a forbidden outcome: a=1 b=0 x=1 y=1'; exit 1"
REFUTED = "echo 'VIOLATION in wrong-transport: two owners'; exit 1"
LARGE = "echo '2x1: more than 24000000 states' >&2; exit 2"
MUTANTS = [Mutant(f"mistake {n}", "step.c", "a", "b", ("2x1",)) for n in (1, 2)]


def played(folder: Path, script: str) -> Path:
    """A program that does this instead."""
    program = folder / "explore"
    program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("world", "script", "wanted"),
    [
        ("2x1", STATES, (0, [], [71])),
        ("2x1", "echo 'VIOLATION in 2x1: two owners'; exit 1", (1, [], [])),
        ("2x1", LARGE, (0, ["2x1"], [])),
        ("wrong-transport", REFUTED, (0, [], [])),
        ("wrong-transport", STATES.replace("2x1", "wrong-transport"), (1, [], [71])),
        ("wrong-transport", LARGE, (0, ["wrong-transport"], [])),
        ("wrong-partition", REFUTED, (0, [], [])),
        ("wrong-flush", REFUTED, (0, [], [])),
        ("wrong-weak", REFUTED, (0, [], [])),
    ],
    ids=["fine", "violation", "too large", "refuted", "not refuted", "not refuted, too large", "refuted, too", "flush", "weak"],
)
def test_what_is_found(tmp_path: Path, world: str, script: str, wanted: tuple[int, list[str], list[int]]) -> None:
    """Violations, worlds that are too large, numbers of states."""
    findings = Findings()
    explore(played(tmp_path, script), world, findings)
    assert (findings.violations, findings.incomplete, [each.states for each in findings.worlds]) == wanted
    assert findings.fine() == (wanted[:2] == (0, []))


@pytest.mark.parametrize(
    ("world", "script", "wanted"),
    [
        ("2x1", STATES, (0, 0, 0)),
        ("2x1", LITMUS, (1, 3, 0)),
        ("2x1", FORBIDDEN, (0, 0, 1)),
        ("wrong-flush", FORBIDDEN, (0, 0, 0)),
    ],
    ids=["no litmus test", "allowed", "forbidden", "has to be"],
)
def test_what_litmus_tests_show(tmp_path: Path, world: str, script: str, wanted: tuple[int, int, int]) -> None:
    """Tests that have shown what they may, and how many outcomes that was; and those with another one."""
    findings = Findings()
    explore(played(tmp_path, script), world, findings)
    values = {metric.metric: metric.value for metric in findings.metrics(1)}
    assert tuple(values[f"explorer.litmus_{each}"] for each in ("worlds", "outcomes", "forbidden")) == wanted


@pytest.mark.parametrize(
    "script",
    [
        f"{STATES}; kill -ABRT $$",
        f"{STATES}; exit 3",
        "echo '2 to 16 hosts, 1 to 4 pages' >&2; exit 1",
        "echo '2x1: bits that lose something' >&2; exit 2",
        "echo 'no world 2x1; --list names them' >&2; exit 2",
        STATES.replace("2x1", "3x1"),
        "true",
    ],
    ids=["crash", "status", "no violation said", "lost bits", "no world", "another world", "nothing said"],
)
def test_an_explorer_that_found_nothing_out_is_no_success(tmp_path: Path, script: str) -> None:
    with pytest.raises(StepFailed):
        explore(played(tmp_path, script), "2x1", Findings())


def test_a_walk_that_crashes_is_no_success(tmp_path: Path) -> None:
    with pytest.raises(StepFailed, match=r"(?s)--walk 2.*status -11"):
        run(played(tmp_path, "kill -SEGV $$"), ["--walk", "2", "1", "1", "9"], Findings())


class Built:
    """A build whose programs are played."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder.parent

    def core(self) -> Built:
        return self

    def all_tests(self) -> None:
        pass

    def with_mistake(self, mutant: Mutant, folder: Path) -> list[Path]:
        return []

    def explorer(self, core: Sequence[Path] = ()) -> Path:
        return self.folder / "explore"


@pytest.fixture
def written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Metric]:
    """The result that is left, by name. What is said of any world is in tmp_path/explore."""
    result: dict[str, Metric] = {}

    def write(name: str, metrics: Sequence[Metric], emulated: bool) -> Path:
        path = results.write(name, metrics, tmp_path, emulated)
        left = results.read(path)
        assert left.name == "explorer" and not left.host["emulated"]
        result.update({metric.metric: metric for metric in left.metrics})
        return path

    monkeypatch.setattr(explorer, "Build", lambda folder: Built(tmp_path / "right"))
    monkeypatch.setattr(explorer, "mutants", lambda: MUTANTS)
    monkeypatch.setattr(explorer, "noticed", lambda build, mutant, folder: "" if mutant is MUTANTS[1] else "2x1: seen")
    monkeypatch.setattr(module, "kept", write)
    return result


EXPLORER = """
echo "$*" >>"$(dirname "$0")/asked"
case "$*" in
--list) printf '2x1\\tone\\n3x1-alone\\tother\\nwrong-transport\\tx\\n' ;;
--walk*) echo walk ;;
wrong-transport) echo 'VIOLATION in it: x'; exit 1 ;;
*) for word; do :; done; echo "$word 7 states 9 transitions 0.5 s 14 states/s" ;;
esac
"""


def test_the_result_of_a_whole_run(
    tmp_path: Path, written: dict[str, Metric], capsys: pytest.CaptureFixture[str]
) -> None:
    """What it counts was run, and a survivor is named and is a failure."""
    played(tmp_path, EXPLORER)
    assert main(["--walks", "3", "--seed", "0x10"]) == 1
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert asked[:4] == ["--list", "2x1", "--lies 3x1-alone", "wrong-transport"]
    walks = [line.split() for line in asked[4:]]
    assert [walk[0] for walk in walks] == ["--walk"] * 3
    assert [int(walk[3]) for walk in walks] == [16, 17, 18]
    values = {name.removeprefix("explorer."): metric.value for name, metric in written.items()}
    assert values == {
        "states": 14, "seconds": 1.0, "violations": 0, "incomplete": 0, "mutants": 2, "mutants_survived": 1,
        "litmus_worlds": 0, "litmus_outcomes": 0, "litmus_forbidden": 0,
    }  # fmt: skip
    assert written["explorer.violations"].note == "3 walks from seed 16"
    assert written["explorer.mutants_survived"].note == "mistake 2"
    last = capsys.readouterr().out.splitlines()[-1]
    assert last.startswith("2 worlds with 14 states, 0 violations, 0 too large; 2 mutants, 1 survived; ")


@pytest.mark.parametrize("jobs", ["1", "3"])
def test_a_crash_leaves_no_result(tmp_path: Path, written: dict[str, Metric], jobs: str) -> None:
    played(tmp_path, EXPLORER.replace("echo walk", "kill -ABRT $$"))
    assert main(["--walks", "1", "--jobs", jobs]) == 1
    assert written == {}


def test_several_at_once_find_the_same(tmp_path: Path, written: dict[str, Metric]) -> None:
    played(tmp_path, EXPLORER)
    assert main(["--walks", "3", "--seed", "16", "--jobs", "3"]) == 1
    assert written["explorer.states"].value == 14 and written["explorer.mutants"].value == 2
    assert written["explorer.mutants_survived"].note == "mistake 2"
    asked = (tmp_path / "asked").read_text(encoding="utf-8").splitlines()
    assert sorted(line.split()[3] for line in asked if "--walk" in line) == ["16", "17", "18"]


@pytest.mark.parametrize(
    ("word", "code", "asked"),
    [
        ("3x1", 0, ["--list", "--lies 3x1-alone"]),
        ("mistake 1", 0, ["--list"]),
        ("mistake 2", 1, ["--list"]),
        ("nonesuch", 1, ["--list"]),
    ],
)
def test_a_part_leaves_no_result(
    tmp_path: Path, written: dict[str, Metric], word: str, code: int, asked: list[str]
) -> None:
    """Words that name nothing are no success."""
    played(tmp_path, EXPLORER)
    assert main([word]) == code
    assert (tmp_path / "asked").read_text(encoding="utf-8").splitlines() == asked
    assert written == {}


@pytest.mark.parametrize(
    ("script", "by"),
    [
        ("echo 'VIOLATION in 2x1: two owners'; exit 1", "2x1: two owners"),
        ("echo on; kill -ABRT $$", "2x1: on"),
        (
            "echo '2x1: the bits lose page.demand' >&2; exit 2",
            "2x1: a state with page.demand, which no right core has",
        ),
        (LARGE, ""),
        (STATES, ""),
    ],
    ids=["violation", "crash", "a state of no right core", "too large", "fine"],
)
def test_a_mutant_is_noticed_by_what_is_found(tmp_path: Path, script: str, by: str) -> None:
    """A world that becomes too large has shown nothing."""
    played(tmp_path, script)
    build = Built(tmp_path / "right")
    assert explorer.noticed(build, MUTANTS[0], tmp_path) == by  # type: ignore[arg-type]


def test_a_test_of_a_mutant_that_does_not_exist_notices_nothing(tmp_path: Path) -> None:
    played(tmp_path, "echo 'no world 2x1; --list names them' >&2; exit 2")
    with pytest.raises(StepFailed):
        explorer.noticed(Built(tmp_path / "right"), MUTANTS[0], tmp_path)  # type: ignore[arg-type]
