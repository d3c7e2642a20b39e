# SPDX-License-Identifier: GPL-2.0
"""Where the time of one extent of 2 MiB goes, ours and stock; and where that of a command goes, whatever its amount.

The emulator is asked for the registers of all its CPUs, again and again, while memory is taken and given: at which function
each is, of the hypervisor or of a kernel, or that it runs a program, or waits. Nothing is built into a kernel or the hypervisor
for it: stock is on upstream's host (stock_host.py), 768 MiB of it, ours on our own, 4 GiB. What this changes all the same:
    - A look costs time, so each run is done twice, with looks and without, the order changing. An extent's time is that of the
      runs without, the median; the looks give its parts only. How much longer a run with looks takes is a figure.
    - A look takes the emulator's big lock, which who writes an interrupt command register needs, too: CPUs that send
      interrupts to each other wait for looks, and flushes are told longer than they are.
    - The stock guest has the event sched_switch traced, filtered to its balloon's thread, else nobody would know when that is
      done (stock_host.py): each switch of its CPUs has a test more. The same holds for balloon.py.
    - A look that finds CPUs in functions of locks asks two things more, of one of these CPUs, in turn: its stack, and its
      registers once more.

All is taken and given twice before anything counts, the same amounts: what is touched, allocated by the emulator or translated
for the first time is not in it. A run has ours four times, as it is over before many looks, and its time is their median.
Looks from the begin of the command to its end count, as far as that can be told from outside: to half of what ssh takes, some
ten milliseconds. At a moment at which several CPUs work each has a part of it; one at which none does is waiting. The
functions are put together to steps by their names (STEPS); what belongs to none is said by name, and that, with what is
waiting, is what is not explained. So explained means named: the function belongs to a step by a regular expression, and no
more is said of it. Two steps can be doubted, and beside what is explained is what would be without each of them:
    - The last one of kernels, BROAD, has patterns as wide as `do_.*`, `.*page.*`, `str.*`: without_broad_pct.
    - The console, CONSOLE, is work that the host does each ms, whatever is done on it, and no extent's. It became a step after
      it had been the largest part without one, 2.9 % of a give: without_console_pct is that of before.

Returns and calls of pointers go through functions of their own, of which nobody can tell whose they are: they are shared out
as the rest of the same code is, also to what is not explained. The parts add up to the median time, which has the command in
it: the note says how much that is. Shares are of the looks of all runs; how sure the explained one is says its 95 % interval,
as if no look told anything of the next. Less than three runs, or 50 looks, are no figure. Programs are a step as a whole: xl,
xenstored, the shell.

The kernel of dom0 is the guest's: what dom0's does is told from the guest's by the function only.

Who waits for locks is read from the stack of a CPU that is in a function of locks: the first word that can be an address to
return to, in a function that has nothing to do with locks. Its limits:
    - There are no frame pointers: what a function of locks has saved of its caller's registers lies below the address that it
      returns to, and may, seldom, hold an address within other code.
    - The CPU goes on meanwhile. If it is no longer at a lock, or not with the same stack, nobody is told, so that long waits
      are told more often than short ones.
    - The emulator's monitor knows no nested page tables: of kernels it is dom0's only, no guest's.
A CPU stands for all those of that look that were at locks; the shares are of the time at locks of which the caller is told.

A command's time, from dom0's clock and from what xl and the guest say of their phases, is in the other figures: a process
of xl that does next to nothing, xl's phases, the guest's, and what is left.

Usage: python3 -m benchmarks.extent_profile [--runs=N]
Exit status: 0, or 1 if it could not be measured; what was measured until then is written in any case, and an earlier
result is set aside.
"""

from __future__ import annotations

import argparse
import bisect
import collections
import dataclasses
import functools
import re
import shlex
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from benchmarks import slopes, stock_host
from benchmarks.arguments import whole
from benchmarks.balloon import ELASTIC, GIVE, RACK, SIZES, STOCK, TAKE, Node, Step, boot, told_step, vnode_step
from benchmarks.intervals import share_interval
from benchmarks.results import Metric, ended, from_runs
from lab.command import checked
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError, Malformed
from lab.host import Host
from lab.pipeline.paths import ARTIFACTS, REPO

RUNS = 6
WARM_UPS = 2  # of all, which nobody counts
OFTEN = {"stock": 1, "ours": 4}  # in a run: ours is over before many looks, and its time is their median
LEAST_LOOKS = 50  # of a way and operation, for a share
INTERVAL = 0.01  # seconds between two looks
# So much that what a command takes in any case is little of a take, and not all of a give: of ours the largest of
# benchmarks/balloon.py, of stock four times that.
STOCK_MIB, OURS_MIB = 4 * max(SIZES.stock), max(SIZES.ours)
STOCK_GUEST = {**STOCK, "memory": str(2 * STOCK_MIB)}
COMMAND_MIB = 64  # of a command of which the amount is next to nothing
MOST_NAMED = 10  # functions of a note, callers of locks
STACK_WORDS = 24  # of a stack, in which the caller is looked for: a function of locks saves six registers at most
ENOUGH = 90.0  # % of an extent's time that has to be explained

