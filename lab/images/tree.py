# SPDX-License-Identifier: GPL-2.0
"""A file tree in memory, made of layers: tar archives, directories, single files.

Images are made from trees without unpacking, mounting or root: everything belongs to uid 0, times are one constant, entries
are written in the order of their paths. The same layers therefore give the same bytes.

Paths are absolute and belong to a merged-/usr system: /bin/x, /sbin/x and /lib/x of a layer become /usr/bin/x and so on.
Later layers replace earlier ones.
"""

from __future__ import annotations

import gzip
import io
import stat
import tarfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

MERGED = ("bin", "sbin", "lib", "lib64")

# 2025-01-01 00:00 UTC: the modification time of every file of an image, in seconds since the epoch.
IMAGE_TIME = 1735689600


@dataclass(frozen=True)
class Entry:
    """One file: mode with type bits (as in st_mode), and what belongs to the type."""

    mode: int
    data: Callable[[], bytes] = field(default=bytes)
    link: str = ""
    device: tuple[int, int] = (0, 0)


def canonical(path: str) -> str:
    """Absolute path below the merged /usr, without "." and empty components. Raises ValueError for "..": no layer needs it."""
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if ".." in parts:
        raise ValueError(f"path with '..': {path!r}")
    if len(parts) > 1 and parts[0] in MERGED:
        parts.insert(0, "usr")
    return "/" + "/".join(parts)


