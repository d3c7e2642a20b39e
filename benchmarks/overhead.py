# SPDX-License-Identifier: GPL-2.0
"""What a program notices of a change: nodes come and go while it runs, against runs in which nothing changes.

Six OpenMP programs with known results (benchmarks/programs, those with timed_run.h), unmodified, on the project's libgomp, in a
guest of two nodes that gets two more (configs/guest4x1.cfg). Each round runs each of them four times: two nodes, two and then
four, four, four and then two; so all kinds of runs alternate, and none needs a change of its own in between. The change begins
when the program has done its first iterations, and has to be over before its last one has ended. How often a program computes
its problem in a run is found by a run before, so that a run takes about --seconds. With --larger, problems are about as large
as the guest's memory allows, and computed less often. What is compared, and the model: overhead_figures.py.

Each run is written down when it has ended (overhead_journal.py). A call that ends early, by a failure, Ctrl-C or --minutes, is
continued by another one with --continue and the same words; only --programs may be others, so that they can be measured
in several sessions. The figures are of all that the journal has.

Usage: python3 -m benchmarks.overhead [--runs=N] [--seconds=S] [--programs=NAME,...] [--larger] [--classes=NAME=C,...]
       [--rack=NAME | --use=NAME] [--config=FILE] [--journal=FILE] [--continue] [--minutes=M]
Exit status: 0, 1 if it could not be measured, or not all of it, 130 after Ctrl-C; what was measured until then is written
in any case.
"""

from __future__ import annotations

import argparse
import dataclasses
import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from benchmarks.arguments import existing
from benchmarks.overhead_figures import (
    ADD,
    FINAL,
    KINDS,
    LARGE,
    LEAST_ROUNDS,
    SMALL,
    Counters,
    Program,
    Sample,
    WrongTeam,
    check,
    metrics,
    parse_counters,
)
from benchmarks.overhead_journal import Journal
from benchmarks.program_output import TimedRun, parse_timed
from benchmarks.results import RESULTS, Metric, host_info, kept
from lab.artifacts import built
from lab.command import checked
from lab.description import RackDescription
from lab.elastic_guest import LIBGOMP, PROGRAMS, ElasticGuest
from lab.errors import CommandFailedError, LabError, Malformed
from lab.patience import scaled, wait_for
from lab.pipeline.cache import content_key
from lab.pipeline.paths import REPO
from lab.rack import Rack

# As large as iterations stay short beside a run, and times of one shape agree: decision 0124.
CLASSES = {"npb_ep": "A", "npb_is": "A", "npb_cg": "A", "npb_mg": "W", "random_access": "A", "stream": "A"}
# The largest that fit into two nodes of the guest, with what else is in its memory, and take it about a minute at most.
LARGER_CLASSES = {"npb_ep": "A", "npb_is": "B", "npb_cg": "A", "npb_mg": "A", "random_access": "B", "stream": "A"}
RUNS = 5
SECONDS = 30.0
MAX_ROUNDS = 1000
ITERATIONS_BEFORE = 2  # that a program has done when the change begins
RUN_TIMEOUT = 900.0
OPERATION_TIMEOUT = 300.0  # of one node, beside a program that keeps all CPUs busy
START_TIMEOUT = 300.0  # preparing a problem takes its time, too
ASK_S = 1.0  # seconds between two questions to the guest: each costs it time
# What a user of a NUMA machine sets: threads stay on their place. And threads that wait sleep instead of spinning, since
# there are more emulated processors than real ones.
SETTINGS = "OMP_PLACES=threads OMP_PROC_BIND=close OMP_WAIT_POLICY=passive"
# Each vCPU stays on its node's CPUs; the rack's first node has two.
PLACED = {"cpus": '["0-1", "2", "3", "4"]'}
FAILURES = (LabError, Malformed, TimeoutError, OSError)


