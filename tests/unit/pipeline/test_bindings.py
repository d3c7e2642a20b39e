# SPDX-License-Identifier: GPL-2.0
"""The golang bindings: when they are stale, and the hook that renews them. A few lines play Xen's generator."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.pipeline import bindings, trees
from lab.pipeline.progress import StepFailed

GENERATOR = """import os, sys
idl, types, helpers = sys.argv[1:]
assert os.environ["LIBXL_SRC_DIR"] == os.path.dirname(idl)
text = open(idl).read()
open(types, "w").write("package\\n" + text + "end\\n")
open(helpers, "w").write("helpers\\n" + text.upper() + "end\\n")
"""
HEADER = "Subject: golang: x\n\nSPDX-" + "License-Identifier: LGPL-2.1-only\n---\n"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    (root / bindings.FOLDER).mkdir(parents=True)
    (root / "tools/libs/light").mkdir(parents=True)
    (root / bindings.FOLDER / "gengotypes.py").write_text(GENERATOR)
    (root / "tools/libs/light/libxl_types.idl").write_text("one\n")
    for name, text in bindings.generate(root).items():
        (root / name).write_text(text)
    return root


def test_what_the_idl_generates_is_not_stale(tree: Path) -> None:
    assert bindings.stale(tree) == []


def test_a_changed_idl_makes_both_stale_and_the_hook_renews_them(tree: Path, tmp_path: Path) -> None:
    (tree / "tools/libs/light/libxl_types.idl").write_text("one\ntwo\n")
    assert bindings.stale(tree) == [f"{bindings.FOLDER}/{name}" for name in bindings.FILES]
    part = trees.Part(tmp_path / "part")
    (part.folder / "hooks").mkdir(parents=True)
    (part.folder / "hooks/series").write_text("0001.patch\n")
    (part.folder / "hooks/0001.patch").write_text(bindings.hook_text(HEADER, tree))
    trees.sync(tree, [part])
    assert bindings.stale(tree) == []
    # Made again from a tree that has the hook in it, it is the same: it starts from upstream's files.
    assert bindings.hook_text(HEADER, tree) == (part.folder / "hooks/0001.patch").read_text()


def test_a_generator_that_fails_says_why(tree: Path) -> None:
    (tree / bindings.FOLDER / "gengotypes.py").write_text("raise SystemExit('no such type')")
    with pytest.raises(StepFailed, match="no such type"):
        bindings.generate(tree)
