# SPDX-License-Identifier: GPL-2.0
"""The second program of the demo: fasttreeMP, from Debian's package fasttree, which links libgomp.

It computes a phylogenetic tree in floating point, with some parallel regions for each step. It runs again and again, at
low priority beside stream_check, each time from start to end, on the project's libgomp, while nodes come and go. Its
tree must each time be the one that it finds with Debian's own libgomp on a guest that does not change. The library itself
tells the sizes of its teams (OMP_DISPLAY_AFFINITY).
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator
from contextlib import contextmanager

from benchmarks.timeline import Program
from lab.command import Run, checked, write_file
from lab.elastic_guest import LIBGOMP
from lab.errors import Malformed
from lab.patience import wait_for

NAME = "fasttreeMP"
DIRECTORY = "/tmp/fasttree"
# What it says of each team that is larger or smaller than the one before, on its error output.
DISPLAY = "OMP_DISPLAY_AFFINITY=TRUE OMP_AFFINITY_FORMAT=team=%N"
# It prints how many threads it may have, and is then entitled to that number: OMP_DYNAMIC says that it need not get it.
SETTINGS = "OMP_DYNAMIC=true"
# It has `parallel sections` with so many; OMP_DYNAMIC gives those no more threads, as stock does.
SECTIONS = (3,)
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


class Companion:
    """The program in one guest: reference(), start(), finish() when enough was seen, programs() for the verdict."""

    def __init__(self, guest: Run) -> None:
        self._guest = guest
        self._reference = ""
        self._runs: list[tuple[int, str]] = []

    def reference(self) -> None:
        """One run with Debian's own libgomp."""
        checked(self._guest, f"mkdir -p {DIRECTORY}")
        write_file(self._guest, f"{DIRECTORY}/alignment", alignment())
        self._reference = checked(self._guest, f"{COMMAND} 2>/dev/null | sha256sum", END_TIMEOUT).split()[0]

    def start(self) -> None:
        """Run it again and again, in the background, until finish()."""
        checked(self._guest, f"cd {DIRECTORY} && rm -f stop ended runs && : >said")
        loop = (
            f"cd {DIRECTORY}; export LD_LIBRARY_PATH={LIBGOMP}; "
            f"while nice -n {NICE} env {SETTINGS} {DISPLAY} {COMMAND} >out 2>>said; status=$?; "
            'echo "$status $(sha256sum <out)" >>runs; ! [ -e stop ]; do :; done; : >ended'
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

    def teams(self) -> list[int]:
        """The sizes of its teams, each that differs from the one before, of all runs so far."""
        return parse_teams(checked(self._guest, f"cat {DIRECTORY}/said"))

    def await_team(self, size: int, what: str) -> int:
        """Wait until its team has that size; returns that team's place in teams(). Raises TimeoutError."""
        seen: list[int] = []

        def so() -> bool:
            seen[:] = self.teams()
            return seen[-1:] == [size]

        try:
            wait_for(f"{NAME} with {size} threads {what}", END_TIMEOUT, so, ASK_S)
        except TimeoutError as error:
            raise TimeoutError(f"{error}; its teams had {seen or 'no'} threads") from None
        return len(seen) - 1

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
            Program(f"{NAME}, run {number}", status, answer, self._reference)
            for number, (status, answer) in enumerate(self._runs, 1)
        ]


def parse_teams(text: str) -> list[int]:
    """Sizes from the lines that the library prints; the last may be half written.

    Its main thread prints for all, and a thread that has left its team by then has one of 1 thread: those are left out.
    """
    lines = [line.removeprefix("team=") for line in text.split("\n")[:-1] if line.startswith("team=")]
    return [size for size, _ in itertools.groupby(int(line) for line in lines if line.isdigit() and line != "1")]


def parse_runs(text: str) -> list[tuple[int, str]]:
    """(exit status, checksum) of each run, from the lines of the loop. Raises Malformed."""
    runs = []
    for line in text.splitlines():
        words = line.split()
        if len(words) < 2 or not words[0].isdigit() or len(words[1]) != 64:
            raise Malformed(f"{DIRECTORY}/runs: {line[:100]!r}")
        runs.append((int(words[0]), words[1]))
    return runs
