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


def test_and_with_who_changed_nothing() -> None:
    """The static run of the first shape: what the change was worth, or cost, to who asked for it."""
    by_name = found(program(rounds=3))
    assert by_name["overhead.add.npb_cg.against_first_pct"].value == pytest.approx(100 * (11.8 / 10 - 1))
    assert by_name["overhead.remove.npb_cg.against_first_pct"].value == pytest.approx(100 * (9.8 / 8 - 1))
    assert by_name["overhead.add.against_first.mean_pct"].value == pytest.approx(18.0)
    assert "first shape" in by_name["overhead.add.against_first.mean_pct"].note


def test_and_by_the_programs_own_clock() -> None:
    """As NPB's programs are timed: against the static run of the final shape in the same round, iterations alone."""
    samples = []
    for number, timed in enumerate((9.0, 8.8, 12.0)):
        for each in program().samples:
            outcome = each.run.outcome
            assert outcome
            seconds = timed if each.kind == ADD else 7.0 if each.kind == LARGE else 9.5
            run = dataclasses.replace(each.run, outcome=dataclasses.replace(outcome, seconds=seconds))
            samples.append(dataclasses.replace(each, round=number, run=run))
    by_name = found(Program("npb_cg", "S", samples))
    timed_pct = by_name["overhead.add.npb_cg.timed_pct"]
    assert list(timed_pct.runs) == pytest.approx([100 * (seconds / 7 - 1) for seconds in (9.0, 8.8, 12.0)])
    assert by_name["overhead.add.timed.mean_pct"].value == timed_pct.value == pytest.approx(100 * (9 / 7 - 1))
    assert by_name["overhead.remove.npb_cg.timed_pct"].value == pytest.approx(0)
    assert by_name["overhead.add.npb_cg.pct"].value == pytest.approx(37.5), "the whole run's is what it was"
    assert (timed_pct.baseline["changing_timed_s"], timed_pct.baseline["static_timed_s"]) == (9.0, 7.0)
    assert "clock" in timed_pct.note


def test_an_interval_takes_three_rounds_of_all() -> None:
    """A round that one program lacks is in none of it."""
    by_name = found(program(rounds=4), program("npb_mg", rounds=3))
    beside = by_name["overhead.add.mean_pct"].baseline
    assert (beside["rounds"], beside["round_means"], beside["round_mean_pct"]) == (3, 3, 47.5)
    assert "low_95_pct" not in found(program(rounds=2))["overhead.add.mean_pct"].baseline


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
    assert seconds.baseline == {"moved_gb_per_s": 3.55, "fault_us": 1.0, "mix_s": 6.4, "threads": 2}
    note = by_name["overhead.add.npb_cg.modelled_pct"].note
    assert "3.55 GB/s" in note and "1 us a fault" in note and "shared by 2 threads" in note


def test_rounds_are_compared_each_with_its_own() -> None:
    """Runs of one round against those of the same round; the value is the median, and the spread is there."""
    metric = found(program(rounds=3))["overhead.add.npb_cg.pct"]
    wanted = [100 * (seconds / 8 - 1) for seconds in (11.0, 11.8, 12.6)]
    assert list(metric.runs) == pytest.approx(wanted) and metric.value == pytest.approx(wanted[1])
    assert (metric.baseline["least_pct"], metric.baseline["most_pct"]) == (37.5, 57.5)


def test_the_models_work_is_that_of_the_smaller_static_run() -> None:
    """Not that of the larger one, nor of the run with the change; and each part of it is shared by the team that did it."""
    sizes = ([2] * 10, [2] * 2 + [3] * 5 + [4] * 3, [4] * 10, [4] * 4 + [2] * 6)
    samples = [
        dataclasses.replace(each, run=parse_timed(said(sizes=team, seconds=each.seconds, cpu_s=cpu_s)))
        for each, team, cpu_s in zip(program().samples, sizes, (16, 24, 32, 40), strict=True)
    ]
    by_name = found(Program("npb_cg", "S", samples))
    assert by_name["overhead.add.npb_cg.modelled_s"].baseline["mix_s"] == pytest.approx(
        0.2 * 16 / 2 + 0.5 * 16 / 3 + 0.3 * 16 / 4, abs=1e-3
    )