IDLE, PROGRAM, XEN, KERNEL, UNKNOWN = "idle", "program", "xen", "kernel", "unknown"
WAITING, OTHER, SHARED_OUT = "waiting", "other", "thunks"
XEN_LOCKS, KERNEL_LOCKS = "xen: locks", "kernel: locks"
BROAD, CONSOLE = "kernel: system calls, processes, files", "xen: console"
NOT_TOLD = "not told"

# From where on code is the hypervisor's, and a kernel's (both without a random base), and where each ends.
XEN_CODE = range(0xFFFF82D000000000, 0xFFFF82D080000000)
KERNEL_CODE = range(0xFFFFFFFF80000000, 0xFFFFFFFFC0000000)

THUNKS = r"__x86_(return|indirect)_thunk.*|srso_.*|retbleed_.*|__x86_.*"

# Steps, in the order in which they are tried: of which code, and the functions.
STEPS: Sequence[tuple[str, str, str]] = (
    ("program", PROGRAM, r".*"),
    ("xen: scrub", XEN, r"scrub_.*|clear_page.*|.*_scrub.*"),
    (
        "xen: flush",
        XEN,
        r"flush_.*|guest_flush.*|.*_flush_.*|on_selected_cpus|smp_call_.*|send_IPI.*|send_ipi.*|"
        # Who flushes asks again and again whether the set of those that have not done it yet is empty.
        r"(invalidate|call_function|event_check)_interrupt|.*tlb.*|hvm_asid.*|new_tlbflush.*|__bitmap_empty",
    ),
    (
        "xen: p2m",
        XEN,
        r"p2m_.*|write_p2m.*|hap_.*|.*get_gfn.*|.*put_gfn.*|.*physmap.*|set_gpfn.*|.*m2p.*|unmap_superpage|paging_.*|"
        r"remove_superpages",
    ),
    (
        "xen: frames",
        XEN,
        r"take_frames?|put_frames|guest_remove_.*|detach_superpage|get_page.*|put_page.*|page_get_owner.*|free_page_type|"
        r"release_frames|.*heap_page.*|.*domheap.*|merge_.*|assign_pages?|get_free_buddy|check_.*page.*|"
        r"arch_free_.*|domain_adjust_tot_pages|.*mapcache.*|map_domain_page.*|unmap_domain_page.*|page_list_.*|clear_domain_page",
    ),
    (
        "xen: call",
        XEN,
        r"do_memory_op|.*_reservation|compat_memory.*|populate_.*|hvm_hypercall.*|.*copy_(to|from).*|dsm_.*|propagate_.*|"
        r"__hvm_copy.*",
    ),
    (
        "xen: exits",
        XEN,
        r"svm_.*|vmx_.*|hvm_.*|vlapic.*|nsvm.*|x86_emulate.*|vpmu.*|.*vmexit.*|.*vmrun.*|pt_.*|ioreq.*|handle_.*|"
        r"hvmemul_.*|iret_exit_to_guest",
    ),
    (
        "xen: scheduler, events",
        XEN,
        r".*sched.*|csched.*|.*timer.*|.*softirq.*|vcpu_.*|.*evtchn.*|.*runq.*|.*unit.*|context_switch|"
        r".*_event.*|.*_?time_.*|get_s_time.*|read_.*|.*tasklet.*|rcu_.*|cpumask.*|credit.*|.*bitmap.*|.*find_.*bit.*|"
        r".*runstate.*",
    ),
    (XEN_LOCKS, XEN, r".*spin_.*|.*lock.*|.*_rw.*"),
    # dom0 is paravirtualised: its system calls, exceptions and page tables are the hypervisor's work.
    (
        "xen: for dom0",
        XEN,
        r"toggle_.*|.*pv_.*|do_(mmu|mmuext|update|iret|stack|set_segment).*|create_bounce_frame|guest_walk.*|map_domain_gfn|"
        r"map_guest_l.*|.*guest_l[1-4].*|mod_l[1-4].*|.*_page_type.*|(get|put|alloc|free)_(page_from_)?l[1-4].*|ptwr_.*|.*cr3.*|"
        r"devalidate_page|put_old_guest_table|pagefault_by_.*|do_multicall.*|.*memadd.*",
    ),
    (
        "xen: interrupts",
        XEN,
        r"do_IRQ|common_interrupt|.*apic.*|.*irq.*|ret_from_intr|entry_.*|lstar_enter|.*pirq.*|restore_all.*|autogen_stubs",
    ),
    # Once an interrupt of the serial port took more than 5 ms, Xen asks the port each ms (ns16550.c), while the host is up:
    # the host's work, whatever is done on it, and no extent's.
    (CONSOLE, XEN, r"(__)?ns16550_.*|ns_(read|write)_reg|serial_.*"),
    (
        "guest: extents",
        KERNEL,
        r"elastic_.*|take_(free|over|run|torn).*|deflate|hand_out|reservation|__SetPageOffline|adjust_managed.*|set_page_count|"
        r"free_block_of|xen_home.*|page_offline_.*",
    ),
    (
        "guest: allocator",
        KERNEL,
        r"__free_.*|free_.*page.*|.*rmqueue.*|get_page_from.*|__alloc_pages.*|alloc_pages.*|alloc_contig.*|.*isolate.*|"
        r".*pageblock.*|del_page.*|expand|.*_to_free_list.*|.*putback.*|.*zone.*|drain_.*|lru_.*|generic_online_page|"
        r"post_alloc_hook|prep_.*page.*|split_page.*|page_frag.*|.*watermark.*|set_page_owner.*|.*page_owner.*",
    ),
    (
        "guest: memory hotplug",
        KERNEL,
        r".*offline.*|.*online.*|.*memmap.*|.*vmemmap.*|sparse.*|.*section.*|remove_(memory|pfn|pagetable|pte|pmd).*|"
        r"add_memory.*|arch_(add|remove)_memory|.*memory_block.*|memset.*|__memset.*|page_init_poison|mem_hotplug.*|"
        # The notifiers, and the locks of memory and CPU hotplug, which nobody else here takes for writing.
        r".*(memory|memtier)_(notify|callback|hotplug).*|percpu_(down|up|rwsem|free_rwsem).*|(__)?(add|remove)_pages?|cpuhp_.*|"
        r"(cpu|lru_cache|zone_pcp)_.*(fold|dead|disable|enable).*|vm_events_fold_cpu|percpu_counter_cpu_dead",
    ),
    (
        "guest: memory that moves",
        KERNEL,
        r".*migrat.*|.*compact.*|.*folio.*|copy_.*page.*|.*rmap.*|try_to_.*|.*lruvec.*",
    ),
    ("guest: stock balloon", KERNEL, r".*balloon.*|(de|in)crease_reservation|xenmem_.*|clear_page.*|.*scrub.*"),
    ("guest: call", KERNEL, r".*hypercall.*|HYPERVISOR.*|xen_(force_evtchn|pv|hvm|irq|safe).*"),
    (
        "kernel: xenstore, event channels",
        KERNEL,
        r"xs_.*|xenbus_.*|xb_.*|.*evtchn.*|xen_.*|privcmd_.*|gnttab.*|unix_.*|.*watch.*",
    ),
    (KERNEL_LOCKS, KERNEL, r".*_lock.*|.*_unlock.*|.*spin.*|mutex_.*|rwsem.*|down_.*|up_.*|.*rcu.*"),
    (
        "kernel: scheduler, time",
        KERNEL,
        r".*sched.*|.*timer.*|.*tick.*|update_.*|.*wake.*|.*irq.*|.*softirq.*|ktime.*|.*clock.*|.*entity.*|pick_.*|"
        r"(en|de)queue_.*|.*_switch.*|.*apic.*|.*workqueue.*|process_one_work|worker_thread|.*jiffies.*",
    ),
    (
        BROAD,
        KERNEL,
        r".*syscall.*|.*sys_.*|entry_.*|error_.*|.*(pte|pmd|pgd|p4d)p?_.*|.*(free|unmap|zap)_.*(pgd|range).*|.*munmap.*|rb_.*|"
        r"(mfn|pfn)_.*|smp_call_.*|.*exc_.*|asm_.*|.*fault.*|.*_pte.*|.*vma.*|.*mmap.*|.*mm_.*|.*exec.*|.*fork.*|"
        r"do_.*|.*filemap.*|.*path.*|.*file.*|.*inode.*|.*dentry.*|d_.*|vfs_.*|.*read.*|.*write.*|.*poll.*|.*kmem.*|.*slab.*|"
        r"kmalloc.*|kfree.*|.*memcg.*|.*sock.*|.*skb.*|.*tcp.*|.*ip_.*|net.*|.*page.*|mas_.*|mt_.*|str.*|mem.*|.*copy.*|.*user.*|fget|fput|"
        r"fd_?(get|put|install).*|filp_.*|vm_.*|.*vm_stat.*|may_expand_vm|unmapped_area.*|tlb_.*|.*ucounts?|set_root|step_into|"
        r"generic_permission|touch_atime|format_decode|number|v?s?n?printf.*|xas_.*|cgroup_.*|percpu_.*|virtqueue_.*|pud_val",
    ),
    # By which functions return, and call what they have a pointer to: whose they are is not to be told.
    (SHARED_OUT, XEN, THUNKS),
    (SHARED_OUT, KERNEL, THUNKS),
)
_STEPS = tuple((step, of, re.compile(names)) for step, of, names in STEPS)
_WAITS = re.compile(r".*idle.*|.*safe_halt.*|.*mwait.*|cpu_relax|halt_.*")
_CLONE = re.compile(r"\.(cold|isra|part|constprop|llvm|lto_priv)\b.*")


