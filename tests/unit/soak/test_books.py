# SPDX-License-Identifier: GPL-2.0
"""What host and guest print becomes values; what has not its form is refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.soak import books
from benchmarks.soak.books import Driver
from benchmarks.soak.model import SHAPES
from lab.command import Done
from lab.elastic_guest import ElasticGuest
from lab.errors import LabError, Malformed
from tests.unit.soak.played import PlayedHome, books_of

# As Xen 4.20 has put it onto a console of the lab.
XEN = """(XEN) 'u' pressed -> dumping numa info (now = 415172280238)
(XEN) NODE0 start->0 size->524288 free->128666
(XEN) NODE1 start->1048576 size->524288 free->513988
(XEN) CPU0...1 -> NODE0
(XEN) CPU2...3 -> NODE1
(XEN) Memory location of each domain:
(XEN) d0 (total: 261630):
(XEN)     Node 0: 261630
(XEN)     Node 1: 0
(XEN) d25 (total: 131022):
(XEN)     Node 0: 131014
(XEN)     Node 1: 8
(XEN)      2 vnodes, 4 vcpus, guest physical layout:
(XEN)          0: pnode   0, vcpus 0-1
(XEN)            0000000000000000 - 0000000020000000
(XEN) General information for domain 0:
(XEN)     refcnt=3 dying=0 pause_count=0
(XEN)     nr_pages=261630 xenheap_pages=2 dirty_cpus={} max_pages=4294967295
(XEN) General information for domain 25:
(XEN)     nr_pages=131022 xenheap_pages=6 dirty_cpus={} max_pages=131328
(XEN) VCPU information and callbacks for domain 25:
(XEN)   UNIT0 affinities: hard={0-3} soft={0-1}
(XEN)     VCPU0: CPU0 [has=F] poll=0 upcall_pend=00 upcall_mask=00
(XEN)   UNIT1 affinities: hard={2-3} soft={2,3}
"""


def test_pages_of_a_domain_by_node() -> None:
    assert books.parse_pages(XEN, 25) == (131022, {0: 131014, 1: 8})
    assert books.parse_pages(XEN.replace("(XEN) ", ""), 0) == (261630, {0: 261630, 1: 0})
    assert books.parse_pages(XEN + XEN.replace("1: 8", "1: 9"), 25) == (131022, {0: 131014, 1: 9})
    assert books.parse_pages(XEN.replace("(XEN)", "(XEN) [2026-11-22 03:00:01]"), 25) == (131022, {0: 131014, 1: 8})
    with pytest.raises(Malformed, match="no memory of domain 2 "):
        books.parse_pages(XEN, 2)


def test_the_limit_of_a_domain() -> None:
    assert books.parse_limit(XEN, 25) == 4 * 131328
    with pytest.raises(Malformed, match="no limit of domain 5"):
        books.parse_limit(XEN, 5)


def test_where_xen_has_it() -> None:
    """The table of vnodes, vCPUs, and the host's CPUs, of this domain and none before or after."""
    assert books.parse_layout(XEN, 25) == {0: "0"} and books.parse_layout(XEN, 0) == books.parse_layout(XEN, 2) == {}
    assert books.parse_layout(XEN + XEN.replace("pnode   0", "pnode   1"), 25) == {0: "1"}
    assert books.parse_layout(XEN.replace("(XEN)", "(XEN) [2026-11-22 03:00:01]"), 25) == {0: "0"}
    assert books.parse_affinity(XEN, 25) == {0: ((0, 1, 2, 3), (0, 1)), 1: ((2, 3), (2, 3))}
    assert books.parse_affinity(XEN, 0) == {}
    assert books.parse_host_cpus(XEN) == {0: (0, 1), 1: (2, 3)}
    assert books.parse_host_cpus("CPU4...7 -> NODE0\n") == {0: (4, 5, 6, 7)}
    assert books.parse_host_cpus("CPU7 -> NODE1\nCPU9...10 -> NODE1\n") == {1: (7, 9, 10)}


