# SPDX-License-Identifier: GPL-2.0
"""Packets of a guest whose pages another host has: they neither harm the control domain nor get lost (decision 0130).

The guest's CPUs are at home. A file lies on the node of the other host, and sendfile(2) hands its pages to the network as
they are, so nobody but the backend asks for them.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.elastic_guest import PROGRAMS
from lab.far_guest import DsmSite, Shape, far_guest, left_nothing, said, status
from lab.guest import Guest
from lab.patience import wait_for
from lab.pipeline.paths import ARTIFACTS
from tests.e2e.far_faults import LIMITS
from tests.e2e.far_guest import ASKED_MOST, dsm_site
from tests.e2e.netback import page_waits

pytestmark = pytest.mark.fresh

# Of 128 MiB a sixteenth is the pool of pages that are here: most of the file is at the other host.
SHAPE = Shape(node_mib=128)
FILE_MIB = 12
ADDRESS, PORT = "10.77.0.1", 7777
FOLDER = "/mnt/far"
RECEIVE = "/root/receive"
RECEIVER = f"{RECEIVE} {PORT} 2>/tmp/receiver.log | sha256sum >/tmp/received; touch /tmp/has_received"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    with dsm_site(tmp_path_factory.mktemp("packets"), LIMITS) as made:
        yield made
    assert not made.rack.wrong_ends


def sent(site: DsmSite, guest: Guest) -> str:
    """The file goes to the control domain. Returns the checksum of what has arrived there."""
    dom0, inside = run_in(site.home), run_in(guest)
    site.home.put(ARTIFACTS / "programs" / f"{PROGRAMS}/receive".lstrip("/"), RECEIVE)
    checked(dom0, "rm -f /tmp/receiver.log /tmp/received /tmp/has_received")
    checked(dom0, f"(setsid sh -c {shlex.quote(RECEIVER)} >/dev/null 2>&1 </dev/null &)")
    wait_for("somebody listens", 60, lambda: dom0("grep listens /tmp/receiver.log").status == 0)
    print(checked(inside, f"{PROGRAMS}/send_file {ADDRESS} {PORT} {FOLDER}/file", ASKED_MOST))
    wait_for("all has arrived", 60, lambda: dom0("test -e /tmp/has_received").status == 0)
    return checked(dom0, "cat /tmp/received").split()[0]


def test_packets_from_the_other_hosts_pages(site: DsmSite) -> None:
    """They wait for their pages, arrive whole, and nobody has given one up."""
    with far_guest(site.both, site.other.description.name, SHAPE) as guest:
        inside = run_in(guest)
        attached = guest.attach(1, timeout=ASKED_MOST)
        assert attached.status == 0, attached.text + said(site.both)
        checked(inside, f"mkdir -p {FOLDER} && mount -t tmpfs -o mpol=bind:1,size={FILE_MIB + 1}m far {FOLDER}")
        checked(inside, f"head -c {FILE_MIB << 20} /dev/urandom >{FOLDER}/file", ASKED_MOST)
        before = page_waits(site.home, guest.domid())
        print("there:", guest.listed()[1]["host"])

        arrived = sent(site, guest)
        after = page_waits(site.home, guest.domid())
        print("page waits:", before, after, checked(inside, "grep ^Tcp: /proc/net/snmp"))
        assert after[0] > before[0], "no packet has met a page that was away"
        assert after[1] == 0, "packets were given up"
        assert arrived == checked(inside, f"sha256sum {FOLDER}/file", ASKED_MOST).split()[0]
        assert status(site.home)["state"] == "running"

        checked(inside, f"umount {FOLDER}")
        detached = guest.detach(1, timeout=ASKED_MOST)
        assert detached.status == 0, detached.text + said(site.both)
        assert complaints(checked(inside, "dmesg")) == []
        assert complaints(checked(run_in(site.home), "dmesg")) == []
    left_nothing(site.both)
