# SPDX-License-Identifier: GPL-2.0
"""The end of a host: whether it powered off by itself; and the copies of its guests' consoles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from lab.command import Done
from lab.description import Dom0, HostDescription, Node
from lab.errors import CommandFailedError, LabError, MachineLostError
from lab.host import Host
from lab.qemu import MachinePaths

ALPHA = HostDescription("alpha", (Node(1, 1024),), ((10,),), Dom0(512, 1, 0), "", "")


class Machine:
    """A QEMU that ends as it is told."""

    def __init__(self, code: int | None, at_poweroff: int | None) -> None:
        self.process = self
        self.code = code
        self.at_poweroff = at_poweroff
        self.unplugged = False

    def poll(self) -> int | None:
        return self.code

    def wait(self, timeout: float) -> int:
        if self.at_poweroff is None:
            raise LabError("QEMU still runs")
        return self.at_poweroff

    def quit(self) -> None:
        self.unplugged = True


@pytest.fixture
def host(tmp_path: Path) -> Host:
    (tmp_path / "known_hosts").touch()
    return Host(ALPHA, MachinePaths(tmp_path, tmp_path, "alpha"), tmp_path / "id", 1, [])


@pytest.mark.parametrize(
    ("machine", "wrong"),
    [
        (Machine(None, 0), ""),
        (Machine(None, 139), "QEMU of alpha ended with 139"),
        (Machine(None, None), "host alpha did not power off: QEMU still runs"),
        (Machine(0, 0), "host alpha had ended before it was powered off"),
    ],
    ids=["well", "QEMU crashes", "hangs", "ended before"],
)
def test_power_off_tells_how_it_went(host: Host, monkeypatch: pytest.MonkeyPatch, machine: Machine, wrong: str) -> None:
    monkeypatch.setattr(host, "start", lambda command: None)
    host.machine = machine  # type: ignore[assignment]
    assert host.power_off() == wrong
    assert machine.unplugged


def test_a_host_whose_plug_was_pulled_has_not_ended_by_itself(host: Host) -> None:
    host.machine = machine = Machine(None, 0)  # type: ignore[assignment]
    host.pull_the_plug()
    machine.code = -9
    assert host.power_off() == ""


def test_power_off_of_a_host_that_does_not_answer(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def start(command: str) -> None:
        raise MachineLostError("connection lost")

    monkeypatch.setattr(host, "start", start)
    host.machine = machine = Machine(None, 0)  # type: ignore[assignment]
    assert host.power_off() == "host alpha did not power off: connection lost"
    assert machine.unplugged


class Dom0Log:
    """dom0's log of a guest's console, and the follower that copies some of it."""

    def __init__(self, host: Host, content: bytes) -> None:
        self.host = host
        self.content = content
        self.copied = 0
        self.begun: list[int] = []

    def start(self, command: list[str], sink: Path) -> Any:
        """Begin to copy where the command says, as far as `copied`."""
        assert command[0] == "tail" and command[-1] == "/var/log/xen/guest-g.log"
        begin = int(command[2].removeprefix("+")) - 1
        self.begun.append(begin)
        with sink.open("ab") as file:
            file.write(self.content[begin : self.copied])
        return self

    def stop(self) -> Done:
        return Done(143, "", "")

    def get(self, source: str, destination: Path) -> None:
        if not self.content:
            raise CommandFailedError("No such file")
        destination.write_bytes(self.content)


def test_a_guests_console_is_copied_once(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    """All of it when the guest goes, though it was on its way; only what is new in a next life."""
    log = Dom0Log(host, b"first life\nlast words\n")
    monkeypatch.setattr(host, "start", log.start)
    monkeypatch.setattr(host, "get", log.get)
    log.copied = 11
    host._follow("g")
    assert host.guest_log("g").read_bytes() == b"first life\n"
    guest = host.guest("g")
    assert host.guest("g") is guest
    host.forget(guest)
    assert host.guest("g") is not guest, "a handle with a connection to a guest that is gone"
    assert host.guest_log("g").read_bytes() == b"first life\nlast words\n"
    log.content += b"second life\n"
    log.copied = len(log.content)
    host._follow("g")
    assert host.guest_log("g").read_bytes() == log.content
    assert log.begun == [0, 22]


def test_a_guest_that_never_had_a_console(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    log = Dom0Log(host, b"")
    monkeypatch.setattr(host, "start", log.start)
    monkeypatch.setattr(host, "get", log.get)
    host._follow("g")
    host.forget(host.guest("g"))
    assert host.guest_log("g").read_bytes() == b""
