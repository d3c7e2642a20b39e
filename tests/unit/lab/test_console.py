# SPDX-License-Identifier: GPL-2.0
"""Waiting on a console: lines that come, come too late, or say that all is lost; and the relay for people."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.console import Console
from lab.errors import LabError, MachineLostError

WANTED = re.compile("ready")
BAD = re.compile("panic")


class Port:
    """A console and the machine's end of its serial port."""

    def __init__(self, directory: Path) -> None:
        ours, self.machine = socket.socketpair()
        self.relay = directory / "relay"
        self.console = Console(ours, self.relay, "host x")

    def prints(self, text: str) -> None:
        self.machine.sendall(text.encode())


@pytest.fixture
def port(tmp_path: Path) -> Iterator[Port]:
    port = Port(tmp_path)
    yield port
    port.machine.close()
    port.console.join(5)


def test_line_that_is_there_already(port: Port) -> None:
    port.prints("booting\r\nready now\r\nmore\r\n")
    assert port.console.wait_for(WANTED, 5, BAD).string == "ready now"


def test_line_in_pieces(port: Port) -> None:
    port.prints("rea")
    port.prints("dy\n")
    assert port.console.wait_for(WANTED, 5, BAD)


def test_bad_line_ends_the_wait_at_once(port: Port) -> None:
    port.prints("so far so good\npanic: no disk\n")
    with pytest.raises(MachineLostError, match=r"(?s)host x: panic: no disk.*so far so good"):
        port.console.wait_for(WANTED, 60, BAD)


def test_end_of_the_machine_ends_the_wait(port: Port) -> None:
    port.prints("last words")
    port.machine.close()
    with pytest.raises(MachineLostError, match=r"(?s)powered off before 'ready'.*last words"):
        port.console.wait_for(WANTED, 60, BAD)


def test_time_limit(port: Port) -> None:
    port.prints("slow\n")
    with pytest.raises(LabError, match=r"(?s)no 'ready' within 0.2 s.*slow"):
        port.console.wait_for(WANTED, 0.2, BAD)


def test_people_see_and_type(port: Port) -> None:
    with socket.socket(socket.AF_UNIX) as person:
        person.connect(str(port.relay))
        person.sendall(b"ls\r")
        assert port.machine.recv(10) == b"ls\r"
        port.prints("file\n")
        assert person.recv(10) == b"file\n"
    port.prints("ready\n")
    assert port.console.wait_for(WANTED, 5, BAD)
