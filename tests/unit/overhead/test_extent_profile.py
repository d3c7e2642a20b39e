# SPDX-License-Identifier: GPL-2.0
"""The profile of an extent and of a command: from played registers, symbols and commands."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from benchmarks import extent_profile, results, stock_host
from benchmarks.balloon import COUNTERS, DIRTIED, GIVE, NODE_MIB, STOCK, TAKE, Node, Step
from benchmarks.extent_profile import (
    IDLE,
    KERNEL,
    NOT_TOLD,
    OTHER,
    OURS_MIB,
    PROGRAM,
    STOCK_MIB,
    UNKNOWN,
    WAITING,
    XEN,
    Command,
    Looker,
    Place,
    Profile,
    Record,
    Sampler,
    Symbols,
    Tally,
    command_metrics,
    command_script,
    extent_ms,
    measure,
    parse_command,
    parse_registers,
    profile_metrics,
)
from benchmarks.results import Metric, Result, encode, host_info, now, problems
from lab.command import Done
from lab.description import RackDescription
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError, Malformed
from lab.rack import Rack

XEN_SYMBOLS = Symbols(
    "ffff82d040200000 T _stext\nffff82d04022fdc0 t scrub_one_page\nffff82d0402304e0 t free_heap_pages.part.0\n"
    "ffff82d0402f3d30 t idle_loop\nffff82d040351899 D not_code\nffff82d040360000 T _spin_lock\n"
    "ffff82d040361000 T flush_area_mask\nffff82d040362000 T _write_lock\nffff82d040363000 T schedule\n"
    "ffff82d040364000 T queue_write_lock_slowpath\nffff82d040365000 T __x86_return_thunk\nffff82d040366000 T _etext\n"
)
KERNEL_SYMBOLS = Symbols(
    "0000000000000000 D __per_cpu_start\nffffffff81000000 T _stext\nffffffff81200000 T take_free_pages\n"
    "ffffffff81200100 t deflate.isra.0\nffffffff81300000 t pv_native_safe_halt\nffffffff81300100 t unheard_of\n"
    "ffffffff81400000 T mutex_lock\nffffffff81800000 T _etext\n"
)


def cpu(number: int, rip: int, level: int = 0, halted: int = 0, rsp: int = 0xFFFF83007FF07D00) -> str:
    """As QEMU's monitor shows a CPU."""
    return (
        f"\nCPU#{number}\nRAX=0000000000000000 RBX=0000000000000001 RCX=0000000000000000 RDX=0000000000000000\n"
        f"RSI=0000000000000000 RDI=0000000000000000 RBP=0000000000000000 RSP={rsp:016x}\n"
        f"RIP={rip:016x} RFL=00000246 [---Z-P-] CPL={level} II=0 A20=1 SMM=0 HLT={halted}\n"
        "ES =0000 0000000000000000 ffffffff 00c00000\nCR0=80050033 CR2=0 CR3=000000000240a000 CR4=000006f0\n"
    )


def places(text: str) -> list[Place]:
    return [cpu.place for cpu in parse_registers(text, XEN_SYMBOLS, KERNEL_SYMBOLS)]


@pytest.mark.parametrize(
    ("rip", "place"),
    [
        (0xFFFF82D04022FDC0, Place(XEN, "scrub_one_page")),
        (0xFFFF82D0402304DF, Place(XEN, "scrub_one_page")),
        (0xFFFF82D0402304E1, Place(XEN, "free_heap_pages")),
        (0xFFFF82D0402F3D31, Place(IDLE)),
        # Who waits for a lock, or for a flush of another CPU, is at work: that is what the time went for.
        (0xFFFF82D040360010, Place(XEN, "_spin_lock")),
        (0xFFFF82D040361010, Place(XEN, "flush_area_mask")),
        (0xFFFF82D040362010, Place(XEN, "_write_lock")),
        (0xFFFFFFFF81200000, Place(KERNEL, "take_free_pages")),
        (0xFFFFFFFF81200123, Place(KERNEL, "deflate")),
        (0xFFFFFFFF81300001, Place(IDLE)),
        (0xFFFFFFFF80000000, Place(KERNEL, "0xffffffff80000000")),
        (0x00007FFF12345678, Place(UNKNOWN, "0x7fff12345678")),
        (0xFFFFFFFFC0000000, Place(UNKNOWN, "0xffffffffc0000000")),
    ],
)
def test_where_a_cpu_is(rip: int, place: Place) -> None:
    assert places(cpu(0, rip)) == [place]


def test_programs_and_what_is_halted_have_no_function() -> None:
    text = cpu(0, 0x401000, level=3) + cpu(1, 0xFFFFFFFF81200000, halted=1) + cpu(11, 0xFFFFFFFF81200000, level=1)
    assert places(text) == [Place(PROGRAM), Place(IDLE), Place(KERNEL, "take_free_pages")]
    assert [each.number for each in parse_registers(text, XEN_SYMBOLS, KERNEL_SYMBOLS)] == [0, 1, 11]


