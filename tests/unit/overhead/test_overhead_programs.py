# SPDX-License-Identifier: GPL-2.0
"""The programs that measure a change's overhead: they compute what is known to be right, follow the topology, notice errors."""

from __future__ import annotations

import dataclasses
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks.overhead import CLASSES, LARGER_CLASSES
from benchmarks.program_output import TimedRun, parse_timed
from lab.errors import Malformed
from tests.unit.libgomp.gomp_player import AB, CPUS, ELASTIC, STOCK, A, page
from tests.unit.overhead import programs

ITERATIONS = {
    "npb_ep": {"S": 16, "W": 32, "A": 256},
    "npb_is": {"S": 10, "W": 10, "A": 10},
    "npb_cg": {"S": 15, "W": 15, "A": 15},
    "npb_mg": {"S": 4, "W": 4, "A": 4},
    "random_access": {"S": 16, "W": 16, "A": 16},
    "stream": {"S": 10, "W": 10, "A": 10},
}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return programs.build(tmp_path_factory.mktemp("timed"))


def run_well(program: Path, *words: str, library: Path | None = None, **settings: str) -> TimedRun:
    """Run to a good end; what it said."""
    done = programs.run(program, *words, env=programs.environment(library, **settings))
    assert done.returncode == 0, f"status {done.returncode}: {done.stdout[-1000:]}{done.stderr}"
    run = parse_timed(done.stdout)
    assert run.outcome and run.outcome.verified and not run.wrong
    return run


# --- right results -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("letter", ["S", "W"])
@pytest.mark.parametrize("name", programs.NAMES)
def test_right_with_stock_libgomp(built: Path, name: str, letter: str) -> None:
    """By the published values; each iteration has its line, and times and CPU time add up."""
    assert STOCK, "no stock libgomp: build it (make unit does), or name its folder in XENUMA_LIBGOMP_STOCK"
    run = run_well(built / name, f"--class={letter}", library=STOCK)
    assert (run.program, run.problem) == (name, letter)
    assert len(run.steps) == ITERATIONS[name][letter]
    assert len({step.threads for step in run.steps}) == 1
    assert run.outcome
    assert run.outcome.seconds == pytest.approx(sum(step.ms for step in run.steps) / 1e3, rel=0.01, abs=2e-4)
    assert run.outcome.gap_ms <= max(step.ms for step in run.steps) + 0.001
    cpu = [step.user_s + step.system_s for step in run.steps]
    assert cpu == sorted(cpu) and run.outcome.user_s + run.outcome.system_s >= cpu[-1] - 1e-6
    assert [step.t for step in run.steps] == sorted(step.t for step in run.steps)


@pytest.mark.parametrize("name", ["npb_is", "npb_cg", "npb_mg", "random_access", "stream"])
def test_class_a_is_right(built: Path, name: str) -> None:
    """EP's, which takes longer, is not run here (docs/plan/9.md)."""
    run = run_well(built / name, "--class=A")
    assert len(run.steps) == ITERATIONS[name]["A"]


@pytest.mark.parametrize("threads", ["1", "3", "7"])
@pytest.mark.parametrize("name", programs.NAMES)
def test_right_with_any_team(built: Path, name: str, threads: str) -> None:
    """More threads than CPUs, and numbers by which nothing can be divided."""
    run = run_well(built / name, "--class=S", OMP_NUM_THREADS=threads)
    assert {step.threads for step in run.steps} == {int(threads)}


@pytest.mark.parametrize("name", ["npb_is", "npb_cg", "npb_mg", "random_access", "stream"])
def test_rounds(built: Path, name: str) -> None:
    """The whole again, from the start, and only the iterations are timed."""
    run = run_well(built / name, "--class=S", "--rounds=3")
    assert run.outcome and run.outcome.rounds == 3
    assert len(run.steps) == 3 * ITERATIONS[name]["S"]


@pytest.mark.parametrize("name", programs.NAMES)
def test_the_larger_classes_fit_into_the_guest(built: Path, name: str) -> None:
    """By what a program says that its iterations touch; when nodes have gone, all of it is in the two that stay."""
    letters = [CLASSES[name], LARGER_CLASSES[name]]
    touched = []
    for letter in letters:
        process = subprocess.Popen([built / name, f"--class={letter}"], stdout=subprocess.PIPE, text=True)
        assert process.stdout
        try:
            touched.append(parse_timed(process.stdout.readline()).bytes)
        finally:
            process.kill()
            process.communicate()
    assert letters == sorted(letters, key="SWAB".index) and touched[1] <= 512 << 20