def test_vcpus_in_xens_table() -> None:
    """A space behind each range but one that ends with the domain's last vCPU, as dump_numa() has it."""
    rows = ("0: pnode   0, vcpus 0-1 4-5  ", "1: pnode   1, vcpus 2 ", "2: pnode ???, vcpus ", "3: pnode   0, vcpus 6-7")
    table = "(XEN) d2 (total: 131022):\n(XEN)     Node 0: 131014\n(XEN)      4 vnodes, 8 vcpus, guest physical layout:\n"
    table += "".join(f"(XEN)          {row}\n(XEN)            0000000000000000 - 0000000020000000\n" for row in rows)
    table += "(XEN) d3 (total: 1):\n(XEN)          1: pnode   0, vcpus 3\n"
    assert books.parse_vcpus(table, 2) == {0: (0, 1, 4, 5), 1: (2,), 2: (), 3: (6, 7)}
    assert books.parse_layout(table, 2) == {0: "0", 1: "1", 2: "???", 3: "0"}
    assert books.parse_vcpus(table, 3) == {1: (3,)} and books.parse_vcpus(table, 4) == {}
    with pytest.raises(Malformed):
        books.parse_vcpus(table.replace("6-7", "7-6"), 2)


def test_whom_dom0_serves() -> None:
    text = """/local/domain/0/backend/vif = ""   (n0)
/local/domain/0/backend/vif/7 = ""   (n0,r7)
/local/domain/0/backend/vif/7/0/state = "4"   (n0,r7)
/local/domain/0/backend/console/6 = ""   (n0,r6)
"""
    assert books.parse_backends(text) == {"vif/7", "console/6"}


def test_what_the_driver_says() -> None:
    text = (
        "vnode 1: node 1, online, 98304 of 524288 KiB, target 98304 KiB, cpus 2-3\n"
        "  range 0x100000000, 4 blocks of 64 extents, 1 of them memmap, plugged 0\n"
        "vnode 2: node -1, offline, 0 of 262144 KiB, target 0 KiB, cpus 4\nvnode 3: not usable\n"
    )
    assert books.parse_driver(text) == {1: Driver("online", 98304, 98304, 2), 2: Driver("offline", 0, 0)}


def test_memory_of_a_vnode_that_no_node_counts() -> None:
    """Of each block that is plugged, and as many extents as the driver says: struct pages can be larger."""
    line = "vnode 1: node 1, online, 393216 of 524288 KiB, target 393216 KiB, cpus 2-3\n  range 0x1, 4 blocks of 64 extents, "
    assert books.parse_driver(f"{line}1 of them memmap, plugged 0-1,3\n")[1].memmap_mib == 6
    assert books.parse_driver(f"{line}2 of them memmap, plugged 0-1,3\n")[1].memmap_mib == 12
    assert books.parse_driver(f"{line}1 of them memmap, plugged \n")[1].memmap_mib == 0


def test_keys_below_a_path() -> None:
    text = '/libxl/2/vnuma/op = "1 attach"   (n0)\n/libxl/22/vnuma/op = "x"\n/libxl/2/vnuma = ""\n'
    assert books.keys_below(text, "/libxl/2/vnuma") == {"op": "1 attach"}


@pytest.mark.parametrize(
    ("name", "dead"),
    [
        ("0", False),
        ("7", False),
        ("6", True),
        ("userdata-l.6.b4d1.vnode-op", True),
        ("userdata-d.7.b4d1.domain-userdata-json", False),
        ("vif/7", False),
        ("vif/6", True),
        ("console/60", True),
        ("xenstored", False),
        ("dump", False),
    ],
)
def test_what_is_left_of_the_dead(name: str, dead: bool) -> None:
    assert bool(books.of_dead(frozenset({name}), 7)) == dead


