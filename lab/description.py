# SPDX-License-Identifier: GPL-2.0
"""What a rack is made of: hosts, their NUMA nodes, CPUs, memory and distances. Pure data, checked when it is made.

From Python: RackDescription("mine", (HostDescription("a", (Node(2, 2048), Node(2, 2048))),))
From a file: RackDescription.load("one-host") or .load(Path("my.toml")); lab/racks/one-host.toml shows the format.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from lab.errors import LabError

RACKS = Path(__file__).parent / "racks"

NAME = re.compile(r"[a-z][a-z0-9-]{0,30}")

# ACPI 6.5, 5.2.17 (SLIT): 10 is local, 255 unreachable; what differs must be larger than local.
LOCAL_DISTANCE = 10
REMOTE_DISTANCE = 21
MAX_DISTANCE = 254

MAX_HOSTS = 16
MAX_NODES = 8
MAX_CPUS = 64

# The network between hosts: its addresses, and what Linux takes as the MTU of a virtio card.
NETWORK_PREFIX = "10.78.0."
MIN_MTU, MAX_MTU = 1280, 65535

# Xen's own heap, its frame table and dom0's kernel: what node memory must hold beside dom0_mem.
XEN_RESERVE_MIB = 256


class DescriptionError(LabError):
    """A rack that cannot be: the message names the key and the value."""


@dataclass(frozen=True)
class Node:
    """One NUMA node of an emulated machine: how many CPUs, memory in MiB.

    A host's nodes have 1 to 64 CPUs and a multiple of 128 MiB, at least 256; other machines may have nodes without either.
    """

    cpus: int
    memory_mib: int


@dataclass(frozen=True)
class Dom0:
    """The control domain: memory in MiB, virtual CPUs, and the one physical node that both come from."""

    memory_mib: int = 1024
    vcpus: int = 2
    node: int = 0


@dataclass(frozen=True)
class HostDescription:
    """One machine. `distances` is the SLIT, row by row; empty: 10 on the diagonal and 21 elsewhere."""

    name: str
    nodes: tuple[Node, ...]
    distances: tuple[tuple[int, ...], ...] = ()
    dom0: Dom0 = field(default_factory=Dom0)
    xen_arguments: str = ""
    dom0_arguments: str = ""

    def __post_init__(self) -> None:
        where = f"host {self.name!r}"
        _require(
            bool(NAME.fullmatch(self.name)), f"host name {self.name!r}: want a-z, 0-9, '-', at most 31, a letter first"
        )
        count = len(self.nodes)
        _require(1 <= count <= MAX_NODES, f"{where}: {count} nodes; want 1 to {MAX_NODES}")
        for index, node in enumerate(self.nodes):
            _require(1 <= node.cpus <= MAX_CPUS, f"{where}: node {index}: cpus = {node.cpus}; want 1 to {MAX_CPUS}")
            _require(
                node.memory_mib >= 256 and node.memory_mib % 128 == 0,
                f"{where}: node {index}: memory_mib = {node.memory_mib}; want a multiple of 128, at least 256",
            )
        _require(self.cpus <= MAX_CPUS, f"{where}: {self.cpus} CPUs in all; want at most {MAX_CPUS}")
        if not self.distances:
            rows = tuple(
                tuple(LOCAL_DISTANCE if i == j else REMOTE_DISTANCE for j in range(count)) for i in range(count)
            )
            object.__setattr__(self, "distances", rows)
        self._check_distances(where)
        self._check_dom0(where)

    def _check_distances(self, where: str) -> None:
        count = len(self.nodes)
        shape = [len(row) for row in self.distances]
        _require(
            shape == [count] * count, f"{where}: distances has rows of {shape} entries; want {count} rows of {count}"
        )
        for i, row in enumerate(self.distances):
            for j, value in enumerate(row):
                entry = f"{where}: distances[{i}][{j}] = {value}"
                if i == j:
                    _require(value == LOCAL_DISTANCE, f"{entry}; a node's distance to itself is {LOCAL_DISTANCE}")
                else:
                    _require(LOCAL_DISTANCE < value <= MAX_DISTANCE, f"{entry}; want 11 to {MAX_DISTANCE}")

    def _check_dom0(self, where: str) -> None:
        dom0 = self.dom0
        _require(
            0 <= dom0.node < len(self.nodes), f"{where}: dom0.node = {dom0.node}; the host has {len(self.nodes)} nodes"
        )
        node = self.nodes[dom0.node]
        _require(1 <= dom0.vcpus <= self.cpus, f"{where}: dom0.vcpus = {dom0.vcpus}; want 1 to {self.cpus}")
        limit = node.memory_mib - XEN_RESERVE_MIB
        _require(
            256 <= dom0.memory_mib <= limit,
            f"{where}: dom0.memory_mib = {dom0.memory_mib}; want 256 to {limit} "
            f"(node {dom0.node} has {node.memory_mib}, Xen needs {XEN_RESERVE_MIB})",
        )

    @property
    def cpus(self) -> int:
        """CPUs of all nodes."""
        return sum(node.cpus for node in self.nodes)

    @property
    def memory_mib(self) -> int:
        """Memory of all nodes, MiB."""
        return sum(node.memory_mib for node in self.nodes)

    def cpus_of(self, node: int) -> range:
        """Numbers of the CPUs of a node: nodes own consecutive CPUs, in order."""
        first = sum(other.cpus for other in self.nodes[:node])
        return range(first, first + self.nodes[node].cpus)

    def node_of_cpu(self) -> list[int]:
        """Node of each CPU, by CPU number."""
        return [index for index, node in enumerate(self.nodes) for _ in range(node.cpus)]


@dataclass(frozen=True)
class Network:
    """The network between the hosts of a rack, to which a second card of each is connected (lab/network.py)."""

    mtu: int = 9000

    def __post_init__(self) -> None:
        _require(MIN_MTU <= self.mtu <= MAX_MTU, f"network: mtu = {self.mtu}; want {MIN_MTU} to {MAX_MTU}")


@dataclass(frozen=True)
class Wire:
    """What a host has of that network: the number of the host, counted from 1, and the names of all, in order."""

    number: int
    hosts: tuple[str, ...]
    mtu: int

    @property
    def mac(self) -> str:
        """Of the host's second card."""
        return f"52:54:00:78:00:{self.number:02x}"

    def address(self, number: int | None = None) -> str:
        """IPv4 address there of this host, or of the one with that number."""
        return f"{NETWORK_PREFIX}{number or self.number}"


