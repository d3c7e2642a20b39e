# SPDX-License-Identifier: GPL-2.0
"""What the lab boots. The build pipeline makes it; environment variables can name other files.

XENUMA_QEMU, XENUMA_XEN, XENUMA_KERNEL, XENUMA_DOM0_IMAGE, XENUMA_METER, XENUMA_SSH_KEY replace single artifacts (absolute
paths).
"""

from __future__ import annotations

import os
import zlib
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.pipeline.cache import content_key
from lab.pipeline.paths import ARTIFACTS, BUILD, CACHE, REPO

# Where the pipeline leaves each artifact, and what names another file.
BUILT = {
    "qemu": (ARTIFACTS / "qemu" / "qemu-system-x86_64", "XENUMA_QEMU"),
    "xen": (ARTIFACTS / "xen" / "xen.elf", "XENUMA_XEN"),
    "kernel": (ARTIFACTS / "linux" / "vmlinuz", "XENUMA_KERNEL"),
    "dom0_image": (ARTIFACTS / "images" / "dom0.img", "XENUMA_DOM0_IMAGE"),
    "meter_plugin": (ARTIFACTS / "meter" / "meter.so", "XENUMA_METER"),
    "ssh_key": (ARTIFACTS / "images" / "ssh" / "id_ed25519", "XENUMA_SSH_KEY"),
}


@dataclass(frozen=True)
class Artifacts:
    """What a rack needs of a build."""

    qemu: Path  # the emulator
    xen: Path  # xen.elf: the hypervisor as a 32-bit multiboot ELF
    kernel: Path  # bzImage of dom0
    dom0_image: Path  # dom0's root file system, raw ext2; never written to
    meter_plugin: Path  # the NUMA meter, a QEMU plugin
    ssh_key: Path  # private key of the lab; known_hosts lies beside it


def path_of(name: str) -> Path:
    """The file of one artifact, of those in BUILT, whether it is there or not."""
    built, variable = BUILT[name]
    return Path(os.environ.get(variable) or built)


def load() -> Artifacts:
    """The pipeline's artifacts with the environment's replacements; LabError names all that are missing."""
    paths = {name: path_of(name) for name in BUILT}
    missing = [f"{path} ({BUILT[name][1]} can name another)" for name, path in paths.items() if not path.is_file()]
    if missing:
        raise LabError(f"not there: {', '.join(missing)}; run 'make build'")
    return Artifacts(**{name: path.resolve() for name, path in paths.items()})


def built() -> str:
    """The names of all that the pipeline has built, and what stands in for them by the environment, by name and content."""
    names = sorted(f"{link.name}={link.resolve().name}" for link in ARTIFACTS.glob("*"))
    other = {name: path_of(name) for name in BUILT if path_of(name) != BUILT[name][0]}
    names += [f"{name}={path} {content_key([path], base=path.parent)}" for name, path in other.items()]
    return " ".join(names)


def state_directory() -> Path:
    """Where racks keep their state and their logs' paths: build/ in the repository."""
    return BUILD


def socket_directory(rack: str) -> Path:
    """Short directory for Unix sockets, one a rack; shared by all sandboxes of a user, unlike /tmp."""
    # crc32 tells work trees of one user apart; hash() would differ from process to process.
    return CACHE / "run" / f"{rack}-{zlib.crc32(str(REPO).encode()):08x}"
