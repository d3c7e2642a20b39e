# SPDX-License-Identifier: GPL-2.0
"""The closing lines of ``make test``: what is counted, and that nothing but success looks like one."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from lab.pipeline.paths import REPO
from lab.pipeline.test import Counter

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


def close(folder: Path, *arguments: str) -> tuple[int, list[str]]:
    """Exit code and output of lab.pipeline.test in a repository that has no tests but ours."""
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "lab.pipeline.test",
            "-c",
            str(REPO / "pyproject.toml"),
            f"--rootdir={folder}",
            *arguments,
        ],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(REPO),
            "XENUMA_REPO": str(folder),
            "PYTEST_ADDOPTS": "-p no:cacheprovider",
        },
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.returncode, done.stdout.splitlines()


def test_functions_cases_and_checks_are_three_numbers(tmp_path: Path) -> None:
    """The last line counts pytest's items, alone and in its form; the line before says the rest."""
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    code, lines = close(tmp_path, str(tmp_path))
    assert lines[-1] == "7 passed, 8 failed, 1 skipped"
    assert lines[-2] == "13 test functions with 16 cases; programs that they ran made 37 checks"
    assert code == 1


@pytest.mark.parametrize(
    ("text", "arguments", "last"),
    [
        ("def test_one():\n    pass\n", [], "1 passed, 0 failed"),
        (
            "import pytest\ndef test_one():\n    pass\ndef test_two():\n    pytest.skip()\n",
            [],
            "1 passed, 0 failed, 1 skipped",
        ),
        ("import pytest\ndef test_one():\n    pytest.skip()\n", [], "0 passed, 1 failed, 1 skipped"),
        ("", [], "0 passed, 1 failed"),
        ("nonsense", [], "0 passed, 1 failed"),
        ("def test_one():\n    pass\n", ["nonesuch.py"], "0 passed, 1 failed"),
        ("def test_one():\n    pass\n", ["--nonesuch"], "0 passed, 1 failed"),
        ("def test_one():\n    pass\ndef test_two():\n    raise KeyboardInterrupt\n", [], "1 passed, 1 failed"),
        (
            "import pytest\ndef test_one():\n    pass\ndef test_two():\n    pytest.exit('no', 0)\n",
            [],
            "1 passed, 1 failed",
        ),
    ],
    ids=["good", "skip", "only a skip", "nothing", "no Python", "no file", "misused", "interrupted", "left"],
)
def test_only_success_looks_like_it(tmp_path: Path, text: str, arguments: list[str], last: str) -> None:
    (tmp_path / "test_it.py").write_text(text, encoding="utf-8")
    code, lines = close(tmp_path, str(tmp_path / "test_it.py"), *arguments)
    assert lines[-1] == last, lines
    assert code == (", 0 failed" not in last)


def test_the_exit_code_needs_pytests_consent() -> None:
    """Each of pytest's codes but 0 makes a run of good tests a failed one."""
    counter = Counter()
    counter.outcome["test_it.py::test_one"] = "passed"
    for code in pytest.ExitCode:
        lines, status = counter.closing(code, 1.0)
        assert status == (code != pytest.ExitCode.OK)
        assert lines[-1] == f"1 passed, {status} failed"
