# SPDX-License-Identifier: GPL-2.0
"""What dsm_litmus prints in a guest, and the figures of it: outcomes that x86-TSO forbids, and rounds that really raced.

`litmus.raced.SHAPE` is over all variants; a round counts as raced if two threads overlapped in it and one of them waited for
a page. Teams that race at one time wait for the same pages: `raced_slots`, beside it, counts them once. `litmus.forbidden` is
over all.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

from benchmarks.json_lines import count, objects
from benchmarks.results import Metric
from lab.errors import Malformed

_count = functools.partial(count, "dsm_litmus")

SHAPES = ("sb", "mp", "lb", "corr", "iriw", "22w", "r", "s")
VARIANTS = ("plain", "fence", "lock", "split", "nt")
# What only a store buffer, or less than TSO, shows; and where TSO allows it. As the program has it, which came out of a guest.
WEAK = {
    "sb": "a=0 b=0", "mp": "a=1 b=0", "lb": "a=1 b=1", "corr": "a=1 b=0", "iriw": "a=1 b=0 c=1 d=0", "22w": "x=1 y=1",
    "r": "a=0 y=2", "s": "a=1 x=2",
}  # fmt: skip
ALLOWED = {(shape, variant) for shape in ("sb", "r") for variant in ("plain", "nt")}
MOST_TEAMS = 8  # that race at one time


@dataclasses.dataclass(frozen=True)
class Shape:
    """Counts of rounds of one shape in one variant. `outcomes`: how often by what was seen, "a=0 b=1".

    `raced_slots`: times that one team or more raced: teams that do so at one time wait for the same pages.
    """

    shape: str
    variant: str
    rounds: int
    overlapped: int
    raced: int
    raced_slots: int
    weak: int
    weak_allowed: bool
    impossible: int
    outcomes: Mapping[str, int]

    @property
    def forbidden(self) -> int:
        """Rounds in which something was seen that TSO does not allow."""
        return self.impossible + (0 if self.weak_allowed else self.weak)


def _shape(data: Mapping[str, Any]) -> Shape:
    shape, variant, allowed, outcomes = (data.get(key) for key in ("shape", "variant", "weak_allowed", "outcomes"))
    if shape not in SHAPES or variant not in VARIANTS or not isinstance(allowed, bool) or not isinstance(outcomes, dict):
        raise Malformed(f"dsm_litmus: unexpected shape {json.dumps(data)[:200]}")
    found = Shape(
        shape,
        variant,
        _count(data, "rounds"),
        _count(data, "overlapped"),
        _count(data, "raced"),
        _count(data, "raced_slots"),
        _count(data, "weak"),
        allowed,
        _count(data, "impossible"),
        {each: _count(outcomes, each) for each in outcomes},
    )
    if sum(found.outcomes.values()) + found.impossible != found.rounds or not found.rounds:
        raise Malformed(f"dsm_litmus: {found.rounds} rounds, of which {found.impossible} impossible, and {outcomes}")
    if found.outcomes.get(WEAK[shape], 0) != found.weak:
        raise Malformed(f"dsm_litmus: {shape} {variant}: {found.weak} weak ones, of {outcomes}")
    return _checked(found)


def _checked(found: Shape) -> Shape:
    """It, if its counts fit together and what the guest allows is what TSO does. Raises Malformed."""
    if found.shape not in SHAPES or found.variant not in VARIANTS:
        raise Malformed(f"dsm_litmus: unexpected shape {found}")
    if found.weak_allowed != ((found.shape, found.variant) in ALLOWED):
        said = f"weak_allowed is {found.weak_allowed}, and TSO says otherwise"
        raise Malformed(f"dsm_litmus: {found.shape} {found.variant}: {said}")
    few = found.weak + found.impossible > found.rounds
    if few or not found.raced_slots <= found.raced <= found.overlapped <= found.rounds:
        raise Malformed(f"dsm_litmus: more than all: {found}")
    if not found.rounds:
        raise Malformed(f"dsm_litmus: no rounds: {found}")
    if found.raced > MOST_TEAMS * found.raced_slots:
        raise Malformed(f"dsm_litmus: {found.raced} raced in {found.raced_slots} raced slots: {found}")
    return found


_SHORT = re.compile(r"\bshape,(\w+),(\w+),(\d+),(\d+),(\d+),(\d+),(\d+),(true|false),(\d+)")


def parse_short(text: str) -> list[Shape]:
    """What a console has room for, in a log: shape,SHAPE,VARIANT and the numbers of each, as in its line; no outcomes.

    Raises Malformed.
    """
    found = []
    for shape, variant, *counts, allowed, bad in _SHORT.findall(text):
        rounds, overlapped, raced, slots, weak = map(int, counts)
        found.append(_checked(Shape(shape, variant, rounds, overlapped, raced, slots, weak, allowed == "true", int(bad), {})))
    return found


def parse(text: str) -> list[Shape]:
    """The output of a run that has ended, with what was forbidden. Raises Malformed."""
    found: list[Shape] = []
    ended = False
    for data in objects("dsm_litmus", text):
        line = json.dumps(data)
        if ended:
            raise Malformed(f"dsm_litmus: unexpected line {line[:200]!r}")
        if data.get("event") == "result":
            ended = True
            want = {"rounds": sum(each.rounds for each in found), "forbidden": sum(each.forbidden for each in found)}
            if {key: _count(data, key) for key in want} != want:
                raise Malformed(f"dsm_litmus: its sums are {line[:200]!r}, those of its lines {want}")
        elif data.get("event") == "shape":
            found.append(_shape(data))
        else:
            raise Malformed(f"dsm_litmus: unexpected line {line[:200]!r}")
    if not ended:
        raise Malformed("dsm_litmus: it has not ended: no result")
    if not found:
        raise Malformed("dsm_litmus: no shape, so nothing that could be forbidden")
    return found


def metrics(found: Sequence[Shape]) -> list[Metric]:
    """litmus.forbidden, and for each shape litmus.raced.SHAPE."""
    bad = [f"{each.shape} {each.variant}: {dict(each.outcomes)}" for each in found if each.forbidden]
    all_rounds = float(sum(each.rounds for each in found))
    figures = [
        Metric(
            "litmus.forbidden", float(sum(each.forbidden for each in found)), "1", "lower", {"rounds": all_rounds},
            note="; ".join(bad),
        )
    ]  # fmt: skip
    for shape in SHAPES:
        variants = [each for each in found if each.shape == shape]
        if not variants:
            continue
        beside: dict[str, float | str] = {f"raced_{each.variant}": float(each.raced) for each in variants}
        beside |= {f"weak_{each.variant}": float(each.weak) for each in variants if each.weak_allowed}
        beside |= {what: float(sum(getattr(each, what) for each in variants)) for what in ("raced_slots", "rounds")}
        raced = float(sum(each.raced for each in variants))
        figures.append(Metric(f"litmus.raced.{shape}", raced, "1", "higher", beside))
    return figures