@pytest.mark.parametrize(("kind", "team"), [(ADD, [2] * 2 + [3] * 5 + [4] * 3), (REMOVE, [4] * 2 + [3] * 5 + [2] * 3)])
@pytest.mark.parametrize(("small_s", "large_s"), [(10.0, 8.0), (8.0, 10.0)])
def test_a_team_in_between_does_not_flatter(kind: str, team: list[int], small_s: float, large_s: float) -> None:
    """It counts as the quicker shape: as the slower one, the time that is to be reached would be too long."""
    changing = dataclasses.replace(sample(kind, 12.0), run=parse_timed(said(sizes=team, seconds=12.0)))
    small, large = team.count(2), team.count(4)
    wanted = (small * small_s + large * large_s + 5 * 8.0) / 10
    assert figures.mixed_s(changing, TEAMS, small_s, large_s) == pytest.approx(wanted)


def test_what_lies_between_two_rounds_is_in_the_time() -> None:
    """A change that falls into preparation or verification, which a program does not time, disturbs it as well."""
    quiet = parse_timed(said(sizes=[2] * 10, seconds=10.0, rounds=2, rests={6: 3.0}))
    disturbed = parse_timed(said(sizes=[2] * 3 + [4] * 7, seconds=10.0, rounds=2, rests={6: 5.0}))
    samples = [
        dataclasses.replace(sample(kind, 1.0), run=run)
        for kind, run in ((SMALL, quiet), (ADD, disturbed), (LARGE, quiet), (REMOVE, quiet))
    ]
    by_name = found(Program("npb_is", "A", samples))
    assert by_name["overhead.add.npb_is.pct"].value == pytest.approx(100 * (15 / 13 - 1))
    assert by_name["overhead.add.npb_is.rest_ms"].value == pytest.approx(5000)
    assert by_name["overhead.add.npb_is.rest_ms"].baseline == {"most": 5000.0, "static": 3000.0, "static_most": 3000.0}
    # The program's own clock has seen nothing of it: 10 s of iterations each.
    assert by_name["overhead.add.npb_is.timed_pct"].value == pytest.approx(0)
    assert by_name["overhead.add.npb_is.pct"].baseline["changing_timed_s"] == 10.0
    assert sample(ADD, 1.0).rest_ms == 0


def test_the_mean_is_over_programs() -> None:
    adding = {"npb_cg": 8.0, "npb_mg": 10.0, "stream": 14.4}
    by_name = found(*(program(name, seconds, rounds=3) for name, seconds in adding.items()))
    mean = by_name["overhead.add.mean_pct"]
    assert mean.value == pytest.approx((10 + 35 + 90) / 3)
    assert list(mean.runs) == pytest.approx([10, 35, 90])
    # What it is a mean of, of how many and how long runs, and the mean of each round by itself.
    assert mean.baseline == {"npb_cg": 10.0, "npb_mg": 35.0, "stream": 90.0, "rounds": 3, "classes": "SSS"} | {
        "least_static_s": 8.0, "most_static_s": 8.0, "least_round_pct": 35.0, "most_round_pct": 55.0,
        # 35, 45 and 55: a standard deviation of 10, and t is 4.303 for 2 degrees of freedom.
        "round_means": 3, "round_mean_pct": 45.0, "standard_error_pct": 5.77, "low_95_pct": 20.16, "high_95_pct": 69.84,
    }  # fmt: skip
    for name in ("timed.", "against_first.", "mixed.", "modelled."):
        beside = by_name[f"overhead.add.{name}mean_pct"].baseline
        assert {"round_means", "standard_error_pct", "low_95_pct", "high_95_pct"} <= set(beside) and "classes" not in beside
    assert by_name["overhead.add.mixed.mean_pct"].value == pytest.approx(100 * ((8.8 + 10.8 + 15.2) / 3 / 8.6 - 1))
    assert by_name["overhead.remove.mean_pct"].value == pytest.approx(-2)
    assert by_name["overhead.add.modelled.mean_pct"].value == by_name["overhead.add.npb_mg.modelled_pct"].value
    assert by_name["overhead.add.npb_mg.modelled_pct"].note in by_name["overhead.add.modelled.mean_pct"].note


