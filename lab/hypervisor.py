# SPDX-License-Identifier: GPL-2.0
"""What the hypervisor shows by way of dom0: its nodes, free memory to the page, domains that die, performance counters.

First the parsers of `xenperf`, `xl info -n`, free-pages and the `u` debug key: plain functions from text to values, which raise
`Malformed` for text without the expected form. Then what asks dom0. No state is kept: what is answered is what is so.
"""

from __future__ import annotations

import dataclasses
import re
import time
from collections.abc import Callable, Mapping

from lab.command import Run, checked
from lab.errors import LabError, Malformed
from lab.patience import scaled

REST = 0.25  # seconds between two questions to the hypervisor


@dataclasses.dataclass(frozen=True)
class HostNode:
    """One physical node of `xl info -n`; sizes in MiB."""

    number: int
    size_mib: int
    free_mib: int
    distances: tuple[int, ...]


_COUNTER = re.compile(r"(.+?)\s+T=\s*(\d+)\b.*")


def parse_xenperf(text: str) -> dict[str, int]:
    """The total of each software performance counter. Raises Malformed if there is none (Xen without PERF_COUNTERS)."""
    counters: dict[str, int] = {}
    for line in text.splitlines():
        match = _COUNTER.fullmatch(line.strip())
        if match:
            counters[match[1]] = int(match[2])
    if not counters:
        raise Malformed(f"no performance counter in {text[:200]!r}")
    return counters


def counted(before: dict[str, int], after: dict[str, int], name: str) -> int:
    """How far counter `name` went from `before` to `after`. Counters are 32 bits wide and wrap.

    Raises Malformed when the hypervisor has no such counter.
    """
    if name not in before or name not in after:
        raise Malformed(f"the hypervisor has no counter {name!r}; it has {', '.join(sorted(after))}")
    return (after[name] - before[name]) % 2**32


_INFO_NODE = re.compile(r"\s*(\d+):\s+(\d+)\s+(\d+)\s+(\d+(?:,\d+)*)\s*")


def parse_xl_info(text: str) -> dict[int, HostNode]:
    """The physical nodes of `xl info -n`, by number. Raises Malformed if there is none."""
    nodes: dict[int, HostNode] = {}
    table = False
    for line in text.splitlines():
        if line.startswith("numa_info"):
            table = True
        match = _INFO_NODE.fullmatch(line) if table else None
        if match:
            distances = tuple(int(d) for d in match[4].split(","))
            nodes[int(match[1])] = HostNode(int(match[1]), int(match[2]), int(match[3]), distances)
    if not nodes:
        raise Malformed(f"no numa_info in {text[:200]!r}")
    return nodes


_HEAP = re.compile(r"NODE(\d+) start->\S+ size->\d+ free->(\d+)")


def parse_heap(text: str) -> dict[int, int]:
    """Free pages (4 KiB) a physical node, from what `xl debug-keys u` puts into `xl dmesg`: the exact count.

    The last report in the text counts. Raises Malformed if there is none.
    """
    free = {int(node): int(pages) for node, pages in _HEAP.findall(text)}
    if not free:
        raise Malformed("no heap report in the hypervisor's log")
    return free


_MAPTRACK = re.compile(
    r"grant-table for remote d(\d+) \(v\d+\)\n(?:\(XEN\))?(?: \[[^\]\n]*\])?\s+"
    r"\d+ frames \(\d+ max\), (\d+) maptrack frames \(\d+ max\)"
)


def parse_maptrack(text: str, domid: int) -> int:
    """Maptrack frames of a domain, from what `xl debug-keys g` puts into `xl dmesg`.

    The last report in the text counts. Raises Malformed if the domain is in none.
    """
    found = [int(frames) for domain, frames in _MAPTRACK.findall(text) if int(domain) == domid]
    if not found:
        raise Malformed(f"no grant table of domain {domid} in {text[-600:]!r}")
    return found[-1]


def dom0_maptrack(dom0: Run) -> int:
    """Pages in which the hypervisor keeps which grants of others dom0 has mapped.

    The first grant that a vCPU maps takes one, and it stays for as long as the domain (get_maptrack_handle() in
    xen/common/grant_table.c). A guest's back ends map on the vCPU that they happen to run on, so a page of the host may go
    with any guest that is created, once for each of dom0's vCPUs.
    """
    return parse_maptrack(checked(dom0, "xl dmesg -c >/dev/null && xl debug-keys g && xl dmesg"), 0)


# In dom0's image: free pages of each node, and who is dying (xen/overlay/tools/tests/mem-range/free-pages.c).
FREE_PAGES = "/usr/lib/xen/bin/free-pages"
NOT_AT_REST = 3  # its exit code
REST_MS = 1000  # for so long nothing may change before the host is at rest

