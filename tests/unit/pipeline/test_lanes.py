# SPDX-License-Identifier: GPL-2.0
"""Tests in two lanes: each test once, each lane with its own rack, and one honest count of both."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import pytest

from lab.pipeline import lanes
from lab.pipeline.paths import REPO
from lab.pipeline.test import Counter

# Two files meet: each is under way only while the other is, in another process.
CONFTEST = """
import os, pathlib, time, pytest
HERE = pathlib.Path(__file__).parent

def note(word):
    with open(HERE / "notes", "a") as file:
        file.write(f"{word} {os.environ.get('XENUMA_RACK', 'none')} {os.environ.get('XENUMA_TIME_SCALE', '1')}\\n")

@pytest.fixture(scope="session")
def rack():
    note("boot")
    yield
    note("off")

def meet(me, other):
    (HERE / me).touch()
    deadline = time.monotonic() + 60
    while not (HERE / other).exists():
        assert time.monotonic() < deadline, f"{other} is not under way"
        time.sleep(0.01)
"""
MEETS = """
from conftest import meet, note
def test_meets(rack):
    note("{me}")
    meet("{me}", "{other}")
def test_more(rack):
    pass
"""
OWN = """
import pytest
from conftest import note
pytestmark = pytest.mark.each_rack
def test_own(rack):
    note("own")
"""


def run(folder: Path, *arguments: str, count: int = 2) -> tuple[int, list[str]]:
    """Exit code and output of lab.pipeline.test in a repository that has no tests but those in `folder`/e2e."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "lab.pipeline.test",
            "-c",
            str(REPO / "pyproject.toml"),
            f"--rootdir={folder}",
            "-p",
            "no:cacheprovider",
            str(folder / "e2e"),
            *arguments,
        ],
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name != "XENUMA_RACK"},
            "PYTHONPATH": f"{REPO}:{folder / 'e2e'}",
            "XENUMA_REPO": str(folder),
            "XENUMA_CACHE": str(folder),
            "XENUMA_LANES": str(count),
            "XENUMA_TIME_SCALE": "1",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.splitlines() + done.stderr.splitlines()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two files that meet, and one that each lane runs."""
    (tmp_path / "e2e").mkdir()
    for name, text in {
        "conftest": CONFTEST,
        "test_a": MEETS.format(me="a", other="b"),
        "test_b": MEETS.format(me="b", other="a"),
        "test_own": OWN,
    }.items():
        (tmp_path / "e2e" / f"{name}.py").write_text(text, encoding="utf-8")
    return tmp_path


ALONE = """
import pytest, time
from conftest import HERE, note
@pytest.mark.alone
def test_alone(rack):
    assert (HERE / "slow-ended").exists()
    note("alone")
def test_slow(rack):
    time.sleep(2)
    (HERE / "slow-ended").touch()
"""


def test_what_measures_time_waits_for_all_others(folder: Path) -> None:
    """It stands before them in its file, and the other lane would have time for it."""
    (folder / "e2e" / "test_alone.py").write_text(ALONE, encoding="utf-8")
    code, lines = run(folder)
    assert (code, lines[-1]) == (0, "7 passed, 0 failed"), lines
    words = [note[0] for note in notes(folder)]
    assert words.count("alone") == 1 and words.index("alone") > max(words.index("a"), words.index("b"))
    assert words.count("own") == 2 and words.count("boot") == 2


def notes(folder: Path) -> list[list[str]]:
    return [line.split() for line in (folder / "e2e" / "notes").read_text(encoding="utf-8").splitlines()]


def test_two_files_at_one_time_each_with_a_rack_of_its_own(folder: Path) -> None:
    """Both racks are booted once and end; limits are twice as long; each lane looks at its own rack."""
    code, lines = run(folder)
    assert (code, lines[-1]) == (0, "5 passed, 0 failed"), lines
    seen = notes(folder)
    for word in ("boot", "own", "off"):
        assert sorted(note[1:] for note in seen if note[0] == word) == [["one-host", "2"], ["one-host@2", "2"]]
    assert {note[1] for note in seen if note[0] in "ab"} == {"one-host", "one-host@2"}
    assert json.loads((folder / "test-times.json").read_text()).keys() == {
        f"e2e/test_{n}.py" for n in ("a", "b", "own")
    }
    cases = ElementTree.parse(folder / "build/logs/tests.xml").getroot().iter("testcase")
    assert sorted(case.get("name", "") for case in cases) == ["test_meets"] * 2 + ["test_more"] * 2 + ["test_own"] * 2


def test_more_files_than_lanes(folder: Path) -> None:
    """What one lane does not take, the other does; each test once."""
    for number in range(5):
        (folder / "e2e" / f"test_{number}.py").write_text("def test_one(rack):\n    pass\n", encoding="utf-8")
    code, lines = run(folder)
    assert (code, lines[-1]) == (0, "10 passed, 0 failed"), lines
    assert [note[0] for note in notes(folder)].count("boot") == 2


@pytest.mark.parametrize(
    ("text", "last", "said"),
    [
        ("def test_one():\n    assert 1 == 2\n", "5 passed, 1 failed", "assert 1 == 2"),
        ("import pytest\ndef test_one():\n    pytest.skip()\n", "5 passed, 0 failed, 1 skipped", "SKIPPED"),
        ("nonsense", "0 passed, 1 failed", "NameError"),
        ("import os\ndef test_one():\n    os._exit(0)\n", None, "ended before its tests did"),
        ("def test_one():\n    raise KeyboardInterrupt\n", None, "KeyboardInterrupt"),
    ],
    ids=["failure", "skip", "no Python", "death", "interrupt"],
)
def test_what_goes_wrong_in_one_lane_is_told_and_counted(folder: Path, text: str, last: str | None, said: str) -> None:
    """Once, in the one closing line; a lane that does not come to its end is never a success."""
    (folder / "e2e" / "test_c.py").write_text(text, encoding="utf-8")
    code, lines = run(folder)
    assert any(said in line for line in lines), lines
    if last:
        assert lines[-1] == last, lines
    else:
        assert ", 0 failed" not in lines[-1] and " failed" in lines[-1], lines
    assert code == (0 if last and ", 0 failed" in last else 1)


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


def test_how_many_lanes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By CPUs and memory, and one where that is all that there is to do."""
    monkeypatch.setenv("XENUMA_LANES", "auto")
    for name in ("e2e/test_a.py", "e2e/test_b.py", "unit/test_c.py", "unit/test_d.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    all_, one, unit = [str(tmp_path)], [f"{tmp_path}/e2e/test_a.py::test_x", "-k", "x"], [f"{tmp_path}/unit"]
    for cpus, mib, arguments, wanted in (
        (2, 14000, all_, 2),
        (64, 99999, all_, 2),
        (1, 14000, all_, 1),
        (2, 13999, all_, 1),
        (2, 1000, all_, 1),
        (2, 14000, one, 1),
        (2, 14000, unit, 1),
        (None, 14000, all_, 1),
    ):
        monkeypatch.setattr(os, "cpu_count", lambda cpus=cpus: cpus)
        monkeypatch.setattr(lanes, "available_mib", lambda mib=mib: mib)
        assert lanes.number(arguments) == wanted, (cpus, mib, arguments)
    monkeypatch.setenv("XENUMA_LANES", "3")
    assert [lanes.number(arguments) for arguments in (all_, one)] == [3, 1]
    monkeypatch.delenv("XENUMA_LANES")
    assert lanes.number(all_) == 1
