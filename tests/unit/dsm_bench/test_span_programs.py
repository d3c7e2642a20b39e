# SPDX-License-Identifier: GPL-2.0
"""span_kv and span_latency here: what they print is what the parsers read, and each wrong value and each mistake is noticed."""

from __future__ import annotations

import dataclasses
import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from benchmarks.span_output import parse_calls, parse_kv
from lab.errors import Malformed
from lab.pipeline.paths import REPO
from tests.unit.dsm_bench.changed_program import run
from tests.unit.dsm_bench.played_privcmd import privcmd

SOURCES = REPO / "benchmarks" / "programs"
OWN_CPU = min(os.sched_getaffinity(0))


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("span")
    goals = [folder / name for name in ("span_kv", "span_latency")]
    subprocess.run(["make", "-s", "-C", REPO / "benchmarks", f"O={folder}", *goals], check=True)
    return folder


def cpus(number: int) -> str:
    """So many threads on the CPUs that there are."""
    own = sorted(os.sched_getaffinity(0))
    return ",".join(str(own[n % len(own)]) for n in range(number))


# --- the key-value store --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["packed", "paged"])
@pytest.mark.parametrize("threads", [1, 2, 4])
def test_a_store_is_right(built: Path, layout: str, threads: int) -> None:
    """All values, whoever put them; as many puts as were asked for; all operations have a time."""
    done = run(built / "span_kv", f"--cpus={cpus(threads)} --ops=5000 --layout={layout} --puts=30 --seed=3")
    assert done.returncode == 0, done.stdout + done.stderr
    found = parse_kv(done.stdout)
    assert (found.layout, found.keys, len(found.threads)) == (layout, 2048, threads)
    assert found.ops == {"load": 2048, "mix": 5000 * threads}
    assert sum(each.puts for each in found.threads) == pytest.approx(0.3 * 5000 * threads, rel=0.1)
    assert all(0 < each.p50_ns <= each.p99_ns for each in found.threads)


@pytest.mark.parametrize(("puts", "all_of"), [(0, "gets"), (100, "puts")])
def test_gets_and_puts_alone(built: Path, puts: int, all_of: str) -> None:
    found = parse_kv(run(built / "span_kv", f"--cpus={OWN_CPU} --ops=500 --puts={puts}").stdout)
    (thread,) = found.threads
    assert getattr(thread, all_of) == 500


def test_the_same_seed_does_the_same(built: Path) -> None:
    def puts(seed: int) -> int:
        return parse_kv(run(built / "span_kv", f"--cpus={OWN_CPU} --ops=3000 --seed={seed}").stdout).threads[0].puts

    assert puts(1) == puts(1) and len({puts(seed) for seed in range(4)}) > 1


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A mistake in a program, and what it says then."""

    line: str
    becomes: str
    wrong: str


MUTANTS = (
    Mutant("	entry->version++;", "	entry->version += !entry->version || key % 7;", "lost"),
    Mutant("	entry->version++;", "	entry->version += 1 + (key == 5);", "lost"),
    Mutant("entry->value[i] = word_of(key, entry->version, i);",
           "if (i < 5 || entry->version % 4) entry->value[i] = word_of(key, entry->version, i);", "torn"),
    Mutant("entry->value[i] = word_of(key, entry->version, i);",
           "entry->value[i] = word_of(key ^ (key == 99), entry->version, i);", "torn"),
    Mutant("		if (!first[at].version || first[at].key == key)",
           "		if (!first[at].version || first[at].key / 64 == key / 64)", "missing"),
    Mutant("	copy = *entry_of(shard, key);",
           "copy = *entry_of(shard, key); if (copy.version > 1 && key % 2) {"
           " copy.version--; for (int i = 0; i < WORDS; i++) copy.value[i] = word_of(key, copy.version, i); }", "old"),
    Mutant("		if (shard_of(key) * threads / store.shards == w->number)",
           "		if (key && shard_of(key) * threads / store.shards == w->number)", "missing"),
    # Two threads that each count by what they have seen themselves.
    Mutant("	entry->version++;", "	entry->version = w->seen[key] + 1;", "lost"),
)  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.becomes[:60])
def test_a_mistake_is_noticed(tmp_path: Path, mutant: Mutant) -> None:
    """By the check that is there for it: by its count, its exit status, and the parser."""
    sources = tmp_path / "programs"
    shutil.copytree(SOURCES, sources)
    file = sources / "span_kv.c"
    text = file.read_text(encoding="utf-8")
    assert text.count(mutant.line) == 1, "adapt the table: this line is not there once"
    file.write_text(text.replace(mutant.line, mutant.becomes), encoding="utf-8")
    goal = tmp_path / "span_kv"
    subprocess.run(["gcc", "-std=gnu11", "-O2", "-pthread", "-o", goal, file], check=True)
    done = run(goal, f"--cpus={cpus(2)} --puts=50 --keys=256 --ops=3000")
    assert done.returncode == 1, done.stdout + done.stderr
    assert json.loads(done.stdout.splitlines()[-1])[mutant.wrong] != 0, done.stdout
    with pytest.raises(Malformed, match="wrong values"):
        parse_kv(done.stdout)


# --- calls ----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", ["membarrier", "wake", "nothing"])
def test_calls_between_two_cpus(built: Path, what: str) -> None:
    """As many as were asked for; what nothing takes is the pause that was asked for."""
    done = run(built / "span_latency", f"--what={what} --cpus={cpus(2)} --rounds=5 --us=2000")
    assert done.returncode == 0, done.stdout + done.stderr
    found = parse_calls(done.stdout, what)
    assert len(found.ns) == 5 and found.cpus == tuple(map(int, cpus(2).split(",")))
    if what == "nothing":
        assert min(found.ns) >= 2_000_000
    # To meet takes time, and is not within the calls.
    assert len(found.met_ns) == (5 if what == "membarrier" else 0) and all(found.met_ns)
    if what == "wake":
        assert len(found.back_ns) == 5 and 0 < found.slept <= 10


def test_hypercalls(built: Path, tmp_path: Path) -> None:
    """Their numbers and structures are Xen's: sizes and places as in its public headers."""
    library = privcmd(tmp_path, status_ns=1_000_000)
    for what, least in (("version", 0), ("status", 1_000_000)):
        done = run(built / "span_latency", f"--what={what} --cpus={OWN_CPU} --rounds=4", LD_PRELOAD=library)
        assert done.returncode == 0, done.stderr
        found = parse_calls(done.stdout, what)
        assert len(found.ns) == 4 and min(found.ns) >= least