@dataclasses.dataclass(frozen=True)
class Shapes:
    """The guest's two shapes: vnodes that come and go, in the order in which they come, and the teams' sizes."""

    vnodes: Sequence[int]
    teams: Mapping[str, int]


SHAPES = Shapes((2, 3), {SMALL: 2, LARGE: 4})


def say(text: str) -> None:
    """A line of progress, at once: of hours, somebody follows it in a file."""
    print(text, flush=True)


class Progress:
    """How many of all runs are done, and how long the others will take if they are like those.

    No round begins after `until`, by time.monotonic(): that is told if it is sooner.
    """

    def __init__(self, total: int, until: float = math.inf) -> None:
        self.total, self.done, self.began, self.until = total, 0, time.monotonic(), until

    def __str__(self) -> str:
        now = time.monotonic()
        left_s = (now - self.began) / max(1, self.done) * (self.total - self.done)
        words = f"{self.done}/{self.total}, about {left_s / 60:.0f} min left"
        if now >= self.until:
            words += ", no other round begins"
        elif now + left_s > self.until:
            words += f", no round begins in more than {(self.until - now) / 60:.0f} min"
        return f"[{words}]"


class Bench:
    """All runs on a guest that is up, in its small shape: before, and after each round. Samples are kept as they come."""

    def __init__(
        self,
        guest: ElasticGuest,
        shapes: Shapes = SHAPES,
        classes: Mapping[str, str] = CLASSES,
        *,
        folder: str = "/tmp/overhead",
        environment: str = f"{SETTINGS} LD_LIBRARY_PATH={LIBGOMP}",
        programs: str = PROGRAMS,
        journal: Journal | None = None,
        tell: Callable[[str], None] = say,
    ) -> None:
        self.guest, self.shapes, self.classes, self.folder = guest, shapes, classes, folder
        self._environment, self._programs, self._tell = environment, programs, tell
        self.journal = journal or Journal()
        self.rounds = self.journal.rounds  # how often a program computes its problem in a run
        self.runs = RUNS  # rounds that are wanted
        self.given_up: dict[str, str] = {}  # programs that are not run any more, and why

    # --- one run ------------------------------------------------------------------------------------------------------

    def _counters(self) -> Counters:
        text = checked(self.guest.guest, "cat /proc/stat; echo ---; cat /proc/vmstat")
        stat, _, vmstat = text.partition("\n---\n")
        return parse_counters(stat, vmstat)

    def _start(self, name: str, rounds: int) -> None:
        """Start a program in the background; who reads `ended` waits for its end, and reads its exit status. `over` says
        that it has ended, to who does not wait."""
        words = f"{self._programs}/{name} --class={self.classes[name]} --rounds={rounds}"
        script = f"{self._environment} {words} >out 2>err </dev/null; status=$?; : >over; echo $status >ended"
        checked(
            self.guest.guest,
            f"mkdir -p {self.folder} && cd {self.folder} && rm -f out err ended over && mkfifo ended && : >out && "
            f"{{ setsid sh -c '{script}' >/dev/null 2>&1 </dev/null & }}",
        )

    def _said(self) -> str:
        return checked(self.guest.guest, f"cat {self.folder}/out")

    def _await_iterations(self, count: int) -> None:
        """Wait until the program has done so many, or has ended, well or not. Raises TimeoutError."""
        there = f"[ $(grep -c '\"iteration\"' {self.folder}/out) -ge {count} ] || [ -e {self.folder}/over ]"
        wait_for(f"{count} iterations", START_TIMEOUT, lambda: self.guest.guest(there, 30.0).status == 0, ASK_S)

    def _iterations(self) -> int:
        """How many the program has done until now. Raises LabError, Malformed."""
        said = checked(self.guest.guest, f"grep -c '\"iteration\"' {self.folder}/out || true").strip()
        if not said.isdecimal():
            raise Malformed(f"iterations done: {said[:100]!r}")
        return int(said)

    def _finish(self, name: str) -> TimedRun:
        """Wait for the end. Raises LabError unless it is a good one, Malformed; that, too, if it has done other work."""
        done = self.guest.guest(f"cat {self.folder}/ended", scaled(RUN_TIMEOUT))
        if done.status != 0 or done.out.strip() not in ("0", "1"):
            words = self.guest.guest(f"tail -c 500 {self.folder}/err", 30.0).text
            raise LabError(f"{name}: it ended with {done.out.strip() or done.text!r}: {words.strip()}")
        run = parse_timed(self._said())
        wanted = (name, self.classes[name], self.rounds[name])
        if run.outcome and (run.program, run.problem, run.outcome.rounds) != wanted:
            raise Malformed(f"{name}: it did {(run.program, run.problem, run.outcome.rounds)}, not {wanted}")
        return run

    def change(self, kind: str) -> float:
        """Attach or detach the vnodes, as the operator does; how long he waited. Raises CommandFailedError."""
        seconds = 0.0
        order = self.shapes.vnodes if kind == ADD else tuple(reversed(self.shapes.vnodes))
        for vnode in order:
            operate = self.guest.attach if kind == ADD else self.guest.detach
            done = operate(vnode, timeout=scaled(OPERATION_TIMEOUT))
            if done.status != 0:
                raise CommandFailedError(f"{kind} vnode {vnode}: exit status {done.status}: {done.text.strip()}")
            seconds += done.seconds
        return seconds

    def play(self, name: str, number: int, kind: str) -> Sample:
        """One run of a program; the guest has the shape with which it begins. Raises one of FAILURES."""
        before = self._counters()
        self._start(name, self.rounds[name])
        operation_s, over = 0.0, 0
        try:
            # Of all kinds, since asking costs the guest time.
            self._await_iterations(ITERATIONS_BEFORE)
            if kind in FINAL:
                operation_s = self.change(kind)
            over = self._iterations()
        except FAILURES:
            with suppress(*FAILURES):  # no program is left behind, and what is told is what went wrong first
                self._finish(name)
            raise
        run = self._finish(name)
        check(kind, run, self.shapes.teams)
        if kind in FINAL and over >= len(run.steps):
            # Its team follows early, and the rest of the change would disturb nobody.
            raise WrongTeam(f"{name}, {kind}: the change was over after the end of its last iteration")
        return Sample(number, kind, run, self._counters().since(before), operation_s)

    # --- all of them --------------------------------------------------------------------------------------------------

    def calibrate(self, name: str, seconds: float) -> None:
        """Find out how often a program has to compute its problem for a run of about so many seconds."""
        self.rounds[name] = 2
        try:
            steps = self.play(name, 0, SMALL).run.steps
        finally:
            del self.rounds[name]  # until it is known
        # From one round to the next: what is between them takes its time, too. Behind the last one, it is in no run's time.
        half = len(steps) // 2
        once, last = steps[half].t - steps[0].t, steps[half - 1].t - steps[0].t + steps[0].ms / 1e3
        if once <= 0:
            raise Malformed(f"{name}: a round of it took {once} s")
        # As near as can be, but no run of less than half: a change has to be over in it.
        others = max(0, round((seconds - last) / once), math.ceil((seconds / 2 - last) / once))
        self.journal.times(name, min(MAX_ROUNDS, 1 + others))
        self._tell(f"{name}.{self.classes[name]}: {once:.2f} s, so {self.rounds[name]} times a run")

    @property
    def samples(self) -> dict[str, list[Sample]]:
        """All runs, those of a round under way included."""
        return {name: list(self.journal.samples.get(name, ())) for name in self.classes}

    def _give_up(self, name: str) -> None:
        if (words := given_up(self.journal, name, self.runs)) and name not in self.given_up:
            self.given_up[name] = words
            self._tell(words)

    def _leave_out(self, name: str, kind: str, error: WrongTeam) -> None:
        """A run in which the change came too late says nothing. After too many of its kind its program is given up.

        The other programs go on: what they have to say is not lost.
        """
        if kind not in FINAL:
            raise error
        self.journal.leave_out(name, kind, str(error))
        self._tell(f"left out: {error}")
        self._give_up(name)

    def _round(self, name: str, number: int, progress: Progress) -> None:
        """All kinds of runs of a program, once."""
        for kind in KINDS:
            try:
                sample = self.play(name, number, kind)
            except WrongTeam as error:
                self._leave_out(name, kind, error)
                continue
            finally:
                progress.done += 1
            self.journal.add(name, sample)
            waited = f", operation {sample.operation_s:.1f} s" if kind in FINAL else ""
            self._tell(f"{progress}: round {number}: {name} {kind}: {sample.seconds:.2f} s{waited}")
        self.journal.end_round(name, number)

    def measure(self, runs: int, seconds: float, until: float = math.inf) -> None:
        """Calibrate, and then play all rounds that are not there yet. Raises one of FAILURES; what was measured is kept.

        No round of a program is begun when it is later than `until`, by time.monotonic().
        """
        self.runs = runs
        for name in self.classes:
            self._give_up(name)
        wanted = [each for each in missing(self.journal, self.classes, runs) if each[1] not in self.given_up]
        for name in dict.fromkeys(name for _, name in wanted):
            if name not in self.rounds and time.monotonic() < until:
                self.calibrate(name, seconds)
        progress = Progress(len(wanted) * len(KINDS), until)
        for place, (number, name) in enumerate(wanted, 1):
            if name in self.given_up or time.monotonic() >= until:
                continue
            self._round(name, number, progress)
            if name in self.given_up:
                progress.total -= len(KINDS) * sum(later == name for _, later in wanted[place:])

    def programs(self) -> list[Program]:
        """All programs with what was measured of them."""
        return [Program(name, self.classes[name], self.samples[name]) for name in self.classes]


