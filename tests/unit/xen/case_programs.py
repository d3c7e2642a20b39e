# SPDX-License-Identifier: GPL-2.0-only
"""Programs of cases: `--list` says their names, a name runs one, and exit status 0 says that it holds.

And mutants of what they are compiled of: one text of a file replaced by another, and a case that has to fail then.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path


def run(test: Path, name: str, seconds: float = 60) -> subprocess.CompletedProcess[str]:
    """One case. What it leaves is not looked for: it ends like a machine that is switched off."""
    return subprocess.run(
        [test, name], capture_output=True, text=True, timeout=seconds, check=False, env={"ASAN_OPTIONS": "detect_leaks=0"}
    )


def names(program: Callable[[], Path]) -> list[str]:
    """The cases of a program; if it does not compile, one that says so instead of ending the whole test run."""
    try:
        return run(program(), "--list").stdout.splitlines()
    except subprocess.CalledProcessError:
        return ["compiles"]


def assert_holds(test: Path, name: str) -> None:
    done = run(test, name)
    assert done.returncode == 0, done.stdout + done.stderr


def mistaken(original: Path, old: str, new: str, folder: Path) -> Path:
    """A copy of a file with this mistake, below `folder`."""
    text = original.read_text()
    assert text.count(old) == 1, f"{original.name} has changed: adapt the mutant"
    source = folder / "mutant.c"
    source.write_text(text.replace(old, new))
    return source
