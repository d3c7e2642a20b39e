# SPDX-License-Identifier: GPL-2.0
"""After everything else: no kernel and no hypervisor has complained of itself, in this session's rack.

With `make e2e-debug` this is where a lock taken in the wrong order shows.
"""

from __future__ import annotations

from benchmarks.elastic_guest import Run, checked
from lab.rack import Rack
from tests.e2e.conftest import Stable, complaints


def test_guests(stable: Stable) -> None:
    """What the kernel logs of all guests held when they were left."""
    stable.get("guest2.cfg")
    stable.leave_all()
    assert stable.asked, "no guest was ever asked"
    assert not stable.complaints, "\n".join(stable.complaints)


def test_dom0(dom0: Run) -> None:
    """dom0's kernel log."""
    assert not complaints(checked(dom0, "dmesg"))


def test_consoles(rack: Rack) -> None:
    """The hypervisor's log, and the last words of guests that could not be asked."""
    logs = [path for path in sorted(rack.logs.glob("*.log")) if "qemu" not in path.name and "qmp" not in path.name]
    assert any("Xen version" in path.read_text(encoding="utf-8", errors="replace") for path in logs)
    found = [f"{path.name}: {line}" for path in logs for line in complaints(path.read_text("utf-8", "replace"))]
    assert not found, "\n".join(found)


def test_the_search_finds_what_it_should() -> None:
    """Lines as Linux and Xen write them, and some that are no complaint."""
    bad = [
        "[    1.2] WARNING: CPU: 0 PID: 1 at mm/page_alloc.c:1 f+0x1/0x2",
        "WARNING: possible circular locking dependency detected",
        "BUG: sleeping function called from invalid context at x.c:1",
        "BUG: unable to handle page fault for address: 0",
        "INFO: task kworker/0:1 blocked for more than 122 seconds.",
        "Kernel panic - not syncing: Fatal exception",
        "smpboot: CPU 2 has invalid APIC ID ffff. Aborting bringup",
        "(XEN) Assertion 'x' failed at y.c:1",
        "(XEN) Xen BUG at y.c:1",
        "(XEN) Xen WARN at y.c:1",
        "(XEN) FATAL TRAP: vec 14",
    ]
    good = [
        "Kernel panic - not syncing: sysrq triggered crash",
        "Kernel panic - not syncing: VFS: Unable to mount root fs on unknown-block(0,0)",
        "(XEN) ACPI: SLEEP INFO: pm1x_cnt[1:604,1:0]",
        "xenuma: guest ready",
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
