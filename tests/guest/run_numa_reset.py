# SPDX-License-Identifier: GPL-2.0
"""Boots a kernel in QEMU with a few NUMA nodes, runs the self tests of numa_reset(2) in it, and reads their TAP.

No Xen: plain emulation (TCG), an initramfs with static programs, the serial console. By hand, for one machine:

    python3 -m tests.guest.run_numa_reset BZIMAGE [two|four] [PROGRAM ...]
"""

from __future__ import annotations

import os
import re
import selectors
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from lab.artifacts import path_of
from lab.complaints import complaints
from lab.description import Node
from lab.images.tree import Tree
from lab.process import start_tied, stop
from lab.qemu import FIRMWARE, numa_arguments

HERE = Path(__file__).resolve().parent
SOURCES = HERE / "numa_reset"

# Boot and all programs take about 2 minutes on one idle core; many share the machine.
TIMEOUT_S = 1500.0
DISK_MIB = 16  # what the test program `stays` swaps to, and maps

# How many times as much memory machines get: a kernel with the address sanitizer keeps an eighth of it for itself, and what was
# freed for a while, so that huge pages become rare.
MEMORY_SCALE = int(os.environ.get("XENUMA_GUEST_MEMORY_SCALE") or "1")


@dataclass(frozen=True)
class MachineDescription:
    """A machine to test on; `distances` is its SLIT, row by row. Without one, the kernel takes 10 and 20."""

    name: str
    nodes: Sequence[Node]
    distances: Sequence[Sequence[int]] = ()

    def arguments(self) -> Iterator[str]:
        """QEMU's arguments for memory, CPUs and nodes."""
        nodes = [replace(node, memory_mib=node.memory_mib * MEMORY_SCALE) for node in self.nodes]
        yield from ("-m", f"{sum(node.memory_mib for node in nodes)}M")
        # A socket a node: the kernel complains about cores of one that are on different nodes.
        cpus = sum(node.cpus for node in nodes)
        yield from ("-smp", f"{cpus},sockets={cpus},cores=1,threads=1")
        yield from numa_arguments(nodes, self.distances)


MACHINES = (
    MachineDescription("two", (Node(1, 384), Node(1, 256))),
    # The last node has a CPU and no memory, and is next to node 2.
    MachineDescription(
        "four",
        (Node(1, 320), Node(1, 192), Node(1, 192), Node(1, 0)),
        tuple(tuple(10 if a == b else 12 if {a, b} == {2, 3} else 20 for b in range(4)) for a in range(4)),
    ),
)


# --- Programs and the initramfs --------------------------------------------------------------------------------------


def program_names() -> list[str]:
    """The test programs, as the Makefile lists them."""
    tests = re.search(r"^TESTS = (.*)$", (SOURCES / "Makefile").read_text().replace("\\\n", ""), re.MULTILINE)
    assert tests, "no TESTS in the Makefile"
    return tests[1].split()


def build_programs(output: Path) -> None:
    """Compile init and the test programs, static, into `output`."""
    made = subprocess.run(
        ["make", "-s", "-C", str(SOURCES), f"O={output}"], capture_output=True, text=True, check=False
    )
    if made.returncode:
        raise RuntimeError(f"the self tests do not compile:\n{made.stdout}{made.stderr}")


def initramfs(programs: Path, path: Path, names: Sequence[str] = ()) -> None:
    """Pack /init, the named programs (or all) as /tests/*, and the places to mount on."""
    tree = Tree()
    for directory in ("/dev", "/proc", "/sys", "/tmp", "/tests"):
        tree.add_directory(directory)
    tree.add_device("/dev/console", 5, 1)
    tree.add_bytes("/init", (programs / "init").read_bytes(), 0o755)
    for name in names or program_names():
        tree.add_bytes(f"/tests/{name}", (programs / "tests" / name).read_bytes(), 0o755)
    tree.write_cpio(path, level=1)


# --- The console -------------------------------------------------------------------------------------------------------


@dataclass
class Program:
    """What one test program has said."""

    results: list[tuple[str, bool]] = field(default_factory=list)  # name with what was seen, good?
    planned: int | None = None
    status: int | None = None  # None: did not end

    def problem(self) -> str:
        """Why the program as a whole has failed, beyond its single results; empty if it has not."""
        if self.status is None:
            return "did not end"
        if self.planned is None:
            return f"ended without a plan, status {self.status}"
        if self.planned != len(self.results):
            return f"planned {self.planned} results, gave {len(self.results)}"
        if self.status != any(not good for _, good in self.results):
            return f"status {self.status} does not fit its results"
        return ""


