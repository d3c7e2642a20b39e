# SPDX-License-Identifier: GPL-2.0
"""The demo of DSM, played: a run that is as it should be passes, and each thing that is wrong is named."""

from __future__ import annotations

import dataclasses
import io
import itertools
import json
import math
import re
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from benchmarks import dsm_demo, plots
from benchmarks.dsm_demo import Evidence, Look
from benchmarks.results import read
from benchmarks.story import Story
from benchmarks.timeline import Mark
from lab.command import Done
from lab.errors import LabError, Malformed
from lab.rack import Rack
from tests.unit.dsm_bench.played_span import Change, World, as_it_is, instead

PID = 321
THERE = {
    "name": "beta", "link": "up", "pages_modified": 2000, "pages_shared": 48, "pages_home": 30720, "faults_per_second": 90,
    "median_ns": 1500, "p99_ns": 9000, "cpus": None,
}  # fmt: skip


def good() -> Evidence:
    """What a run sees that is as it should be."""
    mib = dsm_demo.PROGRAM_MIB * 1024
    return Evidence(
        "tcp",
        ("alpha", "beta"),
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
        [("cat far.cfg", '"host=beta" <cfg>')],
        128,
        "vnode 1: online, 128 of 128 MiB on host beta, CPUs 2 (guest 3.1 s)\n",
        {"attached": THERE, "detached": {"name": "beta", "link": "down"}},
        "offline",
        0,
        False,
        {"checks": 77, "bad_pages": 0},
        ("running", "running"),
        {"p50": 0.0015, "p99": 0.009},
        True,
    )


def without(window: str, **change: int) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        seen.windows[window] = [dataclasses.replace(look, **change) for look in seen.windows[window]]

    return apply


def listed(window: str, **change: object) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        seen.listed[window] = {**seen.listed[window], **change}

    return apply


def setting(**change: object) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        for name, value in change.items():
            setattr(seen, name, value)

    return apply


def says(text: str) -> Callable[[Evidence], None]:
    return setting(attached=f"{text}\n")


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
        (says("vnode 1: online, 128 of 128 MiB on pnode 0, CPUs 2"), "xl vnode-attach: all of it is on host beta"),
        (says("vnode 1: online, 64 of 128 MiB on host beta, CPUs 2"), "xl vnode-attach: all of it"),
        (says("vnode 1: online, 128 of 128 MiB on host betas, CPUs 2"), "xl vnode-attach: all of it"),
        (says("vnode 2: online, 128 of 128 MiB on host beta, CPUs 2\nvnode 1: offline"), "xl vnode-attach: all of it"),
        (listed("attached", link="opening"), "xl vnode-list: vnode 1 is on host beta, and the link is up"),
        (listed("attached", name="gamma"), "xl vnode-list: vnode 1 is on host beta"),
        (setting(slices_after=1), "after the detach beta has nothing left"),
        (setting(slices_after=None), "after the detach beta has nothing left"),
        (setting(dsmd_after=True), "after the detach beta has nothing left"),
        (listed("detached", link="up"), "after the detach beta has nothing left"),
        (without("detached", pages_here=960), "after the detach alpha has no frame for pages of beta"),
        (setting(left_nothing=False), "no host has anything left"),
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
    assert "&quot;host=beta&quot; &lt;cfg&gt;" in page and "<cfg>" not in page
    found = {metric.metric: metric.value for metric in read(tmp_path / "demo-dsm.json").metrics}
    assert found == {
        "demo_dsm.attach.seconds": 8, "demo_dsm.detach.seconds": 5.5, "demo_dsm.faults_per_second": 50,
        "demo_dsm.messages_per_second": 100, "demo_dsm.read_fault.p50": pytest.approx(1.5),
        "demo_dsm.read_fault.p99": pytest.approx(9),
    }  # fmt: skip


class Looking(dsm_demo.DsmDemo):
    """Nobody is there; each look lets the work go on."""

    def __init__(self, looks: int) -> None:
        self.seen, self.left, self.enough = Evidence(), looks, threading.Event()

    def look(self, guest: Any) -> Look:
        self.left -= 1
        if self.left == 0:
            self.enough.set()
        return Look(0, 0, 0, 0, 0, 0)


