# SPDX-License-Identifier: GPL-2.0
"""dsmd-host and vCPUs at other hosts: what it compares, what it tells the dsmds, what it passes on."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.unit.dsmd.played_hosts import (
    GOOD,
    MIB,
    OTHER,
    UUID,
    XEN,
    Host,
    Liar,
    Reply,
    Site,
    enable,
    libxl_client,
    node,
    ranges,
    running,
    small,
    until,
)
from tests.unit.dsmd.test_dsmd import DSM
from tests.unit.dsmd.test_dsmd_process import programs

pytestmark = pytest.mark.fresh

OK = {"version": 1, "ok": True}
PLACE: dict[str, object] = {"first": 2, "vcpus": 2, "host": "beta"}


@pytest.fixture
def pair(tmp_path: Path) -> Iterator[Site]:
    yield from running(tmp_path, 2)


def enable_places(host: Host, *places: object, **more: object) -> Reply:
    """A guest with 4 vCPUs and a vnode of beta."""
    return enable(host, **({"vcpus": 4, "places": list(places)} | more))


def described(host: Host) -> dict[str, object]:
    vm: dict[str, object] = json.loads((host.vm() / "vm.json").read_text())
    return vm


def test_vcpus_go_and_come_back(pair: Site) -> None:
    alpha, beta = pair.hosts.values()
    assert enable_places(alpha, PLACE) == OK
    here, there = described(alpha), described(beta)
    assert here["places"] == there["places"] == [PLACE | {"attached": False}]
    # A sixteenth of what is not its own: vCPUs there use it.
    assert (here["frames"], there["frames"]) == (0, 64 * MIB // 4096 // 16)
    assert node(alpha, 32768) == OK
    assert alpha.ask("state")["vcpus"] == []
    before = beta.asked()
    for _ in range(2):
        assert alpha.ask("place", host="beta", vcpus=[2, 3]) == OK
        assert alpha.asked()[-1] == "place beta 2-3"
        assert alpha.ask("state")["vcpus"] == [{"vcpu": 2, "host": "beta"}, {"vcpu": 3, "host": "beta"}]
    assert alpha.ask("home", vcpus=[3]) == OK and alpha.asked()[-1] == "home 3"
    assert alpha.ask("state")["vcpus"] == [{"vcpu": 2, "host": "beta"}]
    assert alpha.ask("home", vcpus=[2, 3]) == OK and alpha.asked()[-1] == "home 2-3"
    assert beta.asked() == before, "the dsmds speak with each other"
    assert node(alpha, 0) == OK and not beta.pid()


def test_a_guest_without_places(pair: Site) -> None:
    alpha, beta = pair.hosts.values()
    assert enable(alpha) == OK and node(alpha, 4096) == OK
    for host in (alpha, beta):
        assert "places" not in described(host)
        assert "places" not in json.loads((host.vm() / "record.json").read_text())
    assert described(beta)["frames"] == 64
    assert "vcpus" not in alpha.ask("state")
    assert alpha.ask("place", host="beta", vcpus=[1])["error"] == "places"
    assert alpha.ask("home", vcpus=[1])["error"] == "places"
    assert not [line for line in alpha.asked() if line.startswith(("place", "home"))]


def test_what_stays_at_home_is_used_there(pair: Site) -> None:
    """class_u of dsm.toml: the dsmd here and the one there are told when they are made, before any vCPU is there. Each host by
    its own file, and only of guests with vCPUs elsewhere."""
    alpha, beta = pair.hosts.values()
    for host in (alpha, beta):
        host.kill()
        host.config.write_text("class_u = true\n" + host.config.read_text())
        host.start()
    alpha.domains[6] = f"{OTHER} db 3 1"
    alpha.write_xen()
    assert enable_places(alpha, PLACE) == OK
    assert enable(alpha, uuid=OTHER, domid=6, name="db") == OK
    for host in (alpha, beta):
        assert described(host)["class_u"] is True
        assert "class_u" not in json.loads((host.vm(OTHER) / "vm.json").read_text())
    alpha.end_domain(5)
    until(lambda: not alpha.has() and not beta.has(), "it is gone")
    beta.kill()
    beta.config.write_text(beta.config.read_text().replace("class_u = true", "class_u = false"))
    beta.start()
    alpha.domains[5] = f"{UUID} web 3 1"
    alpha.write_xen()
    assert enable_places(alpha, PLACE) == OK
    assert described(alpha)["class_u"] is True and "class_u" not in described(beta)


RINGS: dict[str, object] = {"start": 0xFEFF8000, "size_kib": 32}


def test_rings(pair: Site) -> None:
    """A range of no vnode, the home's: each dsmd is told of it, and nobody's memory changes by it."""
    alpha, beta = pair.hosts.values()
    assert enable_places(alpha, PLACE, ranges=[RINGS, *ranges("beta")]) == OK
    told = {"first": 0xFEFF8, "frames": 8, "host": "alpha", "rings": True}
    assert described(alpha)["ranges"] == described(beta)["ranges"]
    for host in (alpha, beta):
        rows = described(host)["ranges"]
        assert isinstance(rows, list) and rows[-1] == told and len(rows) == 3, rows
        assert not [row for row in rows[:-1] if "rings" in row or "vnode" not in row]
        recorded = json.loads((host.vm() / "record.json").read_text())["ranges"][-1]
        assert recorded == {"host": "alpha", "first": 0xFEFF8, "frames": 8, "pool_kib": 0}
    assert described(beta)["frames"] == 64 * MIB // 4096 // 16
    assert node(alpha, 32768) == OK and alpha.ask("place", host="beta", vcpus=[2]) == OK
    assert [row["vnode"] for row in alpha.ask("state")["vnodes"]] == [1]
    for op in ("node", "leaving"):
        assert alpha.ask(op, vnode=64, host="beta", size_kib=0, pool_kib=0)["error"] == "internal"
    for host in (alpha, beta):
        host.kill()
        host.start()
    assert enable_places(alpha, PLACE, ranges=[RINGS, *ranges("beta")]) == OK, "again"
    for other in ([], [RINGS | {"size_kib": 28}], [RINGS | {"vnode": 0, "start": 0xFE000000}]):
        assert enable_places(alpha, PLACE, ranges=[*ranges("beta"), *other])["error"] == "sizes", other
    assert alpha.ask("home", vcpus=[2]) == OK and node(alpha, 0) == OK


def test_rings_that_make_no_sense(pair: Site) -> None:
    alpha, beta = pair.hosts.values()
    for rings, error, text in (
        (RINGS | {"start": 0xFEFF8800}, "sizes", "not in units of 4 KiB"),
        (RINGS | {"size_kib": 30}, "sizes", "not in units of 4 KiB"),
        (RINGS | {"start": 0xFE000000, "size_kib": 2048, "host": "beta", "pool_kib": 256}, "sizes", "is the home's"),
        (RINGS | {"start": 0}, "sizes", "overlap"),
        (RINGS | {"vnode": 64}, "internal", "vnode"),
        (RINGS | {"vnode": 0}, "sizes", "not in units of 2 MiB"),
    ):
        said = enable_places(alpha, PLACE, ranges=[*ranges("beta"), rings])
        assert said["error"] == error and text in said["text"], (rings, said)
        assert not alpha.has() and not beta.has() and not alpha.pid()


@pytest.mark.parametrize("reply", [{}, {"rings": False}], ids=str)
def test_a_peer_that_knows_no_rings(pair: Site, reply: dict[str, object]) -> None:
    alpha, beta = pair.hosts.values()
    beta.kill()
    more = {"version": 1, "ok": True, "name_domid": 0, "wire": 9, "cpus": 4, "tsc_khz": 2000000}
    liar = Liar(pair, json.dumps(more | GOOD | reply).encode() + b"\n")
    try:
        said = enable_places(alpha, PLACE, ranges=[*ranges("beta"), RINGS])
        assert said["error"] == "version" and "knows of vnodes only" in said["text"], said
        assert not alpha.has()
    finally:
        liar.end()


def test_it_is_known_after_a_restart(pair: Site) -> None:
    alpha, beta = pair.hosts.values()
    assert enable_places(alpha, PLACE) == OK and node(alpha, 4096) == OK
    assert alpha.ask("place", host="beta", vcpus=[2]) == OK
    for host in (alpha, beta):
        host.kill()
        host.start()
    assert alpha.ask("state")["vcpus"] == [{"vcpu": 2, "host": "beta"}]
    assert alpha.ask("home", vcpus=[2]) == OK
    assert json.loads((beta.vm() / "record.json").read_text())["places"] == [PLACE]
    assert enable_places(alpha, PLACE) == OK, "again"
    for places in ([], [PLACE | {"vcpus": 1}], [PLACE | {"first": 1}], [PLACE, PLACE | {"first": 1, "vcpus": 1}][::-1]):
        assert enable_places(alpha, *places)["error"] == "places", places


def test_places_that_make_no_sense(pair: Site) -> None:
    alpha, beta = pair.hosts.values()
    wrong: list[tuple[object, str, str]] = [
        (5, "internal", "places: want a list"),
        ([PLACE] * 65, "internal", "at most 64"),
        ([5], "internal", "a place is no object"),
        ([PLACE | {"first": -1}], "internal", "first"),
        ([PLACE | {"vcpus": 0}], "internal", "vcpus"),
        ([PLACE | {"host": 1}], "internal", "host"),
        ([PLACE | {"host": "gamma"}], "unknown-host", "there are alpha, beta"),
        ([PLACE | {"host": "alpha"}], "places", "vCPU 2 has its place at alpha, which has no vnode"),
        ([PLACE | {"first": 0}], "places", "vCPU 0 can't have its place at beta"),
        ([PLACE | {"first": 3}], "places", "vCPU 4 has its place at beta; the guest has 4"),
        ([PLACE, PLACE | {"first": 3, "vcpus": 1}], "places", "vCPU 3 has two places"),
        ([PLACE, PLACE | {"first": 1, "vcpus": 1}], "places", "or they are not sorted"),
    ]
    for places, error, text in wrong:
        said = enable_places(alpha, places=places)
        assert said["error"] == error and text in said["text"], (places, said)
        assert not alpha.has() and not beta.has() and not alpha.pid()
    assert enable_places(alpha, PLACE | {"first": 1, "vcpus": 1}, PLACE) == OK


def test_a_host_that_can_not_have_vcpus(pair: Site) -> None:
    alpha, beta = pair.hosts.values()
    for host, facts, error, text in (
        (beta, {"cpus": "1"}, "cpus-there", "host beta: 2 vCPUs are to run there, it has 1 CPUs"),
        (beta, {"tsc": "0"}, "tsc", "host beta: its TSC can't be"),
        (alpha, {"tsc": "0"}, "tsc", "host alpha: its TSC can't be"),
        (
            beta,
            {"tsc": "2000801"},
            "tsc",
            "host beta: its TSC has 2000801 kHz, the one here 2000000: they differ by 401 ppm, and may by 400, since"
            " clock_drift_ppm is 200: a guest on both would have two times",
        ),
        (beta, {"tsc": "1999199"}, "tsc", "1999199"),
        # The vnode, page tables, and a pool of 4 MiB, which is a quarter without places.
        (beta, {"free": str(65536 + 6144 + 4096 - 1)}, "memory-there", "short by 1 KiB"),
    ):
        host.write_xen(**facts)
        said = enable_places(alpha, PLACE)
        assert said["error"] == error and text in said["text"], (facts, said)
        assert enable(alpha) == OK, "it can have memory, and the others can do without its TSC"
        alpha.end_domain(5)
        until(lambda: not alpha.has() and not beta.has(), "something is left")
        alpha.domains[5] = f"{UUID} web 3 1"
        alpha.write_xen()
        host.write_xen(**{key: XEN[key] for key in facts})
    for facts in ({"cpus": "2"}, {"tsc": "2000800"}, {"tsc": "1999200"}):
        beta.write_xen(**facts)
        assert enable_places(alpha, PLACE) == OK, facts
        alpha.end_domain(5)
        until(lambda: not alpha.has() and not beta.has(), "something is left")
        alpha.domains[5] = f"{UUID} web 3 1"
        alpha.write_xen()


def many_hosts(site: Site, hosts: int) -> None:
    """So many are in each dsm.toml; those beyond the site's are not there."""
    for host in site.hosts.values():
        host.kill()
        text = host.config.read_text(encoding="utf-8")
        for number in range(len(site.hosts), hosts):
            text += f'[[host]]\nname = "h{number}"\nnumber = {number}\naddress = "127.0.1.{number}"\nport = 7000\n'
            text += f'certificate_names = ["h{number}"]\n'
        host.config.write_text(text, encoding="utf-8")
        host.start()


