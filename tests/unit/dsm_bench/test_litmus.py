# SPDX-License-Identifier: GPL-2.0
"""dsm_litmus here: CPUs of one machine show what TSO allows and nothing else, and a wrong value, order or store is noticed."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import re
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from benchmarks import litmus
from lab.errors import Malformed
from lab.patience import wait_for
from lab.pipeline.paths import REPO
from tests.e2e import test_dsm_linux_vcpu as linux_vcpu
from tests.unit.dsm_bench import changed_program, tso
from tests.unit.left_to_soak import rest_in_soak

SOURCE = REPO / "benchmarks" / "programs" / "dsm_litmus.c"


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("litmus")
    goal = folder / "dsm_litmus"
    subprocess.run(["make", "-s", "-C", REPO / "benchmarks", f"O={folder}", goal], check=True)
    return goal


def run(program: Path, words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words.split()], capture_output=True, text=True, check=False, timeout=300)


def own_cpus(most: int) -> list[int]:
    return sorted(os.sched_getaffinity(0))[:most]


def test_all_shapes_and_variants(program: Path) -> None:
    """Four threads on the CPUs that there are, at most: one team."""
    cpus = ",".join(map(str, (own_cpus(4) * 4)[:4]))
    # The kernel may let a process wait 10 ms for each split lock (split_lock_mitigate), so fewer rounds with them.
    most = tuple(variant for variant in litmus.VARIANTS if variant != "split")
    for words, variants, rounds in (("", litmus.VARIANTS, 32), (f"--variant={','.join(most)}", most, 320)):
        done = run(program, f"{words} --rounds={rounds} --teams=1 --cpus={cpus} --seed=3")
        assert done.returncode == 0, done.stdout + done.stderr
        found = litmus.parse(done.stdout)
        assert [(each.shape, each.variant) for each in found] == [(s, v) for s in litmus.SHAPES for v in variants]
        assert all(each.rounds == rounds and each.forbidden == 0 for each in found)
        # x86-TSO: a store buffer is seen by who loads after it has stored, unless a fence or a locked instruction is between.
        allowed = {(each.shape, each.variant) for each in found if each.weak_allowed}
        assert allowed == {(shape, variant) for shape in ("sb", "r") for variant in ("plain", "nt")}


def test_teams_have_rounds_of_their_own(program: Path) -> None:
    """As many as there are CPUs for: three of two, one of four. Each has a third of the rounds, and one more if need be."""
    cpus = ",".join(map(str, (own_cpus(2) * 4)[:7]))
    for words, teams_of_two in (("", 3), ("--teams=2", 2), ("--teams=1", 1)):
        done = run(program, f"--rounds=31 --shape=mp,iriw,22w --variant=plain,split --cpus={cpus} {words}")
        assert done.returncode == 0, done.stdout + done.stderr
        found = litmus.parse(done.stdout)
        two = (31 + teams_of_two - 1) // teams_of_two * teams_of_two
        assert [each.rounds for each in found] == [two, two, 31, 31, two, two] and not any(each.forbidden for each in found)


def test_a_store_buffer_is_seen(program: Path) -> None:
    """What TSO allows is seen where two CPUs of one machine race: so the threads do race."""
    if len(own_cpus(2)) < 2:
        pytest.skip("this process may use one CPU only: threads that race need two")
    seeds = iter(range(1000))

    def seen() -> bool:
        words = f"--shape=sb --variant=plain --rounds=32000 --cpus={','.join(map(str, own_cpus(2)))} --seed={next(seeds)}"
        (shape,) = litmus.parse(run(program, words).stdout)
        assert shape.weak == shape.outcomes.get("a=0 b=0", 0)
        return shape.weak > 0 and shape.overlapped > 0

    wait_for("both loads are before both stores", 120, seen)


def test_enough_raced_is_enough(program: Path) -> None:
    cpus = (own_cpus(2) * 2)[:2]
    words = f"--shape=mp --variant=plain --cpus={cpus[0]},{cpus[1]} --raced=1 --rounds=100000000"
    (shape,) = litmus.parse(run(program, words).stdout)
    assert shape.raced >= 1 and shape.rounds < 100000000
    (shape,) = litmus.parse(run(program, f"{words} --rounds=640 --slow-us=10000000").stdout)
    assert shape.raced == 0 and shape.rounds == 640


def changed(folder: Path, changes: dict[str, str], words: str = "") -> Path:
    return changed_program.changed(SOURCE, folder, changes, words)


def test_one_round_that_stands_still_takes_no_longer(tmp_path: Path) -> None:
    """Once, a fifth of a second, where no page is waited for. The rounds after it had twice its time each, 68 s in all."""
    stops = "if (slot == 3 && run.base == 2 && !thread->number)\n\t\t\tnanosleep(&time_of_one, NULL);"
    program = changed(tmp_path, {
        "begun = __rdtsc();\n": f"begun = __rdtsc();\n\t\t{stops}\n",
        "static uint64_t delay_of(": "static const struct timespec time_of_one = { 0, 200000000 };\nstatic uint64_t delay_of(",
    })  # fmt: skip
    cpus = (own_cpus(2) * 2)[:2]
    words = f"--shape=mp --variant=plain --rounds=512 --slow-us=50000 --cpus={cpus[0]},{cpus[1]}"
    begun = time.monotonic()
    (shape,) = litmus.parse(run(program, words).stdout)
    assert shape.rounds == 512 and time.monotonic() - begun < 20


# Each thread on a host of its own: a page that another one has written, or reads, is fetched first. Their time is played, too.
PLAYED_US = 3000
PLAYED = f"-D_GNU_SOURCE= -I{Path(__file__).parent} -include played_pages.h -DPLAYED_US={PLAYED_US}"
# As in the lab: a tick each 190 ms, with what it fetches, so that an eighth of the rounds raced there, and here, as it was.
TICKS = "-DPLAYED_TICK_US=190000 -DPLAYED_BUSY_US=35000"
SEEN = "played_page(&threads[number_of_cpu(team, i)].seen[slot], sizeof(struct seen), false);"
CELLS = "(void *[]){ cell_of(run.x, slot, team), cell_of(run.y, slot, team) }[i]"
ON_HOSTS = {
    "#include <numaif.h>\n": "#include <numaif.h>\n#include <x86intrin.h>\n#undef __rdtsc\n#define __rdtsc() played_now()\n",
    "while ((int64_t)(time - __rdtsc()) > 0)\n\t\t_mm_pause();": "played_until(time);",
    "void store(const enum variant v, void *cell, uint64_t value)\n{\n": "void store(const enum variant v, void *cell, "
    "uint64_t value)\n{\n\tplayed_page(cell, 8, true);\n",
    "uint64_t load(const enum variant v, void *cell)\n{\n": "uint64_t load(const enum variant v, void *cell)\n{\n"
    "\tif (played_page(cell, 8, v == SPLIT_LOCK))\n\t\treturn 0;\n",
    "\t(void)*word;\n": "\tplayed_page((void *)word, 1, false);\n",
    "\t*word = 1;\n": "\tplayed_page((void *)word, 1, true);\n",
    # The barrier.
    "\tunsigned int turn = turns.turn;\n": "\tplayed_page(&turns, 1, true);\n\tunsigned int turn = turns.turn;\n",
    "turns.turn == turn; i++) {\n\t\t_mm_pause();\n": "turns.turn == turn; i++) {\n\t\tplayed_until(played_now() + 100000);\n"
    "\t\tplayed_page(&turns, 1, false);\n",
    # What is written and read between rounds.
    "\tmemset(thread->seen, 0,": "\tplayed_page(thread->seen, sizeof(thread->seen), true);\n\tmemset(thread->seen, 0,",
    "\tif (is_left_out(slot, team))\n": f"\tfor (int i = 0; i < shapes[run.shape].threads; i++)\n\t\t{SEEN}\n"
    f"\tfor (int i = 0; i < 2; i++)\n\t\tplayed_page({CELLS}, 8, false);\n\tif (is_left_out(slot, team))\n",
    "\tmeasure();\n": "\tmeasure();\n\tplayed_page(run.x, (PAGES + 1) * PAGE, true);\n"
    "\tplayed_page(run.y, (PAGES + 1) * PAGE, true);\n",
    "\tcpu_set_t set;\n": "\tcpu_set_t set;\n\tplayed_begins(thread, turns.threads);\n",
    "turns.ends = !turns.look();\n\t}\n": "turns.ends = !turns.look();\n\t}\n\tplayed_ends();\n",
    '\tputs("}");\n': '\tputs("}");\n\tfprintf(stderr, "%" PRIu64 "\\n", played_now());\n',
}  # fmt: skip
WAITS = "wait_until(time + delay_of(thread, slot));"


@dataclasses.dataclass(frozen=True)
class Raced:
    """Rounds of a shape that raced: of 1, and how many fetches of a page each has taken, with all that is between.

    `outcomes`: in how many ways a round has ended.
    """

    share: float
    fetches: float
    outcomes: int


def raced(program: Path, shapes: Sequence[str], variants: str, most: int, teams: int = 0) -> dict[str, Raced]:
    """On one CPU: only one of the threads runs at a time. What the first one has to find out is no part of it.

    With `teams` their CPUs are of two hosts, by turns; else each has a host of its own.
    """
    threads = (4 if "iriw" in shapes else 2) * max(teams, 1)
    words = f"--shape={','.join(shapes)} --variant={variants} --rounds={8 * most} --raced={most} --slow-us={PLAYED_US // 2}"
    words += f" --cpus={','.join(map(str, own_cpus(1) * threads))}"
    done = run(program, words + (f" --hosts={','.join(['0,1'] * (threads // 2))}" if teams else ""))
    found = litmus.parse(done.stdout)
    times = [int(line) for line in done.stderr.splitlines()]
    assert done.returncode == 0 and len(found) == len(times), done
    took = {(each.shape, each.variant): now - last for each, last, now in zip(found[1:], times, times[1:], strict=False)}
    result = {}
    for shape in shapes:
        those = [each for each in found[1:] if each.shape == shape]
        all_raced = max(sum(each.raced for each in those), 1)
        ns = sum(took[each.shape, each.variant] for each in those)
        outcomes = len({outcome for each in those for outcome in each.outcomes})
        result[shape] = Raced(all_raced / sum(each.rounds for each in those), ns / 1000 / PLAYED_US / all_raced, outcomes)
    return result


TWO = tuple(shape for shape in litmus.SHAPES if shape != "iriw")


@pytest.mark.parametrize("shapes", [TWO, ("iriw",)], ids=["2", "4"])
def test_many_rounds_race_where_pages_travel(tmp_path: Path, shapes: tuple[str, ...]) -> None:
    """The rounds of threads that wait for pages stay together, whatever a page takes."""
    found = raced(changed(tmp_path, ON_HOSTS, PLAYED), shapes, "plain,split", 100)
    print(found)
    assert min(each.share for each in found.values()) >= 0.5, found
    assert max(each.fetches for each in found.values()) <= 7, found
    assert min(each.outcomes for each in found.values()) >= 2, found


# Shapes, variants, how many teams four CPUs a host are, and how many times fewer fetches they need than one.
SHARED = {
    "mp": (["mp"], "plain,split", 4, 2.5),
    "sb, 22w": (["sb", "22w"], "plain,split", 4, 2.5),
    "iriw": (["iriw"], "plain,fence", 2, 1.5),
}


@pytest.mark.parametrize("which", rest_in_soak(SHARED, "mp"))
def test_teams_share_what_a_page_takes(tmp_path: Path, which: str) -> None:
    """Two hosts with four CPUs each: nearly as many times as many rounds race in the same time as there are teams."""
    shapes, variants, teams, gain = SHARED[which]
    program = changed(tmp_path, ON_HOSTS, f"{PLAYED} -DPLAYED_HOSTS=2")
    one, more = (raced(program, shapes, variants, 100, each) for each in (1, teams))
    print(one, more)
    for shape, each in more.items():
        assert each.fetches <= one[shape].fetches / gain and each.share >= 0.6 and each.outcomes >= 2, (shape, one, more)


@pytest.mark.parametrize("shape", rest_in_soak(TWO, "mp"))
def test_many_rounds_race_though_hosts_have_something_else_to_do(tmp_path: Path, shape: str) -> None:
    found = raced(changed(tmp_path, ON_HOSTS, f"{PLAYED} {TICKS} -DPLAYED_HOSTS=2"), [shape], "plain,nt", 100, 4)
    print("".join(f"{shape} {each.share:.2f} {each.fetches:.1f}, " for shape, each in found.items()))
    assert max(each.fetches for each in found.values()) <= MOST_FETCHES, found


MOST_FETCHES = 3.5
# What makes them race: a line, and what it becomes. Of mp fewer race then.
WORSE = {
    "all rounds are done, however late": ("slot && is_too_late(time)", "0"),
    "pages are where they were": ("\t\ttake_page(thread, slot);\n", ""),
    "rounds are too short": ("run.period = 2 * run.wait + 1;\n}", "run.period = run.wait / 4 + 1;\n}"),
    "rounds are too long": ("run.period = 2 * run.wait + 1;\n}", "run.period = 12 * run.wait + 1;\n}"),
    "the longest one counts": ("run.wait = waits[n / 2];", "run.wait = waits[n - 1];"),
}


@pytest.mark.soak  # of the lines that make rounds race; that they do is shown above
@pytest.mark.parametrize("what", WORSE)
def test_fewer_rounds_race_without(tmp_path: Path, what: str) -> None:
    old, new = WORSE[what]
    program = changed(tmp_path, ON_HOSTS | {old: new}, f"{PLAYED} {TICKS} -DPLAYED_HOSTS=2")
    found = raced(program, ["mp"], "plain,nt", 100, 4)
    print(found)
    assert found["mp"].fetches > MOST_FETCHES, found


# The same of corr, with nothing else to do: a thread that waits for nothing is where one is that waits.
WORSE_OF_CORR = {
    "who does not wait begins with the others": ("? delay + run.wait / 2 : delay;", "? delay : delay;"),
    "who waits begins late": ("& 1) == is_taken(slot) ?", "& 1) != is_taken(slot) ?"),
    "thread 1 takes the page of corr": ("shapes[run.shape].at_once ? 0 : slot / PAGES % 4;", "slot / PAGES % 4;"),
}
MOST_OF_CORR = 3.0


@pytest.mark.parametrize("what", ["", *(pytest.param(what, marks=pytest.mark.soak) for what in WORSE_OF_CORR)])
def test_fewer_rounds_of_corr_race_without(tmp_path: Path, what: str) -> None:
    changes = dict([WORSE_OF_CORR[what]]) if what else {}
    found = raced(changed(tmp_path, ON_HOSTS | changes, PLAYED), ["corr"], "plain,nt", 100)
    print(found)
    assert (found["corr"].fetches > MOST_OF_CORR) == bool(what), found


STALE = {"mp": "plain", "sb": "fence", "r": "lock"}
# Then as many rounds race, and few of them show it.
OWN_PAGES = {"unsigned int before = shapes[run.shape].at_once ? 0 : slot / PAGES % 4;": "unsigned int before = 0;"}


@pytest.mark.parametrize("shape", rest_in_soak(STALE, "mp"))
def test_copies_that_are_read_too_long_are_noticed(tmp_path: Path, shape: str) -> None:
    """Whoever writes goes on before others' copies have gone. It is seen by who has the page in which it looks last."""
    cpu = own_cpus(1)[0]
    words = f"--shape={shape} --variant={STALE[shape]} --rounds=384 --slow-us={PLAYED_US // 2} --cpus={cpu},{cpu}"
    late = f"{PLAYED} -DPLAYED_LATE_US={PLAYED_US // 2}"
    done = run(changed(tmp_path, ON_HOSTS, late), words)
    (right,) = litmus.parse(done.stdout)
    assert done.returncode == 1 and right.weak >= 20, done
    (own,) = litmus.parse(run(changed(tmp_path, ON_HOSTS | OWN_PAGES, late), words).stdout)
    assert own.weak <= right.weak / 3 and own.raced >= 100, (own, right)


