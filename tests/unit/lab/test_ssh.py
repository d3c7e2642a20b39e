# SPDX-License-Identifier: GPL-2.0
"""Lines of a command while it runs, with a client that is no ssh: two pipes, of which neither may fill up."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from lab import ssh as module
from lab.errors import CommandTimeoutError
from lab.ssh import Ssh

MIB = 1 << 20


@pytest.fixture
def ssh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Ssh:
    """Commands run here."""
    client = tmp_path / "client"
    client.write_text('#!/bin/sh\nexec sh -c "$1"\n', encoding="utf-8")
    client.chmod(0o755)
    connection = Ssh("here", tmp_path / "key", tmp_path / "control", ("127.0.0.1", 1))
    monkeypatch.setattr(connection, "client", lambda *options: [str(client)])
    return connection


def test_a_flood_of_messages_before_a_line(ssh: Ssh) -> None:
    lines: list[str] = []
    result = ssh.run(f"head -c {MIB} /dev/zero | tr '\\0' x >&2; echo line", timeout=20, on_line=lines.append)
    assert lines == ["line"]
    assert result.rc == 0 and len(result.err) == MIB


def test_lines_come_while_the_command_runs(ssh: Ssh, tmp_path: Path) -> None:
    seen: list[str] = []

    def take(line: str) -> None:
        seen.append(line)
        (tmp_path / "seen").touch()

    wait = f"until [ -e {tmp_path / 'seen'} ]; do sleep 0.05; done"
    result = ssh.run(f"echo first; {wait}; echo second; exit 4", timeout=20, on_line=take)
    assert (seen, result.rc) == (["first", "second"], 4)


def test_input_and_lines(ssh: Ssh) -> None:
    lines: list[str] = []
    result = ssh.run("tee /dev/stderr | wc -c", timeout=20, stdin=b"y" * MIB, on_line=lines.append)
    assert lines == [str(MIB)] and len(result.err) == MIB
    assert ssh.run("exit 3", stdin=b"y" * MIB, on_line=lines.append).rc == 3


def test_a_way_that_takes_too_long(ssh: Ssh, monkeypatch: pytest.MonkeyPatch) -> None:
    """A command that timeout(1) cannot end over there, or an answer that does not come: the time counts for lines, too."""
    monkeypatch.setattr(module, "TRANSPORT_SLACK", -module.KILL_AFTER)
    monkeypatch.setattr(ssh, "client", lambda *options: ["sh", "-c", "exec sleep 60", "--"])
    begun = time.monotonic()
    with pytest.raises(CommandTimeoutError, match="no answer"):
        ssh.run("true", timeout=1, on_line=print)
    assert time.monotonic() - begun < 20


def test_an_error_of_who_takes_the_lines(ssh: Ssh) -> None:
    def take(line: str) -> None:
        raise ZeroDivisionError(line)

    begun = time.monotonic()
    with pytest.raises(ZeroDivisionError, match="1"):
        ssh.run("echo 1; exec sleep 60", on_line=take)
    assert time.monotonic() - begun < 20