def test_dom0s_kernel_has_the_level_of_a_program() -> None:
    """A paravirtualised kernel of 64 bits runs at level 3, above the addresses of any program."""
    text = cpu(0, 0xFFFFFFFF81200000, level=3) + cpu(1, 0xFFFFFFFFFF600000, level=3)
    assert places(text) == [Place(KERNEL, "take_free_pages"), Place(PROGRAM)]


@pytest.mark.parametrize("text", ["", "unknown command: 'info registers -a'", "CPU#0\nRIP=12 CPL=0\n"])
def test_what_is_no_register_is_an_error(text: str) -> None:
    with pytest.raises(Malformed):
        parse_registers(text, XEN_SYMBOLS, KERNEL_SYMBOLS)


def test_symbols_without_functions_are_an_error() -> None:
    with pytest.raises(Malformed, match="no functions"):
        Symbols("ffffffff81000000 D data\n")
    with pytest.raises(Malformed, match="no _stext and _etext"):
        Symbols("10 T _stext\n20 T first\n")
    assert Symbols("10 T _stext\n20 T _etext\n").name(5) == "0x5"


STACK = 0xFFFF83007FF07D00
SPINS, WRITES, SLOW, MUTEX = 0xFFFF82D040360010, 0xFFFF82D040362010, 0xFFFF82D040364010, 0xFFFFFFFF81400010
SCHEDULE, FLUSH, DEFLATE = 0xFFFF82D040363123, 0xFFFF82D040361123, 0xFFFFFFFF81200123
RETURN_THUNK, SYMBOL, DATA = 0xFFFF82D040365008, 0xFFFF82D040361000, 0xFFFF82D040546640


def memory(*words: int, unreadable: bool = False) -> str:
    """As QEMU's monitor shows words of a stack, two a line, each line with its address."""
    lines = [
        f"{STACK + 8 * at:016x}:" + "".join(f" {word:#018x}" for word in words[at : at + 2]) for at in range(0, len(words), 2)
    ]
    lines += [f"{STACK + 8 * len(words):016x}: Cannot access memory"] if unreadable else []
    return "".join(f"{line}\r\n" for line in lines)


class Monitor:
    """Answers in this order, and notes what was asked of which CPU."""

    def __init__(self, *answers: str) -> None:
        self.answers, self.asked = list(answers), list[tuple[str, int | None]]()

    def __call__(self, line: str, number: int | None) -> str:
        self.asked.append((line, number))
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("rip", "words", "caller"),
    [
        (SPINS, memory(SCHEDULE, FLUSH), "schedule"),
        # What has called a function of locks may be another one; data and what a register held are no caller.
        (SPINS, memory(SLOW, WRITES, RETURN_THUNK, FLUSH, SCHEDULE), "flush_area_mask"),
        (SLOW, memory(0x246, STACK, SYMBOL, DATA, DEFLATE, SCHEDULE), "schedule"),
        # A call at the end of a function returns to where the next one begins, of which nobody can tell.
        (SPINS, memory(0xFFFF82D040363000, FLUSH), "flush_area_mask"),
        (SPINS, memory(0xFFFF82D040363001), "schedule"),
        (SPINS, memory(0xFFFF82D040365FFF, 0xFFFF82D040366001), NOT_TOLD),
        (SPINS, memory(0xFFFF82D0401FFFFF, 0xFFFF82D040200000), NOT_TOLD),
        (SPINS, memory(1, 2, 3, SPINS), NOT_TOLD),
        (SPINS, memory(1, SCHEDULE, unreadable=True), "schedule"),
        (SPINS, memory(1, 2, unreadable=True), NOT_TOLD),
        (SPINS, memory(unreadable=True), NOT_TOLD),
        (MUTEX, memory(SCHEDULE, MUTEX, DEFLATE), "deflate"),
    ],
)
def test_who_waits_for_a_lock(rip: int, words: str, caller: str) -> None:
    """Of Xen's, and of dom0's kernel."""
    at = cpu(3, rip, level=3)
    monitor = Monitor(cpu(2, 0x401000, level=3) + at, words, at)
    program, told = Looker(monitor, XEN_SYMBOLS, KERNEL_SYMBOLS)()
    assert program == Place(PROGRAM) and (told.caller, told.stands_for) == (caller, 1)
    assert monitor.asked == [("info registers -a", None), (f"x /24gx {STACK:#x}", 3), ("info registers", 3)]


@pytest.mark.parametrize(
    ("after", "caller"),
    [
        (cpu(3, SPINS + 4), "schedule"),
        (cpu(3, WRITES), "schedule"),  # at another lock, with the same stack
        (cpu(3, SPINS, rsp=STACK - 8), NOT_TOLD),
        (cpu(3, SPINS, rsp=STACK + 0x40), NOT_TOLD),
        (cpu(3, SCHEDULE), NOT_TOLD),
        (cpu(3, SPINS, halted=1), NOT_TOLD),
        (cpu(3, MUTEX), NOT_TOLD),
        (cpu(3, 0x401000, level=3), NOT_TOLD),
    ],
)
def test_a_cpu_that_goes_on_tells_nobody(after: str, caller: str) -> None:
    monitor = Monitor(cpu(3, SPINS), memory(SCHEDULE, FLUSH), after)
    assert Looker(monitor, XEN_SYMBOLS, KERNEL_SYMBOLS)() == [Place(XEN, "_spin_lock", caller, 1)]


