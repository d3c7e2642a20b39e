# SPDX-License-Identifier: GPL-2.0
"""`make bench-span`, played: what runs when, what becomes of what it says, and what is left out if something fails."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import re
import statistics
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from benchmarks import results, span, span_figures
from benchmarks.results import Metric, encode, problems, read
from benchmarks.span import KERNELS, PARTS, Publisher, xl_phases
from benchmarks.span_counts import Counts, HostCounts, host_counts, line_of
from benchmarks.span_figures import KV_SETTINGS, LIMITS, OWNERS, CallsRun, Seen, metrics, quantile, ratio
from benchmarks.span_output import parse_calls, parse_kv
from lab.command import Done
from lab.errors import LabError, Malformed
from lab.rack import Rack
from lab.span_guest import SpanShape
from tests.unit.dsm_bench.played_span import SLOW, Change, instead
from tests.unit.dsm_bench.played_span_bench import (
    BYTES,
    COPY_NS,
    FAULT_NS,
    FAULTS,
    IN_NS,
    INSTALL_NS,
    MET,
    NOTHING,
    OUT_NS,
    QUEUE_NS,
    RING_NS,
    ROUND_TRIP_NS,
    SECONDS,
    SENT,
    SERVE_NS,
    STEPS,
    STRAY,
    TRAP_NS,
    WAITS,
    WAKE_NS,
    WIRE_NS,
    BenchWorld,
    call_ns,
    played_bench,
)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Git."""
    monkeypatch.setattr(results, "_commit", lambda: "0123456789ab")


@pytest.fixture(scope="module")
def whole() -> tuple[Seen, BenchWorld]:
    """All that a run sees in which nothing goes wrong."""
    bench, world = played_bench()
    bench.run(lambda seen: [])
    assert bench.failed == []
    return bench.seen, world


def by_name(found: list[Metric]) -> dict[str, Metric]:
    assert len({metric.metric for metric in found}) == len(found)
    return {metric.metric: metric for metric in found}


# --- what runs ------------------------------------------------------------------------------------------------------------


def check_order(seen: Seen) -> None:
    """There and back: what gets slower or quicker by and by counts for all."""
    assert [run.setting for run in seen.kv] == ["home", *KV_SETTINGS, "home", *reversed(KV_SETTINGS)]
    sizes = [len(run.calls.ns) for run in seen.calls if run.key == ("wake", 0)]
    assert sizes == [5, 25, 25, 5]


@pytest.mark.parametrize("cpus", [1, 2])
def test_there_and_back(cpus: int) -> None:
    """Home, both, home, both; the store's settings turn round; nothing is left."""
    bench, world = played_bench(cpus=cpus)
    bench.run(lambda seen: [])
    assert bench.failed == []
    typed = [command.split()[1] for who, command in world.typed if who == "alpha" and command.startswith("xl vnode-")]
    assert [word for word in typed if "list" not in word] == ["vnode-attach", "vnode-detach"] * 2
    teams = [run.threads for run in bench.seen.kernels]
    assert teams == [*[cpus] * len(KERNELS), *[2 * cpus] * len(KERNELS)] * 2
    check_order(bench.seen)
    assert {run.kv.ops["mix"] for run in bench.seen.kv if run.setting != "home"} == {bench.ops * 2 * cpus}
    assert [run.owner for run in bench.seen.ownership] == [*OWNERS, *reversed(OWNERS)]
    assert all(cpu in (0, cpus) for run in bench.seen.calls for cpu in run.calls.cpus)
    home, both = (",".join(map(str, range(n * cpus))) for n in (1, 2))
    assert {line.rpartition(" ")[2] for line in world.ran if line.startswith("npb")} == {home, both}
    assert all(switches["prefetch"] == "0" == switches["poll_us"] for switches in world.switches.values())
    assert not world.created


def test_switches_are_those_of_the_setting(whole: tuple[Seen, BenchWorld]) -> None:
    """On both hosts, before the run that is of that setting; what is measured behind the store has them off."""
    _, world = whole
    for who in ("alpha", "beta"):
        on, seen, behind = "", [], set()
        for whose, command in world.typed:
            if whose == who and "dsmctl set" in command:
                on = "on" if "prefetch=16" in command else "off"
            elif found := re.search(r"span_kv --cpus=0,1 --ops=\d+ --layout=(\w+)", command):
                seen.append((on, found[1]))
            elif re.search(r"/(?:span_latency|dsm_membench) ", command):
                behind.add(on)
        assert behind == {"off"}
        there = [("off", "packed"), ("on", "packed"), ("off", "paged"), ("on", "paged")]
        # Two runs say how many operations.
        assert seen == [*[("off", "packed")] * 2, *there, *reversed(there)]


def test_a_time_limit_is_of_the_hosts_clock(whole: tuple[Seen, BenchWorld]) -> None:
    """timeout(1) goes by the guest's, which is slower; what was done until then counts, and is not called verified."""
    seen, world = whole
    limits = {float(found[1]) for _, command in world.typed if (found := re.match(r"timeout ([\d.]+) ", command))}
    assert sorted(limits) == [pytest.approx(each / SLOW, abs=1e-3) for each in (span.KERNEL_S, span.LIMIT_S)]
    cut = [run for run in seen.kernels if run.cut]
    assert {(run.program, run.both, len(run.ms)) for run in cut} == {("stream", True, 2)}
    named = by_name(metrics(seen)[0])
    assert "2 of 2 runs were cut off, and so not verified" in named["span.stream.both.ms"].note
    assert "; all verified" in named["span.npb_ep.both.ms"].note


def test_programs_are_chosen() -> None:
    """With more time than they have by default."""
    bench, world = played_bench(parts=["kernels"], rounds=1, programs=["npb_cg"], seconds=200)
    bench.run(lambda seen: [])
    assert bench.failed == [] and [(run.both, run.cut) for run in bench.seen.kernels] == [(False, False), (True, False)]
    assert {line.split()[0] for line in world.ran} == {"npb_cg"}
    assert span.programs_of("npb_cg,stream") == ("npb_cg", "stream")


@pytest.mark.parametrize("arguments", ["", "quiet"])
def test_hypercalls_of_programs_are_allowed(arguments: str) -> None:
    """Linux refuses those of a guest's programs unless its command line says otherwise."""
    world = BenchWorld()
    bench = span.SpanBench(world.site(), SpanShape(lpj=7, arguments=arguments), ["calls"], 1)
    bench.run(lambda seen: [])
    assert bench.failed == []
    assert set(f"{arguments} xen_privcmd.unrestricted=1".split()) <= set(world.arguments.split())


@pytest.mark.parametrize(
    ("ns", "tried"),
    [
        (10**8, [30]),  # 84 s: enough, and too many
        (10**6, [30, 214]),
        (10**4, [30, 300, 3000, 21429]),  # no more than ten times as many, and what takes half of it
        (1, [30, 300, 3000, 30000, 100000]),
    ],
)
def test_how_many_operations(monkeypatch: pytest.MonkeyPatch, ns: int, tried: list[int]) -> None:
    """So many as take KV_S, by a run that is not much shorter."""
    monkeypatch.setattr(BenchWorld, "rate", lambda *_: ns)
    bench, world = played_bench()
    with contextlib.suppress(LabError):
        world.attached = True
        ops = bench.enough(world.hosts[0].guest("far"))
    assert [int(found[1]) for line in world.ran if (found := re.search(r"--ops=(\d+)", line))] == tried
    wanted = span.KV_S / (2 * ns * SLOW / 1e9)
    assert ops == min(max(round(wanted), span.FIRST_OPS), span.MOST_OPS)


def test_parts_are_chosen() -> None:
    for part in PARTS:
        bench, _ = played_bench(parts=[part], rounds=1)
        bench.run(lambda seen: [])
        assert bench.failed == [] and len(bench.seen.operations) == 2
        assert {name: bool(getattr(bench.seen, name)) for name in PARTS} == {name: name == part for name in PARTS}


# --- figures --------------------------------------------------------------------------------------------------------------


# Of home: each way costs what one run of a program does.
FAULTS_OF_OPERATIONS = {"attach": FAULTS["alpha"], "detach": FAULTS["alpha"]}


BOTH = sum(FAULTS.values())
Values = Mapping[str, float | None]
Beside = Mapping[str, Mapping[str, float | str]]


def all_ns(what: str, home: bool) -> list[int]:
    """Of both rounds: all calls, guest ns."""
    return sorted(2 * [ns for rounds in span.ROUNDS[what] for ns in call_ns(what, home, rounds)])


def middle(what: str, home: bool) -> float:
    """Median of all calls, us of the hosts."""
    return statistics.median(all_ns(what, home)) * SLOW / 1000


def more_s(what: str, home: bool) -> float:
    """How much longer one call more makes a run, guest s."""
    few, many = (sum(call_ns(what, home, rounds)) / 1e9 for rounds in span.ROUNDS[what])
    return (many - few) / (span.ROUNDS[what][1] - span.ROUNDS[what][0])


def whole_s(what: str, home: bool) -> float:
    """The same with what is between calls: of "wake" ways back, which take half as long, and pauses; else they meet."""
    seconds = more_s(what, home) * (1.5 if what == "wake" else 1 + 1 / MET[what] if what in MET else 1)
    return seconds + (span.PAUSE_S / SLOW if what == "wake" else 0)


def share_of(what: str, home: bool) -> float:
    """How many calls of "nothing" take as long."""
    return whole_s(what, home) / whole_s("nothing", True)


