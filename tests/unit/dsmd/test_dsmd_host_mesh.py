# SPDX-License-Identifier: GPL-2.0
"""dsmd-host and hosts of a guest that need each other, neither of them its home: mesh.c, and what peer.c does there."""

from __future__ import annotations

import itertools
import json
import os
import signal
import socket
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.unit.dsmd.played_hosts import (
    GOOD,
    MIB,
    OTHER,
    PATIENCE,
    UUID,
    Host,
    Liar,
    Reply,
    Site,
    enable,
    kill_jobs,
    node,
    peer_ask,
    running,
    until,
)
from tests.unit.dsmd.test_dsmd_process import programs

pytestmark = pytest.mark.fresh

OK = {"version": 1, "ok": True}
AT_BETA: dict[str, object] = {"first": 1, "vcpus": 1, "host": "beta"}
AT_GAMMA: dict[str, object] = {"first": 2, "vcpus": 1, "host": "gamma"}
VNODE = {"beta": 1, "gamma": 2}
BOTH = (AT_BETA, AT_GAMMA)
PLACES = {"both": BOTH, "beta": (AT_BETA,), "gamma": (AT_GAMMA,)}


@pytest.fixture
def trio(tmp_path: Path) -> Iterator[Site]:
    yield from running(tmp_path, 3)


def enabled(site: Site, *places: dict[str, object], **more: object) -> Reply:
    """A guest with 3 vCPUs; vnode 1 is beta's, vnode 2 gamma's."""
    words = {"vcpus": 3, "places": list(places)} if places else {"vcpus": 3}
    return enable(site.alpha, "beta", "gamma", **(words | more))


def sized(site: Site, there: str, kib: int) -> Reply:
    return node(site.alpha, kib, VNODE[there], there)


def says(host: Host) -> dict[str, Any]:
    """What a dsmd says of itself: nothing, if there is none."""
    with socket.socket(socket.AF_UNIX) as wire:
        wire.settimeout(PATIENCE)
        try:
            wire.connect(str(host.run / "web.sock"))
        except OSError:
            return {"peers": {}, "size": {}}
        wire.sendall(b"status\n")
        status: dict[str, Any] = json.loads(wire.makefile().read().partition("\n")[2])
        return status


def connected(host: Host) -> list[str]:
    return sorted(name for name, peer in says(host)["peers"].items() if peer["up"])


def known(host: Host) -> dict[str, int]:
    """KiB of each vnode, as a played dsmd was told."""
    sizes: dict[str, int] = says(host)["size"]
    return {vnode: size for vnode, size in sizes.items() if size}


def forget_what_was_asked(site: Site) -> None:
    for host in site.hosts.values():
        (host.run / "asked").write_text("", encoding="utf-8")


def as_it_should_be(site: Site, sizes: dict[str, int], runs: set[str]) -> None:
    """`sizes`: of the hosts that have memory; `runs`: of those with places."""
    there = {str(VNODE[name]): kib for name, kib in sizes.items() if kib}
    alpha = site.alpha
    assert known(alpha) == there
    attached = sorted(name for name, kib in sizes.items() if kib)
    assert connected(alpha) == attached
    for name, vnode in VNODE.items():
        host = site.hosts[name]
        if name not in attached:
            assert not host.pid(), name
            continue
        others = [other for other in attached if other != name and {name, other} & runs]
        assert connected(host) == sorted(["alpha", *others]), name
        # Who only lends knows of its own.
        assert known(host) == (there if name in runs else {str(vnode): sizes[name]}), name


