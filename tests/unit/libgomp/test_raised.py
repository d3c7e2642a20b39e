# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""A program with raised privileges does not open a file that its caller names: seen without any privilege."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from tests.unit.libgomp import program
from tests.unit.libgomp.gomp_player import ELASTIC, A, Reply, build


def run(command: list[str | Path]) -> Reply:
    """Run a program with a page of one CPU, which it is told the name of."""
    file = program.fresh_page(A)
    done = subprocess.run(
        [command[0], file, *command[1:]], env=program.variables(file), capture_output=True, text=True, check=True
    )
    reply: Reply = json.loads(done.stdout)
    return reply


@pytest.fixture
def executable() -> Path:
    """It finds the library by itself: LD_LIBRARY_PATH is ignored, too, in a program with raised privileges."""
    return build("raised.c", "-fopenmp", "-Wno-unknown-pragmas", f"-Wl,-rpath,{ELASTIC}")


def test_without_privileges_the_page_is_used(executable: Path) -> None:
    assert run([executable]) == {"raised": False, "mapped": True, "threads": 1}


def test_with_raised_privileges_the_name_is_ignored(executable: Path) -> None:
    reply = run([executable, "raise"])
    assert (reply["raised"], reply["mapped"]) == (True, False)
