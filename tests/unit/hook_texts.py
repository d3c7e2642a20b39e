# SPDX-License-Identifier: GPL-2.0-only
"""What a hook adds to a file, as headers, so that a test of C compiles that very text within what upstream has around it."""

from __future__ import annotations

import re
from pathlib import Path


def hook_headers(folder: Path, number: str, hook: str) -> Path:
    """Make hook-NUMBER-FILE-N.h, for the Nth place of FILE.c: from the first line that is new there to the last one."""
    folder.mkdir(parents=True, exist_ok=True)
    for part in re.split(r"^--- a/", hook, flags=re.MULTILINE)[1:]:
        name = Path(part.splitlines()[0])
        for nth, place in enumerate(re.split(r"^@@ .*\n", part, flags=re.MULTILINE)[1:], 1):
            after = [line for line in place.splitlines() if not line.startswith("-")]
            added = [n for n, line in enumerate(after) if line.startswith("+")]
            if name.suffix == ".c" and added:
                text = "\n".join(line[1:] for line in after[added[0] : added[-1] + 1])
                (folder / f"hook-{number}-{name.stem}-{nth}.h").write_text(f"{text}\n")
    return folder
