# SPDX-License-Identifier: GPL-2.0
"""What the hypervisor does with the frames of a node: whole superpages leave at once, and none keeps its content."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from benchmarks.balloon import COUNTERS, STOCK, Node, Sizes, Step, measure, metrics, superpage_path
from benchmarks.results import write
from lab.command import Run
from lab.elastic_guest import ElasticGuest
from lab.guest import Guest
from lab.host import Host
from lab.hypervisor import counted, counters, settled_free_pages
from tests.e2e.conftest import CONFIGS, Stable, rounds

NODE_MIB = 512
EXTENTS = NODE_MIB // 2
FRAMES = NODE_MIB * 256
SLOW_MIB = 128  # a block, where each page takes its time
REMOVED = "guest_remove_range: extents removed"
BATCHES = "guest_remove_range: several at once, with one flush"
FREED, DIRTIED = "domheap: frames freed", "heap: frames freed to be scrubbed"
TEST_PROGRAM = "/usr/lib/xen/bin/test-mem-range"


@pytest.fixture(scope="module")
def one_detach(stable: Stable, dom0: Run) -> tuple[dict[str, int], dict[str, int]]:
    """The hypervisor's counters before a detach of the whole node, and after it."""
    guest = stable.get("guest2.cfg")
    assert guest.attach(1).status == 0
    before = counters(dom0)
    assert guest.detach(1).status == 0
    return before, counters(dom0)


def test_a_detach_removes_each_superpage_at_once(one_detach: tuple[dict[str, int], dict[str, int]]) -> None:
    """As many extents as the node has; nothing was refused, and no frame went the slow way: each is one step of a kind.

    Of flushes several extents share one, until the guest has something urgent; neighbours among them share a free.
    """
    before, after = one_detach
    assert counted(before, after, REMOVED) == EXTENTS
    assert counted(before, after, COUNTERS["p2m_writes"]) == pytest.approx(EXTENTS, rel=0.05)
    assert 0 < counted(before, after, COUNTERS["frees"]) <= 1.05 * EXTENTS
    assert 0 < counted(before, after, BATCHES) <= EXTENTS / 2
    assert counted(before, after, COUNTERS["flushes"]) <= EXTENTS / 2
    refused = {name: counted(before, after, name) for name in after if name.startswith("guest_remove_range: refused")}
    assert not any(refused.values()), refused


def test_frames_that_leave_a_live_guest_are_marked_to_be_scrubbed(
    one_detach: tuple[dict[str, int], dict[str, int]],
) -> None:
    """Each frame that the detach freed is dirty for the heap: nobody gets it before it was scrubbed."""
    before, after = one_detach
    assert counted(before, after, FREED) >= FRAMES
    assert counted(before, after, DIRTIED) >= counted(before, after, FREED)


def test_without_the_superpage_path_the_node_still_leaves(pair: ElasticGuest, dom0: Run) -> None:
    """The fall-back, page by page, is the same for the guest and for the host's books."""
    assert pair.attach(1, f"size={SLOW_MIB}M").status == 0
    superpage_path(dom0, False)
    try:
        before = counters(dom0)
        assert pair.detach(1).status == 0
        after = counters(dom0)
    finally:
        superpage_path(dom0, True)
    assert counted(before, after, REMOVED) == 0
    assert counted(before, after, FREED) >= SLOW_MIB * 256
    assert sorted(pair.nodes()) == [0]


@pytest.fixture
def stock(host: Host, pair: ElasticGuest) -> Iterator[Guest]:
    """A guest without vNUMA beside the pair, whose memory is where node 1 of the pair has its own."""
    guest = host.start_guest(CONFIGS / "stock1.cfg", STOCK)
    yield guest
    guest.destroy()


@pytest.mark.alone
@pytest.mark.soak  # which measures; what a detach does to frames is counted above
def test_superpages_against_stock(pair: ElasticGuest, stock: Guest) -> None:
    """The measurement itself, with small sizes; the counts have to be exact, the time is what it is."""
    steps: list[Step] = []
    sizes = Sizes((16, 32, 48), (64, 96, 128), (64, 128, 256))
    try:
        measure(stock, Node(pair, 1, NODE_MIB), steps, runs=rounds(1, soak=10), sizes=sizes, wrong=[])
    finally:
        found = metrics(steps)
        write("balloon", found)
    figures = {metric.metric: metric for metric in found}
    for count in ("p2m_writes", "flushes", "frees"):
        metric = figures[f"balloon.take.{count}_per_2mib"]
        assert metric.value is not None
        if count == "p2m_writes":
            assert metric.value == pytest.approx(1, abs=0.05), metric
        else:  # several extents share one
            assert 0 < metric.value <= (0.5 if count == "flushes" else 1.05), metric
        assert float(metric.baseline["stock_4k"]) >= 500, metric


def test_the_hypervisors_own_test(stable: Stable, dom0: Run) -> None:
    """test-mem-range tries each way in which an extent can be refused, on a domain without a guest in it.

    It reads the host's counters, which a guest of ours would move, and so would the end of one.
    """
    stable.leave_all()
    settled_free_pages(dom0)
    if dom0(f"test -x {TEST_PROGRAM}").status != 0:
        pytest.fail(f"{TEST_PROGRAM} is not in dom0's image")
    done = dom0(TEST_PROGRAM, 240.0)
    lines = done.out.splitlines()
    plan = [line for line in lines if line.startswith("1..")]
    passed = [line for line in lines if line.startswith("ok ") and "# SKIP" not in line]
    # A case that was skipped has shown nothing: here everything that the cases need is there.
    assert done.status == 0 and plan and int(plan[0][3:]) == len(passed) > 0, done.text