@dataclass(frozen=True)
class RackDescription:
    """Some hosts under one name, which also names the rack's state and log directories; a network, if they have one."""

    name: str
    hosts: tuple[HostDescription, ...]
    network: Network | None = None

    def __post_init__(self) -> None:
        _require(
            bool(NAME.fullmatch(self.name)), f"rack name {self.name!r}: want a-z, 0-9, '-', at most 31, a letter first"
        )
        _require(bool(self.hosts), f"rack {self.name!r} has no hosts")
        _require(len(self.hosts) <= MAX_HOSTS, f"rack {self.name!r}: {len(self.hosts)} hosts; want at most {MAX_HOSTS}")
        names = [host.name for host in self.hosts]
        _require(len(set(names)) == len(names), f"rack {self.name!r}: host names are not unique: {', '.join(names)}")

    def host(self, name: str) -> HostDescription:
        """The host of that name; DescriptionError names those there are."""
        for host in self.hosts:
            if host.name == name:
                return host
        raise DescriptionError(
            f"rack {self.name!r} has no host {name!r}; it has: {', '.join(h.name for h in self.hosts)}"
        )

    def wire(self, name: str) -> Wire | None:
        """What the host of that name has of the network, if the rack has one."""
        names = tuple(host.name for host in self.hosts)
        return Wire(names.index(name) + 1, names, self.network.mtu) if self.network else None

    @staticmethod
    def load(source: str | Path) -> RackDescription:
        """Read a rack from a file, or by its name from lab/racks/. Raises DescriptionError.

        "one-host@2" is one-host by another name, "one-host-2": racks of one description can run side by side.
        """
        if isinstance(source, str) and "@" in source:
            original, _, tag = source.rpartition("@")
            described = RackDescription.load(original)
            return replace(described, name=f"{described.name}-{tag}")
        path = source if isinstance(source, Path) else RACKS / f"{source}.toml"
        if isinstance(source, str) and (source.endswith(".toml") or "/" in source):
            path = Path(source)
        try:
            table = tomllib.loads(path.read_text())
        except FileNotFoundError:
            raise DescriptionError(
                f"{source}: no such rack; lab/racks has: {', '.join(known_racks())}; a file of one's own is named with .toml"
            ) from None
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            raise DescriptionError(f"{path}: {error}") from error
        try:
            return RackDescription.parse(table)
        except DescriptionError as error:
            raise DescriptionError(f"{path}: {error}") from None

    @staticmethod
    def parse(table: Mapping[str, Any]) -> RackDescription:
        """Make a rack of a TOML table; an unknown key is an error that names it."""
        keys = _Keys(table, "rack")
        name = keys.take("name", str)
        hosts = tuple(_parse_host(host, f"host[{index}]") for index, host in enumerate(keys.take_tables("host")))
        network = _parse_network(keys.take("network", dict)) if "network" in table else None
        keys.finish()
        return RackDescription(name, hosts, network)


