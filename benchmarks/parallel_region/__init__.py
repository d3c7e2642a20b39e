# SPDX-License-Identifier: GPL-2.0
"""What an empty parallel region costs with our libgomp, compared with the same libgomp without our changes.

Four processes run the same program: with stock libgomp, with ours and no topology page, with ours and a page that does
not change, and with stock once more: how much that differs from the first is what the comparison cannot see. They take
turns, each for many short batches; of a turn the fastest batch counts, because the machine may be busy with other things.
How fast a process is depends by some per cent on where its memory happens to lie, for as long as it lives: its stack, by
the size of its environment (Mytkowicz et al., ASPLOS 2009), and libgomp's team on the heap, by the sizes of what was
allocated before it, the path of the topology page for one. So after a few turns four new processes begin, each with an
environment of another size and a first allocation of that size, and what counts is the median over all of these lives.

The machine's noise is larger than the difference. So the instructions of a region are counted as well (callgrind):
twice with different numbers of regions, and divided, so that everything else falls out. For a team of one the count
is exact; a team of two depends a little on who waits for whom, and is the median of several runs.

The folders of the libraries: XENUMA_LIBGOMP and XENUMA_LIBGOMP_STOCK, else what `make build` left.
Writes build/results/parallel_region.json; an earlier one is set aside.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from types import TracebackType
from typing import Self

from benchmarks import results
from benchmarks.results import Metric
from lab.pipeline.paths import ARTIFACTS
from lab.topology_page import topology_page

HERE = Path(__file__).resolve().parent
LIVES = (9, 100)
"""Processes of each kind, one after the other: at least, and at most if there is time."""
TURNS = 3
"""Turns of each process."""
SECONDS = 30.0
"""Time for all lives of one team size."""
BATCHES = 50
COUNT = {1: 500, 2: 20}
"""Regions of a batch, by team size: few, so that some batches are not disturbed; enough for the clock, and for a process
that has slept to find its caches warm again."""
COUNTED = (100, 600)
"""Regions of the two counted runs."""

Rounds = dict[str, list[float]]


def library(variable: str, artifact: str) -> Path:
    folder = Path(os.environ.get(variable) or ARTIFACTS / artifact / "lib").resolve()
    if not (folder / "libgomp.so.1").exists():
        raise FileNotFoundError(f"{folder}/libgomp.so.1: not there; build it (make build STEPS={artifact}) or set {variable}")
    return folder


def write_page(path: Path, cpus: set[int]) -> None:
    """A topology page on which CPUS are usable, all on one node."""
    path.write_bytes(topology_page(sum(1 << cpu for cpu in cpus), [0] * (max(cpus) + 1)))


def environment(lib: Path, threads: int, page: Path | None, policy: str | None = None) -> dict[str, str]:
    env = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    env |= {"LD_LIBRARY_PATH": str(lib), "OMP_NUM_THREADS": str(threads)}
    if page:
        env["GOMP_TOPO_DEV"] = str(page)
    if policy:
        env["OMP_WAIT_POLICY"] = policy
    return env


def padding(random: Random) -> dict[str, str]:
    """Moves stack and heap of region.c, by up to a page."""
    return {"XENUMA_PADDING": "x" * random.randrange(4096)}


class Runner:
    """region.c, waiting for its turn."""

    def __init__(self, program: Path, env: Mapping[str, str], threads: int) -> None:
        self.threads = threads
        self.process = subprocess.Popen([program], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        assert self.process.stdin and self.process.stdout
        self.process.stdin.close()
        self.process.wait(timeout=60)
        self.process.stdout.close()

    def turn(self) -> float:
        """Nanoseconds per region of the fastest batch."""
        assert self.process.stdin and self.process.stdout
        self.process.stdin.write(f"{BATCHES} {COUNT[self.threads]}\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        if not words or int(words[0]) != self.threads:
            raise RuntimeError(f"a team of {words[:1]}, not of {self.threads}")
        return min(float(word) for word in words[1:])


def measure_time(program: Path, kinds: Mapping[str, tuple[Path, Path | None]], threads: int) -> Rounds:
    """Nanoseconds per region, by kind, a value for each life."""
    rounds: Rounds = {name: [] for name in kinds}
    random = Random(threads)
    order = list(kinds)
    least, most = LIVES
    deadline = time.monotonic() + SECONDS
    for life in range(most):
        if life >= least and time.monotonic() > deadline:
            break
        with contextlib.ExitStack() as stack:
            runners = {
                name: stack.enter_context(Runner(program, environment(lib, threads, page) | padding(random), threads))
                for name, (lib, page) in kinds.items()
            }
            turns: Rounds = {name: [] for name in kinds}
            for _ in range(TURNS):
                for name in order:
                    turns[name].append(runners[name].turn())
        for name in order:
            rounds[name].append(statistics.median(turns[name]))
        order = order[1:] + order[:1]
    return rounds


def self_cost(profile: str, library_name: str) -> int:
    """Instructions that a callgrind profile finds in an object, what it calls elsewhere not included.

    A line of cost is "POSITION COUNT"; the one after "calls=" is the cost of what is called. Names are given once,
    "ob=(3) /path", and then by number.
    """
    names: dict[str, str] = {}
    total, inside, skip = 0, False, False
    for line in profile.splitlines():
        if match := re.match(r"(c?)ob=(\(\d+\))(?: (.*))?$", line):
            names.setdefault(match[2], match[3] or "")
            if not match[1]:
                inside = Path(names[match[2]]).name.startswith(library_name)
        elif line.startswith("calls="):
            skip = True
        elif match := re.match(r"(?:[+-]?\d+|\*) (\d+)$", line):
            if inside and not skip:
                total += int(match[1])
            skip = False
    return total


def counted(program: Path, env: Mapping[str, str], regions: int) -> int:
    """Instructions that a run with so many regions needs inside of libgomp; the allocator's depend on its past."""
    with tempfile.NamedTemporaryFile(prefix="callgrind.") as out:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out.name}", str(program), str(regions)]
        done = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
        if done.returncode:
            raise RuntimeError(f"valgrind: {done.stderr.strip()[-300:]}")
        cost = self_cost(Path(out.name).read_text(encoding="utf-8"), "libgomp.so")
    if cost == 0:
        raise RuntimeError("callgrind saw no instruction of libgomp")
    return cost


