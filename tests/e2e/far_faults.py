# SPDX-License-Identifier: GPL-2.0
"""Faults between two hosts, each with the outcome that dsmd(8) promises (FAULTS), and how tests see that it is so.

A guest goes on, and then no word that it reads is wrong, or it is ended with a reason that names the host and the pages that
were there. After that one command, `xl destroy`, cleans up on both hosts. Other guests do not notice, nor does Xen (what its
console complains of fails a test by itself, lab/pytest_plugin.py).
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import time
from collections.abc import Callable, Iterator

from lab.command import checked, run_in, write_file
from lab.elastic_guest import PROGRAMS
from lab.far_guest import (
    DsmSite,
    Shape,
    far_guest,
    has_crashed,
    kept_if_it_fails,
    kill_dsmd_host,
    said,
    slices,
    start_dsmd_host,
    status,
    told,
)
from lab.guest import Guest
from lab.host import Host
from lab.network import Cable
from lab.patience import scaled, wait_for
from lab.spanning import SOCKETS
from tests.e2e.far_guest import ASKED_MOST

# The pool is a sixteenth of the node, 8 MiB, and 2 MiB of it are for the node's own page structures: it is always full.
SHAPE = Shape(home_mib=384, node_mib=128)
CHECKED_MIB = 8
DEADLINE = scaled(20)  # s until a silent host is lost
LIMITS = {"opening_ms": 10000, "question_ms": 2000, "deadline_ms": round(DEADLINE * 1000)}  # of dsm.toml(5)
KEEPALIVE = 10.0  # s until Xen pauses a domain whose dsmd says nothing, dsmd(8)
CUT = Cable(up=False)
LASTS = 8.0  # s, of a fault that a guest survives

PLAIN = """
name = "plain"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = 256
vcpus = 1
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:44,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


def dsmd(host: Host, signal: str) -> None:
    """A signal for the dsmd of the only guest."""
    checked(run_in(host), f"kill -{signal} $(cat {SOCKETS}/vm/*/pid)")


def faults(host: Host) -> int:
    """Misses of vCPUs that were served."""
    found = status(host)
    return int(found["read_fault"]["count"] + found["write_fault"]["count"])


@contextlib.contextmanager
def plain_guest(site: DsmSite) -> Iterator[Guest]:
    """An ordinary guest on the home host, with work that is checked in the end."""
    write_file(run_in(site.home), "/tmp/plain.cfg", PLAIN)
    checked(run_in(site.home), "xl create /tmp/plain.cfg", scaled(240))
    guest = site.home.guest("plain")
    guest.wait_ready(scaled(240))
    # Not all of a CPU: only to be there, and to notice.
    checked(run_in(guest), "head -c 8388608 /dev/urandom >/tmp/kept && sha256sum /tmp/kept >/tmp/sum")
    yield guest
    guest.destroy()


def is_well(plain: Guest) -> None:
    """It has all that it had, and works."""
    checked(run_in(plain), "sha256sum -c /tmp/sum")
    memcheck = f"timeout -s TERM 3 {PROGRAMS}/memcheck 8 1"
    assert '"bad_pages":0' in run_in(plain)(memcheck).text


def anything_of_it(host: Host) -> str:
    """What there is on a host of guests that span."""
    dom0 = run_in(host)
    left = dom0(
        f"pgrep -x dsmd; find {SOCKETS} -name '*.sock' -o -name '*.failed' -o -name record.json; xenstore-ls -f /tool/dsm"
    )
    return left.out + " ".join(map(str, slices(host)))


def is_clean(host: Host) -> bool:
    """Nothing of it is left."""
    return not anything_of_it(host)


@contextlib.contextmanager
def cables(site: DsmSite, cable: Cable) -> Iterator[None]:
    """Another cable at the other host."""
    assert site.rack.network
    name = site.other.description.name
    site.rack.network.plug(name, cable)
    try:
        yield
    finally:
        site.rack.network.plug(name, Cable())


@contextlib.contextmanager
def without_dsmd_host(host: Host, program: str = "dsmd-host") -> Iterator[None]:
    """Nobody to ask. `program`: what is started again, with its options."""
    kill_dsmd_host(host)
    try:
        yield
    finally:
        start_dsmd_host(host, program)


# ---- What a guest survives ----


