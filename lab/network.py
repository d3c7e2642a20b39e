# SPDX-License-Identifier: GPL-2.0
"""The network between the hosts of a rack: a switch of our own, with a cable to the second network card of each host.

QEMU hands over each frame as one datagram of a Unix socket, and takes frames in the same way. So what a cable does to frames
happens below every transport: it delays, loses, damages, doubles or reorders them, or is pulled out. What is left to chance
follows a seed. A frame passes two cables, its sender's and its receiver's; the delay of each is added.

A frame that cannot be delivered at once waits, up to QUEUE of them for each card; what comes then is dropped, as a switch does.
Frames to one card keep their order unless its cable, or the sender's, reorders them.

Locking: a Switch belongs to the event loop's thread (lab/event_loop.py). Its public methods may be called from any other
thread; they return when the loop has done what they ask for.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
import socket
from collections import deque
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path

from lab import event_loop
from lab.errors import LabError

# What a card may send: the largest MTU of Linux, an Ethernet header, a VLAN tag.
FRAME_MAX = 65535 + 14 + 4
HEADER = 14
QUEUE = 1024
AT_ONCE = 64  # frames that are taken from one card before others have their turn
MAX_DELAY_S = 60.0


@dataclass(frozen=True)
class Cable:
    """What happens to frames on their way, in both directions. Shares are 0 to 1, of the frames that pass."""

    up: bool = True
    delay_s: float = 0.0
    lost: float = 0.0
    damaged: float = 0.0  # one bit behind the header is not as it was sent
    doubled: float = 0.0
    reordered: float = 0.0  # overtaken by the next one to the same card

    def __post_init__(self) -> None:
        if not 0 <= self.delay_s <= MAX_DELAY_S:
            raise LabError(f"delay of {self.delay_s:g} s: want 0 to {MAX_DELAY_S:g}")
        for name in ("lost", "damaged", "doubled", "reordered"):
            if not 0 <= getattr(self, name) <= 1:
                raise LabError(f"{name} = {getattr(self, name):g}: want a share, 0 to 1")


@dataclass
class Counts:
    """Frames since the switch was made: what came from a card, what was delivered to it, and what was done to others."""

    taken: int = 0
    delivered: int = 0
    lost: int = 0  # by a cable that loses, or is out
    damaged: int = 0
    doubled: int = 0
    reordered: int = 0
    dropped: int = 0  # the queue was full
    undeliverable: int = 0  # the card is not there


@dataclass
class _Port:
    """One cable, and what waits to go through it to its card."""

    name: str
    card: Path
    socket: socket.socket
    cable: Cable = field(default_factory=Cable)
    counts: Counts = field(default_factory=Counts)
    queue: deque[tuple[float, bytes]] = field(default_factory=deque)  # loop's time when it is due, frame
    held: bytes | None = None  # to be overtaken by the next one
    timer: asyncio.TimerHandle | None = None
    writing: bool = False  # the loop tells when the card takes more
    connected: bool = False


def card_socket(folder: Path, name: str) -> Path:
    """Where the QEMU of a host takes frames."""
    return folder / f"card-{name}"


def switch_socket(folder: Path, name: str) -> Path:
    """Where the switch takes frames of a host."""
    return folder / f"wire-{name}"


class Switch:
    """A learning switch with a port for each host. Make it before the machines are started, and close() it after their end."""

    def __init__(self, folder: Path, names: Iterable[str], seed: int = 1) -> None:
        """`folder` is for the sockets, which must not be there yet."""
        self._chance = random.Random(seed)
        self._ports: dict[str, _Port] = {}
        self._where: dict[bytes, _Port] = {}  # which address was last seen behind which port
        try:
            for name in names:
                end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
                self._ports[name] = _Port(name, card_socket(folder, name), end)
                end.setblocking(False)
                end.bind(str(switch_socket(folder, name)))
        except OSError as error:
            for port in self._ports.values():
                port.socket.close()
            raise LabError(f"network of the rack: {switch_socket(folder, name)}: {error}") from error
        event_loop.call(self._listen())

    def plug(self, name: str, cable: Cable) -> None:
        """Give a host this cable in place of the one it has. What is on its way already is not touched, unless it is out."""
        event_loop.call(self._plug(self._port(name), cable))

    def cable(self, name: str) -> Cable:
        """The cable that a host has."""
        return self._port(name).cable

    def counts(self, name: str) -> Counts:
        """What has passed so far."""
        return Counts(**asdict(self._port(name).counts))

    def close(self) -> None:
        """End it; frames that wait are lost."""
        event_loop.call(self._close())

    def _port(self, name: str) -> _Port:
        try:
            return self._ports[name]
        except KeyError:
            raise LabError(f"the network has no host {name!r}; it has: {', '.join(self._ports)}") from None

    # --- In the loop's thread -------------------------------------------------------------------------------------------

    async def _listen(self) -> None:
        for port in self._ports.values():
            asyncio.get_running_loop().add_reader(port.socket, self._take, port)

    async def _plug(self, port: _Port, cable: Cable) -> None:
        port.cable = cable
        if not cable.up:
            port.counts.lost += len(port.queue) + (port.held is not None)
            port.queue.clear()
            port.held = None

    async def _close(self) -> None:
        loop = asyncio.get_running_loop()
        for port in self._ports.values():
            loop.remove_reader(port.socket)
            loop.remove_writer(port.socket)
            if port.timer:
                port.timer.cancel()
            port.socket.close()

    def _take(self, port: _Port) -> None:
        """A card has sent something."""
        for _ in range(AT_ONCE):
            try:
                frame = port.socket.recv(FRAME_MAX)
            except (BlockingIOError, ConnectionError):
                return
            if len(frame) < HEADER:
                continue
            port.counts.taken += 1
            self._where[frame[6:12]] = port
            self._forward(port, frame)

    def _forward(self, source: _Port, frame: bytes) -> None:
        """To the port where the address was seen, or to all others."""
        target = self._where.get(frame[:6])
        targets = [target] if target else list(self._ports.values())
        for other in targets:
            if other is not source:
                self._pass(source, other, frame)

    def _happens(self, share: float) -> bool:
        return share > 0 and self._chance.random() < share

    def _pass(self, source: _Port, target: _Port, frame: bytes) -> None:
        """Through both cables."""
        copies = [frame]
        overtaken = False
        for cable in (source.cable, target.cable):
            if not cable.up or self._happens(cable.lost):
                target.counts.lost += 1
                return
            if len(frame) > HEADER and self._happens(cable.damaged):
                target.counts.damaged += 1
                copies = [self._damaged(copy) for copy in copies]
            if self._happens(cable.doubled):
                target.counts.doubled += 1
                copies.append(copies[-1])
            overtaken = overtaken or self._happens(cable.reordered)
        delay = source.cable.delay_s + target.cable.delay_s
        if overtaken and target.held is None:
            target.counts.reordered += 1
            target.held = copies.pop(0)
        for copy in copies:
            self._enqueue(target, copy, delay)
        if not overtaken and target.held is not None:
            self._enqueue(target, target.held, delay)
            target.held = None
        self._send(target)

    def _damaged(self, frame: bytes) -> bytes:
        changed = bytearray(frame)
        changed[self._chance.randrange(HEADER, len(frame))] ^= 1 << self._chance.randrange(8)
        return bytes(changed)

    def _enqueue(self, port: _Port, frame: bytes, delay: float) -> None:
        if len(port.queue) >= QUEUE:
            port.counts.dropped += 1
            return
        due = asyncio.get_running_loop().time() + delay
        if port.queue:
            due = max(due, port.queue[-1][0])  # a shorter cable does not overtake
        port.queue.append((due, frame))

    def _send(self, port: _Port) -> None:
        """Deliver what is due, as far as the card takes it."""
        loop = asyncio.get_running_loop()
        if port.timer:
            port.timer.cancel()
            port.timer = None
        full = False
        while port.queue and port.queue[0][0] <= loop.time() and not full:
            try:
                if not port.connected:
                    port.socket.connect(str(port.card))
                    port.connected = True
                port.socket.send(port.queue[0][1])
                port.counts.delivered += 1
            except BlockingIOError:
                full = True
                continue
            except OSError:  # the machine is off
                port.connected = False
                port.counts.undeliverable += 1
            port.queue.popleft()
        if full != port.writing:
            port.writing = full
            if full:
                loop.add_writer(port.socket, self._send, port)
            else:
                with contextlib.suppress(OSError):
                    loop.remove_writer(port.socket)
        if port.queue and not full:
            port.timer = loop.call_at(port.queue[0][0], self._send, port)
