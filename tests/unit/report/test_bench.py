# SPDX-License-Identifier: GPL-2.0
"""`make bench` and the command lines of measurements: what is run, what it ends with, and what is refused before it begins."""

from __future__ import annotations

import importlib
import runpy
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest

from benchmarks import __main__ as bench
from benchmarks.report import main as report
from lab.rack import Rack

NAMES = ("parallel_region", "balloon", "extent_profile", "detach", "scrub", "overhead")


@pytest.fixture
def ran(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What was run, of played modules; those of STATUS end with it."""
    found: list[str] = []

    def played(module: str) -> SimpleNamespace:
        name = module.removeprefix("benchmarks.")

        def main(*_: object) -> int:
            found.append(name)
            return STATUS.get(name, 0)

        return SimpleNamespace(main=main)

    monkeypatch.setattr(importlib, "import_module", played)
    return found


STATUS: dict[str, int] = {}


def test_all_are_run_and_then_the_report(ran: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert bench.MEASUREMENTS == NAMES, "what plan 9 says of it"
    assert bench.main() == 0
    assert ran == [*NAMES, "report"] and not capsys.readouterr().err


@pytest.mark.parametrize("status", [1, 2, 130])
def test_one_that_fails_does_not_keep_the_others(
    ran: list[str], status: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is named in the end, and so is the exit status."""
    for name in ("balloon", "overhead"):
        monkeypatch.setitem(STATUS, name, status)
    assert bench.main() == 1
    assert ran == [*NAMES, "report"]
    said = capsys.readouterr()
    assert said.err == "bench: could not measure balloon, overhead\n" and f"--- balloon: exit status {status}, " in said.out


def test_some_can_be_named(ran: list[str]) -> None:
    """Each once, in their order."""
    assert bench.main(["scrub", "balloon", "scrub"]) == 0
    assert ran == ["scrub", "balloon", "report"]


@pytest.mark.parametrize(("word", "status", "words"), [("--help", 0, "extent_profile"), ("nix", 2, ", ".join(NAMES))])
def test_nothing_is_begun_for_a_question(
    ran: list[str], word: str, status: int, words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        bench.main([word])
    said = capsys.readouterr()
    assert ended.value.code == status and not ran and words in said.out + said.err


# --- what is refused -----------------------------------------------------------------------------------------------------

# A module, its words, and what it says; each with a status of 2.
REFUSED = (
    ("demo", ["--mib=0"], "--mib: want at least 1, not '0'"),
    ("demo", ["--mib", "-5"], "--mib: want at least 1, not '-5'"),
    ("demo", ["--config=nix"], "--config: nix: no such file"),
    ("span_demo", ["--mib=0"], "--mib: want at least 1, not '0'"),
    ("soak.__main__", ["--home", "-5"], "--home: want at least 1, not '-5'"),
    ("soak.__main__", ["--kernel=nix"], "--kernel: nix: no such file"),
    ("soak.__main__", ["--seed", "-1"], "--seed: want a number, decimal or with 0x, of at least 0, not '-1'"),
    ("soak.__main__", ["--ops=0"], "--ops: want at least 1, not '0'"),
    ("balloon", ["--runs=0"], "--runs: want at least 1, not '0'"),
    ("extent_profile", ["--runs=0"], "--runs: want at least 1, not '0'"),
    ("scrub", ["--runs=x"], "--runs: want at least 1, not 'x'"),
    ("detach", ["--runs=1_0"], "--runs: want at least 1, not '1_0'"),
    ("overhead", ["--config=nix"], "--config: nix: no such file"),
    ("explorer", ["--jobs=0"], "--jobs: want at least 1, not '0'"),
    ("explorer", ["--walks", "-1"], "--walks: want at least 0, not '-1'"),
    ("explorer", ["--seed", "-1"], "--seed: want a number"),
    ("explorer", ["--walks=3", "2x1-small"], "--walks, --seed: there are no walks beside words"),
    ("explorer", ["--seed=3", "2x1-small"], "--walks, --seed: there are no walks beside words"),
    ("explorer", ["--walks=0", "2x1-small"], "--walks, --seed: there are no walks beside words"),
    ("report", ["--out=/nix/x"], "--out=/nix/x: no such folder"),
    ("parallel_region", ["nix"], "unrecognized arguments: nix"),
    ("dsm_instructions", ["nix"], "unrecognized arguments: nix"),
)


@pytest.mark.parametrize(("name", "words", "said"), REFUSED, ids=[f"{name} {words}" for name, words, _ in REFUSED])
def test_what_makes_no_sense_is_refused_before_anything_begins(
    name: str, words: Sequence[str], said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def begins(*_: object, **__: object) -> None:
        pytest.fail("it begins")

    monkeypatch.setattr(Rack, "boot", begins)
    monkeypatch.setattr(subprocess, "run", begins)
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{name}").main(words)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert said in error and error.startswith(f"usage: python3 -m benchmarks.{name.removesuffix('.__main__')} ")


COMMANDS = (
    "demo", "dsm", "dsm_demo", "overhead", "report", "span", "span_demo", "soak.__main__", "explorer", "dsm_instructions",
    "parallel_region", "bounce", "vsmp", "balloon", "detach", "scrub", "extent_profile",
)  # fmt: skip


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_says_how_it_is_typed(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        importlib.import_module(f"benchmarks.{name}").main(["--help"])
    assert ended.value.code == 0
    assert capsys.readouterr().out.startswith(f"usage: python3 -m benchmarks.{name.removesuffix('.__main__')} ")


@pytest.mark.parametrize("name", ["benchmarks", "benchmarks.parallel_region", "benchmarks.dsm_instructions"])
def test_its_words_reach_it(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", [name, "--help"])
    for module in (name, f"{name}.__main__"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    with pytest.raises(SystemExit) as ended:
        runpy.run_module(name, run_name="__main__")
    assert ended.value.code == 0


def test_a_page_that_cannot_be_written_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "one.json").write_text("{", encoding="utf-8")
    assert report(["--results", str(tmp_path), f"--out={tmp_path}"]) == 2
    assert capsys.readouterr().err.endswith(f"report: {tmp_path}: Is a directory\n")
