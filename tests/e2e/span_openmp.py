# SPDX-License-Identifier: GPL-2.0
"""An OpenMP program that knows nothing of it goes from one host to two, and back."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.program_output import StreamRun, parse_stream
from benchmarks.reference import reference_run
from lab.command import checked, run_in
from lab.far_guest import DsmSite, state
from lab.guest import Guest
from lab.patience import wait_for
from lab.span_guest import PATIENCE, STREAM, SpanShape, cpus_of_threads, start_stream, where_question
from tests.e2e.span_guest import ASK_S, attach, detach

MIB, ITERATIONS = 2, 3  # iterations of each team


def stream(guest: Guest) -> StreamRun:
    """What stream_check has printed so far."""
    return parse_stream(checked(run_in(guest), f"cat {STREAM}", 300))


def await_team(site: DsmSite, guest: Guest, threads: int) -> None:
    """So many iterations in a row, the last ones, had so many threads."""

    def so() -> bool:
        assert "failed: " not in state(site.home), state(site.home)
        last = stream(guest).iterations[-ITERATIONS:]
        return len(last) == ITERATIONS and all(each.threads == threads for each in last)

    took = wait_for(f"stream_check with {threads} threads", PATIENCE, so, interval=ASK_S)
    print(f"{took:.0f} s: {threads} threads: {[round(each.ms) for each in stream(guest).iterations[-ITERATIONS:]]} ms")


def where(guest: Guest, pid: int) -> set[int]:
    """The CPUs that its threads have run on last."""
    return set(cpus_of_threads(checked(run_in(guest), where_question(pid), 300)))


def openmp_there_and_back(
    site: DsmSite, guest: Guest, shape: SpanShape, there: Callable[[], None] = lambda: None
) -> None:
    """Node 1 comes and goes under a program: its team has all CPUs, its memory is on both hosts, and its result is right.

    `there`: what happens while it runs on both.
    """
    inside = run_in(guest)
    home, far = shape.cpus_of(0), shape.cpus_of(1)
    assert sorted(guest.nodes()) == [0]
    start_stream(guest, (*home, *far), MIB)
    wait_for("stream_check begins", 300, lambda: inside(f"test -s {STREAM}").status == 0)
    pid = stream(guest).pid
    await_team(site, guest, len(home))
    attach(site, guest, shape)
    await_team(site, guest, len(home) + len(far))
    assert where(guest, pid) == {*home, *far}
    nodes, resident = guest.nodes(), guest.resident(pid)
    print(nodes, resident)
    assert {node.number: node.cpus for node in nodes.values()} == {0: home, 1: far}
    # What threads there work on has come to them: half of both arrays.
    assert resident[1] >= MIB * 1024 // 3, resident
    there()
    detach(site, guest, shape)
    await_team(site, guest, len(home))
    # A thread that the team needs no more sleeps where it was.
    assert sorted(guest.nodes()) == [0] and where(guest, pid) & {*home} == {*home}
    checked(inside, f"kill -TERM {pid}")
    wait_for("stream_check ends", 300, lambda: stream(guest).checksum is not None, interval=ASK_S)
    run = stream(guest)
    wanted = reference_run(guest, MIB, len(run.iterations))
    assert run.wrong_words == 0 and run.checksum == wanted.checksum, (run, wanted)
    assert [each.sum for each in run.iterations] == [each.sum for each in wanted.iterations]
