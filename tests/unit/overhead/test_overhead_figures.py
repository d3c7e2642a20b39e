# SPDX-License-Identifier: GPL-2.0
"""From runs to figures: what is compared with what, the model's arithmetic, and what is said when something is missing."""

from __future__ import annotations

import dataclasses

import pytest

from benchmarks import overhead_figures as figures
from benchmarks.overhead_figures import ADD, LARGE, REMOVE, SMALL, Counters, Program, check, metrics, parse_counters
from benchmarks.program_output import parse_timed
from benchmarks.results import Metric, Result, encode, host_info, now, problems
from lab.errors import Malformed
from tests.unit.overhead.runs import SIZES, TEAMS, said, sample


def program(name: str = "npb_cg", adding: float = 11.0, removing: float = 9.0, rounds: int = 1) -> Program:
    """10 s with two nodes, 8 s with four; the change at 30 and at 40 % of the iterations."""
    samples = []
    for number in range(rounds):
        more = number * 0.8
        samples += [
            sample(SMALL, 10.0, number),
            sample(ADD, adding + more, number, moved=1000, operation_s=3.0),
            sample(LARGE, 8.0, number),
            sample(REMOVE, removing + more, number, moved=2000, operation_s=5.0),
        ]
    return Program(name, "S", samples)


def found(*programs: Program) -> dict[str, Metric]:
    return {metric.metric: metric for metric in metrics(programs, TEAMS)}


def test_a_change_is_compared_with_the_final_shape() -> None:
    by_name = found(program())
    add, remove = by_name["overhead.add.npb_cg.pct"], by_name["overhead.remove.npb_cg.pct"]
    assert add.value == pytest.approx(100 * (11 / 8 - 1))
    assert remove.value == pytest.approx(100 * (9 / 10 - 1))
    assert add.baseline["changing_s"] == 11.0 and add.baseline["static_s"] == 8.0 and add.baseline["static_first_s"] == 10.0
    assert remove.baseline["static_s"] == 10.0 and remove.baseline["class"] == "S"


def test_and_with_the_mix_of_both() -> None:
    by_name = found(program())
    # 3 of 10 iterations in the smaller shape, then 4 of 10 in the larger one.
    assert by_name["overhead.add.npb_cg.mixed_pct"].value == pytest.approx(100 * (11 / (0.3 * 10 + 0.7 * 8) - 1))
    assert by_name["overhead.remove.npb_cg.mixed_pct"].value == pytest.approx(100 * (9 / (0.4 * 8 + 0.6 * 10) - 1))


def test_the_model() -> None:
    """16 s of work; 1000 and 2000 pages at 3.55 GB/s, 1000 faults at 1 us, by two threads at once."""
    by_name = found(program())
    ideal = 0.3 * 16 / 2 + 0.7 * 16 / 4
    cost = (1000 * 4096 / 3.55e9 + 1000e-6) / 2
    assert by_name["overhead.add.npb_cg.modelled_pct"].value == pytest.approx(100 * cost / ideal)
    ideal = 0.4 * 16 / 4 + 0.6 * 16 / 2
    cost = (2000 * 4096 / 3.55e9 + 1000e-6) / 2
    assert by_name["overhead.remove.npb_cg.modelled_pct"].value == pytest.approx(100 * cost / ideal)
    seconds = by_name["overhead.remove.npb_cg.modelled_s"]
    assert seconds.value == pytest.approx(ideal + cost)
    assert seconds.baseline == {"moved_gb_per_s": 3.55, "fault_us": 1.0, "mix_s": 6.4}
    note = by_name["overhead.add.npb_cg.modelled_pct"].note
    assert "3.55 GB/s" in note and "1 us a fault" in note


def test_rounds_are_compared_each_with_its_own() -> None:
    """Runs of one round against those of the same round; the value is the median, and the spread is there."""
    metric = found(program(rounds=3))["overhead.add.npb_cg.pct"]
    wanted = [100 * (seconds / 8 - 1) for seconds in (11.0, 11.8, 12.6)]
    assert list(metric.runs) == pytest.approx(wanted) and metric.value == pytest.approx(wanted[1])
    assert (metric.baseline["least_pct"], metric.baseline["most_pct"]) == (37.5, 57.5)


def test_the_mean_is_over_programs() -> None:
    by_name = found(program("npb_cg", adding=8.0), program("npb_mg", adding=10.0), program("stream", adding=14.4))
    mean = by_name["overhead.add.mean_pct"]
    assert mean.value == pytest.approx((0 + 25 + 80) / 3)
    assert mean.baseline == {"npb_cg": 0.0, "npb_mg": 25.0, "stream": 80.0} and list(mean.runs) == pytest.approx([0, 25, 80])
    assert by_name["overhead.add.mixed.mean_pct"].value == pytest.approx(100 * ((8.0 + 10 + 14.4) / 3 / 8.6 - 1))
    assert by_name["overhead.remove.mean_pct"].value == pytest.approx(-10)
    assert by_name["overhead.add.modelled.mean_pct"].value == by_name["overhead.add.npb_mg.modelled_pct"].value