@pytest.mark.parametrize(
    "text",
    [
        cpu(0, SCHEDULE) + cpu(1, 0x401000, level=3) + cpu(2, SPINS, halted=1),
        cpu(0, MUTEX, level=0),  # a guest's: its page tables are within others, which the monitor does not know
    ],
)
def test_without_a_stack_to_read_nothing_more_is_asked(text: str) -> None:
    monitor = Monitor(text)
    assert not any(place.caller for place in Looker(monitor, XEN_SYMBOLS, KERNEL_SYMBOLS)())
    assert len(monitor.asked) == 1


def test_one_stack_a_look_in_turn() -> None:
    """Each command takes the emulator's big lock; and nobody's stack is always the one."""
    text = cpu(0, SPINS) + cpu(1, SCHEDULE) + cpu(2, WRITES) + cpu(5, MUTEX, level=3) + cpu(6, MUTEX)
    answers = ((text, memory(SCHEDULE, DEFLATE), cpu(number, rip, level)) for number, rip, level in (
        (0, SPINS, 0), (2, WRITES, 0), (5, MUTEX, 3), (0, SPINS, 0),
    ))  # fmt: skip
    monitor = Monitor(*(text for look in answers for text in look))
    looker = Looker(monitor, XEN_SYMBOLS, KERNEL_SYMBOLS)
    asked = [[place.stands_for for place in looker()] for _ in range(4)]
    assert asked == [[3, 0, 0, 0, 0], [0, 0, 3, 0, 0], [0, 0, 0, 3, 0], [3, 0, 0, 0, 0]]
    assert [number for line, number in monitor.asked if line.startswith("x ")] == [0, 2, 5, 0]


@pytest.mark.parametrize(
    "answers",
    [
        ["", cpu(0, SPINS)],
        ["invalid char 'g' in expression\n", cpu(0, SPINS)],
        [memory(SCHEDULE) + "Can not dump without CPU\n", cpu(0, SPINS)],
        ["ffff83007ff07d00: 0x12\n", cpu(0, SPINS)],
        [memory(SCHEDULE), "No CPU available\n"],
        [memory(SCHEDULE), ""],
    ],
)
def test_a_stack_that_is_none_is_an_error_of_the_look(answers: list[str]) -> None:
    looker = Looker(Monitor(cpu(0, SPINS), *answers), XEN_SYMBOLS, KERNEL_SYMBOLS)
    with pytest.raises(Malformed, match=r"no words of memory|no CPU"), Sampler(looker) as sampler:
        sampler._thread.join(30)


