# SPDX-License-Identifier: GPL-2.0
"""One emulated machine: QEMU's command line, and the running process.

QEMU starts paused; the machine runs only when the lab listens to its console, so no line is ever missed.
"""

from __future__ import annotations

import math
import re
import shlex
import socket
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from lab.artifacts import Artifacts
from lab.console import Console
from lab.description import HostDescription, Node, Wire
from lab.errors import LabError, MachineLostError
from lab.memory_map import BACKEND, Extent, parse_mtree
from lab.network import card_socket, switch_socket
from lab.process import start_tied, stop
from lab.qmp import Qmp

# Debian's firmware; QEMU would look for it beside itself.
FIRMWARE = ("-L", "/usr/share/qemu", "-L", "/usr/share/seabios")

# TCG has no MONITOR/MWAIT that Xen's idle loop survives; SVM and nested paging are what PVH guests run on. The last five are
# what the model has and TCG lacks: named here, QEMU need not warn of them for each CPU.
CPU = "EPYC,+svm,+npt,+nrip-save,+rogpt,-monitor,-fxsr-opt,-misalignsse,-osvw,-topoext,-xsavec"

# Warnings of a kernel are seen on its console, where lab/pytest_plugin.py looks for them; `quiet` would hide them.
CONSOLE_LEVEL = "loglevel=5"

# Without its control queue: Linux spins on that with a whole CPU until QEMU's main thread, which competes for it, answers.
NETWORK_CARD = (
    "virtio-net-pci,romfile=,ctrl_vq=off,ctrl_rx=off,ctrl_vlan=off,ctrl_rx_extra=off,ctrl_mac_addr=off,"
    "ctrl_guest_offloads=off,guest_announce=off"
)

# sockaddr_un.sun_path holds 108 bytes with its final zero, unix(7).
MAX_SOCKET_PATH = 107


@dataclass(frozen=True)
class MachinePaths:
    """Files of one machine: sockets in a short directory, logs in the rack's log directory."""

    sockets: Path
    logs: Path
    name: str

    def __post_init__(self) -> None:
        longest = self.socket("console")
        if len(str(longest)) > MAX_SOCKET_PATH:
            raise LabError(
                f"{longest}: {len(str(longest))} bytes; Unix sockets allow {MAX_SOCKET_PATH}. "
                "Set XENUMA_CACHE to a shorter path"
            )

    def socket(self, kind: str) -> Path:
        """Path of a Unix socket: console, meter."""
        return self.sockets / f"{self.name}.{kind}"

    @property
    def console_log(self) -> Path:
        """Xen's and dom0's console."""
        return self.logs / f"{self.name}-console.log"

    @property
    def qmp_log(self) -> Path:
        """QEMU's events."""
        return self.logs / f"{self.name}-qmp.log"

    @property
    def qemu_log(self) -> Path:
        """What QEMU itself prints."""
        return self.logs / f"{self.name}-qemu.log"

    @property
    def meter_counters(self) -> Path:
        """The NUMA meter's shared counters."""
        return self.sockets / f"{self.name}.counters"


def xen_arguments(host: HostDescription) -> str:
    """Xen's command line.

    cpuidle=off: mwait_idle dies under TCG. bootscrub=off: no need to touch, and so to allocate, all of the emulated memory.
    spec-ctrl=eager-fpu: lazy switching of FPU state loses SSE registers under TCG (docs/decisions/0003). global-pages: Xen's
    default where nothing emulates it; else each system call of dom0 empties the TLB twice (docs/decisions/0158).
    """
    dom0 = host.dom0
    return (
        f"console=com1 com1=115200,8n1 dom0_mem={dom0.memory_mib}M,max:{dom0.memory_mib}M dom0_max_vcpus={dom0.vcpus} "
        f"dom0_nodes={dom0.node} noreboot cpuidle=off bootscrub=off global-pages "
        f"spec-ctrl=eager-fpu loglvl=info guest_loglvl=warning {host.xen_arguments}"
    ).strip()