class Symbols:
    """The functions of a program, by their addresses."""

    def __init__(self, text: str) -> None:
        """`text`: lines of `nm` or System.map. Raises Malformed if there is no function, or not the bounds of all."""
        found = sorted(
            (int(words[0], 16), _CLONE.sub("", words[2]))
            for words in (line.split() for line in text.splitlines())
            if len(words) >= 3 and words[1] in "tTwW"
        )
        if not found:
            raise Malformed(f"no functions in {text[:100]!r}")
        self._from = [address for address, _ in found]
        self._names = [name for _, name in found]
        bounds = {name: address for address, name in found if name in ("_stext", "_etext")}
        if len(bounds) != 2:
            raise Malformed(f"no _stext and _etext, between which code is, in {text[:100]!r}")
        self._code = range(bounds["_stext"], bounds["_etext"])

    def name(self, address: int) -> str:
        """The function that holds an address; without one the address itself."""
        index = bisect.bisect_right(self._from, address) - 1
        return self._names[index] if index >= 0 else f"{address:#x}"

    def caller(self, word: int) -> str | None:
        """The function that a word of a stack returns to. None if it is no such address: data, or where a function begins."""
        index = bisect.bisect_left(self._from, word)
        if word not in self._code or self._from[index] == word:
            return None
        return self._names[index - 1]


