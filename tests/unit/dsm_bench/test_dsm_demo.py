# SPDX-License-Identifier: GPL-2.0
"""The demo of DSM, played: a run that is as it should be passes, and each thing that is wrong is named."""

from __future__ import annotations

import dataclasses
import io
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.console import Console

from benchmarks import dsm_demo
from benchmarks.dsm_demo import Evidence, Look
from benchmarks.results import read
from benchmarks.story import Story
from benchmarks.timeline import Mark
from lab.errors import LabError


def good() -> Evidence:
    """What a run sees that is as it should be."""
    mib = dsm_demo.PROGRAM_MIB * 1024
    return Evidence(
        "tcp",
        {
            "before": [Look(t, 0, 0, 0, 5, 0) for t in (0.0, 1.0)],
            "attach": [Look(t, 0, 0, int(t), 5, 0) for t in (1.6, 8.0)],
            "filling": [Look(9.6, 0, mib // 2, 50, 100, 400)],
            "attached": [Look(10.0 + t, 0, mib, 100 + 50 * t, 200 + 100 * t, 900 + t) for t in range(4)],
            "detach": [Look(t, mib // 2, mib // 2, 350, 800, 500) for t in (14.0, 18.0)],
            "detached": [Look(20.0 + t, mib, 0, 400, 900, 0) for t in range(2)],
        },
        {"attach": (1.5, 9.5), "detach": (13.5, 19.0)},
        [Mark(0.0, "xl vnode-list", "operator"), Mark(9.0, "node 1 <there>", "guest")],
        128,
        "offline",
        {"checks": 77, "bad_pages": 0},
        ("running", "running"),
        {"p50": 1500, "p99": 9000},
    )


def without(window: str, **change: int) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        seen.windows[window] = [dataclasses.replace(look, **change) for look in seen.windows[window]]

    return apply


def setting(**change: object) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        for name, value in change.items():
            setattr(seen, name, value)

    return apply


def test_a_good_run_passes() -> None:
    assert [check.what for check in dsm_demo.verdict(good()) if not check.ok] == []


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (setting(node_mib=0), "the guest has"),
        (without("attached", node_kib=100), "the program's memory"),
        (without("attached", faults=7), "its pages came"),
        (without("detached", node_kib=4), "after the detach"),
        (setting(state_after="draining"), "the node is gone"),
        (setting(memcheck={"checks": 9, "bad_pages": 1}), "no byte"),
        (setting(memcheck={"checks": 0, "bad_pages": 0}), "no byte"),
        (setting(memcheck={}), "no byte"),
        (setting(daemons=("running", "failed")), "both dsmd"),
    ],
)
def test_what_is_wrong_is_named(change: Callable[[Evidence], None], what: str) -> None:
    seen = good()
    change(seen)
    assert [check.what[: len(what)] for check in dsm_demo.verdict(seen) if not check.ok] == [what]


def test_a_run_that_saw_nothing_fails_everywhere() -> None:
    assert not any(check.ok for check in dsm_demo.verdict(Evidence()))
    assert dsm_demo.metrics(Evidence()) == []


def test_rates_are_of_one_window() -> None:
    seen = good()
    assert (seen.rate("attached", "faults"), seen.rate("attached", "messages")) == (50, 100)
    seen.windows["before"] = seen.windows["before"][:1]
    assert seen.rate("before", "faults") is None


@pytest.mark.parametrize("failure", [None, "the <guest> died"])
def test_the_page_and_the_result(tmp_path: Path, failure: str | None) -> None:
    story = Story(Console(file=io.StringIO()), lambda: 0.0)
    reason = dsm_demo.report(good(), failure, story, tmp_path)
    assert (reason is None) == (failure is None)
    page = (tmp_path / "demo-dsm.html").read_text(encoding="utf-8")
    assert ("DEMO PASS" in page) == (failure is None) and "<there>" not in page and "<guest>" not in page
    assert page.count("<svg") == 1
    found = {metric.metric: metric.value for metric in read(tmp_path / "demo-dsm.json").metrics}
    assert found == {
        "demo_dsm.attach.seconds": 8, "demo_dsm.detach.seconds": 5.5, "demo_dsm.faults_per_second": 50,
        "demo_dsm.messages_per_second": 100, "demo_dsm.read_fault.p50": 1.5, "demo_dsm.read_fault.p99": 9,
    }  # fmt: skip


class Looking(dsm_demo.DsmDemo):
    """Nobody is there; each look lets the work go on."""

    def __init__(self, looks: int) -> None:
        self.seen, self.left, self.enough = Evidence(), looks, threading.Event()

    def look(self) -> Look:
        self.left -= 1
        if self.left == 0:
            self.enough.set()
        return Look(0, 0, 0, 0, 0, 0)


def test_it_looks_while_something_is_under_way() -> None:
    demo = Looking(3)
    assert demo.during("attach", lambda: demo.enough.wait(60)) is True
    assert len(demo.seen.windows["attach"]) >= 3

    def broken() -> None:
        raise LabError("no host")

    with pytest.raises(LabError, match="no host"):
        Looking(1).during("attach", broken)


def test_a_page_of_nothing(tmp_path: Path) -> None:
    story = Story(Console(file=io.StringIO()), lambda: 0.0)
    assert dsm_demo.report(Evidence(), "no host", story, tmp_path) == "the demo came to its end (no host)"
    assert "<svg" not in (tmp_path / "demo-dsm.html").read_text(encoding="utf-8")
    assert not (tmp_path / "demo-dsm.json").exists()