def missing(journal: Journal, classes: Mapping[str, str], runs: int) -> list[tuple[int, str]]:
    """The rounds of these programs that are to be played, in their order: number and program."""
    return [(number, name) for number in range(runs) for name in classes if (name, number) not in journal.whole]


def given_up(journal: Journal, name: str, runs: int) -> str:
    """Why a program is not run any more, or nothing: the change came too late in a kind of run, twice, and so often that the
    rounds that are left are too few for a mean. Runs are too short, or it never comes."""
    for kind in FINAL:
        late = [why for program, of, why in journal.left_out if (program, of) == (name, kind)]
        if len(late) > max(1, runs - LEAST_ROUNDS):
            return f"{name} given up: {late[-1]}, {len(late)} times"
    return ""


def terms(options: argparse.Namespace) -> dict[str, object]:
    """What has to be the same in all sessions whose runs are put together: the tree, what was built, the machine, the words."""
    host = host_info()
    return {
        "tree": content_key([REPO / "lab", REPO / "benchmarks", REPO / "configs"], base=REPO),
        "built": built(),
        "machine": f"{host['cpus']} CPUs, {host['cpu_model']}, {host['kernel']}",
        "runs": options.runs,
        "seconds": options.seconds,
        "classes": chosen(None, options.classes, larger=options.larger),
        "rack": f"--use={options.use}" if options.use else options.rack,
        "config": content_key([options.config.resolve()], base=options.config.resolve().parent),
    }


