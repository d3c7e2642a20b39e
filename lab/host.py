# SPDX-License-Identifier: GPL-2.0
"""A Xen host: dom0's commands, the guests on it, the NUMA meter.

A host was either booted by this process, which then owns the machine, or belongs to a rack that a supervisor keeps
running; both are used in the same way.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from lab.artifacts import Artifacts
from lab.command import Done
from lab.complaints import FATAL
from lab.description import HostDescription, Wire
from lab.errors import CommandFailedError, LabError, MachineLostError
from lab.guest import Guest
from lab.memory_map import Extent
from lab.meter import Meter
from lab.patience import scaled
from lab.qemu import Machine, MachinePaths
from lab.ssh import Background, Ssh

READY = re.compile(r"^xenuma: dom0 ready")
BROKEN = re.compile(FATAL + r"|^xenuma: dom0 failed|Hardware Dom0 halted")

# Three times Ctrl-A moves Xen's console from dom0 to Xen, docs/misc/xen-command-line of Xen (conswitch).
SWITCH_TO_XEN = b"\x01\x01\x01"

# Registers of all CPUs, dom0's registers, timers, run queues, interrupts, event channels.
DEBUG_KEYS = b"d0arie"
DEBUG_SECONDS = 20

# Where configurations for start_guest() are put in dom0.
CONFIGURATIONS = "/etc/xen/lab"


class Host:
    """One host of a rack."""

    def __init__(
        self, description: HostDescription, paths: MachinePaths, key: Path, ssh_port: int, memory: list[Extent]
    ) -> None:
        """A handle of a machine that runs; use boot() to start one."""
        self.description = description
        self.paths = paths
        self.ssh_port = ssh_port
        self.memory = memory
        self.machine: Machine | None = None
        self.unplugged = False
        self.guests: dict[str, Guest] = {}
        self.timings: dict[str, float] = {}
        self._key = key
        self._followers: dict[str, Background] = {}
        self._ssh = Ssh(f"host {description.name}", key, ("127.0.0.1", ssh_port))
        self.meter = Meter(description.node_of_cpu(), memory, paths.socket("meter"), paths.meter_counters)

    @staticmethod
    def power_on(
        description: HostDescription,
        artifacts: Artifacts,
        paths: MachinePaths,
        key: Path,
        *,
        meter: bool = True,
        wire: Wire | None = None,
    ) -> Host:
        """Start the machine; wait_ready() waits until it can be used. Call it from a thread that lives as long as the host."""
        machine = Machine(description, artifacts, paths, meter, wire)
        host = Host(description, paths, key, machine.ssh_port, machine.memory)
        host.machine = machine
        host._powered_on = time.monotonic()
        return host

    _powered_on: float = 0.0

    def wait_ready(self, timeout: float = 300) -> None:
        """Wait until dom0 is up and connect to it. Raises MachineLostError with the console's last lines, or LabError."""
        assert self.machine is not None
        console = self.machine.console
        try:
            console.wait_for(READY, scaled(timeout), bad=BROKEN)
        except MachineLostError:
            raise
        except LabError:
            # It hangs: let Xen write where every CPU is into the console's log.
            console.type(SWITCH_TO_XEN + DEBUG_KEYS)
            with contextlib.suppress(LabError):
                console.wait_for(re.compile("dumping event-channel info"), DEBUG_SECONDS, bad=BROKEN)
            raise
        self.timings["dom0_ready_s"] = round(time.monotonic() - self._powered_on, 2)
        self._ssh.connect(timeout=60)
        self.timings["dom0_ssh_s"] = round(time.monotonic() - self._powered_on, 2)

    # --- dom0 ---------------------------------------------------------------------------------------------------------

    def run(
        self,
        command: Sequence[str] | str,
        timeout: float = 60,
        check: bool = False,
        stdin: bytes | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Done:
        """Run a command in dom0: see Ssh.run."""
        return self._ssh.run(command, timeout, check, stdin, on_line)

    def start(self, command: Sequence[str] | str, sink: Path | None = None) -> Background:
        """Start a command in dom0: see Ssh.start."""
        return self._ssh.start(command, sink)

    def put(self, source: Path, destination: str) -> None:
        """Copy a file or directory into dom0."""
        self._ssh.put(source, destination)

    def get(self, source: str, destination: Path) -> None:
        """Copy a file out of dom0."""
        self._ssh.get(source, destination)

    def client(self, *options: str) -> list[str]:
        """Command line of an ssh client to dom0, for terminals."""
        return self._ssh.client(*options)

    def connection(self, guest: str, address: str) -> Ssh:
        """A connection to a guest through dom0, not yet opened."""
        return Ssh(f"guest {self.description.name}:{guest}", self._key, (address, 22), through=self._ssh)

    # --- guests -------------------------------------------------------------------------------------------------------

    def guest(self, name: str) -> Guest:
        """Handle of a guest that runs, whoever started it."""
        return self.guests.setdefault(name, Guest(self, name))

    def start_guest(
        self, config: str | Path, overrides: Mapping[str, str] | None = None, wait: bool = True, timeout: float = 180
    ) -> Guest:
        """Create a guest from an xl.cfg of this machine (Path), or the text of one (str with a newline), or a path in dom0.

        `overrides` replace settings, values as xl.cfg text: {"name": '"g2"', "vcpus": "4"}. With `wait`, returns when the
        guest's init is done; its timings then hold create_s and ready_s. Raises LabError with xl's words.
        """
        text = self._config_text(config)
        lines = [f"{key}={value}" for key, value in (overrides or {}).items()]
        text += "\n" + "\n".join(lines) + "\n"
        name = config_name(text)
        path = f"{CONFIGURATIONS}/{name}.cfg"
        self.run(f"mkdir -p {CONFIGURATIONS} && cat >{shlex.quote(path)}", stdin=text.encode(), check=True)
        started = time.monotonic()
        result = self.run(["xl", "create", path], timeout=timeout)
        if result.status:
            raise LabError(
                f"host {self.description.name}: xl create {name} ended with {result.status}: {result.err.strip()}"
            )
        guest = Guest(self, name)
        self.guests[name] = guest
        guest.created_said = result.err
        guest.timings["create_s"] = round(time.monotonic() - started, 2)
        self._follow(name)
        if wait:
            guest.wait_ready(timeout)
            guest.timings["ready_s"] = round(time.monotonic() - started, 2)
        return guest

    def _config_text(self, config: str | Path) -> str:
        if isinstance(config, Path):
            return config.read_text()
        return config if "\n" in config else self.run(["cat", config], check=True).out

    def _follow(self, name: str) -> None:
        """Copy a guest's console into our log directory while it grows, so that it survives dom0.

        dom0 appends the next life of a guest of that name to the same log; what was copied already is not copied again.
        """
        self._unfollow(name)
        sink = self.guest_log(name)
        copied = sink.stat().st_size if sink.exists() else 0
        self._followers[name] = self.start(["tail", "-c", f"+{copied + 1}", "-F", _console_log(name)], sink=sink)

    def _unfollow(self, name: str) -> None:
        """End that, and copy what it had not yet copied."""
        if follower := self._followers.pop(name, None):
            follower.stop()
            with contextlib.suppress(CommandFailedError):  # the guest ended before it had a console
                self.get(_console_log(name), self.guest_log(name))

    def guest_log(self, name: str) -> Path:
        """Where a guest's console is copied to."""
        return self.paths.logs / f"{self.description.name}-{name}.log"

    def forget(self, guest: Guest) -> None:
        """Drop a guest that is gone from the books."""
        self.guests.pop(guest.name, None)
        self._unfollow(guest.name)

    # --- end ----------------------------------------------------------------------------------------------------------

    def collect_logs(self) -> None:
        """Copy dom0's /var/log/xen into the log directory, as far as dom0 still answers."""
        try:
            archive = self.paths.logs / f"{self.description.name}-xen-logs.tar"
            self.run("tar -C /var/log/xen -cf /tmp/xen-logs.tar .", timeout=20)
            self.get("/tmp/xen-logs.tar", archive)
        except LabError as error:
            (self.paths.logs / f"{self.description.name}-xen-logs.error").write_text(f"{error}\n")

    def power_off(self, timeout: float = 60) -> str:
        """Power off properly, or pull the plug when that takes longer than `timeout` seconds. Never raises LabError.

        Returns what was wrong: the machine had ended before, or had to be ended, or its emulator failed. Empty if nothing was.
        """
        assert self.machine is not None
        name = self.description.name
        if self.ended():
            wrong = "" if self.unplugged else f"host {name} had ended before it was powered off"
        else:
            try:
                self.start("poweroff")
                code = self.machine.wait(scaled(timeout))
                wrong = f"QEMU of {name} ended with {code}" if code else ""
            except (LabError, OSError) as error:
                wrong = f"host {name} did not power off: {error}"
        self.pull_the_plug()
        return wrong

    def pull_the_plug(self) -> None:
        """End the machine and all connections to it, at once. It has not ended by itself then."""
        self.unplugged = True
        for guest in self.guests.values():
            guest.disconnect()
        self._ssh.disconnect()
        if self.machine:
            self.machine.quit()

    def ended(self) -> bool:
        """Whether the machine that this process owns has ended."""
        return self.machine is not None and self.machine.process.poll() is not None


def _console_log(guest: str) -> str:
    """Where xenconsoled keeps a guest's console in dom0."""
    return f"/var/log/xen/guest-{guest}.log"


def config_name(text: str) -> str:
    """The value of the last `name =` of an xl.cfg. Raises LabError if there is none, or one that is no file name."""
    names = re.findall(r"""^\s*name\s*=\s*["']([^"'\n]*)["']""", text, re.MULTILINE)
    if not names or not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,60}", names[-1]):
        raise LabError(f"xl.cfg: name = {names[-1:] or 'missing'}: want letters, digits, '.', '_', '-'")
    return str(names[-1])


__all__ = ["Host", "MachineLostError", "config_name"]