def weak_of(program: Path, shape: str, rounds: int) -> int:
    """Of the lab's teams: four CPUs of each of two hosts."""
    cpus, hosts = ",".join(map(str, own_cpus(1) * 8)), ",".join(["0,1"] * 4)
    words = f"--shape={shape} --variant=fence --rounds={rounds} --slow-us={PLAYED_US // 2} --cpus={cpus} --hosts={hosts}"
    done = run(program, words)
    (found,) = litmus.parse(done.stdout)
    assert done.returncode == bool(found.forbidden) and found.impossible == 0 and found.raced >= rounds / 2, done
    return found.weak


LOADS_IRIW = {
    "value[0] = load(v, x); between(v); value[1] = load(v, y);": "value[1] = load(v, y); value[0] = load(v, x);",
    "case IRIW * MOST_THREADS + 3:\n\t\tvalue[0] = load(v, y); between(v); value[1] = load(v, x);":
    "case IRIW * MOST_THREADS + 3:\n\t\tvalue[1] = load(v, x); value[0] = load(v, y);",
}  # fmt: skip
# Instructions in the other order. Not of corr: its page would have to go between two loads, one behind the other.
DISORDER = {
    "sb": {"store(v, y, one); between(v); value[0] = load(v, x);": "value[0] = load(v, x); store(v, y, one);"},
    "mp": {"case MP * MOST_THREADS + 0:\n\t\tstore(v, x, one); between(v); store(v, y, one);":
           "case MP * MOST_THREADS + 0:\n\t\tstore(v, y, one); store(v, x, one);"},
    "lb": {"value[0] = load(v, x); between(v); store(v, y, one);": "store(v, y, one); value[0] = load(v, x);"},
    "iriw": LOADS_IRIW,
    "22w": {"store(v, x, one); between(v); store(v, y, two);": "store(v, y, two); store(v, x, one);"},
    "r": {"case R * MOST_THREADS + 0:\n\t\tstore(v, x, one); between(v); store(v, y, one);":
          "case R * MOST_THREADS + 0:\n\t\tstore(v, y, one); store(v, x, one);"},
    "s": {"store(v, x, two); between(v); store(v, y, one);": "store(v, y, one); store(v, x, two);"},
}  # fmt: skip
# As it was: of iriw each writer had its own page only, or all had copies, and readers had both values before or after a store.
OWN_PAGES_OF_IRIW = {"{ 0, 0, 2, 2 }, false, false, false, { 2, 2 } },": "{ 0, 0, 2, 2 }, false, false, false, { 2, 2 }, 3 },"}


