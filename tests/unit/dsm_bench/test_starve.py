# SPDX-License-Identifier: GPL-2.0
"""dsm_starve here: what it counts, that a lost or torn word is noticed, and who is said to starve."""

from __future__ import annotations

import dataclasses
import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from benchmarks import starve
from benchmarks.results import write
from benchmarks.starve import Phase, Thread
from lab.errors import Malformed
from lab.pipeline.paths import REPO
from tests.unit.dsm_bench.changed_program import changed

SOURCE = REPO / "benchmarks" / "programs" / "dsm_starve.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("starve")
    goal = folder / "dsm_starve"
    subprocess.run(["make", "-s", "-C", REPO / "benchmarks", f"O={folder}", goal], check=True)
    return goal


def run(program: Path, words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words.split()], capture_output=True, text=True, check=False, timeout=300)


def own_cpus(count: int) -> str:
    """As many as are asked for, though some may be the same."""
    cpus = sorted(os.sched_getaffinity(0))[:2]
    return ",".join(str(cpus[number % len(cpus)]) for number in range(count))


def test_one_cpu_on_each_host(program: Path) -> None:
    """Everybody gets on, and nothing is lost."""
    done = run(program, f"--ms=20 --cpus={own_cpus(2)}")
    assert done.returncode == 0, done.stdout + done.stderr
    phases, wrong = starve.parse(done.stdout)
    assert wrong == 0
    each = [f"{what} by host {by}" for what in starve.WHATS[1:] for by in ("0", "1", "0, 1")]
    assert [str(phase) for phase in phases] == ["word", *each]
    assert all([thread.host for thread in phase.threads] == [0, 1] for phase in phases)
    assert starve.starved(phases, 1, 1) == [text for text in starve.starved(phases, 1, 1) if "share" in text]


def test_several_cpus_on_each_host(program: Path) -> None:
    """The first of each makes the instruction, and all others write, at each host."""
    done = run(program, f"--what=movs,word --ms=5 --cpus={own_cpus(5)} --hosts=2,0,2,0,2")
    assert done.returncode == 0, done.stdout + done.stderr
    phases, _ = starve.parse(done.stdout)
    assert [str(phase) for phase in phases] == ["word", "movs by host 0", "movs by host 2", "movs by host 0, 2"]
    wide = [[number for number, each in enumerate(phase.threads) if each.wide] for phase in phases]
    assert wide == [[], [1], [0], [0, 1]]


def test_what_is_slow(program: Path) -> None:
    done = run(program, f"--what=word,rep --ms=5 --slow-us=0 --cpus={own_cpus(2)}")
    assert all(each.waits == each.count for phase in starve.parse(done.stdout)[0] for each in phase.threads)
    done = run(program, f"--what=word,rep --ms=5 --slow-us=10000000 --cpus={own_cpus(2)}")
    assert all(each.waits == 0 for phase in starve.parse(done.stdout)[0] for each in phase.threads)


