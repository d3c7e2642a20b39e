# SPDX-License-Identifier: GPL-2.0
"""Real work on one Linux on two hosts, brought there by `xl vnode-attach` alone: sections 2 to 4 of issue 8.

An OpenMP program that knows nothing of it, programs with pipes between CPUs of both hosts, pages that are tortured, and what a
tick costs. One guest for all of it, as long as nothing goes wrong with it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from benchmarks import debian_merge, debian_program, torture
from benchmarks.results import kept
from benchmarks.span import UNRESTRICTED
from benchmarks.ticks import GOAL, Moment, per_period, per_tick
from lab.command import checked, run_in, write_file
from lab.elastic_guest import PROGRAMS
from lab.far_guest import status
from lab.guest import Guest
from lab.guestview import parse_nmis
from lab.kernel_torture import since
from lab.span_guest import HZ, PATIENCE, SlowSite, SpanShape, around
from tests.e2e.conftest import soak
from tests.e2e.span_guest import Lives, lives_on, quietly, ran, refused_elsewhere, with_kernel
from tests.e2e.span_openmp import openmp_there_and_back

pytestmark = pytest.mark.fresh

HOME_CPU, FAR_CPU = 0, 1
BOTH = f"{HOME_CPU},{FAR_CPU}"
WAITED_US = 1000  # an access that takes so long has waited for a page


@pytest.fixture(scope="module")
def lives(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lives]:
    with lives_on(tmp_path_factory.mktemp("dsm")) as made:
        # Its programs may make hypercalls.
        made.shape = dataclasses.replace(made.shape, arguments=UNRESTRICTED)
        yield made


# ---- OpenMP ----

ALIGNMENT = "/tmp/alignment"
EACH = (HOME_CPU, FAR_CPU)


@pytest.mark.parametrize("cpus", [1, soak(2)])
def test_an_openmp_program_on_both_hosts(lives: Lives, cpus: int) -> None:
    """From one thread at home, or two, to as many on each host, with its memory, and back; the result is right."""
    shape = dataclasses.replace(lives.shape, cpus=cpus)
    with lives.borrowed(attached=False, shape=shape) as guest:
        openmp_there_and_back(lives.site, guest, shape)


@contextlib.contextmanager
def work_there(guest: Guest) -> Iterator[None]:
    """Programs run on the CPU of the other host meanwhile: the size of a team does not say where its threads are."""
    question = f"grep '^cpu{FAR_CPU} ' /proc/stat"
    before = int(checked(run_in(guest), question, 300).split()[1])
    yield
    after = int(checked(run_in(guest), question, 300).split()[1])
    print(f"CPU {FAR_CPU}: {after - before} ticks in programs")
    assert after > before, (before, after)


def test_an_openmp_program_of_debian(lives: Lives, tmp_path: Path) -> None:
    """It has teams of a thread on each host, and finds what it finds on one CPU with Debian's own library."""
    command = f"fasttreeMP -nt -gtr -quiet {ALIGNMENT}"
    with lives.borrowed(attached=True) as guest:
        inside = run_in(guest)
        write_file(inside, ALIGNMENT, debian_program.alignment(sequences=8, bases=40))
        at_home = checked(inside, f"taskset -c {HOME_CPU} {command}", 300)
        words = f"{around(EACH)} {debian_program.SETTINGS} {debian_program.DISPLAY} {command}"
        with work_there(guest):
            done = ran(lives.site, guest, words, tmp_path / "tree")
        assert (done.status, done.out) == (0, at_home)
        assert debian_program.parse_teams(done.err)[:1] == [2], done.err


def test_another_openmp_program_of_debian(lives: Lives, tmp_path: Path) -> None:
    """msgmerge, with a thread on each host, writes the catalogue that it writes on one CPU with Debian's own library."""
    with lives.borrowed(attached=True) as guest:
        debian_merge.install(guest, tmp_path / "msgmerge")
        at_home = checked(run_in(guest), f"taskset -c {HOME_CPU} {debian_merge.command()}", 300)
        with work_there(guest):
            done = ran(lives.site, guest, debian_merge.command(EACH), tmp_path / "merged")
        assert (done.status, done.out) == (0, at_home)
        assert debian_program.parse_teams(done.err)[:1] == [2], done.err


