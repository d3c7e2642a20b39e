# SPDX-License-Identifier: GPL-2.0
"""A guest of the first host whose node 1 is memory of the second: dsmd in both dom0s, begun by hand.

As an administrator would do it with dsmd(8) and dsm.toml(5), without dsmd-host(8): a fault is the same. The guest is created
paused, both dsmd connect, it is unpaused, and `xl vnode-attach` brings its node in.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import shlex
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import papers
from lab.command import checked, run_in, write_file
from lab.errors import CommandFailedError, LabError, Malformed
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from lab.rack import Rack
from lab.ssh import Background

NAME = "spanning"
FRAMES_A_MIB = 256
FOLDER = "/root/dsm"  # of the certificates, in dom0
CONFIGURATION = "/etc/xenuma/dsm.toml"
PORT, NUMBER = 7100, 1
SOCKETS = Path("/run/xenuma/dsmd")
STATS = "/usr/lib/xen/bin/dsm-stats"
NAMES = ("alpha.dsm.example", "beta.dsm.example", "gamma.dsm.example")


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of the guest: memory at home and on the other host, and how many pages of the other host may be at home."""

    home_mib: int = 512
    node_mib: int = 128
    frames: int = 1024
    vcpus: int = 3

    def xl_cfg(self) -> str:
        """Its configuration."""
        return f"""
name = "{NAME}"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5 clocksource=tsc tsc=nowatchdog"
memory = {self.home_mib}
maxvcpus = {self.vcpus}
vnuma = [
    [ "pnode=0", "size={self.home_mib}", "vcpus=0-1", "vdistances=10,21" ],
    [ "pnode=0", "size={self.node_mib}", "vcpus=2", "vdistances=21,10", "elastic=1" ],
]
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:42,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""

    def description(self, uuid: str, start: int, hosts: tuple[str, str], domid: int | None) -> dict[str, Any]:
        """What dsmd is told, dsmd(8): at the host of `domid`, or, None, at the one that makes a slice."""
        home, other = hosts
        here = {"domid": domid} if domid is not None else {"build": True}
        return {
            "name": NAME,
            "uuid": uuid,
            "number": NUMBER,
            **here,
            "vcpus": self.vcpus,
            "frames": self.frames,
            "token": home,
            "ranges": [
                {"first": 0, "frames": self.home_mib * FRAMES_A_MIB, "host": home, "vnode": 0},
                {"first": start, "frames": self.node_mib * FRAMES_A_MIB, "host": other, "vnode": 1},
            ],
        }


def with_rdma(rack: Rack) -> None:
    """A Soft-RoCE device on each host's card of the network; not a second one. Raises CommandFailedError."""
    for host in rack.hosts:
        host.run("rdma link show rxe0/1 || rdma link add rxe0 type rxe netdev eth1", check=True)


def dsm_toml(own: int, hosts: Sequence[str], addresses: Sequence[str], transport: str) -> str:
    """dsm.toml(5) of the host with this number; hosts as NAMES has. Times are those of a slow machine: an emulator's."""
    text = f"""
self = "{hosts[own]}"
transport = "{transport}"
trusted_fabric = true

[tls]
ca = "{FOLDER}/ca.pem"
certificate = "{FOLDER}/{own}.pem"
key = "{FOLDER}/{own}.key"

[limits]
opening_ms = 60000
question_ms = 5000
deadline_ms = 60000
"""
    for number, (host, address) in enumerate(zip(hosts, addresses, strict=True)):
        text += f"""
[[host]]
name = "{host}"
number = {number}
address = "{address}"
port = {PORT}
certificate_names = ["{NAMES[number]}"]
"""
    return text


@dataclasses.dataclass
class Spanning:
    """The guest, and what is known of its memory."""

    guest: Guest
    shape: Shape
    hosts: tuple[Host, Host]
    daemons: list[Background]
    logs: list[Path]

    def status(self, number: int = 0) -> dict[str, Any]:
        """dsmd's own statistics on the host with this number. Raises CommandFailedError, Malformed."""
        out = checked(run_in(self.hosts[number]), f"dsmctl --json status {NAME}")
        try:
            found = json.loads(out)
        except ValueError as error:
            raise Malformed(f"dsmctl: {out[:300]!r}") from error
        status = found[0] if isinstance(found, list) and found else found
        if not isinstance(status, dict):
            raise Malformed(f"dsmctl: {out[:300]!r}")
        return status

    def xen(self) -> dict[str, Any]:
        """Xen's counters of the guest's domain. Raises CommandFailedError."""
        found: dict[str, Any] = json.loads(checked(self.guest.dom0, f"{STATS} {self.guest.domid()}"))
        return found

    def switch(self, switches: Mapping[str, int]) -> None:
        """`dsmctl set` on both hosts, while the guest runs. Raises CommandFailedError."""
        for host in self.hosts:
            checked(run_in(host), " && ".join(f"dsmctl set {NAME} {key}={n}" for key, n in switches.items()))

    def said(self) -> str:
        """What both dsmd have logged: for messages about something that failed."""
        return "\n".join(f"--- dsmd {n}\n{log.read_text(errors='replace')[-3000:]}" for n, log in enumerate(self.logs))