OF_HOSTS = [(2, 2048, 340, 341), (4, 1024, 169, 170), (5, 512, 84, 85), (8, 512, 84, 85), (9, 256, 41, 42), (16, 256, 41, 42)]


@pytest.mark.parametrize(("hosts", "ports", "home", "away"), OF_HOSTS)
def test_event_channels_of_a_host(pair: Site, hosts: int, ports: int, home: int, away: int) -> None:
    """Each host of dsm.toml has its part of them, whatever the guest uses; Linux needs six a CPU, and else stops at boot.

    At home five are not for CPUs: none (0), DSM's ring, console, xenstore, a device.
    """
    alpha, beta = pair.hosts.values()
    if hosts > 2:
        many_hosts(pair, hosts)
    beta.write_xen(cpus="512")
    far = PLACE | {"vcpus": away}
    for name, vcpus, places, most in (
        ("alpha", home + 1, [], home),
        ("alpha", home + 3, [PLACE], home),
        ("beta", away + 3, [PLACE | {"vcpus": away + 1}], away),
    ):
        said = enable_places(alpha, *places, vcpus=vcpus)
        text = f"host {name}: {most + 1} vCPUs are to run there, Linux has event channels for {most}: each of the {hosts} hosts"
        assert said["error"] == "cpus-there" and said["text"].startswith(text) and f" {ports} " in said["text"], said
        needs = f"needs 6 and all else at least {5 if name == 'alpha' else 0}"
        assert said["text"].endswith(f"{needs}; give it fewer vCPUs there, or take hosts out of all dsm.toml"), said
        assert not alpha.has() and not beta.has(), name
    assert enable_places(alpha, far, vcpus=away + 2) == OK
    alpha.end_domain(5)
    until(lambda: not alpha.has() and not beta.has(), "something is left")
    alpha.domains[5] = f"{UUID} web 3 1"
    alpha.write_xen()
    assert enable_places(alpha, vcpus=home) == OK, "all at home"


