# SPDX-License-Identifier: GPL-2.0
"""What a kernel says of its watchdogs and of their timers, and what they have said: texts as Linux 6.12 has them."""

from __future__ import annotations

import dataclasses
import subprocess
from pathlib import Path
from typing import Any

import pytest

from lab.errors import Malformed
from lab.watchdogs import (
    FILES,
    KINDS,
    OTHER,
    Said,
    Timers,
    asleep,
    noticed,
    off,
    question,
    said_by,
    timers_of,
    watchdogs_of,
)

# Of linux-watched, by itself.
VALUES = {
    "soft": "1",
    "hard": "1",
    "lockup_s": "10",
    "cpus": "0-1",
    "hung_s": "120",
    "hung_reports": "10",
    "rcu_s": "21",
    "rcu_expedited_ms": "0",
    "rcu_suppressed": "0",
    "workers_s": "30",
    "taints": "0",
    "clock": "tsc",
}
SAID = "".join(f"{FILES[name]} {value}\n" for name, value in VALUES.items())
FOUND = watchdogs_of(SAID)


# ---- Whether they look ----


def test_the_question(tmp_path: Path) -> None:
    """Asked of files like those; what is not there has no value, and no message."""
    files = {name: str(tmp_path / name) for name in FILES}
    for name, value in VALUES.items():
        if name != "soft":
            (tmp_path / name).write_text(f"{value}\n")
    done = subprocess.run(["sh", "-c", question(files)], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert watchdogs_of(done.stdout, files) == dataclasses.replace(FOUND, soft=0)


def test_the_question_to_a_kernel() -> None:
    """Of /proc/sys a number comes with the first read and nothing with the next, so who reads it byte by byte has a part."""
    kernel = Path("/proc/sys/kernel")
    files = {name: str(kernel / "pid_max" if name == "hung_s" else kernel / "tainted") for name in FILES}
    done = subprocess.run(["sh", "-c", question(files)], capture_output=True, text=True, check=True)
    assert f"{files['hung_s']} {(kernel / 'pid_max').read_text()}" in done.stdout, done.stdout


def test_all_of_them_look() -> None:
    assert off(FOUND, (0, 1)) == [] and off(dataclasses.replace(FOUND, hung_reports=-1, clock="xen"), (0, 1)) == []
    assert FOUND.limits() == {"soft_lockup": 20, "hard_lockup": 10, "hung_task": 120, "rcu_stall": 21, "workers": 30}
    # Sooner is no harm.
    assert off(dataclasses.replace(FOUND, lockup_s=1, hung_s=1, rcu_s=3, workers_s=1), (0,)) == []


@pytest.mark.parametrize(
    ("name", "value", "words"),
    [
        ("soft", 0, "nobody looks for soft lockups"),
        ("hard", 0, "nobody looks for hard lockups"),
        ("lockup_s", 0, "nobody looks for lockups"),
        ("lockup_s", 11, "lockups: 11 s, not 10"),
        ("cpus", (0,), "CPU 1 is not watched"),
        ("hung_s", 0, "nobody looks for tasks that hang"),
        ("hung_s", 121, "tasks that hang: 121 s, not 120"),
        ("hung_reports", 0, "no more tasks that hang are reported"),
        ("rcu_s", 22, "stalls of RCU: 22 s, not 21"),
        ("rcu_s", 0, "nobody looks for stalls of RCU"),
        ("rcu_expedited_ms", 21001, "stalls of RCU, expedited: 21001 ms"),
        ("rcu_suppressed", 1, "stalls of RCU are suppressed"),
        ("workers_s", 0, "nobody looks for workers that get nowhere"),
        ("workers_s", 31, "workers that get nowhere: 31 s, not 30"),
        ("clock", "jiffies", "its clock is jiffies"),
    ],
)
def test_one_of_them_does_not_look(name: str, value: Any, words: str) -> None:
    assert off(dataclasses.replace(FOUND, **{name: value}), (0, 1)) == [words]


def test_the_usual_kernel_looks_for_stalls_of_rcu_only() -> None:
    """Its command line and its configuration, as the lab's guests had them: each of the others is said to be off."""
    has = {"rcu_s": "300", "rcu_expedited_ms": "0", "rcu_suppressed": "0", "taints": "0", "clock": "tsc"}
    found = watchdogs_of("".join(f"{file} {has.get(name, '-')}\n" for name, file in FILES.items()))
    assert found.cpus == () and found.soft == 0
    assert off(found, (0, 1)) == [
        "nobody looks for soft lockups",
        "nobody looks for hard lockups",
        "nobody looks for lockups",
        "nobody looks for tasks that hang",
        "stalls of RCU: 300 s, not 21",
        "nobody looks for workers that get nowhere",
        "no more tasks that hang are reported",
        "CPU 0 is not watched",
        "CPU 1 is not watched",
    ]


@pytest.mark.parametrize(
    "said",
    [
        "",
        SAID.replace(f"{FILES['hung_s']} 120\n", ""),
        SAID.replace("120", "two"),
        SAID.replace("120", ""),
        SAID.replace("0-1", "1-0"),
    ],
)
def test_no_answer(said: str) -> None:
    with pytest.raises(Malformed):
        watchdogs_of(said)


def test_what_is_remembered_outside_of_the_log() -> None:
    assert noticed(FOUND, FOUND) == []
    assert noticed(FOUND, dataclasses.replace(FOUND, taints=1 << 14 | 1 << 9)) == ["a soft lockup", "a warning"]
    assert noticed(FOUND, dataclasses.replace(FOUND, taints=1 << 7)) == ["an oops"]
    assert noticed(FOUND, dataclasses.replace(FOUND, hung_reports=8)) == ["2 tasks that hang"]
    # Of before, and of other things.
    old = dataclasses.replace(FOUND, taints=1 << 9, hung_reports=8)
    assert noticed(old, old) == [] and noticed(FOUND, dataclasses.replace(FOUND, taints=1 << 12)) == []


# ---- Timers ----

TIMERS = """Timer List Version: v0.10
HRTIMER_MAX_CLOCK_BASES: 8
now at {now} nsecs

cpu: 0
 clock 0:
  .base:       00000000a1b2c3d4
  .index:      0
  .resolution: 1 nsecs
  .get_time:   ktime_get
  .offset:     0 nsecs
active timers:
 #0: <00000000a1b2c3d4>, tick_nohz_handler, S:01
 # expires at 7210000000-7210000000 nsecs [in 1000 to 1000 nsecs]
 #1: <00000000a1b2c3d4>, watchdog_timer_fn, S:01
 # expires at {first}-{first} nsecs [in 1000 to 1000 nsecs]
 clock 1:
  .base:       00000000a1b2c3d4
active timers:
  .expires_next   : 7210000000 nsecs

cpu: 1
 clock 0:
active timers:
 #0: <00000000a1b2c3d4>, {function}, S:01
 # expires at {second}-{second} nsecs [in -5 to -5 nsecs]
 #1: <00000000a1b2c3d4>, hrtimer_wakeup, S:01
 # expires at 999000000000-999000050000 nsecs [in 1000 to 1000 nsecs]

Tick Device: mode:     1
Per CPU device: 0
"""


def listed(now_s: int, first_s: int, second_s: int, function: str = "watchdog_timer_fn") -> str:
    first, second = first_s * 10**9, second_s * 10**9
    return TIMERS.format(now=now_s * 10**9, first=first, second=second, function=function)


def test_timers() -> None:
    assert timers_of(listed(7, 8, 9)) == Timers(7 * 10**9, {0: 8 * 10**9, 1: 9 * 10**9})
    assert timers_of(listed(7, 8, 9, "hrtimer_wakeup")) == Timers(7 * 10**9, {0: 8 * 10**9})
    # What comes for another CPU is not this one's.
    assert timers_of(listed(7, 8, 9).replace("watchdog_timer_fn", "x", 1)).due_ns == {1: 9 * 10**9}
    with pytest.raises(Malformed, match="timer_list"):
        timers_of("")


def test_cpus_that_nobody_watches() -> None:
    before = timers_of(listed(7, 8, 9))
    assert asleep(before, timers_of(listed(11, 12, 13)), (0, 1)) == []
    assert asleep(before, timers_of(listed(11, 12, 9)), (0, 1)) == ["CPU 1: the timer that watches it has not come"]
    assert asleep(before, timers_of(listed(11, 12, 9)), (0,)) == []
    gone = timers_of(listed(11, 12, 13, "x"))
    assert asleep(before, gone, (0, 1)) == asleep(gone, before, (0, 1))[1:] == ["CPU 1 has no timer that watches it"]
    assert asleep(before, timers_of(listed(33, 34, 13)), (0, 1)) == []
    assert asleep(before, timers_of(listed(34, 35, 13)), (0, 1)) == ["CPU 1: the timer that watches it is late by 21 s"]


# ---- The log ----

LINES = {
    "soft lockup": ["watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [dsm_torture:412]"],
    "hard lockup": ["watchdog: Watchdog detected hard LOCKUP on cpu 1"],
    "hung task": ["INFO: task kworker/u8:2:57 blocked for more than 122 seconds."],
    "RCU stall": [
        "rcu: INFO: rcu_sched self-detected stall on CPU",
        "rcu: INFO: rcu_sched detected stalls on CPUs/tasks:",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 1-.... } 2104 jiffies s: 57 root: 0x2/.",
        "rcu: INFO: rcu_sched detected stall, but suppressed full report due to a stuck CSD-lock.",
        "INFO: rcu_tasks detected stalls on tasks:",
        "INFO: rcu_tasks_trace detected stalls? (Late IPI?)",
    ],
    "RCU thread": [
        "rcu: rcu_sched kthread starved for 2102 jiffies! g5029 f0x0 RCU_GP_WAIT_FQS(5) ->state=0x0 ->cpu=0",
        "rcu: rcu_sched kthread timer wakeup didn't happen for 2100 jiffies! g5029 f0x0 RCU_GP_WAIT_FQS(5) ->state=0x402",
    ],
    "workers": ["BUG: workqueue lockup - pool cpus=1 node=1 flags=0x0 nice=0 stuck for 31s!"],
    "clock": [
        "tsc: Marking TSC unstable due to clocksource watchdog",
        "clocksource: timekeeping watchdog on CPU1: Marking clocksource 'tsc' as unstable because the skew is too large:",
    ],
    OTHER: [
        "WARNING: CPU: 1 PID: 23 at kernel/sched/core.c:1 f+0x1/0x2",
        "BUG: scheduling while atomic: swapper/1/0/0x00000002",
        "dsm_torture[99]: segfault at 0 ip 00005 sp 00007 error 4 in dsm_torture[55,1000]",
    ],
}