@pytest.mark.parametrize(
    ("of", "function", "step"),
    [
        (XEN, "scrub_one_page", "xen: scrub"),
        (XEN, "flush_area_mask", "xen: flush"),
        (XEN, "p2m_set_entry", "xen: p2m"),
        (XEN, "guest_physmap_remove_page", "xen: p2m"),
        (XEN, "unmap_superpage", "xen: p2m"),
        (XEN, "guest_remove_range", "xen: frames"),
        (XEN, "take_frames", "xen: frames"),
        (XEN, "free_heap_pages", "xen: frames"),
        (XEN, "decrease_reservation", "xen: call"),
        (XEN, "svm_vmexit_handler", "xen: exits"),
        (XEN, "csched2_schedule", "xen: scheduler, events"),
        *((XEN, name, "xen: locks") for name in ("_spin_lock", "queue_read_lock_slowpath", "_rspin_lock", "_spin_lock_cb")),
        (XEN, "__bitmap_empty", "xen: flush"),
        (XEN, "time_calibration_std_rendezvous", "xen: scheduler, events"),
        *((XEN, name, "xen: for dom0") for name in ("toggle_guest_mode", "do_iret", "create_bounce_frame", "pv_hypercall")),
        *((XEN, name, "xen: for dom0") for name in ("guest_walk_tables_4_levels", "map_domain_gfn", "map_guest_l1e")),
        *((of, "__x86_return_thunk", "thunks") for of in (XEN, KERNEL)),
        *((XEN, name, "thunks") for name in ("__x86_indirect_thunk_rax", "srso_return_thunk", "retbleed_return_thunk")),
        *((KERNEL, name, "thunks") for name in ("srso_alias_safe_ret", "retbleed_untrain_ret", "__x86_call_thunk")),
        (KERNEL, "take_free_pages", "guest: extents"),
        (KERNEL, "elastic_balloon_take", "guest: extents"),
        (KERNEL, "__free_one_page", "guest: allocator"),
        (KERNEL, "alloc_contig_range_noprof", "guest: allocator"),
        (KERNEL, "__offline_isolated_pages", "guest: allocator"),
        (KERNEL, "memset_orig", "guest: memory hotplug"),
        (KERNEL, "migrate_pages_batch", "guest: memory that moves"),
        (KERNEL, "balloon_process", "guest: stock balloon"),
        (KERNEL, "xen_hypercall_amd", "guest: call"),
        (KERNEL, "xs_talkv", "kernel: xenstore, event channels"),
        (KERNEL, "_raw_spin_lock", "kernel: locks"),
        (KERNEL, "schedule", "kernel: scheduler, time"),
        (KERNEL, "do_syscall_64", "kernel: system calls, processes, files"),
        *((KERNEL, name, "kernel: system calls, processes, files") for name in ("ptep_clear_flush", "mfn_to_pfn", "fget")),
        *((KERNEL, name, "kernel: system calls, processes, files") for name in ("free_pgd_range", "rb_next", "__vm_munmap")),
        *((KERNEL, name, "kernel: system calls, processes, files") for name in ("fd_install", "vm_area_dup", "number")),
        *((KERNEL, name, "kernel: system calls, processes, files") for name in ("filp_flush", "tlb_gather_mmu", "touch_atime")),
        *((KERNEL, name, "kernel: system calls, processes, files") for name in ("xas_set_mark", "percpu_counter_add_batch")),
        *((KERNEL, name, "guest: memory hotplug") for name in ("ksm_memory_callback", "memory_notify")),
        (KERNEL, "memtier_hotplug_callback", "guest: memory hotplug"),
        *((KERNEL, name, "guest: memory hotplug") for name in ("mem_hotplug_begin", "percpu_down_write", "percpu_rwsem_wait")),
        *((KERNEL, name, "guest: memory hotplug") for name in ("__remove_pages", "cpu_vm_stats_fold", "vm_events_fold_cpu")),
        (KERNEL, "percpu_counter_cpu_dead", "guest: memory hotplug"),
        (XEN, "remove_superpages", "xen: p2m"),
        (XEN, "clear_domain_page", "xen: frames"),
        (XEN, "__hvm_copy", "xen: call"),
        (XEN, "hvmemul_read_cache", "xen: exits"),
        (XEN, "update_runstate_area", "xen: scheduler, events"),
        *((XEN, name, "xen: for dom0") for name in ("devalidate_page", "put_old_guest_table", "do_multicall")),
        (XEN, "pagefault_by_memadd", "xen: for dom0"),
        (XEN, "autogen_stubs", "xen: interrupts"),
        *((XEN, name, "xen: console") for name in ("ns16550_poll", "__ns16550_poll", "ns_read_reg", "serial_tx_interrupt")),
        (KERNEL, "smp_call_function_many_cond", "kernel: system calls, processes, files"),
        (PROGRAM, "", "program"),
        *((KERNEL, name, OTHER) for name in ("unheard_of", "numbers_of", "touch_down")),
        (UNKNOWN, "0x5", OTHER),
    ],
)
def test_a_function_has_a_step(of: str, function: str, step: str) -> None:
    assert Place(of, function).step == step


def test_amounts_are_large() -> None:
    """And both guests fit on their node, stock with as much left as is taken."""
    assert (STOCK_MIB, OURS_MIB, extent_profile.COMMAND_MIB) == (768, 4096, 64)
    large = RackDescription.load("large-node").hosts[0].nodes[1].memory_mib
    memory = int(extent_profile.STOCK_GUEST["memory"])
    assert memory >= 2 * STOCK_MIB and memory + NODE_MIB <= large - 256
    assert extent_profile.STOCK_GUEST["cpus"] == STOCK["cpus"]


def test_who_works_at_a_moment_shares_it() -> None:
    tally = Tally()
    assert tally.explained() == 0.0 and tally.share(WAITING) == 0.0
    tally.add([Place(IDLE), Place(XEN, "scrub_one_page"), Place(PROGRAM)])
    tally.add([Place(IDLE), Place(IDLE)])
    tally.add([Place(KERNEL, "unheard_of")])
    tally.add([Place(XEN, "scrub_one_page")])
    assert tally.share("xen: scrub") == pytest.approx(1.5 / 4)
    assert tally.share("program") == pytest.approx(0.5 / 4)
    assert tally.share(WAITING) == tally.share(OTHER) == pytest.approx(1 / 4)
    assert tally.explained() == pytest.approx(50.0)
    assert dict(tally.others) == {"unheard_of": 1.0}
    assert dict(tally.functions) == {"scrub_one_page": 1.5, "unheard_of": 1.0}


def test_what_nobody_can_tell_whose_it_is_is_shared_out() -> None:
    """As the rest of the same code; also to what has no step."""
    tally = Tally()
    for function in ("scrub_one_page", "scrub_one_page", "unheard_of", "unheard_of_too", "__x86_return_thunk"):
        tally.add([Place(XEN, function)])
    for _ in range(5):
        tally.add([Place(KERNEL, "take_free_pages")])
    assert tally.steps == {
        "xen: scrub": pytest.approx(2.5),
        OTHER: pytest.approx(2.5),
        "guest: extents": pytest.approx(5.0),
    }
    assert tally.explained() == pytest.approx(75.0) and tally.share("thunks") == 0.0
    alone = Tally()
    alone.add([Place(KERNEL, "__x86_return_thunk")])
    assert alone.explained() == 0.0


