# SPDX-License-Identifier: GPL-2.0
"""The tests that a kernel has of its own locks and of RCU (locktorture, rcutorture), with threads on CPUs of several hosts.

They are modules of the kernel linux-torture. One begins when it is loaded, and says how it went when it is taken away. Its
threads begin on one CPU, and stay there if the others are isolated: they are shared out, so that each host has some of each
kind.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Mapping, Sequence

from lab.errors import Malformed


@dataclasses.dataclass(frozen=True)
class Torture:
    """A kind of test: its module, and what that is told."""

    kind: str
    module: str
    words: str

    @property
    def parameters(self) -> str:
        """All of them."""
        return f"torture_type={self.kind} {self.words}"


# Nobody moves the threads but us (shuffle_interval), they never rest (stutter: so many seconds, of a clock that is slow), and
# none comes and goes meanwhile (read_exit_burst). Stalls and boosts are for clocks that are not ten times slower.
_LOCK = "stat_interval=0 verbose=0 shuffle_interval=0 stutter=0"
_RCU = f"nreaders=4 nfakewriters=2 fwd_progress=0 test_boost=0 read_exit_burst=0 {_LOCK}"
TORTURES = (
    Torture("spin_lock", "locktorture", f"nwriters_stress=4 {_LOCK}"),
    Torture("mutex_lock", "locktorture", f"nwriters_stress=4 {_LOCK}"),
    Torture("rwsem_lock", "locktorture", f"nwriters_stress=2 nreaders_stress=2 {_LOCK}"),
    Torture("rcu", "rcutorture", _RCU),
    Torture("srcu", "rcutorture", _RCU),
)


# ---- Its threads ----

# One a line: number, name, the CPU where it has run last, and for how many ns it has run. A name may be cut after 15 letters.
THREADS = (
    "for each in /proc/[0-9]*; do read -r name <$each/comm && case $name in "
    "lock_torture_[rw]*|rcu_torture_rea*|rcu_torture_wri*|rcu_torture_fak*) "
    "echo ${each#/proc/} $name $(sed 's/.*) //' $each/stat | cut -d' ' -f37) $(cut -d' ' -f1 $each/schedstat);; "
    "esac; done 2>/dev/null; true"
)


@dataclasses.dataclass(frozen=True)
class Thread:
    """One that tortures."""

    pid: int
    name: str
    cpu: int
    ran_ns: int


def threads_of(said: str) -> list[Thread]:
    """What THREADS has printed, by number. Raises Malformed."""
    found = []
    for line in said.splitlines():
        words = line.split()
        if len(words) != 4 or not all(word.isdigit() for word in (words[0], *words[2:])):
            raise Malformed(f"a thread of a torture: {line[:200]!r}")
        found.append(Thread(int(words[0]), words[1], int(words[2]), int(words[3])))
    return sorted(found, key=lambda thread: thread.pid)


def shared_out(threads: Sequence[Thread], cpus: Sequence[int]) -> dict[int, int]:
    """Where each thread is to run, by its number: those of one name in turn on each of these CPUs."""
    seen: dict[str, int] = {}
    found = {}
    for thread in threads:
        turn = seen.get(thread.name, 0)
        seen[thread.name] = turn + 1
        found[thread.pid] = cpus[turn % len(cpus)]
    return found


def binding(places: Mapping[int, int]) -> str:
    """A command that has it so."""
    return " && ".join(f"taskset -pc {cpu} {pid} >/dev/null" for pid, cpu in places.items())


def idle(places: Mapping[int, int], before: Sequence[Thread], after: Sequence[Thread]) -> list[str]:
    """What is not as it has to be: a thread that has gone, is elsewhere, or has not run between two looks."""
    found = []
    began, now = ({thread.pid: thread for thread in each} for each in (before, after))
    for pid, cpu in places.items():
        thread = now.get(pid)
        if thread is None or pid not in began:
            found.append(f"{pid} has gone")
        elif thread.cpu != cpu:
            found.append(f"{thread.name} {pid} runs on CPU {thread.cpu}, not {cpu}")
        elif thread.ran_ns <= began[pid].ran_ns:
            found.append(f"{thread.name} {pid} has not run on CPU {cpu}")
    return found


# ---- How it went ----


@dataclasses.dataclass(frozen=True)
class End:
    """What a test says of itself at its end: "SUCCESS" or something else."""

    kind: str
    verdict: str


def ends(log: str) -> list[End]:
    """Of all tests that have ended, in a kernel's log or on a console."""
    return [End(*found) for found in re.findall(r"([a-z_]+)-torture:.* End of test: (\w+)", log)]


def least(log: str, torture: Torture) -> int:
    """How much was done: by the thread that has done least, of locks; changes that readers saw, of RCU. Raises Malformed.

    Of the last test in this log.
    """
    if torture.module == "locktorture":
        lines = re.findall(r"^.*\b(?:Writes|Reads ):  Total: \d+  Max/Min: \d+/(\d+) ", log, re.M)
        kinds = 1 + ("nreaders_stress" in torture.words)
        if len(lines) < kinds:
            raise Malformed(f"{torture.kind}: {len(lines)} sums, not {kinds}: {log[-1000:]!r}")
        return min(map(int, lines[-kinds:]))
    versions = re.findall(rf"\b{torture.kind}-torture: rtc: \S+ ver: (\d+) ", log, re.I)
    readers = re.findall(rf"\b{torture.kind}-torture: (?:!!! )?Reader Pipe: ((?: \d+)+)", log)
    if not versions or not readers:
        raise Malformed(f"{torture.kind}: no figures: {log[-1000:]!r}")
    return min(int(versions[-1]), sum(map(int, readers[-1].split())))


def since(log: str, mark: str) -> str:
    """What a log has behind the last line with these words. Raises Malformed."""
    before, found, after = log.rpartition(mark)
    if not found:
        raise Malformed(f"a log without {mark!r}: {before[-300:]!r}{after[-300:]!r}")
    return after
