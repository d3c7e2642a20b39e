# SPDX-License-Identifier: GPL-2.0
"""The core of the DSM: its unit tests, and a small part of what ``make explore`` does.

The programs are built twice, once with the address and undefined behaviour sanitizers. Each case of a *_test.c is a test.
"""

from __future__ import annotations

import dataclasses
import re
import subprocess
import tempfile
from functools import cache
from pathlib import Path

import pytest

from lab.pipeline import explorer
from lab.pipeline.mutants import Mutant
from lab.pipeline.progress import StepFailed

_scratch = tempfile.TemporaryDirectory(prefix="dsm_test.")
# Of the worlds, those of a second or two; of the mutants, one of each kind.
WORLDS = (
    "2x1-core",
    "2x1-private",
    "2x1-at-home",
    "2x1-ring",
    "2x1-broken",
    "2x1-holes",
    "2x1-death-small",
    "2x1-death-split",
    "2x1-death-leases",
    "2x1-leases",
    "2x1-returns-twice",
    "2x1-cut",
    "3x1-alone",
    "3x1-core",
    "3x1-zero",
    "3x1-ring-program",
    "2x2-pins",
    "2x2-upgrades",
    "2x2-death-program",
)
# What one memory can show of each litmus test, by hand: registers in the threads' order, then x and y in the end.
ONE_MEMORY = {
    "sb": {"a=0 b=1 x=1 y=1", "a=1 b=0 x=1 y=1", "a=1 b=1 x=1 y=1"},
    "mp": {"a=0 b=0 x=1 y=1", "a=0 b=1 x=1 y=1", "a=1 b=1 x=1 y=1"},
    "lb": {"a=0 b=0 x=1 y=1", "a=0 b=1 x=1 y=1", "a=1 b=0 x=1 y=1"},
    "corr": {"a=0 b=0 x=1", "a=0 b=1 x=1", "a=1 b=1 x=1"},
    "iriw": {f"a={n >> 3 & 1} b={n >> 2 & 1} c={n >> 1 & 1} d={n & 1} x=1 y=1" for n in range(16) if n != 0b1010},
    "22w": {"x=1 y=2", "x=2 y=1", "x=2 y=2"},
    "r": {"a=0 x=1 y=1", "a=1 x=1 y=1", "a=1 x=1 y=2"},
    "s": {"a=0 x=1 y=1", "a=0 x=2 y=1", "a=1 x=1 y=1"},
}
# What store buffers allow besides.
WEAK = {"sb": "a=0 b=0 x=1 y=1", "r": "a=0 x=1 y=2"}
# Where threads and pages are; those "-ahead" have up to a million states, and `make explore` has them, too.
PLACES = ("", "-crossed", "-copies", "-third", "-one-host")
LITMUS_HOSTS = {shape: PLACES for shape in ONE_MEMORY} | {"iriw": ("", "-three", "-four")}
LITMUS = [(shape, hosts) for shape, places in LITMUS_HOSTS.items() for hosts in places]
# Worlds that have what 2x1-small leaves out: what is true there is no lie.
TRUE_ELSEWHERE = (
    "2x1-private",
    "2x1-at-home",
    "2x1-holes",
    "2x1-death-split",
    "2x1:evict+prefetch+ahead+split+merge",
    "2x1:evict+zero+split+merge",
    "2x1:evict+pins+leases+split+merge",
    "2x1:evict+drop+remote_drop+split+merge",
    "2x2-program",
    "2x2-death-program",
)
# Each has the flag of the token, which costs others time and no bytes (decision 0091).
LIES_TAKEN = {"GETM": 4, "GETS": 4, "INV": 5, "RECALL_I": 1, "RECALL_S": 4}
MUTANTS = (
    "0b.1: who wrote back is a sharer all the same",
    "0b.2: INV_ACK does not remove the sharer",
    "0b.3: NACK wakes nobody",
    "0b.4: a page is evicted while a request for it is out",
    "0b.7: a recall that found a pin is not tried again",
    "0b.8: a hole that was filled before the access began",
    "a prefetch of a private page stops the VM",
    "who will write takes copies from others that read",
    "what several hosts ask for all the time never becomes private",
)


