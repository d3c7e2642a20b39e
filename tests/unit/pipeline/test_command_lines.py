# SPDX-License-Identifier: GPL-2.0
"""The pipeline's modules as commands: what they say of themselves, what they refuse, and what checkpatch.pl may say."""

from __future__ import annotations

import importlib
import subprocess
import sys

import pytest

from lab.pipeline import series
from lab.pipeline.paths import REPO


def command(module: str, *words: str) -> subprocess.CompletedProcess[str]:
    line = [sys.executable, "-m", f"lab.pipeline.{module}", *words]
    return subprocess.run(line, cwd=REPO, capture_output=True, text=True, check=False, timeout=60)


ASKED = {
    "arrows": "usage: python3 -m lab.pipeline.arrows [-h] [path]\n",
    "bindings": "usage: python3 -m lab.pipeline.bindings [-h]\n",
    "build": "usage: python3 -m lab.pipeline.build [STEP...]\nsteps: ",
    "check": "usage: python3 -m lab.pipeline.check [CHECK...]\nchecks: ruff, ",
    "decisions": "usage: python3 -m lab.pipeline.decisions [-h]\n",
    "mutants": "usage: python3 -m lab.pipeline.mutants [--all-tests] [PART] [WORD...]\nparts: libgomp, toolstack, ",
    "series": "usage: python3 -m lab.pipeline.series [-h]\n",
    "sources": "usage: python3 -m lab.pipeline.sources [-h]\n",
    "test": "usage: python3 -m lab.pipeline.test [FILE or FOLDER]... [-k WORDS] [option of pytest]...\n",
}


@pytest.mark.parametrize("module", ASKED)
def test_who_asks_for_help_is_told(
    module: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """And nothing is made."""
    name = f"lab.pipeline.{module}"
    with monkeypatch.context() as patch:
        patch.setattr(sys, "argv", [name, "--help"])
        for starts in ("run", "Popen"):
            patch.setattr(subprocess, starts, lambda *words, **others: pytest.fail(f"starts {words}"))
        main = importlib.import_module(name).main
        try:
            status = main(["--help"]) if main.__code__.co_argcount else main()
        except SystemExit as end:
            status = end.code
    said = capsys.readouterr()
    assert (status, said.err) == (0, "") and said.out.startswith(ASKED[module])


WRONG = {
    "arrows nonsense/path": "nonsense/path: no file that is in git and is C or Python begins so\n",
    "arrows lab tests": "error: unrecognized arguments: tests\n",
    "series xen": "error: unrecognized arguments: xen\n",
    "sources xen": "error: unrecognized arguments: xen\n",
    "bindings x": "error: unrecognized arguments: x\n",
    "build nix": "unknown step nix; steps: ",
    "check nix": "unknown check nix; checks: ",
}


@pytest.mark.parametrize("line", WRONG)
def test_what_a_command_does_not_know(line: str) -> None:
    module, *words = line.split()
    done = command(module, *words)
    assert (done.returncode, done.stdout) == (2, "") and WRONG[line] in done.stderr


def test_words_in_no_mutants_name_say_where_one_may_look() -> None:
    """A part that is mistyped is a word, and libgomp is looked through for it."""
    done = command("mutants", "tolstack")
    said = "no mutant of libgomp has any of these words in its name: tolstack; parts: libgomp, toolstack, dsmd, soak, bounce\n"
    assert done.returncode == 1 and said in done.stderr


SAID = "build/series/linux/0033-tcp-x.patch:37: WARNING:MEMORY_BARRIER: memory barrier without comment"


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ([SAID], []),
        ([SAID.replace("0033", "0031").replace("37:", "9:")], []),
        ([SAID, SAID.replace("MEMORY_BARRIER", "LONG_LINE")], [SAID.replace("MEMORY_BARRIER", "LONG_LINE")]),
        ([SAID, SAID.replace("tcp-x", "tcp-y")], [SAID.replace("tcp-x", "tcp-y")]),
        ([SAID, "Can't open perl script"], ["Can't open perl script"]),
        ([], ["tcp-x: MEMORY_BARRIER: explained (why), and checkpatch.pl does not say it; take the row out"]),
    ],
)
def test_what_is_explained_is_no_complaint(said: list[str], left: list[str]) -> None:
    assert series.unexplained(said, {("tcp-x", "MEMORY_BARRIER"): "why"}) == left
