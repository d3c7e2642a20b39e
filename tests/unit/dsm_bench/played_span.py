# SPDX-License-Identifier: GPL-2.0
"""Two hosts and a guest that spans them, played: commands in, texts out. A test changes one thing in what they say."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

from rich.console import Console

from benchmarks import span_demo
from benchmarks.program_output import Iteration, StreamRun
from benchmarks.story import Story
from lab.command import Done
from lab.guest import Guest
from lab.span_guest import STREAM, SlowSite, SpanShape

SLOW, MIB = 14, 2
PID = 321
PAGE = {"gfn": 0x1A2B, "symbol": "<jiffies>", "reads": 40, "writes": 2, "taken": 39, "per_second": 8.1}
Change = Callable[[str, str, Done], Done]  # of whom, to what command, what is answered: what is answered instead


def as_it_is(_who: str, _command: str, done: Done) -> Done:
    """Nothing is changed."""
    return done


class PlayedHost:
    """A dom0."""

    def __init__(self, world: World, name: str) -> None:
        self.world, self.description = world, SimpleNamespace(name=name)

    def run(self, command: Sequence[str] | str, timeout: float = 60, check: bool = False) -> Done:
        """Ask the world."""
        text = command if isinstance(command, str) else " ".join(command)
        return self.world.ask(self.description.name, text)

    def put(self, source: object, destination: str) -> None:
        """Noted only."""
        self.world.ask(self.description.name, f"put {destination}")

    def ended(self) -> bool:
        """Never."""
        return False

    def forget(self, guest: object) -> None:
        """Nothing is kept."""

    def guest(self, name: str) -> Guest:
        """The guest."""
        return PlayedGuest(self, name)


class PlayedGuest(Guest):
    """Commands in it are the world's, too."""

    def __init__(self, host: Any, name: str) -> None:
        self.world: World = host.world
        super().__init__(host, name)

    def run(self, command: Sequence[str] | str, *_more: object, **_named: object) -> Done:
        """Ask the world."""
        return self.world.ask("guest", command if isinstance(command, str) else " ".join(command))


