# SPDX-License-Identifier: GPL-2.0
"""Memory taken from a running guest and given back: superpages against stock 4 KiB pages, by slope, in one run.

Six ways, for memory of a node that is the same on both hosts:
    stock      `xl mem-set` on a host with upstream's Xen and Linux (stock_host.py), in a guest without vNUMA
    stock_4k   the same on our host: Linux's balloon driver and Xen's page by page path are there, too, and Xen's counts; but
               pages are cleared twice, by the guest and by our hypervisor
    order9     `xl vnode-set`, with the hypervisor's superpage path switched off: extents of 2 MiB, page by page inside
    ours       `xl vnode-set`: extents of 2 MiB, each removed at once
    stock_unscrubbed, ours_unscrubbed
               as stock and ours, and nobody clears what is taken: of stock the guest's balloon does it as a rule
               (scrub_pages), page by page before it gives them, of ours the hypervisor (scrub-domheap), afterwards, by a CPU
               that is idle; an emulator's idle CPU has no processor of its own, so that is in the time of ours

Times are from the operator's command until the hypervisor has counted the memory: an emulator's, so only their ratio
is a figure, and it is the emulator's, too: of what stock takes for a take most are flushes, interrupts between more CPUs than
there are processors, and of a give hardly any (extent_profile.py). Each way has three sizes: the
time for a GiB is the slope of a line through them, so that what a command takes whatever the amount does not pass for a cost of
memory; that is the line's other figure, and beside the ratio of the slopes are those of all of a command, for a GiB and for 4:
ours as it took them, stock by its own line, since it has never so much. Stock and ours alternate; each second run has all in
the opposite order. What the hypervisor did is exact, from its own performance counters, and so is the amount. The emulator's
memory is allocated as it is touched: our hypervisor clears what is free as it boots, and `stock`, `stock_4k` and `ours` are
gone once before anything counts.

Nobody clears what is unscrubbed: the guest's kernel says so of its balloon, and of ours the hypervisor counts no frame that is
to be cleared, else that is an error.

Of `stock` the end is an event, and of `ours` xl's exit; of `stock_4k` nothing tells it, so that it is asked for each 0.2 s,
which its fixed part has in it, not its slope.

Usage: python3 -m benchmarks.balloon [--same-host] [--runs=N]
Exit status: 0, or 1 if it could not be measured; what was measured until then is written in any case, and an earlier
result is set aside.
"""

from __future__ import annotations

import argparse
import contextlib
import dataclasses
import shlex
import statistics
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from benchmarks import slopes, stock_host
from benchmarks.arguments import whole
from benchmarks.results import Metric, ended, from_runs
from benchmarks.slopes import Line
from lab.command import Done, Run, checked
from lab.description import RackDescription
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError
from lab.hypervisor import counted, counters
from lab.pipeline.paths import REPO
from lab.rack import Rack

COUNTERS = {"p2m_writes": "p2m: entries written", "flushes": "p2m: TLB flushes", "frees": "domheap: calls to free"}
DIRTIED = {"dirtied": "heap: frames freed to be scrubbed"}  # of ours: what is to be cleared
SUPERPAGES = "domheap: frames freed"
REMOVED = "guest_remove_range: extents removed"
PARAMETER = "guest-remove-range"

