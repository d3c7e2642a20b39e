# SPDX-License-Identifier: GPL-2.0
"""Two OpenMP programs of Debian go from a host to two and back while they run: section 2 of issue 8.

Nobody has changed them: fasttreeMP, whose steps have parallel regions, and msgmerge, which has one for each domain of its
catalogues. Each is one process, of two threads at home, then of as many on both hosts as it has work for, then of two again;
and its answer is what it is on one CPU with Debian's own library. That is four of msgmerge. Most steps of fasttreeMP have three
parts ("parallel sections"), and which step it is in when the other host has come is chance: three or four. stream_check, which
is ours, does the same in test_dsm_span_work.py.
"""

from __future__ import annotations

import dataclasses
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from benchmarks import debian_merge, debian_program
from lab.command import checked, run_in, write_file
from lab.far_guest import state
from lab.guest import Guest
from lab.patience import wait_for
from lab.span_guest import PATIENCE, around, cpus_of_threads, where_question
from tests.e2e.span_guest import ASK_S, Lives, attach, detach, lives_on

pytestmark = pytest.mark.fresh

CPUS = 2  # of each host
ALIGNMENT = "/tmp/alignment"
SEQUENCES, BASES = 200, 200  # what takes two CPUs at home longer than a host takes to come
TREE = f"-nt -gtr -quiet {ALIGNMENT}"
SAID, PID = "/tmp/teams", "/tmp/teams.pid"  # what a program says of its teams; who it is
ALONE_S = 1200.0


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with lives_on(tmp_path_factory.mktemp("dsm")) as made:
        yield made


def alone(guest: Guest, command: str) -> str:
    """What it prints on one CPU at home, with Debian's own library."""
    done = run_in(guest)(f"taskset -c 0 {command}", ALONE_S)
    assert done.status == 0 and done.out.strip(), done
    print(f"{done.seconds:.0f} s alone")
    return done.out


def goes_and_comes(lives: Lives, guest: Guest, command: str, output: Path, *, grown: Sequence[int] = (2 * CPUS,)) -> str:
    """What one process prints whose team is of home's CPUs, then of both hosts', so many `grown`, then of home's."""
    site, shape, inside = lives.site, dataclasses.replace(lives.shape, cpus=CPUS), run_in(guest)
    home, far = shape.cpus_of(0), shape.cpus_of(1)
    script = f"echo $$ >{PID}; exec {command} 2>{SAID}"
    checked(inside, f"rm -f {PID}; : >{SAID}", 300)
    program = guest.start(f"sh -c {shlex.quote(script)}", output)

    def is_there() -> None:
        assert "failed: " not in state(site.home), state(site.home)

    def await_team(*threads: int) -> list[int]:
        def so() -> bool:
            is_there()
            return not program.running() or (teams() or [0])[-1] in threads

        took = wait_for(f"a team of {threads}", PATIENCE, so, interval=ASK_S)
        seen = teams()
        assert program.running(), f"it has ended before its team had {threads}: {seen}; a larger input is needed"
        print(f"{took:.0f} s: teams {seen}")
        return seen

    def teams() -> list[int]:
        return debian_program.parse_teams(checked(inside, f"cat {SAID}", 300))

    await_team(len(home))
    pid = int(checked(inside, f"cat {PID}", 300))
    attach(site, guest, shape)
    await_team(*grown)

    def on_both() -> bool:
        is_there()
        assert program.running(), f"it has ended before its threads were on CPUs {home} and of {far}: a larger input is needed"
        cpus = set(cpus_of_threads(checked(inside, where_question(pid), 300)))
        return len(cpus) in grown and set(home) < cpus <= {*home, *far}

    def has_ended() -> bool:
        is_there()
        return not program.running()

    wait_for(f"threads on CPUs {home} and of {far}", PATIENCE, on_both, interval=ASK_S)
    detach(site, guest, shape)
    seen = await_team(len(home))
    took = wait_for("its end", PATIENCE, has_ended, interval=ASK_S)
    done = program.wait()
    print(f"{took:.0f} s: ended; teams {seen}, then {teams()[len(seen) :]}")
    assert done.status == 0, (done, checked(inside, f"tail -n 20 {SAID}", 300))
    # One process, and in this order: home's, both hosts', home's.
    assert (seen[0], seen[-1]) == (len(home), len(home)) and max(seen) in grown, seen
    return output.read_text()


def test_fasttree(lives: Lives, tmp_path: Path) -> None:
    with lives.borrowed(attached=False, shape=dataclasses.replace(lives.shape, cpus=CPUS)) as guest:
        write_file(run_in(guest), ALIGNMENT, debian_program.alignment(SEQUENCES, BASES))
        wanted = alone(guest, f"fasttreeMP {TREE}")
        words = f"{around(range(2 * CPUS))} {debian_program.SETTINGS} {debian_program.DISPLAY} fasttreeMP {TREE}"
        assert goes_and_comes(lives, guest, words, tmp_path / "tree", grown=(3, 4)) == wanted


def test_msgmerge(lives: Lives, tmp_path: Path) -> None:
    with lives.borrowed(attached=False, shape=dataclasses.replace(lives.shape, cpus=CPUS)) as guest:
        debian_merge.install(guest, tmp_path / "msgmerge", **debian_merge.LONG)
        wanted = alone(guest, debian_merge.command())
        words = debian_merge.command(range(2 * CPUS))
        assert goes_and_comes(lives, guest, words, tmp_path / "merged") == wanted
