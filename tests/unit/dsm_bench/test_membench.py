# SPDX-License-Identifier: GPL-2.0
"""dsm_membench here: what it prints is what the parser reads, each page is checked, and slopes are what they should be."""

from __future__ import annotations

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks import membench
from lab.errors import Malformed
from lab.pipeline.paths import REPO


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("membench")
    goal = folder / "dsm_membench"
    subprocess.run(["make", "-s", "-C", REPO / "benchmarks", f"O={folder}", goal], check=True)
    return goal


def run(program: Path, words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([program, *words.split()], capture_output=True, text=True, check=False, timeout=120)


def test_touch_says_how_long_each_pass_took(program: Path) -> None:
    done = run(program, "touch --node=0 --cpu=0 --sizes=8,32 --flush=16 --rounds=2 --seed=7")
    assert done.returncode == 0, done.stderr
    output = membench.parse(done.stdout)
    # Sizes, read and write, both orders, rounds; each of them cold and warm.
    assert len(output.passes) == 2 * 2 * 2 * 2 * 2
    for what, order in ((what, order) for what in membench.WHATS for order in membench.ORDERS):
        cold = membench.chosen(output.passes, what=what, order=order, state="cold")
        assert [(each.round, each.pages) for each in cold] == [(0, 8), (0, 32), (1, 8), (1, 32)]
        assert len(membench.ns_per_page(cold)) == 2
    # Each page that is read is checked: 16 passes less the cold writes, and what nobody measures.
    assert output.checks == (16 + 8) // 2 * (8 + 32) + 16 * 16
    # What may have missed: when memory is written first, what nobody measures, and cold passes.
    assert output.accesses == 32 + 16 + 16 * 16 + 8 * (8 + 32) and output.access_ns > 0


def test_quantiles_are_those_of_the_buckets(program: Path) -> None:
    """A quantile of first words lies in the bucket in which that share of all is reached: four to each power of two."""
    output = membench.parse(run(program, "touch --sizes=64,128 --flush=16 --rounds=2").stdout)
    for each in output.passes:
        ends = [end for end, _ in each.buckets]
        assert ends == sorted(ends)
        for key, percent in (("p10", 10), ("p50", 50), ("p90", 90), ("p99", 99), ("max", 100)):
            at, before = (each.pages - 1) * percent // 100, 0
            for end, pages in each.buckets:
                if at < before + pages:
                    found = end
                    break
                before += pages
            # From 4 ns on a bucket is a quarter of its power of two.
            power = 1 << ((found - 1).bit_length() - 1)
            begins = found - max(power // 4, 1) if found > 5 else 0
            assert begins <= each.first_ns[key] < found, (key, each)


def test_copy_says_how_long_each_step_took(program: Path) -> None:
    done = run(program, "copy --cpus=0,0 --mib=1 --rounds=3")
    assert done.returncode == 0, done.stderr
    output = membench.parse(done.stdout)
    assert [(each.round, each.threads, each.mib) for each in output.copies] == [(0, 2, 1), (1, 2, 1), (2, 2, 1)]
    assert all(each.map_ns and each.populate_ns and each.memcpy_ns for each in output.copies)
    assert output.checks == 3 * 2 * 256 and output.accesses == 0


WRONG_WORD = r"""
#include <sys/mman.h>
#include <dlfcn.h>
#include <stdint.h>
int clock_gettime(int clock, void *time)
{
	static uint64_t *page;
	static int calls;
	int (*right)(int, void *) = dlsym(RTLD_NEXT, "clock_gettime");
	if (!page)
		page = *(uint64_t **)dlsym(RTLD_DEFAULT, "mapped");
	if (page && ++calls == 3)
		page[WORD] ^= 1u << 7;
	return right(clock, time);
}
void *mapped;
void *mmap(void *a, size_t n, int p, int f, int fd, off_t o)
{
	void *(*right)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
	void *got = right(a, n, p, f, fd, o);
	if (n == 8 * 4096)
		mapped = got;
	return got;
}
"""


@pytest.mark.parametrize("word", [5, 400])
def test_a_wrong_word_is_noticed(program: Path, tmp_path: Path, word: int) -> None:
    """One bit of one page changes between two passes."""
    (tmp_path / "wrong.c").write_text(WRONG_WORD, encoding="utf-8")
    library = tmp_path / "wrong.so"
    subprocess.run(
        [
            "gcc",
            "-D_GNU_SOURCE",
            f"-DWORD={word}",
            "-w",
            "-shared",
            "-fPIC",
            "-o",
            library,
            tmp_path / "wrong.c",
            "-ldl",
        ],
        check=True,
    )
    done = subprocess.run(
        [program, "touch", "--sizes=8"], env={"LD_PRELOAD": str(library)}, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1, done.stderr
    assert f"page 0 word {word}:" in done.stderr
    with pytest.raises(Malformed, match="wrong bytes"):
        membench.parse(done.stdout)


RECORDED = r"""
#include <dlfcn.h>
#include <stdio.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
/* What the program asks the kernel for; of libnuma's mbind(), too. */
static void say(const char *what, unsigned long one, unsigned long two)
{
	dprintf(2, "%s %lu %lu\n", what, one, two);
}
int madvise(void *a, size_t n, int advice)
{
	say("madvise", n, advice);
	return 0;
}
long mbind(void *a, unsigned long n, int mode, const unsigned long *mask, unsigned long most, unsigned flags)
{
	say("mbind", mode, *mask);
	return 0;
}
int sched_setaffinity(int pid, size_t n, const void *set)
{
	say("sched_setaffinity", pid, *(const unsigned long *)set);
	return 0;
}
"""
WRONG_COPY = r"""
#include <dlfcn.h>
#include <stdint.h>
#include <string.h>
/* One bit of the last page of what was copied; small copies are others'. */
void *memcpy(void *to, const void *from, size_t n)
{
	memmove(to, from, n);
	if (n >= 1024 * 1024)
		((uint64_t *)to)[255 * 512 + 400] ^= 1;
	return to;
}
"""


def preloaded(program: Path, folder: Path, source: str, words: str) -> subprocess.CompletedProcess[str]:
    """The program, with functions of its own between it and the system."""
    (folder / "between.c").write_text(source, encoding="utf-8")
    library = folder / "between.so"
    flags = ["-D_GNU_SOURCE", "-w", "-O1", "-fno-builtin", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, "-o", library, folder / "between.c", "-ldl"], check=True)
    return subprocess.run(
        [program, *words.split()], env={"LD_PRELOAD": str(library)}, capture_output=True, text=True, check=False, timeout=120
    )  # fmt: skip


def test_where_memory_and_threads_are(program: Path, tmp_path: Path) -> None:
    """Bound to the node, without huge pages, and each thread on its CPU. MPOL_BIND is 2, MADV_NOHUGEPAGE 15."""
    done = preloaded(program, tmp_path, RECORDED, "copy --node=0 --source-node=0 --cpus=0,1 --mib=1")
    assert done.returncode == 0, done.stderr
    said = sorted(done.stderr.split("\n"))
    assert said == sorted(
        ["", *["madvise 1048576 15"] * 3, *["mbind 2 1"] * 3, "sched_setaffinity 0 1", "sched_setaffinity 0 2"]
    )
    done = preloaded(program, tmp_path, RECORDED, "touch --cpu=1 --sizes=8")
    assert done.stderr.split("\n") == ["sched_setaffinity 0 2", "madvise 32768 15", ""]


def test_a_wrong_copy_is_noticed(program: Path, tmp_path: Path) -> None:
    done = preloaded(program, tmp_path, WRONG_COPY, "copy --cpus=0,0 --mib=1")
    assert done.returncode == 1, done.stderr
    assert '"bad_pages":2,' in done.stdout


TOUCHED = r"""
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
/* Says which page of which region is read or written first after each look at the clock. */
static char *at[4];
static size_t bytes[4];
static int regions;
static void fault(int number, siginfo_t *info, void *context)
{
	char *address = info->si_addr;
	int kind = ((ucontext_t *)context)->uc_mcontext.gregs[REG_ERR] & 2;

	for (int i = 0; i < regions; i++)
		if (address >= at[i] && address < at[i] + bytes[i]) {
			long page = (address - at[i]) / 4096;

			mprotect(at[i] + page * 4096, 4096, PROT_READ | PROT_WRITE);
			dprintf(2, "%d %ld %s\n", i, page, kind ? "w" : "r");
			return;
		}
	signal(number, SIG_DFL);
}
void *mmap(void *a, size_t n, int p, int f, int fd, off_t o)
{
	void *(*right)(void *, size_t, int, int, int, off_t) = dlsym(RTLD_NEXT, "mmap");
	void *got = right(a, n, p, f, fd, o);

	if (fd == -1 && regions < 2) {
		at[regions] = got;
		bytes[regions++] = n;
	}
	return got;
}
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int (*right)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	struct sigaction act = { .sa_sigaction = fault, .sa_flags = SA_SIGINFO };

	sigaction(SIGSEGV, &act, NULL);
	for (int i = 0; i < regions; i++)
		mprotect(at[i], bytes[i], PROT_NONE);
	dprintf(2, "clock\n");
	return right(clock, t);
}
"""


def touched(program: Path, folder: Path, words: str) -> list[list[str]]:
    """What is touched first, "REGION PAGE r|w", between two looks at the clock: in each pass, and between passes."""
    done = preloaded(program, folder, TOUCHED, words)
    assert done.returncode == 0, done.stderr
    return [part.split("\n")[1:-1] for part in done.stderr.split("clock")[1:]]


GAP = 32


def test_passes_of_all_sizes_share_what_is_read_before(program: Path, tmp_path: Path) -> None:
    """Each size has pages of its own, which are apart; all others are read once before them, in order."""
    found = touched(program, tmp_path, "touch --sizes=2,4,8 --flush=3 --together=1 --seed=2")
    begins = {2: 0, 4: 2 + GAP, 8: 2 + 4 + 2 * GAP}
    at = 1  # the clock of the whole run
    for nth, (what, order) in enumerate(("r s", "w s", "r c", "w c")[n].split() for n in range(4)):
        for size in (2, 4, 8):
            cold, before_warm, warm, after = found[at : at + 4]
            pages = [f"0 {begins[size] + page}" for page in range(size)]
            assert sorted(cold) == sorted(f"{page} {what}" for page in pages)
            assert before_warm == [] and sorted(warm) == sorted(f"{page} r" for page in pages)
            assert [line[:-2] for line in warm] == [line[:-2] for line in cold]
            if order == "s":
                assert cold == [f"{page} {what}" for page in pages]
            elif size == 8:
                assert cold != [f"{page} {what}" for page in pages]
            # When all sizes are done, the others are read for the next kind.
            assert after == ([f"1 {page} r" for page in range(3)] if size == 8 and nth < 3 else [])
            at += 4
    assert len(found) == at + 1 and found[at] == []


def test_passes_have_what_is_read_before_to_themselves(program: Path, tmp_path: Path) -> None:
    """Without --together all are over the first pages; another seed is another order."""
    found = touched(program, tmp_path, "touch --sizes=2,16 --flush=3 --writes=0")
    passes, between = found[1:-1:2], found[2:-1:2]
    assert [len(each) for each in passes] == [2] * 4 + [16] * 4
    assert all({line.split()[0] for line in each} == {"0"} for each in passes)
    assert [each for each in between if each] == [[f"1 {page} r" for page in range(3)]] * 3
    other = touched(program, tmp_path, "touch --sizes=2,16 --flush=3 --writes=0 --seed=5")
    assert sorted(other[13]) == sorted(found[13]) and other[13] != found[13]


@pytest.mark.parametrize(("seed", "sizes"), [(2, [2, 4, 8, 8, 4, 2]), (1, [8, 4, 2, 2, 4, 8])])
def test_no_size_is_always_first(program: Path, seed: int, sizes: list[int]) -> None:
    words = f"touch --sizes=2,4,8 --flush=3 --together=1 --rounds=2 --writes=0 --seed={seed}"
    output = membench.parse(run(program, words).stdout)
    found = membench.chosen(output.passes, order="random", state="cold")
    assert [each.pages for each in found] == sizes and [each.round for each in found] == [0, 0, 0, 1, 1, 1]
    # All pages and the gaps are written first; four times the others are read.
    assert output.accesses == 14 + 2 * GAP + 3 + 4 * (3 + 14)


SLOW_CLOCK = r"""
#include <dlfcn.h>
#include <time.h>
int clock_gettime(clockid_t clock, struct timespec *t)
{
	int (*right)(clockid_t, struct timespec *) = dlsym(RTLD_NEXT, "clock_gettime");
	int rc = right(clock, t);
	long long ns = (t->tv_sec * 1000000000ll + t->tv_nsec) / 1000;

	t->tv_sec = ns / 1000000000;
	t->tv_nsec = ns % 1000000000;
	return rc;
}
#include <sys/resource.h>
int getrusage(__rusage_who_t who, struct rusage *usage)
{
	static int calls;

	*usage = (struct rusage){ .ru_majflt = 3 * calls * (who == RUSAGE_THREAD), .ru_minflt = 50 * calls };
	calls++;
	return 0;
}
"""


def test_times_are_by_the_clock_and_not_by_the_tsc(program: Path, tmp_path: Path) -> None:
    """With one that is a thousand times as slow; and faults are those for which the kernel reads."""
    began = time.monotonic_ns()
    done = preloaded(program, tmp_path, SLOW_CLOCK, "touch --sizes=512 --flush=512 --rounds=4")
    wall = time.monotonic_ns() - began
    said = [json.loads(line) for line in done.stdout.splitlines()]
    for each in said[:-1]:
        assert each["first_ns"]["p50"] * each["pages"] <= 2 * each["ns"] and each["major"] == 3
    assert 0 < said[-1]["access_ns"] < wall / 1000


SLOW_THREAD = r"""
#include <string.h>
#include <sys/mman.h>
#include <stdio.h>
#include <unistd.h>
static __thread unsigned long cpus;
int sched_setaffinity(int pid, size_t n, const void *set)
{
	cpus = *(const unsigned long *)set;
	return 0;
}
void *memcpy(void *to, const void *from, size_t n)
{
	unsigned char in[256];

	if (n == 256 * 4096) {
		if (mincore(to, n, in) || memchr(in, 0, 256))
			dprintf(2, "not populated\n");
		if (cpus == SLOW)
			usleep(200000);
	}
	return memmove(to, from, n);
}
"""


@pytest.mark.parametrize("slow", [1, 2, 4])
def test_a_copy_takes_as_long_as_its_slowest_thread(program: Path, tmp_path: Path, slow: int) -> None:
    """And begins when each page of its target is there."""
    source = f"#define SLOW {slow}\n{SLOW_THREAD}"
    done = preloaded(program, tmp_path, source, "copy --cpus=0,1,2 --mib=1")
    assert (done.returncode, done.stderr) == (0, "")
    (copy,) = membench.parse(done.stdout).copies
    assert copy.memcpy_ns >= 200_000_000 and copy.threads == 3


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("touch --together=2", "--together=2"),
        ("touch --together=1 --pageout=/dev/null", "one size at a time"),
        ("copy --together=1", "no such option"),
        ("", "Usage"),
        ("scan", "Usage"),
        ("touch --sizes=0", "--sizes=0: want a number"),
        ("touch --sizes=8,x", "--sizes=x"),
        ("touch --sizes=8,", "--sizes="),
        ("touch --sizes=" + ",".join(["1"] * 17), "more than 16"),
        ("touch --mib=1", "no such option"),
        ("touch --sizes=8 --pageout=/nowhere/reclaim", "/nowhere/reclaim: No such file"),
        ("touch --sizes=8 --pageout=/dev/full", "/dev/full: No space left"),
        ("touch --node=63", "--node=63: want a number from -1"),
        ("touch --cpu=1000", "CPU 1000"),
        ("copy --sizes=1", "no such option"),
        ("copy --cpus=0,1000", "CPU 1000"),
        ("copy --mib=99999999999999999999", "--mib="),
    ],
)
def test_bad_words_are_refused(program: Path, words: str, part: str) -> None:
    done = run(program, words)
    assert done.returncode == 2 and part in done.stderr, done.stdout + done.stderr


