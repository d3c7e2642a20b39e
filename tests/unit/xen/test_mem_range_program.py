# SPDX-License-Identifier: GPL-2.0-only
"""What Xen's tools/tests/mem-range says when a case cannot be run, and when its race has not happened, on a fake host."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
SOURCE = HERE.parents[2] / "xen/overlay/tools/tests/mem-range/test-mem-range.c"
RACE = "mapping and removing at once"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    binary = tmp_path_factory.mktemp("mem-range") / "test-mem-range"
    flags = ["-std=gnu99", "-D_GNU_SOURCE", "-O1", "-g", "-Wall", "-Werror", "-pthread"]
    subprocess.run(["gcc", *flags, f"-I{HERE}/fake_host", SOURCE, HERE / "fake_host/host.c", "-o", binary], check=True)
    return binary


def run(program: Path, *cases: str, host: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [program, *cases],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={**os.environ, "FAKE_HOST": host},
    )


def test_a_case_that_cannot_be_run_says_so(program: Path) -> None:
    done = run(program, "1 GiB leaves whole", "2 MiB leave 1 GiB whole")
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.splitlines() == [
        "ok 1 - 1 GiB leaves whole # SKIP no free block of 1 GiB",
        "ok 2 - 2 MiB leave 1 GiB whole # SKIP no free block of 1 GiB",
        "1..2",
    ]


def test_a_race_that_happened(program: Path) -> None:
    done = run(program, RACE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"\nok 1 - {RACE}\n" in done.stdout


@pytest.mark.parametrize(
    ("host", "complaint"),
    [
        ("unmappable", "the race did not happen"),
        ("alone", "the race did not happen"),
        ("stale", "mapped frames that changed under their user"),
    ],
)
def test_a_race_that_did_not_happen_or_was_lost(program: Path, host: str, complaint: str) -> None:
    done = run(program, RACE, host=host)
    assert done.returncode == 1, done.stdout + done.stderr
    assert f"\nnot ok 1 - {RACE}\n" in done.stdout
    assert complaint in done.stdout
