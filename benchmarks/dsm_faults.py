# SPDX-License-Identifier: GPL-2.0
"""Where the time of a fault goes, and how many messages it takes: Xen's counters and dsmd's, before and after a run.

Three clocks see a fault, one within the other: the guest's program (its access), Xen (the vCPU stops, and is woken), dsmd
(the miss is read from the ring, the vCPU is woken). dsmd at home splits its part, and the other host's dsmd says how much of
the wait for it was its own. Means, so that they add up:
    outside    program less Xen: the trap, Xen's look-up, the way back into the guest
    ring       Xen less dsmd: the event, dom0's scheduling, the ring; and the wake-up, when dsmd has asked for it
    queue      dsmd: from the ring until the request is with the transport
    wire       until the answer is read, less `serve`: both network stacks, both dsmds' wake-ups, the cable
    serve      the other host's dsmd: from the request until the answer is with the transport, its page operation within
    install    until the waiter is woken: the page operation
"""

from __future__ import annotations

import dataclasses
import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks import membench
from benchmarks.results import Metric, from_runs
from benchmarks.spanning import Spanning
from lab.errors import Malformed

# Who polls sleeps for less than this share of the messages, or the figure says so.
SLEEPS = 0.1
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
    round_trip_us = next((metric.value for metric in found if metric.metric == round_trip), None)
    all_cold = membench.chosen(output.passes, state="cold")
    xen_mean = counted.wait_ns / max(counted.waits, 1) / 1000
    dsmd_mean = counted.fault_ns / max(counted.faults, 1) / 1000
    serve = counted.mean_us("serve")
    phases: dict[str, float | str] = {
        "outside_us": sum(each.ns for each in all_cold) / sum(each.pages for each in all_cold) / 1000 - xen_mean,
        "ring_us": xen_mean - dsmd_mean,
        "queue_us": counted.mean_us("queue"),
        "wire_us": counted.mean_us("wire") - serve,
        "serve_us": serve,
        "install_us": counted.mean_us("install"),
        "xen_mean_us": xen_mean,
        "dsmd_mean_us": dsmd_mean,
        "xen_p50_below_us": xen,
        "dsmd_p50_below_us": dsmd,
        "xen_p99_below_us": quantile_ns(counted.wait_buckets, 0.99) / 1000,
        "faults": counted.faults,
        "looks": counted.looks,
        "found": counted.found,
        "sleeps": counted.sleeps,
    }
    fault = from_runs(f"{prefix}.fault.us", program, "us", "lower")
    note = "median of the first access to a page elsewhere, reads by chance; phases: means, of all faults of the run"
    metrics = [dataclasses.replace(fault, baseline=phases, note=note)]
    if round_trip_us:
        beside: dict[str, float | str] = {"round_trip_us": round_trip_us, "fault_us": us, "with": round_trip}
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


def below_user_space(fault: Metric, found: Sequence[Metric], transport: str, prefix: str) -> list[Metric]:
    """PREFIX.below_user_space.ratio_to_rtt: what a transport below user space would make of `fault`; an estimate.

    From figures of this run: a page both ways that the other host's kernel answers, and what is outside of Xen's clock. Ring,
    queue, installation and the other host's page operation are taken for nothing; a fault has its page one way only, and who
    asks for the echo is a program: so it is near what can be had, from neither side for certain. Compared with the raw round
    trip of programs, as dsm.fault.ratio_to_rtt is. Nothing without those figures.
    """
    values = {metric.metric: metric.value for metric in found}
    round_trip, kernel = values.get(f"dsm.rtt.{transport}.sleep.fault_us"), values.get("dsm.rtt.kernel.page_us")
    if not (round_trip and kernel):
        return []
    outside = max(float(fault.baseline["outside_us"]), 0.0)
    return [
        Metric(
            f"{prefix}.below_user_space.ratio_to_rtt",
            (kernel + outside) / round_trip,
            "x",
            "lower",
            {
                "round_trip_us": round_trip,
                "answered_by_a_kernel_us": kernel,
                "outside_us": outside,
                "fault_us": fault.value or 0.0,
            },
            note="an estimate: a fault whose ring, queue and page operations take no time, answered by a kernel",
        )
    ]


def copies(rounds: Sequence[membench.Copy], prefix: str) -> list[Metric]:
    """PREFIX.STEP_us_per_page of map, populate and memcpy: of the slowest thread."""
    found = []
    for step in ("map", "populate", "memcpy", "total"):
        runs = [getattr(each, f"{step}_ns") / 1000 / (each.mib * 256) for each in rounds]
        found.append(
            from_runs(f"{prefix}.{step}_us_per_page", runs, "us", "lower", f"{rounds[0].threads} threads at home")
        )
    return found


def idle(switches: Mapping[str, int], counted: Snapshot) -> list[str]:
    """What is switched on and was never done, and what is not and was: a comparison with that would say nothing."""
    did = {"prefetch": counted.prefetches, "clear_hint": counted.cleared, "poll_us": counted.looks}
    return [f"{key}={switches.get(key, 0)}, done {times} times" for key, times in did.items()
            if bool(switches.get(key)) != bool(times)]  # fmt: skip


def sleepy(counted: Snapshot) -> str:
    """Of a note, if both ends polled and yet slept for more than SLEEPS of their messages: then it is half a polling run."""
    share = counted.sleeps / max(counted.sent + counted.received, 1)
    return "" if share < SLEEPS else f"; both ends polled, and slept {share:.2f} times for each message"


def speedups(
    reads: Mapping[str, Sequence[membench.Output]], copied: Mapping[str, Sequence[Sequence[membench.Copy]]], prefix: str
) -> Iterator[Metric]:
    """What switches are good for: times with all of them off over times with each, and with all "on".

    Each was measured in some runs; a time is the median of all their rounds. Beside it is the least and the most that any two
    runs say: a switch is not known to do what is less than runs of one setting differ. Raises Malformed after all others if a
    time is none, or is the slope of a line that is none: that ratio would be anything.
    """
    problems = []
    for name in (each for each in reads if each != "off"):
        for order in membench.ORDERS:
            here = f"{prefix}.switch.{name}.read_{order}"
            try:
                times = {each: [_missing_us(output, order) for output in reads[each]] for each in ("off", name)}
                speedup = speedup_of(f"{here}.speedup", times, name, "us", "time for a page that is not at hand")
                for each in ("off", name):
                    _check_line(f"{here}, '{each}'", reads[each], order)
            except Malformed as error:
                problems.append(str(error))
                continue
            beside = {"off_us": float(speedup.baseline["off_us"])}
            yield Metric(f"{here}.us", float(speedup.baseline[f"{name}_us"]), "us", "lower", beside)
            yield speedup
        totals = {
            each: [[copy.total_ns / 1000 / (copy.mib * 256) for copy in run] for run in copied[each]]
            for each in ("off", name)
        }
        metric, note = f"{prefix}.switch.{name}.membench.speedup", "map, populate and memcpy of a shared source"
        try:
            speedup = speedup_of(metric, totals, name, "us_per_page", f"{note}, all threads at home")
        except Malformed as error:
            problems.append(str(error))
            continue
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


def _check_line(what: str, runs: Sequence[membench.Output], order: str) -> None:
    """Passes are on a line, by the median of all rounds, as the time is. Raises Malformed."""
    whole = runs[0]
    for more in runs[1:]:
        whole = whole.plus(more)
    share = membench.fixed_share(_cold(whole, order))
    if share > membench.FIXED_SHARE:
        raise Malformed(f"{what}: passes are on no line, which begins at {share:.2f} of the small one's time")


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