# --- programs that follow the topology -----------------------------------------------------------------------------------


@pytest.mark.skipif(len(CPUS) < 2, reason="one CPU only: a team cannot grow")
@pytest.mark.parametrize(("first", "then"), [(A, AB), (AB, A)], ids=["grows", "shrinks"])
@pytest.mark.parametrize("name", programs.NAMES)
def test_a_team_follows_the_topology(built: Path, tmp_path: Path, name: str, first: int, then: int) -> None:
    """With the project's libgomp the unmodified program goes from one team to another on its way, and its results are right."""
    assert ELASTIC, "no libgomp.so.1: build it (make unit does), or name its folder in XENUMA_LIBGOMP"
    file = tmp_path / "page"
    file.write_bytes(page(first))
    # More lines than a pipe holds: the program is still at it when the page changes.
    rounds = 4 if name == "npb_ep" else 1300 // ITERATIONS[name]["S"]
    process = subprocess.Popen(
        [built / name, "--class=S", f"--rounds={rounds}"],
        env=programs.environment(ELASTIC, GOMP_TOPO_DEV=str(file)),
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout
    lines = list(changed_after(process.stdout, 3, file, then))
    assert process.wait(timeout=programs.SECONDS) == 0, "".join(lines[-5:])
    run = parse_timed("".join(lines))
    sizes = [step.threads for step in run.steps]
    assert sizes[0] == first.bit_count() and sizes[-1] == then.bit_count()
    assert sizes == sorted(sizes, reverse=then.bit_count() < first.bit_count()), "it changed more than once"


def changed_after(said: Iterator[str], iterations: int, file: Path, usable: int) -> Iterator[str]:
    """The lines; when so many iterations are done, the page has other CPUs."""
    for line in said:
        if '"iteration"' in line:
            iterations -= 1
            if iterations == 0:
                turn_page(file, usable)
        yield line


def turn_page(file: Path, usable: int) -> None:
    """A new version of the page, in the order in which the kernel writes it: seq odd, fields, seq even, version."""
    fresh = page(usable)
    with file.open("r+b", buffering=0) as out:
        seq = int.from_bytes(file.read_bytes()[16:20], "little")
        version = int.from_bytes(file.read_bytes()[8:16], "little")
        for offset, data in (
            (16, (seq + 1).to_bytes(4, "little")),
            (72, bytes(fresh[72:584])),
            (16, (seq + 2).to_bytes(4, "little")),
            (8, (version + 1).to_bytes(8, "little")),
        ):
            out.seek(offset)
            out.write(data)


# --- sequences -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sequences(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("sequences") / "sequences_test"
    source = Path(__file__).with_name("sequences_test.c")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-fopenmp", f"-I{programs.SOURCES}"]
    subprocess.run(["gcc", *flags, "-o", program, source, "-lm"], check=True)
    return program


def printed(program: Path, *words: object) -> list[int]:
    done = programs.run(program, *map(str, words))
    assert done.returncode == 0, done.stderr
    return [int(line) for line in done.stdout.splitlines()]


@pytest.mark.parametrize("skip", [0, 1, 2, 1000, 2**17 * 4095, 2**31 + 7])
@pytest.mark.parametrize("seed", [314159265, 271828183])
def test_the_nas_sequence(sequences: Path, seed: int, skip: int) -> None:
    """x' = 5^13 x mod 2^46, by numbers that have no limit."""
    wanted = [seed * pow(5, 13 * (skip + n), 2**46) % 2**46 for n in range(1, 200)]
    assert printed(sequences, "npb", seed, skip, 199) == wanted


def test_the_nas_sequence_by_halves(sequences: Path) -> None:
    """As the report gives it, in floating point with numbers of 23 bits."""
    r23, r46, t23, t46 = 2.0**-23, 2.0**-46, 2.0**23, 2.0**46
    x, a, wanted = 314159265.0, 1220703125.0, []
    for _ in range(100):
        a1 = float(int(r23 * a))
        a2 = a - t23 * a1
        x1 = float(int(r23 * x))
        x2 = x - t23 * x1
        t1 = a1 * x2 + a2 * x1
        z = t1 - t23 * int(r23 * t1)
        t3 = t23 * z + a2 * x2
        x = t3 - t46 * int(r46 * t3)
        wanted.append(int(x))
    assert printed(sequences, "npb", 314159265, 0, 100) == wanted


def hpcc(count: int, x: int = 1) -> Iterator[int]:
    for _ in range(count):
        x = (x << 1) % 2**64 ^ (7 if x >> 63 else 0)
        yield x


@pytest.mark.parametrize("skip", [0, 1, 62, 63, 64, 65, 4096, 100_000])
def test_the_hpcc_sequence(sequences: Path, skip: int) -> None:
    """Step by step, and by a jump."""
    assert printed(sequences, "hpcc", skip, 50) == list(hpcc(skip + 50))[skip:]


def test_the_hpcc_sequence_returns_to_its_start(sequences: Path) -> None:
    """Its period, as the rules have it."""
    assert printed(sequences, "hpcc", 1317624576693539401, 3) == list(hpcc(3))


# --- memory --------------------------------------------------------------------------------------------------------------


def memory_program(folder: Path, header: str) -> Path:
    """memory_test with this timed_run.h, and with an eye on all that it touches."""
    (folder / "timed_run.h").write_text(header, encoding="utf-8")
    program, source = folder / "memory_test", Path(__file__).with_name("memory_test.c")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-fopenmp", "-fsanitize=address"]
    subprocess.run(["gcc", *flags, f"-I{folder}", f"-I{programs.SOURCES}", "-o", program, source, "-lm"], check=True)
    return program


def places_are_apart(program: Path) -> bool:
    """Whether arrays of each size begin at a page, and no two of any thirty share a place of 64 pages; and can be freed."""
    for size in (1, 4096, 65537, 2 << 20, 5 << 20):
        done = programs.run(program, "40", str(size))
        if done.returncode:
            return False
        found = [int(line) for line in done.stdout.splitlines()]
        places = [address // 4096 % 64 for address in found]
        apart = all(len(set(places[n : n + 30])) == 30 for n in range(len(places) - 29))
        if len(found) != 40 or any(address % 4096 for address in found) or not apart:
            return False
    return True


HEADER = programs.SOURCES / "timed_run.h"


def test_arrays_share_no_place_of_a_small_tlb(tmp_path: Path) -> None:
    """Wherever thread stacks have made room for them: else a run would depend on the size of its first team."""
    assert places_are_apart(memory_program(tmp_path, HEADER.read_text(encoding="utf-8")))


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("nr++ % TIMED_COLOURS", "nr % TIMED_COLOURS"),
        ("(17UL << 12)", "(16UL << 12)"),
        ("(17UL << 12)", "(17UL << 6)"),
        ("__builtin_add_overflow(size, colour, &size)", "__builtin_add_overflow(size, 0, &size)"),
        ("& ~(TIMED_ALIGN - 1)", "& ~4095UL"),
        ("return (char *)p + colour;", "return p;"),
    ],
)
def test_arrays_that_share_one_are_noticed(tmp_path: Path, line: str, becomes: str) -> None:
    header = HEADER.read_text(encoding="utf-8")
    assert header.count(line) == 1, "adapt the table: this line is not there"
    assert not places_are_apart(memory_program(tmp_path, header.replace(line, becomes)))


