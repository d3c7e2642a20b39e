# SPDX-License-Identifier: GPL-2.0-only
"""Files of the guest's elastic NUMA driver, compiled in user space: the pure ones, and its operations on a simulated machine.

And what dom0's netback has of us, on a queue that is played, timers of isolated CPUs, and what other hooks keep ticks from.

Each case of the *_test.c here is a test. The mutants at the end are versions of the driver with one mistake each: a case has
to notice.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.unit.hook_texts import hook_headers

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "linux-guest" / "overlay"
DRIVER = OVERLAY / "drivers" / "xen" / "elastic-numa"
MM = OVERLAY / "mm"
NETBACK = OVERLAY / "drivers" / "net" / "xen-netback"
XENBUS = OVERLAY / "drivers" / "xen" / "xenbus"
# Whose parser says at each moment whether what the guest says can be.
LIBXL = HERE.parents[2] / "toolstack" / "overlay" / "tools" / "libs" / "light"
HOOKS = HERE.parents[2] / "linux-guest" / "hooks"
MASK = OVERLAY / "include" / "linux" / "draining_nodes.h"
HOME_OP = OVERLAY / "include" / "xen" / "home-op.h"
XENBUS_BATCH = OVERLAY / "include" / "xen" / "xenbus_batch.h"
TAKE_FREE = OVERLAY / "include" / "linux" / "take_free.h"
# What runs on the simulated machine.
OPERATIONS = ("engine", "op", "node", "room", "draining", "report", "mem", "balloon", "state", "extent", "text")
# Each NAME_test.c, and the files of the driver that it is compiled with.
PROGRAMS = {
    "state": ("state",),
    "extent": ("extent",),
    "page": ("page",),
    "text": ("text",),
    "range": ("range", "extent"),
    "topodev": ("topodev", "extent"),
    "store": ("store", "extent", "state"),
    "cpu": ("cpu", "pm"),
    "evac": ("evac", "residue", "extent", "text"),
    "draining": (),
    "reserve": ("reserve",),
    "take_free": ("take_free",),
    "eagain": ("eagain",),
    "xenbus_batch": ("xenbus_batch",),
    "tmigr": (),
    "mm_cid": (),
    "orphans": (),
    "online_node": (),
    "offline": (),
    "engine": ("engine",),
    "driver": OPERATIONS,
    "requests": (*OPERATIONS, "store", "libxl_vnode_keys"),
}

# What runs on fake_kernel.h.
IN_KERNEL = ("range", "topodev", "store", "cpu", "evac", "draining", "reserve", "take_free", "eagain", "xenbus_batch", "tmigr",
             "mm_cid", "orphans", "online_node", "offline", "engine", "driver", "requests")
# What only one of them has of it.
FAKES = {"evac": "-DFAKE_FOLIOS", "take_free": "-DFAKE_BUDDY", "xenbus_batch": "-DFAKE_XENBUS"}

_scratch = tempfile.TemporaryDirectory(prefix="elastic_numa_test.")


def fake_headers(folder: Path, sources: list[Path], real: dict[str, Path]) -> Path:
    """Make every kernel header that the sources include and user space has not, out of fake_kernel.h, but for those of ours."""
    for source in sources:
        for name in re.findall(
            r"^#include [<\"]((?:linux/|asm/|xen/|internal\.h|common\.h|xenbus\.h)[^>\"]*)", source.read_text(), re.MULTILINE
        ):
            if name != "linux/errno.h" and not (OVERLAY / "include" / "uapi" / name).exists():
                header = folder / name
                header.parent.mkdir(parents=True, exist_ok=True)
                own = real.get(name, "fake_kernel.h")
                header.write_text(f'#include "{own}"\n')
    return folder


# The hooks whose text is part of a test, which includes it as hook-HOOK-FILE-N.h: what it adds at its Nth place in FILE.c.
HOOKS_OF = {
    "eagain": ("0305", "0306", "0307"), "tmigr": ("0303",), "mm_cid": ("0310",), "orphans": ("0311",), "online_node": ("0315",),
    "offline": ("0113", "0114", "0115"),
}  # fmt: skip


def hook_of(number: str) -> Path:
    """A hook, by its number."""
    (hook,) = HOOKS.glob(f"{number}-*.patch")
    return hook


# fmt: off
COMPILE = ["gcc", "-std=gnu11", "-g", "-O1", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-sign-compare", "-Werror",
           "-Wno-missing-field-initializers", "-pthread"]
# fmt: on


def file_of(noun: str) -> Path:
    """A file of the driver, or what others have in their folders, or a hook."""
    if noun.isdigit():
        return hook_of(noun)
    folders = {"take_free": MM, "eagain": NETBACK, "xenbus_batch": XENBUS, "libxl_vnode_keys": LIBXL}
    return folders.get(noun, DRIVER) / f"{noun}.c"


def sources(name: str) -> dict[str, Path]:
    """What a test is compiled of: its files of the driver, itself, and where it needs one a machine."""
    files = {noun: file_of(noun) for noun in PROGRAMS[name]}
    if PROGRAMS[name][: len(OPERATIONS)] == OPERATIONS:
        files["machine"] = HERE / "machine.c"
    return {**files, f"{name}_test": HERE / f"{name}_test.c"}


@cache
def include(name: str) -> list[str]:
    """Where a test finds its headers."""
    folders = [HERE / "fake", DRIVER, OVERLAY / "include" / "uapi"]
    if name in IN_KERNEL:
        real = {"xen/home-op.h": HOME_OP, "xen/xenbus_batch.h": XENBUS_BATCH}
        if name == "take_free":
            real["linux/take_free.h"] = TAKE_FREE
        if name == "eagain":
            real["common.h"] = HERE / "fake_netback.h"
        headers = fake_headers(
            Path(_scratch.name) / f"{name}-headers",
            [DRIVER / "elastic.h", MASK, HOME_OP, XENBUS_BATCH, *sources(name).values()],
            real,
        )
        for number in HOOKS_OF.get(name, ()):
            hook_headers(headers, number, hook_of(number).read_text())
        folders = [HERE, headers, *folders, *([NETBACK] if name == "eagain" else []), *([LIBXL] if name == "requests" else [])]
    return [f"-I{folder}" for folder in folders] + [word for noun, word in FAKES.items() if noun == name]


def compiled(name: str, source: Path, target: Path, *first: str) -> Path:
    """One object file of a test, with other headers first."""
    subprocess.run([*COMPILE, *first, *include(name), "-c", "-o", target, source], check=True)
    return target


@cache
def objects(name: str) -> dict[str, Path]:
    """The object files of a test."""
    folder = Path(_scratch.name) / name
    folder.mkdir()
    return {noun: compiled(name, source, folder / f"{noun}.o") for noun, source in sources(name).items()}


def build(name: str, folder: Path, instead: dict[str, Path] | None = None) -> Path:
    """Link a test with its files of the driver, or with other versions of them."""
    files = dict(objects(name))
    for noun, source in (instead or {}).items():
        target = folder / f"{noun}.o"
        if noun.isdigit():
            first = f"-I{hook_headers(folder / 'hooks', noun, source.read_text())}"
            files[f"{name}_test"] = compiled(name, HERE / f"{name}_test.c", target, first)
        else:
            files[noun] = compiled(name, source, target)
    test = folder / f"{name}_test"
    subprocess.run(["gcc", "-pthread", "-o", test, *files.values()], check=True)
    return test


@cache
def program(name: str) -> Path:
    return build(name, Path(_scratch.name))


def run(test: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([test, name], capture_output=True, text=True, errors="replace", timeout=120, check=False)


@cache
def names() -> list[tuple[str, str]]:
    """The cases; for a file that does not compile, one that says so."""
    found: list[tuple[str, str]] = []
    for noun in PROGRAMS:
        try:
            found += [(noun, name) for name in run(program(noun), "--list").stdout.splitlines()]
        except subprocess.CalledProcessError:
            found.append((noun, f"{noun}_test.c compiles"))
    return found


# Where a hook's line stands is not in its header, which has what is new alone: these stand beside lines of Linux's own.
BESIDE = {
    "drained before pages move": ("0113", "+\t\t\t\tdrain_lru_once(&lru_drained);\n \t\t\t\tdo_migrate_range(pfn, end_pfn);\n"),
    "drained behind the look": (
        "0113", " \t\tret = test_pages_isolated(start_pfn, end_pfn, MEMORY_OFFLINE);\n+\t\tif (ret)\n"
    ),
    "drained before isolation": ("0113", "+\t\tdrain_lru_once(&lru_drained);\n \n \t/* set above range as isolated */\n"),
    "asked before it is cleared": ("0115", "+\tcontiguous = zone->contiguous;\n \tclear_zone_contiguous(zone);\n"),
    "looked at behind the zone's new end": ("0115", " \tupdate_pgdat_span(pgdat);\n \n"),
}  # fmt: skip


@pytest.mark.parametrize("place", BESIDE)
def test_a_hook_is_in_its_place(place: str) -> None:
    number, lines = BESIDE[place]
    assert lines in hook_of(number).read_text()


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
    "stuck blocks add up": (
        "node",
        "last && elastic_block_in_use(node, block, false)",
        "0",
        "driver: late blocks leave",
    ),
    "stuck blocks that nobody sees add up": (
        "node",
        "\t\tif (last)\n\t\t\treturn false;\n",
        "",
        "driver: stuck blocks that nobody sees do not add up",
    ),
    "what failed costs nothing": (
        "node",
        "*budget_ms -= min(*budget_ms, spent);",
        "(void)spent;",
        "driver: stuck blocks do not add up",
    ),
    "slow memory has no longer": (
        "node",
        "BLOCK_MS) +\n\t\t\t\t   more);",
        "BLOCK_MS));",
        "driver: slow memory leaves",
    ),
    "the time of slow memory is that of failures": (
        "node",
        "\tspent -= min(spent, more);\n",
        "",
        "driver: slow memory and one that is stuck",
    ),
    "slow memory is waited for without a limit": (
        "node",
        "min(LOOKS * elastic_block_look(node, block), LOOKS_MOST_MS)",
        "LOOKS * elastic_block_look(node, block)",
        "driver: slow memory has a limit",
    ),
    "nobody is waited for": (
        "node",
        "clamp(*budget_ms, GLANCE_MS, BLOCK_MS)",
        "0",
        "driver: one stuck block is waited for",
    ),
    "nobody looks for room": (
        "op",
        "!READ_ONCE(op.cancel) && elastic_no_room(op.node)",
        "0",
        "driver: the guest grows at each step of a detach",
    ),
    "out of memory is nobody's mistake": (
        "node",
        "if (!elastic_out_of_memory())",
        "if (1)",
        "driver: the guest grows at each step of a detach",
    ),
    "the killer is not held": (
        "op",
        "*(unsigned long *)freed += pages;",
        "(void)pages;",
        "driver: an isolated block comes back",
    ),
    "whoever is out of memory calls a drain off": (
        "op",
        "node && elastic_is_to_blame(node)",
        "node",
        "driver: out of memory for another reason",
    ),
    "cache is room for who is out of memory": (
        "room",
        "pages_elsewhere(node->nid, false)",
        "pages_elsewhere(node->nid, true)",
        "driver: out of memory beside cache",
    ),
    "a shrink is to blame for nothing": (
        "room",
        "return take && take >= pages_elsewhere(NUMA_NO_NODE, false);",
        "return take && 0;",
        "driver: out of memory at each step of a shrink",
    ),
    "the ticker is waited for": (
        "op",
        "\tif (op.cancel)\n\t\tinterrupt_engine();\n\tspin_unlock_bh",
        "\tspin_unlock_bh",
        "driver: called off before an attempt",
    ),
    "hollow blocks stay in a residue": (
        "node",
        "\tdrop_hollow_blocks(node, 0, &budget);\n}",
        "}",
        "driver: hollow blocks leave",
    ),
    "a node of hollow blocks stays": (
        "node",
        "\tif (has_blocks(node))\n\t\treturn leave_residue(node, -EBUSY);",
        "\tif (has_blocks(node) || node->range.nr_blocks)\n\t\treturn leave_residue(node, -EBUSY);",
        "driver: a hollow node leaves",
    ),
    "who is bound to the node is killed": (
        "op",
        "if (node && current != engine)",
        "if (node && current != engine && op.out_of_memory)",
        "driver: out of memory for another reason",
    ),
    "the killer is held for ever": (
        "op",
        "time_before(jiffies, op.held_since + OOM_HOLD) ? pages : 0",
        "pages",
        "driver: the killer is held for a while",
    ),
    "the killer is held once": (
        "op",
        "\top.held = false;\n\top.deadline",
        "\top.deadline",
        "driver: the killer is held for a while",
    ),
    "the engine waits for itself": (
        "op",
        " && current != engine",
        "",
        "driver: the engine itself is out of memory",
    ),
    "no time limit without xenstore": (
        "op",
        "mod_timer(&watchdog, op.deadline);",
        "(void)watchdog;",
        "driver: a xenstore that stalls",
    ),
    "the balloon tries for ever": (
        "balloon",
        "*budget_ms -= min(*budget_ms, spent);",
        "(void)spent;",
        "driver: the balloon has a limit",
    ),
    "the allocator's key stays on": (
        "draining",
        "\t\tstatic_branch_dec(&draining_key);\n",
        "",
        "driver: attach and detach",
    ),
    "called off, and kept from programs": (
        "node",
        "{\n\telastic_set_draining(node, false);\n\ttransition(node, ELASTIC_EV_GROW);",
        "{\n\ttransition(node, ELASTIC_EV_GROW);",
        "driver: a detach is called off at each step",
    ),
    "a vCPU has memory": (
        "node",
        "if (rc || strays)",
        "if (strays)",
        "driver: a vCPU comes back as the node leaves",
    ),
    "refused extents are never tried again": (
        "node",
        "strays = elastic_release_strays(node);",
        "strays = elastic_populated(node);",
        "driver: extents that Xen refused leave later",
    ),
    "refused extents are asked for again": (
        "mem",
        "u32 next = find_next_bit(node->populated, end, first);",
        "u32 next = end;",
        "driver: extents that Xen refused are used again",
    ),
    "memory from any host": (
        "mem",
        "rc = xen_home_memory_op(cmd, &r);",
        "rc = HYPERVISOR_memory_op(cmd, &r);",
        "driver: on a CPU of another host",
    ),
    "refused extents count twice": (
        "node",
        "missing -= !test_bit(extent, node->populated);",
        "missing--;",
        "driver: what Xen keeps within what comes",
    ),
    "memory of the kernel before is kept": (
        "mem",
        "ELASTIC_EXTENT_ORDER) == 1)",
        "0) == 1)",
        "driver: memory of the kernel before a kexec",
    ),
    "nobody asks whether there is room": (
        "node",
        "int rc = check_detach(node);",
        "int rc = 0 & check_detach(node);",
        "room: a page too little",
    ),
    "there is always room": ("node", "if (need <= room)", "if (need <= room || 1)", "room: a page too little"),
    "a node that leaves has room": (
        "room",
        "if (other == nid || node_isset(other, draining))",
        "if (other == nid)",
        "room: the other node leaves, too",
    ),
    "cache must be moved": (
        "room",
        "return used - min(used, cache_pages(nid));",
        "return used;",
        "room: cache need not be moved",
    ),
    "cache elsewhere stays": (
        "room",
        "pages += cache_pages(other) / 2;",
        "pages += 0;",
        "room: half of the cache elsewhere",
    ),
    "a drain is given up early": (
        "node",
        "#define DRAIN_MS\t30000U",
        "#define DRAIN_MS\t10000U",
        "driver: time limits",
    ),
    "a block holds the lock for long": (
        "node",
        "#define BLOCK_MS\t10000U",
        "#define BLOCK_MS\t30000U",
        "driver: time limits",
    ),
    "a drain has one try": ("node", "try < 2", "try < 1", "driver: time limits"),
    "draining is no news": (
        "node",
        "elastic_topo_publish(XTOPO_DRAINING, true)",
        "elastic_topo_publish(XTOPO_DRAINING, false)",
        "driver: what programs and Xen are told",
    ),
    "nothing is kept for page tables": ("reserve", "/ RESERVE_RATIO", "/ RESERVE_RATIO * 0", "reserve: terabytes"),
    "movable memory is relief": ("reserve", "if (!is_for_the_kernel(zone))", "if (0)", "reserve: relief"),
    "what a zone keeps already is lost": (
        "reserve",
        "lowmem_reserve[ZONE_MOVABLE] +=",
        "lowmem_reserve[ZONE_MOVABLE] =",
        "reserve: zones",
    ),
    "a boost stays": ("reserve", "zone->watermark_boost = 0;", "", "reserve: relief"),
    "lists are not drained": ("reserve", "	drain_all_pages(NULL);", "", "reserve: relief"),
    "no relief": (
        "op",
        "pages = elastic_reserve_relief();",
        "pages = 0;",
        "driver: out of memory, and some can be had",
    ),
    "each zone keeps it all": ("reserve", "* zone / home", "", "reserve: by the size of the zones"),
    "a small home is all reserve": ("reserve", "zone / ZONE_PART", "zone", "reserve: a large node, a small home"),
    "no grace": (
        "node",
        "elastic_topo_wait_acks(version, node->grace_ms)",
        "elastic_topo_wait_acks(version, 0)",
        "driver: what programs and Xen are told",
    ),
    "growth is not told": (
        "node",
        "\telastic_topo_publish(XTOPO_GROWING, false);\n",
        "",
        "driver: what programs and Xen are told",
    ),
    "an error stays": ("node", "\tnode->error[0] = '\\0';\n\tpr_info", "\tpr_info", "driver: errors"),
    "the last error counts": (
        "report",
        "\tif (first && (!too || strstr(node->error, text)))\n\t\treturn;\n",
        "",
        "driver: errors",
    ),
    "bytes of others": ("report", "\telastic_text_clean(text);\n", "", "driver: errors"),
    "nonsense is a target": ("node", "\tif (node->bad_target)\n\t\treturn true;\n", "", "driver: errors"),
    "a failed growth keeps what it got": (
        "node",
        "\t\tundo_growth(node, before);\n",
        "\t\tundo_growth(node, ~0U);\n",
        "failure: a block cannot be added",
    ),
    "an undone growth is not told": (
        "node",
        "\ttransition(node, ELASTIC_EV_UNDONE);\n\tpublish_stable();\n",
        "\ttransition(node, ELASTIC_EV_UNDONE);\n",
        "failure: a block cannot be added",
    ),
    "a block comes with less than its struct pages": (
        "node",
        "*want = max(*want, memmap);",
        "",
        "driver: between two blocks",
    ),
    "nobody gives for struct pages": (
        "node",
        "rc = more ? take_memory_to_target(node, elastic_populated(node) - more) : 0;",
        "rc = 0;",
        "driver: between two blocks",
    ),
    "others give for struct pages that have memory": (
        "node",
        "more += !test_bit(first + extent, node->populated);",
        "more += !!(first + 1);",
        "driver: what Xen keeps of struct pages",
    ),
    "what Xen keeps behind what comes comes once more": (
        "node",
        "want = extents_for(node, block, target - elastic_populated(node));",
        "want = min(target - elastic_populated(node) + elastic_block_populated(node, block),\n"
        "\t\t\t   extents_for(node, block, ~0U));",
        "driver: what Xen keeps behind what comes",
    ),
    "another size is a failure of struct pages": (
        "node",
        "if (rc && rc != -ECANCELED)\n\t\telastic_node_error(node, rc,\n\t\t\t\t   \"the last",
        "if (rc)\n\t\telastic_node_error(node, rc,\n\t\t\t\t   \"the last",
        "driver: between two blocks, and another size",
    ),
    "sizes are not asked for their struct pages": (
        "extent",
        "if (last && last < r->memmap_extents)",
        "if (last && 0)",
        "target: a large block and one extent",
    ),
    "struct pages alone are too few": (
        "extent",
        "if (last && last < r->memmap_extents)",
        "if (last && last <= r->memmap_extents)",
        "target: struct pages alone",
    ),
    "whole blocks are too few": (
        "extent",
        "if (last && last < r->memmap_extents)",
        "if (last < r->memmap_extents)",
        "target: a large block",
    ),
    "too little for struct pages is no multiple": (
        "store",
        "if (rc == -EDOM) {",
        "if (0) {",
        "store: a block with less than its struct pages",
    ),
    "a hollow block leaves whatever has to": (
        "node",
        "(left >= target ||",
        "(left ||",
        "driver: a hollow block leaves late",
    ),
    "no hollow block leaves for just enough holes": (
        "node",
        "left + elastic_balloon_holes(node, block) >= target);",
        "left + elastic_balloon_holes(node, block) > target);",
        "driver: a hollow block, and holes",
    ),
    "a hollow block leaves only for holes": (
        "node",
        "(left >= target ||\n\t\tleft + elastic_balloon_holes(node, block) >= target);",
        "elastic_balloon_holes(node, block) &&\n\t\tleft + elastic_balloon_holes(node, block) >= target;",
        "driver: a hollow block, struct pages of 16 extents",
    ),
    "holes are nobody's": (
        "node",
        "left + elastic_balloon_holes(node, block) >= target);",
        "false);",
        "driver: a hollow block, and holes",
    ),
    "the second of two hollow blocks leaves, too": (
        "node",
        "left + elastic_balloon_holes(node, block) >= target);",
        "populated <= elastic_populated(node) - target + elastic_balloon_holes(node, block));",
        "driver: one of two hollow blocks",
    ),
    "a hollow block has holes for itself": (
        "balloon",
        "if (block != but &&",
        "if (",
        "driver: a hollow block leaves late",
    ),
    "holes that are offline can be filled": (
        "balloon",
        "if (block != but &&\n\t\t    extent_is_online(node, elastic_block_usable(range, block)))",
        "if (block != but)",
        "driver: what the balloon may take",
    ),
    "behind the end of the range are holes": (
        "balloon",
        "holes += elastic_block_end(range, block) -",
        "holes += elastic_block_first(range, block) + range->block_extents -",
        "driver: between two blocks",
    ),
    "a shrink that is done says that too much has left": (
        "node",
        "\tif (rc)\n\t\tsay_not_taken(",
        "\tsay_not_taken(",
        "driver: sizes, and struct pages of 1 extent",
    ),
    "a growth that is to be smaller, and can not, says nothing": (
        "node",
        "\tif (rc)\n\t\tsay_not_taken(",
        "\tif (0)\n\t\tsay_not_taken(",
        "driver: a growth that is to be a smaller size than can be",
    ),
    "too much has left, in other numbers": (
        "node",
        "if (elastic_populated(node) < target) {",
        "if (0) {",
        "driver: a hollow block, and nothing for holes",
    ),
    "struct pages are taken as if they were free": (
        "balloon",
        "u32 first = elastic_block_usable(&node->range, block);\n\tu32 end = elastic_block_end(&node->range, block);\n"
        "\tunsigned int tries",
        "u32 first = elastic_block_first(&node->range, block) + 1;\n"
        "\tu32 end = elastic_block_end(&node->range, block);\n\tunsigned int tries",
        "driver: a hollow block, and holes",
    ),
    "a block without an extent stays": (
        "node",
        "if (excess >= usable)",
        "if (excess > usable)",
        "driver: a hollow block, no struct pages",
    ),
    "hollow blocks stay": (
        "node",
        "if (excess >= usable)",
        "if (excess >= usable && 0)",
        "driver: free blocks leave as they are",
    ),
    "the lowest block first": (
        "node",
        "\tfor (block = node->range.nr_blocks; block-- > 0; ) {\n\t\tif (!test_bit(block, node->present))\n"
        "\t\t\tcontinue;\n\t\tif (elastic_cancelled())",
        "\tfor (block = 0; block < node->range.nr_blocks; block++) {\n\t\tif (!test_bit(block, node->present))\n"
        "\t\t\tcontinue;\n\t\tif (elastic_cancelled())",
        "driver: what programs and Xen are told",
    ),
    "some memory of a failed populate stays": (
        "mem",
        "\tif (rc)\n\t\telastic_release(node, first, done);\n",
        "",
        "failure: Xen has no memory",
    ),
    "memory of a failed block stays": (
        "mem",
        "release:\n\telastic_release(node, first, count);\n",
        "release:\n",
        "failure: a block cannot be added",
    ),
    "a block that is not online stays": (
        "mem",
        "\tif (remove_memory(start, elastic_block_bytes(&node->range))) {",
        "\tif (0) {",
        "failure: a block cannot be onlined",
    ),
    "one page of an extent": (
        "mem",
        "decrease_reservation, pfn, done, 0)",
        "decrease_reservation, pfn, 1, 0)",
        "driver: memory in pieces",
    ),
    "memory of any node": (
        "mem",
        "XENMEMF_EXACT_NODE | XENMEMF_VNODE",
        "XENMEMF_VNODE",
        "driver: what programs and Xen are told",
    ),
    "memory of the next node": (
        "mem",
        "(((n) + 1) << 8)",
        "(((n) + 2) << 8)",
        "driver: what programs and Xen are told",
    ),
    "struct pages elsewhere": (
        "mem",
        "\t\t\t\t\t MHP_MEMMAP_ON_MEMORY |\n",
        "",
        "driver: what programs and Xen are told",
    ),
    "a signal says nothing": ("op", "rc = op.cancel ? -ECANCELED : -ETIMEDOUT;", "rc = 0;", "driver: time limits"),
    "the end of the engine is forgotten": ("op", "\tWRITE_ONCE(engine, NULL);\n", "", "driver: a start that fails"),
    "the notifier stays": ("op", "\tunregister_oom_notifier(&oom_nb);\n", "", "driver: a start that fails"),
    "a node within another": (
        "range",
        "elastic_overlap(&elastic_nodes[i].range, &node->range)",
        "0",
        "srat: a node within another",
    ),
    "a drain is overwritten by a refresh": (
        "topodev",
        "if (!elastic_busy()) {",
        "if (1) {",
        "topo: what others change",
    ),
    "a refresh without news": (
        "topodev",
        "if (memcmp(new, &image, sizeof(image)))",
        "if (1)",
        "topo: what others change",
    ),
    "a look at a clock that runs on": (
        "topodev",
        "min_t(long, left, LOOK_DELAY)",
        "min_t(long, end - jiffies, LOOK_DELAY)",
        "topo: the clock jumps",
    ),
    "only the first thread runs": (
        "topodev",
        "runs = task_is_running(thread);",
        "runs = task_is_running(process);",
        "topo: who runs goes on",
    ),
    "silence is forgotten": ("topodev", "forget_silent(version);", "(void)forget_silent;", "topo: silence"),
    "silence ends every promise": (
        "topodev",
        "if (tf->running && tf->acked < version)",
        "if (tf->acked < version)",
        "topo: silence",
    ),
    "a process is looked at for each of its files": (
        "topodev",
        "if (tf->running == pid)",
        "if (0)",
        "topo: once a process",
    ),
    "a reference is kept": ("topodev", "\tput_pid(tf->running);\n", "", "topo: once a process"),
    "a mapping that can be made writable": (
        "topodev",
        "VM_DONTEXPAND | VM_DONTDUMP, VM_MAYWRITE",
        "VM_DONTEXPAND | VM_DONTDUMP, 0",
        "topo: how it is mapped",
    ),
    "an old acknowledgement counts": ("topodev", "else if (version > tf->acked)", "else", "topo: acknowledgements"),
    "told again and again": (
        "topodev",
        "xchg(&tf->told, version) != version",
        "tf->told != version",
        "topo: poll",
    ),
    "CPUs of a node that leaves are usable": (
        "topodev",
        "(nid < 0 || !node_isset(nid, *draining))",
        "nid < 8",
        "topo: what the page says",
    ),
    "memory may move to a node that leaves": (
        "topodev",
        "nodes_andnot(usable, node_states[N_MEMORY], draining);",
        "usable = node_states[N_MEMORY];",
        "topo: what the page says",
    ),
    "one acknowledgement is enough": (
        "topodev",
        "if (missing == enough)",
        "if (!missing || missing == enough)",
        "topo: one of two acknowledges",
    ),
    "every node has a residue": (
        "store",
        "\"residual-kb\", node->state == ELASTIC_RESIDUAL ?",
        "\"residual-kb\", 1 ?",
        "store: the outcome",
    ),
    "grace without limit": ("store", "min_t(u64, ms, ELASTIC_GRACE_MAX_MS)", "ms", "store: the grace period"),
    "the boot CPU may leave": ("store", "cpumask_test_cpu(0, &cpus)", "0", "ask: the boot CPU"),
    "a CPU of two nodes": ("store", "rc = -EEXIST;", "(void)rc;", "ask: a CPU of another node"),
    "CPUs change under way": (
        "store",
        "\tif (node->state == ELASTIC_OFFLINE ||\n",
        "\tif (node->state == ELASTIC_ONLINE ||\n",
        "store: CPUs of a node that is there",
    ),
    "CPUs of a node that stays absent": (
        "store",
        "if (demand->cpus && target && parse",
        "if (demand->cpus && parse",
        "ask: nothing",
    ),
    "start in decimal": ("store", '"start", 16,', '"start", 10,', "store: as SRAT says"),
    "a transaction is left open": (
        "store",
        "xenbus_transaction_end(xbt, 1);",
        "(void)xbt;",
        "store: an outcome that cannot be written",
    ),
    "a report for ever": ("store", "++tries < 100", "++tries", "store: an outcome that cannot be written"),
    "old texts stay": ("store", "\t\txenbus_batch_rm(batch, dir, key);", "\t\t(void)key;", "store: the outcome"),
    "garbage is a target": (
        "store",
        "\tnode->bad_target = true;",
        "\tnode->bad_target = false;",
        "ask: half an extent",
    ),
    "one vCPU of a failed attach stays": (
        "cpu",
        "\t\tif (!cpu_down_one(cpu))\n\t\t\tcpu_unplug_one(cpu);",
        "\t\t(void)cpu;",
        "cpu: one stays down",
    ),
    "vCPUs come after all memory": (
        "node",
        "\t\tif (!rc)\n\t\t\trc = bring_cpus_up(node);\n",
        "",
        "attach: vCPUs come with the first block",
    ),
    "vCPUs come before memory": (
        "node",
        "\tif (!has_blocks(node))\n\t\treturn 0;\n\telastic_phase(ELASTIC_PH_CPUS);\n",
        "\telastic_phase(ELASTIC_PH_CPUS);\n",
        "attach: vCPUs come with the first block",
    ),
    "vCPUs of a residue come after new memory": (
        "node",
        "\tif (!rc)\n\t\trc = bring_cpus_up(node);\n\n\tfor (",
        "\n\tfor (",
        "attach: vCPUs come with the first block",
    ),
    "memory comes for vCPUs that do not": (
        "node",
        "\t\tif (!rc)\n\t\t\trc = bring_cpus_up(node);\n",
        "\t\tif (!rc)\n\t\t\tbring_cpus_up(node);\n",
        "failure: a vCPU stays down, and no more memory comes",
    ),
    "vCPUs take the time of memory": (
        "node",
        "\t\treturn 0;\n\telastic_phase(ELASTIC_PH_CPUS);\n",
        "\t\treturn 0;\n\telastic_phase(ELASTIC_PH_ONLINE);\n",
        "attach: vCPUs come with the first block",
    ),
    "an attach is not counted": (
        "node",
        "\tnode->nr_attached += !known;\n",
        "",
        "attach: vCPUs come with the first block",
    ),
    "a growth that is to be smaller takes what has no room": (
        "node",
        "return check_take(node, target) ?: take_memory(node, target);",
        "return take_memory(node, target);",
        "attach: a smaller one without room",
    ),
    "an attach that is to be smaller goes as a whole": (
        "node",
        "has_blocks(node) && (known || node->cpus_up);",
        "has_blocks(node) && known;",
        "attach: a smaller one that is stuck",
    ),
    "less than what Xen keeps is a node": (
        "node",
        "has_blocks(node) && (known || node->cpus_up);",
        "(known || node->cpus_up);",
        "growth: less than what Xen keeps",
    ),
    "a residue is in use": (
        "node",
        "has_blocks(node) && (known || node->cpus_up);",
        "has_blocks(node);",
        "residue: a smaller one without room",
    ),
    "a growth that was not to be smaller stays, too": (
        "node",
        "return node->target && elastic_populated(node) > node->target &&",
        "return node->target &&",
        "failure: a block cannot be added",
    ),
    "a known growth that is to be smaller is undone": (
        "node",
        "return node->target && elastic_populated(node) > node->target &&",
        "return node->target && !known && elastic_populated(node) > node->target &&",
        "growth: a smaller one, in part",
    ),
    "a shrink ends with what Xen keeps": (
        "node",
        "\tif (!has_blocks(node)) {\n\t\tdrain_node(node, true);\n\t\treturn rc;\n\t}\n",
        "",
        "shrink: no more than what Xen keeps",
    ),
    "programs do not hear that a node shrinks to nothing": (
        "node",
        "\t\tdrain_node(node, true);\n\t\treturn rc;\n",
        "\t\tdrain_node(node, false);\n\t\treturn rc;\n",
        "shrink: no more than what Xen keeps",
    ),
    "what Xen keeps is the reason of pages": (
        "node",
        "\tif (!has_blocks(node))\n\t\treturn kept_only(node);\n\tif (rc)\n",
        "\tif (rc)\n",
        "shrink: less than what Xen keeps",
    ),
    "an undo ends with what Xen keeps": (
        "node",
        "if (!known || !node->target || !has_blocks(node)) {",
        "if (!known || !node->target) {",
        "growth: undone to what Xen keeps",
    ),
    "an undo leads to the target": (
        "node",
        "\tWRITE_ONCE(node->goal, before);\n",
        "",
        "growth: out of memory at each step of its undo",
    ),
    "an undo takes what has no room": (
        "node",
        "\tif (take_back(node, before) == -ECANCELED)",
        "\tif (take_memory(node, before) == -ECANCELED)",
        "growth: undone without room",
    ),
    "an undo that is called off says nothing": (
        "node",
        "\tif (take_back(node, before) == -ECANCELED)\n\t\tcalled_off(node);\n",
        "\ttake_back(node, before);\n",
        "growth: out of memory at each step of its undo",
    ),
    "what was called off could not be taken": (
        "node",
        "\tif (rc == -ECANCELED)\n\t\treturn rc;\n\tif (!has_blocks",
        "\tif (!has_blocks",
        "attach: larger again while it becomes smaller",
    ),
    "a growth is at work though the guest needs the memory": (
        "node",
        "while (rc == -ECANCELED && !elastic_out_of_memory() &&",
        "while (rc == -ECANCELED &&",
        "attach: out of memory while it becomes smaller",
    ),
    "a growth that is called off for memory has no error": (
        "node",
        "elastic_op_rearm() && node->target);\n\tif (rc == -ECANCELED)\n\t\trc = called_off(node);\n",
        "elastic_op_rearm() && node->target);\n",
        "attach: out of memory while it becomes smaller",
    ),
    "what could not be taken has its vCPUs first": (
        "node",
        "\treturn rc ?: bring_cpus_up(node);\n",
        "\treturn bring_cpus_up(node) ?: rc;\n",
        "residue: a vCPU stays down, and it is stuck",
    ),
    "vCPUs that do not come are no failure": (
        "node",
        "\treturn rc ?: bring_cpus_up(node);\n",
        "\tbring_cpus_up(node);\n\treturn rc;\n",
        "residue: a vCPU stays down",
    ),
    "a residue is drained anew": (
        "node",
        "if (residual && node->target && has_blocks(node) &&",
        "if (residual && known && node->target && has_blocks(node) &&",
        "residue: a smaller one without room",
    ),
    "what came to a residue is its own": (
        "node",
        " &&\n\t    elastic_populated(node) <= before) {",
        ") {",
        "residue: more than it was, and a vCPU stays down",
    ),
    "a residue that is one still is the allocator's": (
        "node",
        "\t\telastic_set_draining(node, true);\n\t\treturn leave_residue",
        "\t\treturn leave_residue",
        "residue: a smaller one without room",
    ),
    "a reason for no residue": (
        "node",
        "\tnode->reason[0] = '\\0';\n\tnode->nr_attached",
        "\tnode->nr_attached",
        "attach: counted once",
    ),
    "a growth is an attach": ("node", "node->nr_attached += !known;", "node->nr_attached++;", "attach: counted once"),
    "what stays of an attach has not come": (
        "node",
        "\t\tstay(node, known);\n",
        "\t\tstay(node, known || tell + 1);\n",
        "attach: counted once",
    ),
    "a residue that comes back has not come": (
        "node",
        "bool known = tell && node->state != ELASTIC_RESIDUAL;",
        "bool known = tell;",
        "residue: it comes back",
    ),
    "that it grows is a version": (
        "node",
        "elastic_topo_publish(XTOPO_GROWING, false)",
        "elastic_topo_publish(XTOPO_GROWING, true)",
        "attach: counted once",
    ),
    "an attach that is called off for good is drained twice": (
        "node",
        "return node->target ? rc : drained;",
        "return drained ? rc : rc;",
        "attach: called off for good, and stuck",
    ),
    "what was tried is tried anew": (
        "engine",
        "\t\t\t\tjudge(heard, generation, rc);\n",
        "\t\t\t\t(void)heard;\n",
        "attach: a smaller one, tried once",
    ),
    "whatever was tried is not tried any more": (
        "engine",
        "if (heard && heard->target == target)",
        "if (heard)",
        "attach: larger again behind one that failed",
    ),
    "a vCPU that stays up lets the node go": (
        "node",
        "if (rc && has_blocks(node)) {",
        "if (rc == -ECANCELED && has_blocks(node)) {",
        "detach: a vCPU stays up",
    ),
    "a node without memory stays for a vCPU": (
        "node",
        "if (rc && has_blocks(node)) {",
        "if (rc && (rc != -ECANCELED || has_blocks(node))) {",
        "detach: a vCPU stays up",
    ),
    "a vCPU that does not come back is not asked for": (
        "node",
        "\tif (node->target && !node->cpus_up)\n\t\treturn false;\n",
        "",
        "detach: not wanted any more, and a vCPU stays down",
    ),
    "a shrink does without vCPUs": (
        "node",
        "bool missing = node->state == ELASTIC_ONLINE && !node->cpus_up;",
        "bool missing = false;",
        "detach: another size, and a vCPU stays down",
    ),
    "what is refused does without vCPUs": (
        "node",
        "\tif (missing && node->state",
        "\tif (missing && !rc && node->state",
        "detach: refused, and a vCPU stays down",
    ),
    "a size without vCPUs is reached": (
        "node",
        "\trc = rc ?: up;\n",
        "\t(void)up;\n",
        "detach: another size, and a vCPU stays down",
    ),
    "a vCPU that stays down is told twice": (
        "report",
        "if (first && (!too || strstr(node->error, text)))",
        "if (first && !too)",
        "driver: errors have room",
    ),
    "vCPUs that went are there": (
        "node",
        "\tnode->cpus_up = false;\n",
        "",
        "residue: a smaller one without room",
    ),
    "vCPUs are there that are not": (
        "node",
        "\tnode->cpus_up = !rc;\n",
        "\tnode->cpus_up = true;\n",
        "detach: not wanted any more, and a vCPU stays down",
    ),
    "strays stay where others can go": (
        "node",
        "\telastic_release_strays(node);\n\tif (elastic_populated(node) < node->target)",
        "\tif (elastic_populated(node) < node->target)",
        "driver: what Xen takes by now goes first",
    ),
    "strays of a residue stay": (
        "node",
        "\telastic_release_strays(node);\n\tbefore = elastic_populated(node);\n",
        "\tbefore = elastic_populated(node);\n",
        "driver: what Xen takes by now goes first",
    ),
    "what was less before strays went is less": (
        "node",
        "\tif (elastic_populated(node) < node->target)\n\t\treturn grow(node);\n",
        "",
        "driver: what Xen takes by now goes first",
    ),
    "strays leave while it is a residue": (
        "node",
        "\tif (!node->target)\n\t\trc = detach(node);\n",
        "\tif (node->target)\n\t\telastic_release_strays(node);\n\tif (!node->target)\n\t\trc = detach(node);\n",
        "residue: out of memory as it grows",
    ),
    "strays leave though the rest has no room": (
        "node",
        "node->target + strays_of(node));",
        "node->target + strays_of(node) + node->range.nr_extents);",
        "shrink: refused, beside strays",
    ),
    "what Xen keeps of strays needs no room": (
        "node",
        "\t/* Of what Xen keeps of them others have to make up for. */\n\trc = check_take(node, node->target);\n",
        "",
        "shrink: refused, beside strays",
    ),
    "strays need room": (
        "node",
        "node->target + strays_of(node));",
        "node->target + 0 * strays_of(node));",
        "driver: what Xen takes by now goes first",
    ),
    "a vCPU is tried twice": (
        "node",
        "\tnode->cpus_tried = true;\n",
        "",
        "growth: a vCPU is tried once",
    ),
    "vCPUs come to a residue": (
        "node",
        "if (missing && node->state == ELASTIC_ONLINE && !node->cpus_tried)",
        "if (missing && !node->cpus_tried)",
        "residue: of a node that had lost a vCPU",
    ),
    "what did not come was there before": (
        "node",
        "\tnode->cpus_up = !rc;\n",
        "\tnode->cpus_up |= !rc;\n",
        "growth: vCPUs that somebody took",
    ),
    "a residue that leaves counts as a detach": (
        "node",
        "\tnode->nr_detached += tell;\n",
        "\tnode->nr_detached += known;\n",
        "residue: no more memory for it",
    ),
    "what follows has 80 characters": (
        "report",
        "most = max(80, (int)(sizeof(node->error) - first) - 8);",
        "most = 80;",
        "driver: errors have room",
    ),
    "a growth is to blame": (
        "room",
        "return take && take >= pages_elsewhere(NUMA_NO_NODE, false);",
        "return take >= pages_elsewhere(NUMA_NO_NODE, false);",
        "growth: out of memory for another reason",
    ),
    "an attach that is to be smaller is never to blame": (
        "room",
        "return take && take >= pages_elsewhere(NUMA_NO_NODE, false);",
        "return node->detach && take && take >= pages_elsewhere(NUMA_NO_NODE, false);",
        "attach: out of memory while it becomes smaller",
    ),
    "an attach that is to be smaller has room for ever": (
        "op",
        "if (!READ_ONCE(op.cancel) && elastic_no_room(op.node)) {",
        "if (!READ_ONCE(op.cancel) && op.node->detach && elastic_no_room(op.node)) {",
        "attach: the guest grows while it becomes smaller",
    ),
    "the goal of the operation before": (
        "op",
        "\tnode->detach = detach;\n\tWRITE_ONCE(node->goal, node->target);\n",
        "\tnode->detach = detach;\n",
        "driver: out of memory at each step of a shrink",
    ),
    "another target is another goal": (
        "op",
        "\telastic_store_request(node);\n\tWRITE_ONCE(node->goal, node->target);\n",
        "\telastic_store_request(node);\n",
        "attach: out of memory while it becomes smaller",
    ),
    "what follows is not told": ("report", "if (first && (!too || ", "if (first && (1 || ", "growth: undone without room"),
    "what follows is cut off": (
        "report",
        "\tfirst = min(first, sizeof(node->error) - 1 - strlen(line));\n",
        "",
        "driver: errors",
    ),
    "a growth that is to be smaller takes all room": (
        "room",
        "if (!goal || populated <= goal)",
        "if (!node->detach || !goal || populated <= goal)",
        "growth: a smaller one that is short of room",
    ),
    "a node without memory stays": (
        "node",
        "if (rc && has_blocks(node)) {",
        "if (rc) {",
        "attach: another target, and no memory",
    ),
    "what Xen keeps is a node": (
        "node",
        "\tif (!rc && !has_blocks(node))\n",
        "\tif (false)\n",
        "attach: no more than what Xen keeps",
    ),
    "programs hear of an attach that failed": (
        "node",
        "drained = drain_node(node, known);\n",
        "drained = drain_node(node, true);\n",
        "failure: a block cannot be added",
    ),
    "programs do not hear that what they know leaves": (
        "node",
        "drained = drain_node(node, known);\n",
        "drained = drain_node(node, false);\n",
        "growth: called off at each step",
    ),
    "a node that shrank while it came has no vCPUs": (
        "node",
        "\treturn rc ?: bring_cpus_up(node);\n",
        "\treturn rc;\n",
        "attach: vCPUs come with the first block",
    ),
    "what was up goes with what failed": (
        "cpu",
        "\t\tif (cpu_online(cpu))\n\t\t\tcontinue;\n",
        "",
        "cpu: one stays down",
    ),
    "the boot measures each vCPU": ("cpu", "preset_lpj = loops_per_jiffy;", "(void)preset_lpj;", "cpu: up and down"),
    "vCPUs stay in sysfs": (
        "cpu",
        "\t\tcpu_down_one(cpu);\n\t\tcpu_unplug_one(cpu);",
        "\t\tcpu_down_one(cpu);",
        "cpu: up and down",
    ),
    "a vCPU that came back is left": (
        "cpu",
        "\t\tcpu_down_one(cpu);\n\t\tcpu_unplug_one(cpu);",
        "\t\tcpu_unplug_one(cpu);",
        "cpu: the node is held",
    ),
    "vCPUs go though called off": (
        "cpu",
        "\t\tif (elastic_cancelled())\n\t\t\treturn -ECANCELED;\n",
        "",
        "cpu: called off",
    ),
    "a suspend loses memory": ("pm", "return -EBUSY;", "return 0;", "pm: who asks before a suspend"),
    "no suspend without the driver's nodes": ("pm", "!node->usable || ", "", "pm: who asks before a suspend"),
    "a driver without a device": (
        "pm",
        "\tplatform_driver_unregister(&elastic_driver);\n",
        "",
        "pm: who asks before a suspend",
    ),
    "a large folio counts in each extent": (
        "residue",
        "min(folio_pfn(folio) + folio_nr_pages(folio), stop) - pfn",
        "folio_pfn(folio) + folio_nr_pages(folio) - pfn",
        "residue: a large one counts once",
    ),
    "every pinned page is walked": ("residue", "\t--*tries;\n", "", "residue: whose it is"),
    "a lock is kept": ("residue", "\tfolio_unlock(folio);\n", "", "residue: whose it is"),
    "a worker waits for folios": ("evac", "MIGRATE_ASYNC, MR", "1, MR", "evac: all that can move"),
    "a worker waits for a file system": (
        "evac",
        "unsigned int nofs = memalloc_nofs_save();",
        "unsigned int nofs = 0;",
        "evac: all that can move",
    ),
    "other workers take no room": ("evac", "pages * MAX_WORKERS", "pages", "evac: no room"),
    "what finds no room is lost": (
        "evac",
        "\t\tatomic_long_add(pages, &evac->failed);\n\t\tputback_movable_pages(list);\n",
        "\t\tatomic_long_add(pages, &evac->failed);\n",
        "evac: no room",
    ),
    "what does not move is lost": (
        "evac",
        "\t\tatomic_long_add(rc > 0 ? rc : 1, &evac->failed);\n\t\tputback_movable_pages(list);\n",
        "\t\tatomic_long_add(rc > 0 ? rc : 1, &evac->failed);\n",
        "evac: what never moves",
    ),
    "struct pages are a residue": (
        "residue",
        "\t\tif (elastic_extent_is_memmap(&node->range, first))\n\t\t\tcontinue;\n",
        "",
        "residue: of each kind",
    ),
    "a pool keeps what it could give": (
        "residue",
        "READ_ONCE(h->free_huge_pages) <=",
        "READ_ONCE(h->free_huge_pages) <= 1 +",
        "residue: reserved huge pages",
    ),
    "no flusher is woken": ("evac", "\twakeup_flusher_threads(WB_REASON_VMSCAN);\n", "", "evac: what moves later"),
    "pauses do not grow": ("evac", "PAUSE_MS << (pass - PASSES)", "PAUSE_MS", "evac: what never moves"),
    "the node with the most memory, however far": (
        "evac",
        "sum_zone_node_page_state(nid, NR_FREE_PAGES) /\n\t\t\t node_distance(evac->node->nid, nid)",
        "sum_zone_node_page_state(nid, NR_FREE_PAGES)",
        "evac: all that can move",
    ),
    "to nodes that leave": (
        "evac",
        "nodes_andnot(evac.targets, node_states[N_MEMORY], draining);",
        "evac.targets = node_states[N_MEMORY];",
        "evac: to nodes that stay",
    ),
    "a huge page is worth reclaim": (
        "evac",
        "(gfp & ~__GFP_RECLAIM) | GFP_TRANSHUGE_LIGHT",
        "gfp",
        "evac: how they are asked for",
    ),
    "a page in use is free": (
        "take_free",
        "return buddy_order(head) >= order ? head : NULL;",
        "return head;",
        "take: what is in use",
    ),
    "a larger block is not free": (
        "take_free",
        "order <= MAX_PAGE_ORDER; order++",
        "0; order++",
        "take: a part of a block",
    ),
    "the rest of a block is lost": (
        "take_free",
        "\t\t__putback_isolated_page(rest, has, MIGRATE_MOVABLE);\n",
        "",
        "take: a part of a block",
    ),
    "the wrong half": ("take_free", "if (page >= rest)", "if (page > rest)", "take: a part of a block"),
    "what others isolate is taken": (
        "take_free",
        "get_pageblock_migratetype(head) != MIGRATE_MOVABLE",
        "0",
        "take: what is others'",
    ),
    "what the allocator keeps is taken": (
        "take_free",
        "\tif (!__isolate_free_page(head, has))\n\t\tgoto unlock;\n",
        "\t__isolate_free_page(head, has);\n",
        "take: what is others'",
    ),
    "free memory is looked for": (
        "balloon",
        "taken += take_free(node, first, end, count - taken);",
        "taken += 0 & take_free(node, first, end, 0);",
        "driver: free memory is taken as it lies",
    ),
    "free pages have no reference": (
        "balloon",
        "if (frozen)",
        "if (0)",
        "driver: free memory is taken as it lies",
    ),
    "pages that were moved have a reference more": (
        "balloon",
        "return deflate(node, first, count, false);",
        "return deflate(node, first, count, true);",
        "driver: free memory is taken as it lies",
    ),
    "more is taken than was asked for": (
        "balloon",
        "end > first && taken + run < count",
        "end > first && taken < count",
        "driver: free memory is taken as it lies",
    ),
    "a run ends with its block": (
        "balloon",
        "return taken + deflate(node, end, run, true);",
        "return taken;",
        "driver: free memory is taken as it lies",
    ),
    "what Xen keeps was taken": (
        "balloon",
        "return count - kept;",
        "return count;",
        "driver: free memory that Xen keeps",
    ),
    "references of pages with memory": (
        "balloon",
        "\t\t    elastic_has_memory(node, extent))\n\t\t\tcontinue;",
        "\t\t    0)\n\t\t\tcontinue;",
        "driver: other sizes",
    ),
    "a page of an extent keeps its reference": (
        "balloon",
        "for (; pfn < next; pfn++)",
        "for (pfn++; pfn < next; pfn++)",
        "driver: other sizes",
    ),
    "an extent a call": (
        "balloon",
        "run = min(run, count);",
        "run = 1;",
        "driver: free memory is taken as it lies",
    ),
    "what there is of memory goes back": (
        "balloon",
        "hand_out(node, extent, got);",
        "hand_out(node, extent, rc ? 0 : got);",
        "driver: a node that is filled in part",
    ),
    "16 extents a call": (
        "mem",
        "#define BATCH			ARRAY_SIZE(frames)",
        "#define BATCH			16",
        "driver: free blocks leave as they are",
    ),
    "free blocks are marked first": (
        "node",
        "if (drop_free_block(node, block, excess, &budget))",
        "if (0 && drop_free_block(node, block, excess, &budget))",
        "driver: free blocks leave as they are",
    ),
    "a block more than was asked for": (
        "node",
        "excess >= elastic_block_populated(node, block) &&",
        "excess &&",
        "driver: a node that is filled in part",
    ),
    "blocks in use leave as they are": (
        "node",
        "\t       !elastic_block_in_use(node, block, true) &&\n\t       !drop_block",
        "\t       !drop_block",
        "driver: free blocks leave as they are",
    ),
    "what is being taken must be available": (
        "room",
        "\ttake -= min(take, elastic_isolated_pages(node));\n",
        "",
        "driver: all that is available is taken",
    ),
    "struct pages are looked at": (
        "evac",
        "\n\t       !elastic_extent_is_memmap(&node->range, extent);",
        "\n\t       1;",
        "evac: what is free",
    ),
    "what has no memory is looked at": (
        "evac",
        "\t       elastic_has_memory(node, extent) &&\n",
        "",
        "evac: what is free",
    ),
    "free memory is looked at twice": (
        "residue",
        "pfn = max_t(unsigned long, pfn, stop - ELASTIC_EXTENT_PAGES);",
        "pfn = stop - ELASTIC_EXTENT_PAGES;",
        "evac: what is free",
    ),
    "free memory is looked at page by page": (
        "evac",
        "return pfn + free;",
        "return next;",
        "evac: what is free",
    ),
    "a shrink tries blocks for ever": (
        "node",
        "return *budget_ms && excess >=",
        "return excess >=",
        "driver: a shrink of blocks that nobody sees stuck",
    ),
    "a shrink takes the pool of huge pages": (
        "node",
        "elastic_block_in_use(node, block, true)",
        "elastic_block_in_use(node, block, false)",
        "driver: a pool of huge pages",
    ),
    "a pool that is to stay goes": (
        "residue",
        "\tif (pool_stays)\n\t\treturn true;\n",
        "",
        "residue: reserved huge pages",
    ),
    "what is isolated is nobody's fault": (
        "room",
        "\ttake = pages_to_take(node);\n\treturn take &&",
        "\ttake = pages_to_take(node);\n\ttake -= min(take, elastic_isolated_pages(node));\n\treturn take &&",
        "driver: out of memory as the only block leaves",
    ),
    "what was taken has no owner": (
        "take_free",
        "\t\tset_page_owner(page, order, GFP_KERNEL);\n",
        "\t\t(void)order;\n",
        "take: a block",
    ),
    "an owner is noted under the lock": (
        "take_free",
        "\ttaken = true;\n",
        "\ttaken = true;\n\tset_page_owner(page, order, GFP_KERNEL);\n",
        "take: a block",
    ),
    "unmovable blocks are taken": (
        "take_free",
        "get_pageblock_migratetype(head) != MIGRATE_MOVABLE",
        "get_pageblock_migratetype(head) > MIGRATE_MOVABLE",
        "take: what is others'",
    ),
    "a type of a moment before": (
        "take_free",
        "\tspin_lock_irqsave(&zone->lock, flags);\n",
        "\tget_pageblock_migratetype(page);\n\tspin_lock_irqsave(&zone->lock, flags);\n",
        "take: a block",
    ),
    "struct pages are faulted under a lock": (
        "balloon",
        "\t\telastic_block_look(node, block);\n",
        "\t\t(void)block;\n",
        "driver: free memory is taken as it lies",
    ),
    "a call that took long teaches nothing": (
        "mem",
        "\tif (ms > CALL_MS)\n",
        "\tif (0)\n",
        "driver: slow calls",
    ),
    "no extent a call": (
        "mem",
        "batch = max(count * CALL_MS / ms, 1U);",
        "batch = count * CALL_MS / ms;",
        "driver: very slow calls",
    ),
    "slow for ever": (
        "mem",
        "batch = min(2 * batch, (unsigned int)BATCH);",
        "batch = min(batch, (unsigned int)BATCH);",
        "driver: slow calls",
    ),
    "frames of a release overflow": (
        "mem",
        "first + run < end && run < batch &&",
        "first + run < end &&",
        "driver: more extents than frames",
    ),
    "frames of a populate overflow": (
        "mem",
        "return min(next - first, batch);",
        "return next - first;",
        "driver: more extents than frames",
    ),
    "a populate is not called off": (
        "mem",
        "\t\tif (elastic_cancel_pending())\n\t\t\treturn -ECANCELED;\n",
        "",
        "driver: more extents than frames",
    ),
    "marking has the CPU": (
        "balloon",
        "\t\tif (IS_ALIGNED(i, ELASTIC_EXTENT_PAGES))\n\t\t\tcond_resched();\n",
        "",
        "driver: free memory is taken as it lies",
    ),
    "handing out has the CPU": (
        "balloon",
        "\t\t\t\t    ELASTIC_EXTENT_ORDER);\n\t\tcond_resched();\n",
        "\t\t\t\t    ELASTIC_EXTENT_ORDER);\n",
        "driver: free memory is taken as it lies",
    ),
    "taking has the CPU": (
        "balloon",
        "\t\tend--;\n\t\tcond_resched();\n",
        "\t\tend--;\n",
        "driver: free memory is taken as it lies",
    ),
    "Xen is asked though it is called off": (
        "balloon",
        "\tif (elastic_cancel_pending()) {\n\t\thand_out",
        "\tif (0) {\n\t\thand_out",
        "driver: called off while extents are taken",
    ),
    "taking goes on though it is called off": (
        "balloon",
        "taken + run < count &&\n\t       !elastic_cancel_pending()) {",
        "taken + run < count) {",
        "driver: called off while extents are taken",
    ),
    "the allocator's books stay": (
        "balloon",
        "\tadjust_managed_page_count(page, -(long)nr);\n",
        "",
        "driver: free memory is taken as it lies",
    ),
    "the allocator's books grow": (
        "balloon",
        "adjust_managed_page_count(page, -(long)nr);",
        "adjust_managed_page_count(page, nr);",
        "driver: free memory is taken as it lies",
    ),
    "pages are not marked": (
        "balloon",
        "\t\t__SetPageOffline(page + i);\n",
        "",
        "driver: free memory is taken as it lies",
    ),
    "somebody looks while pages are marked": (
        "balloon",
        "\tpage_offline_begin();\n",
        "",
        "driver: free memory is taken as it lies",
    ),
    "nobody may look any more": (
        "balloon",
        "\tpage_offline_end();\n",
        "",
        "driver: free memory is taken as it lies",
    ),
    "free memory is taken without time": (
        "balloon",
        "if (*budget_ms && extent_is_online(node, first)) {\n\t\ttaken",
        "if (extent_is_online(node, first)) {\n\t\ttaken",
        "driver: what the balloon may take",
    ),
    "free memory of an offline block is taken": (
        "balloon",
        "if (*budget_ms && extent_is_online(node, first)) {\n\t\ttaken",
        "if (*budget_ms) {\n\t\ttaken",
        "driver: what the balloon may take",
    ),
    "what Xen keeps is counted": (
        "balloon",
        " += count - kept;\n",
        " += count;\n",
        "driver: free memory that Xen keeps",
    ),
    "a cancel that was never heard of": (
        "balloon",
        "if (going_offline == mn->start_pfn)",
        "if (going_offline || 1)",
        "driver: others take a block offline",
    ),
    "a block that has left is going offline": (
        "balloon",
        "\tcase MEM_OFFLINE:\n\t\tgoing_offline = 0;\n",
        "\tcase MEM_OFFLINE:\n",
        "driver: others take a block offline",
    ),
    "any zone will do": (
        "balloon",
        "!=\n\t\t    ZONE_MOVABLE)",
        "!=\n\t\t    zone_idx(page_zone(pfn_to_page(mn->start_pfn))))",
        "driver: for what can be moved only",
    ),
    "a run is longer than what was asked for": (
        "balloon",
        "min(count - taken, (u32)RUN)",
        "(u32)RUN",
        "driver: what the balloon may take",
    ),
    "tries do not ask for the time": (
        "balloon",
        "--tries && spent < *budget_ms",
        "--tries",
        "driver: what the balloon may take",
    ),
    "extents without memory are handed out": (
        "balloon",
        "elastic_has_memory(node, extent))\n\t\t\tgeneric_online_page(pfn",
        "1)\n\t\t\tgeneric_online_page(pfn",
        "driver: other sizes",
    ),
    "offline blocks are filled": (
        "balloon",
        "if (!extent_is_online(node, extent))\n\t\t\tcontinue;",
        "if (0)\n\t\t\tcontinue;",
        "driver: what the balloon may take",
    ),
    "a poisoned folio moves": (
        "evac",
        " &&\n\t    !folio_contain_hwpoisoned_page(folio)",
        "",
        "evac: what is poisoned",
    ),
    "a folio with a poisoned page moves": (
        "evac",
        "!folio_contain_hwpoisoned_page(folio)",
        "!folio_test_hwpoison(folio)",
        "evac: what is poisoned",
    ),
    "a folio of another place moves": (
        "evac",
        "if (page_folio(page) == folio &&",
        "if (1 &&",
        "evac: another folio by now",
    ),
    "a header that is away is handed on": (
        "eagain",
        "if (cop[i].status == GNTST_eagain)\n\t\t\treturn",
        "if (0)\n\t\t\treturn",
        "eagain: each page, and each two",
    ),
    "a fragment that is away is handed on": (
        "eagain",
        "if (queue->tx_map_ops[i].status == GNTST_eagain)",
        "if (0)",
        "eagain: each page, and each two",
    ),
    "what is here is asked for again": (
        "eagain",
        "(op)[_n].status == GNTST_eagain",
        "1",
        "eagain: each page, and each two",
    ),
    "one call for each page": ("eagain", "while ((op) + _n < (end)", "while (!_n && (op) + _n < (end)", "eagain: runs"),
    "mapped at another's place": (
        "eagain",
        "(mop - queue->tx_map_ops), n);",
        "0, n);",
        "eagain: each page, and each two",
    ),
    "headers are asked for once": (
        "eagain",
        "end = cop + nr;",
        "end = cop;",
        "eagain: each page, and each two",
    ),
    "fragments are asked for once": (
        "eagain",
        "mop + queue->eagain.nr_mops;",
        "mop;",
        "eagain: each page, and each two",
    ),
    "the last header is forgotten": (
        "eagain",
        "copies_away(queue->tx_copy_ops, nr_cops)",
        "copies_away(queue->tx_copy_ops, nr_cops - 1)",
        "eagain: each page, and each two",
    ),
    "the last fragment is forgotten": (
        "eagain",
        "i < nr_mops;",
        "i + 1 < nr_mops;",
        "eagain: each page, and each two",
    ),
    "nobody polls again": (
        "eagain",
        "\tqueue->eagain.since = ktime_get();\n\tpoll_later(queue, 0);",
        "\tqueue->eagain.since = ktime_get();",
        "eagain: each page, and each two",
    ),
    "nobody polls a third time": (
        "eagain",
        "\t\t\tpoll_later(queue, waited_us);\n",
        "",
        "eagain: each page, and each two",
    ),
    "the timer polls nothing": (
        "eagain",
        "napi_schedule(&queue->napi);",
        "(void)queue;",
        "eagain: each page, and each two",
    ),
    "a poll function that is always busy": ("eagain", "waited_us / 4,", "0,", "eagain: a page never comes"),
    "longer and longer": ("eagain", "LONGEST_WAIT_US);", "waited_us);", "eagain: a page never comes"),
    "waited for twice as long": (
        "eagain",
        "if (waited_us < longest_us()) {",
        "if (waited_us < longest_us() * 2) {",
        "eagain: a page never comes",
    ),
    "given up before it is asked for": (
        "eagain",
        "\task_again(queue);\n",
        "\tif (waited_us < (s64)page_wait_msecs * USEC_PER_MSEC)\n\t\task_again(queue);\n",
        "eagain: a page comes at last",
    ),
    "a batch that waits for ever": (
        "eagain",
        "\t}\n\tqueue->eagain.nr_cops = 0;\n\treturn false;",
        "\t}\n\treturn false;",
        "eagain: each page, and each two",
    ),
    "the timer of a queue that is gone": (
        "eagain",
        "\thrtimer_cancel(&queue->eagain.timer);\n",
        "",
        "eagain: a queue ends",
    ),
    "a queue that ends hands on": ("eagain", "i < queue->eagain.nr_cops;", "0;", "eagain: a queue ends"),
    "a queue that ends keeps what is mapped": ("eagain", "\txenvif_tx_submit(queue);\n", "", "eagain: a queue ends"),
    "a queue that ends keeps its batch": (
        "eagain",
        "\tqueue->eagain.nr_cops = 0;\n\txenvif_tx_submit",
        "\txenvif_tx_submit",
        "eagain: a queue ends",
    ),
    "what is wrong for good is away": (
        "eagain",
        "if (cop[i].status == GNTST_eagain)\n\t\t\treturn",
        "if (cop[i].status)\n\t\t\treturn",
        "eagain: bad pages",
    ),
    "a fragment that is wrong for good is away": (
        "eagain",
        "if (queue->tx_map_ops[i].status == GNTST_eagain)",
        "if (queue->tx_map_ops[i].status)",
        "eagain: bad pages",
    ),
    "what an earlier batch has left is asked for": (
        "eagain",
        "while ((op) + _n < (end)",
        "while ((op) + _n <= (end)",
        "eagain: of an earlier batch",
    ),
    "waits grow by a half": ("eagain", "waited_us / 4,", "waited_us / 2,", "eagain: a page never comes"),
    "waits grow by an eighth": ("eagain", "waited_us / 4,", "waited_us / 8,", "eagain: a page never comes"),
    "a microsecond too long": ("eagain", "if (waited_us < longest", "if (waited_us <= longest", "eagain: how long"),
    "asking is waiting": (
        "eagain",
        "\ts64 waited_us = ktime_us_delta(ktime_get(), queue->eagain.since);\n\n\task_again(queue);",
        "\ts64 waited_us;\n\n\task_again(queue);\n\twaited_us = ktime_us_delta(ktime_get(), queue->eagain.since);",
        "eagain: how long",
    ),
    "the time begins with each try": (
        "eagain",
        "\t\t\tpoll_later(queue, waited_us);\n",
        "\t\t\tqueue->eagain.since = ktime_get();\n\t\t\tpoll_later(queue, waited_us);\n",
        "eagain: a page never comes",
    ),
    "microseconds are said to be ms": (
        "eagain",
        'packets are lost\\n",\n\t\t\t\t    waited_us / USEC_PER_MSEC);',
        'packets are lost\\n",\n\t\t\t\t    waited_us);',
        "eagain: how long",
    ),
    "the log of a guest's own making": ("eagain", "\t\tif (net_ratelimit())", "\t\tif (1)", "eagain: how long"),
    "the time in 32 bits": ("eagain", "* (s64)USEC_PER_MSEC", "* 1000U", "eagain: settings"),
    "who is not to wait waits": ("eagain", " ||\n\t    !READ_ONCE(page_wait_msecs))", ")", "eagain: settings"),
    "batches are not counted": ("eagain", "\tqueue->stats.tx_page_waits++;\n", "", "eagain: a page never comes"),
    "tries are counted": (
        "eagain",
        "\task_again(queue);\n",
        "\tqueue->stats.tx_page_waits++;\n\task_again(queue);\n",
        "eagain: a page never comes",
    ),
    "what was in vain is not counted": ("eagain", "\t\tqueue->stats.tx_page_wait_fails++;\n", "", "eagain: how long"),
    "the first packet of a queue that ends": (
        "eagain",
        "for (i = 0; i < queue->eagain.nr_cops; i++)",
        "for (i = 1; i < queue->eagain.nr_cops; i++)",
        "eagain: a queue ends",
    ),
    "the last packet of a queue that ends": (
        "eagain",
        "for (i = 0; i < queue->eagain.nr_cops; i++)",
        "for (i = 0; i + 1 < queue->eagain.nr_cops; i++)",
        "eagain: a queue ends",
    ),
    "a queue that ends asks again": (
        "eagain",
        "\thrtimer_cancel(&queue->eagain.timer);\n",
        "\thrtimer_cancel(&queue->eagain.timer);\n\task_again(queue);\n",
        "eagain: a queue ends",
    ),
    "a new queue waits": (
        "eagain",
        "\tqueue->eagain.nr_cops = 0;\n\thrtimer_init",
        "\thrtimer_init",
        "eagain: all is here",
    ),
    "who waits is not heard": (
        "eagain",
        "\t\txen_irq_lateeoi(queue->tx_irq, 0);\n",
        "\t\t(void)0;\n",
        "eagain: one event channel",
    ),
    "an interrupt ends twice": (
        "eagain",
        "if (atomic_fetch_andnot(NETBK_COMMON_EOI,",
        "if (atomic_fetch_andnot(0,",
        "eagain: one event channel",
    ),
    "a guest is heard by its own tries": (
        "eagain",
        "\task_again(queue);\n",
        "\tif (atomic_fetch_andnot(NETBK_COMMON_EOI, &queue->eoi_pending) & NETBK_COMMON_EOI)\n"
        "\t\txen_irq_lateeoi(queue->tx_irq, 0);\n\task_again(queue);\n",
        "eagain: one event channel",
    ),
    "who waits asks for more": (
        "eagain",
        "if (atomic_fetch_andnot(NETBK_COMMON_EOI, &queue->eoi_pending) &\n\t    NETBK_COMMON_EOI)",
        "if (atomic_fetch_andnot(~0, &queue->eoi_pending))",
        "eagain: asked for more",
    ),
    "a map that fails is said always": ("eagain", "if (ret && net_ratelimit())", "if (ret)", "eagain: no memory"),
    "a map that fails is said never": ("eagain", "if (ret && net_ratelimit())", "if (!ret)", "eagain: no memory"),
    "who can't sleep sleeps": ("0305", "if (in_interrupt())", "if (0)", "eagain: threads"),
    "who can sleep does not wait": ("0305", "if (in_interrupt())", "if (1)", "eagain: threads"),
    "what stays away is looked at for ever": (
        "0305",
        "+\t\t\tif (map_ops[i].status != GNTST_eagain)\n",
        "",
        "eagain: threads",
    ),
    "what has come is not the guest's": ("0305", "if (map_ops[i].status != GNTST_eagain)", "if (0)", "eagain: threads"),
    "a batch is built over one that waits": (
        "0306",
        "+\tif (unlikely(queue->eagain.nr_cops)) {",
        "+\tif (0) {",
        "eagain: each page, and each two",
    ),
    "what waits is received without a budget": (
        "0306",
        "if (!budget || xenvif_eagain_waits(queue))",
        "if (xenvif_eagain_waits(queue))",
        "eagain: budgets",
    ),
    "more than is asked for": (
        "0306",
        "return min(xenvif_tx_submit(queue), budget);",
        "return xenvif_tx_submit(queue);",
        "eagain: budgets",
    ),
    "what waited is forgotten": (
        "0306",
        "return min(xenvif_tx_submit(queue), budget);",
        "return 0;",
        "eagain: each page, and each two",
    ),
    "fragments do not wait": (
        "0306",
        "if (xenvif_eagain_keep(queue, nr_cops, nr_mops))",
        "if (xenvif_eagain_keep(queue, nr_cops, 0))",
        "eagain: each page, and each two",
    ),
    "a guest is asked for more though it waits": (
        "0306",
        "if (likely(!queue->rate_limited && !queue->eagain.nr_cops))",
        "if (likely(!queue->rate_limited))",
        "eagain: asked for more",
    ),
    "a guest is asked for more without credit": (
        "0306",
        "if (likely(!queue->rate_limited && !queue->eagain.nr_cops))",
        "if (likely(!queue->eagain.nr_cops))",
        "eagain: asked for more",
    ),
    "a queue that ends is let go by nobody": (
        "0306",
        "+\t\txenvif_eagain_drop(queue);\n",
        "+\t\t;\n",
        "eagain: a queue ends",
    ),
    "a queue that nobody makes ready": ("0306", "+\txenvif_eagain_init(queue);\n", "+\t;\n", "eagain: all is here"),
    "both counters are one": (
        "0306",
        "offsetof(struct xenvif_stats, tx_page_wait_fails)",
        "offsetof(struct xenvif_stats, tx_page_waits)",
        "eagain: counters",
    ),
    "a page for the guest is waited for in vain again": (
        "eagain",
        " && !round->in_vain && ",
        " && ",
        "eagain: to the guest, in vain",
    ),
    "who ends a thread waits for it": (
        "eagain",
        "return kthread_should_stop() || ",
        "return ",
        "eagain: to the guest, no more",
    ),
    "a rogue guest keeps the thread": (
        "eagain",
        "READ_ONCE(vif->disabled) ||",
        "0 ||",
        "eagain: to the guest, no more",
    ),
    "who ends the control ring waits for it": ("eagain", "READ_ONCE(round->over);", "0;", "eagain: control ring"),
    "a wait in vain is not remembered": (
        "eagain",
        "\t\t\tround->in_vain = true;\n",
        "",
        "eagain: to the guest, in vain",
    ),
    "a thread waits for ever": ("eagain", "if (waited_us >= longest_us())", "if (0)", "eagain: to the guest, in vain"),
    "a thread's ms are microseconds": (
        "eagain",
        'are lost\\n",\n\t\t\t\t\t    waited_us / USEC_PER_MSEC);',
        'are lost\\n",\n\t\t\t\t\t    waited_us);',
        "eagain: to the guest, in vain",
    ),
    "who is not to wait says so": (
        "eagain",
        "if (waited_us && net_ratelimit())",
        "if (net_ratelimit())",
        "eagain: to the guest, no more",
    ),
    "a thread says it always": (
        "eagain",
        "if (waited_us && net_ratelimit())",
        "if (waited_us)",
        "eagain: to the guest, in vain",
    ),
    "a guest is told of pages that are away": (
        "eagain",
        "cop[i].status = GNTST_bad_page;",
        "cop[i].status = GNTST_eagain;",
        "eagain: to the guest, in vain",
    ),
    "a thread is always busy": ("eagain", "us = next_wait(waited_us);", "us = FIRST_WAIT_US;", "eagain: to the guest"),
    "a thread counts no time": (
        "eagain",
        "ktime_us_delta(ktime_get(), since);",
        "ktime_us_delta(since, since);",
        "eagain: to the guest, in vain",
    ),
    "a round takes more though it waits": ("eagain", "\tround->waited = true;\n", "", "eagain: to the guest, slowly"),
    "waits of the way to the guest are not counted": (
        "eagain",
        "\tqueue->stats.rx_page_waits++;\n",
        "",
        "eagain: to the guest",
    ),
    "waits to the guest in vain are not counted": (
        "eagain",
        "queue->stats.rx_page_wait_fails++;",
        "queue->stats.rx_page_wait_fails += 0;",
        "eagain: to the guest, in vain",
    ),
    "each wait to the guest is in vain": (
        "eagain",
        "if (round->in_vain)",
        "if (1)",
        "eagain: to the guest",
    ),
    "what is sent is not heard while something comes": (
        "eagain",
        "\t\tif (queue)\n\t\t\thear_other_way(queue);\n",
        "",
        "eagain: one event channel, to the guest",
    ),
    "what is sent is heard once while something comes": (
        "eagain",
        "\t\tif (queue)\n",
        "\t\tif (queue && !waited_us)\n",
        "eagain: one event channel, to the guest",
    ),
    "a guest is heard though nothing waits": (
        "eagain",
        "\ttry_copy(cop, nr);\n\twhile (",
        "\ttry_copy(cop, nr);\n\tif (queue)\n\t\thear_other_way(queue);\n\twhile (",
        "eagain: one event channel, to the guest",
    ),
    "a guest that waits has stalled": (
        "eagain",
        "\tqueue->last_rx_time = jiffies;\n",
        "",
        "eagain: to the guest, stalled",
    ),
    "each error is a page that is away": (
        "eagain",
        "\t\tif (cop[i].status == GNTST_eagain)\n\t\t\tcop[i].status = GNTST_bad",
        "\t\tif (cop[i].status)\n\t\t\tcop[i].status = GNTST_bad",
        "eagain: to the guest, in vain",
    ),
    "a thread does not ask after its last wait": (
        "eagain",
        "since);\n\t\tcopy_again(cop, nr);",
        "since);\n\t\tif (waited_us < longest_us())\n\t\t\tcopy_again(cop, nr);",
        "eagain: to the guest, at last",
    ),
    "rounds are counted": (
        "eagain",
        "\tround->waited = true;\n\tqueue->stats.rx_page_waits++;",
        "\tqueue->stats.rx_page_waits += !round->waited;\n\tround->waited = true;",
        "eagain: to the guest, twice",
    ),
    "all batches of a round have one time": (
        "eagain",
        "\tktime_t since = ktime_get();\n",
        "\tstatic ktime_t first;\n\tktime_t since = round->waited ? first : (first = ktime_get());\n",
        "eagain: to the guest, twice",
    ),
    "what a thread has copied is copied again": (
        "eagain",
        "since);\n\t\tcopy_again(cop, nr);",
        "since);\n\t\ttry_copy(cop, nr);",
        "eagain: to the guest",
    ),
    "a thread waits before it asks": (
        "eagain",
        "\ttry_copy(cop, nr);\n\twhile (",
        "\twhile (",
        "eagain: to the guest",
    ),
    "copies that fail are copies": (
        "eagain",
        "\t\tcop[i].status = GNTST_general_error;\n}",
        "\t\tcop[i].status = 0;\n}",
        "eagain: to the guest, no more",
    ),
    "copies that fail are said always": (
        "eagain",
        "\tif (likely(!ret))\n\t\treturn;\n\tif (net_ratelimit())",
        "\tif (likely(!ret))\n\t\treturn;\n\tif (1)",
        "eagain: to the guest, no more",
    ),
    "packets to the guest wait one by one": (
        "0307",
        "xenvif_eagain_rx(queue);",
        "gnttab_batch_copy(queue->rx_copy.op, queue->rx_copy.num);",
        "eagain: to the guest, in vain",
    ),
    "a round is the last one": (
        "0307",
        "+\tqueue->eagain.rx = (struct xenvif_round) {};\n",
        "+\t;\n",
        "eagain: to the guest, in vain",
    ),
    "a round goes on though it waits": (
        "0307",
        "+\t       !queue->eagain.rx.waited &&\n",
        "+\n",
        "eagain: to the guest, slowly",
    ),
    "a key waits as long as it takes": (
        "0307",
        "xenvif_eagain_copy(vif, &vif->ctrl_round, &copy_op, 1);",
        "gnttab_batch_copy(&copy_op, 1);",
        "eagain: control ring",
    ),
    "a mapping waits as long as it takes": (
        "0307",
        "xenvif_eagain_copy(vif, &vif->ctrl_round, copy_op, nr);",
        "gnttab_batch_copy(copy_op, nr);",
        "eagain: control ring",
    ),
    "half of a mapping": (
        "0307",
        "&vif->ctrl_round, copy_op, nr);",
        "&vif->ctrl_round, copy_op, nr - (nr > 1));",
        "eagain: control ring",
    ),
    "a control ring that waits once": (
        "0307",
        "+\tvif->ctrl_round.in_vain = false;\n",
        "+\t;\n",
        "eagain: control ring",
    ),
    "a control ring that never begins again": (
        "0307",
        "+\tvif->ctrl_round = (struct xenvif_round) {};\n",
        "+\t;\n",
        "eagain: control ring",
    ),
    "a control ring that nobody ends": (
        "0307",
        "WRITE_ONCE(vif->ctrl_round.over, true);",
        "WRITE_ONCE(vif->ctrl_round.over, false);",
        "eagain: control ring",
    ),
    "both counters to the guest are one": (
        "0307",
        "offsetof(struct xenvif_stats, rx_page_wait_fails)",
        "offsetof(struct xenvif_stats, rx_page_waits)",
        "eagain: counters",
    ),
    "what is torn is handed out": (
        "balloon",
        "\t\tif (elastic_has_memory(node, extent))\n\t\t\thand_out",
        "\t\tif (test_bit(extent, node->populated))\n\t\t\thand_out",
        "torn: not used until it is whole",
    ),
    "what is torn comes online": (
        "balloon",
        "\t\t    elastic_has_memory(node, extent))\n\t\t\tgeneric",
        "\t\t    test_bit(extent, node->populated))\n\t\t\tgeneric",
        "torn: its block goes offline and online",
    ),
    "what is torn keeps its references": (
        "balloon",
        "\t\t    elastic_has_memory(node, extent))\n\t\t\tcontinue;",
        "\t\t    test_bit(extent, node->populated))\n\t\t\tcontinue;",
        "torn: leaves with its node",
    ),
    "what is torn is free": (
        "balloon",
        "\t\tif (elastic_has_memory(node, end) &&",
        "\t\tif (test_bit(end, node->populated) &&",
        "torn: goes first",
    ),
    "what is torn is moved": (
        "balloon",
        "\t       elastic_has_memory(node, *end - 1)) {",
        "\t       test_bit(*end - 1, node->populated)) {",
        "torn: among others",
    ),
    "a run ends at what is torn": (
        "balloon",
        "\twhile (*end > first && !elastic_has_memory(node, *end - 1))",
        "\twhile (*end > first && !test_bit(*end - 1, node->populated))",
        "torn: among others",
    ),
    "what is torn is not taken": (
        "balloon",
        "\t\ttaken = take_torn(node, first, end, count);\n",
        "\t\ttaken = 0 & take_torn(node, first, end, 0);\n",
        "torn: goes first",
    ),
    "what was torn does not count": (
        "balloon",
        "take_free(node, first, end, count - taken);",
        "take_free(node, first, end, count);",
        "torn: as many as are wanted",
    ),
    "what was torn was not taken": (
        "balloon",
        "\t\ttaken += !elastic_release(node, first, 1);\n",
        "\t\telastic_release(node, first, 1);\n",
        "torn: goes first",
    ),
    "all that is torn goes": (
        "balloon",
        "taken == count || elastic_cancel_pending()",
        "elastic_cancel_pending()",
        "torn: as many as are wanted",
    ),
    "what is torn goes though it is called off": (
        "balloon",
        "taken == count || elastic_cancel_pending()",
        "taken == count",
        "torn: as many as until it is called off",
    ),
    "nobody mends": (
        "balloon",
        "rc = rc ?: mend(node, extent, end);",
        "(void)mend;",
        "torn: not used until it is whole",
    ),
    "what is mended is not used": (
        "balloon",
        "\t\t\treturn rc;\n\t\thand_out(node, first, 1);",
        "\t\t\treturn rc;",
        "torn: not used until it is whole",
    ),
    "what cannot be mended is no error": (
        "balloon",
        "rc = rc ?: mend(node, extent, end);",
        "mend(node, extent, end);",
        "torn: not used until it is whole",
    ),
    "what is there, by any host": (
        "mem",
        "return work_on_cpu(0, look_at_pages, look);",
        "return look_at_pages(look);",
        "torn: mended on a CPU of another host",
    ),
    "a part is whole": (
        "mem",
        "\tif (nr != ELASTIC_EXTENT_PAGES) {\n\t\tset_bit(extent, node->torn);\n\t\tmake_whole",
        "\tif (nr < 0) {\n\t\tset_bit(extent, node->torn);\n\t\tmake_whole",
        "torn: mended at once",
    ),
    "nothing is an extent": (
        "mem",
        "\tif (!nr) {\n\t\tunmark(node, extent, 1);\n\t\treturn false;\n\t}\n",
        "",
        "torn: by others",
    ),
    "what nobody knows is whole": (
        "mem",
        "\tif (nr != ELASTIC_EXTENT_PAGES) {\n\t\tset_bit(extent, node->torn);\n\t\tmake_whole",
        "\tif (nr >= 0 && nr != ELASTIC_EXTENT_PAGES) {\n\t\tset_bit(extent, node->torn);\n\t\tmake_whole",
        "torn: for all we know",
    ),
    "nothing is mended at once": (
        "mem",
        "\t\tset_bit(extent, node->torn);\n\t\tmake_whole(node, extent);",
        "\t\tset_bit(extent, node->torn);",
        "torn: mended at once",
    ),
    "what is there is asked for": (
        "mem",
        "\tfor_each_clear_bit(page, look.there, ELASTIC_EXTENT_PAGES) {",
        "\tfor (page = 0; page < ELASTIC_EXTENT_PAGES; page++) {",
        "torn: mended at once",
    ),
    "whole without all pages": (
        "mem",
        "\t\tif (rc != 1)\n\t\t\treturn rc ?: -ENOMEM;",
        "\t\tif (rc < 0)\n\t\t\treturn rc ?: -ENOMEM;",
        "torn: not used until it is whole",
    ),
    "torn for ever": (
        "mem",
        "\tnode->nr_split++;\n\tclear_bit(extent, node->torn);\n\treturn 0;",
        "\tnode->nr_split++;\n\treturn 0;",
        "torn: mended at once",
    ),
    "a page is lost": (
        "mem",
        "\tif (kept)\n\t\treturn false;",
        "\tif (kept > 1)\n\t\treturn false;",
        "torn: of a block that has left",
    ),
    "what has left is torn": (
        "mem",
        "\tif (kept)\n\t\treturn false;\n\tclear_bit(extent, node->torn);",
        "\tif (kept)\n\t\treturn false;",
        "torn: leaves with its node",
    ),
    "what has left in pieces counts": (
        "mem",
        "\tclear_bit(extent, node->torn);\n\tunmark(node, extent, 1);\n\treturn true;",
        "\tclear_bit(extent, node->torn);\n\treturn true;",
        "torn: as many as are wanted",
    ),
    "a page keeps those behind it": (
        "mem",
        "\t\tkept += reservation(node, XENMEM_decrease_reservation,\n\t\t\t\t    look.pfn + page, 1, 0) != 1;",
        "\t\tkept += kept || reservation(node, XENMEM_decrease_reservation,\n\t\t\t\t    look.pfn + page, 1, 0) != 1;",
        "torn: goes first",
    ),
    "pieces are given back as one": (
        "mem",
        "\t\tif (test_bit(first, node->torn)) {\n\t\t\tkept",
        "\t\tif (0 && test_bit(first, node->torn)) {\n\t\t\tkept",
        "torn: goes first",
    ),
    "a run over what is torn": (
        "mem",
        "\t\t       elastic_has_memory(node, first + run))",
        "\t\t       test_bit(first + run, node->populated))",
        "torn: leaves with its node",
    ),
    "struct pages are in pieces": (
        "mem",
        "\t\t\trc = test_bit(first + *done, node->torn) ?\n\t\t\t     elastic_mend(node, first + *done) : 0;",
        "\t\t\trc = 0;",
        "torn: struct pages",
    ),
    "single pages are lost": (
        "mem",
        "\t\tset_bit(extent, node->torn);\n\t\tmark(node, extent, 1);\n",
        "",
        "torn: as it comes",
    ),
    "some single pages are an extent": (
        "mem",
        "\t\tset_bit(extent, node->torn);\n\t\tmark(node, extent, 1);\n",
        "\t\tmark(node, extent, 1);\n",
        "torn: as it comes",
    ),
    "what Xen keeps of a kernel before is asked for": (
        "mem",
        "nr = taken + kept < had ?",
        "nr = 0 ?",
        "driver: what Xen keeps of the kernel before a kexec",
    ),
    "some pages of a kernel before are an extent": (
        "mem",
        "\t\tif (!nr || nr == ELASTIC_EXTENT_PAGES)\n\t\t\tclear_bit",
        "\t\tif (1)\n\t\t\tclear_bit",
        "driver: what Xen keeps of the kernel before a kexec",
    ),
    "an extent of a kernel before is torn": (
        "mem",
        "\t\tif (!nr || nr == ELASTIC_EXTENT_PAGES)\n\t\t\tclear_bit",
        "\t\tif (!nr)\n\t\t\tclear_bit",
        "driver: what Xen keeps of the kernel before a kexec",
    ),
    "what Xen keeps of a kernel before does not count": (
        "mem",
        "\t\t\tcontinue;\n\t\tmark(node, extent, 1);",
        "\t\t\tcontinue;",
        "driver: what Xen keeps of the kernel before a kexec",
    ),
    "strays stay, others go": (
        "node",
        "\telastic_release_strays(node);\n\tif (elastic_populated(node) < node->target)",
        "\tif (elastic_populated(node) < node->target)",
        "torn: as it comes",
    ),
    "a kernel before has left nothing": (
        "engine",
        "? ELASTIC_RESIDUAL : ELASTIC_OFFLINE;",
        "? ELASTIC_OFFLINE : ELASTIC_OFFLINE;",
        "driver: what Xen keeps of the kernel before a kexec",
    ),
    "the last of a kernel before is not looked for": (
        "mem",
        "taken + kept < had ?",
        "taken + kept + 1 < had ?",
        "driver: what Xen keeps of the kernel before a kexec",
    ),
    "what nobody knows of a kernel before is nothing": (
        "mem",
        "\t\tif (!nr)\n\t\t\tcontinue;\n\t\tmark",
        "\t\tif (nr <= 0)\n\t\t\tcontinue;\n\t\tmark",
        "driver: what Xen does not say it keeps of the kernel before a kexec",
    ),
    "as many unknown extents as a kernel before had": (
        "mem",
        "\t\telse if (nr > 0)\n\t\t\tkept++;",
        "\t\telse\n\t\t\tkept++;",
        "driver: what Xen does not say it keeps of the kernel before a kexec",
    ),
    "pieces of a kernel before did not go": (
        "mem",
        "\t\tif (!elastic_release(node, extent, 1))\n\t\t\ttaken++;",
        "\t\tif (!elastic_release(node, extent, 1))\n\t\t\tkept++;",
        "driver: what Xen keeps of the kernel before a kexec",
    ),
    "what a kernel before did not have is torn": (
        "mem",
        "\t\tif (!nr || nr == ELASTIC_EXTENT_PAGES)\n\t\t\tclear_bit",
        "\t\tif (nr == ELASTIC_EXTENT_PAGES)\n\t\t\tclear_bit",
        "driver: what Xen keeps of the kernel before a kexec",
    ),
    "memory that is for reading is nothing": (
        "mem",
        "if (type.mem_type != HVMMEM_mmio_dm)",
        "if (type.mem_type == HVMMEM_ram_rw)",
        "torn: mended at once",
    ),
    "pieces that nobody knows have gone": (
        "mem",
        "\tif (look_at_extent(node, extent, &look) < 0)\n\t\treturn false;",
        "\tif (look_at_extent(node, extent, &look) < 0)\n\t\treturn true;",
        "torn: for all we know",
    ),
    "what is torn first is not taken": (
        "balloon",
        "\t\ttaken = take_torn(node, first, end, count);",
        "\t\ttaken = take_torn(node, first + 1, end, count);",
        "torn: goes first, at the begin of its block",
    ),
    "what is torn is mended though it is called off": (
        "balloon",
        "\t\tif (elastic_cancel_pending())\n\t\t\treturn -ECANCELED;\n\t\trc = elastic_mend",
        "\t\trc = elastic_mend",
        "torn: mended until it is called off",
    ),
    "one page is all pages": (
        "mem",
        "type.pfn = look->pfn + page;",
        "type.pfn = look->pfn;",
        "torn: mended at once",
    ),
    "the engine waits for a file system": ("engine", "\tmemalloc_nofs_save();\n", "", "driver: rounds of the engine"),
    "the targets are read twice": (
        "engine",
        "again = targets_may_have_changed();",
        "again = true;",
        "requests: a take",
    ),
    "news is not read": ("engine", "again = targets_may_have_changed();", "again = false;", "requests: news meanwhile"),
    "how it ended is not told meanwhile": (
        "engine",
        "\t\t\telastic_store_report(node);",
        "\t\t\t(void)node;",
        "requests: another target meanwhile",
    ),
    "how the first of two ended is not told": (
        "engine",
        "if (again || next_operand(generation))",
        "if (again)",
        "engine: several nodes",
    ),
    "what failed is tried for ever": (
        "engine",
        "\tnode->settled = generation;\n\tif (!rc",
        "\tnode->settled = rc ? 0 : generation;\n\tif (!rc",
        "engine: one node fails",
    ),
    "the engine waits for xenwatch": (
        "engine",
        "\telastic_watch_fires();\n\treturn false;",
        "\telastic_watch_fires();\n\treturn true;",
        "requests: a take",
    ),
    "the watch does not wake": ("engine", "\telastic_watch_fires();\n", "", "requests: news meanwhile"),
    "nobody acknowledges": ("engine", "\t\t\telastic_store_ack(generation);\n", "", "requests: a take"),
    "an event is seen twice": ("engine", "\t\telastic_watch_is_seen();\n", "", "engine: several nodes"),
    "memory of the kernel before is not told": (
        "engine",
        "ELASTIC_OFFLINE;\n\telastic_store_report(node);",
        "ELASTIC_OFFLINE;\n\telastic_store_state(node);",
        "requests: after a kexec",
    ),
    "the end is told twice": (
        "node",
        "\tif (next == ELASTIC_GROWING || next == ELASTIC_DRAINING)\n\t\telastic",
        "\telastic",
        "requests: a give",
    ),
    "nobody hears that it grows": ("node", "next == ELASTIC_GROWING || ", "", "requests: an attach"),
    "nobody hears that it is drained": ("node", " || next == ELASTIC_DRAINING", "", "requests: a detach"),
    "all CPUs are woken for each detach": (
        "node",
        "\tif (elastic_pages_to_move(node->nid) <= elastic_room_elsewhere(node->nid))\n\t\treturn 0;\n",
        "",
        "requests: a detach",
    ),
    "what is on lists of CPUs decides": (
        "node",
        "\tdrain_all_pages(NULL);\n\treturn check_room",
        "\treturn check_room",
        "requests: a detach that just fits",
    ),
    "a mixture counts": ("store", "\t\trc = -EAGAIN;", "\t\trc = 0;", "store: a mixture of two operations"),
    "a mixture is taken": (
        "store",
        "if (!rc && node->usable)\n\t\t\theed",
        "if (node->usable)\n\t\t\theed",
        "store: a mixture of two operations",
    ),
    "the last generation is not looked at": (
        "store",
        "\t\trc = parse_u64(ROOT, \"generation\", last, 10, generation);",
        "\t\t*generation = before;",
        "store: a mixture of two operations",
    ),
    "other nodes are asked for": (
        "store",
        "\t\tif (node->usable)\n\t\t\task(",
        "\t\t\task(",
        "store: all nodes in one row",
    ),
    "the grace of no node": (
        "store",
        "\tif (node->state != ELASTIC_OFFLINE)\n\t\txenbus",
        "\tif (node->state < ELASTIC_NR_STATES)\n\t\txenbus",
        "store: the grace period",
    ),
    "a part of an outcome": (
        "store",
        "\t\tif (rc) {\n\t\t\txenbus_transaction_end(xbt, 1);",
        "\t\tif (0) {\n\t\t\txenbus_transaction_end(xbt, 1);",
        "store: an outcome that cannot be written",
    ),
    "a node whose outcome cannot be told": (
        "store",
        "\t\tif (node->usable)\n\t\t\telastic_store_report(node);",
        "\t\t(void)node;",
        "store: an outcome that cannot be written",
    ),
    "online before it has memory": (
        "store",
        "\tput_progress(&batch, dir, node);\n\tput_state(&batch, dir, node);\n",
        "\tput_state(&batch, dir, node);\n\tput_progress(&batch, dir, node);\n",
        "requests: after a kexec",
    ),
    "what nobody waited for comes last": ("store", "\txenbus_batch_settle();\n", "", "requests: late ones"),
    "memory is the toolstack's business": (
        "store",
        "\tif (rc == -EACCES)\n",
        "\tif (rc && rc != -EAGAIN)\n",
        "store: why it cannot be written",
    ),
    "only what the toolstack can mend is told": (
        "store",
        "\telse if (rc && rc != -EAGAIN)\n",
        "\telse if (0)\n",
        "store: why it cannot be written",
    ),
    "what is tried again is told as an error": (
        "store",
        "\telse if (rc && rc != -EAGAIN)\n",
        "\telse if (rc)\n",
        "store: why it cannot be written",
    ),
    "a residue that is drained again": (
        "store",
        "\tput_residual(batch, dir, node);\n\txenbus_batch_write",
        "\txenbus_batch_write",
        "requests: drained again",
    ),
    "who acknowledges waits": (
        "store",
        "\ttold(xenbus_batch_post(&batch));\n}\n\nstatic void put_progress",
        "\ttold(xenbus_batch_run(&batch, XBT_NIL));\n}\n\nstatic void put_progress",
        "requests: a take",
    ),
    "progress without end": (
        "store",
        "\tput_progress(&batch, dir, node);\n\ttold(xenbus_batch_run(&batch, XBT_NIL));",
        "\tput_progress(&batch, dir, node);\n\ttold(xenbus_batch_post(&batch));",
        "requests: progress",
    ),
    "the outcome is no transaction": (
        "store",
        "return told(xenbus_batch_run(&batch, xbt));",
        "return told(xenbus_batch_run(&batch, XBT_NIL));",
        "store: the outcome",
    ),
    "timers: any successor": (
        "0303",
        "+\t\tmigrator = cpumask_any_and_but(cpu_online_mask,\n+\t\t\t\t\t       housekeeping_cpumask(HK_TYPE_DOMAIN),\n",
        "+\t\tmigrator = cpumask_any_and_but(cpu_online_mask,\n+\t\t\t\t\t       cpu_online_mask,\n",
        "timers: a successor",
    ),
    "timers: it is its own successor": (
        "0303",
        "+\t\t\t\t\t       cpu);",
        "+\t\t\t\t\t       31);",
        "timers: a successor",
    ),
    "timers: isolated CPUs take part": (
        "0303",
        "+\tif (!housekeeping_cpu(cpu, HK_TYPE_DOMAIN))",
        "+\tif (!housekeeping_cpu(cpu, HK_TYPE_DOMAIN) && cpu > 1)",
        "timers: isolated CPUs",
    ),
    "timers: who never was in leaves": (
        "0303",
        "+\tif (!tmc->online)\n",
        "+\tif (!tmc->online && 0)\n",
        "timers: isolated CPUs",
    ),
    "threads: who has a number is not looked at": (
        "0310",
        "+\tif (!mm_cid_is_valid(READ_ONCE(pcpu_cid->cid)))",
        "+\tif (pcpu_cid)",
        "numbers of threads: at each CPU",
    ),
    "threads: another CPU's number": (
        "0310",
        "+\tpcpu_cid = per_cpu_ptr(mm->pcpu_cid, cpu);",
        "+\tpcpu_cid = per_cpu_ptr(mm->pcpu_cid, 0);",
        "numbers of threads: at each CPU",
    ),
    "threads: a number that is given back": (
        "0310",
        "+\tif (!mm_cid_is_valid(READ_ONCE(pcpu_cid->cid)))",
        "+\tif (READ_ONCE(pcpu_cid->cid) == MM_CID_UNSET)",
        "numbers of threads: at each CPU",
    ),
    "threads: all who have number 0": (
        "0310",
        "+\tif (cpumask_equal(cidmask, cpumask_of(0)))",
        "+\tif (cpumask_intersects(cidmask, cpumask_of(0)))",
        "numbers of threads: at all CPUs",
    ),
    "threads: any number alone": (
        "0310",
        "+\tif (cpumask_equal(cidmask, cpumask_of(0)))",
        "+\tif (!(cidmask->bits[0] & (cidmask->bits[0] - 1)))",
        "numbers of threads: at all CPUs",
    ),
    "a lock for a node that is there": ("0315", "+\tif (node_online(nid))\n", "+\tif (0)\n", "online node: each CPU"),
    "a node that is not there stays away": ("0315", "+\tif (node_online(nid))\n", "+\tif (1)\n", "online node: each CPU"),
    "offline: all is drained": (
        "0113", "+\tif (zone_idx(zone) != ZONE_MOVABLE)\n", "+\tif (!lru_drained)\n", "offline: a block that is free",
    ),
    "offline: other zones undrained": (
        "0113", "+\tif (zone_idx(zone) != ZONE_MOVABLE)\n", "+\tif (lru_drained)\n", "offline: a block of another zone",
    ),
    "offline: pages move undrained": (
        "0113", "+\t\t\t\tdrain_lru_once(&lru_drained);\n", "+\t\t\t\t;\n", "offline: a block in use",
    ),
    "offline: for a page on its way": (
        "0113",
        "+\t\tif (ret)\n+\t\t\tdrain_lru_once(&lru_drained);\n",
        "+\t\tif (!ret)\n+\t\t\tdrain_lru_once(&lru_drained);\n",
        "offline: a page that was held back",
    ),
    "offline: each process has it once": (
        "0113", "+\tbool lru_drained = false;", "+\tstatic bool lru_drained;", "offline: two blocks in use",
    ),
    "offline: one zone alone is another": (
        "0113", "zone_idx(zone) != ZONE_MOVABLE", "zone_idx(zone) == ZONE_NORMAL", "offline: a block of the zone below",
    ),
    "offline: lists to an LRU stay off where pages stay": (
        "0113",
        "+\tif (lru_drained)\n+\t\tlru_cache_enable();\n \tzone_pcp_enable(zone);\n failed_removal:",
        "+\tif (lru_drained && zone_idx(zone) != ZONE_MOVABLE)\n+\t\tlru_cache_enable();\n"
        " \tzone_pcp_enable(zone);\n failed_removal:",
        "offline: a block whose pages stay",
    ),
    "offline: drained each time": ("0113", "+\tif (*drained)\n", "+\tif (!drained)\n", "offline: a block in use"),
    "offline: and nobody knows": ("0113", "+\t*drained = true;\n", "+\t*drained = false;\n", "offline: a page on its way"),
    "offline: lists to an LRU stay off": (
        "0113",
        "+\tif (lru_drained)\n+\t\tlru_cache_enable();\n \tzone_pcp_enable(zone);\n \n",
        "+\tif (!lru_drained)\n+\t\tlru_cache_enable();\n \tzone_pcp_enable(zone);\n \n",
        "offline: a block in use",
    ),
    "offline: they stay off after a failure": (
        "0113",
        "+\tif (lru_drained)\n+\t\tlru_cache_enable();\n \tzone_pcp_enable(zone);\n failed_removal:",
        "+\tif (!lru_drained)\n+\t\tlru_cache_enable();\n \tzone_pcp_enable(zone);\n failed_removal:",
        "offline: one of another zone that fails",
    ),
    "offline: on before they were off": (
        "0113", "+\tbool lru_drained = false;", "+\tbool lru_drained = true;", "offline: a block that cannot be isolated",
    ),
    "offline: caches of a zone with slabs stay": (
        "0114", "+\t\tif (!is_zone_movable_page(", "+\t\tif (is_zone_movable_page(", "offline: caches",
    ),
    "offline: caches for a zone without slabs": (
        "0114",
        "+\t\tif (!is_zone_movable_page(pfn_to_page(marg->start_pfn)))\n",
        "+\t\tif (pfn_to_page(marg->start_pfn))\n",
        "offline: caches",
    ),
    "offline: each zone is without holes": (
        "0115", "+\tcontiguous = zone->contiguous;\n", "+\tcontiguous = true;\n", "offline: a zone is as a walk finds it",
    ),
    "offline: whatever of it goes": (
        "0115", "contiguous && zone_end_pfn(zone) <= start_pfn)", "contiguous)", "offline: a zone is as a walk finds it",
    ),
    "offline: zones become smaller": (
        "0115", "zone_end_pfn(zone) <= start_pfn", "zone_end_pfn(zone) <= end_pfn", "offline: a zone that stays as large",
    ),
    "offline: the first of it goes by a walk": (
        "0115", "zone_end_pfn(zone) <= start_pfn", "zone_end_pfn(zone) < start_pfn",
        "offline: a zone whose end goes is not walked",
    ),
    "offline: no zone is without holes": (
        "0115", "+\t\tzone->contiguous = true;\n", "+\t\t;\n", "offline: a zone is as a walk finds it",
    ),
    "offline: what comes has no hole": (
        "0115", "+\t/* It is not contiguous: nothing of this range is online yet. */\n", "+\tzone->contiguous = true;\n",
        "offline: a zone that grows",
    ),
    "offline: what comes is walked": (
        "0115", "+\t/* It is not contiguous: nothing of this range is online yet. */\n", "+\tset_zone_contiguous(zone);\n",
        "offline: a zone that grows",
    ),
    "orphans: the time before the count": (
        "0311",
        "+\t\tWRITE_ONCE(tcp_orphan_cache, tcp_orphan_count_sum());\n",
        "+\t\tWRITE_ONCE(tcp_orphan_counted, now);\n+\t\tWRITE_ONCE(tcp_orphan_cache, tcp_orphan_count_sum());\n",
        "orphans: two ask at once",
    ),
    "orphans: the count behind the time": (
        "0311",
        "+\t\tWRITE_ONCE(tcp_orphan_cache, tcp_orphan_count_sum());\n",
        "+\t\tint sum = tcp_orphan_count_sum();\n+\t\tsmp_store_release(&tcp_orphan_counted, now);\n"
        "+\t\tWRITE_ONCE(tcp_orphan_cache, sum);\n",
        "orphans: two ask at once",
    ),
    "orphans: counted once": (
        "0311",
        "+\tif (!time_in_range_open(now, last, last + TCP_ORPHAN_PERIOD)) {",
        "+\tif (!last) {",
        "orphans: how old a count is",
    ),
    "orphans: counted each time": (
        "0311",
        "+\tif (!time_in_range_open(now, last, last + TCP_ORPHAN_PERIOD)) {",
        "+\tif (now != last) {",
        "orphans: how old a count is",
    ),
    "orphans: jiffies do not come round": (
        "0311",
        "+\tif (!time_in_range_open(now, last, last + TCP_ORPHAN_PERIOD)) {",
        "+\tif (now >= last + TCP_ORPHAN_PERIOD) {",
        "orphans: how old a count is",
    ),
    "orphans: one period more": (
        "0311",
        "+#define TCP_ORPHAN_PERIOD msecs_to_jiffies(100)",
        "+#define TCP_ORPHAN_PERIOD msecs_to_jiffies(101)",
        "orphans: how old a count is",
    ),
    "orphans: nobody keeps the count": (
        "0311",
        "+\t\tWRITE_ONCE(tcp_orphan_cache, tcp_orphan_count_sum());",
        "+\t\ttcp_orphan_count_sum();",
        "orphans: how old a count is",
    ),
    "orphans: the time behind the count is when it has ended": (
        "0311",
        "smp_store_release(&tcp_orphan_counted, now)",
        "smp_store_release(&tcp_orphan_counted, jiffies)",
        "orphans: counting takes time",
    ),
    "batch: woken for each answer": (
        "xenbus_batch",
        "list_for_each_entry_safe_reverse(",
        "list_for_each_entry_safe(",
        "batch: the answers",
    ),
    "batch: what is not there cannot go": (
        "xenbus_batch",
        "return type == XS_RM && err == ENOENT ? 0 : -err;",
        "return -err;",
        "batch: the answers",
    ),
    "batch: what is not there can be written": (
        "xenbus_batch",
        "return type == XS_RM && err == ENOENT ? 0 : -err;",
        "return err == ENOENT ? 0 : -err;",
        "batch: one fails",
    ),
    "batch: the last error": ("xenbus_batch", "rc = err ?: rc;", "rc = rc ?: err;", "batch: one fails"),
    "batch: no transaction": ("xenbus_batch", "\tmsg.tx_id = t.id;\n", "\t(void)t;\n", "batch: what is sent"),
    "batch: the end of a text": (
        "xenbus_batch",
        "size_t length = path + strlen(value);",
        "size_t length = path + strlen(value) + 1;",
        "batch: what is sent",
    ),
    "batch: any answer will do": (
        "xenbus_batch",
        "error_of(type, body) : -EINVAL",
        "error_of(type, body) : 0",
        "batch: odd answers",
    ),
    "batch: an end without an answer": ("xenbus_batch", "\t\trc = PTR_ERR(body);", "\t\trc = 0;", "batch: no answer any more"),
    "batch: a suspend waits for ever": ("xenbus_batch", "\txs_request_exit(req);\n", "", "batch: not waited for"),
    "batch: what nobody waits for stays": (
        "xenbus_batch",
        "\tkref_put(&req->kref, xs_free_req);\n",
        "",
        "batch: not waited for",
    ),
    "batch: nobody hears of an error": (
        "xenbus_batch",
        "\t\tif (err)\n\t\t\tpr_warn",
        "\t\tif (0)\n\t\t\tpr_warn",
        "batch: not waited for",
    ),
    "a mixture is read once": ("engine", "} while (rc == -EAGAIN);", "} while (0);", "requests: news while it reads"),
    "too little is enough": (
        "engine",
        "\tif (!rc && !elastic_node_settled(node))",
        "\tif (0)",
        "engine: too little",
    ),
    "a signal wakes the engine for ever": ("engine", "\t\tflush_signals(current);\n", "", "engine: several nodes"),
    "the next kernel seems to have a driver": (
        "engine",
        "\telastic_store_goodbye();\n\treturn NOTIFY_DONE;",
        "\treturn NOTIFY_DONE;",
        "engine: hello and goodbye",
    ),
    "nobody says that there is a driver": ("engine", "\telastic_store_hello();\n", "", "engine: hello and goodbye"),
    "a node that nobody knows is worked on": (
        "engine",
        "\t\tif (!node->usable || node->settled == generation)",
        "\t\tif (node->settled == generation)",
        "engine: a node of a stranger",
    ),
    "why one was called off is why the next one is": (
        "op",
        "\top.out_of_memory = false;\n\top.interruptible",
        "\top.interruptible",
        "driver: called off for another reason",
    ),
    "an event wakes nobody": (
        "op",
        "\twake_up_all(&elastic_wq);\n}\n\n/* How many",
        "}\n\n/* How many",
        "requests: a take",
    ),
    "the ticker goes on": ("op", "\tcancel_delayed_work_sync(&ticker);\n", "", "requests: a take"),
    "grace periods at their pace": ("op", "\t\trcu_expedite_gp();\n", "\t\t(void)phase;\n", "driver: slow memory leaves"),
    "they stay expedited": ("op", "\t\trcu_unexpedite_gp();\n", "\t\t(void)phase;\n", "driver: slow memory leaves"),
    "expedited once for ever": (
        "op",
        "\tif (!waits_for_rcu(phase) && waits_for_rcu(op.phase))\n\t\trcu_unexpedite_gp();\n",
        "",
        "driver: slow memory leaves",
    ),
    "expedited while extents are taken": (
        "node",
        "\tunsigned int budget = SQUEEZE_MS;\n\tu32 block;\n\n\telastic_phase(ELASTIC_PH_EVACUATE);\n",
        "\tunsigned int budget = SQUEEZE_MS;\n\tu32 block;\n\n\telastic_phase(ELASTIC_PH_RELEASE);\n",
        "driver: hollow blocks leave",
    ),
    **{
        f"grace periods at their pace in {phase}": ("op", f"BIT(ELASTIC_PH_{phase})", "0", "driver: slow memory leaves")
        for phase in ("ADD", "ONLINE", "CPUS", "OFFLINE", "RELEASE", "NODE")
    },
    **{
        f"expedited in {phase}": (
            "op",
            "BIT(ELASTIC_PH_CPUS)",
            f"BIT(ELASTIC_PH_CPUS) | BIT(ELASTIC_PH_{phase})",
            "driver: slow memory leaves",
        )
        for phase in ("POPULATE", "NOTIFY", "EVACUATE", "ACKS")
    },
    "elastic in any way": ("store", "if (elastic != 1)", "if (!elastic)", "store: elastic in another way"),
    "CPUs that cannot be read are none": (
        "store",
        "\t\tif (PTR_ERR(text) != -ENOENT)\n\t\t\treturn elastic",
        "\t\tif (0)\n\t\t\treturn elastic",
        "store: CPUs that cannot be read",
    ),
    "its own CPUs are another's": (
        "store",
        "if (other != node && cpumask",
        "if (cpumask",
        "store: CPUs that cannot be read",
    ),
    "a text is left": (
        "store",
        "\tif (rc)\n\t\tfree_text(&last);\n\telse\n",
        "\tif (!rc)\n",
        "store: all nodes in one row",
    ),
    "hello in silence": (
        "store",
        "told(xenbus_write(XBT_NIL, GUEST, \"version\", \"1\"));",
        "told(0);",
        "store: hello and goodbye",
    ),
    "goodbye in silence": ("store", "\txenbus_rm(XBT_NIL, GUEST, \"version\");\n", "", "store: hello and goodbye"),
    "batch: an answer that nobody waits for stays": ("xenbus_batch", "\tkfree(req->body);\n", "", "batch: not waited for"),
    "batch: an answer that is no text stays": (
        "xenbus_batch",
        "\tif (rc || !text)\n\t\tkfree(body);",
        "\tif (rc)\n\t\tkfree(body);",
        "batch: the answers",
    ),
    "batch: what is not sent stays": (
        "xenbus_batch",
        "\tlist_for_each_entry_safe(r, next, &batch->requests, row)\n\t\tkfree(r);\n",
        "\t(void)r;\n\t(void)next;\n",
        "batch: no memory",
    ),
    "batch: what nobody waits for is nothing": (
        "xenbus_batch",
        "\t\tatomic_inc(&under_way);\n",
        "",
        "batch: waited for later",
    ),
    "batch: who waits later is not woken": (
        "xenbus_batch",
        "wake_up(&none_under_way);",
        "(void)none_under_way;",
        "batch: waited for later",
    ),
    "batch: nobody waits later": (
        "xenbus_batch",
        "\twait_event(none_under_way, !atomic_read(&under_way));\n",
        "",
        "batch: waited for later",
    ),
    "batch: run in part": (
        "xenbus_batch",
        "\tif (batch->error) {\n\t\tforget(batch);\n\t\treturn batch->error;\n\t}\n\tlist_for_each_entry(r,",
        "\tlist_for_each_entry(r,",
        "batch: no memory",
    ),
    "batch: posted in part": (
        "xenbus_batch",
        "\tif (batch->error) {\n\t\tforget(batch);\n\t\treturn batch->error;\n\t}\n\t/* One",
        "\t/* One",
        "batch: no memory",
    ),
    "batch: answers of nobody": ("xenbus_batch", "\t\t*text = ERR_PTR(-ENOMEM);", "\t\t(void)text;", "batch: no memory"),
    "a name as it is": ("text", "\telastic_text_clean(text);", "", "text: a name in UTF-8"),
    "signed bytes taken for printable": ("text", "*text < ' ' || *text > '~'", "*text == '\\n'", "text: every byte"),
    "the end of a name is trusted": (
        "text",
        '(%.*s)", residue->pid, ELASTIC_COMM_LEN - 1,',
        '(%.*s)", residue->pid, 99,',
        "text: a name that no byte ends",
    ),
    # A second reading of decision 0153.
    "who is to stop works on": (
        "engine",
        "\t\tif (targets_may_have_changed())\n\t\t\tcarry_out();",
        "\t\tcarry_out();",
        "engine: no news",
    ),
    "who has not started is not stopped": ("engine", "\tkthread_stop(engine);\n", "", "engine: no news"),
    "online without memory after a kexec": (
        "engine",
        "\tnode->state = ELASTIC_DRAINING;\n\telastic_store_state(node);\n",
        "",
        "requests: after a kexec without a rest",
    ),
    "what a kernel before has left is drained for ever": (
        "engine",
        "ELASTIC_RESIDUAL : ELASTIC_OFFLINE;",
        "ELASTIC_RESIDUAL : node->state;",
        "requests: after a kexec without a rest",
    ),
    "what cannot be read is not told": (
        "store",
        "\t\tif (rc != -ENOENT)\n\t\t\tpr_err",
        "\t\tif (0)\n\t\t\tpr_err",
        "requests: a generation that cannot be read",
    ),
    "before the first operation each look is an error": (
        "store",
        "\t\tif (rc != -ENOENT)\n\t\t\tpr_err",
        "\t\tif (rc)\n\t\t\tpr_err",
        "requests: a generation that cannot be read",
    ),
    "CPUs that cannot be read are no reason": (
        "store",
        "\t\t\treturn elastic_node_error(node, PTR_ERR(text),\n\t\t\t\t\t\t  \"%s/cpus cannot be read\", dir);",
        "\t\t\treturn PTR_ERR(text);",
        "store: CPUs that cannot be read",
    ),
    "long phases are cut off": ("store", "ELASTIC_NR_PHASES * 32", "ELASTIC_NR_PHASES * 16", "store: the longest phases"),
    "an outcome without a transaction": ("store", "\t\tif (rc)\n\t\t\tbreak;\n", "", "store: no transaction"),
    "whatever is committed in vain is tried again": (
        "store",
        "while (rc == -EAGAIN && ++tries",
        "while (rc && ++tries",
        "store: no transaction",
    ),
    "a question leaves something": (
        "store",
        "\theed(node, &demand);\n\tforget(&demand);\n",
        "\theed(node, &demand);\n",
        "store: nothing is left of a question",
    ),
    "an event as the answers come is lost": (
        "engine",
        "\t\tlooked = elastic_watch_events();\n\t\telastic_watch_is_seen();\n\t\trc = elastic_store_requests(generation);\n",
        "\t\telastic_watch_is_seen();\n\t\trc = elastic_store_requests(generation);\n\t\tlooked = elastic_watch_events();\n",
        "requests: news behind it",
    ),
    "before the first operation something is left of a kernel before": (
        "store",
        '"current-kb", 10, &kib) ? 0 : kib;',
        '"current-kb", 10, &kib) ? 1 : kib;',
        "requests: a boot",
    ),
    "a generation in hexadecimal": (
        "store",
        '"generation", first, 10, &before)',
        '"generation", first, 16, &before)',
        "store: all nodes in one row",
    ),
    "a grace period of nobody stays": (
        "store",
        "\tfree_text(&demand->grace);\n",
        "",
        "store: nothing is left of a question",
    ),
    "a stranger's outcome": (
        "store",
        "\t\tif (node->usable)\n\t\t\telastic_store_report(node);",
        "\t\telastic_store_report(node);",
        "store: no transaction",
    ),
    "the lists are emptied though there is room": (
        "node",
        "if (elastic_pages_to_move(node->nid) <= elastic",
        "if (elastic_pages_to_move(node->nid) < elastic",
        "requests: a detach that just fits",
    ),
    "a node without its maps": (
        "engine",
        "\t\t\trc = elastic_mem_init(node);",
        "\t\t\telastic_mem_init(node);",
        "engine: a start",
    ),
    "a start without nodes": ("engine", "\tif (!discover())\n\t\treturn -ENODEV;", "\tdiscover();", "engine: a start"),
    "a start without a balloon": (
        "engine",
        "\trc = elastic_balloon_init();\n\tif (rc)\n\t\treturn rc;",
        "\trc = elastic_balloon_init();",
        "engine: a start",
    ),
    "a start without an evacuation": (
        "engine",
        "\trc = elastic_evac_init();\n\tif (rc)\n\t\treturn rc;",
        "\trc = elastic_evac_init();",
        "engine: a start",
    ),
    "a start without a page for programs": (
        "engine",
        "\trc = elastic_topo_init();\n\tif (rc)\n\t\treturn rc;",
        "\trc = elastic_topo_init();",
        "engine: a start",
    ),
    "no start where a suspend is not refused": (
        "engine",
        '\t\tpr_warn("a suspend will not be refused: %d\\n", rc);',
        "\t\treturn rc;",
        "engine: a start",
    ),
    "the watch before there is somebody to wake": ("engine", "\telastic_op_init(engine);\n", "", "engine: a start"),
    "who has not started says goodbye before a reboot": (
        "engine",
        "\tunregister_reboot_notifier(&reboot_nb);\n",
        "",
        "engine: no news",
    ),
    "the engine is not frozen": ("engine", "\tset_freezable();\n", "", "driver: rounds of the engine"),
    "the engine takes no signal": ("engine", "\tallow_signal(SIGINT);\n", "", "driver: rounds of the engine"),
    "batch: an error of the row before": ("xenbus_batch", "\tbatch->error = 0;\n", "", "batch: no memory"),
    "batch: what is not sent is in the row": (
        "xenbus_batch",
        "\t\tkfree(r);\n\tINIT_LIST_HEAD(&batch->requests);\n",
        "\t\tkfree(r);\n",
        "batch: no memory",
    ),
    "batch: memory from who waits for xenstore": (
        "xenbus_batch",
        "GFP_NOIO | __GFP_HIGH",
        "GFP_KERNEL",
        "batch: what is sent",
    ),
    "batch: counted when it may be over": (
        "xenbus_batch",
        "\t\tatomic_inc(&under_way);\n\t\tsend(r, XBT_NIL, nobody_waits);\n",
        "\t\tsend(r, XBT_NIL, nobody_waits);\n\t\tatomic_inc(&under_way);\n",
        "batch: answered at once",
    ),
    "batch: the one behind what is gone": (
        "xenbus_batch",
        "be gone. */\n\tlist_for_each_entry_safe(r, next, &batch->requests, row) {\n",
        "be gone. */\n\tlist_for_each_entry(r, &batch->requests, row) {\n\t\tnext = r;\n\t\t(void)next;\n",
        "batch: answered at once",
    ),
    "batch: where the text of what is gone is to be": (
        "xenbus_batch",
        "\tbody = xs_wait_for_reply(&r->req, &msg);\n",
        "\tbody = xs_wait_for_reply(&r->req, &msg);\n\ttext = r->text;\n",
        "batch: the answers",
    ),
    "batch: written behind its end": ("xenbus_batch", "body, length + 1)", "body, length - 1)", "batch: what is sent"),
    "batch: what is not posted stays": (
        "xenbus_batch",
        "\t\tforget(batch);\n\t\treturn batch->error;\n\t}\n\t/* One",
        "\t\treturn batch->error;\n\t}\n\t/* One",
        "batch: no memory",
    ),
    "nonsense is not told": (
        "store",
        "\tif (rc)\n\t\tpr_err_ratelimited(\"%s/%s: '%.32s'",
        "\tif (0)\n\t\tpr_err_ratelimited(\"%s/%s: '%.32s'",
        "store: all nodes in one row",
    ),
    "a thread that never runs": ("engine", "\twake_up_process(engine);\n", "", "engine: a start"),
    "a start that fails in silence": ("engine", "\telse if (rc)\n", "\telse if (0)\n", "engine: a start"),
    "a guest without such nodes has failed": ("engine", "\tif (rc == -ENODEV)\n", "\tif (0)\n", "engine: a start"),
    "that a suspend is not refused is not told": (
        "engine",
        '\tif (rc)\n\t\tpr_warn("a suspend',
        '\tif (0)\n\t\tpr_warn("a suspend',
        "engine: a start",
    ),
    "the time of the operation before": (
        "op",
        "\tmemset(node->phase_us, 0, sizeof(node->phase_us));\n",
        "",
        "requests: phases",
    ),
    "the last phase takes no time": ("op", "\telastic_phase(ELASTIC_NR_PHASES);\n", "", "requests: phases"),
    "the time of a phase is that of its last part": (
        "op",
        "node->phase_us[op.phase] +=",
        "node->phase_us[op.phase] =",
        "requests: phases",
    ),
    "an operation without end": ("op", "\tWRITE_ONCE(op.node, NULL);\n", "", "requests: a take"),
    "what others have changed is not looked for": ("node", "\telastic_topo_refresh();\n", "", "requests: an attach"),
    "who is called off has failed": (
        "node",
        "if (rc && rc != -ECANCELED)\n\t\tnode->nr",
        "if (rc)\n\t\tnode->nr",
        "requests: another target meanwhile",
    ),
    "nobody has failed": (
        "node",
        "if (rc && rc != -ECANCELED)\n\t\tnode->nr",
        "if (0)\n\t\tnode->nr",
        "requests: a detach that does not fit",
    ),
    "the ticker interrupts nobody": (
        "op",
        "\tif (op.cancel)\n\t\tinterrupt_engine();\n\telse if",
        "\tif (op.cancel)\n\t\t;\n\telse if",
        "driver: called off by the ticker",
    ),
    "the ticker sees no guest that grows": (
        "op",
        "\telse if (op.interruptible && elastic_short_of_room(node))\n",
        "\telse if (0)\n",
        "driver: called off by the ticker",
    ),
    "the reason of the operation before": (
        "store",
        "\tnode->error[0] = '\\0';\n",
        "",
        "requests: another reason",
    ),
    "a reason goes before there is a success": (
        "store",
        "\tnode->error[0] = failed;",
        "\t(void)failed;",
        "requests: another reason",
    ),
    "what cannot be read is nonsense": (
        "store",
        "bool unread = IS_ERR(demand->target);",
        "bool unread = false;",
        "store: a target that cannot be read",
    ),
    "a residue of a kernel before has no CPUs": (
        "store",
        "(node->state == ELASTIC_RESIDUAL && cpumask_empty(&node->cpus)))",
        "0)",
        "requests: after a kexec",
    ),
    "the ticker of no operation": (
        "op",
        "\tif (!node)\n\t\treturn;\n\n\telastic",
        "\telastic",
        "driver: called off by the ticker",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str, tmp_path: Path) -> None:
    noun, old, new, case = MUTANTS[mutant]
    text = file_of(noun).read_text()
    assert text.count(old) == 1, f"{file_of(noun).name} has changed: {old!r}"
    source = tmp_path / f"{noun}.c"
    source.write_text(text.replace(old, new))
    parts = {test: (*files, *HOOKS_OF.get(test, ())) for test, files in PROGRAMS.items()}
    test = next(t for t, files in parts.items() if noun in files and (t, case) in names())
    done = run(build(test, tmp_path, {noun: source}), case)
    assert done.returncode == 1, f"{case!r} holds for a {noun}.c with this mistake"
