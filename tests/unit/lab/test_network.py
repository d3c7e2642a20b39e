# SPDX-License-Identifier: GPL-2.0
"""The switch between hosts, with sockets in place of QEMU's: who gets which frame, in which order, and what a cable does."""

from __future__ import annotations

import select
import socket
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from lab.errors import LabError
from lab.network import QUEUE, Cable, Counts, Switch, card_socket, switch_socket

NAMES = ("alpha", "beta", "gamma")
ADDRESS = {name: bytes([2, 0, 0, 0, 0, number]) for number, name in enumerate(NAMES)}
EVERYBODY = b"\xff" * 6
TEXTS = [b"%4d" % number for number in range(400)]
ANSWER_S = 20.0  # for what must come
SILENCE_S = 0.1  # for what must not


class Card:
    """A host's QEMU."""

    def __init__(self, folder: Path, name: str) -> None:
        self.name = name
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(card_socket(folder, name)))
        self.socket.connect(str(switch_socket(folder, name)))

    def send(self, to: bytes, text: bytes) -> None:
        self.socket.send(to + ADDRESS[self.name] + b"\x08\x00" + text)

    def gets(self, number: int = 1) -> list[bytes]:
        """The next frames' texts; fails if they do not come."""
        found: list[bytes] = []
        while len(found) < number:
            assert select.select([self.socket], [], [], ANSWER_S)[0], found
            found.append(self.socket.recv(70000)[14:])
        return found

    def silent(self) -> bool:
        return not select.select([self.socket], [], [], SILENCE_S)[0]


class Rig:
    """A switch and three cards, each of which has said once where it is."""

    def __init__(self, folder: Path) -> None:
        self.switch = Switch(folder, NAMES)
        self.cards = {name: Card(folder, name) for name in NAMES}
        for name, card in self.cards.items():
            card.send(EVERYBODY, b"here")
            assert all(other.gets() == [b"here"] for other in self.cards.values() if other.name != name)

    def send(self, source: str, target: str, *texts: bytes) -> None:
        """Returns when the switch has taken them."""
        wanted = self.switch.counts(source).taken + len(texts)
        for text in texts:
            self.cards[source].send(ADDRESS[target], text)
        deadline = time.monotonic() + ANSWER_S
        while self.switch.counts(source).taken < wanted:
            assert time.monotonic() < deadline, self.switch.counts(source)
            time.sleep(0.001)

    def through(self, cable: Cable) -> list[bytes]:
        """What beta gets of TEXTS, which alpha sends through this cable of beta's; its last frame comes through a good one."""
        self.switch.plug("beta", cable)
        self.send("alpha", "beta", *TEXTS)
        self.switch.plug("beta", Cable())
        self.send("alpha", "beta", b"end")
        found: list[bytes] = []
        while b"end" not in found:
            found += self.cards["beta"].gets()
        return found + ([] if self.cards["beta"].silent() else self.cards["beta"].gets())


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    made = Rig(tmp_path)
    yield made
    made.switch.close()


def test_a_frame_goes_where_its_address_was_seen(rig: Rig) -> None:
    """And to all others if it was not seen yet, or is everybody's."""
    rig.send("alpha", "beta", b"for beta")
    assert rig.cards["beta"].gets() == [b"for beta"]
    rig.cards["alpha"].send(b"\x02unkwn", b"who?")
    assert rig.cards["beta"].gets() == rig.cards["gamma"].gets() == [b"who?"]
    assert all(card.silent() for card in rig.cards.values())
    assert rig.switch.counts("beta") == Counts(taken=1, delivered=4)


def test_large_frames_pass_whole(rig: Rig) -> None:
    text = bytes(range(256)) * 255
    rig.send("beta", "gamma", text)
    assert rig.cards["gamma"].gets() == [text]


def test_what_is_no_frame_is_nobodys(rig: Rig) -> None:
    rig.cards["alpha"].socket.send(b"short")
    rig.send("alpha", "beta", b"next")
    assert rig.cards["beta"].gets() == [b"next"] and rig.switch.counts("alpha").taken == 2


def test_a_cable_that_is_out(rig: Rig) -> None:
    """Nothing passes, in either direction; others are not concerned, and afterwards all is as before."""
    rig.switch.plug("beta", Cable(up=False))
    rig.send("alpha", "beta", b"lost")
    rig.send("beta", "gamma", b"lost")
    rig.send("alpha", "gamma", b"not lost")
    assert rig.cards["gamma"].gets() == [b"not lost"]
    assert rig.cards["beta"].silent() and rig.cards["gamma"].silent()
    rig.switch.plug("beta", Cable())
    rig.send("alpha", "beta", b"again")
    assert rig.cards["beta"].gets() == [b"again"]
    assert (rig.switch.counts("beta").lost, rig.switch.counts("gamma").lost) == (1, 1)