def dom0_arguments(host: HostDescription, wire: Wire | None = None) -> str:
    """The command line of dom0's kernel; what is for lab/images/dom0/usr/sbin/init begins with xenuma."""
    network = ""
    if wire:
        names = ",".join(f"{name}:{wire.address(number)}" for number, name in enumerate(wire.hosts, 1))
        network = f"xenuma.wire={wire.address()}/24,{wire.mtu} xenuma.hosts={names} "
    return (
        f"console=hvc0 root=/dev/vda rw tsc=unstable {CONSOLE_LEVEL} xenuma.host={host.name} {network}{host.dom0_arguments}"
    ).strip()


def numa_arguments(nodes: Sequence[Node], distances: Sequence[Sequence[int]]) -> list[str]:
    """QEMU's arguments for NUMA nodes, which own consecutive CPUs, in order.

    `distances` is the SLIT, row by row; if it is empty, the machine has none.
    """
    arguments = []
    first = 0
    for index, node in enumerate(nodes):
        options = f"node,nodeid={index}"
        if node.cpus:
            options += f",cpus={first}-{first + node.cpus - 1}"
            first += node.cpus
        if node.memory_mib:
            arguments += ["-object", f"memory-backend-ram,id={BACKEND}{index},size={node.memory_mib}M"]
            options += f",memdev={BACKEND}{index}"
        arguments += ["-numa", options]
    for source, row in enumerate(distances):
        for target, distance in enumerate(row):
            if source != target:
                arguments += ["-numa", f"dist,src={source},dst={target},val={distance}"]
    return arguments


def sockets(nodes: Sequence[Node]) -> str:
    """QEMU's option for the CPUs: as few sockets as there can be without one that has CPUs of two nodes.

    One socket for all would have Xen's scheduler share one run queue, and its lock, between nodes (docs/decisions/0164).
    """
    cpus = sum(node.cpus for node in nodes)
    cores = math.gcd(*(node.cpus for node in nodes))
    return f"{cpus},sockets={cpus // cores},cores={cores},threads=1"


def command_line(
    host: HostDescription,
    artifacts: Artifacts,
    paths: MachinePaths,
    *,
    qmp: int,
    serial: int,
    meter: bool = True,
    wire: Wire | None = None,
) -> list[str]:
    """QEMU's command line for a host.

    `qmp` and `serial` are file descriptors of connected sockets that the process inherits; `meter` loads the NUMA meter
    (switched off until asked); `wire` is the host's end of the rack's network.
    """
    command = [
        str(artifacts.qemu), *FIRMWARE, "-name", f"{host.name},debug-threads=on", "-machine", "q35",
        "-accel", "tcg,thread=multi", "-cpu", CPU, "-smp", sockets(host.nodes), "-m", f"{host.memory_mib}M",
        "-display", "none", "-nodefaults", "-no-user-config", "-no-reboot", "-S",
    ]  # fmt: skip
    command += numa_arguments(host.nodes, host.distances)
    command += ["-kernel", str(artifacts.xen), "-append", xen_arguments(host)]
    command += ["-initrd", f"{artifacts.kernel} {_escape(dom0_arguments(host, wire))}"]
    command += ["-drive", f"file={_escape(str(artifacts.dom0_image))},if=virtio,format=raw,cache=unsafe,snapshot=on"]
    command += [
        "-netdev",
        "user,id=net0,hostfwd=tcp:127.0.0.1:0-:22",
        "-device",
        f"{NETWORK_CARD},netdev=net0",
    ]
    if wire:
        here, there = card_socket(paths.sockets, host.name), switch_socket(paths.sockets, host.name)
        command += [
            "-netdev",
            f"dgram,id=net1,local.type=unix,local.path={_escape(str(here))},remote.type=unix,remote.path={_escape(str(there))}",
            "-device",
            f"{NETWORK_CARD},netdev=net1,mac={wire.mac},host_mtu={wire.mtu}",
        ]
    command += ["-chardev", f"socket,id=qmp,fd={qmp}", "-mon", "chardev=qmp,mode=control"]
    command += [
        "-chardev",
        f"socket,id=com1,fd={serial},logfile={_escape(str(paths.console_log))}",
        "-serial",
        "chardev:com1",
    ]
    if meter:
        command += [
            "-plugin",
            f"{artifacts.meter_plugin},control={paths.socket('meter')},counters={paths.meter_counters}",
        ]
    return command


