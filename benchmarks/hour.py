# SPDX-License-Identifier: GPL-2.0
"""An hour of load on one Linux on two hosts (tests/e2e/test_dsm_span_hour.py): what its CPUs do meanwhile, and the figures.

The hour is in turns. In each the other host comes, the jobs below run at once until they are told to end, each in rounds that
know what they have to find, and the host goes again; an OpenMP program is there all the time.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.results import Metric
from lab.elastic_guest import PROGRAMS
from lab.errors import LabError, Malformed

# ---- How long ----

MINUTES = 60.0
TURN_MINUTES = 15.0
MOST_MINUTES = 24 * 60.0


def plan(said: str | None) -> list[float]:
    """Seconds of each turn, by the hosts' clock, for so many minutes in all; none said, an hour. Raises LabError."""
    try:
        minutes = float(said) if said else MINUTES
    except ValueError:
        minutes = 0.0
    if not 0 < minutes <= MOST_MINUTES:
        raise LabError(f"{said!r}: want minutes, up to {MOST_MINUTES:g}")
    turns = max(1, round(minutes / TURN_MINUTES))
    return [minutes * 60 / turns] * turns


# ---- What is done ----

FOLDER = "/tmp/hour"
GO, STOP = f"{FOLDER}/go", f"{FOLDER}/stop"  # files: jobs begin, and end
FILES = f"{FOLDER}/files"
SOURCE = "/usr/bin/bash"  # some bytes
FORKS, PART, CALLS = 12, 20000, 20

# A file system in memory of its own, which all CPUs use.
PREPARE = f"mkdir -p {FILES} && mount -t tmpfs -o size=48m tmpfs {FILES}"


@dataclasses.dataclass(frozen=True)
class Job:
    """`body`: a round of it in the shell, which fails if anything is not as it has to be; $n is its number."""

    name: str
    body: str


# Shells and what they begin are at home, where no CPU is isolated; all else says where it is.
JOBS = (
    # Reads, writes, LOCKed additions, system calls, and pages that go to and fro.
    Job(
        "pages",
        "said=$({programs}/dsm_torture --cpus={home},{far} --nodes=0,1 --operations=32 --pages=8 --pressure=64 "
        '--slow-us={slow_us} --stuck-s=60 --seed=$(({turn} * 1000 + n))) || {{ echo "$said"; false; }}',
    ),
    # From host to host and back, and there again.
    Job(
        "pipe",
        "sum=$(cat {source} | taskset -c {far} gzip -1 | taskset -c {home} gzip -d | taskset -c {far} md5sum) && "
        '[ "$sum" = "$(taskset -c {home} md5sum <{source})" ]',
    ),
    # All CPUs make processes at once, which make processes, and wait for them.
    Job(
        "processes",
        "ends=$(for cpu in {home} {far}; do taskset -c $cpu sh -c '"
        'i=0; while [ $i -lt {forks} ]; do i=$(sh -c "echo $((i + 1))"); done; echo $i'
        "' & done; wait) && [ \"$(echo $ends)\" = '{forks} {forks}' ]",
    ),
    # Files that one CPU makes and another one moves and reads, and two copies at once.
    Job(
        "files",
        "(cd {files} && rm -rf * && mkdir d && taskset -c {home} split -b {part} {source} part. && "
        "taskset -c {far} mv part.* d/ && cat d/part.* | taskset -c {far} cmp - {source} && "
        "{{ taskset -c {far} cp -r d e & taskset -c {home} cp -r d f; wait $!; }} && "
        "taskset -c {home} diff -r d e && taskset -c {far} diff -r d f)",
    ),
    # Interrupts and wake-ups from CPU to CPU; hypercalls that are done where they are made, and some that go home from there.
    Job(
        "calls",
        "for words in 'membarrier {home},{far}' 'membarrier {far},{home}' 'wake {home},{far}' 'wake {far},{home}' "
        "'version {far}' 'status {home}' 'status {far}'; do "
        "{programs}/span_latency --what=${{words% *}} --cpus=${{words#* }} --rounds={calls} >/dev/null || exit 1; done",
    ),
)


