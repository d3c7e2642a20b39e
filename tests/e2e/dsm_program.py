# SPDX-License-Identifier: GPL-2.0
"""What tests of DSM share: the programs in dom0 that play its daemon, and what they find out."""

from __future__ import annotations

import dataclasses
import json
import re
from collections.abc import Callable
from typing import Any

from lab.command import Run, checked
from lab.hypervisor import settled_free_pages
from lab.patience import wait_for

FOLDER = "/usr/lib/xen/bin"


@dataclasses.dataclass
class DsmProgram:
    """`dsm-storm` or `dsm-slices` in dom0: says "ready", hears SIGUSR1, SIGUSR2 and SIGTERM, and writes its figures."""

    dom0: Run
    name: str
    pid: int

    @classmethod
    def start(cls, dom0: Run, name: str, arguments: str) -> DsmProgram:
        """Start it for a domain that has not run yet. Returns when the domain may be unpaused."""
        started = cls(dom0, name, 0)
        words = f"-o {started.figures_file} {arguments}"
        checked(
            dom0,
            f"rm -f {started.figures_file}; nohup {FOLDER}/{name} {words} >{started.log_file} 2>&1 </dev/null &"
            f" echo $! >/run/{name}.pid",
        )
        wait_for(f"{name} is ready", 60, lambda: "ready" in started.log() or started.ended())
        assert "ready" in started.log(), started.log()
        return cls(dom0, name, int(checked(dom0, f"cat /run/{name}.pid")))

    @property
    def log_file(self) -> str:
        """In dom0."""
        return f"/tmp/{self.name}.log"

    @property
    def figures_file(self) -> str:
        """In dom0."""
        return f"/tmp/{self.name}.json"

    def signal(self, name: str) -> None:
        """USR1: begin. USR2: no more, but go on answering."""
        checked(self.dom0, f"kill -{name} {self.pid}")

    def log(self) -> str:
        """What it has said."""
        return self.dom0(f"cat {self.log_file}").out

    def ended(self) -> bool:
        """Does it run no more?"""
        return self.dom0(f"kill -0 $(cat /run/{self.name}.pid)").status != 0

    def end(self) -> dict[str, Any]:
        """Have it bring everything back; its figures. The program's own verdict is in its log's last line."""
        self.signal("TERM")
        wait_for(f"{self.name} ends", 60, self.ended)
        assert re.search(r"^end after .*: 0 \w+, 0 errors$", self.log(), re.M), self.log()
        found: dict[str, Any] = json.loads(checked(self.dom0, f"cat {self.figures_file}"))
        return found


def frames_lost(dom0: Run, come_and_go: Callable[[], None], times: int) -> dict[int, int]:
    """How many frames fewer each physical node has free after `times` more rounds of `come_and_go`, after a first one.

    What Xen loses in each round is `times` at least. A frame or two fewer is no loss: what Xen keeps small things in grows by
    a page once, in the first round or in the next.
    """
    come_and_go()
    before = settled_free_pages(dom0)
    for _ in range(times):
        come_and_go()
    after = settled_free_pages(dom0)
    return {node: free - after[node] for node, free in before.items()}


def below(histogram: list[int], share: float) -> float:
    """Upper bound, in ns, of the bucket below which that share of all waits ended: four between powers of two."""
    wanted = share * sum(histogram)
    for bucket, number in enumerate(histogram):
        wanted -= number
        if wanted <= 0:
            return (5 + bucket % 4) * 2.0 ** (bucket // 4 - 2)
    raise AssertionError(f"a share of {share} of {sum(histogram)} waits")


def lasts(dom0: Run, seconds: float) -> None:
    """Return when so much time has passed in dom0: no event tells that there was enough of a storm."""

    def uptime() -> float:
        return float(checked(dom0, "cut -d' ' -f1 /proc/uptime"))

    began = uptime()
    wait_for("the storm has lasted", seconds + 60, lambda: uptime() - began >= seconds, interval=2)
