# SPDX-License-Identifier: GPL-2.0
"""Commands in machines, over one shared ssh connection each.

The connection is a master process (ssh -M) that is tied to us; each command is a cheap client of its control socket. A
command that exceeds its time is killed in the machine itself, by timeout(1), not only here.
"""

from __future__ import annotations

import contextlib
import re
import shlex
import subprocess
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.errors import CommandFailedError, CommandTimeoutError, LabError, MachineLostError
from lab.patience import scaled
from lab.process import start_tied, stop

# Seconds between a command's TERM and its KILL, and what the way there and back may take on a busy machine.
KILL_AFTER = 5
TRANSPORT_SLACK = 30

# Seconds between two tries to connect, and what no second try mends.
BETWEEN_TRIES = 0.5
PERMANENT = re.compile(r"Permission denied|verification failed|Bad configuration|no address|not resolve")

_LOST = re.compile(
    rb"^(Shared connection to|mux_client|Control socket connect|ssh: |Connection |kex_exchange|client_loop)",
    re.MULTILINE,
)


@dataclass(frozen=True)
class Result:
    """How a command ended: exit code (128+n after signal n), its output and error output, seconds it took."""

    rc: int
    out: str
    err: str
    seconds: float = 0.0


class Background:
    """A command that runs in a machine while we go on."""

    def __init__(self, ssh: Ssh, command: str, sink: Path | None) -> None:
        self._ssh = ssh
        self._command = command
        self._sink = sink
        output = sink.open("ab") if sink else subprocess.PIPE
        # The first line of error output is the process id in the machine.
        remote = f"{PROLOGUE} echo $$ >&2; exec {command}"
        self._process = start_tied([*ssh.client(), remote], stdout=output, stderr=subprocess.PIPE)
        assert self._process.stderr is not None
        first = self._process.stderr.readline()
        if not first.strip().isdigit():
            stop(self._process)
            raise MachineLostError(f"{ssh.name}: could not start {command!r}: {first.decode(errors='replace').strip()}")
        self.pid = int(first)

    def running(self) -> bool:
        """Whether the command still runs."""
        return self._process.poll() is None

    def signal(self, name: str = "TERM") -> None:
        """Send a signal to the command's process in the machine."""
        self._ssh.run(f"kill -{name} {self.pid}")

    def wait(self, timeout: float = 60) -> Result:
        """Wait for the end, return exit code and output (empty with a sink). Raises CommandTimeoutError; it then still runs."""
        started = time.monotonic()
        try:
            out, err = self._process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            raise CommandTimeoutError(f"{self._ssh.name}: {self._command!r} still runs after {timeout:g} s") from None
        return _result(self._ssh.name, self._process.returncode, out or b"", err or b"", time.monotonic() - started)

    def stop(self) -> Result:
        """End the command (TERM, then KILL) and return what wait() returns."""
        if self.running():
            self.signal("TERM")
        try:
            return self.wait(KILL_AFTER)
        except CommandTimeoutError:
            self.signal("KILL")
            return self.wait()


# The login environment, which ssh commands do not get by themselves.
PROLOGUE = ". /etc/profile;"