@pytest.mark.parametrize(("allowed", "most"), [(1, 201), (1000, 1200), (10000, 1200)])
def test_how_far_tscs_may_be_told_apart(pair: Site, allowed: int, most: int) -> None:
    """By what jumps of the guest's time can mend, and what two measurements may be off."""
    alpha, beta = pair.hosts.values()
    alpha.kill()
    text = alpha.config.read_text(encoding="utf-8").replace("[limits]\n", f"[limits]\nclock_drift_ppm = {allowed}\n")
    alpha.config.write_text(text, encoding="utf-8")
    alpha.write_xen(tsc="1000000")
    alpha.start()
    beta.write_xen(tsc=str(1000000 - most - 1))
    said = enable_places(alpha, PLACE)
    assert said["error"] == "tsc" and f"may by {most}, since clock_drift_ppm is {allowed}" in said["text"], said
    beta.write_xen(tsc=str(1000000 - most))
    assert enable_places(alpha, PLACE) == OK


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ({}, "version"),
        ({"wire": 2, "cpus": 4, "tsc_khz": 2000000}, "version"),
        ({"wire": "x", "cpus": 4, "tsc_khz": 2000000}, "internal"),
        ({"wire": 9, "tsc_khz": 2000000}, "internal"),
        ({"wire": 9, "cpus": 4}, "internal"),
        ({"wire": 9, "cpus": 4, "tsc_khz": -1}, "internal"),
        ({"wire": 9, "cpus": 1, "tsc_khz": 2000000}, "cpus-there"),
    ],
    ids=str,
)
def test_a_peer_that_is_older(pair: Site, reply: dict[str, object], error: str) -> None:
    alpha, beta = pair.hosts.values()
    beta.kill()
    line = json.dumps({"version": 1, "ok": True, "name_domid": 0} | GOOD | reply).encode() + b"\n"
    liar = Liar(pair, line)
    try:
        said = enable_places(alpha, PLACE)
        assert said["error"] == error, said
        assert not alpha.has()
    finally:
        liar.end()


