# SPDX-License-Identifier: GPL-2.0
"""Commands in machines, over one ssh connection each, by asyncssh.

The connections of a process live in its event loop (lab/event_loop.py); whoever wants something of one waits in a thread of his
own, and many may at once. A command that exceeds its time is killed in the machine itself, by timeout(1), not only here.

Locking: `_Session` and what begins with `_` and is `async` belong to the loop's thread, all else to the caller's. Between them
are futures and queues.
"""

from __future__ import annotations

import asyncio
import contextlib
import queue
import re
import shlex
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path

import asyncssh

from lab import event_loop
from lab.command import Done
from lab.errors import CommandFailedError, CommandTimeoutError, LabError, MachineLostError
from lab.patience import scaled

# Seconds between a command's TERM and its KILL, and what the way there and back may take on a busy machine.
KILL_AFTER = 5
TRANSPORT_SLACK = 30
NO_LIMIT = threading.TIMEOUT_MAX  # but that of the connection, ALIVE_S

# A machine's seconds may be this much of ours: its clock is one that it has measured itself, under emulation.
ITS_SECONDS = 0.95

# Seconds until a command in the background must have begun, and for a connection to close.
START_S = 60
CLOSE_S = 10

# Seconds between two tries to connect, and what no second try mends.
BETWEEN_TRIES = 0.5
PERMANENT = (
    asyncssh.PermissionDenied, asyncssh.HostKeyNotVerifiable, asyncssh.KeyExchangeFailed, asyncssh.KeyImportError,
    FileNotFoundError, PermissionError, socket.gaierror,
)  # fmt: skip

# A machine that says nothing is asked each 30 s and given up after 600 s: hosts of racks stall for minutes.
ALIVE_S = 30
ALIVE_COUNT = 20

# What asyncssh, dropbear and OpenSSH have in common that costs least.
KEY_EXCHANGE = "curve25519-sha256"
CIPHER = "chacha20-poly1305@openssh.com"

# The login environment, which ssh commands do not get by themselves.
PROLOGUE = ". /etc/profile;"


class _NoAnswerError(Exception):
    """The command has not ended in time, although timeout(1) ought to have seen to it."""


class _Session(asyncssh.SSHClientSession[bytes]):
    """A command in a machine: collects what it prints, and how it ended.

    Nothing here ever waits, so that a command that floods one of its outputs still gets rid of the other.
    """

    def __init__(self, name: str, take: Callable[[bytes], object] | None = None) -> None:
        """`name` is the machine's; `take` gets the output instead of `out`."""
        self.out, self.err = bytearray(), bytearray()
        self.ended: Future[int] = Future()  # its exit code, or MachineLostError, or what `take` raised
        self._name = name
        self._take = take or self.out.extend
        self._channel: asyncssh.SSHClientChannel[bytes] | None = None
        self._code: int | None = None
        self._failure: Exception | None = None

    def connection_made(self, chan: asyncssh.SSHClientChannel[bytes]) -> None:
        self._channel = chan

    def data_received(self, data: bytes, datatype: int | None) -> None:
        if datatype is not None:
            self.err += data
        elif self._failure is None:
            try:
                self._take(data)
            except Exception as error:  # asyncssh would close the whole connection
                self._failure = error
                self.abandon()

    def exit_status_received(self, status: int) -> None:
        self._code = status

    def exit_signal_received(self, signal: str, core_dumped: bool, msg: str, lang: str) -> None:
        self._code = _code_after(signal)

    def connection_lost(self, exc: Exception | None) -> None:
        if self._failure:
            self.ended.set_exception(self._failure)
        elif exc or self._code is None:
            self.ended.set_exception(MachineLostError(f"{self._name}: connection lost: {exc or 'it was closed'}"))
        else:
            self.ended.set_result(self._code)

    def feed(self, stdin: bytes | None) -> None:
        """Give the command its input and the end of it."""
        assert self._channel
        with contextlib.suppress(BrokenPipeError):  # it has ended, and wanted none
            self._channel.write(stdin or b"")
        self._channel.write_eof()

    def follow(self, deadline: float) -> None:
        """Called in the thread of who waits, until the command has ended. Raises _NoAnswerError at the deadline."""

    def abandon(self) -> None:
        """Nobody waits for the command any more: end it, and forget what it still prints."""
        if self._channel:
            with contextlib.suppress(OSError):
                self._channel.terminate()
            self._channel.abort()