_FREE = re.compile(r"^node (\d+): (\d+) pages free$", re.MULTILINE)
_BALLOON = re.compile(r"^balloon: (\d+) pages of node (\d+)$", re.MULTILINE)
_DYING = re.compile(r"^dying: (\d+)$", re.MULTILINE)


def parse_free(text: str) -> dict[int, int]:
    """Free pages of each physical node, from what free-pages prints. Raises Malformed if there is none."""
    free = {int(node): int(pages) for node, pages in _FREE.findall(text)}
    if not free:
        raise Malformed(f"free-pages: {text[:300]!r}")
    return free


def parse_spare(text: str) -> dict[int, int]:
    """The same without what dom0's balloon has, and takes back when it likes. Raises Malformed as parse_free()."""
    free = parse_free(text)
    for pages, node in _BALLOON.findall(text):
        if int(node) not in free:
            raise Malformed(f"free-pages: {text[:300]!r}")
        free[int(node)] -= int(pages)
    return free


def heap_report(dom0: Run) -> dict[int, int]:
    """Free pages of each physical node as the hypervisor's debug key tells them."""
    return parse_heap(checked(dom0, "xl dmesg -c >/dev/null && xl debug-keys u && xl dmesg"))


def host_free_pages(dom0: Run) -> dict[int, int]:
    """Free pages of each physical node, exactly."""
    return parse_free(checked(dom0, FREE_PAGES))


def settled_free_pages(dom0: Run, seconds: float = 30.0) -> dict[int, int]:
    """The same, once nothing changes it any more: what remains of a destroyed domain is freed a little later.

    dom0's back ends let go of its pages when they hear of its end, and Xen frees the domain's own structures after an
    RCU grace period, of which dom0 is told nothing. So this waits until for REST_MS no domain was dying and no number has
    changed. What dom0's balloon has counts as dom0's: it takes that back at once, or with the next guest (free-pages.c).
    Raises TimeoutError, with what was seen last, after `seconds`.
    """
    seconds = scaled(seconds)
    done = dom0(f"{FREE_PAGES} {REST_MS} {seconds * 1000:.0f}", seconds + 60.0)
    if done.status == NOT_AT_REST:
        raise TimeoutError(
            f"the host is not at rest after {seconds:.0f} s: {parse_free(done.out)} pages free, "
            f"dying domains: {list(map(int, _DYING.findall(done.out)))}"
        )
    if done.status != 0:
        raise LabError(f"free-pages: status {done.status}: {done.text}")
    return parse_spare(done.out)


def spare_pages(dom0: Run) -> dict[int, int]:
    """Free pages of each physical node, without what dom0's balloon has. Raises as checked(), Malformed."""
    return parse_spare(checked(dom0, FREE_PAGES))


def pages_off(
    dom0: Run,
    wanted: Mapping[int, int],
    seconds: float = 15.0,
    ask: Callable[[Run], Mapping[int, int]] = spare_pages,
) -> dict[int, int]:
    """By how many pages the free memory of each physical node is off `wanted`, of those where it is: {} if of none.

    What an operation needs for itself, an event channel of the tool or a page on its way through a back end, is freed a
    little after it: this asks again, for up to `seconds`, until not one page is off. As settled_free_pages(), from which
    `wanted` is, it counts what dom0's balloon has as dom0's. `ask`: another count, of which `wanted` is then.
    """
    seconds = scaled(seconds)
    began = time.monotonic()
    while True:
        now = ask(dom0)
        off = {node: now[node] - pages for node, pages in wanted.items() if now[node] != pages}
        if not off or time.monotonic() - began > seconds:
            return off
        time.sleep(REST)


@dataclasses.dataclass(frozen=True)
class RefusedCall:
    """A hypercall that a vCPU has made on another host than its guest's home, where nobody does it; by Xen's numbers."""

    domain: int
    vcpu: int
    hypercall: int
    operation: int


_REFUSED = re.compile(
    r"^\(XEN\) (?:\[.*\] )?d(\d+)v(\d+) DSM: hypercall (\d+), operation (\d+), is refused on this host\s*$", re.M
)


def refused_calls(log: str) -> list[RefusedCall]:
    """Those of which Xen's log says so: each has a line there, since the lab's Xen leaves none of guests' warnings out."""
    return [RefusedCall(*map(int, found)) for found in _REFUSED.findall(log)]


def counters(dom0: Run) -> dict[str, int]:
    """The hypervisor's performance counters."""
    return parse_xenperf(checked(dom0, "xenperf"))
