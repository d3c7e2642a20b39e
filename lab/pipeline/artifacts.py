# SPDX-License-Identifier: GPL-2.0
"""The artifacts that a build leaves for the lab, the tests and the benchmarks, under ``build/artifacts``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from .paths import ARTIFACTS, RESULTS


class ArtifactsMissing(Exception):
    """Something has not been built; the message says what, and how to build it."""


@dataclass(frozen=True)
class Artifacts:
    """Paths of everything that is booted or run. All exist when :func:`load` has returned."""

    xen: Path  # multiboot ELF32 image of the hypervisor
    kernel: Path  # bzImage for dom0 and guests
    dom0_image: Path  # raw ext2 root of dom0; boot it with snapshot=on
    guest_initrd: Path  # initramfs of the guests (dom0 has it as /boot/guest.cpio.gz)
    ssh: Path  # folder with the lab's key pair and known_hosts
    tools: Path  # what the Xen tools installed, as dom0 has it
    libgomp: Path  # folder of the elastic libgomp.so.1
    libgomp_stock: Path  # folder of the same libgomp.so.1 without overlay and hooks
    qemu: Path  # the emulator
    meter_plugin: Path  # the NUMA meter, a QEMU plugin
    results: Path  # where results go, as JSON


def load(root: Path = ARTIFACTS) -> Artifacts:
    """The artifacts of the last build. Raises ArtifactsMissing."""
    found = Artifacts(
        xen=root / "xen" / "xen.elf",
        kernel=root / "linux" / "vmlinuz",
        dom0_image=root / "images" / "dom0.img",
        guest_initrd=root / "images" / "guest.cpio.gz",
        ssh=root / "images" / "ssh",
        tools=root / "tools",
        libgomp=root / "libgomp" / "lib",
        libgomp_stock=root / "libgomp-stock" / "lib",
        qemu=root / "qemu" / "qemu-system-x86_64",
        meter_plugin=root / "meter" / "meter.so",
        results=RESULTS,
    )
    missing = [str(path) for name, path in vars(found).items() if name != "results" and not path.exists()]
    if missing:
        raise ArtifactsMissing("not built: " + ", ".join(missing) + "; run 'make build'")
    RESULTS.mkdir(parents=True, exist_ok=True)
    return found
