# SPDX-License-Identifier: GPL-2.0
"""The closing lines of ``make test``: what is counted, and that nothing but success looks like one."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys

import pytest

from lab.pipeline.counter import Counter
from lab.pipeline.paths import REPO

TESTS = """
import pytest

def test_good():
    pass

@pytest.mark.parametrize("number", [1, 2, 3])
def test_cases(number):
    assert number != 3

@pytest.mark.parametrize("name", ["a[b]", "[c"])
def test_names(name):
    pass

def test_checks(record_property):
    record_property("checks", 5)
    record_property("checks", 2)
    record_property("seconds", 100)

def test_checks_and_fails(record_property):
    record_property("checks", 30)
    assert False

@pytest.fixture
def bad_begin():
    assert False

@pytest.fixture
def bad_end():
    yield
    assert False

@pytest.fixture
def skip_then_bad_end():
    yield
    assert False

def test_error_before(bad_begin):
    pass

def test_error_after(bad_end):
    pass

def test_fails_twice(bad_end):
    assert False

def test_skipped():
    pytest.skip("no reason")

def test_skipped_and_error_after(skip_then_bad_end):
    pytest.skip("no reason")

@pytest.fixture
def end_is_skipped():
    yield
    pytest.skip("too late")

def test_fails_and_end_is_skipped(end_is_skipped):
    assert False

def test_passes_and_end_is_skipped(end_is_skipped):
    pass

@pytest.mark.xfail(reason="known")
def test_passes_against_expectation():
    pass
"""


GOOD = "def test_one():\n    pass\n"
SKIP = "import pytest\ndef test_{}():\n    pytest.skip()\n"
FRESH = "import pytest\n@pytest.mark.fresh\ndef test_fresh():\n    assert False\n"
STOP = "def test_zero(request):\n    request.session.shouldstop = 'enough'\n"
# Text of the tests, arguments, XENUMA_LANES; the last line, and what the lines before have to say.
CASES = {
    "all outcomes": (TESTS, [], "", "7 passed, 8 failed, 1 skipped", "test_it.py: 7 passed, 8 failed, 1 skipped in "),
    "good": (GOOD, [], "1", "1 passed, 0 failed", "; programs that they ran made 0 checks"),
    "skip": (GOOD + SKIP.format("two"), [], "", "1 passed, 0 failed, 1 skipped", "SKIPPED"),
    "only a skip": (SKIP.format("one"), [], "", "0 passed, 1 failed, 1 skipped", "1 cases;"),
    "nothing": ("", [], "", "0 passed, 1 failed", "0 cases;"),
    "no Python": ("nonsense", [], "", "0 passed, 1 failed", "NameError"),
    "no file": (GOOD, ["nonesuch.py"], "", "0 passed, 1 failed", "nonesuch.py"),
    "misused": (GOOD, ["--nonesuch"], "", "0 passed, 1 failed", "--nonesuch"),
    "interrupted": (
        GOOD + "def test_two():\n    raise KeyboardInterrupt\n",
        [],
        "",
        "1 passed, 1 failed",
        "1 more were not",
    ),
    "left": (
        "import pytest\n" + GOOD + "def test_two():\n    pytest.exit('no', 0)\n",
        [],
        "",
        "1 passed, 1 failed",
        "no",
    ),
    "stopped": (STOP + GOOD, [], "", "1 passed, 1 failed", "1 cases, 1 more were not run;"),
    "the first failure": ("def test_zero():\n    assert 0\n" + GOOD, ["-x"], "", "0 passed, 1 failed", "1 cases, 1 more were"),
    "collected": (GOOD, ["--collect-only"], "", "0 passed, 1 failed", "0 cases, 1 more were not run;"),
    "left out": (
        FRESH + GOOD,
        ["-m", "not fresh"],
        "",
        "1 passed, 0 failed",
        "1 cases, 1 were left out (marked fresh or soak, or",
    ),
    "all left out": (FRESH, ["-m", "not fresh"], "", "0 passed, 1 failed", "0 cases, 1 were left out"),
    "measures": (
        GOOD + "def test_where():\n    from benchmarks.results import RESULTS\n    assert 0, '/'.join(RESULTS.parts[-2:])\n",
        [],
        "",
        "1 passed, 1 failed",
        "AssertionError: build/results-test",
    ),
    "no number of lanes": (
        GOOD,
        [],
        "two",
        "0 passed, 1 failed",
        "xenuma: XENUMA_LANES=two: want a number of lanes, or auto",
    ),
    "no lane": (GOOD, [], "0", "0 passed, 1 failed", "xenuma: XENUMA_LANES=0: want"),
}

# Runs all of them, each in a process of its own that need not import anything any more.
DRIVER = """
import json, os, sys
from pathlib import Path
from lab.pipeline.test import main
for name, (arguments, lanes) in json.load(sys.stdin).items():
    if not (pid := os.fork()):
        for fd in (1, 2):
            os.dup2(os.open(f"{name}.out", os.O_WRONLY | os.O_CREAT | os.O_APPEND), fd)
        os.environ["XENUMA_LANES"] = lanes
        os.environ.pop("XENUMA_RESULTS", None)  # of the tests that this is one of
        os._exit(main(arguments))
    Path(f"{name}.code").write_text(str(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])))
