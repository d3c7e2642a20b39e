# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The table of xenuma-libgomp(7): what each shape of program computes is what stock libgomp computes, whatever changes.

Each row runs with stock libgomp, where nothing changes, and with ours, with and without places, while the page changes at
random moments. Then the sizes of its teams are compared with what the table says.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.unit.libgomp.gomp_player import AB, ELASTIC, HERE, MAX_THREADS, REPO, STOCK, A, B, build, page

MILLISECONDS = 60
STEPS = (AB, A, B, AB)
FOLLOWS, STAYS, THREE = (2, 1, 1, 2), (2, 2, 2, 2), (3, 3, 3, 3)


@dataclass(frozen=True)
class Shape:
    """A row: the words of the man page, how many threads it has with the masks of STEPS usable, its environment."""

    row: str
    teams: tuple[int, ...]
    env: Mapping[str, str] = field(default_factory=dict)


SHAPES = {
    "loop": Shape("never asks", FOLLOWS),
    "inside": Shape("never asks", FOLLOWS),
    "each_time": Shape("one statement asks, before each region", FOLLOWS),
    "each_step": Shape("one statement asks, before each region", FOLLOWS),
    "clause_procs": Shape("one statement asks, before each region", FOLLOWS),
    "max_threads": Shape("asks once", STAYS),
    "num_procs": Shape("asks once", STAYS),
    "fortran": Shape("asks once", STAYS),
    "fortran_slots": Shape("several statements ask", STAYS),
    "fortran_procs": Shape("several statements ask", STAYS),
    "private": Shape("asks once", STAYS),
    "private_loop": Shape("has threadprivate data", STAYS),
    "private_pointer": Shape("has threadprivate data", STAYS),
    "tasks": Shape("asks once", STAYS),
    "workers": Shape("asks once", STAYS),
    "asking_workers": Shape("several threads ask", STAYS),
    "lazy": Shape("one statement asks, before each region", FOLLOWS),
    "helper": Shape("several statements ask", STAYS),
    "objects": Shape("one statement asks, several times before a region", STAYS),
    "slots": Shape("several statements ask", STAYS),
    "library": Shape("several statements ask", STAYS),
    "max_inside": Shape("asks in a team", STAYS),
    "nested": Shape("asks in a team", STAYS),
    "target": Shape("one statement asks, before each region", FOLLOWS),
    "clause": Shape("num_threads", THREE),
    "set": Shape("omp_set_num_threads", THREE),
    "environment": Shape("OMP_NUM_THREADS", THREE, {"OMP_NUM_THREADS": "3"}),
    "dynamic_inside": Shape("OMP_DYNAMIC=true", FOLLOWS),
}

HABITS = ("count_single", "count_each", "by_number", "interpreter")
"""Shapes that the library cannot see; the man page names them."""

ELSEWHERE = "elsewhere"
"""One that does not ask OpenMP: only a number that fits is safe with it."""

PLACES: dict[str, dict[str, str]] = {"unbound": {}, "places": {"OMP_PLACES": "threads"}}


