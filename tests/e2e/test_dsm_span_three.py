# SPDX-License-Identifier: GPL-2.0
"""One Linux on three hosts by xl alone: memory and CPUs of two others, which come and go in any order.

As test_dsm_span.py, with one host more. What is new is what the two others have to do with each other (decision 0123): a CPU
of one uses the memory of the other, and when they lose each other the guest ends with a reason that names both.
"""

from __future__ import annotations

import functools
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.far_guest import far_guest, left_nothing, said, state
from lab.guest import Guest
from lab.host import Host
from lab.patience import wait_for
from lab.span_guest import BOOT, LIMITS, PATIENCE, SlowSite, SpanShape, keep_work_at_home, measured
from tests.e2e.span_guest import attach, detach, slow_site
from tests.e2e.test_dsm_span import SUM

pytestmark = pytest.mark.fresh

NODES = (1, 2)  # of the second and the third host; node N has CPU N


def names(site: SlowSite) -> list[str]:
    return [host.description.name for host in site.hosts]


def shape_at(site: SlowSite, lenders: tuple[int, ...] = ()) -> SpanShape:
    return measured(site, SpanShape(also=(names(site)[2],), lenders=lenders))


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SlowSite]:
    with slow_site(tmp_path_factory.mktemp("dsm"), "three-hosts") as made:
        yield made


def peers(host: Host) -> list[str]:
    """Hosts with which the guest's dsmd is connected there."""
    found: list[dict[str, Any]] = json.loads(checked(run_in(host), "dsmctl -j status far"))
    return sorted(name for name, peer in found[0]["peers"].items() if peer["up"])


def summed(guest: Guest, cpu: int, node: int) -> str:
    """A program's checksum, by a CPU with memory of a node."""
    # numactl(8) itself binds to no CPU that is isolated.
    words = f"taskset -c {cpu} numactl --membind={node} sh -c {shlex.quote(SUM)}"
    return checked(run_in(guest), words, PATIENCE)


@pytest.mark.parametrize("last", [1, 2])
def test_cpus_of_two_hosts(site: SlowSite, last: int) -> None:
    """Each CPU has the checksum of home with each node's memory; one host goes, the other one works on."""
    alpha, beta, gamma = names(site)
    shape = shape_at(site)
    with far_guest(site.hosts, beta, shape, BOOT) as guest:
        inside = run_in(guest)
        keep_work_at_home(guest)
        at_home = summed(guest, 0, 0)
        assert re.match(r"[0-9a-f]{32} ", at_home)
        for node in NODES:
            attach(site, guest, shape, node)
        assert guest.online_cpus() == (0, 1, 2)
        assert [peers(host) for host in site.hosts] == [[beta, gamma], [alpha, gamma], [alpha, beta]]
        for cpu, node in ((1, 1), (1, 2), (2, 1), (2, 2), (0, 2)):
            assert summed(guest, cpu, node) == at_home, (cpu, node)
        detach(site, guest, shape, 3 - last)
        assert guest.online_cpus() == (0, last)
        assert peers(site.home) == [names(site)[last]] and peers(site.hosts[last]) == [alpha]
        assert summed(guest, last, last) == at_home
        detach(site, guest, shape, last)
        assert guest.online_cpus() == (0,)
        assert complaints(checked(inside, "dmesg", 300)) == []
    left_nothing(site.hosts)


def wire_of(site: SlowSite, host: Host) -> str:
    wire = site.rack.description.wire(host.description.name)
    assert wire
    return wire.address()


def test_the_link_of_the_two_others(site: SlowSite) -> None:
    """The third host only lends memory, which a CPU of the second uses; then they do not hear each other any more."""
    _, beta, gamma = names(site)
    assert site.third
    shape = shape_at(site, lenders=(2,))
    with far_guest(site.hosts, beta, shape, BOOT) as guest:
        keep_work_at_home(guest)
        attach(site, guest, shape, 2)
        attach(site, guest, shape, 1)
        assert summed(guest, 1, 2) == summed(guest, 0, 0)
        away = f"blackhole {wire_of(site, site.third)}"
        checked(run_in(site.other), f"ip route add {away}")
        try:
            wait_for(
                "the guest has failed",
                LIMITS["deadline_ms"] / 1000 * 3,
                lambda: "failed: " in state(site.home),
            )
        finally:
            checked(run_in(site.other), f"ip route del {away}")
        why = state(site.home)
        print(why)
        assert beta in why and gamma in why, why
        assert f"it has lost host {gamma}" in why or f"it has lost host {beta}" in why, why + said(site.hosts)
        # Whoever is told of first: what was lost with the one that had a CPU, too.
        assert "vCPUs 1 ran there, " in why, why
    left_nothing(site.hosts)


def test_a_host_is_lost(site: SlowSite) -> None:
    """With its CPU and its memory: the guest ends, and after `xl destroy` neither host that is left has anything of it."""
    assert site.third
    shape = shape_at(site)
    with far_guest(site.hosts, names(site)[1], shape, BOOT) as guest:
        for node in NODES:
            attach(site, guest, shape, node)
        # Its CPU has pages of home then that nobody else has.
        checked(run_in(guest), f"taskset -c 1 sh -c {shlex.quote(SUM)}", PATIENCE)
        checked(run_in(site.other), "pkill -9 -x dsmd")
        wait_for("it has failed", 300, functools.partial(has_failed, site))
        why = state(site.home)
        print(why)
        # By itself, or by what the third one says first.
        alpha, beta, gamma = names(site)
        lost = r"vCPUs 1 ran there, [1-9]\d* pages of {alpha} were modified there; of its own \d+ pages \d+ are here"
        lost += r"; of {alpha}'s the first are gfns 0x"
        ways = (r"host {beta} is lost \(.*\): ", r"host {gamma} is lost \(.*it has lost host {beta}\): .*; host {beta}: ")
        assert any(re.search((way + lost).format(alpha=alpha, beta=beta, gamma=gamma), why) for way in ways), why
    left_nothing(site.hosts)


def has_failed(site: SlowSite) -> bool:
    return "failed: " in state(site.home)
