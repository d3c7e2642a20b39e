# SPDX-License-Identifier: GPL-2.0
"""Linux with its second CPU on another host: a dsmd on each, begun by hand. Step 9 of docs/plan/8.md.

What the guest does is what it does with both slices on one host (test_dsm_linux_vcpu.py), with event channels.
"""

from __future__ import annotations

import dataclasses
import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.command import checked, run_in, write_file
from lab.description import RackDescription
from lab.far_guest import introduce, slices
from lab.host import Host
from lab.patience import scaled, wait_for
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from lab.span_guest import CLOCK_ERROR_US, LEASE_US
from lab.spanning import CONFIGURATION, SOCKETS
from lab.ssh import Background
from tests.e2e import test_dsm_linux_vcpu as linux

pytestmark = pytest.mark.fresh

# It powers off by itself: it halts its CPUs, on both hosts.
WAY = dataclasses.replace(linux.WAYS["events"], end=linux.WAYS["apic"].end)
NAME = "dsm"


def description(uuid: str, hosts: tuple[str, str], domid: int | None) -> dict[str, object]:
    """What dsmd is told: at the host of `domid`, or, None, at the one that makes a slice."""
    home, other = hosts
    return {
        "name": NAME,
        "uuid": uuid,
        "number": 1,
        **({"domid": domid} if domid is not None else {"build": True}),
        "vcpus": 2,
        "frames": linux.ROOM,
        "token": home,
        "lease_us": LEASE_US,
        "keepalive_ms": 60000,
        "ranges": [
            {"first": 0, "frames": linux.HOME_MIB * linux.FRAMES, "host": home},
            {"first": linux.FAR, "frames": linux.FAR_FRAMES, "host": other},
        ],
        "places": [{"first": 1, "vcpus": 1, "host": other}],
        "slow": WAY.slow,
    }


@pytest.fixture(scope="module")
def hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Host, Host]]:
    with Rack.boot(RackDescription.load("two-hosts"), meter=False) as booted:
        rack = show_consoles_of(booted)
        home, other = introduce(rack, tmp_path_factory.mktemp("dsm"))
        pair = (home, other)
        for host in pair:
            run = run_in(host)
            text = checked(run, f"cat {CONFIGURATION}").replace("[limits]", f"[limits]\nclock_error_us = {CLOCK_ERROR_US}")
            write_file(run, CONFIGURATION, text)
            checked(run, "xenhypfs write /params/guest_loglvl all")
        yield pair
    assert not booted.wrong_ends


def start_dsmd(host: Host, log: Path) -> Background:
    """It can be asked, or has ended."""
    run, daemon = run_in(host), host.start(f"dsmd /root/{NAME}.json 2>&1", log)
    asked = f"test -S {SOCKETS}/{NAME}.sock"
    wait_for(f"dsmd of {host.description.name}", 60, lambda: run(asked).status == 0 or not daemon.running())
    return daemon


@pytest.fixture
def daemons(hosts: tuple[Host, Host], tmp_path: Path) -> Iterator[list[Background]]:
    """Both, with the guest not yet running."""
    dom0 = run_in(hosts[0])
    names = (hosts[0].description.name, hosts[1].description.name)
    started: list[Background] = []
    logs = [tmp_path / name for name in names]
    linux.initramfs(dom0, tmp_path, WAY)
    checked(dom0, f"printf %s {shlex.quote(linux.config(dom0, WAY))} >/tmp/dsm.cfg && xl create -p /tmp/dsm.cfg", 240.0)
    try:
        domid = int(checked(dom0, f"xl domid {NAME}"))
        uuid = checked(dom0, f"xenstore-read /local/domain/{domid}/vm").strip().rpartition("/")[2]
        checked(dom0, f"xl mem-max {NAME} {linux.HOME_MIB + linux.ROOM // linux.FRAMES + 8}")
        for host, log, own in zip(hosts, logs, (domid, None), strict=True):
            log.touch()
            write_file(run_in(host), f"/root/{NAME}.json", json.dumps(description(uuid, names, own)))
            started.append(start_dsmd(host, log))
        for host in hosts:
            checked(run_in(host), f"dsmctl --timeout {scaled(240):.0f} wait {NAME} running", scaled(260))
        yield started
    finally:
        for host, log in zip(hosts, logs, strict=True):
            print("\n".join(checked(run_in(host), "xl dmesg").splitlines()[-60:]))
            print(log.read_text(errors="replace")[-3000:])
        dom0(f"xl destroy {NAME}")
        for host, daemon in zip(hosts, started, strict=False):
            run_in(host)(f"dsmctl --force forget {NAME}")
            if daemon.running():
                daemon.stop()


def test_linux_with_a_cpu_on_another_host(hosts: tuple[Host, Host], daemons: list[Background]) -> None:
    """CPU 1 comes online there, runs a program that sums up files, goes and comes back; then Linux ends, everywhere."""
    home, other = (run_in(host) for host in hosts)
    checked(home, f"xl unpause {NAME}")

    def has_ended() -> bool:
        listed = checked(home, f"xl list {NAME}").splitlines()[-1].split()[-2]
        return listed[3] == "s" or listed[4] == "c" or not all(daemon.running() for daemon in daemons)

    took = wait_for("the guest has shut down", 600, has_ended, interval=5)
    # What CPU 1 prints is in the other host's console.
    log = checked(home, "xl dmesg") + checked(other, "xl dmesg")
    said = dict(re.findall(r"^\(d\d+\) VCPU (\w+) (.*?)(?: +-)?\r?$", log, re.M))
    print(f"{took:.0f} s:", said)

    assert said.keys() == {"first", "home", "online", "away", "ticks", "again", "last"}, said
    assert said["first"] == "0" and said["online"] == said["last"] == "0-1", said
    assert re.fullmatch(r"[0-9a-f]{32}", said["home"]) and said["home"] == said["away"] == said["again"], said
    assert int(said["ticks"]) > 0, said
    for run in (home, other):
        states = [row.split()[-2] for row in checked(run, "xl list").splitlines()[2:]]
        assert states and all(state[3] == "s" and state[4] != "c" for state in states), states
        status = json.loads(checked(run, f"dsmctl --json status {NAME}"))
        assert (status[0] if isinstance(status, list) else status)["state"] == "running", status
    assert len(slices(hosts[1])) == 1