TAKE, GIVE = "take", "give"
STOCKS = ("stock", "stock_4k")  # the first that was measured is what ours is compared with
UNSCRUBBED = ("stock_unscrubbed", "ours_unscrubbed")
WAYS = (*STOCKS, "order9", "ours", *UNSCRUBBED)
ALTERNATE = ("stock", "stock_4k", "ours", *UNSCRUBBED)  # in each size of each run
UPSTREAM = ("stock", "stock_unscrubbed")  # on upstream's host
OURS = ("ours", "ours_unscrubbed")
SCRUB_PAGES = "/sys/devices/system/xen_memory/xen_memory0/scrub_pages"  # of a guest's balloon
WHOLE_GIB = (1, 4)  # of which all of a command's time is compared, too
RUNS = 5
RACK = "large-node"
STOCK_TIMEOUT = 300  # seconds for the 192 MiB of stock: 20 times what they take beside nothing else
VNODE_TIMEOUT = 600.0
FAILURES = (LabError, RuntimeError, ValueError, OSError)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """The amounts of each way, in MiB; three each or more. An emulated host takes seconds for the little that stock has."""

    stock_4k: Sequence[int] = (48, 96, 192)
    order9: Sequence[int] = (64, 128, 256)
    ours: Sequence[int] = (1024, 2048, 4096)

    @property
    def stock(self) -> Sequence[int]:
        """Those of the same way on our host."""
        return self.stock_4k

    @property
    def stock_unscrubbed(self) -> Sequence[int]:
        """Those with scrubbing."""
        return self.stock_4k

    @property
    def ours_unscrubbed(self) -> Sequence[int]:
        """Those with scrubbing."""
        return self.ours


SIZES = Sizes()
NODE_MIB = 6144  # of the elastic node
# Both guests have the memory in question on physical node 1, which is large; the elastic one its home on node 0. Xen takes
# memory of a guest without vNUMA from the node that its vCPUs are bound to.
ELASTIC = {
    "vnuma": f"""[[ "pnode=0", "size=512", "vcpus=0-1", "vdistances=10,21" ],
                  [ "pnode=1", "size={NODE_MIB}", "vcpus=2-3", "vdistances=21,10", "elastic=1" ]]"""
}
STOCK = {"cpus": '"2-3"'}


@dataclasses.dataclass(frozen=True)
class Step:
    """One change of a guest's memory: which way, `take` or `give`, how much, how long, what Xen counted, in which run.

    `at`: its begin and end by this process's time.monotonic(), as far as that can be known from outside of dom0.
    """

    way: str
    operation: str
    mib: int
    seconds: float
    counts: Mapping[str, int]
    run: int = 0
    at: tuple[float, float] = (0.0, 0.0)

    def per_2mib(self, count: str) -> float:
        """How often something was done for each 2 MiB."""
        return self.counts[count] / (self.mib / 2)


def _of(steps: Sequence[Step], way: str, operation: str) -> list[Step]:
    return [step for step in steps if step.way == way and step.operation == operation]


def lines(steps: Sequence[Step], way: str, operation: str) -> list[Line]:
    """One for each run of one way that has enough sizes."""
    return slopes.lines((step.run, step.mib, step.seconds) for step in _of(steps, way, operation))


def _ratio(steps: Sequence[Step], operation: str, name: str, ours_way: str, stocks: Sequence[str]) -> Metric:
    """Stock's slope over ours, run by run; a run in which one of them is not above 0 says nothing about a ratio."""
    found = {way: lines(steps, way, operation) for way in WAYS}
    compared = _compared(found, stocks)
    ours = {line.run: line.seconds_per_gib for line in found[ours_way]}
    stock = {line.run: line.seconds_per_gib for line in found[compared]}
    both = [run for run in sorted(stock) if run in ours]
    runs = [stock[run] / ours[run] for run in both if min(stock[run], ours[run]) > 0]
    baseline: dict[str, float | str] = {
        f"{way}_s_per_gib": round(statistics.median(line.seconds_per_gib for line in of_way), 3)
        for way, of_way in found.items()
        if of_way
    }
    left_out = f"; {len(both) - len(runs)} left out: no slope" if len(runs) < len(both) else ""
    if not both:
        return Metric(name, None, "x", "higher", baseline, note=f"no run has both ways, each with {slopes.LEAST_SIZES} sizes")
    if few := slopes.too_few(runs):
        return Metric(name, None, "x", "higher", baseline, runs, few + left_out)
    note = f"slope over sizes, {_about(compared)} against ours, in the same run" + left_out
    return Metric(name, statistics.median(runs), "x", "higher", baseline, runs, note)


