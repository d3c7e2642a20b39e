# SPDX-License-Identifier: GPL-2.0
"""`make soak SEED=N OPS=N`: a guest's nodes come and go at random, and after each operation all is looked at.

What is done is a function of seed and number of operations alone (plan.py), so that a run can be repeated, also in part:
`--from` and `--to` bring a fresh guest into the state before one operation and go on to another. A run ends at the first
operation after which something does not hold, or with `--keep-going` goes on with a new guest; the command that repeats it is
printed. Ctrl-C ends it, and what was done so far is written.

Result: build/results/soak.json (of `make soak-debug` below build/results-debug), soak.operations, by kind, and soak.violations;
a run of a part of a plan writes none, nor does one that had no rack. An earlier one is set aside. What each operation has said
is in build/logs/RACK/TIME/soak.jsonl, beside the consoles.

Usage: python3 -m benchmarks.soak [--seed N] [--ops N] [--from N] [--to N] [--guest guest2|guest4] [--home MIB] [--kernel FILE]
                                  [--keep-going] [--plan] [--use RACK]
Exit status: 0 nothing was wrong, 1 something was or there was no rack, 2 usage, 130 interrupted.
"""

from __future__ import annotations

import argparse
import collections
import dataclasses
import json
import os
import random
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from benchmarks.arguments import existing, seed_of, whole
from benchmarks.results import RESULTS, Metric, kept
from benchmarks.soak import checks
from benchmarks.soak.logs import Logs
from benchmarks.soak.model import SHAPES, UNSETTLED, Shape
from benchmarks.soak.plan import Step, plan, said
from benchmarks.soak.play import LabHome, Outcome, Soak
from benchmarks.soak.play import play as play_steps
from lab.description import RackDescription
from lab.errors import LabError, Malformed
from lab.rack import Rack

OPS = 300
MANY = 8  # kills of a kind, of which one at least has to come in time
FAILURES = (LabError, Malformed, TimeoutError, OSError, ValueError)


def metrics(seed: int, outcomes: Sequence[Outcome], wrong: Sequence[str], seconds: float, planned: int) -> list[Metric]:
    """The figures of a run, however far it came. Of one that has not come to its end, no violations are no figure."""
    kinds = collections.Counter(said(outcome.step) for outcome in outcomes)
    cut = collections.Counter(way(outcome) for outcome in outcomes if outcome.cut)
    ended = collections.Counter(way(outcome) for outcome in outcomes if outcome.cut is False)
    moved = sum((collections.Counter(outcome.moved) for outcome in outcomes), collections.Counter[str]())
    whole = len(outcomes) == planned
    note = f"seed {seed}" + (f", {planned} operations" if whole else f": ended after {len(outcomes)} of {planned}")
    violations = Metric("soak.violations", len(wrong), "1", "lower", note="; ".join([note, *wrong])[:1000])
    return [
        Metric(
            "soak.operations",
            len(outcomes),
            "1",
            "higher",
            {name: float(kinds[name]) for name in sorted(kinds)},
            note=note,
        ),
        *([violations] if wrong or whole else []),
        _counted("soak.cut", cut, "an xl was killed, told to give up or sent off half-way"),
        _counted("soak.ended_before", ended, "it was to be, and had ended before"),
        _counted(
            "soak.late",
            collections.Counter(outcome.step.operation.name for outcome in outcomes if outcome.late),
            "what did not hold at first, and did when it was looked at again",
        ),
        _counted("soak.moved_pages", moved, "that programs had on a vnode when a detach had to move them"),
        Metric(
            "soak.unasked",
            sum(outcome.unasked for outcome in outcomes),
            "1",
            "none",
            note="programs that ended with a life: what they would have told at their own end nobody has heard",
        ),
        Metric(
            "soak.stalls",
            sum(outcome.stalls for outcome in outcomes),
            "1",
            "none",
            note="reports of a stall: the emulator had no time, or a kernel did nothing else",
        ),
        Metric(
            "soak.seconds",
            seconds,
            "s",
            "none",
            runs=[round(outcome.seconds, 2) for outcome in outcomes],
            note="all checks included",
        ),
    ]


def way(outcome: Outcome) -> str:
    """How an xl was to be cut short: at which call, too."""
    operation = outcome.step.operation
    return f"call {operation.call}" if operation.how == "call" else str(operation.how)


