# SPDX-License-Identifier: GPL-2.0
"""The list of decisions, docs/decisions/README.md, from the first line of each.

``python3 -m lab.pipeline.decisions`` writes it anew. A unit test says when that is due.
"""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from .paths import REPO

FOLDER = REPO / "docs" / "decisions"
INDEX = "README.md"
HEAD = """<!-- SPDX-License-Identifier: GPL-2.0 -->
# Decisions

What somebody may question, and why it is so; each by its number. A new one has the highest number and one: {next}; there are
gaps below it, which stay. Made by `lab/enter python3 -m lab.pipeline.decisions`.

| number | what |
|---|---|
"""


def index(folder: Path) -> str:
    """The list. Raises ValueError for a file whose first line is not its number and subject, or not its alone."""
    rows: dict[str, str] = {}
    for path in sorted(folder.glob("*.md")):
        if path.name == INDEX:
            continue
        number = path.name[:4]
        found = re.match(r"(?:<!--.*-->\n)?# (\d{4}): (\S.*)\n", path.read_text(encoding="utf-8"))
        if not found or found[1] != number or number in rows:
            raise ValueError(f"{path.name}: want a file of its own number, whose first line is '# {number}: WHAT'")
        rows[number] = f"| [{number}]({path.name}) | {found[2].replace('|', chr(92) + '|')} |\n"
    return HEAD.format(next=f"{int(max(rows)) + 1:04d}") + "".join(rows.values())


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(prog="python3 -m lab.pipeline.decisions", description="Write docs/decisions/README.md.")
    parser.parse_args(arguments)
    try:
        (FOLDER / INDEX).write_text(index(FOLDER), encoding="utf-8")
    except ValueError as error:
        print(f"xenuma: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
