# SPDX-License-Identifier: GPL-2.0
"""What the hypervisor prints becomes values; what asks it waits until it is at rest."""

from __future__ import annotations

import pytest

from lab import hypervisor
from lab.command import Done
from lab.errors import LabError, Malformed
from lab.patience import scaled
from lab.pipeline.paths import REPO

XENPERF = """exceptions                          T=         0
hypercalls                          T=      5120         12       4000
p2m superpage removals              T=       184        184
apic timer interrupts               T=4294967295
"""
XL_INFO = """host                   : dom0
numa_info              :
node:    memsize    memfree    distances
   0:      2048        901      10,21
   1:      2048       1990      21,10
"""


def test_counters() -> None:
    counters = hypervisor.parse_xenperf(XENPERF)
    assert counters["p2m superpage removals"] == 184
    assert counters["hypercalls"] == 5120


def test_a_hypervisor_without_counters_is_said_plainly() -> None:
    with pytest.raises(Malformed, match="no performance counter"):
        hypervisor.parse_xenperf("Error getting number of perf counters: 38 (Function not implemented)\n")


def test_a_counter_that_wrapped_and_one_that_is_not_there() -> None:
    before = {"apic timer interrupts": 2**32 - 1}
    assert hypervisor.counted(before, {"apic timer interrupts": 4}, "apic timer interrupts") == 5
    with pytest.raises(Malformed, match="no counter 'frees'"):
        hypervisor.counted(before, before, "frees")


def test_nodes_of_xl_info() -> None:
    nodes = hypervisor.parse_xl_info(XL_INFO)
    assert nodes[1] == hypervisor.HostNode(1, 2048, 1990, (21, 10))
    with pytest.raises(Malformed):
        hypervisor.parse_xl_info("host : dom0\n")


def test_the_last_heap_report_counts() -> None:
    text = "(XEN) NODE0 start->0 size->524288 free->7\n(XEN) NODE0 start->0 size->524288 free->201\n"
    text += "(XEN) NODE1 start->1048576 size->524288 free->500000\n"
    assert hypervisor.parse_heap(text) == {0: 201, 1: 500000}
    with pytest.raises(Malformed):
        hypervisor.parse_heap("(XEN) nothing\n")


GRANTS = """(XEN) gnttab_usage_print_all [ key 'g' pressed
(XEN)       -------- active --------       -------- shared --------
(XEN) [ref] localdom mfn      pin          localdom gmfn     flags
(XEN) grant-table for remote d0 (v1)
(XEN)   1 frames (64 max), {frames} maptrack frames (1024 max)
(XEN) no active grant table entries
(XEN)       -------- active --------       -------- shared --------
(XEN) [ref] localdom mfn      pin          localdom gmfn     flags
(XEN) grant-table for remote d10 (v2)
(XEN)   4 frames (32 max), 7 maptrack frames (1024 max)
(XEN) [0x000]      0 0x11ffb8 0x00000001          0 0x0feff8 0x19
(XEN) gnttab_usage_print_all ] done
"""


@pytest.mark.parametrize(
    ("text", "domid", "frames"),
    [
        (GRANTS.format(frames=2), 0, 2),
        (GRANTS.format(frames=2), 10, 7),
        (GRANTS.format(frames=1) + GRANTS.format(frames=12), 0, 12),
        (GRANTS.format(frames=3).replace("(XEN) ", "(XEN) [2026-11-28 17:00:01.123] "), 0, 3),
    ],
    ids=["dom0", "a guest", "the last report", "with times"],
)
def test_what_keeps_track_of_grants(text: str, domid: int, frames: int) -> None:
    assert hypervisor.parse_maptrack(text, domid) == frames


def test_a_domain_without_grants() -> None:
    with pytest.raises(Malformed, match="no grant table of domain 1 in"):
        hypervisor.parse_maptrack(GRANTS.format(frames=2), 1)


def test_dom0s_pages_for_grants() -> None:
    def dom0(command: str, timeout: float = 60.0) -> Done:
        assert command == "xl dmesg -c >/dev/null && xl debug-keys g && xl dmesg"
        return Done(0, GRANTS.format(frames=2))

    assert hypervisor.dom0_maptrack(dom0) == 2


FREE = "node 0: 17 pages free\nnode 1: 500000 pages free\n"


def test_free_pages_of_the_host() -> None:
    def dom0(command: str, timeout: float = 60.0) -> Done:
        assert command == "/usr/lib/xen/bin/free-pages"
        return Done(0, FREE)

    assert hypervisor.host_free_pages(dom0) == {0: 17, 1: 500000}
    with pytest.raises(Malformed, match="free-pages: ''"):
        hypervisor.parse_free("")