def _compared(found: Mapping[str, Sequence[Line]], stocks: Sequence[str]) -> str:
    """The first way of stock that was measured."""
    return next((way for way in stocks if found[way]), stocks[0])


def _about(stock: str) -> str:
    return "stock's way on our host" if stock == "stock_4k" else "upstream's Xen and Linux"


def _whole_ratio(steps: Sequence[Step], operation: str, gib: int) -> Metric:
    """Of so much, with what a command takes whatever its amount: ours as it took it, stock by its line, run by run."""
    name, mib = f"balloon.{operation}.ratio_{gib}gib", gib * slopes.MIB_A_GIB
    found = {way: lines(steps, way, operation) for way in STOCKS}
    compared = _compared(found, STOCKS)
    stock = {line.run: line.seconds(mib) for line in found[compared]}
    ours = {step.run: step.seconds for step in _of(steps, "ours", operation) if step.mib == mib}
    both = [run for run in sorted(stock) if run in ours and min(stock[run], ours[run]) > 0]
    runs = [stock[run] / ours[run] for run in both]
    if few := slopes.too_few(runs):
        return Metric(name, None, "x", "higher", {}, runs, few)
    seconds = {f"{compared}_s": stock, "ours_s": ours}
    baseline: dict[str, float | str] = {
        key: round(statistics.median(by_run[run] for run in both), 3) for key, by_run in seconds.items()
    }
    note = f"{mib} MiB by one command, all of its time; {_about(compared)}, by its line through less, against ours, run by run"
    return Metric(name, statistics.median(runs), "x", "higher", baseline, runs, note)


def _line_figures(steps: Sequence[Step], way: str, operation: str) -> list[Metric]:
    """The slope, and what a command takes besides, each the median of the runs."""
    found = lines(steps, way, operation)
    sizes = ", ".join(map(str, sorted({step.mib for step in _of(steps, way, operation)})))
    metrics = []
    for what, note in (("seconds_per_gib", f"slope over {sizes} MiB"), ("fixed_seconds", "of a command, whatever its amount")):
        runs = [getattr(line, what) for line in found]
        metrics.append(
            Metric(
                f"balloon.{operation}.{way}.{what}",
                statistics.median(runs) if runs else None,
                "s",
                "lower",
                {"least": round(min(runs), 3), "most": round(max(runs), 3)} if runs else {},
                runs,
                note if runs else f"not measured: it takes {slopes.LEAST_SIZES} sizes",
            )
        )
    return metrics


def _size_figures(steps: Sequence[Step], way: str, operation: str) -> list[Metric]:
    """What each command of an amount took: what the slopes are made of."""
    of_way = _of(steps, way, operation)
    found = []
    for mib in sorted({step.mib for step in of_way}):
        seconds = (step.seconds for step in of_way if step.mib == mib)
        found.append(from_runs(f"balloon.{operation}.{way}.of_{mib}_mib_seconds", seconds, "s", "lower"))
    return found


def _fixed(steps: Sequence[Step], operation: str) -> Metric:
    """What a command of ours takes whatever its amount; stock's beside it."""
    fixed = {way: [line.fixed_seconds for line in lines(steps, way, operation)] for way in ("ours", *STOCKS)}
    baseline: dict[str, float | str] = {way: round(statistics.median(fixed[way]), 3) for way in STOCKS if fixed[way]}
    runs = fixed["ours"]
    value = statistics.median(runs) if runs else None
    note = "where the line through the sizes begins" if runs else "not measured"
    return Metric(f"balloon.{operation}.fixed_seconds", value, "s", "lower", baseline, runs, note)


