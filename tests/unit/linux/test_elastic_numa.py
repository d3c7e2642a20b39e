# SPDX-License-Identifier: GPL-2.0-only
"""Files of the guest's elastic NUMA driver, compiled in user space: the pure ones, and its operations on a simulated machine.

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

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "linux-guest" / "overlay"
DRIVER = OVERLAY / "drivers" / "xen" / "elastic-numa"
# Each NAME_test.c, and the files of the driver that it is compiled with.
PROGRAMS = {
    "state": ("state",),
    "extent": ("extent",),
    "page": ("page",),
    "text": ("text",),
    "driver": ("node", "mem", "state", "extent", "text"),
}

_scratch = tempfile.TemporaryDirectory(prefix="elastic_numa_test.")


def fake_headers(folder: Path, sources: list[Path]) -> Path:
    """Make every kernel header that the sources include and user space has not, out of fake_kernel.h."""
    for source in sources:
        for name in re.findall(r"^#include <((?:linux|asm|xen)/[^>]+)>", source.read_text(), re.MULTILINE):
            if name != "linux/errno.h" and not (OVERLAY / "include" / "uapi" / name).exists():
                header = folder / name
                header.parent.mkdir(parents=True, exist_ok=True)
                header.write_text('#include "fake_kernel.h"\n')
    return folder


def build(name: str, folder: Path, instead: dict[str, Path] | None = None) -> Path:
    """Compile a test with its files of the driver, or with other versions of them."""
    sources = [(instead or {}).get(noun, DRIVER / f"{noun}.c") for noun in PROGRAMS[name]]
    include = [HERE / "fake", DRIVER, OVERLAY / "include" / "uapi"]
    if name == "driver":
        include = [HERE, fake_headers(folder / "headers", [DRIVER / "elastic.h", *sources]), *include]
    program = folder / f"{name}_test"
    # fmt: off
    subprocess.run(
        ["gcc", "-std=gnu11", "-g", "-O2", "-Wall", "-Wextra", "-Wno-unused-parameter", "-Wno-sign-compare", "-Werror",
         "-Wno-missing-field-initializers", "-pthread", *(f"-I{path}" for path in include),
         "-o", program, *sources, HERE / f"{name}_test.c"],
        check=True,
    )
    # fmt: on
    return program


@cache
def program(name: str) -> Path:
    return build(name, Path(_scratch.name))


def run(test: Path, name: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([test, name], capture_output=True, text=True, timeout=120, check=False)


def names() -> list[tuple[str, str]]:
    """The cases; for a file that does not compile, one that says so."""
    found: list[tuple[str, str]] = []
    for noun in PROGRAMS:
        try:
            found += [(noun, name) for name in run(program(noun), "--list").stdout.splitlines()]
        except subprocess.CalledProcessError:
            found.append((noun, f"{noun}_test.c compiles"))
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
    "stuck blocks add up": (
        "node",
        "!*budget_ms && elastic_block_in_use(node, block)",
        "0",
        "driver: stuck blocks do not add up",
    ),
    "what failed costs nothing": (
        "node",
        "*budget_ms -= min(*budget_ms, spent);",
        "(void)spent;",
        "driver: stuck blocks do not add up",
    ),
    "nobody is waited for": ("node", "min(*budget_ms, BLOCK_MS)", "0", "driver: one stuck block is waited for"),
    "memory stays hidden when it runs out": (
        "node",
        "\tnode_clear(node->nid, cpuset_draining_nodes);\n\treturn",
        "\treturn",
        "driver: out of memory at each step of a detach",
    ),
    "out of memory is nobody's mistake": (
        "node",
        "if (!elastic_out_of_memory())",
        "if (1)",
        "driver: out of memory at each step of a detach",
    ),
    "called off, and kept from programs": (
        "node",
        "{\n\tset_draining(node, false);\n\ttransition(node, ELASTIC_EV_GROW);",
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
    "refused extents count twice": (
        "node",
        "want = min(target - elastic_populated(node) +\n\t\t\t   elastic_block_populated(node, block),",
        "want = min(target - elastic_populated(node),",
        "driver: extents that Xen refused are used again",
    ),
    "memory of the kernel before is kept": (
        "mem",
        "ELASTIC_EXTENT_ORDER) == 1)",
        "0) == 1)",
        "driver: memory of the kernel before a kexec",
    ),
    "a name as it is": ("text", "\telastic_text_clean(text);", "", "text: a name in UTF-8"),
    "signed bytes taken for printable": ("text", "*text < ' ' || *text > '~'", "*text == '\\n'", "text: every byte"),
    "the end of a name is trusted": (
        "text",
        "(%.*s)\", residue->pid, ELASTIC_COMM_LEN - 1,",
        "(%.*s)\", residue->pid, 99,",
        "text: a name that no byte ends",
    ),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str, tmp_path: Path) -> None:
    noun, old, new, case = MUTANTS[mutant]
    text = (DRIVER / f"{noun}.c").read_text()
    assert text.count(old) == 1, f"{noun}.c has changed: {old!r}"
    source = tmp_path / f"{noun}.c"
    source.write_text(text.replace(old, new))
    test = noun if noun in PROGRAMS else "driver"
    done = run(build(test, tmp_path, {noun: source}), case)
    assert done.returncode == 1, f"{case!r} holds for a {noun}.c with this mistake"
