# SPDX-License-Identifier: GPL-2.0
"""lab/rack when things are not as they should be: what it says, and what it shows of a rack that does not answer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from lab import state as state_module
from lab.cli import app
from lab.state import StateDirectory


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A build folder with the logs of racks; none runs."""
    monkeypatch.setattr(state_module, "state_directory", lambda: tmp_path)
    monkeypatch.setattr(state_module, "socket_directory", lambda name: tmp_path / "sockets" / name)
    folders = ("one-host/20260102-000000", "one-host/20260101-000000", "one-hundred/20260101-000000", "pipeline")
    for folder, text in zip(folders, ("new", "old", "older", ""), strict=True):
        (tmp_path / "logs" / folder).mkdir(parents=True)
        (tmp_path / "logs" / folder / "alpha-console.log").write_text(f"a\n{text} words\nof alpha\n", encoding="utf-8")
    (tmp_path / "logs/one-host/20260102-000000/alpha-guest2.log").write_text("words of guest2\n", encoding="utf-8")
    (tmp_path / "logs/one-host/20260103-000000.tar").touch()
    return tmp_path


@pytest.fixture
def booting(build: Path) -> Iterator[None]:
    """The rack one-host boots: somebody has it, and there is no state yet."""
    directory = StateDirectory("one-host")
    directory.acquire()
    yield
    directory.release()


def say(*words: str) -> tuple[int, str]:
    """Exit code and all that the command says, an error of the lab too."""
    done = CliRunner().invoke(app, words, env={"COLUMNS": "200", "TERM": "dumb"})
    return done.exit_code, done.output + ("" if isinstance(done.exception, SystemExit) else str(done.exception or ""))


def test_a_configuration_that_is_not_there(build: Path) -> None:
    for path in (build / "nonesuch.cfg", build):
        code, said = say("create", "alpha", str(path))
        assert code == 2 and re.search(r"does not exist|is a directory", said), said


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status",), "rack one-host: rack 'one-host' is still booting; 'lab/rack logs HOST' shows a console"),
        (("logs", "alpha"), "new words\nof alpha\n"),
        (("logs",), "20260102-000000/alpha-console.log"),
        (("logs", "alpha:guest2"), "words of guest2\n"),
    ],
)
def test_a_rack_that_boots(booting: None, words: tuple[str, ...], said: str) -> None:
    """The advice that is given can be followed."""
    code, answer = say(*words)
    assert code == 0 and said in answer and "old words" not in answer, answer


def test_logs_of_a_rack_that_does_not_run_any_more(build: Path) -> None:
    assert say("logs", "alpha") == (0, "a\nnew words\nof alpha\n")
    assert say("logs", "alpha", "-n", "1") == (0, "of alpha\n")
    assert say("logs", "alpha", "--rack", "one-host") == (0, "a\nnew words\nof alpha\n")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("status", "--rack", "nonesuch"), "rack 'nonesuch' does not run; lab/racks has: four-nodes, large-node, one-host"),
        (("status", "--rack", "one-host"), "rack 'one-host' does not run; 'lab/rack boot one-host' starts it"),
        (("run", "alpha", "true"), "no rack runs; 'lab/rack boot' starts one"),
        (("logs", "--rack", "nonesuch"), "no logs of rack 'nonesuch'"),
        (("logs", "beta"), "no console of beta in "),
        (("logs", "alpha:g"), "it has alpha-console.log, alpha-guest2.log"),
    ],
)
def test_what_is_not_there_is_an_error_that_says_what_is(build: Path, words: tuple[str, ...], said: str) -> None:
    code, answer = say(*words)
    assert code == 1 and said in answer, answer


def test_several_racks(booting: None) -> None:
    """Each command that needs one asks which."""
    other = StateDirectory("four-nodes")
    other.acquire()
    for words in (("logs", "alpha"), ("run", "alpha", "true")):
        assert say(*words) == (1, "several racks run (four-nodes, one-host): say which with --rack")
    other.release()


@pytest.mark.parametrize(
    ("tail", "answer"), [("from dom0\n", (0, "from dom0\n")), ("", (1, "it has alpha-console.log"))]
)
def test_a_guests_console_while_the_rack_runs(
    booting: None, monkeypatch: pytest.MonkeyPatch, tail: str, answer: tuple[int, str]
) -> None:
    """It comes from dom0; a name that is mistyped has none there, and is told those that there are."""
    played = SimpleNamespace(console_tail=lambda lines: tail)
    monkeypatch.setattr("lab.cli.find", lambda where, rack: (None, None, played))
    code, said = say("logs", "alpha:gesut2")
    assert code == answer[0] and answer[1] in said, said