def check_split(split: Mapping[str, float | str], what: str, home: bool, names: Mapping[str, str]) -> None:
    """A call costs NOTHING runs of a program, and one of "nothing" one, for so long; begin and end do not count."""
    each = {name: number * (FAULT_NS + RING_NS) / 1000 for name, number in WAITS.items()}
    share, whole_us = share_of(what, home), whole_s(what, home) * SLOW * 1e6
    assert split["whole_us"] == pytest.approx(whole_us, rel=1e-5)
    for name, host in names.items():
        assert split[f"background_of_{name}_us"] == pytest.approx(each[host] * share, rel=1e-4)
        assert split[f"pages_of_{name}_us"] == pytest.approx(each[host] * NOTHING, rel=1e-4)
    mean = statistics.mean(all_ns(what, home)) * (1.5 if what == "wake" else 1) * SLOW / 1000
    assert split["mean_us"] == pytest.approx(mean)
    if what == "wake":
        assert "rest_us" not in split
    else:
        assert split["rest_us"] == pytest.approx(whole_us - each[names["caller"]] * NOTHING, rel=1e-4)
    assert split["faults_per_call"] == NOTHING * sum(FAULTS.values()) and split["calls"] == 60
    assert split["messages_per_call"] == NOTHING * sum(SENT.values())


