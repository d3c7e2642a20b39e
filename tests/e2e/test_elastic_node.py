# SPDX-License-Identifier: GPL-2.0
"""One node comes and goes: what the operator, the guest and the hypervisor each see of it."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest

from benchmarks.program_output import parse_stream
from lab.command import Run, checked
from lab.elastic_guest import LIBGOMP, PROGRAMS, ElasticGuest
from lab.hypervisor import heap_report, host_free_pages, pages_off, parse_xl_info, settled_free_pages
from lab.patience import wait_for

MIB_PAGES = 256
HOME_MIB = NODE_MIB = 512
HOME_CPUS, NODE_CPUS = (0, 1), (2, 3)
LESS_MIB = 16  # little: stock's balloon takes it page by page


def managed_pages(zoneinfo: str, node: int) -> dict[str, int]:
    """Pages that the kernel manages in each zone of a node, from /proc/zoneinfo."""
    pages: dict[str, int] = {}
    for block in re.split(r"^(?=Node )", zoneinfo, flags=re.MULTILINE):
        head = re.match(rf"Node {node}, zone +(\w+)", block)
        managed = re.search(r"^ +managed +(\d+)", block, re.MULTILINE)
        if head and managed:
            pages[head[1]] = int(managed[1])
    return pages


def test_an_absent_node_is_declared_but_not_there(pair: ElasticGuest) -> None:
    """In SRAT as hot-pluggable, not in e820, not in sysfs, its CPUs not online."""
    assert sorted(pair.nodes()) == [0]
    assert pair.online_cpus() == HOME_CPUS
    log = checked(pair.guest, "dmesg")
    assert any("SRAT: Node 1" in line and "hotplug" in line for line in log.splitlines()), (
        "SRAT does not declare node 1"
    )
    start = int(pair.vnode(1).keys["node/1/start"], 16)
    for line in checked(pair.guest, "cat /sys/firmware/memmap/*/end 2>/dev/null || true").split():
        assert int(line, 16) < start, f"e820 has memory up to {line}, the elastic node begins at {start:#x}"
    assert pair.vnode(1).state == "offline"


def test_attach_brings_memory_and_cpus_from_the_right_node(pair: ElasticGuest, dom0: Run) -> None:
    """All of its memory comes from one physical node, and its CPUs are bound to that node's."""
    before = settled_free_pages(dom0)
    done = pair.attach(1, "pnode=1")
    assert done.status == 0, done.text
    wanted = {0: before[0], 1: before[1] - NODE_MIB * MIB_PAGES}
    assert pages_off(dom0, wanted) == {}

    nodes = pair.nodes()
    assert nodes[1].cpus == NODE_CPUS
    assert NODE_MIB * 0.95 <= nodes[1].size_mib <= NODE_MIB
    assert pair.online_cpus() == HOME_CPUS + NODE_CPUS
    managed = managed_pages(checked(pair.guest, "cat /proc/zoneinfo"), 1)
    assert managed.pop("Movable") > 0
    assert not any(managed.values()), f"node 1 has memory that cannot leave: {managed}"
    for line in pair.vcpu_affinity().splitlines()[1:]:
        words = line.split()
        if int(words[2]) in NODE_CPUS:
            assert line.split("/")[-1].strip() == "2-3", f"vCPU {words[2]} is not bound to the CPUs of pnode 1: {line}"

    vnode = pair.vnode(1)
    assert (vnode.state, vnode.current_kib, vnode.residual_kib) == ("online", NODE_MIB * 1024, 0)
    assert list(vnode.phases) == ["populate", "add", "online", "cpus", "notify"]


def test_detach_leaves_nothing_of_the_node(pair: ElasticGuest, dom0: Run) -> None:
    """Gone from numactl -H and sysfs, and each page is back on the host."""
    before = settled_free_pages(dom0)
    assert pair.attach(1).status == 0
    done = pair.detach(1)
    assert done.status == 0, done.text
    assert sorted(pair.nodes()) == [0]
    assert pair.guest("test -e /sys/devices/system/node/node1").status != 0
    assert pair.online_cpus() == HOME_CPUS
    assert pages_off(dom0, before) == {}
    vnode = pair.vnode(1)
    assert (vnode.state, vnode.current_kib, vnode.residual_kib, vnode.error) == ("offline", 0, 0, "")
    assert list(vnode.phases) == ["notify", "acks", "cpus", "evacuate", "offline", "release", "node"]