def test_it_looks_while_something_is_under_way() -> None:
    demo, nobody = Looking(3), SimpleNamespace()
    assert demo.during("attach", nobody, lambda: demo.enough.wait(60)) is True  # type: ignore[arg-type]
    assert len(demo.seen.windows["attach"]) >= 3

    def broken() -> None:
        raise LabError("no host")

    with pytest.raises(LabError, match="no host"):
        Looking(1).during("attach", nobody, broken)  # type: ignore[arg-type]


def test_nothing_is_drawn_of_a_counter_that_began_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    """A connection's messages go with it: what falls is no rate, and neither is what lies between two stretches."""
    drawn: list[Figure] = []
    monkeypatch.setattr(plots, "_svg", lambda figure, name: drawn.append(figure))
    windows = [[(100.0, 10, 500), (102.0, 20, 900), (104.0, 30, 0)], [(110.0, 90, 0), (112.0, 94, 8)]]
    plots.remote_memory_plot([(100.0, 8.0, 0.0)], windows, {})

    def rates(axis: int) -> list[float]:
        values: Any = drawn[0].axes[axis].lines[0].get_ydata()
        return [float(value) for value in values if not math.isnan(value)]

    assert rates(1) == [5, 5, 5, 5, 2, 2] and rates(2) == [200, 200, 4, 4]


# ---- The story, with played hosts ----


class DsmWorld(World):
    """Two hosts and a guest whose memory is on both; all its CPUs are at home."""

    busy = killed = False

    def result(self, state: str) -> str:
        mib = 128 if self.attached else 0
        return f"vnode 1: {state}, {mib} of 128 MiB on host beta, CPUs {2 if mib else '-'} (guest 3.1 s)\n"

    def status(self, who: str) -> dict[str, object]:
        pages = (200 if self.busy else 40) if self.attached else 0
        found = {**super().status(who), "engine": {"frames_used": pages, "elsewhere": pages}}
        return found if who == "alpha" else found | {"read_fault": {"median_ns": 7, "p99_ns": 7}}

    def vnode_list(self, as_json: bool) -> str:
        there = THERE if self.attached else {"name": "beta", "link": "down"}
        if as_json:
            return json.dumps([{"vnodes": [{"vnode": 0, "host": None}, {"vnode": 1, "host": there}]}])
        return f"Name ID Vnode State\n    vnode 1: on host beta, link {there['link']}, pages: <90> faults/s\n"

    def dom0(self, who: str, command: str) -> str | Done:
        if command == "dsmctl hosts":
            return "alpha here\nbeta up\n"
        if command.startswith("dsmctl status far"):
            return f"far on {who}: running\n"
        return super().dom0(who, command)

    def guest(self, command: str) -> str | Done:
        kib = dsm_demo.PROGRAM_MIB * 1024
        if "/memcheck " in command:
            assert "--preferred=1 " in command
            self.busy = True
            return f"{PID}\n"
        if command == f"kill {PID}":
            self.killed = True
        if command == f"kill -0 {PID}":
            return Done(int(self.killed), "")
        if command == "cat /tmp/memcheck.out":
            return "ready\n" + '{"checks":77,"bad_pages":0}\n' * self.killed
        if command == f"cat /proc/{PID}/numa_maps":
            return f"55d0 default anon={kib // 4} N{int(self.attached)}={kib // 4} kernelpagesize_kB=4\n"
        return super().guest(command)