# ---- Programs ----

FORKS = 12
PIPE = "cat /usr/bin/bash | taskset -c {far} gzip -1 | taskset -c {home} gzip -d | taskset -c {far} md5sum"
# Both CPUs make processes at once, and wait for them.
FORKING = (
    "for cpu in {home} {far}; do taskset -c $cpu sh -c '"
    'n=0; while [ $n -lt {forks} ]; do n=$(sh -c "echo $((n + 1))"); done; echo $n'
    "' & done; wait"
)


def test_pipes_and_processes(lives: Lives, tmp_path: Path) -> None:
    """What goes through pipes from host to host is what comes out; processes are made on both at once, and all end."""
    with lives.borrowed(attached=True) as guest:
        at_home = checked(run_in(guest), "md5sum </usr/bin/bash", 300)
        for name, script, wanted in (("pipe", PIPE, at_home), ("forks", FORKING, f"{FORKS}\n" * 2)):
            command = script.format(home=HOME_CPU, far=FAR_CPU, forks=FORKS)
            done = ran(lives.site, guest, f"sh -c {shlex.quote(command)}", tmp_path / name)
            assert (done.status, done.out) == (0, wanted)


FILES, FUNCTIONS = 6, 40
SOURCES = """mkdir -p /tmp/job && cd /tmp/job && i=0
while [ $i -lt {files} ]; do
  j=0
  while [ $j -lt {functions} ]; do
    echo "unsigned f${{i}}_$j(unsigned x) {{ unsigned s = $j; while (x--) s = s * 31 + (x ^ $i); return s; }}"
    j=$((j + 1))
  done >$i.c
  tcc -c $i.c -o home-$i.o || exit 1
  i=$((i + 1))
done"""
# Files of odd numbers are compiled there, the others at home, at once.
COMPILING = """cd /tmp/job
for cpu in {home} {far}; do
  taskset -c $cpu sh -c 'i=$1; while [ $i -lt {files} ]; do tcc -c $i.c -o both-$i.o; i=$((i + 2)); done' sh $cpu &
done
wait
for object in home-*.o; do cmp $object both-${{object#home-}} && echo same; done"""


def test_a_compile_job(lives: Lives, tmp_path: Path) -> None:
    """A compiler on each host makes the objects that it makes at home."""
    words = {"home": HOME_CPU, "far": FAR_CPU, "files": FILES, "functions": FUNCTIONS}
    with lives.borrowed(attached=True) as guest:
        checked(run_in(guest), f"taskset -c {HOME_CPU} sh -c {shlex.quote(SOURCES.format(**words))}", 300)
        done = ran(lives.site, guest, f"sh -c {shlex.quote(COMPILING.format(**words))}", tmp_path / "compiled")
        assert (done.status, done.out) == (0, "same\n" * FILES), done


TRANSACTIONS, ACCOUNTS = 20, 8  # of each CPU; rows that they change
DATABASE = "/tmp/load.db"
# Its index of the log is memory that processes on both hosts share.
SCHEMA = f"""PRAGMA journal_mode = WAL;
CREATE TABLE account (id INTEGER PRIMARY KEY, sum INTEGER NOT NULL);
CREATE TABLE entry (cpu INTEGER, n INTEGER, account INTEGER NOT NULL, PRIMARY KEY (cpu, n));
INSERT INTO account SELECT value, 0 FROM generate_series(1, {ACCOUNTS});
"""
LOAD = f"""for cpu in {HOME_CPU} {FAR_CPU}; do
  taskset -c $cpu sh -c '
    n=0
    while [ $n -lt {TRANSACTIONS} ]; do
      account=$(((n * 3 + $1) % {ACCOUNTS} + 1))
      echo "BEGIN IMMEDIATE; UPDATE account SET sum = sum + $n WHERE id = $account;"
      echo "INSERT INTO entry VALUES ($1, $n, $account); COMMIT;"
      n=$((n + 1))
    done | sqlite3 -bail -cmd ".timeout 600000" {DATABASE} && echo done' sh $cpu &
done
wait"""
LOOKS = """PRAGMA integrity_check;
SELECT count(*), sum(n) FROM entry;
SELECT count(*) FROM account WHERE sum <> (SELECT total(n) FROM entry WHERE account = account.id);
"""


