# SPDX-License-Identifier: GPL-2.0
"""Where dsm/Makefile puts objects: two working trees that share a cache never link each other's.

What one of them has compiled can be newer than a header of the other, and make goes by times.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

from lab.pipeline.paths import REPO


def objects_of(tree: Path, objects: Path) -> str:
    """Folder of the objects of a working tree, for make's O."""
    done = subprocess.run(
        ["make", "-C", tree, "-pn", "XEN=/nowhere", f"O={objects}"], capture_output=True, text=True, check=False
    )
    found = re.findall(r"^O := (.*)$", done.stdout, re.M)
    assert len(found) == 1, done
    return str(found[0])


def test_objects_of_two_working_trees(tmp_path: Path) -> None:
    trees = [tmp_path / name for name in ("one", "two")]
    for tree in trees:
        tree.mkdir()
        shutil.copy(REPO / "dsm" / "Makefile", tree)
    one, two = (objects_of(tree, tmp_path / "objects") for tree in trees)
    assert one != two
    assert one == objects_of(trees[0], tmp_path / "objects")
    assert all(re.fullmatch(rf"{re.escape(str(tmp_path))}/objects/\d+", folder) for folder in (one, two)), (one, two)