@functools.cache
def _step_of(code: str, function: str) -> str:
    return next((step for step, of, names in _STEPS if of == code and names.fullmatch(function)), OTHER)


@dataclasses.dataclass(frozen=True)
class Place:
    """Where a CPU is: whose code, and which function; at a lock, if that was asked, who has called it, or NOT_TOLD."""

    of: str
    function: str = ""
    caller: str = ""
    stands_for: int = 0  # CPUs that are at locks at this moment, of which this one was asked

    @property
    def step(self) -> str:
        """The step of STEPS that it belongs to, or OTHER."""
        return _step_of(self.of, self.function)


@dataclasses.dataclass(frozen=True)
class Cpu:
    """A CPU as the emulator shows it."""

    number: int
    place: Place
    level: int
    stack: int  # its pointer

    @property
    def tells(self) -> bool:
        """Whether it is at a lock, with a stack that can be read. A guest's kernel has nested page tables, and level 0."""
        return self.place.step == XEN_LOCKS or (self.place.step == KERNEL_LOCKS and self.level == 3)


_CPU = re.compile(r"^CPU#(\d+)", re.MULTILINE)
_WORDS = re.compile(r"\bE?R?SP=([0-9a-f]+).*?\bE?R?IP=([0-9a-f]+).*?\bCPL=(\d).*?\bHLT=(\d)", re.DOTALL)


def place_at(address: int, level: int, xen: Symbols, kernel: Symbols) -> Place:
    """Where a CPU is that is not halted."""
    code = next((code for code in (XEN_CODE, KERNEL_CODE) if address in code), None)
    if code is None:
        # By the address first: dom0's kernel, which is paravirtualised, runs at level 3, too.
        return Place(PROGRAM) if level == 3 else Place(UNKNOWN, f"{address:#x}")
    name = (xen if code is XEN_CODE else kernel).name(address)
    return Place(IDLE) if _WAITS.fullmatch(name) else Place(XEN if code is XEN_CODE else KERNEL, name)


def parse_registers(text: str, xen: Symbols, kernel: Symbols) -> list[Cpu]:
    """The CPUs of `info registers`, with -a or of one. Raises Malformed."""
    cpus = []
    words = _CPU.split(text)[1:]
    for number, of_cpu in zip(words[::2], words[1::2], strict=True):
        match = _WORDS.search(of_cpu)
        if not match:
            raise Malformed(f"no RSP, RIP, CPL and HLT in {of_cpu[:200]!r}")
        stack, at, level, halted = int(match[1], 16), int(match[2], 16), int(match[3]), int(match[4])
        cpus.append(Cpu(int(number), Place(IDLE) if halted else place_at(at, level, xen, kernel), level, stack))
    if not cpus:
        raise Malformed(f"no CPU in {text[:200]!r}")
    return cpus


_MEMORY = re.compile(r"[0-9a-f]+:((?: 0x[0-9a-f]{16})+)")
_NO_MEMORY = re.compile(r"[0-9a-f]+: Cannot access memory")


def parse_memory(text: str) -> list[int]:
    """The words of `x /Ngx`, as far as they can be read. Raises Malformed."""
    words: list[int] = []
    for line in text.strip().splitlines():
        if match := _MEMORY.fullmatch(line.strip()):
            words += (int(word, 16) for word in match[1].split())
        elif _NO_MEMORY.fullmatch(line.strip()):
            return words
        else:
            raise Malformed(f"no words of memory in {line[:200]!r}")
    if not words:
        raise Malformed("no words of memory, where a stack was asked for")
    return words


