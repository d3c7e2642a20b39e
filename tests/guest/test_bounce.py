# SPDX-License-Identifier: GPL-2.0
"""Which pages bounce, played in one machine: benchmarks/bounce.py with the plugin of lab/bounce. Half a minute.

The kernel is the pipeline's, or the one that XENUMA_KERNEL names.
"""

from __future__ import annotations

import collections
import subprocess
from collections.abc import Sequence
from pathlib import Path

import pytest

from benchmarks import bounce as benchmark
from lab import bounce
from lab.artifacts import path_of
from lab.qemu import FIRMWARE

pytestmark = pytest.mark.soak


def test_ticks_and_the_page_of_jiffies() -> None:
    """Faults of both hosts are counted, and jiffies, which each tick writes and all read, is in a page that bounces."""
    settings = benchmark.settings_of([])
    seen, counts, names = benchmark.run(settings)
    pages = bounce.pages_of(counts, names)
    home, other = benchmark.metrics(seen, counts, pages)[:2]
    assert (home.metric, other.metric) == ("bounce.faults_per_tick.home", "bounce.faults_per_tick.host1")
    # Less would be a play in which nobody takes part; more than that many a tick has not been seen of any kernel.
    assert home.value and other.value and 0.1 < home.value < 20 and 0.1 < other.value < 20
    assert benchmark.ticks_at(seen, counts, 1) > seen.periods / 2, "the loop's CPU has ticks"
    assert counts.lost == counts.beyond == 0
    # The kernel's image is at the address that its symbols say.
    gfn = (names.at["jiffies"] - 0xFFFFFFFF80000000) >> 12
    (page,) = (page for page in pages if page.gfn == gfn)
    assert "jiffies" in page.by_symbol() and {touch.host for touch in page.touches} == {0, 1}
    # Per-CPU areas are found in the guest's memory.
    assert len(counts.percpu) == 2 and any(name.endswith(" of CPU 0") for page in pages for name in page.by_symbol())


def test_a_tick_looks_at_its_own_timers() -> None:
    """Not at those of CPU 0, which writes them with each of its own (hook 0309). Both have some thousand."""
    _, counts, names = benchmark.run(benchmark.settings_of(["--arguments=nohz=off isolcpus=domain,managed_irq,1"]))
    looked = {
        touch: count
        for page in bounce.pages_of(counts, names)
        for touch, count in page.touches.items()
        if (touch.host, touch.function, touch.symbol) == (1, "hrtimer_active", "hrtimer_bases of CPU 0")
    }
    # Some hundred before; now and then a timer is cancelled that was CPU 0's.
    assert sum(looked.values()) < 5, looked


def waits(arguments: Sequence[str], function: str) -> collections.Counter[tuple[int, str, str]]:
    """How often CPUs wait in a function, by host, kind, and what is there."""
    _, counts, names = benchmark.run(benchmark.settings_of(arguments))
    found: collections.Counter[tuple[int, str, str]] = collections.Counter()
    for page in bounce.pages_of(counts, names):
        for touch, count in page.touches.items():
            if touch.function == function:
                found[touch.host, touch.kind, touch.symbol] += count
    return found


def isolated(cpus: str, more: str = "") -> str:
    """What is asked to run there does, and the home sleeps: as guests on two hosts of the lab (lab/span_guest.py)."""
    return f"--arguments=isolcpus=domain,managed_irq,{cpus} workqueue.power_efficient=1 {more}"


def test_threads_do_not_look_at_idle_run_queues() -> None:
    """Of two CPUs with threads of one program no other one's, each 100 ms (hook 0310)."""
    looked = waits(["--hosts=011", isolated("1-2", "bounce_shared=1")], "task_mm_cid_work")
    # Some fifty before.
    assert looked[1, "read", "runqueues of CPU 0"] + looked[1, "read", "init_task"] < 5, looked


def test_a_program_alone_looks_at_no_other_cpu() -> None:
    """Not at what CPU 0 has for its memory, beside which others of CPU 0 write (hook 0310)."""
    looked = waits([isolated("1"), "--forks=10", "--seconds=5"], "task_mm_cid_work")
    # Some hundred before. Its own memory is an upgrade there, since the tick reads it before.
    assert sum(count for (host, kind, _), count in looked.items() if host == 1 and kind == "read") < 10, looked


def test_orphans_are_not_counted_for_nobody() -> None:
    """Ten times a second, in the page that each interrupt of a CPU writes (hook 0311)."""
    looked = waits([isolated("1")], "tcp_orphan_count_sum")
    assert not looked, looked


def test_a_page_that_is_handed_to_and_fro() -> None:
    """A known number of times, by a program: each turn is one read and one upgrade of each host."""
    turns = 2000
    settings = benchmark.settings_of(["--loops=0", "--settle=1", "--seconds=1", f"--arguments=bounce_turns={turns}"])
    _, counts, names = benchmark.run(settings)
    page = bounce.pages_of(counts, names)[0]
    assert list(page.by_symbol()) == ["user"]
    for host in (0, 1):
        faults = page.of_host(host)
        # Now and then a CPU has seen what the plugin has not heard of yet (bounce.c): then a write is no upgrade.
        assert abs(faults["read"] - turns) < turns / 20 and abs(faults["upgrade"] - turns) < turns / 20, faults
        assert faults["write"] < turns / 20, faults


REFUSED = {
    "hosts=01,pages=16": "want out=FILE",
    "out=/dev/null,hosts=01": "pages: want 1 to 4194304",
    "out=/dev/null,hosts=01,pages=4194305": "pages: want",
    "out=/dev/null,hosts=01,pages=-1": "pages: want",
    "out=/dev/null,hosts=01,pages=1x": "pages: want",
    "out=/dev/null,hosts=0,pages=16": "a digit for each of the machine's 2 vCPUs",
    "out=/dev/null,hosts=011,pages=16": "a digit for each of the machine's 2 vCPUs",
    "out=/dev/null,hosts=04,pages=16": "hosts=04: want one digit, 0 to 3",
    "out=/dev/null,hosts=01,pages=16,what=1": "unknown argument 'what=1'",
}


@pytest.fixture(scope="module")
def plugin(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return bounce.build(tmp_path_factory.mktemp("bounce"))[0]


@pytest.mark.parametrize("words", REFUSED)
def test_arguments_of_the_plugin(plugin: Path, words: str) -> None:
    """QEMU does not start with those that make no sense."""
    machine = ["-machine", "q35", "-accel", "tcg", "-smp", "2", "-m", "16M", "-nodefaults", "-display", "none", "-S"]
    command: list[str | Path] = [path_of("qemu"), *FIRMWARE, *machine, "-plugin", f"{plugin},{words}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    assert done.returncode and "bounce: " in done.stderr and REFUSED[words] in done.stderr
