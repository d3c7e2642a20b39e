# SPDX-License-Identifier: GPL-2.0
"""dsm_litmus here: CPUs of one machine show what TSO allows and nothing else, and a wrong value, order or store is noticed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import litmus
from lab.errors import Malformed
from lab.patience import wait_for
from lab.pipeline.paths import REPO

SOURCE = REPO / "benchmarks" / "programs" / "dsm_litmus.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("litmus")
    goal = folder / "dsm_litmus"
    subprocess.run(["make", "-s", "-C", REPO / "benchmarks", f"O={folder}", goal], check=True)
    return goal


def run(program: Path, words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words.split()], capture_output=True, text=True, check=False, timeout=300)


def own_cpus(most: int) -> list[int]:
    return sorted(os.sched_getaffinity(0))[:most]


def test_all_shapes_and_variants(program: Path) -> None:
    """Four threads on the CPUs that there are."""
    cpus = (own_cpus(4) * 4)[:4]
    done = run(program, f"--rounds=320 --cpus={','.join(map(str, cpus))} --seed=3")
    assert done.returncode == 0, done.stdout + done.stderr
    found = litmus.parse(done.stdout)
    assert [(each.shape, each.variant) for each in found] == [(s, v) for s in litmus.SHAPES for v in litmus.VARIANTS]
    assert all(each.rounds == 320 and each.forbidden == 0 for each in found)
    # x86-TSO: a store buffer is seen by who loads after it has stored, unless a fence or a locked instruction is between.
    allowed = {(each.shape, each.variant) for each in found if each.weak_allowed}
    assert allowed == {(shape, variant) for shape in ("sb", "r") for variant in ("plain", "nt")}


def test_a_store_buffer_is_seen(program: Path) -> None:
    """What TSO allows is seen where two CPUs of one machine race: so the threads do race."""
    if len(own_cpus(2)) < 2:
        pytest.skip("this process may use one CPU only: threads that race need two")
    seeds = iter(range(1000))

    def seen() -> bool:
        words = f"--shape=sb --variant=plain --rounds=32000 --cpus={','.join(map(str, own_cpus(2)))} --seed={next(seeds)}"
        (shape,) = litmus.parse(run(program, words).stdout)
        assert shape.weak == shape.outcomes.get("a=0 b=0", 0)
        return shape.weak > 0 and shape.overlapped > 0

    wait_for("both loads are before both stores", 120, seen)


def test_enough_raced_is_enough(program: Path) -> None:
    cpus = (own_cpus(2) * 2)[:2]
    words = f"--shape=mp --variant=plain --cpus={cpus[0]},{cpus[1]} --raced=1 --rounds=100000000"
    (shape,) = litmus.parse(run(program, words).stdout)
    assert shape.raced >= 1 and shape.rounds < 100000000
    (shape,) = litmus.parse(run(program, f"{words} --rounds=640 --slow-us=10000000").stdout)
    assert shape.raced == 0 and shape.rounds == 640


LOADS_MP = "case MP * MOST_THREADS + 1:\n\t\tvalue[0] = load(v, y); between(v); value[1] = load(v, x);"
# A line, what it becomes, a shape that has to notice it and in which variants: stale values, and stores that get lost.
WRONG = {
    "sb": ("value[0] = load(v, y);\n\t\tbreak;\n\tcase SB", "value[0] = 0;\n\t\tbreak;\n\tcase SB", "fence,lock,split"),
    "mp": (LOADS_MP, LOADS_MP.replace("load(v, x)", "0"), "plain,fence,lock,split,nt"),
    "lb": ("value[0] = load(v, x); between(v); store(v, y, one);", "store(v, y, one); value[0] = one;", "plain,lock,split"),
    "corr": ("value[1] = load(v, x);\n\t\tbreak;\n\tcase IRIW * MOST_THREADS + 1", "value[1] = 0;\n\t\tbreak;\n"
             "\tcase IRIW * MOST_THREADS + 1", "plain,nt"),
    "22w": ("store(v, y, one); between(v); store(v, x, two);", "store(v, y, one); store(v, x, one);", "plain,split"),
    "r": ("store(v, y, two); between(v); value[0] = load(v, x);", "value[0] = 0; store(v, y, two);", "fence,lock"),
    "s": ("case S * MOST_THREADS + 1:\n\t\tvalue[0] = load(v, y); between(v); store(v, x, one);",
          "case S * MOST_THREADS + 1:\n\t\tvalue[0] = one;", "plain,nt"),
}  # fmt: skip


@pytest.mark.parametrize("shape", WRONG)
def test_what_is_wrong_is_noticed(tmp_path: Path, shape: str) -> None:
    line, wrong, variants = WRONG[shape]
    text = SOURCE.read_text()
    assert text.count(line) == 1, shape
    (tmp_path / "wrong.c").write_text(text.replace(line, wrong))
    program = tmp_path / "wrong"
    subprocess.run(
        ["gcc", "-O2", "-w", "-std=gnu11", "-o", program, tmp_path / "wrong.c", "-lnuma", "-pthread"], check=True
    )
    cpus = (own_cpus(2) * 2)[:2]
    done = run(program, f"--shape={shape} --variant={variants} --rounds=3200 --cpus={cpus[0]},{cpus[1]}")
    assert done.returncode == 1, done.stdout + done.stderr
    found = litmus.parse(done.stdout)
    assert [each.variant for each in found if each.forbidden] == variants.split(","), done.stdout
    assert litmus.metrics(found)[0].value


def test_half_a_value_is_impossible(tmp_path: Path) -> None:
    text = SOURCE.read_text()
    line = "const uint64_t one = v == SPLIT_LOCK ? BOTH : 1,"
    assert text.count(line) == 1
    (tmp_path / "wrong.c").write_text(text.replace(line, "const uint64_t one = 1,"))
    program = tmp_path / "wrong"
    subprocess.run(
        ["gcc", "-O2", "-w", "-std=gnu11", "-o", program, tmp_path / "wrong.c", "-lnuma", "-pthread"], check=True
    )
    cpus = (own_cpus(2) * 2)[:2]
    done = run(program, f"--shape=mp --variant=lock,split --rounds=320 --cpus={cpus[0]},{cpus[1]}")
    assert done.returncode == 1
    assert [each.impossible for each in litmus.parse(done.stdout)] == [0, 320]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--shape=xx", "--shape=xx: there is no such one"),
        ("--variant=plain,", None),
        ("--variant=slow", "--variant=slow"),
        ("--cpus=0,1,2,3,4", "more than 4"),
        ("--cpus=0,x", "--cpus=x"),
        ("--cpus=0;1", "a comma between"),
        ("--cpus=0,1 --shape=iriw", "iriw wants 4 CPUs, --cpus has 2"),
        ("--cpus=0,1023 --shape=mp --rounds=32", "CPU 1023"),
        ("--nodes=0", "want two"),
        ("--nodes=0,63", "--nodes=63: want a number from -1"),
        ("--rounds=0", "--rounds=0: want a number from 1"),
        ("--rounds=1x", "--rounds=1x"),
        ("--unknown", "Usage"),
        ("mp", "mp: there are only options"),
    ],
)
def test_words(program: Path, words: str, part: str | None) -> None:
    done = run(program, f"{words} --rounds=32" if part is None else words)
    assert done.returncode == (0 if part is None else 2) and (part or "") in done.stderr, done.stdout + done.stderr


SHAPE: dict[str, Any] = {
    "event": "shape", "shape": "mp", "variant": "plain", "rounds": 4, "overlapped": 3, "raced": 2, "weak": 1,
    "weak_allowed": False, "impossible": 1, "outcomes": {"a=1 b=0": 1, "a=0 b=0": 2},
}  # fmt: skip
RESULT = {"event": "result", "rounds": 4, "forbidden": 2}


def lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def test_figures() -> None:
    allowed = {**SHAPE, "shape": "sb", "weak_allowed": True, "impossible": 0, "outcomes": {"a=0 b=0": 4}}
    found = litmus.parse(lines(SHAPE, allowed, {**RESULT, "rounds": 8}))
    figures = {each.metric: each for each in litmus.metrics(found)}
    assert figures["litmus.forbidden"].value == 2 and "mp plain" in figures["litmus.forbidden"].note
    assert set(figures) == {"litmus.forbidden", "litmus.raced.mp", "litmus.raced.sb"}
    assert figures["litmus.raced.mp"].value == 2
    assert figures["litmus.raced.sb"].baseline == {"raced_plain": 2, "weak_plain": 1, "rounds": 4}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not ended"),
        (lines(SHAPE), "not ended"),
        ("x\n", "not JSON"),
        (lines([1]), "unexpected"),
        (lines(RESULT, SHAPE), "its sums"),
        (lines(SHAPE, RESULT, SHAPE), "unexpected line"),
        (lines({**SHAPE, "event": "other"}, RESULT), "unexpected line"),
        (lines({**SHAPE, "shape": "xx"}, RESULT), "unexpected shape"),
        (lines({**SHAPE, "variant": 3}, RESULT), "unexpected shape"),
        (lines({**SHAPE, "weak_allowed": 0}, RESULT), "unexpected shape"),
        (lines({**SHAPE, "rounds": True}, RESULT), "no count"),
        (lines({**SHAPE, "raced": -1}, RESULT), "no count"),
        (lines({**SHAPE, "outcomes": {"a=0": "1"}}, RESULT), "no count"),
        (lines({**SHAPE, "outcomes": {"a=0": 2}}, RESULT), "4 rounds"),
        (lines({**SHAPE, "overlapped": 5}, RESULT), "more than all"),
        (lines({**SHAPE, "overlapped": 1}, RESULT), "more than all"),
        (lines(SHAPE, {**RESULT, "forbidden": 0}), "its sums"),
    ],
)
def test_malformed_output_is_refused(text: str, part: str) -> None:
    with pytest.raises(Malformed, match=part):
        litmus.parse(text)
