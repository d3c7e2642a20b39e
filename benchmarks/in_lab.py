# SPDX-License-Identifier: GPL-2.0
"""The benchmarks' way into the lab: guests of a rack, and one clock."""

from __future__ import annotations

import dataclasses
import subprocess
import tempfile
import time
from pathlib import Path

from benchmarks.elastic_guest import PROGRAMS, ElasticGuest
from benchmarks.program_output import StreamRun, parse_stream
from lab.command import Run, checked, run_in
from lab.guest import Guest


def elastic(guest: Guest) -> ElasticGuest:
    """The operator's side of a guest that runs."""
    return ElasticGuest(guest.name, run_in(guest.host), run_in(guest))


@dataclasses.dataclass(frozen=True)
class Clock:
    """This machine's clock against a guest's: `offset` seconds are added to time.time() to get the guest's time.

    `error` is how wrong that can be: half of the time that the question took.
    """

    offset: float
    error: float

    @staticmethod
    def compare(guest: Run, tries: int = 3) -> Clock:
        """Ask the guest for its time; of some tries the quickest answer counts."""
        best: Clock | None = None
        for _ in range(tries):
            asked = time.time()
            theirs = float(checked(guest, "date +%s.%N"))
            answered = time.time()
            clock = Clock(theirs - (asked + answered) / 2, (answered - asked) / 2)
            if best is None or clock.error < best.error:
                best = clock
        assert best is not None
        return best

    def now(self) -> float:
        """The guest's time now."""
        return time.time() + self.offset


def reference_run(guest: Guest, mib: int, iterations: int, timeout: float = 300.0) -> StreamRun:
    """stream_check, the guest's very file, run here with this system's own libgomp: a run without changes.

    Raises subprocess.CalledProcessError when its own check fails.
    """
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder) / "stream_check"
        guest.get(f"{PROGRAMS}/stream_check", program)
        program.chmod(0o755)
        done = subprocess.run(
            [str(program), f"--mib={mib}", f"--iterations={iterations}"],
            capture_output=True,
            text=True,
            check=True,
            timeout=timeout,
        )
    return parse_stream(done.stdout)
