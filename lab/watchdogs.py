# SPDX-License-Identifier: GPL-2.0
"""What Linux has that notices a lockup or a stall: whether it looks, after how long it speaks, and what it has said.

The usual kernel of the lab has stalls of RCU only; the kernel linux-watched has all of it. Seconds are by the clock of who
watches itself. Who is on is asked of the kernel, and not of its command line: a detector that is not there says nothing.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Collection, Mapping
from typing import Final

from lab.complaints import complaints
from lab.errors import Malformed
from lab.guestview import parse_list

# ---- Whether it looks ----

_SYSCTL, _PARAMETERS = "/proc/sys/kernel", "/sys/module"
FILES: Final[Mapping[str, str]] = {
    "soft": f"{_SYSCTL}/soft_watchdog",
    "hard": f"{_SYSCTL}/nmi_watchdog",
    "lockup_s": f"{_SYSCTL}/watchdog_thresh",
    "cpus": f"{_SYSCTL}/watchdog_cpumask",
    "hung_s": f"{_SYSCTL}/hung_task_timeout_secs",
    "hung_reports": f"{_SYSCTL}/hung_task_warnings",
    "rcu_s": f"{_PARAMETERS}/rcupdate/parameters/rcu_cpu_stall_timeout",
    "rcu_expedited_ms": f"{_PARAMETERS}/rcupdate/parameters/rcu_exp_cpu_stall_timeout",
    "rcu_suppressed": f"{_PARAMETERS}/rcupdate/parameters/rcu_cpu_stall_suppress",
    "workers_s": f"{_PARAMETERS}/workqueue/parameters/watchdog_thresh",
    "taints": f"{_SYSCTL}/tainted",
    "clock": "/sys/devices/system/clocksource/clocksource0/current_clocksource",
}
NONE = "-"  # of a file that this kernel does not have


def question(files: Mapping[str, str] = FILES) -> str:
    """A command that prints them, one a line, for watchdogs_of()."""
    each = f"value=$(cat $file 2>/dev/null) || value={NONE}"
    return f'for file in {" ".join(files.values())}; do {each}; echo "$file $value"; done'


@dataclasses.dataclass(frozen=True)
class Watchdogs:
    """By the kernel's own words. 0: it has no such detector, or it is off.

    `lockup_s`: a CPU that takes no timer interrupt for so long is a hard lockup, one that lets nobody else run for twice as
    long a soft one. `hung_reports`: so many more tasks are reported; -1, any number. `rcu_expedited_ms`: 0, as `rcu_s`.
    """

    soft: int
    hard: int
    lockup_s: int
    cpus: tuple[int, ...]
    hung_s: int
    hung_reports: int
    rcu_s: int
    rcu_expedited_ms: int
    rcu_suppressed: int
    workers_s: int
    taints: int
    clock: str

    def limits(self) -> dict[str, int]:
        """After how many seconds of its clock each speaks."""
        found = {"soft_lockup": 2 * self.lockup_s, "hard_lockup": self.lockup_s}
        return {**found, "hung_task": self.hung_s, "rcu_stall": self.rcu_s, "workers": self.workers_s}


def watchdogs_of(said: str, files: Mapping[str, str] = FILES) -> Watchdogs:
    """What question() has printed. Raises Malformed."""
    words = dict(line.split(" ", 1) for line in said.splitlines() if " " in line)
    if set(words) != set(files.values()):
        raise Malformed(f"watchdogs: {said[:500]!r}")
    value = {name: words[file] for name, file in files.items()}
    numbers = {name: "0" if text == NONE else text for name, text in value.items() if name not in ("cpus", "clock")}
    for name, text in numbers.items():
        if not re.fullmatch(r"-?\d{1,18}", text):
            raise Malformed(f"watchdogs: {files[name]}: {text!r}")
    cpus = () if value["cpus"] == NONE else tuple(parse_list(value["cpus"]))
    return Watchdogs(cpus=cpus, clock=value["clock"], **{name: int(text) for name, text in numbers.items()})


# Linux's own, which nobody has to wait for longer than: CONFIG_DEFAULT_HUNG_TASK_TIMEOUT, CONFIG_RCU_CPU_STALL_TIMEOUT, and
# what kernel/watchdog.c and kernel/workqueue.c begin with.
MOST_S: Final[Mapping[str, int]] = {"lockup_s": 10, "hung_s": 120, "rcu_s": 21, "workers_s": 30}
WHAT: Final[Mapping[str, str]] = {
    "lockup_s": "lockups",
    "hung_s": "tasks that hang",
    "rcu_s": "stalls of RCU",
    "workers_s": "workers that get nowhere",
}
CLOCKS = ("xen", "tsc")  # a guest's own time, both


def off(found: Watchdogs, cpus: Collection[int]) -> list[str]:
    """What is not looked for, on these CPUs, or later than Linux would by itself. Empty: all is."""
    wrong = [f"nobody looks for {what}" for what, on in (("soft lockups", found.soft), ("hard lockups", found.hard)) if not on]
    for name, most in MOST_S.items():
        seconds = getattr(found, name)
        if not 0 < seconds <= most:
            wrong.append(f"nobody looks for {WHAT[name]}" if seconds <= 0 else f"{WHAT[name]}: {seconds} s, not {most}")
    if found.rcu_expedited_ms > MOST_S["rcu_s"] * 1000:
        wrong.append(f"stalls of RCU, expedited: {found.rcu_expedited_ms} ms")
    if found.rcu_suppressed:
        wrong.append("stalls of RCU are suppressed")
    if not found.hung_reports:
        wrong.append("no more tasks that hang are reported")
    wrong += [f"CPU {cpu} is not watched" for cpu in sorted(set(cpus) - set(found.cpus))]
    if found.clock not in CLOCKS:
        wrong.append(f"its clock is {found.clock}")
    return wrong


# A CPU that was seen locked up, a warning, an oops: include/linux/panic.h.
TAINTS: Final[Mapping[int, str]] = {14: "a soft lockup", 9: "a warning", 7: "an oops"}


def noticed(before: Watchdogs, after: Watchdogs) -> list[str]:
    """What was noticed meanwhile, by what is remembered of it outside of the log, which may have lost lines."""
    found = [what for bit, what in TAINTS.items() if after.taints & ~before.taints & 1 << bit]
    if after.hung_reports < before.hung_reports:
        found.append(f"{before.hung_reports - after.hung_reports} tasks that hang")
    return found


# ---- The timers by which CPUs are watched ----

TIMERS = "cat /proc/timer_list"
TIMER = "watchdog_timer_fn"  # each CPU's, five times in the time after which it would be locked up


@dataclasses.dataclass(frozen=True)
class Timers:
    """When each CPU's comes, and what the time was, in ns of the guest's clock."""

    now_ns: int
    due_ns: Mapping[int, int]


def timers_of(said: str) -> Timers:
    """From /proc/timer_list. Raises Malformed."""
    now = re.search(r"^now at (\d+) nsecs$", said, re.M)
    if not now:
        raise Malformed(f"/proc/timer_list: {said[:300]!r}")
    due = {}
    for cpu, block in re.findall(r"^cpu: (\d+)\n(.*?)(?=^cpu: \d|\Z)", said, re.M | re.S):
        found = re.search(rf"^ #\d+: <[^>]*>, {TIMER}, S:\w+\n # expires at \d+-(\d+) nsecs ", block, re.M)
        if found:
            due[int(cpu)] = int(found[1])
    return Timers(int(now[1]), due)


def asleep(before: Timers, after: Timers, cpus: Collection[int], lockup_s: int = MOST_S["lockup_s"]) -> list[str]:
    """CPUs whose timer has gone, has not come between two looks, or is due for as long as it takes to be locked up."""
    found = []
    for cpu in sorted(cpus):
        if cpu not in after.due_ns or cpu not in before.due_ns:
            found.append(f"CPU {cpu} has no timer that watches it")
        elif after.due_ns[cpu] <= before.due_ns[cpu]:
            found.append(f"CPU {cpu}: the timer that watches it has not come")
        elif after.now_ns - after.due_ns[cpu] > 2 * lockup_s * 10**9:
            found.append(f"CPU {cpu}: the timer that watches it is late by {(after.now_ns - after.due_ns[cpu]) // 10**9} s")
    return found


# ---- What it has said ----

# As Linux 6.12 has them: kernel/watchdog.c, hung_task.c, workqueue.c, rcu/tree_stall.h, rcu/tree_exp.h, rcu/tasks.h; and, since
# all of these rest on the clock, arch/x86/kernel/tsc.c and time/clocksource.c.
KINDS: Final[Mapping[str, re.Pattern[str]]] = {
    "soft lockup": re.compile(r"BUG: soft lockup - CPU#\d"),
    "hard lockup": re.compile(r"Watchdog detected hard LOCKUP on cpu \d"),
    "hung task": re.compile(r"INFO: task .* blocked for more than \d"),
    "RCU stall": re.compile(r"INFO: \w+ (?:self-)?detected (?:expedited )?stalls?\b"),
    "RCU thread": re.compile(r"kthread (?:starved|timer wakeup didn't happen) for \d+ jiffies"),
    "workers": re.compile(r"BUG: workqueue lockup - pool"),
    "clock": re.compile(r"Marking (?:TSC|clocksource '.*' as) unstable"),
}
OTHER = "complaint"  # lab/complaints.py


@dataclasses.dataclass(frozen=True)
class Said:
    """A line, and what it is about: KINDS, or OTHER."""

    kind: str
    line: str


def said_by(log: str) -> list[Said]:
    """Each line of a kernel's log that says so, and each that complains of anything else, in order."""
    others = set(complaints(log))
    found = []
    for line in map(str.strip, log.splitlines()):
        kind = next((kind for kind, pattern in KINDS.items() if pattern.search(line)), OTHER if line in others else None)
        if kind:
            found.append(Said(kind, line))
    return found
