# SPDX-License-Identifier: GPL-2.0
"""What a detach costs: by the size of the node, which nobody uses, and by the memory in use on a node of one size.

Each as the slope of a line through three sizes, so that what a detach takes in any case is not in it. The memory in use is a
file in a tmpfs, which was written with a preference for the node: pages that move one by one, and that nobody touches
meanwhile. Both series alternate. Times are from the operator's command to its end: an emulator's, so what they show is how the
two slopes stand to each other, and which phase of the operation has how much of them. The attach before each detach has its
line beside them, by the size of the node.

Usage: python3 -m benchmarks.detach [--runs=N]
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
from benchmarks.balloon import boot
from benchmarks.results import Metric, ended, from_runs
from benchmarks.slopes import Line
from lab.command import checked
from lab.elastic_guest import ElasticGuest
from lab.errors import CommandFailedError, LabError, Malformed
from lab.patience import scaled
from lab.pipeline.paths import REPO

RUNS = 5
FREE, USED = "free", "used"
VNODE = 1
HOME_MIB, NODE_MIB = 2048, 5120
# The home has room for all that is in use on the other node when that goes.
SIZES: Mapping[str, Sequence[int]] = {FREE: (1024, 2560, 5120), USED: (128, 512, 1024)}
GUEST = {
    "memory": str(HOME_MIB),
    "vnuma": f"""[[ "pnode=1", "size={HOME_MIB}", "vcpus=0-1", "vdistances=10,21" ],
                  [ "pnode=1", "size={NODE_MIB}", "vcpus=2-3", "vdistances=21,10", "elastic=1" ]]""",
}
FOLDER = "/tmp/in-use"
FILLED = 0.95  # of the memory in use has to be on the node
OPERATION_TIMEOUT = 300.0
FAILURES = (LabError, Malformed, TimeoutError, OSError)


@dataclasses.dataclass(frozen=True)
class Detach:
    """One: of which series and run, the node's size or the memory in use, the time of all, the seconds of each phase, and
    those of the attach before it."""

    series: str
    run: int
    mib: int
    seconds: float
    phases: Mapping[str, float]
    attach_seconds: float


def _lines(detaches: Sequence[Detach], phase: str | None = None) -> list[Line]:
    """One for each run that has enough sizes; of one phase, or of all the time."""
    return slopes.lines(
        (each.run, each.mib, each.phases.get(phase, 0.0) if phase else each.seconds) for each in detaches
    )


def metrics(detaches: Sequence[Detach]) -> list[Metric]:
    """The slopes, with those of the phases beside them, and what a detach of an idle node takes whatever its size; the same
    of the attach."""
    found = []
    fixed: list[float] = []
    for series in (FREE, USED):
        some = [each for each in detaches if each.series == series]
        lines = _lines(some)
        sizes = ", ".join(map(str, sorted({each.mib for each in some})))
        runs = [line.seconds_per_gib for line in lines]
        if series == FREE:
            fixed = [line.fixed_seconds for line in lines]
        baseline: dict[str, float | str] = {}
        for phase in dict.fromkeys(phase for each in some for phase in each.phases):
            if of_phase := _lines(some, phase):
                baseline[f"{phase}_s_per_gib"] = round(statistics.median(line.seconds_per_gib for line in of_phase), 3)
        about = "of the node, idle" if series == FREE else f"in use, node of {NODE_MIB} MiB"
        note = f"slope over {sizes} MiB {about}" if runs else f"not measured: it takes {slopes.LEAST_SIZES} sizes"
        value = statistics.median(runs) if runs else None
        found.append(Metric(f"detach.slope.{series}", value, "s", "lower", baseline, runs, note))
        for mib in sorted({each.mib for each in some}):
            seconds = (each.seconds for each in some if each.mib == mib)
            found.append(from_runs(f"detach.{series}.of_{mib}_mib_seconds", seconds, "s", "lower", about))
    found.append(_median("detach.slope.fixed_seconds", fixed, "where the line of idle nodes begins"))
    attaches = slopes.lines((each.run, each.mib, each.attach_seconds) for each in detaches if each.series == FREE)
    slope_note = "slope over the same sizes of the node, by an attach"
    found.append(_median("attach.slope", [line.seconds_per_gib for line in attaches], slope_note))
    found.append(_median("attach.fixed_seconds", [line.fixed_seconds for line in attaches], "where that line begins"))
    return found


def _median(name: str, runs: Sequence[float], note: str) -> Metric:
    value = statistics.median(runs) if runs else None
    return Metric(name, value, "s", "lower", runs=runs, note=note if runs else "not measured")


def use(guest: ElasticGuest, vnode: int, mib: int) -> None:
    """Have so much memory in use on a node. Raises LabError if it is not there."""
    checked(
        guest.guest,
        f"mkdir -p {FOLDER} && mount -t tmpfs -o size={mib + 16}m in-use {FOLDER} && "
        f"numactl --preferred={vnode} dd if=/dev/zero of={FOLDER}/memory bs=1M count={mib} 2>&1",
        scaled(OPERATION_TIMEOUT),
    )
    there = on_node(guest, vnode)
    if there < mib * FILLED:
        raise LabError(f"only {there:.0f} MiB of {mib} are on node {vnode}")


def on_node(guest: ElasticGuest, vnode: int) -> float:
    """MiB of tmpfs on a node. Raises LabError."""
    text = checked(guest.guest, f"cat /sys/devices/system/node/node{vnode}/meminfo")
    words = next((line.split() for line in text.splitlines() if " Shmem:" in line), [])
    if len(words) < 2 or not words[-2].isdigit():
        raise LabError(f"node {vnode} has no line of shared memory: {text[:200]!r}")
    return int(words[-2]) / 1024


def stop_using(guest: ElasticGuest) -> None:
    """Give the memory back, wherever it is now."""
    checked(guest.guest, f"umount {FOLDER}")


def detach(guest: ElasticGuest, vnode: int, series: str, mib: int, run: int) -> Detach:
    """Attach, have memory in use if that is the series, detach. Raises LabError when xl does not do it."""
    options = (f"size={mib}M",) if series == FREE else ()
    attached = guest.attach(vnode, *options, timeout=scaled(OPERATION_TIMEOUT))
    if attached.status != 0:
        raise CommandFailedError(f"xl vnode-attach: exit status {attached.status}: {attached.text.strip()}")
    if series == USED:
        use(guest, vnode, mib)
    done = guest.detach(vnode, timeout=scaled(OPERATION_TIMEOUT))
    if done.status != 0:
        raise CommandFailedError(f"xl vnode-detach: exit status {done.status}: {done.text.strip()}")
    phases = guest.vnode(vnode).phases
    if series == USED:
        stop_using(guest)
    return Detach(series, run, mib, done.seconds, phases, attached.seconds)


def measure(
    guest: ElasticGuest,
    detaches: list[Detach],
    runs: int = RUNS,
    sizes: Mapping[str, Sequence[int]] = SIZES,
) -> None:
    """All of it; adds to `detaches` as it goes. Raises one of FAILURES.

    Nothing is measured of the first attach and detach, for which much is not at hand yet, and each second run begins with the
    largest: what a size has from the one before it is not always the same.
    """
    detach(guest, VNODE, FREE, min(sizes[FREE]), 0)
    for run in range(runs):
        pairs = list(zip(sizes[FREE], sizes[USED], strict=True))
        for pair in reversed(pairs) if run % 2 else pairs:
            for series, mib in zip((FREE, USED), pair, strict=True):
                detaches.append(detach(guest, VNODE, series, mib, run))
                last = detaches[-1]
                print(f"run {run}: {series} {mib} MiB: {last.seconds:.2f} s, attach {last.attach_seconds:.2f} s", flush=True)


def main(arguments: Sequence[str] | None = None) -> int:
    """Boot, measure, write build/results/detach.json. `arguments`: none without."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.detach", description="What a detach costs, by slope.")
    parser.add_argument("--runs", type=whole(1), default=RUNS, metavar="N", help="of each size (%(default)s)")
    options = parser.parse_args([] if arguments is None else arguments)
    detaches: list[Detach] = []
    wrong: list[str] = []
    try:
        with boot() as rack:
            measure(rack.host().start_guest(REPO / "configs" / "guest2.cfg", GUEST), detaches, options.runs)
    except FAILURES as error:
        wrong.append(str(error) or repr(error))
    return ended("detach", metrics(detaches), wrong, bool(detaches))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