class _LineSession(_Session):
    """A command whose output somebody wants line by line, as it comes."""

    def __init__(self, name: str, on_line: Callable[[str], None]) -> None:
        super().__init__(name)
        self._on_line = on_line
        self._chunks: queue.SimpleQueue[bytes] = queue.SimpleQueue()  # an empty one is the end

    def data_received(self, data: bytes, datatype: int | None) -> None:
        super().data_received(data, datatype)
        if datatype is None:
            self._chunks.put(data)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._chunks.put(b"")

    def follow(self, deadline: float) -> None:
        rest = b""
        while chunk := self._next(deadline):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._on_line(line.decode(errors="replace"))
        if rest:
            self._on_line(rest.decode(errors="replace"))

    def _next(self, deadline: float) -> bytes:
        try:
            return self._chunks.get(timeout=max(0.0, deadline - time.monotonic()))
        except queue.Empty:
            raise _NoAnswerError from None


class _BackgroundSession(_Session):
    """A command whose first line of error output is its process id."""

    def __init__(self, name: str, take: Callable[[bytes], object] | None) -> None:
        super().__init__(name, take)
        self.first: Future[str] = Future()

    def data_received(self, data: bytes, datatype: int | None) -> None:
        super().data_received(data, datatype)
        if datatype is not None and not self.first.done() and b"\n" in self.err:
            line, _, self.err = self.err.partition(b"\n")
            self.first.set_result(line.decode(errors="replace"))

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        if not self.first.done():
            self.first.set_result(self.err.decode(errors="replace"))


class Background:
    """A command that runs in a machine while we go on."""

    def __init__(self, ssh: Ssh, command: str, sink: Path | None) -> None:
        self._ssh = ssh
        self._command = command
        # Not buffered: what has come is in the file.
        file = sink.open("ab", buffering=0) if sink else None
        self._session = _BackgroundSession(ssh.name, file.write if file else None)
        try:
            self.pid = self._begin()
        except BaseException:
            event_loop.soon(self._session.abandon)
            if file:
                file.close()
            raise
        if file:
            self._session.ended.add_done_callback(lambda _: file.close())

    def _begin(self) -> int:
        name, limit = self._ssh.name, scaled(START_S) + TRANSPORT_SLACK
        try:
            self._ssh.begin(self._session, f"{PROLOGUE} echo $$ >&2; exec {self._command}", limit)
            first = self._session.first.result(limit).strip()
        except TimeoutError:
            raise CommandTimeoutError(f"{name}: {self._command!r} did not begin within {limit:g} s") from None
        if not first.isdigit():
            failure = self._session.ended.exception() if self._session.ended.done() else None
            raise failure or MachineLostError(f"{name}: could not start {self._command!r}: {first}")
        return int(first)

    def running(self) -> bool:
        """Whether the command still runs."""
        return not self._session.ended.done()

    def signal(self, name: str = "TERM") -> None:
        """Send a signal to the command's process in the machine."""
        self._ssh.run(f"kill -{name} {self.pid}")

    def wait(self, timeout: float = 60) -> Done:
        """Wait for the end, return exit code and output (empty with a sink). Raises CommandTimeoutError; it then still runs."""
        started = time.monotonic()
        try:
            code = self._session.ended.result(timeout)
        except TimeoutError:
            raise CommandTimeoutError(f"{self._ssh.name}: {self._command!r} still runs after {timeout:g} s") from None
        return _done(code, self._session, started)

    def stop(self) -> Done:
        """End the command (TERM, then KILL) and return what wait() returns."""
        if self.running():
            self.signal("TERM")
        try:
            return self.wait(KILL_AFTER)
        except CommandTimeoutError:
            self.signal("KILL")
            return self.wait()