@pytest.mark.parametrize("places", PLACES)
def test_each_order(trio: Site, places: str) -> None:
    """Memory of both comes, changes and goes; each time who has to know of whom does, and no other."""
    runs = {str(place["host"]) for place in PLACES[places]}
    assert enabled(trio, *PLACES[places]) == OK
    for first, last in itertools.product(itertools.permutations(VNODE), repeat=2):
        sizes = dict.fromkeys(VNODE, 0)
        steps = [(first[0], 4096), (first[1], 8192), (first[0], 6144), (first[0], 2048), (last[0], 0), (last[1], 0)]
        for there, kib in steps:
            for _ in range(1 + (first == last)):
                assert sized(trio, there, kib) == OK
            sizes[there] = kib
            as_it_should_be(trio, sizes, runs)


def test_nobody_needs_another(trio: Site) -> None:
    """Without places each is connected with the home only."""
    assert enabled(trio) == OK
    assert sized(trio, "beta", 4096) == OK and sized(trio, "gamma", 4096) == OK
    as_it_should_be(trio, {"beta": 4096, "gamma": 4096}, set())


def test_the_order_of_one(trio: Site) -> None:
    """Connected, then memory there, then those that may ask for it, then the home; and back."""
    alpha, beta, gamma = trio.hosts.values()
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 4096) == OK
    assert json.loads((beta.vm() / "vm.json").read_text())["frames"] == 2 * 64 * MIB // 4096 // 16
    forget_what_was_asked(trio)
    assert sized(trio, "gamma", 8192) == OK
    assert gamma.asked() == ["connect alpha", "connect beta", "node 1 4096 0", "node 2 8192 0"]
    assert beta.asked() == ["connect gamma", "node 2 8192 0"]
    assert alpha.asked() == ["connect gamma", "node 2 8192 4096"]
    forget_what_was_asked(trio)
    assert sized(trio, "gamma", 0) == OK
    assert gamma.asked() == ["node 2 0 0", "node 1 0 0", "leave beta", "leave alpha", "forget force"]
    assert beta.asked()[0] == "node 2 0 0" and beta.asked()[-1] == "leave gamma"
    assert alpha.asked() == ["node 2 0 0", "leave gamma"]


def test_what_fails_changes_nothing(trio: Site) -> None:
    """Each step at each host, with the host's name and the reason."""
    alpha, beta, gamma = trio.hosts.values()
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 4096) == OK
    why = "error: memory-there why"
    for host, step, word, text in (
        (beta, "connect gamma => error: unknown-host why", "unknown-host", "host beta, with host gamma: why"),
        (gamma, "connect beta => error: no-dsmd-there why", "no-dsmd-there", "host gamma, with host beta: why"),
        (beta, "connect gamma => error: unreachable why", "unreachable", "host beta, with host gamma: why"),
        (gamma, f"node 1 4096 => {why}", "memory-there", "host gamma, with host beta: why"),
        (gamma, f"node 2 8192 => {why}", "memory-there", "why"),
        (beta, f"node 2 8192 => {why}", "memory-there", "host beta, with host gamma: why"),
        (alpha, "node 2 8192 => error: memory-here why", "memory-here", "why"),
    ):
        host.answers(step)
        said = sized(trio, "gamma", 8192)
        assert (said["error"], said["text"]) == (word, text), (step, said)
        host.answers()
        as_it_should_be(trio, {"beta": 4096}, {"beta", "gamma"})
    # One end waits in vain: the other one knows why.
    gamma.answers("connect beta => error: unreachable nobody came")
    beta.answers("connect gamma => error: unknown-host why")
    said = sized(trio, "gamma", 8192)
    assert (said["error"], said["text"]) == ("unknown-host", "host beta, with host gamma: why"), said
    for host in (beta, gamma):
        host.answers()
    assert sized(trio, "gamma", 4096) == OK
    # And of one that has some: it has what it had.
    for host, step in ((beta, f"node 2 8192 => {why}"), (alpha, f"node 2 8192 => {why}"), (gamma, f"node 2 8192 => {why}")):
        host.answers(step)
        assert sized(trio, "gamma", 8192)["error"] == "memory-there"
        host.answers()
        as_it_should_be(trio, {"beta": 4096, "gamma": 4096}, {"beta", "gamma"})
    # What does not go stays, and the next one goes on.
    for host, step in ((beta, "node 2 0"), (gamma, "node 1 0"), (beta, "leave gamma"), (gamma, "leave beta")):
        host.answers(f"{step} => error: in-use why")
        said = sized(trio, "gamma", 0)
        assert said["error"] == "in-use" and said["text"].endswith("why"), said
        assert gamma.pid()
        host.answers()
    assert sized(trio, "gamma", 0) == OK
    as_it_should_be(trio, {"beta": 4096}, {"beta", "gamma"})


