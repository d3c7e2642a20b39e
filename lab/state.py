# SPDX-License-Identifier: GPL-2.0
"""What a running rack leaves for other processes: build/rack/<name>/state.json, guarded by a lock.

Who runs a rack holds an exclusive flock on build/rack/<name>/lock for as long as the rack lives; the kernel drops it when that
process ends, however it ends, and it works across PID namespaces, where process numbers mean nothing. A state without the
lock is stale: it says nothing about anything.
"""

from __future__ import annotations

import fcntl
import json
import os
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from lab.artifacts import socket_directory, state_directory
from lab.description import Dom0, HostDescription, Network, Node, RackDescription, known_racks
from lab.errors import LabError
from lab.memory_map import Extent

FORMAT = 2


@dataclass
class HostState:
    """What another process needs to use a host."""

    ssh_port: int
    memory: list[Extent]
    timings: dict[str, float] = field(default_factory=dict)


@dataclass
class RackState:
    """A rack that runs."""

    description: RackDescription
    key: Path
    logs: Path
    started: str
    hosts: dict[str, HostState] = field(default_factory=dict)
    format: int = FORMAT

    def to_json(self) -> str:
        """As text; from_json() reverses it."""
        return json.dumps(asdict(self), indent=1, default=str)

    @staticmethod
    def from_json(text: str) -> RackState:
        """Raises LabError for a state of another version of the lab."""
        try:
            raw = json.loads(text)
            if raw["format"] != FORMAT:
                raise KeyError(f"format {raw['format']}")
            hosts = {
                name: HostState(host["ssh_port"], [Extent(**extent) for extent in host["memory"]], host["timings"])
                for name, host in raw["hosts"].items()
            }
            return RackState(
                _description(raw["description"]), Path(raw["key"]), Path(raw["logs"]), raw["started"], hosts
            )
        except (json.JSONDecodeError, KeyError, TypeError) as error:
            raise LabError(
                f"state of the rack: {error!r}: written by another version of the lab; power the rack off"
            ) from error


def _description(raw: dict[str, Any]) -> RackDescription:
    hosts = [
        HostDescription(
            host["name"],
            tuple(Node(**node) for node in host["nodes"]),
            tuple(tuple(row) for row in host["distances"]),
            Dom0(**host["dom0"]),
            host["xen_arguments"],
            host["dom0_arguments"],
        )
        for host in raw["hosts"]
    ]
    network = Network(**raw["network"]) if raw["network"] else None
    return RackDescription(raw["name"], tuple(hosts), network)


class StateDirectory:
    """The files of one rack, by its name."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.path = state_directory() / "rack" / name
        self.sockets = socket_directory(name)
        self._lock: int | None = None

    @property
    def control(self) -> Path:
        """Socket on which the rack's supervisor takes commands."""
        return self.sockets / "control"

    def acquire(self) -> None:
        """Become the one who runs this rack. Raises LabError if somebody else does."""
        self.path.mkdir(parents=True, exist_ok=True)
        self.sockets.mkdir(parents=True, exist_ok=True, mode=0o700)
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(fd)
            raise LabError(
                f"rack {self.name!r} runs already; 'lab/rack status' shows it, 'lab/rack poweroff' ends it"
            ) from None
        self._lock = fd
        self._clear()

    def release(self) -> None:
        """Stop being the one; the state is removed."""
        if self._lock is not None:
            self._clear()
            os.close(self._lock)
            self._lock = None

    def _clear(self) -> None:
        (self.path / "state.json").unlink(missing_ok=True)
        for leftover in self.sockets.iterdir():
            leftover.unlink()

    def wait_released(self) -> None:
        """Return when nobody runs this rack any more."""
        fd = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        try:
            fcntl.flock(fd, fcntl.LOCK_SH)
        finally:
            os.close(fd)

    def alive(self) -> bool:
        """Whether somebody runs this rack."""
        try:
            fd = os.open(self.path / "lock", os.O_RDWR | os.O_CLOEXEC)
        except FileNotFoundError:
            return False
        try:
            fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        finally:
            os.close(fd)
        return False

    def write(self, state: RackState) -> None:
        """Replace the state at once."""
        fresh = self.path / "state.json.new"
        fresh.write_text(state.to_json())
        fresh.replace(self.path / "state.json")

    def read(self) -> RackState:
        """The state of a rack that runs and is ready. Raises LabError if there is none, or if it is left from a killed one."""
        if not self.alive():
            known = known_racks()
            advice = (
                f"'lab/rack boot {self.name}' starts it" if self.name in known else f"lab/racks has: {', '.join(known)}"
            )
            raise LabError(f"rack {self.name!r} does not run; {advice}")
        try:
            text = (self.path / "state.json").read_text()
        except FileNotFoundError:
            raise LabError(f"rack {self.name!r} is still booting; 'lab/rack logs HOST' shows a console") from None
        return RackState.from_json(text)


def newest_logs(rack: str = "") -> Path:
    """The newest folder of logs of a rack, or of any; that of one that boots, or could not, too. Raises LabError."""
    folders = [path for path in (state_directory() / "logs").glob(f"{rack or '*'}/[0-9]*-[0-9]*") if path.is_dir()]
    if not folders:
        raise LabError(f"no logs of {f'rack {rack!r}' if rack else 'any rack'}: it was never booted from here")
    return max(folders, key=lambda path: path.name)


def running_racks() -> list[str]:
    """Names of the racks that run now."""
    root = state_directory() / "rack"
    return sorted(path.name for path in root.glob("*") if StateDirectory(path.name).alive()) if root.is_dir() else []
