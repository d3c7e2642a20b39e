# SPDX-License-Identifier: GPL-2.0
"""Two hosts and a guest that spans them, played for `make bench-span`: programs say what they would, and counters move."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable

from benchmarks.span import PAUSE_S, SpanBench
from lab.command import Done
from lab.span_guest import SpanShape
from tests.unit.dsm_bench.played_span import SLOW, Change, World, as_it_is

# What one run of a program costs each host while there are two: faults, messages sent, of 100 bytes each; a fault takes 5 ms.
# Xen has some waits fewer: an access that was missed twice.
FAULTS, SENT, BYTES = {"alpha": 40, "beta": 60}, {"alpha": 150, "beta": 130}, 100
WAITS = {"alpha": 30, "beta": 50}
FAULT_NS, QUEUE_NS, WIRE_NS, INSTALL_NS, RING_NS = 5_000_000, 500_000, 3_500_000, 1_000_000, 700_000
TRAP_NS, WAKE_NS = 20_000, 110_000
SERVE_NS = {"alpha": 1_500_000, "beta": 1_200_000}
ROUND_TRIP_NS = 2_500_000
OUT_NS, IN_NS = {"alpha": 310_000, "beta": 370_000}, {"alpha": 90_000, "beta": 70_000}  # of interrupts
# Guest ns of a call, by what and whether a CPU at home calls.
CALL_NS = {
    ("membarrier", True): 90_000_000, ("membarrier", False): 110_000_000, ("nothing", True): 40_000_000,
    ("wake", True): 60_000_000, ("version", True): 100, ("version", False): 110, ("status", True): 120,
    ("status", False): 900_000,
}  # fmt: skip
# Guest seconds of all iterations, home and both, of which the first one takes as long as two.
SECONDS = {"npb_ep": (3.0, 1.5), "npb_is": (0.1, 0.5), "stream": (0.05, 5.0), "npb_cg": (0.2, 8.0)}
STEPS = 4
# CPUs meet before some calls: that takes a part of what the call does, one in so many.
MET = {"membarrier": 10}
# While nothing is called the home interrupts the other host once in so many times.
STRAY = 10
# Begin and end of span_latency cost as much as so many calls, and a call of "nothing" this share of another one.
AROUND, NOTHING = 7, 2


def call_ns(what: str, home: bool, rounds: int) -> list[int]:
    """Of each call of a run, guest ns: each takes a hundredth of the first one longer."""
    base = CALL_NS[what, home]
    return [base + n * base // 100 for n in range(rounds)]


COPY_NS = {
    "map": 1000,
    "populate": 20_000_000,
    "memcpy": 10_000_000,
}  # guest ns; three times that for pages of the first host


class BenchWorld(World):
    """The programs of the benchmark; each that runs on both hosts costs pages there."""

    def __init__(self, change: Change = as_it_is, cpus: int = 1) -> None:
        super().__init__(change, cpus)
        self.work_done: Counter[str] = Counter()
        self.switches: dict[str, dict[str, str]] = {"alpha": {}, "beta": {}}
        self.ran: list[str] = []
        self.calls = self.attaches = 0
        self.interrupts: Counter[str] = Counter()
        self.arguments = ""  # of the guest's kernel

    # --- dom0 ---

    def dom0(self, who: str, command: str) -> str | Done:
        """In the dom0 of a host."""
        if "dsm-stats" in command:
            assert self.attached, "a domain without DSM"
            assert command.rsplit(maxsplit=1)[-1] == str(self.slice() if who == "beta" else 1), "another domain"
            done = self.work_done[who] * WAITS[who]
            return json.dumps(
                {
                    "waits": done,
                    "wait_ns": done * (FAULT_NS + RING_NS),
                    "trap_ns": done * TRAP_NS,
                    "wake_ns": done * WAKE_NS,
                }
            )
        if "dsmctl set" in command:
            self.switches[who].update(word.split("=") for word in re.findall(r"\w+=\d+", command))
            return ""
        if command.startswith("xl domid"):
            return "1\n"
        if found := re.search(r"\nextra = \"(.*)\"\n", command):
            self.arguments = found[1]
        if command.startswith(("dsmctl status", "dsmctl hosts", "tail ")):
            return "shown\n"
        return super().dom0(who, command)

    def slice(self) -> int:
        """Another number after each attach."""
        return 1 + self.attaches

    def become(self, **change: bool) -> str:
        """Another state, which costs as much as a program; the other host's dsmd begins anew."""
        if "attached" in change:
            self.attaches += change["attached"]
            self.work_done["alpha"] += 1
            self.work_done["beta"] = 0
        return super().become(**change)

    def status(self, who: str) -> dict[str, object]:
        """Of dsmd."""
        runs = self.work_done[who]
        faults = runs * FAULTS[who]

        def histogram(each: int, number: int = faults) -> dict[str, int]:
            return {"count": number, "sum_ns": number * each, "median_ns": each * 3 // 4, "p99_ns": each * 2}

        sent = runs * SENT[who]
        peer = {
            "up": True, "sent": sent, "received": sent, "sent_bytes": sent * BYTES, "sent_pages": faults,
            "round_trip": {**histogram(3 * ROUND_TRIP_NS, 9), "median_ns": ROUND_TRIP_NS}, "clock": {"error_ns": 4000},
        }  # fmt: skip
        return {
            "state": "running", "read_faults": faults // 2, "write_faults": faults - faults // 2,
            # A fifth of misses are asked for twice.
            "read_fault": histogram(FAULT_NS, faults // 2), "write_fault": histogram(FAULT_NS, faults * 4 // 5 - faults // 2),
            "phases": {
                "queue": histogram(QUEUE_NS), "wire": histogram(WIRE_NS), "install": histogram(INSTALL_NS),
                "serve": histogram(SERVE_NS[who], runs + 1),
                "ipi_out": histogram(OUT_NS[who], self.interrupts[who]),
                "ipi_in": histogram(IN_NS[who], self.interrupts["beta" if who == "alpha" else "alpha"]),
            },
            "engine": {
                "frames_used": 1, "elsewhere": 1,
                # A third by the local APIC.
                "vcpu_events": self.interrupts[who] // 3, "vcpu_ports": self.interrupts[who] - self.interrupts[who] // 3,
                "vcpu_calls": self.calls * (who == "beta"), "vcpu_calls_done": self.calls * (who == "alpha"),
                "vcpu_calls_again": 0, "prefetches": 0, "cleared": 0,
            },
            "poll": {"looks": 0, "found": 0, "sleeps": 0},
            "peers": {"x": peer if self.attached else {**peer, "up": False, "sent": 0, "sent_bytes": 0, "sent_pages": 0}},
        }  # fmt: skip

    # --- the guest ---

    def guest(self, command: str) -> str | Done:
        """In the guest."""
        found = re.match(
            r"(?:timeout ([\d.]+) )?(?:taskset -c (\S+) (?:env .*?)?)?/opt/xenuma/bin/(\w+) (.*?) >/tmp/span.out",
            command,
        )
        if not found:
            return super().guest(command)
        limit, cpus, program, words = found.groups()
        self.ran.append(f"{program} {words} {cpus or ''}".strip())
        rows: dict[str, Callable[[], tuple[int, str, str]]] = {
            "span_kv": lambda: (0, "", self.kv(words)),
            "span_latency": lambda: self.latency(words),
            "dsm_membench": lambda: (0, "", self.copied(words)),
        }
        status, wrong, text = rows.get(program, lambda: self.kernel(program, float(limit), cpus))()
        if self.attached:
            work = self.cost(words) if program == "span_latency" else 2 if "paged" in words else 1
            self.work_done.update({"alpha": work, "beta": work})
        return f"{status}\n{wrong}\n==\n{text}"

    def cost(self, words: str) -> int:
        """Of span_latency, in runs of a program."""
        what, rounds = re.findall(r"--what=(\w+)", words)[0], int(re.findall(r"--rounds=(\d+)", words)[0])
        return AROUND + (rounds if what == "nothing" else rounds * NOTHING)

    def kernel(self, program: str, limit: float, cpus: str) -> tuple[int, str, str]:
        """What it has said until its end, or until `limit` seconds of the guest were over."""
        threads = len(cpus.split(","))
        seconds = SECONDS[program][threads == 2 * self.cpus] / STEPS
        lines: list[dict[str, object]] = [{"event": "start", "program": program, "class": "S", "pid": 7, "bytes": 4096}]
        ends = [(n + 1) * seconds for n in range(1, STEPS + 1)]
        for n, end in enumerate((end for end in ends if end <= limit), 1):
            ms = seconds * 1000 * (2 if n == 1 else 1)
            words = {"n": n, "t": end, "ms": ms, "threads": threads, "user_s": 1.0, "system_s": 0.1}
            lines.append({"event": "iteration", **words})
        over = ends[-1] > limit
        if not over:
            lines.append({
                "event": "result", "verified": True, "rounds": 1, "iterations": STEPS, "seconds": 1.0, "user_s": 1.0,
                "system_s": 0.1, "user_ticks_s": 1.0, "system_ticks_s": 0.1, "gap_ms": 1.0, "minor_faults": 0,
                "major_faults": 0, "bytes": 4096,
            })  # fmt: skip
        return 124 if over else 0, "", "".join(json.dumps(line) + "\n" for line in lines)

    def rate(self, layout: str) -> int:
        """Guest ns of an operation, of all threads together."""
        fast = self.switches["beta"].get("prefetch", "0") != "0"
        return 1000 if not self.attached else 1_000_000 // ((1 + fast) * (2 if layout == "paged" else 1))

    def kv(self, words: str) -> str:
        """A run of the store."""
        layout, ops = re.findall(r"--layout=(\w+)", words)[0], int(re.findall(r"--ops=(\d+)", words)[0])
        cpus = re.findall(r"--cpus=(\S+)", words)[0].split(",")
        whole = ops * len(cpus)
        lines: list[dict[str, object]] = [
            {"event": "start", "layout": layout, "threads": len(cpus), "keys": 64, "bytes": 8192},
            {"event": "step", "what": "load", "ops": 64, "ns": 64 * 2 * self.rate(layout)},
            {"event": "step", "what": "mix", "ops": whole, "ns": whole * self.rate(layout)},
            *({"event": "thread", "cpu": int(cpu), "gets": ops, "puts": 0, "p50_ns": 5, "p99_ns": 9} for cpu in cpus),
            {"event": "result", "gets": whole, "puts": 0, "torn": 0, "old": 0, "missing": 0, "lost": 0},
        ]
        return "".join(json.dumps(line) + "\n" for line in lines)

    def copied(self, words: str) -> str:
        """Memory of a node is written for the first time: one that is not the other host's costs twice as much there."""
        given = dict(word.removeprefix("--").split("=") for word in words.split()[1:])
        far = given["node"] == "0" and int(given["cpus"]) >= self.cpus
        if far:
            self.work_done.update(("alpha", "beta"))
        times = {f"{step}_ns": ns * (3 if far else 1) for step, ns in COPY_NS.items()}
        mib, rounds = int(given["mib"]), int(given["rounds"])
        lines: list[dict[str, object]] = [
            {"event": "copy", "round": n, "threads": len(given["cpus"].split(",")), "mib": mib, **times}
            for n in range(rounds)
        ]
        lines.append({"event": "result", "checks": mib * 256, "bad_pages": 0, "accesses": 0, "access_ns": 0})
        return "".join(json.dumps(line) + "\n" for line in lines)

    def latency(self, words: str) -> tuple[int, str, str]:
        """Calls between CPUs, or to Xen."""
        what, rounds = re.findall(r"--what=(\w+)", words)[0], int(re.findall(r"--rounds=(\d+)", words)[0])
        cpus = [int(cpu) for cpu in re.findall(r"--cpus=(\S+)", words)[0].split(",")]
        if what in ("version", "status") and "xen_privcmd.unrestricted=1" not in self.arguments.split():
            return 1, f"span_latency: {what}: Operation not permitted", ""
        ns = call_ns(what, cpus[0] == 0, rounds)
        said: dict[str, object] = {"event": "calls", "what": what, "cpus": cpus, "ns": ns}
        if what == "wake":
            # What is reckoned with is what the program was asked for, by the guest's clock.
            assert int(re.findall(r"--us=(\d+)", words)[0]) == round(PAUSE_S * 1e6 / SLOW), words
            said |= {"slept": 2 * rounds - 1, "back_ns": [each // 2 for each in ns]}
        if what in MET:
            said["met_ns"] = [each // MET[what] for each in ns]
        if what in ("wake", "membarrier"):
            self.interrupts["beta" if cpus[0] else "alpha"] += rounds
        if what == "wake":
            self.interrupts["beta"] += rounds
        if what == "nothing":
            self.interrupts["alpha"] += rounds // STRAY
        if what == "status" and cpus[0]:
            self.calls += rounds
        return 0, "", json.dumps(said) + "\n"


def played_bench(change: Change = as_it_is, cpus: int = 1, **named: object) -> tuple[SpanBench, BenchWorld]:
    """A benchmark that is not yet run, on a world."""
    world = BenchWorld(change, cpus)
    bench = SpanBench(world.site(), SpanShape(cpus=cpus, lpj=7), **named)  # type: ignore[arg-type]
    assert bench.site.slow == SLOW
    return bench, world
