# SPDX-License-Identifier: GPL-2.0
"""The demo of one Linux on two hosts, played: a run that is as it should be passes, and each thing that is wrong is named."""

from __future__ import annotations

import copy
import dataclasses
import io
import math
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from benchmarks import plots, results, span_demo
from benchmarks.program_output import StreamRun
from benchmarks.results import read
from benchmarks.span_page import demo_page
from benchmarks.span_timeline import (
    AWAY,
    HOME,
    WINDOWS,
    Counts,
    Evidence,
    Program,
    counts_of,
    fault_times,
    metrics,
    pages_of,
    program_of,
    program_question,
    verdict,
)
from benchmarks.story import Story
from lab.command import Done
from lab.errors import CommandFailedError, LabError, Malformed
from tests.unit.dsm_bench.played_span import MIB, PID, SLOW, Change, World, instead, played


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No pauses, no Git; the run without changes is that of the world."""
    monkeypatch.setattr(span_demo, "ASK_S", 0.0)
    monkeypatch.setattr(span_demo, "PATIENCE", 5.0)
    monkeypatch.setattr(results, "_commit", lambda: "0123456789ab")

    def reference(guest: Any, mib: int, iterations: int) -> StreamRun:
        run: StreamRun = guest.world.run()
        assert (mib, iterations) == (MIB, len(run.iterations))
        return run

    monkeypatch.setattr(span_demo, "reference_run", reference)


@pytest.fixture
def seen() -> Iterator[Evidence]:
    """What a run sees that is as it should be."""
    demo, _, _ = played()
    demo.run()
    yield demo.seen


def failed(seen: Evidence) -> list[str]:
    return [check.what for check in verdict(seen) if not check.ok]


@pytest.mark.parametrize("cpus", [1, 2])
def test_the_story(cpus: int) -> None:
    """From one host to two and back, in the order in which an operator types it; nothing is left."""
    demo, world, said = played(cpus=cpus)
    demo.run()
    assert failed(demo.seen) == []
    typed = [command for who, command in world.typed if who == "alpha" and command.startswith("xl ")]
    words = [each.split()[1] for each in typed if "--json" not in each]
    assert [each for each in words if each not in ("domid", "list")] == [
        "create", "vnode-list", "vnode-attach", "vnode-list", "vnode-detach", "vnode-list", "destroy",
    ]  # fmt: skip
    assert all(demo.seen.windows[name] for name in WINDOWS)
    text = said.getvalue()
    for shown in ("numactl -H", "node 1 cpus: ", "<jiffies>", "dsmctl -n 12", "xl vnode-detach far 1 --timeout=1500"):
        assert shown in text, text
    # Both dsmds have counted by page, and count no more.
    for host in ("alpha", "beta"):
        switches = [command for who, command in world.typed if who == host and "profile=" in command]
        assert switches == ["dsmctl set far profile=1", "dsmctl set far profile=0"]


def test_each_time_says_whose_clock_it_is_by(seen: Evidence, tmp_path: Path) -> None:
    """On the terminal, in the file and on the page: the guest's clock is slower."""
    words = f"{SLOW} times slower"
    for figure in metrics(seen):
        if figure.unit in ("s", "ms", "1/s"):
            assert words in figure.note and figure.baseline["slow"] == SLOW, figure
    told = [mark.text for mark in seen.marks if re.search(r"\d s\b", mark.text)]
    assert told and all("clock" in text for text in told), told
    page = demo_page(seen, verdict(seen), "today", "2 CPUs").replace("&#x27;", "'").replace("<br>", " ")
    heads = re.findall(r"<th[^>]*>([^<]*)</th>", page)
    of_time = [head for head in heads if re.search(r"second|\bms\b", head)]
    assert len(of_time) == 2 and all(words in head for head in of_time), heads
    axes = re.findall(r"<text[^>]*>(seconds[^<]*)</text>", page)
    assert len(axes) == 2 and all(words in axis for axis in axes), axes
    for rates in ("faults/s", "events/s"):
        assert rates in page and f"second are by the hosts' clock; the guest's is {words}" in page