def test_looks_before_and_after_a_command_do_not_count() -> None:
    profile = Profile("ours", TAKE)
    looks = [(float(at), [Place(PROGRAM)]) for at in range(10)]
    profile.add(Step("ours", TAKE, 1024, 3.0, {}, 0, (2.5, 5.5)), looks)
    assert profile.tally.moments == 3 and len(profile.looked) == 1 and not profile.steps
    profile.add(Step("ours", TAKE, 1024, 3.0, {}, 1, (9.0, 12.0)), looks)
    assert profile.tally.moments == 4 and profile.looks == [3, 1]
    close = [(at, [Place(PROGRAM)]) for at in (2.4, 2.5, 5.5, 5.6)]
    profile.add(Step("ours", TAKE, 1024, 3.0, {}, 2, (2.5, 5.5)), close)
    assert profile.looks == [3, 1, 2]


def test_of_several_in_a_run_the_median_counts() -> None:
    found = extent_ms([Step("ours", TAKE, 1024, each, {}, run) for run, each in [(0, 9.0), (0, 1.0), (0, 2.0), (1, 4.0)]])
    assert found == {0: pytest.approx(1000 * 2.0 / 512), 1: pytest.approx(1000 * 4.0 / 512)}


def seconds(way: str, operation: str, *of_runs: float, mib: int = 1024) -> list[Step]:
    return [Step(way, operation, mib, each, {}, run) for run, each in enumerate(of_runs)]


def seen(profile: Profile, *places: Place, times: int) -> None:
    """So many moments of a run."""
    for _ in range(times):
        profile.tally.add(places)
    profile.looks[-1] += times


def profile_of(plain: Sequence[float], looked: Sequence[float], way: str = "ours", operation: str = TAKE) -> Profile:
    return Profile(way, operation, seconds(way, operation, *plain), seconds(way, operation, *looked), [0] * len(looked))


def figures(*profiles: Profile, commands: Sequence[Command] = ()) -> dict[str, Metric]:
    return {metric.metric: metric for metric in profile_metrics(profiles, commands)}


def test_the_steps_of_an_extent_add_up_to_its_time() -> None:
    """Which is the median of the runs without looks: one that is far off, and what looks cost, is not in it."""
    profile = profile_of((2.0, 2.56, 9.0), (3.0, 3.84, 9.0))
    seen(profile, Place(XEN, "scrub_one_page"), Place(KERNEL, "take_free_pages"), times=90)
    seen(profile, Place(KERNEL, "unheard_of"), times=10)
    small = [Command(operation, seconds, 0.0, {}, 0.0) for operation, seconds in ((TAKE, 0.512), (GIVE, 99.0))]
    found = figures(profile, commands=small)
    spent, explained = found["extent.ours.take.ms"], found["extent.ours.take.explained"]
    assert "part of the command, 1.000 ms of it" in spent.note
    assert spent.value == pytest.approx(5.0) and list(spent.runs) == pytest.approx([2.0 / 0.512, 5.0, 9.0 / 0.512])
    beside = dict(spent.baseline)
    assert (beside.pop("least"), beside.pop("most")) == (round(2.0 / 0.512, 4), round(9.0 / 0.512, 4))
    assert sum(float(part) for part in beside.values()) == pytest.approx(5.0)
    assert beside["xen: scrub"] == pytest.approx(2.25)
    assert spent.note.endswith("100 looks; most at scrub_one_page 45.0 %, take_free_pages 45.0 %, unheard_of 10.0 %")
    assert explained.value == pytest.approx(90.0) and "unheard_of 10.0 %" in explained.note and "less" not in explained.note
    # Wilson's interval of 90 of 100.
    without = {"without_broad_pct": 90.0, "without_console_pct": 90.0}
    assert explained.baseline == {"low_95_pct": 82.56, "high_95_pct": 94.48, "looks": 100, **without}
    seen(profile, Place(IDLE), times=10)
    assert "and this is less; waiting 9.1 %" in figures(profile)["extent.ours.take.explained"].note


def test_what_is_explained_without_the_steps_that_can_be_doubted() -> None:
    """The broad one with what is shared out to it; the goal is for all, and which functions have no step stays as it is."""
    profile = profile_of((2.0, 2.56, 4.0), (3.0, 3.2, 4.0))
    seen(profile, Place(XEN, "scrub_one_page"), times=80)
    seen(profile, Place(XEN, "ns16550_poll"), times=4)
    seen(profile, Place(KERNEL, "do_syscall_64"), times=8)
    seen(profile, Place(KERNEL, "__x86_return_thunk"), times=2)
    seen(profile, Place(KERNEL, "unheard_of"), times=2)
    seen(profile, Place(IDLE), times=4)
    explained = figures(profile)["extent.ours.take.explained"]
    assert explained.value == pytest.approx(93.6) and explained.note.endswith("of no step: unheard_of 2.0 %")
    assert explained.note.startswith("named: belongs to a step by its name; at least 90 is wanted; ")
    assert (explained.baseline["without_broad_pct"], explained.baseline["without_console_pct"]) == (84.0, 89.6)