# --- ticks ---------------------------------------------------------------------------------------------------------------


def ticks(folder: Path, header: str) -> dict[int, tuple[float, float]]:
    """What a program with this timed_run.h says of ticks_test's clocks, by how often they go on while they are read: seconds in
    user mode and in the kernel."""
    (folder / "timed_run.h").write_text(header, encoding="utf-8")
    program, source = folder / "ticks_test", Path(__file__).with_name("ticks_test.c")
    flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-O1", "-fopenmp", f"-I{folder}", f"-I{programs.SOURCES}"]
    subprocess.run(["gcc", *flags, "-o", program, source, "-lm"], check=True)
    found = {}
    for late in TICKS:
        outcome = parse_timed(programs.run(program, str(late)).stdout).outcome
        found[late] = (outcome.user_ticks_s, outcome.system_ticks_s) if outcome else (0.0, 0.0)
    return found


# 3 and 2 s of each of three rounds. Clocks that are never still are read ten times, of which each makes 10 s.
TICKS = {1: (9.0, 6.0), 1000: (9.0 + 3 * 100, 6.0)}


def test_ticks_are_those_of_iterations(tmp_path: Path) -> None:
    """Not of what is between two rounds; and one in user mode that comes while they are read does not count in the kernel.

    Where there always is one, as if a kernel counted without ticks, nobody waits for ever.
    """
    assert ticks(tmp_path, HEADER.read_text(encoding="utf-8")) == TICKS


