# SPDX-License-Identifier: GPL-2.0
"""The order of the build: steps side by side, each after what it needs, no two in one tree; and what a failure does."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from lab.pipeline import build, cache, progress
from lab.pipeline.progress import Progress, StepFailed


class Played:
    """Steps that are played: what began, what ended, and what was under way at one time."""

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.under_way: set[str] = set()
        self.together: set[frozenset[str]] = set()
        self.ended: list[str] = []

    def step(self, name: str, *needs: str, tree: str = "", body: Callable[[Progress], None] | None = None) -> build.Step:
        """A step that writes down when it runs."""

        def make(step: build.Step, out: Path, progress: Progress) -> None:
            with self.lock:
                self.under_way.add(name)
                self.together.add(frozenset(self.under_way))
                assert set(needs) <= set(self.ended), f"{name} began before what it needs"
            try:
                if body:
                    body(progress)
            finally:
                with self.lock:
                    self.under_way.remove(name)
                    self.ended.append(name)

        return build.Step(name, name, [], make, needs, source=tree)


@pytest.fixture
def played(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Played:
    """Nothing of the real cache is used."""
    for module in (cache, progress, build):
        monkeypatch.setattr(module, "CACHE", tmp_path)
    monkeypatch.setattr(progress, "LOGS", tmp_path / "logs")
    monkeypatch.setattr(build, "ARTIFACTS", tmp_path / "artifacts")
    monkeypatch.setattr(build, "archive", lambda name: tmp_path / f"{name}.tar")
    monkeypatch.setattr(build, "SIDE_BY_SIDE", 2)
    monkeypatch.setattr(build, "OPTIONAL", ())
    (tmp_path / "sandbox").symlink_to("sandbox-0")
    return Played()


def use(monkeypatch: pytest.MonkeyPatch, *steps: build.Step) -> None:
    monkeypatch.setattr(build, "STEPS", {step.name: step for step in steps})


def meeting() -> Callable[[Progress], None]:
    """What two steps do that have to be under way at one time: each waits for the other, though not for ever."""
    barrier = threading.Barrier(2, timeout=30)

    def meet(_: Progress) -> None:
        barrier.wait()

    return meet


def test_two_steps_run_side_by_side(played: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """One after the other they would never end; the third comes after both."""
    meet = meeting()
    use(monkeypatch, played.step("a", body=meet), played.step("b", body=meet), played.step("c", "a", "b"))
    build.build([])
    assert played.ended[-1] == "c" and len(played.ended) == 3
    assert sorted(path.name for path in (tmp_path / "artifacts").iterdir()) == ["a", "b", "c"]


def test_two_steps_in_one_tree_do_not(played: Played, monkeypatch: pytest.MonkeyPatch) -> None:
    """And who waits for a tree keeps nobody else from running."""
    meet = meeting()
    steps = [played.step("a", tree="t", body=meet), played.step("b", tree="t"), played.step("c", body=meet)]
    use(monkeypatch, *steps)
    build.build([])
    assert sorted(played.ended) == ["a", "b", "c"]
    assert not any({"a", "b"} <= together for together in played.together)


def test_a_second_run_finds_all_of_it(
    played: Played, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The results are in the cache; only what is asked for is looked at."""
    use(monkeypatch, played.step("a"), played.step("b", "a"), played.step("c"))
    build.build(["b"])
    assert played.ended == ["a", "b"]
    build.build(["b"])
    assert played.ended == ["a", "b"]
    assert capsys.readouterr().out.count("unchanged") == 2


def test_a_failure_stops_the_others_and_is_the_one_that_is_told(
    played: Played, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A command that would run for an hour is ended, no further step begins."""
    sleeps = threading.Event()

    def sleep(progress: Progress) -> None:
        sleeps.set()
        progress.run("long", ["sleep", "3600"])

    def fail(progress: Progress) -> None:
        assert sleeps.wait(30)
        progress.run("broken", ["sh", "-c", "echo why; exit 3"])

    use(monkeypatch, played.step("long", body=sleep), played.step("broken", body=fail), played.step("never", "long"))
    with pytest.raises(StepFailed, match=r"(?s)broken: .*ended with 3.*why"):
        build.build([])
    assert sorted(played.ended) == ["broken", "long"]
    assert not any(cache.StepResult(name, build.STEPS[name].key()).complete for name in build.STEPS)


def test_the_real_steps_can_be_done_in_their_order() -> None:
    """Whatever may start, starts; in the end nothing is left, and what a step needs came before it."""
    waiting, finished = build.wanted([]), set[str]()
    while waiting:
        name = build.startable(waiting, [])
        assert name and set(build.STEPS[name].needs) <= finished
        waiting.remove(name)
        finished.add(name)
    assert finished == {*build.STEPS} - {*build.OPTIONAL}


def test_a_step_is_made_anew_when_anything_that_goes_in_changes(
    played: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its own files, the sandbox with its compiler, the upstream source, the recipes, and all that for the steps it needs."""
    monkeypatch.setattr(build, "REPO", tmp_path)
    monkeypatch.setattr(build, "RECIPES", tmp_path / "recipes")
    for name in ("recipes", "input", "needed"):
        (tmp_path / name).write_text("1", encoding="utf-8")
    version = ["1"]
    monkeypatch.setattr(build, "archive", lambda name: tmp_path / f"{name}-{version[0]}.tar")

    def make(*_: object) -> None:
        raise AssertionError

    step = build.Step("a", "a", [tmp_path / "input"], make, ["b"], source="t")
    other = build.Step("c", "c", [tmp_path / "input"], make, ["b"], source="t")
    use(monkeypatch, step, build.Step("b", "b", [tmp_path / "needed"], make), other)
    keys = [step.key()]
    for name in ("recipes", "input", "needed"):
        (tmp_path / name).write_text("2", encoding="utf-8")
        keys.append(step.key())
    (tmp_path / "sandbox").unlink()
    (tmp_path / "sandbox").symlink_to("sandbox-1")
    keys.append(step.key())
    version[0] = "2"
    keys.append(step.key())
    assert len({*keys, other.key()}) == 7 and step.key() == keys[-1]


def test_the_sandbox_is_in_the_key_of_a_step_that_needs_nothing(
    played: Played, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    use(monkeypatch, step := played.step("a"))
    key = step.key()
    (tmp_path / "sandbox").unlink()
    (tmp_path / "sandbox").symlink_to("sandbox-1")
    assert step.key() != key
