# SPDX-License-Identifier: GPL-2.0
"""Commands somewhere: here in a shell of this machine, or played."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from lab.command import PIECE, SHOWN_COMMAND, TIMED_OUT, Answer, Done, asked_in_a_row, checked, run_in, write_file
from lab.errors import CommandFailedError, CommandTimeoutError, MachineLostError


def shell(command: str, timeout: float = 60.0) -> Done:
    """A Run of this machine."""
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, timeout=timeout, check=False)
    return Done(done.returncode, done.stdout, done.stderr)


def test_what_had_to_succeed_gives_its_output_or_says_all() -> None:
    assert checked(shell, "echo out; echo err >&2") == "out\n"
    with pytest.raises(CommandFailedError) as failed:
        checked(shell, "echo out; echo err >&2; exit 3")
    assert str(failed.value) == "echo out; echo err >&2; exit 3: exit status 3\nout\nerr"


def test_of_a_long_command_a_message_has_the_beginning() -> None:
    with pytest.raises(CommandFailedError) as failed:
        checked(shell, f"exit 1 # {'x' * 10000}")
    assert str(failed.value).startswith("exit 1 # xxx")
    assert len(str(failed.value)) < SHOWN_COMMAND + 30


@pytest.mark.parametrize(
    "text",
    ["", "it's 100 %s\n", "x" * PIECE, "a\\n'\"$b" * PIECE],
    ids=["nothing", "short", "a piece", "many pieces"],
)
def test_a_file_is_written_in_pieces_that_fit(tmp_path: Path, text: str) -> None:
    typed: list[str] = []

    def run(command: str, timeout: float = 60.0) -> Done:
        typed.append(command)
        return shell(command, timeout)

    path = tmp_path / "a file"
    path.write_text("what was there")
    write_file(run, str(path), text)
    assert path.read_text() == text
    assert len(typed) == max(1, -(-len(text) // PIECE))


def test_commands_in_a_row(tmp_path: Path) -> None:
    file = tmp_path / "state"
    commands = [f"printf 'no end of line' >{file}; cat {file}", f"echo it\\'s >>{file}; echo err >&2; exit 3", "cat"]
    assert asked_in_a_row(shell, commands, f"cat {file}") == [
        Answer(0, "no end of line", "no end of line"),
        Answer(3, "err\n", "no end of lineit's\n"),
        Answer(0, "", "no end of lineit's\n"),
    ]
    assert asked_in_a_row(shell, ["true"], "true") == [Answer(0, "", "")]
    assert asked_in_a_row(shell, [], "true") == []


def test_a_row_that_is_cut_short() -> None:
    with pytest.raises(CommandFailedError, match=r"2 commands in a row, 0 answers"):
        asked_in_a_row(shell, ["true", "true"], "exit 0")


class Played:
    """A machine that gives one answer, or raises it."""

    def __init__(self, answer: Done | Exception) -> None:
        self.answer = answer

    def run(self, command: str, timeout: float = 60) -> Done:
        """Give it."""
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


def test_a_command_that_exceeds_its_time_has_a_status() -> None:
    """A machine that is lost has none."""
    done = Done(3, "out", "err", 1.5)
    assert run_in(Played(done))("true") is done
    late = run_in(Played(CommandTimeoutError("killed after 7 s")))("sleep 8", 7.0)
    assert (late.status, late.text, late.seconds) == (TIMED_OUT, "killed after 7 s", 7.0)
    with pytest.raises(MachineLostError):
        run_in(Played(MachineLostError("gone")))("true")
