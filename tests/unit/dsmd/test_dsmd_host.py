# SPDX-License-Identifier: GPL-2.0
"""dsmd-host as processes on loopback: real but for Xen (played_host_xen.c) and the dsmds of VMs (played_dsmd.py)."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import socket
import ssl
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.dsmd import test_dsmd as parts
from tests.unit.dsmd.played_hosts import (
    ADDRESS,
    GOOD,
    OTHER,
    PATIENCE,
    UUID,
    XEN,
    Host,
    Liar,
    Reply,
    Site,
    enable,
    host_program,
    kill_jobs,
    libxl_client,
    node,
    peer_ask,
    plain_connect,
    ranges,
    running,
    sizes,
    small,
    until,
)
from tests.unit.dsmd.test_dsmd_process import programs

pytestmark = pytest.mark.fresh


@pytest.fixture
def site(tmp_path: Path) -> Iterator[Site]:
    yield from running(tmp_path, 2)


@pytest.fixture
def three(tmp_path: Path) -> Iterator[Site]:
    yield from running(tmp_path, 3)


@pytest.fixture
def real(tmp_path: Path) -> Iterator[Site]:
    """With real dsmds, whose hypervisor is played."""
    yield from running(tmp_path, 2, programs()[0])


def test_a_vnode_comes_and_goes(site: Site) -> None:
    alpha, beta = site.hosts.values()
    assert enable(alpha) == {"version": 1, "ok": True}
    assert alpha.pid() and not beta.pid() and beta.has()
    assert sizes(alpha) == {1: 0}
    there = json.loads((beta.vm() / "vm.json").read_text())
    here = json.loads((alpha.vm() / "vm.json").read_text())
    assert (here["domid"], here["frames"], there["build"], there["frames"]) == (5, 0, True, 64)
    assert here["number"] == there["number"] == 1
    assert here["ranges"] == there["ranges"] and here["ranges"][1]["attached"] is False

    assert node(alpha, 32768)["ok"]
    assert beta.asked() == ["connect alpha", "node 1 32768 0"]
    assert alpha.asked() == ["connect beta", "node 1 32768 4096"]
    assert sizes(alpha) == {1: 32768}
    # The same again, more, less.
    for size in (32768, 65536, 4096):
        assert node(alpha, size)["ok"]
        assert sizes(alpha) == {1: size}
    assert beta.asked()[-1] == "node 1 4096 0"
    # What the guest is about to empty is the home's dsmd's to know, also while another request is at work.
    assert alpha.ask("leaving", vnode=1, size_kib=2048) == {"version": 1, "ok": True}
    assert alpha.asked()[-1] == "leaving 1 2048" and beta.asked()[-1] == "node 1 4096 0"
    for words, error in (
        ({"vnode": 0, "size_kib": 0}, "sizes"),
        ({"vnode": 1, "size_kib": 65537}, "sizes"),
        ({"vnode": 1}, "internal"),
        ({"vnode": 1, "size_kib": 0, "domid": 6}, "unknown-vm"),
    ):
        assert alpha.ask("leaving", **words)["error"] == error, words
    assert alpha.asked()[-1] == "leaving 1 2048"

    pid = beta.pid()
    assert pid and node(alpha, 0)["ok"]
    assert alpha.asked()[-2:] == ["node 1 0 0", "leave beta"]
    assert beta.asked()[-3:] == ["node 1 0 0", "leave alpha", "forget force"]
    assert not beta.pid() and beta.has(), "the number stays reserved"
    assert node(alpha, 0)["ok"] and node(alpha, 4096)["ok"] and beta.pid() not in (0, pid)


def test_a_host_comes_from_its_own_address(site: Site) -> None:
    """It is known by it. The system alone would have beta come from 127.0.0.1, which is alpha's."""
    assert [row["state"] for row in site.hosts["beta"].ask("hosts")["hosts"]] == ["up", "here"]


def test_real_dsmds(real: Site) -> None:
    """A vnode comes, goes, comes again; then the domain ends."""
    alpha, beta = real.hosts.values()
    for _ in range(2):
        assert enable(alpha, ranges=small()) == {"version": 1, "ok": True}
    assert alpha.ask("state")["vnodes"][0]["link"] == "down"
    for _ in range(2):
        assert node(alpha, 2048, pool_kib=256) == {"version": 1, "ok": True}
        (row,) = alpha.ask("state")["vnodes"]
        assert (row["vnode"], row["link"], row["size_kib"], row["pages_home"]) == (1, "up", 2048, 512)
        assert node(alpha, 2048, pool_kib=256)["ok"], "again"
        assert beta.pid()
        assert node(alpha, 0) == {"version": 1, "ok": True}
        assert sizes(alpha) == {1: 0} and not beta.pid()
    assert node(alpha, 2048, pool_kib=256)["ok"]
    alpha.kill()
    alpha.start()
    assert sizes(alpha) == {1: 2048}
    alpha.end_domain(5)
    until(lambda: not any(host.has() or host.pid() for host in (alpha, beta)), "something is left")