def test_a_host_that_is_away(trio: Site) -> None:
    """Who has nothing of the guest need not answer; who has some has to."""
    _, beta, gamma = trio.hosts.values()
    assert enabled(trio, *BOTH) == OK
    gamma.kill()
    assert sized(trio, "beta", 4096) == OK and sized(trio, "beta", 0) == OK
    gamma.start()
    assert sized(trio, "beta", 4096) == OK and sized(trio, "gamma", 4096) == OK
    beta.kill()
    for kib in (8192, 0):
        said = sized(trio, "gamma", kib)
        assert said["error"] == "no-dsmd-there" and "host beta" in said["text"], said
    beta.start()
    assert sized(trio, "gamma", 0) == OK
    as_it_should_be(trio, {"beta": 4096}, {"beta", "gamma"})


def test_place_makes_sure(trio: Site) -> None:
    """Before vCPUs go to a host it is connected with the others, and knows them."""
    alpha, beta, gamma = trio.hosts.values()
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 4096) == OK
    assert alpha.ask("place", host="beta", vcpus=[1]) == OK
    assert "connect gamma" not in beta.asked(), "there is nobody to connect with"
    assert sized(trio, "gamma", 8192) == OK
    forget_what_was_asked(trio)
    assert alpha.ask("place", host="gamma", vcpus=[2]) == OK
    assert gamma.asked() == ["connect beta", "node 1 4096 0"] and beta.asked() == ["connect gamma", "node 2 8192 0"]
    assert alpha.asked() == ["place gamma 2"]
    forget_what_was_asked(trio)
    beta.answers("connect gamma => error: unreachable why")
    said = alpha.ask("place", host="gamma", vcpus=[2])
    assert (said["error"], said["text"]) == ("unreachable", "host beta, with host gamma: why"), said
    assert not alpha.asked(), "it was not asked"
    beta.answers()
    assert alpha.ask("home", vcpus=[1, 2]) == OK and alpha.asked() == ["home 1-2"]


@pytest.mark.parametrize("then", [4096, 0])
def test_an_attach_that_is_killed(trio: Site, then: int) -> None:
    """At each of its effects; the same or the opposite puts it right."""
    alpha, beta, gamma = trio.hosts.values()
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 2048) == OK
    effects: list[Callable[[], bool]] = [
        lambda: bool(gamma.pid()),
        lambda: "connect alpha" in gamma.asked(),
        lambda: "connect beta" in gamma.asked(),
        lambda: "connect gamma" in beta.asked(),
        lambda: "node 1 2048 0" in gamma.asked(),
        lambda: "node 2 4096 0" in gamma.asked(),
        lambda: "node 2 4096 0" in beta.asked(),
        lambda: "node 2 4096 4096" in alpha.asked(),
    ]
    for effect in effects:
        forget_what_was_asked(trio)
        cut(trio, 4096, effect)
        assert sized(trio, "gamma", then) == OK
        as_it_should_be(trio, {"beta": 2048, "gamma": then}, {"beta", "gamma"})
        assert sized(trio, "gamma", 0) == OK
    # The other one goes first: nothing is left of what was cut.
    for effect in effects:
        forget_what_was_asked(trio)
        cut(trio, 4096, effect)
        before = known(alpha)
        assert sized(trio, "beta", 0) == OK
        assert not beta.pid() and "beta" not in connected(gamma) and "1" not in known(gamma), before
        assert sized(trio, "gamma", 0) == OK and not gamma.pid()
        assert sized(trio, "beta", 2048) == OK