@contextlib.contextmanager
def stands_still(host: Host) -> Iterator[None]:
    """Its dsmd does nothing, and nobody is told."""
    dsmd(host, "STOP")
    try:
        yield
    finally:
        dsmd(host, "CONT")


@contextlib.contextmanager
def starved(host: Host) -> Iterator[None]:
    """More that wants dom0's CPUs than they are worth."""
    checked(
        run_in(host),
        "for i in 1 2 3 4 5 6; do (while :; do :; done) >/dev/null 2>&1 </dev/null & echo $!; done >/tmp/busy",
    )
    try:
        yield
    finally:
        checked(run_in(host), "kill $(cat /tmp/busy)")


@dataclasses.dataclass(frozen=True)
class Survived:
    """A fault after which the guest goes on. `waits`: nothing is served meanwhile."""

    name: str
    begin: Callable[[DsmSite], contextlib.AbstractContextManager[None]]
    seconds: float = LASTS
    waits: bool = False

    def __str__(self) -> str:
        return self.name


DAMAGED = Survived("packets are damaged", lambda site: cables(site, Cable(damaged=0.02)))
CABLE_REPAIRED = Survived(
    "a cable is cut and repaired in time", lambda site: cables(site, CUT), DEADLINE / 3, waits=True
)
PAUSED_BY_XEN = Survived(
    "Xen pauses the guest, and lets it go on", lambda site: stands_still(site.home), KEEPALIVE + 2, waits=True
)
SURVIVED = [
    Survived("packets are delayed", lambda site: cables(site, Cable(delay_s=0.05))),
    Survived("packets are lost", lambda site: cables(site, Cable(lost=0.02))),
    DAMAGED,
    Survived("packets are doubled and overtaken", lambda site: cables(site, Cable(doubled=0.05, reordered=0.1))),
    CABLE_REPAIRED,
    Survived("the other host is slow", lambda site: stands_still(site.other), DEADLINE / 2, waits=True),
    PAUSED_BY_XEN,
    Survived("dsmd-host dies at home", lambda site: without_dsmd_host(site.home)),
    Survived("dsmd-host dies at the other host", lambda site: without_dsmd_host(site.other)),
    Survived("dom0 at home is starved of CPU", lambda site: starved(site.home)),
]


def survives(site: DsmSite, guest: Guest, fault: Survived, patience: float = 60.0) -> None:
    """The guest, whose node is attached and checked by Memcheck, goes on during the fault or after it.

    `patience`: s until it has had 20 more pages.
    """
    before = faults(site.home)
    with fault.begin(site):
        began = time.monotonic()
        wait_for("it lasts", fault.seconds + 60, lambda: time.monotonic() - began >= fault.seconds, interval=0.5)
        # Where dsmd stands still it can't be asked.
        during = before if fault.waits else faults(site.home)
    # What came between the first look and the begin of the fault is none that comes again.
    after = faults(site.home)
    wait_for("pages come again", patience, lambda: faults(site.home) > after + 20)
    print(fault.name, "faults:", before, during, after, faults(site.home))
    assert fault.waits or during > before, "nothing came meanwhile: the fault met no traffic"
    listed = guest.listed()[1]["host"]
    assert listed["link"] == "up", listed
    assert [status(host).get("state") for host in site.both] == ["running", "running"], said(site.both)
    assert run_in(guest)("kill -0 $(cat /tmp/memcheck.pid)", max(patience, 60)).status == 0, "memcheck ended: a page was wrong"


# ---- What ends a guest ----


def cut_for_long(site: DsmSite) -> None:
    assert site.rack.network
    site.rack.network.plug(site.other.description.name, CUT)


def repair(site: DsmSite) -> None:
    assert site.rack.network
    site.rack.network.plug(site.other.description.name, Cable())


def stop_until_lost(site: DsmSite, host: Host, deadline: float = DEADLINE) -> None:
    """Its dsmd does nothing until the one at the other end has given it up."""
    witness = site.home if host is site.other else site.other
    dsmd(host, "STOP")
    wait_for("it is given up", deadline + 60, lambda: status(witness).get("state") == "failed")
    dsmd(host, "CONT")


def power_off(site: DsmSite) -> None:
    site.other.pull_the_plug()


OF_BETA = r"its own 32768 pages \d+ are here"
OF_ALPHA = r"\d+ pages of beta were modified there"
DIED = r"its dsmd has ended; who has which of up to 32768 pages of host beta is lost with it"