def played(change: Change = as_it_is) -> tuple[dsm_demo.DsmDemo, DsmWorld, io.StringIO]:
    """A demo that is not yet run, on a world, and what it says on the terminal."""
    said, times, world = io.StringIO(), itertools.count(), DsmWorld(change)
    story = Story(Console(file=said, width=200), lambda: float(next(times)))
    return dsm_demo.DsmDemo(world.site(), "tcp", story), world, said


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses."""
    monkeypatch.setattr(dsm_demo, "PAUSE_S", 0.0)


def test_the_story(tmp_path: Path) -> None:
    """By xl alone, in the order in which an operator types it; what he is told is on the terminal and on the page."""
    demo, world, said = played()
    demo.run()
    assert [check for check in dsm_demo.verdict(demo.seen) if not check.ok] == []
    assert all(demo.seen.windows[name] for name in dsm_demo.LOOKS)
    assert demo.seen.fault_ms == {"p50": 4.0, "p99": 90.0} and demo.seen.listed["attached"] == THERE
    alpha, beta = (
        [command for who, command in world.typed if who == host and "--json" not in command and " -j " not in command]
        for host in ("alpha", "beta")
    )
    operator = [
        each for each in alpha if each.startswith(("xl ", "dsmctl ")) and each not in ("xl list", "xl domid far")
    ]
    assert operator == [
        "dsmctl hosts", "xl create /tmp/far.cfg", "xl vnode-list far", "xl vnode-attach far 1", "xl vnode-list far",
        "dsmctl status far", "xl vnode-detach far 1", "xl vnode-list far", "xl destroy far",
    ]  # fmt: skip
    assert not any("dsmd " in each for each in alpha + beta), "nobody begins a dsmd by hand"
    assert "dsmctl status far" in beta and "xl list" in beta
    after = world.typed[world.typed.index(("alpha", "xl destroy far")) :]
    assert {who for who, command in after if command == "xl list"} == {"alpha", "beta"}, "is anything left there?"
    wanted = (
        '"host=beta", "size=128"', "128 of 128 MiB on host beta, CPUs 2", "link up, pages: <90>", "link down", "beta up",
        "at beta: xl list", "far-slice-alpha", "far on beta: running",
    )  # fmt: skip
    text = said.getvalue()
    assert [each for each in wanted if each not in text] == [], text
    assert dsm_demo.report(demo.seen, None, demo.story, tmp_path) is None
    page = (tmp_path / "demo-dsm.html").read_text(encoding="utf-8")
    quoted = [each.replace('"', "&quot;").replace("<", "&lt;").replace(">", "&gt;") for each in wanted]
    assert [each for each in quoted if each not in page] == []


def test_the_list_is_of_a_program_that_runs() -> None:
    """vnode-list shows pages and faults: while they come, and not after the program's end."""
    demo, world, _ = played()
    demo.run()
    order = [command for _, command in world.typed]
    attach, detach, kill = (
        next(at for at, each in enumerate(order) if each.startswith(words))
        for words in ("xl vnode-attach", "xl vnode-detach", "kill 321")
    )
    begun = next(at for at, each in enumerate(order) if "/memcheck " in each)
    shown = [at for at, each in enumerate(order) if each == "xl vnode-list far"]
    assert shown[0] < attach < begun < shown[1] < detach < shown[2] < kill


@pytest.mark.parametrize(
    ("change", "raised"),
    [
        (instead("alpha", "dsmctl hosts", Done(1, "beta unreachable\n")), "beta unreachable"),
        (instead("alpha", "xl create", Done(1, "", "beta has no 131072 KiB")), "beta has no 131072 KiB"),
        (
            instead("alpha", "vnode-attach", Done(5, "", "no such host")),
            "xl vnode-attach far 1: exit status 5: no such host",
        ),
        (instead("alpha", "vnode-detach", Done(6, "", "busy")), "xl vnode-detach far 1: exit status 6: busy"),
        (instead("alpha", "dsmctl -j status", Done(3, "")), "no dsmd of far answers at alpha"),
        (
            instead("alpha", "dsmctl -j status", Done(1, '[{"state":"failed","failure":"beta is lost"}]')),
            "beta is lost",
        ),
        (instead("alpha", "vnode-list --json", Done(0, "[]")), "xl vnode-list"),
    ],
)
def test_what_ends_it(change: Change, raised: str) -> None:
    """It says what, with what the hosts know, and the guest is destroyed."""
    demo, world, _ = played(change)
    with pytest.raises((LabError, Malformed), match=re.escape(raised)):
        demo.run()
    had_guest = ("alpha", "xl vnode-list far") in world.typed
    assert not demo.seen.left_nothing and not (had_guest and world.created)
    assert had_guest == (("alpha", "xl destroy far") in world.typed)
    assert had_guest == (("alpha", "dsmctl status far; dsmctl hosts; xl list") in world.typed)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (
            instead("beta", "^xl list$", Done(0, "Name ID\nfar-slice-alpha 2\n")),
            "after the detach beta has nothing left",
        ),
        (
            instead("beta", "dsmctl -j status", Done(0, '[{"state":"running"}]')),
            "after the detach beta has nothing left",
        ),
        (
            instead("alpha", "vnode-list --json", lambda done: Done(0, done.out.replace('"up"', '"lost"'))),
            "xl vnode-list",
        ),
        (
            instead("alpha", "vnode-attach", lambda done: Done(0, done.out.replace("host beta", "pnode 0"))),
            "xl vnode-attach",
        ),
        (instead("guest", "memcheck.out", lambda done: Done(0, done.out.replace(":0}", ":3}"))), "no byte was wrong"),
    ],
)
def test_what_is_wrong_on_a_host_is_named(monkeypatch: pytest.MonkeyPatch, change: Change, what: str) -> None:
    monkeypatch.setattr(dsm_demo, "left_nothing", lambda hosts: None)
    demo, _, _ = played(change)
    demo.run()
    assert [check.what[: len(what)] for check in dsm_demo.verdict(demo.seen) if not check.ok] == [what]


