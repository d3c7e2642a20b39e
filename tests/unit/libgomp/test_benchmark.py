# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The benchmark of the parallel region counts what it says it counts."""

from __future__ import annotations

import subprocess
from pathlib import Path

from benchmarks import parallel_region
from tests.unit.libgomp.gomp_player import ELASTIC

PROFILE = """\
version: 1
positions: line
events: Ir

ob=(1) /lib/libc.so.6
fl=(1) malloc.c
fn=(1) malloc
10 1000
+3 500
cob=(2) /somewhere/libgomp.so.1.0.0
cfn=(2) GOMP_parallel
calls=7 20
* 9999

ob=(2)
fn=(2)
20 30
-4 7
cob=(1)
cfn=(1)
calls=3 10
24 800
* 5
ob=(1)
fn=(1)
11 4000
totals: 5542
"""


def test_only_instructions_of_the_library_itself_are_counted() -> None:
    assert parallel_region.self_cost(PROFILE, "libgomp.so") == 30 + 7 + 5
    assert parallel_region.self_cost(PROFILE, "libc.so") == 1000 + 500 + 4000


def test_a_region_follows_nothing_while_the_page_of_the_benchmark_does_not_change(tmp_path: Path) -> None:
    """The page is accepted, and the team has the size that the benchmark insists on."""
    assert ELASTIC
    program = tmp_path / "region"
    subprocess.run(["gcc", "-O2", "-fopenmp", "-o", program, parallel_region.HERE / "region.c"], check=True)
    page = tmp_path / "page"
    parallel_region.write_page(page, {0})
    env = parallel_region.environment(ELASTIC, 2, page, "passive") | {"OMP_DYNAMIC": "true"}
    runner = parallel_region.Runner(program, env, 1)
    with runner:
        assert runner.turn() > 0
