# SPDX-License-Identifier: GPL-2.0
"""A guest of a rack, on a host that is played: what its operator types goes to dom0, what is asked of it goes to itself."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from lab.command import TIMED_OUT, Done
from lab.errors import CommandFailedError, CommandTimeoutError, LabError
from lab.guest import Guest

CONSOLE = "its last words\n"


class PlayedHost:
    """Answers the commands that it knows, and raises those answers that are errors."""

    description = SimpleNamespace(name="alpha")

    def __init__(self, **answers: Done | Exception) -> None:
        self.answers = {"tail": Done(0, CONSOLE), **answers}
        self.typed: list[str] = []

    def run(self, command: Sequence[str] | str, timeout: float = 60, check: bool = False) -> Done:
        """By the command's first words, without xl."""
        words = command.split() if isinstance(command, str) else list(command)
        self.typed.append(" ".join(words))
        name = words[1] if words[0] == "xl" else words[0].rpartition("/")[2]
        answer = self.answers[name.replace("-", "_")]
        if isinstance(answer, Exception):
            raise answer
        return answer


def guest_on(host: PlayedHost) -> Guest:
    """The guest g of that host."""
    anything: Any = host
    return Guest(anything, "g")


def test_the_operator_types_in_dom0_and_looks_into_the_guest(monkeypatch: pytest.MonkeyPatch) -> None:
    host = PlayedHost(vnode_attach=Done(0, "vnode 1: online\n"))
    guest = guest_on(host)
    monkeypatch.setattr(guest, "run", lambda command, timeout: Done(0, "0-3\n"))
    assert guest.attach(1, "pnode=1").out == "vnode 1: online\n"
    assert guest.online_cpus() == (0, 1, 2, 3)
    assert host.typed == ["xl vnode-attach g 1 pnode=1"]


def test_a_command_that_takes_too_long_is_an_answer() -> None:
    done = guest_on(PlayedHost(vnode_detach=CommandTimeoutError("killed after 120 s"))).detach(1)
    assert (done.status, done.text) == (TIMED_OUT, "killed after 120 s")


def test_its_domain_number() -> None:
    assert guest_on(PlayedHost(domid=Done(0, "7\n"))).domid() == 7
    with pytest.raises(LabError, match="guest alpha:g: no such domain: g is an invalid domain identifier"):
        guest_on(PlayedHost(domid=Done(1, "", "g is an invalid domain identifier\n"))).domid()


def test_its_address_follows_from_its_mac() -> None:
    host = PlayedHost(domid=Done(0, "7\n"), xenstore_read=Done(0, "00:16:3e:4d:00:1f\n"))
    assert guest_on(host).address() == "10.77.0.31"
    assert host.typed[-1] == "xenstore-read /local/domain/7/device/vif/0/mac"
    with pytest.raises(LabError, match="guest alpha:g has no network card"):
        guest_on(PlayedHost(domid=Done(0, "7\n"), xenstore_read=Done(1, ""))).address()


def test_one_that_does_not_come_up_shows_its_console() -> None:
    host = PlayedHost(await_guest=CommandFailedError("it ended"))
    with pytest.raises(LabError, match=f"guest alpha:g did not come up: it ended\n{CONSOLE}"):
        guest_on(host).wait_ready()
