# SPDX-License-Identifier: GPL-2.0
"""`host=` in a guest's configuration: xl makes such a guest, attaches, lists, resizes and detaches its node, and destroys it.

dsmd-host(8) runs on both hosts; nobody starts a dsmd by hand.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.command import checked, run_in, write_file
from lab.complaints import complaints
from lab.host import Host
from lab.patience import scaled
from tests.e2e.dsm_hosts import Memcheck, free_pages, slices
from tests.e2e.dsm_program import lasts
from tests.e2e.far_guest import ASKED_MOST, Shape, dsm_site, far_guest, left_nothing, said

pytestmark = pytest.mark.fresh

NODE_MIB = Shape().node_mib
# The pool is a sixteenth of the node: more than it holds, so that pages go back, too.
CHECKED_MIB = 24
SECONDS = 20


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Host]]:
    """Two hosts with a dsmd-host each."""
    with dsm_site(tmp_path_factory.mktemp("dsm")) as site:
        yield site.both
    assert not site.rack.wrong_ends


def test_a_node_of_another_host_by_xl(hosts: tuple[Host, Host]) -> None:
    alpha, beta = hosts
    with far_guest(hosts, beta.description.name) as guest:
        for turn in range(2):
            attached = guest.attach(1, timeout=ASKED_MOST)
            assert attached.status == 0, attached.text + said(hosts)
            found = guest.listed()[1]["host"]
            print("attach:", attached.seconds, "s;", found)
            assert found["name"] == beta.description.name and found["link"] == "up", found
            memory = Memcheck(guest, 1, CHECKED_MIB)
            lasts(run_in(alpha), SECONDS)
            print("memcheck:", memory.end(), guest.listed()[1]["host"])
            detached = guest.detach(1, timeout=ASKED_MOST)
            assert detached.status == 0, (turn, detached.text + said(hosts))
            print("detach:", detached.seconds, "s")
            assert guest.vnode(1).state == "offline", guest.vnode(1).keys
            assert slices(beta) == []
        assert complaints(checked(run_in(guest), "dmesg")) == []
    left_nothing(hosts)


def test_a_node_of_another_host_is_resized(hosts: tuple[Host, Host]) -> None:
    with far_guest(hosts, hosts[1].description.name) as guest:
        done = guest.attach(1, "size=128m", timeout=ASKED_MOST)
        assert done.status == 0, done.text + said(hosts)
        for size in (NODE_MIB, 128):
            done = guest.resize(1, f"{size}M", timeout=ASKED_MOST)
            assert done.status == 0, done.text + said(hosts)
            assert guest.vnode(1).current_kib == size * 1024, guest.vnode(1).keys


def test_destroy_acts_on_both_hosts(hosts: tuple[Host, Host]) -> None:
    """Of a guest whose node is attached and used; what it makes Xen allocate once does not count."""
    free = []
    for _ in range(2):
        with far_guest(hosts, hosts[1].description.name) as guest:
            assert guest.attach(1, timeout=ASKED_MOST).status == 0, said(hosts)
            Memcheck(guest, 1, CHECKED_MIB)
            assert len(slices(hosts[1])) == 1
            assert f" far-slice-{hosts[0].description.name} " in run_in(hosts[1])("xl list").text.replace("\n", " ")
        left_nothing(hosts)
        free.append(free_pages(hosts))
    assert free[0] == free[1]


def test_a_host_that_nobody_knows_is_refused(hosts: tuple[Host, Host]) -> None:
    dom0 = run_in(hosts[0])
    write_file(dom0, "/tmp/far.cfg", Shape().xl_cfg("nowhere"))
    refused = dom0("xl create /tmp/far.cfg", scaled(240))
    assert refused.status != 0
    assert "nowhere" in refused.text and hosts[1].description.name in refused.text, refused.text
    assert dom0("xl domid far").status != 0
