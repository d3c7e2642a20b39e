# SPDX-License-Identifier: GPL-2.0
"""The search for complaints: lines as Linux and Xen write them, in logs that grow while they are read."""

from __future__ import annotations

from pathlib import Path

from lab.complaints import KNOWN_LINES, Complaint, Consoles, complaints


def test_the_search_finds_what_it_should() -> None:
    """Lines as Linux and Xen write them, and some that are no complaint."""
    bad = [
        "[    1.2] WARNING: CPU: 0 PID: 1 at mm/page_alloc.c:1 f+0x1/0x2",
        "WARNING: possible circular locking dependency detected",
        "BUG: sleeping function called from invalid context at x.c:1",
        "BUG: unable to handle page fault for address: 0",
        "BUG: kernel NULL pointer dereference, address: 0000000000000000",
        "BUG: Bad page state in process t",
        "BUG: Bad rss-counter state mm:0 type:MM_ANONPAGES val:1",
        "INFO: task kworker/0:1 blocked for more than 122 seconds.",
        "Kernel panic - not syncing: Fatal exception",
        "Kernel panic - not syncing: sysrq triggered crash",
        "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
        "kernel BUG at mm/slub.c:1!",
        "Oops: 0000 [#1] PREEMPT SMP",
        "Oops: general protection fault, probably for non-canonical address 0x1: 0000 [#1] SMP",
        "UBSAN: shift-out-of-bounds in x.c:1",
        "BUG: KASAN: use-after-free in f+0x1/0x2",
        "[   9.1] KASAN: null-ptr-deref in range [0x0-0x7]",
        "Out of memory: Killed process 99 (stream_check) total-vm:1kB",
        "oom-kill:constraint=CONSTRAINT_NONE,nodemask=(null),cpuset=/,mems_allowed=0-1",
        "sched: CPU #2's llc-sibling CPU #0 is not on the same node! [node: 1 != 0]. Ignoring dependency.",
        "INFO: possible recursive locking detected",
        "INFO: possible irq lock inversion dependency detected",
        "INFO: trying to register non-static key.",
        "kworker/0:1: page allocation failure: order:4, mode:0xcc0(GFP_KERNEL), nodemask=(null)",
        "stream_check[99]: segfault at 0 ip 00005 sp 00007 error 4 in stream_check[55,1000]",
        "xen_elastic_numa: vnode 1: 511 pages at pfn 0x40000 are lost: Xen took back 510",
        "xen_elastic_numa: vnode 1: Xen keeps the extent at pfn 0x40000 (-22)",
        "xen_elastic_numa: generation 7: outcome could not be reported: -28",
        "WARNING: possible recursive locking detected",
        "smpboot: CPU 2 has invalid APIC ID ffff. Aborting bringup",
        "(XEN) Assertion 'x' failed at y.c:1",
        "(XEN) Xen BUG at y.c:1",
        "(XEN) Xen WARN at y.c:1",
        "(XEN) FATAL TRAP: vec 14",
        "(XEN) Panic on CPU 1:",
        "(XEN) d1v0 Triple fault - invoking HVM shutdown action 1",
        "(XEN) [2026-11-22 03:00:01] d1v0 Triple fault - invoking HVM shutdown action 1",
        "(XEN) d1v0 NRip reported inst_len 3, decoded 2",
        "(XEN) Insn mismatch: Expected opcode 0xf0031, modrm 0, got nrip_len 3, emul_len 3",
        "(XEN) domain_crash called from arch/x86/hvm/svm/svm.c:123",
        "(XEN) Domain 3 (vcpu#1) crashed on cpu#0:",
        "(XEN) Domain 3 reported crashed by domain 0 on cpu#2:",
        "(XEN) Hardware Dom0 crashed: rebooting machine in 5 seconds.",
        "(XEN) Dom0 has crashed: rebooting machine",
    ]
    good = [
        "(XEN) ACPI: SLEEP INFO: pm1x_cnt[1:604,1:0]",
        "(XEN) Hardware Dom0 halted: halting machine",
        "xenuma: guest ready",
        "Warning: Processor Platform Limit event detected, but not handled.",
        "rcu: INFO: rcu_preempt detected stalls on CPUs/tasks:",
        "xen_elastic_numa: vnode 1: -16 512 pages are pinned",
    ]
    assert complaints("\n".join([*good, *bad])) == bad


def lockdep(function: str) -> str:
    """The beginning of lockdep's report of an inversion that this function completes."""
    return (
        "WARNING: possible circular locking dependency detected\n6.12.107-xenuma #1 Not tainted\n------\n"
        f"xenstored/65 is trying to acquire lock:\nffff8880031a2878 (&priv->lock){{+.+.}}-{{3:3}}, at: {function}+0x44/0x340\n"
    )