def test_libxl_and_real_dsmds(real: Site) -> None:
    """libxl's client, dsmd-host and dsmd: nothing between them is played."""
    alpha = real.alpha

    def libxl(*words: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [libxl_client(), alpha.socket, UUID, "5", *words], capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout.splitlines()

    down, up = "1", "3"  # enum libxl_vnode_link
    for words, status, said in (
        (("state",), 1, ["unknown-vm domain 5 was not made with a vnode of another host"]),
        (("enable", "gamma"), 1, [f"unknown-host gamma: no host of {alpha.config}; there are alpha, beta"]),
        (("enable", "beta"), 0, ["ok"]),
        (("state",), 0, ["ok", f"1 {down} 0 0 0 0"]),
        (("node", "1", "beta", "2048", "256"), 0, ["ok"]),
        (("state",), 0, ["ok", f"1 {up} 2048 0 0 512"]),
        (("node", "1", "beta", "4096", "256"), 1, None),
        (("leaving", "1", "0"), 0, ["ok"]),
        (("leaving", "1", "4096"), 1, None),
        (("node", "1", "beta", "0", "0"), 0, ["ok"]),
        (("state",), 0, ["ok", f"1 {down} 0 0 0 0"]),
    ):
        done = libxl(*words)
        assert done[0] == status and said in (None, done[1]), (words, done)
    alpha.kill()
    assert libxl("state")[1][0].startswith("no-dsmd-here")


def test_a_home_of_real_dsmds_is_lost(real: Site) -> None:
    alpha, beta = real.hosts.values()
    assert enable(alpha, ranges=small())["ok"] and node(alpha, 2048, pool_kib=256)["ok"]
    alpha.kill()
    os.kill(alpha.pid(), signal.SIGKILL)
    until(lambda: not alpha.pid(), "it lives")
    until(lambda: beta.status()["state"] == "failed", "its dsmd does not notice")
    beta.look()
    until(lambda: not beta.has() and not beta.pid(), "something is left")
    assert "its home is lost: host alpha is lost" in beta.said()


def test_the_end_of_a_domain(site: Site) -> None:
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    alpha.end_domain(5)
    until(lambda: not alpha.has() and not beta.has(), "something is left")
    until(lambda: not alpha.pid() and not beta.pid(), "a dsmd is left")
    assert alpha.ask("state")["error"] == "unknown-vm"


def test_a_dsmd_that_does_not_start(site: Site) -> None:
    alpha, beta = site.hosts.values()
    alpha.answers("start => domain 5: DSM: it was unpaused already")
    reply = enable(alpha)
    assert reply["error"] == "not-possible" and "it was unpaused already" in reply["text"]
    assert not alpha.has() and not beta.has()
    alpha.answers()
    assert enable(alpha)["ok"]
    beta.answers("start => domain 9: memory: Cannot allocate memory")
    reply = node(alpha, 4096)
    assert reply["error"] == "memory-there" and not beta.pid() and sizes(alpha) == {1: 0}
    beta.answers()
    assert node(alpha, 4096)["ok"]


def test_node_says_what_is_wrong_and_undoes(site: Site) -> None:
    alpha, beta = site.hosts.values()
    assert node(alpha, 4096)["error"] == "unknown-vm"
    assert enable(alpha)["ok"]
    for more, error in (
        ({"there": "gamma"}, "unknown-host"),
        ({"there": "alpha"}, "own-host"),
        ({"vnode": 2}, "sizes"),
        ({"vnode": 0}, "sizes"),
        ({"size": 4097}, "sizes"),
        ({"size": 65536 + 2048}, "sizes"),
        ({"pool_kib": 0}, "sizes"),
        ({"pool_kib": 8192}, "sizes"),
        ({"domid": 6}, "unknown-vm"),
    ):
        assert node(alpha, **({"size": 4096} | more))["error"] == error, more
        assert not beta.asked()
    # What is undone: which side fails, and what the other is told then.
    beta.answers("node 1 4096 => error: memory-there host beta has 1 KiB")
    reply = node(alpha, 4096)
    assert (reply["error"], reply["text"]) == ("memory-there", "host beta has 1 KiB")
    assert not beta.pid() and sizes(alpha) == {1: 0}
    beta.answers()
    alpha.answers("node 1 4096 => error: memory-here host alpha has 1 KiB")
    assert node(alpha, 4096)["error"] == "memory-here"
    assert beta.asked()[-4:] == ["node 1 4096 0", "node 1 0 0", "leave alpha", "forget force"]
    assert alpha.asked()[-1] == "leave beta" and not beta.pid()
    alpha.answers("connect => error: unreachable host beta: no answer")
    assert node(alpha, 4096)["error"] == "unreachable" and not beta.pid()
    alpha.answers("node => error: some words that are none of the contract's")
    reply = node(alpha, 4096)
    assert reply["error"] == "internal" and "none of the contract's" in reply["text"]
    alpha.answers()
    assert node(alpha, 4096)["ok"]
    # Down: here first, so that nothing has changed there.
    alpha.answers("node 1 0 => error: in-use 4096 KiB")
    assert node(alpha, 0)["error"] == "in-use"
    assert beta.asked()[-1] == "node 1 4096 0" and beta.pid()


def test_two_vnodes_of_two_hosts(three: Site) -> None:
    alpha, beta, gamma = three.hosts.values()
    assert enable(alpha, "beta", "gamma", "beta")["ok"]
    for vnode, there in ((1, "beta"), (2, "gamma"), (3, "beta")):
        assert node(alpha, 4096, vnode, there)["ok"]
    assert node(alpha, 0, 1)["ok"]
    assert beta.pid(), "vnode 3 is there still"
    assert node(alpha, 0, 3)["ok"] and not beta.pid() and gamma.pid()
    assert sizes(alpha) == {1: 0, 2: 4096, 3: 0}


def test_a_number_is_free_on_all_hosts(three: Site) -> None:
    alpha, beta, gamma = three.hosts.values()
    beta.domains[7] = f"{OTHER} mail 1"
    beta.write_xen()
    assert enable(beta, "gamma", uuid=OTHER, domid=7, name="mail")["ok"]
    assert enable(alpha, "gamma")["ok"]
    numbers = [
        json.loads((host.vm(uuid) / "vm.json").read_text())["number"]
        for host, uuid in ((beta, OTHER), (alpha, UUID), (gamma, UUID))
    ]
    assert numbers == [1, 2, 2]
    # A peer can't touch what is another's.
    assert peer_ask(three, "alpha", "gamma", op="end", uuid=OTHER)["error"] == "unknown-vm"
    assert gamma.has(OTHER)


def test_peers_that_lie(site: Site) -> None:
    alpha = site.alpha
    assert enable(alpha)["ok"]
    vm = json.loads((alpha.vm() / "record.json").read_text())
    # Beta is not the home: not of this VM at alpha, and not of one whose UUID a domain of alpha has.
    for words, error in (
        ({"op": "end", "uuid": UUID}, "unknown-vm"),
        ({"op": "reserve", "uuid": UUID, "vm": vm | {"home": "beta"}}, "unknown-vm"),
        ({"op": "begin", "uuid": OTHER}, "unknown-vm"),
        ({"op": "dance", "uuid": OTHER}, "unknown-vm"),
        ({"op": "node", "uuid": OTHER, "vnode": -1}, "unknown-vm"),
        ({"op": "end", "uuid": "../../etc"}, "internal"),
        ({"op": 5, "uuid": OTHER}, "internal"),
        ({"op": "end", "uuid": OTHER, "version": 2}, "version"),
        ({"op": "enable", "uuid": UUID, "domid": 5}, "unknown-vm"),
    ):
        reply = peer_ask(site, "beta", "alpha", **words)
        assert reply.get("error") == error, (words, reply)
    alpha.domains[8] = f"{OTHER} mine 1"
    alpha.write_xen()
    theirs = vm | {
        "uuid": OTHER,
        "name": "x",
        "guest": "x",
        "number": 9,
        "home": "beta",
        "ranges": [row | {"host": {"alpha": "beta", "beta": "alpha"}[row["host"]]} for row in vm["ranges"]],
    }
    reply = peer_ask(site, "beta", "alpha", op="reserve", uuid=OTHER, vm=theirs)
    assert reply["error"] == "name-taken" and "domain 8 has the UUID" in reply["text"]
    del alpha.domains[8]
    alpha.write_xen()
    for wrong, error in (
        ({"number": 0}, "internal"),
        ({"number": 1}, "number"),
        ({"name": "web"}, "name-taken"),
        ({"name": "../x"}, "internal"),
        ({"home": "alpha"}, "internal"),
        ({"domid": 0}, "internal"),
        ({"vcpus": 1 << 40}, "internal"),
        ({"ranges": []}, "internal"),
        ({"ranges": [5]}, "internal"),
        ({"ranges": theirs["ranges"][::-1]}, "sizes"),
        ({"uuid": "x"}, "internal"),
    ):
        reply = peer_ask(site, "beta", "alpha", op="reserve", uuid=OTHER, vm=theirs | wrong)
        assert reply.get("error") == error, (wrong, reply)
        assert not alpha.has(OTHER)
    assert peer_ask(site, "beta", "alpha", op="reserve", uuid=OTHER, vm=theirs)["ok"]
    # Its home does not know it: it goes by itself.
    alpha.end_domain(5)
    until(lambda: not alpha.has(OTHER), "a VM that nobody knows is left")


def of_other(site: Site) -> Reply:
    """What beta, its home, has alpha reserve for the guest OTHER."""
    home, there = ({"vnode": i, "host": host, "frames": 16384} for i, host in enumerate(("beta", "alpha")))
    rows = [home | {"first": 0, "pool_kib": 0}, there | {"first": 16384, "pool_kib": 4096}]
    return {
        "uuid": OTHER,
        "name": "x",
        "guest": "x",
        "number": 9,
        "home": "beta",
        "domid": 7,
        "vcpus": 2,
        "begun": False,
        "ranges": rows,
    }


def test_a_record_in_the_name_of_another(site: Site) -> None:
    """The UUID that a peer asks for is that of the record: it has the lock, and is looked up."""
    alpha = site.alpha
    assert enable(alpha)["ok"]
    before, pid = (alpha.vm() / "record.json").read_text(), alpha.pid()
    theirs = of_other(site)
    assert peer_ask(site, "beta", "alpha", op="reserve", uuid=OTHER, vm=theirs)["ok"]
    assert peer_ask(site, "beta", "alpha", op="begin", uuid=OTHER)["ok"]
    reply = peer_ask(site, "beta", "alpha", op="reserve", uuid=OTHER, vm=theirs | {"uuid": UUID, "name": "web"})
    peer_ask(site, "beta", "alpha", op="end", uuid=UUID)
    assert alpha.pid() == pid and (alpha.vm() / "record.json").read_text() == before
    assert reply.get("error") == "internal" and f"reserves {UUID} in the name of {OTHER}" in reply["text"], reply


def test_a_guest_of_a_uuid_that_is_lent_to(site: Site) -> None:
    """The home of the UUID is another host: it is not made here, and what is here stays."""
    alpha = site.alpha
    assert peer_ask(site, "beta", "alpha", op="reserve", uuid=OTHER, vm=of_other(site))["ok"]
    assert peer_ask(site, "beta", "alpha", op="begin", uuid=OTHER)["ok"]
    before, pid = (alpha.vm(OTHER) / "record.json").read_text(), alpha.pid(OTHER)
    alpha.domains[6] = f"{OTHER} mail 3 1"
    alpha.write_xen()
    reply = enable(alpha, uuid=OTHER, domid=6, name="mail")
    assert reply["error"] == "not-possible" and "whose home is beta" in reply["text"]
    assert node(alpha, 4096, uuid=OTHER, domid=6)["error"] == "not-possible"
    assert (alpha.vm(OTHER) / "record.json").read_text() == before and alpha.pid(OTHER) == pid


def test_what_a_peer_may_reserve(three: Site) -> None:
    """Nothing in the name of another home, and nothing of which no memory is here."""
    theirs = of_other(three)
    home, there = theirs["ranges"]
    for wrong in (
        {"home": "gamma", "ranges": [home | {"host": "gamma"}, there]},
        {"ranges": [home, there | {"host": "beta"}]},
        {"ranges": [home, there | {"host": "gamma"}]},
        {"domid": 0},
    ):
        reply = peer_ask(three, "beta", "alpha", op="reserve", uuid=OTHER, vm=theirs | wrong)
        assert not reply["ok"] and "reserves what is not its own, or not for alpha" in reply["text"], (wrong, reply)
        assert not three.alpha.has(OTHER)


def test_two_guests_of_one_uuid(site: Site) -> None:
    """The second one is refused; the first one keeps what it has."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    pids = alpha.pid(), beta.pid()
    alpha.domains[6] = f"{UUID} copy 3 1"
    alpha.write_xen()
    reply = enable(alpha, domid=6, name="copy")
    assert reply["error"] == "name-taken" and f"domain 5, web, has the UUID {UUID}, too" in reply["text"]
    assert (alpha.pid(), beta.pid()) == pids and sizes(alpha) == {1: 4096}
    # Not known whether the first one lives: refused, too.
    alpha.write_xen(fails="uuid")
    assert not enable(alpha, domid=6, name="copy")["ok"] and (alpha.pid(), beta.pid()) == pids
    # It has ended, as at a reboot: the next one has its place.
    del alpha.facts["fails"], alpha.domains[5]
    alpha.write_xen()
    assert enable(alpha, domid=6, name="copy")["ok"]
    assert alpha.pid() not in (0, pids[0]) and not beta.pid()


def test_xen_that_does_not_answer(site: Site) -> None:
    """What is not known has not ended."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    pids = alpha.pid(), beta.pid()
    for host in (alpha, beta):
        host.write_xen(fails="uuid")
        host.look()
    until(lambda: "left as it is" in alpha.said(), "nobody looked")
    assert (alpha.pid(), beta.pid()) == pids and beta.has()
    for reply in (node(alpha, 8192), enable(alpha)):
        assert (reply["error"], reply["text"]) == ("internal", "whose domain 5 is: Input/output error")
    # Is a UUID free?
    beta.write_xen(fails="find_uuid")
    reply = peer_ask(site, "alpha", "beta", op="reserve", uuid=OTHER, vm=of_other(site) | {
        "home": "alpha",
        "ranges": [row | {"host": {"alpha": "beta", "beta": "alpha"}[row["host"]]} for row in of_other(site)["ranges"]],
    })  # fmt: skip
    assert reply["error"] == "internal" and "which domains there are" in reply["text"]
    del alpha.facts["fails"], beta.facts["fails"]
    beta.write_xen()
    assert not beta.has(OTHER) and sizes(alpha) == {1: 4096}


@pytest.mark.parametrize("listens", [True, False], ids=["at once", "a moment after its socket is there"])
def test_a_xenstore_that_begins_later(site: Site, listens: bool) -> None:
    """What ends afterwards is heard of as if it had been there from the start, and not at the next look, after 30 s."""
    alpha = site.alpha
    tries = alpha.folder / "xen.tries"
    assert enable(alpha)["ok"]
    alpha.kill()
    alpha.events.unlink()
    alpha.start()
    until(lambda: "no word of domains that end (xenstore: No such file or directory)" in alpha.said(), "it says nothing")
    if not listens:
        alpha.write_xen(fails="watch")
    os.mkfifo(alpha.events)
    if not listens:
        before = tries.stat().st_size
        until(lambda: tries.stat().st_size >= before + 2, "it does not try again")
        assert "xenstore has begun" not in alpha.said()
        del alpha.facts["fails"]
        alpha.write_xen()
    until(lambda: alpha.said().count("xenstore has begun: there is word of domains that end") == 1, "it does not see it")
    begun = time.monotonic()
    alpha.end_domain(5)
    until(lambda: not alpha.has() and not alpha.pid(), "it is not removed")
    assert time.monotonic() - begun < 10
    # That somebody was turned away is said once a second, after another try if there is one: there is none.
    with socket.create_connection((ADDRESS["alpha"], site.ports["alpha"]), PATIENCE, ("127.0.0.9", 0)):
        until(lambda: "turned away in a second" in alpha.said(), "nobody was turned away")
    assert alpha.said().count("xenstore has begun") == 1


def test_a_record_that_can_not_be_read(site: Site) -> None:
    """It is not "no record": its guest may run."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    pids = alpha.pid(), beta.pid()
    files = [host.vm() / "record.json" for host in (alpha, beta)]
    good = [file.read_text() for file in files]
    files[0].write_text(good[0].replace('"beta"', '"gamma"'))
    beta.look()
    reply = peer_ask(site, "beta", "alpha", op="known", uuid=UUID)
    assert reply["error"] == "internal" and f"{UUID}/record.json can't be read" in reply["text"]
    for said in (enable(alpha), node(alpha, 0), alpha.ask("state")):
        assert said["error"] == "internal" and "names a host that is not in dsm.toml" in said["text"], said
    files[1].write_text("{")
    for op in ("end", "stop", "begin", "node"):
        assert peer_ask(site, "alpha", "beta", op=op, uuid=UUID)["error"] == "internal"
    for host in (alpha, beta):
        host.look()
        until(lambda host=host: "its guest is left as it is" in host.said(), "nobody looked")  # type: ignore[misc]
    assert (alpha.pid(), beta.pid()) == pids
    for file, text in zip(files, good, strict=True):
        file.write_text(text)
    assert node(alpha, 8192)["ok"]


def test_whose_domain_is_destroyed(site: Site) -> None:
    """A slice; never another domain of that UUID, which somebody has begun by hand meanwhile."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    beta.domains |= {2: f"{UUID} mine", 3: f"{UUID} slice"}
    for fails in ("find_slice", "destroy"):
        beta.write_xen(fails=fails)
        reply = node(alpha, 0)
        assert reply["error"] == "internal" and "can't be given back" in reply["text"]
        assert beta.has() and not beta.destroyed()
    del beta.facts["fails"]
    beta.write_xen()
    assert node(alpha, 0)["ok"] and beta.destroyed() == "destroyed 3\n"
    reply = node(alpha, 4096)
    assert reply["error"] == "name-taken" and "domain 2 has the UUID" in reply["text"]


def test_a_slice_of_which_the_dsmd_died(site: Site) -> None:
    """It goes before there is another one; so does that of a dsmd that does not begin."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    beta.domains[3] = f"{UUID} slice"
    beta.write_xen()
    os.kill(beta.pid(), signal.SIGKILL)
    until(lambda: not beta.pid(), "it lives")
    beta.domains[4] = f"{UUID} mine"
    beta.write_xen()
    assert peer_ask(site, "alpha", "beta", op="begin", uuid=UUID)["error"] == "name-taken"
    assert beta.destroyed() == "destroyed 3\n"
    del beta.domains[3], beta.domains[4]
    beta.write_xen()
    beta.answers("start => slice 9 domain 9: memory: Cannot allocate memory")
    assert peer_ask(site, "alpha", "beta", op="begin", uuid=UUID)["error"] == "memory-there"
    assert beta.destroyed() == "destroyed 3\ndestroyed 9\n"


def test_a_dsmd_that_can_not_be_looked_at(site: Site) -> None:
    """It may live: its slice stays."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    beta.domains[3] = f"{UUID} slice"
    beta.write_xen()
    alive = beta.vm() / "alive"
    alive.rename(beta.folder / "alive")
    alive.mkdir()
    assert peer_ask(site, "alpha", "beta", op="begin", uuid=UUID)["ok"]
    assert not beta.destroyed() and beta.pid()
    alive.rmdir()
    (beta.folder / "alive").rename(alive)


def test_a_dsmd_that_may_live_has_not_died(site: Site) -> None:
    """At home: its guest goes on."""
    alpha = site.alpha
    assert enable(alpha)["ok"]
    pid = alpha.vm() / "pid"
    pid.rename(alpha.folder / "pid")
    pid.mkdir()
    looked_twice(alpha)
    assert "failed" not in alpha.done()
    pid.rmdir()
    (alpha.folder / "pid").rename(pid)


def looked_twice(host: Host) -> None:
    """A sweep begins with a line of a record that can't be read: with the second line the first sweep is over."""
    host.vm(OTHER).mkdir()
    (host.vm(OTHER) / "record.json").write_text("{")
    for looks in (1, 2):
        host.look()
        until(lambda looks=looks: host.said().count("its guest is left as it is") >= looks, "nobody looks")  # type: ignore[misc]


def has_ended(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    except OSError:
        return True


def test_a_pid_that_can_not_be_read(site: Site) -> None:
    """The lock says that its dsmd lives: it is served and ended as any other."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    pids = [host.pid() for host in (alpha, beta)]
    try:
        for host in (alpha, beta):
            (host.vm() / "pid").write_text("0\n")
        assert enable(alpha) == {"version": 1, "ok": True}, "the same again"
        assert [row["link"] for row in alpha.ask("state")["vnodes"]] != ["lost"]
        assert node(alpha, 8192)["ok"] and sizes(alpha) == {1: 8192}
        assert node(alpha, 0)["ok"]
        assert beta.asked()[-3:] == ["node 1 0 0", "leave alpha", "forget force"]
        until(lambda: has_ended(pids[1]), "what nobody needs stays")
        assert not has_ended(pids[0])
        alpha.end_domain(5)
        until(lambda: has_ended(pids[0]) and not alpha.has() and not beta.has(), "a guest that has ended stays")
    finally:
        for pid in pids:
            if not has_ended(pid):
                os.kill(pid, signal.SIGKILL)


def test_a_slice_whose_pid_can_not_be_read(site: Site) -> None:
    """Its home says nothing, and its dsmd may live: it stays."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    file = beta.vm() / "pid"
    pid = file.read_text()
    file.write_text("0\n")
    alpha.kill()
    looked_twice(beta)
    file.write_text(pid)
    assert beta.pid() and beta.has() and "removed" not in beta.said()


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        (b"", "unreachable"),
        (b"x\n", "internal"),
        (b"x" * 100000, "unreachable"),
        (b'{"version": 1, "ok": true}\n', "internal"),
        (b'{"version": 2, "ok": true}\n', "internal"),
        (b'{"version": 1, "ok": 1}\n', "internal"),
        (b'{"version": 1, "ok": false, "error": "dance", "text": "x"}\n', "internal"),
        (b'{"version": 1, "ok": false, "error": "cpu"}\n', "internal"),
        ({"xen": "a\nb"}, "internal"),
        ({"features": 5}, "internal"),
        ({"features": [7]}, "cpu"),
        ({"features": ["x", {}]}, "cpu"),
        ({"free_kib": -1}, "internal"),
        ({"numbers": {}}, "internal"),
        ({"numbers": list(range(2000))}, "internal"),
        ({"name_domid": "x"}, "internal"),
        ({"hosts": "alpha"}, "internal"),
        ({"hosts": [[], {}]}, "internal"),
        ({"hosts": [None, None]}, "internal"),
    ],
    ids=str,
)
def test_a_peer_that_answers_nonsense(site: Site, reply: bytes | dict[str, object], error: str) -> None:
    alpha, beta = site.hosts.values()
    beta.kill()
    if isinstance(reply, dict):
        reply = json.dumps({"version": 1, "ok": True, "name_domid": 0} | GOOD | reply).encode() + b"\n"
    liar = Liar(site, reply)
    try:
        said = enable(alpha)
        assert said["error"] == error, said
        assert not alpha.has() and not alpha.pid()
        assert alpha.ask("hosts")["ok"]
        assert "signal" not in alpha.said()
    finally:
        liar.end()