def run(lib: Path, tmp_path: Path, env: Mapping[str, str], *words: object, start: int = AB) -> list[int]:
    """The numbers that shapes.c prints; LIB decides whether there is a page. START: the CPUs that are usable then."""
    variables = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    variables |= {"LD_LIBRARY_PATH": str(lib), "OMP_WAIT_POLICY": "passive", **env}
    if lib == ELASTIC:
        (tmp_path / "page").write_bytes(page(start))
        variables["GOMP_TOPO_DEV"] = str(tmp_path / "page")
    private = ("-DWITH_PRIVATE_DATA",) if str(words[0]).startswith("private") else ()
    program = build("shapes.c", "-fopenmp", "-Wno-unknown-pragmas", *private)
    done = subprocess.run(
        [program, *map(str, words)], env=variables, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, f"status {done.returncode}: {done.stderr}"
    return [int(word) for word in done.stdout.split()]


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("name", SHAPES)
def test_no_result_is_wrong_while_the_topology_changes(name: str, places: str, tmp_path: Path) -> None:
    assert ELASTIC and STOCK
    env = {**SHAPES[name].env, **PLACES[places]}
    masks = [f"{mask:x}" for mask in (A, AB, B)]
    for lib, start in ((STOCK, AB), (ELASTIC, AB), (ELASTIC, A)):
        wrong, rounds = run(lib, tmp_path, env, name, "random", MILLISECONDS, *masks, start=start)
        assert wrong == 0, f"{wrong} of {rounds} rounds with {lib}, begun with {start:b}"


@pytest.mark.parametrize("places", PLACES)
@pytest.mark.parametrize("name", SHAPES)
def test_the_teams_adapt_as_the_table_says(name: str, places: str, tmp_path: Path) -> None:
    assert ELASTIC
    env = {**SHAPES[name].env, **PLACES[places]}
    assert tuple(run(ELASTIC, tmp_path, env, name, *(f"{mask:x}" for mask in STEPS))) == SHAPES[name].teams


@pytest.mark.parametrize("name", SHAPES)
def test_possible_is_safe_for_every_program(name: str, tmp_path: Path) -> None:
    """As many threads as there can ever be CPUs, always."""
    assert ELASTIC
    env = {**SHAPES[name].env, "GOMP_TOPO_PROCS": "possible"}
    masks = [f"{mask:x}" for mask in (A, AB, B)]
    for start in (AB, A):
        wrong, rounds = run(ELASTIC, tmp_path, env, name, "random", MILLISECONDS, *masks, start=start)
        assert wrong == 0, f"{wrong} of {rounds} rounds, begun with {start:b}"
    if SHAPES[name].teams != THREE and not name.startswith("dynamic"):
        assert run(ELASTIC, tmp_path, env, name, *masks, start=A) == [MAX_THREADS] * 3


@pytest.mark.parametrize("env", [{"GOMP_TOPO_PROCS": "possible"}, {"OMP_NUM_THREADS": "3"}], ids=["possible", "number"])
@pytest.mark.parametrize("name", HABITS)
def test_habits_that_cannot_be_seen_are_safe_with_a_setting(name: str, env: dict[str, str], tmp_path: Path) -> None:
    assert ELASTIC
    wrong, rounds = run(ELASTIC, tmp_path, env, name, "random", MILLISECONDS, *(f"{mask:x}" for mask in (A, AB, B)))
    assert wrong == 0, f"{wrong} of {rounds} rounds"


def test_a_number_that_fits_is_safe_with_room_that_was_made_by_what_others_say(tmp_path: Path) -> None:
    assert ELASTIC
    masks = [f"{mask:x}" for mask in (A, AB, B)]
    wrong, rounds = run(ELASTIC, tmp_path, {"OMP_NUM_THREADS": "2"}, ELSEWHERE, "random", MILLISECONDS, *masks)
    assert wrong == 0, f"{wrong} of {rounds} rounds"


@pytest.mark.parametrize("name", [name for name, shape in SHAPES.items() if "before each region" in shape.row])
def test_who_asks_before_each_region_is_never_told_more_than_at_first(name: str, tmp_path: Path) -> None:
    """It may have made room for so many. GOMP_TOPO_PROCS=latest allows more."""
    assert ELASTIC
    masks = [f"{mask:x}" for mask in (A, AB, B, AB)]
    assert run(ELASTIC, tmp_path, {}, name, *masks, start=A) == [1, 1, 1, 1]
    if name != "lazy":
        assert run(ELASTIC, tmp_path, {"GOMP_TOPO_PROCS": "latest"}, name, *masks, start=A) == [1, 2, 1, 2]


@pytest.mark.parametrize("name", ["max_threads", "slots", "library", "inside", "loop", "workers"])
def test_latest_tells_each_who_asks_the_number_of_the_moment(name: str, tmp_path: Path) -> None:
    """GOMP_TOPO_PROCS=latest is for programs that forget what they were told: then slots and library follow too."""
    assert ELASTIC
    teams = run(ELASTIC, tmp_path, {"GOMP_TOPO_PROCS": "latest"}, name, *(f"{mask:x}" for mask in (AB, AB)))
    assert teams == [2, 2]


def test_data_of_threads_do_not_forbid_the_adjustment_that_the_user_wants(tmp_path: Path) -> None:
    assert ELASTIC
    masks = [f"{mask:x}" for mask in (A, AB, B, AB)]
    assert run(ELASTIC, tmp_path, {"OMP_DYNAMIC": "true"}, "private_loop", *masks, start=A) == [1, 2, 1, 2]


def test_each_row_of_the_man_page_is_tested() -> None:
    """And each shape has its row."""
    text = (REPO / "docs" / "man" / "xenuma-libgomp.7").read_text(encoding="utf-8")
    table = text[text.index(".TS") : text.index(".TE")]
    rows = {row for row in re.findall(r"^([^;.\t\n][^\t\n]*)\t", table, re.M)} - {"Program"}
    assert rows == {shape.row for shape in SHAPES.values()}
    assert set(re.findall(r'\{ "(\w+)", \w+, \w+ \}', (HERE / "shapes.c").read_text(encoding="utf-8"))) == {
        *SHAPES, *HABITS, ELSEWHERE
    }  # fmt: skip
