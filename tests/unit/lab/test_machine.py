# SPDX-License-Identifier: GPL-2.0
"""QEMU's command line, what is parsed of its answers, and configurations of guests."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from lab.artifacts import Artifacts
from lab.description import Dom0, HostDescription, Node, Wire
from lab.errors import LabError, MachineLostError
from lab.host import BROKEN, READY, config_name
from lab.qemu import MachinePaths, command_line, numa_arguments, parse_usernet, sockets, xen_arguments

HOST = HostDescription(
    "alpha", (Node(2, 2048), Node(1, 1024)), ((10, 16), (22, 10)), Dom0(512, 1, 0), "sched=null", "nosmp"
)
FILES = Artifacts(
    Path("/b/qemu"), Path("/b/xen.elf"), Path("/b/vmlinuz"), Path("/b/a,b/dom0.img"), Path("/b/meter.so"), Path("/b/id")
)
PATHS = MachinePaths(Path("/run/x"), Path("/logs"), "alpha")


def values(command: list[str], option: str) -> list[str]:
    return [value for name, value in pairwise(command) if name == option]


def test_numa_topology() -> None:
    command = command_line(HOST, FILES, PATHS, qmp=5, serial=6)
    assert values(command, "-m") == ["3072M"]
    assert values(command, "-smp") == ["3,sockets=3,cores=1,threads=1"]
    assert values(command, "-object") == [
        "memory-backend-ram,id=node0,size=2048M",
        "memory-backend-ram,id=node1,size=1024M",
    ]
    assert values(command, "-numa") == [
        "node,nodeid=0,cpus=0-1,memdev=node0",
        "node,nodeid=1,cpus=2-2,memdev=node1",
        "dist,src=0,dst=1,val=16",
        "dist,src=1,dst=0,val=22",
    ]


@pytest.mark.parametrize(
    ("cpus", "option"),
    [
        ((2,), "2,sockets=1,cores=2,threads=1"),
        ((2, 2), "4,sockets=2,cores=2,threads=1"),
        ((2, 0, 2), "4,sockets=2,cores=2,threads=1"),
        ((2, 1, 1, 1), "5,sockets=5,cores=1,threads=1"),
        ((4, 6), "10,sockets=5,cores=2,threads=1"),
    ],
)
def test_no_socket_has_cpus_of_two_nodes(cpus: tuple[int, ...], option: str) -> None:
    assert sockets([Node(each, 256) for each in cpus]) == option


def test_a_node_may_lack_memory_or_cpus() -> None:
    """The one after it has the next CPUs all the same; without distances there are none."""
    arguments = numa_arguments((Node(2, 256), Node(1, 0), Node(0, 128), Node(1, 192)), ())
    assert values(arguments, "-object") == [
        "memory-backend-ram,id=node0,size=256M",
        "memory-backend-ram,id=node2,size=128M",
        "memory-backend-ram,id=node3,size=192M",
    ]
    assert values(arguments, "-numa") == [
        "node,nodeid=0,cpus=0-1,memdev=node0",
        "node,nodeid=1,cpus=2-2",
        "node,nodeid=2,memdev=node2",
        "node,nodeid=3,cpus=3-3,memdev=node3",
    ]


def test_survives_tcg() -> None:
    """Traps of the emulator: MONITOR/MWAIT kill Xen's idle loop, SVM, nested paging and what makes it cheap must be there."""
    command = command_line(HOST, FILES, PATHS, qmp=5, serial=6)
    cpu = values(command, "-cpu")[0].split(",")
    assert {"-monitor", "+svm", "+npt", "+nrip-save", "+rogpt"} <= set(cpu)
    assert {"cpuidle=off", "spec-ctrl=eager-fpu"} <= set(xen_arguments(HOST).split())


def test_kernels_and_their_arguments() -> None:
    command = command_line(HOST, FILES, PATHS, qmp=5, serial=6)
    assert values(command, "-kernel") == ["/b/xen.elf"]
    assert "dom0_mem=512M,max:512M dom0_max_vcpus=1 dom0_nodes=0" in values(command, "-append")[0]
    assert values(command, "-append")[0].endswith("sched=null")
    (initrd,) = values(command, "-initrd")
    assert initrd.startswith("/b/vmlinuz console=hvc0 ")
    assert initrd.endswith("xenuma.host=alpha nosmp")


