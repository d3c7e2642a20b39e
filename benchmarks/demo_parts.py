# SPDX-License-Identifier: GPL-2.0
"""What all demos share: looks at something while it is under way, the parts of their pages, their files and their last line."""

from __future__ import annotations

import concurrent.futures
import subprocess
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from rich.console import Console

from benchmarks.page import Cell, Page, code, num
from benchmarks.results import Metric, host_info, now, write
from benchmarks.story import Story
from benchmarks.timeline import Check, Mark
from lab.errors import LabError, Malformed

# What ends a demo with DEMO FAIL, and is no mistake of its own.
FAILURES = (LabError, Malformed, TimeoutError, OSError, ValueError, subprocess.SubprocessError)


# ---- What is seen ----


def looking[T](work: Callable[[], T], look: Callable[[], object], pause_s: float) -> T:
    """What `work` returns, or raises, in a thread of its own; meanwhile `look` is called here, once at the least.

    `pause_s`: seconds between two looks. A look that raises is waited for, too: until the work has ended.
    """
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as worker:
        future = worker.submit(work)
        while True:
            look()
            if concurrent.futures.wait([future], timeout=pause_s).done:
                return future.result()


def per_second(counted: Sequence[tuple[float, int]]) -> float | None:
    """From (second, count) of a counter: between the first and the last. None with fewer than two, or if it began anew."""
    if len(counted) < 2:
        return None
    (first, low), (last, high) = counted[0], counted[-1]
    return (high - low) / (last - first) if last > first and high >= low else None


# ---- What it amounts to ----


def judged(checks: Sequence[Check], failure: str | None) -> list[Check]:
    """The checks, behind what ended the demo before its end, if anything did."""
    return [*([Check("the demo came to its end", False, failure)] if failure is not None else []), *checks]


def begun(title: str, subtitle: str, checks: Sequence[Check]) -> Page:
    """A page, with the verdict."""
    failed = [check for check in checks if not check.ok]
    page = Page(title, subtitle)
    page.verdict(not failed, "DEMO PASS" if not failed else f"DEMO FAIL: {failed[0].what} ({failed[0].detail})")
    return page


def what_had_to_hold(page: Page, checks: Sequence[Check]) -> None:
    """Each check, and what was seen."""
    page.heading("What had to hold")
    page.table(
        ["check", "", "seen"],
        [
            (check.what, Cell("yes" if check.ok else "NO", "good" if check.ok else "bad"), check.detail)
            for check in checks
        ],
    )


def what_happened(page: Page, marks: Sequence[Mark], second: str = "second") -> None:
    """The marks in order. `second`: what their times are, for the head of the column."""
    page.heading("What happened")
    begin = min((mark.t for mark in marks), default=0.0)
    page.table(
        [num(second), "who", "what"],
        [
            (num(f"{mark.t - begin:.1f}"), mark.kind, code(mark.text) if mark.kind == "operator" else mark.text)
            for mark in sorted(marks, key=lambda mark: mark.t)
        ],
    )


def published(
    name: str,
    checks: Sequence[Check],
    figures: Sequence[Metric],
    page: Callable[[str, str], str],
    *,
    story: Story,
    results: Path,
) -> str | None:
    """Show the checks, write NAME.json if there is a figure, and NAME.html; the reason of a failure, or None.

    `page` makes the page from when and where it ran, in words. Raises OSError, InvalidResult.
    """
    story.checks(checks)
    results.mkdir(parents=True, exist_ok=True)
    written = [write(name, figures, results)] if figures else []
    host = host_info()
    path = results / f"{name}.html"
    path.write_text(page(now(), f"{host['cpus']} CPUs, {host['cpu_model']}"), encoding="utf-8")
    shown = "  ".join(map(str, [*written, path]))
    story.console.print(f"  [dim]{shown}[/dim]", highlight=False, soft_wrap=True)
    return next((f"{check.what} ({check.detail})" for check in checks if not check.ok), None)


def outcome(console: Console, play: Callable[[], str | None]) -> int:
    """Play, and say DEMO PASS or DEMO FAIL with the reason that `play` returns or raises; the exit status."""
    try:
        reason = play()
    except KeyboardInterrupt:
        console.print("[bold red]DEMO FAIL[/bold red]: interrupted", highlight=False)
        return 130
    except FAILURES as error:
        reason = str(error)
    Story(console, time.monotonic).verdict(reason)
    return 0 if reason is None else 1