def instructions(program: Path, lib: Path, threads: int, page: Path | None) -> float:
    """Instructions of libgomp for one region, all its threads together, without spinning."""
    env = environment(lib, threads, page, "passive")
    few, many = COUNTED
    return (counted(program, env, many) - counted(program, env, few)) / (many - few)


def time_metrics(rounds: Rounds, ours: str, metric: str, note: str) -> list[Metric]:
    ratios = [100 * (a / b - 1) for a, b in zip(rounds[ours], rounds["stock"], strict=True)]
    baseline: dict[str, float | str] = {
        "stock_ns": round(statistics.median(rounds["stock"]), 1),
        "ours_ns": round(statistics.median(rounds[ours]), 1),
    }
    return [
        Metric(metric, round(statistics.median(ratios), 3), "%", "lower", baseline, [round(r, 3) for r in ratios], note)
    ]


def count_metrics(program: Path, kinds: Mapping[str, tuple[Path, Path | None]], threads: int) -> list[Metric]:
    prefix = f"parallel_region.team{threads}"
    if shutil.which("valgrind") is None:
        why = "valgrind is not there: no instruction counts"
        return [Metric(f"{prefix}.extra_instructions", None, "instructions", "lower", note=why)]
    repeats = 1 if threads == 1 else 3
    runs = {
        name: [instructions(program, lib, threads, page) for _ in range(repeats)] for name, (lib, page) in kinds.items()
    }
    stock = statistics.median(runs["stock"])
    metrics = []
    for name in ("device", "no_device"):
        ours = statistics.median(runs[name])
        extra = [run - stock for run in runs[name]]
        baseline: dict[str, float | str] = {"stock": stock, "ours": ours, "percent": round(100 * (ours / stock - 1), 3)}
        metric = f"{prefix}.{name}.extra_instructions"
        metrics.append(Metric(metric, ours - stock, "instructions", "lower", baseline, extra))
    return metrics


def measure(program: Path, scratch: Path, ours: Path, stock: Path) -> list[Metric]:
    cpus = set(sorted(os.sched_getaffinity(0))[:2])
    metrics = []
    for threads in sorted({len(cpus), 1}, reverse=True):
        page = scratch / f"page{threads}"
        write_page(page, cpus)
        kinds: dict[str, tuple[Path, Path | None]] = {
            "stock": (stock, None), "device": (ours, page), "no_device": (ours, None)}  # fmt: skip
        rounds = measure_time(program, kinds | {"control": (stock, None)}, threads)
        prefix = "parallel_region" if threads > 1 else "parallel_region.team1"
        note = f"team of {threads}; with a topology page that does not change"
        metrics += time_metrics(rounds, "device", f"{prefix}.overhead_pct", note)
        metrics += time_metrics(rounds, "no_device", f"{prefix}.no_device.overhead_pct", "the same without a page")
        metrics += time_metrics(rounds, "control", f"{prefix}.control_pct", "stock against stock: what is noise")
        metrics += count_metrics(program, kinds, threads)
    return metrics


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and write the result; see the module's text. Exit status 0, or 1 with the reason. `arguments`: none without."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.parallel_region", description="What an empty parallel region costs with our libgomp."
    )
    parser.parse_args([] if arguments is None else arguments)
    try:
        ours = library("XENUMA_LIBGOMP", "libgomp")
        stock = library("XENUMA_LIBGOMP_STOCK", "libgomp-stock")
        with tempfile.TemporaryDirectory(prefix="parallel_region.") as name:
            program = Path(name) / "region"
            subprocess.run(["gcc", "-O2", "-fopenmp", "-o", program, HERE / "region.c"], check=True)
            metrics = measure(program, Path(name), ours, stock)
    except (OSError, RuntimeError, subprocess.CalledProcessError) as error:
        print(f"parallel_region: {error}", file=sys.stderr)
        return 1
    for metric in metrics:
        print(f"{metric.metric:55} {metric.value} {metric.unit}  {dict(metric.baseline)}")
    print(results.kept("parallel_region", metrics, emulated=False))
    return 0
