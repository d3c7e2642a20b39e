# SPDX-License-Identifier: GPL-2.0
"""Tests in lanes: each test once, each lane with its own rack or none, and one honest count of all."""

from __future__ import annotations

import fcntl
import io
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lab.pipeline import lanes
from lab.pipeline.counter import Counter
from lab.pipeline.paths import REPO

# Two files meet: each is under way only while the other is, in another process. Later, one lane is kept busy by test_long until
# the other has done all that is left, and what has to be alone waits for both.
CONFTEST = """
import os, pathlib, time, pytest
HERE = pathlib.Path(__file__).parent

def note(word):
    with open(HERE / "notes", "a") as file:
        file.write(f"{word} {os.environ.get('XENUMA_RACK', 'none')} {os.environ.get('XENUMA_TIME_SCALE', '1')}\\n")

@pytest.fixture(scope="session")
def rack():
    rack = os.environ.get("XENUMA_RACK", "one-host")
    note("boot")
    note(f"boot-{rack}")
    if "BROKEN" in os.environ and "ALONE" not in os.environ:
        await_notes("boot-one-host", "boot-one-host@2")
    if rack in os.environ.get("BROKEN", "").split():
        time.sleep(1)
        raise OSError("no rack")
    yield
    note("offs")
    time.sleep(int(os.environ.get("OFF_TAKES", 0)))
    note("off")
    assert "OFF_FAILS" not in os.environ, "off fails"

def await_notes(*words):
    deadline = time.monotonic() + 60
    while not set(words) <= {line.split()[0] for line in (HERE / "notes").read_text().splitlines()}:
        assert time.monotonic() < deadline, words
        time.sleep(0.01)
"""
MEETS = """
from conftest import await_notes, note
def test_meets(rack):
    note("{me}")
    await_notes("{other}")
def test_more(rack):
    pass
"""
LONG = """
import time
from conftest import await_notes, note
def test_long(rack):
    await_notes("rest1", "rest2", "rest3")
    time.sleep(0.5)
    note("long")
"""
REST = """
from conftest import note
def test_one(rack):
    note("{me}")
"""
SKIPS = """
import pytest
def test_skips():
    pytest.skip("for no reason")
"""
ALONE = """
import pytest
from conftest import note
@pytest.mark.alone
def test_alone(rack):
    note("alone")
"""
OWN = """
import pytest
from conftest import note
pytestmark = pytest.mark.each_rack
def test_own(rack):
    note("own")
"""
GOOD = {
    "alone": ALONE,
    "b": MEETS.format(me="b", other="c"),
    "c": MEETS.format(me="c", other="b"),
    "long": LONG,
    "own": OWN,
    **{f"rest{number}": REST.format(me=f"rest{number}") for number in (1, 2, 3)},
    "skips": SKIPS,
}
FAILS = "def test_fails():\n    assert 1 == 2\n"


LOWEST = 19  # priority there is, nice(2); this test may itself run in such a lane


def command(folder: Path, count: int) -> tuple[list[str], dict[str, str]]:
    """What runs lab.pipeline.test in a repository that has no tests but those in `folder`, and its environment."""
    words = [sys.executable, "-m", "lab.pipeline.test", "-c", str(REPO / "pyproject.toml"), f"--rootdir={folder}"]
    environment = {
        **{name: value for name, value in os.environ.items() if name not in ("XENUMA_RACK", "PYTEST_ADDOPTS")},
        "PYTHONPATH": f"{REPO}:{folder / 'e2e'}",
        "XENUMA_REPO": str(folder),
        "XENUMA_CACHE": str(folder),
        "XENUMA_LANES": str(count),
        "XENUMA_TIME_SCALE": "1",
    }
    kinds = [str(folder / kind) for kind in ("e2e", "unit") if (folder / kind).exists()]
    return [*words, "-p", "no:cacheprovider", *kinds], environment


def run(folder: Path, tests: dict[str, str], count: int = 2, **variables: str) -> tuple[int, list[str]]:
    """Exit code and output of these tests."""
    lay(folder, tests)
    words, environment = command(folder, count)
    done = subprocess.run(
        words, cwd=folder, env=environment | variables, capture_output=True, text=True, check=False, timeout=120
    )
    return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()