def check_delivery(split: Mapping[str, float | str], what: str, sender: str, receiver: str) -> None:
    """Of an interrupt from one host to the other: two rounds of a short run and a long one, with one for each call."""
    parts = {"out": OUT_NS[sender], "wire": (WIRE_NS - SERVE_NS[receiver]) / 2, "in": IN_NS[receiver]}
    assert {part: split[f"{part}_us"] for part in parts} == {part: pytest.approx(ns / 1000) for part, ns in parts.items()}
    assert split["delivery_us"] == pytest.approx(sum(parts.values()) / 1000)
    assert split["counted_out"] == split["counted_in"] == 60
    assert split["asked_us"] == pytest.approx(WIRE_NS / 1000) and split["served_us"] == pytest.approx(SERVE_NS[receiver] / 1000)
    few, many = span.ROUNDS["nothing"]
    stray = (many // STRAY - few // STRAY) / (many - few) if sender == "alpha" else 0
    assert split["sent_per_call"] == 1
    share = share_of(what, what == "wake" or sender == "alpha")
    assert split["background_sent"] == pytest.approx(stray * share, rel=1e-5)


def check_store(value: Values, beside: Beside) -> None:
    """Rates, and what an operation costs: shards that are pages make a program cost twice as much there."""
    for setting, guest_ns in (("home", 1000), ("off", 10**6), ("switches", 500_000), ("layout", 500_000), ("on", 250_000)):
        key = f"span.kv.{setting}.per_second"
        assert value[key] == pytest.approx(1e9 / guest_ns / SLOW)
        assert beside[key]["load_per_second"] == pytest.approx(1e9 / guest_ns / SLOW / 2)
        assert [beside[key][f"{each}_us"] for each in ("p50", "p99")] == [pytest.approx(ns * SLOW / 1000) for ns in (5, 9)]
        if setting != "home":
            faults = sum(FAULTS.values()) * (2 if setting in ("layout", "on") else 1)
            whole = float(beside[key]["operations"]) + 64
            assert beside[key]["faults_per_operation"] == pytest.approx(faults / whole)
    assert [value[f"span.kv.{name}"] for name in ("switches.speedup", "layout.speedup", "speedup")] == [
        pytest.approx(each) for each in (2, 2, 4)
    ]


def check_programs(value: Values, beside: Beside) -> None:
    """Of OpenMP programs."""
    assert value["span.npb_ep.home.ms"] == pytest.approx(SECONDS["npb_ep"][0] / STEPS * 1000 * SLOW)
    assert value["span.npb_ep.speedup"] == pytest.approx(2) and value["span.npb_is.speedup"] == pytest.approx(0.2)
    # Of the two iterations that both runs have: the first one takes twice as long.
    assert value["span.stream.both.ms"] == pytest.approx(1.5 * SECONDS["stream"][1] / STEPS * 1000 * SLOW)
    assert value["span.stream.speedup"] == pytest.approx(SECONDS["stream"][0] / SECONDS["stream"][1])
    assert [beside[f"span.{program}.speedup"]["iterations"] for program in ("stream", "npb_ep")] == [2, STEPS]
    assert beside["span.stream.both.ms"]["iterations"] == 2
    assert beside["span.stream.both.ms"]["messages_per_iteration"] == sum(SENT.values()) / 2
    assert value["span.npb_ep.faults_per_iteration"] == BOTH / STEPS
    assert value["span.npb_ep.messages_per_iteration"] == sum(SENT.values()) / STEPS
    assert value["span.npb_ep.bytes_per_iteration"] == sum(SENT.values()) * BYTES / STEPS
    assert beside["span.npb_ep.both.ms"]["faults_away_per_iteration"] == FAULTS["beta"] / STEPS
    assert beside["span.npb_ep.both.ms"]["faults_home_per_iteration"] == FAULTS["alpha"] / STEPS
    assert beside["span.npb_ep.home.ms"]["faults_per_iteration"] == 0

    assert beside["span.npb_ep.both.ms"]["pages_per_iteration"] == BOTH / STEPS


def check_ownership(value: Values, beside: Beside) -> None:
    """Pages of its own node, and of home's."""
    pages, whole_ns = span.OWNED_MIB * 256, sum(COPY_NS.values())
    assert value["span.ownership.node.page_us"] == pytest.approx(whole_ns * SLOW / pages / 1000)
    assert value["span.ownership.home.page_us"] == pytest.approx(3 * whole_ns * SLOW / pages / 1000)
    assert beside["span.ownership.home.page_us"]["populate_us"] == pytest.approx(
        3 * COPY_NS["populate"] * SLOW / pages / 1000
    )
    assert beside["span.ownership.node.page_us"]["faults_away_per_page"] == FAULTS["beta"] / pages
    assert value["span.ownership.saved_faults_per_page"] == FAULTS["beta"] / pages
    assert value["span.ownership.speedup"] == pytest.approx(3)


def check_faults(value: Values, beside: Beside) -> None:
    """By phase."""
    for place, other in (("home", "beta"), ("away", "alpha")):
        assert value[f"span.fault.{place}.us"] == pytest.approx((FAULT_NS + RING_NS) / 1000)
        phases = beside[f"span.fault.{place}.us"]
        wanted = {
            "trap": TRAP_NS,
            "ring": RING_NS,
            "wake": WAKE_NS,
            "queue": QUEUE_NS,
            "wire": WIRE_NS - SERVE_NS[other],
            "install": INSTALL_NS,
            "serve": SERVE_NS[other],
        }
        assert {key: phases[f"{key}_us"] for key in wanted} == {
            key: pytest.approx(ns / 1000) for key, ns in wanted.items()
        }
        assert value[f"span.fault.{place}.ratio_to_rtt"] == pytest.approx((FAULT_NS + RING_NS) / ROUND_TRIP_NS)

    for place, host in (("home", "alpha"), ("away", "beta")):
        phases = beside[f"span.fault.{place}.us"]
        assert phases["dsmd_mean_us"] == pytest.approx(FAULT_NS / 1000)
        # Three programs on both hosts, and the store with all off, in two rounds.
        assert phases["faults"] == 8 * FAULTS[host] and phases["waits"] == 8 * WAITS[host]
        assert phases["xen_mean_us"] == pytest.approx((FAULT_NS + RING_NS) / 1000)


def check_calls(value: Values, beside: Beside) -> None:
    """Interrupts, wake-ups, hypercalls."""
    for place, home in (("home", True), ("away", False)):
        split = beside[f"span.ipi.{place}.us"]
        assert value[f"span.ipi.{place}.us"] == pytest.approx(middle("membarrier", home))
        hosts = ("alpha", "beta") if home else ("beta", "alpha")
        check_split(split, "membarrier", home, dict(zip(("caller", "other"), hosts, strict=True)))
        check_delivery(split, "membarrier", *hosts)
    assert value["span.wake.to_away.us"] == pytest.approx(middle("wake", True))
    assert value["span.wake.to_home.us"] == pytest.approx(middle("wake", True) / 2, rel=1e-6)
    for way, hosts in (("to_away", ("alpha", "beta")), ("to_home", ("beta", "alpha"))):
        check_split(beside[f"span.wake.{way}.us"], "wake", True, {"home": "alpha", "away": "beta"})
        check_delivery(beside[f"span.wake.{way}.us"], "wake", *hosts)
    assert beside["span.wake.to_home.us"]["slept"] == pytest.approx(58 / 60)
    assert beside["span.wake.to_home.us"]["clock_error_us"] == 4
    assert beside["span.ipi.home.us"]["p99_us"] == pytest.approx(all_ns("membarrier", True)[-1] * SLOW / 1000)
    assert beside["span.ipi.home.us"]["p10_us"] == pytest.approx(all_ns("membarrier", True)[5] * SLOW / 1000)

    assert value["span.hypercall.home.us"] == pytest.approx(middle("version", True))
    assert value["span.hypercall.away.us"] == pytest.approx(middle("version", False))
    assert value["span.hypercall.status_at_home.us"] == pytest.approx(middle("status", True))
    assert value["span.hypercall.forwarded.us"] == pytest.approx(middle("status", False))
    forwarded = beside["span.hypercall.forwarded.us"]
    assert forwarded["forwarded_per_call"] == 1 and forwarded["done_at_home_per_call"] == 1
    assert forwarded["faults_per_call"] == NOTHING * BOTH and forwarded["round_trip_us"] == ROUND_TRIP_NS / 1000
    assert value["span.hypercall.more_us"] == pytest.approx(middle("status", False) - middle("status", True))


def check_notes(notes: Mapping[str, str]) -> None:
    """What is in a part, and what is not, as nobody sees it in a number."""
    for name in ("span.ipi.home.us", "span.ipi.away.us", "span.wake.to_away.us", "span.wake.to_home.us"):
        for words in (
            "also those for devices", "half of the way of that host's faults on pages of the other", "less what the other host",
            "pages: what all CPUs of a host wait for", "nothing is called and nobody meets", "whoever calls; not taken off",
        ):  # fmt: skip
            assert words in notes[name], name
        assert ("with both CPUs' meeting before it" in notes[name]) == ("ipi" in name)
        assert ("so with their traps and wake-ups" in notes[name]) == ("ipi" in name)
        assert ("with the pause behind it" in notes[name]) == ("wake" in name)


def check_figures(found: list[Metric], missing: list[str]) -> None:
    """Each by hand from what was played, by the hosts' clock."""
    assert missing == []
    named = by_name(found)
    value = {name: metric.value for name, metric in named.items()}
    beside = {name: metric.baseline for name, metric in named.items()}
    check_programs(value, beside)
    check_store(value, beside)
    check_ownership(value, beside)
    check_faults(value, beside)
    check_calls(value, beside)
    assert "2 of 2 runs were cut off" in named["span.stream.both.ms"].note
    assert "all verified" in named["span.npb_ep.both.ms"].note
    assert "1.23" in named["span.kv.speedup"].note
    check_notes({name: metric.note for name, metric in named.items()})

    assert value["span.attach.xl.guest.seconds"] == 3.1
    assert value["span.attach.guest.cpus_up.seconds"] == pytest.approx(0.21 * SLOW)
    assert len(named["span.detach.seconds"].runs) == 2
    assert value["span.slow"] == SLOW and value["span.round_trip.us"] == ROUND_TRIP_NS / 1000
    for what, number in FAULTS_OF_OPERATIONS.items():
        assert beside[f"span.{what}.seconds"].get("faults_of_home") == number

    for metric in found:
        if metric.unit in ("s", "ms", "us", "1/s"):
            assert metric.baseline["slow"] == SLOW and LIMITS in metric.note and f"{SLOW} times slower" in metric.note
        if metric.unit == "x" and metric.metric != "span.slow":
            assert LIMITS in metric.note
        if metric.runs:
            assert metric.baseline["least"] == min(metric.runs) and metric.baseline["most"] == max(metric.runs), metric
            assert len(metric.runs) > 1, metric


def test_the_figures(whole: tuple[Seen, BenchWorld]) -> None:
    check_figures(*metrics(whole[0]))


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A mistake in a module of benchmarks, one line or a part of it."""

    module: str
    line: str
    becomes: str


MUTANTS = (
    Mutant("span_figures", "beside = {\"least\": min(metric.runs), \"most\": max(metric.runs)}",
           "beside = {\"least\": min(metric.runs), \"most\": min(metric.runs)}"),
    Mutant("span_figures", "statistics.median(above) / statistics.median(below)",
           "statistics.median(below) / statistics.median(above)"),
    Mutant("span_figures", "whole = whole.plus(each)", "whole = each"),
    Mutant("span_figures", "each = [run.counts.total(what) / len(run.ms) for run in runs]",
           "each = [run.counts.total(what) for run in runs]"),
    Mutant("span_figures", "sum(len(run.ms) for run in runs)", "len(runs[0].ms)"),
    Mutant("span_figures", "run.program == program and run.both == both]", "run.program == program]"),
    Mutant("span_figures", "figure = ratio(f\"span.{program}.speedup\", home, away",
           "figure = ratio(f\"span.{program}.speedup\", away, home"),
    Mutant("span_figures", "statistics.median(run.ms[:same]) for run", "statistics.median(run.ms) for run"),
    Mutant("span_figures", "same = min(len(run.ms) for run in runs)", "same = max(len(run.ms) for run in runs)"),
    Mutant("span_figures", "if run.both == both] for both in (False, True))",
           "if run.both <= both] for both in (False, True))"),
    Mutant("span_figures", "\"iterations\": iterations / len(runs)}", "\"iterations\": float(iterations)}"),
    Mutant("span_figures", "return {f\"{key}_per_{what}\": number / per for",
           "return {f\"{key}_per_{what}\": number / per / len(counts) for"),
    Mutant("span_figures", "for setting in (\"home\", *KV_SETTINGS):", "for setting in KV_SETTINGS:"),
    Mutant("span_figures", "operations = sum(sum(run.kv.ops.values()) for run in runs)",
           "operations = sum(run.kv.ops[\"mix\"] for run in runs)"),
    Mutant("span_figures", "getattr(thread, key) / 1000 * seen.slow for", "getattr(thread, key) / 1000 for"),
    Mutant("span_figures", "statistics.median(run.kv.per_second(\"load\", seen.slow)",
           "statistics.median(run.kv.per_second(\"mix\", seen.slow)"),
    Mutant("span_figures", "[run.counts for run in seen.kernels if run.both] +",
           "[run.counts for run in seen.kernels if not run.both] +"),
    Mutant("span_figures", "if run.setting == \"off\"]\n    problems", "if run.setting == \"on\"]\n    problems"),
    Mutant("span_figures", "other = other.plus(each.both[1 - place])", "other = other.plus(each.both[place])"),
    Mutant("span_figures", "whole = whole.plus(more)", "whole = more"),
    Mutant("span_figures", "dsmd_us = whole.fault_ns / max(whole.fault_waits, 1)",
           "dsmd_us = whole.fault_ns / max(whole.faults, 1)"),
    Mutant("span_figures", "xen_us = whole.wait_ns / whole.waits / 1000", "xen_us = whole.wait_ns / whole.faults / 1000"),
    Mutant("span_figures", "return self.calls.what, AWAY if self.calls.cpus[0] else HOME",
           "return self.calls.what, AWAY if self.calls.cpus[-1] else HOME"),
    Mutant("span_figures", "return sum(self.calls.ns) + sum(self.calls.back_ns)", "return sum(self.calls.ns)"),
    Mutant("span_figures", "self.pause_ns * len(self.calls.ns)", "self.pause_ns"),
    Mutant("span_figures", "self.total_ns() + sum(self.calls.met_ns) +", "self.total_ns() +"),
    Mutant("span_figures", "tuple(run.whole_ns() * seen.slow", "tuple(run.total_ns() * seen.slow"),
    Mutant("span_figures", "return _Sums(number / len(runs), seconds", "return _Sums(number, seconds"),
    Mutant("span_figures", "statistics.mean(map(of, self.each))", "sum(map(of, self.each))"),
    Mutant("span_figures", "max(map(of, self.each)) - min(map(of, self.each))", "0.0"),
    Mutant("span_figures", "return max(few.differ(of), many.differ(of))", "return few.differ(of)"),
    Mutant("span_figures", "return max(few.differ(of), many.differ(of))", "return many.differ(of)"),
    Mutant("span_figures", "return max(few.differ(of), many.differ(of))", "return few.differ(of) + many.differ(of) / 2"),
    Mutant("span_figures", "many.mean(of) - few.mean(of) >= _differ", "many.mean(of) - few.mean(of) > _differ"),
    Mutant("span_figures", "many.mean(of) - few.mean(of) >= _differ", "abs(many.mean(of) - few.mean(of)) >= _differ"),
    Mutant("span_figures", "many.mean(of) - few.mean(of) >= _differ", "per_call(ends, of) >= _differ"),
    Mutant("span_figures", "(many.mean(of) - few.mean(of)) / (many.calls - few.calls)", "many.mean(of) / many.calls"),
    Mutant("span_figures", "for size in (sizes[0], sizes[-1]))", "for size in (sizes[-1], sizes[0]))"),
    Mutant("span_figures", "= cost_of(ends, _waits_us(place))",
           "= cost_of(ends, _waits_us(place)) - background_of(seen, _waits_us(place), seconds)"),
    Mutant("span_figures", "background_of(seen, _waits_us(place), seconds)", "background_of(seen, _waits_us(place), 1)"),
    Mutant("span_figures", "else each * seconds / seconds_of(ends)", "else each * seconds"),
    Mutant("span_figures", "\"whole_us\": seconds * 1e6", "\"whole_us\": mean_us"),
    Mutant("span_figures", "for run in runs) * seen.slow / number", "for run in runs) / number"),
    Mutant("span_figures", "{\"caller\": caller, \"other\": 1 - caller}", "{\"caller\": 1 - caller, \"other\": caller}"),
    Mutant("span_figures", "{\"home\": HOME, \"away\": AWAY})", "{\"home\": AWAY, \"away\": HOME})"),
    Mutant("span_figures", "known(float(split[\"whole_us\"]) - pages)", "known(float(split[\"mean_us\"]) - pages)"),
    Mutant("span_figures", "return (more - less) / (many.calls - few.calls)", "return more / many.calls"),
    Mutant("span_figures", "more - less < apart:", "False:"),
    Mutant("span_figures", "apart = max(max(each.seconds)", "apart = min(max(each.seconds)"),
    Mutant("span_figures", "- min(each.seconds) for each in ends)", "- min(each.seconds) for each in ends[:1])"),
    Mutant("span_figures", "- min(each.seconds) for each in ends)", "- min(each.seconds) for each in ends[1:])"),
    Mutant("span_figures", "here, there = whole.both[sender], whole.both[1 - sender]",
           "here, there = whole.both[1 - sender], whole.both[sender]"),
    Mutant("span_figures", "here, there = whole.both[sender], whole.both[1 - sender]",
           "here, there = whole.both[sender], whole.both[sender]"),
    Mutant("span_figures", "known((wire - serve) / 2)", "known(wire - serve)"),
    Mutant("span_figures", "known((wire - serve) / 2)", "known(wire / 2)"),
    Mutant("span_figures", "known((wire - serve) / 2)", "(wire - serve) / 2"),
    Mutant("span_figures", "_mean_us(here, \"wire\"), _mean_us(there, \"serve\")",
           "_mean_us(there, \"wire\"), _mean_us(here, \"serve\")"),
    Mutant("span_figures", "delivery = sum(seen) if len(seen) == len(parts) else NOT_KNOWN", "delivery = sum(seen)"),
    Mutant("span_figures", "return host.mean_us(phase) if host.phase_counts[phase] else NOT_KNOWN",
           "return host.mean_us(phase)"),
    Mutant("span_figures", "if least < LEAST_DONE:  # what", "if False:  # what"),
    Mutant("span_figures", "\"in_us\": _mean_us(there, \"ipi_in\")", "\"in_us\": _mean_us(there, \"ipi_out\")"),
    Mutant("span_figures", "\"out_us\": _mean_us(here, \"ipi_out\")", "\"out_us\": _mean_us(here, \"queue\")"),
    Mutant("span_figures", "\"asked_us\": wire, \"served_us\": serve", "\"asked_us\": serve, \"served_us\": wire"),
    Mutant("span_figures", "\"counted_asked\": here", "\"counted_asked\": there"),
    Mutant("span_figures", "\"counted_in\": there.phase_counts[\"ipi_in\"]",
           "\"counted_in\": runs[0].counts.away.phase_counts[\"ipi_in\"]"),
    Mutant("span_figures", "**delivery_of(runs, caller), **sent}", "**delivery_of(runs, 1 - caller), **sent}"),
    Mutant("span_figures", "**delivery_of(runs, sender)}", "**delivery_of(runs, HOME)}"),
    Mutant("span_figures", "knows it: there and back; \"\n                f\"{DELIVERY}; whole",
           "knows it: there and back; \"\n                f\"whole"),
    Mutant("span_figures", "until the thread that slept runs; {DELIVERY}; whole", "until the thread that slept runs; whole"),
    Mutant("span_figures", "f\"time; {BACKGROUND}\"", "f\"time\""),
    Mutant("span_figures", "so there is no rest; {BACKGROUND}\"", "so there is no rest\""),
    Mutant("span_figures", "when nothing is called and nobody meets: home's", "when nothing is called: home's"),
    Mutant("span_figures", "sent, least = sent_of(seen, runs, caller)", "sent, least = sent_of(seen, runs, 1 - caller)"),
    Mutant("span_figures", "sent, least = sent_of(seen, runs, sender)", "sent, least = sent_of(seen, runs, AWAY)"),
    Mutant("span_figures", "counts.both[place].interrupts + counts.both[place].events", "counts.both[place].interrupts"),
    Mutant("span_figures", "return difference if difference >= 0 else", "return difference if difference > 0 else"),
    Mutant("span_figures", "return difference if difference >= 0 else", "return difference if True else"),
    Mutant("span_figures", "return known(float(split", "return (float(split"),
    Mutant("span_figures", "\"sent_per_call\": cost_of(ends, of)", "\"sent_per_call\": per_call(ends, of)"),
    Mutant("span_figures", "background_of(seen, of, seconds)}", "background_of(seen, of, 1)}"),
    Mutant("span_figures", "if seen.cpus > 1 or isinstance(pages, str):", "if isinstance(pages, str):"),
    Mutant("span_figures", "if more - less <= 0 or more", "if more"),
    Mutant("span_figures", "if more - less <= 0 or more", "if more - less < 0 or more"),
    Mutant("span_figures", "max(most * seconds / seconds_of(none), 0.0)", "most * seconds / seconds_of(none)"),
    Mutant("span_figures", " - _differ(ends, of) / (", " - 0 / ("),
    Mutant("span_figures", " - _differ(ends, of) / (ends[1].calls - ends[0].calls)", " - _differ(ends, of)"),
    Mutant("span_figures", " + _differ(none, of) / (", " + 0 / ("),
    Mutant("span_figures", " + _differ(none, of) / (none[1].calls - none[0].calls)", " + _differ(none, of)"),
    Mutant("span_figures", "* seconds / seconds_of(none), 0.0)", "/ seconds_of(none), 0.0)"),
    Mutant("span_figures", "* seconds / seconds_of(none), 0.0)", "* seconds, 0.0)"),
    Mutant("span_figures", "least = per_call(ends, of) -", "least = ends[1].mean(of) -"),
    Mutant("span_figures", "whole = whole.plus(run.counts)\n    here", "whole = run.counts\n    here"),
    Mutant("span_figures", "\"counted_out\": here.phase_counts[\"ipi_out\"]", "\"counted_out\": float(len(runs))"),
    Mutant("span_figures", "if least < LEAST_DONE:\n", "if False:\n"),
    Mutant("span_output", "what == \"wake\", what == \"membarrier\"", "what == \"wake\", False"),
    Mutant("span_output", "(\"cpus\", \"ns\", \"back_ns\", \"met_ns\")", "(\"cpus\", \"ns\", \"back_ns\")"),
    Mutant("span_counts", "interrupts=int(engine[\"vcpu_events\"])", "interrupts=0"),
    Mutant("span_counts", "int(status[\"phases\"][phase][\"sum_ns\"])",
           "int(status[\"phases\"][phase][\"median_ns\"]) * int(status[\"phases\"][phase][\"count\"])"),
    Mutant("span", "--us={pause}\"", "--us=0\""),
    Mutant("span_counts", "INTERRUPT = (\"ipi_out\", \"ipi_in\")", "INTERRUPT = (\"ipi_out\",)"),
    Mutant("span_figures", "cost_of(ends, _cost(key)) for", "per_call(ends, _cost(key)) for"),
    Mutant("span_figures", "for sender, name in ((HOME, \"to_away\"), (AWAY, \"to_home\")):",
           "for sender, name in ((AWAY, \"to_away\"), (HOME, \"to_home\")):"),
    Mutant("span_figures", "_samples_us(seen, runs, sender == AWAY)", "_samples_us(seen, runs, sender == HOME)"),
    Mutant("span_figures", "quantile(every, 0.99)}", "quantile(every, 0.9)}"),
    Mutant("span_figures", "\"p10_us\": quantile(every, 0.1)", "\"p10_us\": min(every)"),
    Mutant("span_figures", "(\"version\", AWAY, \"away\")", "(\"version\", HOME, \"away\")"),
    Mutant("span_figures", "lambda counts: counts.away.calls)", "lambda counts: counts.home.calls)"),
    Mutant("span_figures", "(AWAY, HOME)\n    )", "(HOME, AWAY)\n    )"),
    Mutant("span_figures", "runs = [each for each in seen.operations if each.name == name]", "runs = seen.operations"),
    Mutant("span_figures", "seconds = [getattr(each, who)[phase] for", "seconds = [each.seconds for"),
    Mutant("span_figures", "\"slow\": float(seen.slow)}, note=note", "\"slow\": 1.0}, note=note"),
    Mutant("span_counts", "bytes=sum(int(peer[\"sent_bytes\"])", "bytes=sum(int(peer[\"sent\"])"),
    Mutant("span_counts", "pages=sum(int(peer[\"sent_pages\"])", "pages=sum(int(peer[\"sent\"])"),
    Mutant("span_counts", "events=int(engine[\"vcpu_ports\"])", "events=int(engine[\"vcpu_calls\"])"),
    Mutant("span_counts", "waits=int(xen[\"waits\"])", "waits=int(status[\"write_faults\"])"),
    Mutant("span_counts", "return self.phase_ns[phase] / self.phase_counts[phase] / 1000",
           "return self.phase_ns[phase] / self.faults / 1000"),
    Mutant("span_counts", "\"faults_away\": float(self.away.faults)", "\"faults_away\": float(self.home.faults)"),
    Mutant("span_counts", "return sum(int(getattr(each, what)) for each in self.both)",
           "return 2 * int(getattr(self.home, what))"),
    Mutant("span_counts", "int(round_trip[\"median_ns\"]) / 1000, int", "int(round_trip[\"p99_ns\"]), int"),
    Mutant("span_counts", "get(\"error_ns\", 0)) / 1000", "get(\"error_ns\", 0))"),
    Mutant("span_counts", "fault_waits=sum(int(status[key][\"count\"]) for key in (\"read_fault\", \"write_fault\"))",
           "fault_waits=2 * int(status[\"read_fault\"][\"count\"])"),
    Mutant("span_figures", "(serve if phase == \"wire\" else 0)", "0"),
    Mutant("span_figures", "\"ring_us\": xen_us - dsmd_us", "\"ring_us\": xen_us"),
    Mutant("span_figures", "\"trap_us\": whole.trap_ns / whole.waits", "\"trap_us\": whole.wake_ns / whole.waits"),
    Mutant("span_figures", "\"wake_us\": whole.wake_ns / whole.waits", "\"wake_us\": whole.wake_ns / whole.faults"),
    Mutant("span_figures", "means = [each.wait_ns / each.waits / 1000 for each in here]",
           "means = [each.fault_ns / each.waits / 1000 for each in here]"),
    Mutant("span_figures", "ratios = [mean / round_trip for mean in means]",
           "ratios = [dsmd_us / round_trip for mean in means]"),
    Mutant("span_figures", "[[ns * seen.slow / 1000 for ns", "[[ns / 1000 for ns"),
    Mutant("span_figures", "(run.calls.back_ns if back else run.calls.ns)", "run.calls.ns"),
    Mutant("span_figures", "sum(2 * len(run.calls.ns) for run in runs)", "sum(len(run.calls.ns) for run in runs)"),
    Mutant("span_figures", "more = statistics.median(forwarded) - statistics.median(local)",
           "more = statistics.median(forwarded)"),
    Mutant("span_figures", "yield ratio(key, rates[setting], rates[\"off\"]", "yield ratio(key, rates[\"on\"], rates[\"off\"]"),
    Mutant("span_output", "return self.ops[step] / (self.ns[step] / 1e9 * slow)",
           "return self.ops[step] / (self.ns[step] / 1e9)"),
    Mutant("span_counts", "messages=sum(int(peer[\"sent\"]) for peer in peers)",
           "messages=sum(int(peer[\"sent\"]) + int(peer[\"received\"]) for peer in peers)"),
    Mutant("span_counts", "faults=int(status[\"read_faults\"]) + int(status[\"write_faults\"])",
           "faults=int(status[\"read_faults\"])"),
    Mutant("span_counts", "left = self._with(before, -1)", "left = self"),
    Mutant("span_counts", "fault_ns=sum(int(status[key][\"sum_ns\"]) for key in (\"read_fault\", \"write_fault\"))",
           "fault_ns=int(status[\"read_fault\"][\"sum_ns\"])"),
    Mutant("span", "ms = tuple(step.ms * self.site.slow for step in run.steps)", "ms = tuple(step.ms for step in run.steps)"),
    Mutant("span", "{phase: took * self.site.slow for phase, took", "{phase: took for phase, took"),
    Mutant("span", "wanted = SWITCHES[\"on\"] if setting in SWITCHED_ON else SWITCHES[\"off\"]", "wanted = SWITCHES[\"off\"]"),
    Mutant("span", "for host in self.site.both:\n            checked(run_in(host), f\"for each",
           "for host in [self.site.home]:\n            checked(run_in(host), f\"for each"),
    Mutant("span_figures", "return self.copy.total_ns * slow / self.pages() / 1000",
           "return self.copy.total_ns / self.pages() / 1000"),
    Mutant("span_figures", "[off - on for off", "[on - off for off"),
    Mutant("span_figures", "run.counts.away.faults / run.pages() for", "run.counts.home.faults / run.pages() for"),
    Mutant("span_figures", "times[\"home\"], times[\"node\"]", "times[\"node\"], times[\"home\"]"),
    Mutant("span", "node = VNODE if owner == \"node\" else 0", "node = 0"),
    Mutant("span", "--cpus={cpus[AWAY]} --mib", "--cpus={cpus[HOME]} --mib"),
    Mutant("span", "--layout={LAYOUT[setting]}", "--layout=packed"),
    Mutant("span", "return printed, after.since(before), over", "return printed, after, over"),
    Mutant("span", "self.seen.kernels.append(KernelRun(program, both, len(cpus), ms, counts, over))",
           "self.seen.kernels.append(KernelRun(program, both, len(cpus), ms, counts))"),
    Mutant("span", "reversed(KV_SETTINGS) if back else KV_SETTINGS", "KV_SETTINGS"),
    Mutant("span", "reversed(ROUNDS[what]) if back else ROUNDS[what]", "ROUNDS[what][:1]"),
    Mutant("span", "reversed(ROUNDS[what]) if back else ROUNDS[what]", "ROUNDS[what]"),
    Mutant("span", "for place in (caller, 1 - caller)]", "for place in (1 - caller, caller)]"),
    Mutant("span", "pause * 1000 if what == \"wake\" else 0", "pause if what == \"wake\" else 0"),
    Mutant("span", "pause = round(PAUSE_S * 1e6 / self.site.slow)", "pause = round(PAUSE_S * 1e6)"),
    Mutant("span", "        self.domids.pop(AWAY, None)\n", ""),
    Mutant("span", "counted_at(site.other, domids[AWAY]) if connected(found) else HostCounts()", "HostCounts()"),
    Mutant("span", "there = [guest.domid()] if place == HOME else slices(self.site.other)", "there = [guest.domid()]"),
    Mutant("span", "return any(peer.get(\"up\") for", "return not any(peer.get(\"up\") for"),
    Mutant("span", "timeout {limit / self.site.slow:.3f}", "timeout {limit:.3f}"),
    Mutant("span", "before = self.counted(guest)", "before = Counts()"),
    Mutant("span", "home = self.counted_at_home(guest).since(before)", "home = self.counted_at_home(guest)"),
    Mutant("span", "self.section(guest, both=True, back=bool(number % 2))",
           "self.section(guest, both=False, back=bool(number % 2))"),
    Mutant("span", "    self.operate(guest, \"detach\")", "    pass"),
)  # fmt: skip


@contextlib.contextmanager
def mistaken(mutant: Mutant) -> Iterator[dict[str, ModuleType]]:
    """The modules, by name, of which one has the mistake; those that need it have it, too. All others stay as they are."""
    names = ("span_counts", "span_output", "span_figures", "span")
    kept = {name: sys.modules[f"benchmarks.{name}"] for name in names}
    parent = sys.modules["benchmarks"]
    try:
        for name in names:
            path = Path(str(kept[name].__file__))
            text = path.read_text(encoding="utf-8")
            if name == mutant.module:
                assert text.count(mutant.line) == 1, (
                    f"{path.name} has this {text.count(mutant.line)} times; adapt the table"
                )
                text = text.replace(mutant.line, mutant.becomes)
            made = ModuleType(f"benchmarks.{name}")
            made.__file__ = str(path)
            sys.modules[made.__name__] = made
            setattr(parent, name, made)
            exec(compile(text, path, "exec"), made.__dict__)
        yield {name: sys.modules[f"benchmarks.{name}"] for name in names}
    finally:
        for name, module in kept.items():
            sys.modules[module.__name__] = module
            setattr(parent, name, module)


def calls_run(what: str, ns: int, number: int, us: tuple[int, int], sent: int) -> CallsRun:
    """So many calls of so many ns of the guest each, while both hosts' vCPUs waited so long for pages, and the home sent."""
    said = {"event": "calls", "what": what, "cpus": [0, 1], "ns": [ns] * number}
    if what == "membarrier":
        said["met_ns"] = [0] * number
    hosts = [HostCounts(faults=number + 3, wait_ns=each * 1000, events=sent) for each in us]
    counts = Counts(hosts[0], dataclasses.replace(hosts[1], events=0))
    return CallsRun(parse_calls(json.dumps(said), what), counts)


def phases(**of: tuple[int, int]) -> HostCounts:
    """So many, in so many us together."""
    none = HostCounts()
    return dataclasses.replace(
        none,
        phase_counts={**none.phase_counts, **{phase: number for phase, (number, _) in of.items()}},
        phase_ns={**none.phase_ns, **{phase: us * 1000 for phase, (_, us) in of.items()}},
    )


def interrupted(out: tuple[int, int], into: tuple[int, int]) -> Counts:
    """Interrupts of the home, and of the other host those that came; and a fault of the home, of which half the way is 3 ms."""
    return Counts(phases(ipi_out=out, wire=(1, 9000)), phases(ipi_in=into, serve=(1, 3000)))


# One more call of 100 ms costs 60 and 25 ms of waits; a second without any 40 and 60 ms, and two interrupts.
BARRIERS = [calls_run("membarrier", 10**7, n, (500_000 + n * 60_000, 900_000 + n * 25_000), 9 + n) for n in (2, 6)]
NONE = [calls_run("nothing", 10**8, n, (70_000 + n * 40_000, 80_000 + n * 60_000), 3 + 2 * n) for n in (1, 3)]
PLACED = {"caller": 0, "other": 1}


def check_phases(figures: Any) -> None:
    """What both CPUs wait for pages in one call more, with nothing taken off.

    What is alike in short and long runs is not in it.
    """
    seen = Seen(10, calls=[*BARRIERS, *NONE])
    split = figures.pages_of(seen, BARRIERS, PLACED)
    assert split["mean_us"] == 100_000 == pytest.approx(split["whole_us"]) and split["faults_per_call"] == 2
    assert [split[f"background_of_{name}_us"] for name in PLACED] == [pytest.approx(each) for each in (4000, 6000)]
    assert [split[f"pages_of_{name}_us"] for name in PLACED] == [pytest.approx(each) for each in (60_000, 25_000)]
    assert figures.rest_of(seen, split) == pytest.approx(40_000)
    sent = {"sent_per_call": 1, "background_sent": pytest.approx(0.2)}
    assert figures.sent_of(seen, BARRIERS, 0) == (sent, pytest.approx(0.8))
    assert figures.sent_of(seen, BARRIERS, 1) == ({"sent_per_call": 0, "background_sent": 0}, 0)
    swapped = figures.pages_of(seen, BARRIERS, {"caller": 1, "other": 0})
    assert swapped["pages_of_caller_us"] == pytest.approx(25_000)
    # With a pause of as long again, or a meeting, there is twice the background, and the rest is of all that.
    met = [dataclasses.replace(run, calls=dataclasses.replace(run.calls, met_ns=run.calls.ns)) for run in BARRIERS]
    for longer in ([dataclasses.replace(run, pause_ns=10**7) for run in BARRIERS], met):
        split_again = figures.pages_of(seen, longer, PLACED)
        assert split_again["background_of_caller_us"] == pytest.approx(8000) and split_again["mean_us"] == 100_000
        assert figures.rest_of(seen, split_again) == pytest.approx(140_000)
    # Runs of one size count as one: their mean, and the slope is that of means.
    twice = dataclasses.replace(seen, calls=[*seen.calls, *BARRIERS, *NONE])
    doubled = figures.pages_of(twice, [*BARRIERS, *BARRIERS], PLACED)
    assert doubled | {"calls": 8} == {key: pytest.approx(value) for key, value in split.items()}


def check_what_is_not_known(figures: Any) -> None:
    """Runs that differ by more than their calls cost: a part that is nothing, and no number that nothing can be."""
    seen = Seen(10, calls=[*BARRIERS, *NONE])
    # A program's start waits longer in the short run.
    waited = [calls_run("membarrier", 10**7, n, (us, us), 5 - n) for n, us in ((2, 900_000), (6, 700_000))]
    split = figures.pages_of(seen, waited, PLACED)
    assert split["pages_of_caller_us"] == figures.rest_of(seen, split) == "not known"
    # More than it took; of two CPUs a host, which of them is not known.
    waited = [calls_run("membarrier", 10**7, n, (n * 101_000, n * 25_000), n) for n in (2, 6)]
    split = figures.pages_of(seen, waited, PLACED)
    assert split["pages_of_caller_us"] == pytest.approx(101_000) and figures.rest_of(seen, split) == "not known"
    split = figures.pages_of(seen, BARRIERS, PLACED)
    assert figures.rest_of(dataclasses.replace(seen, cpus=2), split) == "not known"
    # Fewer faults, and a background that went down.
    less = [dataclasses.replace(run, counts=Counts()) for run in BARRIERS[1:]]
    assert figures.pages_of(seen, [BARRIERS[0], *less], PLACED)["faults_per_call"] == "not known"
    down = [calls_run("nothing", 10**8, n, (us, us), 9 - n) for n, us in ((1, 900_000), (3, 700_000))]
    quiet = dataclasses.replace(seen, calls=[*BARRIERS, *down])
    assert figures.pages_of(quiet, BARRIERS, PLACED)["background_of_caller_us"] == "not known"
    # What is less than nothing makes no call one that interrupts.
    assert figures.sent_of(quiet, BARRIERS, 0) == ({"sent_per_call": 1, "background_sent": "not known"}, 1)
    # More calls that take less time.
    for ns, words in ((10**6, r"2 calls take 0\.060 s, 6 0\.060 s, .*: no slope"), (10**5, r"take 0\.060 s, 6 0\.006 s, ")):
        slow = [calls_run("membarrier", each, n, (0, 0), 0) for each, n in ((3 * 10**6, 2), (ns, 6))]
        with pytest.raises(Malformed, match=words):
            figures.pages_of(seen, slow, PLACED)
        still = [dataclasses.replace(run, calls=dataclasses.replace(run.calls, what="nothing")) for run in slow]
        with pytest.raises(Malformed, match=words):
            figures.pages_of(dataclasses.replace(seen, calls=still), BARRIERS, PLACED)


def check_runs_that_differ(figures: Any) -> None:
    """By more than their calls cost: by as much as four calls, of which one more costs 60 ms, it is known; and by less."""
    for few, many in ((0, 1), (1, 0)):
        for by, there in ((239_000, True), (240_000, True), (241_000, False)):
            more = [
                calls_run("membarrier", 10**7, n, (500_000 + n * 60_000 + sign * by * at // 2, n * 25_000), 9 + n)
                for n, at in ((2, few), (6, many))
                for sign in (-1, 1)
            ]
            found = figures.pages_of(Seen(10, calls=[*more, *NONE]), more, PLACED)
            assert found["pages_of_caller_us"] == (pytest.approx(60_000) if there else "not known")
            assert found["pages_of_other_us"] == pytest.approx(25_000) and found["faults_per_call"] == 2
    # Of a background, and of what is sent; a single interrupt more or less is none of a call, and none is known to be one.
    none = [calls_run("nothing", 10**8, n, (n * 40_000 + at * 9 * 40_000, 0), n + at) for n in (1, 3) for at in (0, 1)]
    found = figures.pages_of(Seen(10, calls=[*BARRIERS, *none]), BARRIERS, PLACED)
    assert found["background_of_caller_us"] == "not known" and found["background_of_other_us"] == 0
    sent, least = figures.sent_of(Seen(10, calls=[*BARRIERS, *none]), BARRIERS, 0)
    # There may be one more in two seconds.
    assert sent == {"sent_per_call": 1, "background_sent": pytest.approx(0.1)} and least == pytest.approx(0.85)
    more = [calls_run("membarrier", 10**7, n, (0, 0), n + at) for n in (2, 6) for at in (0, 5)]
    seen = Seen(10, calls=[*more, *NONE])
    sent, least = figures.sent_of(seen, more, 0)
    assert sent["sent_per_call"] == "not known" and least == pytest.approx(-0.45)
    with pytest.raises(Malformed, match=r"span.ipi.home: at least -0\.45 interrupts more for a call than in as much time"):
        list(figures.interrupts(seen))
    check_times_that_differ(figures)


def check_times_that_differ(figures: Any) -> None:
    """Runs of one size, by as much as four calls take, or by more: then it is not known how long one more is, nor the rest."""
    for few, many, there in (
        ((0, 0), (33 * 10**5, -33 * 10**5), True),
        ((0, 0), (34 * 10**5, -34 * 10**5), False),
        ((95 * 10**5, -95 * 10**5), (0, 0), True),
        ((101 * 10**5, -(10**7)), (0, 0), False),
    ):
        runs = [
            calls_run("membarrier", 10**7 + more, n, (n * 60_000, n * 25_000), n)
            for n, each in ((2, few), (6, many))
            for more in each
        ]
        seen = Seen(10, calls=[*runs, *NONE])
        if there:
            assert figures.pages_of(seen, runs, PLACED)["whole_us"] == pytest.approx(100_000)
        else:
            with pytest.raises(Malformed, match=r"2 calls take 0\.20\d s, 6 0\.600 s, and runs of one size differ by 0\.40"):
                figures.pages_of(seen, runs, PLACED)


def check_the_way(figures: Any) -> None:
    """Means of all runs, each interrupt as much as any other; what nothing was seen of is not known, and so is not the sum."""
    counts = [interrupted((1, 100), (2, 900)), interrupted((3, 700), (2, 300))]
    runs = [dataclasses.replace(run, counts=each) for run, each in zip(BARRIERS, counts, strict=True)]
    assert figures.delivery_of(runs, 0) == {
        "out_us": 200, "wire_us": 3000, "in_us": 300, "delivery_us": 3500, "counted_out": 4, "counted_in": 4,
        "asked_us": 9000, "served_us": 3000, "counted_asked": 2, "counted_served": 2,
    }  # fmt: skip
    nothing = dict.fromkeys(("out_us", "wire_us", "in_us", "delivery_us", "asked_us", "served_us"), "not known")
    none = dict.fromkeys(("counted_out", "counted_in", "counted_asked", "counted_served"), 0)
    assert figures.delivery_of(runs, 1) == {**nothing, **none}
    # No fault, none that was served, and one that was served longer than its answer took.
    way = interrupted((1, 100), (1, 300))
    for home, away, wire in (
        (way.home, phases(ipi_in=(1, 300)), "not known"),
        (phases(ipi_out=(1, 100)), way.away, "not known"),
        (way.home, phases(ipi_in=(1, 300), serve=(1, 9001)), "not known"),
        (way.home, phases(ipi_in=(1, 300), serve=(1, 9000)), 0),
    ):
        found = figures.delivery_of([dataclasses.replace(runs[0], counts=Counts(home, away))], 0)
        # What makes the wire not known is said: none of either, or more of what is within than of the whole.
        asked, served = (found.pop(f"counted_{each}") for each in ("asked", "served"))
        assert asked == home.phase_counts["wire"] and served == away.phase_counts["serve"]
        asked, served = (found.pop(f"{each}_us") for each in ("asked", "served"))
        assert asked == (9000 if home == way.home else "not known")
        assert served == (away.phase_ns["serve"] / 1000 or "not known")
        delivery = "not known" if wire else 400
        assert found == {
            "out_us": 100, "wire_us": wire, "in_us": 300, "delivery_us": delivery, "counted_out": 1, "counted_in": 1,
        }  # fmt: skip


def check_interrupts_of_the_background(figures: Any) -> None:
    """They are none of a call: what is left of those that were sent has to be one for every second call."""
    way = interrupted((1, 100), (1, 100))

    def seen(each: int) -> Seen:
        none = [calls_run("nothing", 2 * 10**8, n, (0, 0), 2 * each * n) for n in (1, 3)]
        calls = [dataclasses.replace(run, counts=run.counts.plus(way)) for run in BARRIERS]
        return Seen(10, calls=[*calls, *none])

    (found,) = figures.interrupts(seen(4))
    assert found.baseline["sent_per_call"] == 1 and found.baseline["background_sent"] == pytest.approx(0.4)
    with pytest.raises(Malformed, match=r"span.ipi.home: at least 0\.40 interrupts more for a call than in as much time"):
        list(figures.interrupts(seen(6)))


def check_wakes_without_interrupts(figures: Any) -> None:
    """One way of which there are fewer in the long runs, or none: what was counted is no wake-up's, so the way is not known."""
    way = interrupted((1, 100), (1, 100))
    for sent in (10, 0):
        runs = []
        for n in (2, 6):
            ways = {"ns": [10**7] * n, "back_ns": [10**7] * n, "slept": 0}
            said = {"event": "calls", "what": "wake", "cpus": [0, 1], **ways}
            counts = Counts(HostCounts(events=max(sent - n, 0)), HostCounts(events=n))
            counts = counts.plus(Counts(way.away, way.home)).plus(way if sent else Counts())
            runs.append(CallsRun(parse_calls(json.dumps(said), "wake"), counts))
        there, back = figures.wakes(Seen(10, calls=[*runs, *NONE]))
        assert there.metric == "span.wake.to_away.us" and there.value == back.value == 10**5
        assert there.baseline["sent_per_call"] == ("not known" if sent else 0)
        assert {there.baseline[f"{part}_us"] for part in ("out", "wire", "in", "delivery")} == {"not known"}
        assert there.baseline["counted_out"] == (2 if sent else 0)
        assert back.baseline["sent_per_call"] == 1 and back.baseline["delivery_us"] == 3200
        assert there.baseline["clock_error_us"] == back.baseline["clock_error_us"] == "not known"
    # One for each wake-up, and nearly as many without any.
    calls = [dataclasses.replace(run, counts=Counts(HostCounts(events=len(run.calls.ns))).plus(way)) for run in runs]
    none = [calls_run("nothing", 10**8, n, (0, 0), 4 * n) for n in (1, 3)]
    there, _ = figures.wakes(Seen(10, calls=[*calls, *none]))
    assert there.baseline["sent_per_call"] == 1 and there.baseline["background_sent"] == pytest.approx(0.8)
    assert there.baseline["delivery_us"] == "not known"


CHECKS: tuple[Callable[[Any], None], ...] = (
    check_phases,
    check_what_is_not_known,
    check_runs_that_differ,
    check_the_way,
    check_interrupts_of_the_background,
    check_wakes_without_interrupts,
)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.module}: {mutant.becomes[:50]}")
def test_a_mistake_is_noticed(mutant: Mutant) -> None:
    """By a figure that is another one, or is not there."""
    with mistaken(mutant) as modules:
        world = BenchWorld()
        bench = modules["span"].SpanBench(world.site(), modules["span"].SpanShape(lpj=7))
        assert differs(modules, bench), "no figure has changed"


def differs(modules: Mapping[str, ModuleType], bench: Any) -> bool:
    """Whether it is noticed: by figures, by the order of what is measured, or since something was asked that makes no sense."""
    try:
        bench.run(lambda seen: [])
        check_figures(*modules["span_figures"].metrics(bench.seen))
        check_order(bench.seen)
        for check in CHECKS:
            check(modules["span_figures"])
    except (AssertionError, KeyError, TypeError, ValueError, LabError, pytest.fail.Exception):
        return True
    return bool(bench.failed)


def test_without_a_mistake_none_is_noticed() -> None:
    """The modules that are made anew are as good as the others."""
    line = "VNODE = 1\n"
    with mistaken(Mutant("span", line, line)) as modules:
        world = BenchWorld()
        bench = modules["span"].SpanBench(world.site(), modules["span"].SpanShape(lpj=7))
        assert not differs(modules, bench)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: str(check.__name__))
def test_slopes_and_means(check: Callable[[Any], None]) -> None:
    check(span_figures)


@pytest.mark.parametrize("phase", ["ipi_out", "ipi_in"])
def test_a_part_without_a_count_is_said(whole: tuple[Seen, BenchWorld], phase: str) -> None:
    """Interrupts that all waited until the guest goes on, or none: the way is not known, and calls take as long."""

    def less(host: HostCounts) -> HostCounts:
        return dataclasses.replace(host, phase_counts={**host.phase_counts, phase: 0})

    calls = [dataclasses.replace(run, counts=Counts(*map(less, run.counts.both))) for run in whole[0].calls]
    found, missing = metrics(dataclasses.replace(whole[0], calls=calls))
    before, after = by_name(metrics(whole[0])[0]), by_name(found)
    assert missing == [] and before.keys() == after.keys()
    for name in ("span.ipi.home.us", "span.ipi.away.us", "span.wake.to_away.us", "span.wake.to_home.us"):
        assert after[name].value == before[name].value
        part = f"{phase.removeprefix('ipi_')}_us"
        assert after[name].baseline[part] == after[name].baseline["delivery_us"] == "not known"


def test_interrupts_without_a_question(whole: tuple[Seen, BenchWorld]) -> None:
    """That dsmd's own questions were not seen costs nothing but how well clocks are known."""
    before, after = (by_name(metrics(each)[0]) for each in (whole[0], dataclasses.replace(whole[0], lines=[])))
    assert after["span.ipi.home.us"] == before["span.ipi.home.us"]
    wakes = [names["span.wake.to_home.us"] for names in (before, after)]
    assert wakes[1].baseline == {**wakes[0].baseline, "clock_error_us": "not known"} and wakes[0].note == wakes[1].note


@pytest.mark.parametrize("lost", ["membarrier", "nothing"])
def test_one_size_makes_no_slope(whole: tuple[Seen, BenchWorld], lost: str) -> None:
    """Then there is no figure of an interrupt, and why is said; a hypercall's is there."""
    kept = [run for run in whole[0].calls if run.calls.what != lost or len(run.calls.ns) == span.ROUNDS[lost][0]]
    found, missing = metrics(dataclasses.replace(whole[0], calls=kept))
    assert any(f"{lost}: one size of runs" in line for line in missing), missing
    names = by_name(found)
    assert "span.ipi.home.us" not in names and "span.hypercall.forwarded.us" in names
    assert f"{lost}: one size" in names["span.part.figures"].note


def test_a_host_where_nobody_waited(whole: tuple[Seen, BenchWorld]) -> None:
    """Is a reason, and not silence."""
    none = [
        dataclasses.replace(run, counts=Counts(run.counts.home, dataclasses.replace(run.counts.away, waits=0)))
        for run in whole[0].kernels
    ]
    found, missing = metrics(dataclasses.replace(whole[0], kernels=none, kv=[]))
    assert missing == [f"faults: span.fault.away: no vCPU there has waited for a page in {len(none) // 2} runs"]
    assert "span.fault.home.us" in by_name(found)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (
            {"interrupts": 0},
            "interrupts: span.ipi.home: at least 0.00 interrupts more for a call than in as much time without; span.ipi.away: ",
        ),
        ({"calls": 0}, "hypercalls: span.hypercall.forwarded: 0.00 of a call were forwarded"),
        ({"calls_done": 0}, "hypercalls: span.hypercall.forwarded: 1.00 of a call were forwarded, and 0.00 done"),
    ],
)
def test_what_was_not_done_has_no_figure(whole: tuple[Seen, BenchWorld], change: dict[str, int], words: str) -> None:
    """Calls that stayed where they were made would be quick ones."""

    def changed(run: CallsRun) -> CallsRun:
        hosts = [
            dataclasses.replace(host, events=0 if "interrupts" in change else host.events, **change)  # type: ignore[arg-type]
            for host in run.counts.both
        ]
        return dataclasses.replace(run, counts=Counts(*hosts))

    seen = dataclasses.replace(whole[0], calls=[changed(run) for run in whole[0].calls])
    found, missing = metrics(seen)
    assert len(missing) == 1 and missing[0].startswith(words)
    assert {"span.hypercall.home.us", "span.kv.speedup", "span.wake.to_home.us"} <= set(by_name(found))