class Ssh:
    """A connection to one machine, and commands over it. What has no connection, or has lost it, opens one for a command."""

    def __init__(
        self, name: str, key: Path, address: tuple[str, int], through: Ssh | None = None, user: str = "root"
    ) -> None:
        """Describe the connection: `key` has known_hosts beside it, `address` is host and port, `through` a jump host."""
        self.name = name
        self._key = key
        self._known_hosts = key.parent / "known_hosts"
        self._address = address
        self._through = through
        self._user = user
        # These three belong together: a process that was forked has another loop, and its parent's connection is not its.
        self._loop: asyncio.AbstractEventLoop | None = None
        self._opening: asyncio.Lock
        self._connection: asyncssh.SSHClientConnection | None = None

    def connect(self, timeout: float) -> None:
        """Open the connection. Raises LabError with asyncssh's words when there is none within `timeout` s.

        A guest's network may begin to answer a little after its init is done, and nothing tells when: what is refused is
        tried again.
        """
        timeout = scaled(timeout)
        deadline = time.monotonic() + timeout
        while True:
            try:
                event_loop.call(self._connected(), deadline - time.monotonic())
                return
            except (OSError, asyncssh.Error, asyncssh.KeyImportError) as error:
                if isinstance(error, PERMANENT) or time.monotonic() + BETWEEN_TRIES > deadline:
                    words = str(error) or "no answer"
                    raise LabError(f"{self.name}: no ssh connection within {timeout:g} s: {words}") from None
            time.sleep(BETWEEN_TRIES)

    async def _connected(self) -> asyncssh.SSHClientConnection:
        """The connection, opened if there is none; nothing of the user's own configuration is read."""
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._opening, self._connection = loop, asyncio.Lock(), None
        async with self._opening:
            if self._connection is None or self._connection.is_closed():  # type: ignore[no-untyped-call]
                host, port = self._address
                self._connection = await asyncssh.connect(
                    host, port, username=self._user, client_keys=[self._key], known_hosts=str(self._known_hosts),
                    tunnel=await self._through._connected() if self._through else None,
                    config=None, agent_path=None, gss_host=None, preferred_auth="publickey",
                    kex_algs=[KEY_EXCHANGE], encryption_algs=[CIPHER], compression_algs=["none"],
                    login_timeout=0, keepalive_interval=ALIVE_S, keepalive_count_max=ALIVE_COUNT,
                )  # fmt: skip
            return self._connection

    def disconnect(self) -> None:
        """Close the connection; commands under way end."""
        if self._connection:
            with contextlib.suppress(TimeoutError):
                event_loop.call(self._disconnected(), CLOSE_S)

    async def _disconnected(self) -> None:
        connection, self._connection = self._connection, None
        if connection and self._loop is asyncio.get_running_loop():
            connection.close()
            await connection.wait_closed()

    def begin(self, session: _Session, remote: str, limit: float | None, stdin: bytes | None = None) -> None:
        """Start a command line in the machine for a session. Raises TimeoutError after `limit` seconds, MachineLostError."""
        event_loop.call(self._begin(session, remote, stdin), limit)

    async def _begin(self, session: _Session, remote: str, stdin: bytes | None) -> None:
        try:
            connection = await self._connected()
            await connection.create_session(lambda: session, remote, encoding=None)
        except asyncio.CancelledError:
            session.abandon()
            raise
        except (OSError, asyncssh.Error, asyncssh.KeyImportError) as error:
            raise MachineLostError(f"{self.name}: connection lost: {error}") from error
        session.feed(stdin)

    def run(
        self,
        command: Sequence[str] | str,
        timeout: float = 60,
        check: bool = False,
        stdin: bytes | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Done:
        """Run a command (a list, or a line for sh) to its end.

        `timeout` is in seconds of this machine, for one rack (lab/patience.py); `stdin` is fed to the command; `on_line`
        gets each line of output as it comes, in the caller's thread. Raises CommandTimeoutError (the command has been
        killed), MachineLostError, and with `check` CommandFailedError for another exit code than 0.
        """
        timeout = scaled(timeout)
        line = as_line(command)
        remote = f"{PROLOGUE} exec timeout -k {KILL_AFTER} {timeout:g} {line}"
        session = _LineSession(self.name, on_line) if on_line else _Session(self.name)
        started = time.monotonic()
        try:
            result = self._to_the_end(session, remote, timeout + KILL_AFTER + TRANSPORT_SLACK, stdin)
        except _NoAnswerError:
            raise CommandTimeoutError(
                f"{self.name}: no answer to {line!r} for {time.monotonic() - started:.0f} s"
            ) from None
        if result.status in (124, 137) and result.seconds >= timeout * ITS_SECONDS:
            raise CommandTimeoutError(
                f"{self.name}: {line!r} killed after {timeout:g} s; it printed:\n{result.out}{result.err}"
            )
        if check and result.status:
            raise CommandFailedError(f"{self.name}: {line!r} ended with {result.status}:\n{result.out}{result.err}")
        return result

    def _to_the_end(self, session: _Session, remote: str, limit: float, stdin: bytes | None = None) -> Done:
        """Begin a session and wait until it has ended, at most `limit` seconds. Raises _NoAnswerError, MachineLostError."""
        started = time.monotonic()
        deadline = started + limit
        try:
            with _in_time():
                self.begin(session, remote, limit, stdin)
            session.follow(deadline)
            with _in_time():
                code = session.ended.result(max(0.0, deadline - time.monotonic()))
        finally:
            if not session.ended.done():
                event_loop.soon(session.abandon)
        return _done(code, session, started)

    def start(self, command: Sequence[str] | str, sink: Path | None = None) -> Background:
        """Start a command and return at once; its output goes to the file `sink`, or to wait()'s result."""
        return Background(self, as_line(command), sink)

    def put(self, source: Path, destination: str) -> None:
        """Copy a file or a directory of this machine to the absolute path `destination`, modes kept."""
        parent, name = destination.rsplit("/", 1)
        archive = subprocess.run(
            [
                "tar",
                "-C",
                str(source.resolve().parent),
                "--transform",
                f"s,^{re.escape(source.name)},{name},",
                "-cf",
                "-",
                source.name,
            ],
            check=True,
            stdout=subprocess.PIPE,
        ).stdout
        self.run(
            f"mkdir -p {shlex.quote(parent or '/')} && tar -C {shlex.quote(parent or '/')} -xf - --no-same-owner",
            stdin=archive,
            check=True,
        )

    def get(self, source: str, destination: Path) -> None:
        """Copy one file of the machine to `destination` here."""
        with destination.open("wb") as file:
            done = self._to_the_end(_Session(self.name, file.write), f"cat {shlex.quote(source)}", NO_LIMIT)
        if done.status:
            raise CommandFailedError(f"{self.name}:{source}: {done.err.strip()}")

    # --- the OpenSSH client, for people -------------------------------------------------------------------------------

    def client(self, *options: str) -> list[str]:
        """Command line of an ssh client of its own, for a terminal; the remote command is to be appended as one string."""
        return ["ssh", *self._options(), *options, self._destination]

    @property
    def _destination(self) -> str:
        return f"{self._user}@{self._address[0]}"

    def _options(self) -> list[str]:
        """Options that name keys; nothing of the user's own configuration is read here, either."""
        settings = {
            "UserKnownHostsFile": self._known_hosts, "GlobalKnownHostsFile": "/dev/null", "StrictHostKeyChecking": "yes",
            "IdentitiesOnly": "yes", "BatchMode": "yes", "LogLevel": "ERROR", "UpdateHostKeys": "no",
            "KexAlgorithms": KEY_EXCHANGE, "Ciphers": CIPHER,
            "ServerAliveInterval": ALIVE_S, "ServerAliveCountMax": ALIVE_COUNT,
        }  # fmt: skip
        options = ["-F", "/dev/null", "-i", str(self._key), "-p", str(self._address[1])]
        for key, value in settings.items():
            options += ["-o", f"{key}={value}"]
        if self._through:
            jump = shlex.join(["ssh", *self._through._options(), "-W", "%h:%p", self._through._destination])
            options += ["-o", f"ProxyCommand={jump}"]
        return options


def as_line(command: Sequence[str] | str) -> str:
    """One line for the machine's shell, safe to put behind another command such as timeout or exec."""
    return f"sh -c {shlex.quote(command)}" if isinstance(command, str) else shlex.join(command)


@contextlib.contextmanager
def _in_time() -> Iterator[None]:
    try:
        yield
    except TimeoutError:
        raise _NoAnswerError from None


def _code_after(name: str) -> int:
    """The exit code for an end by a signal; as ssh's, 255 for one that we do not know."""
    return 128 + signal.Signals[f"SIG{name}"] if f"SIG{name}" in signal.Signals.__members__ else 255


def _done(code: int, session: _Session, started: float) -> Done:
    out, err = (each.decode(errors="replace") for each in (session.out, session.err))
    return Done(code, out, err, time.monotonic() - started)