def test_a_program_that_was_not_measured_leaves_no_mean() -> None:
    """Neither one without any run, nor one whose static run is missing: then no round is whole."""
    whole, none = program(), Program("npb_mg", "W", ())
    for lacking in (none, dataclasses.replace(program("npb_mg"), samples=program().samples[:2])):
        by_name = found(whole, lacking)
        assert by_name["overhead.add.npb_mg.pct"].value is None
        mean = by_name["overhead.add.mean_pct"]
        assert mean.value is None and mean.note == "not measured: npb_mg" and set(mean.baseline) == {"npb_cg"}
    assert found()["overhead.remove.mean_pct"].value is None


def test_counts_have_the_static_run_beside_them() -> None:
    by_name = found(program(rounds=2))
    moved = by_name["overhead.remove.npb_cg.moved_mib"]
    assert moved.value == pytest.approx(2000 * 4096 / 2**20) and moved.baseline == {"static": 0.0}
    assert by_name["overhead.add.npb_cg.faults"].value == 1000
    assert by_name["overhead.add.npb_cg.user_s"].value == 12.0 and by_name["overhead.add.npb_cg.system_s"].value == 4.0
    assert by_name["overhead.add.npb_cg.kernel_s"].value == 1.5
    assert by_name["overhead.add.npb_cg.gap_ms"].value == pytest.approx((1105 + 1185) / 2)
    assert by_name["overhead.add.npb_cg.gap_ms"].baseline == {"static": 805.0}
    assert by_name["overhead.add.operation_s"].value == 3.0 and by_name["overhead.remove.operation_s"].value == 5.0


@pytest.mark.parametrize("programs", [[], [Program("npb_mg", "W", ())], [program(), program("stream", rounds=3)]])
def test_all_of_it_is_a_valid_result(programs: list[Program]) -> None:
    assert problems(encode(Result("overhead", now(), host_info(), metrics(programs, TEAMS)))) == []


# --- runs that count, and those that do not ------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", SIZES)
def test_a_run_with_the_teams_of_its_kind(kind: str) -> None:
    check(kind, parse_timed(said(sizes=SIZES[kind])), TEAMS)


@pytest.mark.parametrize(
    ("kind", "sizes"),
    [(SMALL, [2, 4]), (SMALL, [4, 4]), (LARGE, [2, 4]), (ADD, [2, 2]), (ADD, [4, 4]), (REMOVE, [4, 4]), (REMOVE, [2, 2]),
     (REMOVE, [4, 3])],
)  # fmt: skip
def test_a_run_whose_team_did_not_follow(kind: str, sizes: list[int]) -> None:
    with pytest.raises(Malformed, match="its team had"):
        check(kind, parse_timed(said(sizes=sizes)), TEAMS)


def test_a_run_with_wrong_results_does_not_count() -> None:
    with pytest.raises(Malformed, match="wrong results: sum: 1, wanted 2"):
        check(SMALL, parse_timed(said(right=False)), TEAMS)


def test_a_run_that_has_not_ended_does_not_count() -> None:
    with pytest.raises(Malformed, match="has not ended"):
        check(SMALL, parse_timed(said()[:300]), TEAMS)


def test_where_the_change_was() -> None:
    assert figures.share_before(sample(ADD, 1.0), 2) == 0.3
    assert figures.share_before(sample(SMALL, 1.0), 2) == 1.0
    assert figures.share_before(sample(LARGE, 1.0), 2) == 0.0


# --- the guest's counters ------------------------------------------------------------------------------------------------

STAT = "cpu  1000 20 300 4000 50 6 70 8 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\nintr 7\n"
VMSTAT = "nr_free_pages 5\npgmigrate_success 1234\npgmigrate_fail 5\n"


def test_counters_are_system_irq_and_softirq_and_pages_moved() -> None:
    assert parse_counters(STAT, VMSTAT) == Counters(3.76, 1234)


@pytest.mark.parametrize(
    ("stat", "vmstat"), [("", VMSTAT), (STAT, ""), ("cpu  1 2 3\n", VMSTAT), (STAT, "pgmigrate_success x\n")]
)
def test_counters_that_cannot_be_read(stat: str, vmstat: str) -> None:
    with pytest.raises(Malformed):
        parse_counters(stat, vmstat)


def test_counters_of_a_time() -> None:
    assert Counters(5.5, 100).since(Counters(2.0, 40)) == Counters(3.5, 60)
    for before in (Counters(6.0, 40), Counters(2.0, 101)):
        with pytest.raises(Malformed):
            Counters(5.5, 100).since(before)
