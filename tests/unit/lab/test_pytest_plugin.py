# SPDX-License-Identifier: GPL-2.0
"""What is logged during a test and was not announced fails that test, and no other; no test is run a second time."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from lab import pytest_plugin
from lab.pipeline.paths import REPO

# A rack that is a folder of logs. `says` writes a line to one of them.
CONFTEST = """
import os, time
from types import SimpleNamespace
import pytest
from lab import pytest_plugin
from lab.pytest_plugin import (
    expects, pytest_runtest_call, pytest_runtest_makereport, pytest_runtest_setup, pytest_runtest_teardown
)

pytest_plugin.ANNOUNCED_S = 1.0
booted = []
slept = set()

def sleep(seconds):
    slept.add(os.environ["PYTEST_CURRENT_TEST"].split("::")[1].split()[0])
    time.sleep(seconds)

pytest_plugin.time = SimpleNamespace(monotonic=time.monotonic, sleep=sleep)

class Booted:
    def __init__(self, logs):
        self.logs = logs
        self.wrong_ends = []
        self.says("xenuma: dom0 ready")
    def says(self, line, log="alpha-console"):
        with (self.logs / f"{log}.log").open("a") as file:
            file.write(line + "\\n")
    def __enter__(self):
        return self
    def __exit__(self, *reason):
        booted.append("off")
        with (self.logs / "alpha-console.log").open("a") as file:
            file.write(LAST_WORDS)
        self.wrong_ends = WRONG_ENDS

LAST_WORDS = "(XEN) Hardware Dom0 halted: halting machine"
WRONG_ENDS = []

class Boots:
    @staticmethod
    def boot(description):
        booted.append("on")
        return Booted(LOGS)

@pytest.fixture(scope="session", autouse=True)
def places(tmp_path_factory):
    global LOGS
    LOGS = tmp_path_factory.mktemp("logs")

pytest_plugin.Rack = Boots
from lab.pytest_plugin import rack

@pytest.fixture
def says(rack):
    return rack.says
"""

TESTS = """
import pathlib, threading
import pytest

LOST = "(XEN) d1v0 Triple fault - invoking HVM shutdown action 1"
TRIES = pathlib.Path(__file__).parent / "tries"

def test_content(says):
    says("all is well")

def test_triple_fault(says):
    with TRIES.open("a") as tries:
        tries.write("x")
    says(LOST)

def test_after_it(says):
    pass

def test_guest_complains(says):
    says("WARNING: CPU: 0 PID: 1 at mm/x.c:1", "alpha-guest2")

def test_qemu_is_no_console(says):
    says("BUG: ", "alpha-qemu")

def test_fails_by_itself(says):
    says(LOST)
    assert 1 == 2

def test_skipped(says):
    says(LOST)
    pytest.skip("no reason")

def test_fails_and_nothing_is_logged(says):
    assert 3 == 4

@pytest.fixture
def noisy(says):
    says("BUG: in setup")
    yield
    says("BUG: in teardown")

def test_fixture(noisy):
    pass

def test_announced(says, expects):
    expects("Triple fault")
    says(LOST)

def test_announced_and_late(says, expects):
    expects("Triple fault")
    threading.Timer(0.3, says, [LOST]).start()

def test_other_while_it_waits(says, expects):
    expects("Triple fault")
    threading.Timer(0.2, says, ["BUG: meanwhile"]).start()

def test_announced_in_vain(says, expects):
    expects("Triple fault")

def test_announced_before_only(says):
    says(LOST)

def test_announced_is_not_all(says, expects):
    expects("Triple fault")
    says(LOST)
    says("BUG: other")

def test_two_announced_one_seen(says, expects):
    expects("Triple fault")
    expects("Kernel panic")
    says(LOST)

def test_announced_by_a_test_that_fails(says, expects):
    expects("Kernel panic")
    says(LOST)
    assert 5 == 6

@pytest.fixture
def noisy_end(says, expects):
    expects("BUG: in teardown")
    says("BUG: in teardown")
    yield
    says("BUG: in teardown")

def test_announced_until_the_end(noisy_end):
    pass

