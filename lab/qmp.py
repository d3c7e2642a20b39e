# SPDX-License-Identifier: GPL-2.0
"""QEMU's machine protocol, synchronously, on top of qemu.qmp in the process's event loop.

Locking: every public method may be called from any thread but the loop's.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import Coroutine
from datetime import datetime
from pathlib import Path
from typing import Any, TextIO

from qemu.qmp import QMPClient, QMPError
from qemu.qmp.message import Message

from lab import event_loop
from lab.errors import LabError, MachineLostError


class Qmp:
    """One connection to a QEMU process; events go to a log file."""

    def __init__(self, stream: socket.socket, name: str, log: Path, timeout: float = 30) -> None:
        """Greet QEMU over a connected stream; `name` is for messages. Raises LabError after `timeout` seconds."""
        self._name = name
        self._log: TextIO = log.open("a", buffering=1)
        self._client = QMPClient(name)
        self._call(self._connect(stream), timeout)

    async def _connect(self, stream: socket.socket) -> None:
        await self._client.connect(stream)
        self._logger = asyncio.create_task(self._log_events())

    async def _log_events(self) -> None:
        with self._client.listener() as listener:
            async for event in listener:
                self._log.write(f"{datetime.now().isoformat(timespec='milliseconds')} {_line(event)}\n")

    def _call[T](self, coroutine: Coroutine[Any, Any, T], timeout: float) -> T:
        try:
            return event_loop.call(coroutine, timeout)
        except TimeoutError:
            raise LabError(f"{self._name}: QEMU did not answer within {timeout} s") from None
        except (QMPError, EOFError, OSError) as error:
            raise MachineLostError(f"{self._name}: {error}") from error

    def execute(self, command: str, arguments: dict[str, object] | None = None, timeout: float = 60) -> Any:
        """Run one QMP command and return its value. Raises MachineLostError when QEMU refuses or is gone."""
        return self._call(self._client.execute(command, arguments), timeout)

    def monitor(self, line: str, cpu: int | None = None) -> str:
        """Run a command of the human monitor and return what it prints. `cpu`: the one it is about, where that matters."""
        about: dict[str, object] = {} if cpu is None else {"cpu-index": cpu}
        return str(self.execute("human-monitor-command", {"command-line": line, **about}))

    def close(self) -> None:
        """Disconnect; QEMU goes on. Safe to call twice."""
        if self._log.closed:
            return
        with contextlib.suppress(LabError):
            self._call(self._disconnect(), 5)
        self._log.close()

    async def _disconnect(self) -> None:
        self._logger.cancel()
        await self._client.disconnect()


def _line(event: Message) -> str:
    return json.dumps({key: value for key, value in event.items() if key != "timestamp"})
