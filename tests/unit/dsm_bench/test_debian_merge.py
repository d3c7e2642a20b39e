# SPDX-License-Identifier: GPL-2.0
"""msgmerge as guests on several hosts have it: what is put there, and that its answer is that of one thread, with a team."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import debian_merge
from benchmarks.debian_program import parse_teams
from lab.errors import CommandFailedError


class PlayedGuest:
    """A folder that is a guest's."""

    def __init__(self) -> None:
        self.found: dict[str, str] = {}

    def put(self, source: Path, destination: str) -> None:
        """Noted."""
        self.found = {file.name: destination for file in source.iterdir()}


@pytest.fixture(scope="module")
def installed(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, PlayedGuest]:
    folder, guest = tmp_path_factory.mktemp("merge") / "all", PlayedGuest()
    played: Any = guest
    debian_merge.install(played, folder)
    return folder, guest


def test_catalogues_are_the_same_on_any_machine() -> None:
    old, new = debian_merge.catalogues()
    assert hashlib.sha256((old + new).encode()).hexdigest()[:16] == "90704f9e73cea164"
    assert debian_merge.catalogues(seed=2) != (old, new)
    more = debian_merge.catalogues(domains=2)
    assert all(two.startswith(one) and two.count('domain "') == 1 for two, one in zip(more, (old, new), strict=True))


def test_what_is_put_there(installed: tuple[Path, PlayedGuest]) -> None:
    """All that it needs but what a guest has: its runtime must be the one that is named."""
    _, guest = installed
    names = set(guest.found)
    assert set(guest.found.values()) == {debian_merge.FOLDER}
    assert {"msgmerge", debian_merge.OLD, debian_merge.NEW} <= names
    assert any(name.startswith("libgettextsrc") for name in names)
    assert not any(name.startswith(("libgomp", "libc.so", "libm.so", "ld-linux")) for name in names)


def test_a_team_finds_what_one_thread_finds(installed: tuple[Path, PlayedGuest]) -> None:
    """On the CPUs that there are; by the library that is named, here this machine's own."""
    folder = str(installed[0])

    def run(command: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=120)

    alone = run(debian_merge.command(folder=folder))
    assert alone.stdout.count("#, fuzzy") > debian_merge.MESSAGES // 3 and alone.stderr == ""
    own = sorted(os.sched_getaffinity(0))[:2]
    team = run(debian_merge.command(own, folder, "/nowhere"))
    assert team.stdout == alone.stdout
    assert parse_teams(team.stderr)[:1] == ([2] if len(own) == 2 else [])


def test_domains(tmp_path: Path) -> None:
    """A long run writes each domain as one thread does, and what it finds for one is that one's own."""
    played: Any = PlayedGuest()
    debian_merge.install(played, tmp_path / "all", domains=5)
    folder = str(tmp_path / "all")
    own = sorted(os.sched_getaffinity(0))[:2]
    alone, team = (
        subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, timeout=120).stdout
        for command in (debian_merge.command(folder=folder), debian_merge.command(own, folder, "/nowhere"))
    )
    assert alone == team
    first, *others = alone.split('domain "d')
    assert len(others) == 4 and all(each.count("#, fuzzy") > debian_merge.MESSAGES // 3 for each in (first, *others))


def test_a_program_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandFailedError, match=r"ldd .*/none"):
        debian_merge.files(tmp_path / "none")


def test_the_command_names_the_runtime() -> None:
    words = debian_merge.command((0, 1))
    assert words.startswith("taskset -c 0,1 env OMP_PLACES=threads ")
    assert " LD_LIBRARY_PATH=/opt/xenuma/lib:/tmp/msgmerge /tmp/msgmerge/msgmerge " in words
    assert debian_merge.command().startswith("env OMP_NUM_THREADS=1 LD_LIBRARY_PATH=/tmp/msgmerge /tmp/msgmerge/msgmerge ")
