# SPDX-License-Identifier: GPL-2.0
"""What scrubbing costs: of memory that a node gives back, without it, with one CPU of a node, and with all that are idle.

Three ways, in turn, each with three sizes, taken from an elastic node on a host that does nothing else:
    off    the hypervisor trusts the guest (scrub-domheap=no): nothing is scrubbed
    one    one CPU of a node scrubs at a time, as upstream has it (scrub-cpus=1)
    all    idle CPUs of the node help it (scrub-cpus=0)

Two times for each: the take, from the operator's command to its end, which scrubbing in the background may slow down; and from
there until the hypervisor has no frame more to scrub than before. Nothing tells of that, so its counters are asked each 0.1 s,
which is in the fixed part of the line. Times are an emulator's: what they show is how the ways stand to each other, where there
are as many real CPUs as the node has.

Usage: python3 -m benchmarks.scrub [--runs=N]
Exit status: 0, or 1 if it could not be measured; what was measured until then is written in any case, and an earlier
result is set aside.
"""

from __future__ import annotations

import argparse
import dataclasses
import statistics
import sys
from collections.abc import Mapping, Sequence

from benchmarks import slopes
from benchmarks.arguments import whole
from benchmarks.balloon import ELASTIC, GIVE, TAKE, Node, boot, vnode_step
from benchmarks.results import Metric, ended
from benchmarks.slopes import Line
from lab.command import Run, checked
from lab.errors import LabError
from lab.hypervisor import counted, counters
from lab.patience import scaled
from lab.pipeline.paths import REPO

RUNS = 3
SIZES = (512, 1024, 2048)
OFF, ONE, ALL = "off", "one", "all"
# What each way sets, of the hypervisor's parameters; the second is how it is without a measurement.
WAYS: Mapping[str, Mapping[str, str]] = {
    OFF: {"scrub-domheap": "no", "scrub-cpus": "1"},
    ONE: {"scrub-domheap": "yes", "scrub-cpus": "1"},
    ALL: {"scrub-domheap": "yes", "scrub-cpus": "0"},
}
DIRTIED = "heap: frames freed to be scrubbed"
SCRUBBED = "heap: frames scrubbed"
UNSCRUBBED = "heap: frames allocated unscrubbed"
HELPED = "heap: frames scrubbed by another CPU"
CLEAN_TIMEOUT = 300  # seconds for 2 GiB
FAILURES = (LabError, RuntimeError, ValueError, OSError)


@dataclasses.dataclass(frozen=True)
class Scrub:
    """One take: which way, run and size, its seconds, those until all was clean, and how much of that others did, in %."""

    way: str
    run: int
    mib: int
    take: float
    clean: float
    helped: float


DIRTY = f"""
now() {{ awk '{{print $1}}' /proc/uptime; }}
dirty() {{
  xenperf | awk -F ' +T= *' '$1 == "{DIRTIED}" {{d = $2 + 0}} $1 == "{SCRUBBED}" {{s = $2 + 0}}
    $1 == "{UNSCRUBBED}" {{u = $2 + 0}} END {{print d - s - u}}'
}}
"""


def clean_script(base: int, seconds: int) -> str:
    """A shell script for dom0: wait until no more frames are dirty than `base`; prints how long. Exit status 1: not in time."""
    return f"""{DIRTY}
began=$(now)
tries={seconds * 10}
# Counters have 32 bits, and wrap.
while left=$((($(dirty) - {base}) & 0xffffffff)); [ "$left" -gt 0 ] && [ "$left" -lt 2147483648 ]; do
  tries=$((tries - 1)); [ "$tries" -gt 0 ] || {{ echo "$left frames are still dirty" >&2; exit 1; }}
  sleep 0.1
done
echo "$began $(now)"
"""


def dirty_frames(dom0: Run) -> int:
    """Frames dirtied, less those that were scrubbed or given to Xen as they were. Raises LabError, ValueError."""
    return int(checked(dom0, f"{DIRTY}\ndirty"))


def set_way(dom0: Run, way: str) -> None:
    """Set the hypervisor's parameters."""
    for name, value in WAYS[way].items():
        checked(dom0, f"xl set-parameters {name}={value}")