TWO_HOSTS = f"{PLAYED} -DPLAYED_HOSTS=2"


@pytest.mark.parametrize("shape", rest_in_soak(DISORDER, "mp", "iriw"))
def test_a_wrong_order_is_seen_where_pages_travel(tmp_path: Path, shape: str) -> None:
    """What is forbidden would be seen in some of the rounds that race."""
    rounds = 768 if shape == "iriw" else 384
    assert weak_of(changed(tmp_path, ON_HOSTS | DISORDER[shape], TWO_HOSTS), shape, rounds) >= 10


def test_iriw_notices_copies_that_are_read_too_long(tmp_path: Path) -> None:
    assert weak_of(changed(tmp_path, ON_HOSTS, f"{TWO_HOSTS} -DPLAYED_LATE_US={PLAYED_US // 2}"), "iriw", 1536) >= 5


@pytest.mark.soak  # why its pages go round; what they notice is shown above
@pytest.mark.parametrize("what", ["a wrong order", "copies that are read too long"])
def test_iriw_of_own_pages_notices_nothing(tmp_path: Path, what: str) -> None:
    changes, words = (LOADS_IRIW, "") if what == "a wrong order" else ({}, f" -DPLAYED_LATE_US={PLAYED_US // 2}")
    assert weak_of(changed(tmp_path, ON_HOSTS | OWN_PAGES_OF_IRIW | changes, TWO_HOSTS + words), "iriw", 768) == 0


