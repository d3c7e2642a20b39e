# SPDX-License-Identifier: GPL-2.0-only
"""common/scrub.c of the hypervisor, compiled in user space: cases of scrub_test.c, and mutants that they notice."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.unit.xen.case_programs import assert_holds, mistaken, names, run

HERE = Path(__file__).resolve().parent
OVERLAY = HERE.parents[2] / "xen" / "overlay" / "xen"
SOURCE = OVERLAY / "common" / "scrub.c"

_scratch = tempfile.TemporaryDirectory(prefix="scrub_test.")


def build(source: Path, program: Path, *flags: str) -> Path:
    """One version of scrub.c with the cases; the fake's headers come before the hypervisor's own."""
    include = [f"-I{folder}" for folder in (HERE / "fake_scrub", HERE, OVERLAY / "include")]
    warnings = ["-Wall", "-Wextra", "-Wno-unused-parameter", "-Werror"]
    files = [str(source), str(HERE / "scrub_test.c")]
    subprocess.run(
        ["gcc", "-std=gnu99", "-g", "-O1", "-pthread", *warnings, *flags, *include, "-o", program, *files], check=True
    )
    return program


@cache
def program() -> Path:
    return build(SOURCE, Path(_scratch.name) / "scrub_test")


@pytest.mark.parametrize("name", names(program))
def test_case(name: str) -> None:
    assert_holds(program(), name)


def test_nobody_races() -> None:
    """The cases with threads once more, with the sanitizer for those."""
    checked = build(SOURCE, Path(_scratch.name) / "scrub_test_threads", "-fsanitize=thread")
    for name in ("the scrubber waits for a helper", "nobody joins a scrubber that leaves", "many at once"):
        assert_holds(checked, name)


# What is replaced, by what, and a case that has to fail then.
MUTANTS = {
    "by default all help": ("opt_scrub_cpus = 1;", "opt_scrub_cpus = 0;", "by default nobody helps"),
    "one CPU too many": ("return cpus ? cpus - 1 : NR_CPUS;", "return cpus ? cpus : NR_CPUS;", "as many as allowed"),
    "0 is none": ("return cpus ? cpus - 1 : NR_CPUS;", "return cpus ? cpus - 1 : 0;", "all of them"),
    "chunks overlap": ("team->next += nr;", "team->next += nr - (nr > 1);", "one CPU, all dirty"),
    "a chunk behind the end": (
        "min(CHUNK, team->end - team->next)",
        "CHUNK",
        "a buddy of one frame",
    ),
    "clean frames are scrubbed": (
        "        if ( !test_bit(_PGC_need_scrub, &pg[i].count_info) )\n            continue;\n",
        "",
        "clean frames are passed by",
    ),
    "it stays dirty": ("        pg[i].count_info &= ~PGC_need_scrub;\n", "", "one CPU, all dirty"),
    "from the begin": (
        "unsigned int from = pg->u.free.first_dirty;",
        "unsigned int from = 0;",
        "it begins at the first that may be dirty",
    ),
    "old frames are counted again": ("    team->scrubbed = 0;\n", "", "who helps does not sleep"),
    "who helped is not counted": ("        team->scrubbed += dirty;\n", "", "a helper takes what is left"),
    "the scrubber's are not counted": ("        *dirty += mine;\n", "", "one CPU, all dirty"),
    "the helpers' are not counted": ("    *dirty += all;\n", "", "a helper takes what is left"),
    "a wrong weight": ("*cnt += nr + mine * 99;", "*cnt += nr + mine * 100;", "one CPU, all dirty"),
    "nobody may want it": (
        " &&\n              pg->u.free.scrub_state != BUDDY_SCRUB_ABORT );",
        " );",
        "somebody wants the buddy",
    ),
    "other work waits": (
        "            *preempt = true;",
        "            *preempt = false;",
        "other work, after more than 8 frames",
    ),
    "other work at once": ("(cnt > PATIENT && ", "(cnt && ", "other work, after more than 8 frames"),
    "other work after 9 frames": (
        "#define PATIENT 800U",
        "#define PATIENT 700U",
        "other work, after more than 8 frames",
    ),
    "offline CPUs go on": ("return !cpu_online(cpu) || (cnt", "return (cnt", "a CPU that goes offline"),
    "a helper goes on": (" && !has_other_work(PATIENT + 1) )", " )", "a helper with other work"),
    "it is not waited for": (
        "    while ( team->helpers )\n",
        "    while ( false )\n",
        "the scrubber waits for a helper",
    ),
    "who comes late joins": ("    team->pg = NULL;\n", "", "nobody joins a scrubber that leaves"),
    "it is waited for with the lock": (
        "        spin_unlock(&team->lock);\n        cpu_relax();\n        spin_lock(&team->lock);\n",
        "        cpu_relax();\n",
        "the scrubber waits for a helper",
    ),
    "helpers are not counted": (
        "        team->helpers++;\n",
        "        team->helpers += 0;\n",
        "the scrubber waits for a helper",
    ),
    "a helper never leaves": ("        team->helpers--;\n", "", "as many as allowed"),
    "another node's": ("&teams[node == NUMA_NO_NODE ? 0 : node]", "&teams[node & 0]", "of the same node"),
    "no node is none": ("node == NUMA_NO_NODE ? 0 : node", "node % 3 ? node % 3 : 2", "of the same node"),
    "who does not help says so": ("    return helped;", "    return true;", "of the same node"),
    "nobody is woken": ("        cpu_raise_softirq(cpu, SCHEDULE_SOFTIRQ);\n", "", "who sleeps is woken"),
    "all are woken": ("        nr--;\n", "", "who sleeps is woken"),
    "woken again": ("!cpumask_test_and_clear_cpu(cpu, &asleep)", "!(asleep.bits & 1UL << cpu)", "who sleeps is woken"),
    "it wakes itself": ("cpu == smp_processor_id() || ", "", "who sleeps is woken"),
    "who is offline is woken": (" || !cpu_online(cpu) ||\n", " ||\n", "who is offline is not woken"),
    "woken for little": ("#define ENOUGH  512U", "#define ENOUGH  256U", "who sleeps is woken"),
    "woken for more": ("#define ENOUGH  512U", "#define ENOUGH  513U", "who sleeps is woken"),
    "who helps is taken for asleep": (
        "        if ( !helped )\n            cpumask_clear_cpu(cpu, &asleep);\n",
        "",
        "who helps does not sleep",
    ),
    "who sleeps does not say so": ("    cpumask_set_cpu(cpu, &asleep);\n", "", "who sleeps is woken"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str, tmp_path: Path) -> None:
    old, new, case = MUTANTS[mutant]
    try:
        done = run(build(mistaken(SOURCE, old, new, tmp_path), tmp_path / "mutant"), case, seconds=10)
    except subprocess.TimeoutExpired:
        return  # it waits for ever, which is noticed, too: without a mistake it takes a hundredth of that
    assert done.returncode != 0, f"{case} passed"
