# SPDX-License-Identifier: GPL-2.0
"""Keeps a rack running in the background: python3 -m lab.supervisor RACK

lab/rack starts it in a sandbox and session of its own, so that it outlives the command and nothing of the rack outlives it.

While the rack boots, it belongs to whoever holds the other end of standard input: "detach" sets it free, an end of file
before that (Ctrl-C, kill -9) ends it. It prints one line when it is up, "ready NAME". Then it takes commands on the rack's
control socket, a line each, answered by "ok" when it is done, or "error" and why:

    poweroff   power off properly
    kill       pull the plug

and about the network between the hosts, which this process is, answered by "ok" and JSON:

    cable HOST {"lost": 0.5, ...}   change the cable of a host: what the members of lab.network.Cable shall be, none if {};
                                    the answer has the cable, and what has passed so far
"""

from __future__ import annotations

import json
import os
import selectors
import signal
import socket
import sys
import threading
from dataclasses import asdict, replace
from types import FrameType

from lab.description import RackDescription
from lab.errors import LabError
from lab.network import Cable
from lab.rack import Rack
from lab.state import StateDirectory

COMMAND_BYTES = 1000


class StoppedError(Exception):
    """SIGTERM or SIGINT came, or who started us is gone."""


def _stop(number: int, frame: FrameType | None) -> None:
    raise StoppedError(signal.Signals(number).name)


class Owner:
    """Who started us, at the other end of standard input. A thread waits, so that death is noticed during the boot."""

    def __init__(self) -> None:
        self._free = threading.Event()
        threading.Thread(target=self._watch, name="owner", daemon=True).start()

    def _watch(self) -> None:
        if sys.stdin.readline().strip() == "detach":
            self._free.set()
        else:
            os.kill(os.getpid(), signal.SIGTERM)

    def wait_detached(self) -> None:
        """Return when "detach" has come."""
        self._free.wait()


def serve(rack: Rack, listener: socket.socket) -> str:
    """Answer commands until one ends the rack, or a machine ends by itself. Returns why."""
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        for host in rack.hosts:
            assert host.machine is not None
            selector.register(os.pidfd_open(host.machine.process.pid), selectors.EVENT_READ, host.description.name)
        while True:
            for key, _ in selector.select():
                if key.data:
                    return f"host {key.data} has ended"
                client, _ = listener.accept()
                with client:
                    if command := answer(rack, client):
                        return command


def inform(rack: Rack, command: str) -> str:
    """The answer to a command that does not end the rack."""
    word, _, rest = command.partition(" ")
    host, _, changes = rest.partition(" ")
    if word != "cable":
        return f"error unknown command {command!r}"
    try:
        if not rack.network:
            raise LabError("there is no network between its hosts")
        cable = changed(rack.network.cable(host), changes)
        rack.network.plug(host, cable)
    except LabError as error:
        return f"error {error}"
    return "ok " + json.dumps({"cable": asdict(cable), "counts": asdict(rack.network.counts(host))})


def changed(cable: Cable, changes: str) -> Cable:
    """The cable with some members as a JSON object says. Raises LabError for what is no cable."""
    try:
        members = json.loads(changes)
        kinds = {name: type(value) for name, value in asdict(cable).items()}
        if not all(type(value) is kinds[name] for name, value in members.items()):
            raise TypeError(f"members are {', '.join(kinds)}")
        return replace(cable, **members)
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        raise LabError(f"no cable is like {changes!r}: {error!r}") from error


def answer(rack: Rack, client: socket.socket) -> str:
    """Carry out one command. Returns its name when it has ended the rack, or ""."""
    client.settimeout(5)
    command = ""
    try:
        command = client.recv(COMMAND_BYTES).decode(errors="replace").strip()
        if command == "poweroff":
            rack.power_off()
        elif command == "kill":
            rack.pull_the_plug()
        else:
            client.sendall(f"{inform(rack, command)}\n".encode())
            return ""
        client.sendall(b"ok\n")
    except OSError:
        return command if rack.hosts[0].ended() else ""
    return command


def main(arguments: list[str]) -> int:
    """Run one rack to its end. Exit code 0, or 1 when it did not boot."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _stop)
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    owner = Owner()
    try:
        description = RackDescription.load(arguments[0])
        print(f"booting rack {description.name} ...", flush=True)
        with Rack.boot(description) as rack, socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(StateDirectory(rack.description.name).control))
            listener.listen()
            print(f"ready {rack.description.name}", flush=True)
            owner.wait_detached()
            log = os.open(rack.logs / "supervisor.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.dup2(log, 1)
            os.dup2(log, 2)
            print(f"supervisor: {serve(rack, listener)}", flush=True)
            rack.pull_the_plug()
    except LabError as error:
        print(f"rack: {error}", file=sys.stderr)
        return 1
    except StoppedError as reason:
        print(f"supervisor: stopped by {reason}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
