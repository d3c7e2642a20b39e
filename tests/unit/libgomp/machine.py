# SPDX-License-Identifier: GPL-3.0-or-later WITH GCC-exception-3.1
"""The player on a machine of 16 CPUs that machine.c plays: sockets, cores, threads, caches, a container, hot-plug.

Nothing here depends on the CPUs of the real machine.
"""

from __future__ import annotations

import struct
import tempfile
from collections.abc import Mapping
from pathlib import Path

from lab.topology_page import topology_page
from tests.unit.libgomp.gomp_player import ELASTIC, RESET_NR, SCRATCH, Player, build, recorder

SOCKETS, CORES, THREADS = 2, 4, 2
CPUS = SOCKETS * CORES * THREADS
EVERY = (1 << CPUS) - 1
NO_CONTAINER = (1 << 64) - 1


def cpus(*numbers: int) -> int:
    return sum(1 << number for number in numbers)


# CPU n and CPU n + 8 are the threads of core n; cores 0 to 3 are in the first socket, which is node 0.
FIRST_SOCKET = cpus(0, 1, 2, 3, 8, 9, 10, 11)
SECOND_SOCKET = EVERY & ~FIRST_SOCKET
FIRST_THREADS = cpus(*range(8))
SECOND_THREADS = EVERY & ~FIRST_THREADS


class MachinePlayer(Player):
    """player.c on that machine. All the CPUs are online, and there is no container, until the test says otherwise."""

    def __init__(
        self,
        usable: int | bytes | None,
        *,
        lib: Path | None = ELASTIC,
        env: Mapping[str, str] | None = None,
        taskset: int = 0,
        container: int = NO_CONTAINER,
        online: int = EVERY,
    ) -> None:
        """USABLE: the page's CPUs, None: no page; or the page itself.  TASKSET: the mask that the program inherits."""
        self.state = Path(tempfile.mkstemp(dir=SCRATCH)[1])
        self.write_state(online, container)
        variables = {
            "LD_PRELOAD": f"{recorder()} {build('machine.c', '-shared', '-fPIC')}",
            "MACHINE_STATE": str(self.state),
            "MACHINE_SHAPE": f"{SOCKETS},{CORES},{THREADS}",
        }
        if taskset:
            variables["MACHINE_TASKSET"] = f"{taskset:x}"
        super().__init__(
            machine_page(usable) if isinstance(usable, int) else usable,
            lib=lib,
            env=variables | dict(env or {}),
            record=True,
        )

    def write_state(self, online: int, container: int) -> None:
        self.online, self.container = online, container
        with self.state.open("r+b") as file:
            file.write(struct.pack("<QQ", online, container))

    def plug(self, online: int) -> None:
        """Let these CPUs be online; the kernel moves threads that had none but others."""
        self.write_state(online, self.container)
        self.do("tasks")

    def contain(self, container: int) -> None:
        """Change the set of the container."""
        self.write_state(self.online, container)
        self.do("tasks")

    def masks(self) -> list[int]:
        """Of each thread of the process, the first one first."""
        masks: list[int] = self.do("tasks")["cpus"]
        return masks


def machine_page(usable: int, possible: int = CPUS) -> bytes:
    """A page of version 1 in which the nodes are the sockets."""
    nodes = [0 if FIRST_SOCKET >> cpu & 1 else 1 for cpu in range(possible)]
    return bytes(topology_page(usable, nodes, reset_nr=RESET_NR))