# A line, what it becomes, and what has to notice it: a word that is lost, that comes twice, a half of it, and one too many.
WRONG = {
    "a word is lost": ("++*slot(page, thread->number);", "*slot(page, thread->number) = thread->written[page];", "word"),
    "a word beside an instruction": (
        "++*slot(page, thread->number);", "*slot(page, thread->number) = thread->written[page];", "rep"
    ),
    "another one's word": ("++*slot(page, thread->number);", "++*slot(page, 0);", "word"),
    "half of a word": ("{ 0x48, 0xa5, 0xc3 }", "{ 0xa5, 0xc3 }", "movs"),
    "half of it": ("{ 0xf3, 0xa4, 0xc3 }, ALL_SIX, LONG / 2, LONG }", "{ 0xa4, 0xc3 }, ALL_SIX, LONG / 2, LONG }", "rep"),
    "a sum": ("make(to(i), from(i), 1, i->bytes);", "make(to(i), from(i), 2, i->bytes);", "xadd"),
    "not into both pages": ("{ 0xf0, 0x48, 0x0f, 0xc1, 0x17, 0xc3 }", "{ 0xc3 }", "xadd"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_noticed(tmp_path: Path, case: str) -> None:
    old, new, what = WRONG[case]
    done = run(changed(SOURCE, tmp_path, {old: new}), f"--what={what} --ms=5 --cpus={own_cpus(2)}")
    assert done.returncode == 1 and starve.parse(done.stdout)[1] > 0, done


def test_who_starves_is_noticed(tmp_path: Path) -> None:
    """Whose instruction does not end has made one, however long it is tried."""
    program = changed(
        SOURCE,
        tmp_path,
        {"make(to(i), from(i), 1, i->bytes);":
         "make(to(i), from(i), 1, i->bytes); if (thread->host) while (__rdtsc() < end);"},
    )  # fmt: skip
    phases, wrong = starve.parse(run(program, f"--what=movs --ms=50 --cpus={own_cpus(2)}").stdout)
    assert wrong == 0
    assert [text for text in starve.starved(phases, 2, 1) if "share" not in text] == [
        f"movs by host {by}: CPU {phase.threads[1].cpu} of host 1 has made 1, not 2"
        for by, phase in (("1", phases[1]), ("0, 1", phases[2]))
    ]
    assert phases[1].threads[1].longest_us > 20000


def test_the_longest_one_is_any_of_them(tmp_path: Path) -> None:
    line = "make(to(i), from(i), 1, i->bytes);"
    slow = "if (thread->instructions == 2) { uint64_t later = __rdtsc() + 20000 * run.ticks; while (__rdtsc() < later); }"
    done = run(changed(SOURCE, tmp_path, {line: f"{line} {slow}"}), f"--what=movs --ms=50 --cpus={own_cpus(2)}")
    phases, _ = starve.parse(done.stdout)
    assert all(each.longest_us >= 20000 for phase in phases for each in phase.threads if each.wide), phases


def test_all_pages_of_an_instruction_are_written(tmp_path: Path) -> None:
    """By who does not make it: else nobody takes them away."""
    line = "thread->written[page]++;"
    says = 'if (thread->written[page] == 1) fprintf(stderr, "%s %u\\n", instructions[run.what].name, page);'
    done = run(changed(SOURCE, tmp_path, {line: f"{line} {says}"}), f"--ms=20 --cpus={own_cpus(2)}")
    said = {tuple(each.split()) for each in done.stderr.splitlines()}
    pages = {what: len([page for other, page in said if other == what]) for what in starve.WHATS}
    assert pages == {"word": 1, **starve.PAGES}, said


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--what=xx", "--what=xx: there is no such one"),
        ("--what=,", "--what: names nothing"),
        ("--cpus=0,x", "--cpus=x"),
        ("--cpus=1023", "CPU 1023"),
        ("--cpus=0,0,0,0,0,0,0,0,0", "want --hosts"),
        ("--cpus=0,1 --hosts=0", "--hosts has 1, --cpus 2"),
        ("--hosts=0,8", "--hosts=8: want a number from 0 to 7"),
        ("--ms=0", "--ms=0"),
        ("--node=64", "--node=64"),
        ("--unknown", "Usage"),
        ("word", "word: there are only options"),
    ],
)
def test_words(program: Path, words: str, part: str) -> None:
    done = run(program, words)
    assert done.returncode == 2 and part in done.stderr, done.stdout + done.stderr


# ---- What is said of a run ----


def phase(what: str, *threads: tuple[int, bool, int, int]) -> Phase:
    return Phase(what, [Thread(cpu, host, wide, n, waits, 7) for cpu, (host, wide, n, waits) in enumerate(threads)])


def test_shares() -> None:
    even = phase("word", (0, False, 50, 9), (1, False, 50, 9))
    assert even.shares(False) == {0: 1.0, 1: 1.0} and even.shares(True) == {}
    # Three CPUs of one host, and one of the other: what is fair is by CPU.
    uneven = phase("word", *((0, False, 20, 9) for _ in range(3)), (1, False, 20, 9))
    assert uneven.shares(False) == {0: 1.0, 1: 1.0}
    wide = phase("movs", (0, True, 30, 9), (1, True, 10, 9), (0, False, 0, 0), (1, False, 0, 0))
    assert wide.shares(True) == {0: 1.5, 1: 0.5} and wide.shares(False) == {0: 0.0, 1: 0.0}


