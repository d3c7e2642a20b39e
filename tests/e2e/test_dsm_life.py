# SPDX-License-Identifier: GPL-2.0
"""The life of a guest with `host=`.

Its programs move to the other host's memory and back, and pause, reboot and shutdown act on all of it.
"""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Iterator

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.far_guest import LOG, DsmSite, far_guest, left_nothing, said, slices, status
from lab.guest import Guest
from lab.patience import scaled, wait_for
from tests.e2e.dsm_hosts import Memcheck, free_pages
from tests.e2e.far_faults import CHECKED_MIB, KEEPALIVE, LIMITS, SHAPE, faults
from tests.e2e.far_guest import ASKED_MOST, dsm_site

pytestmark = pytest.mark.fresh


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    with dsm_site(tmp_path_factory.mktemp("life"), LIMITS) as made:
        yield made
        # What ends as it should is no failure, on either host.
        for host in made.both:
            assert "level=error" not in checked(run_in(host), f"cat {LOG}")
    assert not made.rack.wrong_ends


def attach(site: DsmSite, guest: Guest) -> None:
    attached = guest.attach(1, timeout=ASKED_MOST)
    assert attached.status == 0, attached.text + said(site.both)


def more_faults(site: DsmSite, before: int) -> None:
    """Returns when pages have come."""
    wait_for("pages come", 60, lambda: faults(site.home) > before + 20)


def test_a_program_moves_there_and_back(site: DsmSite) -> None:
    """By the kernel's own means, migratepages(8)."""
    with far_guest(site.both, site.other.description.name, SHAPE) as guest:
        attach(site, guest)
        inside = run_in(guest)
        memory = Memcheck(guest, 0, CHECKED_MIB)
        pid = int(checked(inside, "cat /tmp/memcheck.pid"))
        for _ in range(2):
            # It gives pages back all the time, and has them anew from node 0: numbers are exact while it stands still.
            checked(inside, f"kill -STOP {pid} && migratepages {pid} 0 1", ASKED_MOST)
            found = guest.resident(pid)
            print("there:", found, guest.listed()[1]["host"])
            assert found.get(1, 0) > CHECKED_MIB * 1024 * 3 // 4 and found.get(0, 0) < CHECKED_MIB * 1024 // 2, found
            before = faults(site.home)
            checked(inside, f"kill -CONT {pid}")
            more_faults(site, before)
            checked(inside, f"migratepages {pid} 1 0", ASKED_MOST)
            found = guest.resident(pid)
            print("back:", found, guest.listed()[1]["host"])
            assert found.get(1, 0) == 0, found
        print("memcheck:", memory.end())
        detached = guest.detach(1, timeout=ASKED_MOST)
        assert detached.status == 0, detached.text + said(site.both)
        assert complaints(checked(inside, "dmesg")) == []
    left_nothing(site.both)


def wait_until_quiet(site: DsmSite) -> int:
    """Returns the faults when no more of them come."""
    seen = [faults(site.home)]

    def quiet() -> bool:
        seen.append(faults(site.home))
        return seen[-1] == seen[-2]

    wait_for("nothing is asked for any more", 60, quiet, interval=1)
    return seen[-1]


def reborn(guest: Guest, domid: int) -> bool:
    """Whether there is another domain of that name."""
    found = guest.host.run(["xl", "domid", guest.name])
    return found.status == 0 and int(found.out) != domid


def is_paused_for_long(site: DsmSite, guest: Guest) -> None:
    """Longer than Xen lets a domain run whose dsmd says nothing: it stays, nothing comes, and it goes on after that."""
    dom0 = run_in(site.home)
    checked(dom0, "xl pause far")
    settled = wait_until_quiet(site)
    began = time.monotonic()
    wait_for("it is paused for long", 60, lambda: time.monotonic() - began > 1.5 * KEEPALIVE, interval=0.5)
    assert faults(site.home) == settled
    listed = guest.listed()[1]["host"]
    assert listed["link"] == "up" and listed["faults_per_second"] == 0, listed
    assert [status(host)["state"] for host in site.both] == ["running", "running"], said(site.both)
    checked(dom0, "xl unpause far")
    more_faults(site, settled)


def reboots(site: DsmSite, guest: Guest) -> None:
    """The next one begins as xl.cfg says: its elastic node is absent, and the other host has nothing of it."""
    before = guest.domid()
    checked(run_in(site.home), "xl reboot far")
    wait_for("the next one is there", 120, lambda: reborn(guest, before))
    guest.disconnect()
    guest.wait_ready(scaled(240))
    assert guest.vnode(1).state == "offline", guest.vnode(1).keys
    assert slices(site.other) == []


def test_pause_reboot_and_shutdown(site: DsmSite) -> None:
    """Of a guest that uses its node. What a shutdown ends leaves nothing on either host, without anybody's `xl destroy`."""
    free = []
    shape = dataclasses.replace(SHAPE, on_reboot="restart")
    for reboot in (True, False):
        with far_guest(site.both, site.other.description.name, shape) as guest:
            attach(site, guest)
            memory = Memcheck(guest, 1, CHECKED_MIB)
            is_paused_for_long(site, guest)
            print("memcheck:", memory.end())
            if reboot:
                reboots(site, guest)
                attach(site, guest)
                print("memcheck:", Memcheck(guest, 1, CHECKED_MIB).end())
            guest.shutdown(timeout=ASKED_MOST)
            left_nothing(site.both)
        free.append(free_pages(site.both))
    assert free[0] == free[1]
