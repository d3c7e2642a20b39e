# SPDX-License-Identifier: GPL-2.0
"""The demo's second program, played by a shell script: each run is noted, and the loop ends when it is told to."""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from benchmarks import debian_program
from benchmarks.debian_program import Companion, alignment, parse_runs, parse_teams
from lab.command import Done
from lab.errors import Malformed
from lab.patience import wait_for


def test_the_alignment_is_the_same_on_any_machine() -> None:
    assert hashlib.sha256(alignment().encode()).hexdigest()[:16] == "2919111dc907f815"
    lines = alignment(5, 40).splitlines()
    assert lines[0::2] == [">s0", ">s1", ">s2", ">s3", ">s4"]
    assert all(len(line) == 40 and set(line) <= set("ACGT") for line in lines[1::2])
    assert len(set(lines[1::2])) > 1


def test_runs_are_parsed_and_garbage_is_refused() -> None:
    digest = "a" * 64
    assert parse_runs(f"0 {digest}  -\n1 {digest}  -\n") == [(0, digest), (1, digest)]
    for bad in ("0\n", f"x {digest}\n", "0 short\n"):
        with pytest.raises(Malformed):
            parse_runs(bad)


@pytest.mark.parametrize(
    ("said", "sizes"),
    [
        ("", []),
        ("team=2\nteam=2\n", [2]),
        ("team=2\nteam=2\nteam=4\nteam=1\nteam=4\nteam=4\nteam=2\n", [2, 4, 2]),
        ("team=1\nsome words\nteam=16\nteam=team=3\nteam=1", [16]),
        ("team=2\nteam=4", [2]),
    ],
)
def test_teams_are_what_the_library_says(said: str, sizes: list[int]) -> None:
    """Each change once; neither threads that have left their team nor half a line is one."""
    assert parse_teams(said) == sizes


def test_a_team_is_awaited(monkeypatch: pytest.MonkeyPatch) -> None:
    """Until it is the newest; its place is told, and who waits in vain learns what there was."""
    monkeypatch.setattr(debian_program, "END_TIMEOUT", 0.1)
    monkeypatch.setattr(debian_program, "ASK_S", 0.05)
    said = ["team=4\nteam=2\n", "team=4\nteam=2\nteam=4\n"]
    companion = Companion(lambda command, timeout=60.0: Done(0, said.pop(0) if len(said) > 1 else said[0]))
    assert companion.await_team(4, "now") == 2
    with pytest.raises(TimeoutError, match=r"fasttreeMP with 2 threads now: .*\[4, 2, 4\]"):
        companion.await_team(2, "now")


def test_the_loop_runs_the_program_until_it_is_told_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real shell text, with a fasttreeMP that prints a checksum of its input."""
    directory = tmp_path / "work"
    program = tmp_path / "fasttreeMP"
    program.write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        f"[ -e {tmp_path}/fails ] && exit 3\n"
        '[ "$OMP_DISPLAY_AFFINITY" ] && for n in 2 10 1 3; do echo "$OMP_AFFINITY_FORMAT" | sed "s/%N/$n/" >&2; done\n'
        'sleep 0.05\nsha256sum <"$last"\n',
        encoding="utf-8",
    )
    program.chmod(0o755)
    if not shutil.which("setsid"):
        pytest.skip("needs setsid")
    command = debian_program.COMMAND.replace(debian_program.DIRECTORY, str(directory))
    monkeypatch.setattr(debian_program, "COMMAND", command)
    monkeypatch.setattr(debian_program, "DIRECTORY", str(directory))
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}"}

    def run(command: str, timeout: float = 60.0) -> Done:
        done = subprocess.run(
            ["sh", "-c", command], env=environment, capture_output=True, text=True, timeout=timeout, check=False
        )
        return Done(done.returncode, done.stdout, done.stderr)

    companion = Companion(run)
    assert companion.programs() == []
    companion.reference()
    assert companion.programs()[0].status == -1
    companion.start()
    try:
        noted = directory / "runs"
        with companion.paused():
            group = (directory / "group").read_text(encoding="utf-8").strip()

            def stopped() -> bool:
                """Each of them has got the signal, which takes a busy machine a moment, or had ended before.

                A shell in vfork(2) sleeps until its child has come to exec, which a child that is stopped does not.
                """
                words = ["ps", "-o", "pid=,ppid=,stat=", "--sid", group]
                listed = subprocess.run(words, capture_output=True, text=True, check=True).stdout
                states = [(pid, ppid, state[0]) for pid, ppid, state in map(str.split, listed.splitlines())]
                parents = {ppid for _, ppid, state in states if state == "T"}
                return bool(states) and all(
                    state in "TZ" or (state == "D" and pid in parents) for pid, _, state in states
                )

            wait_for("all of it stops", 120, stopped, 0.01)
            before = noted.read_text(encoding="utf-8") if noted.exists() else ""
            time.sleep(0.3)  # of six runs or so, if it did not stop
            assert before == (noted.read_text(encoding="utf-8") if noted.exists() else "")
        so_far = noted.read_text(encoding="utf-8") if noted.exists() else ""
        assert companion.await_team(3, "at the end") >= 2
        wait_for("it goes on", 120, lambda: noted.exists() and noted.read_text(encoding="utf-8") != so_far, 0.01)
        (tmp_path / "fails").touch()
        wait_for("it fails", 120, lambda: "\n3 " in noted.read_text(encoding="utf-8"), 0.01)
        companion.finish()
        runs = companion.programs()
        assert runs[-1].status == 3 and runs[-1].answer != runs[-1].reference
        runs = [run for run in runs if run.status != 3]
        assert runs and all(run.status == 0 and run.answer == run.reference for run in runs)
        assert companion.teams() == [2, 10, 3] * len(runs)
    finally:
        run(f"kill -s KILL -- -$(cat {directory}/group)")  # else a failure would leave the loop running
