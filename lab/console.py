# SPDX-License-Identifier: GPL-2.0
"""A machine's serial console: read by the lab, which waits for lines on it, and lent to people.

QEMU gives the console to one client and writes a log of its own. This client keeps the last lines, wakes who waits for
one, and passes bytes on to any number of people who connect to the relay socket.

Locking: one thread reads; `_changed` guards the lines; clients belong to the reading thread alone.
"""

from __future__ import annotations

import re
import selectors
import socket
import threading
import time
from collections import deque
from pathlib import Path

from lab.errors import LabError, MachineLostError

KEPT_LINES = 2000


class Console:
    """Our end of a serial port."""

    def __init__(self, serial: socket.socket, relay: Path, name: str) -> None:
        """Read from the connected stream `serial` and serve people on `relay`. `name` is for messages."""
        self._name = name
        self._changed = threading.Condition()
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._dropped = 0
        self._partial = b""
        self._ended = False
        self._serial = serial
        relay.unlink(missing_ok=True)
        self._relay = socket.socket(socket.AF_UNIX)
        self._relay.bind(str(relay))
        self._relay.listen()
        self._clients: set[socket.socket] = set()
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._serial, selectors.EVENT_READ)
        self._selector.register(self._relay, selectors.EVENT_READ)
        self._thread = threading.Thread(target=self._read, name=f"console {name}", daemon=True)
        self._thread.start()

    def tail(self, count: int = 40) -> list[str]:
        """The last `count` lines."""
        with self._changed:
            return list(self._lines)[-count:]

    def wait_for(self, wanted: re.Pattern[str], timeout: float, bad: re.Pattern[str]) -> re.Match[str]:
        """Wait until a line matches `wanted`, looking at lines from the first that is kept.

        Raises MachineLostError when a line matches `bad` or the console ends, LabError after `timeout` seconds; both carry
        the last lines.
        """
        deadline = time.monotonic() + timeout
        seen = 0
        with self._changed:
            while True:
                start = max(0, seen - self._dropped)
                for line in list(self._lines)[start:]:
                    if match := wanted.search(line):
                        return match
                    if bad.search(line):
                        raise MachineLostError(f"{self._name}: {line.strip()}\n{self._report()}")
                seen = self._dropped + len(self._lines)
                if self._ended:
                    raise MachineLostError(f"{self._name}: powered off before {wanted.pattern!r}\n{self._report()}")
                left = deadline - time.monotonic()
                if left <= 0 or not self._changed.wait(left):
                    raise LabError(f"{self._name}: no {wanted.pattern!r} within {timeout:g} s\n{self._report()}")

    def _report(self) -> str:
        return "\n".join(f"  | {line}" for line in list(self._lines)[-15:])

    def type(self, keys: bytes) -> None:
        """Send keys to the machine, as if somebody typed them."""
        self._serial.sendall(keys)

    def join(self, timeout: float) -> None:
        """Wait until QEMU has closed the port and all its output has been read."""
        self._thread.join(timeout)

    def _read(self) -> None:
        while not self._ended:
            for key, _ in self._selector.select():
                stream = key.fileobj
                assert isinstance(stream, socket.socket)
                if stream is self._relay:
                    self._accept()
                elif stream is self._serial:
                    self._take(_receive(stream))
                else:
                    self._pass_on(stream)
        for client in list(self._clients):
            self._drop(client)
        self._relay.close()
        self._serial.close()
        self._selector.close()

    def _accept(self) -> None:
        client, _ = self._relay.accept()
        client.setblocking(False)
        self._clients.add(client)
        self._selector.register(client, selectors.EVENT_READ)

    def _take(self, data: bytes) -> None:
        with self._changed:
            *lines, self._partial = (self._partial + data).split(b"\n")
            if not data:
                lines, self._ended = [self._partial], True
            for line in lines:
                self._dropped += len(self._lines) == KEPT_LINES
                self._lines.append(line.decode(errors="replace").rstrip("\r"))
            self._changed.notify_all()
        for client in list(self._clients):
            try:
                client.sendall(data)
            except OSError:
                self._drop(client)

    def _pass_on(self, client: socket.socket) -> None:
        data = _receive(client)
        if data:
            self._serial.sendall(data)
        else:
            self._drop(client)

    def _drop(self, client: socket.socket) -> None:
        if client not in self._clients:
            return  # one look has found two reasons
        self._selector.unregister(client)
        self._clients.discard(client)
        client.close()


def _receive(stream: socket.socket) -> bytes:
    try:
        return stream.recv(65536)
    except OSError:
        return b""
