# SPDX-License-Identifier: GPL-2.0
"""A run of stream_check without changes, which the demo compares its own with."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from benchmarks.program_output import StreamRun, parse_stream
from lab.elastic_guest import PROGRAMS
from lab.guest import Guest


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
