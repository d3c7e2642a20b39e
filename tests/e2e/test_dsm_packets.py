# SPDX-License-Identifier: GPL-2.0
"""Packets of a guest whose pages another host has: they neither harm the control domain nor get lost (decision 0130).

The guest's CPUs are at home. A file lies on the node of the other host, and sendfile(2) hands its pages to the network as
they are, so nobody but the backend asks for them.
A card of the guest whose packets wait for a host that stands still can be taken away.
"""

from __future__ import annotations

import contextlib
import shlex
import time
from collections.abc import Iterator

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.elastic_guest import PROGRAMS
from lab.far_guest import DsmSite, Shape, far_guest, left_nothing, said, status
from lab.guest import Guest
from lab.patience import scaled, wait_for
from lab.pipeline.paths import ARTIFACTS
from tests.e2e.far_faults import LIMITS, stands_still
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

# The guest's second card, in a network of its own: 10.77 is that of the first one, by which it is asked, and 10.78 the hosts'.
SECOND_MAC, SECOND, SECOND_OF_DOM0 = "00:16:3e:4d:00:53", "10.79.0.2", "10.79.0.1"
STILL = 2.0  # s that the other host stands still before the card is taken away: packets wait by then
# s for that: libxl gives the guest 10 to answer, then the backend is done at once. Without hook 0307 it took 32 for a page.
TAKEN_AWAY = 20.0


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    # A host that stands still is not to be lost before its guest's card has gone.
    limits = {**LIMITS, "deadline_ms": round(scaled(60) * 1000)}
    with dsm_site(tmp_path_factory.mktemp("packets"), limits) as made:
        yield made
    assert not made.rack.wrong_ends


def make_file(guest: Guest) -> None:
    """The file, on the other host's node."""
    inside = run_in(guest)
    checked(inside, f"mkdir -p {FOLDER} && mount -t tmpfs -o mpol=bind:1,size={FILE_MIB + 1}m far {FOLDER}")
    checked(inside, f"head -c {FILE_MIB << 20} /dev/urandom >{FOLDER}/file", ASKED_MOST)


def listen(site: DsmSite) -> None:
    """Somebody in the control domain takes the file."""
    dom0 = run_in(site.home)
    site.home.put(ARTIFACTS / "programs" / f"{PROGRAMS}/receive".lstrip("/"), RECEIVE)
    checked(dom0, "rm -f /tmp/receiver.log /tmp/received /tmp/has_received")
    checked(dom0, f"(setsid sh -c {shlex.quote(RECEIVER)} >/dev/null 2>&1 </dev/null &)")
    wait_for("somebody listens", 60, lambda: dom0("grep listens /tmp/receiver.log").status == 0)


def sent(site: DsmSite, guest: Guest) -> str:
    """The file goes to the control domain. Returns the checksum of what has arrived there."""
    dom0, inside = run_in(site.home), run_in(guest)
    listen(site)
    print(checked(inside, f"{PROGRAMS}/send_file {ADDRESS} {PORT} {FOLDER}/file", ASKED_MOST))
    wait_for("all has arrived", 60, lambda: dom0("test -e /tmp/has_received").status == 0)
    return checked(dom0, "cat /tmp/received").split()[0]


def test_packets_from_the_other_hosts_pages(site: DsmSite) -> None:
    """They wait for their pages, arrive whole, and nobody has given one up."""
    with far_guest(site.both, site.other.description.name, SHAPE) as guest:
        inside = run_in(guest)
        attached = guest.attach(1, timeout=ASKED_MOST)
        assert attached.status == 0, attached.text + said(site.both)
        make_file(guest)
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


@contextlib.contextmanager
def second_card(site: DsmSite, guest: Guest) -> Iterator[None]:
    """A card more, and the file on its way by it."""
    dom0, inside = run_in(site.home), run_in(guest)
    checked(dom0, f"ip addr add {SECOND_OF_DOM0}/24 dev xenbr0")
    try:
        checked(dom0, f"xl network-attach {guest.name} mac={SECOND_MAC},bridge=xenbr0")
        wait_for("the card is there", 60, lambda: inside("test -e /sys/class/net/eth1").status == 0)
        checked(inside, f"ip addr add {SECOND}/24 dev eth1 && ip link set eth1 up")
        listen(site)
        words = f"setsid {PROGRAMS}/send_file {SECOND_OF_DOM0} {PORT} {FOLDER}/file"
        checked(inside, f"({words} >/tmp/sender.log 2>&1 </dev/null & echo $! >/tmp/sender.pid)")
        yield
    finally:
        print("sender:", inside("cat /tmp/sender.log; ip -s addr show eth1; ip route").text)
        print("receiver:", dom0("cat /tmp/receiver.log; pkill -x receive").text)
        checked(dom0, f"ip addr del {SECOND_OF_DOM0}/24 dev xenbr0")


def test_a_card_is_taken_away_while_the_other_host_stands_still(site: DsmSite) -> None:
    """In time, whatever waits in it for that host's pages; the guest and its first card go on, and no page is lost."""
    dom0 = run_in(site.home)
    with far_guest(site.both, site.other.description.name, SHAPE) as guest:
        inside = run_in(guest)
        attached = guest.attach(1, timeout=ASKED_MOST)
        assert attached.status == 0, attached.text + said(site.both)
        make_file(guest)
        before = checked(inside, f"sha256sum {FOLDER}/file", ASKED_MOST)
        domid = guest.domid()
        with second_card(site, guest):
            wait_for("its packets wait for pages", 60, lambda: page_waits(site.home, domid, 1)[0] > 0)
            with stands_still(site.other):
                began = time.monotonic()
                wait_for("it stands still", 60, lambda: time.monotonic() - began > STILL)
                waits = page_waits(site.home, domid, 1)
                on_its_way = dom0("test -e /tmp/has_received").status != 0
                gone = dom0(f"xl network-detach {guest.name} 1", scaled(60))
                left = checked(dom0, f"xenstore-list /local/domain/0/backend/vif/{domid}").split()
            print("page waits:", waits, "network-detach:", gone.status, f"{gone.seconds:.1f} s", gone.text)
        assert on_its_way, "all of the file had arrived before"
        assert gone.status == 0, gone.text
        assert gone.seconds < scaled(TAKEN_AWAY), gone
        assert left == ["0"], left
        inside("kill -9 $(cat /tmp/sender.pid)")
        assert checked(inside, f"sha256sum {FOLDER}/file", ASKED_MOST) == before
        assert [status(host)["state"] for host in site.both] == ["running", "running"], said(site.both)
        assert guest.listed()[1]["host"]["link"] == "up", said(site.both)
        assert complaints(checked(dom0, "dmesg")) == []
    left_nothing(site.both)