@dataclass
class Boot:
    """One boot."""

    programs: dict[str, Program] = field(default_factory=dict)
    complaints: list[str] = field(default_factory=list)
    done: bool = False
    log: list[str] = field(default_factory=list)


RESULT = re.compile(r"(not ok|ok) \d+ - (.*)")


def parse(lines: Sequence[str]) -> Boot:
    """The console, understood."""
    run = Boot(complaints=complaints("\n".join(lines)), log=list(lines))
    current: Program | None = None
    for line in lines:
        if match := re.match(r"@begin (\S+)$", line):
            current = run.programs.setdefault(match[1], Program())
        elif (match := re.match(r"@end (\S+) (\d+)$", line)) and current:
            current.status = int(match[2])
            current = None
        elif line == "@done":
            run.done = True
        elif current and (match := RESULT.match(line)):
            current.results.append((match[2], match[1] == "ok"))
        elif current and (match := re.match(r"1\.\.(\d+)$", line)):
            current.planned = int(match[1])
    return run


# --- The machine -------------------------------------------------------------------------------------------------------


def make_disks(folder: Path) -> list[Path]:
    """Empty disks, sparse: /dev/vda to swap to, /dev/vdb whose page cache is a file's."""
    disks = [folder / "swap", folder / "file"]
    for disk in disks:
        with disk.open("wb") as stream:
            stream.truncate(DISK_MIB << 20)
    return disks


def command_line(
    machine: MachineDescription,
    kernel: Path,
    initrd: Path,
    disks: Sequence[Path],
    *,
    more: Sequence[str] = (),
    words: str = "",
) -> list[str]:
    """QEMU, and the kernel's own arguments: few messages, no restart, no complaint about slow emulation."""
    drives = [word for disk in disks for word in ("-drive", f"file={disk},if=virtio,format=raw,cache=unsafe")]
    arguments = "console=ttyS0 loglevel=5 panic=-1 nowatchdog rcupdate.rcu_cpu_stall_suppress=1 random.trust_cpu=on"
    return [
        str(path_of("qemu")),
        *FIRMWARE,
        "-machine",
        "q35",
        "-accel",
        "tcg,thread=multi",
        "-cpu",
        "max,la57=off",
        "-nodefaults",
        "-display",
        "none",
        "-no-reboot",
        "-serial",
        "stdio",
        *machine.arguments(),
        *drives,
        *more,
        "-kernel",
        str(kernel),
        "-initrd",
        str(initrd),
        "-append",
        f"{arguments} {words}",
    ]


def _read_console(process: subprocess.Popen[bytes], deadline: float) -> Iterator[str]:
    """Lines of the console until it ends or the time is over."""
    assert process.stdout
    pending = b""
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while (left := deadline - time.monotonic()) > 0:
            if not selector.select(left):
                continue
            chunk = os.read(process.stdout.fileno(), 65536)
            if not chunk:
                break
            *lines, pending = (pending + chunk).split(b"\n")
            yield from (line.decode(errors="replace").strip("\r") for line in lines)
    yield pending.decode(errors="replace").strip("\r")


def boot(
    machine: MachineDescription,
    kernel: Path,
    initrd: Path,
    timeout_s: float = TIMEOUT_S,
    *,
    echo: bool = False,
    more: Sequence[str] = (),
    words: str = "",
) -> Boot:
    """Run the machine until it powers off; it is gone when this returns, in whatever way. `more` are
    QEMU's, too: devices; `words` the kernel's."""
    lines: list[str] = []
    deadline = time.monotonic() + timeout_s
    with tempfile.TemporaryDirectory() as folder:
        command = command_line(machine, kernel, initrd, make_disks(Path(folder)), more=more, words=words)
        process = start_tied(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            for line in _read_console(process, deadline):
                lines.append(line)
                if echo:
                    print(line, flush=True)
        finally:
            stop(process)
            if process.stdout:
                process.stdout.close()
    return parse(lines)


def main() -> int:
    """Boot one machine and print what it says."""
    kernel = Path(sys.argv[1])
    name = sys.argv[2] if len(sys.argv) > 2 else "two"
    machine = next(machine for machine in MACHINES if machine.name == name)
    with tempfile.TemporaryDirectory() as folder:
        build_programs(Path(folder))
        initramfs(Path(folder), Path(folder) / "initramfs", sys.argv[3:])
        run = boot(machine, kernel, Path(folder) / "initramfs", echo=True)
    problems = [f"{name}: {program.problem()}" for name, program in run.programs.items() if program.problem()]
    problems += [
        f"{name}: {what}" for name, program in run.programs.items() for what, good in program.results if not good
    ]
    problems += run.complaints
    print("\n".join(problems))
    return 1 if problems or not run.done else 0


if __name__ == "__main__":
    raise SystemExit(main())