def test_a_detach_that_is_killed(trio: Site) -> None:
    """At each of its effects: asked again it goes on, and may be attached again as well."""
    alpha, beta, gamma = trio.hosts.values()
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 2048) == OK
    effects: list[Callable[[], bool]] = [
        lambda: "node 2 0 0" in alpha.asked(),
        lambda: "node 2 0 0" in beta.asked(),
        lambda: "node 2 0 0" in gamma.asked(),
        lambda: "node 1 0 0" in gamma.asked(),
        lambda: "leave gamma" in beta.asked(),
        lambda: "leave beta" in gamma.asked(),
        lambda: "leave alpha" in gamma.asked(),
        lambda: not gamma.pid(),
    ]
    for effect, then in itertools.product(effects, (0, 4096)):
        assert sized(trio, "gamma", 4096) == OK
        forget_what_was_asked(trio)
        cut(trio, 0, effect)
        assert sized(trio, "gamma", then) == OK
        as_it_should_be(trio, {"beta": 2048, "gamma": then}, {"beta", "gamma"})


def test_a_leave_whose_home_has_gone(trio: Site) -> None:
    """Its request has taken too long. Who waits for the leave elsewhere has the guest's lock there, and waits no more."""
    alpha, beta, gamma = trio.hosts.values()
    words = "a request was not done after 118 s, and has ended: what it began goes on"
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 2048) == OK
    for times, (host, line) in enumerate(((beta, "leave gamma"), (gamma, "leave beta"), (gamma, "leave alpha")), 1):
        assert sized(trio, "gamma", 4096) == OK
        forget_what_was_asked(trio)
        host.answers(f"{line} => wait")
        with asking(trio, 0) as client:
            wait_until_asked(host, line)
            kill_jobs(alpha, signal.SIGALRM)
            assert client.recv(1) == b""
        until(lambda host=host: not jobs(host), f"{host.name} still waits")  # type: ignore[misc]
        until(lambda times=times: alpha.said().count(words) >= times, "nobody says so")  # type: ignore[misc]
        host.answers()
        assert sized(trio, "gamma", 0) == OK
        as_it_should_be(trio, {"beta": 2048, "gamma": 0}, {"beta", "gamma"})


def test_a_slow_leave(trio: Site) -> None:
    """It takes longer than a connection may: neither who asks his dsmd nor the home gives up."""
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 2048) == OK
    # Two that part are given 8 s more than who asks one of them.
    for one, other, seconds in (("beta", "gamma", 20.0), ("alpha", "gamma", 14.0)):
        assert sized(trio, "gamma", 4096) == OK
        ends = [(trio.hosts[one], f"leave {other} => wait"), (trio.hosts[other], f"leave {one} => wait")]
        for host, line in ends:
            host.answers(line)
        begun = time.monotonic()
        timers = [threading.Timer(seconds, host.answers) for host, _ in ends]
        for timer in timers:
            timer.start()
        assert sized(trio, "gamma", 0) == OK
        assert time.monotonic() - begun > seconds - 0.1
        for timer in timers:
            timer.join()
    as_it_should_be(trio, {"beta": 2048, "gamma": 0}, {"beta", "gamma"})


def test_an_attach_while_its_host_leaves(trio: Site) -> None:
    """It is refused at once, and changes nothing about the leave."""
    alpha, _, gamma = trio.hosts.values()
    assert enabled(trio) == OK
    alpha.answers("connect gamma => error: busy a leave of host gamma is at work")
    said = sized(trio, "gamma", 4096)
    assert (said["error"], said["text"]) == ("busy", "a leave of host gamma is at work"), said
    assert not [line for host in (alpha, gamma) for line in host.asked() if line.startswith(("leave", "node"))]
    alpha.answers()
    assert sized(trio, "gamma", 4096) == OK


