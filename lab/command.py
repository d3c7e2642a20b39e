# SPDX-License-Identifier: GPL-2.0
"""Commands somewhere: what one that has ended leaves, and a function that runs them, which a unit test can play."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from lab.errors import CommandFailedError, CommandTimeoutError

TIMED_OUT = -1

SHOWN_COMMAND = 200  # characters of a command in a message
PIECE = 3000  # dropbear takes commands of some 9000 characters


@dataclass(frozen=True)
class Done:
    """A command that has ended: exit status (128+n after signal n), output, messages, seconds it took."""

    status: int
    out: str
    err: str = ""
    seconds: float = 0.0

    @property
    def text(self) -> str:
        """Output and messages together, for a person or a search."""
        return self.out + self.err


class Run(Protocol):
    """Runs a shell command somewhere; `timeout` in seconds. It raises only when that place cannot be reached."""

    def __call__(self, command: str, timeout: float = 60.0) -> Done: ...


class Place(Protocol):
    """A machine that runs commands, and raises CommandTimeoutError for one that exceeds its time."""

    def run(self, command: str, timeout: float = 60) -> Done:
        """Run a command to its end."""


def run_in(place: Place) -> Run:
    """A machine as a `Run`. A command that exceeds its time has status TIMED_OUT; that is no error here."""

    def run(command: str, timeout: float = 60.0) -> Done:
        try:
            return place.run(command, timeout=timeout)
        except CommandTimeoutError as error:
            return Done(TIMED_OUT, "", str(error), timeout)

    return run


def checked(run: Run, command: str, timeout: float = 60.0) -> str:
    """The output of a command. Raises CommandFailedError unless its exit status is 0."""
    done = run(command, timeout)
    if done.status != 0:
        shown = command if len(command) <= SHOWN_COMMAND else f"{command[:SHOWN_COMMAND]}..."
        raise CommandFailedError(f"{shown}: exit status {done.status}\n{done.out}{done.err}".rstrip())
    return done.out


def write_file(run: Run, path: str, text: str) -> None:
    """Write a text file over there, in pieces that fit into a command. Raises CommandFailedError."""
    into = ">"
    for begin in range(0, max(len(text), 1), PIECE):
        checked(run, f"printf %s {shlex.quote(text[begin : begin + PIECE])} {into}{shlex.quote(path)}")
        into = ">>"


@dataclass(frozen=True)
class Answer:
    """A command of a row: its exit status, its output and messages, and what `state` printed when it had ended."""

    status: int
    text: str
    state: str


def asked_in_a_row(run: Run, commands: Sequence[str], state: str) -> list[Answer]:
    """Run shell commands one after the other over there, by one script, and after each the command `state`.

    A command that is sent by itself takes as long as a short one needs. Raises CommandFailedError.
    """
    lines = ["ask() {", '    sh -c "$1" >/tmp/answer 2>&1 </dev/null', '    echo "== status $?"; cat /tmp/answer']
    lines += ["    echo; echo '== state'", f"    {state}", "    echo", "}"]
    lines += [f"ask {shlex.quote(command)}" for command in commands]
    write_file(run, "/tmp/row.sh", "\n".join(lines) + "\n")
    text = checked(run, "sh /tmp/row.sh", 300.0)
    found = re.findall(r"^== status (\d+)\n(.*?)\n== state\n(.*?)\n(?=== status |\Z)", text, re.DOTALL | re.MULTILINE)
    if len(found) != len(commands):
        raise CommandFailedError(f"{len(commands)} commands in a row, {len(found)} answers:\n{text}")
    return [Answer(int(status), said, after) for status, said, after in found]