@cache
def checked() -> explorer.Build:
    return explorer.Build(Path(_scratch.name) / "checked", explorer.CHECKED).core()


@cache
def optimized() -> explorer.Build:
    return explorer.Build(Path(_scratch.name) / "optimized").core()


def run(program: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words], capture_output=True, text=True, timeout=300, check=False)


def cases() -> list[tuple[str, str]]:
    """The cases; for a file that does not compile, one that says so."""
    found: list[tuple[str, str]] = []
    for name in explorer.TEST_PROGRAMS:
        try:
            found += [(name, case) for case in run(checked().test(name), "--list").stdout.splitlines()]
        except StepFailed:
            found.append((name, f"{name}.c compiles"))
    return found


@pytest.mark.parametrize(("name", "case"), cases(), ids=str)
def test_case(name: str, case: str) -> None:
    done = run(checked().test(name), case)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("world", WORLDS)
def test_world(world: str) -> None:
    done = run(optimized().explorer(), world)
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = explorer.explored(done.stdout)
    assert found.world == world and found.states > 1000


def test_what_a_litmus_test_may_show() -> None:
    """The explorer reckons it; nothing of the protocol is in that."""
    told = [line.split("\t") for line in run(optimized().explorer(), "--outcomes").stdout.splitlines()]
    allowed = {(shape, memory): set(outcomes) for shape, _, _, memory, *outcomes in told}
    assert {(shape, int(pages), int(threads)) for shape, pages, threads, *_ in told} == {
        (shape, 1 if shape == "corr" else 2, 4 if shape == "iriw" else 2) for shape in ONE_MEMORY
    }
    for shape, outcomes in ONE_MEMORY.items():
        assert allowed[shape, "memory"] == outcomes
        assert allowed[shape, "buffers"] == outcomes | ({WEAK[shape]} if shape in WEAK else set())


@pytest.mark.parametrize(("shape", "hosts"), LITMUS, ids="".join)
def test_litmus(shape: str, hosts: str) -> None:
    """Exactly what one memory can show, between hosts; on one host also what its CPUs' store buffers allow."""
    done = run(optimized().explorer(), f"litmus-{shape}{hosts}")
    assert done.returncode == 0, done.stdout + done.stderr
    (found,) = explorer.explored(done.stdout)
    assert found.outcomes == len(ONE_MEMORY[shape]) + (hosts == "-one-host" and shape in WEAK)


def test_each_litmus_test_is_explored() -> None:
    ahead = [(shape, "-ahead") for shape in ONE_MEMORY if shape != "iriw"]
    known = {world for world in explorer.worlds(optimized().explorer()) if world.startswith("litmus-")}
    assert known == {f"litmus-{shape}{hosts}" for shape, hosts in LITMUS + ahead}


def test_a_page_that_leaves_before_its_stores_is_refuted() -> None:
    """What Xen relies on: each CPU has answered an interrupt, and so emptied its store buffer, before a frame is copied."""
    done = run(optimized().explorer(), "wrong-flush")
    assert done.returncode == 1
    assert "VIOLATION in wrong-flush: a forbidden outcome: a=0 b=0 x=0 y=1\n" in done.stdout, done.stdout
    assert "a store leaves the buffer" in done.stdout


def test_an_outcome_that_nothing_leads_to_is_a_violation() -> None:
    """Between hosts nobody sees what waits in a store buffer: of sb there is no weak outcome there."""
    done = run(optimized().explorer(), "wrong-weak")
    assert done.returncode == 1
    assert f"VIOLATION in wrong-weak: an outcome that nothing leads to: {WEAK['sb']}\n" in done.stdout


