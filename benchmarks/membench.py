# SPDX-License-Identifier: GPL-2.0
"""What dsm_membench prints in a guest, and what follows from it: times for a page as slopes over sizes.

A pass over N pages takes a fixed time and a time for each page. The second is the slope of a line through passes of several
sizes, so that the fixed part does not pass for a cost of pages.
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from lab.errors import Malformed

WHATS, ORDERS, STATES = ("read", "write"), ("sequential", "random"), ("cold", "warm")
QUANTILES = ("p10", "p50", "p90", "p99", "max")
# A line through passes begins at this share of the small one's time, at the most; a stall of either pass tilts it.
FIXED_SHARE = 0.5
# And a pass between the ends is off that line by this share of its time, at the most.
BEND = 0.25
# The first word of a page takes so many times as long as one that is at hand, at the least, if it comes from another host.
MISS = 32
# And so many ns at the least, where a guest's clock stands still at times and pages at hand take none.
LEAST_MISS_NS = 1000


@dataclasses.dataclass(frozen=True)
class Pass:
    """One pass over pages that were touched once each. Times in ns; `major`: faults for which the guest's kernel read."""

    round: int
    what: str
    order: str
    state: str
    pages: int
    ns: int
    major: int
    first_ns: Mapping[str, int]
    buckets: Sequence[tuple[int, int]]  # (end in ns, pages)


@dataclasses.dataclass(frozen=True)
class Copy:
    """One round of map, populate and memcpy by all threads; times in ns, of the slowest thread."""

    round: int
    threads: int
    mib: int
    map_ns: int
    populate_ns: int
    memcpy_ns: int

    @property
    def total_ns(self) -> int:
        """All three steps."""
        return self.map_ns + self.populate_ns + self.memcpy_ns


@dataclasses.dataclass(frozen=True)
class Output:
    """All that a run printed. It has ended well: every page had the right content."""

    passes: tuple[Pass, ...]
    copies: tuple[Copy, ...]
    checks: int
    # First words whose page may have been missed, those that nobody measures, too; and the time of all of them.
    accesses: int = 0
    access_ns: int = 0

    def plus(self, other: Output) -> Output:
        """Two runs together; the rounds of the other one come after this one's."""
        rounds = [each.round for each in self.passes] + [each.round for each in self.copies]
        after = max(rounds, default=-1) + 1
        passes = (dataclasses.replace(each, round=each.round + after) for each in other.passes)
        copies = (dataclasses.replace(each, round=each.round + after) for each in other.copies)
        return Output(
            (*self.passes, *passes),
            (*self.copies, *copies),
            self.checks + other.checks,
            self.accesses + other.accesses,
            self.access_ns + other.access_ns,
        )


def number(data: Mapping[str, Any], key: str) -> int:
    """A number that is not negative. Raises Malformed."""
    value = data.get(key)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
        raise Malformed(f"{key} {value!r} is not a number")
    return value


def _word(data: Mapping[str, Any], key: str, words: Sequence[str]) -> str:
    value = data.get(key)
    if value not in words:
        raise Malformed(f"dsm_membench: {key} {value!r} is none of {', '.join(words)}")
    return str(value)


def quantiles(data: object) -> dict[str, int]:
    """The numbers p10 to max, which must not go down. Raises Malformed."""
    if not isinstance(data, dict):
        raise Malformed(f"{data!r} has no quantiles")
    found = {key: number(data, key) for key in QUANTILES}
    if list(found.values()) != sorted(found.values()):
        raise Malformed(f"quantiles go down: {found}")
    return found


def _pass(data: Mapping[str, Any]) -> Pass:
    buckets = data.get("buckets")
    if not isinstance(buckets, list) or not all(isinstance(item, list) and len(item) == 2 for item in buckets):
        raise Malformed(f"dsm_membench: buckets {buckets!r}")
    pairs = tuple((number({"end": end}, "end"), number({"pages": pages}, "pages")) for end, pages in buckets)
    found = Pass(
        number(data, "round"),
        _word(data, "what", WHATS),
        _word(data, "order", ORDERS),
        _word(data, "state", STATES),
        number(data, "pages"),
        number(data, "ns"),
        number(data, "major"),
        quantiles(data.get("first_ns")),
        pairs,
    )
    # Pages at hand take less time than the clock of a guest whose CPUs' TSCs are not in step stands still at times.
    stood_still = not found.ns and found.state == "cold"
    if not found.pages or stood_still or sum(pages for _, pages in pairs) != found.pages:
        raise Malformed(f"dsm_membench: a pass of {found.pages} pages and {found.ns} ns, buckets {pairs}")
    return found