class World:
    """What there is: `cpus` of each host; the team follows one question after the node has come or gone."""

    def __init__(self, change: Change = as_it_is, cpus: int = 1) -> None:
        self.change, self.cpus = change, cpus
        self.typed: list[tuple[str, str]] = []
        self.created = self.attached = self.started = self.ended = False
        self.ticks = 0
        self.teams: list[int] = []
        self.hosts = (PlayedHost(self, "alpha"), PlayedHost(self, "beta"))

    def site(self) -> SlowSite:
        """As slow_hosts() has it."""
        rack: Any = None
        home, other = self.hosts
        site: Any = SlowSite(rack, home, other, None, SLOW)  # type: ignore[arg-type]
        return site  # type: ignore[no-any-return]

    def ask(self, who: str, command: str) -> Done:
        """What a command says there."""
        self.typed.append((who, command))
        self.ticks += 1
        answer = self.guest(command) if who == "guest" else self.dom0(who, command)
        done = answer if isinstance(answer, Done) else Done(0, answer)
        return self.change(who, command, done)

    # --- dom0 ---

    def dom0(self, who: str, command: str) -> str | Done:
        """In the dom0 of a host."""
        here = self.created and (who == "alpha" or self.attached)
        rows: list[tuple[str, Callable[[], str | Done]]] = [
            ("^xl create", lambda: self.become(created=True)),
            ("^xl destroy", lambda: self.become(created=False, attached=False)),
            ("^xl vnode-attach", lambda: self.become(attached=True) + self.result("online")),
            ("^xl vnode-detach", lambda: self.become(attached=False) + self.result("offline")),
            ("^xl list$", lambda: "Name ID\n" + f"far-slice-alpha {self.slice()} 1\n" * (who == "beta" and self.attached)),
            (r"^ls .*\.sock", lambda: Done(0 if here else 2, "")),
            ("^dsmctl -j status", lambda: json.dumps([self.status(who)] if here else [])),
            ("^dsmctl -j .* top ", lambda: json.dumps({"pages": [PAGE]})),
            ("^dsmctl .* top ", lambda: "0x1a2b 40 2 39 <jiffies>\n"),
            ("^xl vnode-list", lambda: self.vnode_list("--json" in command)),
            ("xenstore-ls", self.keys),
        ]
        return next((answer() for pattern, answer in rows if re.search(pattern, command)), "")

    def slice(self) -> int:
        """The other host's domain of the guest."""
        return 2

    def become(self, **change: bool) -> str:
        """Another state."""
        for name, value in change.items():
            setattr(self, name, value)
        return ""

    def result(self, state: str) -> str:
        """What xl says of an operation that has ended."""
        return f"vnode 1: {state} (prepare 0.2 s, guest 3.1 s, settle 0.1 s)\n"

    def status(self, who: str) -> dict[str, object]:
        """Of dsmd."""
        fault = {"median_ns": 4000000, "p99_ns": 90000000}
        return {
            "state": "running", "read_faults": 20 * self.ticks, "write_faults": 7 * self.ticks, "read_fault": fault,
            "engine": {"frames_used": 300 * self.attached, "elsewhere": 200 * self.attached},
            "peers": {"x": {"sent": 50 * self.ticks, "received": 49 * self.ticks}} if self.attached else {},
        }  # fmt: skip

    def vnode_list(self, as_json: bool) -> str:
        """The table or the JSON."""
        there = list(range(self.cpus, 2 * self.cpus)) if self.attached else []
        host = {"name": "beta", "link": "up" if self.attached else "down", "cpus": there or None}
        vnodes = [{"vnode": 0, "host": None}, {"vnode": 1, "host": host}]
        return json.dumps([{"vnodes": vnodes}]) if as_json else f"vnode 1: on host beta, CPUs {there}\n"

    def keys(self) -> str:
        """Of xenstore."""
        state = "online" if self.attached else "offline"
        at = "/local/domain/1/vnuma/guest/node/1"
        return f'{at}/state = "{state}"   (n1)\n{at}/residual-kb = "0"\n{at}/phases = "populate=90000,cpus-up=210000"\n'

    # --- the guest ---

    def guest(self, command: str) -> str | Done:
        """In the guest."""
        if command == "numactl -H":
            return self.numactl()
        if "setsid" in command and STREAM in command:
            self.started = True
        elif command.startswith("kill -TERM"):
            self.ended = True
        elif command == f"cat {STREAM}":
            return self.printed()
        elif command.startswith("cat /proc/"):
            self.work()
            return self.program()
        return ""

    def numactl(self) -> str:
        """What it lists."""
        nodes = [(0, range(self.cpus), 380)] + ([(1, range(self.cpus, 2 * self.cpus), 126)] if self.attached else [])
        return "".join(
            f"node {n} cpus: {' '.join(map(str, cpus))}\nnode {n} size: {mib} MB\nnode {n} free: {mib // 2} MB\n"
            for n, cpus, mib in nodes
        )

    def work(self) -> None:
        """Some iterations; the team follows."""
        if not self.ended:
            self.teams += [self.cpus * (1 + self.attached)] * 2

    def run(self) -> StreamRun:
        """What stream_check has done so far."""
        iterations = [Iteration(n, 5.0 + n / 10, 30.0 + n, team, f"{n:016x}") for n, team in enumerate(self.teams, 1)]
        return StreamRun(PID, MIB, tuple(iterations), "00000000deadbeef" if self.ended else None, 0)

    def printed(self, first: int = 0) -> str:
        """The lines of it."""
        lines: list[dict[str, object]] = [{"event": "start", "pid": PID, "mib": MIB, "words": 1}]
        for each in self.run().iterations[first:]:
            words = {"n": each.n, "t": each.t, "ms": each.ms, "threads": each.threads, "sum": each.sum}
            lines.append({"event": "iteration", **words})
        if self.ended:
            words = {"iterations": len(self.teams), "checksum": self.run().checksum or "", "wrong_words": 0}
            lines.append({"event": "result", **words})
        return "".join(json.dumps(line) + "\n" for line in lines)

    def program(self) -> str:
        """What program_question() asks for."""
        # Threads that a team needs no more sleep on, with the CPU that they had.
        cpus, online = range(max(self.teams)), self.cpus * (1 + self.attached) - 1
        away = MIB * 128 * self.attached
        maps = (
            f"55d0 default anon={MIB * 256} N0={MIB * 256 - away}{f' N1={away}' if away else ''} kernelpagesize_kB=4\n"
        )
        stats = "".join(f"{PID + cpu} (a b) S {' '.join(['0'] * 35)} {cpu} 0 0\n" for cpu in cpus)
        tail = self.printed(max(len(self.teams) - 4, 0))
        return "\n=====\n".join([maps, f"0-{online}\n{stats}" if online else f"0\n{stats}", tail])


def played(change: Change = as_it_is, cpus: int = 1) -> tuple[span_demo.SpanDemo, World, io.StringIO]:
    """A demo that is not yet run, on a world, and what it says on the terminal."""
    said = io.StringIO()
    times = iter(range(10**6))
    world = World(change, cpus)
    story = Story(Console(file=said, width=200), lambda: float(next(times)))
    shape = SpanShape(cpus=cpus, lpj=7)
    return span_demo.SpanDemo(world.site(), shape, story, MIB), world, said


def instead(who: str, pattern: str, answer: Done | Callable[[Done], Done]) -> Change:
    """Another answer for whom, to commands in which the pattern is found."""

    def change(asked: str, command: str, done: Done) -> Done:
        if asked == who and re.search(pattern, command):
            return answer(done) if callable(answer) else answer
        return done

    return change
