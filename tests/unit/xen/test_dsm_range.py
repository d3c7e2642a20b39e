# SPDX-License-Identifier: GPL-2.0-only
"""DSM that begins while superpages leave: mem_range.c and what is behind the commands, in one program of dsm_range_test.c."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.unit.xen.case_programs import assert_holds, names
from tests.unit.xen.test_dsm_hypervisor import COMMANDS, FAKE, HERE, OVERLAY, assert_noticed, compiled, gcc

RANGES = OVERLAY / "common" / "mem_range.c"
CASES = HERE / "dsm_range_test.c"
_scratch = tempfile.TemporaryDirectory(prefix="dsm_range.")


def build(built: Path, source: Path = RANGES, checked: bool = True) -> Path:
    """One version of mem_range.c with its cases."""
    parts = [built.with_suffix(f".{file.stem}.o") for file in (source, CASES)]
    for part, file in zip(parts, (source, CASES), strict=True):
        gcc("-DCONFIG_GUEST_REMOVE_RANGE", "-include", FAKE / "fake_range.h", "-c", "-o", part, file, checked=checked)
    files = (*COMMANDS, FAKE / "fake_dsm.c")
    gcc("-o", built, *parts, *(compiled(file, checked) for file in files), checked=checked)
    return built


@cache
def program() -> Path:
    return build(Path(_scratch.name) / "dsm_range_test")


@pytest.mark.parametrize("name", names(program))
def test_case(name: str) -> None:
    assert_holds(program(), name)


# What is replaced, by what, and the case that fails then.
MUTANTS = {
    "a batch is asked about DSM by nobody": ("!dsm_enabled(d) && ", "", "DSM has begun: no batch"),
    "a superpage of which a page is away": (
        "cur_order < order ||",
        "",
        "DSM begins in a batch: what has not left is DSM's",
    ),
    "the lock is dropped between two": (
        "    p2m->put_off_flush = nr > 1;\n",
        "    put_gfn(d, gfns[0]);\n    p2m->put_off_flush = nr > 1;\n",
        "DSM begins as the third of a batch leaves",
    ),
    "free before the flush": (
        "    flush_superpages(d, pgs, done, order);\n    put_gfn(d, gfns[0]);\n\n"
        "    release_superpages(pgs, done, order);\n",
        "    release_superpages(pgs, done, order);\n"
        "    flush_superpages(d, pgs, done, order);\n    put_gfn(d, gfns[0]);\n",
        "DSM begins as the last of a batch leaves",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str) -> None:
    assert_noticed(RANGES, MUTANTS[mutant], build)
