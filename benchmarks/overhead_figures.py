# SPDX-License-Identifier: GPL-2.0
"""What a change of the topology costs a program: from runs of it to figures. Pure: no guest, no clock, no file.

A program runs four times a round: with few nodes throughout (`small`), with nodes added on the way (`add`), with many
throughout (`large`), with nodes removed on the way (`remove`). All do the same work. A change is compared

    with the static run of the final shape, as Virtflex does it: `pct`. In it is what the program did before the change with
    fewer threads, or with more;
    with the same static run, iterations alone, as the program times itself and NPB's are timed: `timed_pct`;
    with the static run of the first shape, as if nobody had changed anything: `against_first_pct`;
    with the mix of both static runs, by the team of each iteration: `mixed_pct`. What is left is the disturbance, with what the
    emulated host takes for the operation itself;
    with the same mix in a model, where what was counted costs what it costs on a machine: `modelled_pct`.

The time of a run is from the beginning of its first iteration to the end of its last one, but for `timed_pct`. What the
programs do between their rounds and do not count as time of iterations, preparation and verification, is in it: a change that
falls there disturbs it, too, and of npb_is it is most of the time.

A mean is one of the programs' medians. Beside it is how sure it is: of each round the mean of all programs, and of these rounds
the mean, its standard error and its 95 % interval.

In the lab, a guest's CPUs outnumber those that are real. So times of the larger shape hide what more CPUs would bring, and CPU
time has in it what a CPU waited for a real one.

CPU time is by two clocks, and only times of one are subtracted. `user_s` and `system_s` are the program's by the scheduler's
clock: in it is what Xen or the emulator gave to others while a vCPU had the program. `guest_s`, `ticks_s` and `kernel_s` are by
the guest's ticks, as /proc/stat counts: what Xen gave to others is left out, it is `steal_s`, and of ticks that come late all
but one are missing.
"""

from __future__ import annotations

import dataclasses
import itertools
import statistics
from collections.abc import Callable, Mapping, Sequence

from benchmarks.intervals import mean_interval, standard_error
from benchmarks.program_output import TimedRun
from benchmarks.results import Metric
from lab.errors import Malformed

SMALL, ADD, LARGE, REMOVE = "small", "add", "large", "remove"
KINDS = (SMALL, ADD, LARGE, REMOVE)  # in the order in which they run: each begins as the one before has ended
FINAL = {ADD: LARGE, REMOVE: SMALL}
FIRST = {ADD: SMALL, REMOVE: LARGE}
PAGE = 4096
MIB = 1 << 20

LEAST_ROUNDS = 3  # of each program, for a mean: a median of fewer has no spread that says anything

# The model's constants.
# One thread moves 1 GB in pages of 4 KiB between nodes by move_pages(2): 3.55 +- 0.19 GB/s, Linux 7.0-rc2 on an EPYC of AMD's
# Zen 3. S. Garg, "[RFC PATCH v4 0/6] Accelerate page migration with batch copying and hardware offload", linux-mm, 9 March
# 2026, first table (baseline), column 4K.
MOVED_BYTES_PER_S = 3.55e9
FAULT_S = 1e-6  # a fault without a page to move: an assumption; a minor fault takes Linux 0.5 to 1 us on today's machines


@dataclasses.dataclass(frozen=True)
class Counters:
    """What a guest's kernel has counted since its start: seconds of CPU beside user mode, pages moved, seconds in user mode,
    and seconds in which its vCPUs could have run and did not."""

    kernel_s: float
    moved_pages: int
    user_s: float = 0.0
    steal_s: float = 0.0

    def since(self, before: Counters) -> Counters:
        """What came in between. Raises Malformed if it went backwards."""
        found = Counters(
            self.kernel_s - before.kernel_s,
            self.moved_pages - before.moved_pages,
            self.user_s - before.user_s,
            self.steal_s - before.steal_s,
        )
        if min(dataclasses.astuple(found)) < 0:
            raise Malformed(f"counters went backwards: {before}, then {self}")
        return found


def parse_counters(stat: str, vmstat: str, ticks_per_s: int = 100) -> Counters:
    """From /proc/stat and /proc/vmstat. Raises Malformed."""
    try:
        total = next(line.split() for line in stat.splitlines() if line.startswith("cpu "))
        user = sum(int(total[place]) for place in (1, 2))  # user, nice: proc_stat(5)
        kernel = sum(int(total[place]) for place in (3, 6, 7))  # system, irq, softirq
        steal = int(total[8])
        moved = next(int(line.split()[1]) for line in vmstat.splitlines() if line.startswith("pgmigrate_success "))
    except (StopIteration, IndexError, ValueError) as error:
        raise Malformed(f"/proc/stat or /proc/vmstat: {stat[:100]!r}, {vmstat[:100]!r}") from error
    return Counters(kernel / ticks_per_s, moved, user / ticks_per_s, steal / ticks_per_s)


