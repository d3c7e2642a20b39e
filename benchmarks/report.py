# SPDX-License-Identifier: GPL-2.0
"""`make report`: all of build/results/*.json as one HTML page, build/results/report.html.

Usage: python3 -m benchmarks.report [--results=DIR] [--out=FILE]
Exit status: 0; 1 if a result file is not valid (the page names it); 2 if there is no result, or the page cannot be written.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks import figures
from benchmarks.page import Cell, Page, code, num, number
from benchmarks.plots import pairs_plot, phases_plot, spark, windows_plot
from benchmarks.results import RESULTS, Metric, Result, now, read_all
from benchmarks.timeline import WINDOWS

HEADLINES = (
    ("balloon.take.ratio", "take memory, 2 MiB against stock 4 KiB"),
    ("balloon.give.ratio", "give memory, 2 MiB against stock 4 KiB"),
    ("balloon.take.unscrubbed.ratio", "take memory, where neither clears it"),
    ("balloon.take.p2m_writes_per_2mib", "p2m writes for each 2 MiB taken"),
    ("balloon.take.flushes_per_2mib", "flushes for each 2 MiB taken"),
    ("attach.seconds", "to attach a node"),
    ("detach.seconds", "to detach it"),
    ("detach.residual_kib", "left over after a detach"),
    ("parallel_region.overhead_pct", "more time for an empty parallel region"),
    ("attach.slope", "to attach a GiB"),
    ("detach.slope.free", "to detach a GiB that nobody uses"),
    ("detach.slope.used", "to detach a GiB in use"),
    ("overhead.add.mean_pct", "longer for a program, when two nodes come"),
    ("overhead.remove.mean_pct", "longer for a program, when two nodes go"),
    ("dsm.fault.ratio_to_rtt", "a fault of another host's page, against the raw round trip"),
    ("dsm.messages_per_read_fault", "messages for a read fault"),
    ("dsm.rdma.fault.ratio_to_rtt", "the same over Soft-RoCE"),
    ("dsm.polling.fault.ratio_to_rtt", "the same over TCP, both ends polling in both"),
    ("dsm.membench.speedup", "ETRI's memory benchmark, all switches on against none"),
    ("dsm.vs_swap.ratio", "as quick as swap on a disk in the other host's memory: reads by chance"),
    ("span.fault.home.ratio_to_rtt", "a fault of a guest on two hosts, against the raw round trip"),
    ("span.kv.speedup", "a key-value store on two hosts, all on against all off"),
    ("span.hypercall.forwarded.us", "a hypercall of another host's CPU that is done at home"),
    ("soak.violations", "violations in a soak of random operations"),
    ("demo.threads.attached", "threads after the attach"),
    ("demo.remote_pct.settled", "remote accesses, settled"),
)

FAULT_PHASES = ("outside", "trap", "ring", "queue", "wire", "serve", "install", "wake")

LIMITS = (
    "Everything here was measured in the lab: a rack in a box, whose hosts QEMU emulates (TCG) on an ordinary machine. "
    "Hypervisor, kernels, toolstack and programs are real; the processors and memory are not. Times are those of an "
    "emulator: compare them only with a baseline from the same run. Ratios mean more, counts are exact.",
    "An emulator's memory is flat: a remote access costs what a local one costs. Locality is therefore counted, "
    "with a QEMU plugin, and not timed. A share of remote accesses is a fact; a speed-up that follows from it "
    "is not shown by these figures.",
    "Results that are bad, and figures that could not be measured, are listed like the others.",
)


def _value(metric: Metric) -> str:
    if metric.value is None:
        return "not measured"
    unit = "" if metric.unit == "1" else "×" if metric.unit == "x" else f" {metric.unit}"
    return number(metric.value) + unit


def _baseline(metric: Metric) -> str:
    return ", ".join(
        f"{key} {value if isinstance(value, str) else number(value)}" for key, value in metric.baseline.items()
    )


def _judge(metric: Metric) -> Cell:
    """How a figure stands against the published figure or goal that goes with it."""
    known = [figure.floor for figure in figures.floor(metric.metric) if figure.floor is not None]
    if metric.value is None:
        return Cell("not measured", "bad")
    if not known or metric.better == "none":
        return Cell("")
    higher = metric.better == "higher"
    met = sum(metric.value >= floor if higher else metric.value <= floor for floor in known)
    word = "reached" if met == len(known) else "missed" if not met else f"{met} of {len(known)} reached"
    return Cell(word, "good" if met == len(known) else "bad")


def _metric_rows(result: Result) -> list[Sequence[object]]:
    arrows = {"higher": "higher is better", "lower": "lower is better", "none": ""}
    return [
        (
            Cell(code(metric.metric), "name"),
            num(_value(metric)),
            spark(metric.runs) or (len(metric.runs) or ""),
            arrows[metric.better],
            _baseline(metric),
            metric.note,
        )
        for metric in result.metrics
    ]


def _phases(result: Result, operation: str) -> dict[str, float]:
    prefix, suffix = f"{operation}.", ".seconds"
    return {
        metric.metric[len(prefix) : -len(suffix)]: metric.value
        for metric in result.metrics
        if metric.metric.startswith(prefix)
        and metric.metric.endswith(suffix)
        and metric.metric.count(".") == 2
        and metric.value is not None
    }


def _pairs(result: Result) -> dict[str, tuple[float, float]]:
    """Counts a 2 MiB that have a stock baseline: name -> (stock, ours)."""
    pairs = {}
    for metric in result.metrics:
        stock = metric.baseline.get("stock_4k")
        if metric.metric.endswith("_per_2mib") and isinstance(stock, (int, float)) and metric.value is not None:
            pairs[metric.metric.removesuffix("_per_2mib").replace("_", " ").replace(".", " ")] = (
                float(stock),
                metric.value,
            )
    return pairs


def _dsm_plots(page: Page, result: Result) -> None:
    """Where the time of a fault goes, and what swap takes for the same."""
    faults = {}
    for name, about in (("dsm.fault.us", "over TCP"), ("dsm.rdma.fault.us", "over Soft-RoCE")):
        if metric := result.find(name):
            parts = {phase: metric.baseline.get(f"{phase}_us") for phase in FAULT_PHASES}
            known = {phase: us for phase, us in parts.items() if isinstance(us, (int, float)) and us > 0}
            if len(known) == len(FAULT_PHASES):
                faults[about] = known
    if faults:
        page.figure(
            phases_plot(faults, f"{result.name}-fault", "us"),
            "A fault of a page of another host, means. Outside: the guest, its exit to Xen, the way back. Trap: in Xen, until "
            "the vCPU stops. Ring: from Xen to dsmd, and back. Queue: dsmd here, until the request is sent. Wire: until the "
            "answer is read, less what the other host's dsmd takes (serve): network stacks, wake-ups and the cable; not the "
            "raw round trip, which is a figure of its own. Install: the page operation here. Wake: until the vCPU runs again.",
        )
    against = {}
    for metric in result.metrics:
        ours = metric.baseline.get("dsm_us")
        theirs = [value for key, value in metric.baseline.items() if key.startswith("swap_")]
        times = [value for value in theirs if isinstance(value, (int, float))]
        if (
            metric.metric.startswith("dsm.vs_swap.")
            and metric.metric.count(".") == 3
            and times
            and isinstance(ours, (int, float))
        ):
            against[metric.metric.split(".")[2].replace("_", ", ")] = (float(min(times)), float(ours))
    if against:
        page.figure(
            pairs_plot(against, ("swap by nbd", "DSM"), "us for a page (emulator's time)", f"{result.name}-swap"),
            "Time for a page that is not at hand, with equal memory at hand: swap on a disk in the other host's memory, "
            "with the better page cluster, and DSM. Logarithmic.",
        )


def _plots(page: Page, result: Result) -> None:
    operations = {f"vnode-{name}": _phases(result, name) for name in ("attach", "detach")}
    operations = {name: phases for name, phases in operations.items() if phases}
    if operations:
        page.figure(phases_plot(operations, f"{result.name}-phases"), "Time of an operation, split by phase.")
    pairs = _pairs(result)
    if pairs:
        page.figure(
            pairs_plot(pairs, ("stock, 4 KiB", "ours, 2 MiB"), "operations for each 2 MiB", f"{result.name}-pairs"),
            "Operations of the hypervisor for each 2 MiB of guest memory, from its own counters. Logarithmic.",
        )
    _dsm_plots(page, result)
    series: dict[str, Sequence[float | None]] = {}
    units = {}
    for key, title, unit in (("remote_pct", "remote accesses", "%"), ("iteration_ms", "iteration, median", "ms")):
        found = [result.find(f"demo.{key}.{window}") for window in WINDOWS]
        if any(metric is not None for metric in found):
            series[title] = [metric.value if metric else None for metric in found]
            units[title] = unit
    if series:
        page.figure(
            windows_plot(series, units, WINDOWS, f"{result.name}-windows"),
            "The demo's program before the attach, right after it, settled, and after the detach.",
        )


def _host(result: Result) -> str:
    host = result.host
    kind = "emulated system" if host["emulated"] else "run directly"
    return (
        f"{result.when}; {kind} on {host['cpus']} CPUs ({host['cpu_model']}), {host['memory_mib']} MiB, "
        f"Linux {host['kernel']}, commit {host.get('commit', 'unknown')}"
    )


def _headlines(page: Page, results: Sequence[Result]) -> None:
    rows: list[Sequence[object]] = []
    for name, what in HEADLINES:
        metric = next((found for result in results if (found := result.find(name))), None)
        published = "; ".join(f"{figure.value} ({figure.source})" for figure in figures.floor(name))
        if metric:
            rows.append((what, num(_value(metric)), _judge(metric), published, Cell(code(name), "name")))
        else:
            rows.append((what, num("not run"), Cell("not run", "bad"), published, Cell(code(name), "name")))
    page.heading("At a glance")
    page.table(["what", num("measured here"), "against it", "published figure or goal", "metric"], rows)


def report_page(results: Sequence[Result], invalid: Sequence[str], when: str, demo: bool) -> str:
    """The page as HTML. `invalid`: one line a file that could not be read; `demo`: link to demo.html beside it."""
    page = Page("Xenuma: what was measured", f"{len(results)} result files · written {when}")
    links = [(result.name, f"#{result.name}") for result in results]
    page.links([*links, ("published figures", "#published"), *([("the demo's page", "demo.html")] if demo else [])])
    page.note(*LIMITS)
    if invalid:
        page.heading("Files that are not valid results")
        page.table(["problem"], [(line,) for line in invalid])
    _headlines(page, results)
    for result in results:
        page.heading(result.name, anchor=result.name)
        page.text(_host(result))
        _plots(page, result)
        if result.metrics:
            page.table(["metric", num("value"), "runs", "", "in the same run", "note"], _metric_rows(result))
        else:
            page.text("This run measured nothing.")
    page.heading("Published figures, for orientation", anchor="published")
    page.text("Measured by others, on real machines. They are floors and goals, not results of this project.")
    page.table(
        ["what", "published", "source"], [(figure.topic, figure.value, figure.source) for figure in figures.FIGURES]
    )
    return page.html()


def main(arguments: Sequence[str] | None = None) -> int:
    """Write the report; see the module's text for the exit status."""
    parser = argparse.ArgumentParser(prog="python3 -m benchmarks.report", description="All results as one HTML page.")
    parser.add_argument("--results", type=Path, default=RESULTS, help="where the *.json are (%(default)s)")
    parser.add_argument("--out", type=Path, help="the page to write (RESULTS/report.html)")
    options = parser.parse_args(arguments)
    if options.out and not options.out.parent.is_dir():
        parser.error(f"--out={options.out}: no such folder")
    out = options.out or options.results / "report.html"
    results, invalid = read_all(options.results)
    for line in invalid:
        print(f"report: {line}", file=sys.stderr)
    if not results and not invalid:
        print(f"report: no result in {options.results}: run `make demo` or `make bench` first", file=sys.stderr)
        return 2
    page = report_page(results, invalid, now(), (out.parent / "demo.html").exists())
    try:
        out.write_text(page, encoding="utf-8")
    except OSError as error:
        print(f"report: {out}: {error.strerror}", file=sys.stderr)
        return 2
    print(f"report: {out} from {len(results)} result files")
    return 1 if invalid else 0


if __name__ == "__main__":
    sys.exit(main())
