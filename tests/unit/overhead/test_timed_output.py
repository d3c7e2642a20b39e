# SPDX-License-Identifier: GPL-2.0
"""The lines of timed programs: a good run is read, and whatever cannot be is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest

from benchmarks.program_output import Outcome, Step, parse_timed
from lab.errors import Malformed


def lines(steps: int = 2, **result: Any) -> list[dict[str, Any]]:
    """What a program with so many iterations says."""
    found: list[dict[str, Any]] = [{"event": "start", "program": "npb_cg", "class": "S", "pid": 7, "bytes": 4096}]
    for n in range(1, steps + 1):
        found.append({"event": "iteration", "n": n, "t": 10.0 + n, "ms": 1000.0, "threads": 2, "user_s": n, "system_s": 0.5})
    found.append({"event": "check", "what": "zeta", "got": "1", "wanted": "1", "right": True})
    end = {"event": "result", "verified": True, "rounds": 1, "iterations": steps, "seconds": 2.0, "user_s": 3.0}
    end |= {"system_s": 0.5, "user_ticks_s": 2.75, "system_ticks_s": 0.25, "gap_ms": 1000.5}
    return [*found, end | {"minor_faults": 4, "major_faults": 1, "bytes": 4096} | result]


def text(objects: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def test_a_whole_run() -> None:
    run = parse_timed(text(lines()))
    assert (run.program, run.problem, run.bytes, run.wrong) == ("npb_cg", "S", 4096, ())
    assert run.steps == (Step(1, 11.0, 1000.0, 2, 1.0, 0.5), Step(2, 12.0, 1000.0, 2, 2.0, 0.5))
    assert run.outcome == Outcome(True, 1, 2, 2.0, 3.0, 0.5, 2.75, 0.25, 1000.5, 4, 1)


def test_a_run_under_way() -> None:
    """Half a line is not read yet."""
    whole = text(lines())
    run = parse_timed(whole[: whole.index('"n": 2')])
    assert len(run.steps) == 1 and run.outcome is None


def test_a_wrong_result() -> None:
    said = lines(verified=False)
    said[3] |= {"right": False, "got": "nan"}
    run = parse_timed(text(said))
    assert run.outcome and not run.outcome.verified
    assert run.wrong == ("zeta: nan, wanted 1",)


BAD = {
    "nothing": [],
    "no start": lines()[1:],
    "two starts": [lines()[0], *lines()],
    "something behind the result": [*lines(), lines()[3]],
    "an unknown event": [*lines()[:2], {"event": "party"}],
    "an iteration is missing": [lines()[0], lines()[2]],
    "fewer iterations than it says": lines(iterations=3),
    "verified with a wrong result": [*lines()[:3], {**lines()[3], "right": False}, lines()[4]],
    "not verified with right results": lines(verified=False),
    "time runs backwards": lines(seconds=-1.0),
    "a time that is none": lines(user_s=float("nan")),
    "ticks that are none": lines(user_ticks_s=None),
    "ticks that run backwards": lines(system_ticks_s=-0.01),
    "a verdict in words": lines(verified="yes"),
    "faults that are no number": lines(minor_faults=1.5),
    "too many threads": [lines()[0], {**lines()[1], "threads": 10**6}],
    "a program without a name": [{**lines()[0], "program": 7}],
}


@pytest.mark.parametrize("said", BAD.values(), ids=BAD)
def test_what_is_refused(said: list[dict[str, Any]]) -> None:
    with pytest.raises(Malformed):
        parse_timed(text(said))


def test_what_is_no_json() -> None:
    with pytest.raises(Malformed):
        parse_timed("Segmentation fault\n")