def lock_caller(words: Sequence[int], of: str, symbols: Symbols) -> str:
    """Who has called the functions of locks that are on top of a stack, or NOT_TOLD."""
    names = (name for word in words if (name := symbols.caller(word)))
    return next((name for name in names if _step_of(of, name) not in (XEN_LOCKS, KERNEL_LOCKS, SHARED_OUT)), NOT_TOLD)


class Looker:
    """Looks at all CPUs of a machine, and at the stack of one of those that are at locks.

    Not more than one, in turn: each command takes the emulator's big lock.
    """

    def __init__(self, monitor: Callable[[str, int | None], str], xen: Symbols, kernel: Symbols) -> None:
        self._monitor, self._xen, self._kernel = monitor, xen, kernel
        self._asked = -1  # the last CPU

    def __call__(self) -> list[Place]:
        """Where the CPUs are. Raises what the monitor raises, Malformed."""
        cpus = parse_registers(self._monitor("info registers -a", None), self._xen, self._kernel)
        tell = [cpu for cpu in cpus if cpu.tells]
        if not tell:
            return [cpu.place for cpu in cpus]
        asked = min(tell, key=lambda cpu: (cpu.number <= self._asked, cpu.number))
        self._asked = asked.number
        told = dataclasses.replace(asked.place, caller=self._caller(asked), stands_for=len(tell))
        return [told if cpu is asked else cpu.place for cpu in cpus]

    def _caller(self, cpu: Cpu) -> str:
        words = parse_memory(self._monitor(f"x /{STACK_WORDS}gx {cpu.stack:#x}", cpu.number))
        (after,) = parse_registers(self._monitor("info registers", cpu.number), self._xen, self._kernel)
        if (after.place.step, after.level, after.stack) != (cpu.place.step, cpu.level, cpu.stack):
            return NOT_TOLD  # it has gone on, and these words may be of anything
        return lock_caller(words, cpu.place.of, self._xen if cpu.place.of == XEN else self._kernel)


@dataclasses.dataclass
class Callers:
    """Who waits for locks."""

    asked: int = 0  # looks
    told: int = 0
    moments: dict[str, float] = dataclasses.field(default_factory=dict)

    def add(self, caller: str, moment: float) -> None:
        """A look that asked, and its part of a moment."""
        self.asked += 1
        if caller != NOT_TOLD:
            self.told += 1
            self.moments[caller] = self.moments.get(caller, 0.0) + moment


class Tally:
    """Moments, by step, by function, by function of those that belong to no step; and by the callers of locks."""

    def __init__(self) -> None:
        self.moments = 0
        self._steps: dict[tuple[str, str], float] = collections.defaultdict(float)  # by whose code and step
        self.others: dict[str, float] = collections.defaultdict(float)
        self.functions: dict[str, float] = collections.defaultdict(float)
        self.callers = {XEN_LOCKS: Callers(), KERNEL_LOCKS: Callers()}

    def add(self, places: Sequence[Place]) -> None:
        """One moment: those that work share it."""
        self.moments += 1
        at_work = [place for place in places if place.of != IDLE]
        if not at_work:
            self._steps[IDLE, WAITING] += 1
        for place in at_work:
            part = 1 / len(at_work)
            self._steps[place.of, place.step] += part
            if place.step == OTHER:
                self.others[place.function] += part
            if place.function:
                self.functions[place.function] += part
            if place.caller:
                self.callers[place.step].add(place.caller, part * place.stands_for)

    @property
    def steps(self) -> dict[str, float]:
        """Moments by step; what nobody can tell whose it is has been shared out among the steps of the same code."""
        found: dict[str, float] = collections.defaultdict(float)
        for code in {of for of, _ in self._steps}:
            mine = {step: weight for (of, step), weight in self._steps.items() if of == code}
            thunks = mine.pop(SHARED_OUT, 0.0)
            known = sum(mine.values())
            for step, weight in mine.items():
                found[step] += weight * (1 + thunks / known)
            if not known:
                found[OTHER] += thunks
        return found

    def share(self, step: str) -> float:
        """Of all moments, 0 to 1."""
        return self.steps.get(step, 0.0) / self.moments if self.moments else 0.0

    def explained(self, *without: str) -> float:
        """% of the moments at which what is done belongs to a step, but for those `without`, and it is not waiting."""
        return 100 * (1 - sum(self.share(step) for step in (OTHER, WAITING, *without))) if self.moments else 0.0


