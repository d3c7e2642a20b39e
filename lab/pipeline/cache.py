# SPDX-License-Identifier: GPL-2.0
"""A cache of step results, named by the content of what they were made from.

``CACHE/out/<step>-<key>/`` holds one result and appears whole or not at all: a step writes into a folder beside it, which is
renamed when the step has succeeded. The two newest results of a step are kept, or as many as XENUMA_KEPT_RESULTS says. Who
works in several trees at once wants two for each: a result that another tree has put out is made anew, and missed by its users.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import shutil
from collections.abc import Iterable, Iterator
from pathlib import Path

from .paths import CACHE

KEPT_RESULTS = 2


def kept_results() -> int:
    """How many results of a step stay. A word that is no number above 0 counts as none."""
    word = os.environ.get("XENUMA_KEPT_RESULTS", "")
    return int(word) if word.isascii() and word.isdecimal() and int(word) > 0 else KEPT_RESULTS


def files_below(paths: Iterable[Path]) -> list[Path]:
    """All regular files of the given files and folders, sorted; byte-compiled Python left out."""
    found: set[Path] = set()
    for path in paths:
        if path.is_dir():
            found.update(p for p in path.rglob("*") if p.is_file() and "__pycache__" not in p.parts)
        elif path.is_file():
            found.add(path)
    return sorted(found)


def content_key(paths: Iterable[Path], *words: str, base: Path) -> str:
    """A name for the content of ``paths`` (their names relative to ``base``, modes and bytes) and for ``words``."""
    digest = hashlib.sha256()
    for word in words:
        digest.update(f"word {len(word)} {word}\n".encode())
    for path in files_below(paths):
        name = os.path.relpath(path, base)
        data = path.read_bytes()
        digest.update(f"file {name} {path.stat().st_mode & 0o100} {len(data)}\n".encode())
        digest.update(data)
    return digest.hexdigest()[:16]


@contextlib.contextmanager
def locked(name: str) -> Iterator[None]:
    """Hold the lock ``name`` of the cache: two runs must not change one build tree at a time."""
    folder = CACHE / "locks"
    folder.mkdir(parents=True, exist_ok=True)
    with open(folder / name, "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


class StepResult:
    """The place of one step's result in the cache."""

    def __init__(self, step: str, key: str) -> None:
        self.step = step
        self.path = CACHE / "out" / f"{step}-{key}"

    @property
    def complete(self) -> bool:
        return self.path.is_dir()

    @contextlib.contextmanager
    def writing(self) -> Iterator[Path]:
        """A fresh folder that becomes the result if the block ends without an exception."""
        part = self.path.with_name(self.path.name + ".part")
        if part.exists():
            shutil.rmtree(part)
        part.mkdir(parents=True)
        yield part
        if self.path.exists():
            shutil.rmtree(self.path)
        part.rename(self.path)
        self._forget_old()

    def _forget_old(self) -> None:
        prefix = f"{self.step}-"
        others = [
            p
            for p in self.path.parent.iterdir()
            if p.name.startswith(prefix) and len(p.name) == len(self.path.name) and p != self.path
        ]
        others.sort(key=lambda p: p.stat().st_mtime, reverse=True)
        for old in others[kept_results() - 1 :]:
            shutil.rmtree(old, ignore_errors=True)