def test_a_mean_of_few_rounds_is_none() -> None:
    """What was measured once or twice, since it ended early, does not pass for medians of five."""
    by_name = found(program(rounds=3), program("npb_mg", rounds=2))
    mean = by_name["overhead.add.mean_pct"]
    assert mean.value is None and mean.note == "not measured: only 2 rounds of a program, it takes 3"
    assert mean.baseline["rounds"] == 2 and by_name["overhead.add.npb_mg.pct"].value is not None


def test_noise_and_the_moment_of_the_change_are_beside_the_figure() -> None:
    """How far static runs are apart; and how much was done before the change: late, it is hardly seen."""
    some = list(program(rounds=2).samples)
    some[6] = sample(LARGE, 10.0, 1)
    baseline = found(Program("npb_cg", "S", some))["overhead.add.npb_cg.pct"].baseline
    assert baseline["static_spread_pct"] == 25.0 and baseline["before_change_pct"] == 30.0
    assert found(program())["overhead.remove.npb_cg.pct"].baseline["before_change_pct"] == 40.0


def test_a_program_that_was_not_measured_leaves_no_mean() -> None:
    """Neither one without any run, nor one whose static run is missing: then no round is whole."""
    whole, none = program(rounds=3), Program("npb_mg", "W", ())
    for lacking in (none, dataclasses.replace(program("npb_mg"), samples=program().samples[:2])):
        by_name = found(whole, lacking)
        assert by_name["overhead.add.npb_mg.pct"].value is None
        mean = by_name["overhead.add.mean_pct"]
        assert mean.value is None and mean.note == "not measured: npb_mg"
        assert mean.baseline == {"npb_cg": 47.5, "rounds": 0, "classes": mean.baseline["classes"]} | {
            "least_static_s": 8.0, "most_static_s": 8.0
        }  # fmt: skip
    assert found()["overhead.remove.mean_pct"].value is None


def test_counts_have_the_static_run_beside_them() -> None:
    by_name = found(program(rounds=2))
    moved = by_name["overhead.remove.npb_cg.moved_mib"]
    assert moved.value == pytest.approx(2000 * 4096 / 2**20)
    assert moved.baseline == {"most": 7.812, "static": 0.0, "static_most": 0.0}
    assert moved.note.endswith("; the median of the runs")
    assert by_name["overhead.add.npb_cg.faults"].value == 1000
    assert by_name["overhead.add.npb_cg.user_s"].value == 12.0 and by_name["overhead.add.npb_cg.system_s"].value == 4.0
    assert by_name["overhead.add.npb_cg.ticks_s"].value == 11.0 + 3.5
    assert by_name["overhead.add.npb_cg.kernel_s"].value == 4.0 + 1.5 - 3.5
    assert by_name["overhead.add.npb_cg.guest_s"].value == 12.0 + 2.0 + 4.0 + 1.5
    assert by_name["overhead.remove.npb_cg.steal_s"].value == 1.25
    assert by_name["overhead.add.npb_cg.gap_ms"].value == pytest.approx((1105 + 1185) / 2)
    assert by_name["overhead.add.npb_cg.gap_ms"].baseline == {"most": 1185.0, "static": 805.0, "static_most": 805.0}
    assert by_name["overhead.add.operation_s"].value == 3.0 and by_name["overhead.remove.operation_s"].value == 5.0


