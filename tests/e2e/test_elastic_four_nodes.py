# SPDX-License-Identifier: GPL-2.0
"""Four nodes, of which three come and go in any order: numbers have holes, nothing gets mixed up."""

from __future__ import annotations

import pytest

from lab.command import Run
from lab.elastic_guest import ElasticGuest
from lab.hypervisor import pages_off, settled_free_pages
from tests.e2e.conftest import soak

# Each step attaches (+) or detaches (-) a node; in the first order is every hole there can be.
ORDERS = (
    pytest.param((+3, +1, -3, +2, -1, +3, +1, -2, -3, -1), id="with holes"),
    soak((+1, +2, +3, -3, -2, -1), name="as a stack"),
    soak((+1, +2, +3, -1, -2, -3), name="as a queue"),
)


@pytest.mark.parametrize("order", ORDERS)
def test_nodes_in_any_order(four: ElasticGuest, dom0: Run, order: tuple[int, ...]) -> None:
    """After each step exactly the nodes are there that should be, each with its own CPU; at the end no page is missing."""
    before = settled_free_pages(dom0)
    own_cpu = {node: int(four.vnode(node).keys[f"node/{node}/cpus"]) for node in (1, 2, 3)}
    there = {0}
    for step in order:
        node = abs(step)
        done = four.attach(node) if step > 0 else four.detach(node)
        assert done.status == 0, f"step {step:+d}: {done.text}"
        there = there | {node} if step > 0 else there - {node}
        nodes = four.nodes()
        assert set(nodes) == there
        for other in there - {0}:
            assert nodes[other].cpus == (own_cpu[other],)
    assert there == {0}
    assert pages_off(dom0, before) == {}


def test_without_a_number_the_lowest_comes_and_the_highest_goes(four: ElasticGuest, dom0: Run) -> None:
    """`vnode-attach DOM` and `vnode-detach DOM` treat the nodes as a stack."""
    for expected in ({0, 1}, {0, 1, 2}):
        done = dom0(f"xl vnode-attach {four.name}", 120.0)
        assert done.status == 0, done.text
        assert set(four.nodes()) == expected
    done = dom0(f"xl vnode-detach {four.name}", 120.0)
    assert done.status == 0, done.text
    assert set(four.nodes()) == {0, 1}


@pytest.mark.fresh
def test_a_pnode_is_chosen_within_the_cpupool(four: ElasticGuest, dom0: Run, narrow_pool: None) -> None:
    """Node 3 names no pnode: pnode 1 has more free memory, and its CPUs are outside the pool."""
    free = settled_free_pages(dom0)
    assert free[1] > free[0]
    done = four.attach(3)
    assert done.status == 0, done.text
    assert four.listed()[3]["pnode"] == 0
    assert four.detach(3).status == 0