def test_after_all(says):
    from conftest import slept
    assert slept == {
        "test_announced_and_late", "test_other_while_it_waits", "test_announced_in_vain", "test_two_announced_one_seen"
    }
"""

ANNOUNCED_BY_NONE = "announced by none"

# Outcomes of each test; and what its report says.
WANTED = {
    "test_content": ("PASSED", []),
    "test_triple_fault": ("FAILED", [ANNOUNCED_BY_NONE, "alpha-console.log: (XEN) d1v0 Triple fault"]),
    "test_after_it": ("PASSED", []),
    "test_guest_complains": ("FAILED", ["alpha-guest2.log: WARNING: CPU"]),
    "test_qemu_is_no_console": ("PASSED", []),
    "test_fails_by_itself": ("FAILED", ["assert 1 == 2", ANNOUNCED_BY_NONE]),
    "test_skipped": ("FAILED", [ANNOUNCED_BY_NONE]),
    "test_fails_and_nothing_is_logged": ("FAILED", ["assert 3 == 4"]),
    "test_fixture": ("ERROR", ["BUG: in setup"]),
    "test_announced": ("PASSED", []),
    "test_announced_and_late": ("PASSED", []),
    "test_other_while_it_waits": ("FAILED", ["BUG: meanwhile"]),
    "test_announced_in_vain": ("FAILED", ["announced, and on no console within 1 s: Triple fault"]),
    "test_announced_before_only": ("FAILED", [ANNOUNCED_BY_NONE]),
    "test_announced_is_not_all": ("FAILED", ["BUG: other"]),
    "test_two_announced_one_seen": ("FAILED", ["on no console within 1 s: Kernel panic"]),
    "test_announced_by_a_test_that_fails": ("FAILED", ["assert 5 == 6", ANNOUNCED_BY_NONE]),
    "test_announced_until_the_end": ("PASSED", []),
    "test_after_all": ("PASSED", []),
}


def run(folder: Path, conftest: str, tests: str) -> str:
    """What pytest prints about these tests, in a process of its own."""
    (folder / "conftest.py").write_text(conftest, encoding="utf-8")
    (folder / "test_it.py").write_text(tests, encoding="utf-8")
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-v", "-p", "no:cacheprovider", f"--rootdir={folder}", str(folder)],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(REPO), "PYTEST_ADDOPTS": "", "COLUMNS": "200"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    ).stdout


@pytest.fixture(scope="module")
def session(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, str]:
    """Folder and output of a run of all of TESTS."""
    folder = tmp_path_factory.mktemp("session")
    return folder, run(folder, CONFTEST, TESTS)


def outcomes(output: str) -> dict[str, set[str]]:
    """What the summary says of each test."""
    found: dict[str, set[str]] = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR|SKIPPED) test_it\.py::(\w+)", output, re.MULTILINE):
        found.setdefault(name, set()).add(outcome)
    return found


def report(output: str, name: str) -> str:
    """What is shown of the failures of a test."""
    parts = re.split(r"^_{3,} (?:ERROR at \w+ of )?(\w+) _{3,}$", output.partition("short test summary")[0], flags=re.M)
    return "".join(text for title, text in zip(parts[1::2], parts[2::2], strict=True) if title == name)


def test_the_table_has_each_test() -> None:
    assert set(WANTED) == set(re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE))


@pytest.mark.parametrize("name", WANTED)
def test_outcome(session: tuple[Path, str], name: str) -> None:
    outcome, words = WANTED[name]
    output = session[1]
    assert outcomes(output)[name] == {outcome}, output
    said = report(output, name)
    assert all(word in said for word in words), said
    assert (ANNOUNCED_BY_NONE in said) == any(
        ANNOUNCED_BY_NONE in word or "BUG" in word or "WARN" in word for word in words
    )


def test_fixtures_of_a_test_count_for_it(session: tuple[Path, str]) -> None:
    """What is logged while they are made, and while they are undone: two errors, each with its own line."""
    said = report(session[1], "test_fixture")
    assert (
        said.count("    alpha-console.log: BUG: in setup") == said.count("    alpha-console.log: BUG: in teardown") == 1
    )


def test_consoles_are_in_the_report_of_a_failed_test(session: tuple[Path, str]) -> None:
    said = report(session[1], "test_fails_and_nothing_is_logged")
    assert "last lines of alpha-console.log" in said
    assert "xenuma: dom0 ready" in said
    passes = session[1].partition("= PASSES =")[2]
    assert passes and "last lines of" not in passes


def test_none_is_run_twice(session: tuple[Path, str]) -> None:
    folder, output = session
    assert (folder / "tries").read_text(encoding="utf-8") == "x"
    assert len(re.findall(r"^test_it\.py::test_triple_fault ", output, re.MULTILINE)) == 1


@pytest.mark.parametrize(
    ("words", "outcome"), [("(XEN) Hardware Dom0 halted", {"PASSED"}), ("(XEN) Panic on CPU 0:", {"PASSED", "ERROR"})]
)
def test_the_last_words_of_a_rack(tmp_path: Path, words: str, outcome: set[str]) -> None:
    """What is logged when the rack goes, even without a line's end, is an error of the last test."""
    conftest = re.sub(r"^LAST_WORDS = .*$", f'LAST_WORDS = "{words}"', CONFTEST, flags=re.MULTILINE)
    output = run(tmp_path, conftest, "def test_last(says):\n    pass\n")
    assert outcomes(output)["test_last"] == outcome, output


