# SPDX-License-Identifier: GPL-2.0
"""What both hosts of a guest have counted, before and after something: dsmd's counters and Xen's of its slice there.

A host counts what its own CPUs miss, and what it sends: so of both together each message, each byte and each page counts once.
All times are of the hosts' clock.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from lab.errors import LabError, Malformed

HERE = ("queue", "wire", "install")  # of a fault; `serve` is the other host's part of `wire`
INTERRUPT = ("ipi_out", "ipi_in")  # for the other host, with events for its ports; and from there
PHASES = (*HERE, "serve", *INTERRUPT)
HOME, AWAY = 0, 1
PLACES = ("home", "away")


@dataclasses.dataclass(frozen=True)
class HostCounts:
    """Of one host, since its dsmd began, or between two times."""

    faults: int = 0
    fault_ns: int = 0  # by dsmd's clock
    fault_waits: int = 0  # of vCPUs, that fault_ns are of: one that asks again before its page has come waits once
    waits: int = 0  # of vCPUs, by Xen: several may wait for one page
    wait_ns: int = 0
    trap_ns: int = 0  # before them, and behind them: dsm.h
    wake_ns: int = 0
    messages: int = 0  # sent
    bytes: int = 0
    pages: int = 0
    interrupts: int = 0  # of the local APIC, for vCPUs of the other host
    events: int = 0  # times that some were sent to ports of the other host
    calls: int = 0  # hypercalls that are done at the other host
    calls_done: int = 0  # here, for the other host
    calls_again: int = 0
    prefetches: int = 0
    cleared: int = 0
    looks: int = 0
    sleeps: int = 0
    phase_counts: Mapping[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(PHASES, 0))
    phase_ns: Mapping[str, int] = dataclasses.field(default_factory=lambda: dict.fromkeys(PHASES, 0))

    def _with(self, other: HostCounts, sign: int) -> HostCounts:
        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            if isinstance(one, int):
                values[field.name] = one + sign * two
            else:
                values[field.name] = {key: number + sign * two[key] for key, number in one.items()}
        return HostCounts(**values)

    def since(self, before: HostCounts) -> HostCounts:
        """What happened in between. Raises Malformed if something went down: another dsmd."""
        left = self._with(before, -1)
        for field in dataclasses.fields(left):
            value = getattr(left, field.name)
            if min(value.values() if isinstance(value, Mapping) else (value,)) < 0:
                raise Malformed(f"{field.name} went from {getattr(before, field.name)} to {getattr(self, field.name)}")
        return left

    def plus(self, other: HostCounts) -> HostCounts:
        """What happened in two times together."""
        return self._with(other, 1)

    def without_wire(self) -> HostCounts:
        """Less what is known while the hosts are connected: a connection that is made anew, or is gone, has counted nothing."""
        return dataclasses.replace(self, messages=0, bytes=0, pages=0, waits=0, wait_ns=0, trap_ns=0, wake_ns=0)

    def mean_us(self, phase: str) -> float:
        """Of a phase that dsmd measures. Raises Malformed if there was none."""
        if not self.phase_counts[phase]:
            raise Malformed(f"no request was seen in the phase '{phase}'")
        return self.phase_ns[phase] / self.phase_counts[phase] / 1000


def host_counts(status: Mapping[str, Any], xen: Mapping[str, Any]) -> HostCounts:
    """From `dsmctl -j status` and dsm-stats; nothing if the guest has no dsmd there, or one without other hosts.

    Raises Malformed, LabError for a guest that has failed.
    """
    if status.get("state") == "failed":
        raise LabError(f"the guest has failed: {status.get('failure')}")
    if "engine" not in status:
        return HostCounts()
    try:
        engine, peers = status["engine"], list(status["peers"].values())
        return HostCounts(
            faults=int(status["read_faults"]) + int(status["write_faults"]),
            fault_ns=sum(int(status[key]["sum_ns"]) for key in ("read_fault", "write_fault")),
            fault_waits=sum(int(status[key]["count"]) for key in ("read_fault", "write_fault")),
            waits=int(xen["waits"]),
            wait_ns=int(xen["wait_ns"]),
            trap_ns=int(xen["trap_ns"]),
            wake_ns=int(xen["wake_ns"]),
            messages=sum(int(peer["sent"]) for peer in peers),
            bytes=sum(int(peer["sent_bytes"]) for peer in peers),
            pages=sum(int(peer["sent_pages"]) for peer in peers),
            interrupts=int(engine["vcpu_events"]),
            events=int(engine["vcpu_ports"]),
            calls=int(engine["vcpu_calls"]),
            calls_done=int(engine["vcpu_calls_done"]),
            calls_again=int(engine["vcpu_calls_again"]),
            prefetches=int(engine["prefetches"]),
            cleared=int(engine["cleared"]),
            looks=int(status["poll"]["looks"]),
            sleeps=int(status["poll"]["sleeps"]),
            phase_counts={phase: int(status["phases"][phase]["count"]) for phase in PHASES},
            phase_ns={phase: int(status["phases"][phase]["sum_ns"]) for phase in PHASES},
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Malformed(f"counters: {error!r} in {str(status)[:200]} {str(xen)[:100]}") from error


@dataclasses.dataclass(frozen=True)
class Counts:
    """Of both hosts, the home first."""

    home: HostCounts = HostCounts()
    away: HostCounts = HostCounts()

    @property
    def both(self) -> tuple[HostCounts, HostCounts]:
        """In the order of PLACES."""
        return self.home, self.away

    def since(self, before: Counts) -> Counts:
        """What happened in between. Raises Malformed."""
        return Counts(self.home.since(before.home), self.away.since(before.away))

    def plus(self, other: Counts) -> Counts:
        """What happened in two times together."""
        return Counts(self.home.plus(other.home), self.away.plus(other.away))

    def total(self, what: str) -> int:
        """Of both hosts."""
        return sum(int(getattr(each, what)) for each in self.both)

    def costs(self) -> dict[str, float]:
        """What something cost besides time: faults by host, and what went over the wire."""
        return {
            "faults_home": float(self.home.faults),
            "faults_away": float(self.away.faults),
            **{what: float(self.total(what)) for what in ("faults", "messages", "bytes", "pages")},
        }


@dataclasses.dataclass(frozen=True)
class Line:
    """What dsmd knows of the connection: its own round trip (TLS, both ends as they come), and how well clocks are known."""

    round_trip_us: float
    questions: int
    clock_error_us: float


def line_of(status: Mapping[str, Any]) -> Line:
    """From `dsmctl -j status`. Raises Malformed, also if nothing was asked yet."""
    try:
        (peer,) = status["peers"].values()
        round_trip = peer["round_trip"]
        found = Line(
            int(round_trip["median_ns"]) / 1000, int(round_trip["count"]), int(peer["clock"].get("error_ns", 0)) / 1000
        )
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise Malformed(f"dsmctl: {error!r} in {str(status)[:300]}") from error
    if not found.questions or found.round_trip_us <= 0:
        raise Malformed(f"dsmd has seen no round trip: {found}")
    return found
