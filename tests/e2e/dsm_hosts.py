# SPDX-License-Identifier: GPL-2.0
"""What tests of DSM between two hosts share: how much is free on both, and programs that check what they read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from lab.command import Done, Run, checked, run_in
from lab.elastic_guest import PROGRAMS
from lab.guest import Guest
from lab.host import Host
from lab.hypervisor import settled_free_pages
from lab.patience import wait_for


def free_pages(hosts: Sequence[Host]) -> list[int]:
    """Of each host, when nothing changes it any more."""
    return [sum(settled_free_pages(run_in(host)).values()) for host in hosts]


class Memcheck:
    """`memcheck` in a guest, on the memory of one node: its pages are written, read and compared until it is ended."""

    def __init__(
        self,
        guest: Guest,
        node: int,
        mib: int,
        name: str = "memcheck",
        *,
        cpu: int | None = None,
        bind: str = "membind",
        patience: float = 240.0,
    ) -> None:
        """`name`: of its files in /tmp of the guest, NAME.out and NAME.pid. `cpu`: the only one that it runs on.

        `bind`: an option of numactl, for the node. `patience`: s for each thing that it is asked.
        """
        self._inside: Run = run_in(guest)
        self._patience = patience
        self._out, self._pid = f"/tmp/{name}.out", f"/tmp/{name}.pid"
        words = "" if cpu is None else f"taskset -c {cpu} "
        words += f"numactl --{bind}={node} {PROGRAMS}/memcheck {mib} 3"
        checked(self._inside, f"({words} >{self._out} 2>&1 & echo $! >{self._pid}) </dev/null", patience)
        wait_for("memcheck has written all pages", patience, lambda: "ready" in self._ask(f"cat {self._out}").out)

    def _ask(self, command: str) -> Done:
        return self._inside(command, self._patience)

    def end(self) -> dict[str, Any]:
        """Its verdict; no word it read was wrong, and it read some."""
        checked(self._inside, f"kill $(cat {self._pid})", self._patience)
        wait_for("memcheck ends", self._patience, lambda: self._ask(f"kill -0 $(cat {self._pid})").status != 0)
        verdict: dict[str, Any] = json.loads(
            checked(self._inside, f"cat {self._out}", self._patience).splitlines()[-1]
        )
        assert verdict["bad_pages"] == 0, verdict
        assert verdict["checks"] > 0, verdict
        return verdict


def listed_mib(host: Host, name: str) -> int:
    """What `xl list` says of a domain's memory."""
    found = re.search(rf"^{re.escape(name)}\s+\d+\s+(\d+)\s", checked(run_in(host), f"xl list {name}"), re.M)
    assert found
    return int(found[1])