def test_strangers(site: Site) -> None:
    alpha = site.alpha
    for me in ("stranger", "stranger"):
        with pytest.raises((ssl.SSLError, ConnectionError, json.JSONDecodeError)):
            peer_ask(site, me, "alpha", op="probe")
    with plain_connect(site, "beta", "alpha") as plain:
        plain.sendall(b'{"version": 1, "op": "probe"}\n' * 100)
        with contextlib.suppress(ConnectionError):
            assert b"xen" not in plain.recv(65536)
    until(lambda: alpha.said().count("a stranger at the address of host beta was turned away") >= 3, "nobody was turned away")
    assert peer_ask(site, "beta", "alpha", op="probe")["xen"] == XEN["version"]


def test_garbage_at_the_socket(site: Site) -> None:
    alpha = site.alpha
    for line, error in (
        (b"\n", "internal"),
        (b"{}\n", "internal"),
        (b"[1]\n", "internal"),
        (b'{"version": 2, "op": "state"}\n', "version"),
        (b'{"version": 1}\n', "internal"),
        (b'{"version": 1, "op": "dance", "uuid": "%b", "domid": 5}\n' % UUID.encode(), "internal"),
        (b'{"version": 1, "op": "state"} x\n', "internal"),
        (b'{"version": 1, "op": "state"}\n{}\n', "internal"),
        (b'{"version": 1, "op": "st\0ate"}\n', "internal"),
        (b'{"version": 1, "op": "\xff"}\n', "internal"),
        (b"[" * 1000 + b"\n", "internal"),
        (b"x" * 65536, "internal"),
    ):
        assert json.loads(alpha.ask_bytes(line))["error"] == error, line[:80]
    with alpha.connect() as half:
        half.sendall(b'{"version": 1')
    # Who says nothing is closed, and nobody waits for him.
    silent = [alpha.connect() for _ in range(20)]
    begin = time.monotonic()
    assert alpha.ask("state")["error"] == "unknown-vm"
    assert time.monotonic() - begin < 3
    reply = json.loads(silent[0].makefile().read())
    assert (reply["error"], reply["text"]) == ("internal", "no request within 5 s; ask again")
    for each in silent:
        each.close()