def _counted[Kind: str | None](name: str, counts: Mapping[Kind, int], note: str) -> Metric:
    """So many in all, and how many of each kind."""
    return Metric(
        name, sum(counts.values()), "1", "none", {str(kind): float(counts[kind]) for kind in sorted(counts, key=str)}, note=note
    )


def replay(options: argparse.Namespace, seed: int, step: Step, first: int | None = None) -> str:
    """The command that repeats one operation, or all from the first."""
    words = [f"SEED={seed}", f"OPS={options.ops}", f"FROM={first or step.number}", f"TO={step.number}"]
    words += [f"SOAK_GUEST={options.guest}"] if options.guest != "guest2" else []
    target = "soak-debug" if options.kernel else "soak"
    return f"make {target} {' '.join(words)}"


class Telling:
    """Progress, one line an operation, and the journal."""

    def __init__(self, steps: Sequence[Step], journal: Path | None, say: Callable[[str], object]) -> None:
        self.outcomes: list[Outcome] = []
        self.checks: dict[str, bool] = {}  # which checks were on
        self._last = steps[-1].number if steps else 0
        self._journal, self._say = journal, say
        self._began = time.monotonic()

    def __call__(self, outcome: Outcome) -> None:
        self.outcomes.append(outcome)
        if self._journal:
            with self._journal.open("a", encoding="utf-8") as file:
                file.write(json.dumps(outcome.data()) + "\n")
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        status = "" if outcome.status is None else f" [{outcome.status}]"
        status += " late" if outcome.late else ""
        status += " it had ended before" if outcome.cut is False else ""
        number = f"{outcome.step.number}/{self._last}".rjust(2 * len(str(self._last)) + 1)
        self._say(f"{minutes:3d}:{seconds:02d}  {number}  {outcome.step.operation}{status}  {outcome.seconds:.1f} s")
        for line in outcome.wrong:
            self._say(f"        WRONG: {line}")


def found_by(telling: Telling | None) -> list[str]:
    """What operations so far have found wrong."""
    return [line for outcome in (telling.outcomes if telling else []) for line in outcome.wrong]


@contextmanager
def rack_of(options: argparse.Namespace) -> Iterator[Rack]:
    """The rack to play on: booted for this, or one that runs already."""
    if options.use:
        with Rack.attach(options.use) as rack:
            yield rack
        return
    with Rack.boot(RackDescription.load(os.environ.get("XENUMA_RACK", "one-host")), meter=False) as rack:
        yield rack


def chosen(options: argparse.Namespace, seed: int) -> tuple[Shape, list[Step]]:
    """The guest, and the steps that are to be done. Raises ValueError if there are none of them."""
    shape = SHAPES[options.guest]
    if options.home:
        shape = dataclasses.replace(shape, home_mib=options.home)
    first = 1 if options.first is None else options.first
    last = options.ops if options.last is None else options.last
    if not 1 <= first <= last <= options.ops:
        raise ValueError(f"operations {first} to {last}: want 1 <= FROM <= TO <= OPS, which is {options.ops}")
    return shape, plan(seed, options.ops, shape)[first - 1 : last]


def on_rack(
    rack: Rack, options: argparse.Namespace, shape: Shape, steps: Sequence[Step], telling: Telling, *, logs: Logs
) -> list[str]:
    """Do the steps. What was wrong."""
    wanted = checks.WANTED if options.kernel else ()
    soak = Soak(LabHome(rack.host(), shape, options.kernel), shape, logs, wanted=wanted)
    telling.checks[checks.XEN] = checks.of_xen(rack.logs)
    if wanted and not telling.checks[checks.XEN]:
        return [f"{checks.XEN} is off: this run checks less than it says"]
    try:
        wrong = soak.begin(steps[0].before)
        if wrong:
            try:
                return wrong + soak.end(asks=False)
            except FAILURES as error:
                return [*wrong, f"the end of the guest: {type(error).__name__}: {error}"]
        outcomes = play_steps(soak, steps, telling, options.keep_going)
    finally:
        telling.checks |= soak.checks
    return [line for outcome in outcomes for line in outcome.wrong] + uncut(outcomes)


