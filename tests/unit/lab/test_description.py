# SPDX-License-Identifier: GPL-2.0
"""Which racks can be described, and what is said about those that cannot."""

from __future__ import annotations

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from lab import cli
from lab.description import RACKS, DescriptionError, Dom0, HostDescription, Node, RackDescription

TWO = (Node(2, 2048), Node(2, 2048))

GOOD: dict[str, Any] = {
    "name": "one",
    "host": [{"name": "alpha", "node": [{"cpus": 2, "memory_mib": 2048}, {"cpus": 1, "memory_mib": 1024}]}],
}


def changed(**host: Any) -> dict[str, Any]:
    table = copy.deepcopy(GOOD)
    table["host"][0].update(host)
    return table


def node(**values: Any) -> dict[str, Any]:
    return changed(node=[{"cpus": 2, "memory_mib": 2048} | values])


BAD = {
    "no name": ({"host": GOOD["host"]}, "key 'name' is missing"),
    "no hosts": ({"name": "one", "host": []}, "has no hosts"),
    "unknown key": (GOOD | {"colour": 1}, "unknown key: colour"),
    "unknown host key": (changed(gpu=1), r"host\[0\]: unknown key: gpu"),
    "rack name": (GOOD | {"name": "One!"}, "rack name 'One!'"),
    "host name": (changed(name="../x"), r"host name '\.\./x'"),
    "hosts of one name": (GOOD | {"host": GOOD["host"] * 2}, "not unique: alpha, alpha"),
    "no nodes": (changed(node=[]), "0 nodes; want 1 to 8"),
    "nine nodes": (changed(node=[{"cpus": 1, "memory_mib": 2048}] * 9), "9 nodes; want 1 to 8"),
    "node without CPU": (node(cpus=0), "node 0: cpus = 0"),
    "CPUs as text": (node(cpus="2"), "cpus = '2'; want int"),
    "CPUs as truth": (node(cpus=True), "cpus = True; want int"),
    "too many CPUs": (changed(node=[{"cpus": 40, "memory_mib": 2048}] * 2), "80 CPUs in all; want at most 64"),
    "odd memory": (node(memory_mib=2049), "memory_mib = 2049; want a multiple of 128"),
    "too little memory": (node(memory_mib=128), "memory_mib = 128"),
    "memory missing": (changed(node=[{"cpus": 1}]), r"host\[0\].node\[0\]: key 'memory_mib' is missing"),
    "distances of another size": (changed(distances=[[10]]), r"rows of \[1\] entries; want 2 rows of 2"),
    "distance to itself": (changed(distances=[[11, 20], [20, 10]]), r"distances\[0\]\[0\] = 11"),
    "distance not larger": (changed(distances=[[10, 10], [20, 10]]), r"distances\[0\]\[1\] = 10; want 11 to 254"),
    "distance as text": (changed(distances=[[10, "x"], [20, 10]]), "want rows of whole numbers"),
    "dom0 on no node": (changed(dom0={"node": 2}), "dom0.node = 2; the host has 2 nodes"),
    "dom0 larger than its node": (changed(dom0={"memory_mib": 2048}), r"dom0.memory_mib = 2048; want 256 to 1792"),
    "dom0 without CPU": (changed(dom0={"vcpus": 0}), "dom0.vcpus = 0"),
    "unknown dom0 key": (changed(dom0={"cpus": 1}), "host\\[0\\].dom0: unknown key: cpus"),
}


@pytest.mark.parametrize("case", BAD)
def test_says_what_is_wrong(case: str) -> None:
    table, message = BAD[case]
    with pytest.raises(DescriptionError, match=message):
        RackDescription.parse(table)


def test_defaults() -> None:
    host = RackDescription.parse(GOOD).hosts[0]
    assert host.distances == ((10, 21), (21, 10))
    assert host.dom0 == Dom0(1024, 2, 0)


