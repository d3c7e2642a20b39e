# SPDX-License-Identifier: GPL-2.0
"""What kernels and the hypervisor write when something is wrong with themselves, and a reader of logs that finds it.

A machine that recovers by itself, as a guest that restarts does, leaves no other trace of what has happened to it.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

# What ends a machine: a panic of Linux or of Xen, a crash of dom0.
FATAL = r"Kernel panic|Panic on CPU \d|Dom0 (?:has )?crashed"

# Linux and Xen of themselves, Xen of a guest that it ends or of an instruction whose length it doubts, and our driver of memory
# that went astray or an outcome that the operator will not hear of. Not stalls of RCU: on a busy emulator they say nothing.
COMPLAINT = re.compile(
    FATAL + r"|WARNING: |BUG: |kernel BUG at |Oops|INFO: task .* blocked|invalid APIC ID|llc-sibling"
    r"|general protection fault|UBSAN: |KASAN: |Out of memory: |oom-kill:|possible recursive locking"
    r"|INFO: possible |INFO: trying to register non-static key|page allocation failure|segfault at "
    r"|pages at pfn .* are lost: |Xen keeps the extent at pfn|outcome could not be reported"
    r"|\(XEN\) (Assertion |Xen BUG|Xen WARN|FATAL)"
    r"|\(XEN\) .*(?:NRip reported|Insn mismatch)"
    r"|\(XEN\) .*(?:Triple fault|domain_crash called from)|\(XEN\) .*Domain \d+ .*crashed"
)

# Upstream's own, seen with `make e2e-debug`: Xen does not like the size of the XSAVE area that QEMU's CPU announces; gntdev
# copies to user space under its lock, which its mmap() takes inside the mmap lock.
KNOWN = re.compile(r"Xen WARN at arch/x86/xstate\.c")
KNOWN_HEAD = re.compile(r"possible circular locking")  # a report of several lines: known if those that follow are
KNOWN_BODY = re.compile(r"lock: *\n.*gntdev_mmap")
KNOWN_LINES = 6  # where that has to be, from the head

# Logs of a rack that are no console of a kernel.
OTHER_LOGS = ("-qemu.log", "-qmp.log", "supervisor.log")


def complaints(log: str) -> list[str]:
    """The lines of a log that complain, but for what is known of upstream."""
    lines = [line for line in log.splitlines() if line.strip()]  # a serial console has two ends for each line
    return [
        line.strip()
        for number, line in enumerate(lines)
        if COMPLAINT.search(line) and not _known(lines[number : number + KNOWN_LINES])
    ]


def _known(report: list[str]) -> bool:
    """Whether the complaint that this begins with is known. What else is complained of in its lines is none of it."""
    head = report[0]
    return bool(KNOWN.search(head) or (KNOWN_HEAD.search(head) and KNOWN_BODY.search("\n".join(report))))


@dataclass(frozen=True)
class Complaint:
    """A line, and the name of the log that has it."""

    log: str
    line: str

    def __str__(self) -> str:
        return f"{self.log}: {self.line}"


def consoles(directory: Path) -> list[Path]:
    """The logs of consoles in a directory, by name."""
    return [path for path in sorted(directory.glob("*.log")) if not path.name.endswith(OTHER_LOGS)]


class Growing:
    """Logs that grow: each byte is read once."""

    def __init__(self) -> None:
        self._read: dict[Path, int] = {}

    def added(self, log: Path, final: bool) -> str:
        """What has come to a log since, as far as it can be judged; all of it the `final` time."""
        begin = self._read.get(log, 0)
        with log.open("rb") as file:
            if file.seek(0, os.SEEK_END) < begin:
                begin = 0  # it was begun anew
            file.seek(begin)
            added = file.read()
        if not final:
            added = judgeable(added)
        self._read[log] = begin + len(added)
        return added.decode(errors="replace")


class Consoles:
    """The consoles in some directories of logs; each line is looked at once."""

    def __init__(self) -> None:
        self._directories: list[Path] = []
        self._growing = Growing()

    def add(self, directory: Path) -> None:
        """From now on, read the logs of this directory, too, those that there will be as well."""
        self._directories.append(directory)

    def new(self, final: bool = False) -> list[Complaint]:
        """What has been complained of since this was last asked, in whole lines.

        A report that may be a known one is left for the next time as long as it is not long enough to tell; not if this is
        the `final` time.
        """
        logs = [log for directory in self._directories for log in consoles(directory)]
        return [Complaint(log.name, line) for log in logs for line in complaints(self._growing.added(log, final))]


def judgeable(added: bytes) -> bytes:
    """The part of it that is whole: up to a line's end, and not into the first lines of a report that may be known."""
    added = added[: added.rfind(b"\n") + 1]
    lines = added.splitlines(keepends=True)
    full = [number for number, line in enumerate(lines) if line.strip()]
    for number in full[-KNOWN_LINES + 1 :]:
        if KNOWN_HEAD.search(lines[number].decode(errors="replace")):
            return b"".join(lines[:number])
    return added