def step(node: Node, way: str, run: int, mib: int) -> Scrub:
    """Take so much, wait until it is clean, give it back. Raises one of FAILURES."""
    dom0 = node.guest.dom0
    base, before = dirty_frames(dom0), counters(dom0)
    take = vnode_step(node, way, TAKE, mib, run).seconds
    began, ended = map(float, checked(dom0, clean_script(base, CLEAN_TIMEOUT), scaled(CLEAN_TIMEOUT + 60.0)).split())
    after = counters(dom0)
    helped, scrubbed = (counted(before, after, name) for name in (HELPED, SCRUBBED))
    vnode_step(node, way, GIVE, mib, run)
    return Scrub(way, run, mib, take, ended - began, 100 * helped / scrubbed if scrubbed else 0.0)


def lines(scrubs: Sequence[Scrub], way: str, what: str) -> list[Line]:
    """One for each run of a way that has enough sizes, of `take` or `clean`."""
    return slopes.lines((each.run, each.mib, getattr(each, what)) for each in scrubs if each.way == way)


def metrics(scrubs: Sequence[Scrub]) -> list[Metric]:
    """Slopes of both times, each way's; how many times as fast all CPUs are as one; how much helpers did."""
    found = []
    sizes = ", ".join(map(str, sorted({each.mib for each in scrubs})))
    slope: dict[tuple[str, str], dict[int, float]] = {}
    for what, ways in (("take", (OFF, ONE, ALL)), ("clean", (ONE, ALL))):
        for way in ways:
            some = lines(scrubs, way, what)
            slope[what, way] = {line.run: line.seconds_per_gib for line in some}
            runs = [*slope[what, way].values()]
            fixed = [line.fixed_seconds for line in some]
            baseline: dict[str, float | str] = {"fixed_s": round(statistics.median(fixed), 3)} if fixed else {}
            note = f"slope over {sizes} MiB" if runs else f"not measured: it takes {slopes.LEAST_SIZES} sizes"
            value = statistics.median(runs) if runs else None
            found.append(Metric(f"scrub.{what}.{way}.seconds_per_gib", value, "s", "lower", baseline, runs, note))
    one, others = slope["clean", ONE], slope["clean", ALL]
    ratios = [one[run] / others[run] for run in sorted(one) if min(one[run], others.get(run, 0)) > 0]
    note = "one CPU's slope against all, in the same run"
    if not ratios:
        note = "no run has both, each longer for more memory: it is clean before anybody looks"
    elif few := slopes.too_few(ratios):
        note = few
    if left := len({*one} & {*others}) - len(ratios):
        note += f"; {left} left out: no slope"
    value = None if slopes.too_few(ratios) else statistics.median(ratios)
    found.append(Metric("scrub.clean.ratio", value, "x", "higher", {}, ratios, note))
    helped = [each.helped for each in scrubs if each.way == ALL]
    note = f'Xen\'s counter "{HELPED}"' if helped else "not measured"
    value = statistics.median(helped) if helped else None
    return [*found, Metric("scrub.helped_pct", value, "%", "none", runs=helped, note=note)]


def measure(node: Node, scrubs: list[Scrub], runs: int = RUNS, sizes: Sequence[int] = SIZES) -> None:
    """All of it, the node absent before and after; adds to `scrubs` as it goes. The parameters are as before in any case."""
    attached = node.guest.attach(node.number, timeout=300.0)
    if attached.status != 0:
        raise RuntimeError(f"xl vnode-attach: exit status {attached.status}: {attached.text.strip()}")
    try:
        for run in range(runs):
            for mib in sizes:
                for way in WAYS:
                    set_way(node.guest.dom0, way)
                    scrubs.append(step(node, way, run, mib))
                    last = scrubs[-1]
                    print(f"run {run}: {way} {mib} MiB: {last.take:.2f} s, clean after {last.clean:.2f} s", flush=True)
    finally:
        set_way(node.guest.dom0, ONE)
        node.guest.detach(node.number, timeout=300.0)


def main(arguments: Sequence[str] | None = None) -> int:
    """Boot, measure, write build/results/scrub.json. `arguments`: none without."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.scrub", description="What scrubbing costs.")
    parser.add_argument("--runs", type=whole(1), default=RUNS, metavar="N", help="of each way and size (%(default)s)")
    options = parser.parse_args([] if arguments is None else arguments)
    scrubs: list[Scrub] = []
    wrong: list[str] = []
    try:
        with boot() as rack:
            guest = rack.host().start_guest(REPO / "configs" / "guest2.cfg", ELASTIC)
            measure(Node(guest, 1, guest.listed()[1]["max_kib"] // 1024), scrubs, options.runs)
    except FAILURES as error:
        wrong.append(str(error) or repr(error))
    return ended("scrub", metrics(scrubs), wrong, bool(scrubs))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
