# SPDX-License-Identifier: GPL-2.0
"""`host=` in a guest's configuration: xl makes such a guest, attaches, lists, resizes and detaches its node, and destroys it.

dsmd-host(8) runs on both hosts; nobody starts a dsmd by hand.
"""

from __future__ import annotations

import contextlib
import functools
import shlex
from collections.abc import Iterator

import pytest

from benchmarks.spanning import SOCKETS
from lab.command import checked, run_in, write_file
from lab.complaints import complaints
from lab.description import RackDescription
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from lab.ssh import Background
from tests.e2e.dsm_hosts import Memcheck, free_pages, introduce, slices
from tests.e2e.dsm_program import lasts

pytestmark = pytest.mark.fresh

HOME_MIB, NODE_MIB = 512, 256
# The pool is a sixteenth of the node: more than it holds, so that pages go back, too.
CHECKED_MIB = 24
SECONDS = 20
ASKED_MOST = 600.0  # s, for a command of xl; libxl's own limits are shorter

CONFIG = f"""
name = "far"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = {HOME_MIB}
maxvcpus = 3
vnuma = [
    [ "pnode=0", "size={HOME_MIB}", "vcpus=0-1", "vdistances=10,21" ],
    [ "host=%s", "size={NODE_MIB}", "vcpus=2", "vdistances=21,10", "elastic=1" ],
]
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:43,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


def listens(host: Host) -> bool:
    """Can xl ask its dsmd-host?"""
    return run_in(host)(f"test -S {SOCKETS.parent}/dsmd.sock").status == 0


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Host]]:
    """Two hosts with a dsmd-host each."""
    scratch = tmp_path_factory.mktemp("dsm")
    with Rack.boot(RackDescription.load("two-hosts"), meter=False) as booted:
        show_consoles_of(booted)
        folder = scratch / "papers"
        folder.mkdir()
        both = introduce(booted, folder)
        started: list[Background] = []
        for host in both:
            log = scratch / f"dsmd-host-{host.description.name}"
            started.append(host.start("dsmd-host 2>&1", log))
            wait_for("dsmd-host", 60, functools.partial(listens, host))
        yield both
        for host, program in zip(both, started, strict=True):
            program.stop()
            print((scratch / f"dsmd-host-{host.description.name}").read_text(errors="replace"))
    assert not booted.wrong_ends


@contextlib.contextmanager
def far_guest(hosts: tuple[Host, Host], other: str) -> Iterator[Guest]:
    """The guest, up, with its node absent; destroyed afterwards."""
    home = hosts[0]
    dom0 = run_in(home)
    write_file(dom0, "/tmp/far.cfg", CONFIG % other)
    checked(dom0, "xl create /tmp/far.cfg", scaled(240))
    guest = home.guest("far")
    try:
        guest.wait_ready(scaled(240))
        yield guest
    finally:
        guest.destroy()


def said(hosts: tuple[Host, Host]) -> str:
    """What dsmd of the guest knows on both, for messages about something that failed."""
    return "\n".join(run_in(host)("dsmctl status far; dsmctl hosts; xl list").text for host in hosts)


def gone(host: Host) -> bool:
    """No slice, no dsmd of a guest."""
    return slices(host) == [] and run_in(host)(f"ls {shlex.quote(str(SOCKETS))}/*.sock").status != 0


def left_nothing(hosts: tuple[Host, Host]) -> None:
    """Returns when both hosts are done with the guest."""
    wait_for("nothing of it is left", 120, lambda: all(map(gone, hosts)))


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
    write_file(dom0, "/tmp/far.cfg", CONFIG % "nowhere")
    refused = dom0("xl create /tmp/far.cfg", scaled(240))
    assert refused.status != 0
    assert "nowhere" in refused.text and hosts[1].description.name in refused.text, refused.text
    assert dom0("xl domid far").status != 0
