# SPDX-License-Identifier: GPL-2.0
"""An hour of load on one Linux on two hosts, and its kernel, which watches itself, has nothing to say: section 4 of issue 8.

The kernel of this guest, linux-watched, looks for CPUs that let nobody else run or take no interrupts, for tasks that hang,
for workers and for RCU that get nowhere, each after the time that Linux has by itself: 20, 10, 120, 30 and 21 seconds. The
usual one has RCU's only. Whether they look is asked of the kernel (lab/watchdogs.py); the test fails if one does not.

Those seconds are the guest's, whose clock is SLOW times slower than the hosts' (10 at least, as the test says at its begin):
200, 100, 1200, 300 and 210 seconds and more of the hosts'. What each of them is in a run is in hour.limit.*. Are they worth
anything then? What they rest on is one clock (read in Linux 6.12, and in Xen's dsm_time.c):

- A CPU's watchdog is an hrtimer. The event that it waits for is VIRQ_TIMER, set to a time of the guest
  (VCPUOP_set_singleshot_timer, dsm_host_time()).
- How long ago it ran, and somebody else did, is asked of sched_clock(), which is Xen's PV clock, the slow line, on each CPU.
  A CPU that waits for a page takes no interrupt meanwhile; so its timer is late by the whole of that, and says so if it is
  more than 20 seconds. One that never comes back is seen by the next CPU. Linux forgives a guest that was stopped only if
  the hypervisor says that it was; Xen does not.
- Tasks, workers and RCU count jiffies, which follow CLOCK_MONOTONIC: the same line, by the TSC or by the PV clock.

So a second is a second for all of them, and the ratio of a fault to their seconds is no better than on hardware: with a fault
of 10 ms and a clock 10 times slower a CPU may wait for 20000 of them in 20 s; with one of 40 us and no slow clock, for half
a million. But what lasts as long by the hosts' clock however slow the guest's is, a time-out of dsmd above all, is SLOW
times shorter to them. So the test has a limit of its own for that: no CPU has waited for a page for 20 seconds of the hosts'.
Nor is an idle CPU watched as a busy one is (Linux takes it for one that has let others run); here all of them are busy.

The kernel is not of every build: `python3 -m lab.pipeline.build linux-watched` in the sandbox makes it, in some ten minutes.
XENUMA_SPAN_HOUR_MINUTES: how long there is load, 60 if it does not say; in turns of about 15, and in each the other host comes,
there is load on both, and it goes again. What that takes, five minutes for a turn, is beside it: 80 minutes in all. 5 minutes
of load are one turn, and some ten minutes with the start of the hosts.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import hour
from benchmarks.program_output import StreamRun, parse_stream
from benchmarks.reference import reference_run
from benchmarks.results import RESULTS, set_aside, write
from benchmarks.span import UNRESTRICTED
from lab import watchdogs
from lab.command import checked, run_in
from lab.errors import LabError
from lab.far_guest import state, status
from lab.guest import Guest
from lab.kernel_torture import since
from lab.patience import wait_for
from lab.span_guest import PATIENCE, STREAM, SlowSite, SpanShape, start_stream
from lab.ssh import Background
from lab.watchdogs import Timers, Watchdogs
from tests.e2e.span_guest import ASK_S, Lives, attach, detach, lives_on, moment, refused_elsewhere, with_kernel

pytestmark = pytest.mark.fresh

STEP = "linux-watched"
VARIABLE = "XENUMA_SPAN_HOUR_MINUTES"
HOME_CPU, FAR_CPU = BOTH = (0, 1)
MIB = 2  # of the OpenMP program's arrays
WAITED_US = 1000  # what takes so long there has waited for a page
LOOK_S = 60.0  # between two looks at the kernel's log: each costs the guest pages
LOOKS = 5  # at timers
MOST_WAIT_MS = 20000.0  # for a page, by the hosts' clock
MARK = "the hour begins"
RESULT = "dsm-span-hour"


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with lives_on(tmp_path_factory.mktemp("dsm")) as made:
        yield made


@pytest.fixture(scope="module")
def shape(lives: Lives) -> SpanShape:
    """Of a guest with the kernel that watches itself, whose programs may make hypercalls."""
    return dataclasses.replace(with_kernel(lives.site, lives.shape, STEP), watched=True, arguments=UNRESTRICTED)


def asked(guest: Guest) -> Watchdogs:
    """What watches its kernel, now."""
    return watchdogs.watchdogs_of(checked(run_in(guest), watchdogs.question(), PATIENCE))


def timers(guest: Guest) -> Timers:
    """Those of the CPUs that are online. One that is just at work is in no list."""
    for _ in range(LOOKS):
        found = watchdogs.timers_of(checked(run_in(guest), watchdogs.TIMERS, PATIENCE))
        if set(BOTH) <= set(found.due_ns):
            break
    return found


def nothing_was_said(guest: Guest) -> None:
    """By its kernel, since the mark; nor has it lost what it has said since."""
    log = since(checked(run_in(guest), "dmesg", PATIENCE), MARK)
    assert watchdogs.said_by(log) == [], log[-20000:]


@contextlib.contextmanager
def shown_if_it_fails(guest: Guest) -> Iterator[None]:
    """The end of its kernel's log, of which the console has nothing."""
    try:
        yield
    except BaseException:
        with contextlib.suppress(LabError, OSError):
            print(run_in(guest)("dmesg | tail -n 200", 300).text)
        raise


# ---- An OpenMP program ----


def stream(guest: Guest, lines: str = "cat") -> StreamRun:
    """What it has printed so far, or the first of it."""
    return parse_stream(checked(run_in(guest), f"{lines} {STREAM}", PATIENCE))


