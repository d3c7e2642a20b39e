# SPDX-License-Identifier: GPL-2.0-only
"""Which units a CPU resists to take over from another one: what hook 0015 adds to credit2, with the cases of credit2_test.c."""

from __future__ import annotations

import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from tests.unit.hook_texts import hook_headers
from tests.unit.xen.case_programs import assert_holds, mistaken, names, run

HERE = Path(__file__).resolve().parent
(HOOK,) = (HERE.parents[2] / "xen" / "hooks").glob("0015-*.patch")
_scratch = tempfile.TemporaryDirectory(prefix="credit2_test.")


def build(hook: Path, folder: Path) -> Path:
    """The cases, with one version of the hook's text."""
    program = folder / "credit2_test"
    headers = hook_headers(folder, "0015", hook.read_text(encoding="utf-8"))
    flags = ["-std=gnu99", "-O1", "-g", "-Wall", "-Wextra", "-Werror", f"-I{headers}", f"-I{HERE}"]
    subprocess.run(["gcc", *flags, "-o", program, HERE / "credit2_test.c"], check=True)
    return program


@cache
def program() -> Path:
    return build(HOOK, Path(_scratch.name))


@pytest.mark.parametrize("name", names(program))
def test_case(name: str) -> None:
    assert_holds(program(), name)


TEXT = "             && !is_idle_unit(snext->unit)\n"
# What the hook says instead, and the case that fails then.
MUTANTS = {
    "as it was": ("+\n", "idle: the least credit"),
    "nobody resists": ("+             && false\n", "busy: a little more"),
    "only idle resists": (f"+{TEXT.replace('!', '')}", "busy: a little more"),
    "what waits does not idle": (f"+{TEXT.replace('snext', 'svc')}", "idle: little more than that"),
}


@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutant_is_noticed(mutant: str, tmp_path: Path) -> None:
    instead, case = MUTANTS[mutant]
    assert run(build(mistaken(HOOK, f"+{TEXT}", instead, tmp_path), tmp_path), case).returncode == 1