def test_place_says_what_is_wrong(pair: Site) -> None:
    alpha = pair.alpha
    assert alpha.ask("place", host="beta", vcpus=[2])["error"] == "unknown-vm"
    assert enable_places(alpha, PLACE) == OK and node(alpha, 4096) == OK
    asked = len(alpha.asked())
    wrong: list[tuple[dict[str, object], str, str]] = [
        ({"vcpus": [2]}, "internal", "host"),
        ({"host": "beta"}, "internal", "vcpus: want a list"),
        ({"host": "beta", "vcpus": []}, "internal", "vcpus: want a list"),
        ({"host": "beta", "vcpus": 2}, "internal", "vcpus: want a list"),
        ({"host": "beta", "vcpus": ["2"]}, "internal", "ascending"),
        ({"host": "beta", "vcpus": [2, 2]}, "internal", "ascending"),
        ({"host": "beta", "vcpus": [3, 2]}, "internal", "ascending"),
        ({"host": "beta", "vcpus": [512]}, "internal", "below 512"),
        ({"host": "beta", "vcpus": [-1]}, "internal", "below 512"),
        ({"host": "gamma", "vcpus": [2]}, "unknown-host", "there are alpha, beta"),
        ({"host": "alpha", "vcpus": [2]}, "own-host", "alpha"),
        ({"host": "beta", "vcpus": [1, 2]}, "places", "vCPU 1 of this guest has no place at beta"),
        ({"host": "beta", "vcpus": [2, 4]}, "places", "vCPU 4 "),
        ({"host": "beta", "vcpus": [2], "domid": 6}, "unknown-vm", "domain 6"),
    ]
    for more, error, text in wrong:
        said = alpha.ask("place", **more)
        assert said["error"] == error and text in said["text"], (more, said)
    wrong = [
        ({}, "internal", "vcpus: want a list"),
        ({"vcpus": [0]}, "places", "vCPU 0 of this guest has no place at another host"),
        ({"vcpus": [2], "domid": 6}, "unknown-vm", "domain 6"),
    ]
    for more, error, text in wrong:
        said = alpha.ask("home", **more)
        assert said["error"] == error and text in said["text"], (more, said)
    assert len(alpha.asked()) == asked, "its dsmd was asked"

    for word in ("places", "vcpu-up", "not-ready", "one-host", "vcpu-info", "busy", "unreachable"):
        alpha.answers(f"place beta => error: {word} vCPU 2 at beta: why", f"home => error: {word} vCPU 2: why")
        for said in (alpha.ask("place", host="beta", vcpus=[2]), alpha.ask("home", vcpus=[2])):
            assert said["error"] == word and said["text"].endswith("why"), said
    alpha.answers("place beta => error: strange why")
    assert alpha.ask("place", host="beta", vcpus=[2])["error"] == "internal"
    alpha.answers()
    os.kill(alpha.pid(), signal.SIGKILL)
    until(lambda: not alpha.pid(), "it lives")
    for said in (alpha.ask("place", host="beta", vcpus=[2]), alpha.ask("home", vcpus=[2])):
        assert said["error"] == "internal" and "has ended" in said["text"], said


