# SPDX-License-Identifier: GPL-2.0
"""QEMU's machine protocol, with a QEMU that is played: answers, refusals, events, an end, and no answer."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.errors import LabError, MachineLostError
from lab.qmp import Qmp

GREETING = {"QMP": {"version": {"qemu": {"major": 10, "minor": 0, "micro": 13}, "package": ""}, "capabilities": []}}
EVENT = {"event": "STOP", "data": {}, "timestamp": {"seconds": 1, "microseconds": 2}}


class Emulator:
    """The other end: a thread that answers as it is told."""

    def __init__(self, greets: bool = True) -> None:
        self.ours, self.stream = socket.socketpair()
        self.asked: list[str] = []
        self.greets = greets
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    def say(self, message: dict[str, Any]) -> None:
        self.stream.sendall(json.dumps(message).encode() + b"\r\n")

    def _serve(self) -> None:
        if self.greets:
            self.say(GREETING)
        while received := self.stream.recv(65536):  # one command each, without an end of line
            asked = json.loads(received)
            command = asked["execute"]
            self.asked.append(command)
            answer_to = {key: asked[key] for key in ("id",) if key in asked}
            if command == "quit":
                break
            if command == "nonesuch":
                self.say({"error": {"class": "CommandNotFound", "desc": "no such command"}, **answer_to})
            elif command == "human-monitor-command":
                self.say(EVENT)
                words = [str(word) for word in asked["arguments"].values()]
                self.say({"return": " ".join(words).upper(), **answer_to})
            elif command != "silence":
                self.say({"return": {"asked": len(self.asked)}, **answer_to})
        self.stream.shutdown(socket.SHUT_RDWR)


@pytest.fixture
def emulator() -> Iterator[Emulator]:
    played = Emulator()
    yield played
    played.thread.join(20)
    assert not played.thread.is_alive(), "still connected"


@pytest.fixture
def qmp(emulator: Emulator, tmp_path: Path) -> Iterator[Qmp]:
    connected = Qmp(emulator.ours, "alpha", tmp_path / "log")
    yield connected
    connected.close()
    connected.close()


def test_what_is_asked_is_answered(qmp: Qmp, emulator: Emulator, tmp_path: Path) -> None:
    assert qmp.execute("cont") == {"asked": 2}
    assert qmp.monitor("info mtree") == "INFO MTREE"
    assert qmp.monitor("x /2gx 0", 0) == "X /2GX 0 0", "a CPU that is not named is any"
    with pytest.raises(MachineLostError, match=r"alpha: .*no such command"):
        qmp.execute("nonesuch")
    assert qmp.execute("cont") == {"asked": 6}
    assert emulator.asked[0] == "qmp_capabilities"
    deadline = time.monotonic() + 20
    while "STOP" not in (tmp_path / "log").read_text(encoding="utf-8"):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_two_machines_at_once(qmp: Qmp, tmp_path: Path) -> None:
    """One that is silent holds up nobody else."""
    other = Emulator()
    second = Qmp(other.ours, "beta", tmp_path / "other")
    with pytest.raises(LabError, match=r"beta: QEMU did not answer within 0.3 s"):
        second.execute("silence", timeout=0.3)
    assert qmp.execute("cont") == {"asked": 2}
    assert second.execute("cont") == {"asked": 3}
    second.close()


def test_no_greeting(tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"alpha: QEMU did not answer within 0.3 s"):
        Qmp(Emulator(greets=False).ours, "alpha", tmp_path / "log", timeout=0.3)


def test_a_machine_that_ends(qmp: Qmp) -> None:
    with pytest.raises(MachineLostError, match="alpha"):
        qmp.execute("quit", timeout=20)
    with pytest.raises(MachineLostError, match="alpha"):
        qmp.execute("cont", timeout=20)