def test_each_kind_has_a_line() -> None:
    assert set(LINES) == {*KINDS, OTHER}


@pytest.mark.parametrize(("kind", "line"), [(kind, line) for kind, lines in LINES.items() for line in lines])
@pytest.mark.parametrize("head", ["", "[  321.000123] ", "[  321.000123][   T23] "])
def test_each_line_is_noticed(kind: str, line: str, head: str) -> None:
    """Once, wherever it is, and as what it is."""
    log = f"[    1.0] Linux version 6.12.107-xenuma\n{head}{line}\n[  400.0] random: crng init done\n"
    assert said_by(log) == [Said(kind, f"{head}{line}")]


# What Linux says at its begin, when CPUs come and go, and when something takes a while, which is none of it.
WELL = """Linux version 6.12.107-xenuma
Kernel command line: console=hvc0 rcupdate.rcu_cpu_stall_timeout=21 nowatchdog softlockup_panic=0
rcu: Hierarchical RCU implementation.
rcu: \tRCU calculated value of scheduler-enlistment delay is 10 jiffies.
NMI watchdog: Enabled. Permanently consumes one hw-PMU counter.
clocksource: Switched to clocksource tsc
installing Xen timer for CPU 1
smpboot: Booting Node 1 Processor 1 APIC 0x2
process 412 (gzip) no longer affine to cpu1
smpboot: CPU 1 is now offline
hrtimer: interrupt took 258000000 ns
workqueue: xenbus_probe hogged CPU for >10000us 4 times, consider switching to WQ_UNBOUND
rcu: INFO: Stall ended before state dump start
sysrq: Show backtrace of all active CPUs
NMI backtrace for cpu 1
xen_elastic_numa: vnode 1: online, 128 MiB
"""


def test_a_log_that_says_nothing() -> None:
    assert said_by(WELL) == [] and said_by("") == []
    assert said_by("".join(f"[    1.0] {line}\n" for line in WELL.splitlines())) == []


def test_all_of_a_log() -> None:
    """In order, and the same line twice."""
    log = "\n".join([*LINES["RCU stall"][:1], WELL, *LINES["soft lockup"], *LINES["soft lockup"]])
    assert [each.kind for each in said_by(log)] == ["RCU stall", "soft lockup", "soft lockup"]