def test_follow(pair: Site) -> None:
    """Passed on, also while something else is at work; `state` says where it stands still."""
    alpha, beta = pair.hosts.values()
    assert alpha.ask("follow")["error"] == "unknown-vm"
    assert enable_places(alpha, PLACE) == OK and node(alpha, 4096) == OK
    assert alpha.ask("follow") == OK and alpha.asked()[-1] == "follow"
    assert "follow" not in beta.asked()
    assert alpha.ask("state")["paused"] == []
    alpha.answers("paused => yes")
    assert alpha.ask("state")["paused"] == ["beta"]
    assert alpha.ask("follow", domid=6)["error"] == "unknown-vm"
    for word in ("busy", "version", "places"):
        alpha.answers(f"follow => error: {word} host beta: why")
        said = alpha.ask("follow")
        assert said["error"] == word and said["text"] == "host beta: why", said
    alpha.answers("follow => error: no such command")
    assert alpha.ask("follow")["error"] == "internal", "an older dsmd"
    alpha.answers()
    os.kill(alpha.pid(), signal.SIGKILL)
    until(lambda: not alpha.pid(), "it lives")
    said = alpha.ask("follow")
    assert said["error"] == "internal" and "has ended" in said["text"], said


def test_a_line_that_dsmd_takes(pair: Site) -> None:
    """1023 characters: of 340 vCPUs at a host and 64 places, about the most there may be, some make one that is longer."""
    alpha = pair.alpha
    pair.hosts["beta"].write_xen(cpus="600")
    apart = [(vcpu, 1) for vcpu in (2, 10, 12)] + [(vcpu, 2) for vcpu in range(100, 280, 3)]
    places = [{"first": first, "vcpus": nr, "host": "beta"} for first, nr in [*apart, (280, 217)]]
    assert len(places) == 64 and sum(nr for _, nr in apart) + 217 == 340
    assert enable_places(alpha, *places, vcpus=512) == OK
    assert node(alpha, 4096) == OK
    assert alpha.ask("place", host="beta", vcpus=list(range(280, 497))) == OK
    assert alpha.asked()[-1] == "place beta 280-496"
    odd = list(range(281, 497, 2))
    assert alpha.ask("place", host="beta", vcpus=odd) == OK
    assert alpha.asked()[-1] == "place beta " + ",".join(map(str, odd))
    # 11 characters of "place beta ", 7 of "100-101", and 8 of each run that follows; "2," makes a line longer by 2.
    runs = [vcpu for vcpu in range(100, 512) if vcpu % 3 != 0][: 2 * 126]
    assert runs[:2] == [100, 101]
    for more, length in (([], 1018), ([2], 1020), ([10], 1021), ([2, 10], 1023), ([10, 12], 1024)):
        said = alpha.ask("place", host="beta", vcpus=[*more, *runs])
        if length <= 1023:
            assert said == OK and len(alpha.asked()[-1]) == length, (more, said)
        else:
            assert said["error"] == "internal" and "do not fit" in said["text"], said
            assert alpha.ask("home", vcpus=[*more, *runs]) == OK


