# SPDX-License-Identifier: GPL-2.0
"""Which lines of a console need an explanation, with lines as consoles of the lab have had them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from benchmarks.soak.inside import Said
from benchmarks.soak.logs import Logs, unexplained, unexplained_inside
from lab.command import Done
from lab.errors import Malformed

USUAL = """cpu 2 spinlock event irq 36
guest2:~# cpu 3 spinlock event irq 41
hrtimer: interrupt took 73300326 ns
migrating pfn 10024e failed ret:24
page: refcount:3 mapcount:1 mapping:0000000000000000 index:0x7f1405c39 pfn:0x10024e
memcg:ffff8880054c3000
anon flags: 0x7fffc000002081c(referenced|uptodate|dirty|owner_2|swapbacked|node=1|zone=3|lastcpupid=0x3fff)
raw: 07fffc000002081c ffffea0004009348 ffff888007523c08 ffff888003edba29
page dumped because: migration failure
do_migrate_range: 58094 callbacks suppressed
\x1b[?2004halpha:~# (XEN) 'u' pressed -> dumping numa info (now = 415172280238)
(XEN) NODE0 start->0 size->524288 free->128666
(XEN) General information for domain 25:
(XENN)   UNIT0 affinities: hard={0-1} soft={0-3}
((XEN)     XenPage 000000000007fd6b: caf=c000000000000002, taf=e400000000000002
(XEN) uart interrupt taking more than 4ms, switched to polling
"""


def nothing(command: str, timeout: float = 60.0) -> Done:
    """A dom0 without logs, but for what is asked of it."""
    asked = re.search(r'echo "<6>(.*)" >/dev/kmsg', command)
    assert asked
    return Done(0, f"== logs\n== ring\n14,9,1,-;{asked[1]}\nring boot 0 0 9\n")


def test_usual_lines_need_no_explanation() -> None:
    assert unexplained(USUAL, failing=None, booting=False) == []
    assert unexplained(USUAL.replace("\n", "\r\n"), failing=None, booting=False) == []


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize(("head", "ms"), [("(XEN)", 4), ("(XENN)", 4), ("(XEN)", 12)])
def test_a_line_with_another_one_in_it_is_whole(end: str, head: str, ms: int) -> None:
    """As Xen's list of what a domain has, when the serial port's interrupt takes long meanwhile."""
    polling = f"{head} uart interrupt taking more than {ms}ms, switched to polling"
    text = end.join((f"(XEN)     {polling}", "I/O Ports  { }", ""))
    assert unexplained(text, failing=None, booting=False) == []
    assert unexplained(text.replace("I/O", "Error: I/O"), failing=None, booting=False) == ["(XEN)     Error: I/O Ports  { }"]
    assert unexplained(f"{polling}{end}something new{end}", failing=None, booting=False) == ["something new"]


@pytest.mark.parametrize("head", ["((XEN)", "(XXEN)", "(XEEN)", "(XENN)", "(XEN))", "(EN)", "(XN)", "(XE)"])
def test_a_head_with_a_letter_twice_or_lost(head: str) -> None:
    """It is the hypervisor that says it all the same: what it may say, and what it may not, which is told with a whole head."""
    assert unexplained(f"{head} NODE0 start->0 size->524288 free->128666\n", failing=None, booting=False) == []
    failed = [line.format("(XEN)") for line in ("{} Failed to do so", "{} Xen BUG at y.c:1")]
    assert sorted(unexplained(f"{head} Failed to do so\n{head} Xen BUG at y.c:1\n", failing=None, booting=False)) == failed


@pytest.mark.parametrize(
    "line",
    [
        "something new",
        "[   12.345678] something new",
        "WARNING: CPU: 0 PID: 1 at mm/page_alloc.c:1 f+0x1/0x2",
        "BUG: Bad page state in process t",
        "xen_elastic_numa: vnode 1: 511 pages at pfn 0x40000 are lost: Xen took back 510",
        "(XEN) mm.c:1234:d25v0 Error while validating",
        "(XEN) Xen BUG at y.c:1",
        "(XEN) Failed to do so",
        "(XEN) d0v0 Over-allocation for d25: 131329 > 131328",
        "((XEN) mm.c:1234:d25v0 something",
        "(XENN) Xen BUG at y.c:1",
        "alpha:~# (XEEN) domain_crash called from p2m.c:1",
        "xen-elastic-numa: vnode 2: -12 need 286064 KiB, free elsewhere 23724 KiB",
        "xen-elastic-numa: vnode 1: not usable (-12)",
        "hotplug: something new",
        "xen_netback: 5 callbacks suppressed",
        "xenuma: soak asks, a-1 b",
        "== something new",
    ],
)
def test_others_do(line: str) -> None:
    assert len(unexplained(f"{USUAL}{line}\n", failing=1, booting=False)) == 1


# Of Xen's sources: one for each word that only it has.
TROUBLES = """Error while validating
Unable to grow
Failed to free it
unexpected type
invalid handle
it cannot be
it can't be
it could not be
leaking 3 pages
Over-allocation for d25: 131329 > 131328
out of memory
denied
refused
crashed it
Warning: x
Assertion x
CPU 1 is stuck
Timed out
reference count overflow
reference count underflow
corrupted
Bad page 0000000000000002 (ed=ffff)
type mismatch
lost a page
flags 0x1 don't match grant
inconsistent state
Incorrect P2M
Fatal trap
panic: x
Aborting
Wrong page state
Illegal exitcode
bogus prod
Weird state
Odd p2m page
Unhandled page fault
EPT violation 0x1
GFN 0x1 -> (0x1,1,1) not permitted
it is not allowed
disallowed it
XSM REJECTED 1 -> 2
count(1) exceeds max(2)
copy source out of bounds: 1 < 2
out of range
too many references
nr_frames is too large
too big
too small
some grant entries still in use"""


@pytest.mark.parametrize("said", TROUBLES.splitlines())
def test_each_word_of_trouble(said: str) -> None:
    """A life that ends does not explain it either."""
    for line in (f"(XEN) mm.c:2378: {said}", f"(XEN) {said}"):
        for booting in (True, False):
            assert unexplained(f"{USUAL}{line}\n", failing=None, booting=booting, host=True) == [line]


def test_what_is_known_explains_itself_alone() -> None:
    known = "(XEN) Xen WARN at arch/x86/xstate.c:380"
    assert unexplained(f"{known}\n", failing=None, booting=False) == []
    for text in (f"{known}\nsomething new\n", f"something new\n{known}\n"):
        assert unexplained(text, failing=None, booting=False) == ["something new"]


def test_dom0_has_begun_before() -> None:
    """What one of its vCPUs does counts whatever happens to a guest."""
    line = "(XEN) grant_table.c:1503:d0v1 handle 0x3"
    for booting in (True, False):
        assert unexplained(f"{line}\n", failing=None, booting=booting, host=True) == [line]
    rdmsr = "(XEN) arch/x86/pv/emul-priv-op.c:1:d0v1 RDMSR 0xc0011028 unimplemented"
    assert unexplained(f"{rdmsr}\n", failing=None, booting=False) == [rdmsr]


def test_a_failure_is_said_only_where_one_is_expected() -> None:
    line = "xen-elastic-numa: vnode 1: -12 need 286064 KiB, free elsewhere 23724 KiB"
    assert unexplained(line, failing=1, booting=False) == []
    assert unexplained(line, failing=None, booting=False) == [line]


def test_of_a_boot_only_complaints_count() -> None:
    assert unexplained("PCI: System does not support PCI\nBUG: x\n", failing=None, booting=True) == ["BUG: x"]
    assert unexplained("PCI: System does not support PCI\n", failing=None, booting=False) != []


# As guests of the lab have said it in each life, with the kernel that looks after its locks and without.
BOOT = """ACPI: No IOAPIC entries present
Lock dependency validator: Copyright (c) 2006 Red Hat, Inc., Ingo Molnar
... MAX_LOCK_DEPTH:          48
 memory used for stack traces: 4224 kB
ACPI: setting ELCR to 0200 (from ffff)
cpu 0 spinlock event irq 20
Grant table initialized
PCI: Fatal: No config space access function found
ACPI: OSL: SCI (ACPI GSI 9) not registered
PCI: System does not support PCI
Warning: Processor Platform Limit event detected, but not handled.
Consider compiling CPUfreq support into your kernel.
calibrate_delay_direct() failed to get a good estimate for loops_per_jiffy.
Probably due to long platform interrupts. Consider using "lpj=" boot option.
xenbus_probe_frontend: Waiting for devices to initialise: 25s...20s...
xen:xen_privcmd: No target domain found, blocking all hypercalls
xenuma: guest ready
guest2:~# cpu 2 spinlock event irq 36
guest2:~# sysrq: Resetting
"""

DRIVERS = """xen-elastic-numa: vnode 1: Xen took back 510 of 512 pages at pfn 0x40000
xen_elastic_numa: vnode 1: Xen took back 510 of 512 pages at pfn 0x40000
xen-elastic-numa: vnode 1: -12 need 286064 KiB
xen-elastic-numa: cannot write below guest: -28
xenbus: watching x
xenbus_probe_frontend: Timeout connecting to device: device/vif/0 (local state 3, remote state 1)
xen:grant_table: g.e. 0x5
xen/grant-table: max_grant_frames reached
xen-blkback: backend/vbd/1/51712
xen_netback: x
vif vif-1-0: failed to unmap
vif vif-1-0 vif1.0: x
vbd vbd-1-51712: x
vif vif-0: x
vif vif-0 eth0: x
vbd vbd-51712: x
net eth0: rx->offset: 0, size: -1
br: port 1(vif1.0) x
Copy fail: nr 1 ret -22"""


def test_a_boot_is_a_guest_s() -> None:
    """Xen and dom0 go on, and have a line for themselves."""
    assert unexplained(BOOT, failing=None, booting=True) == []
    found = unexplained(BOOT, failing=None, booting=True, host=True)
    assert len(found) == len(BOOT.splitlines()) - 4
    assert unexplained("something new\n", failing=None, booting=True) == []
    assert unexplained("something new\n", failing=None, booting=True, host=True) == ["something new"]


@pytest.mark.parametrize("line", DRIVERS.splitlines())
def test_a_boot_explains_nothing_that_drivers_say(line: str) -> None:
    for host in (True, False):
        assert unexplained(f"{BOOT if not host else ''}{line}\n", failing=None, booting=True, host=host) == [line]


@pytest.mark.parametrize(
    "line",
    [
        "PCI: something failed",
        "** 12 printk messages dropped **",
        "Warning: Processor Platform Limit event detected, but not handled. Twice",
        "PCI: Fatal: x",
        "xen:xen_privcmd: x",
    ],
)
def test_a_boot_explains_no_trouble(line: str) -> None:
    assert unexplained(f"{BOOT}{line}\n", failing=None, booting=True) == [line]
    assert len(unexplained(BOOT, failing=None, booting=False)) == len(BOOT.splitlines()) - 4


def test_what_fails_as_a_life_ends_is_of_the_vnode_that_was_to() -> None:
    line = "xen-elastic-numa: vnode 1: -4 interrupted"
    assert unexplained(f"{line}\n", failing=1, booting=True) == []
    assert unexplained(f"{line}\n", failing=2, booting=True) == [line]


# As dom0 shows it with a life's end and beginning once lockdep has had its report.
BACK_ENDS = """xenbr0: port 1(vif1.0) entered blocking state
xenbr0: port 1(vif1.0) entered disabled state
vif vif-1-0 vif1.0: entered allmulticast mode
vif vif-1-0 vif1.0: entered promiscuous mode
vif vif-1-0 vif1.0: Guest Rx ready
xenbr0: port 1(vif1.0) entered forwarding state
vif vif-11-0 vif11.0 (unregistering): left allmulticast mode
vif vif-11-0 vif11.0 (unregistering): left promiscuous mode
xennbr0: port 1(vif1.0) entered  disabled state
vif vif-1-0 vif1.0: entered alllmulticast mode
vif vif-1-0 vif1.0 (unregistering): left alllmulticast mode
xenbr0: port 12(vif125.10) entered blocking state
"""

# And what does not come with one, in nearly these words.
NO_BACK_ENDS = """vif vif-1-0 vif1.0: Guest Rx stalled
xenbr0: port 1(vif1.0) entered blocking state twice
xenbr0: port 1(vif1.0) entered listening state
xenbr1: port 1(vif1.0) entered blocking state
xenbr0: port 1(eth0) entered disabled state
vif vif-1-0 vif1.0: entered other mode
vif vif-1-0 vif1.0: left promiscuous mode
vif vif-1-0 vif1.0 (unregistering): entered promiscuous mode
vif vif-1-0 vif1.0 (unregistering): left other mode"""


def test_back_ends_come_and_go_with_a_life() -> None:
    lines = BACK_ENDS.splitlines()
    assert unexplained(BACK_ENDS, failing=None, booting=True, host=True) == []
    assert unexplained(BACK_ENDS, failing=None, booting=False, host=True) == lines
    assert unexplained(BACK_ENDS, failing=None, booting=True, host=False) == lines
    for other in NO_BACK_ENDS.splitlines():
        assert unexplained(f"{other}\n", failing=None, booting=True, host=True) == [other]


def test_a_question_s_own_record_may_be_shown() -> None:
    """By dom0 once it shows all, and a letter may be there twice."""
    for text in ("xenuma: soak asks, 0a1b2c3d-17\n", "xennuma: soak asks, 0a1b2c3d-117\n"):
        assert unexplained(text, failing=None, booting=False, host=True) == []


def test_which_console_is_the_host_s(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    (tmp_path / "alpha-console.log").write_text("(XEN) x\nvif vif-1-0: failed to unmap\nsomething new\n", encoding="utf-8")
    (tmp_path / "alpha-guest2.log").write_text("xenuma: guest ready\nsomething new\n", encoding="utf-8")
    said = ["alpha-console.log: vif vif-1-0: failed to unmap", "alpha-console.log: something new"]
    assert logs.new(None, booting=True) == said


def test_the_last_look_explains_no_more(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    for name in ("console", "guest2"):
        (tmp_path / f"alpha-{name}.log").write_text("xen-elastic-numa: x\nsomething new", encoding="utf-8")
    assert logs.last(nothing) == [
        "alpha-console.log: xen-elastic-numa: x",
        "alpha-console.log: something new",
        "alpha-guest2.log: xen-elastic-numa: x",
    ]


def test_what_comes_after_the_last_look(tmp_path: Path) -> None:
    """The host shuts down: what it says then, and what a guest does without a dom0, has no list, but may be a complaint."""
    logs, log = Logs(tmp_path), tmp_path / "alpha-console.log"
    log.write_text("WARNING: of before\n", encoding="utf-8")
    assert logs.last(nothing) == ["alpha-console.log: WARNING: of before"]
    with log.open("a", encoding="utf-8") as more:
        more.write("sysrq: Power Off\n(XEN)) Assertion 'x' failed\nreboot: Power down\nBUG: x")
    (tmp_path / "alpha-guest2.log").write_text("Oops: x\n", encoding="utf-8")
    found = ["alpha-console.log: (XEN) Assertion 'x' failed", "alpha-console.log: BUG: x", "alpha-guest2.log: Oops: x"]
    assert logs.ended() == found
    assert logs.ended() == []


def test_dom0_has_a_file_once_it_has_had_a_guest(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    logs.skip(nothing)
    with pytest.raises(Malformed, match="no file at all"):
        logs.last(nothing)
    logs.guest.read(nothing)
    logs.guest.read(nothing)


def test_what_the_hypervisor_says_of_a_boot() -> None:
    """One with checks tells of each vCPU that begins; trouble it is all the same that a domain ends with."""
    assert unexplained("(XEN) arch.c:1:d25v0 begins\n", failing=None, booting=True) == []
    assert unexplained("(XEN) Failed to free d25\n", failing=None, booting=True) == ["(XEN) Failed to free d25"]


def test_a_vcpu_comes_up_with_a_node() -> None:
    """Its kernel asks for a register that there is none of; a hypervisor with checks says so, whatever the operation."""
    line = "(XEN) arch/x86/hvm/svm/svm.c:1899:d2v3 RDMSR 0xc0011028 unimplemented"
    assert unexplained(f"{line}\n", failing=None, booting=False) == []
    for other in (line.replace("RDMSR", "WRMSR"), f"{line} 5", line.replace("RDMSR", "VMEXIT")):
        assert unexplained(f"{other}\n", failing=None, booting=False) == [other]


def test_a_console_that_is_not_read_is_noticed(tmp_path: Path) -> None:
    """Else a folder without one, or a console that is stuck, would be one without a complaint."""
    logs = Logs(tmp_path)
    said = [f"no console has a word of {who} since the life before this" for who in ("the guest", "the hypervisor")]
    assert logs.new(None, booting=True) == said and logs.new(None, booting=True, final=True) == []
    (tmp_path / "alpha-guest2.log").write_text("xenuma: guest ready\n", encoding="utf-8")
    assert logs.new(None, booting=True) == said[1:]
    (tmp_path / "alpha-console.log").write_text("((XEN) 'u' pressed\n", encoding="utf-8")
    assert logs.new(None, booting=True) == said[:1]
    assert logs.new(None, booting=False) == []


@pytest.mark.parametrize("head", ["()", "(X)", "(E)", "(N)", "(NE)", "XEN", "(xen)"])
def test_what_is_no_head(head: str) -> None:
    """One letter could be anybody's: Xen's lines are not asked for an explanation, others are."""
    line = f"{head} something new"
    assert unexplained(f"{line}\n", failing=None, booting=False) == [line]


def test_the_hypervisor_s_word_may_have_a_letter_twice(tmp_path: Path) -> None:
    logs = Logs(tmp_path)
    (tmp_path / "alpha-console.log").write_text("(XENN) 'u' pressed\n", encoding="utf-8")
    (tmp_path / "alpha-guest2.log").write_text("xenuma: guest ready\n", encoding="utf-8")
    assert logs.new(None, booting=True) == []


@pytest.mark.parametrize(
    ("line", "tells"),
    [
        ("rcu: INFO: rcu_sched self-detected stall on CPU", True),
        ("rcu: INFO: rcu_sched detected stalls on CPUs/tasks:", True),
        ("rcu: INFO: rcu_sched detected expedited stalls on CPUs/tasks: { 0-... } 26 jiffies s: 33 root: 0x1/.", True),
        ("watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [t:1]", True),
        ("rcu: INFO: Stall ended before state dump start", False),
        ("rcu: rcu_sched kthread starved for 26002 jiffies! (a stall)", False),
        ("INFO: task stall:1 blocked for more than 120 seconds.", False),
        ("t[1]: it may stall", False),
        ("watchdog: BUG: hard lockup on CPU#0", False),
        ("t[1]: BUG: soft lockup", False),
        ("watchdog: something new", False),
    ],
)
def test_what_tells_of_a_stall(tmp_path: Path, line: str, tells: bool) -> None:
    """What else has nearly these words explains nothing after it, and is no stall that is counted."""
    logs = Logs(tmp_path)
    (tmp_path / "alpha-guest2.log").write_text(f"{line}\nCall Trace:\n", encoding="utf-8")
    assert ("alpha-guest2.log: Call Trace:" in logs.new(None, booting=False)) == (not tells)
    assert logs.stalls == tells


def test_a_stall_explains_what_follows_but_no_complaint() -> None:
    stall = "rcu: INFO: rcu_sched self-detected stall on CPU\nrcu: \t0-....: (2 ticks)\nCall Trace:\n f+0x1\n"
    assert unexplained(stall, failing=None, booting=False) == []
    assert unexplained(f"{stall}BUG: x\n", failing=None, booting=False) == ["BUG: x"]
    assert unexplained("Call Trace:\n", failing=None, booting=False) != []


def test_a_stall_s_report_may_come_in_two_pieces(tmp_path: Path) -> None:
    """It is copied while it is written. The piece after the next one is none of it, and another console has no part in it."""
    guest, other, logs = tmp_path / "alpha-guest2.log", tmp_path / "alpha-guest4.log", Logs(tmp_path)
    guest.write_text("rcu: INFO: rcu_sched self-detected stall on CPU\n", encoding="utf-8")
    other.write_text("", encoding="utf-8")
    assert logs.new(None, False) == [] == logs.new(None, False), "nothing has come yet"
    for text, found in (
        ("Call Trace:\n <TASK>\n", []),
        ("Call Trace:\n", ["alpha-guest2.log: Call Trace:"]),
    ):
        with guest.open("a", encoding="utf-8") as log:
            log.write(text)
        assert logs.new(None, False) == found
    with guest.open("a", encoding="utf-8") as log:
        log.write("watchdog: BUG: soft lockup - CPU#1 stuck\n")
    logs.new(None, False)
    for console in (guest, other):
        more = "xen-elastic-numa: cannot write below guest: -28\nf+0x1/0x2\n"
        console.write_text(console.read_text(encoding="utf-8") + more, encoding="utf-8")
    assert sorted(logs.new(None, False)) == [
        "alpha-guest2.log: xen-elastic-numa: cannot write below guest: -28",
        "alpha-guest4.log: f+0x1/0x2",
        "alpha-guest4.log: xen-elastic-numa: cannot write below guest: -28",
    ]


def test_a_stall_explains_nothing_before_it() -> None:
    stall = "rcu: INFO: rcu_sched self-detected stall on CPU\nCall Trace:\n"
    assert unexplained(f"something new\n{stall}", failing=None, booting=False) == ["something new"]


@pytest.mark.parametrize("line", DRIVERS.splitlines())
def test_a_stall_explains_nothing_that_drivers_say(line: str) -> None:
    stall = "watchdog: BUG: soft lockup - CPU#0 stuck for 26s! [t:1]\n xenbus_thread+0x1/0x2\nWorkqueue: xen-elastic-numa x\n"
    trace = stall.replace("watchdog: BUG: soft lockup", "rcu: INFO: rcu_sched detected stalls")
    assert unexplained(f"{trace}{line}\nCall Trace:\n", failing=None, booting=False) == [line]


def test_a_known_report_of_upstream_is_known_to_its_end() -> None:
    report = (
        "======================================================\n"
        "WARNING: possible circular locking dependency detected\n6.12.107-xenuma #1 Not tainted\n------\n"
        "xenstored/65 is trying to acquire lock:\n"
        "ffff8880031a2878 (&priv->lock){+.+.}-{3:3}, at: gntdev_mmap+0x44/0x340\n\nbut task is already holding lock:\n"
    )
    assert unexplained(report, failing=None, booting=False) == []
    driver = "xen-elastic-numa: cannot write below guest: -28"
    assert unexplained(f"{report}{driver}\n", failing=None, booting=False) == [driver]
    other = report.replace("gntdev_mmap", "elastic_topo_publish")
    assert len(unexplained(other, failing=None, booting=False)) == 1


def test_whole_lines_count_once(tmp_path: Path) -> None:
    log, logs = tmp_path / "alpha-guest2.log", Logs(tmp_path)
    log.write_text("one\ntw", encoding="utf-8")
    (tmp_path / "alpha-qemu.log").write_text("not a console\n", encoding="utf-8")
    assert logs.new(None, False) == ["alpha-guest2.log: one"]
    with log.open("a", encoding="utf-8") as more:
        more.write("o\n")
    assert logs.new(None, False) == ["alpha-guest2.log: two"]
    assert logs.new(None, False) == []
    with log.open("a", encoding="utf-8") as more:
        more.write("the last words")
    assert logs.new(None, False, final=True) == ["alpha-guest2.log: the last words"]


def test_what_was_there_before_is_skipped(tmp_path: Path) -> None:
    (tmp_path / "alpha-console.log").write_text("about to get started...\n", encoding="utf-8")
    logs = Logs(tmp_path)
    logs.skip(nothing)
    assert logs.new(None, False) == []


XL = "/var/log/xen/xl-guest2.log"
# As it was after 300 operations in the lab.
LIVES = """Waiting for domain guest2 (domid 18) to die [pid 7211]
Domain 18 has shut down, reason code 1 0x1
Action for shutdown reason code 1 is restart
Domain 18 needs to be cleaned up: destroying the domain
Done. Rebooting now
libxl: info: libxl_create.c:122:libxl__domain_build_info_setdefault: qemu-xen is unavailable, \
using qemu-xen-traditional instead: No such file or directory
Waiting for domain guest2 (domid 19) to die [pid 7211]
Domain 19 has been destroyed.
"""


def test_what_is_written_of_a_life_belongs_to_its_end_or_beginning() -> None:
    """Each of these lines at any other time is one that nobody expects, and so it is in another file."""
    said = [Said(XL, line) for line in LIVES.splitlines()]
    assert unexplained_inside(said, booting=True, boots=False) == []
    assert unexplained_inside(said, booting=False, boots=False) == [f"{XL}: {line}" for line in LIVES.splitlines()]
    elsewhere = [Said(f"/var/log/xen/{name}", said[0].line) for name in ("xen-hotplug.log", "notxl-x.log")]
    assert len(unexplained_inside(elsewhere, booting=True, boots=False)) == 2


@pytest.mark.parametrize(
    "line",
    [
        "libxl: error: libxl_device.c:1: x",
        "Domain 18 has shut down, reason code 3 0x3",
        "Action for shutdown reason code 3 is destroy",
        "Action for shutdown reason code 3 is restart",
        "Action for shutdown reason code 1 is destroy",
        "Domain 18 has been destroyed. Twice",
        "Domain 18 has been renamed.",
        "Domain 18 needs to be cleaned up: something new",
        "Done. Exiting now",
        "Waiting for domain guest2 (domid 18) no more",
        "libxl: info: libxl_create.c:122:libxl__domain_build_info_setdefault: something new",
        "libxl: error: libxl_create.c:122:libxl__domain_build_info_setdefault: qemu-xen is unavailable, "
        "using qemu-xen-traditional instead: No such file or directory",
        "",
    ],
)
def test_other_lines_in_a_log_count_whatever_comes(line: str) -> None:
    assert unexplained_inside([Said(XL, line)], booting=True, boots=False) == [f"{XL}: {line}"]


@pytest.mark.parametrize(
    ("line", "counts", "boots"),
    [
        ("vnode 1: now online, 524288 KiB (0)", False, False),
        ("xenbr0: port 1(vif18.0) entered blocking state", False, False),
        ("clocksource: tsc is unstable: it could not be watched", False, False),
        ("vif vif-18-0: failed to map the ring", True, False),
        ("IPv6: x: could not allocate", True, False),
        ("memcheck[691]: segfault at 0 ip 0000000000000000 sp 00007fff89cfa1a8 error 14", True, True),
    ],
)
def test_what_a_kernel_keeps_to_itself(line: str, counts: bool, boots: bool) -> None:
    """A boot has words of trouble in many lines that mean none: only what complains counts there."""
    said = [f"kernel: {line}"]
    for booting in (True, False):
        assert unexplained_inside([Said("", line)], booting, boots=False) == (said if counts else [])
    assert unexplained_inside([Said("", line)], booting=True, boots=True) == (said if boots else [])