def test_commas_in_paths_are_doubled() -> None:
    assert "file=/b/a,,b/dom0.img," in values(command_line(HOST, FILES, PATHS, qmp=5, serial=6), "-drive")[0]


def test_disk_is_never_written() -> None:
    assert "snapshot=on" in values(command_line(HOST, FILES, PATHS, qmp=5, serial=6), "-drive")[0]


@pytest.mark.parametrize("meter", [True, False])
def test_meter_is_optional(meter: bool) -> None:
    plugins = values(command_line(HOST, FILES, PATHS, qmp=5, serial=6, meter=meter), "-plugin")
    assert plugins == ["/b/meter.so,control=/run/x/alpha.meter,counters=/run/x/alpha.counters"] * meter


def test_long_socket_path_is_refused_with_its_length() -> None:
    with pytest.raises(LabError, match=r"\d+ bytes; Unix sockets allow 107"):
        MachinePaths(Path("/" + "x" * 100), Path("/logs"), "alpha")


USERNET = """Hub -1 (net0):
  Protocol[State]    FD  Source Address  Port   Dest. Address  Port RecvQ SendQ
  TCP[HOST_FORWARD]  14       127.0.0.1 40123       10.0.2.15    22     0     0
"""


def test_forwarded_port() -> None:
    assert parse_usernet(USERNET) == 40123
    with pytest.raises(MachineLostError, match="forwards no port"):
        parse_usernet(USERNET.replace("   22 ", "   80 "))


@pytest.mark.parametrize(
    "line",
    [
        "(XEN) Panic on CPU 0:",
        "[    1.0] Kernel panic - not syncing: VFS: Unable to mount root fs",
        "xenuma: dom0 failed: xenstored: exit code 1",
        "(XEN) Hardware Dom0 crashed: rebooting machine",
        "(XEN) Hardware Dom0 halted: halting machine",
        "(XEN) Dom0 has crashed: rebooting machine",
    ],
)
def test_broken_host_is_noticed(line: str) -> None:
    assert BROKEN.search(line)
    assert not READY.search(line)


CONFIG_NAMES = {
    'name = "g1"\nmemory=1\n': "g1",
    "name='a.b-c_1'\n": "a.b-c_1",
    'name="first"\nname="second"\n': "second",
    '  name="indented"\n': "indented",
}


@pytest.mark.parametrize("text", CONFIG_NAMES)
def test_name_of_a_guest(text: str) -> None:
    assert config_name(text) == CONFIG_NAMES[text]


@pytest.mark.parametrize(
    "text", ["memory=1\n", 'name="../x"\n', 'name=""\n', '#name="x"\n', 'name="' + "x" * 62 + '"\n']
)
def test_name_that_cannot_be(text: str) -> None:
    with pytest.raises(LabError, match="want letters"):
        config_name(text)


def test_a_card_on_the_network_between_hosts() -> None:
    """By QEMU's datagrams to the switch and back; dom0 is told its address and everybody's name. Else there is one card."""
    wire = Wire(2, ("beta", "alpha"), 9000)
    command = command_line(HOST, FILES, PATHS, qmp=5, serial=6, wire=wire)
    assert values(command, "-netdev")[1] == (
        "dgram,id=net1,local.type=unix,local.path=/run/x/card-alpha,remote.type=unix,remote.path=/run/x/wire-alpha"
    )
    assert values(command, "-device")[1].endswith(",netdev=net1,mac=52:54:00:78:00:02,host_mtu=9000")
    (initrd,) = values(command, "-initrd")
    assert " xenuma.wire=10.78.0.2/24,,9000 xenuma.hosts=beta:10.78.0.1,,alpha:10.78.0.2 nosmp" in initrd
    alone = command_line(HOST, FILES, PATHS, qmp=5, serial=6)
    assert len(values(alone, "-netdev")) == 1 and "xenuma.wire" not in values(alone, "-initrd")[0]