@pytest.mark.parametrize(("share", "there"), [(0.45, False), (0.55, True)])
def test_half_of_the_calls_interrupt(whole: tuple[Seen, BenchWorld], share: float, there: bool) -> None:
    """At least: a CPU that runs something else need not be interrupted."""
    seen = whole[0]
    all_of_them = float(by_name(metrics(seen)[0])["span.ipi.home.us"].baseline["sent_per_call"])

    def few(run: CallsRun) -> CallsRun:
        made = round(share * len(run.calls.ns)) if run.calls.what == "membarrier" else 0
        home, away = (dataclasses.replace(host, interrupts=0, events=0) for host in run.counts.both)
        return dataclasses.replace(run, counts=Counts(dataclasses.replace(home, interrupts=made), away))

    assert all_of_them > 0.5
    found = by_name(metrics(dataclasses.replace(seen, calls=[few(run) for run in seen.calls]))[0])
    assert ("span.ipi.home.us" in found) == there


def test_a_clock_is_known_as_well_as_at_the_worst_time(whole: tuple[Seen, BenchWorld]) -> None:
    lines = [dataclasses.replace(whole[0].lines[0], clock_error_us=each) for each in (40.0, 900.0, 70.0)]
    found = by_name(metrics(dataclasses.replace(whole[0], lines=lines))[0])
    for metric in ("span.wake.to_home.us", "span.round_trip.us"):
        assert found[metric].baseline["clock_error_us"] == 900.0, metric


