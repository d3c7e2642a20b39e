# SPDX-License-Identifier: GPL-2.0
"""Which checks are on: by a real shell, of what a kernel's files say."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from benchmarks.soak import checks
from lab.command import Done
from lab.errors import Malformed

LOCKDEP = " max locking depth:                       14\n debug_locks:                             {}\n"


@pytest.mark.parametrize(
    ("lockdep", "symbols", "wanted"),
    [
        (LOCKDEP.format(1), "ffff T kasan_report\n", (True, True)),
        (LOCKDEP.format(0), "ffff T kasan_report\n", (False, True)),
        (None, "ffff T kasan_report_x\nffff T schedule\n", (False, False)),
    ],
)
def test_what_a_kernel_checks(tmp_path: Path, lockdep: str | None, symbols: str, wanted: tuple[bool, bool]) -> None:
    """One without lockdep has no such file; one whose lockdep has turned itself off says 0."""
    if lockdep is not None:
        (tmp_path / "lockdep_stats").write_text(lockdep, encoding="utf-8")
    (tmp_path / "kallsyms").write_text(symbols, encoding="utf-8")

    def shell(command: str, timeout: float = 60.0) -> Done:
        line = ["sh", "-c", command.replace("/proc/", f"{tmp_path}/")]
        done = subprocess.run(line, capture_output=True, text=True, check=False, timeout=timeout)
        return Done(0, done.stdout, done.stderr)

    assert checks.of_kernel(shell, "guest") == dict(zip(("guest_lockdep", "guest_kasan"), wanted, strict=True))


def test_a_kernel_that_says_nothing_is_no_answer() -> None:
    with pytest.raises(Malformed, match="what dom0 checks"):
        checks.of_kernel(lambda command, timeout=60.0: Done(0, ""), "dom0")