def test_a_flood_of_connections(site: Site) -> None:
    """More than there are places: the rest waits or is turned away, and then all is as before."""
    alpha = site.alpha
    site.hosts["beta"].domains[7] = f"{OTHER} mail 1"
    site.hosts["beta"].write_xen()
    crowd = [alpha.connect() for _ in range(60)]
    peers = [plain_connect(site, "beta", "alpha") for _ in range(60)]
    until(lambda: "too many at a time from one address" in alpha.said(), "nobody was turned away")
    # Who is turned away tries again until there is a place.
    for each in peers:
        each.close()
    assert enable(site.hosts["beta"], "alpha", uuid=OTHER, domid=7, name="mail")["ok"]
    for each in crowd:
        each.close()
    until(lambda: alpha.ask("state").get("error") == "unknown-vm", "it serves nobody any more")
    assert enable(alpha)["ok"]


def test_no_descriptors(site: Site) -> None:
    """Nobody can be accepted: that is said once a second, and who waits is served as soon as there are some."""
    alpha = site.alpha
    assert alpha.process
    limit = resource.prlimit(alpha.process.pid, resource.RLIMIT_NOFILE)
    resource.prlimit(alpha.process.pid, resource.RLIMIT_NOFILE, (3, limit[1]))
    words = json.dumps({"version": 1, "op": "state", "uuid": UUID, "domid": 5}).encode() + b"\n"
    with alpha.connect() as waits, plain_connect(site, "beta", "alpha"):
        waits.sendall(words)
        begun = time.monotonic()
        until(lambda: alpha.said().count("can't be accepted: Too many open files") >= 4, "it does not say so")
        assert alpha.said().count("can't be accepted") <= 2 * (time.monotonic() - begun + 2), "a loop"
        resource.prlimit(alpha.process.pid, resource.RLIMIT_NOFILE, limit)
        assert json.loads(waits.makefile().readline())["error"] == "unknown-vm"
    assert peer_ask(site, "beta", "alpha", op="probe")["ok"]


def test_a_flood_from_elsewhere(three: Site) -> None:
    """Those whose address is not a host's, or who were many in this second, are not served; the others are, meanwhile."""
    alpha = three.alpha

    def knock(source: str) -> None:
        with (
            contextlib.suppress(OSError),
            socket.create_connection((ADDRESS["alpha"], three.ports["alpha"]), PATIENCE, (source, 0)) as plain,
        ):
            plain.recv(1)

    over = threading.Event()

    def flood() -> None:
        while not over.is_set():
            knock("127.0.0.9")

    crowd = [threading.Thread(target=flood) for _ in range(4)]
    for each in crowd:
        each.start()
    until(lambda: "not the address of a host" in alpha.said(), "nobody was turned away")
    begun = time.monotonic()
    for _ in range(10):
        assert peer_ask(three, "beta", "alpha", op="probe")["ok"]
    assert time.monotonic() - begun < PATIENCE
    over.set()
    for each in crowd:
        each.join()
    assert alpha.said().count("not the address of a host") <= time.monotonic() - begun + 3, "a line for each"
    for _ in range(3000):
        with contextlib.suppress(OSError), plain_connect(three, "beta", "alpha"):
            pass
        if "too many in a second from one address" in alpha.said():
            break
    assert "too many in a second from one address" in alpha.said()
    assert peer_ask(three, "gamma", "alpha", op="probe")["ok"]


def test_a_line_of_the_log_is_one(site: Site) -> None:
    """What a peer says is neither a key nor a line of it."""
    alpha = site.alpha
    theirs = of_other(site)
    rows = [theirs["ranges"][0], theirs["ranges"][1] | {"host": 'x" level=error msg="\u2028y'}]
    reply = peer_ask(site, "beta", "alpha", op="reserve", uuid=OTHER, vm=theirs | {"ranges": rows})
    assert reply["error"] == "unknown-host"
    until(lambda: "unknown-host" in alpha.said(), "it is not logged")
    (line,) = [line for line in alpha.said().splitlines() if "unknown-host" in line]
    assert line.count('"') == 2 and "x' level=error msg='" in line and line.isascii(), line


def test_places_for_each_home(site: Site) -> None:
    """A home that takes all numbers would leave none to others."""
    alpha, beta = site.hosts.values()
    alpha.kill()
    theirs = of_other(site) | {"home": "alpha", "begun": False}
    theirs["ranges"] = [row | {"host": host} for row, host in zip(theirs["ranges"], ("alpha", "beta"), strict=True)]
    most = 1023 // 2
    for i in range(1, most):
        uuid = f"{i:08x}{UUID[8:]}"
        beta.vm(uuid).mkdir()
        vm = theirs | {"uuid": uuid, "number": i, "name": f"x{i}", "domid": 0}
        (beta.vm(uuid) / "record.json").write_text(json.dumps(vm))
    for uuid, number, ok in ((OTHER, most, True), (UUID, most + 1, False), (OTHER, most, True)):
        vm = theirs | {"uuid": uuid, "number": number, "name": f"y{number}"}
        reply = peer_ask(site, "alpha", "beta", op="reserve", uuid=uuid, vm=vm)
        assert reply["ok"] == ok, reply
        assert ok or "places for 511 guests of host alpha" in reply["text"], reply


