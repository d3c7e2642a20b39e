# SPDX-License-Identifier: GPL-2.0
"""What counts ticks in a guest while nobody asks it for anything: the script itself, in a shell of this machine."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.command import Done
from tests.e2e import span_guest

SECONDS = 0.4
ONLY = ("mkfifo", "mktemp", "rm")
"""Commands that it may use, before it counts. All else is in the shell."""


class Program:
    """As lab.ssh.Background."""

    def __init__(self, command: str, output: Path, path: Path) -> None:
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                ["/bin/sh", "-c", f"exec {command}"],
                stdin=subprocess.DEVNULL, stdout=file, stderr=subprocess.PIPE, text=True,
                env={"PATH": str(path), "TMPDIR": str(path)},
            )  # fmt: skip

    def running(self) -> bool:
        return self._process.poll() is None

    def wait(self, timeout: float = 60.0) -> Done:
        _, err = self._process.communicate(timeout=timeout)
        return Done(self._process.returncode, "", err)


class Played:
    """A site whose hosts have 100 faults more, and 7 more of the other kind, each time they are asked."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for name in (*ONLY, "bash"):
            found = shutil.which(name)
            assert found
            (self.bin / name).symlink_to(found)
        self.asked: list[str] = []
        self.output = folder / "counted"
        self.both = [SimpleNamespace(run=lambda command, timeout=60.0: self.status(command)) for _ in range(2)]
        self.slow = 2

    def status(self, command: str) -> Done:
        assert command == "dsmctl -j status far"
        self.asked.append(self.output.read_text().split()[-1])
        faults = {"read_faults": 100 * len(self.asked), "write_faults": 7}
        return Done(0, json.dumps(faults))

    def start(self, command: str, output: Path) -> Program:
        return Program(command, output, self.bin)


def test_it_counts_by_itself(tmp_path: Path) -> None:
    """The hosts are asked when it has begun and when it has ended, and it says what it saw when both is over."""
    played: Any = Played(tmp_path)
    began = time.monotonic()
    first, last = span_guest.quietly(played, played, SECONDS, played.output)
    took = time.monotonic() - began
    assert played.asked == ["began", "began", "ended", "ended"]
    assert (first.faults, last.faults) == ([107, 207], [307, 407])
    assert SECONDS - 0.02 <= last.uptime_s - first.uptime_s <= took - 2 * span_guest.SETTLED_S + 0.02
    assert len(first.ticks) == len(last.ticks) >= 1
    assert all(one <= other for one, other in zip(first.ticks, last.ticks, strict=True))
    assert sum(last.ticks) > sum(first.ticks)
    assert sorted(path.name for path in played.bin.iterdir()) == sorted((*ONLY, "bash")), "what it has made is gone"


def test_a_shell_that_can_not(tmp_path: Path) -> None:
    """It ends, and nobody waits for its words."""
    played: Any = Played(tmp_path)
    (played.bin / "mkfifo").unlink()
    with pytest.raises(AssertionError, match="mkfifo: command not found"):
        span_guest.quietly(played, played, SECONDS, played.output)