def test_how_long_an_access_that_waits_takes(tmp_path: Path) -> None:
    """--slow-us: none takes 20 times what a page does, and what takes half of it is many rounds'."""
    program = changed(tmp_path, ON_HOSTS, TWO_HOSTS)
    words = f"--shape=mp --variant=plain --rounds=256 --cpus={','.join(map(str, own_cpus(1) * 2))}"
    for slow_us, raced in ((20 * PLAYED_US, False), (PLAYED_US // 2, True)):
        (shape,) = litmus.parse(run(program, f"{words} --slow-us={slow_us}").stdout)
        assert bool(shape.raced) == raced, shape


AWAY = """
#include <signal.h>
static struct { char *begin; size_t size; } away[8];
static void came(int signal, siginfo_t *info, void *context)
{
	struct timespec time = { .tv_nsec = 20000000 };
	for (int i = 0; i < 8; i++)
		if ((char *)info->si_addr >= away[i].begin && (char *)info->si_addr < away[i].begin + away[i].size) {
			nanosleep(&time, NULL);
			mprotect(away[i].begin, away[i].size, PROT_READ | PROT_WRITE);
			return;
		}
	_exit(128 + signal);
}
static void go_away(struct thread *thread)
{
	struct sigaction action = { .sa_sigaction = came, .sa_flags = SA_SIGINFO };
	unsigned int n = thread->number;
	sigaction(SIGSEGV, &action, NULL);
	away[n].begin = (char *)thread;
	away[n].size = sizeof(*thread);
	mprotect(thread, sizeof(*thread), PROT_NONE);
}
static uint64_t delay_of("""


def test_what_is_no_cell_makes_no_round_slow(tmp_path: Path) -> None:
    """A thread's own pages are fetched before its first round, not in it: they are away each time that a turn begins."""
    cpus = (own_cpus(2) * 2)[:2]
    away = {
        "#include <numaif.h>\n": "#include <numaif.h>\n#include <unistd.h>\n",
        "static uint64_t delay_of(": AWAY,
        "\t/* Its pages come now, and not in a round. */\n": "\tgo_away(thread);\n",
    }
    turns = 8
    words = f"--shape=corr --variant=plain --rounds={turns * 128} --slow-us=15000 --cpus={cpus[0]},{cpus[1]}"
    (tmp_path / "right").mkdir()
    (shape,) = litmus.parse(run(changed(tmp_path / "right", away), words).stdout)
    # Somebody else may have had the CPU in a few.
    assert shape.rounds == turns * 128 and shape.raced <= turns / 4, shape
    # As it was: the time is written into the page, and then the round goes on.
    wrong = {
        "begun = __rdtsc();\n": "if (!slot)\n\t\t\tgo_away(thread);\n\t\tthread->seen[slot].begun = begun = __rdtsc();\n",
        "slot && is_too_late(time)": "0",
        "\t\ttake_page(thread, slot);\n": "",
        WAITS: "",
    }
    (tmp_path / "wrong").mkdir()
    program = changed(tmp_path / "wrong", away | wrong)

    def raced_for_nothing() -> bool:
        """Both have to wait within 20 ms of each other, for which both need a CPU."""
        (shape,) = litmus.parse(run(program, words).stdout)
        return shape.raced > turns / 4

    wait_for("a round that waits for a thread's own page", 120, raced_for_nothing)


LOADS_MP = "case MP * MOST_THREADS + 1:\n\t\tvalue[0] = load(v, y); between(v); value[1] = load(v, x);"
# A line, what it becomes, a shape that has to notice it and in which variants: stale values, and stores that get lost.
WRONG = {
    "sb": ("value[0] = load(v, y);\n\t\tbreak;\n\tcase SB", "value[0] = 0;\n\t\tbreak;\n\tcase SB", "fence,lock,split"),
    "mp": (LOADS_MP, LOADS_MP.replace("load(v, x)", "0"), "plain,fence,lock,split,nt"),
    "lb": ("value[0] = load(v, x); between(v); store(v, y, one);", "store(v, y, one); value[0] = one;", "plain,lock,split"),
    "corr": ("value[1] = load(v, x);\n\t\tbreak;\n\tcase IRIW * MOST_THREADS + 1", "value[1] = 0;\n\t\tbreak;\n"
             "\tcase IRIW * MOST_THREADS + 1", "plain,nt"),
    "22w": ("store(v, y, one); between(v); store(v, x, two);", "store(v, y, one); store(v, x, one);", "plain,split"),
    "r": ("store(v, y, two); between(v); value[0] = load(v, x);", "value[0] = 0; store(v, y, two);", "fence,lock"),
    "s": ("case S * MOST_THREADS + 1:\n\t\tvalue[0] = load(v, y); between(v); store(v, x, one);",
          "case S * MOST_THREADS + 1:\n\t\tvalue[0] = one;", "plain,nt"),
}  # fmt: skip


# Each round begins when all threads have come to it, whatever else the CPUs have to do: each order of the threads is seen soon.
TOGETHER = {
    "slot && is_too_late(time)": "0",
    WAITS: "delay_of(thread, slot);\n\t\tmeet();\n",
}


# A stale value, and a store that gets lost; as in the other shapes.
@pytest.mark.parametrize("shape", rest_in_soak(WRONG, "mp", "22w"))
def test_what_is_wrong_is_noticed(tmp_path: Path, shape: str) -> None:
    line, wrong, variants = WRONG[shape]
    program = changed(tmp_path, {line: wrong} | TOGETHER)
    cpus = (own_cpus(2) * 2)[:2]
    missing = variants.split(",")
    seeds = iter(range(1000))

    def seen() -> bool:
        """Some have to be noticed in a race, for which both threads need a CPU."""
        for variant in tuple(missing):
            # The kernel may let a process wait 10 ms for each split lock (split_lock_mitigate).
            rounds = 32 if variant == "split" else 640
            words = f"--shape={shape} --variant={variant} --rounds={rounds} --cpus={cpus[0]},{cpus[1]} --seed={next(seeds)}"
            done = run(program, words)
            (found,) = litmus.parse(done.stdout)
            assert done.returncode == bool(found.forbidden) and litmus.metrics([found])[0].value == found.forbidden, done
            if found.forbidden:
                missing.remove(variant)
        return not missing

    wait_for(f"{shape} is noticed", 120, seen)


# Each instruction says what it is instead of being done.
SAYS = {
    'asm volatile("movq %1, %0" : "=m" (*(uint64_t *)cell) : "r" (value) : "memory");': 'did("store", cell, true, value);',
    'asm volatile("xchgq %1, %0" : "+m" (*(uint64_t *)cell), "+r" (value) : : "memory");': 'did("exchange", cell, true, '
    'value);',
    'asm volatile("movnti %1, %0" : "=m" (*(uint64_t *)cell) : "r" (value) : "memory");': 'did("nt", cell, true, value);',
    'asm volatile("lock xaddq %1, %0" : "+m" (*(uint64_t *)cell), "+r" (value) : : "memory");': 'did("add", cell, false, 0);',
    'asm volatile("movq %1, %0" : "=r" (value) : "m" (*(uint64_t *)cell) : "memory");': 'did("load", cell, false, 0);',
    'asm volatile("mfence" : : : "memory");': 'did("mfence", NULL, false, 0);',
    'else if (v == NT)\n\t\tasm volatile("sfence" : : : "memory");': 'else if (v == NT)\n\t\tdid("sfence", NULL, false, 0);',
    'is over. */\n\tif (v == NT)\n\t\tasm volatile("sfence" : : : "memory");': 'is over. */\n\tif (v == NT)\n'
    '\t\tdid("sfence", NULL, false, 0);',
    "/* --- what is tested ": "static void did(const char *what, const void *cell, bool stores, uint64_t value);\n"
    "/* --- what is tested ",
    "int main(int argc, char **argv)\n{\n": '#include "litmus_verdicts.h"\nint main(int argc, char **argv)\n{\n'
    "\tif (argc == 1) {\n\t\tprint_verdicts();\n\t\treturn 0;\n\t}\n",
}  # fmt: skip
# What the variants are, by the instructions of the two: a store, a load, what is between, and what is behind all of it.
INSTRUCTIONS = {
    "plain": ("store", "load", (), ()),
    "fence": ("store", "load", ("mfence",), ()),
    "lock": ("exchange", "load", (), ()),
    "split": ("exchange", "add", (), ()),
    "nt": ("nt", "load", ("sfence",), ("sfence",)),
}
# The shapes of "Herding Cats", by hand.
HERDING = {
    "sb": (("x=1", "y"), ("y=1", "x")),
    "mp": (("x=1", "y=1"), ("y", "x")),
    "lb": (("x", "y=1"), ("y", "x=1")),
    "corr": (("x=1",), ("x", "x")),
    "iriw": (("x=1",), ("y=1",), ("x", "y"), ("y", "x")),
    "22w": (("x=1", "y=2"), ("y=1", "x=2")),
    "r": (("x=1", "y=1"), ("y=2", "x")),
    "s": (("x=2", "y=1"), ("y", "x=1")),
}


def thread_of(variant: str, accesses: Sequence[str]) -> tuple[str, ...]:
    """The instructions of a thread that makes these accesses, "x=1" or "x"."""
    store, load, between, end = INSTRUCTIONS[variant]
    each = [f"{store} {access.replace('=', ' ')}" if "=" in access else f"{load} {access}" for access in accesses]
    return (*each[:1], *(between if len(each) > 1 else ()), *each[1:], *end)


@functools.cache
def allowed_of(threads: tuple[tuple[str, ...], ...]) -> set[tuple[int, ...]]:
    return tso.outcomes(threads)


def verdicts_of(folder: Path, changes: dict[str, str]) -> list[list[str]]:
    """Lines of litmus_verdicts.h, in words. Nothing races here, so the compiler need not take long."""
    done = run(changed(folder, SAYS | changes, f"-O0 -I{Path(__file__).parent}"), "")
    assert done.returncode == 0, done
    return [line.split(" ") for line in done.stdout.splitlines()]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory) -> list[list[str]]:
    return verdicts_of(tmp_path_factory.mktemp("verdicts"), {})


def check_verdicts(verdicts: list[list[str]]) -> None:
    """Each shape and variant is what its name says; of all that can be in registers and cells the program forbids no more and
    no less than what x86-TSO (tso.py) has in no run, and what is older than the turn is forbidden, too."""
    allowed: set[tuple[int, ...]] = set()
    found = {}
    for words in verdicts:
        if words[0] == "shape":
            threads = [tuple(thread.split(",")) if thread != "-" else () for thread in words[3:]]
            key = words[1], words[2]
            said = [tuple(thread.replace("-", " ") for thread in each) for each in threads]
            assert said == [thread_of(words[2], accesses) for accesses in HERDING[words[1]]], words
            allowed = allowed_of(tuple(said))
            found[key] = (len(allowed), 0)
        elif words[0] not in ("cells", "times", "rest", "look"):
            *seen, forbidden = map(int, words)
            assert bool(forbidden) == (tuple(seen) not in allowed), (key, seen, forbidden)
            found[key] = (found[key][0], found[key][1] + (not forbidden))
    assert list(found) == [(shape, variant) for shape in litmus.SHAPES for variant in litmus.VARIANTS]
    # All that TSO allows was asked for: nothing that is seen is taken for something else.
    assert all(allowed_ones == not_forbidden for allowed_ones, not_forbidden in found.values()), found


def check_cells(verdicts: list[list[str]]) -> None:
    """None shares a line with another, but for the one that is in two pages with the first one there; those of "split" are in
    two lines each, and one of each page in two pages. Teams have those of a slot in one page, and the next ones in the next."""
    cells = [(words[1], [list(map(int, slot.split(","))) for slot in words[2:]]) for words in verdicts if words[0] == "cells"]
    assert [(v, len(slots[0])) for v, slots in cells] == [(v, teams) for v in litmus.VARIANTS for teams in range(8, 0, -1)]
    for variant, slots in cells:
        teams, places = len(slots[0]), [at for slot in slots for at in slot]
        assert len(slots) == 32 // teams * 4 and {len(slot) for slot in slots} == {teams}
        assert all({at // 4096 for at in slot} == {number % 4} for number, slot in enumerate(slots)), (variant, teams)
        lines = [{at // 64, (at + 7) // 64} for at in places]
        across = [at for at in places if at // 4096 != (at + 7) // 4096]
        assert len(set[int]().union(*(range(at, at + 8) for at in places))) == 8 * len(places), variant
        assert sum(map(len, lines)) - len(set[int]().union(*lines)) == max(len(across) - 1, 0), variant
        assert {len(each) for each in lines} == {2 if variant == "split" else 1}, variant
        assert len(across) == (4 if variant == "split" and 32 % teams == 0 else 0), (variant, across)


def check_races(verdicts: list[list[str]]) -> None:
    """A round of iriw, with two threads on each host: two of different ones overlap, and one of those has waited for 15."""
    hosts, slow = (0, 1, 0, 1), 15
    asked = [list(map(int, words[1:])) for words in verdicts if words[0] == "times"]
    assert len(asked) == 5**4
    for *times, overlapped, raced in asked:
        spans = list(zip(times[::2], times[1::2], strict=True))
        pairs = [(spans[a], spans[b]) for a in range(4) for b in range(a) if hosts[a] != hosts[b]]
        those = [(one, two) for one, two in pairs if max(one[0], two[0]) <= min(one[1], two[1])]
        waited = [pair for pair in those if any(end - begin >= slow for begin, end in pair)]
        assert (overlapped, raced) == (bool(those), bool(waited)), spans


def check_rest(verdicts: list[list[str]]) -> None:
    """Four CPUs more than a team of iriw wants, in cells of the next rounds if they did anything: nobody would see it."""
    assert [words for words in verdicts if words[0] == "rest"] == [["rest", "-"]]


def check_look(verdicts: list[list[str]]) -> None:
    """16 slots of two teams, by the bits of a slot's number (litmus_verdicts.h): each is counted by what is seen in it."""
    ((again, *counts),) = [list(map(int, words[1:])) for words in verdicts if words[0] == "look"]
    done = [(slot, team) for slot in range(16) for team in range(2) if team or not slot & 8]
    overlapped = [(slot, team) for slot, team in done if not slot & 1]
    raced = [(slot, team) for slot, team in overlapped if slot & 2 << team]
    seen = [(0, 1, 4)[(slot + team) % 3] for slot, team in done]
    assert again and counts[:5] == [len(done), len(overlapped), len(raced), len({slot for slot, _ in raced}), 0], counts
    assert counts[5:] == [seen.count(number) for number in range(9)], counts


LOOKS = {
    "what is forbidden": check_verdicts, "where cells are": check_cells, "what races": check_races, "who rests": check_rest,
    "what is counted": check_look,
}  # fmt: skip


@pytest.mark.parametrize("what", LOOKS)
def test_verdicts(verdicts: list[list[str]], what: str) -> None:
    LOOKS[what](verdicts)


# A line, and what it becomes: each is noticed by one look.
WRONG_VERDICTS = {
    "an access in one line": ("#define SPLIT\t\t60u", "#define SPLIT\t\t56u", "where cells are"),
    "an access in one page": (": PAGE - 4);", ": PAGE - 8);", "where cells are"),
    "cells in one line": ("#define STRIDE\t\t128u", "#define STRIDE\t\t32u", "where cells are"),
    "iriw by three loads": ("o->value[3][0] && !o->value[3][1];", "o->value[3][0];", "what is forbidden"),
    "lb by one": ("o->value[0][0] && o->value[1][0];", "o->value[1][0];", "what is forbidden"),
    "a store buffer of what is not temporal": ("(variant == PLAIN || variant == NT)", "variant == PLAIN", "what is forbidden"),
    "a value that nobody has stored": ("if (value > 1)", "if (value == VALUES)", "what is forbidden"),
    "a copy that is older than the turn": ("raw <= run.base ||", "", "what is forbidden"),
    "a value that the turn before has stored": ("run.base += VALUES - 1;", "run.base += 1;", "what is forbidden"),
    "half of a value": ("if (raw % BOTH)\n\t\t\treturn VALUES;", "", "what is forbidden"),
    "a fence that is missing": ("store(v, y, one); between(v); value[0] = load(v, x);",
                                "store(v, y, one); value[0] = load(v, x);", "what is forbidden"),
    "iriw's readers look alike": ("value[0] = load(v, x); between(v); value[1] = load(v, y);",
                                  "value[0] = load(v, y); between(v); value[1] = load(v, x);", "what is forbidden"),
    "two threads of one host": ("run.options->hosts[i] == run.options->hosts[j] ||", "", "what races"),
    "teams that share a cell": ("slot / PAGES * run.teams + team;", "slot / PAGES * run.teams;", "where cells are"),
    "teams that share a page by turns": ("pages + slot % PAGES * PAGE;", "pages + (slot + team) % PAGES * PAGE;",
                                         "where cells are"),
    "more cells than there are": ("CELLS / run.teams * PAGES;", "CELLS * PAGES / run.teams;", "where cells are"),
    "what the first team has seen": ("threads[number_of_cpu(team, thread)].seen[slot].value[i]",
                                     "threads[thread].seen[slot].value[i]", "what is forbidden"),
    "what is in the first team's cells": ("cell_of(run.y, slot, team));\n\tif (!((", "cell_of(run.y, slot, 0));\n\tif (!((",
                                          "what is forbidden"),
    "when the first team began": ("i = number_of_cpu(team, a), j = number_of_cpu(team, b);", "i = a, j = b;", "what races"),
    "who has no team does its rounds": ("\tif (number >= number_of_cpu(run.teams, 0))\n\t\treturn;\n", "", "who rests"),
    "one of those does": ("if (number >= number_of_cpu(run.teams, 0))", "if (number > number_of_cpu(run.teams, 0))",
                          "who rests"),
    "each team that races has a slot": ("run.tally.raced_slots += run.tally.raced > before;",
                                        "run.tally.raced_slots += run.tally.raced - before;", "what is counted"),
    "a slot in which nobody races": ("run.tally.raced_slots += run.tally.raced > before;", "run.tally.raced_slots++;",
                                     "what is counted"),
    "what was seen in the first slot": ("threads[number_of_cpu(team, thread)].seen[slot].value[i]",
                                        "threads[number_of_cpu(team, thread)].seen[0].value[i]", "what is counted"),
    "when the first slot began": ("*one = &threads[i].seen[slot], *two = &threads[j].seen[slot];",
                                  "*one = &threads[i].seen[0], *two = &threads[j].seen[0];", "what is counted"),
    "a round of one thread": ("if (!threads[number_of_cpu(team, thread)].seen[slot].begun)",
                              "if (!threads[number_of_cpu(team, 0)].seen[slot].begun)", "what is counted"),
    "who has waited for long enough": ("one->ended - one->begun >= run.slow ||", "one->ended - one->begun > run.slow ||",
                                       "what races"),
}  # fmt: skip


# One for each look.
SHOWN_VERDICTS = ("a fence that is missing", "cells in one line", "two threads of one host", "one of those does",
                  "what was seen in the first slot")  # fmt: skip


@pytest.mark.parametrize("what", rest_in_soak(WRONG_VERDICTS, *SHOWN_VERDICTS))
def test_wrong_verdicts_are_noticed(tmp_path: Path, what: str) -> None:
    old, new, look = WRONG_VERDICTS[what]
    found = verdicts_of(tmp_path, {old: new})
    with pytest.raises(AssertionError):
        LOOKS[look](found)


def test_half_a_value_is_impossible(tmp_path: Path) -> None:
    line = "const uint64_t unit = v == SPLIT_LOCK ? BOTH : 1,"
    program = changed(tmp_path, {line: "const uint64_t unit = 1,"})
    cpus = (own_cpus(2) * 2)[:2]
    done = run(program, f"--shape=mp --variant=lock,split --rounds=64 --cpus={cpus[0]},{cpus[1]}")
    assert done.returncode == 1
    assert [each.impossible for each in litmus.parse(done.stdout)] == [0, 64]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--shape=xx", "--shape=xx: there is no such one"),
        ("--variant=plain,", None),
        ("--variant=slow", "--variant=slow"),
        (f"--cpus={','.join('0' * 17)}", "more than 16"),
        ("--teams=0", "--teams=0: want a number from 1 to 8"),
        ("--cpus=0,x", "--cpus=x"),
        ("--cpus=0;1", "a comma between"),
        ("--cpus=0,1 --shape=iriw", "iriw wants 4 CPUs, --cpus has 2"),
        ("--cpus=0,1023 --shape=mp --rounds=32", "CPU 1023"),
        ("--cpus=0,1 --hosts=0", "--hosts has 1 of them, --cpus 2"),
        ("--hosts=0,16", "--hosts=16: want a number from 0 to 15"),
        ("--nodes=0", "want two"),
        ("--nodes=0,63", "--nodes=63: want a number from -1"),
        ("--rounds=0", "--rounds=0: want a number from 1"),
        ("--rounds=1x", "--rounds=1x"),
        ("--shape=", "--shape: names none"),
        ("--shape=, --variant=plain", "--shape: names none"),
        ("--cpus=0", "--cpus has 1, a shape wants 2 or 4"),
        ("--variant=,", "--variant: names none"),
        ("--unknown", "Usage"),
        ("mp", "mp: there are only options"),
    ],
)
def test_words(program: Path, words: str, part: str | None) -> None:
    done = run(program, f"{words} --rounds=32" if part is None else words)
    assert done.returncode == (0 if part is None else 2) and (part or "") in done.stderr, done.stdout + done.stderr


SHAPE: dict[str, Any] = {
    "event": "shape", "shape": "mp", "variant": "plain", "rounds": 4, "overlapped": 3, "raced": 2, "raced_slots": 1, "weak": 1,
    "weak_allowed": False, "impossible": 1, "outcomes": {"a=1 b=0": 1, "a=0 b=0": 2},
}  # fmt: skip
RESULT = {"event": "result", "rounds": 4, "forbidden": 2}


def lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


def test_figures() -> None:
    allowed = {**SHAPE, "shape": "sb", "weak": 4, "weak_allowed": True, "impossible": 0, "outcomes": {"a=0 b=0": 4}}
    found = litmus.parse(lines(SHAPE, allowed, {**RESULT, "rounds": 8}))
    figures = {each.metric: each for each in litmus.metrics(found)}
    assert figures["litmus.forbidden"].value == 2 and "mp plain" in figures["litmus.forbidden"].note
    assert set(figures) == {"litmus.forbidden", "litmus.raced.mp", "litmus.raced.sb"}
    assert figures["litmus.raced.mp"].value == 2
    assert figures["litmus.raced.mp"].baseline == {"raced_plain": 2, "raced_slots": 1, "rounds": 4}
    assert figures["litmus.raced.sb"].baseline == {"raced_plain": 2, "weak_plain": 4, "raced_slots": 1, "rounds": 4}


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not ended"),
        (lines(SHAPE), "not ended"),
        ("x\n", "not JSON"),
        (lines([1]), "unexpected"),
        (lines({**RESULT, "rounds": 0, "forbidden": 0}), "no shape"),
        (lines(RESULT, SHAPE), "its sums"),
        (lines(SHAPE, RESULT, SHAPE), "unexpected line"),
        (lines({**SHAPE, "event": "other"}, RESULT), "unexpected line"),
        (lines({**SHAPE, "shape": "xx"}, RESULT), "unexpected shape"),
        (lines({**SHAPE, "variant": 3}, RESULT), "unexpected shape"),
        (lines({**SHAPE, "weak_allowed": 0}, RESULT), "unexpected shape"),
        (lines({**SHAPE, "rounds": True}, RESULT), "no number of at least 0"),
        (lines({**SHAPE, "raced": -1}, RESULT), "no number of at least 0"),
        (lines({**SHAPE, "outcomes": {"a=0": "1"}}, RESULT), "no number of at least 0"),
        (lines({**SHAPE, "outcomes": {"a=0": 2}}, RESULT), "4 rounds"),
        (lines({**SHAPE, "weak_allowed": True}, {**RESULT, "forbidden": 1}), "TSO says otherwise"),
        (lines({**SHAPE, "shape": "sb", "outcomes": {"a=0 b=0": 1, "a=1 b=0": 2}}, RESULT), "TSO says otherwise"),
        (lines({**SHAPE, "weak": 0}, {**RESULT, "forbidden": 1}), "0 weak ones"),
        (lines({**SHAPE, "overlapped": 5}, RESULT), "more than all"),
        (lines({**SHAPE, "overlapped": 1}, RESULT), "more than all"),
        (lines({**SHAPE, "raced_slots": 3}, RESULT), "more than all"),
        (lines({**SHAPE, "raced_slots": 0}, RESULT), "2 raced in 0 raced slots"),
        (lines({**SHAPE, "rounds": 10, "overlapped": 9, "raced": 9, "outcomes": {"a=1 b=0": 1, "a=0 b=0": 8}}, RESULT),
         "9 raced in 1 raced slots"),
        (lines(SHAPE, {**RESULT, "forbidden": 0}), "its sums"),
    ],
)
def test_malformed_output_is_refused(text: str, part: str) -> None:
    with pytest.raises(Malformed, match=part):
        litmus.parse(text)


def test_what_a_console_has_room_for(program: Path) -> None:
    """As the guest's init shortens it: the same counts, and what is wrong in them is refused as well."""
    found = re.search(r"sed '(.*?)' \|", linux_vcpu.LITMUS_INIT.replace("{{", "{"))
    assert found
    cpus = ",".join(map(str, (own_cpus(2) * 2)[:2]))
    printed = run(program, f"--cpus={cpus} --rounds=32 --shape=sb").stdout
    shapes = "".join(line for line in printed.splitlines(keepends=True) if '"shape"' in line)
    short = subprocess.run(["sed", found[1]], input=shapes, capture_output=True, text=True, check=True).stdout
    wanted = [dataclasses.replace(each, outcomes={}) for each in litmus.parse(printed)]
    assert litmus.parse_short("".join(f"(d3) VCPU {line}\n" for line in short.splitlines())) == wanted
    (wrong,) = litmus.parse_short("(d3) VCPU online 0-1\n(d3) VCPU shape,mp,plain,4,3,2,1,1,false,1 -\r\n")
    assert (wrong.raced, wrong.weak, wrong.forbidden) == (2, 1, 2)
    for line, part in (
        ("shape,mp,plain,4,3,2,1,1,true,0", "TSO says otherwise"),
        ("shape,sb,plain,4,3,2,1,1,false,0", "TSO says otherwise"),
        ("shape,mp,plain,4,2,3,1,0,false,0", "more than all"),
        ("shape,mp,plain,4,3,2,1,5,false,0", "more than all"),
        ("shape,mp,plain,4,3,2,1,2,false,3", "more than all"),
        ("shape,mp,plain,0,0,0,0,0,false,0", "no rounds"),
        ("shape,xx,plain,4,3,2,1,1,false,0", "unexpected shape"),
        ("shape,mp,xx,4,3,2,1,1,false,0", "unexpected shape"),
    ):
        with pytest.raises(Malformed, match=part):
            litmus.parse_short(line)