def test_the_page_and_the_files(seen: Evidence, tmp_path: Path) -> None:
    story = Story(Console(file=io.StringIO()), lambda: 0.0)
    assert span_demo.report(seen, None, story, tmp_path) is None
    page = (tmp_path / "demo-span.html").read_text(encoding="utf-8")
    assert "DEMO PASS" in page and page.count("<svg") == 2
    assert "&lt;jiffies&gt;" in page and "<jiffies>" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page.replace('xlink:href="#', "")), "a request to somewhere else"
    found = {metric.metric: metric.value for metric in read(tmp_path / "demo-span.json").metrics}
    assert [found[f"demo_span.threads.{window}"] for window in ("before", "both", "after")] == [1, 2, 1]
    assert found["demo_span.slow"] == SLOW and found["demo_span.attach.cpus_up.guest_seconds"] == 0.21
    assert found["demo_span.read_fault_ms.away.p99"] == 90
    for host in ("home", "away"):
        for what in ("faults", "messages"):
            assert (found[f"demo_span.{what}_per_second.{host}.both"] or 0) > 0


@pytest.mark.parametrize("failure", ["the <guest> died", ""])
def test_a_run_that_saw_nothing(tmp_path: Path, failure: str) -> None:
    """It fails everywhere, and has a page."""
    story = Story(Console(file=io.StringIO()), lambda: 0.0)
    seen = Evidence(SLOW, MIB)
    assert span_demo.report(seen, failure, story, tmp_path) == f"the demo came to its end ({failure})"
    page = (tmp_path / "demo-span.html").read_text(encoding="utf-8")
    assert "DEMO FAIL" in page and "<svg" not in page and "<guest>" not in page
    known = ["so is the sum after each iteration"]  # none of none
    assert [check.what for check in verdict(seen) if check.ok] == known


def of_windows(window: str, **change: object) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        for number, look in enumerate(seen.windows[window]):
            assert look.program
            changed: Any = dataclasses.replace(look.program, **change)  # type: ignore[arg-type]
            seen.windows[window][number] = dataclasses.replace(look, program=changed)

    return apply


def setting(**change: object) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        for name, value in change.items():
            setattr(seen, name, value)

    return apply


def no_faults(host: int) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        for window in ("both", "counted"):
            for number, look in enumerate(seen.windows[window]):
                counts = [
                    dataclasses.replace(each, faults=7) if n == host and each else each
                    for n, each in enumerate(look.hosts)
                ]
                changed: Any = tuple(counts)
                seen.windows[window][number] = dataclasses.replace(look, hosts=changed)

    return apply


def listed_there(**change: object) -> Callable[[Evidence], None]:
    def apply(seen: Evidence) -> None:
        seen.listed["both"] = {**seen.listed["both"], **change}

    return apply


def still_listed(seen: Evidence) -> None:
    seen.listed["after"] = seen.listed["both"]


def no_node(seen: Evidence) -> None:
    seen.numactl["both"] = seen.numactl["before"]


def node_stays(seen: Evidence) -> None:
    seen.numactl["after"] = seen.numactl["both"]


def other_checksum(seen: Evidence) -> None:
    assert seen.wanted
    seen.wanted = dataclasses.replace(seen.wanted, checksum="0")


