# SPDX-License-Identifier: GPL-2.0
"""Result files and the report: a valid file makes it to the page, a bad one is named, nothing is left out quietly."""

from __future__ import annotations

import copy
import html
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest

from benchmarks import figures, results
from benchmarks.page import number
from benchmarks.report import HEADLINES, main, report_page
from benchmarks.results import InvalidResult, Metric, from_runs
from lab.pipeline.paths import REPO

GOOD: dict[str, Any] = {
    "name": "balloon",
    "when": "2026-01-31T12:00:00Z",
    "host": {"cpus": 2, "memory_mib": 24000, "cpu_model": "x", "kernel": "6.1", "commit": "abc", "emulated": True},
    "metrics": [
        {
            "metric": "balloon.take.ratio",
            "value": 97.5,
            "unit": "x",
            "better": "higher",
            "baseline": {"stock_s": 30.0, "how": "xl mem-set"},
            "runs": [95, 97.5, 99],
            "note": "three runs",
        },
        {"metric": "balloon.give.ratio", "value": None, "unit": "x", "better": "higher", "baseline": {}, "runs": []},
    ],
}


def test_the_example_is_valid() -> None:
    jsonschema.Draft202012Validator.check_schema(json.loads(results.SCHEMA.read_text(encoding="utf-8")))
    assert results.problems(GOOD) == []


def _metric(**change: Any) -> Callable[[dict[str, Any]], None]:
    return lambda data: data["metrics"][0].update(change)


def _drop(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-1]:
            data = data[key]
        del data[path[-1]]

    return change


def _set(*path: Any) -> Callable[[dict[str, Any]], None]:
    def change(data: Any) -> None:
        for key in path[:-2]:
            data = data[key]
        data[path[-2]] = path[-1]

    return change


BROKEN = {
    "no name": _drop("name"),
    "no metrics": _drop("metrics"),
    "unknown key": _set("author", "me"),
    "name that leaves the folder": _set("name", "../etc"),
    "empty name": _set("name", ""),
    "when without zone": _set("when", "2026-01-31T12:00:00"),
    "when is no text": _set("when", 5),
    "host is a list": _set("host", []),
    "host without cpus": _drop("host", "cpus"),
    "host with no cpu": _set("host", "cpus", 0),
    "host cpus is a boolean": _set("host", "cpus", True),
    "host emulated is text": _set("host", "emulated", "yes"),
    "host with a list inside": _set("host", "extra", [1]),
    "metrics is an object": _set("metrics", {}),
    "a metric is text": _set("metrics", 0, "fast"),
    "metric name without dot": _metric(metric="ratio"),
    "metric name in capitals": _metric(metric="Balloon.ratio"),
    "value is text": _metric(value="97"),
    "value is a boolean": _metric(value=True),
    "unit is empty": _metric(unit=""),
    "better is unknown": _metric(better="bigger"),
    "baseline is a list": _metric(baseline=[]),
    "baseline holds a list": _metric(baseline={"x": []}),
    "baseline holds a boolean": _metric(baseline={"x": True}),
    "runs holds text": _metric(runs=["1"]),
    "runs is a number": _metric(runs=1),
    "note is a number": _metric(note=1),
    "unknown key of a metric": _metric(colour="red"),
    "metric without runs": _drop("metrics", 0, "runs"),
}


@pytest.mark.parametrize("change", BROKEN.values(), ids=BROKEN.keys())
def test_a_file_that_does_not_follow_the_schema_is_refused(change: Callable[[dict[str, Any]], None]) -> None:
    data = copy.deepcopy(GOOD)
    change(data)
    assert results.problems(data)
    with pytest.raises(InvalidResult, match=r"^x\.json: "):
        results.decode(data, "x.json")


def test_a_problem_says_where_it_is() -> None:
    data = copy.deepcopy(GOOD)
    data["metrics"][1]["unit"], data["host"]["cpus"] = "", 0
    del data["when"]
    where = [problem.partition(": ")[0] for problem in results.problems(data)]
    assert where == ["file", "host.cpus", "metrics[1].unit"]
    assert "'when'" in results.problems(data)[0]


def test_a_metric_must_not_be_there_twice_nor_be_infinite() -> None:
    data = copy.deepcopy(GOOD)
    data["metrics"].append(dict(data["metrics"][0]))
    assert results.problems(data) == ["metrics: balloon.take.ratio is there 2 times"]
    data = copy.deepcopy(GOOD)
    data["metrics"][0]["runs"] = [1.0, float("nan")]
    assert any("finite" in problem for problem in results.problems(data))


def test_written_and_read_again(tmp_path: Path) -> None:
    metrics = [Metric("a.b", 1.5, "s", "lower", {"stock": 3.0}, [1.0, 1.5, 2.0], "why"), Metric("a.c", None, "1")]
    path = results.write("one", metrics, tmp_path, host={"kernel": "6.12-test"})
    assert results.problems(json.loads(path.read_text(encoding="utf-8"))) == []
    result = results.read(path)
    assert result.host["kernel"] == "6.12-test" and result.host["emulated"] is True
    assert [m.metric for m in result.metrics] == ["a.b", "a.c"]
    assert result.find("a.b") == metrics[0]
    assert list(tmp_path.iterdir()) == [path], "a temporary file was left"


