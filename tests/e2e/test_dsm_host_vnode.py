# SPDX-License-Identifier: GPL-2.0
"""A guest with a vnode whose memory is on another machine, by `xl` alone: `xl create`, `vnode-attach`, `-list`, `-set`, `-detach`.

Two hosts with a network between them; dsmd-host runs on both, and everything else is what an operator types on the first.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from lab.command import Run, checked, run_in, write_file
from lab.complaints import complaints
from lab.description import RackDescription
from lab.elastic_guest import PROGRAMS
from lab.errors import LabError
from lab.guest import Guest
from lab.host import Host
from lab.hypervisor import pages_off, settled_free_pages
from lab.patience import wait_for
from lab.pytest_plugin import show_consoles_of
from lab.rack import Rack
from tests.unit.dsmd.test_dsmd import DSM, HERE, INCLUDED

pytestmark = pytest.mark.fresh

HOME_MIB, NODE_MIB, CHECKED_MIB = 512, 128, 16
PORT = 7100
FOLDER = "/etc/xenuma"
REFUSED = 3  # exit status of xl vnode-*, as in xl-vnode(1)

CONFIG = f"""
name = "span"
type = "pvh"
kernel = "/boot/vmlinuz"
ramdisk = "/boot/guest.cpio.gz"
extra = "console=hvc0 loglevel=5"
memory = {HOME_MIB}
vnuma = [
    [ "pnode=0", "size={HOME_MIB}", "vcpus=0-1", "vdistances=10,21" ],
    [ "host=HOST", "size={NODE_MIB}", "vdistances=21,10", "elastic=1" ],
]
tsc_mode = "native"
vif = [ "mac=00:16:3e:4d:00:32,bridge=xenbr0" ]
on_poweroff = "destroy"
on_reboot = "destroy"
on_crash = "preserve"
"""


def papers(folder: Path, names: list[str]) -> None:
    """A CA, and for each name a certificate with both roles and its key."""
    program = folder / "papers"
    sources = [HERE / "papers_main.c", HERE / "papers.c"]
    flags = ["-std=c11", "-D_GNU_SOURCE", *(f"-I{place}" for place in (*INCLUDED, DSM / "core"))]
    subprocess.run(["gcc", *flags, *map(str, sources), "-o", program, "-lssl", "-lcrypto"], check=True)
    subprocess.run([program, folder, *names], check=True)
    program.unlink()


def site(rack: Rack, own: str) -> str:
    """dsm.toml of one host."""
    tables = ""
    for number, host in enumerate(rack.hosts):
        wire = rack.description.wire(host.description.name)
        assert wire
        name = host.description.name
        tables += (
            f'[[host]]\nname = "{name}"\nnumber = {number}\naddress = "{wire.address()}"\nport = {PORT}\n'
            f'certificate_names = ["{name}"]\n'
        )
    return (
        f'self = "{own}"\ntransport = "tcp"\n[tls]\nca = "{FOLDER}/dsm/ca.pem"\n'
        f'certificate = "{FOLDER}/dsm/{own}.pem"\nkey = "{FOLDER}/dsm/{own}.key"\n{tables}'
    )


@pytest.fixture(scope="module")
def spanned(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rack]:
    """Two hosts, each with its papers, dsm.toml, and dsmd-host."""
    folder = tmp_path_factory.mktemp("papers")
    with Rack.boot(RackDescription.load("two-hosts"), meter=False) as booted:
        rack = show_consoles_of(booted)
        papers(folder, [host.description.name for host in rack.hosts])
        for host in rack.hosts:
            run = run_in(host)
            checked(run, f"mkdir -p {FOLDER}")
            host.put(folder, f"{FOLDER}/dsm")
            checked(run, f"chmod 600 {FOLDER}/dsm/*.key && chown -R root:root {FOLDER}")
            write_file(run, f"{FOLDER}/dsm.toml", site(rack, host.description.name))
            checked(run, "setsid dsmd-host >/var/log/dsmd-host.log 2>&1 </dev/null &")
            wait_for("dsmd-host listens", 30, lambda run=run: run("test -S /run/xenuma/dsmd.sock").status == 0)
        yield rack
        for host in rack.hosts:
            for log in ("/var/log/dsmd-host.log", "/run/xenuma/dsmd/*/*/log"):
                print(host.description.name, log, run_in(host)(f"cat {log}").text)
    assert not booted.wrong_ends


@pytest.fixture
def hosts(spanned: Rack) -> Iterator[tuple[Host, Host]]:
    alpha, beta = spanned.hosts
    yield alpha, beta
    for host in (alpha, beta):
        print(f"---- {host.description.name}\n{run_in(host)('cat /var/log/dsmd-host.log; dsmctl list').text}")


def domains(run: Run) -> list[str]:
    """What `xl list` has besides dom0."""
    return [line for line in checked(run, "xl list").splitlines()[1:] if not line.startswith("Domain-0")]


def bad_pages(inside: Run) -> None:
    """memcheck on node 1, for a while: each page is written, and then compared again and again."""
    checked(
        inside,
        f"(numactl --membind=1 {PROGRAMS}/memcheck {CHECKED_MIB} 3 >/tmp/memcheck.out 2>&1 &"
        " echo $! >/tmp/memcheck.pid) </dev/null",
    )
    wait_for("memcheck has written all pages", 300, lambda: "ready" in inside("cat /tmp/memcheck.out").out)


def verdict(inside: Run) -> None:
    """Its end: no byte was wrong."""
    checked(inside, "kill $(cat /tmp/memcheck.pid)")
    wait_for("memcheck ends", 300, lambda: inside("kill -0 $(cat /tmp/memcheck.pid)").status != 0)
    found = json.loads(checked(inside, "cat /tmp/memcheck.out").splitlines()[-1])
    assert found["bad_pages"] == 0 and found["checks"] > 0, found


def test_a_vnode_on_another_host_comes_is_used_and_goes(hosts: tuple[Host, Host]) -> None:
    alpha, beta = hosts
    here, there = run_in(alpha), run_in(beta)
    before = settled_free_pages(here), settled_free_pages(there)
    guest: Guest = alpha.start_guest(CONFIG.replace("HOST", "beta"), timeout=300)
    inside = run_in(guest)
    try:
        listed = guest.listed()[1]
        assert (listed["host"]["name"], listed["host"]["link"], listed["state"]) == ("beta", "down", "offline")
        assert domains(there) == []

        attached = guest.attach(1, timeout=300.0)
        assert attached.status == 0, attached.text
        listed = guest.listed()[1]
        assert (listed["host"]["link"], listed["state"]) == ("up", "online")
        assert listed["host"]["size_kib"] == NODE_MIB << 10
        assert sorted(guest.nodes()) == [0, 1]
        assert len(domains(there)) == 1

        bad_pages(inside)
        listed = guest.listed()[1]["host"]
        assert listed["pages_modified"] + listed["pages_shared"] > 0, listed
        assert listed["median_ns"] > 0, listed
        verdict(inside)
        assert complaints(checked(inside, "dmesg")) == []

        detached = guest.detach(1, timeout=300.0)
        assert detached.status == 0, detached.text
        assert guest.listed()[1]["host"]["link"] == "down"
        assert sorted(guest.nodes()) == [0]
        assert domains(there) == []
        assert pages_off(there, before[1]) == {}
    finally:
        guest.destroy()
    assert pages_off(here, before[0], 30.0) == {}


def test_destroy_ends_the_part_on_the_other_host(hosts: tuple[Host, Host]) -> None:
    """`xl destroy` says nothing to dsmd: it hears of the domain's end."""
    alpha, beta = hosts
    here, there = run_in(alpha), run_in(beta)
    before = settled_free_pages(here), settled_free_pages(there)
    guest = alpha.start_guest(CONFIG.replace("HOST", "beta"), timeout=300)
    try:
        attached = guest.attach(1, timeout=300.0)
        assert attached.status == 0, attached.text
        assert len(domains(there)) == 1
    finally:
        guest.destroy()
    wait_for("the slice there is gone", 60, lambda: domains(there) == [])
    assert pages_off(here, before[0], 30.0) == {}
    assert pages_off(there, before[1], 30.0) == {}


def test_a_host_that_nobody_knows(hosts: tuple[Host, Host]) -> None:
    """`xl create` is refused with its name, and leaves nothing behind."""
    alpha = hosts[0]
    with pytest.raises(LabError, match="gamma"):
        alpha.start_guest(CONFIG.replace("HOST", "gamma"), timeout=120)
    assert domains(run_in(alpha)) == []


def test_no_dsmd_there(hosts: tuple[Host, Host]) -> None:
    """A host that answers, and on which nobody listens: refused, with address and port."""
    alpha, beta = hosts
    there = run_in(beta)
    checked(there, "kill $(pidof dsmd-host) && while pidof dsmd-host; do sleep 0.1; done")
    try:
        with pytest.raises(LabError, match=rf"beta.*{PORT}|{PORT}.*beta"):
            alpha.start_guest(CONFIG.replace("HOST", "beta"), timeout=120)
        assert domains(run_in(alpha)) == []
    finally:
        checked(there, "setsid dsmd-host >>/var/log/dsmd-host.log 2>&1 </dev/null &")
        wait_for("dsmd-host listens", 30, lambda: there("test -S /run/xenuma/dsmd.sock").status == 0)
