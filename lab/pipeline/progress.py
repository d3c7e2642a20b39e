# SPDX-License-Identifier: GPL-2.0
"""What a person sees of the pipeline: each step, its progress, its time; and the end of the log when it fails.

Steps may run side by side, each in a thread of its own: a line of progress names its step, and a terminal's one line shows all
that run.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from .paths import CACHE, LOGS

TICK_S = 0.5  # how often a terminal's line is renewed
QUIET_TICK_S = 30.0  # how often a line is printed where there is no terminal
LOG_TAIL_LINES = 30


class StepFailed(Exception):
    """A command of a step failed; the message says which, how, and where its log is."""


class Progress:
    """Numbered steps with progress. One instance serves one run; threads may share it."""

    def __init__(self, total: int) -> None:
        self.total = total
        self.started = time.monotonic()
        self.tty = os.environ.get("XENUMA_TTY") == "1"
        self._times_file = CACHE / "times.json"
        self._lock = threading.RLock()
        self._numbers: dict[str, int] = {}  # of the steps that have begun
        self._progress: dict[str, str] = {}  # of the commands that run, by step
        self._running: list[subprocess.Popen[bytes]] = []
        self._stopped = False

    def _times(self) -> dict[str, float]:
        try:
            loaded = json.loads(self._times_file.read_text(encoding="ascii"))
            return {str(k): float(v) for k, v in loaded.items()}
        except (OSError, ValueError, AttributeError):
            return {}

    def say(self, text: str) -> None:
        with self._lock:
            self._wipe()
            print(f"[{time.monotonic() - self.started:5.0f}s] {text}", flush=True)

    def _number(self, name: str) -> str:
        with self._lock:
            return f"{self._numbers.setdefault(name, len(self._numbers) + 1):2}/{self.total} {name}:"

    def begin(self, name: str, title: str) -> None:
        usual = self._times().get(name)
        self.say(f"{self._number(name)} {title}" + (f" (last time {usual:.0f} s)" if usual else ""))

    def cached(self, name: str) -> None:
        self.say(f"{self._number(name)} unchanged")

    def done(self, name: str, seconds: float) -> None:
        with self._lock:
            times = self._times()
            times[name] = round(seconds, 1)
            self._times_file.write_text(json.dumps(times, indent=1), encoding="ascii")
        self.say(f"{self._number(name)} done in {seconds:.0f} s")

    def stop(self) -> None:
        """End the commands that run, and start no others: their steps raise StepFailed."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                process.terminate()

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
            with self._lock:
                if self._stopped:
                    raise StepFailed(f"{name}: stopped")
                process = subprocess.Popen(
                    words,
                    cwd=cwd,
                    env={**os.environ, **(env or {})},
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=subprocess.STDOUT,
                )
                self._running.append(process)
            try:
                self._watch(process, name, log_path, begun)
            except BaseException:
                process.terminate()
                process.wait()
                raise
            finally:
                with self._lock:
                    self._running.remove(process)
        if process.returncode:
            if self._stopped:
                raise StepFailed(f"{name}: stopped")
            tail = log_path.read_text(encoding="utf-8", errors="replace").splitlines()[-LOG_TAIL_LINES:]
            raise StepFailed(
                f"{name}: '{' '.join(words)[:200]}' ended with {process.returncode}\n  | "
                + "\n  | ".join(tail)
                + f"\nThe whole log: {log_path}"
            )

    def _watch(self, process: subprocess.Popen[bytes], name: str, log_path: Path, begun: float) -> None:
        tick = TICK_S if self.tty else QUIET_TICK_S
        while True:
            try:
                process.wait(timeout=tick)
                break
            except subprocess.TimeoutExpired:
                self._show(name, f"{time.monotonic() - begun:4.0f} s  {last_line(log_path)}")
        with self._lock:
            self._progress.pop(name, None)
            self._wipe()

    def _show(self, name: str, progress: str) -> None:
        """How far the command of a step is: on a line of its own, or with the others on a terminal's last one."""
        with self._lock:
            self._progress[name] = progress
            if not self.tty:
                print(f"        {name}: {progress}", flush=True)
                return
            width = (os.get_terminal_size().columns - 1) // len(self._progress)
            parts = [f" {step}: {text}"[:width].ljust(width) for step, text in self._progress.items()]
            sys.stdout.write("\r\033[K" + "".join(parts).rstrip())
            sys.stdout.flush()

    def _wipe(self) -> None:
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