class Sampler:
    """Looks at all CPUs while something is done. A context manager; an error of a look is raised as it is left.

    `looks`: when each was, by time.monotonic(), and where the CPUs were.
    """

    def __init__(self, look: Callable[[], Sequence[Place]], interval: float = INTERVAL) -> None:
        self.looks: list[tuple[float, Sequence[Place]]] = []
        self._look, self._interval = look, interval
        self._ends = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._run, name="sampler")

    def _run(self) -> None:
        try:
            while not self._ends.is_set():
                began = time.monotonic()
                places = self._look()
                self.looks.append(((began + time.monotonic()) / 2, places))
                self._ends.wait(self._interval)
        except Exception as error:  # else the thread would end without a word, and a few looks pass for all
            self._error = error if isinstance(error, (LabError, Malformed)) else LabError(f"a look at the CPUs: {error!r}")

    def __enter__(self) -> Sampler:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self._ends.set()
        self._thread.join()
        if self._error and kind is None:
            raise self._error


@dataclasses.dataclass
class Profile:
    """What was seen of one way and operation."""

    way: str
    operation: str
    steps: list[Step] = dataclasses.field(default_factory=list)  # runs without a look
    looked: list[Step] = dataclasses.field(default_factory=list)  # and those with
    looks: list[int] = dataclasses.field(default_factory=list)  # of each of those how many
    tally: Tally = dataclasses.field(default_factory=Tally)

    def add(self, step: Step, looks: Sequence[tuple[float, Sequence[Place]]]) -> None:
        """A run with looks, and of these the ones that were while it lasted."""
        before = self.tally.moments
        for at, places in looks:
            if step.at[0] <= at <= step.at[1]:
                self.tally.add(places)
        self.looked.append(step)
        self.looks.append(self.tally.moments - before)


def extent_ms(steps: Sequence[Step]) -> dict[int, float]:
    """Of each run, for 2 MiB: the median of those that it has."""
    by_run: dict[int, list[float]] = {}
    for step in steps:
        by_run.setdefault(step.run, []).append(1000 * step.seconds / (step.mib / 2))
    return {run: statistics.median(each) for run, each in by_run.items()}


def by_weight(weights: Mapping[str, float]) -> list[str]:
    """The names, heaviest first."""
    return sorted(weights, key=lambda name: -weights[name])


def heaviest(weights: Mapping[str, float], moments: int) -> str:
    """The functions with most of the time, each with its part of all moments."""
    return ", ".join(f"{name} {100 * weights[name] / moments:.1f} %" for name in by_weight(weights)[:MOST_NAMED])


def of_runs(name: str, runs: Sequence[float], unit: str, better: str, note: str) -> Metric:
    """The median of enough runs, with the least and the most."""
    if few := slopes.too_few(runs):
        return Metric(name, None, unit, better, {}, runs, few)
    baseline: dict[str, float | str] = {"least": round(min(runs), 4), "most": round(max(runs), 4)}
    return Metric(name, statistics.median(runs), unit, better, baseline, runs, note)


def lock_callers(name: str, step: str, callers: Callers, few: str) -> Metric:
    """Of how many looks at locks the caller is told, and the largest callers' shares. `few`: why it is no figure."""
    if not few and callers.told < LEAST_LOOKS:
        few = f"not measured: only {callers.told} looks at locks of which the caller is told, it takes {LEAST_LOOKS}"
    whole = sum(callers.moments.values())
    largest = by_weight(callers.moments)[:MOST_NAMED]
    shares = {each: round(100 * callers.moments[each] / whole, 2) for each in largest}
    baseline: dict[str, float | str] = {**shares, "looks": callers.asked, "told": callers.told}
    kernel = "" if step == XEN_LOCKS else "; of dom0's kernel, no guest's"
    note = f"looks at '{step}' of which the caller is told{kernel}; beside it the callers, in % of the time told there"
    return Metric(name, None if few else 100 * callers.told / callers.asked, "%", "none", baseline, note=few or note)


