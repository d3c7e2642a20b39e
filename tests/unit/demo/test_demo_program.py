# SPDX-License-Identifier: GPL-2.0
"""The demo's own side: what it writes and returns for a run, and how it reads the meter."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

from benchmarks import demo, results
from benchmarks.story import Story
from benchmarks.timeline import Evidence, Reading
from lab.errors import LabError
from lab.meter import Counts
from tests.unit.demo import fakes


def well(evidence: Evidence) -> None:
    """Nothing is changed."""


def residual(evidence: Evidence) -> None:
    evidence.residual_kib = 2048


@pytest.mark.parametrize(
    ("change", "failure", "reason"),
    [
        (well, None, None),
        (residual, None, "nothing of the node was left over (2048 KiB residual)"),
        (well, "the guest is gone", "the demo came to its end (the guest is gone)"),
        (residual, "the guest is gone", "the demo came to its end (the guest is gone)"),
    ],
)
def test_the_report_has_the_first_reason_of_a_failure(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Evidence], None],
    failure: str | None,
    reason: str | None,
) -> None:
    """On the page, on the terminal and as what is returned; figures are written in any case."""
    monkeypatch.setattr(results, "_commit", lambda: "0123456789ab")  # git takes its time
    evidence = fakes.evidence()
    change(evidence)
    said = io.StringIO()
    console = Console(file=said, width=200)
    played: Any = SimpleNamespace(evidence=lambda: evidence, story=Story(console, lambda: 0.0))
    assert demo.report(played, failure, tmp_path) == reason
    page = (tmp_path / "demo.html").read_text(encoding="utf-8")
    assert ("DEMO PASS" in page) == (reason is None) and ("DEMO FAIL" in page) == (reason is not None)
    assert ("FAIL" in said.getvalue()) == (reason is not None)
    figures = {metric.metric: metric.value for metric in results.read(tmp_path / "demo.json").metrics}
    assert figures["detach.residual_kib"] == evidence.residual_kib


@pytest.mark.parametrize(
    ("outcome", "status", "last"),
    [
        (None, 0, "DEMO PASS"),
        ("it was slow (9 s)", 1, "DEMO FAIL: it was slow (9 s)"),
        (LabError("no rack"), 1, "DEMO FAIL: no rack"),
        (KeyboardInterrupt(), 130, "DEMO FAIL: interrupted"),
    ],
)
def test_exit_status_and_last_line(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    outcome: str | BaseException | None,
    status: int,
    last: str,
) -> None:
    def run(options: object, console: Console) -> str | None:
        if isinstance(outcome, BaseException):
            raise outcome
        return outcome

    monkeypatch.setattr(demo, "run", run)
    assert demo.main([]) == status
    assert capsys.readouterr().out.splitlines()[-1] == last


def test_an_access_is_local_or_remote_and_not_both() -> None:
    """CPU 0 of node 0 made 30 accesses there and 10 to node 1 while the window was open; 5 and 7 were before."""
    counted = iter([Counts((0,), ((5, 0),), ((0, 7),)), Counts((0,), ((25, 10),), ((10, 7),))])
    log: list[str] = []

    @contextlib.contextmanager
    def noted(word: str, value: object = None) -> Iterator[Any]:
        log.append(word)
        yield value
        log.append(f"{word} ends")

    meter = SimpleNamespace(read=lambda: next(counted))
    times = iter([1.0, 3.0])
    played: Any = SimpleNamespace(
        companion=SimpleNamespace(paused=lambda: noted("paused")),
        host=SimpleNamespace(meter=SimpleNamespace(running=lambda: noted("meter", meter))),
        story=SimpleNamespace(now=lambda: next(times)),
        readings={},
    )
    with demo.Demo.metered(played, "before"):
        log.append("body")
    assert played.readings == {"before": Reading(1.0, 3.0, 30, 10)}
    assert log == ["paused", "meter", "body", "meter ends", "paused ends"]
