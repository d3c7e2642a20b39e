# SPDX-License-Identifier: GPL-2.0
"""What the targets of the Makefile hand on: where results go, and whether machines will be booted."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks import dsm, span
from benchmarks.soak.__main__ import OPS
from benchmarks.soak.model import SHAPES
from lab.pipeline.mutants import PARTS
from lab.pipeline.paths import REPO


def dry_run(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """What `make` says and would run."""
    named = {name: value for name, value in os.environ.items() if not name.startswith(("XENUMA_", "MAKE"))} | environment
    line = ["make", "--dry-run", *words]
    return subprocess.run(line, cwd=REPO, env=named, capture_output=True, text=True, check=False, timeout=60)


def commands(target: str, *variables: str) -> list[str]:
    """What `make` would run for a target, in whole lines."""
    done = dry_run(target, *variables)
    assert not done.returncode, done.stderr
    return done.stdout.replace("\\\n", "").splitlines()


NONE = "no such variable: {}; there are TESTS UNIT_TESTS "
REFUSED = {
    "nonsense": "no such target: nonsense; 'make help' lists them.",
    "tests": "no such target: tests; 'make help' lists them.",
    "test TEST=tests/unit": NONE.format("TEST"),
    "soak seed=7": NONE.format("seed"),
    "soak SOAK_TEST=x": NONE.format("SOAK_TEST"),
    "soak SEED=7 GUEST=guest4": NONE.format("GUEST"),
    "bench BENCH=balloon": NONE.format("BENCH"),
    "test XENUMA_" "LANE=2": NONE.format("XENUMA_" "LANE"),
    "soak SEED=x": "SEED=x: want a number, 0 or more.",
    "soak OPS=-1": "OPS=-1: want a number, 0 or more.",
    "soak-debug SEED=7 FROM=1x": "FROM=1x: want a number, 0 or more.",
    "soak FROM=3": "FROM, TO: of which plan? SEED=N says.",
    "soak OPS=0": "operations 1 to 0: want 1 <= FROM <= TO <= OPS, which is 0.",
    "soak SEED=7 OPS=20 FROM=30": "operations 30 to 20: want 1 <= FROM <= TO <= OPS, which is 20.",
    "soak SEED=7 TO=301": "operations 1 to 301: want 1 <= FROM <= TO <= OPS, which is 300.",
    "soak SEED=7 SOAK_GUEST=guest3": "SOAK_GUEST=guest3: want one of: guest2 guest4.",
    "bench-dsm BENCH_DSM=nix": "BENCH_DSM: no such part: nix; there are rtt swap node switches detach rdma.",
    "bench-span BENCH_SPAN=kernel": "BENCH_SPAN: no such part: kernel; there are kernels kv ownership calls.",
    "test TESTS=tests/nix": "TESTS: no such file or folder: tests/nix.",
    "test TESTS=test/unit": "TESTS: no such file or folder: test/unit.",
    "unit UNIT_TESTS=tests/unit/nix.py::test_a": "UNIT_TESTS: no such file or folder: tests/unit/nix.py::test_a.",
    "soak SOAK_TESTS=tests/nix": "SOAK_TESTS: no such file or folder: tests/nix.",
    "e2e-debug DEBUG_TESTS=tests/nix": "DEBUG_TESTS: no such file or folder: tests/nix.",
    "soak TESTS=tests/e2e/test_soak.py": "TESTS is for: test; not for: soak; each has a variable of its own for tests.",
    "e2e guest-debug TESTS=tests/e2e": "TESTS is for: test; not for: e2e guest-debug; each has",
    "test UNIT_TESTS=tests/unit": "UNIT_TESTS is for: unit; not for: test; each has",
    "e2e DEBUG_TESTS=tests/e2e": "DEBUG_TESTS is for: e2e-debug; not for: e2e; each has",
    "soak-debug SOAK_TESTS=tests/e2e": "SOAK_TESTS is for: soak; not for: soak-debug; each has",
    "demo SEED=7": "SEED is for: soak soak-debug; not for: demo.",
    "e2e OPS=7": "OPS is for: soak soak-debug; not for: e2e.",
    "KEEP_GOING=1": "KEEP_GOING is for: soak soak-debug; not for: help.",
    "bench BENCH_DSM=rtt": "BENCH_DSM is for: bench-dsm; not for: bench.",
    "bench-dsm BENCH_SPAN=kv": "BENCH_SPAN is for: bench-span; not for: bench-dsm.",
    "bench BOUNCE=--loops=2": "BOUNCE is for: bounce; not for: bench.",
    "explore MUTANTS=dsmd": "MUTANTS is for: mutants; not for: explore.",
    "mutants EXPLORE=2x1": "EXPLORE is for: explore; not for: mutants.",
    "soak SOAK_TESTS=tests/e2e SEED=7": "SOAK_TESTS is for the tests, and the others for the random soak: one or the other.",
    "soak SEED=0xzz": "SEED=0xzz: want a number, 0 or more, or 0x and hexadecimal digits.",
    "soak-debug SEED=0x": "SEED=0x: want a number, 0 or more, or 0x",
    "soak SEED=7 KEEP_GOING=0": "KEEP_GOING=0: want one of: 1.",
    "test XENUMA_LANES=x": "XENUMA_LANES=x: want a number of lanes, or auto.",
    "test XENUMA_LANES=0": "XENUMA_LANES=0: want a number of lanes, or auto.",
}


@pytest.mark.parametrize(("words", "said"), REFUSED.items(), ids=REFUSED)
def test_what_is_mistyped_is_told_before_anything_is_made(words: str, said: str) -> None:
    """Not after the build, and not by doing something else."""
    done = dry_run(*words.split())
    assert (done.returncode, done.stdout) == (2, "") and f"*** {said}" in done.stderr, done.stderr


@pytest.mark.parametrize(
    "words",
    [
        ["test", "TESTS=tests/unit/pipeline/test_makefile.py::test_x[a tests-b/c]", "XENUMA_LANES=auto", "V=1", "CC=gcc"],
        ["test", "TESTS='tests/unit/pipeline/test_makefile.py::test_x[a b]' \"tests/e2e\""],
        ["test", "TESTS=tests/e2e -k 'a or b/c'", "XENUMA_KEPT_RESULTS=4", "XENUMA_DOM0_IMAGE=x", "--jobs=2"],
        ["test", "TESTS=-k balloon", "PYTEST_ADDOPTS=-x", "MAKEFLAGS=s"],
        ["soak", "SEED=0x19afAF", "OPS="],
        ["soak", "SOAK_TESTS=tests/e2e"],
        ["test", "unit", "TESTS=tests/unit", "UNIT_TESTS=tests/unit"],
        ["demo", "STEPS=xen"],
        ["bench-dsm", "BENCH_DSM=--pages 96 node"],
        ["bench-span", "BENCH_SPAN=kv ownership --cpus=2"],
        ["unit", "report", "XENUMA_CACHE=/x"],
    ],
)
def test_what_is_meant_is_done(words: list[str]) -> None:
    assert dry_run(*words).returncode == 0, dry_run(*words).stderr


def test_a_make_above_hands_on_what_it_likes() -> None:
    """It has been given variables of its own, and make hands on all of them."""
    done = dry_run("check", MAKELEVEL="1", MAKEFLAGS=" -- O=out ARCH=x86")
    assert done.returncode == 0 and "lab.pipeline.check" in done.stdout, done.stderr


def test_the_makefile_has_the_names_of_what_it_starts() -> None:
    text = (REPO / "Makefile").read_text(encoding="utf-8")
    assert f"check-words,BENCH_DSM,{' '.join(dsm.PARTS)})" in text
    assert f"check-words,BENCH_SPAN,{' '.join(span.PARTS)})" in text
    assert f"check-one,SOAK_GUEST,{' '.join(sorted(SHAPES))})" in text and f"$(or $(OPS),{OPS}))" in text
    assert f"# BENCH_DSM: parts, {', '.join(dsm.PARTS)};" in text
    assert f"# BENCH_SPAN: parts, {', '.join(span.PARTS)}, all" in text
    assert f"or MUTANTS={', '.join(PARTS[1:-1])} or {PARTS[-1]}:" in text


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


@pytest.mark.parametrize("part", PARTS)
def test_only_libgomps_mutants_need_libgomp(part: str) -> None:
    """What is built before the others would be waited for, and not used."""
    built = [line for line in commands("mutants", f"MUTANTS={part} words") if "lab.pipeline.build" in line]
    assert built == ["lab/enter python3 -m lab.pipeline.build libgomp-stock"] * (part == "libgomp")


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