def test_what_serves_is_that_of_all_runs(whole: tuple[Seen, BenchWorld]) -> None:
    """Also of the last one, in which the other host was slow."""
    seen = whole[0]
    last = max(number for number, run in enumerate(seen.kernels) if run.both)
    away = seen.kernels[last].counts.away
    slow = dataclasses.replace(away, phase_ns={**away.phase_ns, "serve": 9 * away.phase_ns["serve"]})
    counts = dataclasses.replace(seen.kernels[last].counts, away=slow)
    kernels = [*seen.kernels]
    kernels[last] = dataclasses.replace(kernels[last], counts=counts)
    before, after = (
        by_name(metrics(each)[0])["span.fault.home.us"].baseline["serve_us"]
        for each in (seen, dataclasses.replace(seen, kernels=kernels))
    )
    assert float(after) > float(before) > 0


def test_a_ratio_is_of_times() -> None:
    better = ratio("a.b", [4, 6], [2, 2], "higher", "x")
    assert better.value == 2.5 and sorted(better.runs) == [2, 2, 3, 3] and better.note == "x"
    assert "not known" in ratio("a.b", [1, 3], [2, 2], "higher", "x").note
    assert "not known" not in better.note
    # One run says nothing of how far two are apart.
    for one, other in (([4], [2, 2]), ([4, 6], [2]), ([4], [2])):
        assert "of one run" in ratio("a.b", one, other, "higher", "x").note
    for above, below in (([], [1]), ([1], []), ([1], [0]), ([-1.0], [1])):
        with pytest.raises(Malformed, match=r"a\.b: .* is no ratio"):
            ratio("a.b", above, below, "higher", "x")