def _per_2mib(steps: Sequence[Step], operation: str, count: str) -> Metric:
    name = f"balloon.{operation}.{count}_per_2mib"
    runs = [step.per_2mib(count) for step in _of(steps, "ours", operation)]
    baseline: dict[str, float | str] = {}
    for way in ("stock_4k", "order9", "ours_unscrubbed"):
        values = [step.per_2mib(count) for step in _of(steps, way, operation)]
        if values:
            baseline[way] = round(statistics.median(values), 3)
    if not runs:
        return Metric(name, None, "1", "lower", baseline, note="not measured")
    return Metric(
        name,
        statistics.median(runs),
        "1",
        "lower",
        baseline,
        runs,
        f'Xen\'s counter "{(COUNTERS | DIRTIED)[count]}", of the whole host while it was done',
    )


def metrics(steps: Sequence[Step]) -> list[Metric]:
    """The figures of a run, under the names that the project fixed for them."""
    found = []
    for operation in (TAKE, GIVE):
        found += [
            _ratio(steps, operation, f"balloon.{operation}.ratio", "ours", STOCKS),
            *(_whole_ratio(steps, operation, gib) for gib in WHOLE_GIB),
            _ratio(steps, operation, f"balloon.{operation}.unscrubbed.ratio", UNSCRUBBED[1], UNSCRUBBED[:1]),
            _fixed(steps, operation),
        ]
        found += [_per_2mib(steps, operation, count) for count in COUNTERS | DIRTIED]
    for way in WAYS:
        for operation in (TAKE, GIVE):
            found += _line_figures(steps, way, operation) + _size_figures(steps, way, operation)
    return found


HEAD = """
now() {{ date +%s.%N; }}
start=$(now)
memory() {{ xl list {guest} | awk 'NR==2 {{print $3}}'; }}
before=$(memory) && [ "$before" ] || exit 2
"""


def stock_script(name: str, mib: int, direction: int, seconds: int) -> str:
    """A shell script for dom0: change a guest's memory by `mib` with `xl mem-set`, and print how long it took.

    It ends when the hypervisor's count has changed by as much: `direction` is -1 (take) or 1 (give). It prints what Change
    has; exit status 1 when that did not happen within `seconds`. The new target is relative to the old one, which is not
    quite what the hypervisor counts (it leaves out what the domain builder kept).
    """
    guest = shlex.quote(name)
    reached = "-le" if direction < 0 else "-ge"
    return f"""{HEAD.format(guest=guest)}
target=$(xenstore-read "/local/domain/$(xl domid {guest})/memory/target") || exit 2
want=$((before + {direction * mib}))
began=$(now)
xl mem-set {guest} "$((target / 1024 + {direction * mib}))m" || exit 2
tries={seconds * 5}
while after=$(memory); [ "$after" != "" ] && ! [ "$after" {reached} "$want" ]; do
  tries=$((tries - 1)); [ "$tries" -gt 0 ] || exit 1
  sleep 0.2
done
ended=$(now)
echo "$began $ended $before $after $start $(now)"
"""


def told_script(name: str, mib: int, direction: int, seconds: int) -> str:
    """The same for a guest of stock_host.start_guest(), which tells when its balloon rests: nothing is asked in between.

    A balloon may rest with its work half done, as when it waits for memory, so each time the count decides.
    """
    guest = shlex.quote(name)
    reached = "-le" if direction < 0 else "-ge"
    script = f"""{HEAD.format(guest=guest)}
domain=/local/domain/$(xl domid {guest}) || exit 2
target=$(xenstore-read "$domain/memory/target") || exit 2
exec {{rests}}< <(exec xenstore-watch "$domain/{stock_host.RESTS}")
trap 'kill $! 2>/dev/null' EXIT
read -r -t {seconds} -u "$rests" _ || exit 1
want=$((before + {direction * mib}))
began=$(now)
xl mem-set {guest} "$((target / 1024 + {direction * mib}))m" || exit 2
while after=$(memory); [ "$after" != "" ] && ! [ "$after" {reached} "$want" ]; do
  read -r -t {seconds} -u "$rests" _ || exit 1
done
ended=$(now)
echo "$began $ended $before $after $start $(now)"
"""
    return f"bash -c {shlex.quote(script)}"