def test_the_callers_of_locks_are_figures() -> None:
    """Shares of the time, where a CPU stands for all that were at locks just then; and how many looks they are of."""
    profile = profile_of((2.0, 2.56, 4.0), (3.0, 3.2, 4.0))
    waits = {caller: Place(XEN, "_spin_lock", caller, 1) for caller in ("vcpu_wake", NOT_TOLD)}
    seen(profile, waits[NOT_TOLD], times=50)
    seen(profile, Place(XEN, "_spin_lock", "schedule", 2), Place(XEN, "_spin_lock"), times=30)
    seen(profile, waits["vcpu_wake"], Place(PROGRAM), times=20)
    seen(profile, Place(KERNEL, "mutex_lock", NOT_TOLD, 1), times=10)
    seen(profile, Place(KERNEL, "mutex_lock", "deflate", 1), times=49)
    found = figures(profile)
    xen, kernel = (found[f"extent.ours.take.{name}"] for name in ("lock_callers", "kernel_lock_callers"))
    assert xen.value == pytest.approx(50.0) and xen.unit == "%" and xen.better == "none"
    assert xen.baseline == {"schedule": 75.0, "vcpu_wake": 25.0, "looks": 100, "told": 50}
    assert xen.note.startswith("looks at 'xen: locks' of which") and "dom0" not in xen.note
    assert kernel.value is None and kernel.baseline == {"deflate": 100.0, "looks": 59, "told": 49}
    assert kernel.note == "not measured: only 49 looks at locks of which the caller is told, it takes 50"
    seen(profile, Place(KERNEL, "mutex_lock", "deflate", 1), times=1)
    kernel = figures(profile)["extent.ours.take.kernel_lock_callers"]
    assert kernel.value == pytest.approx(100 * 50 / 60) and "dom0's kernel, no guest's" in kernel.note
    profile.steps.pop(), profile.looked.pop()
    few = figures(profile)["extent.ours.take.lock_callers"]
    assert few.value is None and few.note == "not measured: only 2 rounds, it takes 3"


def test_the_ten_largest_callers_are_named() -> None:
    profile = profile_of((2.0, 2.56, 4.0), (3.0, 3.2, 4.0))
    for number in range(1, 12):
        seen(profile, Place(XEN, "_spin_lock", f"caller_{number}", 1), times=number)
    shares = dict(figures(profile)["extent.ours.take.lock_callers"].baseline)
    assert (shares.pop("looks"), shares.pop("told")) == (66, 66)
    assert list(shares) == [f"caller_{number}" for number in range(11, 1, -1)] and shares["caller_11"] == round(1100 / 66, 2)


def test_what_looks_cost_is_a_figure() -> None:
    """Of each run with looks, against the one without beside it; and how many there were in each."""
    profile = profile_of((2.0, 2.56, 4.0), (3.0, 3.2, 4.0))
    for run, times in enumerate((20, 40, 60)):
        profile.looks[run] = times
        for _ in range(times):
            profile.tally.add([Place(PROGRAM)])
    found = figures(profile)
    cost, looked, looks = (found[f"extent.ours.take.{name}"] for name in ("looking_pct", "looked_ms", "looks"))
    assert list(cost.runs) == pytest.approx([50.0, 25.0, 0.0]) and cost.value == pytest.approx(25.0)
    assert looked.value == pytest.approx(6.25) and looks.value == 120 and list(looks.runs) == [20, 40, 60]


@pytest.mark.parametrize(
    ("runs", "looks", "words"),
    [
        (3, 1, "not measured: only 1 looks, it takes 50"),
        (3, 49, "not measured: only 49 looks, it takes 50"),
        (2, 500, "not measured: only 2 rounds, it takes 3"),
        (3, 50, ""),
    ],
)
def test_a_few_looks_are_no_profile(runs: int, looks: int, words: str) -> None:
    """One look would say that 100 % are explained."""
    profile = profile_of([2.56] * runs, [3.0] * runs)
    seen(profile, Place(XEN, "scrub_one_page"), times=looks)
    found = figures(profile)
    explained, spent = found["extent.ours.take.explained"], found["extent.ours.take.ms"]
    assert explained.value == (None if words else 100.0) and (not words or explained.note == words)
    assert ("xen: scrub" in spent.baseline) == (not words)
    assert (spent.value is None) == (runs < 3)


def test_stock_against_ours() -> None:
    """The ratio of both medians, of the runs without looks."""
    stock, ours = profile_of((40.0, 50.0, 10.0), (99.0,) * 3, "stock"), profile_of((2.0, 1.0, 4.0), (9.0,) * 3)
    found = figures(stock, ours)
    assert found["extent.take.ratio"].value == pytest.approx(20.0) and found["extent.give.ratio"].value is None
    assert list(found["extent.take.ratio"].runs) == pytest.approx([20.0, 50.0, 2.5])
    assert figures(stock, profile_of((2.0, 1.0), (9.0,)))["extent.take.ratio"].note == "not measured: only 2 rounds, it takes 3"


def test_what_was_not_measured_says_so() -> None:
    found = Record().metrics()
    assert len(profile_metrics(Record().profiles, [Command(TAKE, 1.0, 0.0, {}, 0.0)])) == 30
    assert {metric.value for metric in found if not metric.metric.endswith("looks")} == {None}
    assert all(metric.note for metric in found)
    assert problems(encode(Result("extent", now(), host_info(), found))) == []


