# SPDX-License-Identifier: GPL-2.0
"""A measurement that ends early loses nothing: what it has is kept, continued by a later call, and put together honestly."""

from __future__ import annotations

import contextlib
import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from benchmarks import overhead
from benchmarks.overhead import CLASSES, chosen, missing, report
from benchmarks.overhead_figures import ADD, KINDS, LARGE, REMOVE, SMALL
from benchmarks.overhead_journal import Journal, JournalError, decode, encode
from lab import artifacts
from lab.command import Done
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError, MachineLostError
from tests.unit.overhead.runs import sample
from tests.unit.overhead.test_overhead_bench import Played

TERMS = {"tree": "1234", "runs": 5}


class Lab:
    """`overhead.main()` with played guests, a new one for each session; `ends` is raised when so many runs have ended."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.journal = folder, folder / "journal"
        self.sessions: list[Played] = []
        self.over = 9  # of Played
        self.undead = False  # whether a guest cannot be destroyed
        self.ends: tuple[int, BaseException] | None = None
        monkeypatch.setattr(overhead, "ASK_S", 0.001)
        monkeypatch.setattr(overhead, "rack_of", lambda options: contextlib.nullcontext(SimpleNamespace(host=lambda: self)))
        monkeypatch.setattr(overhead, "report", lambda journal, classes: report(journal, classes, folder))

    def start_guest(self, config: Path, overrides: dict[str, str]) -> ElasticGuest:
        played, undead = Played(over=self.over), self.undead
        self.sessions.append(played)

        def guest(command: str, timeout: float = 60.0) -> Done:
            if self.ends and len(played.runs) >= self.ends[0]:
                raise self.ends[1]
            return played.guest(command, timeout)

        class Guest(ElasticGuest):
            def destroy(self) -> None:
                played.typed.append("destroyed")
                if undead:
                    raise LabError("could not be destroyed")

        return Guest("g", played.dom0, guest)

    def main(self, *words: str, ends: tuple[int, BaseException] | None = None) -> int:
        self.ends = ends
        return overhead.main(["--runs=3", "--seconds=1", f"--journal={self.journal}", *words])

    def figures(self) -> dict[str, Any]:
        data = json.loads((self.folder / "overhead.json").read_text(encoding="utf-8"))
        return {metric["metric"]: metric for metric in data["metrics"]}


@pytest.fixture(name="lab")
def _lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Lab:
    return Lab(tmp_path, monkeypatch)


# --- sessions ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("ends", "status", "failure"),
    [(KeyboardInterrupt(), 130, "interrupted"), (MachineLostError("the guest is gone"), 1, "the guest is gone")],
    ids=["ctrl-c", "guest"],
)
def test_what_ended_early_is_kept_and_continued(lab: Lab, ends: BaseException, status: int, failure: str) -> None:
    """In the second round: its runs are discarded and the round is played anew, the first one is not."""
    # One run to calibrate each of two programs, eight of the first round, four of the second: the last is not read any more.
    assert lab.main("--programs=npb_cg,stream", ends=(2 + 8 + 4, ends)) == status
    assert lab.sessions[0].typed[-1] == "destroyed"
    found = lab.figures()
    assert len(found["overhead.add.npb_cg.pct"]["runs"]) == 1 and len(found["overhead.remove.stream.pct"]["runs"]) == 1
    assert (found["overhead.failures"]["value"], found["overhead.failures"]["note"]) == (1, failure)
    assert found["overhead.discarded"]["value"] == 3, "told at once, not only by a later session"

    assert lab.main("--programs=npb_cg,stream", "--continue") == 0
    found = lab.figures()
    assert len(lab.sessions) == 2 and len(lab.sessions[1].runs) == 2 * 8, "two rounds of two programs, and no calibration"
    assert {rounds for *_, rounds in lab.sessions[1].runs} == {"2"}, "the same work as in the first session"
    for name in ("npb_cg", "stream"):
        assert len(found[f"overhead.add.{name}.pct"]["runs"]) == 3
    counts = {name: found[f"overhead.{name}"]["value"] for name in ("failures", "discarded", "sessions", "left_out")}
    assert counts == {"failures": 1, "discarded": 3, "sessions": 2, "left_out": 0}


@pytest.mark.parametrize(
    ("ends", "status", "failure"),
    [(KeyboardInterrupt(), 130, "interrupted"), (MachineLostError("the guest is gone"), 1, "the guest is gone")],
    ids=["ctrl-c", "guest"],
)
def test_a_guest_that_cannot_be_destroyed_does_not_hide_why(
    lab: Lab, ends: BaseException, status: int, failure: str
) -> None:
    lab.undead = True
    assert lab.main("--programs=npb_cg", ends=(3, ends)) == status
    assert lab.figures()["overhead.failures"]["note"] == failure


def test_a_guest_that_cannot_be_destroyed_is_a_failure(lab: Lab) -> None:
    """When all is measured, too: the rack is not as it should be."""
    lab.undead = True
    assert lab.main("--programs=npb_cg") == 1
    assert lab.figures()["overhead.failures"]["note"] == "could not be destroyed"
    assert lab.figures()["overhead.add.npb_cg.pct"]["value"] is not None


@pytest.mark.parametrize(("ends", "status"), [(None, 1), ((6, KeyboardInterrupt()), 130)], ids=["run", "ctrl-c"])
def test_a_full_disk_ends_it_with_figures(
    lab: Lab,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    ends: tuple[int, BaseException] | None,
    status: int,
) -> None:
    """Whole rounds that were measured before are reported, from memory, and continued later."""
    end_round = Journal.end_round

    def full(journal: Journal, name: str, number: int) -> None:
        end_round(journal, name, number)
        journal.close()
        journal.out = Path("/dev/full").open("w", encoding="utf-8")  # noqa: SIM115

    with monkeypatch.context() as changed:
        changed.setattr(Journal, "end_round", full)
        assert lab.main("--programs=npb_cg", ends=ends) == status
    assert "No space left on device" in capsys.readouterr().err
    assert len(lab.figures()["overhead.add.npb_cg.pct"]["runs"]) == 1
    assert lab.figures()["overhead.failures"]["value"] == 1
    assert lab.main("--programs=npb_cg", "--continue") == 0
    assert len(lab.figures()["overhead.add.npb_cg.pct"]["runs"]) == 3


def test_figures_that_cannot_be_written_are_told(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The journal has the runs."""
    with monkeypatch.context() as changed:
        changed.setattr(overhead, "report", lambda *_: Path("/dev/full").write_text("x", encoding="utf-8"))
        assert lab.main("--programs=npb_cg") == 1
    assert "no figures: [Errno 28]" in capsys.readouterr().err
    assert lab.main("--programs=npb_cg", "--continue") == 0
    assert len(lab.sessions) == 1 and lab.figures()["overhead.add.npb_cg.pct"]["value"] == 0


