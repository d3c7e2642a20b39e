# SPDX-License-Identifier: GPL-2.0
"""The kernel's own tests of its locks and of RCU: where their threads run, and what they say at their end."""

from __future__ import annotations

import subprocess

import pytest

from lab.errors import Malformed
from lab.kernel_torture import THREADS, TORTURES, End, Thread, binding, ends, idle, least, shared_out, since, threads_of

SPIN, MUTEX, RWSEM, RCU, SRCU = TORTURES

LISTED = """71 lock_torture_writer 0 900
70 lock_torture_writer 0 1000
72 lock_torture_reader 0 5
73 lock_torture_reader 0 6
"""
# As __torture_print_stats(), lock_torture_print_module_parms() and rcu_torture_stats_print() of Linux 6.12 have it.
LOCKS = (
    "[   99.000001] Writes:  Total: 1234  Max/Min: 700/{min} ???  Fail: 0 \n{reads}"
    "[   99.000002] {kind}-torture:--- End of test: {verdict}: acq_writer_lim=0 bind_readers=0-1 verbose=0 writer_fifo=0\n"
)
READS = "[   99.000001] Reads :  Total: 99  Max/Min: 98/{min}   Fail: 0 \n"
OF_RCU = """[  120.000001] {kind}-torture: rtc: 00000000deadbeef ver: {ver} tfle: 0 rta: 12 rtaf: 0 rtf: 2 rtmbe: 0
[  120.000002] {kind}-torture: Reader Pipe:  {first} 3 0 0 0 0 0 0 0 0 0
[  120.000003] {kind}-torture: Reader Batch:  7 3 0 0 0 0 0 0 0 0 0
[  120.000004] {kind}-torture:--- End of test: {verdict}: nreaders=4 nfakewriters=2 stat_interval=0 verbose=0
"""


def locks(kind: str = "spin_lock", verdict: str = "SUCCESS", least: int = 30, reads: str = "") -> str:
    return LOCKS.format(kind=kind, verdict=verdict, min=least, reads=reads)


def of_rcu(kind: str = "rcu", verdict: str = "SUCCESS", ver: int = 40, first: int = 7) -> str:
    return OF_RCU.format(kind=kind, verdict=verdict, ver=ver, first=first)


def test_each_kind_is_on_each_cpu() -> None:
    threads = threads_of(LISTED)
    assert threads[0] == Thread(70, "lock_torture_writer", 0, 1000)
    places = shared_out(threads, (0, 1))
    assert places == {70: 0, 71: 1, 72: 0, 73: 1}
    assert binding({70: 0, 71: 1}) == "taskset -pc 0 70 >/dev/null && taskset -pc 1 71 >/dev/null"
    assert shared_out([], (0, 1)) == {}
    assert set(shared_out(threads, (0, 1, 2)).values()) == {0, 1}


@pytest.mark.parametrize("line", ["70 lock_torture_writer 0", "x lock_torture_writer 0 5", "70 w 0 -5", "70 w 0 5 6"])
def test_no_thread(line: str) -> None:
    with pytest.raises(Malformed, match="a thread of a torture"):
        threads_of(line)


def test_the_question(tmp_path_factory: pytest.TempPathFactory) -> None:
    """It is asked of a folder like /proc: other threads are not in it, names may be cut, or have brackets in them."""
    proc = tmp_path_factory.mktemp("proc")
    fields = " ".join(f"{n}" for n in range(4, 53))  # from field 4, its own number each
    for pid, name, ran in (
        (70, "lock_torture_writer", 1000),
        (71, "lock_torture_wr", 7),
        (72, "rcu_torture_fakewriter", 8),
        (73, "rcu_torture_rea", 9),
        (74, "rcu_torture_fqs", 1),
        (75, "lock_torture_stats", 1),
        (76, "bash", 1),
    ):
        folder = proc / str(pid)
        folder.mkdir()
        (folder / "comm").write_text(f"{name}\n")
        (folder / "stat").write_text(f"{pid} ({name}) ) R {fields}\n")
        (folder / "schedstat").write_text(f"{ran} 2 3\n")
    (proc / "77").mkdir()  # it has gone meanwhile
    done = subprocess.run(
        ["sh", "-c", THREADS.replace("/proc/", f"{proc}/")], capture_output=True, text=True, check=True
    )
    assert [(each.pid, each.cpu, each.ran_ns) for each in threads_of(done.stdout)] == [
        (70, 39, 1000),
        (71, 39, 7),
        (72, 39, 8),
        (73, 39, 9),
    ]