@pytest.mark.parametrize(("share", "value"), [(0.0, 1), (0.1, 1), (0.11, 2), (0.5, 5), (0.99, 10), (1.0, 10)])
def test_quantile(share: float, value: float) -> None:
    assert quantile([10, 9, 8, 7, 6, 5, 4, 3, 2, 1], share) == value


def test_counters_of_two_dsmds_are_no_interval() -> None:
    few, more = HostCounts(faults=3), HostCounts(faults=5)
    assert more.since(few).faults == 2 and more.plus(few).faults == 8
    with pytest.raises(Malformed, match="faults went from 5 to 3"):
        few.since(more)
    phase = dataclasses.replace(more, phase_ns={**more.phase_ns, "wire": 4})
    with pytest.raises(Malformed, match="phase_ns went from"):
        more.since(phase)


def test_what_a_host_says() -> None:
    world = BenchWorld()
    world.attached = world.created = True
    world.work_done["alpha"] = 1
    status, xen = world.status("alpha"), json.loads(str(world.dom0("alpha", "dsm-stats 1")))
    found = host_counts(status, xen)
    assert (found.faults, found.messages, found.bytes) == (40, 150, 15000) and found.waits == WAITS["alpha"]
    assert found.mean_us("wire") == WIRE_NS / 1000 and line_of(status).round_trip_us == ROUND_TRIP_NS / 1000
    assert host_counts({}, {}) == host_counts({"state": "starting"}, {}) == HostCounts()
    with pytest.raises(LabError, match="failed: a reason"):
        host_counts({"state": "failed", "failure": "a reason"}, {})
    for broken in ({**status, "poll": {}}, {**status, "peers": {"x": {}}}, {**status, "read_faults": "x"}):
        with pytest.raises(Malformed, match="counters"):
            host_counts(broken, xen)
    with pytest.raises(Malformed, match="no request was seen in the phase 'wire'"):
        HostCounts().mean_us("wire")
    old = {**status, "phases": {key: each for key, each in dict(status["phases"]).items() if key != "ipi_in"}}  # type: ignore[call-overload]
    with pytest.raises(Malformed, match="counters: KeyError"):
        host_counts(old, xen)
    peer: Any = dict(dict(status["peers"])["x"])  # type: ignore[call-overload]
    unconnected: list[dict[str, Any]] = [
        {},
        {"peers": {}},
        {"peers": {"x": {**peer, "round_trip": {"count": 0, "median_ns": 0}}}},
    ]
    for each in unconnected:
        with pytest.raises(Malformed, match="dsm"):
            line_of(each)


