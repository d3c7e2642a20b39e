# SPDX-License-Identifier: GPL-2.0
"""Memory from another machine: what it costs, against the raw network and against what a user would do without it.

Two hosts of the lab. Parts, each of which can fail without the others, and is left out of the result then:
    rtt     round trips of dsmd's transport, without anything else: TCP with TLS, polling and sleeping; and of the kernels
    swap    a guest that swaps on a disk in the other host's memory, by nbd over TCP
    node    a guest whose node 1 is memory of the other host, by dsmd over TCP
    switches  such a guest, with and without what dsmd does to be quick
    detach  such a guest's node leaves, with and without dsmd streaming what the guest reads then
    rdma    `rtt` and `node` over Soft-RoCE

Result: build/results/dsm.json, written anew with each figure, so that who ends it early keeps what there is; what could not
be measured is not in it. Figures of two runs do not compare, so those of the run before are not kept in it: its file goes to
build/results/earlier with the first figure, and can be put back. Times are an emulator's, of machines that share two real
processors and whose network is a process beside them: only ratios of one run are figures.

Usage: python3 -m benchmarks.dsm [--use=RACK] [--pages=N] [--rounds=N] [PART...]
Exit status: 0; 1 if a part could not be measured; 2 usage.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from benchmarks import host_programs, membench, remote_swap, round_trips, spanning
from benchmarks.dsm_faults import Snapshot, below_user_space, copies, faults, idle, messages, sleepy, speedups
from benchmarks.results import Growing, InvalidResult, Metric, from_runs
from lab.command import checked, run_in
from lab.description import RackDescription
from lab.elastic_guest import PROGRAMS
from lab.errors import CommandFailedError, LabError, Malformed
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from lab.rack import Rack

HOME_MIB = 512
SWAP_MIB = 64
MEMBENCH_S = 900.0
# dsmd(8): pages asked for ahead; pages that are overwritten come without bytes; to look for messages for so long instead of
# sleeping.
SWITCHES: dict[str, dict[str, int]] = {
    "off": {"prefetch": 0, "clear_hint": 0, "busy_wait_us": 0, "poll_us": 0},
    "prefetch": {"prefetch": 16},
    "clear_hint": {"clear_hint": 1},
    "polling": {"busy_wait_us": 20000, "poll_us": 20000},
    "on": {"prefetch": 16, "clear_hint": 1, "busy_wait_us": 20000, "poll_us": 20000},
}
# What is measured when: there and back, so that what gets slower or quicker by and by counts for all, and each has two runs
# whose difference is seen.
TURNS = (*SWITCHES, *reversed(SWITCHES))
USED_MIB = 8  # by the program that is on the node when it is detached
STREAMED_MIB = 2  # the same, in the part that compares detaches
# In an order in which what gets slower or quicker by and by counts for both.
DETACHES = ("plain", "streamed", "streamed", "plain")
PATIENT = "--timeout=800"  # of xl, whose own is too short for a machine that has other things to do
# Of the figures' names: TCP is what every host has.
PREFIXES = {"tcp": "dsm", "rdma": "dsm.rdma"}
NODE_MIB = 128
KIB_A_PAGE = 4
ON_NODE = 0.9  # of a program's memory, at the least: what is elsewhere is not moved by a detach
FAILURES = (LabError, Malformed, TimeoutError, OSError, ValueError, ArithmeticError)

SWAP_GUEST = f"""
name = "swapper"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5 clocksource=tsc tsc=nowatchdog"
memory = {HOME_MIB}
vcpus = 2
vif = [ "mac=00:16:3e:4d:00:41,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


@dataclasses.dataclass(frozen=True)
class Amount:
    """How much is measured.

    `pages`: memory at hand for pages that live elsewhere: DSM's pool, or the control group of what swaps.
    """

    pages: int = 512
    rounds: int = 3

    @property
    def sizes(self) -> tuple[int, ...]:
        """Pages of a pass: they fit. Two make a slope; a third would be another 6 passes' worth of flushing."""
        return tuple(self.pages * eighths // 8 for eighths in (1, 3))

    def passes(self, at_hand: int) -> str:
        """Words for dsm_membench: before each pass more pages are read than `at_hand`, the memory that there is."""
        sizes = ",".join(map(str, self.sizes))
        return f"touch --cpu=0 --sizes={sizes} --flush={at_hand * 5 // 4}"

    @property
    def copy(self) -> str:
        """Words for dsm_membench."""
        return f"copy --cpus=0,1 --mib=1 --rounds={self.rounds}"

    @property
    def shape(self) -> spanning.Shape:
        """A guest with so many frames for pages of the other host."""
        return spanning.Shape(home_mib=HOME_MIB, node_mib=NODE_MIB, frames=self.pages)


def touched(output: membench.Output, prefix: str, **baseline: float) -> Iterator[Metric]:
    """PREFIX.page.WHAT_ORDER_us: time of a page that is not at hand, of each round; and pages a second.

    Raises Malformed after all others for those whose time is none.
    """
    problems = []
    for what in membench.WHATS:
        for order in membench.ORDERS:
            cold = membench.chosen(output.passes, what=what, order=order, state="cold")
            runs = [ns / 1000 for ns in membench.ns_per_page(cold)]
            try:
                us = membench.positive_median(f"{prefix}: {what}s in {order} order, us for a page of each round", runs)
            except Malformed as error:
                problems.append(str(error))
                continue
            missing = statistics.median(membench.cost_of_missing(output, what, order)) / 1000
            first = statistics.median(each.first_ns["p50"] for each in cold) / 1000
            share = membench.fixed_share(cold)
            beside = {
                "less_when_at_hand_us": missing,
                "first_word_p50_us": first,
                "first_word_p99_us": statistics.median(each.first_ns["p99"] for each in cold) / 1000,
                "major_faults_per_page": sum(each.major for each in cold) / sum(each.pages for each in cold),
                "fixed_share": share,
                **baseline,
            }
            note = f"slope over {sorted({each.pages for each in cold})} pages{no_line(share)}"
            metric = from_runs(f"{prefix}.page.{what}_{order}_us", runs, "us", "lower", note)
            yield dataclasses.replace(metric, baseline=beside)
            if what == "read":
                # Of the median: to leave rounds out that took less than nothing would flatter.
                rates = [1e6 / each for each in runs if each > 0]
                about = f"reads; 1 / median time{no_line(share)}"
                yield Metric(f"{prefix}.pages_per_second.{order}", 1e6 / us, "1/s", "higher", {}, rates, about)
    if problems:
        raise Malformed("; ".join(problems))


def no_line(share: float) -> str:
    """Of a slope's note: what is to be said if the passes are not on a line."""
    if share <= membench.FIXED_SHARE:
        return ""
    return f"; in doubt: the passes are on no line, which begins at {share:.2f} of the small one's time"


def run_membench(guest: Guest, words: str) -> membench.Output:
    """Run it in the guest. Raises CommandFailedError, also for a wrong byte; Malformed."""
    return membench.parse(checked(guest.guest, words, MEMBENCH_S))


# --- parts ----------------------------------------------------------------------------------------------------------------


def round_trips_of(rack: Rack, transport: str, amount: Amount) -> Iterator[Metric]:
    """dsm.rtt.TRANSPORT: with each way to wait."""
    for waiting in round_trips.WAITING:
        yield from round_trips.metrics([round_trips.measure(rack, transport, waiting, 100 * amount.rounds)])


def rtt(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """Round trips over TCP with TLS, and of the kernels."""
    del found
    yield from round_trips_of(rack, "tcp", amount)
    yield round_trips.kernel_echo(rack, 100 * amount.rounds)


@contextlib.contextmanager
def guest_of(host: Host, config: str) -> Iterator[Guest]:
    """A guest that is gone afterwards."""
    guest = host.start_guest(config, timeout=scaled(240))
    try:
        yield guest
    finally:
        guest.destroy()


def swap(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """dsm.swap.clusterN: what a page costs that is swapped out to the other host."""
    del found
    with (
        remote_swap.remote_disk(rack, SWAP_MIB),
        guest_of(rack.hosts[0], SWAP_GUEST) as guest,
        remote_swap.swapping(guest),
    ):
        for cluster in remote_swap.PAGE_CLUSTERS:
            before = remote_swap.swapped_in(guest)
            passes = amount.passes(amount.pages + remote_swap.OWN_PAGES)
            words = f"{passes} --rounds={amount.rounds} --pageout={remote_swap.RECLAIM}"
            output = run_membench(guest, remote_swap.limited(words, amount.pages, cluster))
            remote_swap.check_cold(output, cluster)
            read = remote_swap.swapped_in(guest) - before
            yield from touched(output, f"dsm.swap.cluster{cluster}", swapped_in_pages=read)


def figure_of(found: Sequence[Metric], name: str) -> Metric | None:
    """What was measured before in this run; None if it was not."""
    return next((metric for metric in found if metric.metric == name), None)


def value(found: Sequence[Metric], name: str) -> float | None:
    """Its value; None if it was not measured."""
    metric = figure_of(found, name)
    return metric.value if metric else None


@contextlib.contextmanager
def attached(rack: Rack, amount: Amount, transport: str) -> Iterator[tuple[spanning.Spanning, float]]:
    """A guest that has its node of the other host, and the seconds that `xl vnode-attach` took. Raises LabError."""
    with spanning.spanning(rack, amount.shape, transport) as there:
        began = time.monotonic()
        done = there.guest.attach(1, PATIENT, timeout=scaled(900))
        if done.status:
            raise CommandFailedError(f"xl vnode-attach: exit status {done.status}: {done.text}\n{there.said()}")
        yield there, time.monotonic() - began


def _node(rack: Rack, found: Sequence[Metric], amount: Amount, transport: str) -> Iterator[Metric]:
    prefix, words = (
        PREFIXES[transport],
        f"{PROGRAMS}/dsm_membench {amount.passes(amount.pages)} --rounds={amount.rounds} --node=1",
    )
    with attached(rack, amount, transport) as (there, took):
        yield Metric(f"{prefix}.attach.seconds", took, "s", "lower", {"mib": NODE_MIB})

        before = Snapshot.take(there)
        output = run_membench(there.guest, words)
        counted = Snapshot.take(there).since(before)
        membench.check_missed(output)
        single = faults(counted, output, found, prefix, f"dsm.rtt.{transport}.sleep.fault_us")
        yield from single
        yield from below_user_space(single[0], found, transport, prefix)
        yield messages(counted, prefix)
        yield from touched(output, prefix)

        seconds, moved = detach(there)
        yield Metric(
            f"{prefix}.detach.seconds_per_gib", seconds * 1024 / NODE_MIB, "s", "lower",
            {"mib": NODE_MIB, "mib_in_use": moved / 1024, "seconds": seconds},
            note="xl vnode-detach of a node of which a program uses a part (mib_in_use): its time, by the node's size;"
            " the guest moves what is in use to node 0",
        )  # fmt: skip


def optimised(
    there: spanning.Spanning, found: Sequence[Metric], amount: Amount, prefix: str, round_trip: str
) -> Iterator[Metric]:
    """What each switch is good for: on against off, alone and all together, in one run; all are off again afterwards."""
    reads: dict[str, list[membench.Output]] = {name: [] for name in SWITCHES}
    copied: dict[str, list[Sequence[membench.Copy]]] = {name: [] for name in SWITCHES}
    seen: dict[str, list[Snapshot]] = {name: [] for name in SWITCHES}
    vain: dict[str, list[str]] = {}
    for name in TURNS:
        switches = SWITCHES[name]
        there.switch({**SWITCHES["off"], **switches})
        before = Snapshot.take(there)
        words = f"{amount.passes(amount.pages)} --writes=0 --rounds={amount.rounds} --node=1"
        reads[name].append(run_membench(there.guest, f"{PROGRAMS}/dsm_membench {words}"))
        seen[name].append(Snapshot.take(there).since(before))
        words = f"{amount.copy} --node=1 --source-node=1"
        copied[name].append(run_membench(there.guest, f"{PROGRAMS}/dsm_membench {words}").copies)
        if wrong := idle(switches, Snapshot.take(there).since(before)):
            vain[name] = wrong
        if name == "off":
            if name in vain:
                raise Malformed(f"switched off: {', '.join(vain[name])}")
            membench.check_missed(reads[name][-1])
    there.switch(SWITCHES["off"])
    useful = {name: outputs for name, outputs in reads.items() if name not in vain}
    # The same ratio as dsm.fault.ratio_to_rtt, with both ends polling in both.
    counted, output = seen["polling"][0], reads["polling"][0]
    for more, its in zip(seen["polling"][1:], reads["polling"][1:], strict=True):
        counted, output = counted.plus(more), output.plus(its)
    awake = sleepy(counted)
    problems = [f"switches '{name}': {', '.join(what)}" for name, what in vain.items()]
    for figures in (
        copies([each for run in copied["off"] for each in run], f"{prefix}.membench"),
        speedups(useful, copied, prefix),
        faults(counted, output, found, f"{prefix}.polling", round_trip) if "polling" not in vain else (),
    ):
        try:
            for metric in figures:
                said = awake if ".polling." in metric.metric else ""
                yield dataclasses.replace(metric, note=metric.note + said)
        except Malformed as error:
            problems.append(str(error))
    if problems:
        raise Malformed("; ".join(problems))


def detach(there: spanning.Spanning, begin: Callable[[], None] | None = None, mib: int = USED_MIB) -> tuple[float, int]:
    """(seconds of `xl vnode-detach`, KiB that a program has on the node then). Raises LabError, TimeoutError, Malformed.

    `begin`: before it; the program is stopped then, and until the end. Malformed, too: less than nine tenths of the program's
    `mib` are on the node.
    """
    run = there.guest.guest
    inside = f"numactl --preferred=1 {PROGRAMS}/memcheck {mib} 1"
    pid = checked(run, f"({inside} >/tmp/memcheck.out 2>&1 & echo $!) </dev/null").strip()
    wait_for("memcheck has written all pages", 300, lambda: "ready" in run("cat /tmp/memcheck.out").out)
    moved = there.guest.resident(int(pid)).get(1, 0)
    if moved < mib * 1024 * ON_NODE:
        raise Malformed(f"a program of {mib} MiB has {moved} KiB on the node that is to be detached")
    if begin:
        checked(run, f"kill -STOP {pid}")
        begin()
    began = time.monotonic()
    done = there.guest.detach(1, PATIENT, timeout=scaled(900))
    seconds = time.monotonic() - began
    checked(run, f"kill -CONT {pid}")
    if done.status:
        raise CommandFailedError(f"xl vnode-detach: exit status {done.status}: {done.text}\n{there.said()}")
    checked(run, f"kill {pid}")
    wait_for("memcheck ends", 120, lambda: run(f"kill -0 {pid}").status != 0)
    said = checked(run, "cat /tmp/memcheck.out")
    if '"bad_pages":0}' not in said:
        raise Malformed(f"memcheck: {said[-300:]}")
    return seconds, moved


def counted_detach(there: spanning.Spanning, streams: bool) -> tuple[float, int, Snapshot]:
    """The same as detach(), and what it costs; all pages are at their homes when it begins. Raises LabError, TimeoutError."""
    run = run_in(there.hosts[0])
    before: list[Snapshot] = []

    def begin() -> None:
        checked(run, f"dsmctl evacuate {spanning.NAME}")
        wait_for("all pages are at home", 300, lambda: not there.status()["engine"]["evacuating"])
        if streams:
            checked(run, f"dsmctl leaving {spanning.NAME} 1 0")
        before.append(Snapshot.take(there))

    seconds, moved = detach(there, begin, STREAMED_MIB)
    return seconds, moved, Snapshot.take(there).since(before[0])


def _detach(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    rates: dict[str, list[float]] = {name: [] for name in DETACHES}
    times: dict[str, list[float]] = {name: [] for name in DETACHES}
    costs: dict[str, dict[str, float]] = {}
    problem: Exception | None = None
    try:
        with attached(rack, amount, "tcp") as (there, _):
            for turn, name in enumerate(DETACHES):
                if turn:
                    done = there.guest.attach(1, PATIENT, timeout=scaled(900))
                    if done.status:
                        raise CommandFailedError(
                            f"xl vnode-attach: exit status {done.status}: {done.text}\n{there.said()}"
                        )
                seconds, moved, counted = counted_detach(there, name == "streamed")
                if bool(counted.prefetches) != (name == "streamed"):
                    raise Malformed(f"a detach that is {name}: {counted.prefetches} pages were asked for ahead")
                pages = moved // KIB_A_PAGE
                rates[name].append(pages / seconds)
                times[name].append(seconds)
                costs[name] = {f"{key}_per_page": number / pages for key, number in counted.costs().items()}
                costs[name] |= {"mib": NODE_MIB, "mib_in_use": moved / 1024}
    except FAILURES as error:
        problem = error  # what there is until then is kept
    for name, cost in costs.items():
        figure = from_runs(
            f"dsm.detach.{name}.seconds_per_gib", [each * 1024 / NODE_MIB for each in times[name]], "s", "lower",
            "xl vnode-detach, all pages at home: its time, by the node's size; what is in use moves to node 0; costs a page"
            " are those of the last run",
        )  # fmt: skip
        seconds, rate = statistics.median(times[name]), statistics.median(rates[name])
        yield dataclasses.replace(figure, baseline={**cost, "seconds": seconds, "pages_per_second": rate})
    if problem:
        raise problem
    plain, streamed = (statistics.median(rates[name]) for name in ("plain", "streamed"))
    yield Metric(
        "dsm.detach.speedup", streamed / plain, "x", "higher",
        {
            "plain_pages_per_second": plain, "streamed_pages_per_second": streamed,
            "least": min(rates["streamed"]) / max(rates["plain"]), "most": max(rates["streamed"]) / min(rates["plain"]),
            "stream_pages_per_second": value(found, "dsm.rtt.tcp.sleep.stream_pages_per_second") or 0.0,
        },
        note=f"streamed against plain, {', '.join(DETACHES)} in one run, with all that a detach does besides; beside it the"
        " least and the most that any two of them say, and what the transport streams without anything else, 0: not measured",
    )  # fmt: skip


def node(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """dsm.fault, dsm.page and more: a node of the other host over TCP with TLS."""
    return _node(rack, found, amount, "tcp")


def switches(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """dsm.switch and dsm.membench: prefetch and polling against none of them."""
    with attached(rack, amount, "tcp") as (there, _):
        yield from optimised(there, found, amount, "dsm", "dsm.rtt.tcp.poll.fault_us")


def rdma(rack: Rack, found: Sequence[Metric], amount: Amount) -> Iterator[Metric]:
    """dsm.rtt.rdma and dsm.rdma: round trips and a node over Soft-RoCE."""
    round_trips.with_rdma(rack)
    own = []
    for metric in round_trips_of(rack, "rdma", amount):
        own.append(metric)
        yield metric
    yield from _node(rack, [*found, *own], amount, "rdma")


Part = Callable[[Rack, Sequence[Metric], Amount], Iterator[Metric]]
PARTS: dict[str, Part] = {
    "rtt": rtt,
    "swap": swap,
    "node": node,
    "switches": switches,
    "detach": _detach,
    "rdma": rdma,
}


def compared(found: Sequence[Metric]) -> Iterator[Metric]:
    """dsm.vs_swap: swap's time for a page against DSM's, each measured in this run; with equal memory at hand.

    The ratio is to the page cluster with which swap is quicker. Above 1: DSM is quicker. DSM is as it comes, and for reads with
    all its switches on, too (dsm.vs_swap.on), where that was measured: swap's page cluster is a switch as well.

    Raises Malformed after all others for a time that is none.
    """
    problems = []
    for what in membench.WHATS:
        for order in membench.ORDERS:
            theirs = {
                f"swap_cluster{cluster}_us": metric
                for cluster in remote_swap.PAGE_CLUSTERS
                if (metric := figure_of(found, f"dsm.swap.cluster{cluster}.page.{what}_{order}_us"))
            }
            ours = {"dsm.vs_swap": f"dsm.page.{what}_{order}_us"}
            if what == "read":
                ours["dsm.vs_swap.on"] = f"dsm.switch.on.read_{order}.us"
            for prefix, name in ours.items():
                if (own := figure_of(found, name)) and theirs:
                    how = ", all switches on" if prefix.endswith(".on") else ""
                    note = f"{what}s in {order} order, equal memory at hand, swap by nbd over TCP without TLS{how}"
                    share = max(float(each.baseline.get("fixed_share", 0.0)) for each in (own, *theirs.values()))
                    try:
                        us = {
                            key: membench.positive_median(each.metric, [] if each.value is None else [each.value])
                            for key, each in {"dsm_us": own, **theirs}.items()
                        }
                    except Malformed as error:
                        problems.append(str(error))
                        continue
                    ratio = min(us[key] for key in theirs) / us["dsm_us"]
                    figure = Metric(
                        f"{prefix}.{what}_{order}.ratio", ratio, "x", "higher", us, note=note + no_line(share)
                    )
                    yield figure
                    if figure.metric == "dsm.vs_swap.read_random.ratio":
                        yield dataclasses.replace(figure, metric="dsm.vs_swap.ratio")
    if problems:
        raise Malformed("; ".join(problems))


def measure(rack: Rack, names: Sequence[str], amount: Amount, add: Callable[[Metric], Sequence[Metric]]) -> list[str]:
    """Run parts, one after the other; `add` is told each figure, and says what there is. Returns what failed, a line each.

    A figure that `add` refuses with InvalidResult is left out; the others are not.
    """
    found: Sequence[Metric] = []
    failed = []
    with tempfile.TemporaryDirectory(prefix="xenuma-bench.") as scratch:
        folder = Path(scratch)
        host_programs.build(folder)
        round_trips.prepare(folder)
        host_programs.install(rack.hosts[:2], folder)

    def fail(name: str, error: Exception) -> None:
        failed.append(f"{name}: {error}")
        print(f"dsm: {failed[-1]}", file=sys.stderr, flush=True)

    def take(name: str, figures: Iterable[Metric]) -> None:
        nonlocal found
        try:
            for metric in figures:
                try:
                    found = add(metric)
                except InvalidResult as error:
                    fail(name, error)
        except FAILURES as error:
            fail(name, error)

    try:
        for name in names:
            print(f"dsm: {name}", flush=True)
            take(name, PARTS[name](rack, found, amount))
    finally:
        take("compared", compared(found))
    return failed


def show(metric: Metric) -> None:
    """A line for who waits."""
    beside = ", ".join(f"{key} {number:.4g}" for key, number in metric.baseline.items() if not isinstance(number, str))
    print(f"  {metric.metric} {metric.value:.5g} {metric.unit}  {beside}", flush=True)


def main(arguments: Sequence[str] = ()) -> int:
    """Boot, or use a rack that runs; measure, write build/results/dsm.json."""
    parser = argparse.ArgumentParser(prog="dsm", description="Memory from another machine, measured.")
    parser.add_argument("--use", metavar="RACK", help="a rack that runs already, with two hosts")
    parser.add_argument("--pages", type=int, default=Amount.pages, help="memory at hand, 96 to 4096 (%(default)s)")
    parser.add_argument("--rounds", type=int, default=Amount.rounds, help="of each measurement, 1 to 100 (%(default)s)")
    named = f"{', '.join(PARTS)}; all, if none is named"
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], metavar="PART", help=named)
    options = parser.parse_args(arguments)
    if not 96 <= options.pages <= 4096 or not 1 <= options.rounds <= 100:
        parser.error(f"--pages={options.pages} --rounds={options.rounds}: want 96 to 4096, and 1 to 100")
    amount = Amount(options.pages, options.rounds)
    if len(set(options.parts)) < len(options.parts):
        parser.error(f"{' '.join(options.parts)}: each part once")
    failed: list[str] = []
    result = Growing("dsm")

    def add(metric: Metric) -> Sequence[Metric]:
        there = result.add(metric)
        show(metric)
        return there

    try:
        booted = Rack.attach(options.use) if options.use else Rack.boot(RackDescription.load("two-hosts"), meter=False)
        with booted as rack:
            failed = measure(rack, options.parts or list(PARTS), amount, add)
    except FAILURES as error:
        failed.append(str(error))
        print(f"dsm: {error}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