def test_who_starves() -> None:
    good = phase("word", (0, False, 88, 9), (1, False, 13, 9))
    assert starve.starved([good], 1, 13) == []
    assert starve.starved([good], 1, 14) == ["word: CPU 1 of host 1 has made 13, not 14"]
    least = phase("word", (0, False, 70, 9), (1, False, 10, 9))
    assert least.shares(False)[1] == starve.LEAST_SHARE and starve.starved([least], 1, 1) == []
    few = phase("word", (0, False, 88, 9), (1, False, 12, 9))
    assert starve.starved([few], 1, 1) == ["word: host 1 has 0.24 of its fair share of words"]
    stuck = phase("xadd", (0, True, 1, 1), (1, False, 900, 9))
    assert starve.starved([stuck], 5, 1) == ["xadd by host 0: CPU 0 of host 0 has made 1, not 5"]
    apart = phase("rep", (0, True, 90, 1), (1, True, 6, 1))
    assert starve.starved([apart], 5, 1) == ["rep by host 0, 1: host 1 has 0.12 of its fair share of instructions"]


def test_pages_that_stay() -> None:
    """Threads that did not have to wait have not shown anything."""
    still = phase("movs", (0, True, 90, 3), (1, False, 900, 2), (1, False, 900, 0))
    assert starve.untouched([still], 2) == []
    assert starve.untouched([still], 3) == ["movs by host 0: host 1 has waited 2 times"]


def test_figures(tmp_path: Path) -> None:
    phases = [
        phase("word", (0, False, 60, 9), (1, False, 40, 9)),
        phase("movs", (0, True, 30, 9), (1, False, 10, 9)),
        phase("movs", (0, True, 30, 9), (1, True, 10, 9)),
    ]
    # Who writes words beside an instruction may wait for longer: that is not the instruction's.
    phases[1] = dataclasses.replace(
        phases[1], threads=[dataclasses.replace(each, longest_us=7 if each.wide else 90) for each in phases[1].threads]
    )
    written = starve.metrics(phases, 3, 500, 20)
    write("starve", written, tmp_path)
    figures = {each.metric: each for each in written}
    named = {f"starve.{what}.{which}" for what in ("word", "movs") for which in ("least_share", "longest")}
    assert set(figures) == {"starve.wrong", *named} and figures["starve.wrong"].value == 3
    assert figures["starve.word.least_share"].value == 0.8 and figures["starve.movs.least_share"].value == 0.5
    # By the hosts' clock.
    assert figures["starve.movs.longest"].value == pytest.approx(0.14)
    beside = figures["starve.movs.least_share"].baseline
    assert beside["phase_ms"] == 10000 and beside["movs by host 0, 1, CPU 1, instructions"] == 10


THREAD: dict[str, Any] = {
    "event": "thread", "phase": 0, "what": "movs", "cpu": 0, "host": 0, "wide": True, "count": 4, "waits": 2, "longest_us": 9,
}  # fmt: skip
RESULT = {"event": "result", "phases": 1, "ms": 5, "wrong": 0}


def lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not ended"),
        (lines(THREAD), "not ended"),
        ("x\n", "not JSON"),
        (lines(THREAD, RESULT, THREAD), "unexpected line"),
        (lines({**THREAD, "event": "phase"}, RESULT), "unexpected line"),
        (lines({**THREAD, "what": "cmps"}, RESULT), "unexpected thread"),
        (lines({**THREAD, "wide": 1}, RESULT), "unexpected thread"),
        (lines({**THREAD, "what": "word"}, RESULT), "unexpected thread"),
        (lines({**THREAD, "count": -1}, RESULT), "no number of at least 0"),
        (lines({**THREAD, "waits": 5}, RESULT), "more than all"),
        (lines({**THREAD, "phase": 1}, RESULT), "another phase"),
        (lines(THREAD, {**THREAD, "what": "rep"}, RESULT), "another phase"),
        (lines(THREAD, {**THREAD, "phase": 1, "cpu": 3}, {**RESULT, "phases": 2}), "other threads"),
        (lines(THREAD, {**RESULT, "phases": 2}), "1 phases"),
        (lines(THREAD, {**RESULT, "wrong": "0"}), "no number of at least 0"),
    ],
)
def test_malformed_output_is_refused(text: str, part: str) -> None:
    with pytest.raises(Malformed, match=part):
        starve.parse(text)