@pytest.mark.parametrize("who", VNODE)
def test_another_host_is_begun_anew_meanwhile(trio: Site, who: str) -> None:
    """Its dsmd-host is killed at each effect there: who asked is told, or it was done, and the same again puts it right."""
    _, beta, gamma = trio.hosts.values()
    host = trio.hosts[who]
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 2048) == OK
    of_beta = ["connect gamma", "node 2 4096 0", "node 2 0 0", "leave gamma"]
    of_gamma = ["connect beta", "node 1 2048 0", "node 2 4096 0", "node 2 0 0", "node 1 0 0", "leave beta"]
    for line in of_beta if host == beta else of_gamma:
        kib = 0 if line.endswith("0 0") or line.startswith("leave") else 4096
        assert sized(trio, "gamma", 4096 - kib) == OK
        forget_what_was_asked(trio)
        with asking(trio, kib) as client:
            wait_until_asked(host, line)
            kill_jobs(host)
            host.kill()
            host.start()
            reply = json.loads(client.makefile().readline())
        assert reply["ok"] or who in reply["text"], reply
        assert sized(trio, "gamma", kib) == OK
        as_it_should_be(trio, {"beta": 2048, "gamma": kib}, {"beta", "gamma"})
    assert beta.pid() and not gamma.pid()


def asking(site: Site, kib: int) -> socket.socket:
    """Where the reply to a request about gamma's vnode will come."""
    words = {"version": 1, "op": "node", "uuid": UUID, "domid": 5, "vnode": 2, "host": "gamma"}
    client = site.alpha.connect()
    more = {"size_kib": kib, "pool_kib": 4096 if kib else 0}
    client.sendall(json.dumps(words | more).encode() + b"\n")
    return client


def wait_until_asked(host: Host, line: str) -> None:
    end = time.monotonic() + PATIENCE
    while line not in host.asked():
        assert time.monotonic() < end, line


def cut(site: Site, kib: int, effect: Callable[[], bool]) -> None:
    """A request about gamma's vnode, whose process is killed as soon as something is so."""
    with asking(site, kib):
        end = time.monotonic() + PATIENCE
        while not effect():
            assert time.monotonic() < end
        kill_jobs(site.alpha)
    # Those of its questions that are at work elsewhere have the guest's lock there.
    for name in VNODE:
        host = site.hosts[name]
        until(lambda host=host: not jobs(host), f"{name} is still at work")  # type: ignore[misc]


def jobs(host: Host) -> str:
    assert host.process
    return Path(f"/proc/{host.process.pid}/task/{host.process.pid}/children").read_text()


def test_killed_and_begun_anew(trio: Site) -> None:
    """All that is known of who needs whom is in the records."""
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 4096) == OK and sized(trio, "gamma", 4096) == OK
    for host in trio.hosts.values():
        host.kill()
        host.start()
    as_it_should_be(trio, {"beta": 4096, "gamma": 4096}, {"beta", "gamma"})
    assert sized(trio, "beta", 0) == OK
    as_it_should_be(trio, {"gamma": 4096}, {"beta", "gamma"})


def test_the_end_of_a_domain(trio: Site) -> None:
    assert enabled(trio, *BOTH) == OK and sized(trio, "beta", 4096) == OK and sized(trio, "gamma", 4096) == OK
    trio.alpha.end_domain(5)
    until(lambda: not any(host.has() or host.pid() for host in trio.hosts.values()), "something is left")


def test_a_host_that_does_not_know_the_third(tmp_path: Path) -> None:
    """It is refused when the guest is made, by name."""
    site = Site(tmp_path, 3)
    try:
        beta = site.hosts["beta"]
        head, *tables = beta.config.read_text().split("[[host]]")
        beta.config.write_text("[[host]]".join([head, *tables[:2]]))
        for host in site.hosts.values():
            host.start()
        said = enabled(site, AT_BETA)
        assert said["error"] == "unknown-host", said
        assert said["text"] == "host beta does not know host gamma: it is not in its dsm.toml"
        assert not any(host.has() for host in site.hosts.values())
    finally:
        site.end()