def test_delays_add_up_and_keep_the_order(rig: Rig) -> None:
    """Even when the cable becomes shorter meanwhile."""
    rig.switch.plug("alpha", Cable(delay_s=0.2))
    rig.switch.plug("beta", Cable(delay_s=0.1))
    begun = time.monotonic()
    rig.send("alpha", "beta", b"1")
    rig.switch.plug("alpha", Cable())
    rig.send("alpha", "beta", b"2", b"3")
    assert rig.cards["beta"].gets(3) == [b"1", b"2", b"3"]
    assert time.monotonic() - begun >= 0.3


def test_what_is_on_its_way_when_the_cable_is_pulled(rig: Rig) -> None:
    rig.switch.plug("beta", Cable(delay_s=ANSWER_S))
    rig.send("alpha", "beta", b"late")
    rig.switch.plug("beta", Cable(up=False))
    assert rig.switch.counts("beta").lost == 1
    rig.switch.plug("beta", Cable())
    rig.send("alpha", "beta", b"next")
    assert rig.cards["beta"].gets() == [b"next"]


def test_some_are_lost(rig: Rig) -> None:
    """The share that was asked for, and the others in order."""
    found = rig.through(Cable(lost=0.25))
    assert found.pop() == b"end" and found == sorted(found)
    lost = rig.switch.counts("beta").lost
    assert len(found) + lost == len(TEXTS) and 60 <= lost <= 140


def test_some_are_damaged(rig: Rig) -> None:
    """In one bit behind the header."""
    found = rig.through(Cable(damaged=0.5))
    assert found.pop() == b"end"
    bits = [
        sum((a ^ b).bit_count() for a, b in zip(sent, got, strict=True)) for sent, got in zip(TEXTS, found, strict=True)
    ]
    assert set(bits) == {0, 1} and sum(bits) == rig.switch.counts("beta").damaged
    assert 140 <= sum(bits) <= 260


def test_some_come_twice(rig: Rig) -> None:
    found = rig.through(Cable(doubled=0.5))
    doubled = rig.switch.counts("beta").doubled
    assert found.pop() == b"end" and found == sorted(found) and sorted(set(found)) == TEXTS
    assert len(found) == len(TEXTS) + doubled and 140 <= doubled <= 260


def test_some_are_overtaken(rig: Rig) -> None:
    """By the next one; nothing is lost or doubled."""
    found = rig.through(Cable(reordered=0.3))
    assert sorted(found) == sorted([*TEXTS, b"end"]) and found != [*TEXTS, b"end"]
    late = sum(a > b for a, b in pairwise([text for text in found if text != b"end"]))
    assert 0 < late <= rig.switch.counts("beta").reordered


def test_a_card_that_takes_nothing_holds_nobody_up(rig: Rig) -> None:
    """A queue of frames waits for it, the rest is dropped; what waited comes when it takes again, and in order."""
    number = QUEUE + 700  # the socket takes some, too
    rig.send("alpha", "beta", *(b"%5d" % text for text in range(number)))
    rig.send("alpha", "gamma", b"for gamma")
    assert rig.cards["gamma"].gets() == [b"for gamma"]
    dropped = rig.switch.counts("beta").dropped
    assert 0 < dropped <= number - QUEUE
    assert rig.cards["beta"].gets(number - dropped) == [b"%5d" % text for text in range(number - dropped)]
    assert rig.cards["beta"].silent()


def test_a_machine_that_is_off(rig: Rig) -> None:
    rig.cards["beta"].socket.close()
    rig.send("alpha", "beta", b"nobody there", b"still nobody")
    rig.send("alpha", "gamma", b"for gamma")
    assert rig.cards["gamma"].gets() == [b"for gamma"]
    assert rig.switch.counts("beta").undeliverable == 2


def test_a_cable_that_cannot_be() -> None:
    for wrong, words in (
        ({"delay_s": -0.1}, "delay of -0.1 s: want 0 to 60"),
        ({"delay_s": 61}, "delay of 61 s"),
        ({"lost": 1.5}, r"lost = 1.5: want a share, 0 to 1"),
        ({"reordered": -1}, "reordered = -1"),
    ):
        with pytest.raises(LabError, match=words):
            Cable(**wrong)


def test_a_host_that_is_not_there(rig: Rig) -> None:
    with pytest.raises(LabError, match=r"no host 'delta'; it has: alpha, beta, gamma"):
        rig.switch.plug("delta", Cable())


def test_a_place_that_is_taken(rig: Rig, tmp_path: Path) -> None:
    with pytest.raises(LabError, match=r"wire-alpha"):
        Switch(tmp_path, NAMES)
