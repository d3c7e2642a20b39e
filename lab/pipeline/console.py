# SPDX-License-Identifier: GPL-2.0
"""What a person sees of the pipeline: each step, its progress, its time; and the end of the log when it fails."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .paths import CACHE, LOGS

TICK_S = 0.5  # how often a terminal's line is renewed
QUIET_TICK_S = 30.0  # how often a line is printed where there is no terminal
LOG_TAIL_LINES = 30


class StepFailed(Exception):
    """A command of a step failed; the message says which, how, and where its log is."""


class Console:
    """Numbered steps with progress. One instance serves one run."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.number = 0
        self.started = time.monotonic()
        self.tty = os.environ.get("XENUMA_TTY") == "1"
        self._times_file = CACHE / "times.json"
        self._title = ""

    def _times(self) -> dict[str, float]:
        try:
            loaded = json.loads(self._times_file.read_text(encoding="ascii"))
            return {str(k): float(v) for k, v in loaded.items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def say(self, text: str) -> None:
        print(f"[{time.monotonic() - self.started:5.0f}s] {text}", flush=True)

    def begin(self, name: str, title: str) -> None:
        self.number += 1
        self._title = f"{self.number:2}/{self.total} {name}: {title}"
        usual = self._times().get(name)
        self.say(self._title + (f" (last time {usual:.0f} s)" if usual else ""))

    def cached(self, name: str) -> None:
        self.number += 1
        self.say(f"{self.number:2}/{self.total} {name}: unchanged")

    def done(self, name: str, seconds: float) -> None:
        times = self._times()
        times[name] = round(seconds, 1)
        self._times_file.write_text(json.dumps(times, indent=1), encoding="ascii")
        self.say(f"{self.number:2}/{self.total} {name}: done in {seconds:.0f} s")

    def run(
        self, name: str, command: Sequence[str | Path], *, cwd: Path | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        """Run a command with its output in the log of ``name``; show how far it is; raise StepFailed if it fails."""
        LOGS.mkdir(parents=True, exist_ok=True)
        log_path = LOGS / f"{name}.log"
        words = [str(word) for word in command]
        with open(log_path, "ab") as log:
            log.write(f"\n$ {' '.join(words)}\n".encode())
            log.flush()
            begun = time.monotonic()
            process = subprocess.Popen(
                words,
                cwd=cwd,
                env={**os.environ, **(env or {})},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
            )
            try:
                self._watch(process, log_path, begun)
            except BaseException:
                process.terminate()
                process.wait()
                raise
        if process.returncode:
            tail = log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
            raise StepFailed(
                f"{name}: '{' '.join(words)[:200]}' ended with {process.returncode}\n  | "
                + "\n  | ".join(tail)
                + f"\nThe whole log: {log_path}"
            )

    def _watch(self, process: subprocess.Popen[bytes], log_path: Path, begun: float) -> None:
        tick = TICK_S if self.tty else QUIET_TICK_S
        while True:
            try:
                process.wait(timeout=tick)
                break
            except subprocess.TimeoutExpired:
                seconds = time.monotonic() - begun
                line = f"        {seconds:4.0f} s  {last_line(log_path)}"
                if self.tty:
                    sys.stdout.write("\r\033[K" + line[: os.get_terminal_size().columns - 1])
                    sys.stdout.flush()
                else:
                    print(line, flush=True)
        if self.tty:
            sys.stdout.write("\r\033[K")
            sys.stdout.flush()


def last_line(path: Path, most: int = 100) -> str:
    """The last non-empty line of a growing log, cut to ``most`` characters."""
    with open(path, "rb") as file:
        file.seek(0, os.SEEK_END)
        file.seek(max(0, file.tell() - 2000))
        lines = [line.strip() for line in file.read().decode("utf-8", "replace").splitlines()]
    return next((line for line in reversed(lines) if line), "")[:most]
