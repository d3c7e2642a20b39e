#!/usr/bin/env python3
# SPDX-License-Identifier: GPL-2.0
"""A dsmd for dsmd-host: its words are real, its memory is a file beside its description.

What it is asked is written to ``asked`` there, ``status`` to ``status.asked``.

A file ``answers`` (beside ``vm.json``, or two folders up) has lines
"COMMAND => error: WORD TEXT", "COMMAND => hang" or "COMMAND => die": what it does instead when it is asked that;
"COMMAND => wait": it does it when the line is gone.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sys
import time
from pathlib import Path


def notify(text: str) -> None:
    path = os.environ.get("NOTIFY_SOCKET")
    if path:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as words, contextlib.suppress(OSError):
            words.sendto(text.encode(), path)


class Played:
    def __init__(self, folder: Path, description: Path) -> None:
        self.vm = json.loads(description.read_text(encoding="utf-8"))
        self.at = folder
        self.asked = folder / "asked"
        self.there: dict[int, str] = {}  # vCPUs that are not at home
        self.connected: set[str] = set()
        self.size = {one["vnode"]: 0 for one in self.vm["ranges"] if one.get("attached") is False}

    def instead(self, command: str) -> str:
        answers = self.at / "answers"
        if answers.exists():
            for line in answers.read_text(encoding="utf-8").splitlines():
                asked, _, what = line.partition(" => ")
                if command.startswith(asked):
                    return what
        return ""

    def state(self) -> str:
        rows = [
            {
                "vnode": vnode,
                "link": "up" if size else "down",
                "size_kib": size,
                "pages_modified": 0,
                "pages_shared": 0,
                "pages_home": size // 4,
                "faults_per_second": 0,
                "median_ns": 0,
                "p99_ns": 0,
            }
            for vnode, size in self.size.items()
        ]
        said: dict[str, object] = {"vnodes": rows}
        if "places" in self.vm:
            said["vcpus"] = [{"vcpu": vcpu, "host": host} for vcpu, host in sorted(self.there.items())]
            said["paused"] = ["beta"] if self.instead("paused") else []
        return json.dumps(said) + "\n"

    def place(self, vcpus: str, host: str | None) -> None:
        for run in vcpus.split(","):
            first, _, last = run.partition("-")
            for vcpu in range(int(first), int(last or first) + 1):
                self.there.pop(vcpu, None)
                if host:
                    self.there[vcpu] = host

    def answer(self, command: str) -> str:
        if command != "state":
            file = self.at / "status.asked" if command == "status" else self.asked
            with file.open("a", encoding="utf-8") as lines:
                lines.write(command + "\n")
        while (instead := self.instead(command)) == "wait":
            time.sleep(0.02)
        if instead == "hang":
            time.sleep(600)
        if instead == "die":
            os._exit(9)
        if instead:
            return instead + "\n"
        words = command.split()
        if words[0] == "state":
            return "ok\n" + self.state()
        if words[0] == "status":
            hosts = {one["host"] for one in self.vm["ranges"]}
            peers = {name: {"up": name in self.connected} for name in sorted(hosts)}
            said = {"state": self.instead("is") or "running", "failure": "a reason", "peers": peers, "size": self.size}
            return "ok\n" + json.dumps(said) + "\n"
        if words[0] == "connect":
            self.connected.add(words[1])
        if words[0] == "leave":
            self.connected.discard(words[1])
        if words[0] in {"place", "home"}:
            self.place(words[-1], words[1] if words[0] == "place" else None)
        if words[0] == "node":
            self.size[int(words[1])] = int(words[2])
        return "ok\n"

    def serve(self) -> None:
        path = self.at / f"{self.vm['name']}.sock"
        with socket.socket(socket.AF_UNIX) as server:
            server.bind(str(path))
            server.listen()
            notify("READY=1\nSTATUS=running")
            over = False
            while not over:
                client, _ = server.accept()
                with client, contextlib.suppress(OSError):
                    command = client.makefile().readline().strip()
                    client.sendall(self.answer(command).encode())
                    over = command.startswith("forget")
        path.unlink()


def main() -> int:
    words = sys.argv[1:]
    folder = Path(words[words.index("-f") + 1])
    played = Played(folder, Path(words[-1]))
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    why = played.instead("start")
    if why == "hang":
        time.sleep(600)
    if why.startswith("slice "):
        # It had made one, of which its Xen knows.
        _, domid, why = why.split(" ", 2)
        with Path(os.environ["HOST_XEN"]).open("a", encoding="utf-8") as xen:
            xen.write(f"domain {domid} {played.vm['uuid']} slice\n")
    if why:
        notify(f"STATUS={why}")
        return 3
    (folder / f"{played.vm['name']}.sock").unlink(missing_ok=True)
    played.serve()
    return 0


if __name__ == "__main__":
    sys.exit(main())
