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
from typing import Protocol

from lab.errors import LabError

REPOSITORY = Path(__file__).resolve().parent.parent


class Artifacts(Protocol):
    """What a rack needs of a build; lab.pipeline.artifacts.load() makes it."""

    @property
    def qemu(self) -> Path:
        """The emulator."""

    @property
    def xen(self) -> Path:
        """xen.elf: the hypervisor as a 32-bit multiboot ELF."""

    @property
    def kernel(self) -> Path:
        """bzImage of dom0."""

    @property
    def dom0_image(self) -> Path:
        """dom0's root file system, raw ext2; never written to."""

    @property
    def meter_plugin(self) -> Path:
        """The NUMA meter, a QEMU plugin."""

    @property
    def ssh_key(self) -> Path:
        """Private key of the lab; known_hosts lies beside it."""


@dataclass(frozen=True)
class Files:
    """Artifacts as plain paths."""

    qemu: Path
    xen: Path
    kernel: Path
    dom0_image: Path
    meter_plugin: Path
    ssh_key: Path


def load() -> Files:
    """The pipeline's artifacts with the environment's replacements; LabError names what is missing."""
    variables = {
        "qemu": "XENUMA_QEMU",
        "xen": "XENUMA_XEN",
        "kernel": "XENUMA_KERNEL",
        "dom0_image": "XENUMA_DOM0_IMAGE",
        "meter_plugin": "XENUMA_METER",
        "ssh_key": "XENUMA_SSH_KEY",
    }
    paths = {name: Path(os.environ[variable]) for name, variable in variables.items() if os.environ.get(variable)}
    if len(paths) < len(variables):
        paths = _built() | paths
    for name, path in paths.items():
        if not path.is_file():
            raise LabError(
                f"{name.replace('_', ' ')}: {path} is not there; run 'make build' (or set {variables[name]})"
            )
    return Files(**{name: path.resolve() for name, path in paths.items()})


def _built() -> dict[str, Path]:
    from lab.pipeline import artifacts

    try:
        built = artifacts.load()
    except artifacts.ArtifactsMissing as error:
        raise LabError(str(error)) from error
    return {
        "qemu": built.qemu,
        "xen": built.xen,
        "kernel": built.kernel,
        "dom0_image": built.dom0_image,
        "meter_plugin": built.meter_plugin,
        "ssh_key": built.ssh / "id_ed25519",
    }


def state_directory() -> Path:
    """Where racks keep their state and their logs' paths: build/ in the repository."""
    return REPOSITORY / "build"


def socket_directory(rack: str) -> Path:
    """Short directory for Unix sockets, one a rack; shared by all sandboxes of a user, unlike /tmp."""
    cache = Path(os.environ.get("XENUMA_CACHE") or Path.home() / ".cache/xenuma")
    # crc32 tells work trees of one user apart; hash() would differ from process to process.
    return cache / "run" / f"{rack}-{zlib.crc32(str(REPOSITORY).encode()):08x}"