def test_known_of_upstream_is_not_reported_and_hides_nothing() -> None:
    """Only the very report that is known."""
    assert complaints(lockdep("gntdev_mmap") + "(XEN) Xen WARN at arch/x86/xstate.c:769\n") == []
    assert complaints(lockdep("gntdev_mmap").replace("\n", "\r\r\n")) == []
    assert len(complaints(lockdep("elastic_topo_publish") + lockdep("gntdev_mmap"))) == 1
    known = "(XEN) Xen WARN at arch/x86/xstate.c:769\n"
    for real in ("BUG: Bad page state in process t", "Kernel panic - not syncing: Fatal exception"):
        for report in (f"{real}\n{known}", f"{known}{real}\n", f"{real}\n{lockdep('gntdev_mmap')}"):
            assert complaints(report) == [real], report
        within = lockdep("gntdev_mmap").replace("------\n", f"------\n{real}\n")
        assert complaints(within) == [real]


def test_each_line_is_looked_at_once_and_only_when_it_is_whole(tmp_path: Path) -> None:
    consoles = Consoles()
    log = tmp_path / "alpha-console.log"
    log.write_text("BUG: a\nBUG: b", encoding="utf-8")
    consoles.add(tmp_path)
    consoles.add(tmp_path)
    assert consoles.new() == [Complaint(log.name, "BUG: a")]
    assert consoles.new() == []
    with log.open("a", encoding="utf-8") as more:
        more.write("c\nfine\n")
    assert consoles.new() == [Complaint(log.name, "BUG: bc")]
    with log.open("a", encoding="utf-8") as more:
        more.write("BUG: the last words")
    assert consoles.new() == []
    assert consoles.new(final=True) == [Complaint(log.name, "BUG: the last words")]
    assert consoles.new(final=True) == []


def test_all_logs_of_consoles_are_read_those_of_later_guests_too(tmp_path: Path) -> None:
    consoles = Consoles()
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        consoles.add(tmp_path / name)
    assert consoles.new() == []
    for name in (
        "a/alpha-qemu.log",
        "a/alpha-qmp.log",
        "a/supervisor.log",
        "a/alpha-console.log",
        "b/alpha-guest2.log",
    ):
        (tmp_path / name).write_bytes(b"BUG: \xff\n")
    assert sorted(str(found) for found in consoles.new()) == [
        "alpha-console.log: BUG: \ufffd",
        "alpha-guest2.log: BUG: \ufffd",
    ]


def test_a_log_that_is_begun_anew_is_read_anew(tmp_path: Path) -> None:
    log, consoles = tmp_path / "alpha.log", Consoles()
    consoles.add(tmp_path)
    log.write_text("a line that is longer than what comes\n", encoding="utf-8")
    assert consoles.new() == []
    log.write_text("BUG: x\n", encoding="utf-8")
    assert [found.line for found in consoles.new()] == ["BUG: x"]
    assert consoles.new() == []


def test_a_report_that_may_be_known_waits_for_its_end(tmp_path: Path) -> None:
    """It is found known when all of it is there, however many pieces it came in; one of ours is found, once."""
    for function, wanted in (("gntdev_mmap", 0), ("elastic_topo_publish", 1)):
        consoles = Consoles()
        log = tmp_path / function / "alpha-console.log"
        log.parent.mkdir()
        consoles.add(log.parent)
        found: list[Complaint] = []
        with log.open("a", encoding="utf-8") as growing:
            for character in "BUG: before\n" + lockdep(function) + "1\n2\n3\n":
                growing.write(character)
                growing.flush()
                found += consoles.new()
        assert [each.line for each in found].count("BUG: before") == 1
        assert len(found) == 1 + wanted, found


def test_a_report_is_judged_when_it_is_long_enough(tmp_path: Path) -> None:
    """Neither a line earlier nor one later, empty ones not counted."""
    consoles = Consoles()
    consoles.add(tmp_path)
    report = lockdep("elastic_topo_publish").splitlines()
    assert len(report) == KNOWN_LINES - 1
    log = tmp_path / "alpha-console.log"
    log.write_text("\r\r\n".join([*report, ""]), encoding="utf-8")
    assert consoles.new() == []
    with log.open("a", encoding="utf-8") as more:
        more.write("one more\n")
    assert len(consoles.new()) == 1


def test_a_report_that_never_gets_long_enough_counts_at_the_end(tmp_path: Path) -> None:
    consoles = Consoles()
    consoles.add(tmp_path)
    (tmp_path / "alpha-console.log").write_text(
        "WARNING: possible circular locking dependency detected\n", encoding="utf-8"
    )
    assert consoles.new() == []
    assert len(consoles.new(final=True)) == 1
