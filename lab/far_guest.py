# SPDX-License-Identifier: GPL-2.0
"""Guests with nodes of other hosts, by xl alone: hosts that know each other, such a guest, and what is left of it.

dsmd-host(8) runs on all hosts, and nobody starts a dsmd by hand, as lab/spanning.py does.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import json
import re
import shlex
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from lab import papers
from lab.command import checked, run_in, write_file
from lab.errors import LabError, Malformed
from lab.guest import Guest
from lab.host import Host
from lab.patience import scaled, wait_for
from lab.rack import Rack
from lab.spanning import CONFIGURATION, FOLDER, NAMES, SOCKETS, dsm_toml, with_rdma

GUEST = "far"
LOG = "/var/log/dsmd-host.log"


# ---- Hosts ----


def introduce(rack: Rack, folder: Path, transport: str = "tcp") -> list[Host]:
    """Certificates made for this and dsm.toml(5), in dom0 of all hosts of a rack. Returns them."""
    hosts = list(rack.hosts)
    papers.make(folder, NAMES[: len(hosts)])
    names = [host.description.name for host in hosts]
    wires = [rack.description.wire(name) for name in names]
    addresses = [wire.address() for wire in wires if wire]
    for number, host in enumerate(hosts):
        host.put(folder, FOLDER)
        # /run/xenuma: systemd makes it, where there is one.
        checked(run_in(host), f"mkdir -p {Path(CONFIGURATION).parent} && mkdir -p -m 700 {SOCKETS.parent}")
        write_file(run_in(host), CONFIGURATION, dsm_toml(number, names, addresses, transport))
    return hosts


def listens(host: Host) -> bool:
    """Can xl ask its dsmd-host?"""
    return run_in(host)(f"test -S {SOCKETS.parent}/dsmd.sock").status == 0


def start_dsmd_host(host: Host, program: str = "dsmd-host") -> None:
    """Start dsmd-host in a dom0, in a session of its own. Returns when it can be asked. `program`: with its options."""
    checked(run_in(host), f"(setsid {program} >>{LOG} 2>&1 </dev/null &)")
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


def with_limits(text: str, limits: Mapping[str, int]) -> str:
    """dsm.toml(5) with other limits than those it has. Raises LabError for one that it does not have."""
    for key, value in limits.items():
        text, found = re.subn(rf"^{key} = \d+$", f"{key} = {value}", text, flags=re.M)
        if found != 1:
            raise LabError(f"{CONFIGURATION} has {key} {found} times:\n{text}")
    return text


def made_ready(
    rack: Rack,
    scratch: Path,
    limits: Mapping[str, int] | None = None,
    transport: str = "tcp",
    *,
    more_limits: str = "",
    class_u: bool = False,
    program: str = "dsmd-host",
) -> DsmSite:
    """The hosts of a rack, with a dsmd-host each, and with Soft-RoCE devices for the transport "rdma".

    `scratch`: a folder for certificates; `limits`: of dsm.toml(5), where they are to be others than those of a slow machine;
    `more_limits`: lines beside them; `class_u`: its key of that name; `program`: dsmd-host, with its options.
    """
    folder = scratch / "papers"
    folder.mkdir()
    if transport == "rdma":
        with_rdma(rack)
    site = DsmSite(rack, *introduce(rack, folder, transport))
    for host in site.hosts:
        text = with_limits(checked(run_in(host), f"cat {CONFIGURATION}"), limits or {})
        text = text.replace("[limits]\n", f"[limits]\n{more_limits}", 1)
        write_file(run_in(host), CONFIGURATION, f"class_u = {class_u}\n".lower() + text)
        start_dsmd_host(host, program)
    return site


def slices(host: Host) -> list[int]:
    """Slices of guests of other hosts: VM-slice-HOME, or without a name for a moment."""
    listed = checked(run_in(host), "xl list").splitlines()[1:]
    rows = [line.split() for line in listed]
    return [int(row[1]) for row in rows if row[0] == "(null)" or "-slice-" in row[0]]


# ---- The guest ----


@dataclasses.dataclass(frozen=True)
class Shape:
    """Of the guest: memory at home, of each node that another host has, and what xl does when it reboots.

    `also`: hosts of nodes after node 1; `far_cpus`: each node of another host has a virtual CPU, which runs at home;
    `distance`: of any two nodes.
    """

    home_mib: int = 512
    node_mib: int = 256
    on_reboot: str = "destroy"
    also: tuple[str, ...] = ()
    far_cpus: bool = True
    distance: int = 21

    def xl_cfg(self, other: str) -> str:
        """Its configuration; `other` is the host of node 1."""
        far = (other, *self.also)

        def distances(node: int) -> str:
            return ",".join("10" if to == node else str(self.distance) for to in range(len(far) + 1))

        def cpus(node: int) -> str:
            return f'"vcpus={node + 1}", ' if self.far_cpus else ""

        nodes = [f'"pnode=0", "size={self.home_mib}", "vcpus=0-1", "vdistances={distances(0)}"'] + [
            f'"host={host}", "size={self.node_mib}", {cpus(node)}"vdistances={distances(node)}", "elastic=1"'
            for node, host in enumerate(far, 1)
        ]
        vnuma = "".join(f"    [ {node} ],\n" for node in nodes)
        return f"""
