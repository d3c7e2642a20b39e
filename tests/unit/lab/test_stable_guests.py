# SPDX-License-Identifier: GPL-2.0
"""Guests that live for many tests: one that died or started anew fails the test after which that is found."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from lab.command import Done
from lab.pipeline.paths import REPO
from tests.e2e import conftest

# The fixtures of tests/e2e on a made-up host. `guests` holds the handles by configuration, in the order of their starts.
CONFTEST = """
import pytest
from lab.command import Done, run_in
from lab.elastic_guest import ElasticGuest
from lab.errors import MachineLostError
from tests.e2e.conftest import four, none_is_lost, pair, stable

started = []

class Guest(ElasticGuest):
    def __init__(self, name, host):
        super().__init__(name, run_in(host), run_in(self))
        self.boot = "first"
        self.alive = True
        self.destroyed = 0
        self.numactl = "node 0 cpus: 0\\nnode 0 size: 1 MB\\nnode 0 free: 1 MB\\n"
        self.dmesg = ""

    def run(self, command, timeout=60.0, check=False):
        if not self.alive:
            raise MachineLostError("connection lost")
        words = {"dmesg": self.dmesg, "numactl -H": self.numactl}
        return Done(0, self.boot + "\\n" if "boot_id" in command else words[command], "")

    def destroy(self):
        self.destroyed += 1

class Host:
    def start_guest(self, config):
        started.append(Guest(config.name, self))
        return started[-1]
    def run(self, command, timeout=60.0):
        return Done(1, "", "it will not go")

@pytest.fixture(scope="session")
def host():
    return Host()
"""

TESTS = """
from conftest import started

def test_starts_one(pair):
    assert len(started) == 1

def test_gets_the_same(pair):
    assert len(started) == 1

def test_it_dies(pair):
    started[-1].alive = False

def test_gets_another(pair):
    assert len(started) == 2 and started[0].destroyed == 1

def test_it_starts_anew(pair):
    started[-1].boot = "second"

def test_gets_a_third(pair):
    assert len(started) == 3 and started[1].destroyed == 1

def test_without_guests():
    started[-1].alive = False
    started[-1].alive = True

def test_leaves_a_dead_one(stable):
    started[-1].alive = False
    stable.leave("guest2.cfg", ask=False)

def test_another_configuration(four):
    assert [guest.name for guest in started] == ["guest2.cfg"] * 3 + ["guest4.cfg"]
    started[-1].dmesg = "BUG: of a guest\\n"

def test_only_one_at_a_time(pair, stable):
    assert started[3].destroyed == 1 and list(stable.guests) == ["guest2.cfg"]
    assert stable.asked == 1 and stable.complaints == ["BUG: of a guest"]
    started[-1].numactl += started[-1].numactl.replace("node 0", "node 1")

def test_a_node_cannot_be_detached(pair):
    pass

def test_that_guest_is_replaced(pair):
    assert started[-2].destroyed == 1

def test_it_dies_and_the_test_fails(pair):
    started[-1].alive = False
    assert 1 == 2

def test_that_one_is_replaced_too(pair):
    assert started[-2].destroyed == 1
"""

WANTED = {
    "test_it_dies": {"PASSED", "ERROR"},
    "test_it_starts_anew": {"PASSED", "ERROR"},
    "test_a_node_cannot_be_detached": {"ERROR"},
    "test_it_dies_and_the_test_fails": {"FAILED", "ERROR"},
}


def test_a_guest_that_nobody_left_lives(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(CONFTEST, encoding="utf-8")
    (tmp_path / "test_it.py").write_text(TESTS, encoding="utf-8")
    output = subprocess.run(
        [sys.executable, "-m", "pytest", "-rA", "-p", "no:cacheprovider", f"--rootdir={tmp_path}", str(tmp_path)],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(REPO), "PYTEST_ADDOPTS": "", "COLUMNS": "300"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    ).stdout
    found: dict[str, set[str]] = {}
    for outcome, name in re.findall(r"^(PASSED|FAILED|ERROR) test_it\.py::(\w+)", output, re.MULTILINE):
        found.setdefault(name, set()).add(outcome)
    names = re.findall(r"^def (test_\w+)", TESTS, re.MULTILINE)
    assert found == {name: WANTED.get(name, {"PASSED"}) for name in names}, output
    assert "guest guest2.cfg: it does not answer: connection lost" in output
    assert "guest guest2.cfg: it has started anew" in output


def test_a_baseline_is_that_of_the_guests_that_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is asked for once, and again when other guests run or one has started anew; not when that could not be done."""
    answers: list[dict[int, int] | None] = [{0: 1}, {0: 2}, None, {0: 3}]

    def settled(run: object) -> dict[int, int]:
        if (answer := answers.pop(0)) is None:
            raise TimeoutError("not at rest")
        return answer

    monkeypatch.setattr(conftest, "settled_free_pages", settled)
    baseline = conftest.Baseline(lambda command, timeout=60.0: Done(0, ""))
    for lives, pages in ((["a"], 1), (["a"], 1), (["b"], 2), (["b"], 2)):
        assert baseline.pages(lives) == {0: pages}
    with pytest.raises(TimeoutError):
        baseline.pages([])
    assert baseline.pages([]) == baseline.pages([]) == {0: 3}


@pytest.mark.parametrize(("soak", "left"), [(False, ["old"]), (True, ["fresh", "old", "soak"])])
def test_some_tests_are_for_soak_and_are_counted_elsewhere(
    monkeypatch: pytest.MonkeyPatch, soak: bool, left: list[str]
) -> None:
    """pytest hears of those that are left out, so the closing line does."""
    monkeypatch.setattr(conftest, "SOAK", soak)
    items: Any = [
        SimpleNamespace(name=name, get_closest_marker=lambda mark, name=name: name == mark or None)
        for name in ("fresh", "old", "soak")
    ]
    deselected: list[str] = []
    hook = SimpleNamespace(pytest_deselected=lambda items: deselected.extend(item.name for item in items))
    config: Any = SimpleNamespace(hook=hook)
    conftest.pytest_collection_modifyitems(config, items)
    assert [item.name for item in items] == left
    assert sorted(deselected + left) == ["fresh", "old", "soak"]
