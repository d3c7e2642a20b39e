# SPDX-License-Identifier: GPL-2.0
"""What X86_VSMP brings a guest's kernel, and what it costs: faults per tick and pages that bounce, and memory of the image.

The option puts what is "internode aligned" into pages of its own (linux-guest/config/vsmp.config). Both kernels run in turn
in `make bounce`'s machine, where hosts are played (benchmarks/bounce.py says what that is not); the medians of their figures
are beside each other. Memory is what System.map says of both: per-CPU data is there once for each CPU that may come.

Between two hosts of the lab the same is in tests/e2e/test_dsm_span_work.py: test_faults_per_tick, and its soak case "vsmp".

Before it: `python3 -m lab.pipeline.build linux linux-vsmp qemu` in the sandbox, ten minutes for a kernel that was not built.
Usage: python3 -m benchmarks.vsmp [--rounds=N]      # half a minute for each kernel and round; build/results/vsmp.json
Exit status: 0; 1 if it could not be measured; 2 for arguments that make no sense.
"""

from __future__ import annotations

import argparse
import statistics
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from benchmarks import bounce as played
from benchmarks.arguments import whole
from benchmarks.results import Metric, kept
from lab import bounce
from lab.artifacts import path_of
from lab.bounce import Symbols
from lab.errors import CommandFailedError, LabError, Malformed
from lab.pipeline.paths import ARTIFACTS

KERNELS = ("usual", "vsmp")
PARTS = {
    "text": ("_text", "_etext"),
    "data": ("_sdata", "_edata"),
    "bss": ("__bss_start", "__bss_stop"),
    "image": ("_text", "_end"),
    "per_cpu": ("__per_cpu_start", "__per_cpu_end"),
}


def sizes(system_map: str) -> dict[str, int]:
    """Bytes of each of PARTS. Raises Malformed."""
    at = Symbols(system_map).at
    missing = sorted({name for pair in PARTS.values() for name in pair} - at.keys())
    if missing:
        raise Malformed(f"System.map has no {', '.join(missing)}")
    return {part: at[end] - at[begin] for part, (begin, end) in PARTS.items()}


def one_run(kernel: Path) -> dict[str, float]:
    """Faults per tick by host, and how many pages bounce. Raises LabError, CommandFailedError, Malformed, OSError."""
    seen, counts, names = played.run(played.Settings(kernel, kernel.parent / "System.map"))
    found = {}
    for host in range(len(counts.faults)):
        metric = played.host_metric(seen, counts, host)
        assert metric.value is not None
        found[metric.metric.removeprefix("bounce.")] = metric.value
    return {**found, "pages": float(len(bounce.pages_of(counts, names)))}


def metrics(runs: Mapping[str, Sequence[Mapping[str, float]]], memory: Mapping[str, Mapping[str, int]]) -> list[Metric]:
    """vsmp.FIGURE, with the option, and beside it without. `runs`, `memory`: by KERNELS."""
    found = []
    for name in runs["usual"][0]:
        values = {kernel: [run[name] for run in runs[kernel]] for kernel in KERNELS}
        usual = statistics.median(values["usual"])
        beside: dict[str, float | str] = {
            "usual": usual, "usual_least": min(values["usual"]), "usual_most": max(values["usual"])
        }  # fmt: skip
        found.append(
            Metric(
                f"vsmp.{name}", statistics.median(values["vsmp"]), "1", "lower", beside, values["vsmp"],
                note="played in one machine: no Xen, pages that take no time",
            )
        )  # fmt: skip
    for part in PARTS:
        usual_kib, kib = (memory[kernel][part] / 1024 for kernel in KERNELS)
        note = "for each CPU that may come" if part == "per_cpu" else ""
        found.append(Metric(f"vsmp.memory.{part}", kib, "KiB", "lower", {"usual": usual_kib}, note=note))
    return found


def table(figures: Sequence[Metric]) -> str:
    """What is shown on the terminal."""
    lines = [f"{'':28} {'usual':>10} {'vsmp':>10}"]
    for each in figures:
        assert each.value is not None
        lines.append(f"{each.metric:28} {float(each.baseline['usual']):>10.2f} {each.value:>10.2f} {each.unit.strip('1')}")
    return "\n".join(lines)


def main(words: Sequence[str] = ()) -> int:
    """Run, show, write build/results/vsmp.json."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.vsmp", description=(__doc__ or "").partition("\n\n")[0])
    parser.add_argument("--rounds", type=whole(1, 99), metavar="N", default=3, help="of each; by default 3")
    asked = parser.parse_args(words)
    kernels = dict(zip(KERNELS, (path_of("kernel").resolve(), (ARTIFACTS / "linux-vsmp" / "vmlinuz").resolve()), strict=True))
    for path in kernels.values():
        if not path.is_file():
            print(f"vsmp: no {path}: python3 -m lab.pipeline.build linux linux-vsmp qemu", file=sys.stderr)
            return 1
    runs: dict[str, list[dict[str, float]]] = {kernel: [] for kernel in KERNELS}
    try:
        memory = {
            kernel: sizes((path.parent / "System.map").read_text(encoding="utf-8")) for kernel, path in kernels.items()
        }
        for number in range(asked.rounds):
            # In turn, so that a machine that becomes slower does so for both.
            for kernel in KERNELS if number % 2 == 0 else KERNELS[::-1]:
                runs[kernel].append(one_run(kernels[kernel]))
                print(f"{kernel}: {runs[kernel][-1]}")
    except (LabError, Malformed, CommandFailedError, OSError) as error:
        print(f"vsmp: {error}", file=sys.stderr)
        return 1
    figures = metrics(runs, memory)
    print(table(figures))
    print(f"vsmp: {kept('vsmp', figures, host={'vsmp_rounds': asked.rounds})}")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