def test_counts_are_of_the_rounds_that_the_percentages_are_of() -> None:
    """A run whose round is not whole, or whose baseline is not there, is in neither."""
    some = [*program().samples, sample(SMALL, 10.0, 1), sample(ADD, 50.0, 1, moved=9000, operation_s=60.0)]
    some += [dataclasses.replace(each, round=2) for each in program(adding=12.0).samples]
    by_name = found(Program("npb_cg", "S", some))
    assert len(by_name["overhead.add.npb_cg.pct"].runs) == 2
    assert list(by_name["overhead.add.npb_cg.moved_mib"].runs) == [1000 * 4096 / 2**20] * 2
    assert list(by_name["overhead.add.operation_s"].runs) == [3.0, 3.0]


def test_the_static_run_beside_a_count_has_the_final_shape() -> None:
    some = [sample(SMALL, 10.0, cpu_s=16.0), sample(ADD, 9.0, cpu_s=20.0), sample(LARGE, 8.0, cpu_s=32.0)]
    some.append(sample(REMOVE, 9.0, cpu_s=20.0))
    by_name = found(Program("npb_cg", "S", some))
    assert by_name["overhead.add.npb_cg.user_s"].baseline["static"] == 24.0
    assert by_name["overhead.remove.npb_cg.user_s"].baseline["static"] == 12.0


def test_values_are_medians() -> None:
    """One round out of the way has no part in a figure: not in percentages, counts, model, or what is beside them."""
    some = list(program(rounds=3).samples)
    some[8:] = [
        sample(SMALL, 10.0, 2, cpu_s=160.0), sample(ADD, 99.0, 2, moved=10**6, operation_s=90.0, cpu_s=160.0),
        sample(LARGE, 80.0, 2, cpu_s=160.0), sample(REMOVE, 99.0, 2, moved=10**6, cpu_s=160.0),
    ]  # fmt: skip
    by_name = found(Program("npb_cg", "S", some))
    pct = by_name["overhead.add.npb_cg.pct"]
    assert pct.value == pytest.approx(37.5) and pct.baseline["static_s"] == 8.0 and pct.baseline["changing_s"] == 11.8
    seconds = by_name["overhead.add.npb_cg.modelled_s"]
    assert list(seconds.runs) == sorted(seconds.runs) and seconds.value == seconds.runs[1] < seconds.runs[2]
    assert by_name["overhead.add.npb_cg.user_s"].value == 12.0
    # But beside them is the most of all.
    assert by_name["overhead.add.npb_cg.user_s"].baseline == {"most": 120.0, "static": 12.0, "static_most": 120.0}
    assert by_name["overhead.add.operation_s"].value == 3.0


def test_values_are_medians_of_what_differs() -> None:
    """Neither the least nor the most of three."""
    some = []
    for number, times in enumerate((1, 2, 9)):
        for each in program().samples:
            counted = dataclasses.replace(each.counted, moved_pages=each.counted.moved_pages * times)
            some.append(dataclasses.replace(each, round=number, counted=counted, operation_s=times * 1.0))
    by_name = found(Program("npb_cg", "S", some))
    for name in ("npb_cg.modelled_s", "npb_cg.modelled_pct", "npb_cg.moved_mib", "operation_s"):
        metric = by_name[f"overhead.add.{name}"]
        assert len(set(metric.runs)) == 3 and metric.value == sorted(metric.runs)[1]


def test_one_change_is_compared_without_the_other() -> None:
    """A run with nodes added that was left out takes nothing from those with nodes removed."""
    some = [each for each in program().samples if each.kind != ADD]
    by_name = found(Program("npb_cg", "S", some))
    assert by_name["overhead.remove.npb_cg.pct"].value is not None and by_name["overhead.add.npb_cg.pct"].value is None


def test_operations_are_those_of_all_programs() -> None:
    slow = [dataclasses.replace(each, operation_s=9.0) for each in program("stream").samples]
    assert list(found(program(), Program("stream", "S", slow))["overhead.add.operation_s"].runs) == [3.0, 9.0]


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