def wrong_word(seen: Evidence) -> None:
    assert seen.run
    seen.run = dataclasses.replace(seen.run, wrong_words=1)


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (of_windows("before", teams=(1, 2, 1)), "at home, before the attach: the team has 1 thread"),
        (of_windows("before", threads=(0, 1)), "at home, before the attach: threads are"),
        (of_windows("both", teams=(1, 1, 1)), "on both hosts: the team has 2 threads"),
        (of_windows("both", threads=(2, 0)), "on both hosts: threads are 1 at alpha, 1 at beta"),
        (of_windows("both", threads=(0, 2)), "on both hosts: threads are"),
        (of_windows("after", teams=(2, 2, 2)), "at home again: the team"),
        (of_windows("after", threads=(1, 1)), "at home again: threads are"),
        (of_windows("both", kib=(1366, 681)), "on both hosts: the program's memory has come"),
        (of_windows("after", kib=(2044, 4)), "at home again: none of the program's memory"),
        (listed_there(link="opening"), "xl vnode-list: the link is up"),
        (listed_there(cpus=None), "xl vnode-list: the link is up"),
        (listed_there(cpus=[0]), "xl vnode-list: the link is up"),
        (no_node, "on both hosts: numactl -H lists each host"),
        (node_stays, "at home again: numactl -H lists one node"),
        (no_faults(HOME), "on both hosts: pages go both ways"),
        (no_faults(AWAY), "on both hosts: pages go both ways"),
        (still_listed, "the detach left nothing at beta"),
        (setting(state_after="draining"), "the detach left nothing at beta"),
        (setting(residual_kib=4), "the detach left nothing at beta"),
        (setting(slices_after=1), "the detach left nothing at beta"),
        (other_checksum, "its checksum is that of a run without changes"),
        (wrong_word, "stream_check ended"),
        (setting(complaints=["BUG: soft <lockup>"]), "the guest's kernel complains of nothing"),
        (setting(left_nothing=False), "no host has anything left"),
    ],
)
def test_what_is_wrong_is_named(seen: Evidence, change: Callable[[Evidence], None], what: str) -> None:
    changed = copy.deepcopy(seen)
    change(changed)
    assert [found[: len(what)] for found in failed(changed)] == [what]


def with_state(state: str) -> Callable[[Done], Done]:
    return lambda done: Done(1, done.out.replace('"running"', f'"{state}"'))


@pytest.mark.parametrize(
    ("change", "raised"),
    [
        (instead("alpha", "vnode-attach", Done(5, "", "no such host")), "xl vnode-attach: exit status 5: no such host"),
        (instead("alpha", "vnode-detach", Done(1, "", "busy")), "xl vnode-detach: exit status 1: busy"),
        (instead("alpha", "xl create", Done(1, "", "no memory")), "no memory"),
        (instead("beta", "dsmctl -j status", with_state("failed")), "the guest has failed"),
        (instead("beta", "profile=1", Done(3, "", "no such machine")), "no such machine"),
        (instead("guest", "numa_maps", Done(0, "\n=====\n\n=====\n{}\n")), "unknown event None"),
    ],
)
def test_what_ends_it(change: Change, raised: str) -> None:
    """It says what, with what the hosts know, and the guest is destroyed."""
    demo, world, _ = played(change)
    with pytest.raises((LabError, Malformed), match=re.escape(raised)):
        demo.run()
    assert not demo.seen.left_nothing
    if raised != "no memory":  # else there was no guest
        assert not world.created and ("alpha", "dsmctl status far; dsmctl hosts; xl list") in world.typed


def test_a_guest_that_is_too_busy_during_an_operation() -> None:
    """What the hosts count is seen all the same; at other times it is a failure."""
    under_way = [False]

    def busy(who: str, command: str, done: Done) -> Done:
        if "vnode-" in command and "list" not in command:
            under_way[0] = True
        elif "vnode-list" in command or "xenstore-ls" in command:
            under_way[0] = False
        return Done(-1, "", "too long") if who == "guest" and "numa_maps" in command and under_way[0] else done

    demo, world, _ = played(busy)
    demo.run()
    assert failed(demo.seen) == [] and not demo.seen.programs("detach")
    under_way[0] = world.created = True
    with pytest.raises(CommandFailedError, match="too long"):
        demo.look(world.hosts[0].guest("far"))


# ---- Texts ----