class Tree:
    """Files by canonical path."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}

    def __contains__(self, path: str) -> bool:
        return canonical(path) in self._entries

    def __iter__(self) -> Iterator[tuple[str, Entry]]:
        """Entries in the order of their paths, so that a directory comes before what it holds."""
        return iter(sorted(self._entries.items(), key=lambda item: PurePosixPath(item[0]).parts))

    def copy(self) -> Tree:
        """A tree with the same entries; file content is shared."""
        tree = Tree()
        tree._entries = dict(self._entries)
        return tree

    def size(self) -> int:
        """Bytes of all regular files."""
        return sum(len(entry.data()) for entry in self._entries.values() if stat.S_ISREG(entry.mode))

    def add(self, path: str, entry: Entry) -> None:
        """Put one entry in; missing parent directories are made with mode 0755."""
        path = canonical(path)
        if path == "/":
            return
        parent = str(PurePosixPath(path).parent)
        if parent != "/" and parent not in self._entries:
            self.add(parent, Entry(stat.S_IFDIR | 0o755))
        if path[1:] in MERGED and not stat.S_ISLNK(entry.mode):
            entry = Entry(stat.S_IFLNK | 0o777, link="usr" + path)
        self._entries[path] = entry

    def add_bytes(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Put a regular file in."""
        self.add(path, Entry(stat.S_IFREG | mode, data=lambda: data))

    def add_directory(self, path: str, mode: int = 0o755) -> None:
        """Put an empty directory in, or change the mode of one."""
        self.add(path, Entry(stat.S_IFDIR | mode))

    def add_link(self, path: str, target: str) -> None:
        """Put a symbolic link in."""
        self.add(path, Entry(stat.S_IFLNK | 0o777, link=target))

    def add_device(self, path: str, major: int, minor: int, mode: int = 0o600) -> None:
        """Put a character device in."""
        self.add(path, Entry(stat.S_IFCHR | mode, device=(major, minor)))

    def add_tar(self, archive: Path) -> None:
        """Put all of a tar archive in. Hard links become copies that share their content."""
        # Stays open: content is read when an image is written.
        tar = tarfile.open(archive)  # noqa: SIM115
        for member in tar:
            if member.isdir():
                self.add_directory(member.name, member.mode)
            elif member.issym():
                self.add_link(member.name, member.linkname)
            elif member.isfile() or member.islnk():
                self.add(member.name, Entry(stat.S_IFREG | member.mode, data=_tar_reader(tar, member)))

    def add_path(self, source: Path, destination: str) -> None:
        """Put a file or a whole directory of this machine in, at `destination`; symbolic links stay links.

        Executable stays executable, all else becomes 0644 or 0755: the mode does not depend on the caller's umask.
        """
        if source.is_symlink():
            self.add_link(destination, str(source.readlink()))
        elif source.is_dir():
            if canonical(destination) not in self._entries:
                self.add_directory(destination)
            for child in sorted(source.iterdir()):
                self.add_path(child, f"{destination}/{child.name}")
        elif source.is_file():
            mode = 0o755 if source.stat().st_mode & 0o111 else 0o644
            self.add(destination, Entry(stat.S_IFREG | mode, data=source.read_bytes))
        else:
            raise FileNotFoundError(f"{source}: no such file, for {destination} of an image")

    def remove(self, *paths: str) -> None:
        """Take paths out, each with all that lies below it. A path that is not there is not an error."""
        doomed = tuple(canonical(path) for path in paths)
        below = tuple(path + "/" for path in doomed)
        self._entries = {
            path: entry for path, entry in self._entries.items() if path not in doomed and not path.startswith(below)
        }

    def remove_if(self, unwanted: Callable[[str], bool]) -> None:
        """Take out every path that `unwanted` is true for."""
        self._entries = {path: entry for path, entry in self._entries.items() if not unwanted(path)}

    def write_tar(self, target: Path) -> None:
        """Write a tar archive with relative names, as mke2fs -d reads it."""
        with tarfile.open(target, "w", format=tarfile.GNU_FORMAT) as tar:
            for path, entry in self:
                info = tarfile.TarInfo("." + path)
                info.mode = stat.S_IMODE(entry.mode)
                info.mtime = IMAGE_TIME
                if stat.S_ISDIR(entry.mode):
                    info.type = tarfile.DIRTYPE
                elif stat.S_ISLNK(entry.mode):
                    info.type, info.linkname = tarfile.SYMTYPE, entry.link
                elif stat.S_ISCHR(entry.mode):
                    info.type = tarfile.CHRTYPE
                    info.devmajor, info.devminor = entry.device
                else:
                    data = entry.data()
                    info.size = len(data)
                    tar.addfile(info, io.BytesIO(data))
                    continue
                tar.addfile(info)

    def write_cpio(self, target: Path, level: int = 0) -> None:
        """Write an initramfs: a "newc" cpio archive, gzip'ed at `level`.

        Level 0 stores without compressing: an emulated CPU inflates slower than an emulated disk reads.
        """
        with target.open("wb") as raw, gzip.GzipFile("", "wb", level, raw, IMAGE_TIME) as out:
            for inode, (path, entry) in enumerate(self, start=1):
                out.write(_cpio_member(path[1:], entry, inode))
            out.write(_cpio_member("TRAILER!!!", Entry(0), 0))


def _tar_reader(tar: tarfile.TarFile, member: tarfile.TarInfo) -> Callable[[], bytes]:
    def read() -> bytes:
        stream = tar.extractfile(member)
        if stream is None:
            raise OSError(f"{member.name}: link to a file that is not in the archive")
        return stream.read()

    return read


def _cpio_member(name: str, entry: Entry, inode: int) -> bytes:
    """One member in "new ASCII" format: Documentation/driver-api/early-userspace/buffer-format.rst of Linux."""
    if stat.S_ISLNK(entry.mode):
        data = entry.link.encode()
    elif stat.S_ISREG(entry.mode):
        data = entry.data()
    else:
        data = b""
    encoded = name.encode() + b"\0"
    links = 2 if stat.S_ISDIR(entry.mode) else 1
    fields = (inode, entry.mode, 0, 0, links, IMAGE_TIME, len(data), 0, 0, *entry.device, len(encoded), 0)
    header = b"070701" + "".join(f"{value:08X}" for value in fields).encode()
    return _padded(header + encoded) + _padded(data)


def _padded(data: bytes) -> bytes:
    return data + b"\0" * (-len(data) % 4)
