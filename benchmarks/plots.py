# SPDX-License-Identifier: GPL-2.0
"""Plots as inline SVG, drawn with matplotlib. Each function returns markup for `Page.figure()`."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from benchmarks.page import Markup, number
from benchmarks.timeline import WINDOWS, Timeline

NODE_COLOURS = ("#2a6f97", "#e07a1f", "#6a9f58", "#a15c9e", "#967662", "#d1a92e")
REMOTE, INK, GRID = "#b3261e", "#1c2430", "#dde3ea"
SHADES = {"attach": "#e07a1f", "detach": "#5b6675"}
WIDTH = 10.4

matplotlib.rcParams.update(
    {
        "svg.fonttype": "none",
        "font.family": ["DejaVu Sans", "sans-serif"],
        "font.size": 10,
        "axes.edgecolor": "#9aa5b1",
        "axes.labelcolor": INK,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.grid": True,
        "axes.axisbelow": True,
        "grid.color": GRID,
        "grid.linewidth": 0.8,
        "text.color": INK,
        "svg.hashsalt": "xenuma",
    }
)


def _svg(figure: Figure, name: str) -> Markup:
    """The figure as an <svg> element whose ids begin with `name`, so that several fit on one page."""
    out = io.StringIO()
    figure.savefig(out, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    text = out.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = re.sub(r'(xlink:href="#|url\(#)', rf"\g<1>{name}-", text)
    return Markup(text)


def _node_colour(node: int) -> str:
    return NODE_COLOURS[node % len(NODE_COLOURS)]


def _operations(timeline: Timeline) -> list[tuple[str, float, float]]:
    """(operation, begin, end) of what the operator did, from the windows around it."""
    found = []
    for operation, earlier, later in (("attach", "before", "attached"), ("detach", "settled", "detached")):
        if earlier in timeline.windows and later in timeline.windows:
            found.append((operation, timeline.windows[earlier][1], timeline.windows[later][0]))
    return found


def _shade(axes: Sequence[Axes], operations: Iterable[tuple[str, float, float]], weight: str = "normal") -> None:
    """What the operator did, from begin to end on the axis, in all plots; its name is above the first one."""
    for operation, begin, end in operations:
        for axis in axes:
            axis.axvspan(begin, end, color=SHADES[operation], alpha=0.16, linewidth=0)
        axes[0].annotate(
            f"vnode-{operation}",
            ((begin + end) / 2, 1.02),
            xycoords=("data", "axes fraction"),
            ha="center",
            va="bottom",
            fontsize=10,
            fontweight=weight,
        )


def _beside(axis: Axes) -> None:
    """The legend, where no line is."""
    axis.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), frameon=False)


def _memory(axis: Axes, timeline: Timeline, origin: float, nodes: Sequence[int]) -> None:
    times = [s.t - origin for s in timeline.samples]
    stacks = [[s.on("kib", node) / 1024 for s in timeline.samples] for node in nodes]
    if times:
        axis.stackplot(
            times,
            stacks,
            labels=[f"on node {n}" for n in nodes],
            colors=[_node_colour(n) for n in nodes],
            alpha=0.85,
            linewidth=0,
        )
        _beside(axis)
    axis.set_ylabel("resident MiB")


def _threads(axis: Axes, timeline: Timeline, origin: float, nodes: Sequence[int]) -> None:
    times = [s.t - origin for s in timeline.samples]
    for node in nodes:
        axis.step(
            times,
            [s.on("threads", node) for s in timeline.samples],
            where="post",
            color=_node_colour(node),
            linewidth=1.8,
            label=f"on node {node}",
        )
    axis.step(
        [i.t - origin for i in timeline.iterations],
        [i.threads for i in timeline.iterations],
        where="post",
        color=INK,
        linewidth=1.4,
        linestyle=(0, (4, 2)),
        label="team size",
    )
    axis.set_ylim(bottom=0, top=max([i.threads for i in timeline.iterations], default=1) + 0.8)
    axis.yaxis.set_major_locator(MaxNLocator(integer=True))
    axis.set_ylabel("threads")
    _beside(axis)


def _remote(axis: Axes, timeline: Timeline, origin: float) -> None:
    for window in WINDOWS:
        reading = timeline.readings.get(window)
        share = reading.remote_pct if reading else None
        if reading is None or share is None:
            continue
        axis.fill_between([reading.t0 - origin, reading.t1 - origin], share, color=REMOTE, alpha=0.25, linewidth=0)
        axis.plot([reading.t0 - origin, reading.t1 - origin], [share, share], color=REMOTE, linewidth=2)
        axis.annotate(
            f"{number(share)} %",
            ((reading.t0 + reading.t1) / 2 - origin, share),
            xytext=(0, 4),
            textcoords="offset points",
            ha="center",
            va="bottom",
            fontsize=9,
            color=REMOTE,
        )
    axis.set_ylim(0, 108)
    axis.set_yticks([0, 50, 100])
    axis.set_ylabel("remote %")


def _iteration_time(axis: Axes, timeline: Timeline, origin: float) -> None:
    axis.plot(
        [i.t - origin for i in timeline.iterations],
        [i.ms for i in timeline.iterations],
        color=INK,
        marker="o",
        markersize=3,
        linewidth=0.9,
    )
    axis.set_ylim(bottom=0)
    axis.set_ylabel("iteration, ms")


def timeline_plot(timeline: Timeline, name: str = "timeline") -> Markup:
    """Memory and threads a node, remote share and iteration time over time, with the operations shaded."""
    times = [s.t for s in timeline.samples] + [i.t - i.ms / 1e3 for i in timeline.iterations]
    origin = min(times, default=0.0)
    nodes = range(max((len(s.kib) for s in timeline.samples), default=1))
    figure = Figure(figsize=(WIDTH, 7.6))
    axes: Sequence[Axes] = figure.subplots(
        4, 1, sharex=True, gridspec_kw={"height_ratios": [1.5, 1.2, 1, 1.2], "hspace": 0.16}
    )
    _memory(axes[0], timeline, origin, nodes)
    _threads(axes[1], timeline, origin, nodes)
    _remote(axes[2], timeline, origin)
    _iteration_time(axes[3], timeline, origin)
    _shade(axes, [(name, begin - origin, end - origin) for name, begin, end in _operations(timeline)], "bold")
    axes[3].set_xlabel("seconds since the program started, guest's clock")
    axes[3].set_xlim(left=0)
    figure.align_ylabels(axes)
    return _svg(figure, name)


def remote_memory_plot(
    memory: Sequence[tuple[float, float, float]],
    windows: Sequence[Sequence[tuple[float, int, int]]],
    operations: Mapping[str, tuple[float, float]],
    name: str = "remote",
) -> Markup:
    """A node of another host over time: MiB at home and there, faults and messages a second, operations shaded.

    `memory`: (second, MiB on node 0, MiB on node 1); `windows`: for each stretch (second, faults, messages) since the start.
    """
    origin = min([t for t, _, _ in memory] + [begin for begin, _ in operations.values()], default=0.0)
    figure = Figure(figsize=(WIDTH, 5.6))
    axes: Sequence[Axes] = figure.subplots(3, 1, sharex=True, gridspec_kw={"hspace": 0.16})
    times = [t - origin for t, _, _ in memory]
    for node in (0, 1):
        values = [row[node + 1] for row in memory]
        axes[0].step(times, values, where="post", color=_node_colour(node), linewidth=2, label=f"node {node}")
    axes[0].set_ylabel("program, MiB")
    _beside(axes[0])
    for axis, column, label in ((axes[1], 0, "faults/s"), (axes[2], 1, "messages/s")):
        counted: list[tuple[float, int] | None] = []
        for window in windows:
            counted += [*((t, counts[column]) for t, *counts in window), None]
        _rates(axis, counted, origin, _node_colour(1), label)
        axis.set_ylim(bottom=0)
        axis.set_ylabel(label)
    _shade(axes, [(name, begin - origin, end - origin) for name, (begin, end) in operations.items()])
    axes[2].set_xlabel("seconds")
    axes[2].set_xlim(left=0)
    figure.align_ylabels(axes)
    return _svg(figure, name)


LEAST_S = 1.0  # between two looks that make a rate: in less a few events look like many


def _rates(axis: Axes, counted: Sequence[tuple[float, int] | None], origin: float, colour: str, label: str) -> None:
    """What a counter gained a second, between looks. None: nobody counted then; a counter that fell began anew."""
    times: list[float] = []
    rates: list[float] = []
    before: tuple[float, int] | None = None
    for after in counted:
        if before is None or after is None or after[1] < before[1]:
            times.append(math.nan)
            rates.append(math.nan)
        elif after[0] - before[0] < LEAST_S:
            continue
        else:
            times += [before[0] - origin, after[0] - origin]
            rates += [(after[1] - before[1]) / (after[0] - before[0])] * 2
        before = after
    axis.plot(times, rates, color=colour, linewidth=1.6, label=label)
    axis.fill_between(times, rates, color=colour, alpha=0.15, linewidth=0)


def _lines(axis: Axes, rows: Sequence[tuple[float, float, float]], origin: float, labels: Sequence[str]) -> None:
    """Two numbers over time, each until the next look."""
    times = [row[0] - origin for row in rows]
    for column, label in enumerate(labels):
        values = [row[column + 1] for row in rows]
        style: Any = "solid" if column == 0 else (0, (4, 1.5))
        axis.step(times, values, where="post", color=_node_colour(column), linewidth=2, linestyle=style, label=label)
    axis.set_ylim(0, max([*(value for row in rows for value in row[1:]), 1]) * 1.1)
    _beside(axis)


def spanning_plot(
    threads: Sequence[tuple[float, float, float]],
    memory: Sequence[tuple[float, float, float]],
    counted: Mapping[str, Mapping[str, Sequence[tuple[float, int] | None]]],
    pages: Sequence[tuple[float, float, float]],
    operations: Mapping[str, tuple[float, float]],
    *,
    hosts: Sequence[str],
    clock: str,
    name: str = "spanning",
) -> Markup:
    """One Linux on two hosts over time: threads and memory of a program, counters a second of either host, pages.

    Rows are (second, at the first host, at the second); `counted`: by what is counted and by host, (second, count);
    `pages`: of the other host, at either; `clock`: whose seconds they are.
    """
    seen = [row[0] for row in (*threads, *pages)] + [begin for begin, _ in operations.values()]
    origin = min(seen, default=0.0)
    figure = Figure(figsize=(WIDTH, 9.2))
    axes: Sequence[Axes] = figure.subplots(3 + len(counted), 1, sharex=True, gridspec_kw={"hspace": 0.18})
    for axis, rows, label in (
        (axes[0], threads, "threads"),
        (axes[1], memory, "program, MiB"),
        (axes[2], pages, "pages"),
    ):
        labels = [f"of the other at {host}" if label == "pages" else f"on {host}" for host in hosts]
        _lines(axis, rows, origin, labels)
        axis.set_ylabel(label)
    axes[0].yaxis.set_major_locator(MaxNLocator(integer=True))
    for axis, (what, by_host) in zip(axes[3:], counted.items(), strict=True):
        for number_of, (host, each) in enumerate(by_host.items()):
            _rates(axis, each, origin, _node_colour(number_of), f"at {host}")
        axis.set_ylim(bottom=0)
        axis.set_ylabel(f"{what}/s")
        _beside(axis)
    _shade(axes, [(operation, begin - origin, end - origin) for operation, (begin, end) in operations.items()])
    axes[-1].set_xlabel(f"seconds, {clock}")
    axes[-1].set_xlim(left=0)
    figure.align_ylabels(axes)
    return _svg(figure, name)


def phases_plot(
    operations: Mapping[str, Mapping[str, float]], name: str, unit: str = "s", clock: str = "emulator's time"
) -> Markup:
    """One bar an operation, split by phase, in the order in which the phases ran; times in `unit`, of whose `clock`."""
    figure = Figure(figsize=(WIDTH, 0.9 + 0.95 * len(operations)))
    axis = figure.subplots()
    axis.grid(axis="y", visible=False)
    longest = max((sum(phases.values()) for phases in operations.values()), default=0.0)
    for row, (_operation, phases) in enumerate(operations.items()):
        left = 0.0
        for index, (phase, seconds) in enumerate(phases.items()):
            axis.barh(
                row,
                seconds,
                left=left,
                height=0.5,
                color=NODE_COLOURS[index % len(NODE_COLOURS)],
                edgecolor="white",
                linewidth=1,
            )
            if seconds > 0.07 * longest:
                axis.text(
                    left + seconds / 2,
                    row,
                    f"{phase}\n{number(seconds)} {unit}",
                    ha="center",
                    va="center",
                    color="white",
                    fontsize=8.5,
                )
            left += seconds
    axis.set_yticks(range(len(operations)), list(operations))
    axis.invert_yaxis()
    axis.set_xlabel(f"{'seconds' if unit == 's' else unit} ({clock})")
    return _svg(figure, name)


def pairs_plot(pairs: Mapping[str, tuple[float, float]], names: tuple[str, str], unit: str, name: str) -> Markup:
    """For each key two bars on a logarithmic axis: the baseline and ours. A zero has no bar, only its number."""
    figure = Figure(figsize=(WIDTH, 0.9 + 0.62 * max(len(pairs), 1)))
    axis = figure.subplots()
    axis.grid(axis="y", visible=False)
    positive = [value for values in pairs.values() for value in values if value > 0]
    left = min(positive, default=1) / 4
    for row, (_key, values) in enumerate(pairs.items()):
        for offset, value, colour in ((-0.19, values[0], "#9aa5b1"), (0.19, values[1], NODE_COLOURS[0])):
            if value > 0:
                axis.barh(row + offset, value, height=0.34, color=colour)
            axis.annotate(
                number(value),
                (max(value, left), row + offset),
                xytext=(4, 0),
                textcoords="offset points",
                va="center",
                fontsize=9,
            )
    axis.set_xscale("log")
    axis.set_xlim(left, max(positive, default=1) * 4)
    axis.set_yticks(range(len(pairs)), list(pairs))
    axis.set_ylim(max(len(pairs), 1) - 0.5, -0.5)
    axis.set_xlabel(unit)
    handles = [Patch(color=c, label=n) for c, n in zip(("#9aa5b1", NODE_COLOURS[0]), names, strict=False)]
    axis.legend(handles=handles, loc="lower right", bbox_to_anchor=(1, 1), ncols=2, frameon=False)
    return _svg(figure, name)


def windows_plot(
    series: Mapping[str, Sequence[float | None]], unit: Mapping[str, str], windows: Sequence[str], name: str
) -> Markup:
    """Small bar charts side by side, one a key, with one bar a window; what was not measured says so."""
    figure = Figure(figsize=(WIDTH, 2.6))
    axes = figure.subplots(1, max(len(series), 1), squeeze=False)[0]
    for axis, (key, values) in zip(axes, series.items(), strict=False):
        axis.grid(axis="x", visible=False)
        top = max((value for value in values if value is not None), default=1.0) or 1.0
        for column, value in enumerate(values):
            if value is not None:
                axis.bar(column, value, width=0.62, color=NODE_COLOURS[0])
            axis.annotate(
                "not\nmeasured" if value is None else number(value),
                (column, value or 0),
                xytext=(0, 3),
                textcoords="offset points",
                ha="center",
                fontsize=8.5,
            )
        axis.set_ylim(0, top * 1.2)
        axis.set_xlim(-0.6, len(windows) - 0.4)
        axis.set_xticks(range(len(windows)), list(windows), fontsize=8.5)
        axis.set_title(f"{key}, {unit[key]}", fontsize=10, loc="left")
    figure.subplots_adjust(wspace=0.22)
    return _svg(figure, name)


def spark(runs: Sequence[float]) -> Markup:
    """A small line of single runs; empty for fewer than three."""
    if len(runs) < 3:
        return Markup("")
    low, high = min(runs), max(runs)
    span = (high - low) or 1.0
    step = 116 / (len(runs) - 1)
    points = " ".join(f"{2 + i * step:.1f},{20 - (run - low) / span * 16:.1f}" for i, run in enumerate(runs))
    return Markup(
        f'<svg width="120" height="24" role="img" aria-label="{len(runs)} runs">'
        f'<polyline points="{points}" fill="none" stroke="{NODE_COLOURS[0]}" stroke-width="1.5"/></svg>'
    )