def test_a_rack_that_does_not_power_off(tmp_path: Path) -> None:
    conftest = CONFTEST.replace("WRONG_ENDS = []", "WRONG_ENDS = ['host alpha did not power off']")
    output = run(tmp_path, conftest, "def test_last(says):\n    pass\n")
    assert outcomes(output)["test_last"] == {"PASSED", "ERROR"}, output
    assert "host alpha did not power off" in report(output, "test_last")


def test_an_end_that_is_logged_fails_a_test_that_passed(tmp_path: Path) -> None:
    tests = "import pytest\n@pytest.fixture\ndef noisy(says):\n    yield\n    says('BUG: in teardown')\n"
    tests += "def test_first(noisy):\n    pass\ndef test_second(says):\n    pass\n"
    output = run(tmp_path, CONFTEST, tests)
    assert outcomes(output) == {"test_first": {"PASSED", "ERROR"}, "test_second": {"PASSED"}}, output


def test_a_failure_shows_the_last_lines_of_the_newest_rack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each of its logs, the last ones."""
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        lines = "".join(f"{name} {number}\n" for number in range(100))
        (tmp_path / name / "alpha-console.log").write_text(lines, encoding="utf-8")
        (tmp_path / name / "empty.log").touch()
    monkeypatch.setattr(pytest_plugin, "_log_directories", [tmp_path / "first", tmp_path / "second"])
    for failed in (True, False):
        report = SimpleNamespace(failed=failed, sections=[("stdout", "said")])
        hook = pytest_plugin.pytest_runtest_makereport()
        next(hook)
        with pytest.raises(StopIteration):
            hook.send(cast(pytest.TestReport, report))
        shown = "\n".join(f"second {number}" for number in range(100 - pytest_plugin.CONSOLE_LINES, 100))
        assert report.sections == [("stdout", "said"), *[("last lines of alpha-console.log", shown)] * failed]


def test_what_is_announced_may_take_longer_beside_another_rack(monkeypatch: pytest.MonkeyPatch) -> None:
    passed = [0.0]

    def sleep(seconds: float) -> None:
        passed[0] += seconds

    watch = pytest_plugin.Watch()
    watch.announce("Kernel panic")
    monkeypatch.setattr(pytest_plugin, "_watch", watch)
    monkeypatch.setattr(pytest_plugin, "time", SimpleNamespace(monotonic=lambda: passed[0], sleep=sleep))
    monkeypatch.setenv("XENUMA_TIME_SCALE", "2")
    phase = pytest_plugin._attributed(cast(pytest.Item, None), "call")
    next(phase)
    with pytest.raises(pytest.fail.Exception, match="announced, and on no console within 60 s: Kernel panic"):
        phase.send(None)
    assert 60 <= passed[0] < 61