def chosen(programs: str | None, classes: str | None, *, larger: bool = False) -> dict[str, str]:
    """The programs to run and their classes, from the command line. Raises ValueError."""
    found = dict(LARGER_CLASSES if larger else CLASSES)
    for item in filter(None, (classes or "").split(",")):
        name, _, letter = item.partition("=")
        if name not in CLASSES or letter not in tuple("SWAB"):
            raise ValueError(f"--classes: {item!r}: want NAME=C, of {', '.join(CLASSES)}, and C of S, W, A, B")
        found[name] = letter
    names = [*filter(None, (programs or "").split(","))] or [*CLASSES]
    if unknown := [name for name in names if name not in CLASSES]:
        raise ValueError(f"--programs: {', '.join(unknown)}: want some of {', '.join(CLASSES)}")
    return {name: found[name] for name in names}


@contextmanager
def rack_of(options: argparse.Namespace) -> Iterator[Rack]:
    """The rack to measure on: booted for it, or one that runs already."""
    if options.use:
        with Rack.attach(options.use) as rack:
            yield rack
        return
    with Rack.boot(RackDescription.load(options.rack), meter=False) as rack:
        yield rack
    if rack.wrong_ends:
        raise LabError("; ".join(rack.wrong_ends))


def report(
    journal: Journal, classes: Mapping[str, str], directory: Path = RESULTS, teams: Mapping[str, int] = SHAPES.teams
) -> None:
    """Write overhead.json of all whole rounds that the journal has, and show the means; an earlier file is set aside.

    `classes` has those of all programs that were asked for, in any session.
    """
    found = metrics([Program(name, letter, journal.of_whole_rounds(name)) for name, letter in classes.items()], teams)
    # Of some programs only, a mean is not what its name says.
    if set(classes) != set(CLASSES):
        found = [metric for metric in found if not metric.metric.endswith(".mean_pct")]
    # The slowest changes are those that come too late: a mean without them says so.
    for operation in FINAL:
        if left := sum(kind == operation and name in classes for name, kind, _ in journal.left_out):
            found = [
                dataclasses.replace(metric, baseline={**metric.baseline, "left_out": left})
                if metric.metric.startswith(f"overhead.{operation}.") and metric.metric.endswith("mean_pct")
                else metric
                for metric in found
            ]
    late = "; ".join(why for _, _, why in journal.left_out)
    of_journal = {
        "left_out": (len(journal.left_out), late or "runs whose change came too late"),
        "failures": (len(journal.failures), "; ".join(journal.failures) or "sessions that ended by one"),
        "discarded": (journal.discarded, "runs that count for nothing: of rounds that were not whole when their session ended"),
        "sessions": (journal.sessions, "calls, each with a rack if there was something to run; a round of a program is of one"),
    }
    found += [Metric(f"overhead.{name}", value, "1", "none", note=note[:2000]) for name, (value, note) in of_journal.items()]
    path = kept("overhead", found, directory, host={"built": built()})
    for metric in found:
        if metric.metric.endswith("pct"):
            value = "not measured" if metric.value is None else f"{metric.value:.2f} %"
            print(f"{metric.metric:<44} {value:>14}  {dict(metric.baseline) or ''}")
    print(f"overhead: {path}")


