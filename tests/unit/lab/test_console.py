# SPDX-License-Identifier: GPL-2.0
"""Waiting on a console: lines that come, come too late, or say that all is lost; and the relay for people."""

from __future__ import annotations

import re
import socket
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from lab import console as module
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


def test_a_person_who_leaves_while_something_is_printed(port: Port, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are found at one look: the line cannot be passed on, and there is nobody to read from. The console goes on."""
    look, both = port.console._selector.select, threading.Event()
    monkeypatch.setattr(port.console._selector, "select", lambda: (both.wait(20), look())[1])
    with socket.socket(socket.AF_UNIX) as person:
        person.connect(str(port.relay))
        deadline = time.monotonic() + 20
        while not port.console._clients:
            assert time.monotonic() < deadline
            time.sleep(0.01)
        port.prints("ready\n")
    both.set()
    assert port.console.wait_for(WANTED, 5, BAD)
    port.prints("still there\n")
    assert port.console.wait_for(re.compile("still"), 5, BAD)


class Watched:
    """A pattern that notes which lines were looked at."""

    pattern = "ready"

    def __init__(self) -> None:
        self.looked: list[str] = []

    def search(self, line: str) -> re.Match[str] | None:
        self.looked.append(line)
        return WANTED.search(line)

    def wait(self, line: str) -> None:
        """Return when that line was looked at."""
        deadline = time.monotonic() + 20
        while line not in self.looked:
            assert time.monotonic() < deadline, self.looked
            time.sleep(0.01)


def test_each_line_is_looked_at_once_though_old_ones_are_dropped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "KEPT_LINES", 3)
    port = Port(tmp_path)
    port.prints("1\n2\n")
    watched: Any = Watched()
    with ThreadPoolExecutor(1) as pool:
        found = pool.submit(port.console.wait_for, watched, 20, BAD)
        for seen, printed in (("2", "3\n"), ("3", "4\n5\n"), ("5", "ready\n")):
            watched.wait(seen)
            port.prints(printed)
        assert found.result(30).string == "ready"
    assert watched.looked == ["1", "2", "3", "4", "5", "ready"]
    port.machine.close()
    port.console.join(5)
