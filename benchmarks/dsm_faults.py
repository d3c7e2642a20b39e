# SPDX-License-Identifier: GPL-2.0
"""Where the time of a fault goes, and how many messages it takes: Xen's counters and dsmd's, before and after a run.

Three clocks see a fault, one within the other: the guest's program (its access), Xen (the vCPU stops, and is woken), dsmd
(the miss is read from the ring, the vCPU is woken). dsmd at home splits its part, and the other host's dsmd says how much of
the wait for it was its own. Means of all faults of a run, so that they add up:
    outside    program less all that Xen has seen: the exit from the guest until Xen's look-up has found that the page is not
               here, the wait for the p2m's lock within; the way back into the guest; the program's loop; and the guest's own
               page fault, where memory is written for the first time
    trap       Xen: from there until the vCPU stops, and its miss is in the ring
    ring       Xen less dsmd: the event, dom0's scheduling, the ring; less what is left of the page operation after Xen has
               woken the vCPU within it
    queue      dsmd: from the ring until the request is with the transport
    wire       until the answer is read, less `serve`: both network stacks, both dsmds' wake-ups, the cable
    serve      the other host's dsmd: from the request until the answer is with the transport, its page operation within
    install    until the waiter is woken: the page operation
    wake       Xen: from when it is woken until it is about to enter the guest; less pauses
trap and wake are for each wait, though a few have none (dsm.h): else they would not add up.
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import membench
from benchmarks.results import Metric, from_runs
from lab.errors import Malformed
from lab.spanning import Spanning

# Who polls sleeps for less than this share of the messages, or the figure says so.
SLEEPS = 0.1
# A program's first words and Xen's waits are the same faults if no more than this share of the waits is of others. Some pages
# of memory that is written first are at hand, since a run before has given them back: they cost next to nothing.
STRANGERS, AT_HAND = 0.1, 0.3
# Pages that miss, for each that is copied, at the least: else the copies are of memory at hand.
LEAST_MISSES = 0.5
HERE = ("queue", "wire", "install")


def xen_bucket_end_ns(bucket: int) -> float:
    """The end of a bucket of Xen's histogram: four between two powers of two (dsm.h)."""
    return (5 + bucket % 4) * 2.0 ** (bucket // 4 - 2)


def quantile_ns(buckets: Mapping[float, int], share: float) -> float:
    """The end of the bucket in which that share of all is reached. Raises Malformed if there is nothing."""
    wanted = share * sum(buckets.values())
    for end in sorted(buckets):
        wanted -= buckets[end]
        if buckets[end] and wanted <= 0:
            return end
    raise Malformed("a quantile of nothing")


def _less[K](after: Mapping[K, int], before: Mapping[K, int]) -> dict[K, int]:
    left = {end: number - before.get(end, 0) for end, number in after.items()}
    if any(number < 0 for number in left.values()):
        raise Malformed("a histogram went down")
    return left


@dataclasses.dataclass(frozen=True)
class Snapshot:
    """Counters at one time, or between two."""

    waits: int
    wait_ns: int
    wait_buckets: Mapping[float, int]
    traps: int  # waits that have one
    trap_ns: int
    wakes: int
    wake_ns: int
    read_faults: int
    write_faults: int
    fault_buckets: Mapping[float, int]  # reads and writes, as dsmd sees them
    sent: int
    received: int
    evicted_shared: int
    evicted_modified: int
    prefetches: int  # pages asked for ahead
    cleared: int  # pages asked for without their bytes
    looks: int  # of both hosts' loops, instead of sleeping
    found: int  # times that something came meanwhile
    sleeps: int
    fault_ns: int  # of dsmd, reads and writes
    phase_counts: Mapping[str, int]
    phase_ns: Mapping[str, int]

    @staticmethod
    def take(there: Spanning) -> Snapshot:
        """Now. Raises CommandFailedError, Malformed."""
        return Snapshot.of(there.xen(), there.status(), there.status(1))

    @staticmethod
    def of(xen: Mapping[str, Any], status: Mapping[str, Any], other: Mapping[str, Any]) -> Snapshot:
        """From what dsm-stats and dsmctl of both hosts print. Raises Malformed."""
        try:
            faults: dict[float, int] = {}
            for key in ("read_fault", "write_fault"):
                for end, number in status[key]["buckets"]:
                    at = float("inf") if end is None else float(end)
                    faults[at] = faults.get(at, 0) + int(number)
            (peer,) = status["peers"].values()
            phases = {phase: status["phases"][phase] for phase in HERE} | {"serve": other["phases"]["serve"]}
            return Snapshot(
                int(xen["waits"]),
                int(xen["wait_ns"]),
                {xen_bucket_end_ns(n): int(number) for n, number in enumerate(xen["wait_hist"])},
                int(xen["traps"]),
                int(xen["trap_ns"]),
                int(xen["wakes"]),
                int(xen["wake_ns"]),
                int(status["read_faults"]),
                int(status["write_faults"]),
                faults,
                int(peer["sent"]),
                int(peer["received"]),
                int(status["engine"]["evicted_shared"]),
                int(status["engine"]["evicted_modified"]),
                int(status["engine"]["prefetches"]),
                int(status["engine"]["cleared"]),
                int(status["poll"]["looks"]) + int(other["poll"]["looks"]),
                int(status["poll"]["found"]) + int(other["poll"]["found"]),
                int(status["poll"]["sleeps"]) + int(other["poll"]["sleeps"]),
                sum(int(status[key]["sum_ns"]) for key in ("read_fault", "write_fault")),
                {phase: int(histogram["count"]) for phase, histogram in phases.items()},
                {phase: int(histogram["sum_ns"]) for phase, histogram in phases.items()},
            )
        except (KeyError, TypeError, ValueError) as error:
            raise Malformed(f"statistics: {error!r}") from error

    def since(self, before: Snapshot) -> Snapshot:
        """What happened in between. Raises Malformed if something went down."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            now, then = getattr(self, field.name), getattr(before, field.name)
            values[field.name] = _less(now, then) if isinstance(now, Mapping) else now - then
            if isinstance(now, int) and now < then:
                raise Malformed(f"{field.name} went from {then} to {now}")
        return Snapshot(**values)

    def plus(self, other: Snapshot) -> Snapshot:
        """What happened in two times together."""
        values: dict[str, Any] = {}
        for field in dataclasses.fields(self):
            one, two = getattr(self, field.name), getattr(other, field.name)
            values[field.name] = (
                {key: one.get(key, 0) + two.get(key, 0) for key in {**one, **two}}
                if isinstance(one, Mapping)
                else one + two
            )
        return Snapshot(**values)

    def costs(self) -> dict[str, int]:
        """What something cost besides time."""
        return {
            "read_faults": self.read_faults,
            "write_faults": self.write_faults,
            "messages": self.sent + self.received,
            "evicted_shared": self.evicted_shared,
            "evicted_modified": self.evicted_modified,
            "prefetches": self.prefetches,
        }

    @property
    def faults(self) -> int:
        """Misses of vCPUs that dsmd has served."""
        return self.read_faults + self.write_faults

    def mean_us(self, phase: str) -> float:
        """Of a phase that dsmd measures. Raises Malformed if there was none."""
        if not self.phase_counts[phase]:
            raise Malformed(f"no request was seen in the phase '{phase}'")
        return self.phase_ns[phase] / self.phase_counts[phase] / 1000


def messages_of_both(one: Snapshot, other: Snapshot, prefix: str) -> list[Metric]:
    """PREFIX.messages_per_KIND_fault of reads and of writes, without a word of what one of them takes.

    From two runs with different shares of both: two equations. Those of pages that made room are left out, as in messages().
    Raises Malformed if the shares are too much alike to tell.
    """
    left = [each.sent + each.received - each.evicted_shared - 2 * each.evicted_modified for each in (one, other)]
    (r1, w1), (r2, w2) = ((each.read_faults, each.write_faults) for each in (one, other))
    apart = r1 * w2 - r2 * w1
    if abs(apart) < (r1 * w2 + r2 * w1) / 10 or not apart:
        raise Malformed(
            f"{prefix}: {r1} reads and {w1} writes, and {r2} and {w2}: too much alike to tell their messages"
        )
    costs = {
        "read_faults": r1 + r2,
        "write_faults": w1 + w2,
        "messages": one.sent + one.received + other.sent + other.received,
    }
    note = "from two runs with different shares of reads and writes; upgrades of copies count as writes"
    per = {"read": (left[0] * w2 - left[1] * w1) / apart, "write": (r1 * left[1] - r2 * left[0]) / apart}
    return [
        Metric(f"{prefix}.messages_per_{kind}_fault", number, "1", "lower", costs, note=note)
        for kind, number in per.items()
    ]


def messages(counted: Snapshot, prefix: str) -> Metric:
    """PREFIX.messages_per_read_fault, without those of pages that made room: one for a copy, two for a page sent home.

    Two of each write are left out, too: of a page that only its home has, it costs a request and an answer.
    """
    if not counted.read_faults:
        raise Malformed("no fault of reads in this run")
    total = counted.sent + counted.received
    other = counted.evicted_shared + 2 * counted.evicted_modified + 2 * counted.write_faults
    return Metric(
        f"{prefix}.messages_per_read_fault",
        (total - other) / counted.read_faults,
        "1",
        "lower",
        {
            "messages_per_fault_with_evictions": total / counted.faults,
            "read_faults": counted.read_faults,
            "write_faults": counted.write_faults,
            "evicted_shared": counted.evicted_shared,
            "evicted_modified": counted.evicted_modified,
        },
        note="pages whose home is the other host; upgrades of copies count as writes",
    )


def faults(
    counted: Snapshot, output: membench.Output, found: Sequence[Metric], prefix: str, round_trip: str
) -> list[Metric]:
    """PREFIX.fault: time of a single miss, its phases, and how it compares with `round_trip`, a figure of this run."""
    cold = membench.chosen(output.passes, what="read", order="random", state="cold")
    program = [each.first_ns["p50"] / 1000 for each in cold]
    us = statistics.median(program)
    xen = quantile_ns(counted.wait_buckets, 0.5) / 1000
    dsmd = quantile_ns(counted.fault_buckets, 0.5) / 1000
    trip = next((metric for metric in found if metric.metric == round_trip), None)
    round_trip_us = trip.value if trip else None
    if not counted.waits or not output.accesses:
        raise Malformed(f"{output.accesses} first words of a program, {counted.waits} waits of Xen: no fault")
    xen_mean = counted.wait_ns / counted.waits / 1000
    dsmd_mean = counted.fault_ns / max(counted.faults, 1) / 1000
    serve = counted.mean_us("serve")
    phases: dict[str, float | str] = {
        # All that the program waited for, those that it does not measure, too: Xen counts no others.
        "outside_us": (output.access_ns - counted.trap_ns - counted.wait_ns - counted.wake_ns) / counted.waits / 1000,
        "trap_us": counted.trap_ns / counted.waits / 1000,
        "ring_us": xen_mean - dsmd_mean,
        "queue_us": counted.mean_us("queue"),
        "wire_us": counted.mean_us("wire") - serve,
        "serve_us": serve,
        "install_us": counted.mean_us("install"),
        "wake_us": counted.wake_ns / counted.waits / 1000,
        "xen_mean_us": xen_mean,
        "dsmd_mean_us": dsmd_mean,
        "xen_p50_below_us": xen,
        "dsmd_p50_below_us": dsmd,
        "xen_p99_below_us": quantile_ns(counted.wait_buckets, 0.99) / 1000,
        "faults": counted.faults,
        "waits": counted.waits,
        "traps": counted.traps,
        "wakes": counted.wakes,
        "first_words": output.accesses,
        "looks": counted.looks,
        "found": counted.found,
        "sleeps": counted.sleeps,
    }
    fault = from_runs(f"{prefix}.fault.us", program, "us", "lower")
    note = "median of the first access to a page elsewhere, reads by chance; phases: means, of all faults of the run"
    if not 1 - AT_HAND <= counted.waits / output.accesses <= 1 + STRANGERS:
        note += f"; in doubt: outside_us, as {output.accesses} first words are not {counted.waits} waits of Xen"
    metrics = [dataclasses.replace(fault, baseline=phases, note=note)]
    if trip and round_trip_us:
        beside: dict[str, float | str] = {"round_trip_us": round_trip_us, "fault_us": us, "with": round_trip}
        if trip.runs:
            beside |= {"round_trip_least_us": min(trip.runs), "round_trip_most_us": max(trip.runs)}
        metrics.append(
            Metric(
                f"{prefix}.fault.ratio_to_rtt",
                us / round_trip_us,
                "x",
                "lower",
                beside,
                [each / round_trip_us for each in program],
            )
        )
        metrics.append(Metric(f"{prefix}.fault.overhead_us", us - round_trip_us, "us", "lower", beside))
    return metrics


def below_user_space(
    fault: Metric, found: Sequence[Metric], transport: str, prefix: str, round_trip: str
) -> list[Metric]:
    """PREFIX.below_user_space.ratio_to_rtt: what a transport below user space would make of `fault`; an estimate.

    From figures of this run: a page both ways that the other host's kernel answers, and what is outside of Xen's wait. Ring,
    queue, installation and the other host's page operation are taken for nothing; a fault has its page one way only, and who
    asks for the echo is a program: so it is near what can be had, from neither side for certain. Compared with the raw round
    trip of programs, as dsm.fault.ratio_to_rtt is: each with that of its own time, the echo with that of the part `rtt`, what
    is outside with `round_trip`, a figure. Nothing without those figures.
    """
    values = {metric.metric: metric.value for metric in found}
    then, kernel = values.get(f"dsm.rtt.{transport}.sleep.fault_us"), values.get("dsm.rtt.kernel.page_us")
    now = values.get(round_trip)
    if not (then and kernel and now):
        return []
    outside = max(sum(float(fault.baseline[f"{phase}_us"]) for phase in ("outside", "trap", "wake")), 0.0)
    return [
        Metric(
            f"{prefix}.below_user_space.ratio_to_rtt",
            kernel / then + outside / now,
            "x",
            "lower",
            {
                "round_trip_us": now,
                "round_trip_then_us": then,
                "answered_by_a_kernel_us": kernel,
                "outside_us": outside,
                "fault_us": fault.value or 0.0,
            },
            note="an estimate: a fault whose ring, queue and page operations take no time, answered by a kernel",
        )
    ]


def misses_per_page(counted: Snapshot, output: membench.Output) -> float:
    """Misses of copies, for each page that is copied. Raises Malformed if none was."""
    pages = sum(each.threads * each.mib * 256 for each in output.copies)
    if not pages:
        raise Malformed("dsm_membench: no copy")
    return counted.faults / pages


def copies(counted: Snapshot, output: membench.Output, prefix: str) -> list[Metric]:
    """PREFIX.STEP_us_per_page of map, populate and memcpy: of the slowest thread.

    Raises Malformed if few pages missed: then these are times of memory at hand.
    """
    missed, rounds = misses_per_page(counted, output), output.copies
    if missed < LEAST_MISSES:
        raise Malformed(f"{prefix}: {missed:.2f} misses for a page that is copied: these are at hand")
    found = []
    for step in ("map", "populate", "memcpy", "total"):
        runs = [getattr(each, f"{step}_ns") / 1000 / (each.mib * 256) for each in rounds]
        figure = from_runs(
            f"{prefix}.{step}_us_per_page",
            runs,
            "us",
            "lower",
            f"{rounds[0].threads} threads at home; all switches off",
        )
        costs = {"misses_per_page": missed, "read_faults": counted.read_faults, "write_faults": counted.write_faults}
        found.append(dataclasses.replace(figure, baseline=costs))
    return found


def idle(switches: Mapping[str, int], counted: Snapshot) -> list[str]:
    """What is switched on and was never done, and what is not and was: a comparison with that would say nothing.

    A switch that is not among them is not looked at.
    """
    did = {"prefetch": counted.prefetches, "clear_hint": counted.cleared, "poll_us": counted.looks}
    return [f"{key}={switches[key]}, done {times} times" for key, times in did.items()
            if key in switches and bool(switches[key]) != bool(times)]  # fmt: skip


def sleepy(counted: Snapshot) -> str:
    """Of a note, if both ends polled and yet slept for more than SLEEPS of their messages: then it is half a polling run."""
    share = counted.sleeps / max(counted.sent + counted.received, 1)
    return "" if share < SLEEPS else f"; both ends polled, and slept {share:.2f} times for each message"


def speedups(
    reads: Mapping[str, Sequence[membench.Output]],
    copied: Mapping[str, Sequence[Sequence[membench.Copy]]],
    prefix: str,
    missed: Mapping[str, float] | None = None,
) -> Iterator[Metric]:
    """What switches are good for: times with all of them off over times with each, and with all "on".

    Each was measured in some runs; a time is the median of all their rounds. Beside it is the least and the most that any two
    runs say: a switch is not known to do what is less than runs of one setting differ. `missed`: of copies, misses_per_page()
    with each. Raises Malformed after all others if a time is none, or is the slope of a line that is none: that ratio would be
    anything; and for copies that did not miss.
    """
    problems = []
    missed = missed or {}
    if "off" not in reads or "off" not in copied:
        raise Malformed("nothing was measured with all switches off")
    for name in dict.fromkeys(each for each in (*reads, *copied) if each != "off"):
        for order in membench.ORDERS if name in reads else ():
            here = f"{prefix}.switch.{name}.read_{order}"
            try:
                times = {each: [_missing_us(output, order) for output in reads[each]] for each in ("off", name)}
                speedup = speedup_of(f"{here}.speedup", times, name, "us", "time for a page that is not at hand")
                doubts = [_check_line(f"{here}, '{each}'", reads[each], order) for each in ("off", name)]
            except Malformed as error:
                problems.append(str(error))
                continue
            us, off_us = (float(speedup.baseline[f"{each}_us"]) for each in (name, "off"))
            yield Metric(
                f"{here}.us", us, "us", "lower", {"off_us": off_us}, note="".join(doubts[1:]).removeprefix("; ")
            )
            yield dataclasses.replace(speedup, note=speedup.note + "".join(doubts))
            rate = f"{prefix}.switch.{name}.pages_per_second.{order}"
            yield Metric(rate, 1e6 / us, "1/s", "higher", {"off": 1e6 / off_us}, note="reads; 1 / median time")
        if name not in copied:
            continue
        totals = {
            each: [[copy.total_ns / 1000 / (copy.mib * 256) for copy in run] for run in copied[each]]
            for each in ("off", name)
        }
        metric, note = f"{prefix}.switch.{name}.membench.speedup", "map, populate and memcpy of a shared source"
        try:
            if missed.get("off", LEAST_MISSES) < LEAST_MISSES:
                raise Malformed(f"{metric}: {missed['off']:.2f} misses for a page that is copied: these are at hand")
            speedup = speedup_of(metric, totals, name, "us_per_page", f"{note}, all threads at home")
        except Malformed as error:
            problems.append(str(error))
            continue
        costs = {f"{each}_misses_per_page": missed[each] for each in ("off", name) if each in missed}
        speedup = dataclasses.replace(speedup, baseline={**speedup.baseline, **costs})
        yield speedup
        if name == "on":
            yield dataclasses.replace(speedup, metric=f"{prefix}.membench.speedup")
    if problems:
        raise Malformed("; ".join(problems))


def _cold(output: membench.Output, order: str) -> list[membench.Pass]:
    return membench.chosen(output.passes, what="read", order=order, state="cold")


def _missing_us(output: membench.Output, order: str) -> list[float]:
    """Of a page that was not at hand, of each round."""
    return [ns / 1000 for ns in membench.ns_per_page(_cold(output, order))]


def _check_line(what: str, runs: Sequence[membench.Output], order: str) -> str:
    """Passes are on a line, by the median of all rounds, as the time is. Raises Malformed; returns what a note is to say."""
    whole = runs[0]
    for more in runs[1:]:
        whole = whole.plus(more)
    cold = _cold(whole, order)
    if wrong := membench.off_line(membench.fixed_share(cold), 0.0):
        raise Malformed(f"{what}: {wrong}")
    bent = membench.off_line(0.0, membench.bend(cold))
    return f"; in doubt: {what}: {bent}" if bent else ""


def speedup_of(metric: str, times: Mapping[str, Sequence[Sequence[float]]], name: str, unit: str, note: str) -> Metric:
    """Time with "off" over that of `name`: medians of all rounds; `times` are those of each run.

    `runs`: each run of "off" over each of `name`. Raises Malformed if a time is not above 0.
    """
    medians = {
        each: membench.positive_median(f"{metric}, '{each}'", [us for run in runs for us in run])
        for each, runs in times.items()
    }
    off, on = ([membench.positive_median(f"{metric}, '{each}'", run) for run in times[each]] for each in ("off", name))
    ratios = [without / with_it for without in off for with_it in on]
    least, most = min(ratios), max(ratios)
    baseline: dict[str, float | str] = {f"{each}_{unit}": us for each, us in medians.items()}
    baseline |= {"runs": len(on), "least": least, "most": most}
    if least < 1 < most:
        note += "; not known to be more than two runs of one setting differ"
    return Metric(metric, medians["off"] / medians[name], "x", "higher", baseline, ratios, note)