@pytest.mark.parametrize(
    ("text", "phases"),
    [
        (
            "vnode 1: online (prepare 0.20 s, guest 3.10 s, settle 0.10 s)",
            {"prepare": 0.2, "guest": 3.1, "settle": 0.1},
        ),
        ("vnode 1: online, 128 of 128 MiB (a host) on host beta (cpus-up 12.34 s)\n", {"cpus-up": 12.34}),
        ("vnode 1: offline", {}),
    ],
)
def test_phases_of_xl(text: str, phases: dict[str, float]) -> None:
    assert xl_phases(text) == phases


# --- what fails -----------------------------------------------------------------------------------------------------------


def replied(text: str) -> Callable[[Done], Done]:
    return lambda done: Done(0, text)


def edited(old: str, new: str) -> Callable[[Done], Done]:
    return lambda done: dataclasses.replace(done, out=re.sub(old, new, done.out))


START = '{"event": "start", "program": "npb_ep", "class": "S", "bytes": 1}\n'


@pytest.mark.parametrize(
    ("change", "words", "without"),
    [
        (instead("guest", "npb_is", replied("139\nKilled\n==\n")), "npb_is on home: .*it ended with '139': Killed", "npb_is"),
        (instead("guest", "npb_is", edited('"threads": 2', '"threads": 1')), r"teams of \[1\], not of 2", "npb_is.both"),
        (instead("guest", "stream", edited('"event": "iteration".*\n.*', '"event": "x"}\n')), "unknown event", "stream"),
        (instead("guest", "span_kv", replied("124\n\n==\nsome\n")),
         "kv on both hosts: .*cut off after 180 s; until then: 'some'", "kv"),
        (instead("guest", "what=wake", replied("124\n\n==\n")), "wake at alpha: .*cut off after 180 s", "wake"),
        (instead("guest", "what=status --cpus=1", edited(r'"cpus": \[1\]', '"cpus": [0]')),
         r"status at beta: status: 10 calls by CPUs \(0,\), not 10 by \[1\]", "hypercall.forwarded"),
        (instead("guest", "what=version", edited(r'"ns": \[100, ', '"ns": [')),
         "version at alpha: version: 99 calls", "hypercall.home"),
        (instead("guest", "npb_ep", replied(f"124\n\n==\n{START}")),
         "npb_ep: no iteration in 60 s", "npb_ep"),
        (instead("guest", "span_kv", edited('"lost": 0', '"lost": 1')),
         "kv on both hosts: span_kv: wrong values: {'lost': 1}", "kv"),
        (instead("guest", "what=wake", replied("1\nfutex: no\n==\n")), "wake at alpha: .*futex: no", "wake"),
        (instead("beta", "dsmctl set", Done(3, "", "no such machine")), "kv on both hosts: .*no such machine", "kv.on"),
        (instead("guest", "dsm_membench.*--node=0", edited('"bad_pages": 0', '"bad_pages": 2')),
         "ownership: .*2 pages with wrong", "ownership.home"),
        (instead("beta", "dsm-stats", Done(0, "{}")), "counters: KeyError", "npb_ep.both"),
        (instead("guest", "dmesg", replied("BUG: soft lockup - CPU#0 stuck for 22s!\n")), "the guest's kernel complains", ""),
    ],
)  # fmt: skip
def test_what_fails_is_left_out(change: Change, words: str, without: str) -> None:
    """And said; the rest is measured."""
    bench, _ = played_bench(change, rounds=1)
    bench.run(lambda seen: metrics(seen)[1])
    assert bench.failed and re.search(words, "\n".join(bench.failed), re.S), bench.failed
    names = by_name(metrics(bench.seen)[0])
    assert not without or not any(name.startswith(f"span.{without}") for name in names), sorted(names)
    assert "span.npb_ep.home.ms" in names or without == "npb_ep"
    # The file says why, too.
    assert any(re.search(words, metric.note, re.S) for name, metric in names.items() if name.startswith("span.part."))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (instead("alpha", "vnode-attach", Done(5, "", "no such host")), "xl vnode-attach: exit status 5: no such host"),
        (instead("alpha", "xl create", Done(1, "", "no memory")), "no memory"),
        (instead("beta", "^xl list", replied("Name ID\n")), "beta has 0 slices of the guest, not one"),
        (instead("beta", "-j status", edited('"running"', '"failed"')), "the guest has failed"),
        (lambda who, command, done: Done(255, "") if who == "guest" and re.search("npb_ep|^true", command) else done,
         "true: exit status 255"),
    ],
)  # fmt: skip
def test_what_ends_it(change: Change, words: str, tmp_path: Path) -> None:
    """What there is until then is kept."""
    bench, _ = played_bench(change, rounds=1)
    publisher = Publisher(tmp_path)
    bench.run(publisher)
    assert any(words in line for line in bench.failed), bench.failed
    assert (tmp_path / "span.json").is_file() == bool(bench.seen.kernels)
    if bench.seen.kernels:
        parts = [each for each in read(tmp_path / "span.json").metrics if each.metric.startswith("span.part.")]
        assert any(words in part.note for part in parts) and all(part.value is None for part in parts), parts


