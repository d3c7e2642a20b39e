# SPDX-License-Identifier: GPL-2.0
"""File trees in memory, and what is written of them."""

from __future__ import annotations

import gzip
import stat
import subprocess
import tarfile
from pathlib import Path

import pytest

from lab.images.build import write_disk
from lab.images.tree import Entry, Tree, canonical

CANONICAL = {
    "/bin/sh": "/usr/bin/sh",
    "./sbin/init": "/usr/sbin/init",
    "//etc//passwd": "/etc/passwd",
    "lib": "/lib",
    "/": "/",
    "/usr/lib/x": "/usr/lib/x",
    "/library/x": "/library/x",
}


@pytest.mark.parametrize("path", CANONICAL)
def test_paths_are_those_of_a_merged_usr(path: str) -> None:
    assert canonical(path) == CANONICAL[path]


def test_climbing_path_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'\.\.'"):
        canonical("/a/../../etc/passwd")


def sample() -> Tree:
    tree = Tree()
    tree.add_bytes("/etc/motd", b"hello\n")
    tree.add_bytes("/sbin/init", b"#!", 0o755)
    tree.add_directory("/sbin")
    tree.add_link("/init", "sbin/init")
    tree.add_device("/dev/console", 5, 1)
    return tree


def names(tree: Tree) -> list[str]:
    return [path for path, _ in tree]


def test_parents_come_first_and_exist() -> None:
    assert names(sample()) == [
        "/dev", "/dev/console", "/etc", "/etc/motd", "/init", "/sbin", "/usr", "/usr/sbin", "/usr/sbin/init",
    ]  # fmt: skip
    assert dict(sample())["/sbin"] == Entry(stat.S_IFLNK | 0o777, link="usr/sbin")


def test_later_layers_replace_earlier_ones(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/motd").write_text("changed\n")
    tree = sample()
    tree.add_path(tmp_path, "/")
    assert dict(tree)["/etc/motd"].data() == b"changed\n"


def test_remove_takes_what_lies_below_and_nothing_else() -> None:
    tree = sample()
    tree.add_bytes("/etcetera", b"")
    tree.remove("/etc", "/absent")
    assert "/etc/motd" not in tree
    assert "/etcetera" in tree


def test_missing_source_is_named() -> None:
    with pytest.raises(FileNotFoundError, match=r"/nonesuch: no such file, for /x"):
        Tree().add_path(Path("/nonesuch"), "/x")


def test_tar_keeps_types_and_follows_hard_links(tmp_path: Path) -> None:
    archive = tmp_path / "t.tar"
    sample().write_tar(archive)
    with tarfile.open(archive, "a") as tar:
        hard = tarfile.TarInfo("./etc/copy")
        hard.type, hard.linkname = tarfile.LNKTYPE, "./etc/motd"
        tar.addfile(hard)
    tree = Tree()
    tree.add_tar(archive)
    entries = dict(tree)
    assert entries["/etc/copy"].data() == b"hello\n"
    assert entries["/init"].link == "sbin/init"
    assert stat.S_IMODE(entries["/usr/sbin/init"].mode) == 0o755


def test_cpio_is_read_back_by_cpio(tmp_path: Path) -> None:
    image = tmp_path / "i.cpio.gz"
    sample().write_cpio(image)
    listing = subprocess.run(
        ["cpio", "-itv", "--quiet"], input=gzip.decompress(image.read_bytes()), stdout=subprocess.PIPE, check=True
    ).stdout.decode()
    assert [line.split()[8] for line in listing.splitlines() if not line.startswith("c")] == [
        "dev", "etc", "etc/motd", "init", "sbin", "usr", "usr/sbin", "usr/sbin/init",
    ]  # fmt: skip
    assert "5,   1" in listing
    assert "init -> sbin/init" in listing


def test_same_tree_same_bytes(tmp_path: Path) -> None:
    for name in ("a", "b"):
        sample().write_cpio(tmp_path / name)
        sample().write_tar(tmp_path / f"{name}.tar")
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()
    assert (tmp_path / "a.tar").read_bytes() == (tmp_path / "b.tar").read_bytes()


def test_disk_holds_the_tree_owned_by_root(tmp_path: Path) -> None:
    disk = tmp_path / "d.img"
    write_disk(sample(), disk)
    shown = subprocess.run(
        ["debugfs", "-R", "stat /usr/sbin/init", str(disk)],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=True,
    ).stdout.decode()
    assert "Mode:  0755" in shown
    assert "User:     0   Group:     0" in shown