def test_a_database(lives: Lives, tmp_path: Path) -> None:
    """SQLite on both hosts writes one database: no transaction is lost, and it is whole."""
    with lives.borrowed(attached=True) as guest:
        inside = run_in(guest)
        checked(
            inside, f"rm -f {DATABASE}* && taskset -c {HOME_CPU} sqlite3 -bail {DATABASE} {shlex.quote(SCHEMA)}", 300
        )
        done = ran(lives.site, guest, f"sh -c {shlex.quote(LOAD)}", tmp_path / "load")
        assert (done.status, done.out) == (0, "done\n" * 2), done
        found = checked(inside, f"sqlite3 -bail {DATABASE} {shlex.quote(LOOKS)}", 300)
        rows, of_n = 2 * TRANSACTIONS, TRANSACTIONS * (TRANSACTIONS - 1)
        assert found == f"ok\n{rows}|{of_n}\n0\n", found


# ---- Pages ----


def test_torture(lives: Lives, tmp_path: Path) -> None:
    """Nothing is lost, torn or old in pages that both CPUs and Xen use, and that go from node to node."""
    slow_us = WAITED_US // lives.site.slow
    counts = f"--operations=1280 --pages=8 --slow-us={slow_us} --stuck-s=60 --pressure=64"
    words = f"--cpus={BOTH} --nodes=0,1 --hypercalls {counts}"
    with lives.borrowed(attached=True) as guest:
        done = ran(lives.site, guest, f"{PROGRAMS}/dsm_torture {words}", tmp_path / "torture")
        run = torture.parse(done.out)
        print(run)
        kept("dsm-torture-span", torture.metrics(run))
        assert done.status == 0 and run.wrong == 0, run
        assert [each.operation for each in run.operations] == list(torture.OPERATIONS)
        # Its own memory waits for no page of others.
        assert all(each.slow > 0 for each in run.operations if each.operation != "pressure"), run


# ---- What CPUs ask of each other, and of Xen ----

# The kernel has each CPU say where it is: the one that is told to interrupts all others by an NMI. What it says itself is on
# the console, which CPUs elsewhere can't write; so only the one at home can be told to.
BACKTRACES = f"taskset -c {HOME_CPU} sh -c 'echo l >/proc/sysrq-trigger'"
SAYS_WHERE = f"NMI backtrace for cpu {FAR_CPU}"


def test_an_nmi(lives: Lives) -> None:
    """A CPU at home interrupts one of the other host by an NMI, while a program runs there, which goes on."""
    mark = "an NMI"
    with lives.borrowed(attached=True) as guest:
        inside = run_in(guest)
        loop = int(checked(inside, f"setsid {BUSY} >/dev/null 2>&1 </dev/null & echo $!", 300))
        try:
            before = parse_nmis(checked(inside, "cat /proc/interrupts", 300))
            checked(inside, f"echo '<5>{mark}' >/dev/kmsg && {BACKTRACES}", PATIENCE)
            log = since(checked(inside, "dmesg", 300), mark)
            after = parse_nmis(checked(inside, "cat /proc/interrupts", 300))
            assert after[FAR_CPU] == before[FAR_CPU] + 1 and after[HOME_CPU] == before[HOME_CPU], (before, after)
            assert log.count(SAYS_WHERE) == 1, log
            assert inside(f"kill -0 {loop} && taskset -c {FAR_CPU} true", PATIENCE).status == 0
        finally:
            checked(inside, f"kill {loop}", 300)


def test_no_hypercall_is_refused(lives: Lives) -> None:
    """Of all that this file has done until here: what its CPUs ask elsewhere is done there, or where it has to be."""
    with lives.borrowed(attached=True):
        home, other = (status(host)["engine"] for host in lives.site.both)
        print(home, other)
        # At least what brings a CPU up.
        assert home["vcpu_calls"] > 0 and other["vcpu_calls_done"] > 0, (home, other)
        assert refused_elsewhere(lives.site) == []


# ---- Ticks ----

