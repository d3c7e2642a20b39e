# SPDX-License-Identifier: GPL-2.0
"""Overlay and hooks in an upstream tree: what sync() writes, leaves alone and puts back."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from lab.pipeline import trees
from lab.pipeline.progress import StepFailed

HOOK = """Subject: area: call the overlay

SPDX-License-Identifier: GPL-2.0

--- a/main.c
+++ b/main.c
@@ -1,2 +1,3 @@
 first
+hooked
 second
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    root = tmp_path / "tree"
    root.mkdir()
    (root / "main.c").write_text("first\nsecond\n")
    (root / "other.c").write_text("other\n")
    return root


@pytest.fixture
def part(tmp_path: Path) -> trees.Part:
    folder = tmp_path / "part"
    (folder / "overlay" / "new").mkdir(parents=True)
    (folder / "overlay" / "new" / "logic.c").write_text("logic\n")
    (folder / "hooks").mkdir()
    (folder / "hooks" / "series").write_text("# comment\n0001.patch  # why\n\n")
    (folder / "hooks" / "0001.patch").write_text(HOOK)
    return trees.Part(folder)


def test_sync_places_overlay_and_hooks(tree: Path, part: trees.Part) -> None:
    trees.sync(tree, [part])
    assert (tree / "new" / "logic.c").read_text() == "logic\n"
    assert (tree / "main.c").read_text() == "first\nhooked\nsecond\n"
    assert (tree / "other.c").read_text() == "other\n"


def test_sync_twice_writes_nothing(tree: Path, part: trees.Part) -> None:
    trees.sync(tree, [part])
    for name in ("main.c", "new/logic.c"):
        os.utime(tree / name, (1, 1))
    trees.sync(tree, [part])
    assert {(tree / name).stat().st_mtime for name in ("main.c", "new/logic.c")} == {1}


def test_dropped_hook_and_overlay_leave_no_trace(tree: Path, part: trees.Part) -> None:
    trees.sync(tree, [part])
    trees.sync(tree, [])
    assert (tree / "main.c").read_text() == "first\nsecond\n"
    assert not (tree / "new" / "logic.c").exists()


def test_changed_hook_starts_from_the_original(tree: Path, part: trees.Part) -> None:
    trees.sync(tree, [part])
    (part.folder / "hooks" / "0001.patch").write_text(HOOK.replace("+hooked", "+other hook"))
    trees.sync(tree, [part])
    assert (tree / "main.c").read_text() == "first\nother hook\nsecond\n"


def test_hook_that_does_not_apply_is_named_and_changes_nothing(
    tree: Path, part: trees.Part, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trees, "REPO", part.folder)
    (part.folder / "hooks" / "0001.patch").write_text(HOOK.replace(" first", " elsewhere"))
    with pytest.raises(StepFailed, match=r"0001\.patch does not apply"):
        trees.sync(tree, [part])
    assert (tree / "main.c").read_text() == "first\nsecond\n"


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (HOOK, ["main.c"]),
        ("--- /dev/null\n+++ b/a/new.c\n@@ -0,0 +1 @@\n+x\n", ["a/new.c"]),
        ("--- a/x.c\t2026-01-01\n+++ b/x.c\t2026-01-01\n--- a/y/z.c\n+++ b/y/z.c\n", ["x.c", "y/z.c"]),
    ],
)
def test_touched(tmp_path: Path, text: str, names: list[str]) -> None:
    patch = tmp_path / "p.patch"
    patch.write_text(text)
    assert trees.touched(patch) == names
