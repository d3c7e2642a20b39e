# SPDX-License-Identifier: GPL-2.0
"""An hour of load: how it is divided, its jobs on CPUs of this machine, which notice what is wrong, and its figures."""

from __future__ import annotations

import dataclasses
import os
import re
import subprocess
from pathlib import Path

import pytest

from benchmarks.hour import JOBS, Job, Turn, longest_ms, metrics, plan, rounds_of, script
from benchmarks.results import Result, encode, host_info, now, problems
from lab.errors import LabError, Malformed

PAGES, PIPE, PROCESSES, FILES, CALLS = JOBS
CPUS = sorted(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("said", "turns"),
    [(None, [900.0] * 4), ("", [900.0] * 4), ("5", [300.0]), ("0.5", [30.0]), ("20", [1200.0]), ("23", [690.0] * 2)],
)
def test_turns(said: str | None, turns: list[float]) -> None:
    assert plan(said) == turns


@pytest.mark.parametrize("said", ["0", "-5", "an hour", "nan", "1441", "inf"])
def test_no_time(said: str) -> None:
    with pytest.raises(LabError, match="want minutes"):
        plan(said)


# ---- Jobs ----

OURS = {  # what is played
    "dsm_torture": '#!/bin/sh\necho "torture $*" >>{words}\necho pages\n',
    "span_latency": '#!/bin/sh\necho "latency $*" >>{words}\n',
}


@pytest.fixture
def place(tmp_path: Path) -> Path:
    for name in ("bin", "files", "programs"):
        (tmp_path / name).mkdir()
    for name, text in OURS.items():
        put(tmp_path / "programs" / name, text.format(words=tmp_path / "words"))
    return tmp_path


def put(file: Path, text: str) -> None:
    file.write_text(text, encoding="utf-8")
    file.chmod(0o755)


def command_of(place: Path, job: Job, turn: int, rounds: int) -> str:
    """It is told to end after so many good rounds."""
    stop = place / "stop"
    once = dataclasses.replace(job, body=f"{job.body} && if [ $n -ge {rounds - 1} ]; then : >{stop}; fi")
    places = {
        "programs": str(place / "programs"),
        "files": str(place / "files"),
        "source": "/usr/bin/gzip",
        "go": str(place / "go"),
        "stop": str(stop),
    }
    return script(once, turn, home=CPUS[0], far=CPUS[-1], slow_us=77, places=places)


def run(place: Path, job: Job, turn: int = 3, rounds: int = 1) -> subprocess.CompletedProcess[str]:
    """It may begin at once."""
    (place / "go").touch()
    command = ["sh", "-c", command_of(place, job, turn, rounds)]
    env = {**os.environ, "PATH": f"{place / 'bin'}:{os.environ['PATH']}"}
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=env, cwd=place)


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_is_right(place: Path, job: Job) -> None:
    done = run(place, job, rounds=2)
    assert (done.returncode, done.stdout, done.stderr) == (0, "2\n", ""), done
    assert rounds_of(job, done.returncode, done.stdout) == 2


@pytest.mark.parametrize("job", JOBS, ids=lambda job: job.name)
def test_a_job_that_is_told_to_end_before_it_begins(place: Path, job: Job) -> None:
    (place / "stop").touch()
    assert run(place, job).stdout == "0\n" and not (place / "words").exists()


def test_a_job_that_may_not_begin(place: Path) -> None:
    """Whenever it is begun: it waits, and does its first round then."""
    with subprocess.Popen(["sh", "-c", command_of(place, PAGES, 3, 1)], stdout=subprocess.PIPE, text=True) as job:
        with pytest.raises(subprocess.TimeoutExpired):
            job.wait(1)
        assert not (place / "words").exists()
        (place / "go").touch()
        assert job.communicate(timeout=300)[0] == "1\n" and (place / "words").exists()


def test_what_our_programs_are_told(place: Path) -> None:
    """Other seeds in each round of each turn; each kind of call from each side."""
    home, far = CPUS[0], CPUS[-1]
    run(place, PAGES, rounds=2)
    run(place, PAGES, turn=4)  # "stop" is still there
    (place / "stop").unlink()
    run(place, PAGES, turn=4)
    told = (place / "words").read_text().splitlines()
    assert [line.rpartition("--seed=")[2] for line in told] == ["3000", "3001", "4000"]
    assert all(f"--cpus={home},{far} --nodes=0,1 " in line and " --slow-us=77 " in line for line in told)
    (place / "stop").unlink()
    (place / "words").unlink()
    run(place, CALLS)
    told = (place / "words").read_text().splitlines()
    assert told == [
        f"latency --what={what} --cpus={cpus} --rounds=20"
        for what, cpus in (
            ("membarrier", f"{home},{far}"),
            ("membarrier", f"{far},{home}"),
            ("wake", f"{home},{far}"),
            ("wake", f"{far},{home}"),
            ("version", far),
            ("status", home),
            ("status", far),
        )
    ]