def test_what_a_home_may_ask(trio: Site) -> None:
    """Of two hosts of its guest of which one has vCPUs, and of memory that the guest has; nobody else may."""
    _, beta, gamma = trio.hosts.values()
    assert enabled(trio, AT_BETA) == OK and sized(trio, "beta", 4096) == OK and sized(trio, "gamma", 4096) == OK
    forget_what_was_asked(trio)
    asked: list[tuple[str, str, dict[str, object], str, str]] = [
        # who asks whom
        ("gamma", "beta", {"op": "join", "host": "gamma"}, "unknown-vm", "not the home"),
        ("gamma", "beta", {"op": "share", "vnode": 2, "size_kib": 4096}, "unknown-vm", "not the home"),
        ("gamma", "beta", {"op": "part", "host": "gamma"}, "unknown-vm", "not the home"),
        ("alpha", "beta", {"op": "join", "host": "delta"}, "unknown-host", "host beta does not know host delta"),
        ("alpha", "beta", {"op": "join", "host": 5}, "internal", "host: want"),
        ("alpha", "beta", {"op": "join"}, "internal", "host: want"),
        ("alpha", "beta", {"op": "join", "host": "alpha"}, "internal", "has nothing to do with host alpha"),
        ("alpha", "beta", {"op": "join", "host": "beta"}, "internal", "has nothing to do with host beta"),
        ("alpha", "beta", {"op": "part", "host": "alpha"}, "internal", "has nothing to do with host alpha"),
        ("alpha", "beta", {"op": "share", "vnode": 1, "size_kib": 2048}, "internal", "nothing to do with host beta"),
        ("alpha", "beta", {"op": "share", "vnode": 0, "size_kib": 2048}, "sizes", "vnode 0"),
        ("alpha", "beta", {"op": "share", "vnode": 2, "size_kib": 65540}, "sizes", "vnode 2 has no 65540 KiB"),
        ("alpha", "beta", {"op": "share", "vnode": 2}, "internal", "size_kib"),
        ("alpha", "beta", {"op": "share", "size_kib": 2048}, "internal", "vnode"),
        ("alpha", "gamma", {"op": "share", "vnode": 1, "size_kib": 2048}, "internal", "only lends memory"),
        ("alpha", "gamma", {"op": "join", "host": "beta", "uuid": OTHER}, "unknown-vm", "no place"),
    ]
    for who, whom, words, error, text in asked:
        said = peer_ask(trio, who, whom, **({"uuid": UUID} | words))
        assert said.get("error") == error and text in said["text"], (words, said)
    assert not beta.asked() and not gamma.asked()
    # What is nothing there is no error.
    nothing: list[dict[str, object]] = [{"op": "part", "host": "beta"}, {"op": "share", "vnode": 1, "size_kib": 0}]
    for words in nothing:
        assert peer_ask(trio, "alpha", "gamma", uuid=OTHER, **words) == OK
    os.kill(beta.pid(), signal.SIGKILL)
    until(lambda: not beta.pid(), "it lives")
    dead: list[tuple[dict[str, object], bool]] = [
        ({"op": "part", "host": "gamma"}, True),
        ({"op": "share", "vnode": 2, "size_kib": 0}, True),
        ({"op": "join", "host": "gamma"}, False),
        ({"op": "share", "vnode": 2, "size_kib": 2048}, False),
    ]
    for words, ok in dead:
        said = peer_ask(trio, "alpha", "beta", uuid=UUID, **words)
        assert said["ok"] == ok and (ok or "dsmd of web is not there" in said["text"]), (words, said)