class Ssh:
    """A master connection to one machine, and commands over it."""

    def __init__(
        self, name: str, key: Path, control: Path, address: tuple[str, int], through: Ssh | None = None
    ) -> None:
        """Describe the connection: `control` is the socket's path, `address` host and port, `through` a jump host."""
        self.name = name
        self._key = key
        self._control = control
        self._address = address
        self._through = through
        self._master: subprocess.Popen[bytes] | None = None

    def options(self) -> list[str]:
        """Options that name keys and the control socket; nothing of the user's own configuration is read."""
        settings = {
            "ControlPath": self._control, "UserKnownHostsFile": self._key.parent / "known_hosts",
            "GlobalKnownHostsFile": "/dev/null", "StrictHostKeyChecking": "yes", "IdentitiesOnly": "yes", "BatchMode": "yes",
            "LogLevel": "ERROR",
            "KexAlgorithms": "curve25519-sha256", "Ciphers": "chacha20-poly1305@openssh.com", "UpdateHostKeys": "no",
            "ServerAliveInterval": 30, "ServerAliveCountMax": 20,
        }  # fmt: skip
        options = ["-F", "/dev/null", "-i", str(self._key), "-p", str(self._address[1])]
        for key, value in settings.items():
            options += ["-o", f"{key}={value}"]
        if self._through:
            jump = shlex.join(["ssh", *self._through.options(), "-W", "%h:%p", self._through.destination])
            options += ["-o", f"ProxyCommand={jump}"]
        return options

    @property
    def destination(self) -> str:
        """user@host."""
        return f"root@{self._address[0]}"

    def connect(self, timeout: float) -> None:
        """Open the master connection. Raises LabError with ssh's words when there is none within `timeout` s.

        A guest's network may begin to answer a little after its init is done, and nothing tells when: what is refused is
        tried again.
        """
        timeout = scaled(timeout)
        deadline = time.monotonic() + timeout
        while (words := self._try_to_connect(deadline - time.monotonic())) is not None:
            if PERMANENT.search(words) or time.monotonic() + BETWEEN_TRIES > deadline:
                raise LabError(f"{self.name}: no ssh connection within {timeout:g} s: {words}")
            time.sleep(BETWEEN_TRIES)

    def _try_to_connect(self, timeout: float) -> str | None:
        """Open the master connection; returns ssh's words if it does not."""
        ready = [
            "-o",
            f"ConnectTimeout={max(1, int(timeout))}",
            "-o",
            "PermitLocalCommand=yes",
            "-o",
            "LocalCommand=echo connected",
        ]
        self._control.unlink(missing_ok=True)
        self._master = start_tied(
            ["ssh", "-M", "-N", *self.options(), *ready, self.destination],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        assert self._master.stdout is not None and self._master.stderr is not None
        # ssh itself ends after ConnectTimeout, so this read does.
        if self._master.stdout.readline().strip() == b"connected":
            return None
        words = self._master.stderr.read().decode(errors="replace").strip()
        self.disconnect()
        return words or "ssh said nothing"

    def disconnect(self) -> None:
        """Close the master connection; commands under way end."""
        if self._master:
            stop(self._master)
            self._master = None
        self._control.unlink(missing_ok=True)

    def client(self, *options: str) -> list[str]:
        """Command line of an ssh client; the remote command is to be appended as one string."""
        return ["ssh", *self.options(), *options, self.destination]

    def run(
        self,
        command: Sequence[str] | str,
        timeout: float = 60,
        check: bool = False,
        stdin: bytes | None = None,
        on_line: Callable[[str], None] | None = None,
    ) -> Result:
        """Run a command (a list, or a line for sh) to its end.

        `timeout` is in seconds of this machine, for one rack (lab/patience.py); `stdin` is fed to the command; `on_line`
        gets each line of output as it comes. Raises CommandTimeoutError (the command has been killed), MachineLostError, and
        with `check` CommandFailedError for another exit code than 0.
        """
        timeout = scaled(timeout)
        line = as_line(command)
        remote = f"{PROLOGUE} exec timeout -k {KILL_AFTER} {timeout:g} {line}"
        started = time.monotonic()
        process = subprocess.Popen(
            [*self.client(), remote],
            stdin=subprocess.DEVNULL if stdin is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        try:
            if on_line:
                out, err = _by_lines(process, stdin, timeout + KILL_AFTER + TRANSPORT_SLACK, on_line)
            else:
                out, err = process.communicate(stdin, timeout=timeout + KILL_AFTER + TRANSPORT_SLACK)
        except subprocess.TimeoutExpired:
            raise CommandTimeoutError(
                f"{self.name}: no answer to {line!r} for {time.monotonic() - started:.0f} s"
            ) from None
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        result = _result(self.name, process.returncode, out, err, time.monotonic() - started)
        if result.rc in (124, 137) and result.seconds >= timeout:
            raise CommandTimeoutError(
                f"{self.name}: {line!r} killed after {timeout:g} s; it printed:\n{result.out}{result.err}"
            )
        if check and result.rc:
            raise CommandFailedError(f"{self.name}: {line!r} ended with {result.rc}:\n{result.out}{result.err}")
        return result

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
            done = subprocess.run(
                [*self.client(), f"cat {shlex.quote(source)}"], stdout=file, stderr=subprocess.PIPE, check=False
            )
        if done.returncode:
            raise CommandFailedError(f"{self.name}:{source}: {done.stderr.decode(errors='replace').strip()}")


def _by_lines(
    process: subprocess.Popen[bytes], stdin: bytes | None, timeout: float, on_line: Callable[[str], None]
) -> tuple[bytes, bytes]:
    """Popen.communicate() that hands each line of output over as it comes.

    Another thread feeds the process and reads its messages: who waits for one of two pipes waits for ever when the other is
    full.
    """
    assert process.stdout is not None and process.stderr is not None
    lines, messages = [], bytearray()
    late = threading.Event()

    def feed() -> None:
        with contextlib.suppress(BrokenPipeError):  # it has ended, and wanted none
            if process.stdin:
                with process.stdin:
                    process.stdin.write(stdin or b"")

    def read() -> None:
        assert process.stderr is not None
        messages.extend(process.stderr.read())

    def end() -> None:
        late.set()
        process.kill()

    assistants = [threading.Thread(target=work, daemon=True) for work in (feed, read)]
    limit = threading.Timer(timeout, end)
    for thread in (*assistants, limit):
        thread.start()
    try:
        for raw in process.stdout:
            lines.append(raw)
            on_line(raw.decode(errors="replace").rstrip("\n"))
        for thread in assistants:
            thread.join()
        process.wait()
    except BaseException:
        process.kill()
        raise
    finally:
        limit.cancel()
    if late.is_set():
        raise subprocess.TimeoutExpired(process.args, timeout)
    return b"".join(lines), bytes(messages)


def as_line(command: Sequence[str] | str) -> str:
    """One line for the machine's shell, safe to put behind another command such as timeout or exec."""
    return f"sh -c {shlex.quote(command)}" if isinstance(command, str) else shlex.join(command)


def _result(name: str, code: int, out: bytes, err: bytes, seconds: float) -> Result:
    if code == 255 and _LOST.search(err):
        raise MachineLostError(f"{name}: connection lost: {err.decode(errors='replace').strip()}")
    return Result(code, out.decode(errors="replace"), err.decode(errors="replace"), seconds)
