# SPDX-License-Identifier: GPL-2.0-only
"""The pure files of the guest's elastic NUMA driver, compiled in user space.

Each case of state_test.c, extent_test.c and page_test.c is a test here. The mutants at the end are versions of the
driver with one mistake each: a case has to notice.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "linux-guest" / "overlay"
DRIVER = OVERLAY / "drivers" / "xen" / "elastic-numa"
NOUNS = ("state", "extent", "page")

_scratch = tempfile.TemporaryDirectory(prefix="elastic_numa_test.")


def build(noun: str, source: Path, program: Path) -> Path:
    """Compile one version of a driver file with its cases."""
    # fmt: off
    subprocess.run(
        ["gcc", "-std=gnu11", "-g", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror", "-pthread",
         "-Wno-missing-field-initializers", "-I", HERE / "fake", "-I", DRIVER, "-I", OVERLAY / "include" / "uapi",
         "-o", program, source, HERE / f"{noun}_test.c"],
        check=True,
    )
    # fmt: on
    return program


@cache
def program(noun: str) -> Path:
    return build(noun, DRIVER / f"{noun}.c", Path(_scratch.name) / f"{noun}_test")


def run(test: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([test, name], capture_output=True, text=True, timeout=120, check=False)


def names() -> list[tuple[str, str]]:
    """The cases; for a file that does not compile, one that says so."""
    found: list[tuple[str, str]] = []
    for noun in NOUNS:
        try:
            found += [(noun, name) for name in run(program(noun), "--list").stdout.splitlines()]
        except subprocess.CalledProcessError:
            found.append((noun, f"{noun}.c compiles"))
    return found


@pytest.mark.parametrize(("noun", "name"), names(), ids=str)
def test_case(noun: str, name: str) -> None:
    done = run(program(noun), name)
    assert done.returncode == 0, done.stdout + done.stderr


BETWEEN = "page: a reader between any two stores"
ACROSS = "page: a reader across any two stores"

# Which file, what is replaced, by what, and a case that has to fail then.
MUTANTS = {
    "seq never odd": ("page", "WRITE_ONCE(page->seq, seq + 1);", "", BETWEEN),
    "seq even too early": ("page", "WRITE_ONCE(page->seq, seq + 1);", "WRITE_ONCE(page->seq, seq + 2);", BETWEEN),
    "seq back to what it was": (
        "page",
        "smp_store_release(&page->seq, seq + 2);",
        "smp_store_release(&page->seq, seq);",
        ACROSS,
    ),
    "version before the page": (
        "page",
        "WRITE_ONCE(page->seq, seq + 1);",
        "smp_store_release(&page->version, image->version);\n\tWRITE_ONCE(page->seq, seq + 1);",
        ACROSS,
    ),
    "last word forgotten": ("page", "i < BODY_WORDS; i++", "i < BODY_WORDS - 1; i++", BETWEEN),
    "constants overwritten": ("page", "if (i != abi)", "if (i != abi || 1)", "page: constants are kept"),
    "alignment not checked": ("extent", "(start & (block_bytes - 1))", "0", "range: start within a block"),
    "overflow not checked": ("extent", "if (start + span < start)", "if (start + span < 1)", "range: end overflows"),
    "rounded down": (
        "extent",
        "(size + block_bytes - 1) / block_bytes",
        "size / block_bytes",
        "range: ends within a block",
    ),
    "range not limited": ("extent", "extents > ELASTIC_MAX_EXTENTS", "0", "range: more than the largest"),
    "target in 32 bits": (
        "extent",
        "u64 n = kib / ELASTIC_EXTENT_KIB;",
        "u32 n = kib / ELASTIC_EXTENT_KIB;",
        "target: extents that overflow 32 bits to one",
    ),
    "target one too large": ("extent", "n > r->nr_extents", "n > r->nr_extents + 1", "target: one extent too much"),
    "behind the last block": (
        "extent",
        "index >= (u64)r->nr_blocks",
        "index > (u64)r->nr_blocks",
        "find: behind the last block",
    ),
    "a drain needs no memory": (
        "state",
        '[ELASTIC_EV_DRAIN]  = ILLEGAL("drains a node that is absent")',
        "[ELASTIC_EV_DRAIN]  = TO(DRAINING)",
        "offline: drain is refused",
    ),
    "a residue is lost": (
        "state",
        "[ELASTIC_EV_STUCK]  = TO(RESIDUAL)",
        "[ELASTIC_EV_STUCK]  = TO(OFFLINE)",
        "draining: stuck is legal",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str, tmp_path: Path) -> None:
    noun, old, new, case = MUTANTS[mutant]
    text = (DRIVER / f"{noun}.c").read_text()
    assert text.count(old) == 1, f"{noun}.c has changed: {old!r}"
    source = tmp_path / f"{noun}.c"
    source.write_text(text.replace(old, new))
    done = run(build(noun, source, tmp_path / "mutant"), case)
    assert done.returncode == 1, f"{case!r} holds for a {noun}.c with this mistake"
