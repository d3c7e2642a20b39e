# SPDX-License-Identifier: GPL-2.0
"""The raw round trip between two hosts, by dsmd's own transport: what the time of a fault is compared with.

Each transport, and each way to wait at both ends: to look for messages without sleeping, or to sleep until one is there. And a
page both ways that the other host's kernel answers: what a transport below user space would leave of a round trip.
"""

from __future__ import annotations

import dataclasses
import re
import statistics
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks.host_programs import FOLDER, events, running
from benchmarks.membench import QUANTILES, number, quantiles
from benchmarks.results import Metric
from lab import papers
from lab.command import checked, run_in
from lab.errors import LabError, Malformed
from lab.patience import scaled
from lab.rack import Rack

TRANSPORTS, WAITING = ("tcp", "rdma"), ("poll", "sleep")
KINDS = {"fault": "a question without a page, an answer with one", "page": "a page both ways"}
NAMES = ("alpha.bench.example", "beta.bench.example")
PORT = 4795
ROUNDS = 500
TIMEOUT_S = 240.0
ECHO_BYTES = 4096 + 32  # a message with a page


@dataclasses.dataclass(frozen=True)
class RoundTrips:
    """Times in ns of one transport and one way to wait, for each kind."""

    transport: str
    waiting: str
    rounds: int
    ns: Mapping[str, Mapping[str, int]]
    pages_per_second: float  # many under way


def parse(text: str, transport: str, waiting: str) -> RoundTrips:
    """What dsm_rtt of the host that asks has said. Raises Malformed."""
    found: dict[str, Mapping[str, int]] = {}
    rounds: set[int] = set()
    rates = []
    for event in events(text):
        if event.get("event") == "round_trips":
            found[str(event.get("what"))] = quantiles(event.get("ns"))
            rounds.add(number(event, "rounds"))
        elif event.get("event") == "stream":
            rates.append(1e9 * number(event, "pages") / max(1, number(event, "ns")))
    if set(found) != set(KINDS) or len(rounds) != 1 or len(rates) != 1:
        raise Malformed(f"dsm_rtt: wants {', '.join(KINDS)} and a stream, each once: {text[:400]!r}")
    return RoundTrips(transport, waiting, rounds.pop(), found, rates[0])


def prepare(folder: Path) -> None:
    """Certificates of both hosts, beside the programs."""
    papers.make(folder, NAMES)


def addresses(rack: Rack) -> tuple[str, str]:
    """Of the first two hosts, on the network between them. Raises LabError."""
    wires = [rack.description.wire(host.description.name) for host in rack.hosts[:2]]
    if None in wires or len(wires) != 2:
        raise LabError("the rack has no two hosts with a network between them")
    own, other = (wire.address() for wire in wires if wire)
    return own, other


def parse_echoes(text: str, rounds: int) -> list[float]:
    """Times in us of what ping(8) has printed. Raises Malformed if it is not one for each of `rounds`."""
    found = [float(ms) * 1000 for ms in re.findall(r"icmp_seq=\d+ ttl=\d+ time=([0-9.]+) ms$", text, re.MULTILINE)]
    if len(found) != rounds:
        raise Malformed(f"ping: {len(found)} answers to {rounds} questions: {text[-300:]!r}")
    return found


def kernel_echo(rack: Rack, rounds: int) -> Metric:
    """dsm.rtt.kernel.page_us: host 1 asks, host 0's kernel answers (ICMP). Raises LabError, Malformed."""
    answers, _ = addresses(rack)
    words = f"ping -n -c {rounds} -i 0.02 -W 10 -s {ECHO_BYTES} {answers}"
    found = sorted(parse_echoes(checked(run_in(rack.hosts[1]), words, scaled(TIMEOUT_S)), rounds))
    tenths = statistics.quantiles(found, n=10)
    return Metric(
        "dsm.rtt.kernel.page_us",
        statistics.median(found),
        "us",
        "lower",
        {"p10_us": tenths[0], "p90_us": tenths[-1], "max_us": found[-1]},
        note=f"median of {rounds}: {ECHO_BYTES} bytes both ways by ICMP; who asks sleeps, the other host's kernel answers",
    )


def measure(rack: Rack, transport: str, waiting: str, rounds: int = ROUNDS) -> RoundTrips:
    """One run: host 0 answers, host 1 asks. Raises LabError, Malformed."""
    own, other = addresses(rack)
    names = ",".join(NAMES)

    def words(number: int, here: str, there: str) -> str:
        return f"dsm_rtt {FOLDER} {transport} {number} {names} {here} {there} {PORT} {waiting} {rounds}"

    with running(rack.hosts[0], words(0, own, other)) as answering:
        answering.await_word("listening")
        with running(rack.hosts[1], words(1, other, own)) as asking:
            said = asking.finish(scaled(TIMEOUT_S))
        answering.finish(scaled(TIMEOUT_S))
    return parse(said, transport, waiting)


def metrics(found: Sequence[RoundTrips]) -> list[Metric]:
    """dsm.rtt.TRANSPORT.WAITING.KIND_us: medians, with the other quantiles beside them; and how quick a stream of pages is."""
    trips = [
        Metric(
            f"dsm.rtt.{each.transport}.{each.waiting}.{kind}_us",
            each.ns[kind]["p50"] / 1000,
            "us",
            "lower",
            {f"{name}_us": each.ns[kind][name] / 1000 for name in QUANTILES if name != "p50"},
            note=f"median of {each.rounds}: {KINDS[kind]}",
        )
        for each in found
        for kind in KINDS
    ]
    streams = [
        Metric(
            f"dsm.rtt.{each.transport}.{each.waiting}.stream_pages_per_second",
            each.pages_per_second,
            "1/s",
            "higher",
            note="questions without a page, answers with one, 32 under way",
        )
        for each in found
    ]
    return [*trips, *streams]