def lay(folder: Path, tests: dict[str, str]) -> None:
    """Write them, those that are called unit_ into unit/, all others into e2e/."""
    (folder / "e2e").mkdir()
    (folder / "e2e" / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    for name, text in tests.items():
        place = folder / ("unit" if name.startswith("unit_") else "e2e")
        place.mkdir(exist_ok=True)
        (place / f"test_{name}.py").write_text(text, encoding="utf-8")


def notes(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "e2e" / "notes").read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run in which all goes well. Each test is run once, but for those that each lane runs."""
    folder = tmp_path_factory.mktemp("good")
    code, lines = run(folder, GOOD)
    assert (code, lines[-1]) == (0, "10 passed, 0 failed, 1 skipped"), lines
    return folder


def test_two_files_at_one_time_each_with_a_rack_of_its_own(good: Path) -> None:
    """Both racks are booted once and end; limits are twice as long; each lane looks at its own rack."""
    seen = notes(good)
    for word in ("boot", "own", "off"):
        assert sorted(note[1:] for note in seen if note[0] == word) == [["one-host", "2"], ["one-host@2", "2"]]
    assert {note[1] for note in seen if note[0] in "bc"} == {"one-host", "one-host@2"}


def test_nothing_is_reserved_by_a_lane_that_is_busy(good: Path) -> None:
    """The other one has run all that was left before the long test was over."""
    words = [note[0] for note in notes(good)]
    assert sorted(words).count("rest1") == 1 and words.index("long") > max(words.index(f"rest{n}") for n in (1, 2, 3))


def test_what_measures_time_waits_for_all_others(good: Path) -> None:
    """It stands before them, and the other lane would have time for it. Only its own rack is still on."""
    words = [note[0] for note in notes(good)]
    assert words.count("alone") == 1 and words[-3:] == ["alone", "offs", "off"]


def test_times_and_results_are_written(good: Path) -> None:
    names = {f"e2e/test_{name}.py" for name in GOOD} - {"e2e/test_alone.py", "e2e/test_own.py"}
    names |= {"e2e/test_alone.py, alone", "e2e/test_own.py, each rack"}
    assert json.loads((good / "test-times.json").read_text()).keys() == names
    cases = ElementTree.parse(good / "build/logs/tests.xml").getroot().iter("testcase")
    assert sorted(case.get("name", "") for case in cases) == sorted(
        ["test_meets"] * 2 + ["test_more"] * 2 + ["test_own"] * 2 + ["test_one"] * 3
        + ["test_alone", "test_long", "test_skips"]
    )  # fmt: skip


# Each of the first two is under way only while the other is. The lane without a rack is then kept busy until the other one has
# run the rest.
BESIDE = {
    "b": MEETS.format(me="b", other="unit_c"),
    "own": OWN,
    "unit_c": """
import os
from conftest import await_notes, note
def test_meets():
    note("unit_c")
    note(f"nice-{os.nice(0)}")
    await_notes("b", "unit_d", "unit_e")
""",
    "unit_d": "from conftest import note\ndef test_d():\n    note('unit_d')\n",
    "unit_e": "from conftest import note\ndef test_e():\n    note('unit_e')\n",
    "z": ALONE,
}


def test_what_needs_no_rack_runs_beside_one(tmp_path: Path) -> None:
    """At a low priority, without a rack of its own. The other lane has its turn with it when its own tests are done."""
    code, lines = run(tmp_path, BESIDE, count=1)
    assert (code, lines[-1]) == (0, "7 passed, 0 failed"), lines
    seen = notes(tmp_path)
    words = [note[0] for note in seen]
    assert words.count("boot") == words.count("own") == 1
    assert f"nice-{min(os.nice(0) + lanes.LOW_PRIORITY, LOWEST)}" in words
    assert {note[2] for note in seen} == {"2"}
    assert words[-3:] == ["alone", "offs", "off"]
    assert sum("rack: unit/test_unit_e.py: 1 passed" in line for line in lines) == 1, lines


def test_without_a_rack_what_needs_none_is_still_run_beside_it(tmp_path: Path) -> None:
    """One failure says so, and what was not run makes no second one."""
    tests = {"a": GOOD["rest1"], "b": GOOD["rest2"], "unit_a": "def test_free():\n    pass\n"}
    code, lines = run(tmp_path, tests, count=1, BROKEN="one-host", ALONE="1")
    assert (code, lines[-1]) == (1, "1 passed, 1 failed"), lines
    assert any("1 more were not run" in line for line in lines), lines


def test_a_file_that_is_no_python_is_one_failure(tmp_path: Path) -> None:
    """Though both lanes stumble over it; and nothing is run."""
    code, lines = run(tmp_path, {"a": REST.format(me="a"), "b": REST.format(me="b"), "d": "nonsense"})
    assert (code, lines[-1]) == (1, "0 passed, 1 failed"), lines
    assert any("NameError" in line for line in lines), lines


def test_a_lane_that_dies_leaves_what_it_had(tmp_path: Path) -> None:
    """What it had run counts, and where it died is told; the other lane runs what is left. It is never a success."""
    text = "import os\ndef test_one():\n    pass\ndef test_two():\n    os._exit(0)\ndef test_three():\n    pass\n"
    junit = tmp_path / "build" / "logs" / "tests-lane-1.xml"
    junit.parent.mkdir(parents=True)
    for number in (1, 2):
        junit.with_name(f"tests-lane-{number}.xml").write_text('<testsuites><testsuite name="old"/></testsuites>')
    code, lines = run(tmp_path, {"b": GOOD["b"], "c": GOOD["c"], "d": text, "e": REST.format(me="e")})
    assert (code, lines[-1]) == (1, "6 passed, 1 failed"), lines
    assert sum("ended before its tests did: the last was e2e/test_d.py::test_two" in line for line in lines) == 1, lines
    suites = ElementTree.parse(junit.with_name("tests.xml")).getroot().iter("testsuite")
    assert [suite.get("name") for suite in suites] == ["pytest"]


@pytest.mark.parametrize("presses", [1, 2], ids=["once", "twice"])
def test_ctrl_c_ends_both_lanes_and_is_a_failure(tmp_path: Path, presses: int) -> None:
    """As a terminal does it, to all at once. Racks are powered off; a second time, while that takes long, ends it at once."""
    slow = (
        "import signal, time\nfrom conftest import note\ndef test_one(rack):\n    note('{me}')\n    time.sleep(100)\n"
    )
    lay(tmp_path, {"a": slow.format(me="a"), "b": slow.format(me="b")})
    words, environment = command(tmp_path, 2)
    process = subprocess.Popen(
        words,
        cwd=tmp_path,
        env=environment | ({"OFF_TAKES": "100"} if presses == 2 else {}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        process_group=0,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler),  # noqa: PLW1509
    )
    for wanted in ({"a", "b"}, {"offs"})[:presses]:
        await_notes(tmp_path, wanted)
        os.killpg(process.pid, signal.SIGINT)
    lines = process.communicate(timeout=60)[0].splitlines()
    assert (process.returncode, lines[-1]) == (1, "0 passed, 1 failed"), lines
    assert [note[0] for note in notes(tmp_path)].count("off") == (2 if presses == 1 else 0)
    # A lane that is ended at once may still have begun to say where it was.
    assert "--- lane 2 ---" in lines and (presses == 2 or "Traceback (most recent call last):" not in lines), lines
    assert "interrupted: the lanes power off their racks" in lines, lines


def test_a_lane_was_killed_as_it_wrote(tmp_path: Path) -> None:
    """Its half of a file is left out, as is a file that is not there."""
    parts = [tmp_path / name for name in ("good", "half", "none")]
    parts[0].write_text('<testsuites><testsuite name="good"/></testsuites>', encoding="utf-8")
    parts[1].write_text("<?xml version='1.0' encoding='utf-8'?>", encoding="utf-8")
    lanes.merge_junit(parts, tmp_path / "whole")
    assert [suite.get("name") for suite in ElementTree.parse(tmp_path / "whole").getroot()] == ["good"]


TWO_LANES = """
import subprocess, sys
from lab.pipeline.lanes import await_all

class Lane(subprocess.Popen):
    def wait(self):
        print("waits", flush=True)
        return super().wait()

lanes = [Lane(["sleep", "100"], process_group=0) for _ in range(2)]
await_all(lanes)
print([lane.returncode for lane in lanes])
"""


def test_ctrl_c_twice_within_a_moment() -> None:
    """Popen.wait() would take them for one."""
    process = subprocess.Popen([sys.executable, "-c", TWO_LANES], stdout=subprocess.PIPE, text=True, cwd=REPO)
    assert process.stdout
    end = threading.Timer(60, process.kill)
    end.start()
    try:
        assert process.stdout.readline() == "waits\n"
        for said in ("interrupted: the lanes power off their racks\n", "interrupted: ending the lanes\n"):
            process.send_signal(signal.SIGINT)
            assert process.stdout.readline() == said
        assert process.stdout.read() == "waits\n[-9, -9]\n"
    finally:
        end.cancel()
        process.kill()


def await_notes(folder: Path, words: set[str]) -> None:
    deadline = time.monotonic() + 60
    while not words <= {note[0] for note in (notes(folder) if (folder / "e2e" / "notes").exists() else [])}:
        assert time.monotonic() < deadline, words
        time.sleep(0.01)


def test_a_failure_is_told_when_it_happens(tmp_path: Path) -> None:
    """With its reason, before the lane has ended: a whole run takes long, and what fails can be looked at meanwhile.

    What goes wrong when a rack goes off is an error of the last test that was run with it.
    """
    code, lines = run(tmp_path, {"b": GOOD["b"], "c": GOOD["c"], "d": FAILS}, OFF_FAILS="1")
    assert (code, lines[-1]) == (1, "3 passed, 2 failed"), lines
    told = lines[: lines.index("--- lane 1 ---")]
    assert sum("FAILED e2e/test_d.py::test_fails (call): assert 1 == 2" in line for line in told) == 1, lines
    off = [line for line in told if "(teardown): AssertionError: off fails" in line]
    assert {line.partition(": FAILED ")[2].partition(" (")[0] for line in off} in (
        {"e2e/test_d.py::test_fails", "e2e/test_b.py::test_more"},
        {"e2e/test_d.py::test_fails", "e2e/test_c.py::test_more"},
    ), lines


def test_a_rack_that_cannot_be_booted_fails_one_test(tmp_path: Path) -> None:
    """The lane that has one runs all others, late as they come back, and what is about each rack, for itself."""
    more = "def test_two(rack):\n    pass\n"
    tests = {"a": REST.format(me="a") + more, "b": REST.format(me="b") + more, "own": OWN, "skips": SKIPS}
    code, lines = run(tmp_path, tests, BROKEN="one-host@2")
    assert (code, lines[-1]) == (1, "4 passed, 1 failed, 1 skipped"), lines
    assert [note[0] for note in notes(tmp_path)].count("own") == 1
    assert sum(" FAILED " in line and "no rack" in line for line in lines) == 1, lines


def test_without_any_rack_the_others_are_still_run(tmp_path: Path) -> None:
    tests = {"a": GOOD["rest1"] + GOOD["rest2"] + "def test_two(rack):\n    pass\n", "b": GOOD["rest3"]}
    code, lines = run(tmp_path, {**tests, "free": "def test_free():\n    pass\n"}, BROKEN="one-host one-host@2")
    assert (code, lines[-1]) == (1, "1 passed, 2 failed"), lines


def test_a_test_that_both_lanes_run_counts_as_the_worse_of_the_two() -> None:
    """Whichever came first."""
    for pair in (("passed", "failed"), ("failed", "passed"), ("skipped", "failed")):
        total = Counter()
        for outcome in pair:
            one = Counter()
            one.outcome["t.py::test"] = outcome
            one.checks["t.py::test"] = 3
            total.add(json.loads(json.dumps(one.as_json())))
        assert total.outcome == {"t.py::test": "failed"}
        assert total.checks == {"t.py::test": 6}


def test_a_file_that_cannot_be_collected_counts_once() -> None:
    """Though each lane has tried, and even if one has not."""
    for errors in ((2, 2), (2, 0), (0, 2)):
        total = Counter()
        for number in errors:
            one = Counter()
            one.collection_errors = number
            total.add(one.as_json())
        assert total.closing(pytest.ExitCode.INTERRUPTED, 1.0)[0][-1] == "0 passed, 2 failed"


def test_the_sum_has_the_worst_exit_code_whichever_lane_it_is_of(tmp_path: Path) -> None:
    """And a lane that has left nothing is the worst of all."""
    for codes, wanted in (((0, 2), 2), ((2, 0), 2), ((0, 0), 0), ((1, None), 3), ((None, 0), 3)):
        paths = [tmp_path / f"lane {number}.json" for number in range(len(codes))]
        for path, code in zip(paths, codes, strict=True):
            path.unlink(missing_ok=True)
            if code is not None:
                path.write_text(json.dumps({"code": code, "times": {path.stem: 1.0}, **Counter().as_json()}))
        _, worst, times = lanes.add_up(paths)
        assert worst == wanted and len(times) == sum(code is not None for code in codes)


def test_one_at_a_time_takes_from_the_queue(tmp_path: Path) -> None:
    """Two that look at one moment would both take the same."""
    queue = lanes.Queue(tmp_path / "taken")
    taken: list[str | None] = []
    with open(queue.path, "a", encoding="utf-8") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        other = threading.Thread(target=lambda: taken.append(queue.take(["a", "b"])))
        other.start()
        other.join(0.3)
        assert not taken
        file.write("a\n")
    other.join(60)
    assert taken == ["b"]
    queue.give_back("a")
    assert [queue.take(["b", "a"]) for _ in range(2)] == ["a", None]


def test_what_took_longest_comes_first(tmp_path: Path) -> None:
    """And before it what has never been run; a lane that knows nothing takes all as they come."""
    for times, wanted in (({"b": 1.0, "c": 5.0, "d": 900.0}, ["d", "a", "c", "b"]), ({}, ["a", "b", "c", "d"])):
        queue = lanes.Queue(tmp_path / f"taken{len(times)}")
        lane = lanes.Lane("", queue, io.StringIO(), Counter(), times)
        lane.shared = {name: lanes.Batch(name) for name in "abcd"}
        taken = [batch.name for batch in iter(lane._take, None)]
        assert taken == wanted


def test_how_many_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By CPUs and memory, and one where that is all that there is to do."""
    monkeypatch.setenv("XENUMA_LANES", "auto")
    for name in ("e2e/test_a.py", "e2e/test_b.py", "unit/test_c.py", "unit/test_d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    all_, one, unit = [str(tmp_path)], [f"{tmp_path}/e2e/test_a.py::test_x", "-k", "x"], [f"{tmp_path}/unit"]
    racks, both = [f"{tmp_path}/e2e"], [*one, *unit]
    two, rack, only = ["lane 1", "lane 2"], ["rack", "no rack"], [lanes.ONLY]
    for cpus, mib, arguments, wanted in (
        (2, 14000, all_, [*two, "no rack"]),
        (2, 14000, racks, two),
        (64, 99999, racks, two),
        (1, 14000, all_, only),
        (2, 13999, racks, only),
        (2, 1000, all_, rack),
        (2, 14000, one, only),
        (2, 14000, both, rack),
        (2, 14000, unit, only),
        (None, 14000, all_, only),
    ):
        monkeypatch.setattr(os, "cpu_count", lambda cpus=cpus: cpus)
        monkeypatch.setattr(lanes, "available_mib", lambda mib=mib: mib)
        assert lanes.labels(arguments) == wanted, (cpus, mib, arguments)
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    monkeypatch.setenv("XENUMA_LANES", "3")
    assert [lanes.labels(arguments) for arguments in (racks, one)] == [["lane 1", "lane 2", "lane 3"], only]
    monkeypatch.delenv("XENUMA_LANES")
    assert [lanes.labels(arguments) for arguments in (all_, racks)] == [rack, only]