@pytest.mark.parametrize(
    ("line", "becomes"),
    [
        ("((clockid_t)-8)", "((clockid_t)-7)"),
        ("((clockid_t)-7)", "((clockid_t)-8)"),
        ("((clockid_t)-8)", "((clockid_t)-6)"),
        ("user_s && --tries", "user_s && tries"),
        ("int tries = 10;", "int tries = 1;"),
        (".system_s = all_s - user_s,", ".system_s = all_s,"),
        ("run->ticks_before = timed_ticks();", ";"),
        ("run->ticked.user_s +=", "run->ticked.user_s ="),
        ("run->ticked.system_s += ticks.system_s", "run->ticked.system_s += ticks.user_s"),
        ("run->ticked.user_s, run->ticked.system_s,", "run->ticked.system_s, run->ticked.user_s,"),
    ],
)
def test_ticks_that_are_others_are_noticed(tmp_path: Path, line: str, becomes: str) -> None:
    header = HEADER.read_text(encoding="utf-8")
    assert header.count(line) == 1, "adapt the table: this line is not there"
    try:
        assert ticks(tmp_path, header.replace(line, becomes)) != TICKS
    except Malformed as error:
        assert "ticks_s" in str(error) or "no start line" in str(error)


def test_this_kernel_has_ticks(built: Path) -> None:
    """The clocks are not made up: about what the scheduler says, on a machine on which nothing is stolen."""
    outcome = run_well(built / "npb_ep", "--class=W", OMP_NUM_THREADS="2").outcome
    assert outcome and 0 < outcome.user_ticks_s + outcome.system_ticks_s < 2 * (outcome.user_s + outcome.system_s)


# --- words ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", programs.NAMES)
def test_help(built: Path, name: str) -> None:
    done = programs.run(built / name, "--help")
    assert done.returncode == 0 and done.stderr == ""
    assert f"Usage: {name} --class=X" in done.stdout and "--rounds=N" in done.stdout


@pytest.mark.parametrize(
    "words",
    [[], ["--class=X"], ["--class="], ["--class=SW"], ["--class=s"], ["S"], ["--class=S", "more"], ["--wrong"]]
    + [["--class=S", f"--rounds={n}"] for n in ("0", "-1", "1x", "1000001", "")],
    ids=" ".join,
)
def test_words_that_make_no_sense(built: Path, words: list[str]) -> None:
    done = programs.run(built / "stream", *words)
    assert done.returncode == 2 and done.stdout == "" and done.stderr != ""


# --- results that are wrong ----------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Mutant:
    """A mistake in a program, and what is wrong then."""

    program: str
    line: str
    becomes: str
    wrong: str
    file: str = ""
    threads: str = "2"