def test_what_is_lent(site: Site) -> None:
    """Half of a host's memory at most is lent, to all guests together, however many ask; also after a restart."""
    alpha, beta = site.hosts.values()
    alpha.domains[6] = f"{OTHER} mail 3 1"
    alpha.write_xen()
    overhead = 4096 + 64 * 4  # of 128 MiB and 2 vCPUs
    mail: dict[str, Any] = {"uuid": OTHER, "domid": 6}

    def lent(kib: int) -> None:
        beta.write_xen(total=str(-(-kib // 50) * 100))

    lent(2 * overhead + 65536)
    assert enable(alpha)["ok"] and enable(alpha, name="mail", **mail)["ok"]
    assert node(alpha, 32768)["ok"] and node(alpha, 16384, **mail)["ok"]
    reply = node(alpha, 49152 + 2048)
    assert reply["error"] == "memory-there" and "limits.lend_percent" in reply["text"]
    assert f"has lent {overhead + 16384} KiB to others, {overhead + 51200} KiB are needed" in reply["text"]
    assert "node 1 51200 0" not in beta.asked() and sizes(alpha) == {1: 32768}
    # What dsmd refuses is not lent, nor is what comes back.
    beta.answers("node 1 49152 => error: memory-there host beta has 1 KiB")
    assert node(alpha, 49152)["text"] == "host beta has 1 KiB"
    beta.answers()
    beta.kill()
    beta.start()
    assert node(alpha, 32768, **mail)["ok"] and not node(alpha, 34816, **mail)["ok"]
    assert node(alpha, 2048)["ok"] and node(alpha, 63488, **mail)["ok"]
    assert node(alpha, 0)["ok"] and not node(alpha, 65536 + 2048, **mail)["ok"]
    lent(overhead + 63488)
    asked = beta.asked()
    reply = node(alpha, 2048)
    assert reply["error"] == "memory-there" and not beta.pid()
    assert beta.asked() == asked, "not even page tables"
    # Its home says less than it is.
    lent(16 << 20)
    for more, error in (({"vnode": 0}, "sizes"), ({"size_kib": 65536 + 4}, "sizes")):
        words = {"op": "node", "uuid": OTHER, "vnode": 1, "size_kib": 4096} | more
        assert peer_ask(site, "alpha", "beta", **words)["error"] == error
    os.kill(beta.pid(OTHER), signal.SIGKILL)


def test_what_dom0_needs_for_what_is_lent(site: Site) -> None:
    """A home can have each page known here that is lent: 320 bytes of dom0 each, a quarter of dom0 at most for all guests."""
    alpha, beta = site.hosts.values()
    alpha.domains[6] = f"{OTHER} mail 3 1"
    alpha.write_xen()
    mail: dict[str, Any] = {"uuid": OTHER, "domid": 6}
    books = {kib: kib // 4 * 320 // 1024 for kib in (32768, 16384, 49152)}
    beta.write_xen(dom0=str(400 * -(-(books[32768] + books[16384]) // 100)))
    assert enable(alpha)["ok"] and enable(alpha, name="mail", **mail)["ok"]
    assert node(alpha, 32768)["ok"] and node(alpha, 16384, **mail)["ok"]
    reply = node(alpha, 49152)
    assert reply["error"] == "memory-there" and "limits.lend_dom0_percent" in reply["text"], reply
    assert f"may need {books[16384]} KiB for others, {books[49152]} KiB are needed" in reply["text"]
    assert "node 1 49152 0" not in beta.asked() and sizes(alpha) == {1: 32768}
    assert node(alpha, 16384)["ok"] and node(alpha, 32768, **mail)["ok"], "what one gives back another may have"
    beta.write_xen(dom0="0")
    assert node(alpha, 49152)["ok"], "nobody knows"
    os.kill(beta.pid(OTHER), signal.SIGKILL)


def test_how_many_guests_have_memory_here(tmp_path: Path) -> None:
    """Each has a dsmd in dom0, whose memory nobody can take away: of each home so many, and no more."""
    three = Site(tmp_path, 3)
    try:
        alpha, beta, gamma = three.hosts.values()
        few = beta.config.read_text().replace("opening_ms = 2000", "opening_ms = 2000\nlend_guests = 1")
        beta.config.write_text(few)
        third = f"2{UUID[1:]}"
        alpha.domains[6] = f"{OTHER} mail 3 1"
        gamma.domains[7] = f"{third} news 3 1"
        for host in (alpha, beta, gamma):
            host.write_xen()
            host.start()
        mail: dict[str, Any] = {"uuid": OTHER, "domid": 6}
        news: dict[str, Any] = {"uuid": third, "domid": 7}
        assert enable(alpha)["ok"] and enable(alpha, name="mail", **mail)["ok"] and enable(gamma, name="news", **news)["ok"]
        assert node(alpha, 4096)["ok"] and node(gamma, 4096, **news)["ok"], "one of each home"
        reply = node(alpha, 4096, **mail)
        assert reply["error"] == "memory-there" and "memory for 1 guests of host alpha" in reply["text"], reply
        assert "limits.lend_guests" in reply["text"] and not beta.pid(OTHER)
        assert node(alpha, 8192)["ok"], "more for one that is there"
        assert node(alpha, 0)["ok"] and node(alpha, 4096, **mail)["ok"], "another one instead"
        os.kill(beta.pid(third), signal.SIGKILL)
        os.kill(gamma.pid(third), signal.SIGKILL)
    finally:
        three.end()


def test_a_host_that_was_booted(three: Site) -> None:
    """It has forgotten its place for a guest that had nothing there: an attach has it again."""
    alpha, beta, gamma = three.hosts.values()
    assert enable(alpha, "beta", "beta")["ok"] and enable(alpha, "beta", "beta")["ok"]

    def boot() -> None:
        beta.kill()
        if pid := beta.pid():
            os.kill(pid, signal.SIGKILL)
        shutil.rmtree(beta.run)
        beta.start()

    boot()
    assert node(alpha, 4096)["ok"] and sizes(alpha) == {1: 4096, 2: 0}
    # With memory that is lost there nothing begins anew.
    boot()
    for words in ({"size": 4096}, {"size": 4096, "vnode": 2}):
        assert node(alpha, **words)["error"] == "unknown-vm"  # type: ignore[arg-type]
        assert not beta.has()
    # The number is another's by now.
    gamma.domains[7] = f"{OTHER} mail 1"
    gamma.write_xen()
    assert node(alpha, 0)["ok"] and enable(gamma, "beta", uuid=OTHER, domid=7, name="mail")["ok"]
    reply = node(alpha, 4096)
    assert reply["error"] == "internal" and "number 1 is another VM's" in reply["text"]


def test_a_guest_that_reboots(site: Site) -> None:
    """Its next domain waits until what the one before had has been removed."""
    alpha = site.alpha
    assert enable(alpha)["ok"]
    alpha.domains[6] = alpha.domains.pop(5)
    alpha.write_xen()
    replies: list[Reply] = []
    with (alpha.run / "vm" / f"{UUID}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        thread = threading.Thread(target=lambda: replies.append(enable(alpha, domid=6)))
        thread.start()
        thread.join(4)  # longer than others wait
        assert thread.is_alive()
    thread.join(PATIENCE)
    assert replies == [{"version": 1, "ok": True}]


def test_enable_ends_before_libxl_waits_no_more(three: Site) -> None:
    """Hosts that say nothing: each has its time, and all together have no more than libxl gives."""
    alpha, beta, gamma = three.hosts.values()
    for host in (beta, gamma):
        host.answers("start => hang")
    alpha.answers("start => hang")
    begun = time.monotonic()
    with (alpha.run / "vm" / f"{UUID}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        releases = threading.Timer(11.5, lock.close)
        releases.start()
        reply = enable(alpha, "beta", "gamma")
        releases.join()
    # It had 25 s less those of the lock, not the 15 s of each start.
    tried = re.search(r"does not run after (\d+) s", reply["text"])
    assert reply["error"] == "internal" and tried and int(tried[1]) < 15, reply
    assert time.monotonic() - begun < 30 and not alpha.has() and not beta.has()


def test_it_says_that_it_is_ready(tmp_path: Path) -> None:
    site = Site(tmp_path, 2)
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as words:
        words.bind(str(tmp_path / "notify"))
        words.settimeout(PATIENCE)
        os.environ["NOTIFY_SOCKET"] = str(tmp_path / "notify")
        try:
            site.alpha.start()
        finally:
            del os.environ["NOTIFY_SOCKET"]
        assert words.recv(100) == b"READY=1"
        assert enable(site.alpha)["error"] == "no-dsmd-there"
    site.end()


def test_an_address_that_is_not_here(site: Site) -> None:
    """It says which one."""
    alpha = site.alpha
    alpha.kill()
    config = alpha.config.read_text()
    for name, number in zip(site.ports, (1, 2), strict=True):
        config = config.replace(f'"{ADDRESS[name]}"', f'"192.0.2.{number}"')
    alpha.config.write_text(config)
    for words in ([], ["--check"]):
        done = subprocess.run(
            [host_program(), *words, "-c", alpha.config, "-f", alpha.run, "-l", alpha.socket],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert done.returncode == 3
        assert f"{alpha.config}: 192.0.2.1, port {site.ports['alpha']} of host alpha, which is to be this one" in done.stderr
        assert "self" in done.stderr


@pytest.mark.parametrize("program", [0, 2], ids=["dsmd", "dsmd-host"])
def test_words_too_many(program: int) -> None:
    """Besides how it is used it is said what is wrong."""
    path = host_program() if program else programs()[0]
    done = subprocess.run([path, "one", "two"], capture_output=True, text=True, timeout=PATIENCE, check=False)
    wanted = "dsmd-host: one: no word is wanted\n" if program else "dsmd: words after it: 1, the file of a VM, not 2\n"
    assert done.returncode == 2 and done.stderr.startswith(wanted + "usage: "), done


@pytest.mark.parametrize("name", ["dsmd", "dsmd-host", "dsmctl"])
def test_versions(name: str) -> None:
    """Of the project, and those that decide whether two hosts understand each other."""
    path = host_program() if name == "dsmd-host" else programs()[name == "dsmctl"]
    wire = (parts.DSM / "core" / "wire.h").read_text(encoding="utf-8")
    lowest, highest = (re.findall(rf"#define DSM_WIRE_{end}\s+(\d+)", wire)[0] for end in ("LOWEST", "HIGHEST"))
    for word in ("--version", "-V"):
        done = subprocess.run([path, word], capture_output=True, text=True, timeout=PATIENCE, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert re.fullmatch(rf"{name} \(Xenuma\) \d+\.\d+", lines[0])
        assert lines[1:] == [
            f"connections between dsmds: versions {lowest} to {highest}",
            "requests to dsmd-host: version 1",
        ]


def test_words_between_hosts(site: Site) -> None:
    """What libxl hears is a word of the contract, whatever a peer says."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"]
    beta.kill()
    liar = Liar(site, b'{"version": 1, "ok": false, "error": "number", "text": "x"}\n')
    try:
        for reply in (node(alpha, 4096), enable(alpha, uuid=OTHER, domid=9)):
            assert (reply["error"], reply["text"]) in (("internal", "x"), ("unknown-vm", reply["text"])), reply
        assert node(alpha, 4096)["error"] == "internal"
    finally:
        liar.end()


def test_killed_and_begun_anew(site: Site) -> None:
    """The processes of hosts end; the dsmds of VMs do not, and nothing is forgotten."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    pids = alpha.pid(), beta.pid()
    for host in (alpha, beta):
        host.kill()
        host.start()
    assert (alpha.pid(), beta.pid()) == pids and all(pids)
    assert sizes(alpha) == {1: 4096} and enable(alpha)["ok"] and node(alpha, 8192)["ok"]
    alpha.kill()
    del alpha.domains[5]
    alpha.write_xen()
    alpha.start()
    until(lambda: not alpha.has() and not beta.has() and not alpha.pid() and not beta.pid(), "something is left")


def test_begun_anew_while_a_request_is_at_work(site: Site) -> None:
    """The request has nothing that the next one needs but the guest's lock."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"]
    beta.answers("start => hang")
    words = {"version": 1, "op": "node", "uuid": UUID, "domid": 5}
    with alpha.connect() as first:
        first.sendall(json.dumps(words | {"vnode": 1, "host": "beta", "size_kib": 4096, "pool_kib": 4096}).encode())
        first.sendall(b"\n")
        until((beta.vm() / "pid").exists, "beta is not asked")
        for host in (alpha, beta):
            host.kill()
            host.start()
        assert sizes(alpha) == {1: 0} and node(alpha, 4096)["error"] == "busy"
        assert json.loads(first.makefile().readline())["error"] == "internal"
    beta.answers()
    assert node(alpha, 4096)["ok"]


def test_a_second_one(site: Site) -> None:
    host = site.alpha
    done = subprocess.run(
        [host_program(), "-c", host.config, "-f", host.run, "-l", host.socket],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert (done.returncode, "another dsmd-host has" in done.stderr) == (3, True), done


def test_a_request_at_work(site: Site) -> None:
    """`busy` to another one of the guest; `state` is answered meanwhile."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"]
    beta.answers("start => hang")
    with alpha.connect() as first:
        words = {"vnode": 1, "host": "beta", "size_kib": 4096, "pool_kib": 4096}
        line = json.dumps({"version": 1, "op": "node", "uuid": UUID, "domid": 5} | words)
        first.sendall(line.encode() + b"\n")
        until((beta.vm() / "pid").exists, "beta is not asked")
        assert node(alpha, 4096)["error"] == "busy"
        assert sizes(alpha) == {1: 0}
        reply = json.loads(first.makefile().readline())
        assert reply["error"] == "internal" and "does not run after" in reply["text"]
    assert not beta.pid()
    beta.answers()
    assert node(alpha, 4096)["ok"]


def test_each_is_first_once(site: Site) -> None:
    """What a sweep has no time for is what the next one begins with."""
    alpha = site.alpha
    alpha.domains[6] = f"{OTHER} mail 3 1"
    alpha.write_xen()
    assert enable(alpha)["ok"] and enable(alpha, uuid=OTHER, domid=6, name="mail")["ok"]
    alpha.write_xen(fails="uuid")

    def looked() -> list[str]:
        return [line.split(" vm=")[1].split()[0] for line in alpha.said().splitlines() if "left as it is" in line]

    for sweeps in (1, 2, 3):
        alpha.look()
        until(lambda sweeps=sweeps: len(looked()) >= 2 * sweeps, "nobody looks")  # type: ignore[misc]
    first = looked()[::2]
    assert {first[0], first[1]} == {"web", "mail"} and first[2] == first[0], looked()


def test_a_record_that_can_not_be_removed(site: Site) -> None:
    """It stays as a whole, and is tried again: without it its dsmd's pid would be that of the next guest of this UUID."""
    alpha = site.alpha
    assert enable(alpha)["ok"]
    os.kill(alpha.pid(), signal.SIGKILL)
    until(lambda: not alpha.pid(), "it lives")
    pid = alpha.vm() / "pid"
    pid.unlink()
    (pid / "x").mkdir(parents=True)
    del alpha.domains[5]
    alpha.write_xen()
    for looks in (1, 2):
        alpha.look()
        until(lambda looks=looks: alpha.said().count("its domain has ended") >= looks, "nobody looks")  # type: ignore[misc]
    assert alpha.has()
    (pid / "x").rmdir()
    pid.rmdir()
    alpha.look()
    until(lambda: not alpha.vm().exists(), "something is left")


def test_a_dsmd_that_died(site: Site) -> None:
    """At home: the domain is ended with a reason, which stays until it is destroyed; then nothing is left."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    os.kill(alpha.pid(), signal.SIGKILL)
    until(lambda: "failed 5" in alpha.done(), "nobody saw it")
    why = "host alpha: its dsmd has ended; who has which of up to 16384 pages of host beta is lost with it"
    assert alpha.done() == f"failed 5 {why}\n"
    until((alpha.run / "web.failed").exists, "dsmctl can't tell")
    assert (alpha.run / "web.failed").read_text() == f"{why}\n"
    assert [row["link"] for row in alpha.ask("state")["vnodes"]] == ["lost"]
    assert "has ended" in node(alpha, 8192)["text"]
    assert "has ended" in enable(alpha)["text"]
    alpha.end_domain(5)
    until(lambda: not alpha.has() and not beta.has(), "something is left")
    assert alpha.done() == f"failed 5 {why}\nforgot {UUID}\n", "once"
    assert not [*alpha.run.glob("web.*"), *beta.run.glob("web.*")]


def test_a_dsmd_elsewhere_that_died(site: Site) -> None:
    """The slice never runs: there is nothing to end, and it stays until its home says so."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    beta.domains[3] = f"{UUID} slice 1"
    beta.write_xen()
    os.kill(beta.pid(), signal.SIGKILL)
    until((beta.run / "web.failed").exists, "nobody saw it")
    why = "host beta: its dsmd has ended; who has which of up to 16384 pages of host beta is lost with it"
    assert beta.done() == f"failed 0 {why}\n"
    alpha.end_domain(5)
    until(lambda: not alpha.has() and not beta.has(), "something is left")
    assert beta.done() == f"failed 0 {why}\ndestroyed 3\nforgot {UUID}\n"
    assert not [*beta.run.glob("web.*")]


def test_a_dsmd_that_died_while_nobody_looked(site: Site) -> None:
    """dsmd-host was killed before it; the next one ends the domain, and no domain that has got its number."""
    alpha, beta = site.hosts.values()
    for owner, expected in ((UUID, "failed 5 "), (OTHER, "")):
        assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
        alpha.kill()
        os.kill(alpha.pid(), signal.SIGKILL)
        until(lambda: not alpha.pid(), "it lives")
        alpha.domains[5] = f"{owner} web 3 1"
        alpha.write_xen()
        alpha.start()
        if expected:
            until(lambda expected=expected: expected in alpha.done(), "nobody saw it")  # type: ignore[misc]
            alpha.end_domain(5)
        until(lambda: not alpha.has() and not beta.has(), "something is left")
        assert alpha.done().count("failed") == 1
        alpha.domains[5] = f"{UUID} web 3 1"
        alpha.write_xen()


def test_a_name_that_is_used_again(site: Site) -> None:
    """A guest is destroyed, and made anew at once: what is left of the first one does not end the second one's dsmd."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    first = alpha.pid()
    del alpha.domains[5]
    alpha.domains[6] = f"{OTHER} web 3 1"
    alpha.write_xen()  # and no word of it
    again = enable(alpha, uuid=OTHER, domid=6)
    assert again["ok"], again
    assert not alpha.has() and not beta.has() and not Path(f"/proc/{first}/cwd").exists()
    assert alpha.pid(OTHER) and (alpha.run / "web.sock").exists()
    alpha.domains[7] = f"{UUID} web 3 1"
    alpha.write_xen()
    taken = enable(alpha, domid=7)
    assert taken["error"] == "name-taken" and "host alpha has another guest called web" in taken["text"], taken
    assert not alpha.has() and not beta.has() and alpha.pid(OTHER)


@pytest.mark.parametrize(
    ("state", "why"), [("failed", "its home is lost: a reason"), ("over", "it has ended: a reason")]
)
def test_a_home_that_is_lost(site: Site, state: str, why: str) -> None:
    """What it had here goes as soon as its dsmd here says that the VM has failed, or ended, and not before."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"] and node(alpha, 4096)["ok"]
    beta.domains[3] = f"{UUID} slice 1"
    beta.write_xen()
    alpha.kill()
    # It has looked again: so it was content with what it saw before.
    for looks in (1, 2):
        beta.look()
        until(lambda looks=looks: beta.asked("status.asked") >= ["status"] * looks, "nobody looks")  # type: ignore[misc]
    assert beta.has() and beta.pid(), "a home that is away for a moment"
    beta.answers(f"is => {state}")
    beta.look()
    until(lambda: not beta.has() and not beta.pid(), "something is left")
    assert beta.done() == f"destroyed 3\nforgot {UUID}\n"
    assert why in beta.said()


def test_killed_at_every_effect(site: Site) -> None:
    """The process of a request is killed as soon as a file or a dsmd is there; the same again puts it right."""
    alpha, beta = site.hosts.values()
    effects: list[tuple[str, Callable[[], bool]]] = [
        ("a record here", alpha.has),
        ("a record there", beta.has),
        ("a dsmd here", lambda: bool(alpha.pid())),
    ]
    for name, effect in effects:
        with alpha.connect() as client:
            line = json.dumps(
                {
                    "version": 1,
                    "op": "enable",
                    "uuid": UUID,
                    "domid": 5,
                    "name": "web",
                    "vcpus": 2,
                    "ranges": ranges("beta"),
                }
            )
            client.sendall(line.encode() + b"\n")
            end = time.monotonic() + PATIENCE
            while not effect():
                assert time.monotonic() < end, name
            kill_jobs(alpha)
        reply = enable(alpha)
        assert reply["ok"] or "has ended" in reply["text"], (name, reply)
        assert not reply["ok"] or sizes(alpha) == {1: 0}
        alpha.end_domain(5)
        until(lambda: not alpha.has() and not beta.has(), f"{name}: something is left")
        alpha.domains[5] = f"{UUID} web 3 1"
        alpha.write_xen()


@pytest.mark.parametrize("then", [4096, 0])
def test_an_attach_that_is_killed(site: Site, then: int) -> None:
    """At each of its effects; the same or the opposite puts it right."""
    alpha, beta = site.hosts.values()
    assert enable(alpha)["ok"]
    words = {"version": 1, "op": "node", "uuid": UUID, "domid": 5, "vnode": 1, "host": "beta"}
    effects: list[Callable[[], bool]] = [
        lambda: bool(beta.pid()),
        lambda: "connect alpha" in beta.asked(),
        lambda: "node 1 4096 0" in beta.asked(),
        lambda: "node 1 4096 4096" in alpha.asked(),
    ]
    for effect in effects:
        with alpha.connect() as client:
            client.sendall(json.dumps(words | {"size_kib": 4096, "pool_kib": 4096}).encode() + b"\n")
            end = time.monotonic() + PATIENCE
            while not effect():
                assert time.monotonic() < end
            kill_jobs(alpha)
        assert node(alpha, then)["ok"]
        assert sizes(alpha) == {1: then} and bool(beta.pid()) == bool(then)
        assert node(alpha, 0)["ok"] and not beta.pid()
        for host in (alpha, beta):
            (host.run / "asked").write_text("", encoding="utf-8")


def test_hosts(three: Site) -> None:
    alpha, _, gamma = three.hosts.values()
    gamma.kill()
    assert enable(alpha)["ok"]
    rows = {row["host"]: row for row in alpha.ask("hosts")["hosts"]}
    assert {name: row["state"] for name, row in rows.items()} == {
        "alpha": "here",
        "beta": "up",
        "gamma": "no-dsmd-there",
    }
    assert rows["beta"]["vms"] == rows["alpha"]["vms"] == 1
    assert rows["beta"]["xen"] == XEN["version"] and rows["beta"]["free_kib"] == 8 << 20

    def ctl(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [programs()[1], "-l", alpha.socket, *words], capture_output=True, text=True, timeout=PATIENCE, check=False
        )

    said = ctl("hosts")
    assert said.returncode == 1 and "nobody listens; start dsmd-host there" in said.stdout
    assert [line.split()[:2] for line in said.stdout.splitlines()[1:3]] == [["alpha", "here"], ["beta", "up"]]
    gamma.start()
    assert ctl("hosts").returncode == 0
    assert [row["state"] for row in json.loads(ctl("--json", "hosts").stdout)] == ["here", "up", "up"]
    alpha.kill()
    said = ctl("hosts")
    assert said.returncode == 3 and f"nobody listens at {alpha.socket}: start dsmd-host" in said.stderr, said


def ctl_hosts(host: Host, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [programs()[1], "-l", host.socket, *words, "hosts"],
        capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip


def test_certificates_that_expire(tmp_path: Path) -> None:
    """The log says it at the start, dsmctl of each host: by what that one has proved."""
    site = Site(tmp_path, 3, papers=("ca:29", "alpha:12", "beta:50", "gamma:7", "stranger"))
    alpha, beta, gamma = (host.start() for host in site.hosts.values())
    warned = [line for line in alpha.said().splitlines() if "expires" in line]
    assert len(warned) == 2 and all(line.startswith("<4>level=warning msg=") for line in warned), alpha.said()
    assert f"this host's certificate ({tmp_path}/alpha.pem) expires on " in warned[0]
    assert re.search(", in 1[12] days: ", warned[0])
    assert f"the CA's certificate ({tmp_path}/ca.pem) expires on " in warned[1]
    assert re.search(", in 2[89] days: ", warned[1])
    assert "dsmd-host(8), CERTIFICATES THAT EXPIRE" in warned[0]
    assert "this host's certificate" not in beta.said() and gamma.said().count("expires") == 2
    here, there, third = alpha.ask("hosts")["hosts"]
    for row, days, soon in ((here, 12, True), (there, 50, False), (third, 7, True)):
        assert 0 <= time.time() + days * 86400 - row["certificate_expires"] < 600
        assert ("certificate_expires_soon" in row) is soon and row.get("file", "same") == "same"
    assert 0 <= time.time() + 29 * 86400 - here["ca_expires"] < 600 and "ca_expires" not in there
    said = ctl_hosts(alpha)
    lines = said.stdout.splitlines()
    assert said.returncode == 0 and len(lines) == 7, said
    assert [line.split()[-1] for line in lines[:4]] == [
        "EXPIRES",
        *(time.strftime("%Y-%m-%d", time.gmtime(row["certificate_expires"])) for row in (here, there, third)),
    ]
    assert re.match(r"alpha: its certificate expires on .*, in 1[12] days: ", lines[4])
    assert re.match(r"alpha: the CA's certificate expires on .*, in 2[89] days: ", lines[5])
    assert re.match(r"gamma: its certificate expires on .*, in [67] days: ", lines[6])
    site.end()


@pytest.mark.parametrize(
    ("old", "new", "differences"),
    [
        ("", "", []),
        ("opening_ms = 2000", "opening_ms = 2001", []),
        (r"\.3\"\nport = {gamma}", '.4"\nport = {gamma}', [("gamma.address", "127.0.0.3", "127.0.0.4")]),
        ("port = {gamma}", "port = 64512", [("gamma.port", "{gamma}", "64512")]),
        ('\\["gamma"\\]', '["gamma", "g.example"]', [("gamma.certificate_names", "gamma", "g.example gamma")]),
        ('\\["gamma"\\]', '["GAMMA"]', []),
        ('\\["gamma"\\]', f'["{"g." * 60}example", "gamma", "h.example"]',
         [("gamma.certificate_names", "gamma", f"{'g.' * 48}...")]),
        ('\\["gamma"\\]', '["gamma", "g.example", "h.example"]',
         [("gamma.certificate_names", "gamma", "g.example h.example gamma")]),
        ('name = "gamma"', 'name = "delta"', [("gamma", "127.0.0.3", "no such host"), ("delta", "no such host", "127.0.0.3")]),
        ("number = 2", "number = 0", [("alpha.number", "0", "2"), ("gamma.number", "2", "0")]),
        ("^", "class_u = true\n", [("class_u", "false", "true")]),
        ("^", "class_u = false\n", []),
        ("(?s)\\[\\[host\\]\\]\nname = .gamma.*", "", [("gamma", "127.0.0.3", "no such host")]),
    ],
    ids=["nothing", "limits", "an address", "a port", "names", "letters", "a long name", "two names more", "another host",
         "numbers", "class U", "no class U", "a host less"],
)  # fmt: skip
def test_files_of_two_hosts(tmp_path: Path, old: str, new: str, differences: list[tuple[str, str, str]]) -> None:
    """dsmctl says each host, key and both values, before a guest is made."""
    site = Site(tmp_path, 3)
    alpha, beta, _ = site.hosts.values()
    config, (old, new) = beta.config.read_text(), (text.replace("{gamma}", str(site.ports["gamma"])) for text in (old, new))
    if "number" in old:
        config = config.replace("number = 0", "number = -")
    config = re.sub(old, new, config) if old else config
    beta.config.write_text(config.replace("number = -", "number = 2"))
    alpha.start()
    beta.start()
    row = alpha.ask("hosts")["hosts"][1]
    wanted = [(key, *(text.replace("{gamma}", str(site.ports["gamma"])) for text in both)) for key, *both in differences]
    assert [(one["key"], one["here"], one["there"]) for one in row.get("differences", [])] == wanted
    assert row["file"] == ("differs" if differences else "same") and row["state"] == "up" and "more" not in row
    said = ctl_hosts(alpha)
    assert said.stdout.splitlines()[4:] == [
        f"beta: its dsm.toml differs: {key} is {there} there, {here} here" for key, here, there in wanted
    ]
    site.hosts["gamma"].start()
    assert ctl_hosts(alpha).returncode == bool(differences)
    assert json.loads(ctl_hosts(alpha, "--json").stdout)[1] == row | {"vms": 0}
    site.end()


def row_of(host: str, **more: object) -> dict[str, object]:
    number = list(ADDRESS).index(host)
    return {"name": host, "number": number, "address": ADDRESS[host], "port": 1, "certificate_names": [host]} | more


MANY = [row_of("beta", name=f"{'x' * 240}{i}", number=i) for i in range(16)]
LONG = [row | {"certificate_names": ["y" * 253] * 8} for row in MANY]


@pytest.mark.parametrize(
    ("file", "says"),
    [
        (None, "unsaid"),
        ("x", "wrong"),
        ({"transport": "tcp"}, "wrong"),
        ({"transport": "udp", "hosts": []}, "wrong"),
        ({"transport": "tcp", "hosts": {}}, "wrong"),
        ({"transport": "tcp", "class_u": 1, "hosts": [row_of("alpha"), row_of("beta")]}, "wrong"),
        ({"transport": "tcp", "hosts": [5]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", name="a\nb")]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", name="x" * 254)]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", name="b\0x")]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", number=16)]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", port=65536)]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", address="alpha")]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", address="1.2.3.4;\x1b[2J")]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", certificate_names=["x"] * 9)]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", certificate_names="x")]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", certificate_names=["*"])]}, "wrong"),
        ({"transport": "tcp", "hosts": [*MANY, row_of("beta")]}, "wrong"),
        ({"transport": "rdma", "hosts": MANY}, "differs"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta"), row_of("beta", number=2)]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", number=0)]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha"), row_of("beta", certificate_names=[])]}, "wrong"),
        ({"transport": "tcp", "hosts": [row_of("alpha")]}, "wrong"),
        ({"transport": "rdma", "hosts": LONG}, "differs"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_file_that_is_made_up(site: Site, file: object, says: str) -> None:
    """What another host says of its file is looked at before it is shown, and an older one says nothing."""
    alpha, beta = site.hosts.values()
    beta.kill()
    more = {} if file is None else {"file": file}
    liar = Liar(site, json.dumps({"version": 1, "ok": True, "name_domid": 0} | GOOD | more).encode() + b"\n")
    try:
        row = alpha.ask("hosts")["hosts"][1]
        assert row["state"] == "up" and row["file"] == says, row
        assert len(row.get("differences", [])) <= 8
        assert all(len(text) < 100 for one in row.get("differences", []) for text in one.values())
        if isinstance(file, dict) and file.get("hosts") is MANY:
            assert row["more"] == 1 + 2 + 16 - 8
        said = ctl_hosts(alpha)
        assert said.returncode == (says != "unsaid")
        assert all(line.isascii() and line.isprintable() for line in said.stdout.splitlines())
        if says == "unsaid":
            assert "it does not say: its dsmd-host is older" in said.stdout
        else:
            assert {"wrong": "makes no sense", "differs": "transport is rdma there, tcp here"}[says] in said.stdout
        assert "signal" not in alpha.said()
    finally:
        liar.end()


@pytest.mark.parametrize("xen", ["4.20\u009b2J", "4.20\u202e", "4.20\x7f", "\ufffd", "x" * 64])
def test_a_version_that_is_made_up(site: Site, xen: str) -> None:
    """What is no plain letter may be a command for the terminal of who looks."""
    alpha, beta = site.hosts.values()
    beta.kill()
    liar = Liar(site, json.dumps({"version": 1, "ok": True, "name_domid": 0} | GOOD | {"xen": xen}).encode() + b"\n")
    try:
        row = alpha.ask("hosts")["hosts"][1]
        assert row["state"] == "internal" and row["text"] == "what it says of itself makes no sense" and "xen" not in row
        for words in ((), ("--json",)):
            said = ctl_hosts(alpha, *words)
            assert said.returncode == 1 and all(line.isascii() and line.isprintable() for line in said.stdout.splitlines())
    finally:
        liar.end()


@pytest.mark.parametrize(
    ("xen", "there"),
    [({"version": "4.21.0"}, "4.21.0 (DSM 2)"), ({"abi": "3"}, "4.20.3-pre (DSM 3)"), ({"version": "4.20.3-pre"}, "")],
    ids=["version", "DSM", "same"],
)
def test_two_versions_of_xen(site: Site, xen: dict[str, str], there: str) -> None:
    """One host was upgraded: dsmctl says so before a guest is made. A dsmd-host that does not say its DSM is left alone."""
    alpha, beta = site.hosts.values()
    beta.write_xen(**xen)
    said = ctl_hosts(alpha)
    text = f"beta: its Xen differs: {there} there, 4.20.3-pre (DSM 2) here; no guest can have memory of both"
    assert (said.returncode, text in said.stdout.splitlines()) == (bool(there), bool(there)), said
    assert ("xen_differs" in alpha.ask("hosts")["hosts"][1]) is bool(there)
    assert enable(alpha).get("error") == ("xen-version" if there else None)


@pytest.mark.parametrize(
    ("error", "why"),
    [
        (errno.ENOENT, "this is no control domain of Xen: No such file or directory"),
        (errno.ENODEV, "this is no control domain of Xen"),
        (errno.EACCES, "the Xen that was booted is not of the version of these tools"),
        (errno.ENOSYS, "it was built without CONFIG_DSM"),
        (errno.EIO, "Input/output error"),
    ],
    ids=["no privcmd", "not Xen", "another Xen", "no DSM", "anything else"],
)
def test_a_host_without_the_right_xen(site: Site, error: int, why: str) -> None:
    """Each hears of it: the log at the start, dsmctl here and elsewhere, who makes a guest."""
    alpha, beta = site.hosts.values()
    alpha.kill()
    alpha.write_xen(errno=str(error))
    alpha.start()
    text = f"host alpha: Xen can't be used: {why}"
    assert text in alpha.said()
    assert enable(alpha)["text"].startswith(text)
    here, there = alpha.ask("hosts")["hosts"]
    assert here["state"] == "here" and here["text"].startswith(text) and there["state"] == "up"
    assert beta.ask("hosts")["hosts"][0]["text"].startswith(text)
    words = [str(programs()[1]), "-l", str(alpha.socket), "hosts"]
    said = subprocess.run(words, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert said.returncode == 1 and text in said.stdout.splitlines()[1], said
    del alpha.facts["errno"]
    alpha.write_xen()
    assert subprocess.run(words, stdout=subprocess.DEVNULL, timeout=PATIENCE, check=False).returncode == 0


def manual_example(page: str, section: str) -> str:
    """The first example of a section, as a reader sees it."""
    text = (parts.ROOT / "docs" / "man" / page).read_text(encoding="utf-8")
    example = text.partition(f".SH {section}")[2].partition("\n.nf\n")[2].partition("\n.fi\n")[0]
    for written, meant in (("\\-", "-"), ("\\e", "\\"), ("\\(dq", '"')):
        example = example.replace(written, meant)
    return example


def test_set_up_by_the_manuals(tmp_path: Path) -> None:
    """Certificates by dsmd-host(8), the file by dsm.toml(5): two hosts see each other."""
    site = Site(tmp_path, 2)
    script = manual_example("dsmd-host.8", "SETTING UP")
    assert "openssl x509" in script
    done = subprocess.run(["sh", "-ec", script], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for host in site.hosts.values():
        config = manual_example("dsm.toml.5", "EXAMPLE").replace('self = "alpha"', f'self = "{host.name}"')
        config = config.replace("/etc/xenuma/dsm/host", f"{tmp_path}/{host.name}").replace(
            "/etc/xenuma/dsm", str(tmp_path)
        )
        for number, name in enumerate(site.hosts, 1):
            config = config.replace(
                f'address = "192.0.2.{number}"\nport = 7100', f'address = "{ADDRESS[name]}"\nport = {site.ports[name]}'
            )
        host.config.write_text(config, encoding="utf-8")
        done = subprocess.run([host_program(), "-k", "-c", host.config], capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
        host.start()
    assert [row["state"] for row in site.alpha.ask("hosts")["hosts"]] == ["here", "up"]
    assert enable(site.alpha)["ok"]
    site.end()


def test_files_are_checked(site: Site) -> None:
    config = site.alpha.config
    assert subprocess.run([host_program(), "--check", "-c", config], check=False).returncode == 0
    config.write_text("x = 1\n", encoding="utf-8")
    done = subprocess.run([host_program(), "-k", "-c", config], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "dsm.toml:1" in done.stderr
