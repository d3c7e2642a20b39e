# SPDX-License-Identifier: GPL-2.0
"""Upstream trees with this project's overlay and hooks in them.

A tree is unpacked once and then kept in step: only files whose content changes are written, so that make sees what really
changed and builds stay incremental. Upstream files that a hook touches are first put aside (``.xenuma/orig``), and each sync
patches fresh copies of those; a hook that is dropped leaves no trace.
"""

from __future__ import annotations

import contextlib
import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from .cache import files_below, locked
from .paths import CACHE, REPO
from .progress import Progress, StepFailed


@dataclass(frozen=True)
class Part:
    """One of the project's folders that changes an upstream tree."""

    folder: Path

    @property
    def overlay(self) -> Path:
        return self.folder / "overlay"

    @property
    def hooks(self) -> list[Path]:
        series = self.folder / "hooks" / "series"
        if not series.is_file():
            return []
        lines = (line.split("#")[0].strip() for line in series.read_text(encoding="utf-8").splitlines())
        return [self.folder / "hooks" / line for line in lines if line]


PARTS = {
    "xen": (Part(REPO / "xen"), Part(REPO / "toolstack")),
    "linux": (Part(REPO / "linux-guest"),),
    "libgomp": (Part(REPO / "libgomp-patch"),),
    "qemu": (Part(REPO / "lab" / "emulator"),),
}


def touched(patch: Path) -> list[str]:
    """The upstream files that a -p1 patch changes."""
    return changed_files(patch.read_text(encoding="utf-8"))


def changed_files(text: str) -> list[str]:
    return sorted(set(re.findall(r"^(?:---|\+\+\+) [^/\s]+/(\S+)", text, re.M)))


def unpack(archive: Path, tree: Path, progress: Progress, name: str, extra: Sequence[str] = ()) -> None:
    """Unpack ``archive`` into ``tree``, whole or not at all."""
    part = tree.with_name(tree.name + ".part")
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir(parents=True)
    progress.run(name, ["tar", "-xf", archive, "-C", part, "--strip-components=1", "--no-same-owner", *extra])
    part.rename(tree)


def apply_hooks(hooks: Sequence[Path], work: Path) -> None:
    for hook in hooks:
        done = subprocess.run(
            ["patch", "-p1", "--batch", "--forward", "--fuzz=0", "--no-backup-if-mismatch", "-i", str(hook)],
            cwd=work,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise StepFailed(f"hook {hook.relative_to(REPO)} does not apply:\n{done.stdout}{done.stderr}")


def sync(tree: Path, parts: Sequence[Part]) -> None:
    """Bring overlay and hooks of ``parts`` into ``tree``; put back what earlier ones left there. Idempotent."""
    state = tree / ".xenuma"
    originals = state / "orig"
    originals.mkdir(parents=True, exist_ok=True)
    managed_file = state / "managed.json"
    managed: list[str] = json.loads(managed_file.read_text(encoding="utf-8")) if managed_file.is_file() else []

    hooks = [hook for part in parts for hook in part.hooks]
    overlay = {str(file.relative_to(part.overlay)): file for part in parts for file in files_below([part.overlay])}
    hooked = sorted({name for hook in hooks for name in touched(hook)})
    for name in (*overlay, *hooked):
        keep_original(tree, originals, name, managed)

    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder)
        for name in hooked:
            source = overlay.get(name, originals / name)
            if source.is_file():
                (work / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(source, work / name)
        apply_hooks(hooks, work)
        wanted = {**overlay, **{name: work / name for name in hooked if (work / name).is_file()}}
        # Recorded before anything is written: an interrupted sync is put right by the next.
        managed_file.write_text(json.dumps(sorted({*managed, *wanted})), encoding="utf-8")
        for name in sorted({*managed, *wanted}):
            put(tree / name, wanted.get(name, originals / name))
        managed_file.write_text(json.dumps(sorted(wanted)), encoding="utf-8")


def keep_original(tree: Path, originals: Path, name: str, managed: Sequence[str]) -> None:
    if name not in managed and (tree / name).is_file() and not (originals / name).is_file():
        (originals / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(tree / name, originals / name)


def put(target: Path, source: Path) -> None:
    """Make ``target`` the same as ``source``, or absent if there is none; leave it alone when it is."""
    if not source.is_file():
        target.unlink(missing_ok=True)
        return
    if target.is_file() and target.read_bytes() == source.read_bytes():
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    shutil.copymode(source, target)


GCC_MEMBERS = (
    "libgomp",
    "config",
    "include",
    "libgcc/gthr*",
    "gcc/BASE-VER",
    "gcc/DATESTAMP",
    "gcc/DEV-PHASE",
    "config-ml.in",
    "multilib.am",
    "libtool-ldflags",
    "ltmain.sh",
    "lt*.m4",
    "libtool.m4",
    "config.guess",
    "config.sub",
    "install-sh",
    "missing",
    "mkinstalldirs",
    "depcomp",
    "compile",
    "move-if-change",
)


def unpack_gcc(archive: Path, tree: Path, progress: Progress) -> None:
    """libgomp and what configures it: Debian's archive holds gcc's own tarball, of which a few members are needed."""
    with tempfile.TemporaryDirectory(dir=tree.parent) as folder:
        progress.run(
            "libgomp", ["tar", "-xf", archive, "-C", folder, "--strip-components=1", "--wildcards", "*/gcc-*.tar.xz"]
        )
        (inner,) = Path(folder).glob("gcc-*.tar.xz")
        unpack(
            inner,
            tree,
            progress,
            "libgomp",
            ["--exclude=*/libgomp/testsuite/libgomp.*", "--wildcards", *(f"gcc-*/{member}" for member in GCC_MEMBERS)],
        )


@contextlib.contextmanager
def prepared(
    name: str, archive: Path, progress: Progress, *, parts: Sequence[Part] | None = None, variant: str = ""
) -> Iterator[Path]:
    """The tree ``name`` with this project in it (or with ``parts``), unpacked if need be.

    The tree is locked while the block runs: nobody else can bring other content into it below a running build.
    """
    version = archive.name.split(".orig")[0].replace("_", "-")
    tree = CACHE / "trees" / f"{version}{variant}"
    with locked(f"tree-{tree.name}"):
        if not tree.is_dir():
            tree.parent.mkdir(parents=True, exist_ok=True)
            if name == "libgomp":
                unpack_gcc(archive, tree, progress)
            else:
                unpack(archive, tree, progress, name)
        sync(tree, PARTS[name] if parts is None else parts)
        yield tree
