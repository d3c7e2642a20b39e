# SPDX-License-Identifier: GPL-2.0-only
"""guest_remove_range() of the hypervisor, compiled in user space against a small fake of what it calls.

Each case of mem_range_test.c is a test here. The mutants at the end show that the cases notice when the code is wrong.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.unit.xen.case_programs import assert_holds, mistaken, names, run

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "xen" / "overlay" / "xen"
SOURCE = OVERLAY / "common" / "mem_range.c"

_scratch = tempfile.TemporaryDirectory(prefix="mem_range_test.")


def gcc(*arguments: str | Path) -> None:
    """Compile or link, with the fake's headers before the hypervisor's own."""
    include: list[str | Path] = ["-I", HERE / "fake", "-I", OVERLAY / "include"]
    warnings = ["-Wall", "-Werror", "-DCONFIG_GUEST_REMOVE_RANGE"]
    subprocess.run(["gcc", "-std=gnu99", "-g", "-O1", *warnings, *include, *arguments], check=True)


@cache
def surroundings() -> tuple[Path, ...]:
    """The fake and the cases, compiled once."""
    objects = []
    for source in (HERE / "fake" / "fake.c", HERE / "mem_range_test.c"):
        objects.append(Path(_scratch.name) / f"{source.stem}.o")
        gcc("-c", "-o", objects[-1], source)
    return tuple(objects)


def build(source: Path, program: Path) -> Path:
    """One version of mem_range.c with the cases and the fake."""
    gcc("-o", program, source, *surroundings())
    return program


@cache
def program() -> Path:
    return build(SOURCE, Path(_scratch.name) / "mem_range_test")


@pytest.mark.parametrize("name", names(program))
def test_case(name: str) -> None:
    assert_holds(program(), name)


# What is replaced, by what, and a case that has to fail then.
MUTANTS = {
    "no undo of references": ("put_frames(pg, i);", "", "referenced frame, middle"),
    "undo of one too many": ("put_frames(pg, i);", "put_frames(pg, i + 1);", "referenced frame, middle"),
    "undo of one too few": ("put_frames(pg, i);", "put_frames(pg, i - 1);", "referenced frame, last"),
    "no undo when the p2m fails": (
        "put_frames(pg, 1UL << order);\n        return refuse(p2m);",
        "return refuse(p2m);",
        "no memory to split 1 GiB",
    ),
    "reference kept after a type check": (
        "    put_page(pg);\n\n    return false;",
        "    return false;",
        "pinned frame, first",
    ),
    "owner not checked": ("likely(page_get_owner(pg) == d) &&", "true &&", "foreign frame, middle"),
    "type not checked": ("#define TYPE_BUSY (", "#define TYPE_BUSY 0UL // (", "typed frame, last"),
    "reference count not checked": (
        "if ( cmpxchg(&pg->count_info, COUNT_OWNED, COUNT_TAKEN) != COUNT_OWNED )\n        return false;",
        "pg->count_info++;",
        "referenced frame, first",
    ),
    "p2m type not checked": ("type != p2m_ram_rw || !mfn_valid(mfn)", "!mfn_valid(mfn)", "foreign"),
    "order of the entry not checked": ("cur_order < order ||", "", "split"),
    "alignment not checked": ("return !(gfn_x(gfn) & ((1UL << order) - 1));", "return true;", "misaligned by half"),
    "domain looked at once only": (
        "    if ( unlikely(!domain_supported(d)) )\n        return refuse(domain);\n",
        "",
        "log-dirty begins while waiting for the lock",
    ),
    "no flush before the free": ("    p2m_tlb_flush_sync(p2m);\n", "", "2 MiB, caller holds the p2m lock"),
    "M2P kept": ("set_gpfn_from_mfn(mfn_x(mfn) + i, INVALID_M2P_ENTRY);", ";", "2 MiB"),
    "last M2P entry kept": (
        "i < (1UL << order); i++ )\n        set_gpfn",
        "i < (1UL << order) - 1; i++ )\n        set_gpfn",
        "2 MiB",
    ),
    "mapcache kept": ("    ioreq_request_mapcache_invalidate(d);\n", "", "2 MiB"),
    "busy frame forgotten": ("for ( ; i < nr; i++ )", "for ( i++; i < nr; i++ )", "referenced meanwhile, middle"),
    "only the first frames freed": ("i < unused; i++ )", "i + 1 < unused; i++ )", "referenced meanwhile, last"),
    "half-way taken for undone": ("            domain_crash(d);\n", "", "p2m update fails half-way"),
    "half-way taken for done": (
        "            domain_crash(d);\n        }\n\n        return false;",
        "            domain_crash(d);\n        }\n",
        "p2m update fails half-way",
    ),
    "freed under the lock": (
        "    put_gfn(d, gfn_x(gfn));\n\n    if ( rc )\n        return rc;\n\n    release_frames(pg, order);",
        "    if ( !rc )\n        release_frames(pg, order);\n    put_gfn(d, gfn_x(gfn));\n    if ( rc )\n"
        "        return rc;",
        "2 MiB",
    ),
    "switch ignored": ("unlikely(!ACCESS_ONCE(opt_guest_remove_range))", "0", "switched off"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str, tmp_path: Path) -> None:
    old, new, case = MUTANTS[mutant]
    done = run(build(mistaken(SOURCE, old, new, tmp_path), tmp_path / "mutant"), case)
    assert done.returncode == 1, f"{case} passed"
