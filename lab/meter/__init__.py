# SPDX-License-Identifier: GPL-2.0
"""The NUMA meter's reader and switch: how many accesses of each CPU went to the memory of each node.

    with host.meter.running():
        counts = host.meter.during(lambda: guest.run(["stream_check"], timeout=60))
    print(counts.remote_pct())

The plugin (meter.c) counts a sample of the accesses; every ratio is therefore an estimate, every count a number of samples.
"""

from __future__ import annotations

import contextlib
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import LabError
from lab.memory_map import Extent

# Layout of the counters' file: struct counters of meter.c.
MAGIC = 0x314D414E554E4558
MAX_CPUS = 64
MAX_NODES = 8
HEADER = struct.Struct("<QQQ5Q")
CPU = struct.Struct(f"<{2 * MAX_NODES}QQ7Q")

# Seconds to wait for the plugin's answer; it gives up after 20 by itself.
ANSWER = 30


@dataclass(frozen=True)
class Counts:
    """Samples by CPU and node: reads[cpu][node], writes[cpu][node]; `cpu_node` is the node of each CPU."""

    cpu_node: tuple[int, ...]
    reads: tuple[tuple[int, ...], ...]
    writes: tuple[tuple[int, ...], ...]

    def __sub__(self, earlier: Counts) -> Counts:
        """What was counted since `earlier`."""
        return Counts(self.cpu_node, _minus(self.reads, earlier.reads), _minus(self.writes, earlier.writes))

    def matrix(self) -> list[list[int]]:
        """Reads and writes together, [cpu][node]."""
        return [[r + w for r, w in zip(rs, ws, strict=True)] for rs, ws in zip(self.reads, self.writes, strict=True)]

    def total(self, cpus: Sequence[int] | None = None) -> int:
        """Samples of all or of some CPUs."""
        return sum(sum(row) for cpu, row in enumerate(self.matrix()) if cpus is None or cpu in cpus)

    def remote(self, cpus: Sequence[int] | None = None) -> int:
        """Samples that went to another node than the CPU's own."""
        return sum(
            count
            for cpu, row in enumerate(self.matrix())
            if cpus is None or cpu in cpus
            for node, count in enumerate(row)
            if node != self.cpu_node[cpu]
        )

    def remote_pct(self, cpus: Sequence[int] | None = None) -> float | None:
        """Per cent of the samples that were remote; None without any sample."""
        total = self.total(cpus)
        return 100.0 * self.remote(cpus) / total if total else None


def _minus(late: tuple[tuple[int, ...], ...], early: tuple[tuple[int, ...], ...]) -> tuple[tuple[int, ...], ...]:
    return tuple(tuple(a - b for a, b in zip(x, y, strict=True)) for x, y in zip(late, early, strict=True))


def parse_counters(data: bytes, cpu_node: Sequence[int], nodes: int) -> Counts:
    """Counts from the bytes of the counters' file. Raises LabError if that is something else."""
    size = HEADER.size + CPU.size * MAX_CPUS
    if len(data) != size or HEADER.unpack_from(data)[0] != MAGIC:
        raise LabError(f"meter: the counters' file has {len(data)} bytes, want {size} and the meter's magic number")
    reads, writes = [], []
    for cpu in range(len(cpu_node)):
        values = CPU.unpack_from(data, HEADER.size + CPU.size * cpu)
        reads.append(tuple(values[0 : 2 * nodes : 2]))
        writes.append(tuple(values[1 : 2 * nodes : 2]))
    return Counts(tuple(cpu_node), tuple(reads), tuple(writes))


class Meter:
    """The meter of one host. Off after power-on; any process of the lab may use it."""

    def __init__(self, cpu_node: Sequence[int], memory: Sequence[Extent], control: Path, counters: Path) -> None:
        self._cpu_node = list(cpu_node)
        self._memory = list(memory)
        self._control = control
        self._counters = counters

    def on(self, every: int = 16, user_only: bool = True) -> None:
        """Start counting every `every`th access (1 to 2^20, on average), of user programs only or of kernels and Xen too.

        Counters go on from where they were. Returns when it has taken effect. Raises LabError.
        """
        ranges = " ".join(f"{extent.start:x}-{extent.end:x}:{extent.node}" for extent in self._memory)
        self._ask(f"on {every} {'user' if user_only else 'all'} {ranges}")

    def off(self) -> None:
        """Stop counting: the machine runs at full speed again. Returns when it has taken effect. Raises LabError."""
        self._ask("off")

    @contextlib.contextmanager
    def running(self, every: int = 16, user_only: bool = True) -> Iterator[Meter]:
        """On for the length of a with statement."""
        self.on(every, user_only)
        try:
            yield self
        finally:
            self.off()

    def during(self, action: Callable[[], object]) -> Counts:
        """What is counted while `action` runs."""
        before = self.read()
        action()
        return self.read() - before

    def is_on(self) -> bool:
        """Whether samples are being taken."""
        return bool(HEADER.unpack_from(self._data())[1])

    def read(self) -> Counts:
        """The counters since power-on."""
        nodes = 1 + max(extent.node for extent in self._memory)
        return parse_counters(self._data(), self._cpu_node, nodes)

    def _data(self) -> bytes:
        try:
            return self._counters.read_bytes()
        except OSError as error:
            raise LabError(f"meter: {error}; was the host booted without its plugin?") from error

    def _ask(self, line: str) -> None:
        try:
            with socket.socket(socket.AF_UNIX) as stream, stream.makefile("r") as answers:
                stream.settimeout(ANSWER)
                stream.connect(str(self._control))
                stream.sendall(line.encode() + b"\n")
                answer = answers.readline().strip()
        except OSError as error:
            raise LabError(f"meter: {self._control}: {error}") from error
        if answer != "ok":
            raise LabError(f"meter: {line.split(maxsplit=1)[0]}: {answer or 'QEMU has ended'}")