def test_two_hosts_of_which_none_has_vcpus(trio: Site) -> None:
    """A home that asks for it all the same is refused."""
    assert enabled(trio) == OK and sized(trio, "beta", 4096) == OK and sized(trio, "gamma", 4096) == OK
    for words in ({"op": "join", "host": "gamma"}, {"op": "share", "vnode": 2, "size_kib": 2048}):
        said = peer_ask(trio, "alpha", "beta", uuid=UUID, **words)
        assert said["error"] == "internal" and "nothing to do with host gamma" in said["text"], said


@pytest.mark.parametrize(("reply", "error"), [({}, "version"), ({"joins": False}, "version"), ({"joins": True}, "")], ids=str)
def test_a_peer_that_is_older(trio: Site, reply: dict[str, object], error: str) -> None:
    """It would connect with the home instead."""
    beta = trio.hosts["beta"]
    beta.kill()
    more = {"hosts": ["alpha", "beta", "gamma"], "wire": 9, "cpus": 4, "tsc_khz": 2000000}
    line = json.dumps({"version": 1, "ok": True, "name_domid": 0} | GOOD | more | reply).encode() + b"\n"
    liar = Liar(trio, line)
    try:
        said = enabled(trio, AT_GAMMA)
        assert said.get("error", "") == error, said
        assert not error or "host beta: its dsmd-host can't connect it" in said["text"], said
        if error:
            assert not trio.alpha.has()
            assert enabled(trio) == OK, "without places it need not"
    finally:
        liar.end()


def test_real_dsmds(tmp_path: Path) -> None:
    """vCPUs go to both and come home, and the hosts in each order; the home tells who has lost whom."""
    site = Site(tmp_path, 3, programs()[0])
    for host in site.hosts.values():
        host.start()
    alpha, beta, gamma = site.hosts.values()
    ranges = [
        {"vnode": 0, "start": 0, "size_kib": 2048},
        {"vnode": 1, "start": 2 * MIB, "size_kib": 2048, "host": "beta", "pool_kib": 384},
        {"vnode": 2, "start": 4 * MIB, "size_kib": 2048, "host": "gamma", "pool_kib": 384},
    ]
    vcpus = {"beta": 1, "gamma": 2}

    def sized(there: str, kib: int) -> Reply:
        return node(alpha, kib, VNODE[there], there, pool_kib=384 if kib else 0)

    try:
        assert enable(alpha, ranges=ranges, vcpus=3, places=list(BOTH)) == OK
        for first, last in ((("beta", "gamma"), ("gamma", "beta")), (("gamma", "beta"), ("gamma", "beta"))):
            for there in first:
                assert sized(there, 2048) == OK
                assert alpha.ask("place", host=there, vcpus=[vcpus[there]]) == OK
            assert alpha.ask("state")["vcpus"] == [{"vcpu": 1, "host": "beta"}, {"vcpu": 2, "host": "gamma"}]
            assert [connected(host) for host in (alpha, beta, gamma)] == [
                ["beta", "gamma"],
                ["alpha", "gamma"],
                ["alpha", "beta"],
            ]
            for there in last:
                assert sized(there, 0)["error"] == "in-use"
                assert alpha.ask("home", vcpus=[vcpus[there]]) == OK
                assert sized(there, 0) == OK and not site.hosts[there].pid()
                assert not any(there in connected(host) for host in (alpha, beta, gamma))
        for there in VNODE:
            assert sized(there, 2048) == OK
            assert alpha.ask("place", host=there, vcpus=[vcpus[there]]) == OK
        os.kill(gamma.pid(), signal.SIGKILL)
        until(lambda: alpha.status()["state"] == "failed", "nobody notices")
        assert "gamma" in alpha.status()["failure"], alpha.status()["failure"]
        alpha.end_domain(5)
        until(lambda: not any(host.has() or host.pid() for host in site.hosts.values()), "something is left")
    finally:
        site.end()