def _escape(text: str) -> str:
    """Commas separate values in QEMU's options; two stand for one."""
    return text.replace(",", ",,")


class Machine:
    """A QEMU process, its console and its QMP connection. Ends with us."""

    def __init__(
        self,
        host: HostDescription,
        artifacts: Artifacts,
        paths: MachinePaths,
        meter: bool = True,
        wire: Wire | None = None,
    ) -> None:
        """Start QEMU and let the machine run. Raises LabError with QEMU's own words when it does not start."""
        self.paths = paths
        paths.sockets.mkdir(parents=True, exist_ok=True)
        paths.logs.mkdir(parents=True, exist_ok=True)
        for leftover in paths.sockets.glob(f"{host.name}.*"):
            leftover.unlink()
        qmp, qemu_qmp = socket.socketpair()
        serial, qemu_serial = socket.socketpair()
        inherited = (qemu_qmp.fileno(), qemu_serial.fileno())
        with paths.qemu_log.open("ab") as log, qemu_qmp, qemu_serial:
            command = command_line(
                host, artifacts, paths, qmp=inherited[0], serial=inherited[1], meter=meter, wire=wire
            )
            log.write((shlex.join(command) + "\n").encode())
            log.flush()
            self.process = start_tied(command, stdout=log, stderr=log, pass_fds=inherited)
        try:
            self.qmp = Qmp(qmp, host.name, paths.qmp_log)
            self.console = Console(serial, paths.socket("console"), f"host {host.name}")
            self.memory: list[Extent] = parse_mtree(self.qmp.monitor("info mtree -f"))
            self.ssh_port = parse_usernet(self.qmp.monitor("info usernet"))
            self.qmp.execute("cont")
        except BaseException as error:
            stop(self.process, grace=0)
            if isinstance(error, MachineLostError):
                raise MachineLostError(f"QEMU of {host.name} did not start:\n{_last_lines(paths.qemu_log)}") from error
            raise

    def quit(self) -> None:
        """Stop the machine at once, like pulling the plug. Returns when QEMU is gone."""
        if self.process.poll() is None:
            try:
                self.qmp.execute("quit", timeout=5)
                self.process.wait(5)
            except (LabError, subprocess.TimeoutExpired):
                pass
        stop(self.process, grace=2)
        self.release()

    def release(self) -> None:
        """Close what belongs to a QEMU process that has ended."""
        self.qmp.close()
        self.console.join(5)

    def wait(self, timeout: float) -> int:
        """Wait until QEMU has ended by itself. Raises LabError after `timeout` seconds."""
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            raise LabError(f"QEMU (pid {self.process.pid}) still runs after {timeout:g} s") from None


def parse_usernet(text: str) -> int:
    """The loopback port that QEMU forwards to dom0's ssh, from "info usernet". Raises MachineLostError if there is none."""
    match = re.search(r"TCP\[HOST_FORWARD\]\s+\d+\s+127\.0\.0\.1\s+(\d+)\s+\S+\s+22\b", text)
    if not match:
        raise MachineLostError(f"QEMU forwards no port to ssh; 'info usernet' says:\n{text}")
    return int(match[1])


def _last_lines(path: Path, count: int = 5) -> str:
    return "\n".join(path.read_text(errors="replace").splitlines()[-count:])