def vnode_script(name: str, command: str) -> str:
    """A shell script for dom0: type `command`, and print the same; what the command says is an error message."""
    return f"""{HEAD.format(guest=shlex.quote(name))}
began=$(now)
{command} >&2 || exit
ended=$(now)
after=$(memory)
echo "$began $ended $before $after $start $(now)"
"""


@dataclasses.dataclass(frozen=True)
class Change:
    """What a script printed: when the command began and ended, MiB before and after, when the script itself did.

    Times are dom0's, in seconds from some point on.
    """

    began: float
    ended: float
    before: int
    after: int
    start: float
    last: float

    @property
    def seconds(self) -> float:
        """Of the command."""
        return self.ended - self.began

    @property
    def mib(self) -> int:
        """How much the hypervisor's count has changed, up or down."""
        return self.after - self.before

    def placed(self, called: float, returned: float) -> tuple[float, float]:
        """When the command was, by the clock of who called the script: the way there is as long as the way back."""
        way = (returned - called - (self.last - self.start)) / 2
        return called + way + self.began - self.start, returned - way - (self.last - self.ended)


def parse_change(out: str) -> Change:
    """From what a script printed. Raises ValueError."""
    began, ended, before, after, start, last = out.split()
    return Change(float(began), float(ended), int(before), int(after), float(start), float(last))


def _changed(operation: str, mib: int) -> int:
    """By how much the hypervisor's count has to change."""
    return -mib if operation == TAKE else mib


def counts_since(dom0: Run, before: Mapping[str, int]) -> dict[str, int]:
    """How far the hypervisor's counters went since `before`."""
    after = counters(dom0)
    return {key: counted(dict(before), after, name) for key, name in (COUNTERS | DIRTIED).items()}


def told_step(stock: ElasticGuest, way: str, operation: str, mib: int, run: int = 0) -> Step:
    """One `xl mem-set` on upstream's host, whose hypervisor has no counters of ours. Raises as stock_step()."""
    script = told_script(stock.name, mib, -1 if operation == TAKE else 1, STOCK_TIMEOUT)
    called = time.monotonic()
    change = parse_change(checked(stock.dom0, script, STOCK_TIMEOUT + 60.0))
    at = change.placed(called, time.monotonic())
    if change.mib != _changed(operation, mib):
        raise RuntimeError(f"xl mem-set on upstream's host: Xen counts {change.mib} MiB, not {_changed(operation, mib)}")
    return Step(way, operation, mib, change.seconds, {}, run, at)


def _add(steps: list[Step], step: Step) -> None:
    """Keep a step, and say that it is done: the whole takes a quarter of an hour."""
    steps.append(step)
    print(f"run {step.run}: {step.way} {step.operation} {step.mib} MiB: {step.seconds:.2f} s", flush=True)


def _take_and_give(one: Callable[[str], Step], steps: list[Step]) -> None:
    """A step of each operation, added to `steps`. Raises what they raise."""
    for operation in (TAKE, GIVE):
        _add(steps, one(operation))


def scrub_pages(stock: ElasticGuest, on: bool) -> None:
    """Whether a guest's balloon clears what it gives back. Raises LabError if the kernel does not say so then."""
    said = checked(stock.guest, f"echo {int(on)} >{SCRUB_PAGES} && cat {SCRUB_PAGES}").strip()
    if said != str(int(on)):
        raise LabError(f"{SCRUB_PAGES} is {said!r}, not {int(on)}: who clears pages is not known")


def told_steps(stock: ElasticGuest, way: str, mib: int, run: int, steps: list[Step]) -> str:
    """A take and a give on upstream's host, added to `steps`. What failed, empty if nothing did."""
    try:
        scrub_pages(stock, way not in UNSCRUBBED)
        _take_and_give(partial(told_step, stock, way, mib=mib, run=run), steps)
    except FAILURES as error:
        return f"upstream's host, run {run}, {mib} MiB: {error}"
    return ""


