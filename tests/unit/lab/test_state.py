# SPDX-License-Identifier: GPL-2.0
"""A running rack's state: only who holds the lock is alive, and what a killed one leaves is not believed."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from lab import state as state_module
from lab.description import RackDescription
from lab.errors import LabError
from lab.memory_map import Extent
from lab.state import HostState, RackState, StateDirectory, running_racks

STATE = RackState(
    RackDescription.load("four-nodes"),
    Path("/k/id"),
    Path("/logs"),
    "2025-01-01T00:00:00",
    {"alpha": HostState(1234, [Extent(0, 4096, 0)], {"dom0_ready_s": 5.5})},
)

HOLD = """
import sys
from dataclasses import replace
from pathlib import Path
from lab import state
state.state_directory = lambda: Path(sys.argv[1])
state.socket_directory = lambda name: Path(sys.argv[1]) / "s"
directory = state.StateDirectory("r")
directory.acquire()
(directory.path / "state.json").write_text("{}")
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> StateDirectory:
    monkeypatch.setattr(state_module, "state_directory", lambda: tmp_path)
    monkeypatch.setattr(state_module, "socket_directory", lambda name: tmp_path / "s")
    return StateDirectory("r")


def test_state_survives_json() -> None:
    assert RackState.from_json(STATE.to_json()) == STATE


def test_the_network_survives_json() -> None:
    state = replace(STATE, description=RackDescription.load("two-hosts"), hosts={})
    assert RackState.from_json(state.to_json()) == state


@pytest.mark.parametrize("text", ["", "{}", '{"format": 0}', '{"format": 1}', "[]"])
def test_foreign_state_is_refused(text: str) -> None:
    with pytest.raises(LabError, match="another version"):
        RackState.from_json(text)


def test_a_state_of_another_format_is_refused_though_it_has_all_keys() -> None:
    for number in (state_module.FORMAT - 1, state_module.FORMAT + 1):
        other = STATE.to_json().replace(f'"format": {state_module.FORMAT}', f'"format": {number}')
        assert other != STATE.to_json()
        with pytest.raises(LabError, match="another version"):
            RackState.from_json(other)


def test_one_owner_at_a_time(directory: StateDirectory) -> None:
    directory.acquire()
    directory.write(STATE)
    assert directory.read() == STATE
    assert running_racks() == ["r"]
    with pytest.raises(LabError, match="runs already"):
        StateDirectory("r").acquire()
    directory.release()
    assert running_racks() == []
    with pytest.raises(LabError, match="does not run"):
        directory.read()


def test_booting_rack_has_no_state_yet(directory: StateDirectory) -> None:
    directory.acquire()
    with pytest.raises(LabError, match="still booting"):
        directory.read()
    directory.release()


def test_killed_owner_leaves_nothing_to_believe(directory: StateDirectory, tmp_path: Path) -> None:
    owner = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(state_module.__file__).parents[1],
    )
    assert owner.stdout is not None
    assert owner.stdout.readline() == b"held\n"
    assert directory.alive()
    owner.kill()
    owner.communicate()
    assert not directory.alive()
    assert (directory.path / "state.json").exists()
    with pytest.raises(LabError, match="does not run"):
        directory.read()
    directory.acquire()
    assert not (directory.path / "state.json").exists()
    directory.release()