@pytest.mark.parametrize(
    ("kind", "sizes", "words"),
    [(SMALL, [2, 3, 2], "2, 3, 2"), (LARGE, [4, 2, 4], "4, 2, 4"), (ADD, [2, 4, 3, 4], "2, 4, 3, 4"),
     (REMOVE, [4, 4, 2, 4, 2], "4, 2, 4, 2")],
)  # fmt: skip
def test_a_run_whose_team_went_back_and_forth(kind: str, sizes: list[int], words: str) -> None:
    """First and last are right, and something was different on the way."""
    with pytest.raises(figures.WrongTeam, match=f"back and forth: {words}$"):
        check(kind, parse_timed(said(sizes=sizes)), TEAMS)


@pytest.mark.parametrize("kind", SIZES)
def test_a_run_with_wrong_results_does_not_count(kind: str) -> None:
    with pytest.raises(Malformed, match="wrong results: sum: 1, wanted 2"):
        check(kind, parse_timed(said(sizes=SIZES[kind], right=False)), TEAMS)


def test_a_run_without_time_does_not_count() -> None:
    """By its own time, or its CPU time, something would be divided when all is measured."""
    for run, words in ((said(seconds=0.0), "has not ended"), (said(cpu_s=0.0), "no CPU time")):
        with pytest.raises(Malformed, match=words):
            check(SMALL, parse_timed(run), TEAMS)


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
    assert parse_counters(STAT, VMSTAT) == Counters(3.76, 1234, 10.2, 0.08)


@pytest.mark.parametrize(
    ("stat", "vmstat"),
    [("", VMSTAT), (STAT, ""), ("cpu  1 2 3\n", VMSTAT), ("cpu  1 2 3 4 5 6 7\n", VMSTAT), (STAT, "pgmigrate_success x\n")],
)
def test_counters_that_cannot_be_read(stat: str, vmstat: str) -> None:
    with pytest.raises(Malformed):
        parse_counters(stat, vmstat)


def test_kernel_time_is_by_one_clock() -> None:
    """By the scheduler's, which counts what Xen stole, too, a program may have more than its whole guest has by ticks."""
    busy = dataclasses.replace(sample(SMALL, 1.0), counted=Counters(3.75, 0, 11.0))
    assert busy.guest_s < busy.cpu_s == 16.0 and busy.guest_s - busy.ticks_s == busy.other_kernel_s == 0.25


def test_kernel_time_that_cannot_be_is_told() -> None:
    """With its sign: it is rounded, or wrong, and 0 would say that there was none."""
    some = [dataclasses.replace(each, counted=Counters(3.47, 0)) for each in program().samples]
    metric = found(Program("npb_cg", "S", some))["overhead.add.npb_cg.kernel_s"]
    assert metric.value == pytest.approx(-0.03) and metric.baseline["static"] == -0.03


def test_what_is_stolen_is_not_known_where_vcpus_come() -> None:
    """Then what they were offline is in it. The static run beside it has none that comes."""
    by_name = found(program())
    add, remove = by_name["overhead.add.npb_cg.steal_s"], by_name["overhead.remove.npb_cg.steal_s"]
    assert (add.value, add.runs, add.baseline) == (None, [], {"static": 1.25, "static_most": 1.25})
    assert "; not known of runs in which vCPUs come" in add.note
    assert (remove.value, remove.runs, remove.baseline["static"]) == (1.25, [1.25], 1.25)
    assert found(Program("npb_mg", "W", ()))["overhead.add.npb_mg.steal_s"].note == "not measured"


def test_counters_of_a_time() -> None:
    assert Counters(5.5, 100).since(Counters(2.0, 40)) == Counters(3.5, 60)
    assert Counters(5.5, 100, 9.0, 3.0).since(Counters(2.0, 40, 5.0, 1.0)) == Counters(3.5, 60, 4.0, 2.0)
    for before in (Counters(6.0, 40), Counters(2.0, 101), Counters(2.0, 40, 9.5), Counters(2.0, 40, 5.0, 3.5)):
        with pytest.raises(Malformed):
            Counters(5.5, 100, 9.0, 3.0).since(before)