MUTANTS = (
    Mutant("npb_ep", "to->x += x;", "to->x += y;", "sum of x"),
    Mutant("npb_ep", "to->y += y;", "to->y += y * (1 + 1e-7);", "sum of y"),
    Mutant("npb_ep", "if (t <= 1) {", "if (t <= 0.999999) {", "pairs"),
    Mutant("npb_ep", "to->ring[i] += more->ring[i];", "to->ring[i] |= more->ring[i];", "pairs"),
    Mutant("npb_ep", "uint64_t seed = npb_skip(NPB_SEED_EP, 2 * PAIRS * block);",
           "uint64_t seed = npb_skip(NPB_SEED_EP, 2 * PAIRS * block + 1);", "sum of x"),
    Mutant("npb_ep", "*x = *x * NPB_FACTOR & NPB_MASK;", "*x = *x * (NPB_FACTOR + 8) & NPB_MASK;", "sum of x",
           file="npb_random.h"),
    Mutant("npb_is", "for (int t = 0; t < me; t++)", "for (int t = 0; t < me - 1; t++)", "wrong ranks"),
    Mutant("npb_is", "mine[keys[i]]++;", "mine[keys[i]] += i != 48427;", "wrong ranks"),
    Mutant("npb_is", "upto[v] += below;", "upto[v] += below + (v == 7);", "keys out of order"),
    Mutant("npb_is", "		keys[i] = i;", "keys[i] = values - i;", "wrong ranks"),
    Mutant("npb_is", "keys[i] = values / 4 * sum;", "keys[i] = values / 4 * sum / 1.01;", "wrong ranks"),
    Mutant("npb_is", "		keys[i] = i;", "keys[i] = i; keys[500] ^= i;", "keys that changed"),
    Mutant("npb_is", "for (int t = 0; t < team; t++)", "for (int t = 0; t < team - 1; t++)", "wrong ranks"),
    Mutant("npb_cg", "add_to_row(row, i, CONDITION - p->shift);", "add_to_row(row, i, -p->shift);", "zeta"),
    Mutant("npb_cg", "for (int i = 0; i < p->size; i++, now *= ratio)", "for (int i = 0; i < p->size; i++)", "zeta"),
    Mutant("npb_cg", "npb_random(&seed);	/* the specification's zeta has taken one */", ";", "zeta"),
    Mutant("npb_cg", "v->r[i] -= alpha * v->q[i];", "v->r[i] -= 0.99 * alpha * v->q[i];", "zeta"),
    Mutant("npb_cg", "sum += a->value[e] * v[a->column[e]];", "sum += e != 5000 ? a->value[e] * v[a->column[e]] : 0;", "zeta"),
    Mutant("npb_cg", "scale = 1 / sqrt(zz);", "scale = 1 / zz;", "zeta"),
    Mutant("npb_mg", "v->value[smallest->point[i]] = -1;", "v->value[smallest->point[i]] = 1;", "norm"),
    Mutant("npb_mg", "own[0] = to->own[last];", "own[0] = to->own[1];", "norm"),
    Mutant("npb_mg", "op->edge * (beside[-1] + beside[1] + across[0]) +",
           "op->edge * (beside[-1] + beside[1]) +", "norm"),
    Mutant("npb_mg", "*low = (i - 1) >> 1;", "*low = i >> 1;", "norm"),
    Mutant("npb_mg", "note(smallest, small.value[i], small.point[i]);",
           "note(smallest, -small.value[i], small.point[i]);", "norm"),
    Mutant("npb_mg", "for (int k = top; k > 1; k--)", "for (int k = top; k > 2; k--)", "norm"),
    Mutant("random_access", "for (uint64_t b = first; b < first + count; b += BLOCK) {",
           "for (uint64_t b = first; b < first + count - BLOCK; b += BLOCK) {", "wrong words"),
    Mutant("random_access", "old = __atomic_load_n(word, __ATOMIC_RELAXED);",
           "old = i % 64 ? *word : 0;", "wrong words"),
    Mutant("random_access", "table[i] = i;", "table[i] = i % 50 ? i : 0;", "wrong words"),
    Mutant("random_access", "uint64_t x = number_at(b);", "uint64_t x = number_at(b / 2);", "wrong words"),
    Mutant("stream", "s->b[i] = SCALAR * s->c[i];", "s->b[i] = SCALAR * s->c[i] * (1 + (i == 77) * 1e-12);",
           "wrong elements"),
    Mutant("stream", "s->a[i] = s->b[i] + SCALAR * s->c[i];", "if (i) s->a[i] = s->b[i] + SCALAR * s->c[i];",
           "wrong elements"),
    Mutant("stream", "s->b[i] = 2;", "s->b[i] = 2; if (i == 5) s->a[i] = 1.5;", "wrong elements"),
)  # fmt: skip


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: f"{mutant.program}: {mutant.becomes}")
def test_a_mistake_is_noticed(tmp_path: Path, mutant: Mutant) -> None:
    """By the check that is there for it; the program says so, in its lines and by its exit status."""
    sources = tmp_path / "programs"
    shutil.copytree(programs.SOURCES, sources)
    file = sources / (mutant.file or f"{mutant.program}.c")
    text = file.read_text(encoding="utf-8")
    place = text.find(mutant.line)
    assert place >= 0, "adapt the table: this line is not there"
    file.write_text(text[:place] + mutant.becomes + text[place + len(mutant.line) :], encoding="utf-8")
    goal = tmp_path / mutant.program
    flags = ["-std=gnu11", "-O2", "-fopenmp"]
    subprocess.run(["gcc", *flags, "-o", goal, sources / f"{mutant.program}.c", "-lm"], check=True)

    done = programs.run(goal, "--class=S", env=programs.environment(OMP_NUM_THREADS=mutant.threads))
    assert done.returncode == 1, f"status {done.returncode}: {done.stdout[-300:]}{done.stderr}"
    run = parse_timed(done.stdout)
    assert run.outcome and not run.outcome.verified
    assert mutant.wrong in [said.partition(":")[0] for said in run.wrong]


def test_each_check_is_seen_to_fail(built: Path) -> None:
    """Each thing that a program checks has a mistake in the table."""
    for name in programs.NAMES:
        said = programs.run(built / name, "--class=S").stdout.splitlines()
        checks = {line.split('"what":"')[1].split('"')[0] for line in said if '"check"' in line}
        assert checks == {mutant.wrong for mutant in MUTANTS if mutant.program == name}