def one_profile(profile: Profile, commands: Sequence[Command]) -> list[Metric]:
    """An extent's time with that of its steps beside it, how much of that is explained, and what the looks cost."""
    name = f"extent.{profile.way}.{profile.operation}"
    tally, plain, looked = profile.tally, extent_ms(profile.steps), extent_ms(profile.looked)
    mib = ", ".join(map(str, sorted({step.mib for step in profile.steps})))
    alone = [each.all for each in commands if each.operation == profile.operation] if profile.steps else []
    of_one = 1000 * statistics.median(alone) / (profile.steps[0].mib / 2) if alone else 0.0
    small = f", {of_one:.3f} ms of it" if alone and profile.way == "ours" else ""
    ms = of_runs(f"{name}.ms", [*plain.values()], "ms", "lower", f"median; 2 MiB of {mib}, with a part of the command{small}")
    few = slopes.too_few(looked)
    if not few and tally.moments < LEAST_LOOKS:
        few = f"not measured: only {tally.moments} looks, it takes {LEAST_LOOKS}"
    explained = Metric(f"{name}.explained", None, "%", "higher", note=few)
    if not few:
        weights, others = tally.steps, heaviest(tally.others, tally.moments)
        if ms.value is not None:
            parts = {step: round(ms.value * weights[step] / tally.moments, 4) for step in by_weight(weights)}
            note = f"{ms.note}; steps by {tally.moments} looks; most at {heaviest(tally.functions, tally.moments)}"
            ms = dataclasses.replace(ms, baseline={**ms.baseline, **parts}, note=note)
        named = tally.explained()
        low, high = (round(100 * share, 2) for share in share_interval(named / 100, tally.moments))
        lack = "" if named >= ENOUGH else f", and this is less; waiting {100 * tally.share(WAITING):.1f} %"
        note = f"named: belongs to a step by its name; at least {ENOUGH:.0f} is wanted{lack}"
        beside: dict[str, float | str] = {"low_95_pct": low, "high_95_pct": high, "looks": tally.moments}
        doubted = {"without_broad_pct": BROAD, "without_console_pct": CONSOLE}
        beside |= {key: round(tally.explained(step), 2) for key, step in doubted.items()}
        explained = Metric(
            explained.metric, named, "%", "higher", beside, note=note + (f"; of no step: {others}" if others else "")
        )
    cost = [100 * (looked[run] / plain[run] - 1) for run in plain if run in looked]
    return [
        ms,
        explained,
        of_runs(f"{name}.looked_ms", [*looked.values()], "ms", "none", "the same of the runs with looks"),
        of_runs(f"{name}.looking_pct", cost, "%", "lower", "how much longer a run with looks takes than the one beside it"),
        lock_callers(f"{name}.lock_callers", XEN_LOCKS, tally.callers[XEN_LOCKS], few),
        lock_callers(f"{name}.kernel_lock_callers", KERNEL_LOCKS, tally.callers[KERNEL_LOCKS], few),
        Metric(f"{name}.looks", tally.moments, "1", "none", runs=profile.looks, note="of all runs, and of each"),
    ]


def ratio(profiles: Sequence[Profile], operation: str) -> Metric:
    """How many times as long stock takes for an extent as ours."""
    ms = {each.way: extent_ms(each.steps) for each in profiles if each.operation == operation}
    stock, ours = ms.get("stock", {}), ms.get("ours", {})
    runs = [stock[run] / ours[run] for run in stock if run in ours]
    name = f"extent.{operation}.ratio"
    if few := slopes.too_few(runs):
        return Metric(name, None, "x", "higher", {}, runs, few)
    medians = {f"{way}_ms": statistics.median(of_way.values()) for way, of_way in ms.items()}
    note = "2 MiB, stock's median against ours, each with its part of the command"
    return Metric(name, medians["stock_ms"] / medians["ours_ms"], "x", "higher", medians, runs, note)


def profile_metrics(profiles: Sequence[Profile], commands: Sequence[Command] = ()) -> list[Metric]:
    """All figures of extents. `commands`: small ones of ours."""
    found = [metric for profile in profiles for metric in one_profile(profile, commands)]
    return [*(ratio(profiles, operation) for operation in (TAKE, GIVE)), *found]


@dataclasses.dataclass(frozen=True)
class Command:
    """Seconds of one command: all of it, a process of xl that does next to nothing, xl's phases, the guest's."""

    operation: str
    all: float
    start: float
    phases: Mapping[str, float]
    guest: float

    def parts(self) -> dict[str, float]:
        """Where its time went; they add up to all."""
        parts = {
            "start and end of xl": self.start,
            "prepare": self.phases.get("prepare", 0.0),
            "guest's phases": self.guest,
            "guest: xenstore, wake-ups": self.phases.get("guest", 0.0) - self.guest,
            "settle": self.phases.get("settle", 0.0),
        }
        return {**parts, "what is left": self.all - sum(parts.values())}


def command_script(name: str, command: str) -> str:
    """A script for dom0: xl four times with next to nothing to do, then `command`; it prints the times and what that said."""
    return f"""
now() {{ awk '{{print $1}}' /proc/uptime; }}
began=$(now)
for i in 1 2 3 4; do xl domid {shlex.quote(name)} >&2 || exit; done
between=$(now)
said=$({command}) || exit
echo "$began $between $(now)"
echo "$said"
"""


_PHASE = re.compile(r"(prepare|guest|settle|undo) ([0-9.]+) s")


def parse_command(operation: str, out: str, guest_phases: Mapping[str, float]) -> Command:
    """From what the script and the guest say. Raises ValueError."""
    times, _, said = out.partition("\n")
    began, between, ended = (float(word) for word in times.split())
    phases = {name: float(seconds) for name, seconds in _PHASE.findall(said)}
    if "guest" not in phases:
        raise ValueError(f"xl says no phases: {said[:200]!r}")
    return Command(operation, ended - between, (between - began) / 4, phases, sum(guest_phases.values()))