def test_who_looks_stops_with_what_it_looks_at() -> None:
    before = time.monotonic()
    with Sampler(lambda: [Place(PROGRAM)], interval=0.0) as sampler:
        while len(sampler.looks) < 3:
            pass
    seen = len(sampler.looks)
    assert seen >= 3 and all(places == [Place(PROGRAM)] for _, places in sampler.looks)
    times = [before, *(at for at, _ in sampler.looks), time.monotonic()]
    assert times == sorted(times) and len(sampler.looks) == seen


def test_between_two_looks_is_the_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    """The ten milliseconds by which looks are counted."""
    waits: list[float] = []
    sampler = Sampler(lambda: [Place(PROGRAM)])
    wait, enough = sampler._ends.wait, threading.Event()

    def waiting(seconds: float) -> bool:
        waits.append(seconds)
        if len(waits) == 3:
            enough.set()
        return wait(seconds)

    monkeypatch.setattr(sampler._ends, "wait", waiting)
    with sampler:
        assert enough.wait(30), f"{len(waits)} looks, not 3"
    assert set(waits) == {0.01}


def failing() -> Sequence[Place]:
    raise LabError("gone")


@pytest.mark.parametrize("error", [KeyError("return"), TypeError("not text"), EOFError()])
def test_no_look_ends_without_a_word(error: Exception) -> None:
    """Whatever it was: three looks of thirty would pass for all."""
    left = [error]

    def look() -> Sequence[Place]:
        if left:
            raise left.pop()
        return [Place(PROGRAM)]

    with pytest.raises(LabError, match=re.escape(f"a look at the CPUs: {error!r}")), Sampler(look, 0.0):
        pass


def test_a_look_that_fails_is_an_error_unless_there_was_one() -> None:
    with pytest.raises(LabError, match="gone"), Sampler(failing):
        pass
    with pytest.raises(ValueError, match="before"), Sampler(failing):
        raise ValueError("before")


SAID = "vnode 1: online, 6080 of 6144 MiB on pnode 1, CPUs 2-3 (prepare 0.20 s, guest 0.50 s, settle 0.10 s)"


def test_the_parts_of_a_command_add_up() -> None:
    command = parse_command(TAKE, f"10.00 11.00 12.50\n{SAID}\n", {"evacuate": 0.1, "offline": 0.05})
    assert command.all == pytest.approx(1.5) and command.start == pytest.approx(0.25)
    parts = command.parts()
    assert sum(parts.values()) == pytest.approx(1.5)
    assert parts["guest: xenstore, wake-ups"] == pytest.approx(0.35)
    assert parts["what is left"] == pytest.approx(0.45)
    with pytest.raises(ValueError, match="no phases"):
        parse_command(TAKE, "1 2 3\nvnode 1: online\n", {})


def test_a_command_is_the_median_of_its_runs() -> None:
    commands = [Command(TAKE, seconds, 0.2, {"guest": 0.4}, 0.1) for seconds in (1.0, 3.0, 2.0)]
    take, give = command_metrics(commands)
    assert take.metric == "command.take.seconds" and take.value == 2.0 and list(take.runs) == [1.0, 3.0, 2.0]
    assert take.baseline["what is left"] == pytest.approx(1.4) and give.value is None


class Played:
    """A host with both guests: each command takes effect at once, and its time is said to be a second."""

    def __init__(self, refuses: str = "") -> None:
        self.refuses, self.log, self.mib = refuses, list[str](), {"stock1": 768, "g": 6656}
        self.changes: list[str] = []  # whose memory, and by how much

    def dom0(self, command: str, timeout: float = 60.0) -> Done:
        self.log.append(command)
        if self.refuses and self.refuses in command:
            return Done(3, "", "refused")
        if match := re.search(r"want=\$\(\(before \+ (-?\d+)\)\)", command):
            return self.changed("stock1", self.mib["stock1"] + int(match[1]))
        if match := re.search(r"xl vnode-set g 1 (\d+)M", command):
            done = self.changed("g", 512 + int(match[1]))
            return Done(0, f"1.0 2.0 3.0\n{SAID}\n") if "xl domid g >&2" in command else done
        counts = "".join(f"{name} T= 7\n" for name in (COUNTERS | DIRTIED).values())
        phases = '/local/domain/1/vnuma/guest/node/1/phases = "evacuate=50000"   (n1)\n'
        return Done(0, counts if "xenperf" in command else phases)

    def changed(self, name: str, mib: int) -> Done:
        before, self.mib[name] = self.mib[name], mib
        self.changes.append(f"{name} {mib - before}")
        return Done(0, f"1.0 2.0 {before} {mib} 1.0 2.0\n")


