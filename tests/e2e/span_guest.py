# SPDX-License-Identifier: GPL-2.0
"""What tests of guests with CPUs on other hosts share (lab/span_guest.py has the rest): their nodes' way in and out."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lab.command import Done, checked, run_in
from lab.description import RackDescription
from lab.far_guest import DsmSite, said, slices
from lab.guest import Guest
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from lab.span_guest import PATIENCE, WAIT, SlowSite, SpanShape, numbers, slow_hosts
from tests.e2e.far_guest import show_logs


@contextlib.contextmanager
def slow_site(scratch: Path, rack: str = "two-hosts", class_u: bool = False) -> Iterator[SlowSite]:
    """Hosts whose dsmds give guests a slower clock, with class U or without."""
    with Rack.boot(RackDescription.load(rack), meter=False) as booted:
        made = slow_hosts(show_consoles_of(booted), scratch, class_u)
        yield made
        show_logs(made)
    assert not booted.wrong_ends


def done_well(site: DsmSite, done: Done, words: str) -> None:
    """A command of xl that said these words, and is shown."""
    assert done.status == 0 and words in done.text, done.text + said(site.hosts)
    print(f"{done.seconds:.0f} s: {done.text.strip()}")


def of_node(guest: Guest, node: int) -> dict[str, Any]:
    """What `xl vnode-list` says of the host of a node."""
    found: dict[str, Any] = guest.listed()[node]["host"]
    return found


def attach(site: DsmSite, guest: Guest, shape: SpanShape, node: int = 1) -> None:
    """It brings memory and, unless the host only lends it, CPUs."""
    host, cpus = site.hosts[node], shape.cpus_of(node)
    name, listed = host.description.name, numbers(cpus[0], len(cpus))
    done_well(site, guest.attach(node, WAIT, timeout=PATIENCE), f" MiB on host {name}, CPUs {listed}")
    assert set(cpus) <= set(guest.online_cpus())
    assert len(slices(host)) == 1
    found = of_node(guest, node)
    print(found)
    remote = () if node in shape.lenders else cpus
    assert found["link"] == "up" and tuple(found.get("cpus") or ()) == remote, found
    if remote:
        assert found["remote_vcpus"], found
        table = checked(run_in(site.home), "xl vnode-list far")
        assert f"vnode {node}: on host {name}, link up, CPUs {listed} run there" in table, table


def detach(site: DsmSite, guest: Guest, shape: SpanShape, node: int = 1) -> None:
    """It sends both home."""
    done_well(site, guest.detach(node, WAIT, timeout=PATIENCE), "offline")
    assert not set(shape.cpus_of(node)) & set(guest.online_cpus())
    assert guest.vnode(node).state == "offline", guest.vnode(node).keys
    assert slices(site.hosts[node]) == []
    assert not of_node(guest, node).get("cpus"), guest.listed()