@pytest.mark.parametrize("world", ["litmus-mp", "litmus-mp-third", "litmus-sb-copies", "litmus-r"])
def test_a_litmus_test_shows_a_mistake(world: str, tmp_path: Path) -> None:
    """By what its program sees: who is not noted as a sharer reads what was there before."""
    (mutant,) = [each for each in explorer.mutants() if each.breaks == "a new sharer is not noted"]
    only = dataclasses.replace(mutant, tests=(world,))
    assert f"{world}: a forbidden outcome: " in explorer.noticed(optimized(), only, tmp_path / "wrong")


def test_what_no_program_sees_is_wrong_in_a_litmus_test_all_the_same(tmp_path: Path) -> None:
    (mutant,) = [each for each in explorer.mutants() if each.breaks == "home sends the bytes of a page that it can still write"]
    only = dataclasses.replace(mutant, tests=("litmus-mp-copies",))
    assert explorer.noticed(optimized(), only, tmp_path / "wrong") == "litmus-mp-copies: Xen refuses READ"


def test_lies_in_every_state() -> None:
    """Whatever a peer sends in any state that honest hosts reach is refused without effect, or keeps the page's rules.

    What is taken though no peer ever sends it to a host in that state, in this world or in those that have what it leaves out,
    is counted by type. Whoever changes a number says why.
    """
    done = run(optimized().explorer(), "--truth", *TRUE_ELSEWHERE, "--lies", "--say", "2x1-small")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "lies refused" in done.stdout
    foolish = {name: int(nr) for nr, name in re.findall(r"taken, and never true: (\d+) (\w+)", done.stdout)}
    assert foolish == LIES_TAKEN, done.stdout
    said = re.findall(r"^  (\w+) flags=4 ", done.stdout, re.M)
    assert {name: said.count(name) for name in foolish} == foolish, "only the token's flag can be told from the truth"


def test_each_pair_of_features_is_in_a_world() -> None:
    """Or there is a reason why there can be none. The explorer says which worlds have both; ``make explore`` runs them."""
    done = run(optimized().explorer(), "--pairs")
    *lines, triples = done.stdout.splitlines()
    assert done.returncode == 0, [line for line in lines if "MISSING" in line or "AND YET" in line]
    pairs = {(one, other): where for one, other, where in (line.split("\t") for line in lines)}
    traits = {name for pair in pairs for name in pair}
    assert len(pairs) == len(traits) * (len(traits) - 1) // 2 and len(traits) > 20
    known = set(explorer.worlds(optimized().explorer()))
    covered = [where for where in pairs.values() if set(where.split()) <= known]
    assert len(covered) > 0.85 * len(pairs)
    assert "2x1-small" not in pairs["evict", "pins"] and "2x1-core" in pairs["evict", "pins"]
    assert re.fullmatch(r"\d+ of \d+ sets of three", triples)


def test_a_world_made_of_words_is_the_one_with_a_name() -> None:
    named, made = (run(optimized().explorer(), world) for world in ("2x1-core", "2x1:evict+pins+merge"))
    ((one,), (other,)) = (explorer.explored(done.stdout) for done in (named, made))
    assert (one.states, one.transitions) == (other.states, other.transitions)
    wrong = ("2x1:nonesuch", "2x1:evict=2", "2x1:deaths=0", "9x9:evict", "2x2:home1=2", "2x2:home0=2")
    litmus = ("2x1:litmus=1", "2x2:litmus=9", "2x2:litmus=1+zero", "2x2:litmus=1+deaths=1", "2x2:buffers")
    for word in ("2x1:", *wrong, *litmus):
        assert run(optimized().explorer(), word).returncode == (0 if word == "2x1:" else 2), word


def test_a_transport_that_reorders_is_refuted() -> None:
    done = run(optimized().explorer(), "wrong-transport")
    assert done.returncode == 1
    assert "VIOLATION in wrong-transport" in done.stdout and "OVERTAKES" in done.stdout


