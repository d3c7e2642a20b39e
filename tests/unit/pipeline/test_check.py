# SPDX-License-Identifier: GPL-2.0
"""``make check``: licences by folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab.pipeline import check
from lab.pipeline.paths import REPO

TAG = "SPDX-" + "License-Identifier: "


@pytest.mark.parametrize(
    ("name", "licence"),
    [
        ("lab/rack.py", "GPL-2.0"),
        ("xen/config/xenuma.config", "GPL-2.0"),
        ("xen/overlay/xen/common/mem_range.c", "GPL-2.0-only"),
        ("xen/overlay/tools/tests/mem-range/Makefile", "GPL-2.0-only"),
        ("toolstack/overlay/tools/libs/light/libxl_vnode.c", "LGPL-2.1-only"),
        ("toolstack/overlay/tools/libs/guest/xg_vnuma_topology.h", "LGPL-2.1-only"),
        ("toolstack/overlay/tools/include/libxl_vnode.h", "LGPL-2.1-only"),
        ("toolstack/overlay/tools/xl/xl_vnode.c", "LGPL-2.1-only"),
        ("toolstack/overlay/docs/man/xl-vnode.1.pod", "GPL-2.0-only"),
        ("libgomp-patch/overlay/libgomp/config/linux/follow.c", check.GCC),
        ("linux-guest/overlay/include/uapi/xen/topology.h", "GPL-2.0 WITH Linux-syscall-note"),
    ],
)
def test_a_file_has_the_licence_of_its_folder(name: str, licence: str) -> None:
    path = Path(name)
    others = {other for allowed in check.LICENCES.values() for other in allowed} - set(check.folder_licences(path))
    for comment in ("/* {} */", "// {}", "# {}", "=for comment {}", "<!-- {} -->"):
        assert check.wrong_licence(path, comment.format(TAG + licence)) == []
        for other in others:
            assert check.wrong_licence(path, comment.format(TAG + other)), other
    assert check.wrong_licence(path, "nothing") == [f"{path}: no SPDX line"]


def hook(licence: str, *changed: str) -> str:
    files = "".join(f"--- a/{name}\n+++ b/{name}\n@@ -1 +1 @@\n-a\n+b\n" for name in changed)
    return f"Subject: area: what\n\n{TAG}{licence}\n---\n{files}"


def test_a_hook_has_the_licence_of_what_it_changes() -> None:
    name = Path("toolstack/hooks/0001-x.patch")
    libxl, manual = "tools/libs/light/libxl_mem.c", "docs/man/xl.1.pod.in"
    assert check.wrong_licence(name, hook("LGPL-2.1-only", libxl)) == []
    assert check.wrong_licence(name, hook("GPL-2.0-only", manual)) == []
    (found,) = check.wrong_licence(name, hook("GPL-2.0", libxl))
    assert "toolstack/overlay/tools/libs/light" in found and "LGPL-2.1-only" in found
    assert check.wrong_licence(name, hook("LGPL-2.1-only", libxl, manual)), "one hook, two licences"


def test_tests_that_can_not_be_collected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Two folders may have files of one name, as make test collects them; a file that can't be imported is told."""
    (tmp_path / "pyproject.toml").write_text((REPO / "pyproject.toml").read_text())
    for folder in ("one", "two"):
        (tmp_path / "tests" / folder).mkdir(parents=True)
        (tmp_path / "tests" / folder / "test_same.py").write_text("def test_it() -> None: pass\n")
    monkeypatch.setattr(check, "REPO", tmp_path)
    assert check.check_collection() == []
    (tmp_path / "tests" / "two" / "test_same.py").write_text("import not_there\n")
    assert any("not_there" in line for line in check.check_collection())
