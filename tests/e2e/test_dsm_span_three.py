# SPDX-License-Identifier: GPL-2.0
"""One Linux on three hosts by xl alone: memory and CPUs of two others, which come and go in any order.

As test_dsm_span.py, with one host more. What is new is what the two others have to do with each other (decision 0123): a CPU
of one uses the memory of the other, and when they lose each other the guest ends with a reason that names both.
"""

from __future__ import annotations

import dataclasses
import functools
import json
import re
import shlex
from collections.abc import Iterator
from typing import Any

import pytest

from lab.command import checked, run_in
from lab.complaints import complaints
from lab.guest import Guest
from lab.host import Host
from lab.patience import wait_for
from tests.e2e.dsm_hosts import slices
from tests.e2e.far_faults import state
from tests.e2e.far_guest import DsmSite, far_guest, left_nothing, said
from tests.e2e.test_dsm_span import (
    EXTRA,
    LIMITS,
    PATIENCE,
    SUM,
    WAIT,
    SpanShape,
    done_well,
    shape_for,
    slow_site,
)

pytestmark = pytest.mark.fresh

NODES = (1, 2)  # of the second and the third host; node N has CPU N
CONFIG = """
name = "far"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "{extra}"
memory = {home}
maxvcpus = 3
vnuma = [
    [ "pnode=0", "size={home}", "vcpus=0", "vdistances=10,21,21" ],
    [ "host={second}", "size={node}", "vcpus=1", "vdistances=21,10,21", "elastic=1", "remote_vcpus=1" ],
    [ "host={third}", "size={node}", "vcpus=2", "vdistances=21,21,10", "elastic=1"{remote} ],
]
vif = [ "mac=00:16:3e:4d:00:45,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


@dataclasses.dataclass(frozen=True)
class ThreeShape(SpanShape):
    """`third`: the host of node 2; `lends`: it has no CPU of the guest."""

    third: str = ""
    lends: bool = False

    def xl_cfg(self, other: str) -> str:
        cpus = "1" if self.lends else "1-2"
        return CONFIG.format(
            extra=EXTRA.format(lpj=self.lpj).replace("managed_irq,1", f"managed_irq,{cpus}"),
            home=self.home_mib,
            node=self.node_mib,
            second=other,
            third=self.third,
            remote="" if self.lends else ', "remote_vcpus=1"',
        )


def names(site: DsmSite) -> list[str]:
    return [host.description.name for host in site.hosts]


def shape(site: DsmSite, lends: bool = False) -> ThreeShape:
    return ThreeShape(lpj=shape_for(site.home).lpj, third=names(site)[2], lends=lends)


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[DsmSite]:
    with slow_site(tmp_path_factory.mktemp("dsm"), "three-hosts") as made:
        yield made


def attach(site: DsmSite, guest: Guest, node: int, remote: bool = True) -> None:
    done_well(site, guest.attach(node, WAIT, timeout=PATIENCE), f" MiB on host {names(site)[node]}, CPUs {node}")
    found = guest.listed()[node]["host"]
    print(found)
    assert found["link"] == "up" and (found.get("cpus") or []) == ([node] if remote else []), found


def detach(site: DsmSite, guest: Guest, node: int) -> None:
    done_well(site, guest.detach(node, WAIT, timeout=PATIENCE), "offline")
    assert guest.vnode(node).state == "offline", guest.vnode(node).keys
    assert slices(site.hosts[node]) == []


def peers(host: Host) -> list[str]:
    """Hosts with which the guest's dsmd is connected there."""
    found: list[dict[str, Any]] = json.loads(checked(run_in(host), "dsmctl -j status far"))
    return sorted(name for name, peer in found[0]["peers"].items() if peer["up"])


def summed(guest: Guest, cpu: int, node: int) -> str:
    """A program's checksum, by a CPU with memory of a node."""
    words = f"numactl --physcpubind={cpu} --membind={node} sh -c {shlex.quote(SUM)}"
    return checked(run_in(guest), words, PATIENCE)


@pytest.mark.parametrize("last", [1, 2])
def test_cpus_of_two_hosts(site: DsmSite, last: int) -> None:
    """Each CPU has the checksum of home with each node's memory; one host goes, the other one works on."""
    alpha, beta, gamma = names(site)
    with far_guest(site.hosts, beta, shape(site), 900.0) as guest:
        inside = run_in(guest)
        checked(inside, "echo 1 >/sys/devices/virtual/workqueue/cpumask")
        at_home = summed(guest, 0, 0)
        assert re.match(r"[0-9a-f]{32} ", at_home)
        for node in NODES:
            attach(site, guest, node)
        assert guest.online_cpus() == (0, 1, 2)
        assert [peers(host) for host in site.hosts] == [[beta, gamma], [alpha, gamma], [alpha, beta]]
        for cpu, node in ((1, 1), (1, 2), (2, 1), (2, 2), (0, 2)):
            assert summed(guest, cpu, node) == at_home, (cpu, node)
        detach(site, guest, 3 - last)
        assert guest.online_cpus() == (0, last)
        assert peers(site.home) == [names(site)[last]] and peers(site.hosts[last]) == [alpha]
        assert summed(guest, last, last) == at_home
        detach(site, guest, last)
        assert guest.online_cpus() == (0,)
        assert complaints(checked(inside, "dmesg", 300)) == []
    left_nothing(site.hosts)


def wire_of(site: DsmSite, host: Host) -> str:
    wire = site.rack.description.wire(host.description.name)
    assert wire
    return wire.address()


def test_the_link_of_the_two_others(site: DsmSite) -> None:
    """The third host only lends memory, which a CPU of the second uses; then they do not hear each other any more."""
    _, beta, gamma = names(site)
    assert site.third
    with far_guest(site.hosts, beta, shape(site, lends=True), 900.0) as guest:
        checked(run_in(guest), "echo 1 >/sys/devices/virtual/workqueue/cpumask")
        attach(site, guest, 2, remote=False)
        attach(site, guest, 1)
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
    left_nothing(site.hosts)


def test_a_host_is_lost(site: DsmSite) -> None:
    """With its CPU and its memory: the guest ends, here and at the third host, and `xl destroy` is all that is to be done."""
    assert site.third
    with far_guest(site.hosts, names(site)[1], shape(site), 900.0) as guest:
        for node in NODES:
            attach(site, guest, node)
        checked(run_in(site.other), "pkill -9 -x dsmd")
        wait_for("it has failed", 300, functools.partial(has_failed, site))
        assert names(site)[1] in state(site.home), state(site.home)
    left_nothing(site.hosts)


def has_failed(site: DsmSite) -> bool:
    return "failed: " in state(site.home)