def parse(text: str) -> Output:
    """The output of a run that has ended. Raises Malformed, also without its result or with a wrong page."""
    passes: list[Pass] = []
    copies: list[Copy] = []
    result: Output | None = None
    for line in text.splitlines():
        try:
            data = json.loads(line)
        except ValueError as error:
            raise Malformed(f"dsm_membench: not JSON: {line[:200]!r}") from error
        event = data.get("event") if isinstance(data, dict) else None
        if result or event not in ("pass", "copy", "result"):
            raise Malformed(f"dsm_membench: unexpected line {line[:200]!r}")
        if event == "pass":
            passes.append(_pass(data))
        elif event == "copy":
            copies.append(Copy(*(number(data, field.name) for field in dataclasses.fields(Copy))))
        else:
            checks, accesses, access_ns = (number(data, key) for key in ("checks", "accesses", "access_ns"))
            result = Output(tuple(passes), tuple(copies), checks, accesses, access_ns)
            if number(data, "bad_pages"):
                raise Malformed(
                    f"dsm_membench: {data['bad_pages']} pages with wrong bytes of {checks} that were checked"
                )
    if not result:
        raise Malformed("dsm_membench: it has not ended: no result")
    return result


def slope(points: Iterable[tuple[float, float]]) -> tuple[float, float]:
    """(slope, value at 0) of the line with the least squares. Raises ValueError without two different x."""
    xs, ys = zip(*points, strict=True) if (points := list(points)) else ((), ())
    if len(set(xs)) < 2:
        raise ValueError(f"a slope needs two sizes, not {sorted(set(xs))}")
    line = statistics.linear_regression(xs, ys)
    return line.slope, line.intercept


def chosen(passes: Iterable[Pass], **wanted: str) -> list[Pass]:
    """The passes with these properties: what=, order=, state=."""
    return [each for each in passes if all(getattr(each, key) == value for key, value in wanted.items())]


def check_missed(output: Output) -> None:
    """What is called cold was not at hand, but for a tenth. Raises Malformed: then its time is not that of misses."""
    warm = [each.first_ns["p50"] for each in chosen(output.passes, state="warm")]
    if not warm:
        raise Malformed("dsm_membench: no pass over pages that are at hand")
    limit = max(MISS * statistics.median(warm), LEAST_MISS_NS)
    for each in chosen(output.passes, state="cold"):
        here = sum(pages for end, pages in each.buckets if end <= limit)
        if here > each.pages / 10:
            raise Malformed(
                f"{here} of {each.pages} pages were at hand in a cold pass, {each.what}s in {each.order} order: first words"
                f" within {limit:.0f} ns"
            )


def by_round(passes: Iterable[Pass], value: Callable[[list[Pass]], float]) -> list[float]:
    """A figure of each round."""
    rounds: dict[int, list[Pass]] = {}
    for each in passes:
        rounds.setdefault(each.round, []).append(each)
    return [value(rounds[each]) for each in sorted(rounds)]


def positive_median(what: str, runs: Sequence[float]) -> float:
    """The median of times. Raises Malformed if there is none, or if it is not above 0: that is no time, and no ratio's part."""
    if not runs or not statistics.median(runs) > 0:
        raise Malformed(f"{what}: no time: {', '.join(f'{each:.6g}' for each in runs) or 'no run'}")
    return statistics.median(runs)


def fixed_share(passes: Iterable[Pass]) -> float:
    """Where the line over the sizes begins, as a share of the small pass's time: the median of the rounds, without its sign.

    Above FIXED_SHARE the line is none: something else took the time of one of its ends. Raises ValueError with one size only.
    """

    def of(some: list[Pass]) -> float:
        small = min(some, key=lambda each: each.pages)
        return abs(slope((each.pages, each.ns) for each in some)[1]) / max(small.ns, 1)

    return statistics.median(by_round(passes, of))


def bend(passes: Iterable[Pass]) -> float:
    """How far passes between the ends are off the line through these, as a share of their time: the median of the rounds.

    0 with two sizes. Above BEND the line is none: what a page costs is not the same for each size.
    """

    def of(some: list[Pass]) -> float:
        small, *between, large = sorted(some, key=lambda each: each.pages)
        per_page, begin = slope((each.pages, each.ns) for each in (small, large))
        return max((abs(each.ns - begin - per_page * each.pages) / max(each.ns, 1) for each in between), default=0.0)

    return statistics.median(by_round(passes, of))


def off_line(share: float, bent: float) -> str:
    """What is wrong with a line of which fixed_share() and bend() say this; nothing: it is one."""
    if share > FIXED_SHARE:
        return f"the passes are on no line, which begins at {share:.2f} of the small one's time"
    if bent > BEND:
        return f"the passes are on no line: one between the ends is off it by {bent:.2f} of its time"
    return ""


def ns_per_page(passes: Iterable[Pass]) -> list[float]:
    """The slope over the sizes, in ns for a page, of each round. Raises ValueError with one size only."""
    return by_round(passes, lambda some: slope((each.pages, each.ns) for each in some)[0])


def cost_of_missing(output: Output, what: str, order: str) -> list[float]:
    """What it costs that a page is not at hand, ns of each round: the slope of cold passes less that of warm ones."""
    cold = ns_per_page(chosen(output.passes, what=what, order=order, state="cold"))
    warm = statistics.median(ns_per_page(chosen(output.passes, order=order, state="warm")))
    return [each - warm for each in cold]