def command_metrics(commands: Sequence[Command]) -> list[Metric]:
    """The median of each part, and of all."""
    found = []
    for operation in (TAKE, GIVE):
        some = [command for command in commands if command.operation == operation]
        metric = from_runs(
            f"command.{operation}.seconds",
            [command.all for command in some],
            "s",
            "lower",
            f"`xl vnode-set` of {COMMAND_MIB} MiB",
        )
        parts = [command.parts() for command in some]
        baseline: dict[str, float | str] = {
            part: round(statistics.median(each[part] for each in parts), 3) for part in (parts[0] if parts else ())
        }
        found.append(dataclasses.replace(metric, baseline=baseline))
    return found


def one_command(node: Node, operation: str) -> Command:
    """One `xl vnode-set` of a small amount. Raises LabError if xl refuses, ValueError."""
    then_mib = node.full_mib - COMMAND_MIB if operation == TAKE else node.full_mib
    command = node.guest.command("vnode-set", str(node.number), f"{then_mib}M")
    out = checked(node.guest.dom0, command_script(node.guest.name, command), 180.0)
    return parse_command(operation, out, node.guest.vnode(node.number).phases)


@dataclasses.dataclass
class Record:
    """All that was seen: of each way and operation, and of commands."""

    profiles: list[Profile] = dataclasses.field(
        default_factory=lambda: [Profile(way, operation) for way in ("stock", "ours") for operation in (TAKE, GIVE)]
    )
    commands: list[Command] = dataclasses.field(default_factory=list)

    def metrics(self) -> list[Metric]:
        """The figures."""
        return [*profile_metrics(self.profiles, self.commands), *command_metrics(self.commands)]


Look = Callable[[], Sequence[Place]]


def measure(stock: ElasticGuest, node: Node, looks: tuple[Look, Look], record: Record, runs: int = RUNS) -> None:
    """All of it, the node absent before and after; adds to `record` as it goes. `looks`: at stock's host, and at ours.

    Raises what the steps raise.
    """

    def one(profile: Profile, run: int) -> Step:
        if profile.way == "stock":
            return told_step(stock, "stock", profile.operation, STOCK_MIB, run)
        return vnode_step(node, "ours", profile.operation, OURS_MIB, run)

    attached = node.guest.attach(node.number, timeout=300.0)
    if attached.status != 0:
        raise RuntimeError(f"xl vnode-attach: exit status {attached.status}: {attached.text.strip()}")
    try:
        for _ in range(WARM_UPS):
            for profile in record.profiles:
                one(profile, 0)
        of_way = {way: [profile for profile in record.profiles if profile.way == way] for way in OFTEN}
        in_turn = [profile for way, often in OFTEN.items() for profile in of_way[way] * often]
        for run in range(runs):
            for with_looks in (False, True) if run % 2 else (True, False):
                for profile in in_turn:
                    if with_looks:
                        with Sampler(looks[profile.way == "ours"]) as sampler:
                            step = one(profile, run)
                        profile.add(step, sampler.looks)
                    else:
                        profile.steps.append(one(profile, run))
            record.commands += [one_command(node, operation) for operation in (TAKE, GIVE)]
    finally:
        node.guest.detach(node.number, timeout=300.0)


def look_at(host: Host, variant: str = "", artifacts: Path = ARTIFACTS) -> Look:
    """A look at all CPUs of a host that this process has booted; `variant`: "-stock" for upstream's hypervisor and kernel.

    Raises LabError, Malformed, OSError.
    """
    done = subprocess.run(["nm", artifacts / f"xen{variant}" / "xen-syms"], capture_output=True, text=True, check=False)
    xen = Symbols(done.stdout)
    kernel = Symbols((artifacts / f"linux{variant}" / "System.map").read_text())
    machine = host.machine
    if machine is None:
        raise LabError("another process has booted the host: only that one can look at its CPUs")
    return Looker(machine.qmp.monitor, xen, kernel)


def main(arguments: Sequence[str] = ()) -> int:
    """Boot, measure, write build/results/extent.json. `arguments`: none without."""
    parser = argparse.ArgumentParser(
        prog="python3 -m benchmarks.extent_profile", description=(__doc__ or "").partition("\n")[0]
    )
    parser.add_argument("--runs", type=whole(1), default=RUNS, metavar="N", help="with looks, and without (%(default)s)")
    runs = parser.parse_args(arguments).runs
    record = Record()
    wrong: list[str] = []
    try:
        with stock_host.boot(f"{RACK}@stock") as other, boot() as rack:
            upstream, host = other.host(), rack.host()
            looks = look_at(upstream, stock_host.RELEASE), look_at(host)
            stock = stock_host.start_guest(upstream, REPO / "configs" / "stock1.cfg", STOCK_GUEST)
            guest = host.start_guest(REPO / "configs" / "guest2.cfg", ELASTIC)
            node = Node(guest, 1, guest.listed()[1]["max_kib"] // 1024)
            measure(stock, node, looks, record, runs)
    except (LabError, Malformed, RuntimeError, ValueError, OSError) as error:
        wrong.append(str(error) or repr(error))
    return ended("extent", record.metrics(), wrong, any(profile.steps or profile.looked for profile in record.profiles))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
