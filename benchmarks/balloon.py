# SPDX-License-Identifier: GPL-2.0
"""Memory taken from a running guest and given back: superpages against stock 4 KiB pages, in one run.

Three ways, on the same guest:
    stock_4k   `xl mem-set`: Linux's balloon driver and Xen's page by page path, as they are upstream
    order9     `xl vnode-set`, with the hypervisor's superpage path switched off: extents of 2 MiB, page by page inside
    ours       `xl vnode-set`: extents of 2 MiB, each removed at once

Times are from the operator's command until the hypervisor has counted the memory: an emulator's, so only their ratio
is a figure. What the hypervisor did is exact, from its own performance counters.

Usage: python3 -m benchmarks.balloon
Exit status: 0, or 1 if it could not be measured; what was measured until then is written in any case.
"""

from __future__ import annotations

import dataclasses
import shlex
import statistics
import sys
from collections.abc import Mapping, Sequence

from benchmarks.results import Metric, write
from lab.command import Done, Run, checked
from lab.description import RackDescription
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError
from lab.hypervisor import counted, counters
from lab.pipeline.paths import REPO
from lab.rack import Rack

COUNTERS = {"p2m_writes": "p2m: entries written", "flushes": "p2m: TLB flushes", "frees": "domheap: calls to free"}
SUPERPAGES = "domheap: frames freed"
REMOVED = "guest_remove_range: extents removed"
PARAMETER = "guest-remove-range"

TAKE, GIVE = "take", "give"
WAYS = ("stock_4k", "order9", "ours")
STOCK_MIB = 48  # an emulated host takes seconds for this little


@dataclasses.dataclass(frozen=True)
class Step:
    """One change of a guest's memory: which way, `take` or `give`, how much, how long, and what Xen counted."""

    way: str
    operation: str
    mib: int
    seconds: float
    counts: Mapping[str, int]

    @property
    def seconds_per_gib(self) -> float:
        """Time for a GiB at this rate."""
        return self.seconds * 1024 / self.mib

    def per_2mib(self, count: str) -> float:
        """How often something was done for each 2 MiB."""
        return self.counts[count] / (self.mib / 2)


def _of(steps: Sequence[Step], way: str, operation: str) -> list[Step]:
    return [step for step in steps if step.way == way and step.operation == operation]


def _ratio(steps: Sequence[Step], operation: str) -> Metric:
    name = f"balloon.{operation}.ratio"
    times = {way: [step.seconds_per_gib for step in _of(steps, way, operation)] for way in WAYS}
    if not times["stock_4k"] or not times["ours"]:
        return Metric(name, None, "x", "higher", note="one of the two ways was not measured")
    stock = statistics.median(times["stock_4k"])
    baseline: dict[str, float | str] = {
        f"{way}_s_per_gib": round(statistics.median(values), 3) for way, values in times.items() if values
    }
    runs = [stock / seconds for seconds in times["ours"]]
    return Metric(
        name,
        statistics.median(runs),
        "x",
        "higher",
        baseline,
        runs,
        "median of the stock runs' time for a GiB over each of ours; from command to done",
    )


def _per_2mib(steps: Sequence[Step], operation: str, count: str) -> Metric:
    name = f"balloon.{operation}.{count}_per_2mib"
    runs = [step.per_2mib(count) for step in _of(steps, "ours", operation)]
    baseline: dict[str, float | str] = {}
    for way in ("stock_4k", "order9"):
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
        f'Xen\'s counter "{COUNTERS[count]}", of the whole host while it was done',
    )


def metrics(steps: Sequence[Step]) -> list[Metric]:
    """The figures of a run, under the names that the project fixed for them."""
    found = []
    for operation in (TAKE, GIVE):
        found.append(_ratio(steps, operation))
        found += [_per_2mib(steps, operation, count) for count in COUNTERS]
    for way in WAYS:
        for operation in (TAKE, GIVE):
            runs = [step.seconds_per_gib for step in _of(steps, way, operation)]
            found.append(
                Metric(
                    f"balloon.{operation}.{way}.seconds_per_gib",
                    statistics.median(runs) if runs else None,
                    "s",
                    "lower",
                    runs=runs,
                    note="" if runs else "not measured",
                )
            )
    return found