def test_a_partition_in_which_both_go_on_is_refuted() -> None:
    """That who notices a broken connection stops is necessary: see decision 0108."""
    done = run(optimized().explorer(), "wrong-partition")
    assert done.returncode == 1
    assert "VIOLATION in wrong-partition" in done.stdout and "is cut" in done.stdout


@pytest.mark.parametrize(("hosts", "pages", "seed", "deaths"), [(3, 2, 14, 1), (5, 4, 4, 3), (16, 3, 2, 9), (5, 4, 32, 0)])
def test_walk(hosts: int, pages: int, seed: int, deaths: int) -> None:
    """All moves are made, and so many hosts are lost on the way that the walk is worth its name."""
    words = ["--walk", str(hosts), str(pages), str(seed), "10000"]
    done = run(optimized().explorer(), *words)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"seed {seed}: 10000 moves, {deaths} hosts died, no violation" in done.stdout
    assert run(optimized().explorer(), *words).stdout == done.stdout, "another walk from the same seed"


def test_a_walk_notices_a_mistake(tmp_path: Path) -> None:
    (mutant,) = [each for each in explorer.mutants() if each.breaks == "a new sharer is not noted"]
    core = optimized().with_mistake(mutant, tmp_path / "wrong")
    done = run(optimized().explorer(core), "--walk", "7", "2", "1", "10000")
    assert done.returncode == 1
    assert "seed 1" in done.stdout and "VIOLATION: I5" in done.stdout


def test_words_that_make_no_sense() -> None:
    assert run(optimized().explorer(), "no-such-world").returncode == 2
    assert run(optimized().explorer(), "--states", "100", "2x1-core").returncode == 2
    assert run(optimized().explorer(), "--walk", "17", "1", "1", "1").returncode == 1


def test_every_mutant_fits() -> None:
    """Each line is there once, each test exists, and the wrong readings of the design have theirs."""
    known = explorer.worlds(optimized().explorer())
    for mutant in explorer.mutants():
        mutant.apply((explorer.CORE / mutant.file).read_text())
        for test in mutant.tests:
            *options, last = test.split()
            assert test in explorer.TEST_PROGRAMS or last in known, f"{mutant.breaks}: no {test}"
            assert set(options) <= {"--lies"}, f"{mutant.breaks}: {options}; they are for the worlds after them"
    names = [mutant.breaks for mutant in explorer.mutants()]
    assert len(names) >= 25
    assert {name.split(":")[0] for name in names if name.startswith("0b.")} >= {
        f"0b.{n}" for n in (1, 2, 3, 4, 6, 7, 8, 9, 11)
    }


@pytest.mark.parametrize("name", MUTANTS)
def test_mutant_is_noticed(name: str, tmp_path: Path) -> None:
    (mutant,) = [each for each in explorer.mutants() if each.breaks == name]
    assert explorer.noticed(optimized(), mutant, tmp_path / "wrong")


def test_the_right_core_survives(tmp_path: Path) -> None:
    """A mutant that changes nothing is not noticed: so what is noticed is the mistake."""
    line = "wake(s, whom);"
    harmless = Mutant("nothing", "holder.c", line, f"{line} ;", ("2x1-core", "core_test"), "refused")
    assert explorer.noticed(optimized(), harmless, tmp_path / "harmless") == ""


def test_a_row_that_makes_no_sense_is_an_error(tmp_path: Path) -> None:
    table = tmp_path / "table.toml"
    row = "[[mutant]]\nbreaks='a'\nfile='step.c'\nline='x'\nbecomes='y'\ntests=['2x1']\n"
    for text in (row * 2, row.replace("'y'", "'x'"), row.replace("['2x1']", "[]")):
        table.write_text(text)
        with pytest.raises(StepFailed):
            explorer.mutants(table)
