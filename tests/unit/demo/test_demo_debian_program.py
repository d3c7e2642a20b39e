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
from benchmarks.debian_program import Companion, CompletedRun, alignment, parse_runs
from benchmarks.elastic_guest import Done, wait_for
from benchmarks.guestview import Malformed


def test_the_alignment_is_the_same_on_any_machine() -> None:
    assert hashlib.sha256(alignment().encode()).hexdigest()[:16] == "2919111dc907f815"
    lines = alignment(5, 40).splitlines()
    assert lines[0::2] == [">s0", ">s1", ">s2", ">s3", ">s4"]
    assert all(len(line) == 40 and set(line) <= set("ACGT") for line in lines[1::2])
    assert len(set(lines[1::2])) > 1


def test_runs_are_parsed_and_garbage_is_refused() -> None:
    digest = "a" * 64
    good = f"0 {digest} 100.5 107.25 4\n"
    assert parse_runs(good + good.replace("0 ", "1 ", 1)) == [
        CompletedRun(0, digest, 100.5, 107.25, 4),
        CompletedRun(1, digest, 100.5, 107.25, 4),
    ]
    words = good.split()
    for bad in (
        *(" ".join([*words[:n], *words[n + 1 :]]) for n in range(5)),
        f"x{good}",
        good.replace("a", "", 1),
        f"{good[:-1]} 1",
    ):
        with pytest.raises(Malformed):
            parse_runs(bad)


@pytest.mark.parametrize(("begun", "ended", "enough"), [(99, 101, False), (100, 101, True), (99, 99.5, False)])
def test_a_run_of_a_phase_begins_in_it(
    monkeypatch: pytest.MonkeyPatch, begun: float, ended: float, enough: bool
) -> None:
    """A run that was under way does not count, nor does a line that is half written."""
    monkeypatch.setattr(debian_program, "END_TIMEOUT", 0.1)
    monkeypatch.setattr(debian_program, "ASK_S", 0.05)
    text = f"0 {'a' * 64} {begun}.0 {ended}.0 2\n".replace(".5.0", ".5") + "0 aaa"
    companion = Companion(lambda command, timeout=60.0: Done(0, text))
    if enough:
        companion.await_run(100, "now")
    else:
        with pytest.raises(TimeoutError, match="a run of fasttreeMP now"):
            companion.await_run(100, "now")


def test_the_loop_runs_the_program_until_it_is_told_to_stop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The real shell text, with a fasttreeMP that prints a checksum of its input."""
    directory = tmp_path / "work"
    program = tmp_path / "fasttreeMP"
    program.write_text(
        "#!/bin/sh\nfor last; do :; done\n"
        f"[ -e {tmp_path}/fails ] && exit 3\n"
        '[ "$OMP_DISPLAY_AFFINITY" ] && for n in 2 10 1; do echo "$OMP_AFFINITY_FORMAT" | sed "s/%N/$n/" >&2; done\n'
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
    noted = directory / "runs"
    with companion.paused():
        group = (directory / "group").read_text(encoding="utf-8").strip()

        def stopped() -> bool:
            """Each of them has got the signal, which takes a busy machine a moment."""
            listed = subprocess.run(["ps", "-o", "stat=", "--sid", group], capture_output=True, text=True, check=True)
            return bool(listed.stdout) and all(state.startswith("T") for state in listed.stdout.split())

        wait_for("all of it stops", 20, stopped, 0.01)
        before = noted.read_text(encoding="utf-8") if noted.exists() else ""
        time.sleep(0.3)  # of six runs or so, if it did not stop
        assert before == (noted.read_text(encoding="utf-8") if noted.exists() else "")
    so_far = noted.read_text(encoding="utf-8") if noted.exists() else ""
    now = time.time()
    companion.await_run(now, "that began now")
    assert parse_runs(noted.read_text(encoding="utf-8"))[-1].begun >= now
    wait_for("it goes on", 20, lambda: noted.exists() and noted.read_text(encoding="utf-8") != so_far, 0.01)
    (tmp_path / "fails").touch()
    companion.await_run(time.time(), "that fails")
    companion.finish()
    *runs, last = companion.programs()
    assert last.status == 3 and last.answer != last.reference and last.threads == 0
    runs = [run for run in runs if run.status != 3]
    assert runs and all(r.status == 0 and r.answer == r.reference for r in runs)
    assert all(r.threads == 10 and now - 60 < r.begun < r.ended <= time.time() for r in runs), runs