def test_a_port_that_says_nothing(built: Path, tmp_path: Path) -> None:
    """An answer without its bytes is none; neither is a kernel that has no privcmd."""
    words = f"--what=status --cpus={OWN_CPU} --rounds=4"
    done = run(built / "span_latency", words, LD_PRELOAD=privcmd(tmp_path, status=0))
    assert done.returncode == 1 and "port 1 is closed" in done.stderr and done.stdout == ""
    done = run(built / "span_latency", words, LD_PRELOAD=privcmd(tmp_path, wrong=8))
    assert done.returncode == 1 and "/dev/xen/privcmd: No such file" in done.stderr
    done = run(built / "span_latency", words.replace("status", "version"), LD_PRELOAD=privcmd(tmp_path, wrong=7))
    assert done.returncode == 1 and "version: Operation not permitted" in done.stderr and done.stdout == ""


@pytest.mark.parametrize(
    ("program", "words", "part"),
    [
        ("span_kv", "", "Usage"),
        ("span_kv", "--cpus=0 more", "Usage"),
        ("span_kv", "--cpus=x", "--cpus=x"),
        ("span_kv", "--cpus=" + ",".join(["0"] * 17), "more than 16"),
        ("span_kv", "--cpus=1023", "CPU 1023"),
        ("span_kv", "--cpus=0 --layout=other", "want packed or paged"),
        ("span_kv", "--cpus=0 --keys=63", "--keys=63: want a number"),
        ("span_kv", "--cpus=0 --puts=101", "--puts=101"),
        ("span_kv", "--cpus=0 --ops=0", "--ops=0"),
        ("span_latency", "", "Usage"),
        ("span_latency", "--what=wake --cpus=0", "Usage"),
        ("span_latency", "--what=status --cpus=0,0", "Usage"),
        ("span_latency", "--what=other --cpus=0,0", "want membarrier, wake"),
        ("span_latency", "--what=wake --cpus=0,0 --rounds=0", "--rounds=0"),
        ("span_latency", "--what=wake --cpus=1023,0", "CPU 1023"),
    ],
)
def test_words_that_make_no_sense(built: Path, program: str, words: str, part: str) -> None:
    done = run(built / program, words)
    assert done.returncode == 2 and part in done.stderr and '"ns"' not in done.stdout


@pytest.mark.parametrize("program", ["span_kv", "span_latency"])
def test_help(built: Path, program: str) -> None:
    done = run(built / program, "--help")
    assert done.returncode == 0 and done.stderr == "" and f"Usage: {program} " in done.stdout