def test_the_file(tmp_path: Path) -> None:
    """Valid, written after each round, and the one before is kept."""
    (tmp_path / "span.json").write_text("{}", encoding="utf-8")
    bench, _ = played_bench()
    publisher = Publisher(tmp_path)
    bench.run(publisher)
    assert bench.failed == []
    found = read(tmp_path / "span.json")
    assert found.find("span.kv.speedup") and problems(encode(found)) == []
    assert len(list((tmp_path / "earlier").iterdir())) == 1


# --- what programs say ----------------------------------------------------------------------------------------------------


KV = BenchWorld().kv("--cpus=0,1 --ops=3 --layout=paged")


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"torn": 0', '"torn": 2', "wrong values"),
        ('"old": 0, ', "", "wrong values"),
        ('"layout": "paged"', '"layout": "x"', "has not ended"),
        ('"gets": 6', '"gets": 5', "2 threads, of which 2 say 6 of 5"),
        ('"threads": 2', '"threads": 3', "3 threads, of which 2"),
        ('"ops": 64', '"ops": 63', "operations"),
        ('"ops": 6,', '"ops": 7,', "operations"),
        ('"ns": 6000', '"ns": 0', "ns 0 is no number"),
        ('"event": "result".*', '"event": "x"}', "unexpected line"),
        ('"what": "mix"', '"what": "load"', "unexpected line"),
        ('"p99_ns": 9', '"p99_ns": -9', "p99_ns -9"),
        ('{"event": "start"', "[", "not JSON"),
        ('.*"result".*\n', "", "has not ended"),
        ('^.*"start".*\n', "", "unexpected event 'step'"),
    ],
)
def test_a_store_that_says_something_else(old: str, new: str, words: str) -> None:
    changed = re.sub(old, new, KV)
    assert changed != KV
    with pytest.raises(Malformed, match=words):
        parse_kv(changed)
    assert parse_kv(KV).per_second("mix", 10) == pytest.approx(1e9 / 1000 / 10)


@pytest.mark.parametrize(
    ("text", "what"),
    [
        ("", "wake"),
        ("x\n", "wake"),
        ("[]\n", "wake"),
        ('{"event":"calls","what":"wake","cpus":[0,1],"ns":[1],"slept":1}\n', "wake"),
        ('{"event":"calls","what":"wake","cpus":[0,1],"ns":[1],"back_ns":[1],"slept":3}\n', "wake"),
        ('{"event":"calls","what":"wake","cpus":[0,1],"ns":[1],"back_ns":[1]}\n', "wake"),
        ('{"event":"calls","what":"wake","cpus":[0,1],"ns":[1],"back_ns":[1],"met_ns":[1],"slept":1}\n', "wake"),
        ('{"event":"calls","what":"membarrier","cpus":[0,1],"ns":[1]}\n', "membarrier"),
        ('{"event":"calls","what":"membarrier","cpus":[0,1],"ns":[1,2],"met_ns":[1]}\n', "membarrier"),
        ('{"event":"calls","what":"nothing","cpus":[0,1],"ns":[1,2],"met_ns":[1,2]}\n', "nothing"),
        ('{"event":"calls","what":"status","cpus":[0],"ns":[]}\n', "status"),
        ('{"event":"calls","what":"status","cpus":[0],"ns":[18446744073709551615]}\n', "status"),
        ('{"event":"calls","what":"status","cpus":[0],"ns":[1.5]}\n', "status"),
        ('{"event":"calls","what":"status","cpus":[0],"ns":[1]}\n', "version"),
        ('{"event":"calls","what":"status","cpus":[0],"ns":[1]}\n' * 2, "status"),
    ],
)
def test_calls_that_say_something_else(text: str, what: str) -> None:
    with pytest.raises(Malformed):
        parse_calls(text, what)


# --- the command ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "words", ["--rounds=0", "--rounds=21", "--cpus=3", "node", "--wrong", "--programs=npb_ep,x", "--seconds=0"]
)
def test_words_that_make_no_sense(words: str) -> None:
    with pytest.raises(SystemExit) as ended:
        span.main(words.split())
    assert ended.value.code == 2


def test_a_rack_that_does_not_boot(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    def boot(*_: object, **__: object) -> None:
        raise LabError("alpha: no memory")

    monkeypatch.setattr(Rack, "boot", boot)
    assert span.main([]) == 1
    assert "span: not measured: alpha: no memory" in capsys.readouterr().err