BUSY_S = 6  # of the guest: 600 ticks
LAZY_S = 10  # for so long RCU keeps what is in no hurry
BUSY = f"taskset -c {FAR_CPU} sh -c 'while :; do :; done'"
GOAL_WITHOUT_TICKS = 0.2
HOSTS, CPUS = ("home", "away"), ((HOME_CPU,), (FAR_CPU,))


def while_busy(
    site: SlowSite, guest: Guest, scratch: Path, loops: int = 1, seconds: float = BUSY_S
) -> tuple[Moment, Moment]:
    """Begin and end of a time in which the CPU there has nothing to do with others. The pages that bounce are shown."""
    inside, other = run_in(guest), run_in(site.other)
    busy = [int(checked(inside, f"setsid {BUSY} >/dev/null 2>&1 </dev/null & echo $!", 300)) for _ in range(loops)]
    try:
        checked(other, "dsmctl set far profile=1")
        begun, ended = quietly(site, guest, seconds, scratch / "counted")
        print(other("dsmctl top far").text)
    finally:
        other("dsmctl set far profile=0")
        checked(inside, f"kill {' '.join(map(str, busy))}", 300)
    return begun, ended


@pytest.mark.parametrize("step", ["", soak("linux-vsmp")], ids=["usual", "vsmp"])
def test_faults_per_tick(lives: Lives, tmp_path: Path, step: str) -> None:
    """How many, at home and away, while the CPU there has nothing to do with others but its ticks.

    "vsmp": by a kernel with hot data in pages of its own (X86_VSMP), of which benchmarks/vsmp.py says the rest.
    """
    name = "span-vsmp" if step else "span"
    shape = with_kernel(lives.site, lives.shape, step) if step else lives.shape
    with lives.borrowed(attached=True, shape=shape) as guest:
        figures = per_tick(f"dsm.tick.{name.replace('-', '_')}", HOSTS, CPUS, *while_busy(lives.site, guest, tmp_path))
        print(figures)
        kept(f"dsm-tick-{name}", figures)
        assert figures[1].value is not None and figures[1].value <= GOAL, figures


def nohz_shape(lives: Lives) -> SpanShape:
    """Of a guest with a kernel whose CPU there can do without ticks, and whose time is kept by CPU 0 alone.

    Memory that RCU frees is in no hurry then, on no CPU. Each has a thread of its own for that (gp_stride): an interrupt's end
    asks the CPU to which that thread belongs, which would be the home's.
    """
    shape = with_kernel(lives.site, lives.shape, "linux-nohz")
    rcu = "rcu_nocbs=all rcutree.rcu_nocb_gp_stride=1"
    return dataclasses.replace(shape, arguments=f"{UNRESTRICTED} nohz_full={FAR_CPU} {rcu}")


def test_faults_per_tick_of_a_full_kernel(lives: Lives, tmp_path: Path) -> None:
    """Two loops, so that the CPU there has ticks. With NO_HZ_FULL it never keeps the time for others."""
    with lives.borrowed(attached=True, shape=nohz_shape(lives)) as guest:
        figures = per_tick("dsm.tick.full", HOSTS, CPUS, *while_busy(lives.site, guest, tmp_path, 2))
        print(figures)
        kept("dsm-tick-full", figures)
        assert figures[1].value is not None and figures[1].value <= GOAL, figures


def test_faults_without_ticks(lives: Lives, tmp_path: Path) -> None:
    """The same with a kernel whose CPU there has no ticks while it is busy, in the time of a tick: nearly none.

    For so long that what RCU has put off is within, twice. A CPU that stands still has neither ticks nor faults.
    """
    with lives.borrowed(attached=True, shape=nohz_shape(lives)) as guest:
        with work_there(guest):
            begun, ended = while_busy(lives.site, guest, tmp_path, seconds=2 * LAZY_S)
        figures = per_period("dsm.tick.nohz", HOSTS, HZ, begun, ended)
        print(figures)
        kept("dsm-tick-nohz", figures)
        periods = (ended.uptime_s - begun.uptime_s) * HZ
        assert ended.ticks[FAR_CPU] - begun.ticks[FAR_CPU] < periods / 10, (begun, ended)
        assert figures[1].value is not None and figures[1].value < GOAL_WITHOUT_TICKS, figures
