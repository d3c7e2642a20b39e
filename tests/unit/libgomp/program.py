# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""A small C program of these tests, run once with a topology page; it says what it saw as JSON."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.unit.libgomp.gomp_player import AB, ELASTIC, SCRATCH, A, Reply, build, page

FLAGS = ("-fopenmp", "-rdynamic", "-Wno-unknown-pragmas")
"""The program plays the kernel: the library has to find its ioctl() and syscall()."""

SECONDS = 60


def fresh_page(usable: int) -> Path:
    file = Path(tempfile.mkdtemp(dir=SCRATCH)) / "page"
    file.write_bytes(page(usable))
    return file


def variables(file: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment of a program that follows this page, whatever it has asked for before."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    return {
        **kept,
        "LD_LIBRARY_PATH": str(ELASTIC),
        "GOMP_TOPO_DEV": str(file),
        "OMP_DYNAMIC": "true",
        "OMP_WAIT_POLICY": "passive",
        **(env or {}),
    }


def run(
    source: str,
    *arguments: str,
    usable: int = A,
    env: Mapping[str, str] | None = None,
    flags: Sequence[str] = FLAGS,
) -> Reply:
    """Start with USABLE in the page; what the program says.  Its arguments: these, then the masks of A and of A and B."""
    done = subprocess.run(
        [build(source, *flags), *arguments, f"{A:x}", f"{AB:x}"],
        env=variables(fresh_page(usable), env), capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"status {done.returncode}: {done.stdout}{done.stderr}"
    reply: Reply = json.loads(done.stdout)
    return reply