def known_racks() -> list[str]:
    """The racks of lab/racks, by name."""
    return sorted(path.stem for path in RACKS.glob("*.toml"))


def _parse_network(table: Mapping[str, Any]) -> Network:
    keys = _Keys(table, "network")
    network = Network(keys.take("mtu", int, Network().mtu))
    keys.finish()
    return network


def _parse_host(table: Mapping[str, Any], where: str) -> HostDescription:
    keys = _Keys(table, where)
    nodes = []
    for index, entry in enumerate(keys.take_tables("node")):
        node = _Keys(entry, f"{where}.node[{index}]")
        nodes.append(Node(node.take("cpus", int), node.take("memory_mib", int)))
        node.finish()
    default = Dom0()
    dom0 = _Keys(keys.take("dom0", dict, {}), f"{where}.dom0")
    control = Dom0(
        dom0.take("memory_mib", int, default.memory_mib),
        dom0.take("vcpus", int, default.vcpus),
        dom0.take("node", int, default.node),
    )
    dom0.finish()
    rows = keys.take("distances", list, [])
    for row in rows:
        valid = isinstance(row, list) and all(type(value) is int for value in row)
        _require(valid, f"{where}: distances: {row!r}; want rows of whole numbers")
    host = HostDescription(
        keys.take("name", str),
        tuple(nodes),
        tuple(tuple(row) for row in rows),
        control,
        keys.take("xen_arguments", str, ""),
        keys.take("dom0_arguments", str, ""),
    )
    keys.finish()
    return host


class _Keys:
    """Takes keys out of a table, with their types checked; finish() refuses what is left."""

    def __init__(self, table: Mapping[str, Any], where: str) -> None:
        self._left = dict(table)
        self._where = where

    def take[T](self, key: str, kind: type[T], default: T | None = None) -> T:
        value = self._left.pop(key, default)
        _require(value is not None, f"{self._where}: key {key!r} is missing")
        _require(type(value) is kind, f"{self._where}: {key} = {value!r}; want {kind.__name__}")
        assert isinstance(value, kind)
        return value

    def take_tables(self, key: str) -> list[Mapping[str, Any]]:
        tables = self.take(key, list)
        for table in tables:
            _require(isinstance(table, dict), f"{self._where}: {key} = {table!r}; want [[{key}]] tables")
        return tables

    def finish(self) -> None:
        _require(
            not self._left, f"{self._where}: unknown key{'s' * (len(self._left) > 1)}: {', '.join(sorted(self._left))}"
        )


def _require(condition: bool, message: str) -> None:
    if not condition:
        raise DescriptionError(message)