def test_programs_in_several_sessions_have_one_mean(lab: Lab) -> None:
    """Each session some of them: the mean is there when all are."""
    names = list(CLASSES)
    assert lab.main(f"--programs={','.join(names[:2])}") == 0
    assert "overhead.add.mean_pct" not in lab.figures()
    assert lab.main(f"--programs={','.join(names[2:])}", "--continue") == 0
    assert lab.figures()["overhead.add.mean_pct"]["value"] == 0
    assert [{name for name, *_ in played.runs} for played in lab.sessions] == [set(names[:2]), set(names[2:])]
    assert lab.main("--continue") == 0
    assert len(lab.sessions) == 2, "nothing is missing: no rack is booted"


def test_a_session_with_an_end(lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Between rounds of a program, so that nothing is discarded."""
    times = iter(range(0, 10**6, 20))
    monkeypatch.setattr(overhead, "time", SimpleNamespace(monotonic=lambda: float(next(times))))
    assert lab.main("--programs=npb_cg", "--minutes=2") == 1
    assert "of 3 rounds are missing: --continue plays them" in capsys.readouterr().err
    done = len(lab.sessions[0].runs)
    assert done % 4 == 1 and done < 13
    assert lab.main("--programs=npb_cg", "--continue") == 0
    assert len(lab.sessions[1].runs) == 13 - done and lab.figures()["overhead.discarded"]["value"] == 0


@pytest.mark.parametrize(
    "words",
    ["--runs=4", "--seconds=2", "--classes=stream=S", "--larger", "--rack=one-host", "--use=lab",
     "--config={folder}/other.cfg"],
)  # fmt: skip
def test_other_words_are_refused(lab: Lab, words: str, capsys: pytest.CaptureFixture[str]) -> None:
    """And nothing is booted, or lost."""
    (lab.folder / "other.cfg").write_text("name = 'g'\n", encoding="utf-8")
    assert lab.main("--programs=npb_cg") == 0
    before = lab.journal.read_bytes()
    assert lab.main("--programs=npb_cg", "--continue", words.format(folder=lab.folder)) == 1
    assert "of something else: " in capsys.readouterr().err
    assert len(lab.sessions) == 1 and lab.journal.read_bytes() == before


def test_larger_classes_are_run_and_told(lab: Lab) -> None:
    assert lab.main("--programs=npb_ep", "--larger") == 0
    assert {played.problem for played in lab.sessions} == {"A"}
    assert lab.figures()["overhead.add.npb_ep.pct"]["baseline"]["class"] == "A"


def test_another_tree_is_refused(lab: Lab, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """Also one that was built to something else, and another machine."""
    assert lab.main("--programs=npb_cg") == 0
    for module, name, other in (
        (overhead, "content_key", lambda *_, base: "0"),
        (artifacts, "ARTIFACTS", lab.folder),
        (overhead, "host_info", lambda: {"cpus": 999, "cpu_model": "", "kernel": ""}),
    ):
        with monkeypatch.context() as changed:
            changed.setattr(module, name, other)
            if name == "ARTIFACTS":
                (lab.folder / "xen").symlink_to("xen-0000")
            assert lab.main("--programs=npb_cg", "--continue") == 1
        assert "of something else: " in capsys.readouterr().err
    kernel = lab.folder / "bzImage"
    kernel.write_text("one", encoding="utf-8")
    monkeypatch.setenv("XENUMA_KERNEL", str(kernel))
    assert lab.main("--programs=npb_cg", "--continue") == 1
    assert f"kernel={kernel}" in capsys.readouterr().err
    assert len(lab.sessions) == 1


def test_a_replaced_artifact_is_what_is_in_its_file(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that was built anew, to the same place, is another one."""
    kernel = lab.folder / "bzImage"
    kernel.write_text("one", encoding="utf-8")
    monkeypatch.setenv("XENUMA_KERNEL", str(kernel))
    assert [lab.main("--programs=npb_cg", *words) for words in ((), ("--continue",))] == [0, 0]
    kernel.write_text("two", encoding="utf-8")
    assert lab.main("--programs=npb_cg", "--continue") == 1


def test_a_new_measurement_sets_the_old_one_aside(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    """Its journal and its figures, and says where: who forgets --continue has lost nothing."""
    assert lab.main("--programs=npb_cg") == 0
    kept = lab.journal.read_bytes()
    assert lab.main("--programs=stream") == 0
    (aside,) = lab.folder.glob("journal.*")
    assert aside.read_bytes() == kept and str(aside) in capsys.readouterr().out
    assert len(list((lab.folder / "earlier").iterdir())) == 1
    assert "overhead.add.npb_cg.pct" not in lab.figures()


def test_runs_that_were_left_out_are_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One in each of two sessions are two: playing again does not make them good."""
    monkeypatch.setattr(overhead, "ASK_S", 0.001)
    classes = {"npb_cg": "A"}
    for session in range(2):
        opened = Journal.resume if session else Journal.begin
        journal = opened(tmp_path / "journal", TERMS)
        played = Played(over=10)
        bench = overhead.Bench(ElasticGuest("g", played.dom0, played.guest), classes=classes, journal=journal)
        bench.measure(session + 1, 1.0)
        journal.close()
        assert bool(bench.given_up) == (session == 1)
    assert len(journal.left_out) == 4 and overhead.given_up(journal, "npb_cg", 2)


def test_nothing_is_booted_for_a_program_that_was_given_up(lab: Lab, capsys: pytest.CaptureFixture[str]) -> None:
    lab.over = 10
    for words in ((), ("--continue",)):
        assert lab.main("--programs=npb_cg", *words) == 1
        said = capsys.readouterr().err
        assert "npb_cg given up: " in said and "4 runs left out" in said and "--continue" not in said
    assert len(lab.sessions) == 1 and lab.figures()["overhead.left_out"]["value"] == 4


# --- the file ------------------------------------------------------------------------------------------------------------


def test_a_sample_comes_back_as_it_was() -> None:
    for kind in KINDS:
        one = sample(kind, 12.5, 3, moved=77, operation_s=4.25)
        assert decode(json.loads(json.dumps(encode(one)))) == one
        assert decode(encode(dataclasses.replace(one, run=dataclasses.replace(one.run, outcome=None)))).run.outcome is None


def written(path: Path) -> Journal:
    journal = Journal.begin(path, TERMS)
    journal.times("npb_cg", 7)
    for kind in KINDS:
        journal.add("npb_cg", sample(kind, 1.0, 0))
    journal.end_round("npb_cg", 0)
    for kind in (SMALL, ADD):
        journal.add("npb_cg", sample(kind, 1.0, 1))
    journal.leave_out("stream", REMOVE, "late")
    journal.fail("lost")
    journal.close()
    return journal


def test_all_of_it_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "deep" / "journal"
    written(path)
    journal = Journal.resume(path, TERMS)
    assert journal.rounds == {"npb_cg": 7} and journal.whole == {("npb_cg", 0)} and journal.sessions == 2
    assert [each.kind for each in journal.of_whole_rounds("npb_cg")] == [SMALL, ADD, LARGE, REMOVE]
    assert journal.samples["npb_cg"] == journal.of_whole_rounds("npb_cg") and journal.discarded == 2
    assert journal.left_out == [("stream", REMOVE, "late")] and journal.failures == ["lost"]
    assert missing(journal, chosen("npb_cg", None), 2) == [(1, "npb_cg")]


def test_a_line_is_there_at_once(tmp_path: Path) -> None:
    """Not when the file is closed: nobody closes it for a process that is killed."""
    journal = Journal.begin(tmp_path / "journal", TERMS)
    journal.add("npb_cg", sample(SMALL, 1.0, 0))
    events = [json.loads(line)["event"] for line in (tmp_path / "journal").read_text(encoding="utf-8").splitlines()]
    assert events == ["terms", "session", "sample"]
    journal.close()


def test_half_a_line_is_of_no_run(tmp_path: Path) -> None:
    """Its session was killed while it wrote; what comes next is not written behind it."""
    path = tmp_path / "journal"
    written(path)
    with path.open("a", encoding="utf-8") as file:
        file.write('{"event": "round", "pro')
    for sessions in (2, 3):
        journal = Journal.resume(path, TERMS)
        assert journal.sessions == sessions and journal.whole == {("npb_cg", 0)}
        journal.close()


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "journal").write_bytes(b"\xff\xfe\n")
    with pytest.raises(JournalError, match="cannot be read"):
        Journal.resume(tmp_path / "journal", TERMS)


@pytest.mark.parametrize(
    "text",
    ["", "x\n", "[]\n", '{"event": "terms"}\n', '{"terms": 1}\n',
     '{"terms": {"tree": "1234", "runs": 5}}\n{"event": "party"}\n',
     '{"terms": {"tree": "1234", "runs": 5}}\n{"event": "sample", "program": "p", "sample": {"run": 1}}\n'],
)  # fmt: skip
def test_what_is_no_journal_is_refused(tmp_path: Path, text: str) -> None:
    """And stays as it is."""
    path = tmp_path / "journal"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(JournalError, match="cannot be read"):
        Journal.resume(path, TERMS)
    assert path.read_text(encoding="utf-8") == text


def test_runs_without_ticks_are_refused(tmp_path: Path) -> None:
    """Of before programs said them: no figure is made up for them, even if all else were the same."""
    path = tmp_path / "journal"
    written(path)
    first, *lines = path.read_text(encoding="utf-8").splitlines()
    events = [json.loads(line) for line in lines]
    for event in events:
        if event["event"] == "sample":
            del event["sample"]["run"]["outcome"]["user_ticks_s"]
    path.write_text("".join(f"{line}\n" for line in (first, *map(json.dumps, events))), encoding="utf-8")
    with pytest.raises(JournalError, match=r"cannot be read: .*user_ticks_s"):
        Journal.resume(path, TERMS)


def test_other_terms_are_named(tmp_path: Path) -> None:
    written(tmp_path / "journal")
    with pytest.raises(JournalError, match="of something else: runs was 5, and is 6; tree was 1234, and is 5678"):
        Journal.resume(tmp_path / "journal", {"tree": "5678", "runs": 6})
    with pytest.raises(JournalError, match="other was None, and is 1"):
        Journal.resume(tmp_path / "journal", TERMS | {"other": 1})
    with pytest.raises(JournalError, match="runs was 5, and is None"):
        Journal.resume(tmp_path / "journal", {"tree": "1234"})
    with pytest.raises(JournalError, match="nothing to continue"):
        Journal.resume(tmp_path / "none", TERMS)


def test_two_calls_at_once_are_refused(tmp_path: Path) -> None:
    first = Journal.begin(tmp_path / "journal", TERMS)
    for second in (Journal.begin, Journal.resume):
        with pytest.raises(JournalError, match="another call is at it"):
            second(tmp_path / "journal", TERMS)
    first.close()
    Journal.resume(tmp_path / "journal", TERMS).close()
