# SPDX-License-Identifier: GPL-2.0
"""What the lab boots: the pipeline's files, or those that the environment names."""

from __future__ import annotations

from pathlib import Path

import pytest

from lab import artifacts
from lab.artifacts import BUILT, load, path_of
from lab.errors import LabError


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Path]:
    """All artifacts, as links into a cache."""
    files = {}
    for name, (_, variable) in BUILT.items():
        monkeypatch.delenv(variable, raising=False)
        (tmp_path / f"real-{name}").touch()
        files[name] = tmp_path / name
        files[name].symlink_to(tmp_path / f"real-{name}")
    monkeypatch.setattr(artifacts, "BUILT", {name: (files[name], BUILT[name][1]) for name in BUILT})
    return files


def test_each_is_the_file_itself(built: dict[str, Path]) -> None:
    """Not the link, which the next build moves."""
    assert vars(load()) == {name: path.parent / f"real-{name}" for name, path in built.items()}


def test_the_environment_replaces_one(
    built: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "mine").touch()
    monkeypatch.setenv("XENUMA_XEN", str(tmp_path / "mine"))
    monkeypatch.setenv("XENUMA_KERNEL", "")
    assert load().xen == path_of("xen") == tmp_path / "mine"
    assert load().kernel == tmp_path / "real-kernel"


def test_all_that_is_missing_is_named(
    built: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built["qemu"].unlink()
    monkeypatch.setenv("XENUMA_METER", str(tmp_path / "nowhere"))
    with pytest.raises(LabError) as missing:
        load()
    assert str(missing.value) == (
        f"not there: {built['qemu']} (XENUMA_QEMU can name another), {tmp_path}/nowhere (XENUMA_METER can name another); "
        "run 'make build'"
    )