@dataclasses.dataclass(frozen=True)
class Sample:
    """One run of a program to its end: which round and kind, what it said, what its kernel counted meanwhile.

    `operation_s` is what the operator waited for, 0 in a static run.
    """

    round: int
    kind: str
    run: TimedRun
    counted: Counters
    operation_s: float = 0.0

    @property
    def seconds(self) -> float:
        """From the beginning of its first iteration to the end of its last one, with all that is in between."""
        steps = self.run.steps
        return steps[-1].t - steps[0].t + steps[0].ms / 1e3 if steps else 0.0

    @property
    def timed_s(self) -> float:
        """Of its iterations, by the program's own clock."""
        return self.run.outcome.seconds if self.run.outcome else 0.0

    @property
    def rest_ms(self) -> float:
        """The longest time between two of its rounds: preparation and verification, in which no iteration ends."""
        steps, rounds = self.run.steps, self.run.outcome.rounds if self.run.outcome else 1
        first = range(len(steps) // rounds, len(steps), len(steps) // rounds) if 1 < rounds <= len(steps) else ()
        return max(((steps[n].t - steps[n - 1].t) * 1e3 - steps[n].ms for n in first), default=0.0)

    @property
    def guest_s(self) -> float:
        """CPU time of the whole guest by its ticks, from before its start until after its end."""
        return self.counted.user_s + self.counted.kernel_s

    @property
    def cpu_s(self) -> float:
        """CPU time of its iterations by the scheduler's clock, of all its threads."""
        return self.run.outcome.user_s + self.run.outcome.system_s if self.run.outcome else 0.0

    @property
    def faults(self) -> int:
        """Page faults in its iterations."""
        return self.run.outcome.minor_faults + self.run.outcome.major_faults if self.run.outcome else 0

    @property
    def gap_ms(self) -> float:
        """The longest time in which no iteration, or equal step of one, ended."""
        return self.run.outcome.gap_ms if self.run.outcome else 0.0

    @property
    def ticks_s(self) -> float:
        """CPU time of its iterations by the guest's ticks, of all its threads."""
        return self.run.outcome.user_ticks_s + self.run.outcome.system_ticks_s if self.run.outcome else 0.0

    @property
    def other_kernel_s(self) -> float:
        """CPU time of the guest's kernel that is not the program's in its iterations, both by the guest's ticks.

        /proc/stat rounds each of its three parts down to 10 ms: below 0 by more than 0.03 s is a mistake.
        """
        return self.counted.kernel_s - (self.run.outcome.system_ticks_s if self.run.outcome else 0.0)

    @property
    def steal_s(self) -> float | None:
        """What its vCPUs waited for a CPU of Xen's. Not known where one comes: what it was offline counts when it is back."""
        return None if self.kind == ADD else self.counted.steal_s


class WrongTeam(Malformed):
    """A run with known results, but not in teams of the sizes that its kind has, or with a change that was not over in time."""


def check(kind: str, run: TimedRun, teams: Mapping[str, int]) -> None:
    """Raises Malformed unless the run has ended well, and WrongTeam unless in teams of the sizes that its kind has.

    `teams` has those of SMALL and LARGE. A program that ends before a change has reached it has another one at its end.
    """
    if run.outcome is None or not run.steps or run.outcome.seconds <= 0:
        raise Malformed(f"{run.program}: it has not ended")
    if run.outcome.user_s + run.outcome.system_s <= 0:
        raise Malformed(f"{run.program}: it has taken no CPU time")
    if not run.outcome.verified:
        raise Malformed(f"{run.program}: wrong results: {'; '.join(run.wrong)}")
    first, final = (teams[FIRST[kind]], teams[FINAL[kind]]) if kind in FINAL else (teams[kind], teams[kind])
    sizes = [step.threads for step in run.steps]
    if sizes[0] != first or sizes[-1] != final:
        raise WrongTeam(
            f"{run.program}, {kind}: its team had {sizes[0]} threads first and {sizes[-1]} last, not {first} and {final}"
        )
    if sizes != sorted(sizes, reverse=final < first):
        teams_in_order = ", ".join(str(size) for size, _ in itertools.groupby(sizes))
        raise WrongTeam(f"{run.program}, {kind}: its team went back and forth: {teams_in_order}")


def share_before(sample: Sample, first: int) -> float:
    """Which share of the work a run had done when its team was not of the `first` size any more."""
    sizes = [step.threads for step in sample.run.steps]
    before = next((n for n, size in enumerate(sizes) if size != first), len(sizes))
    return before / len(sizes)


def mixed_s(sample: Sample, teams: Mapping[str, int], small_s: float, large_s: float) -> float:
    """How long its work takes where an iteration takes what it takes in a static run of the same team.

    A team in between, of which there is no static run, counts as the quicker one of both: a mix that is too long flatters.
    """
    known = {teams[SMALL]: small_s, teams[LARGE]: large_s}
    return statistics.mean(known.get(step.threads, min(small_s, large_s)) for step in sample.run.steps)


def percent(value: float, base: float) -> float:
    """How much more than `base`."""
    return 100 * (value / base - 1)


def modelled_s(sample: Sample, work_s: float, teams: Mapping[str, int]) -> tuple[float, float]:
    """The model, of a machine with a core for each vCPU: (time of the mix of both shapes, what the change costs).

    `work_s` is the CPU time of all the work, of a static run; each iteration is an equal part of it, and is shared by its team.
    Each thread of the smaller team moves its share of the pages that were moved and takes its share of the faults, and
    computes nothing meanwhile. What the operator waits for is not in it.
    """
    ideal = statistics.mean(work_s / step.threads for step in sample.run.steps)
    cost = sample.counted.moved_pages * PAGE / MOVED_BYTES_PER_S + sample.faults * FAULT_S
    return ideal, cost / teams[SMALL]


def model_words(teams: Mapping[str, int]) -> str:
    """What the model supposes, for whoever reads one of its figures."""
    return (
        f"a core for each vCPU, {MOVED_BYTES_PER_S / 1e9} GB/s and thread for pages moved, {FAULT_S * 1e6:g} us a fault, shared"
        f" by {teams[SMALL]} threads, against the mix of both shapes"
    )


# What a changing run is compared with, in words.
COMPARED = {
    "pct": "wall time against a static run of the final shape, in the same round",
    "timed_pct": "time of the iterations, by the program's clock, against the same static run",
    "against_first_pct": "wall time against a static run of the first shape, in the same round",
    "mixed_pct": "wall time against the mix of both static runs, by the team of each iteration",
    "modelled_pct": "{model}",
}
# The means of these.
MEANS = {
    "pct": ("mean_pct", "mean of the programs' medians; wall time against a static run of the final shape"),
    "timed_pct": ("timed.mean_pct", "the same of the time of iterations, by the programs' clocks"),
    "against_first_pct": ("against_first.mean_pct", "wall time against a static run of the first shape"),
    "mixed_pct": ("mixed.mean_pct", "wall time against the mix of both shapes"),
    "modelled_pct": ("modelled.mean_pct", "of the model: {model}"),
}


@dataclasses.dataclass(frozen=True)
class Program:
    """One program: its name, the class that is run, and all its samples."""

    name: str
    problem: str
    samples: Sequence[Sample]

    def of(self, kind: str) -> list[Sample]:
        """Its runs of a kind, by round."""
        return sorted((sample for sample in self.samples if sample.kind == kind), key=lambda sample: sample.round)

    def rounds(self, operation: str) -> list[dict[str, Sample]]:
        """The rounds in which the change and both static runs are there."""
        by_round: dict[int, dict[str, Sample]] = {}
        for sample in self.samples:
            by_round.setdefault(sample.round, {})[sample.kind] = sample
        wanted = {operation, SMALL, LARGE}
        return [by_round[number] for number in sorted(by_round) if wanted <= set(by_round[number])]


def _modelled(program: Program, operation: str, teams: Mapping[str, int]) -> list[tuple[float, float]]:
    """The model of each round."""
    rounds = program.rounds(operation)
    work_s = statistics.median(each[SMALL].cpu_s for each in rounds) if rounds else 0.0
    return [modelled_s(each[operation], work_s, teams) for each in rounds]


def _by_round(program: Program, operation: str, teams: Mapping[str, int]) -> dict[str, dict[int, float]]:
    """What a changing run takes more, of each kind of comparison and each round."""
    found: dict[str, dict[int, float]] = {what: {} for what in COMPARED}
    for each, (ideal, cost) in zip(program.rounds(operation), _modelled(program, operation, teams), strict=True):
        changing, final, first = each[operation], each[FINAL[operation]], each[FIRST[operation]]
        values = {
            "pct": percent(changing.seconds, final.seconds),
            "timed_pct": percent(changing.timed_s, final.timed_s),
            "against_first_pct": percent(changing.seconds, first.seconds),
            "mixed_pct": percent(changing.seconds, mixed_s(changing, teams, each[SMALL].seconds, each[LARGE].seconds)),
            "modelled_pct": percent(ideal + cost, ideal),
        }
        for what, value in values.items():
            found[what][changing.round] = value
    return found


def _percentages(program: Program, operation: str, teams: Mapping[str, int]) -> list[Metric]:
    rounds, by_round = program.rounds(operation), _by_round(program, operation, teams)
    first, final = FIRST[operation], FINAL[operation]
    pct, modelled = by_round["pct"].values(), _modelled(program, operation, teams)
    baseline: dict[str, float | str] = {"class": program.problem}
    if rounds:
        for kind, name in ((operation, "changing_s"), (final, "static_s"), (first, "static_first_s")):
            baseline[name] = round(statistics.median(each[kind].seconds for each in rounds), 3)
        for kind, name in ((operation, "changing_timed_s"), (final, "static_timed_s")):
            baseline[name] = round(statistics.median(each[kind].timed_s for each in rounds), 3)
        baseline |= {"least_pct": round(min(pct), 2), "most_pct": round(max(pct), 2)}
        # How far static runs of one shape are apart, in which nothing changes: what is smaller than this says nothing.
        static = [each[final].seconds for each in rounds]
        baseline["static_spread_pct"] = round(percent(max(static), min(static)), 2)
        # A change that comes late is hardly seen: which part of the work was done before it.
        before = statistics.median(share_before(each[operation], teams[first]) for each in rounds)
        baseline["before_change_pct"] = round(100 * before, 1)
    name = f"overhead.{operation}.{program.name}"
    found = []
    for what, words in COMPARED.items():
        runs = [*by_round[what].values()]
        value, note = statistics.median(runs) if runs else None, words.format(model=model_words(teams))
        found.append(Metric(f"{name}.{what}", value, "%", "lower", baseline, runs, note if runs else "not measured"))
    seconds = [ideal + cost for ideal, cost in modelled]
    of_model: dict[str, float | str] = {"moved_gb_per_s": MOVED_BYTES_PER_S / 1e9, "fault_us": FAULT_S * 1e6}
    of_model["threads"] = teams[SMALL]
    if modelled:
        of_model["mix_s"] = round(statistics.median(ideal for ideal, _ in modelled), 3)
    value = statistics.median(seconds) if seconds else None
    found.append(Metric(f"{name}.modelled_s", value, "s", "lower", of_model, seconds, model_words(teams)))
    return found


COUNTS: Mapping[str, tuple[str, str, Callable[[Sample], float | None]]] = {
    "guest_s": (
        "s",
        "CPU time of the whole guest by its ticks, the program's start and end included, without steal_s",
        lambda s: s.guest_s,
    ),
    "ticks_s": ("s", "CPU time of the program's iterations by the guest's ticks, a part of guest_s", lambda s: s.ticks_s),
    "user_s": (
        "s",
        "CPU time of the program's iterations in user mode by the scheduler's clock, steal included: no part of guest_s",
        lambda s: s.run.outcome.user_s if s.run.outcome else 0.0,
    ),
    "system_s": (
        "s",
        "CPU time of the program's iterations in its kernel by the same clock, parted from user_s as ticks were",
        lambda s: s.run.outcome.system_s if s.run.outcome else 0.0,
    ),
    "kernel_s": (
        "s",
        "CPU time of the guest's kernel that is not in the program's iterations, both by the guest's ticks; to 0.03 s",
        lambda s: s.other_kernel_s,
    ),
    "steal_s": ("s", "time in which vCPUs of the guest could have run and Xen ran others, by /proc/stat", lambda s: s.steal_s),
    "moved_mib": (
        "MiB",
        "memory that the guest's kernel moved, by pgmigrate_success",
        lambda s: s.counted.moved_pages * PAGE / MIB,
    ),
    "faults": ("1", "page faults of the program in its iterations", lambda s: s.faults),
    "gap_ms": ("ms", "longest time between two iterations, or equal steps of them", lambda s: s.gap_ms),
    "rest_ms": ("ms", "longest time between two rounds, where no iteration ends", lambda s: s.rest_ms),
}


# Why a count, that of steal_s, is not there.
UNKNOWN = "not known of runs in which vCPUs come: Linux counts as stolen what they were offline"


def _known(value: Callable[[Sample], float | None], samples: Sequence[Sample]) -> list[float]:
    """A count of these runs, of those of which it is known."""
    found = [value(sample) for sample in samples]
    return [float(each) for each in found if each is not None]


def _counts(program: Program, operation: str) -> list[Metric]:
    # Of the rounds that the percentages are of, and no others.
    rounds = program.rounds(operation)
    changing, static = [each[operation] for each in rounds], [each[FINAL[operation]] for each in rounds]
    found = []
    for what, (unit, note, value) in COUNTS.items():
        runs, of_static = _known(value, changing), _known(value, static)
        baseline: dict[str, float | str] = {"most": round(max(runs), 3)} if runs else {}
        if of_static:
            baseline |= {"static": round(statistics.median(of_static), 3), "static_most": round(max(of_static), 3)}
        words = "the median of the runs" if runs else UNKNOWN
        found.append(
            Metric(
                f"overhead.{operation}.{program.name}.{what}",
                statistics.median(runs) if runs else None,
                unit,
                "lower",
                baseline,
                runs,
                f"{note}; {words}" if rounds else "not measured",
            )
        )
    return found


def _sureness(by_program: Sequence[Mapping[int, float]]) -> dict[str, float | str]:
    """Beside a mean of what each program has by round: rounds of the one with the fewest; of each round the mean of all, and of
    these the least, the most, how many there are, their mean, its standard error and its interval of 95 %."""
    found: dict[str, float | str] = {"rounds": min(map(len, by_program), default=0)}
    whole = set.intersection(*map(set, by_program)) if by_program else set()
    means = [statistics.fmean(each[number] for each in by_program) for number in sorted(whole)]
    if means:
        found |= {"least_round_pct": round(min(means), 2), "most_round_pct": round(max(means), 2)}
    if len(means) >= LEAST_ROUNDS:
        low, high = mean_interval(means)
        found |= {"round_means": len(means), "round_mean_pct": round(statistics.fmean(means), 2)}
        found |= {"standard_error_pct": round(standard_error(means), 2)}
        found |= {"low_95_pct": round(low, 2), "high_95_pct": round(high, 2)}
    return found


def _spread(programs: Sequence[Program], operation: str) -> dict[str, float | str]:
    """Beside the first mean: classes, and how long a static run took."""
    found: dict[str, float | str] = {"classes": "".join(each.problem for each in programs)}
    static = [pair[FINAL[operation]].seconds for each in programs for pair in each.rounds(operation)]
    if static:
        found |= {"least_static_s": round(min(static), 1), "most_static_s": round(max(static), 1)}
    return found


def _mean(metric: str, medians: Mapping[str, float | None], spread: Mapping[str, float | str], note: str) -> Metric:
    """The mean over the programs of their medians; nothing unless all were measured, and often enough."""
    missing = [each for each, value in medians.items() if value is None]
    known = {each: value for each, value in medians.items() if value is not None}
    baseline: dict[str, float | str] = {each: round(value, 2) for each, value in known.items()}
    baseline |= spread
    if missing or not known:
        reason = f"not measured: {', '.join(missing) or 'no program'}"
        return Metric(metric, None, "%", "lower", baseline, note=reason)
    if float(spread["rounds"]) < LEAST_ROUNDS:
        reason = f"not measured: only {spread['rounds']} rounds of a program, it takes {LEAST_ROUNDS}"
        return Metric(metric, None, "%", "lower", baseline, note=reason)
    return Metric(metric, statistics.mean(known.values()), "%", "lower", baseline, list(known.values()), note)


def metrics(programs: Sequence[Program], teams: Mapping[str, int]) -> list[Metric]:
    """The figures of all programs, the means first. `teams` has the number of threads of SMALL and of LARGE."""
    means, rest = [], []
    for operation in (ADD, REMOVE):
        found: list[Metric] = []
        for program in programs:
            found += _percentages(program, operation, teams) + _counts(program, operation)
        values = {metric.metric: metric.value for metric in found}
        by_round = [_by_round(program, operation, teams) for program in programs]
        for what, (name, words) in MEANS.items():
            medians = {each.name: values[f"overhead.{operation}.{each.name}.{what}"] for each in programs}
            beside = _sureness([each[what] for each in by_round])
            if what == "pct":
                beside |= _spread(programs, operation)
            note = words.format(model=model_words(teams))
            means.append(_mean(f"overhead.{operation}.{name}", medians, beside, note))
        seconds = [each[operation].operation_s for program in programs for each in program.rounds(operation)]
        means.append(
            Metric(
                f"overhead.{operation}.operation_s",
                statistics.median(seconds) if seconds else None,
                "s",
                "lower",
                runs=seconds,
                note="what the operator waited for, both nodes" if seconds else "not measured",
            )
        )
        rest += found
    return means + rest