def stock_step(stock: ElasticGuest, operation: str, mib: int, run: int = 0, timeout: int = STOCK_TIMEOUT) -> Step:
    """One `xl mem-set`. Raises CommandFailedError if the guest did not follow."""
    before = counters(stock.dom0)
    script = stock_script(stock.name, mib, -1 if operation == TAKE else 1, timeout)
    change = parse_change(checked(stock.dom0, script, timeout + 60.0))
    return Step("stock_4k", operation, abs(change.mib), change.seconds, counts_since(stock.dom0, before), run)


@dataclasses.dataclass(frozen=True)
class Node:
    """The elastic node that shrinks and grows: of which guest, its number, its whole size."""

    guest: ElasticGuest
    number: int
    full_mib: int


def vnode_step(node: Node, way: str, operation: str, mib: int, run: int = 0) -> Step:
    """One `xl vnode-set`, from the full size or back to it. Raises RuntimeError if xl refuses, or Xen counts something else."""
    dom0 = node.guest.dom0
    then_mib = node.full_mib - mib if operation == TAKE else node.full_mib
    before = counters(dom0)
    command = node.guest.command("vnode-set", str(node.number), f"{then_mib}M")
    called = time.monotonic()
    done: Done = dom0(vnode_script(node.guest.name, command), VNODE_TIMEOUT)
    returned = time.monotonic()
    if done.status != 0:
        raise RuntimeError(f"xl vnode-set {node.number} {then_mib}M: exit status {done.status}: {done.text.strip()}")
    change = parse_change(done.out)
    if change.mib != (wanted := _changed(operation, mib)):
        raise RuntimeError(f"xl vnode-set {node.number} {then_mib}M: Xen counts {change.mib} MiB, not {wanted}")
    return Step(way, operation, mib, change.seconds, counts_since(dom0, before), run, change.placed(called, returned))


def superpage_path(dom0: Run, on: bool) -> None:
    """Switch the hypervisor's superpage removal on or off."""
    checked(dom0, f"xl set-parameters {PARAMETER}={'yes' if on else 'no'}")


def scrub_heap(dom0: Run, on: bool) -> None:
    """Whether our hypervisor clears what a running guest gives back."""
    checked(dom0, f"xl set-parameters scrub-domheap={'yes' if on else 'no'}")


def unscrubbed_steps(node: Node, mib: int, run: int, steps: list[Step]) -> None:
    """A take and a give that our hypervisor clears nothing of, added to `steps`; it is as before in any case.

    Raises one of FAILURES, also if it has counted a frame that is to be cleared.
    """

    def one(operation: str) -> Step:
        step = vnode_step(node, "ours_unscrubbed", operation, mib, run)
        if dirtied := step.counts["dirtied"]:
            raise RuntimeError(f"{operation} {mib} MiB with scrub-domheap=no: {dirtied} frames are to be cleared, not 0")
        return step

    try:
        scrub_heap(node.guest.dom0, False)
        _take_and_give(one, steps)
    finally:
        scrub_heap(node.guest.dom0, True)


def boot() -> Rack:
    """The host of ours, of whose 10 GiB the emulator has allocated all that is free. Raises LabError."""
    rack = RackDescription.load(RACK)
    hosts = tuple(
        dataclasses.replace(host, xen_arguments=f"{host.xen_arguments} bootscrub=on".strip()) for host in rack.hosts
    )
    return Rack.boot(dataclasses.replace(rack, hosts=hosts), meter=False)