@pytest.mark.parametrize(
    ("job", "where"),
    [
        (PIPE, ["8 gzip", "7 gzip", "8 md5sum", "7 md5sum"]),
        (FILES, ["7 split", "8 mv", "8 cmp", "8 cp", "7 cp", "7 diff", "8 diff"]),
    ],
)
def test_where_a_job_works(job: Job, where: list[str]) -> None:
    """On both hosts, and what one has made the other one uses."""
    command = script(job, 0, home=7, far=8, slow_us=77)
    assert [" ".join(found) for found in re.findall(r"taskset -c (\d) (\w+)", command)] == where


TASKSET = "/usr/bin/taskset"


@pytest.mark.parametrize(
    ("job", "program", "text"),
    [
        (PAGES, "programs/dsm_torture", "echo a word was lost\nexit 1\n"),
        (PIPE, "bin/gzip", '/usr/bin/gzip "$@"; [ "$1" != -d ] || echo x\n'),
        (PIPE, "bin/gzip", '[ "$1" = -d ] && /usr/bin/gzip -d | head -c 1000 || exec /usr/bin/gzip "$@"\n'),
        (PROCESSES, "bin/taskset", f'[ "$3" = sh ] && echo 11 || exec {TASKSET} "$@"\n'),
        # Both CPUs' begin at once: exactly one of them is the first.
        (PROCESSES, "bin/taskset", f'mkdir once || exit 1; exec {TASKSET} "$@"\n'),
        (FILES, "bin/split", '/usr/bin/split "$@"; for last in part.*; do :; done; rm $last\n'),
        (FILES, "bin/mv", '/usr/bin/mv "$@"; echo x >>d/part.aa\n'),
        (FILES, "bin/cp", '/usr/bin/cp "$@"; for to; do :; done; [ $to != e ] || echo x >>e/part.aa\n'),
        (FILES, "bin/cp", '/usr/bin/cp "$@"; for to; do :; done; [ $to != f ] || rm f/part.aa\n'),
        (CALLS, "programs/span_latency", 'case "$*" in *status*) exit 1;; esac\n'),
        (CALLS, "programs/span_latency", 'case "$*" in *membarrier*) exit 1;; esac\n'),
    ],
)
def test_a_job_notices(place: Path, job: Job, program: str, text: str) -> None:
    """What it works with is wrong: it ends, and says so."""
    put(place / program, f"#!/bin/sh\n{text}")
    done = run(place, job)
    assert done.returncode == 1 and f"{job.name}: round 0 is wrong\n" in done.stdout, done
    with pytest.raises(Malformed, match=f"{job.name}: status 1: .*round 0 is wrong"):
        rounds_of(job, done.returncode, done.stdout.replace("\n", " "))
    if job is PAGES:
        assert "a word was lost" in done.stdout


@pytest.mark.parametrize(("status", "printed"), [(0, ""), (0, "x\n"), (255, "7\n"), (0, "7\n8\n")])
def test_a_job_that_has_not_ended(status: int, printed: str) -> None:
    with pytest.raises(Malformed, match="pipe: status"):
        rounds_of(PIPE, status, printed)


# ---- Figures ----


def test_the_longest_fault() -> None:
    assert longest_ms({"read_fault": {"max_ns": 7000000}, "write_fault": {"max_ns": 9500000}}) == 9.5
    assert longest_ms({"read_fault": {"max_ns": 9500000}, "write_fault": {"max_ns": 0}}) == 9.5
    for status in ({}, {"read_fault": {"max_ns": 7}}, {"read_fault": {"max_ns": 7}, "write_fault": {"max_ns": None}}):
        with pytest.raises(Malformed, match="dsmctl"):
            longest_ms(status)


def test_figures() -> None:
    rounds = {"pages": 3, "pipe": 4}
    turns = [
        Turn(900.0, 990.0, 80.0, [100, 200], [50, 60], [12.5, 40.0], rounds, 1000),
        Turn(910.0, 1010.0, 81.0, [300, 400], [70, 80], [30.0, 20.0], {**rounds, "pipe": 5}, 2000),
    ]
    found = metrics(turns, 11, {"soft_lockup": 20, "rcu_stall": 21})
    assert problems(encode(Result("dsm-span-hour", now(), host_info(), found))) == []
    value = {each.metric: each.value for each in found}
    assert value == {
        "hour.load": 1810.0,
        "hour.faults.home": 400.0,
        "hour.ticks.home": 120.0,
        "hour.longest_fault.home": 30.0,
        "hour.faults.away": 600.0,
        "hour.ticks.away": 140.0,
        "hour.longest_fault.away": 40.0,
        "hour.rounds.pages": 6.0,
        "hour.rounds.pipe": 9.0,
        "hour.rounds.openmp": 3000.0,
        "hour.limit.soft_lockup": 220.0,
        "hour.limit.rcu_stall": 231.0,
    }
    named = {each.metric: each for each in found}
    assert named["hour.load"].baseline == {"slow": 11.0, "whole_s": 2000.0, "guest_s": 161.0}
    assert named["hour.longest_fault.home"].runs == [12.5, 30.0]
    beside = named["hour.longest_fault.home"].baseline
    assert float(beside["guest_ms"]) * float(beside["slow"]) == pytest.approx(30.0)
    assert named["hour.limit.soft_lockup"].baseline == {"guest_s": 20.0}
