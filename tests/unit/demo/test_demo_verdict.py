# SPDX-License-Identifier: GPL-2.0
"""The demo's verdict: a run that went well passes, and each single thing that went wrong is noticed."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable

import pytest

from benchmarks import results
from benchmarks.demo_page import demo_page
from benchmarks.program_output import Iteration
from benchmarks.timeline import Evidence, Program, Reading, Timeline, metrics, verdict
from tests.unit.demo import fakes


def failed(evidence: Evidence) -> list[str]:
    return [check.what for check in verdict(evidence) if not check.ok]


def test_a_good_run_passes() -> None:
    assert failed(fakes.evidence()) == []


def threads_do_not_grow(e: Evidence) -> None:
    e.timeline.iterations = [dataclasses.replace(i, threads=2) for i in e.timeline.iterations]


def one_iteration_is_short_of_threads(e: Evidence) -> None:
    e.timeline.iterations = [dataclasses.replace(i, threads=3) if i.t == 124.0 else i for i in e.timeline.iterations]


def threads_stay(e: Evidence) -> None:
    e.timeline.iterations = [dataclasses.replace(i, threads=4) if i.t > 134 else i for i in e.timeline.iterations]


def no_iteration_after_the_detach(e: Evidence) -> None:
    e.timeline.iterations = [i for i in e.timeline.iterations if i.t < 134]


def memory_does_not_move(e: Evidence) -> None:
    e.timeline.samples = [dataclasses.replace(s, kib=(sum(s.kib), 0)) for s in e.timeline.samples]


def memory_stays(e: Evidence) -> None:
    e.timeline.samples = [dataclasses.replace(s, kib=(49152, 49152)) for s in e.timeline.samples]


def memory_comes_back_at_last(e: Evidence) -> None:
    e.timeline.samples = [dataclasses.replace(s, kib=(49152, 49152)) if s.t > 141 else s for s in e.timeline.samples]


def memory_leaves_at_last(e: Evidence) -> None:
    e.timeline.samples = [dataclasses.replace(s, kib=(98304, 0)) if s.t > 127.5 else s for s in e.timeline.samples]


def a_little_memory_stays(e: Evidence) -> None:
    e.timeline.samples = [dataclasses.replace(s, kib=(98304, 68)) if s.t > 134 else s for s in e.timeline.samples]


def program_lost_all_memory(e: Evidence) -> None:
    e.timeline.samples = [dataclasses.replace(s, kib=(0, 0)) for s in e.timeline.samples]


def accesses_stay_remote(e: Evidence) -> None:
    e.timeline.readings = {**e.timeline.readings, "settled": Reading(121, 127, 9690, 310)}


def meter_is_silent(e: Evidence) -> None:
    e.timeline.readings = {**e.timeline.readings, "settled": Reading(121, 127, 0, 0)}


def node_does_not_come(e: Evidence) -> None:
    e.numactl = {**e.numactl, "settled": fakes.numactl(False)}


def node_does_not_go(e: Evidence) -> None:
    e.numactl = {**e.numactl, "detached": fakes.numactl(True)}


def node_was_never_looked_at(e: Evidence) -> None:
    e.numactl = {}


def residual(e: Evidence) -> None:
    e.residual_kib = 2048


def wrong_word(e: Evidence) -> None:
    e.run = dataclasses.replace(e.run, wrong_words=1)


def no_result(e: Evidence) -> None:
    e.run = dataclasses.replace(e.run, wrong_words=None, checksum=None)


def other_checksum(e: Evidence) -> None:
    e.wanted = dataclasses.replace(e.wanted, checksum="0" * 16)


def one_other_sum(e: Evidence) -> None:
    first, *rest = e.wanted.iterations
    e.wanted = dataclasses.replace(e.wanted, iterations=(dataclasses.replace(first, sum="bad"), *rest))


def shorter_reference(e: Evidence) -> None:
    e.wanted = dataclasses.replace(e.wanted, iterations=e.wanted.iterations[:-1])


def program_failed(e: Evidence) -> None:
    e.programs = [Program("example", 1, "42", "42")]


def program_said_nothing(e: Evidence) -> None:
    e.programs = [Program("example", 0, "", "")]


def program_answered_otherwise(e: Evidence) -> None:
    e.programs = [Program("example", 0, "42", "43")]


def programs_team_is_too_large_at_first(e: Evidence) -> None:
    e.teams = {**e.teams, "before": [4]}


def programs_team_does_not_grow(e: Evidence) -> None:
    e.teams = {**e.teams, "settled": [2]}


def one_team_of_the_program_is_short(e: Evidence) -> None:
    e.teams = {**e.teams, "settled": [4, 3, 4]}


def only_sections_are_seen(e: Evidence) -> None:
    e.teams, e.sections = {**e.teams, "settled": [3]}, [3]


def sections_have_more_threads_than_may_run(e: Evidence) -> None:
    e.teams, e.sections = {**e.teams, "before": [2, 3]}, [3]


def programs_team_grows_again(e: Evidence) -> None:
    e.teams = {**e.teams, "detached": [2, 4]}


def no_team_before(e: Evidence) -> None:
    e.teams = {**e.teams, "before": []}


def nothing_is_known_of_teams(e: Evidence) -> None:
    e.teams = {}


FAULTS = (
    (threads_do_not_grow, "settled: the team has 4 threads"),
    (one_iteration_is_short_of_threads, "settled: the team has 4 threads"),
    (threads_stay, "detached: the team has 2 threads"),
    (no_iteration_after_the_detach, "detached: the team has 2 threads"),
    (memory_does_not_move, "settled: at least 25%"),
    (memory_stays, "detached: none of the program's memory"),
    (memory_comes_back_at_last, "detached: none of the program's memory"),
    (memory_leaves_at_last, "settled: at least 25%"),
    (a_little_memory_stays, "detached: none of the program's memory"),
    (program_lost_all_memory, "detached: none of the program's memory"),
    (accesses_stay_remote, "settled: at most 3 %"),
    (meter_is_silent, "settled: at most 3 %"),
    (node_does_not_come, "settled: numactl -H lists node 1"),
    (node_does_not_go, "detached: numactl -H lists no node 1"),
    (node_was_never_looked_at, "before: numactl -H lists no node 1"),
    (residual, "nothing of the node was left over"),
    (wrong_word, "stream_check ended"),
    (no_result, "stream_check ended"),
    (other_checksum, "its checksum is that of a run without changes"),
    (one_other_sum, "so is the sum after each iteration"),
    (shorter_reference, "its checksum is that of a run without changes"),
    (program_failed, "example ended well"),
    (program_said_nothing, "example ended well"),
    (program_answered_otherwise, "example ended well"),
    (programs_team_is_too_large_at_first, "before: the second program's team has 2 threads"),
    (programs_team_does_not_grow, "settled: the second program's team has 4 threads"),
    (one_team_of_the_program_is_short, "settled: the second program's team has 4 threads"),
    (only_sections_are_seen, "settled: the second program's team has 4 threads"),
    (sections_have_more_threads_than_may_run, "before: the second program's team has 2 threads"),
    (programs_team_grows_again, "detached: the second program's team has 2 threads"),
    (no_team_before, "before: the second program's team has 2 threads"),
    (nothing_is_known_of_teams, "settled: the second program's team has 4 threads"),
    (nothing_is_known_of_teams, "detached: the second program's team has 2 threads"),
)


@pytest.mark.parametrize(("fault", "noticed"), FAULTS, ids=[fault.__name__ for fault, _ in FAULTS])
def test_each_fault_is_noticed(fault: Callable[[Evidence], None], noticed: str) -> None:
    evidence = fakes.evidence()
    fault(evidence)
    assert any(what.startswith(noticed) for what in failed(evidence)), failed(evidence)


def test_three_sections_have_three_threads() -> None:
    """With OMP_DYNAMIC, as stock has it; where fewer may run, they have those."""
    evidence = fakes.evidence()
    evidence.teams, evidence.sections = {"before": [2], "settled": [4, 3, 4], "detached": [2]}, [3]
    assert failed(evidence) == []


def test_three_per_cent_are_still_right() -> None:
    """What is asked for is what is usual, with a little room."""
    evidence = fakes.evidence()
    evidence.timeline.readings = {**evidence.timeline.readings, "settled": Reading(121, 127, 9700, 300)}
    assert failed(evidence) == []


def test_a_sample_under_way_is_no_memory_that_stays() -> None:
    evidence = fakes.evidence()
    evidence.timeline.samples = [dataclasses.replace(s, kib=(98304, 64)) if s.t > 134 else s for s in fakes.samples()]
    assert failed(evidence) == []


def test_an_iteration_is_of_a_window_if_all_of_it_is() -> None:
    """One that began before it may have had the old team; what is exactly in it counts."""
    times = {9.9: 500.0, 10.4: 500.0, 10.5: 500.0, 19.0: 10.0, 20.0: 500.0, 20.1: 500.0}
    iterations = [Iteration(n, t, ms, 2, "") for n, (t, ms) in enumerate(times.items())]
    timeline = Timeline(iterations, windows={"before": (10.0, 20.0)})
    assert [i.t for i in timeline.iterations_in("before")] == [10.5, 19.0, 20.0]
    assert timeline.iterations_in("settled") == []


def test_the_metrics_have_the_names_that_the_project_fixed() -> None:
    names = {metric.metric for metric in metrics(fakes.evidence())}
    wanted = {f"demo.threads.{w}" for w in ("before", "attached", "detached")}
    wanted |= {
        f"demo.{m}.{w}" for m in ("remote_pct", "iteration_ms") for w in ("before", "attached", "settled", "detached")
    }
    wanted |= {"attach.seconds", "detach.seconds", "detach.residual_kib"}
    wanted |= {f"attach.{p}.seconds" for p in ("populate", "add", "online", "cpus", "notify")}
    wanted |= {f"detach.{p}.seconds" for p in ("notify", "acks", "cpus", "evacuate", "offline", "release", "node")}
    assert wanted <= names


def test_values_of_the_metrics() -> None:
    found = {metric.metric: metric for metric in metrics(fakes.evidence())}
    assert [found[f"demo.threads.{w}"].value for w in ("before", "attached", "detached")] == [2, 4, 2]
    assert found["demo.remote_pct.attached"].value == pytest.approx(40.0)
    assert found["demo.iteration_ms.settled"].value == pytest.approx(310.0)
    assert found["demo.resident_kib.node1.settled"].value == 48 * 1024


def test_a_run_that_broke_off_has_metrics_without_values_and_still_a_valid_file() -> None:
    evidence = fakes.evidence()
    evidence.timeline = Timeline()
    evidence.seconds, evidence.phases = {}, {}
    found = metrics(evidence)
    result = results.Result("demo", results.now(), results.host_info(), found)
    assert results.problems(results.encode(result)) == []
    assert all(m.value is None for m in found if m.metric.startswith("demo."))


def test_the_page_is_self_contained_and_escapes_what_the_guest_said() -> None:
    evidence = fakes.evidence()
    page = demo_page(evidence, verdict(evidence), results.now(), "2 CPUs")
    assert "DEMO PASS" in page
    assert "node 1 &lt;offline&gt; &amp; gone" in page and "<offline>" not in page
    assert not re.search(r'(?:src|href)="(?!#)', page.replace('xlink:href="#', "")), "a request to somewhere else"
    assert "url(http" not in page and "@import" not in page
    assert "<script" not in page


def test_the_page_of_a_failed_run_names_the_first_failure() -> None:
    evidence = fakes.evidence()
    residual(evidence)
    page = demo_page(evidence, verdict(evidence), results.now(), "2 CPUs")
    assert "DEMO FAIL: nothing of the node was left over (2048 KiB residual)" in page


def test_the_page_of_a_run_that_saw_nothing_can_be_drawn() -> None:
    evidence = fakes.evidence()
    evidence.timeline, evidence.numactl, evidence.phases = Timeline(), {}, {}
    assert "DEMO FAIL" in demo_page(evidence, verdict(evidence), results.now(), "2 CPUs")
