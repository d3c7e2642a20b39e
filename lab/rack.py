# SPDX-License-Identifier: GPL-2.0
"""A rack: the hosts of a description, booted by this process or attached to while another keeps them running."""

from __future__ import annotations

import shutil
import time
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from lab.artifacts import Artifacts, load, state_directory
from lab.description import RackDescription
from lab.host import Host
from lab.network import Switch
from lab.qemu import MachinePaths
from lab.state import HostState, RackState, StateDirectory


class Rack:
    """Running hosts. A context manager: leaving it powers off what this process booted."""

    def __init__(
        self, description: RackDescription, hosts: list[Host], logs: Path, owned: StateDirectory | None
    ) -> None:
        """Use boot() or attach()."""
        self.description = description
        self.hosts = hosts
        self.logs = logs
        self.timings: dict[str, float] = {}
        self.wrong_ends: list[str] = []  # hosts that did not power off as they should
        self.network: Switch | None = None  # between the hosts, if there is one; only for who booted the rack
        self._owned = owned

    @staticmethod
    def boot(
        description: RackDescription,
        artifacts: Artifacts | None = None,
        timeout: float = 300,
        meter: bool = True,
        logs: Path | None = None,
    ) -> Rack:
        """Boot all hosts and wait until each dom0 answers; `timeout` seconds for each. Logs: build/logs/<rack>/<time>.

        Call it from a thread that lives as long as the rack: the machines end with it. Raises LabError with the console's
        last lines; nothing is left running then.
        """
        artifacts = artifacts or load()
        started = datetime.now()
        begin = time.monotonic()
        state = StateDirectory(description.name)
        state.acquire()
        logs = logs or state_directory() / "logs" / description.name / started.strftime("%Y%m%d-%H%M%S")
        rack = Rack(description, [], logs, state)
        try:
            key = _private_key(artifacts.ssh_key, state.path)
            if description.network:
                rack.network = Switch(state.sockets, [host.name for host in description.hosts])
            for host in description.hosts:
                paths = MachinePaths(state.sockets, logs, host.name)
                wire = description.wire(host.name)
                rack.hosts.append(Host.power_on(host, artifacts, paths, key, meter=meter, wire=wire))
            for running in rack.hosts:
                running.wait_ready(timeout)
            rack.timings["boot_s"] = round(time.monotonic() - begin, 2)
            known = {host.description.name: HostState(host.ssh_port, host.memory, host.timings) for host in rack.hosts}
            state.write(RackState(description, key, logs, started.isoformat(timespec="seconds"), known))
        except BaseException:
            rack.pull_the_plug()
            raise
        return rack

    @staticmethod
    def attach(name: str) -> Rack:
        """Use a rack that another process keeps running. Raises LabError if there is none of that name."""
        directory = StateDirectory(name)
        state = directory.read()
        hosts = []
        for host in state.description.hosts:
            known = state.hosts[host.name]
            paths = MachinePaths(directory.sockets, state.logs, host.name)
            handle = Host(host, paths, state.key, known.ssh_port, known.memory)
            handle.timings = known.timings
            hosts.append(handle)
        return Rack(state.description, hosts, state.logs, None)

    def host(self, name: str | None = None) -> Host:
        """A host by name; the first without one. Raises DescriptionError."""
        wanted = self.description.host(name).name if name else self.hosts[0].description.name
        return next(host for host in self.hosts if host.description.name == wanted)

    def power_off(self) -> None:
        """Collect the logs and power off properly. Only for who booted the rack."""
        for host in self.hosts:
            if not host.ended():
                host.collect_logs()
        self.wrong_ends = [wrong for host in self.hosts if (wrong := host.power_off())]
        self._release()

    def pull_the_plug(self) -> None:
        """End all machines at once. Only for who booted the rack."""
        for host in self.hosts:
            host.pull_the_plug()
        self._release()

    def _release(self) -> None:
        if self.network:
            self.network.close()
            self.network = None
        if self._owned:
            self._owned.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._owned is None:
            return
        if kind is None or issubclass(kind, Exception):
            self.power_off()
        else:
            self.pull_the_plug()


def _private_key(key: Path, directory: Path) -> Path:
    """A copy of the key that ssh accepts (mode 0600, ours), with known_hosts beside it."""
    private = directory / "id_ed25519"
    private.unlink(missing_ok=True)
    private.touch(mode=0o600)
    private.write_bytes(key.read_bytes())
    shutil.copyfile(key.parent / "known_hosts", directory / "known_hosts")
    return private