def warm_up(stock: ElasticGuest, node: Node, sizes: Sizes, upstream: ElasticGuest | None) -> str:
    """A take and a give of ours, stock_4k and stock that do not count. What failed on upstream's host, empty if nothing did.

    Raises what the steps on our host raise.
    """
    for operation in (TAKE, GIVE):
        vnode_step(node, "ours", operation, max(sizes.ours))
        stock_step(stock, operation, max(sizes.stock_4k))
    if upstream:
        try:
            scrub_pages(upstream, True)
            for operation in (TAKE, GIVE):
                told_step(upstream, "stock", operation, max(sizes.stock))
        except FAILURES as error:
            return f"upstream's host, before all runs: {error}"
    return ""


def measure(
    stock: ElasticGuest,
    node: Node,
    steps: list[Step],
    runs: int = RUNS,
    sizes: Sizes = SIZES,
    *,
    wrong: list[str],
    upstream: ElasticGuest | None = None,
) -> None:
    """The whole comparison; the elastic node is absent before and after. `upstream`: a guest of upstream's host, or none.

    Adds to `steps` as it goes. Raises what the steps raise; the hypervisor's superpage path is on again in any case. When
    upstream's host fails the rest goes on without it, and what failed is added to `wrong`.
    """
    attached = node.guest.attach(node.number, timeout=300.0)
    if attached.status != 0:
        raise RuntimeError(f"xl vnode-attach: exit status {attached.status}: {attached.text.strip()}")
    dom0 = node.guest.dom0
    try:
        superpage_path(dom0, True)
        if lost := warm_up(stock, node, sizes, upstream):
            wrong.append(lost)
            upstream = None
        for run in range(runs):
            pairs = list(zip(sizes.stock_4k, sizes.ours, strict=True))
            for little, much in reversed(pairs) if run % 2 else pairs:
                for way in reversed(ALTERNATE) if run % 2 else ALTERNATE:
                    mib = much if way in OURS else little
                    if way in UPSTREAM:
                        if upstream and (lost := told_steps(upstream, way, mib, run, steps)):
                            wrong.append(lost)
                            upstream = None
                    elif way == "stock_4k":
                        _take_and_give(partial(stock_step, stock, mib=mib, run=run), steps)
                    elif way == "ours":
                        _take_and_give(partial(vnode_step, node, way, mib=mib, run=run), steps)
                    elif upstream:
                        unscrubbed_steps(node, mib, run, steps)
        superpage_path(dom0, False)
        for mib in sizes.order9:
            _take_and_give(partial(vnode_step, node, "order9", mib=mib), steps)
    finally:
        superpage_path(dom0, True)
        node.guest.detach(node.number, timeout=300.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Boot, measure, write build/results/balloon.json. `arguments`: none without."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.balloon", description="Memory taken and given back, by slope.")
    parser.add_argument("--same-host", action="store_true", help="without a second host that has upstream's Xen and Linux")
    parser.add_argument("--runs", type=whole(1), default=RUNS, metavar="N", help="of each way and size (%(default)s)")
    options = parser.parse_args([] if arguments is None else arguments)
    steps: list[Step] = []
    wrong: list[str] = []
    config = REPO / "configs" / "stock1.cfg"
    try:
        with contextlib.ExitStack() as racks:
            upstream = None
            if not options.same_host:
                try:
                    other = racks.enter_context(stock_host.boot(f"{RACK}@stock"))
                    upstream = stock_host.start_guest(other.host(), config, STOCK)
                except FAILURES as error:  # the rest is worth as much
                    wrong.append(f"upstream's host: {error}")
                    print(f"balloon: {wrong[-1]}", file=sys.stderr, flush=True)
            host = racks.enter_context(boot()).host()
            stock = host.start_guest(config, STOCK)
            guest = host.start_guest(REPO / "configs" / "guest2.cfg", ELASTIC)
            node = Node(guest, 1, guest.listed()[1]["max_kib"] // 1024)
            measure(stock, node, steps, options.runs, upstream=upstream, wrong=wrong)
    except FAILURES as error:
        wrong.append(str(error) or repr(error))
    return ended("balloon", metrics(steps), wrong, bool(steps))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
