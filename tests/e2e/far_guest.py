# SPDX-License-Identifier: GPL-2.0
"""What tests of guests with `host=` share: two hosts with a dsmd-host each, such a guest, and what is left of it."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import re
import shlex
from collections.abc import Iterator, Sequence
from pathlib import Path

from benchmarks.round_trips import with_rdma
from benchmarks.spanning import CONFIGURATION, SOCKETS
from lab.command import checked, run_in, write_file
from lab.description import RackDescription
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from tests.e2e.dsm_hosts import introduce, slices

ASKED_MOST = 600.0  # s, for a command of xl; libxl's own limits are shorter


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of the guest: memory at home, of each node that another host has, and what xl does when it reboots.

    `also`: hosts of nodes after node 1.
    """

    home_mib: int = 512
    node_mib: int = 256
    on_reboot: str = "destroy"
    also: tuple[str, ...] = ()

    def xl_cfg(self, other: str) -> str:
        """Its configuration; `other` is the host of node 1."""
        far = (other, *self.also)

        def distances(node: int) -> str:
            return ",".join("10" if to == node else "21" for to in range(len(far) + 1))

        nodes = [f'"pnode=0", "size={self.home_mib}", "vcpus=0-1", "vdistances={distances(0)}"'] + [
            f'"host={host}", "size={self.node_mib}", "vcpus={node + 1}", "vdistances={distances(node)}", "elastic=1"'
            for node, host in enumerate(far, 1)
        ]
        vnuma = "".join(f"    [ {node} ],\n" for node in nodes)
        return f"""
name = "far"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = {self.home_mib}
maxvcpus = {len(far) + 2}
vnuma = [
{vnuma}]
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:43,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "{self.on_reboot}"
on_crash = "preserve"
"""


def listens(host: Host) -> bool:
    """Can xl ask its dsmd-host?"""
    return run_in(host)(f"test -S {SOCKETS.parent}/dsmd.sock").status == 0


LOG = "/var/log/dsmd-host.log"


def start_dsmd_host(host: Host) -> None:
    """Start dsmd-host in a dom0, in a session of its own. Returns when it can be asked."""
    checked(run_in(host), f"(setsid dsmd-host >>{LOG} 2>&1 </dev/null &)")
    wait_for("dsmd-host", 60, functools.partial(listens, host))


def kill_dsmd_host(host: Host) -> None:
    """It can't say or do anything more. Its dsmds live on."""
    checked(run_in(host), f"pkill -9 -x dsmd-host; rm -f {SOCKETS.parent}/dsmd.sock")
    wait_for("dsmd-host is gone", 10, lambda: run_in(host)("pgrep -x dsmd-host").status != 0)


@dataclasses.dataclass
class DsmSite:
    """The hosts, the one that guests are at home at first; most racks have no third."""

    rack: Rack
    home: Host
    other: Host
    third: Host | None = None

    @property
    def both(self) -> tuple[Host, Host]:
        """The first two."""
        return self.home, self.other

    @property
    def hosts(self) -> tuple[Host, ...]:
        """All of them."""
        return (*self.both, self.third) if self.third else self.both


@contextlib.contextmanager
def dsm_site(
    scratch: Path, limits: dict[str, int] | None = None, transport: str = "tcp", rack: str = "two-hosts"
) -> Iterator[DsmSite]:
    """The hosts of a rack with a dsmd-host each, and with Soft-RoCE devices for the transport "rdma".

    `limits`: of dsm.toml(5), where they are to be others than those of a slow machine.
    """
    with Rack.boot(RackDescription.load(rack), meter=False) as booted:
        show_consoles_of(booted)
        folder = scratch / "papers"
        folder.mkdir()
        if transport == "rdma":
            with_rdma(booted)
        site = DsmSite(booted, *introduce(booted, folder, transport))
        for host in site.hosts:
            text = checked(run_in(host), f"cat {CONFIGURATION}")
            for key, value in (limits or {}).items():
                text, found = re.subn(rf"^{key} = \d+$", f"{key} = {value}", text, flags=re.M)
                assert found == 1, (key, text)
            write_file(run_in(host), CONFIGURATION, text)
            start_dsmd_host(host)
        yield site
        for host in site.hosts:
            if not host.ended():
                print(f"---- dsmd-host of {host.description.name}\n{run_in(host)(f'cat {LOG}').text}")


@contextlib.contextmanager
def far_guest(
    hosts: Sequence[Host], other: str, shape: Shape | None = None, patience: float = 240.0
) -> Iterator[Guest]:
    """The guest, up after `patience` seconds at most, with its node absent; destroyed afterwards."""
    home = hosts[0]
    dom0 = run_in(home)
    write_file(dom0, "/tmp/far.cfg", (shape or Shape()).xl_cfg(other))
    checked(dom0, "xl create /tmp/far.cfg", scaled(240))
    guest = home.guest("far")
    try:
        guest.wait_ready(scaled(patience))
        yield guest
    finally:
        guest.destroy()


def said(hosts: Sequence[Host]) -> str:
    """What dsmd of the guest knows on all of them, for messages about something that failed."""
    return "\n".join(
        run_in(host)("dsmctl status far; dsmctl hosts; xl list").text for host in hosts if not host.ended()
    )


def gone(host: Host) -> bool:
    """No slice, no dsmd of a guest."""
    return slices(host) == [] and run_in(host)(f"ls {shlex.quote(str(SOCKETS))}/*.sock").status != 0


def left_nothing(hosts: Sequence[Host]) -> None:
    """Returns when the hosts are done with the guest."""
    wait_for("nothing of it is left", 120, lambda: all(map(gone, hosts)))