def ended_well(guest: Guest) -> StreamRun:
    """It is told to end, and has found in each iteration what one without changes finds, with one thread and with two."""
    inside = run_in(guest)
    pid = stream(guest, "head -n 1").pid
    checked(inside, f"kill -TERM {pid}", PATIENCE)
    ended = f"tail -n 1 {STREAM} | grep -q checksum"
    wait_for("stream_check ends", PATIENCE, lambda: inside(ended).status == 0, interval=ASK_S)
    run = stream(guest)
    wanted = reference_run(guest, MIB, len(run.iterations), PATIENCE)
    assert run.wrong_words == 0 and run.checksum == wanted.checksum, (run.checksum, wanted.checksum)
    assert [each.sum for each in run.iterations] == [each.sum for each in wanted.iterations]
    assert {1, 2} <= {each.threads for each in run.iterations}
    return run


# ---- A turn ----


def load(site: SlowSite, guest: Guest, number: int, seconds: float, folder: Path) -> tuple[dict[str, int], float]:
    """All jobs at once for so long; returns how many rounds of each, and for how long they all went on."""
    slow_us = WAITED_US // site.slow
    checked(run_in(guest), f"rm -f {hour.GO} {hour.STOP}", PATIENCE)
    jobs: dict[str, Background] = {}
    for job in hour.JOBS:
        command = hour.script(job, number, home=HOME_CPU, far=FAR_CPU, slow_us=slow_us)
        jobs[job.name] = guest.start(command, folder / f"{job.name}-{number}")
    checked(run_in(guest), f": >{hour.GO}", PATIENCE)
    looked = began = time.monotonic()
    while time.monotonic() - began < seconds:
        assert "failed: " not in state(site.home), state(site.home)
        for job in hour.JOBS:
            ended = not jobs[job.name].running()
            assert not ended, f"{job.name}: {(folder / f'{job.name}-{number}').read_text()}"
        if time.monotonic() - looked > LOOK_S:
            nothing_was_said(guest)
            looked = time.monotonic()
        time.sleep(ASK_S)
    loaded = time.monotonic() - began
    checked(run_in(guest), f": >{hour.STOP}", PATIENCE)
    took = wait_for(
        "all jobs end",
        PATIENCE,
        lambda: "failed: " in state(site.home) or not any(job.running() for job in jobs.values()),
        interval=ASK_S,
    )
    rounds = {}
    for job in hour.JOBS:
        assert not jobs[job.name].running(), state(site.home)
        printed = (folder / f"{job.name}-{number}").read_text()
        rounds[job.name] = hour.rounds_of(job, jobs[job.name].wait().status, printed)
    print(f"turn {number}: {rounds}; the last rounds have taken {took:.0f} s")
    return rounds, loaded


def turn(
    site: SlowSite, guest: Guest, shape: SpanShape, number: int, *, seconds: float, folder: Path
) -> hour.Turn:
    """The other host comes, there is load, and it goes. The figures are those of the load."""
    inside = run_in(guest)
    start_stream(guest, BOTH, MIB)
    wait_for("stream_check begins", PATIENCE, lambda: inside(f"test -s {STREAM}").status == 0, interval=ASK_S)
    attach(site, guest, shape)
    assert watchdogs.off(asked(guest), BOTH) == []
    watched, begun, began = timers(guest), moment(site, guest), time.monotonic()
    rounds, load_s = load(site, guest, number, seconds, folder)
    ended, whole_s = moment(site, guest), time.monotonic() - began
    longest = [hour.longest_ms(status(host)) for host in site.both]
    assert watchdogs.asleep(watched, timers(guest), BOTH) == []
    detach(site, guest, shape)
    run = ended_well(guest)
    nothing_was_said(guest)
    found = hour.Turn(
        load_s,
        whole_s,
        ended.uptime_s - begun.uptime_s,
        [last - first for first, last in zip(begun.faults, ended.faults, strict=True)],
        [ended.ticks[cpu] - begun.ticks[cpu] for cpu in BOTH],
        longest,
        rounds,
        len(run.iterations),
    )
    print(found)
    return found


def test_an_hour_without_lockup_or_stall(lives: Lives, shape: SpanShape, tmp_path: Path) -> None:
    """No line of the kernel's about a lockup, a stall, a task that hangs or anything else; all that was computed is right."""
    site, seconds = lives.site, hour.plan(os.environ.get(VARIABLE))
    with lives.borrowed(attached=False, shape=shape) as guest, shown_if_it_fails(guest):
        inside = run_in(guest)
        checked(inside, hour.PREPARE, PATIENCE)
        checked(inside, f"echo '<5>{MARK}' >/dev/kmsg", PATIENCE)
        before = asked(guest)
        assert watchdogs.off(before, BOTH) == [], before
        print(before, {name: f"{limit * site.slow} s of the hosts'" for name, limit in before.limits().items()})
        # What an earlier run has left says nothing of this one, however it ends.
        set_aside(RESULTS / f"{RESULT}.json")
        turns: list[hour.Turn] = []
        for number, each in enumerate(seconds):
            turns.append(turn(site, guest, shape, number, seconds=each, folder=tmp_path))
            write(RESULT, hour.metrics(turns, site.slow, before.limits()))
        after = asked(guest)
        assert watchdogs.off(after, BOTH) == [] and watchdogs.noticed(before, after) == [], after
        nothing_was_said(guest)
        assert all(least > 0 for each in turns for least in each.rounds.values()), turns
        assert all(count > 0 for each in turns for count in (*each.faults, *each.ticks)), turns
        assert all(waited < MOST_WAIT_MS for each in turns for waited in each.longest_ms), turns
        assert refused_elsewhere(site) == []