def test_all_of_it_with_the_node_absent_before_and_after() -> None:
    played, record = Played(), Record()
    node = Node(ElasticGuest("g", played.dom0, played.dom0), 1, 6144)
    looks = (lambda: [Place(KERNEL, "balloon_process")]), (lambda: [Place(XEN, "scrub_one_page")])
    measure(ElasticGuest("stock1", played.dom0, played.dom0), node, looks, record, runs=3)
    assert [(each.way, each.operation, len(each.steps), len(each.looked)) for each in record.profiles] == [
        (way, operation, 3 * often, 3 * often) for way, often in (("stock", 1), ("ours", 4)) for operation in (TAKE, GIVE)
    ]
    for profile in record.profiles:
        runs = [step.run for step in profile.steps]
        assert runs == sorted([0, 1, 2] * (len(runs) // 3)) and [step.run for step in profile.looked] == runs
    for profile, step in zip(record.profiles, ["guest: stock balloon"] * 2 + ["xen: scrub"] * 2, strict=True):
        assert set(profile.tally.steps) <= {step}, "the other host was looked at"
    assert [command.operation for command in record.commands] == [TAKE, GIVE] * 3
    # All of it twice before, the same amounts as are measured: what is touched for the first time is in no figure.
    whole = [f"stock1 {-STOCK_MIB}", f"stock1 {STOCK_MIB}", f"g {-OURS_MIB}", f"g {OURS_MIB}"]
    assert played.changes[:8] == whole * 2
    of_a_run = whole[:2] + whole[2:] * 4
    assert [change for change in played.changes[8:] if not change.endswith(("-64", " 64"))] == of_a_run * 6
    assert played.mib == {"stock1": 768, "g": 6656}
    assert "vnode-attach" in played.log[0] and "vnode-detach" in played.log[-1]
    found = {metric.metric: metric for metric in record.metrics()}
    assert found["extent.ours.take.ms"].value == pytest.approx(1000 / (extent_profile.OURS_MIB / 2))
    assert found["extent.stock.give.ms"].value == pytest.approx(1000 / (extent_profile.STOCK_MIB / 2))
    assert found["command.give.seconds"].value == pytest.approx(1.0)
    assert problems(encode(Result("extent", now(), host_info(), list[Metric](found.values())))) == []


@pytest.mark.parametrize(
    ("refuses", "left"), [("vnode-attach", "attach"), ("mem-set", "detach"), ("vnode-set", "detach")]
)
def test_what_is_refused_ends_it(refuses: str, left: str) -> None:
    played, record = Played(refuses), Record()
    node = Node(ElasticGuest("g", played.dom0, played.dom0), 1, 6144)
    with pytest.raises((LabError, RuntimeError)):
        measure(ElasticGuest("stock1", played.dom0, played.dom0), node, (failing, failing), record, runs=1)
    assert f"vnode-{left}" in played.log[-1]


class PlayedRack:
    """A rack whose host starts guests; both say whose they are."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __enter__(self) -> PlayedRack:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def host(self) -> PlayedRack:
        return self

    def start_guest(self, config: Path, overrides: dict[str, str]) -> ElasticGuest:
        guest = ElasticGuest(self.name, Played().dom0, Played().dom0)
        guest.listed = lambda: {1: {"max_kib": NODE_MIB << 10}}  # type: ignore[method-assign]
        return guest


def test_each_host_is_looked_at_with_its_own_symbols(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Upstream's with those of what it boots; with the other's, each function would have a wrong name."""
    measured: list[tuple[str, str, tuple[object, object], int]] = []

    def measure(stock: ElasticGuest, node: Node, looks: tuple[object, object], record: Record, runs: int) -> None:
        measured.append((stock.name, node.guest.name, looks, runs))
        record.profiles[0].steps += seconds("stock", TAKE, 1.0)

    monkeypatch.setattr(extent_profile, "measure", measure)
    monkeypatch.setattr(extent_profile, "look_at", lambda host, variant="": (host.name, variant))
    monkeypatch.setattr(stock_host, "boot", PlayedRack)
    monkeypatch.setattr(stock_host, "start_guest", lambda host, *words: host.start_guest(*words))
    monkeypatch.setattr(
        Rack, "boot", lambda description, meter: PlayedRack(f"{description.name} {description.hosts[0].xen_arguments}")
    )
    monkeypatch.setattr(results, "kept", partial(results.kept, directory=tmp_path))
    assert extent_profile.main(["--runs=7"]) == 0
    ours = "large-node bootscrub=on"
    looks = (("large-node@stock", "-stock"), (ours, ""))
    assert measured == [("large-node@stock", ours, looks, 7)]
    assert results.read(tmp_path / "extent.json").find("extent.failures")


def test_runs_with_looks_and_without_take_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each second run the other way round: what comes first has the caches of something else."""
    played = Played()

    def enter(self: Sampler) -> Sampler:
        played.changes.append("looks")
        return self

    monkeypatch.setattr(Sampler, "__enter__", enter)
    monkeypatch.setattr(Sampler, "__exit__", lambda *_: None)
    node = Node(ElasticGuest("g", played.dom0, played.dom0), 1, 6144)
    measure(ElasticGuest("stock1", played.dom0, played.dom0), node, (failing, failing), Record(), runs=3)
    counted = [change for change in played.changes[8:] if not change.endswith(("-64", " 64"))]
    firsts = [counted[at] == "looks" for at in (0, 30, 60)]
    assert firsts == [True, False, True] and counted.count("looks") == 30


def test_the_script_of_a_command_runs() -> None:
    assert "for i in 1 2 3 4; do xl domid 'a b' >&2" in command_script("a b", "xl vnode-set 'a b' 1 64M")