def script(job: Job, turn: int, *, home: int, far: int, slow_us: int, places: Mapping[str, str] | None = None) -> str:
    """A command that does rounds of it from GO to STOP, and then prints how many; status 1: a round was wrong.

    It waits for GO, since nothing is begun quickly in a guest that is under load. `places`: of programs, files, source, go and
    stop, where they are not the guest's.
    """
    words = {"programs": PROGRAMS, "files": FILES, "source": SOURCE, "go": GO, "stop": STOP, **(places or {})}
    body = job.body.format(
        turn=turn, home=home, far=far, slow_us=slow_us, forks=FORKS, part=PART, calls=CALLS, **words
    )
    lines = (
        f"until [ -e {words['go']} ]; do sleep 0.1; done",
        "n=0",
        f"while [ ! -e {words['stop']} ]; do",
        f"({body}) || {{ echo {job.name}: round $n is wrong; exit 1; }}",
        "n=$((n + 1))",
        "done",
        "echo $n",
    )
    return "sh -c " + shlex.quote("\n".join(lines))


def rounds_of(job: Job, status: int, printed: str) -> int:
    """How many, of a job that has ended well. Raises Malformed with what it has printed."""
    if status or not printed.strip().isdigit():
        raise Malformed(f"{job.name}: status {status}: {printed[-2000:]}")
    return int(printed)


# ---- Figures ----


def longest_ms(status: Mapping[str, Any]) -> float:
    """The longest wait for a page since its dsmd began, from the status of one. Raises Malformed."""
    try:
        return max(int(status[kind]["max_ns"]) for kind in ("read_fault", "write_fault")) / 1e6
    except (KeyError, TypeError, ValueError) as error:
        raise Malformed(f"dsmctl: {str(status)[:300]}") from error


@dataclasses.dataclass(frozen=True)
class Turn:
    """One of them; times by the hosts' clock but `guest_s`. By host, the home first: faults, ticks, the longest fault.

    `load_s`: from when all jobs may begin until they are told to end. `whole_s`, and all that is counted: from before the first
    of them is made until the last round of the slowest has ended, in which some have ended already.
    """

    load_s: float
    whole_s: float
    guest_s: float
    faults: Sequence[int]
    ticks: Sequence[int]
    longest_ms: Sequence[float]
    rounds: Mapping[str, int]
    iterations: int


HOSTS = ("home", "away")


def metrics(turns: Sequence[Turn], slow: int, limits: Mapping[str, int]) -> list[Metric]:
    """hour.WHAT; `limits`: of the watchdogs, in seconds of a clock that is `slow` times slower than the hosts'."""
    beside: dict[str, float | str] = {
        "slow": float(slow),
        "whole_s": sum(turn.whole_s for turn in turns),
        "guest_s": sum(turn.guest_s for turn in turns),
    }
    load = [turn.load_s for turn in turns]
    note = "all jobs at once, by the hosts' clock; guest_s, faults and ticks are of whole_s, with begin and last rounds"
    found = [Metric("hour.load", sum(load), "s", "higher", beside, load, note=note)]
    for number, host in enumerate(HOSTS):
        faults = [float(turn.faults[number]) for turn in turns]
        ticks = [float(turn.ticks[number]) for turn in turns]
        longest = [turn.longest_ms[number] for turn in turns]
        found += [
            Metric(f"hour.faults.{host}", sum(faults), "faults", runs=faults),
            Metric(f"hour.ticks.{host}", sum(ticks), "ticks", runs=ticks),
            Metric(
                f"hour.longest_fault.{host}",
                max(longest),
                "ms",
                "lower",
                {"slow": float(slow), "guest_ms": max(longest) / slow},
                longest,
                note="by the hosts' clock, since dsmd began there",
            ),
        ]
    for name in turns[0].rounds:
        rounds = [float(turn.rounds[name]) for turn in turns]
        found.append(Metric(f"hour.rounds.{name}", sum(rounds), "1", "higher", runs=rounds))
    iterations = [float(turn.iterations) for turn in turns]
    found.append(Metric("hour.rounds.openmp", sum(iterations), "1", "higher", runs=iterations))
    for name, seconds in limits.items():
        found.append(
            Metric(
                f"hour.limit.{name}",
                float(seconds * slow),
                "s",
                baseline={"guest_s": float(seconds)},
                note="after so long, by the hosts' clock, it would have been said",
            )
        )
    return found