PASS: dict[str, Any] = {
    "event": "pass", "round": 0, "what": "read", "order": "random", "state": "cold", "pages": 4, "ns": 4000, "major": 0,
    "first_ns": {"p10": 1, "p50": 2, "p90": 2, "p99": 3, "max": 9}, "buckets": [[8, 3], [10, 1]],
}  # fmt: skip
RESULT = {"event": "result", "checks": 4, "bad_pages": 0, "accesses": 3, "access_ns": 5}


def lines(*objects: object) -> str:
    return "".join(json.dumps(each) + "\n" for each in objects)


@pytest.mark.parametrize(
    ("text", "part"),
    [
        ("", "not ended"),
        (lines(PASS), "not ended"),
        ("x\n", "not JSON"),
        (lines([1]), "unexpected"),
        (lines(RESULT, PASS), "unexpected"),
        (lines({**PASS, "what": "erase"}, RESULT), "what 'erase'"),
        (lines({**PASS, "pages": 5}, RESULT), "a pass of 5 pages"),
        (lines({**PASS, "ns": 0}, RESULT), "0 ns"),
        (lines({**PASS, "ns": -1}, RESULT), "ns -1"),
        (lines({**PASS, "round": True}, RESULT), "round True"),
        (lines({**PASS, "buckets": [[1]]}, RESULT), "buckets"),
        (lines({**PASS, "first_ns": {**PASS["first_ns"], "p50": 0}}, RESULT), "go down"),
        (lines({**PASS, "first_ns": 3}, RESULT), "no quantiles"),
        (lines(PASS, {**RESULT, "bad_pages": 1}), "1 pages with wrong bytes of 4"),
    ],
)
def test_malformed_output_is_refused(text: str, part: str) -> None:
    with pytest.raises(Malformed, match=part):
        membench.parse(text)


