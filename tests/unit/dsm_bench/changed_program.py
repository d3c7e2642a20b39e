# SPDX-License-Identifier: GPL-2.0
"""A program of the guest, or one of its headers, with lines that are others, built here; and how one is run."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path


def _texts(source: Path) -> dict[str, str]:
    """Of the source, and of the headers beside it that it needs, by name."""
    text = source.read_text()
    found = {source.name: text}
    for name in re.findall(r'^#include "(.*)"$', text, re.M):
        found |= _texts(source.parent / name)
    return found


def changed(source: Path, folder: Path, changes: Mapping[str, str], words: str = "") -> Path:
    """The program with these texts replaced, each of which is there once, in it or in a header."""
    texts = _texts(source)
    for old, new in changes.items():
        assert sum(text.count(old) for text in texts.values()) == 1, old
        texts = {name: text.replace(old, new) for name, text in texts.items()}
    for name, text in texts.items():
        (folder / name).write_text(text)
    goal = folder / "changed"
    subprocess.run(
        ["gcc", "-O2", "-w", "-std=gnu11", *words.split(), "-o", goal, folder / source.name, "-lnuma", "-pthread"], check=True
    )
    return goal


def run(program: Path, words: str, **settings: str) -> subprocess.CompletedProcess[str]:
    """Its end, within five minutes; `settings` are more of its environment."""
    return subprocess.run(
        [program, *words.split()],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, **settings},
    )