def uncut(outcomes: Sequence[Outcome]) -> list[str]:
    """That no xl was killed in a run of many that were to be: it would show nothing of what it is for."""
    found = []
    for how in ("call", "time"):
        were = [outcome.cut for outcome in outcomes if outcome.step.operation.how == how]
        if len(were) >= MANY and not any(were):
            found.append(f"of {len(were)} that were to be killed at a {how} none was: each had ended before")
    told = [outcome.cut_status for outcome in outcomes if outcome.step.operation.how in ("INT", "TERM")]
    if len(told) >= MANY and UNSETTLED not in told:
        found.append(f"of {len(told)} that were told to give up none has told the guest to undo it")
    return found


def run(options: argparse.Namespace, seed: int, say: Callable[[str], object], results: Path = RESULTS) -> int:
    """Boot, play, write. Exit status."""
    shape, steps = chosen(options, seed)
    if options.plan:
        for step in steps:
            say(f"{step.number:5d}  {step.operation}")
        return 0
    say(f"soak: seed {seed}, operations {steps[0].number} to {steps[-1].number} of {options.ops}, {shape.name}")
    began = time.monotonic()
    telling: Telling | None = None
    logs: Logs | None = None
    wrong: list[str] = []
    interrupted = False
    try:
        with rack_of(options) as rack:
            telling, logs = Telling(steps, rack.logs / "soak.jsonl", say), Logs(rack.logs)
            wrong = on_rack(rack, options, shape, steps, telling, logs=logs)
        wrong += [] if options.use else rack.wrong_ends
    except KeyboardInterrupt:
        interrupted = True
        wrong = found_by(telling)
    except FAILURES as error:
        if telling is None:
            say(f"soak: no rack, nothing was done: {str(error) or repr(error)}")
            return 1
        wrong = [*found_by(telling), str(error)]
    if logs and not options.use:  # what dom0 and Xen say as they end, too
        wrong += logs.ended()
    outcomes = telling.outcomes if telling else []
    if telling and len(steps) == options.ops:
        found = metrics(seed, outcomes, wrong, time.monotonic() - began, len(steps))
        on = sorted(name for name, is_on in telling.checks.items() if is_on)
        host = {"seed": seed, "guest": shape.name, "checks": " ".join(on) or "none"}
        say(f"soak: {kept('soak', found, results, host=host)}")
    for line in wrong:
        say(f"soak: {line}")
    for outcome in outcomes:
        if outcome.wrong:
            say(f"soak: again, from the state before it: {replay(options, seed, outcome.step)}")
            if outcome.step.number > steps[0].number:  # what has built up is not in that state
                say(f"soak: again, with all before it: {replay(options, seed, outcome.step, steps[0].number)}")
    say(f"soak: {'interrupted: ' if interrupted else ''}{len(outcomes)} operations, {len(wrong)} violations")
    return 130 if interrupted else 1 if wrong else 0


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """See the module's text."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.soak", description="A guest's nodes come and go at random.")
    parser.add_argument("--seed", type=seed_of, help="of the plan; by default another one each time")
    parser.add_argument("--ops", type=whole(1), default=OPS, help="operations of the plan (%(default)s)")
    parser.add_argument("--from", dest="first", type=int, metavar="N", help="begin with this operation")
    parser.add_argument("--to", dest="last", type=int, metavar="N", help="end with this one")
    parser.add_argument("--guest", choices=sorted(SHAPES), default="guest2", help="(%(default)s)")
    parser.add_argument(
        "--home", type=whole(1), metavar="MIB", help="memory of the guest's home, where its kernel needs more"
    )
    parser.add_argument("--kernel", type=existing, help="a kernel for the guest alone")
    parser.add_argument(
        "--keep-going", action="store_true", help="after a violation, with a new guest in the same state"
    )
    parser.add_argument("--plan", action="store_true", help="only print what would be done")
    parser.add_argument("--use", metavar="NAME", help="play on a rack that runs already instead")
    options = parser.parse_args(arguments)
    if options.seed is None and (options.first, options.last) != (None, None):
        parser.error("--from, --to: want the --seed of the plan that they are a part of")
    return options


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's text."""
    options = parse(arguments)
    seed = random.SystemRandom().randrange(1 << 32) if options.seed is None else options.seed
    try:
        return run(options, seed, lambda line: print(line, flush=True))
    except ValueError as error:
        print(f"soak: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
