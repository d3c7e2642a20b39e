# SPDX-License-Identifier: GPL-2.0
"""A guest with memory of two other hosts: both nodes are used at once, leave in any order, and one host is lost."""

from __future__ import annotations

import functools
from collections.abc import Iterator

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.far_guest import DsmSite, Shape, far_guest, has_crashed, left_nothing, said, slices, state, status, told
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from tests.e2e.dsm_hosts import Memcheck, free_pages
from tests.e2e.far_faults import DEADLINE, LIMITS, dsmd, is_clean
from tests.e2e.far_guest import ASKED_MOST, dsm_site

pytestmark = pytest.mark.fresh

MIB = 4  # of each node, by a program
NODES = (1, 2)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    with dsm_site(tmp_path_factory.mktemp("dsm"), LIMITS, rack="three-hosts") as made:
        yield made
    assert not made.rack.wrong_ends


def names(site: DsmSite) -> list[str]:
    return [host.description.name for host in site.hosts]


def shape(site: DsmSite) -> Shape:
    return Shape(home_mib=384, node_mib=128, also=(names(site)[2],))


def attach(site: DsmSite, guest: Guest, node: int) -> None:
    done = guest.attach(node, timeout=ASKED_MOST)
    assert done.status == 0 and f" MiB on host {names(site)[node]}," in done.text, done.text + said(site.hosts)


def detach(site: DsmSite, guest: Guest, node: int) -> None:
    done = guest.detach(node, timeout=ASKED_MOST)
    assert done.status == 0, done.text + said(site.hosts)
    assert guest.vnode(node).state == "offline", guest.vnode(node).keys


def slices_of(hosts: tuple[Host, ...]) -> list[int]:
    return [len(slices(host)) for host in hosts[1:]]


def test_nodes_of_two_hosts(site: DsmSite) -> None:
    """Each has its own pages, a program moves from one to the other, and who leaves first makes no difference."""
    free = []
    for first, last in (NODES, NODES[::-1]):
        with far_guest(site.hosts, names(site)[1], shape(site)) as guest:
            attach(site, guest, first)
            attach(site, guest, last)
            assert slices_of(site.hosts) == [1, 1]
            listed = [guest.listed()[node]["host"] for node in NODES]
            assert [(each["name"], each["link"]) for each in listed] == [(name, "up") for name in names(site)[1:]], listed
            checks = {node: Memcheck(guest, node, MIB, f"memcheck{node}") for node in NODES}
            mover = Memcheck(guest, 0, MIB, "mover")
            pid = int(checked(run_in(guest), "cat /tmp/mover.pid"))
            there = f"migratepages {pid} 0 {first} && migratepages {pid} {first} {last}"
            checked(run_in(guest), f"kill -STOP {pid} && {there}", ASKED_MOST)
            found = guest.resident(pid)
            print("moved:", found, [guest.listed()[node]["host"] for node in NODES])
            assert found.get(last, 0) > MIB * 1024 * 3 // 4 and found.get(first, 0) < MIB * 1024 // 4, found
            checked(run_in(guest), f"kill -CONT {pid}")
            print(f"node {first}:", checks[first].end())
            detach(site, guest, first)
            assert slices_of(site.hosts) == [int(last == 1), int(last == 2)]
            print("mover:", mover.end())
            print(f"node {last}:", checks[last].end())
            detach(site, guest, last)
            assert slices_of(site.hosts) == [0, 0]
            assert complaints(checked(run_in(guest), "dmesg")) == []
        left_nothing(site.hosts)
        free.append(free_pages(site.hosts))
    assert free[0] == free[1]


def test_one_of_three_is_lost(site: DsmSite) -> None:
    """The guest is ended; home and the host that is left say who was lost, and nothing stays anywhere."""
    lost = names(site)[1]
    assert site.third
    with far_guest(site.hosts, lost, shape(site)) as guest:
        for node in NODES:
            attach(site, guest, node)
            Memcheck(guest, node, MIB, f"memcheck{node}")
        dsmd(site.other, "KILL")
        wait_for("home knows", DEADLINE + 60, lambda: status(site.home).get("state") == "failed")
        print(told(site.home, rf"host {lost} is lost \("))
        wait_for("it has ended", 30, lambda: has_crashed(run_in(site.home)("xl list far").out))
        third = site.third
        wait_for("the third knows", DEADLINE + 60, lambda: status(third).get("state") != "running")
        print(state(third))
        links = [guest.listed()[node]["host"]["link"] for node in NODES]
        print(links)
        assert links[0] == "lost", links
    for host in site.hosts:
        wait_for(f"nothing is left at {host.description.name}", scaled(120), functools.partial(is_clean, host))