@pytest.mark.parametrize(
    ("names", "wired", "good"),
    [
        (("alpha", "beta"), True, True),
        (("a", "b", "c"), True, True),
        (("alpha",), True, False),
        (("a", "b"), False, False),
    ],
)
def test_a_rack_that_runs_already_has_two_hosts(names: tuple[str, ...], wired: bool, good: bool) -> None:
    description = SimpleNamespace(name="mine", wire=lambda name: wired or None)
    rack: Any = SimpleNamespace(
        hosts=[SimpleNamespace(description=SimpleNamespace(name=name)) for name in names], description=description
    )
    found: Rack = rack
    if good:
        assert dsm_demo.with_hosts(found) is found
        return
    with pytest.raises(LabError, match=rf"rack mine .*hosts: {', '.join(names)}\): .*two-hosts.toml"):
        dsm_demo.with_hosts(found)


@pytest.mark.parametrize(
    "given", [([], "tcp", []), (["--use=mine", "--transport=rdma"], "rdma", ["alpha", "beta"])], ids=["boots", "uses"]
)
def test_its_options(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    given: tuple[list[str], str, list[str]],
) -> None:
    """A rack is booted, or one that runs is used, whose dsmd-host of before is ended; dsmd-host is begun for the transport."""
    words, transport, killed = given
    world = DsmWorld()
    found: list[str] = []
    begun: list[str] = []
    wires = SimpleNamespace(name="mine", wire=lambda name: True)

    class PlayedRack:
        hosts, description = world.hosts, wires

        def __enter__(self) -> PlayedRack:
            return self

        def __exit__(self, *_: object) -> None:
            """It is left alone."""

    def ready(rack: PlayedRack, scratch: Path, limits: Any, wanted: str) -> Any:
        assert scratch.is_dir() and limits["opening_ms"] < limits["deadline_ms"]
        begun.append(wanted)
        return world.site()

    monkeypatch.setattr(dsm_demo, "made_ready", ready)
    monkeypatch.setattr(dsm_demo, "kill_dsmd_host", lambda host: found.append(host.description.name))
    monkeypatch.setattr(Rack, "attach", lambda name: PlayedRack())
    monkeypatch.setattr(Rack, "boot", lambda description, meter: PlayedRack())
    report = dsm_demo.report
    monkeypatch.setattr(dsm_demo, "report", lambda seen, failure, story: report(seen, failure, story, tmp_path))
    assert dsm_demo.main(words) == 0
    assert (begun, found) == ([transport], killed)
    assert capsys.readouterr().out.splitlines()[-1] == "DEMO PASS"
    assert transport in (tmp_path / "demo-dsm.html").read_text(encoding="utf-8")


def test_a_page_of_nothing(tmp_path: Path) -> None:
    story = Story(Console(file=io.StringIO()), lambda: 0.0)
    assert dsm_demo.report(Evidence(), "no host", story, tmp_path) == "the demo came to its end (no host)"
    assert "<svg" not in (tmp_path / "demo-dsm.html").read_text(encoding="utf-8")
    assert not (tmp_path / "demo-dsm.json").exists()
