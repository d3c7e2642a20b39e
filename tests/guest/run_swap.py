# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel in QEMU and has it swap on a disk in memory at the other end of a TCP connection: benchmarks/remote_swap.

No Xen and no second machine: both ends are in this one. By hand: python3 -m tests.guest.run_swap BZIMAGE
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks import host_programs
from lab.description import Node
from lab.images.tree import Tree
from lab.pipeline.paths import REPO
from tests.guest.run_numa_reset import SOURCES, Boot, MachineDescription, boot
from tests.guest.run_rdma import libraries

HERE = Path(__file__).resolve().parent
MACHINE = MachineDescription("swap", (Node(2, 512),))
TIMEOUT_S = 1800.0  # half a minute on an idle core
COMMANDS = (
    *(f"/usr/bin/{name}" for name in ("dash", "cat", "grep", "sleep", "mkdir", "ip")),
    "/usr/sbin/mkswap",
)


def initramfs(folder: Path, path: Path) -> None:
    """Pack init, swap/cases as what init runs, programs, commands, libraries, and the places to mount on."""
    init = path.with_name("init")
    subprocess.run(["make", "-s", "-C", SOURCES, f"O={init.parent}", init], check=True)
    host_programs.build(folder)
    membench = folder / "dsm_membench"
    subprocess.run(["make", "-s", "-C", REPO / "benchmarks", f"O={folder}", membench], check=True)
    call = folder / "call"
    subprocess.run(["gcc", "-O2", "-Wall", "-Wextra", "-Werror", HERE / "swap" / "call.c", "-o", call], check=True)
    programs = [folder / "nbd_ram", membench, call]
    tree = Tree()
    for directory in ("/dev", "/proc", "/sys", "/tmp", "/bin", "/lib", "/lib64"):
        tree.add_directory(directory)
    tree.add_device("/dev/console", 5, 1)
    tree.add_bytes("/init", init.read_bytes(), 0o755)
    tree.add_link("/usr/bin/sh", "dash")
    commands = [Path(command) for command in COMMANDS]
    for file in (*commands, *libraries([*programs, *commands])):
        tree.add_bytes(str(file), file.read_bytes(), 0o755)
    for built in programs:
        tree.add_bytes(f"/programs/{built.name}", built.read_bytes(), 0o755)
    tree.add_path(HERE / "swap" / "cases", "/tests/swap")
    tree.write_cpio(path, level=1)


def run(kernel: Path, folder: Path, echo: bool = False) -> Boot:
    """One boot; `folder` is for the programs and the initramfs."""
    initramfs(folder, folder / "initramfs")
    return boot(MACHINE, kernel, folder / "initramfs", TIMEOUT_S, echo=echo)


def main() -> int:
    """Boot and print what it says."""
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(sys.argv[1]), Path(folder), echo=True)
    problems = [what for what, good in result.programs["swap"].results if not good] + list(result.complaints)
    print("\n".join(problems))
    return 1 if problems or not result.done else 0


if __name__ == "__main__":
    raise SystemExit(main())
