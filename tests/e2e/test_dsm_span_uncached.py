# SPDX-License-Identifier: GPL-2.0
"""Class U (decision 0126): a CPU of another host that nobody keeps from devices. It sends and receives the guest's packets.

What can't leave its home (the tables of grants, rings that a backend has mapped) is used there, one access after the other.
Its packets wait in netback for their pages (decision 0130).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.far_guest import far_guest, left_nothing, said
from lab.host import Host
from lab.span_guest import BOOT, PATIENCE, SlowSite, SpanShape, measured
from tests.e2e.netback import RINGS, page_waits
from tests.e2e.span_guest import attach, detach, slow_site

pytestmark = pytest.mark.fresh

HOME_CPU, FAR_CPU = 0, 1
# Whoever is not bound to a CPU for ever goes there, those who answer this connection, too.
ALL_THERE = f"for each in /proc/[0-9]*; do taskset -pc {FAR_CPU} ${{each#/proc/}}; done >/dev/null 2>&1; echo done"
# What is asked of the console and of xenstore is not what this is about: their threads stay at home.
RINGS_AT_HOME = (
    f"for each in xenbus xenwatch khvcd; do for pid in $(pgrep -x $each); do taskset -pc {HOME_CPU} $pid; done; done"
)
BYTES = "head -c 262144 /usr/bin/bash"


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowSite]:
    with slow_site(tmp_path_factory.mktemp("dsm"), class_u=True) as made:
        yield made


def counted(host: Host) -> dict[str, Any]:
    """What dsmd counts of accesses."""
    (status,) = json.loads(run_in(host)("dsmctl -j status far").out)  # its exit status is that of the VM
    engine = status["engine"]
    return {key: engine[key] for key in ("accesses", "accesses_again", "accesses_done", "uncached")}


def test_devices_from_another_host(site: SlowSite) -> None:
    """Packets that its CPU sends arrive whole, and the guest goes on when the host has left."""
    shape = measured(site, SpanShape(isolated=False))
    with far_guest(site.both, site.other.description.name, shape, BOOT) as guest:
        inside = run_in(guest)
        print(checked(inside, RINGS_AT_HOME, 300))
        attach(site, guest, shape)
        before, waited = [counted(host) for host in site.both], page_waits(site.home, guest.domid())
        try:
            checked(inside, ALL_THERE, PATIENCE)
            checked(inside, RINGS_AT_HOME, PATIENCE)
            wanted = checked(inside, f"taskset -c {HOME_CPU} sh -c '{BYTES} | sha256sum'", PATIENCE).split()[0]
            sent = inside(f"taskset -c {FAR_CPU} sh -c '{BYTES} | base64 -w 0'", PATIENCE)
            assert sent.status == 0, sent
            assert hashlib.sha256(base64.b64decode(sent.out)).hexdigest() == wanted
        finally:
            after = [counted(host) for host in site.both]
            print(waited, run_in(site.home)(f"grep -h '^page waits' {RINGS}/vif*/io_ring_q*").text)
            print(before, after, said(site.both), *(run_in(host)("xl dmesg | tail -20").text for host in site.both))
        assert after[1]["accesses"] > before[1]["accesses"] and after[0]["accesses_done"] > before[0]["accesses_done"]
        assert after[1]["uncached"] > 0  # pages that stay at home, of the host that has asked
        waits, _ = page_waits(site.home, guest.domid())  # in vain only where an emulator takes a second for a page
        assert waits > waited[0], "no packet of that CPU has waited for its page"
        detach(site, guest, shape)
        assert guest.online_cpus() == (HOME_CPU,)
        assert complaints(checked(inside, "dmesg", 300)) == []
    left_nothing(site.both)
