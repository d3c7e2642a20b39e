# SPDX-License-Identifier: GPL-2.0
"""A made-up demo run that goes as it should; a test changes one thing in it and looks at the verdict."""

from __future__ import annotations

from benchmarks.program_output import Iteration, Sample, StreamRun
from benchmarks.timeline import Evidence, Mark, Program, Reading, Timeline
from lab.guestview import GuestNode

MIB = 1024
TOTAL_MIB = 96
WINDOWS = {"before": (100.0, 110.0), "attached": (114.0, 120.0), "settled": (120.0, 128.0), "detached": (134.0, 142.0)}


def _threads(t: float) -> int:
    return 4 if 114.0 <= t < 129.0 else 2


def _away_mib(t: float) -> int:
    """Memory on node 1 at a time: none, then half of it from soon after the attach until the detach."""
    return TOTAL_MIB // 2 if 116.0 <= t < 131.0 else 0


def iterations() -> tuple[Iteration, ...]:
    """One iteration each half second."""
    found = []
    for n in range(1, 84):
        t = 100.0 + n * 0.5
        found.append(Iteration(n, t, 480.0 if _threads(t) == 2 else 310.0, _threads(t - 0.49), f"{n:016x}"))
    return tuple(found)


def samples() -> list[Sample]:
    """One sample each half second."""
    found = []
    for n in range(84):
        t = 100.25 + n * 0.5
        present = 114.0 <= t < 133.0
        away = _away_mib(t)
        nodes = (0, 1) if present else (0,)
        spread = (2, 2) if _threads(t) == 4 else (_threads(t), 0)
        found.append(
            Sample(t, nodes, (2, 2) if present else (2, 0), ((TOTAL_MIB - away) * MIB, away * MIB), spread, spread)
        )
    return found


def numactl(both: bool) -> dict[int, GuestNode]:
    """What numactl -H would list."""
    nodes = {0: GuestNode(0, (0, 1), 420, 300)}
    if both:
        nodes[1] = GuestNode(1, (2, 3), 512, 460)
    return nodes


def evidence() -> Evidence:
    """A run in which everything is right."""
    run = StreamRun(321, TOTAL_MIB, iterations(), "00000000deadbeef", 0)
    readings = {
        "before": Reading(103.0, 109.0, 99000, 1000),
        "attached": Reading(114.0, 118.0, 60000, 40000),
        "settled": Reading(121.0, 127.5, 99400, 600),
        "detached": Reading(136.0, 141.0, 99500, 500),
    }
    marks = [
        Mark(100.0, "stream_check runs in the guest", "lab"),
        Mark(110.0, "xl vnode-attach g 1"),
        Mark(114.0, "node 1 online", "guest"),
        Mark(128.0, "xl vnode-detach g 1"),
        Mark(134.0, "node 1 <offline> & gone", "guest"),
    ]
    timeline = Timeline(run.iterations, samples(), marks, readings, WINDOWS)
    return Evidence(
        1,
        2,
        4,
        timeline,
        run,
        run,
        {w: numactl(w in ("attached", "settled")) for w in WINDOWS},
        0,
        [Program("example", 0, "42", "42")],
        {
            "attach": {"populate": 0.41, "add": 0.9, "online": 1.4, "cpus": 0.7, "notify": 0.01},
            "detach": {
                "notify": 0.01,
                "acks": 0.6,
                "cpus": 0.9,
                "evacuate": 1.8,
                "offline": 1.1,
                "release": 0.5,
                "node": 0.05,
            },
        },
        {"attach": 3.9, "detach": 5.8},
        {"before": [2], "settled": [4], "detached": [2]},
    )