def play_on_rack(options: argparse.Namespace, classes: Mapping[str, str], journal: Journal, until: float) -> None:
    """Boot, and measure what is missing. Raises one of FAILURES."""
    with rack_of(options) as rack:
        guest = rack.host().start_guest(options.config, PLACED)
        try:
            Bench(guest, classes=classes, journal=journal).measure(options.runs, options.seconds, until)
        except BaseException:
            with suppress(*FAILURES):  # what is told is what went wrong first
                guest.destroy()
            raise
        guest.destroy()


def not_begun(path: Path, journal: Journal, wrong: Sequence[str], interrupted: bool) -> int:
    """The end of a session that has come to no run, as without a rack: what was there before stays. Exit status."""
    told = [*wrong, "nothing was measured, and nothing is written"]
    try:
        if journal.withdraw(path):
            told.append(f"the earlier journal is {path} again")
    except OSError as error:
        told.append(f"{path} is of this call, with nothing in it: {error}")
    for words in told:
        print(f"overhead: {words}", file=sys.stderr)
    return 130 if interrupted else 1


def session(options: argparse.Namespace, classes: Mapping[str, str], journal: Journal) -> int:
    """Measure what is missing, and write what is there. Exit status."""
    began, interrupted, failure = time.monotonic(), False, ""
    wrong: list[str] = []
    for words in journal.failures:
        say(f"overhead: in an earlier session: {words}")
    try:
        if any(not given_up(journal, name, options.runs) for _, name in missing(journal, classes, options.runs)):
            play_on_rack(options, classes, journal, began + 60 * options.minutes)
    except KeyboardInterrupt:
        interrupted, failure = True, "interrupted"
    except FAILURES as error:
        failure = str(error) or repr(error)
        wrong.append(failure)
    if not journal.begun:
        return not_begun(options.journal, journal, wrong, interrupted)
    if failure:
        try:
            journal.fail(failure)
        except OSError as error:  # a full disk is why it ended; what is in memory is reported
            wrong.append(f"journal: {error}")
    # All programs that any session was asked for, in the usual order.
    every = chosen(None, options.classes, larger=options.larger)
    try:
        report(journal, {name: every[name] for name in every if name in classes or journal.samples.get(name)})
    except OSError as error:
        wrong.append(f"no figures: {error}; --continue writes them of what the journal has")
    wrong += filter(None, (given_up(journal, name, options.runs) for name in classes))
    if journal.left_out:
        words = "; ".join(why for _, _, why in journal.left_out)
        wrong.append(f"{len(journal.left_out)} runs left out, --seconds is too short: {words}")
    if left := [each for each in missing(journal, classes, options.runs) if not given_up(journal, each[1], options.runs)]:
        wrong.append(f"{len(left)} of {options.runs * len(classes)} rounds are missing: --continue plays them")
    print(f"overhead: {time.monotonic() - began:.0f} s")
    for words in wrong:
        print(f"overhead: {words}", file=sys.stderr)
    return 130 if interrupted else 1 if wrong else 0


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module's text."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.overhead", description="What a program notices of nodes that come and go."
    )
    parser.add_argument("--runs", type=int, default=RUNS, help="rounds (%(default)s)")
    parser.add_argument("--seconds", type=float, default=SECONDS, help="of a run, about (%(default)s)")
    parser.add_argument("--programs", help=f"only these of {','.join(CLASSES)}")
    words = ",".join(f"{name}={letter}" for name, letter in LARGER_CLASSES.items())
    parser.add_argument("--larger", action="store_true", help=f"larger classes: {words}")
    parser.add_argument("--classes", help="other classes than these: NAME=C,...")
    parser.add_argument("--rack", default="four-nodes", help="rack to boot (%(default)s)")
    parser.add_argument("--use", metavar="NAME", help="measure on a rack that runs already instead")
    config = REPO / "configs" / "guest4x1.cfg"
    parser.add_argument("--config", type=existing, default=config, help="guest to start (%(default)s)")
    parser.add_argument("--journal", type=Path, default=RESULTS / "overhead.jsonl", help="what has been run (%(default)s)")
    parser.add_argument("--continue", dest="resume", action="store_true", help="continue it, with what it has")
    parser.add_argument("--minutes", type=float, default=math.inf, help="begin no round of a program after so many")
    options = parser.parse_args([] if arguments is None else arguments)
    try:
        classes = chosen(options.programs, options.classes, larger=options.larger)
    except ValueError as error:
        parser.error(str(error))
    if options.runs < 1 or not 0 < options.seconds < math.inf or not options.minutes > 0:
        parser.error("--runs, --seconds and --minutes: want more than 0")

    try:
        opened = Journal.resume if options.resume else Journal.begin
        journal = opened(options.journal, terms(options))
    except (LabError, OSError) as error:
        print(f"overhead: {error}", file=sys.stderr)
        return 1
    if journal.aside:
        say(f"overhead: not --continue: the earlier journal is {journal.aside} now")
    try:
        return session(options, classes, journal)
    finally:
        journal.close()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