def test_cpus_are_numbered_node_by_node() -> None:
    host = HostDescription("a", (Node(2, 2048), Node(1, 512), Node(3, 512)))
    assert [list(host.cpus_of(index)) for index in range(3)] == [[0, 1], [2], [3, 4, 5]]
    assert host.node_of_cpu() == [0, 0, 1, 2, 2, 2]
    assert (host.cpus, host.memory_mib) == (6, 3072)


@pytest.mark.parametrize("name", sorted(path.stem for path in RACKS.glob("*.toml")))
def test_racks_of_the_project_load(name: str) -> None:
    assert RackDescription.load(name).name == name


def test_a_copy_of_a_rack_has_a_name_of_its_own(tmp_path: Path) -> None:
    """And nothing else is different: racks of one description can run side by side."""
    one, two = RackDescription.load("one-host"), RackDescription.load("one-host@2")
    assert (two.name, two.hosts) == ("one-host-2", one.hosts)
    path = tmp_path / "mine.toml"
    path.write_text((RACKS / "one-host.toml").read_text())
    assert RackDescription.load(f"{path}@b").name == "one-host-b"
    for wrong in ("one-host@A b", "one-host@A", "nonesuch@2"):
        with pytest.raises(DescriptionError):
            RackDescription.load(wrong)


@pytest.mark.parametrize("name", ["nonesuch", "README.md", "none/such.toml"])
def test_missing_rack_names_those_there_are(name: str) -> None:
    """By the word that was said."""
    with pytest.raises(DescriptionError, match=rf"^{name}: no such rack; lab/racks has: four-nodes, large-node, one-host"):
        RackDescription.load(name)


def test_who_boots_a_rack_that_there_is_not_hears_that_alone() -> None:
    ours, starter = os.pipe()
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lab.supervisor", "nonesuch"],
            cwd=RACKS.parents[1], stdin=ours, capture_output=True, text=True, check=False, timeout=60,
        )  # fmt: skip
    finally:
        os.close(ours)
        os.close(starter)
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith("rack: nonesuch: no such rack; ")


def test_each_command_of_the_lab_is_in_its_summary() -> None:
    named = str(cli.__doc__).partition(": ")[2].rstrip(".").split(", ")
    assert sorted(named) == sorted(getattr(command.callback, "__name__", "") for command in cli.app.registered_commands)


@pytest.mark.parametrize("content", [b"name = ", b"\xff\xfe"], ids=["not TOML", "not UTF-8"])
def test_unreadable_file_is_named(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(DescriptionError, match=r"bad\.toml: "):
        RackDescription.load(path)


def test_unknown_host_names_those_there_are() -> None:
    with pytest.raises(DescriptionError, match=r"no host 'beta'; it has: alpha"):
        RackDescription("r", (HostDescription("alpha", TWO),)).host("beta")


def test_the_network_of_a_rack() -> None:
    """Each host has a number, an address and a card of its own; without [network] there is nothing of it."""
    rack = RackDescription.load("three-hosts")
    wires = [rack.wire(host.name) for host in rack.hosts]
    assert [(wire.address(), wire.mac, wire.mtu, wire.hosts) for wire in wires if wire] == [
        (f"10.78.0.{n}", f"52:54:00:78:00:0{n}", 9000, ("alpha", "beta", "gamma")) for n in (1, 2, 3)
    ]
    assert RackDescription.load("one-host").wire("alpha") is None


@pytest.mark.parametrize(
    ("network", "words"),
    [
        ({"mtu": 1279}, "mtu = 1279; want 1280 to 65535"),
        ({"mtu": 65536}, "mtu = 65536; want 1280 to 65535"),
        ({"mtu": "9000"}, "mtu = '9000'; want int"),
        ({"speed": 1}, "network: unknown key: speed"),
        (9000, "network = 9000; want dict"),
    ],
)
def test_a_network_that_cannot_be(network: object, words: str) -> None:
    host = {"name": "a", "node": [{"cpus": 2, "memory_mib": 2048}]}
    with pytest.raises(DescriptionError, match=words):
        RackDescription.parse({"name": "r", "host": [host], "network": network})