def stock_script(name: str, mib: int, direction: int, seconds: int) -> str:
    """A shell script for dom0: change a guest's memory by `mib` with `xl mem-set`, and print how long it took.

    It ends when the hypervisor's count has changed by as much: `direction` is -1 (take) or 1 (give). It prints
    `seconds before after`; exit status 1 when that did not happen within `seconds`. The new target is relative to the
    old one, which is not quite what the hypervisor counts (it leaves out what the domain builder kept).
    """
    guest = shlex.quote(name)
    memory = f"xl list {guest} | awk 'NR==2 {{print $3}}'"
    reached = "-le" if direction < 0 else "-ge"
    return f"""
now() {{ awk '{{print $1}}' /proc/uptime; }}
before=$({memory}) || exit 2
target=$(xenstore-read "/local/domain/$(xl domid {guest})/memory/target") || exit 2
want=$((before + {direction * mib}))
began=$(now)
xl mem-set {guest} "$((target / 1024 + {direction * mib}))m" || exit 2
tries={seconds * 5}
while after=$({memory}); [ "$after" != "" ] && ! [ "$after" {reached} "$want" ]; do
  tries=$((tries - 1)); [ "$tries" -gt 0 ] || exit 1
  sleep 0.2
done
ended=$(now)
echo "$began $ended $before $after"
"""


def parse_stock(out: str) -> tuple[float, int]:
    """(seconds, MiB changed) from what the script printed. Raises ValueError."""
    began, ended, before, after = out.split()
    return float(ended) - float(began), abs(int(after) - int(before))


def counts_since(dom0: Run, before: Mapping[str, int]) -> dict[str, int]:
    """How far the hypervisor's counters went since `before`."""
    after = counters(dom0)
    return {key: counted(dict(before), after, name) for key, name in COUNTERS.items()}


def stock_step(elastic: ElasticGuest, operation: str, mib: int, timeout: int = 120) -> Step:
    """One `xl mem-set`. Raises CommandFailedError if the guest did not follow."""
    before = counters(elastic.dom0)
    script = stock_script(elastic.name, mib, -1 if operation == TAKE else 1, timeout)
    seconds, changed = parse_stock(checked(elastic.dom0, script, timeout + 60.0))
    return Step("stock_4k", operation, changed, seconds, counts_since(elastic.dom0, before))


def vnode_step(elastic: ElasticGuest, way: str, vnode: int, now_mib: int, then_mib: int) -> Step:
    """One `xl vnode-set` from one size to another. Raises RuntimeError if xl refuses."""
    before = counters(elastic.dom0)
    script = (
        f"began=$(awk '{{print $1}}' /proc/uptime); {elastic.command('vnode-set', str(vnode), f'{then_mib}M')} >&2; "
        "status=$?; echo \"$began $(awk '{print $1}' /proc/uptime)\"; exit $status"
    )
    done: Done = elastic.dom0(script, 180.0)
    if done.status != 0:
        raise RuntimeError(f"xl vnode-set {vnode} {then_mib}M: exit status {done.status}: {done.text.strip()}")
    began, ended = done.out.split()
    operation = TAKE if then_mib < now_mib else GIVE
    counts = counts_since(elastic.dom0, before)
    return Step(way, operation, abs(now_mib - then_mib), float(ended) - float(began), counts)


def superpage_path(dom0: Run, on: bool) -> None:
    """Switch the hypervisor's superpage removal on or off."""
    checked(dom0, f"xl set-parameters {PARAMETER}={'yes' if on else 'no'}")


def measure(elastic: ElasticGuest, vnode: int, full_mib: int, steps: list[Step], runs: int = 3) -> None:
    """The whole comparison on a guest whose elastic node `vnode` (at most `full_mib`) is absent before and after.

    Adds to `steps` as it goes. Raises what the steps raise; the hypervisor's superpage path is on again in any case.
    """
    for _ in range(runs):
        steps += [stock_step(elastic, operation, STOCK_MIB) for operation in (TAKE, GIVE)]
    attached = elastic.attach(vnode)
    if attached.status != 0:
        raise RuntimeError(f"xl vnode-attach: exit status {attached.status}: {attached.text.strip()}")
    small = full_mib // 2
    try:
        for way, count in (("ours", runs), ("order9", 1)):
            superpage_path(elastic.dom0, way == "ours")
            for _ in range(count):
                steps.append(vnode_step(elastic, way, vnode, full_mib, small))
                steps.append(vnode_step(elastic, way, vnode, small, full_mib))
    finally:
        superpage_path(elastic.dom0, True)
        elastic.detach(vnode)


def main() -> int:
    """Boot, measure, write build/results/balloon.json."""
    steps: list[Step] = []
    failure = None
    try:
        with Rack.boot(RackDescription.load("one-host"), meter=False) as rack:
            guest = rack.host().start_guest(REPO / "configs" / "guest2.cfg")
            full_mib = guest.listed()[1]["max_kib"] // 1024
            measure(guest, 1, full_mib, steps)
    except (LabError, RuntimeError, ValueError) as error:
        failure = str(error)
    found = metrics(steps)
    path = write("balloon", found)
    for metric in found:
        value = "not measured" if metric.value is None else f"{metric.value:.4g} {metric.unit}"
        print(f"{metric.metric:<42} {value:>14}  {dict(metric.baseline) or ''}")
    print(f"balloon: {path}")
    if failure:
        print(f"balloon: {failure}", file=sys.stderr)
    return 1 if failure else 0


if __name__ == "__main__":
    sys.exit(main())
