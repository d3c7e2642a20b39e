# SPDX-License-Identifier: GPL-2.0
"""Two hosts and the network between them: it carries what they send, and what is done to a cable happens to it.

Then dsmd's transport between them, over TCP and over Soft-RoCE, by a program that plays both ends (tests/unit/dsmd/peer.c).
"""

from __future__ import annotations

import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

import pytest

from lab.command import Done
from lab.description import RackDescription
from lab.host import Host
from lab.network import Cable, Switch
from lab.patience import scaled
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from tests.unit.dsmd.test_dsmd import DSM, HERE, INCLUDED, PARTS

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


# --- dsmd's transport ---------------------------------------------------------------------------------------------------

PEER = "/root/peer"
PORT = "4791"
MESSAGES = 3000
DEADLINE_S = 10
TRANSPORTS = ("tcp", "rdma")


def built(folder: Path) -> Path:
    """The program for dom0, without the sanitizers, whose libraries are not there; and the papers of both hosts."""
    sources = [HERE / "peer.c", HERE / "papers.c", *PARTS]
    flags = ["-std=c11", "-O2", "-g", "-D_GNU_SOURCE", *(f"-I{place}" for place in (*INCLUDED, DSM / "core"))]
    libraries = ["-lev", "-lrdmacm", "-libverbs", "-lssl", "-lcrypto"]
    subprocess.run(["gcc", *flags, *map(str, sources), "-o", str(folder / "peer"), *libraries], check=True)
    subprocess.run([str(folder / "peer"), "papers", str(folder)], check=True)
    return folder


@pytest.fixture(scope="module")
def with_peers(pair_of_hosts: Rack, tmp_path_factory: pytest.TempPathFactory) -> Rack:
    """Both hosts have the program, their papers, and a Soft-RoCE device over the network between them."""
    folder = built(tmp_path_factory.mktemp("peer"))
    for host in pair_of_hosts.hosts:
        host.put(folder, PEER)
        host.run("rdma link add rxe0 type rxe netdev eth1", check=True)
        assert "state ACTIVE" in host.run("rdma link show rxe0/1", check=True).out
    return pair_of_hosts


class Pair:
    """Both programs: that of the first host waits for the other one's."""

    def __init__(self, rack: Rack, transport: str, word: str = "run", messages: int = MESSAGES) -> None:
        self.rack, self.words = rack, (word, PEER, transport)
        self.messages = messages
        self.said: list[list[str]] = [[], []]
        self.settled = [threading.Event(), threading.Event()]
        self._pool = ThreadPoolExecutor(2)
        listening = threading.Event()
        self.ends: list[Future[Done]] = [self._start(0, "listening", listening.set)]
        assert listening.wait(scaled(60)), self.said
        self.ends.append(self._start(1, "", lambda: None))

    def _start(self, number: int, awaited: str, tell: Callable[[], None]) -> Future[Done]:
        wires = [self.rack.description.wire(host.description.name) for host in self.rack.hosts]
        own, other = (wire.address() for wire in (wires[::-1] if number else wires) if wire)
        word, folder, transport = self.words
        words = (word, folder, transport, number, own, other, PORT, self.messages)
        command = f"DEADLINE_MS={DEADLINE_S * 1000} {PEER}/peer {' '.join(map(str, words))} 2>&1"

        def heard(line: str) -> None:
            self.said[number].append(line.strip())
            if line.strip() == awaited:
                tell()
            if " in order" in line:
                self.settled[number].set()

        return self._pool.submit(self.rack.hosts[number].run, command, scaled(300), on_line=heard)

    def wait_settled(self) -> None:
        """All messages of both have arrived."""
        for each in self.settled:
            assert each.wait(scaled(200)), self.said

    def wait(self) -> list[str]:
        """How each says that it has ended; each is content with it."""
        codes = [end.result().status for end in self.ends]
        self._pool.shutdown()
        assert codes == [0, 0], self.said
        return [line.removeprefix("end: ").split(",")[0] for said in self.said for line in said if line.startswith("end: ")]

    def round_trip_us(self) -> float:
        """The median that the opener has measured."""
        found = re.search(r"round trip: median ([0-9.]+) us", "\n".join(self.said[1]))
        assert found, self.said
        return float(found[1])


def frames_of_rdma(host: Host) -> int:
    """Frames that its Soft-RoCE device has sent."""
    found = re.search(r"sent_pkts (\d+)", host.run("rdma statistic show link rxe0/1", check=True).out)
    assert found
    return int(found[1])


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_messages_arrive_in_order(
    with_peers: Rack,
    hosts: tuple[Host, Host, Switch],
    transport: str,
    record_property: Callable[[str, object], None],
) -> None:
    before = [frames_of_rdma(host) for host in hosts[:2]]
    pair = Pair(with_peers, transport)
    assert pair.wait() == ["closed", "closed"], pair.said
    for said in pair.said:
        assert f"received {MESSAGES} messages in order" in said
    sent = [frames_of_rdma(host) - old for host, old in zip(hosts[:2], before, strict=True)]
    # By which way: each message is a frame of RDMA at least, or none is one.
    assert all((count >= MESSAGES) if transport == "rdma" else count == 0 for count in sent), sent
    record_property("round_trip_us", pair.round_trip_us())


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_round_trip_takes_as_long_as_the_cable(
    with_peers: Rack, hosts: tuple[Host, Host, Switch], transport: str
) -> None:
    hosts[2].plug("beta", Cable(delay_s=0.02))
    pair = Pair(with_peers, transport, messages=100)
    assert pair.wait() == ["closed", "closed"], pair.said
    assert pair.round_trip_us() >= 2 * 20_000


@pytest.mark.parametrize("transport", TRANSPORTS)
def test_a_host_that_is_cut_off_is_silent(
    with_peers: Rack, hosts: tuple[Host, Host, Switch], transport: str
) -> None:
    """Both notice it, by the question that is not answered, and not much later."""
    pair = Pair(with_peers, transport, "stay", messages=100)
    pair.wait_settled()
    hosts[2].plug("beta", Cable(up=False))
    begun = time.monotonic()
    assert pair.wait() == ["silent", "silent"], pair.said
    assert DEADLINE_S - 1 <= time.monotonic() - begun <= scaled(3 * DEADLINE_S)


def test_tcp_does_not_mind_a_cable_that_loses(with_peers: Rack, hosts: tuple[Host, Host, Switch]) -> None:
    hosts[2].plug("beta", Cable(lost=0.01))
    pair = Pair(with_peers, "tcp")
    assert pair.wait() == ["closed", "closed"], pair.said
    assert hosts[2].counts("beta").lost > 0