def _describe(host: Host, description: Mapping[str, Any]) -> None:
    write_file(run_in(host), f"/root/{NAME}.json", json.dumps(description))


def _start_dsmd(host: Host, log: Path) -> Background:
    """It runs, and can be asked. Raises CommandFailedError, TimeoutError."""
    run = run_in(host)
    checked(run, f"mkdir -p {SOCKETS.parent}")
    daemon = host.start(f"dsmd /root/{NAME}.json 2>&1", log)
    asked = f"test -S {SOCKETS}/{NAME}.sock"
    wait_for(f"dsmd of {host.description.name}", 60, lambda: run(asked).status == 0 or not daemon.running())
    if not daemon.running():
        raise CommandFailedError(f"dsmd of {host.description.name} ended with {daemon.wait().status}")
    return daemon


def _pair(rack: Rack) -> tuple[tuple[Host, Host], tuple[str, str], tuple[str, str]]:
    if len(rack.hosts) < 2:
        raise LabError("a spanning guest needs two hosts")
    first, second = rack.hosts[:2]
    wires = [rack.description.wire(host.description.name) for host in (first, second)]
    if not (wires[0] and wires[1]):
        raise LabError("the rack has no network between its hosts")
    names = (first.description.name, second.description.name)
    return (first, second), names, (wires[0].address(), wires[1].address())


@contextlib.contextmanager
def spanning(rack: Rack, shape: Shape, transport: str) -> Iterator[Spanning]:
    """The guest, up, with its node absent; all of it is gone afterwards. Raises LabError with both dsmd's words."""
    hosts, names, addresses = _pair(rack)
    home = hosts[0]
    dom0 = run_in(home)
    with tempfile.TemporaryDirectory(prefix="xenuma-dsm.") as scratch:
        folder = Path(scratch) / "papers"
        folder.mkdir()
        papers.make(folder, NAMES[: len(hosts)])
        logs = [Path(scratch) / f"dsmd{number}" for number in (0, 1)]
        for log in logs:
            log.touch()
        for number, host in enumerate(hosts):
            host.put(folder, FOLDER)
            run = run_in(host)
            checked(run, f"mkdir -p {Path(CONFIGURATION).parent}")
            write_file(run, CONFIGURATION, dsm_toml(number, names, addresses, transport))
        write_file(dom0, "/tmp/spanning.cfg", shape.xl_cfg())
        checked(dom0, "xl create -p /tmp/spanning.cfg", 240.0)
        guest = home.guest(NAME)
        daemons: list[Background] = []
        found = Spanning(guest, shape, hosts, daemons, logs)
        try:
            domid = guest.domid()
            path = checked(dom0, f"xenstore-read /local/domain/{domid}/vm").strip()
            start = int(guest.vnode(1).keys["node/1/start"], 16) // 4096
            uuid = path.rpartition("/")[2]
            # The frames for pages of the other host count as memory of the domain.
            checked(dom0, f"xl mem-max {NAME} {shape.home_mib + shape.frames // FRAMES_A_MIB + 8}")
            _describe(hosts[0], shape.description(uuid, start, names, domid))
            _describe(hosts[1], shape.description(uuid, start, names, None))
            for host, log in zip(hosts, logs, strict=True):
                daemons.append(_start_dsmd(host, log))
            for host in hosts:
                checked(run_in(host), f"dsmctl --timeout {scaled(120):.0f} wait {NAME} running", scaled(150))
            checked(dom0, f"xl unpause {NAME}")
            guest.wait_ready(scaled(240))
            yield found
        except LabError as error:
            raise LabError(f"{error}\n{found.said()}") from error
        finally:
            _end(found)


def _end(found: Spanning) -> None:
    """Whatever state it is in: no guest, no slice, no dsmd."""
    found.guest.destroy()
    for host, daemon in zip(found.hosts, found.daemons, strict=False):
        with contextlib.suppress(CommandFailedError):
            checked(run_in(host), f"dsmctl --force forget {shlex.quote(NAME)}")
        if daemon.running():
            daemon.stop()
