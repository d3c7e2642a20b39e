# SPDX-License-Identifier: GPL-2.0-only
"""guest_remove_range() and guest_remove_ranges() of the hypervisor, compiled in user space against a small fake.

And the hooks that call them, and have NPT put off its flushes. Each case of mem_range_test.c, mem_ranges_test.c and
decrease_test.c is a test here. The mutants at the end show that the cases notice when the code is wrong.
"""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.unit.hook_texts import hook_headers
from tests.unit.xen.case_programs import assert_holds, mistaken, names, run

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "xen" / "overlay" / "xen"
SOURCE = OVERLAY / "common" / "mem_range.c"

HOOKS = HERE.parents[2] / "xen" / "hooks"

ONE, SEVERAL, LIST = "mem_range_test", "mem_ranges_test", "decrease_test"
# Those whose text is part of the fake and of the cases.
NUMBERS = ("0003", "0014", "0030")

_scratch = tempfile.TemporaryDirectory(prefix="mem_range_test.")


def hook_of(number: str) -> Path:
    """A hook, by its number."""
    (hook,) = HOOKS.glob(f"{number}-*.patch")
    return hook


@cache
def hooks() -> Path:
    """The texts of the hooks, as headers."""
    folder = Path(_scratch.name) / "hooks"
    for number in NUMBERS:
        hook_headers(folder, number, hook_of(number).read_text(encoding="utf-8"))
    return folder


def gcc(*arguments: str | Path) -> None:
    """Compile or link, with the fake's headers before the hypervisor's own."""
    include: list[str | Path] = ["-I", HERE / "fake", "-I", HERE, "-I", OVERLAY / "include", "-I", hooks()]
    warnings = ["-Wall", "-Werror", "-DCONFIG_GUEST_REMOVE_RANGE"]
    subprocess.run(["gcc", "-std=gnu99", "-g", "-O1", *warnings, *arguments, *include], check=True)


@cache
def surroundings(cases: str) -> tuple[Path, ...]:
    """The fake and a file of cases, compiled once."""
    objects = []
    for source in (HERE / "fake" / "fake.c", HERE / f"{cases}.c"):
        objects.append(Path(_scratch.name) / f"{source.stem}.o")
        gcc("-c", "-o", objects[-1], source)
    return tuple(objects)


def build(source: Path, program: Path, cases: str) -> Path:
    """One version of mem_range.c with its cases and the fake."""
    gcc("-o", program, source, *surroundings(cases))
    return program


@cache
def program() -> Path:
    return build(SOURCE, Path(_scratch.name) / ONE, ONE)


@cache
def batches() -> Path:
    return build(SOURCE, Path(_scratch.name) / SEVERAL, SEVERAL)


@cache
def hypercalls() -> Path:
    return build(SOURCE, Path(_scratch.name) / LIST, LIST)


@pytest.mark.parametrize("name", names(program))
def test_case(name: str) -> None:
    assert_holds(program(), name)


@pytest.mark.parametrize("name", names(batches))
def test_case_of_several(name: str) -> None:
    assert_holds(batches(), name)


@pytest.mark.parametrize("name", names(hypercalls))
def test_case_of_a_list(name: str) -> None:
    assert_holds(hypercalls(), name)


