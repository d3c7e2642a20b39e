# SPDX-License-Identifier: GPL-2.0
"""libxl's golang bindings, which Xen keeps in its tree, as the IDL with our hooks generates them.

``python3 -m lab.pipeline.bindings`` writes the hook that brings them up to date. ``make check`` says when that is due.
"""

from __future__ import annotations

import argparse
import difflib
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from . import sources, trees
from .paths import REPO
from .progress import Progress, StepFailed

FOLDER = "tools/golang/xenlight"
FILES = ("types.gen.go", "helpers.gen.go")
HOOK = REPO / "toolstack/hooks/0011-golang-bindings.patch"
CONTEXT_LINES = 1


class WithoutHook(trees.Part):
    """A part of which the old hook is left out, since its changes may not fit any more."""

    @property
    def hooks(self) -> list[Path]:
        return [hook for hook in super().hooks if hook != HOOK]


def generate(tree: Path) -> dict[str, str]:
    """What the IDL of ``tree`` generates, by the file's path in the tree."""
    libxl = tree / "tools/libs/light"
    with tempfile.TemporaryDirectory() as folder:
        out = [Path(folder) / name for name in FILES]
        done = subprocess.run(
            [sys.executable, "-B", tree / FOLDER / "gengotypes.py", libxl / "libxl_types.idl", *out],
            env={**os.environ, "LIBXL_SRC_DIR": str(libxl)},
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StepFailed(f"gengotypes.py: {done.stderr.strip()}")
        return {f"{FOLDER}/{file.name}": file.read_text(encoding="utf-8") for file in out}


def stale(tree: Path) -> list[str]:
    """The files of ``tree`` that are not what its IDL generates."""
    return [name for name, text in generate(tree).items() if (tree / name).read_text(encoding="utf-8") != text]


def original(tree: Path, name: str) -> str:
    kept = tree / ".xenuma/orig" / name
    return (kept if kept.is_file() else tree / name).read_text(encoding="utf-8")


def hook_text(header: str, tree: Path) -> str:
    """A hook with ``header`` that makes upstream's files what the IDL generates."""
    text = header
    for name, wanted in generate(tree).items():
        diff = difflib.unified_diff(
            original(tree, name).splitlines(keepends=True),
            wanted.splitlines(keepends=True),
            f"a/{name}",
            f"b/{name}",
            n=CONTEXT_LINES,
        )
        text += "".join(diff)
    return text


def main(arguments: Sequence[str] = ()) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m lab.pipeline.bindings", description=f"Write {HOOK.relative_to(REPO)} anew, from Xen's IDL."
    )
    parser.parse_args(arguments)
    archive = sources.local("xen")
    if archive is None:
        print("the source of Xen is not in the cache; run 'make setup'", file=sys.stderr)
        return 1
    header = re.split(r"^--- a/", HOOK.read_text(encoding="utf-8"), maxsplit=1, flags=re.M)[0]
    parts = [WithoutHook(part.folder) for part in trees.PARTS["xen"]]
    try:
        with trees.prepared("xen", archive, Progress(0), parts=parts) as tree:
            HOOK.write_text(hook_text(header, tree), encoding="utf-8")
    except StepFailed as error:
        print(f"xenuma: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
