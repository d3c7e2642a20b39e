# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The table of mutants fits the library; the mutants themselves are run by ``make mutants``."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from lab.pipeline import mutants, trees
from lab.pipeline.progress import StepFailed

(PART,) = trees.PARTS["libgomp"]
TABLE = Path(__file__).with_name("mutants.toml")


def lost(mutant: mutants.Mutant) -> str:
    """Why the mutant does not fit, or nothing."""
    ours = PART.overlay / "libgomp" / mutant.file
    if ours.is_file():
        try:
            mutant.apply(ours.read_text())
        except StepFailed as error:
            return str(error)
        return ""
    added = [
        line[1:].strip()
        for hook in PART.hooks
        if f"libgomp/{mutant.file}" in trees.touched(hook)
        for line in hook.read_text().splitlines()
        if re.match(r"\+(?!\+\+ )", line)
    ]
    return "" if mutant.line in added else f"mutant '{mutant.breaks}': no hook adds '{mutant.line}' to {mutant.file}"


def test_every_line_is_there() -> None:
    """Once, in our own files; among the lines that the hooks add, in those of upstream."""
    assert list(filter(None, map(lost, mutants.load(TABLE)))) == []


def example(**changes: str) -> mutants.Mutant:
    fields = {"breaks": "x", "file": "x.c", "line": "two ();", "becomes": ";"} | changes
    return mutants.Mutant(tests=("test_page.py",), **fields)


TEXT = "int\nf (void)\n{\n  one ();\n\ttwo ();\n}\n\nint\ng (void)\n{\n  one ();\n}\n"


def test_only_the_line_changes() -> None:
    assert example().apply(TEXT) == TEXT.replace("\ttwo ();", "\t;")
    assert example(line="one ();", within="g").apply(TEXT) == TEXT[::-1].replace(";)( eno", ";", 1)[::-1]


@pytest.mark.parametrize(
    "changes",
    [{"line": "three ();"}, {"line": "one ();"}, {"within": "g"}, {"within": "h"}, {"line": "tw"}],
    ids=["gone", "twice", "elsewhere", "no such function", "part of a line"],
)
def test_a_line_that_cannot_be_found_is_an_error(changes: dict[str, str]) -> None:
    with pytest.raises(StepFailed):
        example(**changes).apply(TEXT)


@pytest.mark.parametrize(
    "row",
    [
        "breaks='a'\nfile='f'\nline='x'\nbecomes='x'\ntests=['test_page.py']",
        "breaks='a'\nfile='f'\nline='x'\nbecomes=''\ntests=[]",
        "breaks='a'\nfile='f'\nline='x'\nbecomes=''\ntests=['test_that_is_not_there.py']",
    ],
    ids=["changes nothing", "no test", "no such test"],
)
def test_a_row_that_makes_no_sense_is_an_error(row: str, tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    (tmp_path / "test_page.py").touch()
    table.write_text(f"[[mutant]]\n{row}\n")
    with pytest.raises(StepFailed):
        mutants.load(table)
    table.write_text((f"[[mutant]]\n{row}\n".replace("line='x'", "line='y'").replace("[]", "['test_page.py']")) * 2)
    with pytest.raises(StepFailed):
        mutants.load(table)


@pytest.mark.parametrize(
    ("takes", "takes_right", "noticed", "runs"),
    [
        pytest.param(1, 1, False, ["mutant 60"], id="survives"),
        pytest.param(1000, 1, True, ["mutant 60", "right 60"], id="hangs"),
        pytest.param(100, 100, False, ["mutant 60", "right 60", "mutant 120"], id="a busy machine, survives"),
        pytest.param(1000, 100, True, ["mutant 60", "right 60", "mutant 120", "right 120"], id="a busy machine, hangs"),
    ],
)
def test_a_hang_counts_if_the_machine_has_time(takes: int, takes_right: int, noticed: bool, runs: list[str]) -> None:
    """A mutant whose tests do not end is killed only if they end without it."""
    seen = []

    def run(built: Path, seconds: float) -> mutants.Verdict:
        seen.append(f"{built} {seconds:.0f}")
        hung = seconds < (takes if built == Path("mutant") else takes_right)
        return mutants.Verdict(hung, "", hung=hung)

    assert mutants.judge(run, Path("mutant"), Path("right"), 60.0).noticed is noticed
    assert seen == runs


def test_a_machine_without_time_is_an_error() -> None:
    with pytest.raises(StepFailed, match="nor did they without a mutant"):
        mutants.judge(lambda built, seconds: mutants.Verdict(True, "", hung=True), Path("mutant"), Path("right"), 60.0)
