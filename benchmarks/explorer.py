# SPDX-License-Identifier: GPL-2.0
"""``make explore``: all worlds of dsm/explorer, walks through larger ones, and all mutants of dsm/core.

Result: build/results/explorer.json. ``python3 -m benchmarks.explorer WORD...`` takes only the worlds and mutants with one of
the words in their names, makes no walks, and writes no result. ``--seed N`` begins the walks with another seed, ``--walks N``
makes more, ``--jobs N`` runs so many at once (1.5 GiB of memory each, most need a tenth of it).
Any violation, a world that is too large, and a mutant that nobody notices are failures; so are words that name nothing. An
explorer that crashes ends it at once, without a result.
"""

from __future__ import annotations

import argparse
import itertools
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from benchmarks.arguments import seed_of, whole
from benchmarks.results import Metric, kept
from lab.pipeline import explorer
from lab.pipeline.mutants import Mutant
from lab.pipeline.progress import StepFailed

WALKS = 24
STEPS = 200_000
LIES = ("2x1-small", "2x1-core", "3x1-alone")  # worlds in which every message is tried in every state
# Worlds in which the explorer has to find a violation.
REFUTED = ("wrong-transport", "wrong-partition", "wrong-flush", "wrong-weak")


class Findings:
    """What the runs found, for the closing lines and the result."""

    def __init__(self) -> None:
        self.worlds: list[explorer.Explored] = []
        self.violations = 0
        self.forbidden = 0  # litmus tests among them
        self.incomplete: list[str] = []
        self.survivors: list[str] = []
        self.mutants = 0
        self.walks = 0

    def fine(self) -> bool:
        return not (self.violations or self.incomplete or self.survivors)

    def metrics(self, seed: int) -> list[Metric]:
        states = [float(each.states) for each in self.worlds]
        seconds = sum(each.seconds for each in self.worlds)
        note = ", ".join(f"{each.world} {each.states}" for each in self.worlds)
        litmus = [each for each in self.worlds if each.outcomes]
        reached = ", ".join(f"{each.world} {each.outcomes}" for each in litmus)
        return [
            Metric("explorer.states", sum(states), "1", runs=states, note=note),
            Metric(
                "explorer.seconds", seconds, "s", "lower", runs=[each.seconds for each in self.worlds], note="CPU time"
            ),
            Metric("explorer.violations", self.violations, "1", "lower", note=f"{self.walks} walks from seed {seed}"),
            Metric("explorer.incomplete", len(self.incomplete), "1", "lower", note=", ".join(self.incomplete)),
            Metric("explorer.litmus_worlds", len(litmus), "1", "higher"),
            Metric("explorer.litmus_outcomes", sum(each.outcomes for each in litmus), "1", note=reached),
            Metric("explorer.litmus_forbidden", self.forbidden, "1", "lower"),
            Metric("explorer.mutants", self.mutants, "1", "higher"),
            Metric("explorer.mutants_survived", len(self.survivors), "1", "lower", note=", ".join(self.survivors)),
        ]


def run(program: Path, words: list[str], findings: Findings) -> tuple[str, str]:
    """One run of the explorer, which is shown: what it found, and what it said. Raises StepFailed."""
    done = subprocess.run([program, *words], capture_output=True, text=True, check=False)
    print(done.stdout + done.stderr, end="", flush=True)
    found = explorer.verdict(done)
    if found == explorer.TOO_LARGE:
        findings.incomplete.append(words[-1])
    elif (found == explorer.VIOLATION) != (words[-1] in REFUTED):
        findings.violations += 1
        findings.forbidden += ": a forbidden outcome: " in done.stdout
    return found, done.stdout


def explore(program: Path, world: str, findings: Findings) -> None:
    """All states of a world. Raises StepFailed when it is fine and does not say how many there are."""
    found, said = run(program, [*(["--lies"] if world in LIES else []), world], findings)
    states = explorer.explored(said)
    if found == explorer.FINE and [each.world for each in states] != [world]:
        raise StepFailed(f"{world}: the explorer does not say how many states it has")
    findings.worlds += states


def examine(build: explorer.Build, folder: Path, mutant: Mutant, findings: Findings) -> None:
    """Run this mutant."""
    by = explorer.noticed(build, mutant, folder)
    findings.mutants += 1
    if not by:
        findings.survivors.append(mutant.breaks)
    print(f"{'killed  ' if by else 'SURVIVED'}  {mutant.breaks}: {by or ', '.join(mutant.tests)}", flush=True)


def at_once[T](jobs: int, work: Callable[[T], object], items: Iterable[T]) -> None:
    """Do so many of these at once. The first that fails ends it: what runs still is waited for, nothing is begun."""
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for done in [pool.submit(work, item) for item in items]:
                done.result()
        finally:
            pool.shutdown(cancel_futures=True)


def main(words: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.explorer",
        description="The DSM protocol: all states of small worlds, walks through larger ones, mutants.",
        epilog="""By make: `make explore EXPLORE='--seed 3'`.""",
    )
    parser.add_argument("--seed", type=seed_of, help="of the walks; by default another one each time")
    parser.add_argument("--walks", type=whole(0), metavar="N", help=f"so many, by default {WALKS}")
    parser.add_argument("--jobs", type=whole(1), metavar="N", default=1, help="at once (%(default)s)")
    parser.add_argument("words", nargs="*", metavar="WORD", help="only worlds and mutants with one in their name, and no walks")
    arguments = parser.parse_args(words)
    if arguments.words and (arguments.walks, arguments.seed) != (None, None):
        parser.error("--walks, --seed: there are no walks beside words, which name worlds and mutants")
    walks_wanted = WALKS if arguments.walks is None else arguments.walks
    seed = random.SystemRandom().randrange(1 << 32) if arguments.seed is None else arguments.seed
    dice = random.Random(seed)
    findings = Findings()
    begun = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="xenuma-explorer.") as scratch:
            folder = Path(scratch)
            build = explorer.Build(folder / "right").core()
            program = build.explorer()
            worlds, mutants = list(explorer.worlds(program)), explorer.mutants()
            if arguments.words:
                worlds = [world for world in worlds if any(word in world for word in arguments.words)]
                mutants = [mutant for mutant in mutants if any(word in mutant.breaks for word in arguments.words)]
            if not (worlds or mutants):
                raise StepFailed(f"no world and no mutant has any of these words in its name: {arguments.words}")
            at_once(arguments.jobs, lambda world: explore(program, world, findings), worlds)
            if not arguments.words:
                print(f"walks from seed {seed}", flush=True)
                sizes = [(dice.randint(2, 16), dice.randint(1, 4)) for _ in range(walks_wanted)]
                walks = [
                    ["--walk", str(hosts), str(pages), str(number), str(STEPS)]
                    for number, (hosts, pages) in zip(itertools.count(seed), sizes, strict=False)
                ]
                at_once(arguments.jobs, lambda words: run(program, words, findings), walks)
                findings.walks = len(walks)
            if arguments.jobs > 1:
                build.all_tests()
            at_once(
                arguments.jobs,
                lambda row: examine(build, folder / str(row[0]), row[1], findings),
                list(enumerate(mutants)),
            )
    except StepFailed as error:
        print(f"\nxenuma: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    if not arguments.words:
        print(kept("explorer", findings.metrics(seed), emulated=False))
    print(
        f"{len(findings.worlds)} worlds with {sum(each.states for each in findings.worlds)} states, "
        f"{findings.violations} violations, {len(findings.incomplete)} too large; {findings.mutants} mutants, "
        f"{len(findings.survivors)} survived; {time.monotonic() - begun:.0f} s"
    )
    return 0 if findings.fine() else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