def test_both_are_asked_once(tmp_path: Path) -> None:
    home = PlayedHome(SHAPES["guest2"], tmp_path / "log")
    guest = home.create()
    before = len(home.typed)
    seen = books_of(guest)
    assert len(home.typed) == before + 1
    assert (seen.domid, seen.nodes, seen.cpus, seen.listed[1]["state"]) == (1, (0,), (0, 1), "offline")
    assert (seen.vcpus, seen.node_cpus, seen.memory_target_kib) == ({0: (0, 1), 1: (2, 3)}, {0: (0, 1)}, 524288)
    assert seen.vm in seen.vms and seen.backends == {"console/1", "vif/1"}
    assert seen.total == sum(seen.pages.values()) and seen.limit_kib == 513 * 1024


def test_the_record_is_read_before_it_is_put_in_order() -> None:
    """vnode-list settles what is left of an operation, and what was left would not be seen."""
    ask = books.ASK_DOM0
    assert max(map(ask.index, ("xenstore-ls -f /libxl", "debug-keys u", "debug-keys q"))) < ask.index("vnode-list")


@pytest.mark.parametrize("said", ["", "== domid\n7\n", "== domid\nmany\n== xen\n"])
def test_an_answer_without_its_form_is_refused(said: str) -> None:
    guest = ElasticGuest("g", lambda command, timeout=60.0: Done(0, said), lambda command, timeout=60.0: Done(0, ""))
    with pytest.raises(Malformed):
        books_of(guest)


def test_a_guest_that_is_gone_is_an_error() -> None:
    guest = ElasticGuest(
        "g", lambda command, timeout=60.0: Done(1, "", "no"), lambda command, timeout=60.0: Done(0, "")
    )
    with pytest.raises(LabError):
        books_of(guest)


def test_a_number_that_is_none_is_refused() -> None:
    assert books.number({}, "k") == 0
    with pytest.raises(Malformed):
        books.number({"k": "-1"}, "k")


# What a domain leaves that is not removed with it: where, and the line about it.
LEFT = {
    "libxl": ("9", "/libxl/9 "),
    "vms": ("ab-9", "/vm/ab-9 "),
    "backends": ('/local/domain/0/backend/vif/9 = ""', "/local/domain/0/backend/vif/9 "),
    "domains": ("9", "/local/domain/9 "),
    "files": ("userdata-l.9.ab-9.vnode-op", "/var/lib/xen/userdata-l.9.ab-9.vnode-op "),
}


@pytest.mark.parametrize("where", LEFT)
def test_what_is_left_when_there_is_no_guest(tmp_path: Path, where: str) -> None:
    home = PlayedHome(SHAPES["guest2"], tmp_path / "log")
    home.destroy(home.create())
    assert books.leftovers_without_guest(home.dom0) == []
    left, said = LEFT[where]
    (found,) = books.leftovers_without_guest(lambda command, timeout=60.0: with_line(home.dom0(command), where, left))
    assert found.startswith(said)


def with_line(done: Done, section: str, line: str) -> Done:
    """An answer with one more line in a section."""
    return Done(done.status, done.out.replace(f"== {section}\n", f"== {section}\n{line}\n"), done.err)


def test_a_directory_of_dom0_below_vm_is_no_leftover(tmp_path: Path) -> None:
    home = PlayedHome(SHAPES["guest2"], tmp_path / "log")
    dom0s = "00000000-0000-0000-0000-000000000000"
    assert books.leftovers_without_guest(lambda command, timeout=60.0: with_line(home.dom0(command), "vms", dom0s)) == []


@pytest.mark.parametrize("question", ["domains", "files"])
def test_a_list_without_dom0_shows_nothing(tmp_path: Path, question: str) -> None:
    home = PlayedHome(SHAPES["guest2"], tmp_path / "log")
    home.unanswered = {question}
    (found,) = books.leftovers_without_guest(home.dom0)
    assert "cannot be trusted" in found


def test_lists_that_are_not_there_are_refused() -> None:
    with pytest.raises(Malformed):
        books.leftovers_without_guest(lambda command, timeout=60.0: Done(0, "== domains\n0\n"))
    with pytest.raises(LabError):
        books.leftovers_without_guest(lambda command, timeout=60.0: Done(1, "", "no"))
