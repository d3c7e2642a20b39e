# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel in QEMU, gives its network card a Soft-RoCE device, and runs the tests of the RDMA transport in it.

No Xen. The programs are those of tests/unit/dsmd; both ends of each connection are in this one machine. By hand:

    python3 -m tests.guest.run_rdma BZIMAGE [PROGRAM ...]

DSM_SEED, DSMD_PATIENCE (seconds for a step of a case) and DSMD_CASE (patterns of names with commas between them, '?' for
spaces and commas) are handed on.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from lab.description import Node
from lab.images.tree import Tree
from tests.guest.run_numa_reset import SOURCES, Boot, MachineDescription, boot
from tests.unit.dsmd.test_dsmd import program

HERE = Path(__file__).resolve().parent
MACHINE = MachineDescription("rdma", (Node(2, 1024),))
# Nothing is at the other end: what the machine sends to itself does not leave it.
NETWORK = ("-netdev", "user,id=net0,restrict=on", "-device", "virtio-net-pci,romfile=,netdev=net0,host_mtu=9000")
PROGRAMS = ("transport_test.c", "rdma_test.c")
TIMEOUT_S = 3600.0  # about a minute on an idle core
HANDED_ON = ("DSM_SEED", "DSMD_PATIENCE", "DSMD_CASE")

# What rdma/cases runs, and what libibverbs loads by itself.
COMMANDS = ("/usr/bin/dash", "/usr/bin/cat", "/usr/bin/rm", "/usr/bin/ip", "/usr/bin/rdma")
PROVIDER = "/usr/lib/x86_64-linux-gnu/libibverbs/librxe-rdmav34.so"
CONFIGURATION = "/etc/libibverbs.d/rxe.driver"


def libraries(programs: Iterable[Path]) -> set[Path]:
    """The shared libraries of programs, with the loader."""
    listed = subprocess.run(["ldd", *map(str, programs)], check=True, capture_output=True, text=True).stdout
    return {Path(path) for path in re.findall(r"(/\S+) \(0x", listed)}


def initramfs(programs: Sequence[Path], path: Path) -> None:
    """Pack init, the test programs, rdma/cases as what init runs, commands, libraries, and the places to mount on."""
    init = path.with_name("init")
    subprocess.run(["make", "-s", "-C", str(SOURCES), f"O={init.parent}", str(init)], check=True)
    tree = Tree()
    for directory in ("/dev", "/proc", "/sys", "/tmp", "/bin", "/lib", "/lib64"):
        tree.add_directory(directory)
    tree.add_device("/dev/console", 5, 1)
    tree.add_bytes("/init", init.read_bytes(), 0o755)
    tree.add_link("/usr/bin/sh", "dash")
    commands = [Path(command) for command in COMMANDS]
    for file in (*commands, Path(PROVIDER), Path(CONFIGURATION), *libraries([*programs, *commands])):
        tree.add_bytes(str(file), file.read_bytes(), 0o755)
    for built in programs:
        tree.add_bytes(f"/programs/{built.name}", built.read_bytes(), 0o755)
        tree.add_path(HERE / "rdma" / "cases", f"/tests/{built.name}")
    tree.write_cpio(path, level=1)


def run(kernel: Path, folder: Path, names: Sequence[str] = PROGRAMS, echo: bool = False) -> Boot:
    """One boot with all cases of these programs; `folder` is for the initramfs."""
    initramfs([program(name) for name in names], folder / "initramfs")
    words = " ".join(f"{name}={os.environ[name]}" for name in HANDED_ON if name in os.environ)
    return boot(MACHINE, kernel, folder / "initramfs", TIMEOUT_S, echo=echo, more=NETWORK, words=words)


def main() -> int:
    """Boot and print what it says."""
    with tempfile.TemporaryDirectory() as folder:
        result = run(Path(sys.argv[1]), Path(folder), sys.argv[2:] or PROGRAMS, echo=True)
    problems = [f"{name}: {said.problem()}" for name, said in result.programs.items() if said.problem()]
    problems += [f"{name}: {what}" for name, said in result.programs.items() for what, good in said.results if not good]
    problems += result.complaints
    print("\n".join(problems))
    return 1 if problems or not result.done else 0


if __name__ == "__main__":
    raise SystemExit(main())