name = "{GUEST}"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = {self.home_mib}
maxvcpus = {2 + len(far) * self.far_cpus}
vnuma = [
{vnuma}]
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:43,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "{self.on_reboot}"
on_crash = "preserve"
"""


@contextlib.contextmanager
def far_guest(
    hosts: Sequence[Host], other: str, shape: Shape | None = None, patience: float = 240.0
) -> Iterator[Guest]:
    """The guest, up after `patience` seconds at most, with its node absent; destroyed afterwards."""
    home = hosts[0]
    dom0 = run_in(home)
    write_file(dom0, f"/tmp/{GUEST}.cfg", (shape or Shape()).xl_cfg(other))
    checked(dom0, f"xl create /tmp/{GUEST}.cfg", scaled(240))
    guest = home.guest(GUEST)
    try:
        guest.wait_ready(scaled(patience))
        yield guest
    finally:
        guest.destroy()


# ---- What is seen of it ----


def status(host: Host) -> dict[str, Any]:
    """Of the guest's dsmd at a host; nothing if there is none. Raises Malformed."""
    answer = run_in(host)(f"dsmctl -j status {GUEST}").out
    try:
        found = json.loads(answer or "[]")
    except ValueError as error:
        raise Malformed(f"dsmctl: {answer[:300]!r}") from error
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise Malformed(f"dsmctl: {answer[:300]!r}")
    return dict(found[0]) if found else {}


def state(host: Host) -> str:
    """Its state, with the reason, for people: dsmctl's, and the same in xenstore."""
    found = status(host)
    published = run_in(host)("xenstore-ls -f /tool/dsm | grep /state").out
    return f"{found.get('state')}: {found.get('failure')}\n{published}"


def told(host: Host, words: str, seconds: float = 30.0) -> str:
    """Why the guest's dsmd at a host has failed, for people, once dsmctl and xenstore both say `words`, a pattern.

    xenstore is later: the thread that writes dsmd's log writes it, after all lines that wait. Raises LabError, with what they
    say then.
    """
    seen = [""]

    def both() -> bool:
        seen.append(state(host))
        return len(re.findall(words, seen[-1])) == 2

    try:
        wait_for("both say it", seconds, both)
    except TimeoutError as error:
        raise LabError(f"dsmctl and xenstore of {host.description.name} do not both say {words!r}:\n{seen[-1]}") from error
    return seen[-1]


def has_crashed(listed: str) -> bool:
    """Is the guest's state Xen's "crashed", in what `xl list` says of it? Not while it runs, and before it is destroyed.

    If all its vCPUs were waiting for an interrupt when it was ended, Xen says "b", blocked, too, until a timer of one is up:
    an idle guest may have none for long.
    """
    return bool(re.search(r"\s-[b-].sc-\s", listed))


WITNESSES = (
    "date -u",
    f"dsmctl -j status {GUEST}",
    "dsmctl -j hosts",
    "xl list",
    f"xl vnode-list {GUEST}",
    "xenstore-ls -f /tool/dsm",
    f"find {SOCKETS} | xargs ls -ld",
    "ps -o pid,stat,time,args | grep '[d]smd'",
    f"tail -n 500 {LOG}",
    "dmesg | tail -n 50",
    "xl dmesg | tail -n 100",
)
"""What is asked in each dom0 after something failed; the logs of all dsmds are in dsmd-host's."""


def evidence(hosts: Sequence[Host], commands: Sequence[str] = WITNESSES) -> str:
    """All that can be known of the guest on all hosts. A host that is off or does not answer is no error."""
    text = ""
    for host in hosts:
        text += f"==== {host.description.name}{' has ended' if host.ended() else ''}\n"
        for command in () if host.ended() else commands:
            try:
                done = run_in(host)(command, 20)
                text += f"---- {command} ({done.status}, {done.seconds:.1f} s)\n{done.text}\n"
            except (LabError, OSError) as error:
                text += f"---- {command}: {error}\n"
    return text


@contextlib.contextmanager
def kept_if_it_fails(site: DsmSite, what: str) -> Iterator[None]:
    """If what is done meanwhile fails, all that is known at that moment is kept beside the consoles' logs, and printed."""
    try:
        yield
    except BaseException as error:
        text = f"{what}: {type(error).__name__}: {error}\n{evidence(site.hosts)}"
        file = site.rack.logs / f"{re.sub(r'[^a-z0-9]+', '-', what.lower())}-{time.strftime('%H%M%S')}.txt"
        # Whatever happens here, the error is what it was.
        with contextlib.suppress(OSError):
            file.write_text(text, encoding="utf-8", errors="replace")
            print(f"kept in {file}")
        print(text)
        raise


def said(hosts: Sequence[Host]) -> str:
    """What dsmd of the guest knows on all of them, for messages about something that failed."""
    return "\n".join(
        run_in(host)(f"dsmctl status {GUEST}; dsmctl hosts; xl list").text for host in hosts if not host.ended()
    )


def gone(host: Host) -> bool:
    """No slice, no dsmd of a guest."""
    return slices(host) == [] and run_in(host)(f"ls {shlex.quote(str(SOCKETS))}/*.sock").status != 0


def left_nothing(hosts: Sequence[Host]) -> None:
    """Returns when the hosts are done with the guest. Raises TimeoutError."""
    wait_for("nothing of it is left", 120, lambda: all(map(gone, hosts)))