def test_xl_info_and_the_hypervisors_count_agree(dom0: Run) -> None:
    """The count to the page that the other tests use is the heap's own; `xl info -n` rounds it to MiB."""
    wait_for("both are asked while nothing moves", 30, lambda: host_free_pages(dom0) == heap_report(dom0), 0.0)
    pages = host_free_pages(dom0)
    for number, node in parse_xl_info(checked(dom0, "xl info -n")).items():
        assert abs(pages[number] // MIB_PAGES - node.free_mib) <= 1


def test_resize_within_the_node(pair: ElasticGuest, dom0: Run) -> None:
    """Less and more memory, to the page, without the node going away."""
    assert pair.attach(1).status == 0
    full = settled_free_pages(dom0)
    managed = pair.nodes()[1].size_mib
    for size in (256, 384, 300, NODE_MIB):
        done = pair.resize(1, f"{size}M")
        assert done.status == 0, done.text
        assert pair.vnode(1).current_kib == size * 1024
        wanted = {0: full[0], 1: full[1] + (NODE_MIB - size) * MIB_PAGES}
        assert pages_off(dom0, wanted) == {}
        # A block that leaves whole takes its memmap along, 2 of 128 MiB that numactl never counted; MiB are rounded.
        gone = managed - pair.nodes()[1].size_mib
        assert (NODE_MIB - size) * 126 // 128 - 1 <= gone <= NODE_MIB - size
    assert pair.nodes()[1].cpus == NODE_CPUS
    # What is not used is taken as it lies: nobody is asked for it, nothing is moved.
    driver = checked(pair.guest, "cat /sys/kernel/debug/elastic-numa/nodes")
    free, emptied = (int(word) for word in re.findall(r"balloon: (\d+) extents were free, (\d+) were emptied", driver)[0])
    assert free >= 42 and emptied < free, driver


def test_attach_with_a_size_of_its_own(pair: ElasticGuest, dom0: Run) -> None:
    """`size=` attaches less than the declared maximum."""
    before = settled_free_pages(dom0)
    done = pair.attach(1, "size=256M")
    assert done.status == 0, done.text
    wanted = {0: before[0], 1: before[1] - 256 * MIB_PAGES}
    assert pages_off(dom0, wanted) == {}
    assert pair.detach(1).status == 0
    assert pages_off(dom0, before) == {}


def test_vnode_list_tells_the_truth_as_table_and_as_json(pair: ElasticGuest) -> None:
    """Both name each vnode with its state, before, during and after."""
    for state, cpus, kib in (("offline", [], 0), ("online", list(NODE_CPUS), NODE_MIB * 1024)):
        if state == "online":
            assert pair.attach(1).status == 0
        vnode = pair.listed()[1]
        assert (vnode["state"], vnode["actual_kib"], vnode["max_kib"]) == (state, kib, NODE_MIB * 1024)
        assert vnode["driver"] is True and vnode["elastic"] is True and vnode["operation"] is None
        assert state == "offline" or (vnode["cpus"], vnode["pnode"]) == (cpus, 1)
        table = checked(pair.dom0, f"xl vnode-list {pair.name}").splitlines()
        rows = [line.split() for line in table if line.split()[:1] == [pair.name]]
        assert [(row[2], row[3]) for row in rows] == [("0", "home"), ("1", state)], table


def test_a_program_on_the_node_survives_its_removal(pair: ElasticGuest) -> None:
    """An OpenMP program that is bound to the node's memory keeps all of it, on node 0."""
    assert pair.attach(1).status == 0
    checked(
        pair.guest,
        f"LD_LIBRARY_PATH={LIBGOMP} setsid numactl --preferred=1 {PROGRAMS}/stream_check --mib=64 --iterations=0 "
        ">/tmp/bound.jsonl 2>&1 </dev/null &",
    )
    wait_for(
        "the program runs",
        60,
        lambda: (
            len(parse_stream(checked(pair.guest, "cat /tmp/bound.jsonl")).iterations) > 1
            if pair.guest("test -s /tmp/bound.jsonl").status == 0
            else False
        ),
    )
    run = parse_stream(checked(pair.guest, "cat /tmp/bound.jsonl"))
    assert pair.resident(run.pid).get(1, 0) > 30 * 1024
    assert pair.detach(1).status == 0
    assert pair.resident(run.pid).get(1, 0) == 0
    checked(pair.guest, f"kill -TERM {run.pid}")
    wait_for("its result", 60, lambda: parse_stream(checked(pair.guest, "cat /tmp/bound.jsonl")).checksum is not None)
    assert parse_stream(checked(pair.guest, "cat /tmp/bound.jsonl")).wrong_words == 0


def test_the_topology_device_keeps_its_promises(
    pair: ElasticGuest, record_property: Callable[[str, object], None]
) -> None:
    """Each call right and wrong, then at random, with the node and without: XTOPO_RESET, registration, mappings."""
    for seed, options in ((1, ()), (2, (1,))):
        for node in options:
            assert pair.attach(node).status == 0
        done = pair.guest(f"{PROGRAMS}/topology_user {seed}", 120.0)
        assert done.status == 0 and "not ok" not in done.out, done.text
        passed = len(re.findall(r"^ok ", done.out, re.MULTILINE))
        assert passed and f"1..{passed}" in done.out.splitlines(), done.text
        record_property("checks", passed)


def test_mem_set_is_for_the_home_nodes(pair: ElasticGuest, dom0: Run) -> None:
    """`xl mem-set` counts the home's memory: an attached node keeps its own, and can still leave."""

    def home_mib() -> int:
        return pair.nodes()[0].size_mib

    assert pair.attach(1).status == 0
    home, node = home_mib(), pair.nodes()[1].size_mib
    checked(dom0, f"xl mem-set {pair.name} {HOME_MIB - LESS_MIB}")
    try:
        wait_for("the home node shrinks", 180, lambda: home_mib() <= home - LESS_MIB + 4, 1.0)
        assert pair.nodes()[1].size_mib == node
        assert pair.listed()[1]["actual_kib"] == NODE_MIB * 1024
    finally:
        checked(dom0, f"xl mem-set {pair.name} {HOME_MIB}")
    wait_for("the home node grows again", 180, lambda: home_mib() >= home - 1, 1.0)
    assert pair.nodes()[1].size_mib == node
    assert pair.detach(1).status == 0
    assert sorted(pair.nodes()) == [0]


def test_a_vcpu_can_be_hot_added_to_a_pvh_guest(pair: ElasticGuest) -> None:
    """Linux refused with "CPU 2 has invalid APIC ID ffff": a vCPU that the MADT does not enable got no APIC id."""
    assert pair.attach(1).status == 0
    assert pair.online_cpus() == (0, 1, 2, 3)
    log = checked(pair.guest, "dmesg")
    assert "invalid APIC ID" not in log
    assert "llc-sibling" not in log
    for cpu in (2, 3):
        assert pair.guest(f"taskset -c {cpu} true").status == 0
        assert pair.guest(f"test -e /sys/devices/system/node/node1/cpu{cpu}").status == 0


@pytest.mark.fresh
def test_detach_right_after_mem_set(pair: ElasticGuest, dom0: Run) -> None:
    """The limit falls at once and the balloon follows: what the home node still has is not the memory that has left."""
    home = pair.nodes()[0].size_mib
    assert pair.attach(1).status == 0
    try:
        done = dom0(f"xl mem-set {pair.name} {HOME_MIB - 64} && {pair.command('vnode-detach', '1')}", 120.0)
        assert done.status == 0, done.text
        assert pair.listed()[1]["operation"] is None
        wait_for("the home node shrinks", 60, lambda: pair.nodes()[0].size_mib <= home - 60, 1.0)
        for operation in (pair.attach, pair.detach):
            done = operation(1)
            assert done.status == 0, done.text
    finally:
        checked(dom0, f"xl mem-set {pair.name} {HOME_MIB}")
    wait_for("the home node grows again", 60, lambda: pair.nodes()[0].size_mib >= home - 1, 1.0)
