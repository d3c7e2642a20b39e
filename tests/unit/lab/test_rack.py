# SPDX-License-Identifier: GPL-2.0
"""The end of a rack: what each of its hosts says of its own end is kept, and nobody's rack any more."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import pytest

from lab.description import RackDescription
from lab.host import Host
from lab.rack import Rack
from lab.state import StateDirectory


class Played:
    """A host that ends as it is told, and writes down what was done to it."""

    def __init__(self, wrong: str, ended: bool = False) -> None:
        self.wrong, self.has_ended = wrong, ended
        self.done: list[str] = []

    def ended(self) -> bool:
        return self.has_ended

    def collect_logs(self) -> None:
        self.done.append("logs")

    def power_off(self) -> str:
        self.done.append("off")
        return self.wrong

    def pull_the_plug(self) -> None:
        self.done.append("unplugged")


class Owned:
    """A state directory that is given back."""

    def __init__(self) -> None:
        self.released = 0

    def release(self) -> None:
        self.released += 1


def rack_of(hosts: list[Played], owned: Owned) -> Rack:
    description = RackDescription.load("one-host")
    return Rack(description, cast("list[Host]", hosts), Path("/nowhere"), cast(StateDirectory, owned))


@pytest.mark.parametrize(
    ("ends", "wrong"),
    [
        (("", ""), []),
        (("a hangs", ""), ["a hangs"]),
        (("", "b hangs"), ["b hangs"]),
        (("a hangs", "b"), ["a hangs", "b"]),
    ],
)
def test_each_host_that_ends_badly_is_told(ends: tuple[str, str], wrong: list[str]) -> None:
    hosts, owned = [Played(end) for end in ends], Owned()
    with rack_of(hosts, owned) as rack:
        assert rack.wrong_ends == []
    assert rack.wrong_ends == wrong
    assert [host.done for host in hosts] == [["logs", "off"]] * 2
    assert owned.released == 1


def test_a_host_that_has_ended_has_no_logs_to_give() -> None:
    hosts = [Played("a had ended", ended=True), Played("")]
    rack = rack_of(hosts, Owned())
    rack.power_off()
    assert [host.done for host in hosts] == [["off"], ["logs", "off"]] and rack.wrong_ends == ["a had ended"]


def test_an_error_powers_off_and_an_interruption_pulls_the_plug() -> None:
    """Somebody who presses Ctrl-C does not wait for a shutdown; a failed test still wants its logs."""
    for error, done in ((ValueError, ["logs", "off"]), (KeyboardInterrupt, ["unplugged"])):
        host, owned = Played(""), Owned()
        with pytest.raises(error), rack_of([host], owned):
            raise error
        assert host.done == done and owned.released == 1