def test_what_the_balloon_has_is_dom0s() -> None:
    """256 pages that a back end has let go of, and dom0 takes with the next guest: nothing is off, before or after."""
    text = "node 0: 273 pages free\nnode 1: 5 pages free\nballoon: 256 pages of node 0\ndying: 4\n"
    told = iter((text, text, "node 0: 17 pages free\nnode 1: 5 pages free\n"))

    def dom0(command: str, timeout: float = 60.0) -> Done:
        return Done(0, next(told))

    assert hypervisor.parse_free(text) == {0: 273, 1: 5}
    before = hypervisor.settled_free_pages(dom0)
    assert before == {0: 17, 1: 5}
    assert hypervisor.pages_off(dom0, before, 0.0) == {}
    assert hypervisor.pages_off(dom0, before, 0.0) == {}
    with pytest.raises(Malformed, match="balloon: 1 pages of node 3"):
        hypervisor.parse_spare("node 0: 17 pages free\nballoon: 1 pages of node 3\n")


def test_the_heaps_own_report() -> None:
    def dom0(command: str, timeout: float = 60.0) -> Done:
        assert command == "xl dmesg -c >/dev/null && xl debug-keys u && xl dmesg"
        return Done(0, "(XEN) NODE0 start->0 size->524288 free->17\n")

    assert hypervisor.heap_report(dom0) == {0: 17}


def test_a_host_at_rest() -> None:
    def dom0(command: str, timeout: float = 60.0) -> Done:
        assert command == f"/usr/lib/xen/bin/free-pages 1000 {scaled(30.0) * 1000:.0f}"
        assert timeout > scaled(30.0)
        return Done(0, FREE)

    assert hypervisor.settled_free_pages(dom0, 30.0) == {0: 17, 1: 500000}


def test_a_host_that_never_rests_is_told_with_numbers() -> None:
    def dom0(command: str, timeout: float = 60.0) -> Done:
        return Done(3, "node 0: 17 pages free\ndying: 7\ndying: 9\n")

    with pytest.raises(TimeoutError, match=r"\{0: 17\} pages free, dying domains: \[7, 9\]"):
        hypervisor.settled_free_pages(dom0)


def test_a_host_that_cannot_be_asked() -> None:
    with pytest.raises(LabError, match="status 127: not found"):
        hypervisor.settled_free_pages(lambda command, timeout=60.0: Done(127, "", "not found"))


@pytest.mark.parametrize(
    ("heaps", "off"),
    [
        ([17], {}),
        ([9, 12, 17], {}),  # back a little later
        ([16] * 50, {0: -1}),  # a leak
        ([18] * 50, {0: 1}),  # given back twice
    ],
)
def test_pages_are_waited_for_to_the_last(
    monkeypatch: pytest.MonkeyPatch, heaps: list[int], off: dict[int, int]
) -> None:
    monkeypatch.setattr(hypervisor, "REST", 0.001)
    answers = iter(heaps)

    def dom0(command: str, timeout: float = 60.0) -> Done:
        assert command == hypervisor.FREE_PAGES
        return Done(0, f"node 0: {next(answers)} pages free\n")

    assert hypervisor.pages_off(dom0, {0: 17}, 0.02 if off else 60) == off
    again = iter(heaps)
    assert hypervisor.pages_off(dom0, {0: 17}, 0.02 if off else 60, lambda _: {0: next(again)}) == off


CONSOLE = """(XEN) d4v1 DSM: hypercall 32, operation 11, is refused on this host\r
(XEN) [2026-11-26 17:00:01] d14v3 DSM: hypercall 24, operation 3, is refused on this host
(XEN) d4v1 DSM: hypercall 24: GFN 0x54fe stays on another host
(XEN) d4v0 DSM: GFN 0x54fe is needed here
[   12.000000] d4v1 DSM: hypercall 12, operation 2, is refused on this host
(XEN) d4v1 DSM: hypercall 32, operation 11, is refused on this host
"""


def test_hypercalls_that_are_refused() -> None:
    """As dsm_hypercall.c says it, each time; nobody else can."""
    call = hypervisor.RefusedCall(4, 1, 32, 11)
    assert hypervisor.refused_calls(CONSOLE) == [call, hypervisor.RefusedCall(14, 3, 24, 3), call]
    assert hypervisor.refused_calls("") == []
    source = (REPO / "xen/overlay/xen/arch/x86/hvm/dsm_hypercall.c").read_text(encoding="utf-8")
    assert '"DSM: hypercall %lu, operation %lu, is refused on this host\\n"' in source