"""


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[int, list[str]]]:
    """Exit code and output of lab.pipeline.test for each case, in a repository that has no tests but these."""
    folder = tmp_path_factory.mktemp("closed")
    asked = {}
    for name, (text, arguments, count, _, _) in CASES.items():
        place = folder / name
        place.mkdir()
        (place / "test_it.py").write_text(text, encoding="utf-8")
        options = ["-c", str(REPO / "pyproject.toml"), f"--rootdir={place}", "-p", "no:cacheprovider"]
        asked[name] = ([*options, str(place / "test_it.py"), *arguments], count)
    environment = {
        "PYTHONPATH": str(REPO),
        "XENUMA_REPO": str(folder),
        "XENUMA_CACHE": str(folder),
        "PYTEST_ADDOPTS": "",
    }
    subprocess.run(
        [sys.executable, "-c", DRIVER],
        cwd=folder,
        env=os.environ | environment,
        input=json.dumps(asked),
        text=True,
        check=True,
        timeout=240,
    )
    return {
        name: (int((folder / f"{name}.code").read_text()), (folder / f"{name}.out").read_text().splitlines())
        for name in CASES
    }


@pytest.mark.parametrize("name", CASES)
def test_only_success_looks_like_it(closed: dict[str, tuple[int, list[str]]], name: str) -> None:
    """The closing line has its form whatever happens, and there are failures in it unless all that there was ran well."""
    _, _, _, last, said = CASES[name]
    code, lines = closed[name]
    assert lines[-1] == last, lines
    assert code == (", 0 failed" not in last)
    assert any(said in line for line in lines[:-1]), lines


def test_functions_cases_and_checks_are_three_numbers(closed: dict[str, tuple[int, list[str]]]) -> None:
    """The last line counts pytest's items, alone and in its form; the line before says the rest."""
    assert closed["all outcomes"][1][-2] == "13 test functions with 16 cases; programs that they ran made 37 checks"


def test_failures_are_told_at_once_and_in_the_end(closed: dict[str, tuple[int, list[str]]]) -> None:
    """As they happen, with their reason; then pytest's own words, with its names for what has happened. No dots."""
    lines = closed["all outcomes"][1]
    (file,) = (number for number, line in enumerate(lines) if "test_it.py: 7 passed" in line)
    assert sum("FAILED test_it.py::test_cases[3] (call): assert 3 != 3" in line for line in lines[:file]) == 1, lines
    assert sum("FAILED test_it.py::test_error_before (setup): assert False" in line for line in lines[:file]) == 1
    assert all(line.startswith("[") for line in lines[:file]), lines
    assert any(re.fullmatch(r"FAILED .*test_it\.py::test_cases\[3\] - assert 3 != 3", line) for line in lines[file:]), (
        lines
    )


def test_the_exit_code_needs_pytests_consent() -> None:
    """Each of pytest's codes but 0 makes a run of good tests a failed one."""
    counter = Counter()
    counter.outcome["test_it.py::test_one"] = "passed"
    for code in pytest.ExitCode:
        lines, status = counter.closing(code, 1.0)
        assert status == (code != pytest.ExitCode.OK)
        assert lines[-1] == f"1 passed, {status} failed"
