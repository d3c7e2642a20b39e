# SPDX-License-Identifier: GPL-2.0
"""What tests of DSM between two hosts share: how much is free on both, and programs that check what they read."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any

from lab.command import Run, checked, run_in
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

    def __init__(self, guest: Guest, node: int, mib: int, name: str = "memcheck") -> None:
        """`name`: of its files in /tmp of the guest, NAME.out and NAME.pid."""
        self._inside: Run = run_in(guest)
        self._out, self._pid = f"/tmp/{name}.out", f"/tmp/{name}.pid"
        checked(
            self._inside,
            f"(numactl --membind={node} {PROGRAMS}/memcheck {mib} 3 >{self._out} 2>&1 & echo $! >{self._pid}) </dev/null",
        )
        wait_for("memcheck has written all pages", 240, lambda: "ready" in self._inside(f"cat {self._out}").out)

    def end(self) -> dict[str, Any]:
        """Its verdict; no word it read was wrong, and it read some."""
        checked(self._inside, f"kill $(cat {self._pid})")
        wait_for("memcheck ends", 240, lambda: self._inside(f"kill -0 $(cat {self._pid})").status != 0)
        verdict: dict[str, Any] = json.loads(checked(self._inside, f"cat {self._out}").splitlines()[-1])
        assert verdict["bad_pages"] == 0, verdict
        assert verdict["checks"] > 0, verdict
        return verdict


def listed_mib(host: Host, name: str) -> int:
    """What `xl list` says of a domain's memory."""
    found = re.search(rf"^{re.escape(name)}\s+\d+\s+(\d+)\s", checked(run_in(host), f"xl list {name}"), re.M)
    assert found
    return int(found[1])
