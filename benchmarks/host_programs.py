# SPDX-License-Identifier: GPL-2.0
"""Programs of benchmarks that run in dom0 (benchmarks/hosts): made in the sandbox, put on the hosts when needed."""

from __future__ import annotations

import contextlib
import json
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from lab.errors import CommandFailedError, Malformed
from lab.host import Host
from lab.patience import wait_for
from lab.pipeline.paths import REPO
from lab.ssh import Background

FOLDER = "/root/bench"
SAYS_S = 60.0  # for a program's first words


def build(folder: Path) -> None:
    """Make them all in `folder`. Raises CommandFailedError with the compiler's words."""
    done = subprocess.run(
        ["make", "-s", "-C", REPO / "benchmarks" / "hosts", f"O={folder}"], capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise CommandFailedError(f"benchmarks/hosts: {done.stderr.strip()}")


def install(hosts: Iterable[Host], folder: Path) -> None:
    """Copy `folder`, with the programs and what else is in it, to each host."""
    for host in hosts:
        host.put(folder, FOLDER)


class Program:
    """One that runs on a host, and what it has said until now."""

    def __init__(self, host: Host, words: str, sink: Path) -> None:
        self.words, self._sink = words, sink
        self.background: Background = host.start(f"{FOLDER}/{words} 2>&1", sink)

    def said(self) -> str:
        """Its output and messages."""
        return self._sink.read_text(encoding="utf-8", errors="replace") if self._sink.exists() else ""

    def await_word(self, word: str) -> None:
        """Wait until it has said so. Raises CommandFailedError if it ends before."""
        wait_for(f"{self.words}: {word}", SAYS_S, lambda: word in self.said() or not self.background.running())
        if word not in self.said():
            raise CommandFailedError(f"{self.words}: ended with {self.background.wait().status}: {self.said().strip()}")

    def finish(self, timeout: float) -> str:
        """Wait for its end; what it said. Raises CommandFailedError unless its exit status is 0."""
        done = self.background.wait(timeout)
        if done.status:
            raise CommandFailedError(f"{self.words}: ended with {done.status}: {self.said().strip()}")
        return self.said()


@contextlib.contextmanager
def running(host: Host, words: str) -> Iterator[Program]:
    """A program that is ended, if need be, when the body has ended."""
    with tempfile.TemporaryDirectory(prefix="xenuma-bench.") as folder:
        program = Program(host, words, Path(folder) / "said")
        try:
            yield program
        finally:
            if program.background.running():
                program.background.stop()


def events(text: str) -> list[dict[str, Any]]:
    """The JSON objects among the lines of a program; other lines are messages. Raises Malformed for half an object."""
    found = []
    for line in text.splitlines():
        if not line.startswith("{"):
            continue
        try:
            found.append(json.loads(line))
        except ValueError as error:
            raise Malformed(f"not JSON: {line[:200]!r}") from error
    return found
