# SPDX-License-Identifier: GPL-2.0
"""A guest of a rack: what its operator does and sees of it, its life, and commands in it, by ssh through dom0."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from lab.command import Done, run_in
from lab.description import HostDescription
from lab.elastic_guest import ElasticGuest
from lab.errors import CommandFailedError, LabError
from lab.patience import wait_for
from lab.ssh import Background, Ssh

# The lab's bridge, and how a guest's address follows from its MAC: lab/images/guest/usr/sbin/init.
NETWORK = "10.77.0."

# Seconds for the connection to a guest that runs.
CONNECT_S = 60.0


class GuestHost(Protocol):
    """What a guest needs of the host that it is on, which is lab.host.Host."""

    description: HostDescription

    def run(self, command: Sequence[str] | str, timeout: float = 60, check: bool = False) -> Done:
        """Run a command in dom0: see Ssh.run."""

    def connection(self, guest: str, address: str) -> Ssh:
        """A connection to a guest through dom0, not yet opened."""

    def forget(self, guest: Guest) -> None:
        """Drop a guest that is gone from the books."""


class Guest(ElasticGuest):
    """Handle of a guest by name; making one does not start anything (Host.start_guest does)."""

    def __init__(self, host: GuestHost, name: str) -> None:
        super().__init__(name, run_in(host), run_in(self))
        self.host = host
        self.timings: dict[str, float] = {}
        self.created_said = ""  # by xl, on standard error
        self._ssh: Ssh | None = None

    def __str__(self) -> str:
        return f"{self.host.description.name}:{self.name}"

    def domid(self) -> int:
        """Domain number now; it changes at each reboot. Raises LabError if there is no such domain."""
        result = self.host.run(["xl", "domid", self.name])
        if result.status:
            raise LabError(f"guest {self}: no such domain: {result.err.strip()}")
        return int(result.out)

    def wait_ready(self, timeout: float = 120) -> None:
        """Wait until the guest's init is done.

        Raises LabError when the guest ends before that, CommandTimeoutError after `timeout` seconds.
        """
        try:
            self.host.run(["/usr/lib/xenuma/await-guest", self.name], timeout=timeout, check=True)
        except CommandFailedError as error:
            raise LabError(f"guest {self} did not come up: {error}\n{self.console_tail()}") from error

    def address(self) -> str:
        """The guest's IPv4 address, from the MAC address that the toolstack gave it.

        Raises LabError if it has no network card.
        """
        result = self.host.run(["xenstore-read", f"/local/domain/{self.domid()}/device/vif/0/mac"])
        if result.status:
            raise LabError(
                f"guest {self} has no network card: put vif=['mac=00:16:3e:4d:00:NN,bridge=xenbr0'] into its configuration"
            )
        return f"{NETWORK}{int(result.out.strip().rsplit(':', 1)[1], 16)}"

    def ssh(self, timeout: float = CONNECT_S) -> Ssh:
        """The guest's ssh connection, opened at first use."""
        if self._ssh is None:
            ssh = self.host.connection(self.name, self.address())
            ssh.connect(timeout)
            self._ssh = ssh
        return self._ssh

    def run(
        self,
        command: Sequence[str] | str,
        timeout: float = 60,
        check: bool = False,
        stdin: bytes | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Done:
        """Run a command in the guest: see Ssh.run."""
        return self.ssh(min(timeout, CONNECT_S)).run(command, timeout, check, stdin, on_line)

    def start(self, command: Sequence[str] | str, sink: Path | None = None) -> Background:
        """Start a command in the guest: see Ssh.start."""
        return self.ssh().start(command, sink)

    def put(self, source: Path, destination: str) -> None:
        """Copy a file or directory into the guest."""
        self.ssh().put(source, destination)

    def get(self, source: str, destination: Path) -> None:
        """Copy a file out of the guest."""
        self.ssh().get(source, destination)

    def console_tail(self, count: int = 40) -> str:
        """The last lines of the guest's console."""
        result = self.host.run(["tail", "-n", str(count), f"/var/log/xen/guest-{self.name}.log"])
        return result.out

    def disconnect(self) -> None:
        """Close the ssh connection; the next command opens a new one. Needed after a reboot of the guest."""
        if self._ssh:
            self._ssh.disconnect()
            self._ssh = None

    def destroy(self) -> Done:
        """Destroy the domain; no error if it is gone already. What xl has said, and ended with."""
        self.disconnect()
        result = self.host.run(["xl", "destroy", self.name])
        if result.status and self.host.run(["xl", "domid", self.name]).status == 0:
            raise LabError(f"guest {self} could not be destroyed: {result.err.strip()}")
        self.host.forget(self)
        return result

    def shutdown(self, timeout: float = 60) -> None:
        """Ask the guest to power off and wait until it is gone."""
        self.disconnect()
        self.host.run(["xl", "shutdown", "-w", self.name], timeout=timeout, check=True)
        # That waits until it has shut down; the xl that made it destroys it after that.
        wait_for(f"guest {self} is gone", timeout, lambda: self.host.run(["xl", "domid", self.name]).status != 0)
        self.host.forget(self)
