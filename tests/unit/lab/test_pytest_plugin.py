# SPDX-License-Identifier: GPL-2.0
"""A test that failed is repeated only if the console says that the emulator lost a guest; all fixtures are made anew."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from lab.pipeline.paths import REPO

CONFTEST = """
from pathlib import Path
import pytest
from lab import pytest_plugin
from lab.pytest_plugin import pytest_runtest_protocol, pytest_terminal_summary

boots = []

@pytest.fixture(scope="session")
def rack(tmp_path_factory):
    logs = tmp_path_factory.mktemp("logs")
    boots.append(logs)
    pytest_plugin._log_directories.append(logs)
    yield logs
    boots.append("off")

@pytest.fixture(scope="module")
def guest(rack):
    return rack / "alpha-console.log"
"""

LOSES = """
import pytest

def test_before(guest):
    guest.write_text("booted\\n")

{mark}
def test_it(guest, request):
    if len(request.session.config.rootpath.joinpath("tries").read_text()) < {fails}:
        with request.session.config.rootpath.joinpath("tries").open("a") as tries:
            tries.write("x")
        with guest.open("a") as log:
            log.write("{console}\\n")
        assert False

def test_after(guest):
    assert "Triple" not in (guest.read_text() if guest.exists() else "")
"""

CASES = {
    "a guest is lost once": ("", 1, "(XEN) d1v0 Triple fault", (3, 0), 1),
    "lost again; the next test is spared": ("", 9, "(XEN) d1v0 Triple fault", (2, 1), 2),
    "never that test, but the next one": ("@pytest.mark.once", 1, "(XEN) d1v0 Triple fault", (2, 1), 1),
    "it fails and no guest is lost": ("", 1, "(XEN) all is well", (2, 1), 0),
    "nothing fails": ("", 0, "", (3, 0), 0),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_repetition(tmp_path: Path, case: tuple[str, int, str, tuple[int, int], int]) -> None:
    """Passed and failed tests, and how many were run twice; never more than MOST_REPEATED."""
    mark, fails, console, counts, repeated = case
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    text = LOSES.format(mark=mark, fails=fails, console=console)
    (tmp_path / "test_it.py").write_text(text, encoding="utf-8")
    (tmp_path / "tries").write_text("", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPO)},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    found = {word: int(number) for number, word in re.findall(r"(\d+) (passed|failed)", done.stdout)}
    assert (found.get("passed", 0), found.get("failed", 0)) == counts, done.stdout
    assert done.stdout.count("run twice, a guest was lost") == repeated, done.stdout
    assert not repeated or "AssertionError" in done.stdout, "the first failure is not shown"