def test_the_program_by_one_question() -> None:
    world = World()
    world.teams = [1, 1, 2, 2, 2]
    world.attached = True
    found = program_of(world.program(), (0,))
    assert found == Program((1, 1), (2, 2, 2), 5, (1024, 1024))
    assert found.has_team(2) and not found.has_team(1)
    assert not dataclasses.replace(found, teams=(2, 2)).has_team(2)
    assert not dataclasses.replace(found, teams=(1, 2, 2)).has_team(2)
    assert f"/proc/{PID}/task" in program_question(PID, "/tmp/s")
    with pytest.raises(LabError, match="the program has ended"):
        program_of('\n=====\n0\n\n=====\n{"event":"start","pid":1,"mib":2}\n', (0,))
    for text in ("", "\n=====\n", "\n=====\n0\n7 (x) S 0\n\n=====\n" + world.printed(), "\n=====\n\n=====\n" + world.printed()):
        with pytest.raises(Malformed):
            program_of(text, (0,))


def test_the_question_is_one_that_a_shell_answers(tmp_path: Path) -> None:
    """Asked of a shell here: three parts, each as its parser wants it."""
    import os
    import subprocess

    stream = tmp_path / "stream"
    world = World()
    world.teams = [1] * 9
    stream.write_text(world.printed(), encoding="utf-8")
    text = subprocess.run(
        ["sh", "-c", program_question(os.getpid(), str(stream))], capture_output=True, text=True, check=True, timeout=60
    ).stdout
    found = program_of(text, range(4096))
    assert found.threads[0] >= 1 and found.teams == (1, 1, 1) and found.iterations == 9


def test_counts() -> None:
    status = World().status("alpha") | {"peers": {"a": {"sent": 3, "received": 4}, "b": {"sent": 1, "received": 1}}}
    assert counts_of(status | {"read_faults": 5, "write_faults": 2}) == Counts(7, 9, 0, 0)
    assert counts_of({}) is None
    assert fault_times(status) == {"p50": 4.0, "p99": 90.0}
    with pytest.raises(LabError, match="beta is lost"):
        counts_of({"state": "failed", "failure": "beta is lost"})
    assert counts_of({"state": "opening", "read_faults": 0}) is None
    for wrong in (
        status | {"engine": 7},
        status | {"peers": 7},
        status | {"engine": {}},
        status | {"read_faults": "x"},
    ):
        with pytest.raises(Malformed):
            counts_of(wrong)
    with pytest.raises(Malformed):
        fault_times({"read_fault": 7})


def test_rates_are_of_looks_that_are_apart() -> None:
    """Nothing is said of a time without a dsmd, of a counter that began anew, and of two looks at once."""
    axis = Figure().subplots()
    counted = [(100.0, 0), (102.0, 10), (102.5, 90), (104.0, 110), None, (110.0, 5), (112.0, 4), (114.0, 8)]
    plots._rates(axis, counted, 100.0, "red", "at alpha")
    drawn: Any = axis.lines[0].get_data()
    times, rates = ([None if math.isnan(each) else each for each in row] for row in drawn)
    assert times == [None, 0, 2, 2, 4, None, None, None, 12, 14]
    assert rates == [None, 5, 5, 50, 50, None, None, None, 2, 2]


def test_pages() -> None:
    (page,) = pages_of(str(World().dom0("alpha", "dsmctl -j -n 12 top far")))
    assert (page.gfn, page.symbol, page.reads, page.writes, page.taken, page.per_second) == (
        0x1A2B,
        "<jiffies>",
        40,
        2,
        39,
        8.1,
    )
    for text in ("", "[]", '{"pages": [{"gfn": 1}]}', '{"pages": 7}'):
        with pytest.raises(Malformed):
            pages_of(text)


@pytest.mark.parametrize(
    ("result", "status", "last"),
    [
        (None, 0, "DEMO PASS"),
        ("it was slow", 1, "DEMO FAIL: it was slow"),
        (LabError("no rack"), 1, "DEMO FAIL: no rack"),
    ],
)
def test_exit_status_and_last_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], result: object, status: int, last: str
) -> None:
    def run(options: SimpleNamespace, console: Console) -> object:
        assert (options.cpus, options.mib, options.rack, options.use) == (2, MIB, "two-hosts", None)
        if isinstance(result, BaseException):
            raise result
        return result

    monkeypatch.setattr(span_demo, "run", run)
    assert span_demo.main(["--cpus=2"]) == status
    assert capsys.readouterr().out.splitlines()[-1] == last