def test_who_has_not_worked() -> None:
    before = [Thread(70, "w", 0, 5), Thread(71, "w", 1, 5)]
    places = {70: 0, 71: 1}
    assert idle(places, before, [Thread(70, "w", 0, 6), Thread(71, "w", 1, 6)]) == []
    assert idle(places, before, [Thread(70, "w", 0, 6), Thread(71, "w", 1, 5)]) == ["w 71 has not run on CPU 1"]
    assert idle(places, before, [Thread(70, "w", 1, 6), Thread(71, "w", 1, 6)]) == ["w 70 runs on CPU 1, not 0"]
    assert idle(places, before, [Thread(71, "w", 1, 6)]) == ["70 has gone"]
    assert idle(places, before[1:], before) == ["70 has gone", "w 71 has not run on CPU 1"]


def test_how_locks_went() -> None:
    log = locks() + locks("mutex_lock", "FAILURE")
    assert ends(log) == [End("spin_lock", "SUCCESS"), End("mutex_lock", "FAILURE")]
    assert least(locks(least=0), SPIN) == 0 and least(locks(least=31), SPIN) == 31
    # The least of writers and readers, where there are both.
    assert least(locks("rwsem_lock", reads=READS.format(min=2)), RWSEM) == 2
    assert least(locks("rwsem_lock", least=1, reads=READS.format(min=2)), RWSEM) == 1
    # Of the last one.
    assert least(locks(least=5) + locks("mutex_lock", least=6), MUTEX) == 6
    with pytest.raises(Malformed, match="1 sums, not 2"):
        least(locks("rwsem_lock"), RWSEM)
    with pytest.raises(Malformed, match="spin_lock: 0 sums"):
        least("", SPIN)


def test_how_rcu_went() -> None:
    assert ends(of_rcu() + of_rcu("srcu", "RCU_HOTPLUG")) == [End("rcu", "SUCCESS"), End("srcu", "RCU_HOTPLUG")]
    assert least(of_rcu(), RCU) == 10 and least(of_rcu(ver=1), RCU) == 1 and least(of_rcu(ver=0), RCU) == 0
    assert least(of_rcu().replace("ver:", "VER:"), RCU) == 10
    assert least(of_rcu() + of_rcu("srcu", ver=2), SRCU) == 2
    assert least(of_rcu(first=50) + of_rcu(first=1), RCU) == 4
    assert least(of_rcu().replace("Reader Pipe", "!!! Reader Pipe"), RCU) == 10
    # One is not the other.
    for log, torture in ((of_rcu("srcu"), RCU), (of_rcu(), SRCU), ("", RCU)):
        with pytest.raises(Malformed, match="no figures"):
            least(log, torture)


def test_since() -> None:
    assert since("a\nx begins\nb\nx begins\nc\n", "x begins") == "\nc\n"
    with pytest.raises(Malformed, match="without 'x begins'"):
        since("a\n", "x begins")


def test_parameters() -> None:
    """Nobody moves the threads but us, and none of them rests for seconds of a slow clock."""
    for each in TORTURES:
        assert each.parameters.startswith(f"torture_type={each.kind} ")
        assert "shuffle_interval=0" in each.parameters and " stutter=0" in each.parameters
