# SPDX-License-Identifier: GPL-2.0
"""The demo's story on the terminal: one line an event, with its second, and who did it. Each line is kept as a mark."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from benchmarks.page import number
from benchmarks.timeline import Check, Mark, Timeline

COLOURS = {"operator": "bold cyan", "guest": "green", "lab": "dim"}
PROMPTS = {"operator": "dom0# ", "guest": "guest ", "lab": "lab   "}


class Story:
    """Tells what happens. `now` is the clock of the marks; seconds are counted from the first one."""

    def __init__(self, console: Console, now: Callable[[], float]) -> None:
        self.console, self.now = console, now
        self.marks: list[Mark] = []

    def tell(self, text: str, kind: str = "lab") -> float:
        """One event, now; returns its time."""
        mark = Mark(self.now(), text, kind)
        self.marks.append(mark)
        second = mark.t - self.marks[0].t
        for index, line in enumerate(text.splitlines() or [""]):
            when = f"{second:7.1f} s" if index == 0 else " " * 9
            prompt = PROMPTS[kind] if index == 0 else " " * 6
            self.console.print(
                f"[dim]{when}[/dim]  [{COLOURS[kind]}]{prompt}{escape(line)}[/]", highlight=False, soft_wrap=True
            )
        return mark.t

    def output(self, text: str) -> None:
        """What a command printed, indented under it; not a mark."""
        for line in text.rstrip("\n").splitlines():
            self.console.print(f"{'':17}{escape(line)}", highlight=False, soft_wrap=True)

    def windows(self, timeline: Timeline, names: Sequence[str], vnode: int) -> None:
        """A table of the windows: threads, memory a node, remote share, time of an iteration."""
        table = Table(title="the program, as seen from outside", title_justify="left")
        for column in ("window", "threads", "MiB node 0", f"MiB node {vnode}", "remote %", "ms/iteration"):
            table.add_column(column, justify="left" if column == "window" else "right")
        for name in names:
            iterations, samples = timeline.iterations_in(name), timeline.samples_in(name)
            reading = timeline.readings.get(name)
            table.add_row(
                name,
                number(iterations[-1].threads if iterations else None),
                number(samples[-1].on("kib", 0) / 1024 if samples else None),
                number(samples[-1].on("kib", vnode) / 1024 if samples else None),
                number(reading.remote_pct if reading else None),
                number(statistics.median(i.ms for i in iterations) if iterations else None),
            )
        self.console.print(table)

    def checks(self, checks: Sequence[Check]) -> None:
        """Each thing that had to hold, and what was seen."""
        for check in checks:
            word = "[green]ok  [/green]" if check.ok else "[bold red]FAIL[/bold red]"
            self.console.print(
                f"  {word} {escape(check.what)}  [dim]{escape(check.detail)}[/dim]", highlight=False, soft_wrap=True
            )

    def verdict(self, reason: str | None) -> None:
        """The last line: DEMO PASS, or DEMO FAIL with its reason."""
        if reason is None:
            self.console.print("[bold green]DEMO PASS[/bold green]", highlight=False)
        else:
            self.console.print(f"[bold red]DEMO FAIL[/bold red]: {escape(reason)}", highlight=False, soft_wrap=True)