def test_a_warm_pass_may_take_no_time() -> None:
    """By the clock of a machine whose CPUs' TSCs are not in step: it stands still at times."""
    warm = {**PASS, "state": "warm", "ns": 0, "first_ns": dict.fromkeys(PASS["first_ns"], 0), "buckets": [[5, 4]]}
    assert membench.parse(lines(PASS, warm, RESULT)).passes[1].ns == 0


@pytest.mark.parametrize(
    ("points", "wanted"),
    [
        ([(1, 12), (2, 14), (3, 16)], (2, 10)),
        ([(10, 5), (20, 5)], (0, 5)),
        ([(0, 0), (0, 2), (4, 9)], (2, 1)),
    ],
)
def test_slope(points: list[tuple[float, float]], wanted: tuple[float, float]) -> None:
    assert membench.slope(points) == pytest.approx(wanted)


@pytest.mark.parametrize("points", [[], [(1, 1)], [(3, 1), (3, 2)]])
def test_a_slope_needs_two_sizes(points: list[tuple[float, float]]) -> None:
    with pytest.raises(ValueError, match="two sizes"):
        membench.slope(points)


def test_what_missing_costs_is_what_a_page_takes_more_than_at_hand() -> None:
    def passes(state: str, what: str, per_page: Callable[[int], int]) -> list[dict[str, Any]]:
        return [
            {**PASS, "state": state, "what": what, "round": number, "pages": pages, "ns": 700 + pages * per_page(number),
             "buckets": [[8, pages]]}
            for number in (0, 1)
            for pages in (4, 8)
        ]  # fmt: skip

    cold = passes("cold", "read", lambda number: 1000 + number)
    warm = passes("warm", "read", lambda number: 10)
    output = membench.parse(lines(*cold, *warm, RESULT))
    assert membench.cost_of_missing(output, "read", "random") == pytest.approx([990, 991])
