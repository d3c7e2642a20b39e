# SPDX-License-Identifier: GPL-2.0
"""What tests of guests with `host=` share: hosts that can run one (lab/far_guest.py), whose consoles are watched."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path

from lab.command import checked, run_in
from lab.description import RackDescription
from lab.elastic_guest import PROGRAMS
from lab.far_guest import LOG, DsmSite, made_ready
from lab.guest import Guest
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack

ASKED_MOST = 600.0  # s, for a command of xl; libxl's own limits are shorter
XL_LOG = "/var/log/xen/xl-far.log"  # in dom0, of the xl that waits for the guest's end


def show_logs(site: DsmSite) -> None:
    """Print what each dsmd-host has said."""
    for host in site.hosts:
        if not host.ended():
            print(f"---- dsmd-host of {host.description.name}\n{run_in(host)(f'cat {LOG}').text}")


@contextlib.contextmanager
def dsm_site(
    scratch: Path, limits: Mapping[str, int] | None = None, transport: str = "tcp", rack: str = "two-hosts"
) -> Iterator[DsmSite]:
    """The hosts of a rack that is booted for them: see made_ready()."""
    with Rack.boot(RackDescription.load(rack), meter=False) as booted:
        site = made_ready(show_consoles_of(booted), scratch, limits, transport)
        yield site
        show_logs(site)


def leave_by_kexec(guest: Guest, cpu: int, seconds: float) -> None:
    """The guest does so by a program on that CPU, after these seconds of its clock: until then the command has ended."""
    go = f"sleep {seconds:.0f}; exec taskset -c {cpu} {PROGRAMS}/kexec_away"
    checked(run_in(guest), f"setsid sh -c '{go}' >/tmp/kexec.err 2>&1 </dev/null &", ASKED_MOST)