@dataclasses.dataclass(frozen=True)
class Deadly:
    """A fault that ends the guest: what the home and the other host say, and what is done after `xl destroy`."""

    name: str
    begin: Callable[[DsmSite], None]
    at_home: str
    elsewhere: str | None
    after: Callable[[DsmSite], None] = lambda _: None
    gives_back: bool = False  # the other host can't reach its home: its memory is free without anybody's doing

    def __str__(self) -> str:
        return self.name


SILENT = r"\(a question was not answered in time.*"
DSMD_DIES_THERE = Deadly(
    "dsmd dies at the other host",
    lambda site: dsmd(site.other, "KILL"),
    rf"host beta is lost \(.*{OF_BETA}",
    f"host beta: {DIED}",
)
CUT_TOO_LONG = Deadly(
    "a cable is cut and repaired too late",
    cut_for_long,
    rf"host beta is lost {SILENT}{OF_BETA}",
    None,
    after=repair,
    gives_back=True,
)
DEADLY = [
    Deadly(
        "dsmd dies at home",
        lambda site: dsmd(site.home, "KILL"),
        f"host alpha: {DIED}",
        rf"host alpha is lost \(.*{OF_ALPHA}",
    ),
    DSMD_DIES_THERE,
    Deadly(
        "the other host is too slow",
        lambda site: stop_until_lost(site, site.other),
        rf"host beta is lost {SILENT}{OF_BETA}",
        rf"host alpha is lost \(.*{OF_ALPHA}",
    ),
    Deadly(
        "dsmd at home is too slow",
        lambda site: stop_until_lost(site, site.home),
        rf"host beta is lost \(.*{OF_BETA}",
        rf"host alpha is lost {SILENT}{OF_ALPHA}",
    ),
    CUT_TOO_LONG,
    # The last one: there is no other host after it.
    Deadly("the other host is powered off", power_off, rf"host beta is lost {SILENT}{OF_BETA}", None),
]


@contextlib.contextmanager
def attached_guest(site: DsmSite) -> Iterator[Guest]:
    """A guest whose node is attached."""
    with far_guest(site.both, site.other.description.name, SHAPE) as guest:
        attached = guest.attach(1, timeout=ASKED_MOST)
        assert attached.status == 0, attached.text + said(site.both)
        yield guest


def is_ended(
    site: DsmSite,
    plain: Guest,
    fault: Deadly,
    made: Callable[[DsmSite], contextlib.AbstractContextManager[Guest]] = attached_guest,
    deadline: float = DEADLINE,
) -> None:
    """A guest is made, and ended by the fault with the reason, on both hosts; `xl destroy` leaves nothing of it.

    `deadline`: s until a silent host is lost.
    """
    with contextlib.ExitStack() as stack:
        stack.callback(fault.after, site)
        guest = stack.enter_context(made(site))
        # The last one, so the first that ends: before the guest is destroyed and the fault is over.
        stack.enter_context(kept_if_it_fails(site, fault.name))
        fault.begin(site)
        wait_for("home knows", deadline + 60, lambda: status(site.home).get("state") == "failed")
        print(told(site.home, fault.at_home))
        # Xen's "crashed", which on_crash=preserve keeps.
        wait_for("the guest has ended", 30, lambda: has_crashed(run_in(site.home)("xl list far").out))
        listed = guest.listed()[1]["host"]
        print(listed)
        assert listed["link"] == "lost", listed
        table = checked(run_in(site.home), "xl vnode-list far")
        print(table)
        assert f"vnode 1: on host {site.other.description.name}, link lost" in table, table
        refused = guest.detach(1, "--timeout=20", timeout=ASKED_MOST)
        print("detach:", refused.status, refused.text)
        assert refused.status != 0, refused.text
        if fault.elsewhere:
            wait_for("the other host knows", deadline + 60, lambda: status(site.other).get("state") == "failed")
            print(told(site.other, fault.elsewhere))
        if fault.gives_back:
            wait_for("memory is given back", deadline + 120, functools.partial(is_clean, site.other))
    # The one command was `xl destroy`.
    hosts = [host for host in site.both if not host.ended()]
    with kept_if_it_fails(site, f"{fault.name}, after it"):
        for host in hosts:
            wait_for(f"nothing is left at {host.description.name}", 120, functools.partial(is_clean, host))
        is_well(plain)