# What is replaced, by what, and a case that has to fail then.
MUTANTS = {
    "no undo of references": ("put_frames(pg, i);", "", "referenced frame, middle"),
    "undo of one too many": ("put_frames(pg, i);", "put_frames(pg, i + 1);", "referenced frame, middle"),
    "undo of one too few": ("put_frames(pg, i);", "put_frames(pg, i - 1);", "referenced frame, last"),
    "no undo when the p2m fails": (
        "put_frames(pg, 1UL << order);\n        return refuse_extent(p2m);",
        "return refuse_extent(p2m);",
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
        "    if ( unlikely(!domain_supported(d)) )\n        return refuse_extent(domain);\n",
        "",
        "log-dirty begins while waiting for the lock",
    ),
    "no flush before the free": (
        "false;\n    p2m_tlb_flush_sync(p2m);\n",
        "false;\n",
        "2 MiB, caller holds the p2m lock",
    ),
    "nothing flushed if nothing leaves": (
        "    p2m_tlb_flush_sync(p2m);\n\n    for ( n = 0;",
        "    if ( nr )\n        p2m_tlb_flush_sync(p2m);\n\n    for ( n = 0;",
        "several: the first fails after a split, caller's lock",
    ),
    "one extent asked about what batches are": (
        "if ( !alone && !batch_supported(d) )",
        "if ( !batch_supported(d) )",
        "2 MiB, DSM",
    ),
    "another type taken for undone": (
        "mfn) ||\n         type != p2m_ram_rw )",
        "mfn) )",
        "p2m update leaves another type",
    ),
    "another access left": (
        "                               p2m->default_access)",
        "                               p2m_access_rwx)",
        "2 MiB, another default access",
    ),
    "the lock of a p2m that is not there": (
        "    if ( !domain_supported(d) )\n        return refuse(domain);\n\n    if ( !extent",
        "    if ( !extent",
        "not translated",
    ),
    "several: the lock of a p2m that is not there": (
        "|| !domain_supported(d) )\n        return 0;",
        ")\n        return 0;",
        "several: not translated",
    ),
    "mapcache asked for nothing": ("    if ( nr )\n        ioreq", "    ioreq", "several: DSM"),
    "M2P kept": ("set_gpfn_from_mfn(mfn + i, INVALID", "set_gpfn_from_mfn(mfn, INVALID", "2 MiB"),
    "last M2P entry kept": (
        "i < (1UL << order); i++ )\n            set_gpfn",
        "i < (1UL << order) - 1; i++ )\n            set_gpfn",
        "2 MiB",
    ),
    "mapcache kept": ("        ioreq_request_mapcache_invalidate(d);\n", "        ;\n", "2 MiB"),
    "busy frame forgotten": ("for ( ; i < nr; i++ )", "for ( i++; i < nr; i++ )", "referenced meanwhile, middle"),
    "only the first frames freed": ("i < unused; i++ )", "i + 1 < unused; i++ )", "referenced meanwhile, last"),
    "half-way taken for undone": ("        domain_crash(d);\n", "", "p2m update fails half-way"),
    "half-way taken for done": (
        "        p2m_tlb_flush_sync(p2m);\n    }\n\n    return false;",
        "        p2m_tlb_flush_sync(p2m);\n    }\n\n    return true;",
        "p2m update fails half-way",
    ),
    "freed under the lock": (
        "    put_gfn(d, gfns[0]);\n\n    release_superpages(pgs, done, order);\n",
        "    release_superpages(pgs, done, order);\n    put_gfn(d, gfns[0]);\n",
        "2 MiB",
    ),
    "switch ignored": ("unlikely(!ACCESS_ONCE(opt_guest_remove_range))", "0", "switched off"),
    "a refusal not counted": ("const bool alone = nr == 1;", "const bool alone = false;", "split"),
    "one extent is put off, too": ("put_off_flush = nr > 1;", "put_off_flush = nr > 0;", "2 MiB, nested virtualisation"),
    # Several at once.
    "flushed one by one": ("put_off_flush = nr > 1;", "put_off_flush = false;", "several: 8 extents, one flush"),
    "put off for good": ("    p2m->put_off_flush = false;\n", "", "several: 8 extents, one flush"),
    "the unlock has to flush": (
        "false;\n    p2m_tlb_flush_sync(p2m);\n",
        "false;\n",
        "several: the caller holds the p2m lock",
    ),
    "freed before the flush": (
        "    flush_superpages(d, pgs, done, order);\n    put_gfn(d, gfns[0]);\n\n"
        "    release_superpages(pgs, done, order);\n",
        "    release_superpages(pgs, done, order);\n"
        "    flush_superpages(d, pgs, done, order);\n    put_gfn(d, gfns[0]);\n",
        "several: 8 extents, one flush",
    ),
    "each freed when it is unmapped": (
        "&pgs[done]) )\n            break;\n",
        "&pgs[done]) )\n            break;\n        else\n            release_superpages(&pgs[done], 1, order);\n",
        "several: 8 extents, one flush",
    ),
    "the reference dropped when it is unmapped": (
        "    *pgp = pg;\n",
        "    put_frames(pg, 1UL << order);\n    *pgp = pg;\n",
        "several: the domain dies as the third leaves",
    ),
    "the lock dropped between extents": (
        "    p2m->put_off_flush = nr > 1;\n",
        "    put_gfn(d, gfns[0]);\n    p2m->put_off_flush = nr > 1;\n",
        "several: 8 extents, one flush",
    ),
    "the reference dropped with the update half-way": (
        "        p2m_tlb_flush_sync(p2m);\n    }\n",
        "    }\n",
        "several: the update of the third fails half-way",
    ),
    "M2P of the first only": ("for ( n = 0; n < nr; n++ )", "for ( n = 0; n < nr && !n; n++ )", "several: two"),
    "first extent forgotten": ("    for ( i = 0; i < unused; )", "    for ( i = 1; i < unused; )", "several: two"),
    "freed one by one": ("while ( block < MAX_BLOCK &&", "while ( 0 &&", "several: 8 extents, one flush"),
    "the heap lock held for 64 MiB": ("#define MAX_BLOCK 12U", "#define MAX_BLOCK 14U", "several: 32 are enough"),
    "not put in order": (
        "at && pgs[at - 1] > pg;",
        "at && pgs[at - 1] > pg && 0;",
        "several: from the last to the first",
    ),
    "a block with a hole": (
        " ||\n         pgs[n - 1] != pgs[0] + ((n - 1UL) << order) )",
        " )",
        "several: one is far away from the others",
    ),
    "a block of two nodes": (
        "        if ( page_to_nid(pgs[i]) != page_to_nid(pgs[0]) )\n            return false;",
        "        ;",
        "several: of two nodes",
    ),
    "a block whose ends are of one node": (
        "    for ( i = 1; i < n; i++ )\n        if ( page_to_nid",
        "    for ( i = n - 1; i < n; i++ )\n        if ( page_to_nid",
        "several: a frame of another node in between",
    ),
    "a block longer than the list": (
        "if ( n > nr || ",
        "if ( ",
        "several: the last is referenced after the flush",
    ),
    "a block that is not aligned": (
        "(mfn_x(page_to_mfn(pgs[0])) & ((1UL << block) - 1)) ||",
        "0 ||",
        "several: in the middle of the list",
    ),
    "busy ones freed with the others": (
        "if ( unlikely(!let_go(pg, order)) )\n            continue;\n",
        "let_go(pg, order);\n",
        "several: referenced before the flush",
    ),
    "goes on after one that is refused": (
        "detach_superpage(d, _gfn(gfns[done]), order, alone, &pgs[done]) )\n            break;",
        "detach_superpage(d, _gfn(gfns[done]), order, alone, &pgs[done]) )\n            continue;",
        "several: the third is in use",
    ),
    "refusals counted": (
        "perfc_add(range_refused_##why, alone)",
        "perfc_incr(range_refused_##why)",
        "several: the third is in use",
    ),
    "nothing is urgent": (
        "(done && hypercall_preempt_check()) ||",
        "",
        "several: something is urgent before the fourth",
    ),
    "no progress": ("(done && hypercall", "(hypercall", "several: something is urgent, but one leaves"),
    "no limit": ("#define BATCH 32U", "#define BATCH 64U", "several: 32 are enough"),
    "from the begin of the list": ("gfns, list, from, nr)", "gfns, list, 0, nr)", "several: in the middle of the list"),
    "unreadable list": (
        "if ( __copy_from_guest_offset(gfns, list, from, nr) )",
        "if ( __copy_from_guest_offset(gfns, list, from, nr) && !nr )",
        "several: unreadable list",
    ),
    "one at once": ("return i < 2 ? 0 :", "return i < 1 ? 0 :", "several: one is none"),
    "alignment of the first only": (
        "            break;\n\n    return i < 2",
        "            break;\n    i = nr;\n\n    return i < 2",
        "several: the second is misaligned",
    ),
    "1 GiB in a batch": ("order != PAGE_ORDER_2M || tb", "tb", "several: 1 GiB"),
    "a trace without extents": ("|| tb_init_done ||", "||", "several: traced"),
    "switch ignored by several": (
        "         !ACCESS_ONCE(opt_guest_remove_range) || ",
        "         ",
        "several: switched off",
    ),
    "DSM not asked": ("!dsm_enabled(d) && ", "", "several: DSM"),
    "populate on demand not asked": ("!p2m_get_hostp2m(d)->pod.entry_count &&", "", "several: populate on demand"),
    "nested p2ms not followed": (
        "           !nestedhvm_enabled(d);",
        "           true;",
        "several: nested virtualisation",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str, tmp_path: Path) -> None:
    old, new, case = MUTANTS[mutant]
    cases = SEVERAL if case.startswith("several: ") else ONE
    done = run(build(mistaken(SOURCE, old, new, tmp_path), tmp_path / "mutant", cases), case)
    assert done.returncode == 1, f"{case} passed"


# The same in the hooks: the hook first.
MISTAKES = {
    "those of a batch once more": ("0003", "i += gone - 1;", "i += 0;", "40 extents: two batches"),
    "one behind a batch stays": ("0003", "i += gone - 1;", "i += gone;", "40 extents: two batches"),
    "the last one of a batch once more": (
        "0003",
        "            i += gone - 1;\n+            continue;",
        "            i += gone - 1;",
        "40 extents: two batches",
    ),
    "one in a batch of one stays": ("0003", "if ( gone )", "if ( gone > 1 )", "something is always urgent: one for each call"),
    "each batch from the begin of the list": (
        "0003",
        "a->extent_list, i, a->nr_extents,",
        "a->extent_list, a->nr_done, a->nr_extents,",
        "40 extents: two batches",
    ),
    "none by itself": ("0003", "continue;\n+\n         /*", "goto out;\n+\n         /*", "the last one"),
    "4 KiB for a superpage": ("0003", "a->extent_order &&", "true &&", "4 KiB: page by page"),
    "on demand, and whole": ("0003", "!pod_done && a", "a", "one is populated on demand"),
    "whole, and page by page": (
        "0003",
        "a->extent_order) )\n+            continue;",
        "a->extent_order) )\n+            ;",
        "the last one",
    ),
    "what is elsewhere is removed here": (
        "0030",
        "case 1:\n+            continue;\n+        case -ERESTART",
        "case 1:\n+            break;\n+        case -ERESTART",
        "DSM: one is homed elsewhere",
    ),
    "what is waited for is done": ("0030", "            a->preempted = 1;\n", "            ;\n", "DSM: one is waited for"),
    "what does not come is removed": (
        "0030",
        "goto out;\n+        default:\n+            goto out;",
        "goto out;\n+        default:\n+            break;",
        "DSM: one does not come",
    ),
    "NPT: a flush that is put off is forgotten": (
        "0014",
        "        p2m->need_flush = true;",
        "        ;",
        "several: 8 extents, one flush",
    ),
    "NPT: each is flushed besides": ("0014", "    else if ( oflags", "    if ( oflags", "several: 8 extents, one flush"),
    "NPT: all are put off": (
        "0014",
        "(oflags & _PAGE_PRESENT) && p2m->put_off_flush",
        "oflags & _PAGE_PRESENT",
        "2 MiB",
    ),
    "NPT: what is put off flushes nothing": (
        "0014",
        "    guest_flush_tlb_mask(p2m->domain, p2m->domain->dirty_cpumask);",
        "    ;",
        "several: 8 extents, one flush",
    ),
    "NPT: nobody to flush": ("0014", "    p2m->tlb_flush = hap_p2m_tlb_flush;", "    ;", "several: 8 extents, one flush"),
    "NPT: flushes that are not counted": (
        "0014",
        "    perfc_incr(p2m_flushes);\n+    guest",
        "    guest",
        "several: 8 extents, one flush",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_mistake_is_noticed(mistake: str, tmp_path: Path) -> None:
    number, old, new, case = MISTAKES[mistake]
    headers = hook_headers(tmp_path, number, mistaken(hook_of(number), old, new, tmp_path).read_text(encoding="utf-8"))
    cases = SEVERAL if case.startswith("several: ") else LIST if number != "0014" else ONE
    built = tmp_path / "mutant"
    gcc("-Wno-unused-function", "-I", headers, "-o", built, HERE / "fake" / "fake.c", HERE / f"{cases}.c", SOURCE)
    assert run(built, case).returncode not in (0, 2), f"{case} passed"
