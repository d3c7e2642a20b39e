# SPDX-License-Identifier: GPL-2.0
"""The second program of the demo: fasttreeMP, from Debian's package fasttree, which links libgomp.

It computes a phylogenetic tree in floating point, with some parallel regions for each step. It runs again and again, at
low priority beside stream_check, each time from start to end, on the project's libgomp, while nodes come and go. Its
tree must each time be the one that it finds with Debian's own libgomp on a guest that does not change. The library itself
tells the sizes of its teams (OMP_DISPLAY_AFFINITY).
"""

from __future__ import annotations

import dataclasses
import random
import re
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.elastic_guest import LIBGOMP, Run, checked, wait_for, write_file
from benchmarks.guestview import Malformed
from benchmarks.timeline import Program

NAME = "fasttreeMP"
DIRECTORY = "/tmp/fasttree"
# What it says of each team that is larger or smaller than the one before, on its error output.
DISPLAY = "OMP_DISPLAY_AFFINITY=TRUE OMP_AFFINITY_FORMAT=team=%N"
# It prints how many threads it may have, and is then entitled to that number: OMP_DYNAMIC says that it need not get it.
SETTINGS = "OMP_DYNAMIC=true"
# Threads that wait sleep instead of spinning: there are more emulated processors than real ones.
COMMAND = f"OMP_WAIT_POLICY=passive fasttreeMP -nt -gtr -quiet {DIRECTORY}/alignment"
SEQUENCES, BASES, SEED = 32, 100, 1
NICE = 10
END_TIMEOUT = 120.0
ASK_S = 1.0  # seconds between two questions to the guest: each costs it time


def alignment(sequences: int = SEQUENCES, bases: int = BASES, seed: int = SEED) -> str:
    """Related random DNA sequences in FASTA format; the same text for the same numbers, on any machine."""
    source = random.Random(seed)
    found = [source.choices("ACGT", k=bases)]
    while len(found) < sequences:
        child = list(source.choice(found))
        for _ in range(max(1, bases // 20)):
            child[source.randrange(bases)] = source.choice("ACGT")
        found.append(child)
    return "".join(f">s{number}\n{''.join(sequence)}\n" for number, sequence in enumerate(found))


@dataclasses.dataclass(frozen=True)
class CompletedRun:
    """A run: exit status, checksum of its output, begin and end by the guest's clock, size of its largest team (0: unknown)."""

    status: int
    answer: str
    begun: float
    ended: float
    threads: int


class Companion:
    """The program in one guest: reference(), start(), finish() when enough was seen, programs() for the verdict."""

    def __init__(self, guest: Run) -> None:
        self._guest = guest
        self._reference = ""
        self._runs: list[CompletedRun] = []

    def reference(self) -> None:
        """One run with Debian's own libgomp."""
        checked(self._guest, f"mkdir -p {DIRECTORY}")
        write_file(self._guest, f"{DIRECTORY}/alignment", alignment())
        self._reference = checked(self._guest, f"{COMMAND} 2>/dev/null | sha256sum", END_TIMEOUT).split()[0]

    def start(self) -> None:
        """Run it again and again, in the background, until finish()."""
        checked(self._guest, f"cd {DIRECTORY} && rm -f stop ended runs")
        loop = (
            f"cd {DIRECTORY}; export LD_LIBRARY_PATH={LIBGOMP}; "
            f"while begun=$(date +%s.%N); nice -n {NICE} env {SETTINGS} {DISPLAY} {COMMAND} >out 2>err; status=$?; "
            "team=$(sed -n s/^team=//p err | sort -n | tail -n 1); "
            'echo "$status $(sha256sum <out | cut -c -64) $begun $(date +%s.%N) ${team:-0}" >>runs; '
            "! [ -e stop ]; do :; done; : >ended"
        )
        checked(self._guest, f"setsid sh -c '{loop}' >/dev/null 2>&1 </dev/null & echo $! >{DIRECTORY}/group")

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop loop and program while the body runs, wherever they are; they go on afterwards."""
        signal = f"kill -s {{}} -- -$(cat {DIRECTORY}/group)"
        checked(self._guest, signal.format("STOP"))
        try:
            yield
        finally:
            checked(self._guest, signal.format("CONT"))

    def await_run(self, since: float, what: str) -> None:
        """Wait for the end of a run that began after `since`, by the guest's clock. Raises TimeoutError, Malformed."""

        def ended() -> bool:
            text = self._guest(f"cat {DIRECTORY}/runs", 30.0).out
            return any(run.begun >= since for run in parse_runs(text[: text.rfind("\n") + 1]))

        wait_for(f"a run of {NAME} {what}", END_TIMEOUT, ended, ASK_S)

    def finish(self) -> None:
        """Let the run under way end, and read what all gave. Raises TimeoutError, Malformed."""
        checked(self._guest, f": >{DIRECTORY}/stop")
        wait_for(f"{NAME} ends", END_TIMEOUT, lambda: self._guest(f"test -e {DIRECTORY}/ended", 30.0).status == 0)
        self._runs = parse_runs(checked(self._guest, f"cat {DIRECTORY}/runs"))

    def programs(self) -> list[Program]:
        """One entry a run."""
        if not self._reference:
            return []
        if not self._runs:
            return [Program(f"{NAME} (no run ended)", -1, "", self._reference)]
        return [
            Program(f"{NAME}, run {number}", run.status, run.answer, self._reference, run.begun, run.ended, run.threads)
            for number, run in enumerate(self._runs, 1)
        ]


_RUN = re.compile(r"(\d{1,3}) ([0-9a-f]{64}) (\d{1,12}\.\d+) (\d{1,12}\.\d+) (\d{1,4})")


def parse_runs(text: str) -> list[CompletedRun]:
    """The runs, from the lines of the loop. Raises Malformed."""
    runs = []
    for line in text.splitlines():
        match = _RUN.fullmatch(line)
        if not match:
            raise Malformed(f"{DIRECTORY}/runs: {line[:100]!r}")
        runs.append(CompletedRun(int(match[1]), match[2], float(match[3]), float(match[4]), int(match[5])))
    return runs
