# SPDX-License-Identifier: GPL-2.0
"""Two hosts and the network between them: it carries what they send, and what is done to a cable happens to it."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from lab.description import RackDescription
from lab.host import Host
from lab.network import Cable, Switch
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack

pytestmark = pytest.mark.fresh

# The first words of the other host's ssh server.
GREETING = "exec 3<>/dev/tcp/{}/22 && head -c 4 <&3"
DELAY_S = 1.0


@pytest.fixture(scope="module")
def pair_of_hosts() -> Iterator[Rack]:
    with Rack.boot(RackDescription.load("two-hosts"), meter=False) as booted:
        yield show_consoles_of(booted)
    assert not booted.wrong_ends


@pytest.fixture
def hosts(pair_of_hosts: Rack) -> Iterator[tuple[Host, Host, Switch]]:
    """Both, and what is between them, with cables that are as they should be."""
    alpha, beta = pair_of_hosts.hosts
    assert pair_of_hosts.network
    yield alpha, beta, pair_of_hosts.network
    for host in (alpha, beta):
        pair_of_hosts.network.plug(host.description.name, Cable())


def greeting(source: Host, target: Host, patience_s: float = 20) -> str:
    """What the other one's ssh server says first; "" if nothing within that time."""
    command = GREETING.format(target.description.name)
    return source.run(["timeout", str(patience_s), "bash", "-c", command], timeout=patience_s + 30).out


def test_each_reaches_the_other_by_its_name(hosts: tuple[Host, Host, Switch]) -> None:
    alpha, beta, network = hosts
    for source, target in ((alpha, beta), (beta, alpha)):
        before = network.counts(target.description.name).delivered
        assert greeting(source, target) == "SSH-"
        assert network.counts(target.description.name).delivered > before


def test_the_cards_have_the_mtu_of_the_description(hosts: tuple[Host, Host, Switch]) -> None:
    for host in hosts[:2]:
        assert host.run(["cat", "/sys/class/net/eth1/mtu"], check=True).out.strip() == "9000"


def test_a_cable_is_pulled_and_plugged_in_again(hosts: tuple[Host, Host, Switch]) -> None:
    alpha, beta, network = hosts
    network.plug("beta", Cable(up=False))
    assert greeting(alpha, beta, 5) == ""
    assert network.counts("beta").lost > 0
    network.plug("beta", Cable())
    assert greeting(alpha, beta) == "SSH-"


def test_a_cable_delays(hosts: tuple[Host, Host, Switch]) -> None:
    """There and back for the connection, there and back for the answer."""
    alpha, beta, network = hosts
    assert greeting(alpha, beta) == "SSH-"  # each knows where the other is
    network.plug("beta", Cable(delay_s=DELAY_S))
    begun = time.monotonic()
    assert greeting(alpha, beta, 60) == "SSH-"
    assert time.monotonic() - begun >= 3 * DELAY_S
