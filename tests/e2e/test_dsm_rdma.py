# SPDX-License-Identifier: GPL-2.0
"""A guest with `host=` whose pages go over RDMA: Soft-RoCE on the network cards that users without RDMA hardware have."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from lab.command import checked, run_in, write_file
from lab.complaints import complaints
from lab.far_guest import DsmSite, far_guest, left_nothing, said, slices, status
from lab.guest import Guest
from lab.host import Host
from lab.spanning import CONFIGURATION
from tests.e2e.dsm_hosts import Memcheck
from tests.e2e.far_faults import (
    CABLE_REPAIRED,
    CHECKED_MIB,
    CUT_TOO_LONG,
    DAMAGED,
    DSMD_DIES_THERE,
    LIMITS,
    PAUSED_BY_XEN,
    SHAPE,
    Deadly,
    is_ended,
    is_well,
    plain_guest,
    survives,
)
from tests.e2e.far_guest import ASKED_MOST, dsm_site

pytestmark = pytest.mark.fresh


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    """Two hosts with a dsmd-host each."""
    with dsm_site(tmp_path_factory.mktemp("rdma"), LIMITS, "rdma") as made:
        yield made
    assert not made.rack.wrong_ends


@pytest.fixture(scope="module")
def plain(site: DsmSite) -> Iterator[Guest]:
    with plain_guest(site) as guest:
        yield guest


def connected(host: Host) -> int:
    """Queue pairs that can send and receive."""
    return checked(run_in(host), "rdma resource show qp").count("type RC state RTS")


def test_a_node_over_rdma(site: DsmSite, plain: Guest) -> None:
    with far_guest(site.both, site.other.description.name, SHAPE) as guest:
        attached = guest.attach(1, timeout=ASKED_MOST)
        assert attached.status == 0, attached.text + said(site.both)
        assert [connected(host) for host in site.both] == [1, 1]
        memory = Memcheck(guest, 1, CHECKED_MIB)
        for fault in (DAMAGED, CABLE_REPAIRED, PAUSED_BY_XEN):
            survives(site, guest, fault)
        print("memcheck:", memory.end(), guest.listed()[1]["host"])
        peer = status(site.home)["peers"][site.other.description.name]
        print(peer)
        assert peer["received_pages"] > CHECKED_MIB * 256 // 2, peer
        print(checked(run_in(site.home), "dsmctl peers far"))
        detached = guest.detach(1, timeout=ASKED_MOST)
        assert detached.status == 0, detached.text + said(site.both)
        assert slices(site.other) == []
        assert complaints(checked(run_in(guest), "dmesg")) == []
    left_nothing(site.both)
    assert [connected(host) for host in site.both] == [0, 0]
    is_well(plain)


@pytest.mark.parametrize("fault", [DSMD_DIES_THERE, CUT_TOO_LONG], ids=str)
def test_a_guest_that_loses_a_host_of_rdma(site: DsmSite, plain: Guest, fault: Deadly) -> None:
    """It is ended, with the reason, and destroyed."""
    is_ended(site, plain, fault)
    assert [connected(host) for host in site.both] == [0, 0]


def test_a_fabric_that_nobody_trusts(site: DsmSite) -> None:
    """Plain RDMA is neither secret nor safe: not without the word of who runs the hosts."""
    dom0 = run_in(site.home)
    text = checked(dom0, f"cat {CONFIGURATION}")
    for wrong in (
        text.replace("trusted_fabric = true\n", ""),
        text.replace("trusted_fabric = true", "trusted_fabric = false"),
    ):
        assert wrong != text
        write_file(dom0, "/tmp/wrong.toml", wrong)
        done = dom0("dsmd-host --check --config /tmp/wrong.toml")
        assert done.status != 0 and "trusted_fabric" in done.text, done.text