def test_a_file_that_nobody_could_read_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(InvalidResult, match=r"metrics\[0\].metric: 'nodot'"):
        results.write("one", [Metric("nodot", 1.0, "s")], tmp_path)
    with pytest.raises(InvalidResult, match=r"name: '../one'"):
        results.write("../one", [], tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_renamed_file_is_noticed(tmp_path: Path) -> None:
    path = results.write("one", [], tmp_path)
    other = path.rename(tmp_path / "two.json")
    with pytest.raises(InvalidResult, match="'one', not the file's"):
        results.read(other)


def test_the_value_of_runs_is_their_median() -> None:
    assert from_runs("a.b", [9, 1, 2], "s", "lower").value == 2
    assert from_runs("a.b", [], "s", "lower").value is None


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (0, "0"),
        (512.0, "512"),
        (1234567.0, "1 234 567"),
        (0.000412, "0.000412"),
        (97.34, "97.3"),
        (143.26, "143.3"),
        (12345.6, "12 346"),
        (-3.14159, "-3.14"),
    ],
)
def test_numbers_for_people(value: float | None, text: str) -> None:
    assert number(value) == text


def test_the_report_shows_good_bad_and_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    results.write(
        "balloon",
        [
            Metric("balloon.take.ratio", 12.0, "x", "higher"),
            Metric("balloon.give.ratio", None, "x", "higher", note="the guest <crashed>"),
        ],
        tmp_path,
    )
    (tmp_path / "torn.json").write_text("{", encoding="utf-8")
    assert main(["--results", str(tmp_path)]) == 1
    assert "torn.json" in capsys.readouterr().err
    page = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert "12×" in page and "missed" in page
    assert "not measured" in page and "the guest &lt;crashed&gt;" in page
    assert "torn.json: not JSON" in page
    assert "parallel_region.overhead_pct" in page and "not run" in page
    assert all(html.escape(figure.source) in page for figure in figures.FIGURES)
    assert "http" not in page.replace("http://www.w3.org/", ""), "a request to somewhere else"


def test_without_results_there_is_no_report(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--results", str(tmp_path)]) == 2
    assert "make demo" in capsys.readouterr().err
    assert not (tmp_path / "report.html").exists()


def test_a_report_of_valid_results_says_so(tmp_path: Path) -> None:
    results.write("one", [from_runs("a.b", [1, 2, 3, 4], "s", "lower")], tmp_path)
    assert main(["--results", str(tmp_path)]) == 0
    good, bad = results.read_all(tmp_path)
    assert "<polyline" in report_page(good, bad, results.now(), demo=True)


@pytest.mark.parametrize(("named", "wanted"), [("/elsewhere", "/elsewhere"), ("", str(REPO / "build/results"))])
def test_where_results_go(named: str, wanted: str) -> None:
    """`make test` names another folder, or what a test measures would replace what `make bench` has measured."""
    program = "import benchmarks.results as r; print(r.RESULTS, r.write.__defaults__[0])"
    done = subprocess.run(
        [sys.executable, "-c", program],
        cwd=REPO, env={**os.environ, "XENUMA_RESULTS": named}, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.split() == [wanted, wanted]


@pytest.mark.parametrize(
    ("take", "give", "words"),
    [
        (29.9, 138.9, ("missed", "missed")),
        (48.0, 139.0, ("1 of 3 reached", "1 of 2 reached")),
        (149.9, 149.9, ("2 of 3 reached", "1 of 2 reached")),
        (150.0, 150.0, ("reached", "reached")),
    ],
)
def test_our_own_goal_of_taking_and_giving_stands_beside_what_others_published(
    take: float, give: float, words: tuple[str, str]
) -> None:
    """What another one's balloon reaches is not what this project has set itself."""
    metrics = [Metric(f"balloon.{name}.ratio", value, "x", "higher") for name, value in (("take", take), ("give", give))]
    page = report_page([results.Result("balloon", GOOD["when"], GOOD["host"], metrics)], [], "now", False)
    rows = page.partition("At a glance")[2].partition("</table>")[0].split("<tr>")
    for name, word in zip(("take", "give"), words, strict=True):
        (row,) = (row for row in rows if f"balloon.{name}.ratio<" in row)
        assert f">{word}<" in row and html.escape("goal: at least 150 x (this project's goal)") in row, row


def test_each_goal_is_at_a_glance() -> None:
    """And one that is missed says so, of each way to be better."""
    names = [name for name, _ in HEADLINES]
    assert {figure.metric for figure in figures.FIGURES if figure.floor is not None} <= set(names)
    # What neither side clears is quoted beside what both clear.
    assert "balloon.take.unscrubbed.ratio" in names
    assert len(names) == len(set(names))
    for name in ("fault", "rdma.fault", "polling.fault"):
        assert [figure.floor for figure in figures.floor(f"dsm.{name}.ratio_to_rtt")] == [2.0 if "polling" in name else 2.5]
    slow = {"dsm.membench.speedup": 1.12, "dsm.vs_swap.ratio": 0.38}
    missed = {"dsm.polling.fault.ratio_to_rtt": 2.1, "dsm.rdma.fault.ratio_to_rtt": 3.4}
    for met in (False, True):
        metrics = [Metric(name, value + 4 * met, "x", "higher") for name, value in slow.items()]
        metrics += [Metric(name, value - 2 * met, "x", "lower") for name, value in missed.items()]
        page = report_page([results.Result("dsm", GOOD["when"], GOOD["host"], metrics)], [], "now", False)
        glance = page.partition("At a glance")[2].partition("</table>")[0]
        rows = [row for row in glance.split("<tr>") if any(name in row for name in (*slow, *missed))]
        assert len(rows) == 4 and all((">reached<" in row) == met and (">missed<" in row) != met for row in rows), rows
    assert "faster than swap" not in glance
