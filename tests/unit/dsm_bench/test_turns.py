# SPDX-License-Identifier: GPL-2.0
"""Threads that take turns (benchmarks/programs/turns.h): each on its CPU, nobody ahead, and a look while all wait."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from lab.pipeline.paths import REPO
from tests.unit.dsm_bench.changed_program import changed

PROGRAMS = REPO / "benchmarks" / "programs"
# What each has done in a turn is seen by all others' next one, and by the look in between.
PROGRAM = """
#define _GNU_SOURCE
#include "turns.h"

#define THREADS 3
#define TURNS 400

static volatile unsigned int done[THREADS], looks, late;
static long cpus[THREADS];

static void each(unsigned int thread)
{
	if (sched_getcpu() != cpus[thread])
		die("thread %u is elsewhere", thread);
	if (done[thread] != looks)
		die("thread %u does what it has done", thread);
	/* Whoever comes last is not always the same. */
	for (unsigned int i = 0; i < (looks * 7 + thread) % 5 * 200; i++)
		_mm_pause();
	done[thread]++;
}

static bool look(void)
{
	looks++;
	for (unsigned int i = 0; i < 1000; i++)
		for (unsigned int thread = 0; thread < THREADS; thread++)
			if (done[thread] != looks)
				die("in look %u thread %u has done %u", looks, thread, done[thread]);
	return looks % TURNS;
}

int main(int argc, char **argv)
{
	(void)argc;
	for (unsigned int i = 0; i < THREADS; i++)
		cpus[i] = number("cpu", argv[i + 1], 0, CPU_SETSIZE - 1);
	take_turns(THREADS, cpus, each, look);
	/* Once more, as for the next shape. */
	looks = done[0] = done[1] = done[2] = 0;
	take_turns(THREADS, cpus, each, look);
	return looks != TURNS;
}
"""


def turned(folder: Path, changes: dict[str, str]) -> subprocess.CompletedProcess[str]:
    (folder / "source").mkdir()
    source = folder / "source" / "turned.c"
    source.write_text(PROGRAM)
    for header in ("turns.h", "words.h"):
        (source.parent / header).write_text((PROGRAMS / header).read_text())
    own = sorted(os.sched_getaffinity(0))
    cpus = [str((own * 3)[number]) for number in (1, 0, 2)]
    program = changed(source, folder, changes)
    return subprocess.run([program, *cpus], capture_output=True, text=True, check=False, timeout=60)


def test_turns(tmp_path: Path) -> None:
    done = turned(tmp_path, {})
    assert done.returncode == 0, done.stderr


# A line, and what it becomes.
WRONG = {
    "who comes does not wait": ("++turns.arrived == turns.threads", "++turns.arrived"),
    "one is not waited for": ("++turns.arrived == turns.threads", "++turns.arrived == turns.threads - 1"),
    "nobody waits for the look": ("\t\tturns.each(thread);\n\t\tmeet();\n", "\t\tturns.each(thread);\n"),
    "nobody waits for the last turn's look": ("!turns.ends; meet()", "!turns.ends;"),
    "any CPU": ("CPU_SET((size_t)cpu, &set);", "CPU_SET((size_t)turns.cpus[!thread], &set);"),
    "each looks": ("if (!thread)", "if (thread < 2)"),
    "a second time does not begin": ("\tturns.ends = false;\n", ""),
    "one turn": ("turns.ends = !turns.look();", "turns.ends = turns.look();"),
}


@pytest.mark.parametrize("what", WRONG)
def test_what_is_wrong_is_noticed(tmp_path: Path, what: str) -> None:
    if what == "any CPU" and len(os.sched_getaffinity(0)) < 2:
        pytest.skip("this process may use one CPU only: a thread on the wrong one takes two")
    old, new = WRONG[what]
    try:
        done = turned(tmp_path, {old: new})
    except subprocess.TimeoutExpired:
        return
    assert done.returncode
