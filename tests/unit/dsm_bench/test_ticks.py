# SPDX-License-Identifier: GPL-2.0
"""Faults per tick, from what a guest and its hosts say."""

from __future__ import annotations

import pytest

from benchmarks.ticks import Moment, faults_of, per_period, per_tick, ticks_of, uptime_of
from lab.errors import Malformed

EVENTS = """           CPU0       CPU1
  0:       4711          0   xen-percpu    -virq      timer0
  1:          0          0   xen-percpu    -ipi       resched0
  6:          3        339   xen-percpu    -virq      timer1
 20:        700          0   xen-dyn    -event     xenbus
NMI:          0          0   Non-maskable interrupts
LOC:          0          0   Local timer interrupts
"""
APIC = """           CPU0       CPU1
LOC:       1234         56   Local timer interrupts
RES:         99         98   Rescheduling interrupts
"""


def test_ticks() -> None:
    """What a CPU was interrupted by before it had gone and come back is its own."""
    assert ticks_of(EVENTS) == [4711, 342]
    assert ticks_of(APIC) == [1234, 56]
    # CPU 1 is not online.
    assert ticks_of(EVENTS.replace("timer1", "timer2")) == [4711, 0, 342]
    assert ticks_of(APIC.replace("CPU1", "CPU2")) == [1234, 0, 56]
    # As it is asked for, with the uptime before it.
    assert ticks_of(f"12.34 20.00\n{APIC}") == [1234, 56]
    for wrong in (APIC.partition("\n")[2], APIC.replace(" CPU1", "")):
        with pytest.raises(Malformed, match="columns of"):
            ticks_of(wrong)
    with pytest.raises(Malformed, match="no timer"):
        ticks_of("           CPU0\n")


def test_faults() -> None:
    assert faults_of('{"waits": 7, "waits_by_xen": 3}') == 7
    assert (
        faults_of('{"read_faults": 7, "write_faults": 5}') == faults_of('[{"read_faults": 7, "write_faults": 5}]') == 12
    )
    for text in (
        "",
        "[]",
        "7",
        '{"waits": "7"}',
        '{"waits": -1}',
        '{"read_faults": 7}',
        '[{"waits": 1}, {"waits": 2}]',
    ):
        with pytest.raises(Malformed):
            faults_of(text)


def test_figures() -> None:
    begun, ended = Moment([100, 50, 7], [1000, 2000]), Moment([400, 100, 57], [1600, 2050])
    home, away = per_tick("dsm.tick.plain", ("home", "away"), ((0,), (1, 2)), begun, ended)
    assert (home.metric, home.value, home.baseline) == ("dsm.tick.plain.home", 2.0, {"faults": 600.0, "ticks": 300.0})
    assert away.value == 0.5
    (few,) = per_tick("dsm.tick.plain", ("home",), ((1,),), Moment([0, 50], [0]), Moment([0, 149], [9]))
    assert few.value is None and "too few" in few.note
    for end in (Moment([0, 40], [9]), Moment([0, 400], [-1])):
        with pytest.raises(Malformed, match="in an interval"):
            per_tick("x", ("home",), ((1,),), Moment([0, 50], [0]), end)


def test_without_ticks() -> None:
    """Few ticks in a long time are a figure, too."""
    begun, ended = Moment([100, 50], [1000, 2000], 10.0), Moment([700, 53], [1600, 2012], 16.0)
    home, away = per_period("dsm.tick.nohz", ("home", "away"), 100, begun, ended)
    assert home.value == 1.0
    assert (away.metric, away.value) == ("dsm.tick.nohz.away", 0.02)
    assert away.baseline == {"faults": 12.0, "periods": 600.0} and not away.note
    # Of a kernel with other ticks: as many faults, and periods by its ticks.
    assert per_period("x", ("home", "away"), 250, begun, ended)[0].value == 0.4
    for end in (Moment([700, 53], [1600, 2012], 10.5), Moment([700, 53], [1600, 1999], 16.0)):
        with pytest.raises(Malformed, match=r"too few|in an interval"):
            per_period("x", ("home", "away"), 100, begun, end)


def test_uptime() -> None:
    assert uptime_of("12.34 20.00\nmore") == 12.34
    for text in ("", "x", "-1.00 2", "1 2", "9" * 20 + ".00 1"):
        with pytest.raises(Malformed, match="uptime"):
            uptime_of(text)
