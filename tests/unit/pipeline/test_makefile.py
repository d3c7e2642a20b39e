# SPDX-License-Identifier: GPL-2.0
"""What the targets of the Makefile hand on: where results go, and whether machines will be booted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from lab.pipeline.paths import REPO


def commands(target: str, *variables: str) -> list[str]:
    """What `make` would run for a target, in whole lines."""
    named = {name: value for name, value in os.environ.items() if not name.startswith(("XENUMA_", "MAKE"))}
    done = subprocess.run(
        ["make", "--dry-run", target, *variables], cwd=REPO, env=named, capture_output=True, text=True, check=True, timeout=60
    )
    return done.stdout.replace("\\\n", "").splitlines()


@pytest.mark.parametrize("target", ["test", "e2e", "e2e-debug", "soak"])
def test_tests_do_not_overwrite_what_was_measured(target: str) -> None:
    """They measure few times and beside other work; what `make bench` and `make demo` write is for `make report`."""
    (tests,) = (line for line in commands(target) if "lab.pipeline.test" in line)
    written = "results-debug" if target == "e2e-debug" else "results-test"
    assert f" XENUMA_RESULTS={REPO}/build/{written} " in f" {tests.split(' lab/enter ')[0]} "


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        (["SEED=7"], "--seed 7"),
        (["OPS=20"], "--ops 20"),
        (["SOAK_GUEST=guest4"], "--guest guest4"),
        (["KEEP_GOING=1"], "--keep-going"),
        (["FROM=12", "TO=13"], "--from 12 --to 13"),
        (["SEED=7", "OPS=300", "FROM=12", "TO=13", "SOAK_GUEST=guest4"], "--seed 7 --ops 300 --from 12 --to 13 --guest guest4"),
    ],
)
def test_a_soak_with_a_seed_is_the_random_one(variables: list[str], words: str) -> None:
    """A measurement, whose result is where the report finds it; and not the tests."""
    *_, last = commands("soak", *variables)
    assert last.split() == ["lab/enter", "python3", "-m", "benchmarks.soak", *words.split()]
    *_, checking = commands("soak-debug", *variables)
    assert f" -m benchmarks.soak {words} --home 768 --kernel " in " ".join(checking.split())
    assert "/build/results-debug " in checking and "/xen-debug/xen.elf " in checking


def test_each_test_that_is_left_to_the_soak_is_in_it() -> None:
    """Of the unit tests those files that have some, and the end-to-end tests."""
    (line,) = (line for line in commands("soak") if "lab.pipeline.test" in line)
    files = line.partition("lab.pipeline.test ")[2].split()
    unit = sorted((REPO / "tests" / "unit").rglob("test_*.py"))
    words = r"(?m)^@?pytest.*\.(fresh|soak)\b|marks=.*\.(fresh|soak)\b|^from .* import rest_in_soak\b"
    marked = [file for file in unit if re.search(words, file.read_text())]
    assert files == ["tests/e2e", *(str(file.relative_to(REPO)) for file in marked)] and len(marked) >= 8


def test_what_bounces_is_asked_as_one_likes() -> None:
    """The kernel and the emulator are built, and arguments come through, also those of several words."""
    *_, built, last = commands("bounce", "BOUNCE=--loops=2 --arguments='nohz_full=1 rcu_nocbs=1'")
    assert built == "lab/enter python3 -m lab.pipeline.build linux qemu"
    assert last == "lab/enter python3 -m benchmarks.bounce --loops=2 --arguments='nohz_full=1 rcu_nocbs=1'"


def test_bench_builds_upstreams_host() -> None:
    """Which is no part of the build, and which the balloon is compared with."""
    *_, built, last = commands("bench")
    assert built == "lab/enter python3 -m lab.pipeline.build xen-stock linux-stock"
    assert last == "lab/enter python3 -m benchmarks"


@pytest.mark.parametrize("target", ["bench", "bench-dsm", "bench-span", "demo", "demo-dsm", "demo-span", "report"])
def test_measurements_are_where_the_report_finds_them(target: str) -> None:
    assert not any("XENUMA_RESULTS" in line for line in commands(target))


@pytest.mark.parametrize(
    ("boots", "targets"),
    [
        (True, "demo test e2e e2e-debug guest-debug soak soak-debug bench bench-dsm bench-span demo-dsm demo-span"),
        (False, "setup build unit report check mutants explore bounce series shell"),
    ],
)
def test_only_what_boots_machines_needs_memory_for_them(boots: bool, targets: str) -> None:
    """Who only compiles or looks at a report is warned, and not kept from it."""
    for target in targets.split():
        first = commands(target)[0].split()
        assert first[0] == "lab/bootstrap" and ("--boots" in first) == boots, target


def test_the_list_of_targets_needs_nothing_but_what_every_debian_has(tmp_path: Path) -> None:
    """Each with its text, on a machine with no more than its essential packages: no column(1)."""
    for name in ("bash", "awk", "make"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    done = subprocess.run(
        ["make", "help"], cwd=REPO, env={"PATH": str(tmp_path)}, capture_output=True, text=True, check=True, timeout=60
    )
    listed = dict(line.split(maxsplit=1) for line in done.stdout.splitlines() if line.startswith("  "))
    assert listed["explore"].startswith("the DSM protocol: ") and listed["e2e-debug"].endswith("(DEBUG_TESTS chooses)")
    assert listed.keys() >= {"help", "setup", "demo", "test", "soak", "distclean"} and done.stderr == ""