def test_one_that_comes_while_another_is_at_work(pair: Site) -> None:
    """Both change something: the second is told so."""
    alpha = pair.alpha
    assert enable_places(alpha, PLACE) == OK and node(alpha, 4096) == OK
    alpha.answers("place beta => hang")
    words = {"version": 1, "op": "place", "uuid": UUID, "domid": 5, "host": "beta", "vcpus": [2]}
    with alpha.connect() as first:
        first.sendall(json.dumps(words).encode() + b"\n")
        until(lambda: alpha.asked()[-1] == "place beta 2", "it is not asked")
        assert alpha.ask("home", vcpus=[2])["error"] == "busy"
        assert node(alpha, 0)["error"] == "busy"


def test_libxl(pair: Site) -> None:
    """libxl's own words."""
    alpha = pair.alpha

    def libxl(*words: str) -> tuple[int, list[str]]:
        done = subprocess.run(
            [libxl_client(), alpha.socket, UUID, "5", *words], capture_output=True, text=True, timeout=60, check=False
        )
        return done.returncode, done.stdout.splitlines()

    assert libxl("enable", "beta", "there") == (0, ["ok"])
    assert libxl("state") == (0, ["ok", "1 1 0 0 0 0"])
    assert libxl("node", "1", "beta", "2048", "256") == (0, ["ok"])
    assert libxl("place", "beta") == (0, ["ok"])
    assert libxl("state") == (0, ["ok", "1 3 2048 0 0 512", "vCPU 1 beta"])
    assert libxl("follow") == (0, ["ok"])
    alpha.answers("paused => yes", "home => error: vcpu-up vCPU 1 runs at beta")
    assert libxl("state") == (0, ["ok", "1 3 2048 0 0 512", "vCPU 1 beta", "paused beta"])
    assert libxl("home") == (1, ["vcpu-up vCPU 1 runs at beta"])
    alpha.answers()
    assert libxl("home") == (0, ["ok"])
    assert libxl("state") == (0, ["ok", "1 3 2048 0 0 512"])
    assert described(alpha)["places"] == [{"first": 1, "vcpus": 1, "host": "beta", "attached": False}]


@pytest.mark.skipif(not (DSM / "daemon" / "place.c").exists(), reason="dsmd has no place and home")
def test_real_dsmds(tmp_path: Path) -> None:
    """A vCPU goes there and comes home, twice; the vnode can't go meanwhile."""
    site = Site(tmp_path, 2, programs()[0])
    for host in site.hosts.values():
        host.start()
    alpha, beta = site.hosts.values()
    try:
        # Behind its memory, and no vnode's.
        rings = {"start": 6 * MIB, "size_kib": 32}
        assert enable(alpha, ranges=[*small(), rings], places=[{"first": 1, "vcpus": 1, "host": "beta"}]) == OK
        for _ in range(2):
            assert node(alpha, 2048, pool_kib=256) == OK and alpha.ask("state")["vcpus"] == []
            for _ in range(2):
                assert alpha.ask("place", host="beta", vcpus=[1]) == OK
                assert alpha.ask("state")["vcpus"] == [{"vcpu": 1, "host": "beta"}]
                assert alpha.ask("follow") == OK and alpha.ask("state")["paused"] == []
            assert node(alpha, 0)["error"] == "in-use"
            for _ in range(2):
                assert alpha.ask("home", vcpus=[1]) == OK and alpha.ask("state")["vcpus"] == []
            assert node(alpha, 0) == OK and not beta.pid()
        assert alpha.ask("place", host="beta", vcpus=[1])["error"] == "unreachable"
    finally:
        site.end()
